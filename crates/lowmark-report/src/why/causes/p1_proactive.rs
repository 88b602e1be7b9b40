//! P1: DAMON, khugepaged or memory.reclaim take pages on their own account; no task waits for that.

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "P1",
    name: "reclaim before anybody waits",
    summary: "DAMON, khugepaged or memory.reclaim take pages on their own account; no task waits for that.",
    because: "memory was reclaimed before anybody asked",
    role: Role::Note,
    limits: &[],
    needs: "events of their threads; `pgsteal_proactive`, `pgsteal_khugepaged`; reclaim from memory cgroups of which `memory.events` says that none was at a limit",
    formula: "a count of pages",
    arithmetic,
    knobs: &[Knob::new(
        "quotas of DAMOS, memory.reclaim",
        "down",
        "fewer pages that come back",
    )],
    kernels: "5.16 and later",
    confidence: Confidence::Exact,
    confused: "G1: pages that were taken in this way come back too",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let traced = evidence.sums.proactive_pages.reclaimed;
    let in_counters = evidence
        .count("pgsteal_proactive")
        .saturating_add(evidence.count("pgsteal_khugepaged"));
    let of_groups = match evidence.sums.asked_ns {
        0 => 0,
        _ => evidence.count_all("cgroup/", "memory.stat.pgsteal_direct"),
    };
    let pages = traced.max(in_counters).max(of_groups);
    let asked_ms = evidence.sums.asked_ns / 1_000_000;
    let says = match evidence.sums.asked_ns {
        0 => counted(pages, "page"),
        _ => format!(
            "{}; who asked for it was busy with it for {asked_ms} ms",
            counted(pages, "page")
        ),
    };
    (pages > 0 || evidence.sums.asked_ns > 0).then(|| Finding::traced(0, says))
}
