//! Events of the model's tracepoints, as its kernel would have them.

use lowmark_record::{Event, EventLog, Kind, Release};

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

    pub(crate) fn take(&mut self) -> EventLog {
        std::mem::take(&mut self.events)
    }
}
