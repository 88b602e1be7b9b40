//! Events of the model's tracepoints, as its kernel would have them.
//!
//! They are kept until the run is over ([`Trace::take`]), or go by in batches while it goes on ([`Stream`]).

use crate::world::World;
use lowmark_record::{Event, EventLog, Kind, Passing, Release, Sink, Source};

/// Events that are kept before they go by.
const BATCH: usize = 1 << 14;

/// The buffer; it holds everything or nothing.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Fields of each tracepoint in this kernel's era, none for those it does not have; empty if nothing
    /// is recorded.
    masks: Vec<Option<u32>>,
    events: EventLog,
}

impl Trace {
    /// A buffer for a kernel of `release`; without one nothing is recorded.
    pub(crate) fn new(release: Option<Release>) -> Trace {
        let masks =
            release.map(|release| Kind::ALL.iter().map(|kind| kind.mask_in(release)).collect());
        Trace {
            masks: masks.unwrap_or_default(),
            events: EventLog::default(),
        }
    }

    #[inline]
    pub(crate) fn enabled(&self) -> bool {
        !self.masks.is_empty()
    }

    /// The number by which events name a text.
    pub(crate) fn name(&mut self, text: &str) -> u64 {
        self.events.names.intern(text.as_bytes())
    }

    pub(crate) fn push(&mut self, mut event: Event) {
        if let Some(mask) = self.masks[event.kind as usize] {
            event.keep(mask);
            self.events.push(&event);
        }
    }

    /// Whether there are enough events to let them go by.
    #[inline]
    fn is_batch(&self) -> bool {
        self.events.len() >= BATCH
    }

    pub(crate) fn take(&mut self) -> EventLog {
        std::mem::take(&mut self.events)
    }
}

/// The events of a run on their way to whoever wants them.
pub(crate) struct Stream<'a> {
    passing: Passing,
    sink: &'a mut dyn Sink,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Stream<'a> {
        Stream {
            passing: Passing::default(),
            sink,
        }
    }

    /// Lets events go by if there are many.
    #[inline]
    pub(crate) fn observe(&mut self, world: &mut World) {
        if world.trace.is_batch() {
            self.drain(world);
        }
    }

    fn drain(&mut self, world: &mut World) {
        let known = self.passing.tasks();
        for (id, task) in world.sched.tasks().iter().enumerate().skip(known) {
            self.passing.task(&task.name, pid(id));
        }
        self.passing.drain(&mut world.trace.events, self.sink);
    }

    /// Lets the last events go by.
    pub(crate) fn end(mut self, world: &mut World) -> Source {
        self.drain(world);
        self.passing.end(world.trace.take().names)
    }
}

/// Process id of a task: its number from 1 on.
pub(crate) fn pid(id: usize) -> u32 {
    id as u32 + 1
}
