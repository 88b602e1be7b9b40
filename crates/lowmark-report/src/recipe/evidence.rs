//! What remains of a run for its cells: the recording, and in place of its events what they add up to.
//!
//! A run of many writers has tens of millions of events, so they go by a [`Watch`] of bounded memory and are not
//! kept. What it saw is the same whether they go by during the run or are replayed from a recording.

use crate::dirty::{DirtyFigures, DirtyReport};
use crate::identities::{Identity, Sums, identities_of};
use crate::reclaim::{ReclaimFigures, ReclaimReport, RunContext};
use lowmark_record::stream::Account;
use lowmark_record::{Event, Recording, Sink, Tables};

/// Looks at the events of a run as they go by.
#[derive(Debug, Default)]
pub struct Watch {
    dirty: DirtyReport,
    reclaim: ReclaimReport,
    sums: Sums,
}

impl Sink for Watch {
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.dirty.event(event, tables);
        self.reclaim.event(event, tables);
        self.sums.event(event, tables);
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Evidence {
    recording: Recording,
    dirty: Option<DirtyFigures>,
    reclaim: Option<Box<ReclaimFigures>>,
    identities: Vec<Identity>,
}

impl Evidence {
    /// A run whose events nobody wants; if it has any, they are forgotten.
    pub fn without_events(mut recording: Recording) -> Evidence {
        recording.events = Default::default();
        Evidence {
            recording,
            dirty: None,
            reclaim: None,
            identities: Vec::new(),
        }
    }

    /// A run with its events, which are forgotten when they have been looked at.
    pub fn of(recording: Recording) -> Evidence {
        let mut watch = Watch::default();
        recording.replay(&mut watch);
        Evidence::watched(recording, watch)
    }

    /// A run whose events went by `watch`.
    pub fn watched(recording: Recording, mut watch: Watch) -> Evidence {
        watch.dirty.gauges(&recording);
        let context = RunContext::of(&recording);
        let reclaim = (watch.reclaim).finish(&Tables::default(), Account::default(), context);
        Evidence {
            dirty: Some(watch.dirty.figures()),
            reclaim: Some(Box::new(reclaim)),
            identities: identities_of(&recording, &watch.sums),
            ..Evidence::without_events(recording)
        }
    }

    /// The recording, without events.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The recording alone.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// Figures of dirty throttling; none if nobody looked at the events.
    pub fn dirty(&self) -> Option<&DirtyFigures> {
        self.dirty.as_ref()
    }

    /// Figures of reclaim; none if nobody looked at the events.
    pub fn reclaim(&self) -> Option<&ReclaimFigures> {
        self.reclaim.as_deref()
    }

    /// What its events must have added up to; empty if nobody looked at them.
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }
}
