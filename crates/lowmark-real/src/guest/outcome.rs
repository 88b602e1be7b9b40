//! From the lines of a guest to a recording.

use super::{Accel, GuestError, cgroups, generations};
use crate::protocol::{CGROUPS, GuestLine, Said};
use crate::runner::Line;
use crate::runner::procfs::parse_vmstat;
use lowmark_record::vmstat::is_counter;
use lowmark_record::{
    CounterLog, Gauges, Outcome, Phase, Recording, RunInfo, Series, System, TaskTimes, Unit,
};
use lowmark_spec::Scenario;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::{TimeUnit, series_name};
use std::collections::{BTreeMap, BTreeSet};

/// Files under `/proc` and `/sys` at one time, by path without the leading slash.
type Snapshot = BTreeMap<String, String>;

/// Everything that a guest said.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) release: String,
    /// PID 1 has begun, so long after the kernel.
    pub(super) boot_ns: Option<u64>,
    pub(super) notes: Vec<String>,
    before: Option<Snapshot>,
    after: Option<Snapshot>,
    /// All of `/proc/vmstat` over time, by the guest's clock.
    vmstat: Gauges,
    /// Other files over time, by the guest's clock.
    history: Vec<CounterLog>,
    kernel_threads: Vec<TaskTimes>,
    pub(super) trace_bytes: u64,
    pub(super) lost_events: u64,
    pub(super) problem: Option<String>,
    pub(super) finished: Option<Option<i32>>,
    pub(super) start_ns: Option<u64>,
    end_ns: Option<u64>,
    phases: Vec<(usize, usize, u64)>,
    samples: BTreeMap<u64, Vec<(u64, u64)>>,
    batches: BTreeSet<(usize, u32)>,
    tasks: Vec<(usize, TaskTimes)>,
    /// Minor and major faults of all tasks.
    pub(super) faults: (u64, u64),
    /// Task, line and text of the statement that failed.
    pub(super) fault: Option<(usize, u32, String)>,
    /// Task, process and signal of the process that was killed.
    pub(super) died: Option<(usize, u32, i32)>,
}

/// Counters by how much they have grown, and what else vmstat holds as it is in the end.
fn counted(
    before: &BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut counters, state): (BTreeMap<_, _>, BTreeMap<_, _>) =
        after.into_iter().partition(|(name, _)| is_counter(name));
    for (name, value) in &mut counters {
        *value = value.saturating_sub(before.get(name).copied().unwrap_or(0));
    }
    (counters, state)
}

impl Heard {
    /// Reads the lines; one that is cut off, as a guest that was killed leaves it, ends them.
    pub(super) fn read(text: &str) -> Heard {
        let mut heard = Heard::default();
        for line in text.lines() {
            let Ok(said) = serde_json::from_str(line) else {
                break;
            };
            match said {
                Said::Guest(line) => heard.guest(line),
                Said::Runner(line) => heard.runner(line),
            }
        }
        heard
    }

    fn guest(&mut self, line: GuestLine) {
        match line {
            GuestLine::Boot { release, time_ns } => {
                (self.release, self.boot_ns) = (release, Some(time_ns));
            }
            GuestLine::Note { text } => self.notes.push(text),
            GuestLine::Snapshot { when, files } => match when.as_str() {
                "before" => self.before = Some(files),
                _ => self.after = Some(files),
            },
            GuestLine::VmstatNames { names } => self.vmstat.names = names,
            GuestLine::Vmstat { time_ns, values } => self.vmstat.samples.push((time_ns, values)),
            GuestLine::History { log } => self.history.push(log),
            GuestLine::KernelThread {
                name,
                pid,
                user_ns,
                system_ns,
            } => self.kernel_threads.push(TaskTimes {
                name,
                pid,
                kthread: true,
                user_ns,
                system_ns,
                start_ns: 0,
                end_ns: None,
            }),
            GuestLine::Trace { bytes, lost } => {
                (self.trace_bytes, self.lost_events) = (bytes, lost);
            }
            GuestLine::GaveUp { problem } => self.problem = Some(problem),
            GuestLine::Finished { code } => self.finished = Some(code),
        }
    }

    fn runner(&mut self, line: Line) {
        match line {
            Line::Start { time_ns } => self.start_ns = Some(time_ns),
            Line::Phase {
                phase,
                task,
                time_ns,
            } => self.phases.push((phase, task, time_ns)),
            Line::Samples {
                process,
                batch,
                samples,
            } => {
                if self.batches.insert((process, batch)) {
                    for (series, end_ns, value_ns) in samples {
                        self.samples
                            .entry(series)
                            .or_default()
                            .push((end_ns, value_ns));
                    }
                }
            }
            Line::Task {
                task,
                pid,
                user_ns,
                system_ns,
                minor_faults,
                major_faults,
                start_ns,
                end_ns,
            } => {
                self.faults.0 += minor_faults;
                self.faults.1 += major_faults;
                let times = TaskTimes {
                    name: String::new(),
                    pid,
                    kthread: false,
                    user_ns,
                    system_ns,
                    start_ns,
                    end_ns: Some(end_ns),
                };
                self.tasks.push((task, times));
            }
            Line::Fault {
                task,
                line,
                problem,
            } => {
                // The first one is the cause.
                self.fault.get_or_insert((task, line, problem));
            }
            Line::Died { task, pid, signal } => {
                self.died.get_or_insert((task, pid, signal));
            }
            // Asked for by tests only.
            Line::Touches { .. } => {}
            Line::End { time_ns } => self.end_ns = Some(time_ns),
            Line::Failed { problem } => self.problem = Some(problem),
        }
    }

    /// The recording, but for the events.
    pub(super) fn recording(&self, scenario: &Scenario) -> Result<Recording, GuestError> {
        let incomplete = |what: &str| GuestError::NoResult {
            problem: format!("its result holds no {what}"),
            console: "  (it finished)".into(),
        };
        let start = self.start_ns.ok_or_else(|| incomplete("start"))?;
        let end = self.end_ns.ok_or_else(|| incomplete("end"))?;
        let vmstat = |snapshot: &Option<Snapshot>| {
            Some(parse_vmstat(snapshot.as_ref()?.get("proc/vmstat")?))
        };
        let before = vmstat(&self.before).ok_or_else(|| incomplete("first vmstat"))?;
        let after = vmstat(&self.after).ok_or_else(|| incomplete("last vmstat"))?;
        let (mut counters, mut state) = counted(&before, after);
        let (of_groups, sizes) = self.of_cgroups(scenario);
        counters.extend(of_groups);
        counters.extend(self.of_generations().ok().flatten());
        state.extend(sizes);
        let meminfo = self
            .after
            .as_ref()
            .and_then(|after| after.get("proc/meminfo"));
        if let Some(used) = meminfo.and_then(|text| swap_used(text)) {
            state.insert("swap_used".into(), used);
        }
        let workload = &scenario.workload;
        let since = |time: u64| time.saturating_sub(start);
        let task_name = |task: usize| {
            workload
                .tasks
                .get(task)
                .map_or("", |task| &task.name)
                .to_owned()
        };
        let mut tasks: Vec<TaskTimes> = self
            .tasks
            .iter()
            .map(|(task, times)| TaskTimes {
                name: task_name(*task),
                start_ns: since(times.start_ns),
                end_ns: times.end_ns.map(since),
                ..times.clone()
            })
            .collect();
        tasks.sort_by_key(|task| (task.start_ns, task.pid));
        tasks.extend(self.kernel_threads.iter().cloned());
        let mut phases: Vec<Phase> = self
            .phases
            .iter()
            .map(|&(phase, task, time)| Phase {
                label: workload.phases.get(phase).cloned().unwrap_or_default(),
                task: task_name(task),
                time_ns: since(time),
            })
            .collect();
        phases.sort_by_key(|phase| phase.time_ns);
        Ok(Recording {
            run: RunInfo {
                workload: workload.name.clone(),
                params: scenario.params.clone(),
                machine: scenario.machine.name.clone(),
                kernel: scenario.kernel.text.clone(),
                backend: "guest".into(),
                lowmark: env!("CARGO_PKG_VERSION").into(),
                seed: scenario.seed,
                left_out: Vec::new(),
            },
            outcome: self.outcome(&counters, &state, task_name),
            elapsed_ns: since(end),
            counters,
            state,
            tasks,
            phases,
            series: self.series(scenario, start),
            gauges: self.looks(|name| !is_counter(name)),
            not_modelled: Vec::new(),
            system: None,
            events: Default::default(),
        })
    }

    /// The counter of generations of pages, where they stand in such, or why there is none.
    fn of_generations(&self) -> Result<Option<(String, u64)>, String> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => generations::counter(before, after),
            _ => Ok(None),
        }
    }

    /// Counters of the workload's memory cgroups, and what they have at the end.
    fn of_cgroups(&self, scenario: &Scenario) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
        let root = CGROUPS.trim_start_matches('/');
        let none = BTreeMap::new();
        let after = self.after.as_ref().unwrap_or(&none);
        cgroups::counters_and_state(after, root, &scenario.workload.cgroups)
    }

    /// What the kernel said of itself.
    pub(super) fn system(&self, accel: Accel) -> System {
        System {
            release: self.release.clone(),
            executed_by: accel.name().into(),
            lost_events: None,
            notes: self
                .notes
                .iter()
                .cloned()
                .chain(self.of_generations().err())
                .collect(),
            before: self.before.clone().unwrap_or_default(),
            after: self.after.clone().unwrap_or_default(),
            vmstat: self.looks(is_counter),
            history: self.history(),
            ..System::default()
        }
    }

    /// The looks at `/proc/vmstat` while the run lasted, of the fields that are `wanted`.
    fn looks(&self, wanted: impl Fn(&str) -> bool) -> Gauges {
        let start = self.start_ns.unwrap_or(0);
        let names = self.vmstat.names.iter().enumerate();
        let kept: Vec<(usize, &String)> = names.filter(|(_, name)| wanted(name)).collect();
        let inside = |time: &u64| *time >= start && self.end_ns.is_none_or(|end| *time <= end);
        let samples = self.vmstat.samples.iter().filter(|(time, _)| inside(time));
        let values = |all: &Vec<u64>| {
            kept.iter()
                .map(|(at, _)| all.get(*at).copied().unwrap_or(0))
                .collect()
        };
        Gauges {
            names: kept.iter().map(|(_, name)| (*name).clone()).collect(),
            samples: samples
                .map(|(time, all)| (time - start, values(all)))
                .collect(),
        }
    }

    /// What other files said from the start of the run on.
    fn history(&self) -> Vec<CounterLog> {
        let start = self.start_ns.unwrap_or(0);
        let logs = self.history.iter().map(|log| log.since(start));
        logs.filter(|log| !log.is_empty()).collect()
    }

    fn series(&self, scenario: &Scenario, start: u64) -> Vec<Series> {
        let mut series = Vec::new();
        for (at, declared) in scenario.workload.series.iter().enumerate() {
            let unit = match declared.unit {
                TimeUnit::Nanoseconds => Unit::Nanoseconds,
                TimeUnit::Microseconds => Unit::Microseconds,
                TimeUnit::Milliseconds => Unit::Milliseconds,
                TimeUnit::Centiseconds => Unit::Centiseconds,
                TimeUnit::Seconds => Unit::Seconds,
            };
            let mut of_this = self
                .samples
                .iter()
                .filter(|(number, _)| series_name(**number).0 == at);
            let mut push = |suffix: &str, samples: &[(u64, u64)]| {
                let times = samples
                    .iter()
                    .map(|(end, value)| (end.saturating_sub(start), *value));
                let mut samples: Vec<(u64, u64)> = times.collect();
                samples.sort_by_key(|(end, _)| *end);
                series.push(Series {
                    name: format!("{}{suffix}", declared.name),
                    unit,
                    samples,
                });
            };
            let first = of_this.next();
            match first {
                None => push("", &[]),
                Some((number, samples)) => push(series_name(*number).1, samples),
            }
            of_this.for_each(|(number, samples)| push(series_name(*number).1, samples));
        }
        series
    }

    fn outcome(
        &self,
        counters: &BTreeMap<String, u64>,
        state: &BTreeMap<String, u64>,
        task_name: impl Fn(usize) -> String,
    ) -> Outcome {
        let killed = counters.get("oom_kill").copied().unwrap_or(0);
        match self.died {
            Some((task, pid, _)) if killed > 0 => {
                let figure = |name: &str| state.get(name).copied().unwrap_or(0);
                let pages = [
                    "nr_free_pages",
                    "nr_inactive_anon",
                    "nr_active_anon",
                    "nr_inactive_file",
                ];
                let pages: Vec<String> = pages
                    .iter()
                    .map(|name| format!("{name} {} now", figure(name)))
                    .collect();
                Outcome::OutOfMemory {
                    task: task_name(task),
                    // The kernel says it on the console only.
                    order: 0,
                    verdict: format!(
                        "the OOM killer ended process {pid} ({killed} in all); {}",
                        pages.join(", ")
                    ),
                }
            }
            _ => Outcome::Completed,
        }
    }
}

/// Pages of swap in use, from `/proc/meminfo`.
fn swap_used(meminfo: &str) -> Option<u64> {
    let kilobytes = |field: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim_end_matches("kB").trim().parse().ok()
    };
    let used = kilobytes("SwapTotal:")?.checked_sub(kilobytes("SwapFree:")?)?;
    Some(used * 1024 / PAGE_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_in_use_is_counted_in_pages() {
        let text = "MemTotal: 9 kB\nSwapTotal:       1024 kB\nSwapFree:         1000 kB\n";
        assert_eq!(swap_used(text), Some(6));
        assert_eq!(swap_used(""), None);
    }

    #[test]
    fn files_over_time_begin_with_the_run() {
        let line = r#"{"history":{"log":{"file":"proc/meminfo","names":["SwapFree"],"samples":[[5,0,90],[25,0,70]]}}}"#;
        let heard = Heard::read(&format!("{line}\n{{\"start\":{{\"time_ns\":20}}}}\n"));
        let history = heard.system(Accel::Tcg).history;
        assert_eq!(history.len(), 1);
        assert_eq!(history[0].values("SwapFree"), [(5, 70)]);
    }

    #[test]
    fn a_batch_that_comes_twice_counts_once_and_a_cut_line_ends() {
        let line = r#"{"samples":{"process":0,"batch":0,"samples":[[0,5,2]]}}"#;
        let heard = Heard::read(&format!(
            "{line}\n{line}\n{{\"end\":{{\"time_ns\":5}}}}\n{{\"ph"
        ));
        assert_eq!(heard.samples[&0], [(5, 2)]);
        assert_eq!(heard.end_ns, Some(5));
    }
}
