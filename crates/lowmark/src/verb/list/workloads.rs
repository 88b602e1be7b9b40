//! Workloads that are built in.

use crate::library;
use crate::output::Page;
use lowmark_model::{Refusal, check, unsupported};
use lowmark_report::table::{Align, Field, Role, TextTable};
use lowmark_spec::{BuiltIn, Overrides, parse};
use miette::miette;
use serde::Serialize;
use serde_json::Value;

/// What is said of a workload.
#[derive(Serialize)]
struct Workload {
    name: &'static str,
    title: String,
    /// Combinations of its parameters.
    runs: usize,
    /// Whether the model runs it with the kernel and the machine that it names.
    runs_as_shipped: bool,
    /// Why not, its statements apart: its kernel, a setting, its machine.
    refusal: Option<String>,
    /// Statements that keep it from running on the model.
    unsupported: Vec<String>,
}

fn all() -> miette::Result<Vec<Workload>> {
    library::names().map(describe).collect()
}

fn describe(name: &'static str) -> miette::Result<Workload> {
    let source = library::built_in(name).ok_or_else(|| miette!("{name}: not built in"))?;
    let scenarios = parse(&source, &BuiltIn, &Overrides::default())?;
    let mut statements: Vec<String> = scenarios
        .iter()
        .flat_map(|scenario| unsupported(&scenario.workload))
        .map(|unsupported| unsupported.statement)
        .collect();
    statements.sort();
    statements.dedup();
    let refusals = scenarios
        .iter()
        .filter_map(|scenario| check(scenario).err());
    let refusals: Vec<Refusal> = refusals.collect();
    let of_the_rest = |refusal: &&Refusal| !matches!(refusal, Refusal::Workload(_));
    Ok(Workload {
        runs_as_shipped: refusals.is_empty(),
        refusal: refusals.iter().find(of_the_rest).map(Refusal::to_string),
        name,
        title: scenarios
            .first()
            .map(|scenario| scenario.workload.title.clone())
            .unwrap_or_default(),
        runs: scenarios.len(),
        unsupported: statements,
    })
}

pub(super) fn text(page: &Page) -> miette::Result<String> {
    let mut table = TextTable::new()
        .column("name", Align::Left)
        .column("as shipped", Align::Left)
        .column("title", Align::Left)
        .column("runs", Align::Right);
    let all = all()?;
    for workload in &all {
        let (role, runs) = if workload.runs_as_shipped {
            (Role::Plain, "runs")
        } else {
            (Role::Unknown, "-")
        };
        table.row([
            Field::with_role(workload.name, role),
            Field::with_role(runs, role),
            Field::with_role(workload.title.as_str(), role),
            Field::with_role(workload.runs.to_string(), role),
        ]);
    }
    let mut text = table.render(page.style.as_ref(), page.width);
    let refused: Vec<&Workload> = all.iter().filter(|w| !w.runs_as_shipped).collect();
    if !refused.is_empty() {
        text += "\nNot on the model as they are:\n";
    }
    for workload in refused {
        // What there is instead has lists of its own.
        let refusal = workload.refusal.as_deref();
        let refusal = refusal.map(|text| text.split("; ").next().unwrap_or(text).to_owned());
        let statements = workload.unsupported.join(", ");
        let statements =
            (!statements.is_empty()).then(|| format!("the model cannot carry out {statements}"));
        let reasons: Vec<String> = refusal.into_iter().chain(statements).collect();
        let line = format!("{}: {}", workload.name, reasons.join("; "));
        text += &page.paragraph(&line, 2);
    }
    Ok(text)
}

pub(super) fn json() -> miette::Result<Value> {
    Ok(serde_json::json!(all()?))
}
