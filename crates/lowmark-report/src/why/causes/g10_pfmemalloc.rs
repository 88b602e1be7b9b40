//! G10: Free memory is so low that tasks wait for kswapd before they may reclaim (throttle_direct_reclaim).

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G10",
    name: "tasks wait before they may reclaim",
    summary: "Free memory is so low that tasks wait for kswapd before they may reclaim (throttle_direct_reclaim).",
    because: "tasks waited for kswapd as the reserves were used up",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`pgscan_direct_throttle`; there is no event",
    formula: "a count only: `pgscan_direct_throttle`",
    arithmetic,
    knobs: &[Knob::new("vm.min_free_kbytes", "up", "larger reserves")],
    kernels: "3.6 and later (5515061d22f0)",
    confidence: Confidence::Hint,
    confused: "G5",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let times = evidence.count("pgscan_direct_throttle");
    let says = format!("{}; how long, no event says", counted(times, "time"));
    (times > 0).then(|| Finding::traced(0, says))
}
