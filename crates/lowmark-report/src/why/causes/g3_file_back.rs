//! G3: Files that tasks read again do not fit: pages are dropped and read again.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::split::Demand;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G3",
    name: "pages of files in use are more than their room",
    summary: "Files that tasks read again do not fit: pages are dropped and read again.",
    because: "pages of files that are in use do not fit: they were dropped and read again",
    role: Role::Demand,
    limits: &[
        Limit::Global,
        Limit::Memcg,
        Limit::Node,
        Limit::Fragmentation,
    ],
    needs: "allocation flags of the waits; `workingset_refault_file` (3.15); pressure for waits that no event tells",
    formula: "traced: waits for pages of files, in the share of refaults among pages read; estimated: the residual of pressure in the share of data disks",
    arithmetic,
    knobs: &[
        Knob::new(
            "RAM or memory.max",
            "up",
            "by the size of what is read again: removes it",
        ),
        Knob::new(
            "memory.low of the readers",
            "up",
            "their pages are the last to go",
        ),
        Knob::new(
            "vm.swappiness",
            "up",
            "takes anonymous memory that nobody uses instead",
        )
        .unless(
            |e| e.surroundings.meminfo.get("SwapTotal") == Some(&0),
            "there is no swap",
        ),
        Knob::never(
            "vm.vfs_cache_pressure",
            "it acts on inodes and dentries, not on pages",
        ),
        Knob::never("vm.dirty_*", "dirty pages are not what takes the room"),
    ],
    kernels: "refaults since 3.15; with the multi-generational LRU they are counted too low",
    confidence: Confidence::Counted,
    confused: "G4 in the first pass over a file",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let says = evidence.by_counters(|inflow| {
        let (back, all) = (inflow.file_back, inflow.file_in);
        format!("{back} of {all} pages read had been there before")
    });
    Finding {
        traced_ns: evidence.demand_ns(Demand::FileBack),
        estimated_ns: evidence.residual.map_or(0, |r| r.file_ns),
        evidence: says,
    }
    .if_any()
}
