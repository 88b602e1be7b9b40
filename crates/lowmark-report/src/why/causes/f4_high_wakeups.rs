//! F4: Callers that ask for large blocks wake kswapd, which then frees memory that is not short.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "F4",
    name: "kswapd is woken for high orders",
    summary: "Callers that ask for large blocks wake kswapd, which then frees memory that is not short.",
    because: "kswapd was woken for large blocks",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`mm_vmscan_wakeup_kswapd` with order and flags (4.17)",
    formula: "a count: wakeups of an order above 3",
    arithmetic,
    knobs: &[Knob::new(
        "the caller",
        "fix",
        "large blocks with __GFP_NORETRY and without waking kswapd, or kvmalloc",
    )],
    kernels: "all; flags since 4.17",
    confidence: Confidence::Exact,
    confused: "-",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let times = evidence.high_wakeups;
    let says = format!("{times} wakeups for orders above 3");
    (times > 0).then(|| Finding::traced(0, says))
}
