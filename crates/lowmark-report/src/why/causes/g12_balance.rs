//! G12: Reclaim scans one kind of pages much more than its refaults justify.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G12",
    name: "anonymous pages and pages of files are out of balance",
    summary: "Reclaim scans one kind of pages much more than its refaults justify.",
    because: "reclaim took pages of the wrong kind",
    role: Role::Note,
    limits: &[Limit::Global, Limit::Memcg],
    needs: "`pgscan_anon`, `pgscan_file` (5.8), refaults of both (5.9)",
    formula: "scanned anon / scanned file against refaults anon / refaults file, if they are more than four times apart; no time",
    arithmetic,
    knobs: &[Knob::new(
        "vm.swappiness",
        "up or down",
        "towards the kind that does not come back",
    )],
    kernels: "5.9 and later",
    confidence: Confidence::Hint,
    confused: "G1, G3",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let scanned = [
        evidence.counter("pgscan_anon")?,
        evidence.counter("pgscan_file")?,
    ];
    let back = [
        evidence.counter("workingset_refault_anon")?,
        evidence.counter("workingset_refault_file")?,
    ];
    let enough = back[0].saturating_add(back[1]) >= 1000 && scanned.iter().all(|n| *n > 0);
    let products = [0, 1].map(|at| u128::from(scanned[at]) * u128::from(back[1 - at].max(1)));
    let apart = products[0].max(products[1]) / 4 > products[0].min(products[1]);
    // Where what comes back is scanned most there is nothing to put right.
    let wrong = (scanned[0] > scanned[1]) != (back[0] > back[1]);
    let says = format!(
        "scanned {} anonymous and {} file pages, of which {} and {} came back",
        scanned[0], scanned[1], back[0], back[1]
    );
    (enough && apart && wrong).then(|| Finding::traced(0, says))
}
