//! G5: Tasks reclaim themselves although kswapd is at work: memory is wanted faster than kswapd frees it.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G5",
    name: "kswapd cannot keep up",
    summary: "Tasks reclaim themselves although kswapd is at work: memory is wanted faster than kswapd frees it.",
    because: "kswapd could not keep up",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`mm_vmscan_kswapd_wake`, `_sleep` and direct reclaim",
    formula: "time in direct reclaim while a kswapd is awake, without bursts (G6), if that is four fifths of it or more",
    arithmetic,
    knobs: &[
        Knob::new("what needs room", "down", "see the causes of it"),
        Knob::new(
            "vm.watermark_scale_factor",
            "up",
            "helps bursts; a lasting demand uses it up at once",
        ),
    ],
    kernels: "all",
    confidence: Confidence::Exact,
    confused: "G6: kswapd sleeps while tasks reclaim, or soon sleeps again",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let (direct, awake) = (evidence.sums.direct_ns, evidence.sums.direct_awake_ns);
    let awake = awake.saturating_sub(evidence.burst_ns);
    let percent = Evidence::percent(awake, direct);
    let says = format!(
        "kswapd was awake in {percent} % of the time in direct reclaim, and that was no burst"
    );
    let outrun = evidence.sums.kswapd_seen && percent >= 80;
    Finding::traced(awake, says).if_any().filter(|_| outrun)
}
