//! Counters over time: what changed between any two moments.

use lowmark_record::Gauges;
use std::collections::BTreeMap;

/// Values of counters and levels as they stood at some times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSeries {
    columns: BTreeMap<String, usize>,
    /// Times, ns by the clock of the events, ascending, and the values then.
    samples: Vec<(u64, Vec<u64>)>,
}

impl CounterSeries {
    /// The series of a recording. Samples that go back in time are left out.
    pub fn of(gauges: &Gauges) -> CounterSeries {
        let columns = gauges.names.iter().cloned();
        let mut samples: Vec<(u64, Vec<u64>)> = Vec::new();
        for (time_ns, values) in &gauges.samples {
            if samples.last().is_none_or(|(last, _)| last < time_ns) {
                samples.push((*time_ns, values.clone()));
            }
        }
        CounterSeries {
            columns: columns.enumerate().map(|(at, name)| (name, at)).collect(),
            samples,
        }
    }

    /// Whether nothing can be told of it.
    pub fn is_empty(&self) -> bool {
        self.samples.len() < 2
    }

    /// Whether it has a counter.
    pub fn has(&self, name: &str) -> bool {
        !self.is_empty() && self.columns.contains_key(name)
    }

    /// The value at a time, between two samples in proportion; before the first and after the last it stays.
    pub fn at(&self, name: &str, time_ns: u64) -> Option<u64> {
        let column = *self.columns.get(name)?;
        let value = |sample: usize| self.samples.get(sample)?.1.get(column).copied();
        let after = self.samples.partition_point(|(time, _)| *time <= time_ns);
        if after == 0 {
            return value(0);
        }
        let (Some(before), Some(next)) = (value(after - 1), value(after)) else {
            return value(after - 1);
        };
        let (from, to) = (self.samples[after - 1].0, self.samples[after].0);
        let (passed, all) = (u128::from(time_ns - from), u128::from(to - from));
        let moved = u128::from(before.abs_diff(next)) * passed / all.max(1);
        let moved = u64::try_from(moved).unwrap_or(u64::MAX);
        Some(if next >= before {
            before.saturating_add(moved)
        } else {
            before.saturating_sub(moved)
        })
    }

    /// By how much a counter grew from one time to another; 0 if it fell.
    pub fn change(&self, name: &str, from_ns: u64, to_ns: u64) -> Option<u64> {
        Some(
            self.at(name, to_ns)?
                .saturating_sub(self.at(name, from_ns)?),
        )
    }

    /// Names of what it has.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_samples_in_proportion() {
        let series = CounterSeries::of(&Gauges {
            names: vec!["a".into(), "b".into()],
            samples: vec![
                (100, vec![10, 5]),
                (200, vec![30, 1]),
                (150, vec![99, 99]),
                (300, vec![30, 0]),
            ],
        });
        assert_eq!(series.at("a", 0), Some(10));
        assert_eq!(series.at("a", 150), Some(20));
        assert_eq!(series.at("b", 150), Some(3));
        assert_eq!(series.at("a", 999), Some(30));
        assert_eq!(series.change("a", 150, 250), Some(10));
        assert_eq!(series.change("b", 0, 999), Some(0), "it fell");
        assert_eq!(series.at("c", 0), None);
    }
}
