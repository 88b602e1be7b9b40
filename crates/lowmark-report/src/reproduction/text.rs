//! A reproduction as a section of blocks.

use super::{CellResult, ClaimResult, ClaimSummary, ErrorSummary, OwnTable, Reproduction, Verdict};
use crate::claim::{Compared, Side};
use crate::document::Section;
use crate::evaluation::{Printed, Row, Table};
use crate::plot::{Plot, Shares};
use crate::recipe::Compare;
use crate::table::{Align, Field, Role, Style, TextTable};

/// Comparisons printed of one claim; JSON has all of them.
const COMPARISONS_MAX: usize = 6;

/// Significant digits of a measured number, if they suffice.
const DIGITS_MIN: i32 = 4;

/// Significant digits beyond which there is nothing to see.
const DIGITS_MAX: i32 = 12;

/// An error beyond this share is marked as bad: a tenth of what is measured.
const LARGE_ERROR: f64 = 0.1;

impl Reproduction {
    /// The reproduction as text: every table with published and modelled figures one above the other,
    /// a line for every claim, and a summary. Wider than `width`, tables go on in further bands.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// The same, to be written.
    pub fn section(&self) -> Section<'static> {
        let mut section = self.head();
        section.answer(self.answer());
        section.plots.extend(self.shares());
        for table in self.tables() {
            section.blank();
            section.append(table);
        }
        section.part("Claims", claims(&self.claims));
        section.part("Other figures in prose", claims(&self.figures));
        section.part(
            "Claims about kernels outside the tables",
            claims(&self.additional_claims),
        );
        section.part("Summary", self.summary_lines());
        section
    }

    /// Every table of which something was run.
    pub(super) fn tables(&self) -> Vec<Section<'static>> {
        let published = self.evaluation.tables.iter();
        let published = published.filter_map(|t| self.table(t));
        let run = |table: &&OwnTable| {
            let mut values = table.rows.iter().flat_map(|(.., values)| values);
            values.any(Option::is_some)
        };
        let own = self.own_tables.iter().filter(run);
        published.chain(own.map(own_table)).collect()
    }

    /// What came of it.
    fn answer(&self) -> String {
        let claims = &self.summary.claims;
        if !self.is_judged() {
            "This variant judges no claim.".to_owned()
        } else {
            format!(
                "{} of {} claims that count are borne out, {} contradicted; {}.",
                claims.borne_out,
                claims.count,
                claims.contradicted,
                self.verdict().1
            )
        }
    }

    /// How the claims came out.
    fn shares(&self) -> Option<Plot> {
        let verdicts = [
            Verdict::BorneOut,
            Verdict::Contradicted,
            Verdict::Vacuous,
            Verdict::NotModelled,
            Verdict::NotCounted,
        ];
        let part = |verdict: Verdict| {
            let (role, word) = looks(verdict);
            let own = self.claims.iter().filter(|claim| claim.verdict == verdict);
            (word.trim_end().to_owned(), own.count(), role)
        };
        (self.is_judged() && !self.claims.is_empty()).then(|| {
            Plot::Shares(Shares {
                title: format!("Verdicts on {} claims", self.claims.len()),
                parts: verdicts.map(part).into(),
            })
        })
    }

    fn head(&self) -> Section<'static> {
        let mut section =
            Section::titled(format!("{}: {}", self.evaluation.id, self.evaluation.title));
        if let Some(variant) = &self.variant {
            section.line(format!("variant {}: {}", variant.name, variant.title));
        }
        for note in &self.notes {
            section.line(format!("note: {note}"));
        }
        for fitted in &self.fitted {
            section.line(format!(
                "fitted: {} of {} was fitted to {}",
                fitted.constant,
                fitted.machine,
                fitted.to.join(", ")
            ));
        }
        section
    }

    /// A table, if the model has a figure for any of its cells.
    fn table(&self, table: &Table) -> Option<Section<'static>> {
        let cells: Vec<&CellResult> = self
            .cells
            .iter()
            .filter(|c| c.cell.table == table.id)
            .collect();
        if cells.iter().all(|c| c.model.is_none()) {
            return None;
        }
        let mut text = TextTable::new()
            .column("", Align::Left)
            .column("", Align::Left);
        for column in &table.columns {
            text = text.column(column.as_str(), Align::Right);
        }
        for row in &table.rows {
            let cells: Vec<&CellResult> = cells
                .iter()
                .copied()
                .filter(|c| c.cell.row == row.name)
                .collect();
            if cells.iter().any(|c| c.model.is_some()) {
                self.row_lines(&mut text, &row.name, &cells);
                percent_lines(&mut text, table, row, &cells);
            }
        }
        let mut section = Section::titled(format!("{} ({})", table.name, table.unit));
        section.table(text);
        Some(section)
    }

    fn row_lines(&self, text: &mut TextTable, name: &str, cells: &[&CellResult]) {
        let mut line = |first: &str, second: &str, field: &dyn Fn(&CellResult) -> Field| {
            let names = [Field::from(first), Field::from(second)];
            text.row(names.into_iter().chain(cells.iter().map(|c| field(c))));
        };
        line(name, "published", &|c| match c.published {
            Some(printed) => Field::from(printed.text()),
            None => unknown(),
        });
        line("", "model", &model_field);
        if self.compare == Compare::Values {
            line("", "error", &|c| error_field(c.ratio_error));
        }
        line("", "error of ratio", &|c| {
            let baseline = cells.first().is_some_and(|first| first.cell == c.cell);
            if baseline {
                Field::from("")
            } else {
                error_field(c.baseline_ratio_error)
            }
        });
    }

    fn summary_lines(&self) -> Section<'static> {
        let mut section = Section::new();
        let summary = &self.summary;
        // Figures in prose have no cells.
        if !self.evaluation.tables.is_empty() {
            let cells = match self.compare {
                Compare::Values => error_text(summary.cell_errors.as_ref()),
                Compare::Ratios => "absolute figures are not compared".to_owned(),
            };
            section.line(format!(
                "cells   {} of {} modelled; {cells}",
                summary.modelled, summary.cells
            ));
            section.line(format!(
                "ratios  {}",
                error_text(summary.ratio_errors.as_ref())
            ));
        }
        if !self.is_judged() {
            section.line("claims  are not judged by this variant");
            return section;
        }
        for (name, counts) in self.claim_counts() {
            section.line(format!("{name:7} {counts}"));
        }
        let (role, result) = self.verdict();
        section.stretches([(role, result.to_owned())]);
        section
    }

    /// What the claims say of the model.
    fn verdict(&self) -> (Role, &'static str) {
        if self.summary.claims.count == 0 {
            (Role::Unknown, "no claim counts")
        } else if self.exit_status() == 0 {
            (Role::Good, "the model bears out every claim that counts")
        } else {
            (
                Role::Bad,
                "the model does not bear out every claim that counts",
            )
        }
    }
}

impl Reproduction {
    /// How many claims of each kind came out how, of the kinds that there are.
    pub(super) fn claim_counts(&self) -> Vec<(&'static str, String)> {
        let mut counts = vec![("claims", claims_text(self.summary.claims))];
        if !self.figures.is_empty() {
            counts.push(("figures", claims_text(ClaimSummary::of(&self.figures))));
        }
        if self.summary.additional_claims.total > 0 {
            counts.push(("others", claims_text(self.summary.additional_claims)));
        }
        counts
    }
}

/// A table that is not in print.
fn own_table(own: &OwnTable) -> Section<'static> {
    let mut text = TextTable::new()
        .column("", Align::Left)
        .column("", Align::Left);
    for column in &own.columns {
        text = text.column(column.as_str(), Align::Right);
    }
    for (name, unit, values) in &own.rows {
        let names = [name.as_str(), unit].map(Field::from);
        let values = values.iter().map(|value| match value {
            Some(value) => Field::from(significant(*value, DIGITS_MIN)),
            None => unknown(),
        });
        text.row(names.into_iter().chain(values));
    }
    let mut section = Section::titled(&own.title);
    section.table(text);
    section
}

/// The percentages printed beside a row, and those of the model by the same rule.
fn percent_lines(text: &mut TextTable, table: &Table, row: &Row, cells: &[&CellResult]) {
    let (Some(rule), Some(printed)) = (table.pct_rule, &row.pct) else {
        return;
    };
    let field = |percent: Option<f64>, decimals: usize| match percent.filter(|p| !p.is_nan()) {
        Some(percent) => Field::from(format!("{percent:.decimals$}%")),
        None => unknown(),
    };
    let decimals = |percent: &Printed| percent.decimals.unwrap_or(0);
    let names = |name: &str| [Field::from(""), Field::from(name)].into_iter();
    let published = printed.iter().map(|p| field(Some(p.value), decimals(p)));
    text.row(names("published %").chain(published));
    let baseline = cells.first().and_then(|cell| cell.model);
    let model = cells.iter().zip(printed).map(|(cell, p)| {
        let percent = cell.model.zip(baseline);
        field(
            percent.map(|(value, baseline)| rule.percent(value, baseline)),
            decimals(p),
        )
    });
    text.row(names("model %").chain(model));
}

fn unknown() -> Field {
    Field::with_role("-", Role::Unknown)
}

/// The model's figure with the precision of the printed one.
fn model_field(cell: &CellResult) -> Field {
    let Some(model) = cell.model else {
        return unknown();
    };
    let decimals = cell.published.map_or(2, |p| p.decimals.unwrap_or(0));
    Field::from(format!("{model:.decimals$}"))
}

fn error_field(error: Option<f64>) -> Field {
    let Some(error) = error else { return unknown() };
    let role = if error.abs() > LARGE_ERROR {
        Role::Bad
    } else {
        Role::Plain
    };
    Field::with_role(format!("{:+.1}%", 100.0 * error), role)
}

/// A verdict in words of the same length, and its looks.
fn looks(verdict: Verdict) -> (Role, &'static str) {
    match verdict {
        Verdict::BorneOut => (Role::Good, "borne out   "),
        Verdict::Contradicted => (Role::Bad, "contradicted"),
        Verdict::Vacuous => (Role::Bad, "vacuous     "),
        Verdict::NotCounted => (Role::Unknown, "not counted "),
        Verdict::NotModelled => (Role::Unknown, "not modelled"),
    }
}

/// A line for every claim, with what its verdict rests on below.
fn claims(claims: &[ClaimResult]) -> Section<'static> {
    let mut section = Section::new();
    for claim in claims {
        let (role, word) = looks(claim.verdict);
        let text = (Role::Plain, format!("  {}", claim.text));
        section.stretches([(role, word.to_owned()), text]);
        for (name, content) in evidence(claim, &str::to_owned) {
            section.line(format!("{:14}{name:5} {content}", ""));
        }
    }
    section
}

/// What a verdict rests on: lines with their names. Numbers and expressions are as `quote` makes them.
pub(super) fn evidence(
    claim: &ClaimResult,
    quote: &dyn Fn(&str) -> String,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &'static str, content: String| lines.push((name, content));
    let denial = if claim.published_holds {
        ""
    } else {
        " (does not bear it out)"
    };
    let numbers = |compared: &[Compared]| quote(&numbers(compared));
    if !claim.published.is_empty() {
        line("print", format!("{}{denial}", numbers(&claim.published)));
    }
    if !claim.model.is_empty() {
        line("model", numbers(&claim.model));
    }
    if !claim.missing.is_empty() {
        line("model", missing(claim, quote));
    }
    if claim.verdict == Verdict::NotModelled && claim.missing.is_empty() {
        let why = match &claim.reason {
            Some(reason) => format!("not measured: {reason}"),
            None => "no cell stands for this figure".to_owned(),
        };
        line("model", why);
    }
    if claim.verdict == Verdict::Vacuous {
        let guard = claim.vacuous_unless.as_deref().unwrap_or_default();
        let why = format!(
            "it would show something only if {}; here {}",
            quote(guard),
            numbers(&claim.guard)
        );
        line("why", why);
    }
    if let Some(note) = &claim.note {
        line("note", note.clone());
    }
    lines
}

fn missing(claim: &ClaimResult, quote: &dyn Fn(&str) -> String) -> String {
    let first = claim.missing.first();
    let first = first.map_or(String::new(), |cell| quote(&cell.to_string()));
    match claim.missing.len() {
        1 => format!("no figure for {first}"),
        more => format!("no figure for {first} and {} more", more - 1),
    }
}

fn numbers(compared: &[Compared]) -> String {
    let shown = compared.iter().take(COMPARISONS_MAX);
    let mut parts: Vec<String> = shown.map(comparison).collect();
    if compared.len() > COMPARISONS_MAX {
        parts.push(format!("and {} more", compared.len() - COMPARISONS_MAX));
    }
    parts.join(", ")
}

/// A comparison with as many digits as it takes to see why it holds or does not.
pub(super) fn comparison(compared: &Compared) -> String {
    let (left, right) = (&compared.left, &compared.right);
    let mut texts = (String::new(), String::new());
    for digits in DIGITS_MIN..=DIGITS_MAX {
        texts = (side(left, digits), side(right, digits));
        let order = |text: &str, side: &Side| {
            if side.constant {
                Some(side.value)
            } else {
                text.parse().ok()
            }
        };
        let shown: Option<f64> = order(&texts.0, left);
        let seen = shown
            .zip(order(&texts.1, right))
            .map(|(l, r): (f64, f64)| l.partial_cmp(&r));
        if seen == Some(left.value.partial_cmp(&right.value)) {
            break;
        }
    }
    format!("{} {} {}", texts.0, compared.op, texts.1)
}

/// A threshold as it was written, a measured number with this many significant digits.
fn side(side: &Side, digits: i32) -> String {
    if side.constant {
        side.text.clone()
    } else {
        significant(side.value, digits)
    }
}

fn significant(value: f64, digits: i32) -> String {
    let whole = value.fract() == 0.0 && value.abs() < 1e15;
    if whole || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() < 1e-6 {
        return format!("{value:.3e}");
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    let decimals = usize::try_from(digits - before_point).unwrap_or(0);
    format!("{value:.decimals$}")
}

pub(super) fn error_text(errors: Option<&ErrorSummary>) -> String {
    match errors {
        None => "no errors to measure".to_owned(),
        Some(e) => format!(
            "|error| of {}: median {:.1}%, worst {:.1}% at {}",
            e.count,
            100.0 * e.median,
            100.0 * e.worst,
            e.worst_cell
        ),
    }
}

fn claims_text(claims: ClaimSummary) -> String {
    let ClaimSummary {
        total,
        count,
        judged,
        borne_out,
        contradicted,
        vacuous,
        not_modelled,
    } = claims;
    let of = if count == total {
        format!("{count}")
    } else {
        format!("{count} of {total} count")
    };
    format!(
        "{of}: {judged} judged, {borne_out} borne out, {contradicted} contradicted, {vacuous} vacuous, \
         {not_modelled} not modelled"
    )
}
