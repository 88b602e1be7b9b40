//! G9: Reclaimers are throttled as too many pages are isolated already, or as nothing could be reclaimed.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G9",
    name: "too many reclaimers, or no progress",
    summary: "Reclaimers are throttled as too many pages are isolated already, or as nothing could be reclaimed.",
    because: "reclaimers stood in each other's way or found nothing",
    role: Role::Inside,
    limits: &[Limit::Global, Limit::Memcg],
    needs: "`mm_vmscan_throttled` (5.16)",
    formula: "time for which reclaimers were throttled for ISOLATED or NOPROGRESS, inside of waits",
    arithmetic,
    knobs: &[
        Knob::new(
            "tasks that allocate at the same time",
            "fewer",
            "fewer pages isolated at a time",
        ),
        Knob::new(
            "kernel",
            "5.16 or later",
            "release candidates of 5.16 waited far too long without progress (1b4e3f26f9f7)",
        ),
    ],
    kernels: "5.16 and later",
    confidence: Confidence::Exact,
    confused: "-",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let inside = evidence.sums.inside;
    let time = inside.isolated_ns.saturating_add(inside.noprogress_ns);
    let says = format!(
        "{} ms isolated, {} ms without progress",
        inside.isolated_ns / 1_000_000,
        inside.noprogress_ns / 1_000_000
    );
    Finding::traced(time, says).if_any()
}
