//! What the command line changes in a file.

use crate::kernel::{SYSCTLS, is_setting};

use super::error::{Problem, Problems, Result};
use super::machine::SCALARS;
use super::source::{Sources, Span};
use super::suggest;
use super::tree::{Entry, Node, Value, shorten};

/// Changes to a workload from outside of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// A machine by name, in place of the file's whole `[machine]`.
    pub machine: Option<String>,
    /// Kernels in place of the file's `kernel.use`, unless empty. The file's sysctls stay, and those
    /// that a kernel names itself win.
    pub kernels: Vec<String>,
    /// Values by name: a `for` or `let` name, `machine.FIELD`, `kernel.sysctl.NAME`, or `FIELD` and
    /// `NAME` alone.
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

/// Sorts the `--set`s of `overrides`.
pub(crate) fn sort(
    overrides: &Overrides,
    names: &Names<'_>,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in &overrides.set {
        let text = format!("{name}={value}");
        let whole = sources.add("--set", name, &text);
        let value_start = whole.start as usize + name.len() + 1;
        let span = Span::new(whole.source, value_start..value_start + value.len());
        let node = Node::text(span, value);
        let sorted = sort_one(&mut settings, name, node, names, whole);
        problems.keep(sorted);
    }
    settings
}

fn sort_one(
    settings: &mut Settings,
    name: &str,
    node: Node,
    names: &Names<'_>,
    whole: Span,
) -> Result<()> {
    let defines = |entries: &[Entry]| entries.iter().any(|entry| entry.key == name);
    let name_span = Span::new(whole.source, 0..name.len());
    if let Some(field) = name.strip_prefix("machine.") {
        if SCALARS.contains(&field) {
            set_machine(settings, field, node, name_span);
            return Ok(());
        }
        return Err(unknown(name, name_span, suggest::help(field, SCALARS)));
    }
    if let Some(sysctl) = name.strip_prefix("kernel.sysctl.") {
        if is_setting(sysctl) {
            settings.sysctl.push((sysctl.to_owned(), node));
            return Ok(());
        }
        return Err(unknown(
            name,
            name_span,
            "write a setting by its name without prefix: page_cluster",
        ));
    }
    if defines(names.params) {
        settings.params.push((name.to_owned(), node));
    } else if defines(names.lets) {
        settings.lets.push((name.to_owned(), node));
    } else if SYSCTLS.contains(&name) || defines(names.sysctl) {
        settings.sysctl.push((name.to_owned(), node));
    } else if SCALARS.contains(&name) {
        set_machine(settings, name, node, name_span);
    } else {
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
            .chain(SCALARS)
            .chain(SYSCTLS);
        return Err(unknown(name, name_span, suggest::help(name, known)));
    }
    Ok(())
}

fn set_machine(settings: &mut Settings, field: &str, node: Node, key_span: Span) {
    let section = settings.machine.get_or_insert_with(|| Entry {
        key: "machine".into(),
        key_span,
        node: Node {
            span: key_span,
            content: None,
            value: Value::Table(Vec::new()),
        },
    });
    if let Value::Table(entries) = &mut section.node.value {
        entries.retain(|entry| entry.key != field);
        entries.push(Entry {
            key: field.to_owned(),
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
