//! `lowmark reproduce`: a published evaluation on the model, its figures side by side with those in print,
//! and every claim judged.

use crate::cli::{Format, Printing, Running};
use crate::output::{self, Page, remark};
use crate::plan::{self, Run};
use crate::verb::list::evaluations;
use crate::{engine, outcome};
use lowmark_report::recipe::{DEFAULT_VARIANT, Evidence, RecipeTable, RunPlan};
use lowmark_report::{CellValues, Reproduction, evaluation, recipe};
use miette::{IntoDiagnostic, miette};

/// Runs a published evaluation and checks every claim made of it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark reproduce swap-readahead-shaohua-2014\n  \
    lowmark reproduce swap-readahead --variant five-passes --out runs\n  \
    lowmark reproduce ioless-dirty-2011 --table dd50\n\n\
    Exit status: 0 if every claim that holds in print holds here, or the variant judges none, else 1; 2 for an error."
)]
pub(crate) struct Args {
    /// Evaluation to run; without it, those that can be run are listed
    evaluation: Option<String>,
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
}

/// Most bytes that runs at the same time are to take together.
const MEMORY: u64 = 1 << 30;

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
        evaluations::print_runnable(args.printing.format)?;
        return Ok(0);
    };
    let evaluation = evaluation::get(id).into_diagnostic()?;
    let recipe = recipe::get(id).into_diagnostic()?;
    let variant = recipe.variant(&args.variant).into_diagnostic()?;
    let mut cells = recipe.cells(&evaluation, &variant.name).into_diagnostic()?;
    if let Some(unknown) = args.tables.iter().find(|name| {
        let known = |table: &RecipeTable| table.id == **name;
        !recipe.tables.iter().any(known)
    }) {
        let known: Vec<&str> = recipe.tables.iter().map(|t| t.id.as_str()).collect();
        return Err(miette!(
            help = format!("its tables: {}", known.join(", ")),
            "--table: {id} has no table called {unknown}"
        ));
    }
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
    let with_events: Vec<bool> = plans
        .iter()
        .map(|plan| {
            cells
                .iter()
                .any(|c| c.run == **plan && c.metric.needs_events())
        })
        .collect();
    let figures = |at: usize, run: Evidence| Figures {
        verdict: outcome::verdict(&run.recording().outcome),
        values: cells
            .iter()
            .filter(|cell| cell.run == *plans[at])
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
    let mut reproduction =
        Reproduction::new(&evaluation, Some(&recipe), &values).of_variant(variant);
    if !args.tables.is_empty() {
        reproduction = reproduction.of_what_was_run();
    }
    match args.printing.format {
        Format::Json => output::print_json(&reproduction.json())?,
        Format::Table => {
            let page = Page::stdout();
            output::print(&reproduction.text(page.style.as_ref(), page.width))?;
        }
    }
    Ok(reproduction.exit_status())
}
