//! `[fitted]`: which constants of a machine were fitted to published figures, and to which.

use super::error::{Problem, Result};
use super::forms::{key, quoted};
use super::machine::Description;
use super::scope::Scope;
use super::source::Span;
use super::tree::{Node, Value};
use super::write::Writer;
use crate::machine::Machine;

/// Reads the section into the machine. Each constant must stand in another part of the machine or in `[machine]`.
pub(super) fn read(
    node: &Node,
    description: Description<'_>,
    machine: &mut Machine,
    _: &Scope<'_>,
) -> Result<()> {
    let (parts, scalars) = (description.parts, &description.machine.node);
    let mut lists = Vec::new();
    flatten(node, "", &mut lists)?;
    for (name, span, targets) in lists {
        let constant = |root: &Node| {
            let mut path = name.split('.');
            path.try_fold(root, |node, key| node.get(key)).is_some()
        };
        if !constant(parts) && !constant(scalars) {
            return Err(Problem::new(
                span,
                format!("expected a constant of this machine, found `{name}`"),
                "write the name as in the file: device.sda.page, costs.syscall, occupied",
            ));
        }
        let targets = targets.iter().map(target).collect::<Result<Vec<_>>>()?;
        machine.fitted.insert(name, targets);
    }
    Ok(())
}

/// Writes the section.
pub(super) fn write(writer: &mut Writer<'_>) {
    let line = |(name, targets): (&String, &Vec<String>)| {
        let targets: Vec<String> = targets.iter().map(|target| quoted(target)).collect();
        format!("{} = [{}]", key(name), targets.join(", "))
    };
    let lines: Vec<String> = writer.machine.fitted.iter().map(line).collect();
    if !lines.is_empty() {
        writer.section("[fitted]", &lines);
    }
}

/// Lists of nested tables with their dotted names.
fn flatten<'t>(
    node: &'t Node,
    prefix: &str,
    lists: &mut Vec<(String, Span, &'t [Node])>,
) -> Result<()> {
    for entry in node.entries("a list of figures for each constant")? {
        let name = format!("{prefix}{}", entry.key);
        match &entry.node.value {
            Value::Array(targets) if !targets.is_empty() => {
                lists.push((name, entry.key_span, targets));
            }
            Value::Array(_) => {
                return Err(Problem::new(
                    entry.node.span,
                    format!("expected what `{name}` was fitted to, found an empty list"),
                    "write [\"evaluation::table::row\"], or remove the line",
                ));
            }
            _ => flatten(&entry.node, &format!("{name}."), lists)?,
        }
    }
    Ok(())
}

/// `evaluation::table`, with a row and a column if it is about those alone.
fn target(node: &Node) -> Result<String> {
    if let Value::Text(text) = &node.value {
        let parts: Vec<&str> = text.split("::").collect();
        if (2..=4).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty()) {
            return Ok(text.clone());
        }
    }
    Err(Problem::new(
        node.span,
        format!("expected published figures, found {}", node.describe()),
        "write \"evaluation::table\", \"evaluation::table::row\" or \"evaluation::table::row::column\"",
    ))
}
