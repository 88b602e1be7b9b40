//! Machines that are built in.

use crate::output::Page;
use lowmark_report::table::{Align, TextTable};
use lowmark_spec::{BuiltIn, Library, Machine, parse_machine};
use miette::miette;
use serde_json::{Value, json};

fn all() -> miette::Result<Vec<Machine>> {
    let machine = |name: String| {
        let source = BuiltIn
            .machine(&name)
            .ok_or_else(|| miette!("{name}: not built in"))?;
        Ok(parse_machine(&source)?)
    };
    BuiltIn.machines().into_iter().map(machine).collect()
}

fn swap(machine: &Machine) -> u64 {
    machine.swap.iter().map(|area| area.size).sum()
}

/// Bytes in MiB.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

pub(super) fn text(page: &Page) -> miette::Result<String> {
    let mut table = TextTable::new().column("name", Align::Left);
    for heading in ["nodes", "RAM", "CPUs", "swap"] {
        table = table.column(heading, Align::Right);
    }
    let all = all()?;
    for machine in &all {
        table.row([
            machine.name.clone(),
            machine.nodes.len().to_string(),
            mib(machine.ram()),
            machine.cpus.to_string(),
            mib(swap(machine)),
        ]);
    }
    let mut text = table.render(page.style.as_ref(), page.width);
    for machine in &all {
        text += &format!("\n{}\n", page.title(&machine.name));
        // The first line says what it is, the others where its figures come from.
        for (at, line) in machine.description.lines().enumerate() {
            text += &page.paragraph(line, if at == 0 { 2 } else { 4 });
        }
    }
    Ok(text)
}

pub(super) fn json() -> miette::Result<Value> {
    Ok(json!(all()?))
}
