//! The state of memory over the run: `nr_*` of `/proc/vmstat`, looked at now and then.
//!
//! 1. A sample is taken at the first event after each tick of virtual time.
//! 2. When there are [`SAMPLES_MAX`], every second one is dropped and ticks get twice as far apart, so that
//!    a run of any length has between half as many and all of them.

use crate::time::{MSEC, Nanos};
use crate::world::World;
use lowmark_record::Gauges;

/// Samples that are kept at most.
const SAMPLES_MAX: usize = 1024;
/// Distance of the first samples.
const FIRST_INTERVAL: Nanos = MSEC;

/// Samples so far.
#[derive(Debug)]
pub(crate) struct Sampler {
    interval: Nanos,
    next: Nanos,
    gauges: Gauges,
}

impl Sampler {
    pub(crate) fn new() -> Sampler {
        Sampler {
            interval: FIRST_INTERVAL,
            next: 0,
            gauges: Gauges::default(),
        }
    }

    /// Takes a sample if it is time.
    #[inline]
    pub(crate) fn look(&mut self, world: &World) {
        if world.sched.now() >= self.next {
            self.take(world);
        }
    }

    #[cold]
    fn take(&mut self, world: &World) {
        let now = world.sched.now();
        let state = world.state();
        if self.gauges.names.is_empty() {
            self.gauges.names = state.keys().cloned().collect();
        }
        self.gauges
            .samples
            .push((now, state.into_values().collect()));
        if self.gauges.samples.len() == SAMPLES_MAX {
            let mut at = 0;
            self.gauges.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.interval *= 2;
        }
        self.next = (now / self.interval + 1) * self.interval;
    }

    pub(crate) fn finish(self) -> Gauges {
        self.gauges
    }
}
