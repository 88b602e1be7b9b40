//! A workload file taken apart: its sections, its parameters, what the command line changes in it.

use std::collections::BTreeMap;

use super::budget::{NAMES_MAX, SCENARIOS_MAX};
use super::error::{Problem, Problems, Result};
use super::fields::{Fields, unknown_key};
use super::overrides::{Names, Overrides, Settings, sort};
use super::scope::{Param, Scope};
use super::source::{Source, Sources};
use super::sysctl;
use super::tree::{Entry, Node, shorten};
use super::{check_version, entry};

/// Sections of a workload file.
const SECTIONS: [&str; 12] = [
    "lowmark", "workload", "for", "let", "machine", "kernel", "file", "fileset", "barrier",
    "cgroup", "series", "task",
];

/// A workload file, its sections found and its overrides sorted.
pub(crate) struct Document<'t> {
    pub(crate) root: &'t Node,
    /// Length of the file.
    pub(crate) text_bytes: usize,
    /// `for` parameters with their values as texts.
    pub(crate) params: Vec<(String, Vec<String>)>,
    pub(crate) lets: &'t [Entry],
    pub(crate) tasks: &'t [Entry],
    /// The kernels, of the file or of the command line.
    pub(crate) kernels: Vec<Node>,
    pub(crate) sysctl: &'t [Entry],
    pub(crate) settings: Settings,
    /// A machine from the command line.
    pub(crate) machine: Option<Node>,
    /// A seed from the command line.
    pub(crate) seed: Option<u64>,
}

/// Takes a file apart. What is wrong goes to `problems`; the document is of use only without any.
pub(crate) fn read<'t>(
    root: &'t Node,
    source: &Source,
    overrides: &Overrides,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Result<Document<'t>> {
    check_version(root)?;
    for section in root.entries("sections")? {
        if !SECTIONS.contains(&section.key.as_str()) {
            problems.push(unknown_key(section, "a workload file", &SECTIONS));
        }
    }
    let params = section(root, "for", problems);
    let lets = section(root, "let", problems);
    check_names(params, lets, problems);
    let tasks = section(root, "task", problems);
    let (uses, sysctl) = kernel_section(root, problems);
    let names = Names {
        params,
        lets,
        sysctl,
    };
    let settings = sort(overrides, &names, sources, problems);
    let mut from_flag =
        |flag: &str, field: &str, text: &String| Node::text(sources.add(flag, field, text), text);
    let kernels = match overrides.kernels.as_slice() {
        [] => uses,
        texts => texts
            .iter()
            .map(|text| from_flag("--kernel", "kernel.use", text))
            .collect(),
    };
    let machine = overrides
        .machine
        .as_ref()
        .map(|name| from_flag("--machine", "machine.use", name));
    if problems.is_empty() {
        for (missing, message, help) in [
            (
                tasks.is_empty(),
                "a workload needs at least one task",
                "add [task.main] with run = [ … ]",
            ),
            (
                kernels.is_empty(),
                "the workload does not say on which kernel to run",
                "add [kernel] with use = \"v3.6\", or give --kernel",
            ),
        ] {
            if missing {
                problems.push(Problem::new(root.span, message, help));
            }
        }
    }
    let params = param_values(params, &settings, problems);
    let text_bytes = source.text.len();
    let seed = overrides.seed;
    Ok(Document {
        root,
        text_bytes,
        params,
        lets,
        tasks,
        kernels,
        sysctl,
        settings,
        machine,
        seed,
    })
}

impl Document<'_> {
    /// How many scenarios there will be.
    pub(crate) fn scenarios(&self) -> Result<usize> {
        let kernels = self.kernels.len();
        let product = self
            .params
            .iter()
            .try_fold(kernels, |n, (_, texts)| n.checked_mul(texts.len()));
        product.filter(|&n| n <= SCENARIOS_MAX).ok_or_else(|| {
            let span = entry(self.root, "for").map_or(self.root.span, |entry| entry.key_span);
            let counts: Vec<String> =
                self.params.iter().map(|(_, texts)| texts.len().to_string()).collect();
            Problem::new(
                span,
                format!(
                    "expected at most {SCENARIOS_MAX} combinations, found {} in [for] (kernels: {kernels})",
                    counts.join(" × ")
                ),
                "shorten the lists of [for], or name fewer kernels",
            )
        })
    }

    /// All combinations of the parameters, the last one varying fastest.
    pub(crate) fn combinations(&self) -> Combinations<'_> {
        Combinations {
            params: &self.params,
            next: Some(vec![0; self.params.len()]),
        }
    }
}

/// Goes through all combinations like an odometer.
pub(crate) struct Combinations<'d> {
    params: &'d [(String, Vec<String>)],
    next: Option<Vec<usize>>,
}

impl Iterator for Combinations<'_> {
    type Item = Vec<Param>;

    fn next(&mut self) -> Option<Vec<Param>> {
        let mut index = self.next.take()?;
        let bound = self.params.iter().zip(&index);
        let bound = bound.filter_map(|((name, texts), &i)| {
            Some(Param {
                name: name.clone(),
                text: texts.get(i)?.clone(),
            })
        });
        let bound = bound.collect();
        let turned = index
            .iter_mut()
            .zip(self.params)
            .rev()
            .any(|(i, (_, texts))| {
                *i = (*i + 1) % texts.len().max(1);
                *i > 0
            });
        self.next = turned.then_some(index);
        Some(bound)
    }
}

/// The entries of a section, none if it is missing.
fn section<'t>(root: &'t Node, name: &str, problems: &mut Problems) -> &'t [Entry] {
    let Some(node) = root.get(name) else {
        return &[];
    };
    problems
        .keep(node.entries(&format!("the entries of [{name}]")))
        .unwrap_or(&[])
}

/// The kernels named by the file and its sysctls.
fn kernel_section<'t>(root: &'t Node, problems: &mut Problems) -> (Vec<Node>, &'t [Entry]) {
    let Some(section) = entry(root, "kernel") else {
        return (Vec::new(), &[]);
    };
    let scope = Scope::default();
    let keys = ["use", "sysctl"];
    let fields = Fields::open(&section.node, section.key_span, "[kernel]", &keys, &scope);
    let Some(fields) = problems.keep(fields) else {
        return (Vec::new(), &[]);
    };
    let uses = match fields.node("use") {
        None => Vec::new(),
        Some(node) => node
            .elements("kernels")
            .map_or_else(|_| vec![node.clone()], <[Node]>::to_vec),
    };
    let sysctl = match fields.node("sysctl") {
        None => &[],
        Some(node) => problems.keep(node.entries("sysctls")).unwrap_or(&[]),
    };
    let mut names = BTreeMap::new();
    for entry in sysctl {
        let Some(name) = problems.keep(sysctl::name(&entry.key, entry.key_span)) else {
            continue;
        };
        // Twice the same key is TOML's to refuse, but page-cluster is page_cluster.
        if let Some(first) = names.insert(name, entry.key_span) {
            let message = format!("found a second value of `{}`", shorten(&entry.key));
            let problem = Problem::new(entry.key_span, message, "leave one of them out");
            problems.push(problem.note(first, "the first"));
        }
    }
    (uses, sysctl)
}

/// Names of parameters: usable in expressions, and each with one meaning.
fn check_names(params: &[Entry], lets: &[Entry], problems: &mut Problems) {
    if let Some(entry) = params.iter().chain(lets).nth(NAMES_MAX) {
        let message = format!("found more than {NAMES_MAX} names in [for] and [let]");
        problems.push(Problem::new(
            entry.key_span,
            message,
            "write figures where they are used",
        ));
    }
    for entry in params.iter().chain(lets) {
        problems.keep(Scope::default().new_name(&entry.key, entry.key_span));
    }
    // Within one table TOML sees to it.
    for entry in lets {
        if let Some(first) = params.iter().find(|param| param.key == entry.key) {
            let message = format!("found a second `{}`", shorten(&entry.key));
            let help = "a name is either a parameter of [for] or a value of [let]";
            problems.push(
                Problem::new(entry.key_span, message, help).note(first.key_span, "the first"),
            );
        }
    }
}

/// All values of all `for` parameters, as texts.
fn param_values(
    params: &[Entry],
    settings: &Settings,
    problems: &mut Problems,
) -> Vec<(String, Vec<String>)> {
    let mut values = Vec::with_capacity(params.len());
    for Entry { key, node, .. } in params {
        let set = settings
            .params
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node);
        let texts = match set {
            Some(node) => Scope::default().text(node).map(|text| vec![text]),
            None => list_of_texts(node),
        };
        values.push((key.clone(), problems.keep(texts).unwrap_or_default()));
    }
    values
}

fn list_of_texts(node: &Node) -> Result<Vec<String>> {
    let nodes = node.elements("values")?;
    if nodes.is_empty() {
        let help = "write for example [\"seq\", \"random\"]; without a value nothing would run";
        return Err(Problem::new(
            node.span,
            "expected at least one value, found an empty array",
            help,
        ));
    }
    nodes
        .iter()
        .map(|node| Scope::default().text(node))
        .collect()
}
