//! G8: Reclaimers are throttled until pages that they want are written.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G8",
    name: "reclaim waits for writeback",
    summary: "Reclaimers are throttled until pages that they want are written.",
    because: "reclaim waited until pages were written",
    role: Role::Inside,
    limits: &[Limit::Global, Limit::Memcg],
    needs: "`mm_vmscan_throttled` (5.16), `writeback_congestion_wait`, `writeback_wait_iff_congested` (before)",
    formula: "time for which reclaimers were throttled for writeback or congestion, inside of waits",
    arithmetic,
    knobs: &[
        Knob::new("a faster swap device or disk", "", "shorter waits"),
        Knob::new(
            "vm.dirty_background_bytes",
            "down",
            "fewer dirty pages at the end of the lists",
        )
        .unless(
            |e| e.count("nr_dirtied") == 0,
            "no page of a file became dirty",
        ),
    ],
    kernels: "throttled since 5.16, congestion before 5.18",
    confidence: Confidence::Exact,
    confused: "D1: a writer pauses at the dirty limits, not in reclaim",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let inside = evidence.sums.inside;
    let time = inside.writeback_ns.saturating_add(inside.congestion_ns);
    let percent = Evidence::percent(time, evidence.traced_ns());
    Finding::traced(time, format!("{percent} % of what was traced")).if_any()
}
