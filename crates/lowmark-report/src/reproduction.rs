//! An evaluation beside what a model gives for the same cells.
//!
//! 1. Each cell: the published figure, the model's, and model/published − 1.
//! 2. Each cell but the baseline's: its ratio to the first column of its row, published and from the
//!    model, and the error of that ratio. A wrong constant of the machine cancels out of ratios, a wrong
//!    mechanism does not.
//! 3. Each claim, judged on the model's figures by the rules of `evaluations/published/README.md`
//!    ([`Verdict`]), with what print says.
//! 4. The summary: median and worst of |error|, and counts of claims.
//!
//! An evaluation in prose has no tables; then the recipe's own are shown, and every figure that it judges.
//!
//! The reproduction succeeds if the model bears out every claim that counts. What the recipe adds
//! to the published claims (kernels that the source speaks of without figures) is judged and shown, but
//! does not decide.

mod json;
mod judge;
mod overview;
mod page;
mod text;

use crate::cell::{CellId, CellValues, figure};
use crate::evaluation::{Evaluation, Printed};
use crate::recipe::{Compare, Extra, Recipe, RecipeRow, RecipeTable, Variant};
use crate::stats;
use judge::{figures, judge, judge_extra};
use serde::Serialize;

pub use judge::{ClaimResult, ClaimSummary, Verdict};
pub use overview::{Overview, Row};

/// A cell with both figures.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    /// The cell.
    pub cell: CellId,
    /// Unit as published; empty for cells that are not.
    pub unit: String,
    /// Published figure with its precision; none if it is unreadable or not printed.
    pub published: Option<Printed>,
    /// The model's figure.
    pub model: Option<f64>,
    /// model/published − 1; 0 where both are 0, none where only the published figure is.
    pub ratio_error: Option<f64>,
    /// Published figure over that of the first column; none for the first column.
    pub published_ratio: Option<f64>,
    /// The same ratio in the model.
    pub model_ratio: Option<f64>,
    /// model_ratio/published_ratio − 1.
    pub baseline_ratio_error: Option<f64>,
}

/// Size of a set of errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// Number of errors.
    pub count: usize,
    /// Median of |error|.
    pub median: f64,
    /// Largest |error|.
    pub worst: f64,
    /// Where it is.
    pub worst_cell: CellId,
}

/// The whole in a few numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Published cells.
    pub cells: usize,
    /// Those of them that the model has figures for.
    pub modelled: usize,
    /// Errors of cells; none if absolute figures are not compared or none is modelled.
    pub cell_errors: Option<ErrorSummary>,
    /// Errors of ratios to the baseline.
    pub ratio_errors: Option<ErrorSummary>,
    /// Claims of the index.
    pub claims: ClaimSummary,
    /// Claims of the recipe.
    pub additional_claims: ClaimSummary,
}

/// A table that is not in print: what the model gives.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTable {
    /// Its name in cells.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Columns.
    pub columns: Vec<String>,
    /// Rows: name, unit, a figure for each column.
    pub rows: Vec<(String, &'static str, Vec<Option<f64>>)>,
}

/// A constant of a machine that was fitted to figures of the evaluation that it is judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fitted {
    /// Machine.
    pub machine: String,
    /// The constant, as in the machine's file.
    pub constant: String,
    /// What it was fitted to: `table`, `table::row` or `table::row::column`.
    pub to: Vec<String>,
}

/// A machine on which cells were measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineUsed {
    /// Its name.
    pub name: String,
    /// One line for people, without a full stop.
    pub description: String,
}

/// An evaluation and the model side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Reproduction {
    /// The evaluation.
    pub evaluation: Evaluation,
    /// Variant of the recipe that was run, for the reader.
    pub variant: Option<Variant>,
    /// What is compared.
    pub compare: Compare,
    /// Remarks of the recipe.
    pub notes: Vec<String>,
    /// Machines on which it was run.
    pub machines: Vec<MachineUsed>,
    /// Constants of its machines that were fitted to it.
    pub fitted: Vec<Fitted>,
    /// Published cells in printed order.
    pub cells: Vec<CellResult>,
    /// Cells of kernels that the source prints no figures for.
    pub additional_cells: Vec<CellResult>,
    /// Claims of the index.
    pub claims: Vec<ClaimResult>,
    /// Claims of the recipe.
    pub additional_claims: Vec<ClaimResult>,
    /// Tables of the recipe that are not in print.
    pub own_tables: Vec<OwnTable>,
    /// Figures in prose of which the index makes no claim, as the recipe judges them.
    pub figures: Vec<ClaimResult>,
    /// The whole in a few numbers.
    pub summary: Summary,
}

impl Reproduction {
    /// Puts the model's figures beside the published ones.
    ///
    /// Without a recipe, claims about figures in prose are not modelled and nothing is added.
    pub fn new(
        evaluation: &Evaluation,
        recipe: Option<&Recipe>,
        model: &CellValues,
    ) -> Reproduction {
        let published = evaluation.cell_values();
        let compare = recipe.map(|r| r.compare).unwrap_or_default();
        let cells = printed_cells(evaluation, model);
        let extras = recipe.map_or(&[][..], |r| &r.extras);
        let claims: Vec<ClaimResult> = evaluation
            .claims
            .iter()
            .map(|c| judge(c, evaluation, recipe, &published, model))
            .collect();
        let additional_claims: Vec<ClaimResult> =
            extras.iter().map(|e| judge_extra(e, model)).collect();
        Reproduction {
            compare,
            notes: recipe.map(|r| r.notes.clone()).unwrap_or_default(),
            summary: summary(compare, &cells, &claims, &additional_claims),
            additional_cells: additional_cells(extras, &published, model),
            own_tables: recipe.map_or(Vec::new(), |r| own_tables(evaluation, r, model)),
            figures: recipe.map_or(Vec::new(), |r| figures(evaluation, r, model)),
            evaluation: evaluation.clone(),
            variant: None,
            machines: Vec::new(),
            fitted: Vec::new(),
            cells,
            claims,
            additional_claims,
        }
    }

    /// The same, saying which variant of the recipe was run; without claims if that judges none.
    #[must_use]
    pub fn of_variant(self, variant: &Variant) -> Reproduction {
        let result = if variant.judged {
            self
        } else {
            self.with_claims(|_| false)
        };
        Reproduction {
            variant: Some(variant.clone()),
            ..result
        }
    }

    /// The same, saying on which machines it was run, and which of their constants were fitted to the figures that judge
    /// them.
    #[must_use]
    pub fn on_machines(self, machines: Vec<MachineUsed>, fitted: Vec<Fitted>) -> Reproduction {
        Reproduction {
            machines,
            fitted,
            ..self
        }
    }

    /// Whether claims are judged at all.
    pub fn is_judged(&self) -> bool {
        self.variant.as_ref().is_none_or(|variant| variant.judged)
    }

    /// The same of a part: without claims that need cells of the rest.
    #[must_use]
    pub fn of_what_was_run(self) -> Reproduction {
        self.with_claims(|claim| claim.verdict != Verdict::NotModelled && claim.missing.is_empty())
    }

    /// With these of its claims alone.
    fn with_claims(mut self, keep: impl Fn(&ClaimResult) -> bool) -> Reproduction {
        self.claims.retain(&keep);
        self.additional_claims.retain(&keep);
        self.figures.retain(&keep);
        self.summary = summary(
            self.compare,
            &self.cells,
            &self.claims,
            &self.additional_claims,
        );
        self
    }

    /// Exit status of a reproduction: 0 if every claim of the index that counts is borne out or none is judged, 1
    /// otherwise. A claim that is vacuous or not modelled is not borne out.
    pub fn exit_status(&self) -> u8 {
        u8::from(!self.claims.iter().all(ClaimResult::is_kept))
    }
}

/// value/reference − 1; 0 where both are 0, none where only the reference is.
fn relative_error(value: f64, reference: f64) -> Option<f64> {
    if value == reference {
        return Some(0.0);
    }
    Some(value / reference - 1.0).filter(|e| e.is_finite())
}

fn printed_cells(evaluation: &Evaluation, model: &CellValues) -> Vec<CellResult> {
    let mut cells = Vec::new();
    for table in &evaluation.tables {
        for row in &table.rows {
            let baseline = table.columns.first().zip(row.values.first());
            for (column, printed) in table.columns.iter().zip(&row.values) {
                let cell = CellId::new(&table.id, &row.name, column);
                let base = baseline
                    .filter(|(id, _)| *id != column)
                    .map(|(id, printed)| (printed.value, figure(model, &cell.in_column(id))));
                cells.push(cell_result(cell, &row.unit, *printed, base, model));
            }
        }
    }
    cells
}

/// A cell; `base` is the figure of its row's first column in print and in the model.
fn cell_result(
    cell: CellId,
    unit: &str,
    printed: Printed,
    base: Option<(f64, Option<f64>)>,
    model: &CellValues,
) -> CellResult {
    let published = Some(printed).filter(|p| !p.value.is_nan());
    let own = figure(model, &cell);
    let ratio = |value: f64, base: f64| Some(value / base).filter(|r| r.is_finite());
    let published_ratio = base
        .zip(published)
        .and_then(|((b, _), p)| ratio(p.value, b));
    let model_ratio = base
        .and_then(|(_, b)| b)
        .zip(own)
        .and_then(|(b, m)| ratio(m, b));
    CellResult {
        cell,
        unit: unit.to_owned(),
        ratio_error: own
            .zip(published)
            .and_then(|(m, p)| relative_error(m, p.value)),
        baseline_ratio_error: model_ratio
            .zip(published_ratio)
            .and_then(|(m, p)| relative_error(m, p)),
        published,
        model: own,
        published_ratio,
        model_ratio,
    }
}

/// Cells named by the recipe's own claims that are not in print.
fn additional_cells(
    extras: &[Extra],
    published: &CellValues,
    model: &CellValues,
) -> Vec<CellResult> {
    let mut cells: Vec<CellId> = extras.iter().flat_map(|e| e.claim.cells()).collect();
    cells.retain(|c| !published.contains_key(c));
    cells.sort();
    cells.dedup();
    let unreadable = Printed {
        value: f64::NAN,
        decimals: None,
    };
    cells
        .into_iter()
        .map(|cell| cell_result(cell, "", unreadable, None, model))
        .collect()
}

/// The recipe's own tables, for an evaluation that prints none.
fn own_tables(evaluation: &Evaluation, recipe: &Recipe, model: &CellValues) -> Vec<OwnTable> {
    if !evaluation.tables.is_empty() {
        return Vec::new();
    }
    let columns: Vec<String> = recipe.columns.iter().map(|c| c.id.clone()).collect();
    let table = |table: &RecipeTable| {
        let row = |row: &RecipeRow| {
            let cell = |column| figure(model, &CellId::new(&table.id, &row.id, column));
            let values = columns.iter().map(cell).collect();
            (
                row.id.clone(),
                recipe.metric_of(table, &row.id).unit_text(),
                values,
            )
        };
        OwnTable {
            id: table.id.clone(),
            title: table.title.clone().unwrap_or_else(|| table.id.clone()),
            columns: columns.clone(),
            rows: recipe.rows_of(table).into_iter().map(row).collect(),
        }
    };
    recipe.tables.iter().map(table).collect()
}

fn summary(
    compare: Compare,
    cells: &[CellResult],
    claims: &[ClaimResult],
    additional: &[ClaimResult],
) -> Summary {
    let cell_errors = match compare {
        Compare::Values => error_summary(cells, |c| c.ratio_error),
        Compare::Ratios => None,
    };
    Summary {
        cells: cells.len(),
        modelled: cells.iter().filter(|c| c.model.is_some()).count(),
        cell_errors,
        ratio_errors: error_summary(cells, |c| c.baseline_ratio_error),
        claims: ClaimSummary::of(claims),
        additional_claims: ClaimSummary::of(additional),
    }
}

fn error_summary(
    cells: &[CellResult],
    error: impl Fn(&CellResult) -> Option<f64>,
) -> Option<ErrorSummary> {
    let errors: Vec<(f64, &CellId)> = cells
        .iter()
        .filter_map(|c| Some((error(c)?.abs(), &c.cell)))
        .collect();
    let sizes: Vec<f64> = errors.iter().map(|(size, _)| *size).collect();
    // The first of equals, so that the report does not depend on the order of a search.
    let (worst, cell) = errors
        .iter()
        .copied()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some(ErrorSummary {
        count: sizes.len(),
        median: stats::median(&sizes)?,
        worst,
        worst_cell: cell.clone(),
    })
}

#[cfg(test)]
mod tests;
