//! From what a recorder has seen to a recording.

use super::events::Captured;
use super::perf;
use super::tasks::TaskLog;
use lowmark_record::vmstat;
use lowmark_record::{CounterLog, Outcome, Recorder, Recording, RunInfo, System, TaskTimes};
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Nanoseconds of a tick of `/proc/PID/stat`: USER_HZ is 100 on every architecture that matters here.
pub(super) const NS_PER_TICK: u64 = 10_000_000;

/// What was seen up to a time.
#[derive(Debug)]
pub struct Capture {
    pub(super) host: String,
    pub(super) release: String,
    /// What it was recorded for: a command, or nothing.
    pub(super) command: Vec<String>,
    /// From when on, by CLOCK_MONOTONIC.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// Whether something was seen before that and forgotten.
    pub(super) cut: bool,
    pub(super) before: BTreeMap<String, String>,
    pub(super) after: BTreeMap<String, String>,
    pub(super) logs: Vec<CounterLog>,
    pub(super) tasks: Vec<TaskLog>,
    /// Time since boot at the time 0 of CLOCK_MONOTONIC, ns: what a suspended system slept.
    pub(super) boot_offset_ns: u64,
    pub(super) events: Option<Captured>,
    /// What perf wrote, in their place.
    pub(super) perf: Option<File>,
    pub(super) notes: Vec<String>,
    pub(super) recorder: Recorder,
}

impl Capture {
    /// From when on it was recorded, by CLOCK_MONOTONIC: the zero of the recording's times.
    pub fn from_ns(&self) -> u64 {
        self.from_ns
    }

    /// The recording of it.
    ///
    /// # Errors
    ///
    /// Its events cannot be read, or there is no room for them in the directory for temporary files.
    pub fn recording(self) -> io::Result<Recording> {
        let mut system = System {
            release: self.release.clone(),
            executed_by: "host".into(),
            notes: self.notes.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            recorder: Some(self.recorder.clone()),
            lost_events: self.events.as_ref().map(|events| events.lost),
            ..System::default()
        };
        let logs = self.logs.iter().map(|log| log.since(self.from_ns));
        system.history = logs.filter(|log| !log.is_empty()).collect();
        if self.cut {
            forget_older(&mut system);
        }
        let (counters, mut state) = changes(&system);
        if let Some(used) = swap_used(&system) {
            state.insert("swap_used".into(), used);
        }
        let mut tasks = Vec::new();
        for task in &self.tasks {
            let mut log = task.log.since(self.from_ns);
            if !log.is_empty() {
                log.task = Some(tasks.len() as u32);
                tasks.push(self.times(task, &log));
                system.history.push(log);
            }
        }
        let mut recording = Recording {
            run: self.run(),
            outcome: Outcome::Completed,
            not_modelled: Vec::new(),
            elapsed_ns: self.until_ns.saturating_sub(self.from_ns),
            counters,
            state,
            tasks,
            phases: Vec::new(),
            series: Vec::new(),
            gauges: Default::default(),
            history: Vec::new(),
            system: None,
            events: Default::default(),
        };
        if let Some(events) = self.events {
            let notes = events.read_into(self.from_ns, &mut recording)?;
            system.notes.extend(notes);
        }
        if let Some(file) = self.perf {
            let (lost, notes) = perf::read_into(&file, self.from_ns, &mut recording)?;
            system.lost_events = Some(lost);
            system.notes.extend(notes);
        }
        recording.system = Some(Box::new(system));
        Ok(recording)
    }

    fn run(&self) -> RunInfo {
        let command = self.command.first().map(|program| {
            let name = program.rsplit('/').next().unwrap_or(program);
            (name.to_owned(), self.command.join(" "))
        });
        let (workload, params) = match command {
            Some((name, line)) => (name, vec![("command".to_owned(), line)]),
            None => ("host".to_owned(), Vec::new()),
        };
        RunInfo {
            workload,
            params,
            machine: self.host.clone(),
            kernel: self.release.clone(),
            backend: "host".into(),
            lowmark: env!("CARGO_PKG_VERSION").into(),
            seed: 0,
            left_out: Vec::new(),
        }
    }

    /// What a task used in the time of its log.
    fn times(&self, task: &TaskLog, log: &CounterLog) -> TaskTimes {
        let used = |name: &str| {
            let values = log.values(name);
            let first = values.first().map_or(0, |(_, ticks)| *ticks);
            let last = values.last().map_or(0, |(_, ticks)| *ticks);
            last.saturating_sub(first) * NS_PER_TICK
        };
        let started_ns = (task.start_ticks * NS_PER_TICK).saturating_sub(self.boot_offset_ns);
        let since = |time: u64| time.saturating_sub(self.from_ns);
        TaskTimes {
            name: task.name.clone(),
            pid: task.pid,
            kthread: task.kthread,
            user_ns: used("utime"),
            system_ns: used("stime"),
            start_ns: since(started_ns),
            end_ns: task.end_ns.map(since),
        }
    }
}

/// Replaces what was looked at before the first look that is kept: of `/proc/vmstat` by that look, of all other files
/// that have a log by nothing, since that log begins with all values.
fn forget_older(system: &mut System) {
    for log in &system.history {
        system.before.remove(&log.file);
    }
    let Some(first) = system.history_of(vmstat::FILE).and_then(|log| {
        let look = log.looks().next()?;
        let lines = look.changes.iter();
        Some(
            lines
                .map(|(at, value)| format!("{} {value}\n", log.names()[*at]))
                .collect(),
        )
    }) else {
        return;
    };
    system.before.insert(vmstat::FILE.into(), first);
}

/// Counters by how much they have grown, and what else `/proc/vmstat` holds as it is in the end.
fn changes(system: &System) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let Some(log) = system.history_of(vmstat::FILE) else {
        return Default::default();
    };
    let first = log
        .looks()
        .next()
        .map(|look| look.changes)
        .unwrap_or_default();
    let first: BTreeMap<usize, u64> = first.into_iter().collect();
    let (mut counters, mut state) = (BTreeMap::new(), BTreeMap::new());
    for (at, name) in log.names().iter().enumerate() {
        let Some(last) = log.last(name) else {
            continue;
        };
        if vmstat::is_counter(name) {
            let before = first.get(&at).copied().unwrap_or(0);
            counters.insert(name.clone(), last.saturating_sub(before));
        } else {
            state.insert(name.clone(), last);
        }
    }
    (counters, state)
}

/// Pages of swap in use at the end.
fn swap_used(system: &System) -> Option<u64> {
    let log = system.history_of("proc/meminfo")?;
    let used = log.last("SwapTotal")?.checked_sub(log.last("SwapFree")?)?;
    Some(used * 1024 / PAGE_SIZE)
}
