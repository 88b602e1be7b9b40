//! M1: A memory cgroup is at memory.max: a task that charges a page has to reclaim from its own group.

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "M1",
    name: "a memory cgroup is at its limit",
    summary: "A memory cgroup is at memory.max: a task that charges a page has to reclaim from its own group.",
    because: "a memory cgroup was at its limit",
    role: Role::Limit,
    limits: &[Limit::Memcg],
    needs: "`mm_vmscan_memcg_reclaim_begin` and `_end`; `memory.events` to tell it from memory.high",
    formula: "time in reclaim for memory cgroups; that of M2 is no part of it where memory.events shows only memory.high",
    arithmetic,
    knobs: &[
        Knob::new("memory.max", "up", "removes it"),
        Knob::new(
            "memory.high",
            "below memory.max",
            "the group is slowed before it has to reclaim in every charge",
        ),
        Knob::never(
            "vm.watermark_scale_factor",
            "watermarks are of zones, not of groups",
        ),
        Knob::never("vm.min_free_kbytes", "the machine has memory"),
    ],
    kernels: "cgroup v1 and v2",
    confidence: Confidence::Exact,
    confused: "M2: allocation flags do not tell them apart, memory.events does",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let (max, high) = (
        evidence.count_all("cgroup/", ".max"),
        evidence.count_all("cgroup/", ".high"),
    );
    let says = match max {
        0 => counted(evidence.sums.waits[Limit::Memcg as usize], "wait"),
        max => format!("{} at memory.max", counted(max, "time")),
    };
    let time = evidence.limit_ns(Limit::Memcg);
    Finding::traced(time, says)
        .if_any()
        .filter(|_| max > 0 || high == 0)
}
