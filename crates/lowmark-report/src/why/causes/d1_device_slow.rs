//! D1: Dirty pages are at their limit, and the device writes as fast as it can: writers pause to its speed.

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "D1",
    name: "writers are faster than the device",
    summary: "Dirty pages are at their limit, and the device writes as fast as it can: writers pause to its speed.",
    because: "writers dirty pages faster than the device writes them",
    role: Role::Demand,
    limits: &[Limit::Dirty],
    needs: "`balance_dirty_pages` (3.2), `balance_dirty_start` and `_wait` (before); disks, else `bdi_dirty_ratelimit`",
    formula: "sum of pauses but for D3, if the device is busy in 70 % or more of the time in which they pause; without disks, if it takes 200 ms (MAX_PAUSE) or longer to write what the limit allows",
    arithmetic,
    knobs: &[
        Knob::new("a faster device", "", "shorter pauses"),
        Knob::new(
            "vm.dirty_bytes",
            "up",
            "only delays the pauses, by as many bytes",
        ),
        Knob::never("vm.swappiness", "memory is not short"),
        Knob::never("vm.watermark_scale_factor", "memory is not short"),
    ],
    kernels: "all with events of dirty throttling",
    confidence: Confidence::Counted,
    confused: "D2: the device is idle in between",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let time = evidence
        .limit_ns(Limit::Dirty)
        .saturating_sub(evidence.dirty.share_ns);
    let says = describe(evidence);
    Finding::traced(time, says)
        .if_any()
        .filter(|_| !limit_too_low(evidence))
}

/// Longest pause of a writer, ns (`MAX_PAUSE`, HZ / 5).
const MAX_PAUSE_NS: u64 = 200_000_000;

/// How long the device takes to write what the limit allows, ns; none if either is not known.
fn limit_time_ns(evidence: &Evidence) -> Option<u64> {
    let (pages, bandwidth) = (evidence.dirty.thresh, evidence.write_bandwidth());
    let ns = u128::from(pages) * 4 * 1_000_000_000 / u128::from(bandwidth.max(1));
    (pages > 0 && bandwidth > 0).then(|| u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Whether the device could write more than the limit lets it.
pub(super) fn limit_too_low(evidence: &Evidence) -> bool {
    match evidence.busy_percent() {
        Some(percent) => percent < 70,
        None => limit_time_ns(evidence).is_some_and(|ns| ns < MAX_PAUSE_NS),
    }
}

/// Limit and device in words.
pub(super) fn describe(evidence: &Evidence) -> String {
    let waits = evidence.sums.waits[Limit::Dirty as usize];
    let mut says = counted(waits, "pause");
    if let Some(percent) = evidence.busy_percent() {
        says += &format!("; the device was busy {percent} % of the time in which writers paused");
    }
    if let Some(ns) = limit_time_ns(evidence) {
        says += &format!(
            "; the limit of {} MB is {} ms of writing at {} MB/s",
            evidence.dirty.thresh / 256,
            ns / 1_000_000,
            evidence.write_bandwidth() / 1024
        );
    }
    says
}
