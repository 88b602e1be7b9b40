//! Looks in order of time.

use crate::look::{Fields, Look};
use crate::rates::{Rate, Rates, Totals};
use lowmark_record::{CounterLog, Gauges, Recording, vmstat};
use std::collections::VecDeque;

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
        // Those of tasks are not looked at.
        let others = others.filter(|log| log.file != vmstat::FILE && log.task.is_none());
        let mut cursors: Vec<Cursor> = others.map(log).collect();
        cursors.push(state);
        let step = step(counters.samples.len());
        let times: Vec<u64> = counters
            .samples
            .iter()
            .map(|(time_ns, _)| *time_ns)
            .collect();
        cursors.push(Cursor::new(vmstat::FILE.to_owned(), counters));
        let looks = times
            .into_iter()
            .step_by(step)
            .map(|time_ns| look(&mut cursors, time_ns));
        let phases = recording.phases.iter();
        Timeline {
            looks: looks.collect(),
            phases: phases
                .map(|phase| (phase.time_ns, phase.label.clone()))
                .collect(),
        }
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
    fn the_oldest_looks_are_forgotten() {
        let mut timeline = Timeline::default();
        for time in 0..LOOKS_MAX as u64 + 3 {
            timeline.push(look(time, time));
        }
        assert_eq!(timeline.span(), Some((3, LOOKS_MAX as u64 + 2)));
    }
}
