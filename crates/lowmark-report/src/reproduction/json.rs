//! A reproduction as JSON.
//!
//! The field names are stable: `evaluation`, `claims`, `cells`, `summary` and what stands in them.
//! `holds` is true where a claim is borne out, false where it is contradicted, else null; a figure that does not
//! exist or is not finite is null. Version 2 judges by `model_expr`: `verdict` has other values, `agrees` and what
//! counted it are gone, `counts`, `model_expr`, `vacuous_unless`, `guard` and `fitted` are new.

use super::{CellResult, ClaimResult, ClaimSummary, ErrorSummary, Fitted, Reproduction, Verdict};
use crate::claim::Compared;
use crate::evaluation::Printed;
use crate::recipe::Compare;
use serde::Serialize;

/// Version of this form.
const VERSION: u32 = 2;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    evaluation: &'a str,
    title: &'a str,
    variant: Option<&'a str>,
    judged: bool,
    compare: Compare,
    claims: Vec<Claim<'a>>,
    additional_claims: Vec<Claim<'a>>,
    cells: Vec<Cell<'a>>,
    additional_cells: Vec<Cell<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    own_cells: Vec<OwnCell<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<Claim<'a>>,
    summary: Summary<'a>,
    notes: &'a [String],
    fitted: &'a [Fitted],
}

#[derive(Serialize)]
struct Claim<'a> {
    text: &'a str,
    said: &'a str,
    counts: bool,
    verdict: Verdict,
    holds: Option<bool>,
    published_holds: bool,
    expr: Option<&'a str>,
    published_value: Option<Vec<Numbers<'a>>>,
    model_expr: Option<&'a str>,
    value: Option<Vec<Numbers<'a>>>,
    vacuous_unless: Option<&'a str>,
    guard: Option<Vec<Numbers<'a>>>,
    missing: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    note: Option<&'a str>,
}

/// A cell of a table that is not in print.
#[derive(Serialize)]
struct OwnCell<'a> {
    table: &'a str,
    row: &'a str,
    column: &'a str,
    unit: &'a str,
    model: Option<f64>,
}

/// One comparison of a claim.
#[derive(Serialize)]
struct Numbers<'a> {
    left: f64,
    op: &'a str,
    right: f64,
    holds: bool,
    left_expr: &'a str,
    right_expr: &'a str,
}

#[derive(Serialize)]
struct Cell<'a> {
    table: &'a str,
    row: &'a str,
    column: &'a str,
    unit: &'a str,
    published: Option<f64>,
    model: Option<f64>,
    ratio_error: Option<f64>,
    published_ratio: Option<f64>,
    model_ratio: Option<f64>,
    baseline_ratio_error: Option<f64>,
}

#[derive(Serialize)]
struct Summary<'a> {
    cells: usize,
    modelled: usize,
    cell_errors: Option<&'a ErrorSummary>,
    ratio_errors: Option<&'a ErrorSummary>,
    claims: ClaimSummary,
    additional_claims: ClaimSummary,
    exit_status: u8,
}

impl Reproduction {
    /// The reproduction as JSON with stable field names.
    pub fn json(&self) -> serde_json::Value {
        let document = Document {
            version: VERSION,
            evaluation: &self.evaluation.id,
            title: &self.evaluation.title,
            variant: self.variant.as_ref().map(|v| v.name.as_str()),
            judged: self.is_judged(),
            compare: self.compare,
            claims: self.claims.iter().map(claim).collect(),
            additional_claims: self.additional_claims.iter().map(claim).collect(),
            cells: self.cells.iter().map(cell).collect(),
            additional_cells: self.additional_cells.iter().map(cell).collect(),
            own_cells: self.own_cells(),
            figures: self.figures.iter().map(claim).collect(),
            summary: Summary {
                cells: self.summary.cells,
                modelled: self.summary.modelled,
                cell_errors: self.summary.cell_errors.as_ref(),
                ratio_errors: self.summary.ratio_errors.as_ref(),
                claims: self.summary.claims,
                additional_claims: self.summary.additional_claims,
                exit_status: self.exit_status(),
            },
            notes: &self.notes,
            fitted: &self.fitted,
        };
        // Strings, numbers and lists: nothing that JSON cannot hold.
        serde_json::to_value(document).unwrap_or_default()
    }

    fn own_cells(&self) -> Vec<OwnCell<'_>> {
        let mut cells = Vec::new();
        for table in &self.own_tables {
            for (row, unit, values) in &table.rows {
                let columns = table.columns.iter().zip(values);
                cells.extend(columns.map(|(column, model)| OwnCell {
                    table: &table.id,
                    row,
                    column,
                    unit,
                    model: *model,
                }));
            }
        }
        cells
    }
}

fn claim(claim: &ClaimResult) -> Claim<'_> {
    Claim {
        text: &claim.text,
        said: &claim.said,
        counts: claim.counts,
        verdict: claim.verdict,
        holds: claim.holds(),
        published_holds: claim.published_holds,
        expr: claim.expr.as_deref(),
        published_value: numbers(&claim.published),
        model_expr: claim.model_expr.as_deref(),
        value: numbers(&claim.model),
        vacuous_unless: claim.vacuous_unless.as_deref(),
        guard: numbers(&claim.guard),
        missing: claim.missing.iter().map(ToString::to_string).collect(),
        reason: claim.reason.as_deref(),
        note: claim.note.as_deref(),
    }
}

fn numbers(compared: &[Compared]) -> Option<Vec<Numbers<'_>>> {
    (!compared.is_empty()).then(|| compared.iter().map(comparison).collect())
}

fn comparison(compared: &Compared) -> Numbers<'_> {
    Numbers {
        left: compared.left.value,
        op: compared.op,
        right: compared.right.value,
        holds: compared.holds,
        left_expr: &compared.left.text,
        right_expr: &compared.right.text,
    }
}

fn cell(cell: &CellResult) -> Cell<'_> {
    Cell {
        table: &cell.cell.table,
        row: &cell.cell.row,
        column: &cell.cell.column,
        unit: &cell.unit,
        published: cell.published.map(|p: Printed| p.value),
        model: cell.model,
        ratio_error: cell.ratio_error,
        published_ratio: cell.published_ratio,
        model_ratio: cell.model_ratio,
        baseline_ratio_error: cell.baseline_ratio_error,
    }
}
