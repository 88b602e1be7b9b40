//! M2: A memory cgroup is above memory.high: its tasks reclaim, and sleep on their way back to user space.

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "M2",
    name: "a memory cgroup is above memory.high",
    summary: "A memory cgroup is above memory.high: its tasks reclaim, and sleep on their way back to user space.",
    because: "a memory cgroup was above memory.high",
    role: Role::Limit,
    limits: &[Limit::Memcg],
    needs: "`memory.events`; the sleeps are in no event",
    formula: "time in reclaim for memory cgroups, where memory.events counts high and not max",
    arithmetic,
    knobs: &[
        Knob::new("memory.high", "up", "removes it"),
        Knob::new("kernel", "5.9 or later", "the delay is bounded there"),
        Knob::never(
            "vm.watermark_scale_factor",
            "watermarks are of zones, not of groups",
        ),
    ],
    kernels: "4.5 and later; sleeps since 5.4",
    confidence: Confidence::Counted,
    confused: "M1",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let (max, high) = (
        evidence.count_all("cgroup/", ".max"),
        evidence.count_all("cgroup/", ".high"),
    );
    let says = format!(
        "{} above memory.high; sleeps on the way to user space are not traced",
        counted(high, "time")
    );
    let time = evidence.limit_ns(Limit::Memcg);
    (high > 0 && max == 0).then(|| Finding::traced(time, says))
}
