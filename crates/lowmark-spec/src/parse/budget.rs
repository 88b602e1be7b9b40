//! How much one file may ask for: a small text can describe very large workloads.

use super::error::{Problem, Result};
use super::source::Span;

/// Combinations of `for` values and kernels.
pub(crate) const SCENARIOS_MAX: usize = 100_000;
/// Instances of all tasks of one scenario.
pub(crate) const INSTANCES_MAX: u64 = 1_000_000;
/// Bodies inside each other.
pub(crate) const NESTING_MAX: usize = 32;

/// Names of `[for]` and `[let]` together.
pub(crate) const NAMES_MAX: usize = 500;
/// Maps of one task, those of all its instances together.
pub(crate) const MAPS_MAX: usize = 1000;

/// Memory for everything that is resolved, bytes.
const BYTES_MAX: usize = 512 << 20;
/// What one resolved thing takes, its texts apart; a statement is the largest.
const THING_BYTES: usize = 400;
const _: () = assert!(size_of::<crate::workload::Stmt>() <= THING_BYTES);

/// What is left for the scenarios of one file.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_left: usize,
    exhausted: bool,
}

impl Budget {
    /// A full one.
    pub(crate) fn new() -> Budget {
        Budget {
            bytes_left: BYTES_MAX,
            exhausted: false,
        }
    }

    /// Bytes taken so far.
    pub(crate) fn spent(&self) -> usize {
        BYTES_MAX - self.bytes_left
    }

    /// Takes room for one thing with `text_bytes` of text.
    pub(crate) fn charge(&mut self, span: Span, text_bytes: usize) -> Result<()> {
        let needed = THING_BYTES.saturating_add(text_bytes);
        if let Some(left) = self.bytes_left.checked_sub(needed) {
            self.bytes_left = left;
            return Ok(());
        }
        self.exhausted = true;
        Err(Problem::new(
            span,
            format!(
                "the workload is too large: resolved it needs more than {} MiB",
                BYTES_MAX >> 20
            ),
            "lower the number of instances, or of combinations in [for], or use `repeat`",
        ))
    }

    /// Whether a charge has failed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }
}
