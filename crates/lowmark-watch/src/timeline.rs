//! Looks in order of time.

use crate::look::{Fields, Look, Task};
use crate::rates::{Rate, Rates, Totals};
use lowmark_record::{CounterLog, Gauges, Recording, vmstat};
use std::collections::VecDeque;
use std::sync::Arc;

/// Looks that are kept at most: an hour of four a second.
pub const LOOKS_MAX: usize = 1 << 14;

/// Looks in order of time, and marks between them.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    looks: VecDeque<Look>,
    /// When a phase of the workload began, ns, and its name.
    phases: Vec<(u64, String)>,
}

impl Timeline {
    /// The looks of a recording; of a long one every second look, or fewer. A recording without looks gives none.
    pub fn of(recording: &Recording) -> Timeline {
        let step = |looks: usize| looks.div_ceil(LOOKS_MAX).max(1);
        let log = |log: &CounterLog| {
            let rows = log.gauges(step(log.len()), |_| true);
            Cursor::new(log.file.clone(), rows)
        };
        let counters = match recording.system.as_deref() {
            Some(system) if !system.vmstat.is_empty() => system.vmstat.clone(),
            _ => recording.log_of(vmstat::FILE).map_or_else(
                || recording.gauges.clone(),
                |log| log.gauges(1, vmstat::is_counter),
            ),
        };
        let state = Cursor::new(vmstat::FILE.to_owned(), recording.gauges.clone());
        let system = recording.system.iter().flat_map(|system| &system.history);
        let others = recording.history.iter().chain(system);
        let (of_tasks, others): (Vec<&CounterLog>, Vec<&CounterLog>) = others
            .filter(|log| log.file != vmstat::FILE)
            .partition(|log| log.task.is_some());
        let mut tasks: Vec<OfTask> = of_tasks
            .into_iter()
            .filter_map(|of_task| {
                let task = recording.tasks.get(of_task.task? as usize)?;
                Some(OfTask {
                    pid: task.pid,
                    name: task.name.as_str().into(),
                    end_ns: of_task.last_ns(),
                    cursor: log(of_task),
                })
            })
            .collect();
        let mut cursors: Vec<Cursor> = others.into_iter().map(log).collect();
        cursors.push(state);
        let step = step(counters.samples.len());
        let times: Vec<u64> = counters
            .samples
            .iter()
            .map(|(time_ns, _)| *time_ns)
            .collect();
        cursors.push(Cursor::new(vmstat::FILE.to_owned(), counters));
        let phases = recording.phases.iter();
        let phases = phases.map(|phase| (phase.time_ns, phase.label.clone()));
        let mut timeline = Timeline {
            looks: VecDeque::new(),
            phases: phases.collect(),
        };
        for time_ns in times.into_iter().step_by(step) {
            timeline.push(Look {
                tasks: tasks
                    .iter_mut()
                    .filter_map(|task| task.by(time_ns))
                    .collect(),
                ..look(&mut cursors, time_ns)
            });
        }
        timeline
    }

    /// Adds a look. One that is earlier than the last is left out; of too many, the oldest is forgotten.
    pub fn push(&mut self, look: Look) {
        if self
            .looks
            .back()
            .is_some_and(|last| last.time_ns >= look.time_ns)
        {
            return;
        }
        if self.looks.len() == LOOKS_MAX {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
    }

    /// The looks.
    pub fn looks(&self) -> impl ExactSizeIterator<Item = &Look> {
        self.looks.iter()
    }

    /// Times of the first look and the last, ns.
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.looks.front()?.time_ns, self.looks.back()?.time_ns))
    }

    /// The last look that was there at a time, or the first one of all.
    pub fn at(&self, time_ns: u64) -> Option<&Look> {
        let after = self.after(time_ns);
        self.looks.get(after.saturating_sub(1))
    }

    /// The phase of the workload at a time.
    pub fn phase(&self, time_ns: u64) -> Option<&str> {
        let begun = self
            .phases
            .iter()
            .rev()
            .find(|(begin, _)| *begin <= time_ns);
        begun.map(|(_, name)| name.as_str())
    }

    /// Whether anything says how fast something was.
    pub fn has(&self, rate: Rate) -> bool {
        self.looks
            .back()
            .is_some_and(|look| look.totals.get(rate).is_some())
    }

    /// How fast things were counted from one time to another. Between two looks counters move evenly.
    pub fn rates(&self, from_ns: u64, to_ns: u64) -> Rates {
        let length_ns = to_ns.saturating_sub(from_ns);
        Rates::between(&self.totals(from_ns), &self.totals(to_ns), length_ns)
    }

    /// What tasks did from one time to another that were busy then, those with most major faults first, and then those that
    /// used most CPU time.
    pub fn tasks(&self, from_ns: u64, to_ns: u64) -> Vec<Busy<'_>> {
        let Some(last) = self.at(to_ns) else {
            return Vec::new();
        };
        let begin = self.after(from_ns).saturating_sub(1);
        let known = |pid| {
            let looks = self
                .looks
                .range(begin..)
                .take_while(|look| look.time_ns < last.time_ns);
            let mut known = looks.filter_map(|look| {
                let task = look.tasks.iter().find(|task| task.pid == pid)?;
                Some((look.time_ns, task))
            });
            known.next()
        };
        let busy = |task| Busy::since(known, task, last.time_ns);
        let mut busy: Vec<Busy<'_>> = last.tasks.iter().map(busy).collect();
        busy.sort_by(|a, b| {
            let by_faults = b.major_faults.total_cmp(&a.major_faults);
            let by_cpu = || b.cpu_percent.total_cmp(&a.cpu_percent);
            by_faults
                .then_with(by_cpu)
                .then_with(|| a.task.pid.cmp(&b.task.pid))
        });
        busy
    }

    /// What was counted until a time; before the first look and after the last nothing moves.
    fn totals(&self, time_ns: u64) -> Totals {
        let after = self.after(time_ns);
        let Some(before) = self.looks.get(after.saturating_sub(1)) else {
            return Totals::default();
        };
        let Some(next) = self.looks.get(after).filter(|_| after > 0) else {
            return before.totals;
        };
        let passed = u128::from(time_ns - before.time_ns);
        let all = u128::from(next.time_ns - before.time_ns).max(1);
        let mut totals = before.totals;
        for rate in Rate::ALL {
            if let (Some(was), Some(is)) = (before.totals.get(rate), next.totals.get(rate)) {
                let moved = u128::from(is.saturating_sub(was)) * passed / all;
                totals.set(
                    rate,
                    was.saturating_add(u64::try_from(moved).unwrap_or(u64::MAX)),
                );
            }
        }
        totals
    }

    /// The number of looks at a time or before.
    fn after(&self, time_ns: u64) -> usize {
        self.looks.partition_point(|look| look.time_ns <= time_ns)
    }
}

/// A task, and what it did over a stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy<'a> {
    /// The task at the end of the stretch.
    pub task: &'a Task,
    /// Major faults in a second.
    pub major_faults: f64,
    /// CPU time, percent of one CPU.
    pub cpu_percent: f64,
}

impl<'a> Busy<'a> {
    /// A task at a time, and what it did since it was known for the first time in the stretch.
    fn since(
        known: impl Fn(u32) -> Option<(u64, &'a Task)>,
        task: &'a Task,
        time_ns: u64,
    ) -> Busy<'a> {
        let (since_ns, before) = known(task.pid).unwrap_or((time_ns, task));
        let length_ns = time_ns.saturating_sub(since_ns).max(1) as f64;
        let grown = |is: u64, was: u64| is.saturating_sub(was) as f64;
        Busy {
            task,
            major_faults: grown(task.major_faults, before.major_faults) * 1e9 / length_ns,
            cpu_percent: grown(task.cpu_ns, before.cpu_ns) * 100.0 / length_ns,
        }
    }
}

/// What files said by a time, which comes later at each call.
fn look(cursors: &mut [Cursor], time_ns: u64) -> Look {
    let mut files: Vec<(&str, Fields)> = Vec::with_capacity(cursors.len());
    for cursor in cursors {
        let Some(fields) = cursor.by(time_ns) else {
            continue;
        };
        // State and counters of a file can be apart.
        match files.iter_mut().find(|(file, _)| *file == cursor.file) {
            Some((_, known)) => known.extend(fields),
            None => files.push((&cursor.file, fields)),
        }
    }
    Look::new(time_ns, files)
}

/// A task and what its `stat` said.
#[derive(Debug)]
struct OfTask {
    pid: u32,
    name: Arc<str>,
    /// When that was looked at last.
    end_ns: u64,
    cursor: Cursor,
}

impl OfTask {
    /// The task at a time, which comes later at each call; none if it was not looked at then.
    fn by(&mut self, time_ns: u64) -> Option<Task> {
        let fields = self.cursor.by(time_ns).filter(|_| time_ns <= self.end_ns)?;
        Task::new(self.pid, self.name.clone(), &fields)
    }
}

/// A place in the rows of a file.
#[derive(Debug)]
struct Cursor {
    file: String,
    rows: Gauges,
    /// The row that holds, or the first one.
    at: usize,
}

impl Cursor {
    fn new(file: String, rows: Gauges) -> Cursor {
        Cursor { file, rows, at: 0 }
    }

    /// What the file said last by a time; none if that was nothing yet.
    fn by(&mut self, time_ns: u64) -> Option<Fields> {
        let rows = &self.rows.samples;
        while rows
            .get(self.at + 1)
            .is_some_and(|(next, _)| *next <= time_ns)
        {
            self.at += 1;
        }
        let (_, values) = rows.get(self.at).filter(|(time, _)| *time <= time_ns)?;
        let fields = self.rows.names.iter().cloned().zip(values.iter().copied());
        Some(fields.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(time_ns: u64, scanned: u64) -> Look {
        let fields = [("pgscan_kswapd".to_owned(), scanned)];
        Look::new(time_ns, [(vmstat::FILE, Fields::from(fields))])
    }

    #[test]
    fn counters_move_evenly_between_looks() {
        let mut timeline = Timeline::default();
        assert!(timeline.span().is_none() && timeline.at(5).is_none());
        assert_eq!(timeline.rates(0, 10).get(Rate::KswapdScan), None);
        for (time, scanned) in [(10, 100), (20, 200), (40, 200), (30, 7)] {
            timeline.push(look(time, scanned));
        }
        assert_eq!(timeline.span(), Some((10, 40)));
        let at = |time| timeline.at(time).map(|look| look.time_ns);
        assert_eq!([0, 10, 19, 20, 99].map(at), [10, 10, 10, 20, 40].map(Some));
        let per_ns = |from, to| timeline.rates(from, to).of(Rate::KswapdScan) / 1e9;
        assert_eq!(per_ns(10, 20), 10.0);
        assert_eq!(per_ns(12, 17), 10.0);
        assert_eq!(per_ns(15, 25), 5.0);
        assert_eq!(per_ns(0, 10), 0.0);
        assert_eq!(per_ns(20, 90), 0.0);
    }

    #[test]
    fn tasks_are_ordered_by_what_they_did() {
        let mut timeline = Timeline::default();
        for second in 0..=4 {
            let task = |pid, majflt: u64, utime: u64| {
                let fields = [
                    ("rss", 5),
                    ("majflt", majflt),
                    ("utime", utime),
                    ("stime", 0),
                    ("state", 68),
                ];
                let fields: Fields = fields.map(|(name, value)| (name.to_owned(), value)).into();
                Task::new(pid, "t", &fields).expect("a task")
            };
            let mut tasks = vec![task(1, 90, 50 * second), task(2, 10 * second, 0)];
            // One that was found when it had done much already.
            if second >= 3 {
                tasks.push(task(3, 1_000 + second, 0));
            }
            timeline.push(Look {
                tasks,
                ..look(second * 1_000_000_000, 0)
            });
        }
        let busy = timeline.tasks(2_000_000_000, 4_000_000_000);
        let told: Vec<(u32, f64, f64)> = busy
            .iter()
            .map(|busy| (busy.task.pid, busy.major_faults, busy.cpu_percent))
            .collect();
        assert_eq!(told, [(2, 10.0, 0.0), (3, 1.0, 0.0), (1, 0.0, 50.0)]);
        assert_eq!(busy[0].task.state, 'D');
        assert!(Timeline::default().tasks(0, 9).is_empty());
    }

    #[test]
    fn the_oldest_looks_are_forgotten() {
        let mut timeline = Timeline::default();
        for time in 0..LOOKS_MAX as u64 + 3 {
            timeline.push(look(time, time));
        }
        assert_eq!(timeline.span(), Some((3, LOOKS_MAX as u64 + 2)));
    }
}
