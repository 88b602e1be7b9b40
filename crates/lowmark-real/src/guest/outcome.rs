//! From the lines of a guest to a recording.

use super::{Accel, GuestError, generations};
use crate::cgroup_counters::counters_and_state;
use crate::protocol::{CGROUPS, GuestLine, Said};
use crate::ran::Ran;
use crate::runner::procfs::parse_vmstat;
use lowmark_record::vmstat::is_counter;
use lowmark_record::{CounterLog, Gauges, Recording, RunInfo, System, TaskTimes};
use lowmark_spec::Scenario;
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::BTreeMap;

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
    pub(super) ran: Ran,
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
                Said::Runner(line) => heard.ran.hear(line),
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

    /// Processes that the OOM killer ended.
    pub(super) fn oom_kills(&self) -> u64 {
        let vmstat = |snapshot: &Option<Snapshot>| {
            let text = snapshot.as_ref().and_then(|files| files.get("proc/vmstat"));
            text.and_then(|text| parse_vmstat(text).get("oom_kill").copied())
        };
        let before = vmstat(&self.before).unwrap_or(0);
        vmstat(&self.after).unwrap_or(0).saturating_sub(before)
    }

    /// The recording, but for the events.
    pub(super) fn recording(&self, scenario: &Scenario) -> Result<Recording, GuestError> {
        let incomplete = |what: &str| GuestError::NoResult {
            problem: format!("its result holds no {what}"),
            console: "  (it finished)".into(),
        };
        let start = self.ran.start_ns.ok_or_else(|| incomplete("start"))?;
        let end = self.ran.end_ns.ok_or_else(|| incomplete("end"))?;
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
        let mut tasks = self.ran.tasks(workload, start);
        tasks.extend(self.kernel_threads.iter().cloned());
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
            outcome: self.ran.outcome(workload, &counters, &state),
            elapsed_ns: end.saturating_sub(start),
            counters,
            state,
            tasks,
            phases: self.ran.phases(workload, start),
            series: self.ran.series(workload, start),
            gauges: self.looks(|name| !is_counter(name)),
            history: Vec::new(),
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
        let groups = scenario.workload.cgroups.iter();
        counters_and_state(after, root, groups.map(|group| group.path.as_str()))
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
        let start = self.ran.start_ns.unwrap_or(0);
        let names = self.vmstat.names.iter().enumerate();
        let kept: Vec<(usize, &String)> = names.filter(|(_, name)| wanted(name)).collect();
        let inside = |time: &u64| *time >= start && self.ran.end_ns.is_none_or(|end| *time <= end);
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
        let start = self.ran.start_ns.unwrap_or(0);
        let logs = self.history.iter().map(|log| log.since(start));
        logs.filter(|log| !log.is_empty()).collect()
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
    fn a_line_that_is_cut_off_ends_the_lines() {
        let heard = Heard::read("{\"end\":{\"time_ns\":5}}\n{\"ph");
        assert_eq!(heard.ran.end_ns, Some(5));
    }
}
