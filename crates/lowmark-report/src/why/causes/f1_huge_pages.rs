//! F1: Faults for huge pages wait until free memory is put together to blocks.

use crate::table::counted;
use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "F1",
    name: "blocks for huge pages",
    summary: "Faults for huge pages wait until free memory is put together to blocks.",
    because: "faults for huge pages waited until blocks were put together",
    role: Role::Demand,
    limits: &[Limit::Fragmentation],
    needs: "`mm_compaction_begin`, `_end`, `mm_compaction_try_to_compact_pages`, direct reclaim of order 9",
    formula: "compaction and direct reclaim of costly orders by tasks that ask for a huge page",
    arithmetic,
    knobs: &[
        Knob::new(
            "transparent_hugepage/defrag",
            "defer or never",
            "a fault takes small pages at once, and khugepaged or kcompactd put blocks together later",
        ),
        Knob::new(
            "vm.compaction_proactiveness",
            "up",
            "kcompactd makes blocks ahead (5.9)",
        ),
        Knob::never("vm.swappiness", "memory is not short, it lies in pieces"),
        Knob::never(
            "vm.watermark_scale_factor",
            "memory is not short, it lies in pieces",
        ),
    ],
    kernels: "compaction events since 3.14, with orders since 4.1",
    confidence: Confidence::Exact,
    confused: "F2, F5: blocks that other allocations ask for",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let waits = evidence.sums.waits[Limit::Fragmentation as usize];
    let mut says = format!("{} for blocks", counted(waits, "wait"));
    let (got, failed) = (
        evidence.count("thp_fault_alloc"),
        evidence.count("thp_fault_fallback"),
    );
    if got > 0 || failed > 0 {
        says += &format!("; {got} faults got a huge page, {failed} did not");
    }
    Finding::traced(evidence.huge_ns(), says).if_any()
}
