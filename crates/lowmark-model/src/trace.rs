//! Events of the model's tracepoints.

use crate::time::Nanos;
use lowmark_record::{Event, Payload};

/// The buffer; it holds everything or nothing.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    enabled: bool,
    events: Vec<Event>,
}

impl Trace {
    pub(crate) fn new(enabled: bool) -> Trace {
        Trace {
            enabled,
            events: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn enabled(&self) -> bool {
        self.enabled
    }

    pub(crate) fn push(&mut self, time_ns: Nanos, cpu: u32, task: u32, payload: Payload) {
        self.events.push(Event {
            time_ns,
            cpu,
            task,
            payload,
        });
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
