//! D3: A device or a memory cgroup is at its share of the dirty limit while all together are below theirs.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "D3",
    name: "a device or cgroup has used up its share of dirty pages",
    summary: "A device or a memory cgroup is at its share of the dirty limit while all together are below theirs.",
    because: "a device or a memory cgroup had used up its share of the dirty limit",
    role: Role::Demand,
    limits: &[Limit::Dirty],
    needs: "`balance_dirty_pages`: `bdi_dirty`, `bdi_setpoint`, `dirty`, `setpoint`, `limit`, `cgroup_ino`",
    formula: "sum of the pauses in which bdi_dirty is above bdi_setpoint and dirty below setpoint, or limit below half of the global threshold, or writeback is that of a group and the thresholds behind setpoint are below half of limit",
    arithmetic,
    knobs: &[
        Knob::new("bdi/max_ratio", "up", "a larger share for the device"),
        Knob::new("memory.max", "up", "a larger share for the group"),
        Knob::never("vm.dirty_bytes", "all together are below it"),
    ],
    kernels: "3.2 and later; of groups 4.2",
    confidence: Confidence::Exact,
    confused: "D1",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let time = evidence.dirty.share_ns;
    let percent = Evidence::percent(time, evidence.limit_ns(Limit::Dirty));
    Finding::traced(time, format!("{percent} % of the pauses")).if_any()
}
