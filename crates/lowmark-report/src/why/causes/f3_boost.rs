//! F3: After blocks of another kind were broken up, watermarks are boosted and kswapd frees more than tasks want.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "F3",
    name: "fragmentation raises watermarks",
    summary: "After blocks of another kind were broken up, watermarks are boosted and kswapd frees more than tasks want.",
    because: "watermarks were boosted",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`boost` of `/proc/zoneinfo`, `mm_page_alloc_extfrag`",
    formula: "no time of tasks: kswapd drops pages that may come back (G3)",
    arithmetic,
    knobs: &[Knob::new(
        "vm.watermark_boost_factor",
        "0",
        "kswapd stops at the high watermark",
    )],
    kernels: "5.0 and later (1c30844d2dfe)",
    confidence: Confidence::Hint,
    confused: "G6",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let boost = evidence.surroundings.boost.unwrap_or(0);
    let broken = evidence.sums.fragmenting;
    let says =
        format!("{broken} blocks of another kind were broken up; boost of up to {boost} pages");
    let found = boost > 0 || broken > 0 && evidence.sums.kswapd_pages.reclaimed > 0;
    found.then(|| Finding::traced(0, says))
}
