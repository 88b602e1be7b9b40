//! `lowmark run`: a workload, and what happened.

use crate::cli::{Ask, Paging, Running, TableFormat, TablePrinting};
use crate::output;
use crate::page::PageFile;
use crate::plan::{self, Run};
use crate::{engine, guests, outcome, remarks, sweeping};
use lowmark_record::Recording;
use lowmark_report::document::{self, Section, separated};
use lowmark_report::sweep::Sweep;
use lowmark_report::table::{Align, Field, Role, TextTable};
use lowmark_report::{ColumnInput, Comparison, SeriesRows};
use serde::Serialize;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Runs a workload and prints what happened
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark run swap-small --set order=random --kernel v3.14\n  \
    lowmark run my.toml --machine small-512m-ssd --repeat 3 --out runs --events\n  \
    lowmark run swap-small --on guest --image 6.18 --set order=seq\n  \
    lowmark run swap-small --set page_cluster=0..5 --repeat 5 --html swept.html\n\n\
    A workload with several values of a parameter, or several kernels, is several runs. A range such as 0..5, or \
    0..100/20 in steps, or a list such as [256M,512M] makes a table with the values as its axis."
)]
pub(crate) struct Args {
    /// Workload: a built-in one (see `lowmark list workloads`) or a path to a .toml file
    workload: String,
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
struct Document<'a> {
    version: u32,
    /// As `recording.json` has them.
    runs: &'a [Recording],
    /// Means of the repeats along what is swept.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<serde_json::Value>,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let printing = &args.printing;
    let swept = sweeping::is_asked(&args.ask, printing.format)?;
    let runs = plan::of_workload(&args.workload, &args.ask)?;
    let table = sweeping::create(printing.runs.as_deref())?;
    let page = PageFile::create(&args.paging)?;
    let recordings = engine::execute(&runs, &args.running)?;
    sweeping::write(table, &recordings)?;
    let sweep = swept.then(|| sweeping::sweep(&recordings, &args.ask, false));
    let sections = match &sweep {
        Some(sweep) => vec![sweeping::section(sweep, &recordings, &printing.metrics)?],
        None => sections(&runs, &recordings, &printing.metrics)?,
    };
    let document = document::Document {
        name: format!("lowmark run {}", args.workload),
        sections,
    };
    match (printing.format, &sweep) {
        (TableFormat::Json, _) => output::print_json(&Document {
            version: JSON_VERSION,
            runs: &recordings,
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

/// A section for each run with its repeats, which follow each other and have the same title.
fn sections(
    runs: &[Run],
    recordings: &[Recording],
    metrics: &[String],
) -> miette::Result<Vec<Section<'static>>> {
    let titles: Vec<String> = runs.iter().map(Run::title).collect();
    let mut each = Vec::new();
    let mut at = 0;
    for same in titles.chunk_by(|a, b| a == b) {
        each.push((&same[0], &recordings[at..at + same.len()]));
        at += same.len();
    }
    let comparisons = each.iter().map(|(_, repeats)| by_seed(repeats)).collect();
    let comparisons = sweeping::only(comparisons, metrics)?;
    let sections = each.into_iter().zip(comparisons);
    let sections = sections.map(|((title, repeats), figures)| section(title, repeats, &figures));
    Ok(separated(sections.collect()))
}

/// A column for each repeat.
fn by_seed(repeats: &[Recording]) -> Comparison {
    let column = |recording| ColumnInput {
        name: seed(recording),
        recordings: vec![recording],
    };
    let columns: Vec<ColumnInput<'_>> = repeats.iter().map(column).collect();
    Comparison::new(&columns, SeriesRows::default())
}

fn seed(recording: &Recording) -> String {
    format!("seed {}", recording.run.seed)
}

/// A run and its repeats.
fn section(title: &str, repeats: &[Recording], figures: &Comparison) -> Section<'static> {
    let mut section = Section::titled(title);
    for recording in repeats {
        let seconds = recording.elapsed_ns as f64 / 1e9;
        let (role, end) = match outcome::verdict(&recording.outcome) {
            None => (Role::Good, "completed".to_owned()),
            Some(verdict) => (Role::Bad, verdict),
        };
        let run = format!("{}, {seconds:.6} s: ", seed(recording));
        section.stretches([(Role::Plain, run), (role, end)]);
        if let Some(kernel) = guests::describe(recording) {
            section.line(kernel);
        }
    }
    remarks::write(repeats, &mut section);
    for block in &figures.blocks {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("", Align::Left);
        for (name, _) in &figures.columns {
            table = table.column(name.as_str(), Align::Right);
        }
        for row in &block.rows {
            let values = row.values.iter().map(|value| match value {
                Some(value) => Field::from(row.format.text(*value)),
                None => Field::with_role("-", Role::Unknown),
            });
            let names = [row.name.as_str(), row.unit.as_str()].map(Field::from);
            table.row(names.into_iter().chain(values));
        }
        let mut body = Section::new();
        body.table(table);
        section.part(block.title, body);
    }
    section
}
