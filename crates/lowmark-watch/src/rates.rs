//! What is counted, and how fast.

use lowmark_report::vmstat::Deltas;

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// Pages that kswapd scanned.
    KswapdScan,
    /// Pages that tasks scanned.
    DirectScan,
    /// Pages that kswapd reclaimed.
    KswapdSteal,
    /// Pages that tasks reclaimed.
    DirectSteal,
    /// Pages that were scanned for a limit of a memory cgroup, from 5.8 on.
    GroupScan,
    /// Pages that were reclaimed for one.
    GroupSteal,
    /// Times that a task had to reclaim.
    DirectStall,
    /// Times that a task had to compact memory.
    CompactStall,
    /// Pages swapped out.
    SwapOut,
    /// Pages swapped in.
    SwapIn,
    /// Pages read again after they had been reclaimed.
    Refault,
    /// Faults that read from a device.
    MajorFault,
    /// Huge pages that a fault got.
    HugePage,
    /// Huge pages that a fault did not get.
    HugeFallback,
    /// Pages that became dirty.
    Dirtied,
    /// Pages written to a device.
    Written,
    /// Time in which some task waited for memory, µs.
    SomeWait,
    /// Time in which all tasks waited for memory, µs.
    FullWait,
}

/// How many there are.
const COUNT: usize = Rate::ALL.len();

impl Rate {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Rate; 18] = [
        Rate::KswapdScan,
        Rate::DirectScan,
        Rate::KswapdSteal,
        Rate::DirectSteal,
        Rate::GroupScan,
        Rate::GroupSteal,
        Rate::DirectStall,
        Rate::CompactStall,
        Rate::SwapOut,
        Rate::SwapIn,
        Rate::Refault,
        Rate::MajorFault,
        Rate::HugePage,
        Rate::HugeFallback,
        Rate::Dirtied,
        Rate::Written,
        Rate::SomeWait,
        Rate::FullWait,
    ];

    /// What is counted, in words.
    pub fn label(self) -> &'static str {
        match self {
            Rate::KswapdScan => "pages scanned by kswapd",
            Rate::DirectScan => "pages scanned by tasks",
            Rate::KswapdSteal => "pages reclaimed by kswapd",
            Rate::DirectSteal => "pages reclaimed by tasks",
            Rate::GroupScan => "pages scanned for cgroups",
            Rate::GroupSteal => "pages reclaimed for cgroups",
            Rate::DirectStall => "tasks that had to reclaim",
            Rate::CompactStall => "tasks that had to compact",
            Rate::SwapOut => "pages swapped out",
            Rate::SwapIn => "pages swapped in",
            Rate::Refault => "pages read again",
            Rate::MajorFault => "major faults",
            Rate::HugePage => "huge pages at faults",
            Rate::HugeFallback => "huge pages not to be had",
            Rate::Dirtied => "pages dirtied",
            Rate::Written => "pages written",
            Rate::SomeWait => "some tasks wait, % of time",
            Rate::FullWait => "all tasks wait, % of time",
        }
    }

    /// A short name, unique: a column of lines, a key of JSON.
    pub fn name(self) -> &'static str {
        match self {
            Rate::KswapdScan => "kscan",
            Rate::DirectScan => "dscan",
            Rate::KswapdSteal => "ksteal",
            Rate::DirectSteal => "dsteal",
            Rate::GroupScan => "gscan",
            Rate::GroupSteal => "gsteal",
            Rate::DirectStall => "stalls",
            Rate::CompactStall => "cstalls",
            Rate::SwapOut => "swpout",
            Rate::SwapIn => "swpin",
            Rate::Refault => "refault",
            Rate::MajorFault => "majflt",
            Rate::HugePage => "huge",
            Rate::HugeFallback => "nohuge",
            Rate::Dirtied => "dirtied",
            Rate::Written => "written",
            Rate::SomeWait => "some%",
            Rate::FullWait => "full%",
        }
    }

    /// Whether it counts time, µs, and is shown as a share of it.
    pub fn is_time(self) -> bool {
        matches!(self, Rate::SomeWait | Rate::FullWait)
    }

    /// What `/proc/vmstat` says of it; none of what it does not count, or not on this kernel.
    pub(crate) fn total(self, counters: Deltas<'_>) -> Option<u64> {
        match self {
            Rate::KswapdScan => counters.kswapd_scan(),
            Rate::DirectScan => counters.direct_scan(),
            Rate::KswapdSteal => counters.kswapd_steal(),
            Rate::DirectSteal => counters.direct_steal(),
            Rate::GroupScan => for_groups(counters, "pgscan"),
            Rate::GroupSteal => for_groups(counters, "pgsteal"),
            Rate::DirectStall => counters.zones("allocstall"),
            Rate::CompactStall => counters.get("compact_stall"),
            Rate::SwapOut => counters.get("pswpout"),
            Rate::SwapIn => counters.get("pswpin"),
            // Of both kinds from 5.9 on.
            Rate::Refault => counters.get("workingset_refault").or_else(|| {
                let anon = counters.get("workingset_refault_anon");
                let file = counters.get("workingset_refault_file");
                anon.into_iter().chain(file).reduce(u64::saturating_add)
            }),
            Rate::MajorFault => counters.get("pgmajfault"),
            Rate::HugePage => counters.get("thp_fault_alloc"),
            Rate::HugeFallback => counters.get("thp_fault_fallback"),
            Rate::Dirtied => counters.get("nr_dirtied"),
            Rate::Written => counters.get("nr_written"),
            Rate::SomeWait | Rate::FullWait => None,
        }
    }
}

/// What was scanned or reclaimed for limits of cgroups: what is counted by kind of page (497a6c1b0990, 5.8) takes it in, and
/// what is counted by who reclaims leaves it out.
fn for_groups(counters: Deltas<'_>, event: &str) -> Option<u64> {
    let sum = |ends: &[&str]| {
        let parts = ends
            .iter()
            .filter_map(|end| counters.get(&format!("{event}_{end}")));
        parts.reduce(u64::saturating_add)
    };
    let all = sum(&["anon", "file"])?;
    let others = sum(&["kswapd", "direct", "khugepaged", "proactive"]).unwrap_or(0);
    Some(all.saturating_sub(others))
}

/// What was counted until some time; none of what the kernel does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals([Option<u64>; COUNT]);

impl Totals {
    /// What was counted of it.
    pub fn get(&self, rate: Rate) -> Option<u64> {
        self.0[rate as usize]
    }

    pub(crate) fn set(&mut self, rate: Rate, total: u64) {
        self.0[rate as usize] = Some(total);
    }
}

/// How fast things were counted over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// How long the stretch is, ns.
    pub length_ns: u64,
    /// In a second; of time, in percent of the stretch.
    values: [Option<f64>; COUNT],
}

impl Rates {
    /// Those of a stretch at whose ends there were these totals. A counter that fell counts as one that did not move.
    pub fn between(before: &Totals, after: &Totals, length_ns: u64) -> Rates {
        let mut values = [None; COUNT];
        for rate in Rate::ALL {
            let (Some(before), Some(after)) = (before.get(rate), after.get(rate)) else {
                continue;
            };
            let grown = after.saturating_sub(before) as f64;
            let value = match length_ns {
                0 => 0.0,
                // From µs of ns to percent.
                _ if rate.is_time() => (grown * 1e5 / length_ns as f64).min(100.0),
                _ => grown * 1e9 / length_ns as f64,
            };
            values[rate as usize] = Some(value);
        }
        Rates { length_ns, values }
    }

    /// In a second; of time, in percent of the stretch. None of what the kernel does not count.
    pub fn get(&self, rate: Rate) -> Option<f64> {
        self.values[rate as usize]
    }

    /// The same, 0 of what the kernel does not count.
    pub fn of(&self, rate: Rate) -> f64 {
        self.get(rate).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rate_has_a_place_and_a_name_of_its_own() {
        for (at, rate) in Rate::ALL.into_iter().enumerate() {
            assert_eq!(rate as usize, at);
            let same = |other: &Rate| other.name() == rate.name() || other.label() == rate.label();
            assert_eq!(Rate::ALL.iter().filter(|other| same(other)).count(), 1);
        }
    }

    #[test]
    fn rates_are_by_the_second_and_waits_in_percent() {
        let mut before = Totals::default();
        let mut after = Totals::default();
        for (rate, [was, is]) in [
            (Rate::SwapIn, [10, 30]),
            (Rate::SwapOut, [9, 2]),
            (Rate::SomeWait, [1_000, 251_000]),
        ] {
            before.set(rate, was);
            after.set(rate, is);
        }
        after.set(Rate::Refault, 7);
        let rates = Rates::between(&before, &after, 500_000_000);
        let found = [Rate::SwapIn, Rate::SwapOut, Rate::SomeWait, Rate::Refault];
        let found = found.map(|rate| rates.get(rate));
        assert_eq!(found, [Some(40.0), Some(0.0), Some(50.0), None]);
        assert_eq!(Rates::between(&before, &after, 0).of(Rate::SwapIn), 0.0);
    }
}
