//! An evaluation beside what a model gives for the same cells.
//!
//! 1. Each cell: the published figure, the model's, and model/published − 1.
//! 2. Each cell but the baseline's: its ratio to the first column of its row, published and from the
//!    model, and the error of that ratio. A wrong constant of the machine cancels out of ratios, a wrong
//!    mechanism does not.
//! 3. Each claim, judged on the model's figures: borne out, contradicted, or not modelled because a
//!    cell has no figure; and whether print says the same.
//! 4. The summary: median and worst of |error|, and counts of claims.
//!
//! An evaluation in prose has no tables; then the recipe's own are shown, and every figure that it judges.
//!
//! The reproduction succeeds if every claim that holds in print holds in the model. What the recipe adds
//! to the published claims (kernels that the source speaks of without figures) is judged and shown, but
//! does not decide.

mod json;
mod text;

use crate::cell::{CellId, CellValues, figure};
use crate::claim::{Compared, Judgement};
use crate::evaluation::{ClaimTest, Evaluation, Printed, ProseFigure, StatedClaim};
use crate::recipe::{Compare, Extra, Recipe, RecipeRow, RecipeTable, Variant};
use crate::stats;
use serde::Serialize;

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

/// What the model says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds.
    BearsOut,
    /// It does not.
    Contradicts,
    /// The model has no figure for one of its cells.
    NotModelled,
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimResult {
    /// What the source says.
    pub text: String,
    /// `prose` or `table`.
    pub said: String,
    /// Expression by which it is judged; none for a figure in prose that nothing stands for.
    pub expr: Option<String>,
    /// Whether the published figures bear it out.
    pub published_holds: bool,
    /// What the model says.
    pub verdict: Verdict,
    /// The numbers of the claim in print; empty where print has none.
    pub published: Vec<Compared>,
    /// The numbers of the claim in the model; empty if not modelled.
    pub model: Vec<Compared>,
    /// Cells for which the model has no figure.
    pub missing: Vec<CellId>,
    /// Why it is not measured.
    pub reason: Option<String>,
    /// Remark.
    pub note: Option<String>,
}

impl ClaimResult {
    /// Whether the claim holds in the model; none if it is not modelled.
    pub fn holds(&self) -> Option<bool> {
        match self.verdict {
            Verdict::BearsOut => Some(true),
            Verdict::Contradicts => Some(false),
            Verdict::NotModelled => None,
        }
    }

    /// Whether model and print agree; none if it is not modelled.
    pub fn agrees(&self) -> Option<bool> {
        self.holds().map(|holds| holds == self.published_holds)
    }
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

/// Counts of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ClaimSummary {
    /// All of them.
    pub total: usize,
    /// Borne out by the model.
    pub bears_out: usize,
    /// Contradicted by it.
    pub contradicts: usize,
    /// Undecided.
    pub not_modelled: usize,
    /// Decided as print decides them.
    pub agree: usize,
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
            .map(|c| judge(c, recipe, &published, model))
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
            cells,
            claims,
            additional_claims,
        }
    }

    /// The same, saying which variant of the recipe was run; without claims if that judges none.
    #[must_use]
    pub fn of_variant(self, variant: &Variant) -> Reproduction {
        let result = match variant.judged {
            true => self,
            false => self.with_claims(|_| false),
        };
        Reproduction {
            variant: Some(variant.clone()),
            ..result
        }
    }

    /// Whether claims are judged at all.
    pub fn is_judged(&self) -> bool {
        self.variant.as_ref().is_none_or(|variant| variant.judged)
    }

    /// The same of a part: without claims that need cells of the rest.
    #[must_use]
    pub fn of_what_was_run(self) -> Reproduction {
        self.with_claims(|claim| claim.verdict != Verdict::NotModelled)
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

    /// Exit status of a reproduction: 0 if every claim of the index that holds in print holds in the
    /// model or none is judged, 1 otherwise. A claim that is not modelled does not hold.
    pub fn exit_status(&self) -> u8 {
        let kept = |c: &ClaimResult| !c.published_holds || c.holds() == Some(true);
        u8::from(!self.claims.iter().all(kept))
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

fn judge(
    stated: &StatedClaim,
    recipe: Option<&Recipe>,
    published: &CellValues,
    model: &CellValues,
) -> ClaimResult {
    let test = match &stated.test {
        ClaimTest::Expr(_) => None,
        ClaimTest::Prose(id) => recipe.and_then(|r| r.prose_test(id)),
    };
    let claim = match &stated.test {
        ClaimTest::Expr(claim) => Some(claim),
        ClaimTest::Prose(_) => test.and_then(|t| t.claim.as_ref()),
    };
    let in_print = claim.map(|c| c.judge(|cell| figure(published, cell)));
    let in_model = claim.map(|c| c.judge(|cell| figure(model, cell)));
    ClaimResult {
        text: stated.text.clone(),
        said: stated.said.clone(),
        expr: claim.map(|c| c.text().to_owned()),
        published_holds: stated.holds,
        verdict: verdict(in_model.as_ref()),
        published: compared(in_print.as_ref()),
        model: compared(in_model.as_ref()),
        missing: missing(in_model),
        reason: test.and_then(|t| t.reason.clone()),
        note: test.and_then(|t| t.note.clone()).or(stated.note.clone()),
    }
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
            (row.id.clone(), recipe.metric_of(row).unit_text(), values)
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

/// Figures in prose that the recipe knows of and the index does not.
fn figures(evaluation: &Evaluation, recipe: &Recipe, model: &CellValues) -> Vec<ClaimResult> {
    let claimed = |figure: &&ProseFigure| {
        let same = |claim: &StatedClaim| claim.test == ClaimTest::Prose(figure.id.clone());
        !evaluation.claims.iter().any(same) && recipe.prose_test(&figure.id).is_some()
    };
    let stated = |figure: &ProseFigure| StatedClaim {
        text: figure.sentence(),
        said: "prose".to_owned(),
        test: ClaimTest::Prose(figure.id.clone()),
        holds: true,
        note: figure.note.clone(),
    };
    let others = evaluation.prose.iter().filter(claimed);
    let judged = |figure| judge(&stated(figure), Some(recipe), &CellValues::new(), model);
    others.map(judged).collect()
}

/// A claim about a kernel without figures holds in print because the source says so.
fn judge_extra(extra: &Extra, model: &CellValues) -> ClaimResult {
    let in_model = extra.claim.judge(|cell| figure(model, cell));
    ClaimResult {
        text: extra.text.clone(),
        said: "prose".to_owned(),
        expr: Some(extra.claim.text().to_owned()),
        published_holds: true,
        verdict: verdict(Some(&in_model)),
        published: Vec::new(),
        model: compared(Some(&in_model)),
        missing: missing(Some(in_model)),
        reason: None,
        note: extra.note.clone(),
    }
}

fn verdict(judgement: Option<&Judgement>) -> Verdict {
    match judgement.and_then(Judgement::holds) {
        Some(true) => Verdict::BearsOut,
        Some(false) => Verdict::Contradicts,
        None => Verdict::NotModelled,
    }
}

fn compared(judgement: Option<&Judgement>) -> Vec<Compared> {
    judgement.map(|j| j.compared().to_vec()).unwrap_or_default()
}

fn missing(judgement: Option<Judgement>) -> Vec<CellId> {
    match judgement {
        Some(Judgement::Missing(cells)) => cells,
        _ => Vec::new(),
    }
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
        claims: claim_summary(claims),
        additional_claims: claim_summary(additional),
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

fn claim_summary(claims: &[ClaimResult]) -> ClaimSummary {
    let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
    ClaimSummary {
        total: claims.len(),
        bears_out: count(Verdict::BearsOut),
        contradicts: count(Verdict::Contradicts),
        not_modelled: count(Verdict::NotModelled),
        agree: claims.iter().filter(|c| c.agrees() == Some(true)).count(),
    }
}

#[cfg(test)]
mod tests;
