//! Columns of published evaluations as the ends of a bisection: `EVALUATION:COLUMN`.
//!
//! A recipe says how a cell is run: workload, machine, kernel and settings. Two columns of a table are compared by rows of
//! it, whose cells are the figures, or, where none is named, by all figures of the run.

use crate::between::{End, Pair};
use crate::library::{self, Found};
use lowmark_report::bisect::Cell;
use lowmark_report::recipe::{CellPlan, Evidence, Measure, Recipe, RunPlan};
use lowmark_report::vmstat::ValueFormat;
use lowmark_report::{evaluation, recipe};
use lowmark_spec::BuiltIn;
use miette::{IntoDiagnostic, miette};

/// Digits of a cell that is no count.
const DIGITS: usize = 2;

/// Which cells of the two columns are compared.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Cells {
    /// Of columns of evaluations, the table [default: the only one]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Of columns of evaluations, a row of the table, whose cells are the figure to take apart; given again, one more
    #[arg(long = "row", value_name = "NAME")]
    rows: Vec<String>,
    /// Of columns of evaluations, the variant of the recipe
    #[arg(long, value_name = "NAME", default_value = recipe::DEFAULT_VARIANT)]
    variant: String,
}

impl Cells {
    /// Names of the flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--table", self.table.is_some()),
            ("--row", !self.rows.is_empty()),
            ("--variant", self.variant != recipe::DEFAULT_VARIANT),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        given.map(|(flag, _)| flag).collect()
    }
}

/// Two columns.
pub(crate) struct Columns {
    /// What is run for them.
    pub(crate) pair: Pair,
    /// The cells that are taken apart; all figures if there are none.
    pub(crate) cells: Vec<CellPlan>,
}

/// The columns that `EVALUATION:COLUMN` names, one of `--from` and one of `--to`; none if these are no columns.
pub(crate) fn find(from: &str, to: &str, asked: &Cells) -> miette::Result<Option<Columns>> {
    let split = |end: &str| {
        let (evaluation, column) = end.split_once(':')?;
        Some((evaluation.to_owned(), column.to_owned()))
    };
    let (Some(from), Some(to)) = (split(from), split(to)) else {
        return Ok(None);
    };
    let from = Column::find(&from, "--from", asked)?;
    let to = Column::find(&to, "--to", asked)?;
    if from.run.workload != to.run.workload {
        return Err(miette!(
            help = "choose columns of evaluations that run the same workload",
            "{} runs {} and {} runs {}: a workload cannot be taken apart",
            from.name,
            from.run.workload,
            to.name,
            to.run.workload
        ));
    }
    let source = library::built_in(&from.run.workload)
        .ok_or_else(|| miette!("no built-in workload is called {}", from.run.workload))?;
    let cells = if asked.rows.is_empty() {
        Vec::new()
    } else {
        from.cells
    };
    let end = |name: String, run: RunPlan| End {
        name,
        kernel: run.kernel,
        machine: Some(run.machine),
        set: run.set.into_iter().collect(),
    };
    Ok(Some(Columns {
        pair: Pair {
            found: Found {
                source,
                machines: Box::new(BuiltIn),
            },
            ends: [end(from.name, from.run), end(to.name, to.run)],
        },
        cells,
    }))
}

/// A column of a table, and its run.
struct Column {
    /// `EVALUATION:COLUMN`.
    name: String,
    run: RunPlan,
    /// The cells of that run that were asked for.
    cells: Vec<CellPlan>,
}

impl Column {
    fn find((id, column): &(String, String), flag: &str, asked: &Cells) -> miette::Result<Column> {
        let evaluation = evaluation::get(id).into_diagnostic()?;
        let recipe = recipe::get(id).into_diagnostic()?;
        let mut cells = recipe
            .cells(&evaluation, &asked.variant)
            .into_diagnostic()?;
        known(flag, id, "column", column, &columns(&recipe))?;
        cells.retain(|cell| cell.cell.column == *column);
        let tables = each(&cells, |cell| &cell.cell.table);
        match &asked.table {
            Some(table) => known("--table", id, "table", table, &tables)?,
            None if tables.len() != 1 => return Err(which("--table", id, "tables", &tables)),
            None => {}
        }
        let table = |cell: &CellPlan| asked.table.as_ref().is_none_or(|it| cell.cell.table == *it);
        cells.retain(table);
        let rows = each(&cells, |cell| &cell.cell.row);
        for row in &asked.rows {
            known("--row", id, "row", row, &rows)?;
        }
        if !asked.rows.is_empty() {
            cells.retain(|cell| asked.rows.contains(&cell.cell.row));
        }
        let Some(first) = cells.first() else {
            return Err(which("--row", id, "rows", &rows));
        };
        if cells.iter().any(|cell| cell.run != first.run) {
            return Err(miette!(
                help = format!("rows: {}", rows.join(", ")),
                "--row: the rows of this table of {id} are of runs that differ; name rows of one run"
            ));
        }
        Ok(Column {
            name: format!("{id}:{column}"),
            run: first.run.clone(),
            cells,
        })
    }
}

/// Columns of a recipe, those beyond the published ones as well.
fn columns(recipe: &Recipe) -> Vec<String> {
    let own = recipe.columns.iter().map(|column| &column.id);
    let extras = recipe.extras.iter().map(|extra| &extra.id);
    own.chain(extras).cloned().collect()
}

/// Names that cells have, each once.
fn each<'c>(cells: &'c [CellPlan], name: impl Fn(&'c CellPlan) -> &'c String) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in cells.iter().map(name) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn known(flag: &str, id: &str, what: &str, name: &str, known: &[String]) -> miette::Result<()> {
    if known.iter().any(|it| it == name) {
        Ok(())
    } else {
        Err(miette!(
            help = format!("there are: {}", known.join(", ")),
            "{flag}: {id} has no {what} called {name}"
        ))
    }
}

fn which(flag: &str, id: &str, what: &str, known: &[String]) -> miette::Report {
    miette!(
        help = format!("there are: {}", known.join(", ")),
        "{flag}: {id} has several {what}; name one"
    )
}

/// The cells of a run.
pub(crate) fn measured(cells: &[CellPlan], run: &Evidence) -> Vec<Cell> {
    let cell = |plan: &CellPlan| Cell {
        name: plan.cell.row.clone(),
        unit: plan
            .metric
            .unit
            .map_or(String::new(), |unit| unit.symbol().to_owned()),
        format: match plan.metric.value {
            Measure::Counter => ValueFormat::Count,
            _ => ValueFormat::Decimals(DIGITS),
        },
        value: plan.metric.measure(run, &plan.cell.row),
    };
    cells.iter().map(cell).collect()
}
