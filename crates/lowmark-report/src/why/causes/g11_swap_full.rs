//! G11: Anonymous memory cannot go anywhere, so that pages of files have to go although they are in use.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::split::Demand;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "G11",
    name: "swap is full, or there is none",
    summary: "Anonymous memory cannot go anywhere, so that pages of files have to go although they are in use.",
    because: "swap was full or missing",
    role: Role::Note,
    limits: &[Limit::Global],
    needs: "`SwapTotal`, `SwapFree` of `/proc/meminfo` and refaults of files",
    formula: "the time of G3, if less than a hundredth of swap is free",
    arithmetic,
    knobs: &[
        Knob::new("swap", "more", "anonymous memory that nobody uses can go"),
        Knob::new(
            "systemd-oomd or the like",
            "on",
            "ends a task before all of them crawl",
        ),
    ],
    kernels: "all",
    confidence: Confidence::Counted,
    confused: "G3: files are more than their room while swap is free",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let size = |name: &str| evidence.surroundings.meminfo.get(name).copied();
    let (total, free) = (size("SwapTotal")?, size("SwapFree")?);
    let full = free.saturating_mul(100) <= total && evidence.inflow().file_back > 0;
    let says = match total {
        0 => "there is no swap".to_owned(),
        _ => format!("{free} of {total} pages of swap are free"),
    };
    let time = evidence.demand_ns(Demand::FileBack);
    full.then(|| Finding::traced(time, says))
}
