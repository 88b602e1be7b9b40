//! X2: The kernel killed a task for want of memory, or behaves as only a known fault of its version does.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "X2",
    name: "out of memory, or a known fault",
    summary: "The kernel killed a task for want of memory, or behaves as only a known fault of its version does.",
    because: "the kernel ran out of memory",
    role: Role::Answer,
    limits: &[],
    needs: "`mark_victim`, `oom_kill`; the kernel's version and the patterns of known faults",
    formula: "a count of kills; the known faults are listed below",
    arithmetic,
    knobs: &[Knob::new("RAM, swap or memory.max", "up", "there is room")],
    kernels: "all",
    confidence: Confidence::Exact,
    confused: "-",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let kills = evidence.sums.oom_kills.max(evidence.count("oom_kill"));
    let ended = evidence.surroundings.out_of_memory;
    let says = match kills {
        0 => "the run ended out of memory".to_owned(),
        kills => format!("{kills} tasks were killed"),
    };
    (kills > 0 || ended).then(|| Finding::traced(0, says))
}
