//! Reports on the events of reclaim: what `trace-vmscan-postprocess.pl`, mmtests' "FTrace Reclaim Statistics"
//! and their users look for, and how it went over time.
//!
//! 1. A [`ReclaimReport`] is a [`Sink`](lowmark_record::Sink): events go by, memory stays bounded.
//! 2. [`ReclaimReport::finish`] turns it into [`ReclaimFigures`], with what else is known of the run
//!    ([`RunContext`]: `/proc/vmstat`, times).
//! 3. Figures become text ([`section`]), JSON ([`ReclaimFigures::json`]), or columns of a
//!    [`Comparison`](crate::Comparison) ([`Comparison::of_traces`](crate::Comparison::of_traces)).
//! 4. A [`CompatReport`] takes the same events and says what the kernel's script would, faults included;
//!    [`ReclaimFigures::corrections`] says where the default report differs from that, and by how much.
//!
//! ```text
//! pages.rs tasks.rs distribution.rs slices.rs   what is kept
//! namesakes.rs                                  which names are one task
//! sink.rs figures.rs                            while events go by, and at their end
//! rows.rs check.rs corrections.rs               figures by name
//! text.rs timeline.rs json.rs                   what is printed
//! compat.rs                                     the kernel's script
//! proc_vmstat.rs                                counters before and after
//! ```

mod check;
mod compat;
mod corrections;
pub(crate) mod distribution;
mod figures;
mod json;
pub(crate) mod namesakes;
pub(crate) mod pages;
mod proc_vmstat;
mod rows;
mod sink;
pub(crate) mod slices;
pub(crate) mod tasks;
mod text;
pub(crate) mod timeline;

pub use check::Check;
pub use compat::{CompatCounts, CompatProcess, CompatReport, CompatSummary};
pub use corrections::Correction;
pub use distribution::{Distribution, Quantiles};
pub use figures::{
    KswapdFigures, MemcgFigures, OrderFigures, ProcessFigures, ReclaimFigures, RunContext, Totals,
};
pub use pages::{Actor, Writes};
pub use proc_vmstat::{VmstatChange, VmstatError};
pub use rows::{Derived, Measures, ReportColumn};
pub use sink::{PageCounts, ReclaimOptions, ReclaimReport, Waits};
pub use slices::{Slice, Slices};
pub use tasks::{Pairs, Span};
pub use text::section;

#[cfg(test)]
pub(crate) mod tests;
