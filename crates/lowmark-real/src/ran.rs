//! What came of a workload, from the lines of the runner that carried it out.

use crate::runner::Line;
use lowmark_record::{Outcome, Phase, Series, TaskTimes, Unit};
use lowmark_spec::workload::{TimeUnit, Workload, series_name};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a runner said. Times are CLOCK_MONOTONIC of the system that it ran on, ns.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// The tasks started.
    pub(crate) start_ns: Option<u64>,
    /// The last task ended.
    pub(crate) end_ns: Option<u64>,
    phases: Vec<(usize, usize, u64)>,
    samples: BTreeMap<u64, Vec<(u64, u64)>>,
    batches: BTreeSet<(usize, u32)>,
    tasks: Vec<(usize, TaskTimes)>,
    /// Minor and major faults of all tasks.
    pub(crate) faults: (u64, u64),
    /// Task, line and text of the statement that failed.
    fault: Option<(usize, u32, String)>,
    /// Task, process and signal of the process that was killed.
    died: Option<(usize, u32, i32)>,
    /// Why the runner gave up.
    pub(crate) failed: Option<String>,
}

impl Ran {
    /// Hears a line.
    pub(crate) fn hear(&mut self, line: Line) {
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
                        let of_series = self.samples.entry(series).or_default();
                        of_series.push((end_ns, value_ns));
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
            Line::Failed { problem } => self.failed = Some(problem),
        }
    }

    /// What kept the workload from its end, the OOM killer apart, of which `oom_kills` says how often it was at work. `code` is the
    /// exit code of the runner, none if it was killed.
    pub(crate) fn problem(
        &self,
        workload: &Workload,
        code: Option<i32>,
        oom_kills: u64,
    ) -> Option<String> {
        if let Some(problem) = &self.failed {
            return Some(problem.clone());
        }
        if let Some((task, line, problem)) = &self.fault {
            return Some(format!(
                "task {}, line {line}: {problem}",
                name(workload, *task)
            ));
        }
        match self.died {
            Some((task, pid, signal)) if oom_kills == 0 => Some(format!(
                "task {}: process {pid} was killed by signal {signal}",
                name(workload, task)
            )),
            None if code != Some(0) => {
                Some(format!("the runner ended with {code:?} and said nothing"))
            }
            _ => None,
        }
    }

    /// The tasks by the time of their start, counted from `start`.
    pub(crate) fn tasks(&self, workload: &Workload, start: u64) -> Vec<TaskTimes> {
        let since = |time: u64| time.saturating_sub(start);
        let tasks = self.tasks.iter().map(|(task, times)| TaskTimes {
            name: name(workload, *task).to_owned(),
            start_ns: since(times.start_ns),
            end_ns: times.end_ns.map(since),
            ..times.clone()
        });
        let mut tasks: Vec<TaskTimes> = tasks.collect();
        tasks.sort_by_key(|task| (task.start_ns, task.pid));
        tasks
    }

    /// The phases in order of time, counted from `start`.
    pub(crate) fn phases(&self, workload: &Workload, start: u64) -> Vec<Phase> {
        let phases = self.phases.iter().map(|&(phase, task, time)| Phase {
            label: workload.phases.get(phase).cloned().unwrap_or_default(),
            task: name(workload, task).to_owned(),
            time_ns: time.saturating_sub(start),
        });
        let mut phases: Vec<Phase> = phases.collect();
        phases.sort_by_key(|phase| phase.time_ns);
        phases
    }

    /// The series that the workload declares, those without samples too; times are counted from `start`.
    pub(crate) fn series(&self, workload: &Workload, start: u64) -> Vec<Series> {
        let mut series = Vec::new();
        for (at, declared) in workload.series.iter().enumerate() {
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

    /// How it ended: out of memory if a process was killed while the OOM killer was at work.
    pub(crate) fn outcome(
        &self,
        workload: &Workload,
        counters: &BTreeMap<String, u64>,
        state: &BTreeMap<String, u64>,
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
                    task: name(workload, task).to_owned(),
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

/// Name of a task; nothing for one that the workload does not have.
fn name(workload: &Workload, task: usize) -> &str {
    workload.tasks.get(task).map_or("", |task| &task.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_comes_twice_counts_once() {
        let mut ran = Ran::default();
        for _ in 0..2 {
            ran.hear(Line::Samples {
                process: 0,
                batch: 0,
                samples: vec![(0, 5, 2)],
            });
        }
        assert_eq!(ran.samples[&0], [(5, 2)]);
    }

    #[test]
    fn a_process_that_was_killed_is_a_problem_unless_memory_ran_out() {
        let (workload, mut ran) = (Workload::default(), Ran::default());
        assert_eq!(ran.problem(&workload, Some(0), 0), None);
        assert!(ran.problem(&workload, None, 0).is_some());
        ran.hear(Line::Died {
            task: 0,
            pid: 7,
            signal: 9,
        });
        assert_eq!(
            ran.problem(&workload, Some(1), 0).as_deref(),
            Some("task : process 7 was killed by signal 9")
        );
        assert_eq!(ran.problem(&workload, Some(1), 1), None);
    }
}
