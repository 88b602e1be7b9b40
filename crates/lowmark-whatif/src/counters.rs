//! The figures that reconstructions are fitted to, and that answers are given for.

use lowmark_record::Recording;
use std::collections::BTreeMap;

/// What a figure is, which decides how far an answer may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Pages of which the load itself decides how many there are.
    Volume,
    /// Who reclaims, and how often tasks wait for it: kernels themselves repeat this within a factor of two at best.
    Stall,
    /// It is fitted to, and no answer is given for it.
    Shape,
}

/// A figure.
#[derive(Debug)]
pub struct Counter {
    /// Name in `/proc/vmstat`, or of the sum of several.
    pub name: &'static str,
    /// Counters that it is the sum of; those of zones are added (`allocstall_dma32`).
    parts: &'static [&'static str],
    /// Counters whose sum it is where that is more: reclaim for memory cgroups is in these alone (5.8).
    or_parts: &'static [&'static str],
    /// Its weight in the loss of a reconstruction, hundredths.
    pub(crate) weight: u64,
    /// What is too few to mean anything, pages or times.
    pub floor: u64,
    /// What it is.
    pub sort: Sort,
}

/// To figures of a load's shape one page in this many of the load is added before they are compared, so that a difference of
/// fewer pages costs next to nothing.
const SHAPE: u64 = 20;

impl Counter {
    /// What is added to a figure before its logarithm is taken, so that few pages more or less of few cost nothing.
    pub(crate) fn ground(&self, pages: u64) -> u64 {
        match self.sort {
            Sort::Shape => self.floor.max(pages / SHAPE),
            Sort::Volume | Sort::Stall => self.floor,
        }
    }
}

const fn counter(
    name: &'static str,
    parts: &'static [&'static str],
    weight: u64,
    floor: u64,
    sort: Sort,
) -> Counter {
    Counter {
        name,
        parts,
        or_parts: &[],
        weight,
        floor,
        sort,
    }
}

impl Counter {
    const fn or(self, or_parts: &'static [&'static str]) -> Counter {
        Counter { or_parts, ..self }
    }

    /// What it has come to; none if the kernel does not have it.
    fn of(&self, counters: &BTreeMap<String, u64>) -> Option<u64> {
        let sum = |parts: &[&str]| {
            let sums = parts.iter().filter_map(|part| of_zones(counters, part));
            sums.reduce(u64::saturating_add)
        };
        sum(self.parts).max(sum(self.or_parts))
    }
}

/// All of them, in the order in which they are printed.
#[rustfmt::skip]
pub const COUNTERS: [Counter; 12] = [
    counter("pswpin", &["pswpin"], 100, 100, Sort::Volume),
    counter("pswpout", &["pswpout"], 100, 100, Sort::Volume),
    counter("pgmajfault", &["pgmajfault"], 100, 100, Sort::Volume),
    counter("workingset_refault_anon", &["workingset_refault_anon"], 60, 100, Sort::Volume),
    counter("pgsteal", &["pgsteal_kswapd", "pgsteal_direct"], 100, 100, Sort::Volume).or(&["pgsteal_anon", "pgsteal_file"]),
    counter("pgscan", &["pgscan_kswapd", "pgscan_direct"], 60, 400, Sort::Volume).or(&["pgscan_anon", "pgscan_file"]),
    counter("pgscan_kswapd", &["pgscan_kswapd"], 0, 400, Sort::Stall),
    counter("pgscan_direct", &["pgscan_direct"], 15, 400, Sort::Stall),
    counter("pgsteal_direct", &["pgsteal_direct"], 0, 100, Sort::Stall),
    counter("allocstall", &["allocstall"], 15, 30, Sort::Stall),
    counter("pgactivate", &["pgactivate"], 30, 400, Sort::Shape),
    counter("swap_ra_hit", &["swap_ra_hit"], 30, 100, Sort::Shape),
];

/// Ends of the names of counters that are kept by zone.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// The sum of a counter over zones, or the counter itself; none if there is no such counter.
pub(crate) fn of_zones(counters: &BTreeMap<String, u64>, name: &str) -> Option<u64> {
    let of_zone = |counter: &str| {
        let rest = counter.strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.is_empty()
                || rest
                    .strip_prefix('_')
                    .is_some_and(|zone| ZONES.contains(&zone))
        })
    };
    let mut found = None;
    for (_, value) in counters.iter().filter(|(counter, _)| of_zone(counter)) {
        found = Some(value.saturating_add(found.unwrap_or(0)));
    }
    found
}

/// What the counters of [`COUNTERS`] have come to, each in its place; none of one that the kernel does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures(pub [Option<u64>; COUNTERS.len()]);

impl Figures {
    /// Those of a recording.
    pub fn of(recording: &Recording) -> Figures {
        Figures(
            COUNTERS
                .each_ref()
                .map(|counter| counter.of(&recording.counters)),
        )
    }

    /// The one of a name; 0 if the kernel does not have it.
    pub(crate) fn named(&self, name: &str) -> u64 {
        let at = COUNTERS.iter().position(|counter| counter.name == name);
        at.and_then(|at| self.0[at]).unwrap_or(0)
    }

    /// The middle of each over several runs, the lower one of two.
    pub(crate) fn median(runs: &[Figures]) -> Figures {
        Figures(std::array::from_fn(|at| {
            let mut values: Vec<u64> = runs.iter().filter_map(|run| run.0[at]).collect();
            values.sort_unstable();
            let middle = values.len().checked_sub(1)? / 2;
            values.get(middle).copied()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_zones_are_added_and_no_others() {
        let counters: BTreeMap<String, u64> = [
            ("pgscan_direct", 7),
            ("pgscan_direct_throttle", 100),
            ("allocstall_dma", 1),
            ("allocstall_dma32", 2),
            ("allocstall_movable", 4),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!(of_zones(&counters, "pgscan_direct"), Some(7));
        assert_eq!(of_zones(&counters, "allocstall"), Some(7));
        assert_eq!(of_zones(&counters, "pswpin"), None);
    }

    #[test]
    fn the_middle_of_runs_is_one_of_them() {
        let run = |value| Figures([Some(value); COUNTERS.len()]);
        assert_eq!(Figures::median(&[run(9), run(1), run(5)]), run(5));
        assert_eq!(Figures::median(&[run(9), run(1)]), run(1));
        assert_eq!(Figures::median(&[]), Figures([None; COUNTERS.len()]));
    }
}
