//! The era of a trace, as far as its events tell.

use super::NAMES_ERA;
use lowmark_record::{Event, Kind, Release, Sink, Tables};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Finds the kernel release in whose text a trace can be written and nothing of it is lost: a [`Sink`] for a
/// first look at the events.
///
/// 1. Each release in which a tracepoint came, changed or went is tried, and [`Release::NEWEST`].
/// 2. The one is best that lacks the fewest events, then the fewest fields of events; then
///    [`Release::NEWEST`]; then the one whose texts have the fewest fields that the events do not have; then the
///    newest.
#[derive(Debug, Clone)]
pub struct EraFinder {
    /// Events by tracepoint.
    events: Vec<u64>,
    /// Slots that any of them had, by tracepoint.
    slots: Vec<u32>,
}

impl Default for EraFinder {
    fn default() -> Self {
        EraFinder {
            events: vec![0; Kind::ALL.len()],
            slots: vec![0; Kind::ALL.len()],
        }
    }
}

impl Sink for EraFinder {
    fn event(&mut self, event: &Event, _: &Tables) {
        let kind = event.kind as usize;
        self.events[kind] = self.events[kind].saturating_add(1);
        let all = event.kind.fields().iter().enumerate();
        let mut present = event.fields().peekable();
        let mut slots = 0;
        // Both are in the same order.
        for (slot, field) in all {
            if present.next_if(|(known, _)| known == field).is_some() {
                slots |= 1 << slot;
            }
        }
        self.slots[kind] |= slots;
    }
}

impl EraFinder {
    /// The release; [`Release::NEWEST`] where the events say nothing else.
    pub fn release(&self) -> Release {
        let best = candidates().into_iter().min_by_key(|release| {
            let (events, fields, foreign) = self.lacks(*release);
            let other = *release != Release::NEWEST;
            (events, fields, other, foreign, Reverse(*release))
        });
        best.unwrap_or(Release::NEWEST)
    }

    /// Events and fields that a release does not have, and fields that it has in addition.
    fn lacks(&self, release: Release) -> (u64, u32, u32) {
        let (mut events, mut fields, mut foreign) = (0u64, 0, 0);
        for (kind, (count, slots)) in Kind::ALL.iter().zip(self.events.iter().zip(&self.slots)) {
            if *count == 0 {
                continue;
            }
            match kind.mask_in(release) {
                Some(mask) => {
                    fields += (slots & !mask).count_ones();
                    foreign += (mask & !slots).count_ones();
                }
                None => events = events.saturating_add(*count),
            }
        }
        (events, fields, foreign)
    }
}

/// Releases between which texts differ.
fn candidates() -> BTreeSet<Release> {
    let mut releases = BTreeSet::from([Release::NEWEST, NAMES_ERA]);
    for kind in Kind::ALL {
        let spec = kind.spec();
        let changes = spec.texts.iter().map(|(since, _)| *since).chain(spec.until);
        releases.extend(changes.filter_map(|release| release.parse::<Release>().ok()));
    }
    releases
}
