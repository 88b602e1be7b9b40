//! Values that are swept: from ranges and lists on the command line to a table with them as its axis.
//!
//! 1. `--set NAME=0..5` stands for as many runs, and so does a value in `--kernel` ([`lowmark_spec::sweep_setting`]).
//! 2. Whatever differs between runs besides their seeds is an axis; of a comparison all but the kernel, whose values are
//!    its columns.
//! 3. `--runs` writes a row for each run, whether or not anything was swept.

use crate::cli::{Ask, TableFormat, TablePrinting};
use crate::group;
use crate::outcome;
use crate::output;
use lowmark_record::Recording;
use lowmark_report::comparison::selected;
use lowmark_report::document::{Document, Section};
use lowmark_report::sweep::{self, Point, Sweep};
use lowmark_report::{Comparison, SeriesRows};
use lowmark_spec::{sweep_kernel, sweep_setting};
use lowmark_trace::export::table::{Column, ParquetTable};
use miette::{IntoDiagnostic, miette};
use std::collections::BTreeSet;
use std::path::Path;

/// Combinations of swept values at most; with as many kernels they are all that a workload may have.
const COMBINATIONS_MAX: usize = 10_000;

/// The same with a kernel for each that its values stand for.
pub(crate) fn with_kernels(ask: &Ask) -> miette::Result<Ask> {
    let mut kernels = Vec::new();
    for text in &ask.kernels {
        kernels.extend(sweep_kernel(text)?);
    }
    Ok(Ask {
        kernels,
        ..ask.clone()
    })
}

/// What `--set` comes to: a list for every combination, the last name turning fastest.
pub(crate) fn settings(set: &[(String, String)]) -> miette::Result<Vec<Vec<(String, String)>>> {
    let mut combinations = vec![Vec::new()];
    for (name, text) in set {
        let values = sweep_setting(name, text)?;
        if combinations.len().saturating_mul(values.len()) > COMBINATIONS_MAX {
            return Err(miette!(
                help = "use a larger step, or sweep fewer names at a time",
                "--set {name}={text}: expected at most {COMBINATIONS_MAX} combinations of swept values"
            ));
        }
        let with = |known: &Vec<(String, String)>| {
            let each = values.iter().map(|value| {
                let own = (name.clone(), value.clone());
                known.iter().cloned().chain([own]).collect()
            });
            each.collect::<Vec<_>>()
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    Ok(combinations)
}

/// Whether runs are to be printed with what differs between them as the axis: something is swept, or the format has no
/// other form.
pub(crate) fn is_asked(ask: &Ask, format: TableFormat) -> miette::Result<bool> {
    let of_kernels = with_kernels(ask)?.kernels.len() > ask.kernels.len();
    let swept = of_kernels || settings(&ask.set)?.len() > 1;
    Ok(swept || matches!(format, TableFormat::Csv | TableFormat::Markdown))
}

/// Runs along what differs between them, what `--set` names first: a column for each kernel where kernels are compared,
/// else one.
pub(crate) fn sweep(recordings: &[Recording], ask: &Ask, compared: bool) -> Sweep {
    let columns = |axis: &String| compared && axis == group::KERNEL;
    let mut axes = group::differing_facts(recordings);
    axes.retain(|axis| !columns(axis));
    let place = |axis: &String| ask.set.iter().position(|(name, _)| name == axis);
    axes.sort_by_key(|axis| place(axis).unwrap_or(usize::MAX));
    let points = group::along(recordings, &axes).into_iter();
    let points = points.map(|(values, own)| Point {
        values,
        comparison: if compared {
            of_kernels(&own)
        } else {
            one_column(&own)
        },
    });
    Sweep {
        points: points.collect(),
        axes,
    }
}

fn one_column(recordings: &[&Recording]) -> Comparison {
    let column = lowmark_report::ColumnInput {
        name: String::new(),
        recordings: recordings.to_vec(),
    };
    Comparison::new(&[column], SeriesRows::default())
}

fn of_kernels(recordings: &[&Recording]) -> Comparison {
    Comparison::new(&group::by_kernel(recordings), SeriesRows::default())
}

/// The tables, to be written, below what all runs have in common.
pub(crate) fn section(
    sweep: &Sweep,
    recordings: &[Recording],
    metrics: &[String],
) -> miette::Result<Section<'static>> {
    let compared = sweep
        .points
        .iter()
        .any(|point| point.comparison.columns.len() > 1);
    let mut section = Section::titled(group::in_common(recordings, &sweep.axes, compared));
    section.line(seeds(recordings));
    section.blank();
    section.append(sweep.section(metrics).map_err(no_metric)?);
    Ok(section)
}

/// With which seeds runs were made, of which each figure is a mean if there are several.
fn seeds(recordings: &[Recording]) -> String {
    let seeds: BTreeSet<u64> = recordings.iter().map(|it| it.run.seed).collect();
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if first < last => format!(
            "each figure the mean of {} runs, with the seeds {first} to {last}",
            seeds.len()
        ),
        (first, _) => format!("seed {}", first.copied().unwrap_or(0)),
    }
}

/// Comparisons with the rows that are asked for alone.
pub(crate) fn only(
    comparisons: Vec<Comparison>,
    metrics: &[String],
) -> miette::Result<Vec<Comparison>> {
    selected::only(comparisons, metrics).map_err(no_metric)
}

fn no_metric(error: String) -> miette::Report {
    miette!(
        help = "write a row as `lowmark compare` prints it",
        "--metric: {error}"
    )
}

/// Prints the tables in a format for people or spreadsheets; `document` has them for people.
pub(crate) fn print(
    sweep: &Sweep,
    printing: &TablePrinting,
    document: &Document<'_>,
) -> miette::Result<()> {
    match printing.format {
        TableFormat::Csv => output::print(&sweep.csv()),
        TableFormat::Markdown => {
            output::print(&sweep.markdown(&printing.metrics).map_err(no_metric)?)
        }
        TableFormat::Table | TableFormat::Json => output::print_document(document),
    }
}

/// Says that runs did not complete, which a table of figures does not.
pub(crate) fn warn(recordings: &[Recording], quiet: bool) {
    for recording in recordings {
        if let Some(verdict) = outcome::verdict(&recording.outcome) {
            let run = &recording.run;
            let text = format!("warning: {}, seed {}: {verdict}", run.kernel, run.seed);
            output::remark(quiet, &text);
        }
    }
}

/// Opens what `--runs` names.
pub(crate) fn create(path: Option<&Path>) -> miette::Result<Option<ParquetTable>> {
    path.map(ParquetTable::create).transpose().into_diagnostic()
}

/// Writes a row for each run.
pub(crate) fn write(table: Option<ParquetTable>, recordings: &[Recording]) -> miette::Result<()> {
    let Some(table) = table else {
        return Ok(());
    };
    let text = |of: &dyn Fn(&Recording) -> Option<String>| {
        Column::Text(recordings.iter().map(of).collect())
    };
    let mut columns: Vec<(String, Column)> = vec![
        ("workload".into(), text(&|it| Some(it.run.workload.clone()))),
        ("machine".into(), text(&|it| Some(it.run.machine.clone()))),
        ("kernel".into(), text(&|it| Some(it.run.kernel.clone()))),
        ("backend".into(), text(&|it| Some(it.run.backend.clone()))),
        (
            "seed".into(),
            Column::Whole(recordings.iter().map(|it| Some(it.run.seed)).collect()),
        ),
        ("verdict".into(), text(&|it| outcome::verdict(&it.outcome))),
    ];
    let params = recordings.iter().flat_map(|it| &it.run.params);
    for name in names(params.map(|(name, _)| name)) {
        let value = |it: &Recording| {
            let found = it.run.params.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        // A column has one name, and a parameter may be called like one of these.
        let taken = columns.iter().any(|(known, _)| *known == name);
        let heading = if taken {
            format!("param.{name}")
        } else {
            name.clone()
        };
        columns.push((heading, text(&value)));
    }
    let figures: Vec<Vec<(String, f64)>> = recordings.iter().map(sweep::figures).collect();
    for name in names(figures.iter().flatten().map(|(name, _)| name)) {
        let value = |own: &Vec<(String, f64)>| {
            let found = own.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        let values = figures.iter().map(value).collect();
        columns.push((name.clone(), Column::Number(values)));
    }
    table
        .write(env!("CARGO_PKG_VERSION"), &columns)
        .into_diagnostic()
}

/// Names, each once, in the order in which they first appear.
fn names<'n>(all: impl Iterator<Item = &'n String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_turns_fastest() {
        let set = [("a", "0..1"), ("b", "7"), ("c", "[x,y]")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let values: Vec<String> = settings(&set)
            .expect("combinations")
            .iter()
            .map(|own| own.iter().map(|(_, value)| value.as_str()).collect())
            .collect();
        assert_eq!(values, ["07x", "07y", "17x", "17y"]);
        let large = [("a", "0..999"), ("b", "0..99")];
        let large = large.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(settings(&large).is_err());
    }
}
