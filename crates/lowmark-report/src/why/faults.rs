//! Faults of certain kernels that a capture shows by their pattern. One is named only if the version is known and the
//! pattern is there; a pattern that nothing else makes is told without the version too, as a possibility.

use super::evidence::Evidence;
use super::wait::Limit;
use lowmark_record::Release;
use serde::Serialize;

/// A fault of some kernels.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fault {
    /// Name, for programs.
    pub name: &'static str,
    /// First release that has it, as it is told.
    pub since: &'static str,
    /// First release without it.
    pub until: &'static str,
    /// What happens.
    pub summary: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Whether the text of the version must hold this, as releases do not tell it.
    #[serde(skip)]
    text: &'static str,
    /// Whether nothing else makes the pattern.
    #[serde(skip)]
    unmistakable: bool,
    #[serde(skip)]
    pattern: fn(&Evidence) -> bool,
}

/// The table.
pub static KNOWN_FAULTS: &[Fault] = &[
    Fault {
        name: "throttle-noprogress",
        since: "5.16-rc1",
        until: "5.16",
        summary: "Reclaimers that make no progress sleep over and over instead of running out of memory (fixed by 1b4e3f26f9f7).",
        remedy: "a released kernel 5.16 or later",
        text: "5.16.0-rc",
        unmistakable: false,
        pattern: |e| e.sums.inside.noprogress_ns.saturating_mul(2) > e.room_ns() && e.room_ns() > 0,
    },
    Fault {
        name: "kswapd-never-gives-up",
        since: "5.15",
        until: "7.0",
        summary: "Without swap, reclaim above memory.high resets kswapd's count of failures, so that kswapd never stops.",
        remedy: "a little swap, or memory.max in place of memory.high",
        text: "",
        unmistakable: false,
        pattern: |e| {
            e.count_all("cgroup/", "memory.events.high") > 0
                && e.surroundings.meminfo.get("SwapTotal") == Some(&0)
                && spins(e)
        },
    },
    Fault {
        name: "kswapd-spins",
        since: "3.10",
        until: "4.20",
        summary: "kswapd takes a whole CPU and reclaims nothing (kernel bug 65201; also where much of memory is shared memory that cannot be swapped).",
        remedy: "a newer kernel, swap, or less in tmpfs",
        text: "",
        unmistakable: false,
        pattern: spins,
    },
    Fault {
        name: "memory-high-livelock",
        since: "5.4",
        until: "5.9",
        summary: "Tasks above memory.high sleep far too long and make no progress.",
        remedy: "a kernel 5.9 or later, or a larger memory.high",
        text: "",
        unmistakable: false,
        pattern: |e| {
            let high = e.count_all("cgroup/", "memory.events.high");
            high > 0 && e.limit_ns(Limit::Memcg).saturating_mul(2) > e.traced_ns()
        },
    },
    Fault {
        name: "dirty-below-zero",
        since: "5.15",
        until: "5.16",
        summary: "The number of dirty pages of a memory cgroup falls below zero and is taken for a huge one: its writers pause as long as they can.",
        remedy: "a newer build of the kernel",
        text: "",
        unmistakable: true,
        pattern: |e| e.dirty.below_zero,
    },
];

/// Whether kswapd was awake nearly all the time and reclaimed hardly anything while no task waited for it.
fn spins(evidence: &Evidence) -> bool {
    let pages = evidence.sums.kswapd_pages;
    evidence.span_ns >= 1_000_000_000
        && Evidence::percent(evidence.kswapd_awake_ns, evidence.span_ns) >= 95
        && pages.reclaimed.saturating_mul(100) < pages.scanned.max(1)
}

impl Fault {
    /// Whether a kernel of this version has it; none if the version is not known.
    fn concerns(&self, evidence: &Evidence) -> Option<bool> {
        let text = evidence.surroundings.kernel.as_deref()?;
        let release = evidence.surroundings.release()?;
        if !self.text.is_empty() {
            return Some(text.contains(self.text));
        }
        let read = |text: &str| text.parse::<Release>().ok();
        let (since, until) = (read(self.since)?, read(self.until)?);
        Some((since..until).contains(&release))
    }

    /// Faults that a capture shows, and whether the kernel is known to have each.
    pub(super) fn shown(evidence: &Evidence) -> Vec<(&'static Fault, bool)> {
        let all = KNOWN_FAULTS
            .iter()
            .filter(|fault| (fault.pattern)(evidence));
        let shown = all.filter_map(|fault| match fault.concerns(evidence) {
            Some(concerns) => concerns.then_some((fault, true)),
            None => fault.unmistakable.then_some((fault, false)),
        });
        shown.collect()
    }
}
