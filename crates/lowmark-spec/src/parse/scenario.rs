//! A workload resolved: one scenario for every combination of its parameters and every kernel.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use crate::Scenario;
use crate::kernel::{KernelJudge, KernelSpec, setting_name};
use crate::machine::Machine;
use crate::workload::{End, Workload};

use super::budget::Budget;
use super::check::Facts;
use super::document::{self, Document};
use super::error::{Problem, Problems, Result};
use super::fields::Fields;
use super::library::{Library, is_path};
use super::overrides::Overrides;
use super::scope::{Param, Scope};
use super::source::{Source, Sources};
use super::statement::Shared;
use super::tree::{Entry, Node, Value, shorten};
use super::{entry, kernel, machine, machine_file, objects, overrides, suggest, sysctl, task};

/// Parses a workload.
pub(crate) fn parse(
    source: &Source,
    library: &dyn Library,
    overrides: &Overrides,
    judge: KernelJudge,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Result<Vec<Scenario>> {
    let root = sources.load(source)?;
    let document = document::read(&root, source, overrides, sources, problems)?;
    if !problems.is_empty() {
        return Ok(Vec::new());
    }
    let mut scenarios = Vec::with_capacity(document.scenarios()?);
    let machines = BTreeMap::new();
    let mut resolver = Resolver {
        document: &document,
        library,
        judge,
        machines,
        budget: Budget::new(),
    };
    for (i, params) in document.combinations().enumerate() {
        let resolved = resolver.combination(&params, sources, problems);
        problems.keep(resolved.map(|resolved| scenarios.extend(resolved)));
        if problems.is_empty() {
            continue;
        }
        // What is wrong in the first combination is mostly wrong in all.
        if i > 0 {
            let pair = |param: &Param| format!("{}={}", param.name, param.text);
            let text: Vec<String> = params.iter().map(pair).collect();
            problems.more_help(&format!("found in the combination {}", text.join(" ")));
        }
        break;
    }
    Ok(scenarios)
}

/// Resolves combinations one after the other.
struct Resolver<'d> {
    document: &'d Document<'d>,
    library: &'d dyn Library,
    judge: KernelJudge,
    /// Machine files read so far, by name.
    machines: BTreeMap<String, Rc<Machine>>,
    budget: Budget,
}

impl Resolver<'_> {
    fn combination(
        &mut self,
        params: &[Param],
        sources: &mut Sources,
        problems: &mut Problems,
    ) -> Result<Vec<Scenario>> {
        let before = self.budget.spent();
        // All that does not multiply by itself is bounded by the text.
        self.budget
            .charge(self.document.root.span, self.document.text_bytes)?;
        let machine = self.machine(params, sources)?;
        let mut scope = Scope {
            machine: Some(&machine),
            params,
            ..Scope::default()
        };
        self.lets(&mut scope)?;
        let kernels: Vec<Option<KernelSpec>> = (self.document.kernels.iter())
            .map(|node| self.kernel(node, &scope, problems))
            .collect();
        let (workload, seed) = self.workload(&machine, &scope, sources, problems)?;
        if !problems.is_empty() {
            return Ok(Vec::new());
        }
        let span = self.document.root.span;
        // One copy for each kernel; machine and parameters are a little more.
        let copies = self.document.kernels.len().saturating_sub(1);
        self.budget.charge(span, machine.description.len())?;
        self.budget
            .charge(span, (self.budget.spent() - before).saturating_mul(copies))?;
        let params: Vec<(String, String)> = params
            .iter()
            .map(|param| (param.name.clone(), param.text.clone()))
            .collect();
        let scenario = |kernel| Scenario {
            params: params.clone(),
            machine: machine.clone(),
            kernel,
            workload: workload.clone(),
            seed,
            phase: 0,
            boot: 0,
        };
        Ok(kernels.into_iter().flatten().map(scenario).collect())
    }

    fn machine(&mut self, params: &[Param], sources: &mut Sources) -> Result<Machine> {
        let scope = Scope {
            params,
            ..Scope::default()
        };
        let section = entry(self.document.root, "machine");
        let described = match (self.document.machine.clone(), section) {
            (Some(name), _) => self.named_machine(&name, &scope, sources)?,
            (None, Some(section)) => {
                let base = match section.node.get("use") {
                    Some(name) => Some(self.named_machine(name, &scope, sources)?),
                    None => None,
                };
                let parts = &section.node;
                let description = machine::Description {
                    machine: section,
                    parts,
                    file: false,
                };
                machine::read(description, base, "inline", &scope)?
            }
            (None, None) => {
                return Err(Problem::new(
                    self.document.root.span,
                    "the workload does not say on which machine to run",
                    "add [machine] with use = \"small-512m-ssd\", or give --machine",
                ));
            }
        };
        match &self.document.settings.machine {
            None => Ok(described),
            Some(section) => {
                let parts = &section.node;
                let description = machine::Description {
                    machine: section,
                    parts,
                    file: false,
                };
                machine::read(description, Some(described), "", &scope)
            }
        }
    }

    fn named_machine(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        sources: &mut Sources,
    ) -> Result<Machine> {
        let name = scope.text(node)?;
        let Self {
            machines, library, ..
        } = self;
        if let Some(machine) = machines.get(&name) {
            return Ok(Machine::clone(machine));
        }
        let source = library.machine(&name).ok_or_else(|| {
            if let Some(error) = library.unread(&name).filter(|_| is_path(&name)) {
                return unread(node, &name, &error);
            }
            let known = library.machines();
            Problem::new(
                node.span,
                format!("unknown machine `{}`", shorten(&name)),
                suggest::help(&name, known.iter().map(String::as_str)),
            )
        })?;
        let machine = machine_file(&source, sources)?;
        machines.insert(name, Rc::new(machine.clone()));
        Ok(machine)
    }

    fn lets(&self, scope: &mut Scope<'_>) -> Result<()> {
        let Document { lets, settings, .. } = self.document;
        scope.pending = lets.iter().rev().map(|entry| entry.key.clone()).collect();
        for Entry { key, node, .. } in *lets {
            let set = settings.lets.iter().rev().find(|(name, _)| name == key);
            let value = match set {
                None => scope.quantity(node)?,
                Some((_, set)) => overrides::measured_alike(key, set, node, scope)?,
            };
            scope.pending.pop();
            scope.lets.push((key.clone(), value));
        }
        Ok(())
    }

    /// A kernel with its settings: those of the file, of its own text, and of `--set`, later ones
    /// winning.
    fn kernel(
        &self,
        node: &Node,
        scope: &Scope<'_>,
        problems: &mut Problems,
    ) -> Option<KernelSpec> {
        let read = |text: String| kernel::read(node, &text, scope);
        let (mut spec, mut places) = problems.keep(scope.text(node).and_then(read))?;
        let before = problems.raised();
        let mut values = BTreeMap::new();
        let mut set = |name: &str, node: &Node, values: &mut BTreeMap<String, String>| {
            let value = scope.text(node);
            let value = value.and_then(|text| sysctl::value(name, &text, node.span, scope));
            values.extend(problems.keep(value).map(|value| (name.to_owned(), value)));
        };
        for Entry { key, node, .. } in self.document.sysctl {
            let name = setting_name(key).unwrap_or_else(|| key.clone());
            set(&name, node, &mut values);
            places.settings.entry(name).or_insert(node.span);
        }
        values.append(&mut spec.sysctl);
        for (name, node) in &self.document.settings.sysctl {
            set(name, node, &mut values);
            places.settings.insert(name.clone(), node.span);
        }
        spec.sysctl = values;
        for objection in (self.judge)(&spec) {
            let place = places.of(&objection.part);
            problems.push(Problem::new(place, objection.message, objection.help));
        }
        (problems.raised() == before).then_some(spec)
    }

    fn workload(
        &mut self,
        machine: &Machine,
        scope: &Scope<'_>,
        sources: &Sources,
        problems: &mut Problems,
    ) -> Result<(Workload, u64)> {
        let Document {
            root, tasks, seed, ..
        } = self.document;
        let header = problems.keep(header(root, scope, *seed));
        let mut objects = objects::read(root, machine, scope, &mut self.budget, problems);
        let heads = task::heads(tasks, &objects, scope, problems);
        let mut facts = Facts::default();
        let mut shared = Shared {
            machine,
            sources,
            tasks: &heads,
            objects: &mut objects,
            facts: &mut facts,
            budget: &mut self.budget,
            problems,
        };
        let tasks = task::bodies(tasks, scope, &mut shared);
        let Header {
            name,
            title,
            end,
            recursive_protection,
            seed,
        } = header.unwrap_or_default();
        // What tasks do to each other is told only if every statement was understood.
        let barriers = if problems.is_empty() {
            facts.check(&heads, &objects.barriers, end, problems)
        } else {
            Vec::new()
        };
        let objects::Objects {
            files,
            filesets,
            cgroups,
            series,
            phases,
            ..
        } = objects;
        Ok((
            Workload {
                name,
                title,
                tasks,
                files,
                filesets,
                barriers,
                cgroups,
                recursive_protection,
                series,
                phases,
                end,
            },
            seed,
        ))
    }
}

/// A machine file cannot be read.
fn unread(node: &Node, path: &str, error: &io::Error) -> Problem {
    let said = match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot read: {error}"),
    };
    let message = format!("{}: {said}", shorten(path));
    let help = "give the path to a machine file, or a name that `lowmark list machines` shows";
    Problem::new(node.span, message, help)
}

/// The section `[workload]`.
struct Header {
    name: String,
    title: String,
    end: End,
    recursive_protection: bool,
    seed: u64,
}

impl Default for Header {
    /// Stands in for a section that was not understood.
    fn default() -> Self {
        Header {
            name: String::new(),
            title: String::new(),
            end: End::AllTasks,
            recursive_protection: false,
            seed: 0,
        }
    }
}

fn header(root: &Node, scope: &Scope<'_>, seed: Option<u64>) -> Result<Header> {
    const KEYS: [&str; 5] = ["name", "title", "end", "seed", "memory_recursiveprot"];
    let Some(section) = entry(root, "workload") else {
        let help = "add [workload] with name = \"my-workload\"";
        return Err(Problem::new(
            root.span,
            "the file needs a section [workload]",
            help,
        ));
    };
    let fields = Fields::open(&section.node, section.key_span, "[workload]", &KEYS, scope)?;
    Ok(Header {
        name: fields.need("name", "name = \"my-workload\"", workload_name)?,
        title: fields.or("title", Scope::text, String::new())?,
        end: fields.or("end", end, End::AllTasks)?,
        recursive_protection: fields.or("memory_recursiveprot", Scope::flag, false)?,
        seed: match seed {
            Some(seed) => seed,
            None => fields.or("seed", Scope::count, 0)?,
        },
    })
}

fn workload_name(scope: &Scope<'_>, node: &Node) -> Result<String> {
    const CHARS_MAX: usize = 64;
    let name = scope.text(node)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=CHARS_MAX).contains(&name.len()) && name.chars().all(plain) {
        return Ok(name);
    }
    let message = format!(
        "expected the name of the workload, found \"{}\"",
        shorten(&name)
    );
    let help = format!("use 1 to {CHARS_MAX} of the characters a-z 0-9 -");
    Err(Problem::new(node.span, message, help))
}

fn end(scope: &Scope<'_>, node: &Node) -> Result<End> {
    const WORDS: [(&str, End); 2] = [
        ("all-tasks", End::AllTasks),
        ("kswapd-idle", End::KswapdIdle),
    ];
    if let Value::Table(_) = node.value {
        let fields = Fields::open(node, node.span, "`end`", &["after"], scope)?;
        return Ok(End::After(fields.need(
            "after",
            "after = \"60s\"",
            Scope::some_duration,
        )?));
    }
    scope
        .choice(node, "when the run is over", &WORDS)
        .map_err(|problem| problem.more_help("or { after = \"60s\" }"))
}
