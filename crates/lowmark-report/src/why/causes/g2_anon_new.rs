//! G2: Tasks touch more new anonymous memory than there is room for.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::split::Demand;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G2",
    name: "new anonymous memory",
    summary: "Tasks touch more new anonymous memory than there is room for.",
    because: "new anonymous memory was touched for which there was no room",
    role: Role::Demand,
    limits: &[
        Limit::Global,
        Limit::Memcg,
        Limit::Node,
        Limit::Fragmentation,
    ],
    needs: "allocation flags of the waits; counters for those that could be for either",
    formula: "waits for zeroed pages and for large folios of anonymous memory, and of the waits for other pages of users the share of anonymous pages that are new (reclaimed and not back)",
    arithmetic,
    knobs: &[
        Knob::new("RAM or memory.max", "up", "by what is new: removes it"),
        Knob::new(
            "memory.high of the task that grows",
            "down",
            "that task waits instead of the others",
        ),
        Knob::new(
            "vm.watermark_scale_factor",
            "up",
            "kswapd begins earlier, and a burst finds more free pages",
        )
        .unless(|e| !e.tasks_reclaim(), "no task reclaims for the machine"),
        Knob::never("vm.dirty_*", "dirty pages are not what takes the room"),
    ],
    kernels: "all",
    confidence: Confidence::Counted,
    confused: "G1: what is pushed out comes back; memory that is mapped, touched and given back in a loop counts here as well",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let says = evidence.by_counters(|inflow| {
        format!(
            "{} pages had to go for it that did not come back",
            inflow.anon_new
        )
    });
    Finding::traced(evidence.demand_ns(Demand::AnonNew), says).if_any()
}
