//! P1: DAMON, khugepaged or memory.reclaim take pages on their own account; no task waits for that.

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
    needs: "events of their threads; `pgsteal_proactive`, `pgsteal_khugepaged`",
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
    let counted = evidence
        .count("pgsteal_proactive")
        .saturating_add(evidence.count("pgsteal_khugepaged"));
    let pages = traced.max(counted);
    (pages > 0).then(|| Finding::traced(0, format!("{pages} pages")))
}
