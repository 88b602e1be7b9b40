//! Stalls as slices: what a task did while it had to reclaim or to wait.
//!
//! | slice | from | to |
//! |---|---|---|
//! | reclaim, direct and of all other kinds | `*_reclaim_begin` | `*_reclaim_end` |
//! | `kswapd awake` | first `kswapd_wake` | `kswapd_sleep` |
//! | `congestion_wait`, `wait_iff_congested`, `throttled` | the event's time less its `usec_delayed` | the event |
//! | `balance_dirty_pages` (3.2) | the event | its `pause` later, or the next of these events of its task |
//! | `balance_dirty_pages` (before 3.2) | `balance_dirty_start` | `balance_dirty_wait` |
//!
//! A wait that did not sleep is an instant. The kernel tells delays in whole jiffies: a wait never begins
//! before the last thing that is known of its task. A begin that has no end stays open, an end without a begin
//! is left out: the trace begins and ends where it does.

use super::bundle::text;
use super::schema::{
    AnnotationValue, DebugAnnotation, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, TrackEvent,
};
use lowmark_record::event::ValueType;
use lowmark_record::{Event, Field, Kind, Names};
use std::collections::BTreeMap;

/// Category of what reclaimers do.
const RECLAIM: &str = "reclaim";

/// Category of what throttled writers do.
const WRITEBACK: &str = "writeback";

/// What a throttled writer is in.
const BALANCE: &str = "balance_dirty_pages";

/// Longest pause that can be one, ms; the kernel's `MAX_PAUSE` is 200 ms.
const PAUSE_MAX_MS: i64 = 1000;

/// Most slices open in one task at a time; a trace that has more lacks their ends.
const OPEN_MAX: usize = 8;

/// What an event means for its task.
enum Meaning {
    Begins(&'static str),
    Ends(&'static str),
    /// A wait that is over.
    Waited(&'static str),
    /// A writer that will pause.
    Pauses,
    Nothing,
}

fn meaning(kind: Kind) -> Meaning {
    match kind {
        Kind::DirectReclaimBegin => Meaning::Begins("direct reclaim"),
        Kind::DirectReclaimEnd => Meaning::Ends("direct reclaim"),
        Kind::MemcgReclaimBegin => Meaning::Begins("memcg reclaim"),
        Kind::MemcgReclaimEnd => Meaning::Ends("memcg reclaim"),
        Kind::MemcgSoftlimitReclaimBegin => Meaning::Begins("memcg soft limit reclaim"),
        Kind::MemcgSoftlimitReclaimEnd => Meaning::Ends("memcg soft limit reclaim"),
        Kind::NodeReclaimBegin => Meaning::Begins("node reclaim"),
        Kind::NodeReclaimEnd => Meaning::Ends("node reclaim"),
        Kind::BalancePgdatBegin => Meaning::Begins("balance_pgdat"),
        Kind::BalancePgdatEnd => Meaning::Ends("balance_pgdat"),
        Kind::KswapdWake => Meaning::Begins("kswapd awake"),
        Kind::KswapdSleep => Meaning::Ends("kswapd awake"),
        Kind::CongestionWait => Meaning::Waited("congestion_wait"),
        Kind::WaitIffCongested => Meaning::Waited("wait_iff_congested"),
        Kind::Throttled => Meaning::Waited("throttled"),
        Kind::BalanceDirtyPages => Meaning::Pauses,
        Kind::BalanceDirtyStart | Kind::WbcBalanceDirtyStart => Meaning::Begins(BALANCE),
        Kind::BalanceDirtyWait | Kind::WbcBalanceDirtyWait => Meaning::Ends(BALANCE),
        _ => Meaning::Nothing,
    }
}

/// What is known of one task.
#[derive(Debug, Default)]
struct Task {
    open: Vec<&'static str>,
    last_ns: u64,
    /// When the pause ends that it is in.
    paused_until: Option<u64>,
}

impl Task {
    /// Ends the pause, which lasts until `time_ns` at most.
    fn wake(&mut self, time_ns: u64, track: u64, give: &mut impl FnMut(u64, TrackEvent)) {
        if let Some(until) = self.paused_until.take() {
            // Nothing that follows begins before it.
            self.last_ns = until.min(time_ns.max(self.last_ns));
            give(self.last_ns, end(track, Vec::new()));
        }
    }
}

/// The tasks' open slices.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    tasks: BTreeMap<i32, Task>,
}

impl Stalls {
    /// Gives the begins and ends that follow from an event, with their times.
    pub(super) fn event(
        &mut self,
        event: &Event,
        pid: i32,
        track: u64,
        names: &Names,
        mut give: impl FnMut(u64, TrackEvent),
    ) {
        let meaning = meaning(event.kind);
        if matches!(meaning, Meaning::Nothing) {
            return;
        }
        let task = self.tasks.entry(pid).or_default();
        task.wake(event.time_ns, track, &mut give);
        match meaning {
            Meaning::Begins(name) => {
                // kswapd may be woken again before it sleeps.
                if task.open.contains(&name) || task.open.len() == OPEN_MAX {
                    return;
                }
                task.open.push(name);
                give(event.time_ns, begin(name, track, annotations(event, names)));
            }
            Meaning::Ends(name) => {
                let Some(place) = task.open.iter().rposition(|open| *open == name) else {
                    return;
                };
                // What was begun inside and has lost its end ends here too.
                for _ in place + 1..task.open.len() {
                    give(event.time_ns, end(track, Vec::new()));
                }
                task.open.truncate(place);
                give(event.time_ns, end(track, annotations(event, names)));
            }
            Meaning::Waited(name) => {
                let delay_us = event.get(Field::UsecDelayed).unwrap_or(0);
                let delay_ns = delay_us.saturating_mul(1_000);
                let from = event.time_ns.saturating_sub(delay_ns).max(task.last_ns);
                let about = annotations(event, names);
                if from >= event.time_ns {
                    give(event.time_ns, instant(name, RECLAIM, track, about));
                } else {
                    give(from, begin(name, track, about));
                    give(event.time_ns, end(track, Vec::new()));
                }
            }
            Meaning::Pauses => {
                let about = annotations(event, names);
                // Less than no pause is the rest of one that was too long before.
                match event.signed(Field::Pause).unwrap_or(0) {
                    pause @ 1..=PAUSE_MAX_MS => {
                        let pause_ns = pause.unsigned_abs() * 1_000_000;
                        task.paused_until = Some(event.time_ns.saturating_add(pause_ns));
                        give(event.time_ns, begin(BALANCE, track, about));
                    }
                    _ => give(event.time_ns, instant(BALANCE, WRITEBACK, track, about)),
                }
            }
            Meaning::Nothing => {}
        }
        task.last_ns = event.time_ns.max(task.last_ns);
    }

    /// Ends the pauses that no event came after.
    pub(super) fn finish(
        &mut self,
        track: impl Fn(i32) -> u64,
        mut give: impl FnMut(u64, TrackEvent),
    ) {
        for (pid, task) in &mut self.tasks {
            task.wake(u64::MAX, track(*pid), &mut give);
        }
    }
}

fn begin(name: &str, track: u64, debug_annotations: Vec<DebugAnnotation>) -> TrackEvent {
    let category = if name == BALANCE { WRITEBACK } else { RECLAIM };
    TrackEvent {
        r#type: Some(TYPE_SLICE_BEGIN),
        ..instant(name, category, track, debug_annotations)
    }
}

fn instant(
    name: &str,
    category: &str,
    track: u64,
    debug_annotations: Vec<DebugAnnotation>,
) -> TrackEvent {
    TrackEvent {
        debug_annotations,
        r#type: Some(TYPE_INSTANT),
        track_uuid: Some(track),
        categories: vec![category.to_owned()],
        name: Some(name.to_owned()),
        counter_value: None,
    }
}

fn end(track: u64, debug_annotations: Vec<DebugAnnotation>) -> TrackEvent {
    TrackEvent {
        debug_annotations,
        r#type: Some(TYPE_SLICE_END),
        track_uuid: Some(track),
        ..TrackEvent::default()
    }
}

/// The event's fields as arguments of its slice.
fn annotations(event: &Event, names: &Names) -> Vec<DebugAnnotation> {
    let fields = event.fields().map(|(field, value)| DebugAnnotation {
        name: Some(field.name().to_owned()),
        value: Some(match field.spec().value {
            ValueType::Signed => AnnotationValue::IntValue(value.cast_signed()),
            ValueType::Unsigned | ValueType::Pointer => AnnotationValue::UintValue(value),
            kind => AnnotationValue::StringValue(text(kind, value, names)),
        }),
    });
    fields.collect()
}
