//! The trace of a guest, as events of its recording.
//!
//! `trace_pipe` gives the CPUs' buffers as it finds them, so that lines may be a little out of order. Events
//! from before the first task, when the counters were read, belong to the run and have the time 0.

use super::GuestError;
use lowmark_record::{Event, EventLog, Recording, Sink, Source, Tables, TaskTimes};
use lowmark_trace::input::Input;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default)]
struct Collected(Vec<Event>);

impl Sink for Collected {
    fn event(&mut self, event: &Event, _tables: &Tables) {
        self.0.push(*event);
    }
}

/// Reads a trace into a recording that has none; `start_ns` is the zero of the recording's times. What the
/// reader of the recording should know of it.
pub(super) fn read(
    file: &Path,
    start_ns: u64,
    recording: &mut Recording,
) -> Result<Vec<String>, GuestError> {
    let mut collected = Collected::default();
    // A trace without a line is no trace to a reader of traces.
    if std::fs::metadata(file)
        .map_err(|error| GuestError::io(file, error))?
        .len()
        == 0
    {
        return Ok(vec![
            "the trace is empty: nothing of what was asked for happened".into(),
        ]);
    }
    let source = Input::open(file)
        .map_err(lowmark_trace::ReadError::from)
        .and_then(|input| lowmark_trace::read(input, &mut collected))
        .map_err(|error| GuestError::NoResult {
            problem: format!("its trace cannot be read: {error}"),
            console: "  (it finished)".into(),
        })?;
    let Collected(mut events) = collected;
    events.sort_by_key(|event| event.time_ns);
    let tasks = tasks(&source, recording);
    for event in &mut events {
        event.time_ns = event.time_ns.saturating_sub(start_ns);
        event.task = tasks.get(event.task as usize).copied().unwrap_or(0);
    }
    let notes = notes(&source);
    recording.events = EventLog::of(source.tables.names, &events);
    Ok(notes)
}

/// The task of the recording for each of the trace; those that it does not have yet are added. A process
/// has another name at first: its number counts.
fn tasks(source: &Source, recording: &mut Recording) -> Vec<u32> {
    let known = recording.tasks.iter().enumerate();
    let mut by_pid: BTreeMap<u32, u32> = known.map(|(at, task)| (task.pid, at as u32)).collect();
    let actors = source.tables.tasks().iter();
    actors
        .map(|actor| {
            let pid = u32::try_from(actor.pid).unwrap_or(u32::MAX);
            *by_pid.entry(pid).or_insert_with(|| {
                recording.tasks.push(TaskTimes {
                    name: actor.name.clone(),
                    pid,
                    kthread: pid == 0,
                    user_ns: 0,
                    system_ns: 0,
                    start_ns: 0,
                    end_ns: None,
                });
                recording.tasks.len() as u32 - 1
            })
        })
        .collect()
}

/// What makes a trace uncertain.
pub(crate) fn notes(source: &Source) -> Vec<String> {
    let account = &source.account;
    let mut notes = Vec::new();
    if account.missed() > 0 {
        let kinds: Vec<String> = account
            .not_understood
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        notes.push(format!(
            "{} of {} lines of the trace were not understood: {}",
            account.missed(),
            account.lines,
            kinds.join(", ")
        ));
    }
    let doubtful = account.damaged + account.gaps;
    if doubtful > 0 {
        notes.push(format!(
            "the trace is damaged or has gaps in {doubtful} places"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_record::{Field, Kind};

    fn recording() -> Recording {
        let task = |name: &str, pid| TaskTimes {
            name: name.into(),
            pid,
            kthread: false,
            user_ns: 7,
            system_ns: 0,
            start_ns: 0,
            end_ns: None,
        };
        Recording {
            run: lowmark_record::RunInfo {
                workload: "w".into(),
                params: Vec::new(),
                machine: "m".into(),
                kernel: "v6.18".into(),
                backend: "guest".into(),
                lowmark: "0".into(),
                seed: 0,
                left_out: Vec::new(),
            },
            outcome: lowmark_record::Outcome::Completed,
            elapsed_ns: 1,
            counters: BTreeMap::new(),
            state: BTreeMap::new(),
            tasks: vec![task("main", 70), task("kswapd0", 40)],
            phases: Vec::new(),
            series: Vec::new(),
            gauges: Default::default(),
            history: Vec::new(),
            not_modelled: Vec::new(),
            system: None,
            events: EventLog::default(),
        }
    }

    #[test]
    fn lines_become_events_of_known_and_new_tasks() {
        let text = "         kswapd0-40      [000] .....     3.000002: mm_vmscan_kswapd_wake: nid=0 order=0\n\
                    \x20           init-70      [001] .....     1.000000: mm_vmscan_kswapd_wake: nid=1 order=0\n\
                    \x20         <idle>-0       [001] d.h1.     2.000001: mm_vmscan_kswapd_sleep: nid=1\n\
                    \x20           main-70      [001] .....     4.000000: no_such_event: a=1\n";
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("trace");
        std::fs::write(&file, text).expect("written");
        let mut recording = recording();
        let notes = read(&file, 2_000_000_000, &mut recording).expect("a trace");
        let events: Vec<(u64, u32, Kind)> = recording
            .events
            .iter()
            .map(|event| (event.time_ns, event.task, event.kind))
            .collect();
        assert_eq!(
            events,
            [
                (0, 0, Kind::KswapdWake),
                (1_000, 2, Kind::KswapdSleep),
                (1_000_002_000, 1, Kind::KswapdWake)
            ]
        );
        assert_eq!(
            recording
                .events
                .iter()
                .next()
                .and_then(|e| e.get(Field::Nid)),
            Some(1)
        );
        assert_eq!(recording.tasks[2].name, "<idle>");
        assert_eq!(recording.tasks[0].name, "main");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("event no_such_event (1)"), "{notes:?}");
        std::fs::write(&file, "").expect("written");
        assert!(read(&file, 0, &mut recording).expect("nothing")[0].contains("empty"));
    }
}
