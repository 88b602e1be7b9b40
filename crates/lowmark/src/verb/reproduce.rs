//! `lowmark reproduce`: a published evaluation on the model, its figures side by side with those in print,
//! and every claim judged; or all of them, and a page of the documentation for each.

mod pages;

use crate::cli::{Format, Paging, Printing, Running};
use crate::output::{self, remark};
use crate::page::PageFile;
use crate::plan::{self, Run};
use crate::verb::list::evaluations;
use crate::{engine, outcome};
use lowmark_report::document::{Document, Section};
use lowmark_report::evaluation::IndexEntry;
use lowmark_report::recipe::{CellPlan, DEFAULT_VARIANT, Evidence, Recipe, RecipeTable, RunPlan};
use lowmark_report::reproduction::{Fitted, MachineUsed, Overview, Row};
use lowmark_report::table::counted;
use lowmark_report::{CellValues, Reproduction, evaluation, recipe};
use miette::{IntoDiagnostic, miette};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Runs a published evaluation and checks every claim made of it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark reproduce swap-readahead-shaohua-2014\n  \
    lowmark reproduce swap-readahead --variant five-passes --out runs\n  \
    lowmark reproduce ioless-dirty-2011 --table dd50\n  \
    lowmark reproduce --all --write docs/evaluations\n  \
    lowmark reproduce swap-readahead-shaohua-2014 --html shaohua.html\n\n\
    Exit status: 0 if every claim that counts is borne out, or the variant judges none, else 1; 2 for an error."
)]
pub(crate) struct Args {
    /// Evaluation to run; without it, those that can be run are listed
    #[arg(conflicts_with = "all")]
    evaluation: Option<String>,
    /// Every evaluation that has a recipe, and a table over all that were published
    #[arg(long, conflicts_with_all = ["variant", "tables"])]
    all: bool,
    /// Writes a page for each evaluation that is run into DIR; with --all also the page over all of them, and pages of
    /// evaluations that are no more are removed
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seed", "format"])]
    write: Option<PathBuf>,
    /// Variant of its recipe
    #[arg(long, value_name = "NAME", default_value = DEFAULT_VARIANT)]
    variant: String,
    /// Only this table of the recipe, and the claims for which it is enough; repeat it for several
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Seed of all random choices
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// Most bytes that runs at the same time are to take together, by estimate: two machines of 64 GB (0.7 GB each), or the
/// largest run of a recipe (1.6 million files in 4 GB, 1.2 GB) and a small one beside it.
const MEMORY: u64 = 1536 << 20;

/// What is kept of a run.
struct Figures {
    /// What went wrong.
    verdict: Option<String>,
    /// Its cells.
    values: CellValues,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let Some(id) = &args.evaluation else {
        if args.all {
            return all(args);
        }
        if args.write.is_some() {
            return Err(miette!(
                help = "lowmark reproduce --all --write DIR, or name an evaluation",
                "--write: of which evaluation?"
            ));
        }
        if args.paging.html.is_some() {
            return Err(miette!(
                help = "lowmark reproduce --all --html FILE, or name an evaluation",
                "--html: of which evaluation?"
            ));
        }
        evaluations::print_runnable(args.printing.format)?;
        return Ok(0);
    };
    if let Some(dir) = &args.write {
        pages::prepare(dir)?;
    }
    let page = PageFile::create(&args.paging)?;
    let result = reproduce(id, args)?;
    let document = document(id, vec![result.section()]);
    page.write(&document, args.running.quiet)?;
    if let Some(dir) = &args.write {
        let (name, text) = pages::of_evaluation(&result);
        pages::write(dir, &name, &text)?;
        remark(
            args.running.quiet,
            &format!("{} written", dir.join(name).display()),
        );
        return Ok(result.exit_status());
    }
    match args.printing.format {
        Format::Json => output::print_json(&result.json())?,
        Format::Table => output::print_document(&document)?,
    }
    Ok(result.exit_status())
}

fn document<'a>(name: &str, sections: Vec<Section<'a>>) -> Document<'a> {
    Document {
        name: format!("lowmark reproduce {name}"),
        sections,
    }
}

/// Runs every evaluation that has a recipe; the others count with their claims.
fn all(args: &Args) -> miette::Result<u8> {
    if let Some(dir) = &args.write {
        pages::prepare(dir)?;
    }
    let index = evaluation::index().into_diagnostic()?;
    let mut written = BTreeMap::new();
    let mut documents: Vec<Value> = Vec::new();
    let mut rows = Vec::new();
    let page = PageFile::create(&args.paging)?;
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut status = 0;
    for entry in &index {
        let run = recipe::ids().any(|id| id == entry.id);
        let result = if run {
            reproduce(&entry.id, args)?
        } else {
            not_run(entry)?
        };
        rows.push(Row::new(entry, &result, run));
        if !run {
            continue;
        }
        status = status.max(result.exit_status());
        match (&args.write, args.printing.format) {
            (Some(_), _) => written.extend([pages::of_evaluation(&result)]),
            (None, Format::Json) => documents.push(result.json()),
            (None, Format::Table) => {
                let own = document(&entry.id, vec![result.section()]);
                output::print_document(&own)?;
                output::print("\n")?;
            }
        }
        if page.is_asked() {
            sections.push(result.section());
        }
    }
    let overview = Overview::new(rows);
    sections.insert(0, overview.section());
    page.write(&document("--all", sections), args.running.quiet)?;
    if let Some(dir) = &args.write {
        written.insert(pages::INDEX.to_owned(), pages::overview(&overview, &index));
        let removed = pages::write_all(dir, &written)?;
        let text = format!(
            "{} in {}",
            counted(written.len() as u64, "page"),
            dir.display()
        );
        remark(args.running.quiet, &text);
        for path in removed {
            let text = format!("{}: removed, no evaluation has this page", path.display());
            remark(args.running.quiet, &text);
        }
        return Ok(status);
    }
    match args.printing.format {
        Format::Json => {
            let document = json!({ "version": 1, "overview": overview, "evaluations": documents });
            output::print_json(&document)?;
        }
        Format::Table => {
            output::print_document(&document("--all", vec![overview.section()]))?;
        }
    }
    Ok(status)
}

/// An evaluation that nobody can run: its claims without a figure of the model.
fn not_run(entry: &IndexEntry) -> miette::Result<Reproduction> {
    let evaluation = evaluation::get(&entry.id).into_diagnostic()?;
    Ok(Reproduction::new(&evaluation, None, &CellValues::new()))
}

/// Runs an evaluation.
fn reproduce(id: &str, args: &Args) -> miette::Result<Reproduction> {
    let evaluation = evaluation::get(id).into_diagnostic()?;
    let recipe = recipe::get(id).into_diagnostic()?;
    let variant = recipe.variant(&args.variant).into_diagnostic()?;
    let mut cells = recipe.cells(&evaluation, &variant.name).into_diagnostic()?;
    check_tables(id, &recipe, &args.tables)?;
    if !args.tables.is_empty() {
        cells.retain(|cell| args.tables.contains(&cell.cell.table));
    }

    let mut plans: Vec<&RunPlan> = Vec::new();
    for cell in &cells {
        if !plans.contains(&&cell.run) {
            plans.push(&cell.run);
        }
    }
    let runs = plans
        .iter()
        .map(|plan| plan::of_recipe(plan, args.seed))
        .collect::<miette::Result<Vec<Run>>>()?;
    let cells_of = |at: usize| {
        let plan = plans[at];
        cells.iter().filter(move |cell| cell.run == *plan)
    };
    let needs_events = |at| cells_of(at).any(|cell: &CellPlan| cell.metric.needs_events());
    let with_events: Vec<bool> = (0..plans.len()).map(needs_events).collect();
    let figures = |at: usize, run: Evidence| Figures {
        verdict: outcome::verdict(&run.recording().outcome),
        values: cells_of(at)
            .map(|c| (c.cell.clone(), c.metric.measure(&run, &c.cell.row)))
            .collect(),
    };
    let results = engine::execute_and_make(&runs, &args.running, &with_events, MEMORY, &figures)?;
    let mut values = CellValues::new();
    for (run, result) in runs.iter().zip(results) {
        if let Some(verdict) = result.verdict {
            remark(args.running.quiet, &format!("{}: {verdict}", run.name));
        }
        values.extend(result.values);
    }
    let (machines, fitted) = machines(id, &runs);
    let result = Reproduction::new(&evaluation, Some(&recipe), &values)
        .of_variant(variant)
        .on_machines(machines, fitted);
    Ok(if args.tables.is_empty() {
        result
    } else {
        result.of_what_was_run()
    })
}

fn check_tables(id: &str, recipe: &Recipe, asked: &[String]) -> miette::Result<()> {
    let known = |name: &str| recipe.tables.iter().any(|t: &RecipeTable| t.id == name);
    match asked.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(unknown) => {
            let known: Vec<&str> = recipe.tables.iter().map(|t| t.id.as_str()).collect();
            Err(miette!(
                help = format!("its tables: {}", known.join(", ")),
                "--table: {id} has no table called {unknown}"
            ))
        }
    }
}

/// The machines of the runs in the order of their first use, and which of their constants were fitted to figures of
/// this evaluation.
fn machines(id: &str, runs: &[Run]) -> (Vec<MachineUsed>, Vec<Fitted>) {
    let mut used: Vec<MachineUsed> = Vec::new();
    let mut fitted = Vec::new();
    for run in runs {
        let machine = &run.scenario.machine;
        if used.iter().any(|known| known.name == machine.name) {
            continue;
        }
        used.push(MachineUsed {
            name: machine.name.clone(),
            // The lines after the first say where its constants come from.
            description: machine
                .description
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        });
        for (constant, targets) in &machine.fitted {
            let own = |target: &String| Some(target.strip_prefix(id)?.strip_prefix("::")?.into());
            let to: Vec<String> = targets.iter().filter_map(own).collect();
            if !to.is_empty() {
                fitted.push(Fitted {
                    machine: machine.name.clone(),
                    constant: constant.clone(),
                    to,
                });
            }
        }
    }
    (used, fitted)
}
