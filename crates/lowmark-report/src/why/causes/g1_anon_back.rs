//! G1: Anonymous memory that tasks use does not fit: pages are swapped out and come back.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::split::Demand;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G1",
    name: "anonymous memory in use is larger than its room",
    summary: "Anonymous memory that tasks use does not fit: pages are swapped out and come back.",
    because: "anonymous memory that is in use does not fit: it was swapped out and came back",
    role: Role::Demand,
    limits: &[Limit::Global, Limit::Memcg, Limit::Node, Limit::Fragmentation],
    needs: "allocation flags of the waits; `workingset_refault_anon` (5.9), else `pswpin`; pressure of memory and of I/O for waits that no event tells",
    formula: "traced: waits for pages of users, in the share of anonymous pages that came back; estimated: the residual of pressure in the share of swap, and of pages that were not in the working set, which pressure of memory leaves out, the share of swap in pressure of I/O",
    arithmetic,
    knobs: &[
        Knob::new("RAM or memory.max", "up", "by the size of what comes back: removes it"),
        Knob::new("zram or zswap", "on", "pages come back from memory, not from a disk"),
        Knob::new("vm.page-cluster", "up", "fewer reads for the same pages").unless( |e| e.count("swap_ra_hit") * 2 < e.count("swap_ra").max(1), "pages are not touched in the order in which they lie in swap, so that what is read ahead is not used"),
        Knob::new("vm.watermark_scale_factor", "up", "moves reclaim from tasks to kswapd; no page less is swapped").unless(|e| !e.tasks_reclaim(), "no task reclaims for the machine"),
        Knob::new("vm.swappiness", "down", "takes pages of files instead of anonymous ones").unless(|e| Evidence::percent(e.count("pgsteal_file"), e.inflow().stolen) < 10, "less than a tenth of what is reclaimed are pages of files"),
        Knob::never("vm.dirty_*", "dirty pages are not what takes the room"),
    ],
    kernels: "all; refaults of anonymous pages since 5.9",
    confidence: Confidence::Counted,
    confused: "G2: pages go out and hardly any comes back",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let mut says = evidence.by_counters(|inflow| {
        format!(
            "{} pages came back of {} reclaimed",
            inflow.anon_back, inflow.stolen
        )
    });
    if let Some(majors) = evidence.counter("pgmajfault") {
        says += &format!("; {majors} major faults");
    }
    let (read_ahead, hit) = (evidence.count("swap_ra"), evidence.count("swap_ra_hit"));
    if read_ahead > 0 {
        let used = Evidence::percent(hit, read_ahead);
        says += &format!("; {read_ahead} pages were read ahead, {used} % of them used");
    }
    let beside_ms = evidence.residual.map_or(0, |r| r.beside_ns) / 1_000_000;
    if beside_ms > 0 {
        says += &format!(
            "; {beside_ms} ms of waits for reads from swap are in pressure of I/O, not in that of memory"
        );
    }
    Finding {
        traced_ns: evidence.demand_ns(Demand::AnonBack),
        estimated_ns: evidence.residual.map_or(0, |r| r.anon_ns()),
        evidence: says,
    }
    .if_any()
}
