//! What the command line changes in a file.

use crate::kernel::{SYSCTLS, setting_name};

use super::device::device_keys;
use super::error::{Problem, Problems, Result};
use super::exact::{Quantity, Unit};
use super::machine::{file_system_keys, scalar_keys};
use super::scope::Scope;
use super::source::{Sources, Span};
use super::suggest;
use super::sysctl;
use super::tree::{Entry, Node, Value, shorten};

/// Changes to a workload from outside of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// A machine by name, in place of the file's whole `[machine]`.
    pub machine: Option<String>,
    /// Kernels in place of the file's `kernel.use`, unless empty. The file's sysctls stay, and those
    /// that a kernel names itself win.
    pub kernels: Vec<String>,
    /// Values by name: a `for` or `let` name, `machine.FIELD`, `device.NAME.FIELD`, `filesystem.NAME.FIELD`,
    /// `kernel.sysctl.NAME`, or `FIELD` and `NAME` alone.
    pub set: Vec<(String, String)>,
    /// Seed in place of the file's.
    pub seed: Option<u64>,
}

/// The `--set`s, sorted by what they change.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `for` parameters that have one value now.
    pub(crate) params: Vec<(String, Node)>,
    /// `let` values that are replaced.
    pub(crate) lets: Vec<(String, Node)>,
    /// Fields of `[machine]`, as a section of their own.
    pub(crate) machine: Option<Entry>,
    /// Sysctls.
    pub(crate) sysctl: Vec<(String, Node)>,
}

/// The names that a file gives a meaning to.
pub(crate) struct Names<'t> {
    pub(crate) params: &'t [Entry],
    pub(crate) lets: &'t [Entry],
    pub(crate) sysctl: &'t [Entry],
}

/// Parts of a machine of which there may be several, so that one has to be named.
struct Part {
    name: &'static str,
    /// Its fields.
    keys: fn() -> Vec<&'static str>,
    /// What one may write.
    example: &'static str,
}

const PARTS: [Part; 2] = [
    Part {
        name: "device",
        keys: device_keys,
        example: "device.sda.nr_requests=64",
    },
    Part {
        name: "filesystem",
        keys: file_system_keys,
        example: "filesystem.data.kind=xfs",
    },
];

/// What a `--set` changes.
#[derive(Clone, PartialEq, Eq)]
enum Target<'t> {
    Param(&'t str),
    Let(&'t str),
    Machine(&'t str),
    /// A device or file system: which of the two, its name, and the field.
    Part(&'static str, &'t str, &'t str),
    Sysctl(String),
}

/// Sorts the `--set`s of `overrides`; two of them that change the same are a problem, however they name it.
pub(crate) fn sort(
    overrides: &Overrides,
    names: &Names<'_>,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Settings {
    let mut settings = Settings::default();
    let mut seen: Vec<(Target<'_>, String)> = Vec::new();
    for (name, value) in &overrides.set {
        let text = format!("{name}={value}");
        let whole = sources.add("--set", name, &text);
        let value_start = whole.start as usize + name.len() + 1;
        let span = Span::new(whole.source, value_start..value_start + value.len());
        let name_span = Span::new(whole.source, 0..name.len());
        let target = match target(name, names, name_span) {
            Ok(target) => target,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if let Some((_, before)) = seen.iter().find(|(known, _)| *known == target) {
            let message = format!(
                "`{}` is set twice: --set {} and --set {}",
                shorten(name),
                shorten(before),
                shorten(&text)
            );
            let help = "give each name one value; every further value is a run of its own";
            problems.push(Problem::new(name_span, message, help));
            continue;
        }
        seen.push((target.clone(), text));
        let node = Node::text(span, value);
        match target {
            Target::Param(name) => settings.params.push((name.to_owned(), node)),
            Target::Let(name) => settings.lets.push((name.to_owned(), node)),
            Target::Machine(field) => set_machine(&mut settings, field, node, name_span),
            Target::Part(part, of, field) => {
                set_part(&mut settings, (part, of, field), node, name_span);
            }
            Target::Sysctl(name) => settings.sysctl.push((name, node)),
        }
    }
    settings
}

fn target<'t>(name: &'t str, names: &Names<'_>, span: Span) -> Result<Target<'t>> {
    let defines = |entries: &[Entry]| entries.iter().any(|entry| entry.key == name);
    let is_sysctl = |sysctl: &String| {
        let in_file = |entry: &Entry| setting_name(&entry.key).as_ref() == Some(sysctl);
        SYSCTLS.contains(&sysctl.as_str()) || names.sysctl.iter().any(in_file)
    };
    if let Some(problem) = sysctl::other_size(name, span) {
        return Err(problem);
    }
    let of_machine = name.strip_prefix("machine.").unwrap_or(name);
    for part in &PARTS {
        let path = of_machine.strip_prefix(part.name);
        if let Some(path) = path.and_then(|path| path.strip_prefix('.')) {
            return part_target(name, part, path, span);
        }
    }
    if let Some(field) = name.strip_prefix("machine.") {
        if scalar_keys().contains(&field) {
            return Ok(Target::Machine(field));
        }
        return Err(unknown(name, span, suggest::help(field, scalar_keys())));
    }
    if let Some(sysctl) = name.strip_prefix("kernel.sysctl.") {
        if let Some(sysctl) = setting_name(sysctl) {
            return Ok(Target::Sysctl(sysctl));
        }
        return Err(unknown(
            name,
            span,
            "write a setting by its name without prefix: page_cluster",
        ));
    }
    if defines(names.params) {
        return Ok(Target::Param(name));
    }
    if defines(names.lets) {
        return Ok(Target::Let(name));
    }
    if let Some(sysctl) = setting_name(name).filter(is_sysctl) {
        return Ok(Target::Sysctl(sysctl));
    }
    if scalar_keys().contains(&name) {
        return Ok(Target::Machine(name));
    }
    let keys = |entries: &'_ [Entry]| {
        entries
            .iter()
            .map(|entry| entry.key.clone())
            .collect::<Vec<_>>()
    };
    let defined: Vec<String> = [names.params, names.lets, names.sysctl].map(keys).concat();
    let known = defined
        .iter()
        .map(String::as_str)
        .chain(scalar_keys())
        .chain(SYSCTLS);
    let help = match name.strip_prefix("devices.") {
        Some(rest) => format!("did you mean `device.{}`?", shorten(rest)),
        None => suggest::help(name, known),
    };
    Err(unknown(name, span, help))
}

/// `device.NAME.FIELD`: `name` is the whole of it, `path` what follows `device.`.
fn part_target<'t>(name: &str, part: &Part, path: &'t str, span: Span) -> Result<Target<'t>> {
    let Part {
        name: kind,
        keys,
        example,
    } = *part;
    let Some((of, field)) = path.split_once('.') else {
        let help = format!("write {kind}.NAME.FIELD, for example {example}");
        return Err(unknown(name, span, help));
    };
    if !keys().contains(&field) {
        return Err(unknown(name, span, suggest::help(field, keys())));
    }
    Ok(Target::Part(kind, of, field))
}

fn set_machine(settings: &mut Settings, field: &str, node: Node, key_span: Span) {
    let empty = || table("machine", key_span);
    put(
        settings.machine.get_or_insert_with(empty),
        field,
        node,
        key_span,
    );
}

fn set_part(
    settings: &mut Settings,
    (part, of, field): (&str, &str, &str),
    node: Node,
    key_span: Span,
) {
    let machine = settings
        .machine
        .get_or_insert_with(|| table("machine", key_span));
    let all = inner(machine, part, key_span);
    let one = all.and_then(|all| inner(all, of, key_span));
    if let Some(one) = one {
        put(one, field, node, key_span);
    }
}

/// A table of its own.
fn table(key: &str, key_span: Span) -> Entry {
    Entry {
        key: key.to_owned(),
        key_span,
        node: Node {
            span: key_span,
            content: None,
            value: Value::Table(Vec::new()),
        },
    }
}

/// The table `key` in a table, made if it is not there. None only if `section` is no table.
fn inner<'e>(section: &'e mut Entry, key: &str, key_span: Span) -> Option<&'e mut Entry> {
    let Value::Table(entries) = &mut section.node.value else {
        return None;
    };
    let known = entries.iter().position(|entry| entry.key == key);
    let at = known.unwrap_or(entries.len());
    if known.is_none() {
        entries.push(table(key, key_span));
    }
    entries.get_mut(at)
}

/// Puts a value into a table, in place of an earlier one of its name.
fn put(section: &mut Entry, key: &str, node: Node, key_span: Span) {
    if let Value::Table(entries) = &mut section.node.value {
        entries.retain(|entry| entry.key != key);
        entries.push(Entry {
            key: key.to_owned(),
            key_span,
            node,
        });
    }
}

fn unknown(name: &str, span: Span, help: impl Into<String>) -> Problem {
    let message = format!(
        "nothing named `{}` can be set in this workload",
        shorten(name)
    );
    Problem::new(span, message, help)
}

/// What `--set` makes of the `let` value of a name: it measures what the value in the file does, and is below zero only
/// if that is. Anything else would show first where the name is used, in places that say nothing of it.
pub(crate) fn measured_alike(
    name: &str,
    set: &Node,
    of_file: &Node,
    scope: &Scope<'_>,
) -> Result<Quantity> {
    let value = scope.quantity(set)?;
    let Ok(usual) = scope.quantity(of_file) else {
        return Ok(value);
    };
    let wrong = |found: &str, help: String| {
        let message = format!(
            "expected {}, as {name} = {} of the file is, found --set {name}={}, {found}",
            usual.unit.name(),
            of_file.written(),
            shorten(text_of(set))
        );
        Err(Problem::new(set.span, message, help))
    };
    if value.unit == Unit::NUMBER && usual.unit != Unit::NUMBER {
        let written = text_of(of_file);
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let unit = written.trim_start_matches(digits);
        let alone = unit.len() < written.len() && unit.bytes().all(|b| b.is_ascii_alphabetic());
        let number = text_of(set);
        let help = if alone && number.chars().all(digits) {
            format!("write {number}{unit}")
        } else {
            format!("write it with its unit, as {}", of_file.written())
        };
        return wrong(value.unit.name(), help);
    }
    if value.value.is_negative() && !usual.value.is_negative() {
        return wrong("which is below zero", "use a value from 0 on".to_owned());
    }
    Ok(value)
}

/// A value as it was written; nothing of one that is no text.
fn text_of(node: &Node) -> &str {
    match &node.value {
        Value::Text(text) => text,
        _ => "",
    }
}
