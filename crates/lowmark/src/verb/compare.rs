//! `lowmark compare`: kernels side by side, from runs or from recordings.

use crate::cli::{Ask, Paging, Running, TableFormat, TablePrinting};
use crate::group::{self, Group};
use crate::library::refuse_empty;
use crate::output;
use crate::page::PageFile;
use crate::verb::report;
use crate::{comparing, engine, outcome, plan, remarks, sweeping};
use lowmark_record::store::RECORDING_FILE;
use lowmark_record::{Recording, Remark};
use lowmark_report::dirty::DirtyFigures;
use lowmark_report::document::{self, Section, separated};
use lowmark_report::reclaim::{ReportColumn, RunContext};
use lowmark_report::sweep::Sweep;
use lowmark_report::table::Role;
use lowmark_report::{Comparison, SeriesRows};
use miette::{IntoDiagnostic, WrapErr, miette};
use serde::Serialize;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Runs a workload on several kernels and prints them side by side, or compares recordings
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark compare swap-small --kernel v3.6 --kernel v3.14\n  \
    lowmark compare swap-small --set page_cluster=0..5 --kernel v3.6 --kernel v3.14\n  \
    lowmark compare runs/a runs/b\n  lowmark compare a.trace.txt.xz b.trace.dat --html compared.html\n\n\
    The first kernel is the baseline; minus is worse. On the model each run is repeated five to ten \
    times, with other seeds and on other boots of the machine; --repeat says how often. With a range or a \
    list of values there is a table for each figure, with the values as its axis. A directory \
    that holds recordings stands for all of them, by name."
)]
pub(crate) struct Args {
    /// A workload, built-in or a path; or directories with recordings; or trace files
    #[arg(required = true, value_name = "WORKLOAD|DIR|TRACE")]
    targets: Vec<String>,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    printing: TablePrinting,
    #[command(flatten)]
    paging: Paging,
}

/// The JSON form.
#[derive(Serialize)]
struct Document {
    version: u32,
    comparisons: Vec<Table>,
    /// The same along what is swept.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<serde_json::Value>,
}

/// A table with what its columns have in common.
#[derive(Serialize)]
struct Table {
    title: String,
    /// What the model has of some columns and not of others, in sentences.
    uneven_coverage: Vec<String>,
    #[serde(flatten)]
    comparison: serde_json::Value,
    incomplete: Vec<Incomplete>,
    /// What the backend left out, see `recording.json`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_modelled: Vec<Remark>,
}

/// A run that did not complete.
#[derive(Serialize)]
struct Incomplete {
    column: String,
    seed: u64,
    verdict: String,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    if args.targets.iter().any(|target| is_trace(target)) {
        return traces(args);
    }
    let printing = &args.printing;
    let swept = sweeping::is_asked(&args.ask, printing.format)?;
    let table = sweeping::create(printing.runs.as_deref())?;
    let page = PageFile::create(&args.paging)?;
    let recordings = match args.targets.as_slice() {
        [target] if !is_recorded(target) => {
            let runs = plan::of_comparison(target, &args.ask)?;
            engine::execute(&runs, &args.running)?
        }
        targets => recorded(targets, args)?,
    };
    sweeping::write(table, &recordings)?;
    let groups = group::groups(&recordings);
    let sweep = swept.then(|| sweeping::sweep(&recordings, &args.ask, true));
    let sections = match &sweep {
        Some(sweep) => vec![sweeping::section(sweep, &recordings, &printing.metrics)?],
        None => sections(&groups, &printing.metrics)?,
    };
    let document = document(args, sections);
    match (printing.format, &sweep) {
        (TableFormat::Json, _) => output::print_json(&Document {
            version: JSON_VERSION,
            comparisons: groups.iter().map(self::table).collect(),
            sweep: sweep.as_ref().map(Sweep::json),
        })?,
        (_, Some(sweep)) => {
            sweeping::warn(&recordings, args.running.quiet);
            sweeping::print(sweep, printing, &document)?;
        }
        (_, None) => output::print_document(&document)?,
    }
    page.write(&document, args.running.quiet)?;
    Ok(outcome::exit_status(&recordings))
}

fn document<'a>(args: &Args, sections: Vec<Section<'a>>) -> document::Document<'a> {
    document::Document {
        name: format!("lowmark compare {}", args.targets.join(" ")),
        sections,
    }
}

/// Whether a target is a trace file: a file that is no workload.
fn is_trace(target: &str) -> bool {
    let workload = crate::library::built_in(target).is_some();
    Path::new(target).is_file() && !workload && !target.ends_with(".toml")
}

/// Traces side by side, and recordings with events among them.
fn traces(args: &Args) -> miette::Result<u8> {
    refuse_flags_of_runs(args)?;
    let page = PageFile::create(&args.paging)?;
    if let TableFormat::Csv | TableFormat::Markdown = args.printing.format {
        return Err(miette!(
            help = "--format table and json print traces side by side",
            "--format csv and markdown have no meaning for traces"
        ));
    }
    let mut read = Vec::new();
    let mut broken = false;
    for target in &crate::traces::targets(&args.targets)? {
        let figures = report::figures(target, RunContext::default())?;
        if !figures.has_events() {
            return Err(crate::traces::no_events(target));
        }
        broken |= report::say(target, &figures, false)?;
        read.push(figures);
    }
    let columns: Vec<ReportColumn<'_>> = read.iter().map(report::Read::column).collect();
    let throttling: Vec<DirtyFigures> = read.iter().map(report::Read::dirty_figures).collect();
    let comparison = Comparison::of_traces(&columns).with_throttling(&throttling);
    let shown = sweeping::only(vec![comparison.clone()], &args.printing.metrics)?;
    let sections = shown.into_iter().map(busy);
    let document = document(args, sections.collect());
    match args.printing.format {
        TableFormat::Json => output::print_json(&Document {
            version: JSON_VERSION,
            comparisons: vec![Table {
                title: "traces".to_owned(),
                uneven_coverage: Vec::new(),
                comparison: comparison.json(),
                incomplete: Vec::new(),
                not_modelled: Vec::new(),
            }],
            sweep: None,
        })?,
        _ => output::print_document(&document)?,
    }
    page.write(&document, args.running.quiet)?;
    Ok(if broken { crate::error::EXIT_STATUS } else { 0 })
}

/// The blocks in which anything happened, and which are left out.
fn busy(comparison: Comparison) -> Section<'static> {
    let (shown, idle) = comparison.without_idle_blocks();
    let mut section = shown.section();
    if !idle.is_empty() {
        section.blank();
        let idle = idle.join("; ");
        section.paragraph(
            format!("Left out, as every row is 0 in all columns: {idle}."),
            0,
        );
    }
    section
}

fn comparison(group: &Group<'_>) -> Comparison {
    Comparison::new(&group.columns, SeriesRows::default())
}

fn sections(groups: &[Group<'_>], metrics: &[String]) -> miette::Result<Vec<Section<'static>>> {
    let figures = sweeping::only(groups.iter().map(comparison).collect(), metrics)?;
    let sections = groups.iter().zip(figures);
    let sections = sections.map(|(group, figures)| section(group, &figures));
    Ok(separated(sections.collect()))
}

fn section(group: &Group<'_>, figures: &Comparison) -> Section<'static> {
    let mut section = Section::titled(&group.title);
    for sentence in uneven_coverage(group) {
        section.paragraph(sentence, 0);
    }
    for Incomplete {
        column,
        seed,
        verdict,
    } in incomplete(group)
    {
        let run = format!("{column}, seed {seed}: ");
        section.stretches([(Role::Plain, run), (Role::Bad, verdict)]);
    }
    remarks::write(recordings_of(group), &mut section);
    section.blank();
    section.append(figures.section());
    section
}

/// What the model has of some columns and not of others.
fn uneven_coverage(group: &Group<'_>) -> Vec<String> {
    let columns = group.columns.iter();
    let first =
        columns.filter_map(|column| Some((column.name.as_str(), *column.recordings.first()?)));
    comparing::uneven_coverage(&first.collect::<Vec<_>>())
}

fn table(group: &Group<'_>) -> Table {
    Table {
        title: group.title.clone(),
        uneven_coverage: uneven_coverage(group),
        comparison: comparison(group).json(),
        incomplete: incomplete(group),
        not_modelled: remarks::of(recordings_of(group))
            .into_iter()
            .cloned()
            .collect(),
    }
}

fn recordings_of<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a Recording> {
    let columns = group.columns.iter();
    columns.flat_map(|column| column.recordings.iter().copied())
}

fn incomplete(group: &Group<'_>) -> Vec<Incomplete> {
    let runs = group.columns.iter().flat_map(|column| {
        let recordings = column.recordings.iter();
        recordings.map(|recording| (column.name.clone(), *recording))
    });
    let incomplete = runs.filter_map(|(column, recording)| {
        Some(Incomplete {
            column,
            seed: recording.run.seed,
            verdict: outcome::verdict(&recording.outcome)?,
        })
    });
    incomplete.collect()
}

/// Whether a target means recordings: a directory, unless a workload has this name and the directory
/// nothing recorded.
fn is_recorded(target: &str) -> bool {
    let path = Path::new(target);
    let workload = crate::library::built_in(target).is_some();
    path.is_dir() && !(workload && below(path).is_ok_and(|found| found.is_empty()))
}

/// The recordings of all targets, in their order.
fn recorded(targets: &[String], args: &Args) -> miette::Result<Vec<Recording>> {
    refuse_flags_of_runs(args)?;
    let mut recordings = Vec::new();
    for target in targets {
        refuse_empty(target)?;
        let path = Path::new(target);
        if !path.is_dir() {
            return Err(miette!(
                help = "give one workload, or only directories that were written with --out",
                "{target}: expected a directory with recordings"
            ));
        }
        let found = below(path)
            .into_diagnostic()
            .wrap_err_with(|| format!("{target}: cannot list"))?;
        if found.is_empty() && path.join(RECORDING_FILE).exists() {
            return Err(crate::traces::no_regular_file(path));
        }
        if found.is_empty() {
            return Err(miette!(
                help = "recordings are written by `lowmark run --out` and `lowmark compare --out`",
                "{target}: no recording in this directory"
            ));
        }
        for directory in found {
            recordings.push(Recording::read_without_events(&directory).into_diagnostic()?);
        }
    }
    Ok(recordings)
}

/// What is over can't be run otherwise.
fn refuse_flags_of_runs(args: &Args) -> miette::Result<()> {
    let running = &args.running;
    let flags = [
        ("--jobs", running.jobs.is_some()),
        ("--out", running.out.is_some()),
    ];
    let flags = flags
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(flag, _)| flag);
    if let Some(flag) = args.ask.given().into_iter().chain(flags).next() {
        return Err(miette!(
            help = "these runs are over; give one workload to run it",
            "{flag} has no meaning for recordings"
        ));
    }
    Ok(())
}

/// The directory itself if it is a recording, else those in it that are, by name.
pub(crate) fn below(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_recording = |path: &Path| path.join(RECORDING_FILE).is_file();
    if is_recording(path) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?.path();
        let hidden = entry
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // Hidden directories are recordings that are being written.
        if !hidden && is_recording(&entry) {
            found.push(entry);
        }
    }
    found.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(found)
}

/// Orders names as people do: numbers by their value, so that v3.6 comes before v3.14.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    while let (Some(c), Some(d)) = (x.chars().next(), y.chars().next()) {
        let order = if c.is_ascii_digit() && d.is_ascii_digit() {
            let (number, rest) = digits(x);
            let (other, other_rest) = digits(y);
            (x, y) = (rest, other_rest);
            number.len().cmp(&other.len()).then(number.cmp(other))
        } else {
            (x, y) = (&x[c.len_utf8()..], &y[d.len_utf8()..]);
            c.cmp(&d)
        };
        if order.is_ne() {
            return order;
        }
    }
    x.len().cmp(&y.len()).then(a.cmp(b))
}

/// The digits at the start without leading zeros, and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_value() {
        let mut names = ["v3.14", "v3.6", "v3.6+x", "seed10", "seed9", "seed09", "a"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["a", "seed09", "seed9", "seed10", "v3.6", "v3.6+x", "v3.14"]
        );
    }
}
