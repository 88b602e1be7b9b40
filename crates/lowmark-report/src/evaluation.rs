//! Published evaluations: their tables, their claims, and the index over them.
//!
//! An evaluation is one file under `evaluations/published/` (its format is described in the README
//! there); what it is claimed to show stands in `index.toml`. All of them are part of the program:
//! [`ids`], [`index`] and [`get`] need no files. [`Evaluation::parse`] reads others of the same form.
//!
//! Figures keep their printed precision ([`Printed`]): `0.00` is not `0`, and how far a recomputed
//! percentage may be off depends on it.

mod change;
mod embedded;
mod raw;

use crate::cell::{CellId, CellValues};
use crate::claim::{Claim, ClaimError};
use crate::percent::PercentRule;
use crate::stats::Preference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use change::StatedChange;
pub use embedded::{get, ids, index};

/// A printed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    /// Its value; not a number where the print is unreadable.
    pub value: f64,
    /// Digits after the point; none for a whole number, which is an exact count.
    pub decimals: Option<usize>,
}

impl Printed {
    /// Weight of the last printed digit.
    pub fn ulp(&self) -> f64 {
        let decimals = self.decimals.unwrap_or(0).min(300);
        10f64.powi(-i32::try_from(decimals).unwrap_or(0))
    }

    /// The figure as it stood in print.
    pub fn text(&self) -> String {
        format!("{:.*}", self.decimals.unwrap_or(0), self.value)
    }
}

/// A column: a kernel that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its heading.
    pub id: String,
    /// What the kernel is.
    pub description: String,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name as printed, or made distinct.
    pub name: String,
    /// One figure per column of the table.
    pub values: Vec<Printed>,
    /// Printed percentages, one per column.
    pub pct: Option<Vec<Printed>>,
    /// Unit; "not stated" where the source names none.
    pub unit: String,
    /// Which values are good.
    pub better: Preference,
    /// Remark.
    pub note: Option<String>,
}

/// A row that follows from others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Row.
    pub row: String,
    /// Formula over `[row]` and `[table::row]`.
    pub formula: String,
    /// Value printed where the formula divides by zero.
    pub zero: Option<f64>,
}

/// A published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name in cells.
    pub id: String,
    /// Heading.
    pub name: String,
    /// Unit of rows that have none of their own.
    pub unit: String,
    /// Ids of its columns; the first is the baseline.
    pub columns: Vec<String>,
    /// How its percentages are computed.
    pub pct_rule: Option<PercentRule>,
    /// Rows that follow from others.
    pub derived: Vec<Derived>,
    /// Rows in printed order.
    pub rows: Vec<Row>,
    /// Remark.
    pub note: Option<String>,
}

/// A figure stated in prose, without a table.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProseFigure {
    /// Its name.
    pub id: String,
    /// What was run.
    pub workload: String,
    /// What was measured.
    pub metric: String,
    /// Unit.
    pub unit: String,
    /// Which values are good.
    pub better: Preference,
    /// Whether the source says "about", "~" or "at least".
    pub approx: bool,
    /// Value before the change.
    pub before: Option<f64>,
    /// Value after it.
    pub after: Option<f64>,
    /// Change relative to before, positive for more.
    pub change_pct: Option<f64>,
    /// After as a multiple of before.
    pub factor: Option<f64>,
    /// Closed range of the value.
    pub range: Option<[f64; 2]>,
    /// Lower bound.
    pub at_least: Option<f64>,
    /// `before` as printed, if it was converted.
    pub before_printed: Option<String>,
    /// `after` as printed, if it was converted.
    pub after_printed: Option<String>,
    /// Remark.
    pub note: Option<String>,
}

/// A claim about cells: what it says of print and how a model is judged by it.
#[derive(Debug, Clone, PartialEq)]
pub struct CellTest {
    /// What the source says of its own figures.
    pub printed: Claim,
    /// What must hold of a model's figures.
    pub model: Claim,
    /// What must hold of a model's figures besides, or they show nothing: that the kernels differ at all.
    pub vacuous_unless: Option<Claim>,
}

impl CellTest {
    /// The expressions by the names of their fields in the index.
    pub fn expressions(&self) -> impl Iterator<Item = (&'static str, &Claim)> {
        let guard = self.vacuous_unless.as_ref();
        [("expr", &self.printed), ("model_expr", &self.model)]
            .into_iter()
            .chain(guard.map(|claim| ("vacuous_unless", claim)))
    }
}

/// What is judged about a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimTest {
    /// Expressions over cells.
    Expr(Box<CellTest>),
    /// A figure stated in prose, by its id among [`Evaluation::prose`]; no cell stands for it.
    Prose(String),
}

/// Something that the source says about its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedClaim {
    /// What it says.
    pub text: String,
    /// `prose` if the source says it in words, `table` if only its figures do.
    pub said: String,
    /// How it is judged.
    pub test: ClaimTest,
    /// Whether the published figures bear it out.
    pub holds: bool,
    /// Whether it judges a model. A claim about noise, or about what no model puts out, does not; the note says why.
    pub counts: bool,
    /// Remark.
    pub note: Option<String>,
}

/// One published evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Its name.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// The change that it evaluates.
    pub mechanism: String,
    /// Remarks.
    pub notes: Vec<String>,
    /// Where it was published: subject, author, date, commit and so on.
    pub source: BTreeMap<String, String>,
    /// Machine and workload as far as they are stated.
    pub setup: BTreeMap<String, String>,
    /// Kernels in printed order; the first is the baseline.
    pub columns: Vec<Column>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures stated in prose.
    pub prose: Vec<ProseFigure>,
    /// Claims of the index; empty if it was parsed without one.
    pub claims: Vec<StatedClaim>,
}

/// An evaluation in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexEntry {
    /// Name of the evaluation.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// The change that it evaluates.
    pub mechanism: String,
    /// Number of its figures, percentages not counted.
    pub cells: usize,
    /// Claims.
    pub claims: Vec<StatedClaim>,
}

/// Why an evaluation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// Not the TOML that it should be.
    #[error("{file}: {source}")]
    Toml {
        /// File.
        file: String,
        /// Line, column and what was expected there.
        source: Box<toml::de::Error>,
    },
    /// A value contradicts the rest of the file.
    #[error("{file}: {field}: {problem}")]
    Invalid {
        /// File.
        file: String,
        /// Where in the file.
        field: String,
        /// What was expected.
        problem: String,
    },
    /// A claim cannot be parsed.
    #[error("{file}: claim of {evaluation}: {source}")]
    Claim {
        /// File.
        file: String,
        /// Name of the evaluation.
        evaluation: String,
        /// What is wrong with it.
        source: Box<ClaimError>,
    },
    /// No evaluation of this name.
    #[error("no published evaluation is called `{id}`; there are: {}", known.join(", "))]
    Unknown {
        /// Name asked for.
        id: String,
        /// Names that exist.
        known: Vec<String>,
    },
}

impl Evaluation {
    /// Reads an evaluation; `file` names it in errors, `claims` are those of its index entry.
    ///
    /// # Errors
    ///
    /// [`EvaluationError`] that names the file and the field.
    pub fn parse(
        file: &str,
        text: &str,
        claims: Vec<StatedClaim>,
    ) -> Result<Evaluation, EvaluationError> {
        raw::evaluation(file, text, claims)
    }

    /// A table by id.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.id == id)
    }

    /// A prose figure by id.
    pub fn prose_figure(&self, id: &str) -> Option<&ProseFigure> {
        self.prose.iter().find(|p| p.id == id)
    }

    /// Every cell with its figure, in printed order.
    pub fn cells(&self) -> impl Iterator<Item = (CellId, &Printed)> {
        self.tables.iter().flat_map(|table| {
            table.rows.iter().flat_map(move |row| {
                table
                    .columns
                    .iter()
                    .zip(&row.values)
                    .map(move |(column, value)| (CellId::new(&table.id, &row.name, column), value))
            })
        })
    }

    /// Published figures by cell, in the form in which a model's figures come too.
    pub fn cell_values(&self) -> CellValues {
        self.cells()
            .map(|(cell, printed)| (cell, Some(printed.value)))
            .collect()
    }

    /// Number of figures, as the index counts them: percentages are not figures of their own.
    pub fn cell_count(&self) -> usize {
        let stated = |p: &ProseFigure| {
            let single = [p.before, p.after, p.change_pct, p.factor, p.at_least];
            single.iter().flatten().count() + p.range.map_or(0, |r| r.len())
        };
        self.cells().count() + self.prose.iter().map(stated).sum::<usize>()
    }
}

impl ProseFigure {
    /// What the source says, in one line.
    pub fn sentence(&self) -> String {
        let about = if self.approx { "about " } else { "" };
        let unit = &self.unit;
        let number = |value: f64| format!("{about}{value} {unit}");
        let said = match (self.before, self.after) {
            (Some(before), Some(after)) => Some(format!("from {before} to {about}{after} {unit}")),
            (Some(before), None) => Some(format!("{} before", number(before))),
            (None, Some(after)) => Some(number(after)),
            (None, None) => None,
        };
        let change = self.change_pct.map(|pct| format!("{about}{pct:+} %"));
        let factor = self.factor.map(|factor| format!("times {factor}"));
        let range = self
            .range
            .map(|[low, high]| format!("{low} to {high} {unit}"));
        let at_least = self
            .at_least
            .map(|least| format!("at least {}", number(least)));
        let parts = [said, change, factor, range, at_least];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}: {}: {}", self.workload, self.metric, parts.join(", "))
    }
}

impl Table {
    /// A row by name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.name == name)
    }
}

#[cfg(test)]
mod tests;
