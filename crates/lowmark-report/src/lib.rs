//! What is printed: statistics, comparisons, published evaluations and their claims, tables.

pub mod bisect;
pub mod cell;
pub mod claim;
pub mod comparison;
pub mod dirty;
pub mod document;
pub mod evaluation;
pub mod host;
pub mod html;
pub mod identities;
pub mod percent;
pub mod plot;
pub mod recipe;
pub mod reclaim;
pub mod reproduction;
pub mod stats;
pub mod sweep;
pub mod table;
pub mod twin;
pub mod vmstat;
pub mod why;

#[cfg(test)]
#[path = "../../../tests/needed.rs"]
mod needed;

pub use cell::{CellId, CellValues};
pub use comparison::{ColumnInput, Comparison, SeriesRows};
pub use evaluation::Evaluation;
pub use recipe::Recipe;
pub use reproduction::Reproduction;
