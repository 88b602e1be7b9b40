//! S1: Reclaim spends its time in shrinkers of the kernel's own caches.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "S1",
    name: "shrinkers are slow",
    summary: "Reclaim spends its time in shrinkers of the kernel's own caches.",
    because: "reclaim spent its time in shrinkers",
    role: Role::Inside,
    limits: &[Limit::Global, Limit::Memcg],
    needs: "`mm_shrink_slab_start` and `_end`",
    formula: "time in shrinkers inside of waits",
    arithmetic,
    knobs: &[Knob::new(
        "vm.vfs_cache_pressure",
        "up or down",
        "more or less of inodes and dentries is reclaimed",
    )
    .unless(
        |e| Evidence::percent(e.sums.inside.slab_ns, e.traced_ns()) < 30,
        "shrinkers take less than a third of the time",
    )],
    kernels: "3.1 and later",
    confidence: Confidence::Exact,
    confused: "G7",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let time = evidence.sums.inside.slab_ns;
    let percent = Evidence::percent(time, evidence.traced_ns());
    Finding::traced(time, format!("{percent} % of what was traced")).if_any()
}
