//! G4: Files are read or written that were not there before, and push other pages out.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::split::Demand;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G4",
    name: "a stream of files used once",
    summary: "Files are read or written that were not there before, and push other pages out.",
    because: "files were read or written that were not there before",
    role: Role::Demand,
    limits: &[
        Limit::Global,
        Limit::Memcg,
        Limit::Node,
        Limit::Fragmentation,
    ],
    needs: "allocation flags of the waits; `pgpgin`, `nr_dirtied` and refaults",
    formula: "waits for pages of files to be written, and of those to be read the share that does not come back",
    arithmetic,
    knobs: &[
        Knob::new(
            "posix_fadvise(DONTNEED) or O_DIRECT in the reader",
            "on",
            "its pages do not stay",
        ),
        Knob::new(
            "memory.high of the reader",
            "down",
            "it reclaims from itself",
        ),
        Knob::new(
            "vm.watermark_scale_factor",
            "up",
            "kswapd keeps more free ahead of the stream",
        )
        .unless(|e| !e.tasks_reclaim(), "no task reclaims for the machine"),
        Knob::never(
            "vm.swappiness",
            "pages that are used once are the first to go at any value",
        ),
    ],
    kernels: "all; refaults since 3.15",
    confidence: Confidence::Counted,
    confused: "G3: the same pages are read again",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let mut says = evidence.by_counters(|inflow| {
        let new = inflow.file_in.saturating_sub(inflow.file_back);
        format!("{new} pages read for the first time")
    });
    let written = evidence.count("nr_dirtied");
    if written > 0 {
        says += &format!(", {written} written");
    }
    if evidence
        .inflow
        .is_some_and(|inflow| !inflow.counts_file_refaults)
    {
        says += "; this kernel does not count those that come back (3.15)";
    }
    Finding::traced(evidence.demand_ns(Demand::FileNew), says).if_any()
}
