//! G6: Bursts pass the distance from the high to the min watermark before kswapd is awake.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G6",
    name: "watermarks are too near to each other",
    summary: "Bursts pass the distance from the high to the min watermark before kswapd is awake.",
    because: "bursts passed the watermarks before kswapd was awake",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`mm_vmscan_kswapd_wake`, `_sleep` and direct reclaim; `kswapd_low_wmark_hit_quickly`, `pageoutrun`",
    formula: "time in direct reclaim while no kswapd is awake, if kswapd is awake in less than half of it",
    arithmetic,
    knobs: &[
        Knob::new(
            "vm.watermark_scale_factor",
            "up",
            "a larger distance for bursts",
        ),
        Knob::new(
            "vm.min_free_kbytes",
            "up",
            "the same on kernels before 4.6, and larger reserves",
        ),
    ],
    kernels: "all; watermark_scale_factor since 4.6 (795ae7a0de6b)",
    confidence: Confidence::Counted,
    confused: "G5: kswapd is awake and too slow",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let (direct, awake) = (evidence.sums.direct_ns, evidence.sums.direct_awake_ns);
    let percent = Evidence::percent(awake, direct);
    let mut says = format!("kswapd was awake in {percent} % of the time in direct reclaim");
    let (quickly, runs) = (
        evidence.count("kswapd_low_wmark_hit_quickly"),
        evidence.count("pageoutrun"),
    );
    if runs > 0 {
        says += &format!("; after {quickly} of {runs} runs free memory fell below low at once");
    }
    let near = evidence.sums.kswapd_seen && percent < 50;
    Finding::traced(direct.saturating_sub(awake), says)
        .if_any()
        .filter(|_| near)
}
