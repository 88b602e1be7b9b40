//! F5: An allocation asks for large blocks in place of which nothing smaller will do, such as pages of hugetlbfs.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "F5",
    name: "large blocks that nothing smaller can stand for",
    summary: "An allocation asks for large blocks in place of which nothing smaller will do, such as pages of hugetlbfs.",
    because: "large blocks were asked for that nothing smaller can stand for",
    role: Role::Demand,
    limits: &[Limit::Node, Limit::Fragmentation],
    needs: "as F1, with allocation flags",
    formula: "compaction and direct reclaim of costly orders, without GFP_TRANSHUGE and without `__GFP_NORETRY`",
    arithmetic,
    knobs: &[
        Knob::new(
            "hugepages= on the kernel's command line",
            "set",
            "the pool is filled while memory is in one piece",
        ),
        Knob::new(
            "the caller",
            "fix",
            "smaller blocks or kvmalloc, or blocks that are kept instead of given back",
        ),
        Knob::new(
            "vm.compaction_proactiveness",
            "up",
            "kcompactd makes blocks ahead (5.9)",
        ),
        Knob::never(
            "transparent_hugepage/defrag",
            "these are no faults for huge pages",
        ),
        Knob::never("vm.swappiness", "memory is wanted in one piece"),
    ],
    kernels: "direct reclaim: all; compaction events since 3.14, with orders since 4.1",
    confidence: Confidence::Exact,
    confused: "F2: with __GFP_NORETRY, small pages are taken instead",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let mut says = "waits for blocks of orders above 3".to_owned();
    let (got, failed) = (
        evidence.count("htlb_buddy_alloc_success"),
        evidence.count("htlb_buddy_alloc_fail"),
    );
    if got > 0 || failed > 0 {
        says += &format!("; hugetlbfs got {got} pages and did not get {failed}");
    }
    Finding::traced(evidence.block_ns(), says).if_any()
}
