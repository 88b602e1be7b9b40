//! G6: Bursts pass the distance from the high to the min watermark before kswapd has freed anything for them.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G6",
    name: "watermarks are too near to each other",
    summary: "Bursts pass the distance from the high to the min watermark before kswapd has freed anything for them.",
    because: "bursts passed the watermarks before kswapd could free anything",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`mm_vmscan_kswapd_wake`, `_sleep` and direct reclaim; pages reclaimed, and `managed` of `/proc/zoneinfo` for bursts with kswapd awake",
    formula: "time in direct reclaim while no kswapd is awake, and while one is awake but sleeps again before a tenth of memory was reclaimed: so much the watermarks can be apart (watermark_scale_factor 1000); if that is more than half of all direct reclaim",
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
    confused: "G5: what is wanted is more than watermarks can keep free",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let (direct, awake) = (evidence.sums.direct_ns, evidence.sums.direct_awake_ns);
    let (asleep, burst) = (direct.saturating_sub(awake), evidence.burst_ns);
    let [asleep_percent, burst_percent] = [asleep, burst].map(|ns| Evidence::percent(ns, direct));
    let mut says = format!(
        "kswapd was asleep in {asleep_percent} % of the time in direct reclaim, and awake for a burst in {burst_percent} %"
    );
    if let Some([min, _, high]) = evidence.surroundings.watermarks {
        let distance = high.saturating_sub(min);
        says += &format!("; from the high to the min watermarks it is {distance} pages");
    }
    let (quickly, runs) = (
        evidence.count("kswapd_low_wmark_hit_quickly"),
        evidence.count("pageoutrun"),
    );
    if runs > 0 {
        says += &format!("; after {quickly} of {runs} runs free memory fell below low at once");
    }
    let near_ns = asleep.saturating_add(burst);
    let near = evidence.sums.kswapd_seen && near_ns.saturating_mul(2) > direct;
    Finding::traced(near_ns, says).if_any().filter(|_| near)
}
