//! X1: Tasks waited for I/O that memory has no part in.

use crate::why::cause::{Cause, Confidence, Finding, Knob, Role};
use crate::why::evidence::Evidence;
use crate::why::wait::Limit;

/// The declaration.
pub(super) const CAUSE: Cause = Cause {
    id: "X1",
    name: "not memory",
    summary: "Tasks waited for I/O that memory has no part in.",
    because: "tasks waited for I/O",
    role: Role::Answer,
    limits: &[],
    needs: "pressure of memory and of I/O (4.20)",
    formula: "pressure of I/O, if that of memory is less than a fifth of it and no writer was throttled for as long",
    arithmetic,
    knobs: &[
        Knob::new("a faster device", "", "shorter waits"),
        Knob::never("RAM", "what is read was not there before"),
    ],
    kernels: "4.20 and later",
    confidence: Confidence::Counted,
    confused: "G3, G4",
};

fn arithmetic(evidence: &Evidence) -> Option<Finding> {
    let memory = evidence.surroundings.memory_pressure?.some_ns;
    let io = evidence.surroundings.io_pressure?.some_ns;
    let others = io
        .saturating_sub(evidence.limit_ns(Limit::Dirty))
        .saturating_sub(evidence.residual.map_or(0, |r| r.beside_ns))
        .saturating_sub(memory);
    let says = format!(
        "tasks waited {} ms for I/O and {} ms for memory",
        io / 1_000_000,
        memory / 1_000_000
    );
    let found = memory.saturating_mul(5) < io && others > io / 2 && io >= 10_000_000;
    found.then(|| Finding::traced(0, says))
}
