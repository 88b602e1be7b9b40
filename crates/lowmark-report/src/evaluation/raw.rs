//! The files as they are written, and what must be true of them.

use super::{
    CellTest, ClaimTest, Column, Derived, Evaluation, EvaluationError, IndexEntry, Printed,
    ProseFigure, Row, StatedClaim, Table,
};
use crate::cell::{CellValues, figure};
use crate::claim::Claim;
use crate::percent::PercentRule;
use crate::stats::Preference;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// The version of the format that is understood.
const SCHEMA: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvaluation {
    schema: u64,
    id: String,
    title: String,
    mechanism: String,
    #[serde(default)]
    notes: Vec<String>,
    source: BTreeMap<String, toml::Value>,
    setup: BTreeMap<String, toml::Value>,
    columns: Vec<Column>,
    #[serde(default)]
    tables: Vec<RawTable>,
    #[serde(default)]
    claims: Vec<ProseFigure>,
    #[serde(default)]
    garbled: Vec<toml::Table>,
    #[serde(default)]
    disagreements: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    name: String,
    unit: String,
    better: Preference,
    #[serde(default, rename = "lines")]
    _lines: Vec<u64>,
    columns: Option<Vec<String>>,
    pct_rule: Option<PercentRule>,
    note: Option<String>,
    #[serde(default)]
    derived: Vec<Derived>,
    rows: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    values: Vec<Spanned<f64>>,
    pct: Option<Vec<Spanned<f64>>>,
    unit: Option<String>,
    better: Option<Preference>,
    note: Option<String>,
    #[serde(rename = "printed")]
    _printed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIndex {
    schema: u64,
    evaluations: Vec<RawEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    id: String,
    title: String,
    mechanism: String,
    cells: usize,
    claims: Vec<RawClaim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    text: String,
    said: String,
    expr: Option<String>,
    claim: Option<String>,
    holds: bool,
    model_expr: Option<String>,
    vacuous_unless: Option<String>,
    counts: bool,
    note: Option<String>,
}

/// One file being read.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

pub(super) fn evaluation(
    file: &str,
    text: &str,
    claims: Vec<StatedClaim>,
) -> Result<Evaluation, EvaluationError> {
    let reader = Reader { file, text };
    let raw: RawEvaluation = reader.toml()?;
    reader.schema(raw.schema)?;
    let ids: Vec<String> = raw.columns.iter().map(|c| c.id.clone()).collect();
    reader.distinct("columns", &ids)?;
    if raw.tables.is_empty() && raw.claims.is_empty() {
        return Err(reader.invalid("tables", "expected tables or claims, found neither"));
    }
    let tables: Vec<Table> = raw
        .tables
        .into_iter()
        .map(|t| reader.table(t, &ids))
        .collect::<Result<_, _>>()?;
    reader.distinct("tables", tables.iter().map(|t| &t.id))?;
    reader.distinct("claims", raw.claims.iter().map(|c| &c.id))?;
    // Both are remarks for readers of the file; that they are tables is all that matters here.
    drop((raw.garbled, raw.disagreements));
    let evaluation = Evaluation {
        id: raw.id,
        title: raw.title,
        mechanism: raw.mechanism,
        notes: raw.notes,
        source: texts(raw.source),
        setup: texts(raw.setup),
        columns: raw.columns,
        tables,
        prose: raw.claims,
        claims,
    };
    reader.claims_fit(&evaluation)?;
    Ok(evaluation)
}

pub(super) fn index(file: &str, text: &str) -> Result<Vec<IndexEntry>, EvaluationError> {
    let reader = Reader { file, text };
    let raw: RawIndex = reader.toml()?;
    reader.schema(raw.schema)?;
    reader.distinct("evaluations", raw.evaluations.iter().map(|e| &e.id))?;
    raw.evaluations
        .into_iter()
        .map(|e| reader.entry(e))
        .collect()
}

impl Reader<'_> {
    fn toml<T: serde::de::DeserializeOwned>(&self) -> Result<T, EvaluationError> {
        toml::from_str(self.text).map_err(|e| EvaluationError::Toml {
            file: self.file.to_owned(),
            source: Box::new(e),
        })
    }

    fn invalid(&self, field: impl Into<String>, problem: impl Into<String>) -> EvaluationError {
        EvaluationError::Invalid {
            file: self.file.to_owned(),
            field: field.into(),
            problem: problem.into(),
        }
    }

    fn schema(&self, found: u64) -> Result<(), EvaluationError> {
        if found == SCHEMA {
            return Ok(());
        }
        Err(self.invalid("schema", format!("expected {SCHEMA}, found {found}")))
    }

    fn distinct<'n>(
        &self,
        field: &str,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Result<(), EvaluationError> {
        let mut seen = BTreeSet::new();
        match names.into_iter().find(|name| !seen.insert(name.as_str())) {
            Some(twice) => Err(self.invalid(field, format!("`{twice}` stands there twice"))),
            None => Ok(()),
        }
    }

    fn table(&self, raw: RawTable, ids: &[String]) -> Result<Table, EvaluationError> {
        let field = format!("table {}", raw.id);
        let columns = raw.columns.unwrap_or_else(|| ids.to_vec());
        if let Some(unknown) = columns.iter().find(|c| !ids.contains(c)) {
            return Err(self.invalid(field, format!("no column is called `{unknown}`")));
        }
        let (unit, better, rule) = (&raw.unit, raw.better, raw.pct_rule);
        let row = |r: RawRow| {
            let field = format!("table {}, row {}", raw.id, r.name);
            if r.pct.is_some() && rule.is_none() {
                return Err(self.invalid(field, "pct needs the pct_rule of its table"));
            }
            Ok(Row {
                values: self.figures(&field, "values", r.values, columns.len())?,
                pct: r
                    .pct
                    .map(|p| self.figures(&field, "pct", p, columns.len()))
                    .transpose()?,
                unit: r.unit.unwrap_or_else(|| unit.clone()),
                better: r.better.unwrap_or(better),
                name: r.name,
                note: r.note,
            })
        };
        let rows: Vec<Row> = raw.rows.into_iter().map(row).collect::<Result<_, _>>()?;
        self.distinct(&field, rows.iter().map(|r| &r.name))?;
        Ok(Table {
            id: raw.id,
            name: raw.name,
            unit: raw.unit,
            columns,
            pct_rule: raw.pct_rule,
            derived: raw.derived,
            rows,
            note: raw.note,
        })
    }

    fn figures(
        &self,
        field: &str,
        key: &str,
        list: Vec<Spanned<f64>>,
        expected: usize,
    ) -> Result<Vec<Printed>, EvaluationError> {
        if list.len() != expected {
            let problem = format!("{key}: expected {expected} numbers, found {}", list.len());
            return Err(self.invalid(field, problem));
        }
        Ok(list.into_iter().map(|s| self.printed(&s)).collect())
    }

    /// The value with the precision that its text shows.
    fn printed(&self, number: &Spanned<f64>) -> Printed {
        let text = self.text.get(number.span()).unwrap_or_default();
        let decimals = text
            .split_once('.')
            .map(|(_, fraction)| fraction.chars().filter(char::is_ascii_digit).count());
        Printed {
            value: *number.get_ref(),
            decimals,
        }
    }

    fn entry(&self, raw: RawEntry) -> Result<IndexEntry, EvaluationError> {
        let claims = raw.claims.into_iter().map(|c| self.claim(&raw.id, c));
        Ok(IndexEntry {
            claims: claims.collect::<Result<_, _>>()?,
            id: raw.id,
            title: raw.title,
            mechanism: raw.mechanism,
            cells: raw.cells,
        })
    }

    fn claim(&self, evaluation: &str, raw: RawClaim) -> Result<StatedClaim, EvaluationError> {
        let problem = |expected: &str| {
            let problem = format!("claim `{}`: expected {expected}", raw.text);
            Err(self.invalid(evaluation, problem))
        };
        let parse = |text: &String| {
            Claim::parse(text).map_err(|e| EvaluationError::Claim {
                file: self.file.to_owned(),
                evaluation: evaluation.to_owned(),
                source: Box::new(e),
            })
        };
        let guard = raw.vacuous_unless.as_ref();
        let test = match (&raw.expr, &raw.model_expr, &raw.claim) {
            (Some(printed), Some(model), None) => ClaimTest::Expr(Box::new(CellTest {
                printed: parse(printed)?,
                model: parse(model)?,
                vacuous_unless: guard.map(parse).transpose()?,
            })),
            (None, None, Some(id)) if guard.is_none() => ClaimTest::Prose(id.clone()),
            (Some(_), None, None) => return problem("`model_expr` beside `expr`"),
            (None, ..) => {
                return problem("either `expr` with `model_expr`, or `claim` without either");
            }
            _ => return problem("either `expr` or `claim`"),
        };
        if !raw.counts && raw.note.is_none() {
            return problem("a `note` that says why it does not count");
        }
        Ok(StatedClaim {
            text: raw.text,
            said: raw.said,
            test,
            holds: raw.holds,
            counts: raw.counts,
            note: raw.note,
        })
    }

    /// Claims name cells and prose figures that exist, and say of print what is so.
    fn claims_fit(&self, evaluation: &Evaluation) -> Result<(), EvaluationError> {
        let values = evaluation.cell_values();
        for stated in &evaluation.claims {
            let problem = match &stated.test {
                ClaimTest::Expr(test) => cells_fit(test, stated.holds, &values),
                ClaimTest::Prose(id) => evaluation
                    .prose_figure(id)
                    .is_none()
                    .then(|| format!("no figure in prose is called `{id}`")),
            };
            if let Some(problem) = problem {
                return Err(self.invalid(format!("claim `{}`", stated.text), problem));
            }
        }
        Ok(())
    }
}

/// What is wrong with a claim about cells: a cell that print does not have, or an expression that says something else
/// of print than `holds`.
fn cells_fit(test: &CellTest, holds: bool, values: &CellValues) -> Option<String> {
    test.expressions().find_map(|(field, claim)| {
        let lost = claim
            .cells()
            .into_iter()
            .find(|cell| !values.contains_key(cell));
        if let Some(cell) = lost {
            return Some(format!("{field}: no cell {cell}"));
        }
        let expected = field == "vacuous_unless" || holds;
        let found = claim.judge(|cell| figure(values, cell)).holds();
        (found != Some(expected)).then(|| {
            let found = found.map_or("undecided".to_owned(), |found| found.to_string());
            format!("{field}: expected {expected} on the printed figures, found {found}")
        })
    })
}

/// Values as text, for printing.
fn texts(map: BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    map.into_iter()
        .map(|(key, value)| match value {
            toml::Value::String(text) => (key, text),
            other => (key, other.to_string()),
        })
        .collect()
}
