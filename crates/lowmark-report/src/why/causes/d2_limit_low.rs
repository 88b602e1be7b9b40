//! D2: Dirty pages are at their limit while the device could write more: writers pause although it has little to do.

use super::d1_device_slow::{describe, limit_too_low};
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "D2",
    name: "the dirty limit is too low for the device",
    summary: "Dirty pages are at their limit while the device could write more: writers pause although it has little to do.",
    because: "the dirty limit is too low to keep the device busy",
    role: Role::Demand,
    limits: &[Limit::Dirty],
    needs: "as D1",
    formula: "sum of pauses but for D3, if the device is busy in less than 70 % of the time in which they pause; without disks, if it writes what the limit allows in less than 200 ms (MAX_PAUSE)",
    arithmetic,
    knobs: &[
        Knob::new(
            "vm.dirty_bytes",
            "up",
            "the device always has something to write",
        ),
        Knob::new(
            "vm.dirty_background_bytes",
            "well below the limit",
            "the flusher begins before writers have to pause",
        ),
        Knob::never("vm.swappiness", "memory is not short"),
        Knob::never("vm.watermark_scale_factor", "memory is not short"),
    ],
    kernels: "all with events of dirty throttling",
    confidence: Confidence::Counted,
    confused: "D1: the device is busy",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let time = evidence
        .limit_ns(Limit::Dirty)
        .saturating_sub(evidence.dirty.share_ns);
    let says = describe(evidence);
    Finding::traced(time, says)
        .if_any()
        .filter(|_| limit_too_low(evidence))
}
