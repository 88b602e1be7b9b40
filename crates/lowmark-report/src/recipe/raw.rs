//! Recipes as they are written.

use super::metric::RawMetric;
use super::{
    Compare, DEFAULT_VARIANT, Extra, Measured, Metric, Place, ProseTest, Recipe, RecipeColumn,
    RecipeError, RecipeRow, RecipeTable, Settings, Variant,
};
use crate::cell::CellId;
use crate::claim::Claim;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The version of the format that is understood.
const SCHEMA: u64 = 1;

/// Sections by name, with where they stand.
type Keyed<T> = BTreeMap<Spanned<String>, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecipe {
    lowmark: Spanned<u64>,
    evaluation: String,
    workload: String,
    metric: Spanned<RawMetric>,
    #[serde(default)]
    compare: Compare,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    variant: Keyed<RawVariant>,
    /// Order of columns that are not in print.
    columns: Option<Spanned<Vec<String>>>,
    column: Keyed<RawColumn>,
    #[serde(default)]
    extra: Keyed<RawExtra>,
    table: Keyed<RawTable>,
    #[serde(default)]
    row: Keyed<RawRow>,
    #[serde(default)]
    claim: Keyed<RawClaim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    title: String,
    #[serde(default)]
    set: RawSettings,
    judged: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    kernel: String,
    #[serde(default)]
    set: RawSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExtra {
    kernel: String,
    #[serde(default)]
    set: RawSettings,
    text: String,
    expr: String,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    title: Option<String>,
    workload: Option<String>,
    machine: String,
    #[serde(default)]
    set: RawSettings,
    #[serde(default)]
    rows: Vec<String>,
    metric: Option<Spanned<RawMetric>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    #[serde(default)]
    set: RawSettings,
    metric: Option<Spanned<RawMetric>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    before: Option<String>,
    after: Option<String>,
    expr: Option<String>,
    reason: Option<String>,
    note: Option<String>,
}

/// A parameter's value: text or a number, kept as text because the workload says what it is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Scalar::Bool(value) => value.to_string(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Float(value) => value.to_string(),
            Scalar::Text(value) => value,
        }
    }
}

type RawSettings = BTreeMap<String, Scalar>;

fn settings(raw: RawSettings) -> Settings {
    raw.into_iter()
        .map(|(name, value)| (name, value.text()))
        .collect()
}

/// One file being read.
struct Reader<'a> {
    file: &'a str,
    /// Lines by what stands there.
    lines: BTreeMap<String, usize>,
}

pub(super) fn parse(file: &str, text: &str) -> Result<Recipe, RecipeError> {
    let raw: RawRecipe = toml::from_str(text).map_err(|e| RecipeError::Toml {
        file: file.to_owned(),
        source: Box::new(e),
    })?;
    let lines = raw.lines(text);
    Reader { file, lines }.recipe(raw)
}

impl RawRecipe {
    /// Lines of a text by what stands there: sections as `row Seq`, and values of which errors speak.
    fn lines(&self, text: &str) -> BTreeMap<String, usize> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        fn sections<T>(kind: &str, keyed: &Keyed<T>) -> Vec<(String, usize)> {
            let name =
                |key: &Spanned<String>| (format!("{kind} {}", key.as_ref()), key.span().start);
            keyed.keys().map(name).collect()
        }
        let metrics = |kind: &str, key: &Spanned<String>, metric: &Option<Spanned<RawMetric>>| {
            let metric = metric.as_ref()?;
            Some((
                format!("{kind} {}: metric", key.as_ref()),
                metric.span().start,
            ))
        };
        let of_rows = self
            .row
            .iter()
            .filter_map(|(key, row)| metrics("row", key, &row.metric));
        let tables = self.table.iter();
        let of_tables = tables.filter_map(|(key, table)| metrics("table", key, &table.metric));
        let columns = self.columns.iter();
        let values = [
            ("lowmark".to_owned(), self.lowmark.span().start),
            ("metric".to_owned(), self.metric.span().start),
        ];
        let places = [
            values.to_vec(),
            columns
                .map(|c| ("columns".to_owned(), c.span().start))
                .collect(),
            sections("variant", &self.variant),
            sections("column", &self.column),
            sections("extra", &self.extra),
            sections("table", &self.table),
            sections("row", &self.row),
            sections("claim", &self.claim),
            of_rows.chain(of_tables).collect(),
        ];
        let places = places.into_iter().flatten();
        places.map(|(name, at)| (name, line(at))).collect()
    }
}

/// Sections by name alone.
fn plain<T>(keyed: Keyed<T>) -> BTreeMap<String, T> {
    let pairs = keyed.into_iter();
    pairs
        .map(|(key, value)| (key.into_inner(), value))
        .collect()
}

impl Reader<'_> {
    fn recipe(self, raw: RawRecipe) -> Result<Recipe, RecipeError> {
        let version = *raw.lowmark.as_ref();
        if version != SCHEMA {
            let problem = format!("expected {SCHEMA}, found {version}");
            return Err(self.invalid("lowmark", problem));
        }
        let (column, extra) = (plain(raw.column), plain(raw.extra));
        self.not_empty("column", column.is_empty())?;
        self.not_empty("table", raw.table.is_empty())?;
        let named = raw.table.values().all(|table| table.metric.is_none());
        self.not_empty("row", named && raw.row.is_empty())?;
        if let Some(both) = extra.keys().find(|id| column.contains_key(*id)) {
            return Err(self.invalid(format!("extra {both}"), "is a column already"));
        }
        let extras = extra.into_iter().map(|(id, e)| self.extra(id, e));
        let rows = plain(raw.row).into_iter().map(|(id, r)| self.row(id, r));
        let tables = plain(raw.table).into_iter();
        let tables = tables.map(|(id, t)| self.table(id, t));
        let prose = plain(raw.claim)
            .into_iter()
            .map(|(id, c)| self.prose(id, c));
        let order = raw.columns.map_or_else(Vec::new, Spanned::into_inner);
        Ok(Recipe {
            metric: self.metric("metric", raw.metric.into_inner())?,
            extras: extras.collect::<Result<_, _>>()?,
            rows: rows.collect::<Result<_, _>>()?,
            prose: prose.collect::<Result<_, _>>()?,
            variants: self.variants(plain(raw.variant))?,
            columns: self.in_order(order, column)?,
            tables: tables.collect::<Result<_, _>>()?,
            evaluation: raw.evaluation,
            workload: raw.workload,
            compare: raw.compare,
            notes: raw.notes,
            file: self.file.to_owned(),
            lines: self.lines,
        })
    }

    /// Columns in the order asked for, those that are not named there last.
    fn in_order(
        &self,
        order: Vec<String>,
        raw: BTreeMap<String, RawColumn>,
    ) -> Result<Vec<RecipeColumn>, RecipeError> {
        if let Some(unknown) = order.iter().find(|id| !raw.contains_key(*id)) {
            let problem = format!("there is no [column.{unknown}]");
            return Err(self.invalid("columns", problem));
        }
        let mut columns: Vec<RecipeColumn> = raw
            .into_iter()
            .map(|(id, c)| RecipeColumn {
                id,
                kernel: c.kernel,
                set: settings(c.set),
            })
            .collect();
        let place = |column: &RecipeColumn| order.iter().position(|id| *id == column.id);
        columns.sort_by_key(|column| place(column).unwrap_or(usize::MAX));
        Ok(columns)
    }

    /// A figure in prose: either how it is judged or why it is not.
    fn prose(&self, id: String, raw: RawClaim) -> Result<ProseTest, RecipeError> {
        let field = format!("claim {id}");
        let measured = match (raw.before, raw.after, raw.expr, raw.reason) {
            (Some(before), Some(after), None, None) => Measured::Change {
                before: self.cell(&format!("{field}: before"), &before)?,
                after: self.cell(&format!("{field}: after"), &after)?,
            },
            (None, None, Some(expr), None) => Measured::Value(self.claim(&field, &expr)?),
            (None, None, None, Some(reason)) => Measured::Nothing(reason),
            _ => {
                let problem = "expected either `before` and `after`, or `expr`, or `reason`";
                return Err(self.invalid(field, problem));
            }
        };
        Ok(ProseTest {
            id,
            measured,
            note: raw.note,
        })
    }

    /// A cell as claims write it.
    fn cell(&self, field: &str, text: &str) -> Result<CellId, RecipeError> {
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        inner.and_then(CellId::parse).ok_or_else(|| {
            let problem = format!("expected a cell, `[table::row::column]`, found `{text}`");
            self.invalid(field, problem)
        })
    }

    /// Variants with the default first; without any there is a default that changes nothing.
    fn variants(&self, raw: BTreeMap<String, RawVariant>) -> Result<Vec<Variant>, RecipeError> {
        let mut variants: Vec<Variant> = raw
            .into_iter()
            .map(|(name, v)| Variant {
                name,
                title: v.title,
                set: settings(v.set),
                judged: v.judged.unwrap_or(true),
            })
            .collect();
        if variants.is_empty() {
            let title = "as published".to_owned();
            variants.push(Variant {
                name: DEFAULT_VARIANT.to_owned(),
                title,
                set: Settings::new(),
                judged: true,
            });
        }
        variants.sort_by_key(|v| v.name != DEFAULT_VARIANT);
        if variants[0].name != DEFAULT_VARIANT {
            return Err(self.invalid(
                "variant",
                format!("expected one called `{DEFAULT_VARIANT}`"),
            ));
        }
        if !variants[0].judged {
            let field = format!("variant {DEFAULT_VARIANT}, judged");
            return Err(self.invalid(field, "expected true: claims are judged by this variant"));
        }
        Ok(variants)
    }

    fn extra(&self, id: String, raw: RawExtra) -> Result<Extra, RecipeError> {
        let field = format!("extra {id}");
        let claim = self.claim(&field, &raw.expr)?;
        if !claim.cells().iter().any(|c| c.column == id) {
            return Err(self.invalid(field, format!("expr names no cell of column `{id}`")));
        }
        let (kernel, set, text, note) = (raw.kernel, settings(raw.set), raw.text, raw.note);
        Ok(Extra {
            id,
            kernel,
            set,
            text,
            claim,
            note,
        })
    }

    fn table(&self, id: String, raw: RawTable) -> Result<RecipeTable, RecipeError> {
        let field = format!("table {id}: metric");
        let metric = raw.metric.map(Spanned::into_inner);
        let metric = metric.map(|m| self.metric(&field, m)).transpose()?;
        Ok(RecipeTable {
            id,
            title: raw.title,
            workload: raw.workload,
            machine: raw.machine,
            set: settings(raw.set),
            rows: raw.rows,
            metric,
        })
    }

    fn row(&self, id: String, raw: RawRow) -> Result<RecipeRow, RecipeError> {
        let field = format!("row {id}: metric");
        let metric = raw.metric.map(Spanned::into_inner);
        let metric = metric.map(|m| self.metric(&field, m)).transpose()?;
        Ok(RecipeRow {
            id,
            set: settings(raw.set),
            metric,
        })
    }

    fn metric(&self, field: &str, raw: RawMetric) -> Result<Metric, RecipeError> {
        raw.check().map_err(|problem| self.invalid(field, problem))
    }

    fn claim(&self, field: &str, expr: &str) -> Result<Claim, RecipeError> {
        Claim::parse(expr).map_err(|e| RecipeError::Claim {
            place: self.place(field),
            field: field.to_owned(),
            source: Box::new(e),
        })
    }

    fn not_empty(&self, field: &str, empty: bool) -> Result<(), RecipeError> {
        if empty {
            Err(self.invalid(field, "expected at least one"))
        } else {
            Ok(())
        }
    }

    fn place(&self, field: &str) -> Place {
        Place::of(self.file, &self.lines, field)
    }

    fn invalid(&self, field: impl Into<String>, problem: impl Into<String>) -> RecipeError {
        let field = field.into();
        RecipeError::Invalid {
            place: self.place(&field),
            field,
            problem: problem.into(),
        }
    }
}
