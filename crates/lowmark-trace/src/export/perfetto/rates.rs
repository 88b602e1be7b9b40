//! Counters that events tell of: what reclaim scans and reclaims, and dirty pages between their thresholds.
//!
//! 1. `mm_vmscan_lru_shrink_inactive` adds to a window of [`WINDOW_NS`]; when a later one begins, the rate is
//!    given, and 0 after it if nothing happened for a while. Kernels before 3.1 have no such event or no counts in
//!    it, and so no rate.
//! 2. `global_dirty_state` (3.1) is given as it is, where it changes.

use lowmark_record::{Event, Field, Kind};

/// Time over which a rate is taken, ns.
const WINDOW_NS: u64 = 10_000_000;

const WINDOWS_PER_SECOND: u64 = 1_000_000_000 / WINDOW_NS;

/// Names of the rates.
const RATES: [&str; 2] = ["pages scanned per second", "pages reclaimed per second"];

/// What of `global_dirty_state` is shown, and how it is called.
const STATES: [(Field, &str); 4] = [
    (Field::Dirty, "dirty pages"),
    (Field::Writeback, "pages under writeback"),
    (Field::BgThresh, "dirty background threshold"),
    (Field::Thresh, "dirty threshold"),
];

/// The counters between two events.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// Begin of the window, and pages scanned and reclaimed in it.
    window: Option<(u64, [u64; 2])>,
    states: [Option<u64>; STATES.len()],
}

impl Rates {
    /// Gives the values that an event brings about: time, name, value.
    pub(super) fn event(&mut self, event: &Event, give: &mut dyn FnMut(u64, &'static str, u64)) {
        match event.kind {
            Kind::LruShrinkInactive => {
                let pages = [Field::NrScanned, Field::NrReclaimed].map(|field| event.get(field));
                if let [Some(scanned), Some(reclaimed)] = pages {
                    self.add(event.time_ns, [scanned, reclaimed], give);
                }
            }
            Kind::GlobalDirtyState => {
                for ((field, name), last) in STATES.iter().zip(&mut self.states) {
                    let value = event.get(*field);
                    if let Some(pages) = value.filter(|_| value != *last) {
                        give(event.time_ns, name, pages);
                        *last = value;
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, time_ns: u64, pages: [u64; 2], give: &mut dyn FnMut(u64, &'static str, u64)) {
        if let Some((begin, _)) = self.window
            && time_ns.saturating_sub(begin) >= WINDOW_NS
        {
            // The next window may follow at once: then nothing is 0 in between.
            let next = begin.saturating_add(WINDOW_NS);
            let idle = time_ns - next >= WINDOW_NS;
            self.close(idle, give);
            self.window = (!idle).then_some((next, [0; 2]));
        }
        let (_, sums) = self.window.get_or_insert((time_ns, [0; 2]));
        for (sum, pages) in sums.iter_mut().zip(pages) {
            *sum = sum.saturating_add(pages);
        }
    }

    /// Gives the rates of the last window, and that nothing follows.
    pub(super) fn finish(&mut self, give: &mut dyn FnMut(u64, &'static str, u64)) {
        self.close(true, give);
    }

    fn close(&mut self, idle: bool, give: &mut dyn FnMut(u64, &'static str, u64)) {
        let Some((begin, sums)) = self.window.take() else {
            return;
        };
        for (name, pages) in RATES.into_iter().zip(sums) {
            give(begin, name, pages.saturating_mul(WINDOWS_PER_SECOND));
            if idle {
                give(begin.saturating_add(WINDOW_NS), name, 0);
            }
        }
    }
}
