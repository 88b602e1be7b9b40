//! A reproduction as text.

use super::{CellResult, ClaimResult, ClaimSummary, ErrorSummary, OwnTable, Reproduction, Verdict};
use crate::claim::{Compared, Side};
use crate::evaluation::{Printed, Row, Table};
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
        let mut sections = vec![self.head(style)];
        sections.extend(self.table_texts(style, width));
        sections.extend(self.claim_section("Claims", &self.claims, style));
        let title = "Other figures in prose";
        sections.extend(self.claim_section(title, &self.figures, style));
        let title = "Claims about kernels outside the tables";
        sections.extend(self.claim_section(title, &self.additional_claims, style));
        sections.push(self.summary_text(style));
        sections.join("\n")
    }

    /// Every table of which something was run.
    pub(super) fn table_texts(&self, style: &dyn Style, width: Option<usize>) -> Vec<String> {
        let published = self.evaluation.tables.iter();
        let published = published.filter_map(|t| self.table(t, style, width));
        let run = |table: &&OwnTable| {
            let mut values = table.rows.iter().flat_map(|(.., values)| values);
            values.any(Option::is_some)
        };
        let own = self.own_tables.iter().filter(run);
        let own = own.map(|table| own_table(table, style, width));
        published.chain(own).collect()
    }

    fn head(&self, style: &dyn Style) -> String {
        let title = format!("{}: {}", self.evaluation.id, self.evaluation.title);
        let mut text = format!("{}\n", style.paint(Role::Title, &title));
        if let Some(variant) = &self.variant {
            text.push_str(&format!("variant {}: {}\n", variant.name, variant.title));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        for fitted in &self.fitted {
            text.push_str(&format!(
                "fitted: {} of {} was fitted to {}\n",
                fitted.constant,
                fitted.machine,
                fitted.to.join(", ")
            ));
        }
        text
    }

    /// A table, if the model has a figure for any of its cells.
    fn table(&self, table: &Table, style: &dyn Style, width: Option<usize>) -> Option<String> {
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
        let title = format!("{} ({})", table.name, table.unit);
        Some(format!(
            "{}\n{}",
            style.paint(Role::Title, &title),
            text.render(style, width)
        ))
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

    fn claim_section(
        &self,
        title: &str,
        claims: &[ClaimResult],
        style: &dyn Style,
    ) -> Option<String> {
        let lines: String = claims.iter().map(|c| claim_lines(c, style)).collect();
        (!claims.is_empty()).then(|| format!("{}\n{lines}", style.paint(Role::Title, title)))
    }

    fn summary_text(&self, style: &dyn Style) -> String {
        let summary = &self.summary;
        let mut text = format!("{}\n", style.paint(Role::Title, "Summary"));
        let cells = match self.compare {
            Compare::Values => error_text(summary.cell_errors.as_ref()),
            Compare::Ratios => "absolute figures are not compared".to_owned(),
        };
        text += &format!(
            "cells   {} of {} modelled; {cells}\n",
            summary.modelled, summary.cells
        );
        text += &format!("ratios  {}\n", error_text(summary.ratio_errors.as_ref()));
        if self.evaluation.tables.is_empty() {
            // Figures in prose have no cells.
            text = format!("{}\n", style.paint(Role::Title, "Summary"));
        }
        if !self.is_judged() {
            return text + "claims  are not judged by this variant\n";
        }
        for (name, counts) in self.claim_counts() {
            text += &format!("{name:7} {counts}\n");
        }
        let (role, result) = if summary.claims.count == 0 {
            (Role::Unknown, "no claim counts")
        } else if self.exit_status() == 0 {
            (Role::Good, "the model bears out every claim that counts")
        } else {
            (
                Role::Bad,
                "the model does not bear out every claim that counts",
            )
        };
        text + &style.paint(role, result) + "\n"
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
fn own_table(own: &OwnTable, style: &dyn Style, width: Option<usize>) -> String {
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
    let title = style.paint(Role::Title, &own.title);
    format!("{title}\n{}", text.render(style, width))
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

fn claim_lines(claim: &ClaimResult, style: &dyn Style) -> String {
    let (role, word) = match claim.verdict {
        Verdict::BorneOut => (Role::Good, "borne out   "),
        Verdict::Contradicted => (Role::Bad, "contradicted"),
        Verdict::Vacuous => (Role::Bad, "vacuous     "),
        Verdict::NotCounted => (Role::Unknown, "not counted "),
        Verdict::NotModelled => (Role::Unknown, "not modelled"),
    };
    let mut text = format!("{}  {}\n", style.paint(role, word), claim.text);
    for (name, content) in evidence(claim, &str::to_owned) {
        text += &format!("{:14}{name:5} {content}\n", "");
    }
    text
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
