//! From flags to runs.
//!
//! 1. The workload is found and parsed; every combination of its parameters and every kernel is a
//!    scenario, for each of the values that `--set` and `--kernel` sweep ([`sweeping`]).
//! 2. What `--set` changes is noted among the parameters, so that the recording says it.
//! 3. Each scenario is repeated with the seeds that follow its own.
//! 4. What the backend cannot run is refused before anything runs.
//! 5. Kernels that are compared have in common what they do not differ in ([`comparing`]).

use crate::cli::{Ask, Backend};
use crate::comparing;
use crate::guests::Images;
use crate::hosts;
use crate::library::{self, CommandLine, Found};
use crate::sweeping;
use lowmark_model::kernel::{Kernel, KernelError};
use lowmark_model::{Refusal, Unsupported, check};
use lowmark_real::guest::GuestOptions;
use lowmark_real::host::HostOptions;
use lowmark_report::recipe::RunPlan;
use lowmark_spec::{
    BuiltIn, KernelPart, KernelSpec, Library, Objection, Overrides, Scenario, Source, parse,
    parse_for,
};
use miette::{LabeledSpan, NamedSource, Report, SourceOffset, SourceSpan, miette};
use std::collections::BTreeSet;

/// Longest name of a directory but for backend and seed: most file systems allow 255 bytes, and writing needs
/// some for its own.
const NAME_BYTES_MAX: usize = 200;
/// Where to see which settings there are.
const SYSCTLS_LISTED: &str =
    "`lowmark list sysctls` shows what there is, with the values that each takes";
/// What a name that does not say all ends with: a dash and 64 bits in hexadecimal.
const HASH_BYTES: usize = 17;

/// One run to be done.
#[derive(Debug)]
pub(crate) struct Run {
    /// What is run.
    pub(crate) scenario: Scenario,
    /// Name of its recording's directory.
    pub(crate) name: String,
    /// Runs of the same with other seeds that come before it.
    pub(crate) repeat: u64,
    /// The real kernel that runs it; none for the model.
    pub(crate) real: Option<Real>,
}

/// A real kernel that runs a workload.
#[derive(Debug, Clone)]
pub(crate) enum Real {
    /// In a guest.
    Guest(Box<GuestOptions>),
    /// The one that lowmark is on.
    Host(Box<HostOptions>),
}

impl Real {
    /// The guest, if it is one.
    pub(crate) fn guest(&self) -> Option<&GuestOptions> {
        match self {
            Real::Guest(guest) => Some(guest),
            Real::Host(_) => None,
        }
    }
}

/// What runs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Each for itself.
    Alone,
    /// Kernels side by side.
    Comparison,
    /// To be found among those that were made at another time: no image needs to be there.
    Kept,
}

/// The runs of a workload.
pub(crate) fn of_workload(target: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    ask.check()?;
    of_found(&library::find(target)?, ask, Purpose::Alone)
}

/// The runs of a workload whose kernels are compared: with what the model has of all of them, and several of each.
pub(crate) fn of_comparison(target: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    ask.check()?;
    of_found(&library::find(target)?, ask, Purpose::Comparison)
}

/// The runs in guests that were made of a workload at another time: as [`of_workload`] names them, but no image
/// needs to be there.
pub(crate) fn of_kernel_runs(target: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    ask.check()?;
    of_found(&library::find(target)?, ask, Purpose::Kept)
}

/// The runs of a workload that is part of the program.
pub(crate) fn of_source(text: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    ask.check()?;
    let found = Found {
        source: Source {
            name: "built in".to_owned(),
            text: text.to_owned(),
        },
        machines: Box::new(BuiltIn),
    };
    of_found(&found, ask, Purpose::Alone)
}

fn of_found(found: &Found, ask: &Ask, purpose: Purpose) -> miette::Result<Vec<Run>> {
    let ask = &sweeping::with_kernels(ask)?;
    let images = match ask.on {
        Backend::Guest => Some(Images::find(ask)?),
        Backend::Model | Backend::Host => None,
    };
    let kernels = match (&images, ask.on) {
        (Some(images), _) => images.kernels(ask),
        (None, Backend::Host) => hosts::kernels(ask)?,
        (None, _) => ask.kernels.clone(),
    };
    let mut scenarios = all_scenarios(found, ask, &kernels)?;
    let mut repeats = ask.repeat.unwrap_or(1);
    if purpose == Purpose::Comparison && ask.on == Backend::Model {
        comparing::align(&mut scenarios);
        repeats = ask.repeat.unwrap_or_else(|| comparing::repeats(&scenarios));
    }
    let boot = purpose != Purpose::Kept;
    let mut planned: Vec<(Scenario, Option<Real>)> = Vec::new();
    for scenario in scenarios {
        match (&images, ask.on) {
            (Some(images), _) => planned.extend(images.guests(&scenario, ask, boot)?),
            (None, Backend::Host) => {
                let host = hosts::host(&scenario, ask)?;
                planned.push((scenario, Some(host)));
            }
            (None, _) => {
                check(&scenario).map_err(|refusal| refused(&refusal, &found.source))?;
                planned.push((scenario, None));
            }
        }
    }
    let mut runs = Vec::new();
    for (scenario, real) in planned {
        let of_one = repeated(&scenario, real.as_ref(), repeats)?;
        runs.extend(of_one.into_iter().map(|run| Run {
            name: directory_name(&run.scenario, ask.on),
            ..run
        }));
    }
    distinct(&runs)?;
    Ok(runs)
}

/// A scenario for every combination of parameters and swept values, and for every kernel.
fn all_scenarios(found: &Found, ask: &Ask, kernels: &[String]) -> miette::Result<Vec<Scenario>> {
    let machines = match ask.machine {
        Some(_) => &CommandLine,
        None => found.machines.as_ref(),
    };
    let mut scenarios = Vec::new();
    for set in sweeping::settings(&ask.set)? {
        let overrides = Overrides {
            machine: ask.machine.clone(),
            kernels: kernels.to_vec(),
            set,
            seed: ask.seed,
        };
        scenarios.extend(parsed(&found.source, machines, &overrides, ask.on)?);
    }
    Ok(scenarios)
}

/// A scenario with the seeds that follow its own. Another seed is another boot of the machine as well, and the kernel's
/// periodic work is elsewhere.
pub(crate) fn repeated(
    scenario: &Scenario,
    real: Option<&Real>,
    repeats: u64,
) -> miette::Result<Vec<Run>> {
    let one = |repeat: u64| {
        let seed = scenario.seed.checked_add(repeat).ok_or_else(|| {
            miette!(
                help = "choose a smaller --seed",
                "--repeat: there is no seed {} + {repeat}",
                scenario.seed
            )
        })?;
        let scenario = Scenario {
            seed,
            boot: seed,
            phase: seed,
            ..scenario.clone()
        };
        Ok(Run {
            repeat,
            real: real.cloned(),
            ..Run::new(scenario, backend(real))
        })
    };
    (0..repeats).map(one).collect()
}

/// What runs something.
fn backend(real: Option<&Real>) -> Backend {
    match real {
        None => Backend::Model,
        Some(Real::Guest(_)) => Backend::Guest,
        Some(Real::Host(_)) => Backend::Host,
    }
}

/// The run that a recipe asks for.
pub(crate) fn of_recipe(plan: &RunPlan, seed: Option<u64>) -> miette::Result<Run> {
    let source = library::built_in(&plan.workload)
        .ok_or_else(|| miette!("no built-in workload is called {}", plan.workload))?;
    let overrides = Overrides {
        machine: Some(plan.machine.clone()),
        kernels: vec![plan.kernel.clone()],
        set: plan.set.clone().into_iter().collect(),
        seed,
    };
    let mut scenarios = parsed(&source, &BuiltIn, &overrides, Backend::Model)?;
    for scenario in &mut scenarios {
        (scenario.boot, scenario.phase) = (scenario.seed, scenario.seed);
        check(scenario).map_err(|refusal| refused(&refusal, &source))?;
    }
    match (scenarios.pop(), scenarios.len()) {
        (Some(scenario), 0) => Ok(Run::new(scenario, Backend::Model)),
        (_, more) => Err(miette!(
            help = "set every parameter of the workload in the recipe",
            "{}: a cell needs one run, found {}",
            source.name,
            more + 1
        )),
    }
}

impl Run {
    fn new(scenario: Scenario, on: Backend) -> Run {
        Run {
            name: directory_name(&scenario, on),
            scenario,
            repeat: 0,
            real: None,
        }
    }

    /// What is run, with a kernel that is the same however its name is written.
    fn of_kernel(&self) -> String {
        let KernelSpec {
            version,
            toggles,
            sysctl,
            ..
        } = &self.scenario.kernel;
        let (title, seed) = (title_without_kernel(&self.scenario), self.scenario.seed);
        format!("{title} {version} {toggles:?} {sysctl:?} {seed}")
    }

    /// What is run, in full but for the seed.
    pub(crate) fn title(&self) -> String {
        let kernel = &self.scenario.kernel.text;
        format!("{}, {kernel}", title_without_kernel(&self.scenario))
    }
}

/// What is run, in full but for kernel and seed.
pub(crate) fn title_without_kernel(scenario: &Scenario) -> String {
    let params = scenario.params.iter();
    let params: String = params
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    format!(
        "{}{params} on {}",
        scenario.workload.name, scenario.machine.name
    )
}

/// What the model has against a kernel.
fn of_model(spec: &KernelSpec) -> Vec<Objection> {
    let refusals = Kernel::refusals(spec).into_iter();
    let objection = |(part, error): (KernelPart, KernelError)| Objection {
        part,
        help: help_with_kernel(&error).to_owned(),
        message: error.to_string(),
    };
    refusals.map(objection).collect()
}

/// Where to see which kernels there are.
fn help_with_kernel(error: &KernelError) -> &'static str {
    match error {
        KernelError::Sysctl(_) => SYSCTLS_LISTED,
        _ => "`lowmark list kernels` and `lowmark list mechanisms` show what there is",
    }
}

/// Parses a workload for what runs it.
pub(crate) fn parsed(
    source: &Source,
    machines: &dyn Library,
    overrides: &Overrides,
    on: Backend,
) -> miette::Result<Vec<Scenario>> {
    let mut scenarios = match on {
        Backend::Model => parse_for(source, machines, overrides, of_model)?,
        Backend::Guest | Backend::Host => parse(source, machines, overrides)?,
    };
    for scenario in &mut scenarios {
        note_settings(&mut scenario.params, &overrides.set);
    }
    Ok(scenarios)
}

/// Adds what was set to the parameters, unless it is one of them.
fn note_settings(params: &mut Vec<(String, String)>, set: &[(String, String)]) {
    for (name, value) in set {
        if !params.iter().any(|(known, _)| known == name) {
            params.push((name.clone(), value.clone()));
        }
    }
}

/// A refusal, with the places in the workload where it has any.
pub(crate) fn refused(refusal: &Refusal, source: &Source) -> Report {
    match refusal {
        Refusal::Workload(statements) => at_lines(
            refusal,
            statements.iter(),
            "`lowmark list workloads` says which workloads the model can run",
            source,
        ),
        Refusal::Later { statements, .. } => at_lines(
            refusal,
            statements.iter().map(|later| &later.statement),
            "take the statement out, or run it on a kernel that has it (--kernel)",
            source,
        ),
        Refusal::Setting { statement, .. } => {
            at_lines(refusal, std::iter::once(statement), SYSCTLS_LISTED, source)
        }
        Refusal::Kernel(error) => miette!(help = help_with_kernel(error), "{refusal}"),
        Refusal::Machine { .. } | Refusal::Cgroup { .. } => miette!("{refusal}"),
    }
}

/// A refusal of statements, with their places in the workload.
fn at_lines<'a>(
    refusal: &Refusal,
    statements: impl Iterator<Item = &'a Unsupported>,
    help: &str,
    source: &Source,
) -> Report {
    let label = |at: &Unsupported| {
        LabeledSpan::new_with_span(Some(at.statement.clone()), line(&source.text, at.line))
    };
    let labels: Vec<LabeledSpan> = statements.map(label).collect();
    miette!(labels = labels, help = help, "{}: {refusal}", source.name)
        .with_source_code(NamedSource::new(&source.name, source.text.clone()))
}

/// The text of a line without its indentation.
fn line(text: &str, number: u32) -> SourceSpan {
    let number = number.max(1) as usize;
    let line = text.lines().nth(number - 1).unwrap_or("");
    let content = line.trim();
    let indent = line.len() - line.trim_start().len();
    let start = SourceOffset::from_location(text, number, 1).offset() + indent;
    (start, content.len()).into()
}

/// `WORKLOAD_PARAM=VALUE_..._MACHINE_KERNEL_seedN`, in characters that every file system takes; of a guest
/// with `_guest` before the seed, of this system with `_host`.
///
/// A name that is too long, or in which something had to be replaced, is cut and ends with a hash of all that it
/// stands for: no two runs share a name.
fn directory_name(scenario: &Scenario, on: Backend) -> String {
    let parts = name_parts(scenario);
    let whole = parts.join("_");
    let mut name = in_plain_characters(&whole);
    // A value with a `=` in it could be read as two parameters.
    let ambiguous = scenario.params.iter().any(|(_, value)| value.contains('='));
    if name.len() > NAME_BYTES_MAX || name != whole || ambiguous {
        name.truncate(NAME_BYTES_MAX - HASH_BYTES);
        // No part holds a line break, so the parts cannot be told otherwise.
        name += &format!("-{:016x}", fnv_1a(parts.join("\n").as_bytes()));
    }
    with_seed(&name, scenario, on)
}

/// The name of a guest's run as it was before names had hashes: what was kept then has it still.
pub(crate) fn guest_name_without_hash(scenario: &Scenario) -> String {
    let name = in_plain_characters(&name_parts(scenario).join("_"));
    with_seed(&name, scenario, Backend::Guest)
}

fn name_parts(scenario: &Scenario) -> Vec<String> {
    let params = scenario.params.iter();
    let params = params.map(|(name, value)| format!("{name}={value}"));
    std::iter::once(scenario.workload.name.clone())
        .chain(params)
        .chain([scenario.machine.name.clone(), scenario.kernel.text.clone()])
        .collect()
}

fn in_plain_characters(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+=,-".contains(c);
    text.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

fn with_seed(name: &str, scenario: &Scenario, on: Backend) -> String {
    let on = match on {
        Backend::Model => "",
        Backend::Guest => "_guest",
        Backend::Host => "_host",
    };
    format!("{name}{on}_seed{}", scenario.seed)
}

/// FNV-1a of 64 bits: the same on every machine and in every version.
fn fnv_1a(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(BASIS, step)
}

/// Two runs of the same name would replace each other's recording, and be a comparison of one thing with
/// itself.
fn distinct(runs: &[Run]) -> miette::Result<()> {
    let (mut names, mut kernels) = (BTreeSet::new(), BTreeSet::new());
    let mut is_new = |run: &Run| {
        let kernel = run.real.is_none().then(|| kernels.insert(run.of_kernel()));
        names.insert(run.name.clone()) && kernel != Some(false)
    };
    match runs.iter().find(|run| !is_new(run)) {
        None => Ok(()),
        Some(run) => Err(miette!(
            help = "name every kernel and every value of a parameter once",
            "two runs are the same: {}, seed {}",
            run.title(),
            run.scenario.seed
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories() {
        let mut scenario = lowmark_model::example_scenario();
        assert_eq!(
            directory_name(&scenario, Backend::Model),
            "example_small_v3.6_seed0"
        );
        scenario.params = vec![("dir".into(), "../a b".into())];
        scenario.seed = 7;
        assert_eq!(
            directory_name(&scenario, Backend::Model),
            "example_dir=..-a-b_small_v3.6-750c4f7343558819_seed7"
        );
        scenario.params = vec![("long".into(), "é".repeat(400))];
        assert!(directory_name(&scenario, Backend::Model).len() < 255);
    }

    #[test]
    fn different_runs_have_different_names() {
        let named = |params: &[(&str, &str)], kernel: &str| {
            let mut scenario = lowmark_model::example_scenario();
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            scenario.params = params.iter().map(pair).collect();
            scenario.kernel.text = kernel.to_owned();
            scenario.seed = u64::MAX;
            directory_name(&scenario, Backend::Guest)
        };
        let long = format!("v6.1{}", "+one-counter-of-tags".repeat(12));
        let names = [
            named(&[], &format!("{long}+swap-clusters-free-first")),
            named(&[], &format!("{long}+reclaim-reads-old-counters")),
            named(&[], "path/to/bzImage"),
            named(&[], "path-to/bzImage"),
            named(&[("size", "RAM/2")], "v3.6"),
            named(&[("size", "RAM*2")], "v3.6"),
            named(&[("a", "1_b=2")], "v3.6"),
            named(&[("a", "1"), ("b", "2")], "v3.6"),
        ];
        let distinct: BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:#?}");
        // Room for `.`, `_model10000`, `.new-` and a process id in the 255 bytes of a name.
        let longest = names.iter().map(String::len).max();
        assert!(
            longest.is_some_and(|length| length <= 255 - 24),
            "{names:#?}"
        );
        assert!(names[0].starts_with("example_small_v6.1+one-counter-of-tags+"));
        assert_eq!(
            names[7].matches('-').count(),
            0,
            "a short name stays as it is"
        );
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the test vectors of its authors.
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn settings_are_noted_once_and_in_order() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut params = vec![pair(("order", "seq"))];
        let set = [("size", "3M"), ("order", "seq"), ("ram", "2M")].map(pair);
        note_settings(&mut params, &set);
        let expected = [("order", "seq"), ("size", "3M"), ("ram", "2M")].map(pair);
        assert_eq!(params, expected);
    }

    #[test]
    fn lines_are_found() {
        let text = "a\n  bc \r\nd";
        let at = |number| {
            let span = line(text, number);
            &text[span.offset()..span.offset() + span.len()]
        };
        assert_eq!(
            [at(1), at(2), at(3), at(0), at(9)],
            ["a", "bc", "d", "a", ""]
        );
    }
}
