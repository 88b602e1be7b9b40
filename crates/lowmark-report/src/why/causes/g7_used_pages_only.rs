//! G7: Reclaim goes through pages that were all used lately, and frees hardly any.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G7",
    name: "reclaim finds only pages in use",
    summary: "Reclaim goes through pages that were all used lately, and frees hardly any.",
    because: "reclaim found only pages that had been used",
    role: Role::Note,
    limits: &[Limit::Global, Limit::Memcg, Limit::Node],
    needs: "`mm_vmscan_lru_shrink_inactive` with the fields of 4.11",
    formula: "time of waits in which four fifths of the pages scanned were kept as used and less than a twentieth was reclaimed",
    arithmetic,
    knobs: &[
        Knob::new("RAM or memory.max", "up", "less is scanned"),
        Knob::new(
            "lru_gen",
            "on",
            "generations tell pages in use apart sooner (6.1)",
        ),
    ],
    kernels: "4.11 and later",
    confidence: Confidence::Exact,
    confused: "G8: pages are kept as they are under writeback",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let used = evidence.sums.used_ns;
    let percent = Evidence::percent(used, evidence.room_ns());
    let says = format!("{percent} % of the time of waits");
    Finding::traced(used, says)
        .if_any()
        .filter(|_| percent >= 10)
}
