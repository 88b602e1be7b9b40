//! Workloads that are built in.

use crate::library;
use crate::output::Page;
use lowmark_model::unsupported;
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
    Ok(Workload {
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
        .column("title", Align::Left)
        .column("runs", Align::Right);
    let all = all()?;
    for workload in &all {
        let role = if workload.unsupported.is_empty() {
            Role::Plain
        } else {
            Role::Unknown
        };
        table.row([
            Field::with_role(workload.name, role),
            Field::with_role(workload.title.as_str(), role),
            Field::with_role(workload.runs.to_string(), role),
        ]);
    }
    let mut text = table.render(page.style.as_ref(), page.width);
    text += "\nNot on the model yet, for these statements:\n";
    for workload in all
        .iter()
        .filter(|workload| !workload.unsupported.is_empty())
    {
        let line = format!("{}: {}", workload.name, workload.unsupported.join(", "));
        text += &page.paragraph(&line, 2);
    }
    Ok(text)
}

pub(super) fn json() -> miette::Result<Value> {
    Ok(serde_json::json!(all()?))
}
