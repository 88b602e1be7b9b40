//! Where the figures of a machine come from: `[sources]`.
//!
//! They are kept as lines of the machine's description behind the first, `NAME: TEXT` each.

use crate::machine::Machine;

use super::error::{Problem, Result};
use super::forms::{key, quoted};
use super::machine::{Description, named, scalar_keys};
use super::scope::Scope;
use super::source::Span;
use super::suggest;
use super::tree::{Node, Value};
use super::write::Writer;

/// Reads `[sources]` into the description.
pub(super) fn read(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    _: &Scope<'_>,
) -> Result<()> {
    let known = known(machine);
    for (name, span, text) in texts(node)? {
        if text.trim().is_empty() {
            let message = format!("expected where `{name}` comes from, found an empty text");
            return Err(Problem::new(
                span,
                message,
                "cite a mail, a data sheet or a measurement",
            ));
        }
        if about(&name, &known).is_none() {
            return Err(Problem::new(
                span,
                format!("found a source for `{name}`, which the machine does not have"),
                suggest::help(&name, known.iter().map(String::as_str)),
            ));
        }
        let line = format!("\n{name}: {}", text.trim());
        machine.description.push_str(&line);
    }
    Ok(())
}

/// Checks that a machine file says of all devices, and of costs if there are any, where they come from.
pub(super) fn check(parts: &Node, machine: &Machine) -> Result<()> {
    let known = known(machine);
    let texts = parts.get("sources").map(texts).transpose()?;
    let texts = texts.unwrap_or_default();
    let cited: Vec<&str> = texts
        .iter()
        .filter_map(|(name, ..)| about(name, &known))
        .collect();
    let costs = parts
        .entries("sections")?
        .iter()
        .filter(|entry| ["costs", "kernel_costs"].contains(&entry.key.as_str()));
    let costs = costs.map(|entry| (entry.key.clone(), entry.key_span));
    let devices = match parts.get("device") {
        Some(node) => named(node, "device")?,
        None => &[],
    };
    let devices = devices
        .iter()
        .map(|entry| (format!("device.{}", entry.key), entry.key_span));
    for (name, span) in costs.chain(devices) {
        if !cited.contains(&name.as_str()) {
            return Err(Problem::new(
                span,
                format!("expected a source for `{name}`, found none"),
                format!("add to [sources]: {name} = \"where the figures come from\""),
            ));
        }
    }
    Ok(())
}

/// Writes `[sources]`.
pub(super) fn write(writer: &mut Writer<'_>) {
    let known = known(writer.machine);
    let (_, mut sources) = split(writer.machine);
    for name in &writer.uncited {
        if !sources
            .iter()
            .any(|(cited, _)| about(cited, &known) == Some(name))
        {
            sources.push((name.clone(), writer.source.to_owned()));
        }
    }
    let line = |(name, text): &(String, String)| format!("{} = {}", key(name), quoted(text));
    let lines: Vec<String> = sources.iter().map(line).collect();
    if !lines.is_empty() {
        writer.section("[sources]", &lines);
    }
}

/// What a machine is, and the sources with their names, as its description has them.
pub(super) fn split(machine: &Machine) -> (String, Vec<(String, String)>) {
    let known = known(machine);
    let mut lines = machine.description.split('\n');
    let mut what = lines.next().unwrap_or_default().to_owned();
    let mut sources: Vec<(String, String)> = Vec::new();
    for line in lines {
        // A key can stand only once: what is said of a name again is taken to go on with what is said before it.
        let source = line.split_once(": ").filter(|(name, text)| {
            let first = sources.iter().all(|(cited, _)| cited != name);
            first && about(name, &known).is_some() && !text.trim().is_empty()
        });
        match (source, sources.last_mut()) {
            (Some((name, text)), _) => sources.push((name.to_owned(), text.to_owned())),
            (None, Some((_, text))) => *text += &format!("\n{line}"),
            (None, None) => what += &format!("\n{line}"),
        }
    }
    (what, sources)
}

/// What a source can be about.
fn known(machine: &Machine) -> Vec<String> {
    let of_all = ["nodes", "swap", "zone", "costs", "kernel_costs"];
    let of_all = scalar_keys().into_iter().chain(of_all).map(str::to_owned);
    let devices = machine.devices.iter();
    let devices = devices.map(|device| format!("device.{}", device.name));
    let filesystems = machine.filesystems.iter();
    let filesystems = filesystems.map(|fs| format!("filesystem.{}", fs.name));
    of_all.chain(devices).chain(filesystems).collect()
}

/// What the source `name` is about: `device.sda.page` is about `device.sda`.
fn about<'k>(name: &str, known: &'k [String]) -> Option<&'k str> {
    let mut known = known.iter().map(String::as_str);
    known.find(|known| {
        name.strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The texts of the section with their dotted names.
fn texts(node: &Node) -> Result<Vec<(String, Span, &str)>> {
    let mut texts = Vec::new();
    flatten(node, "", &mut texts)?;
    Ok(texts)
}

/// Strings of nested tables with their dotted names.
fn flatten<'t>(
    node: &'t Node,
    prefix: &str,
    texts: &mut Vec<(String, Span, &'t str)>,
) -> Result<()> {
    for entry in node.entries("one text for each figure")? {
        let name = format!("{prefix}{}", entry.key);
        match &entry.node.value {
            Value::Text(text) => texts.push((name, entry.node.span, text)),
            _ => flatten(&entry.node, &format!("{name}."), texts)?,
        }
    }
    Ok(())
}
