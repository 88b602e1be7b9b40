//! Runs that fall into two groups: a load that has two ways to go, of which one median would be neither.
//!
//! 1. The values of the runs are put in order and parted at the widest gap between two neighbours.
//! 2. They are two groups if each has two runs at least, and if the gap is wider than a tenth of the larger group's
//!    median, [`GAP_FACTOR`] times as wide as the wider of the groups, and [`GAP_MIN`].

use crate::stats;
use serde::Serialize;

/// Runs of which a group consists at least: one run that is far off is an outlier.
const RUNS_MIN: usize = 2;
/// How much wider than the groups the gap is at least.
const GAP_FACTOR: f64 = 3.0;
/// The gap as a part of the median of the group with the greater values, at least.
const GAP_PART: f64 = 0.1;
/// The gap in what is counted, at least: a batch of reclaim (`SWAP_CLUSTER_MAX`).
const GAP_MIN: f64 = 32.0;

/// Runs that are near to each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// How many.
    pub runs: usize,
    /// Median of their values.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Group {
    fn of(sorted: &[f64]) -> Option<Group> {
        Some(Group {
            runs: sorted.len(),
            median: stats::median(sorted)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }

    fn width(&self) -> f64 {
        self.max - self.min
    }
}

/// The two groups into which values fall, the lower one first; none if they are one.
pub fn two_groups(values: &[f64]) -> Option<[Group; 2]> {
    let sorted = stats::sorted(values);
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let widest = (1..sorted.len()).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = sorted.split_at(widest);
    if low.len().min(high.len()) < RUNS_MIN {
        return None;
    }
    let (low, high) = (Group::of(low)?, Group::of(high)?);
    let least = [
        GAP_FACTOR * low.width().max(high.width()),
        GAP_PART * high.median,
        GAP_MIN,
    ];
    let apart = least.iter().all(|&least| gap(widest) > least);
    apart.then_some([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ways_to_go_are_two_groups() {
        let [low, high] = two_groups(&[910.0, 500.0, 900.0, 505.0, 905.0]).expect("two groups");
        assert_eq!((low.runs, low.min, low.max), (2, 500.0, 505.0));
        assert_eq!((high.runs, high.median), (3, 905.0));
    }

    #[test]
    fn spread_outliers_and_small_counts_are_none() {
        // Spread evenly; one far off; apart by less than a tenth; by less than a batch; groups as wide as the gap.
        for values in [
            &[100.0, 200.0, 300.0, 400.0, 500.0][..],
            &[500.0, 501.0, 502.0, 503.0, 900.0],
            &[1000.0, 1000.0, 1090.0, 1090.0],
            &[0.0, 0.0, 20.0, 20.0],
            &[100.0, 400.0, 900.0, 1200.0],
            &[7.0],
            &[],
        ] {
            assert_eq!(two_groups(values), None, "{values:?}");
        }
    }
}
