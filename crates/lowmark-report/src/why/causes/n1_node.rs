//! N1: A task reclaims from its own node rather than take memory of another (zone_reclaim_mode).

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "N1",
    name: "one node is short while others are not",
    summary: "A task reclaims from its own node rather than take memory of another (zone_reclaim_mode).",
    because: "a node was short while tasks were to keep to it",
    role: Role::Limit,
    limits: &[Limit::Node],
    needs: "`mm_vmscan_node_reclaim_begin` and `_end`",
    formula: "time in reclaim of one's own node",
    arithmetic,
    knobs: &[
        Knob::new(
            "vm.zone_reclaim_mode",
            "0",
            "memory of other nodes is taken first",
        ),
        Knob::new("numactl --interleave", "on", "nodes fill evenly"),
    ],
    kernels: "events since 5.2",
    confidence: Confidence::Exact,
    confused: "G5",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let waits = evidence.sums.waits[Limit::Node as usize];
    Finding::traced(evidence.limit_ns(Limit::Node), counted(waits, "wait")).if_any()
}
