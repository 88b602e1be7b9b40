//! F2: An allocation that would take small pages as well waits for a block of a costly order; the time is on the account of what was asked for.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "F2",
    name: "blocks of other high orders",
    summary: "An allocation that would take small pages as well waits for a block of a costly order; the time is on the account of what was asked for.",
    because: "blocks of high orders were wanted",
    role: Role::Note,
    limits: &[Limit::Global, Limit::Fragmentation],
    needs: "as F1, with allocation flags",
    formula: "compaction and direct reclaim of costly orders for neither F1 nor F5: with `__GFP_NORETRY`, or with flags that the trace does not tell",
    arithmetic,
    knobs: &[
        Knob::new(
            "read_ahead_kb",
            "down",
            "smaller folios for files that are read",
        )
        .unless(|e| e.inflow().file_in == 0, "no file is read"),
        Knob::never(
            "transparent_hugepage/defrag",
            "these are no faults for huge pages",
        ),
    ],
    kernels: "3.14 and later",
    confidence: Confidence::Exact,
    confused: "F1: allocation flags of GFP_TRANSHUGE; F5: without __GFP_NORETRY",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let blocks = evidence
        .limit_ns(Limit::Fragmentation)
        .saturating_sub(evidence.huge_ns())
        .saturating_sub(evidence.block_ns());
    let time = blocks.saturating_add(evidence.sums.high_orders_ns);
    let says = "its time counts as that of the pages asked for".to_owned();
    Finding::traced(time, says).if_any()
}
