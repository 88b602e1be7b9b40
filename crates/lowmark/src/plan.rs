//! From flags to runs.
//!
//! 1. The workload is found and parsed; every combination of its parameters and every kernel is a
//!    scenario.
//! 2. What `--set` changes is noted among the parameters, so that the recording says it.
//! 3. Each scenario is repeated with the seeds that follow its own.
//! 4. What the backend cannot run is refused before anything runs.

use crate::cli::{Ask, Backend};
use crate::guests::Images;
use crate::library::{self, CommandLine, Found};
use lowmark_model::{Refusal, check};
use lowmark_real::guest::GuestOptions;
use lowmark_report::recipe::RunPlan;
use lowmark_spec::{BuiltIn, Library, Overrides, Scenario, Source, parse};
use miette::{LabeledSpan, NamedSource, Report, SourceOffset, SourceSpan, miette};
use std::collections::BTreeSet;

/// Longest name of a directory: most file systems allow 255 bytes, and writing needs some for its own.
const NAME_BYTES_MAX: usize = 200;

/// One run to be done.
#[derive(Debug)]
pub(crate) struct Run {
    /// What is run.
    pub(crate) scenario: Scenario,
    /// Name of its recording's directory.
    pub(crate) name: String,
    /// Runs of the same with other seeds that come before it.
    pub(crate) repeat: u64,
    /// The guest that runs it; none for the model.
    pub(crate) guest: Option<Box<GuestOptions>>,
}

/// The runs of a workload.
pub(crate) fn of_workload(target: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    ask.check()?;
    of_found(&library::find(target)?, ask, true)
}

/// The runs in guests that were made of a workload at another time: as [`of_workload`] names them, but no image
/// needs to be there.
pub(crate) fn of_kernel_runs(target: &str, ask: &Ask) -> miette::Result<Vec<Run>> {
    of_found(&library::find(target)?, ask, false)
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
    of_found(&found, ask, true)
}

fn of_found(found: &Found, ask: &Ask, boot: bool) -> miette::Result<Vec<Run>> {
    let images = match ask.on {
        Backend::Guest => Some(Images::find(ask)?),
        Backend::Model | Backend::Host => None,
    };
    let overrides = Overrides {
        machine: ask.machine.clone(),
        kernels: images
            .as_ref()
            .map_or(ask.kernels.clone(), |images| images.kernels(ask)),
        set: ask.set.clone(),
        seed: ask.seed,
    };
    let machines = match ask.machine {
        Some(_) => &CommandLine,
        None => found.machines.as_ref(),
    };
    let mut planned: Vec<(Scenario, Option<Box<GuestOptions>>)> = Vec::new();
    for scenario in scenarios(&found.source, machines, &overrides)? {
        match &images {
            Some(images) => planned.extend(images.guests(&scenario, ask, boot)?),
            None => {
                check(&scenario).map_err(|refusal| refused(&refusal, &found.source))?;
                planned.push((scenario, None));
            }
        }
    }
    let mut runs = Vec::new();
    for (scenario, guest) in planned {
        for repeat in 0..ask.repeat.unwrap_or(1) {
            let seed = scenario.seed.checked_add(repeat).ok_or_else(|| {
                miette!(
                    help = "choose a smaller --seed",
                    "--repeat: there is no seed {} + {repeat}",
                    scenario.seed
                )
            })?;
            let scenario = Scenario {
                seed,
                ..scenario.clone()
            };
            runs.push(Run {
                repeat,
                guest: guest.clone(),
                ..Run::new(scenario, images.is_some())
            });
        }
    }
    distinct(&runs)?;
    Ok(runs)
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
    let mut scenarios = scenarios(&source, &BuiltIn, &overrides)?;
    for scenario in &scenarios {
        check(scenario).map_err(|refusal| refused(&refusal, &source))?;
    }
    match (scenarios.pop(), scenarios.len()) {
        (Some(scenario), 0) => Ok(Run::new(scenario, false)),
        (_, more) => Err(miette!(
            help = "set every parameter of the workload in the recipe",
            "{}: a cell needs one run, found {}",
            source.name,
            more + 1
        )),
    }
}

impl Run {
    fn new(scenario: Scenario, guest: bool) -> Run {
        Run {
            name: directory_name(&scenario, guest),
            scenario,
            repeat: 0,
            guest: None,
        }
    }
}

/// Parses a workload.
pub(crate) fn scenarios(
    source: &Source,
    machines: &dyn Library,
    overrides: &Overrides,
) -> miette::Result<Vec<Scenario>> {
    let mut scenarios = parse(source, machines, overrides)?;
    for scenario in &mut scenarios {
        note_settings(&mut scenario.params, &overrides.set);
    }
    Ok(scenarios)
}

/// Adds what was set to the parameters, unless it is one of them; of two values for a name the later
/// counts.
fn note_settings(params: &mut Vec<(String, String)>, set: &[(String, String)]) {
    let own = params.len();
    for (name, value) in set {
        match params.iter().position(|(known, _)| known == name) {
            Some(at) if at < own => {}
            Some(at) => params[at].1.clone_from(value),
            None => params.push((name.clone(), value.clone())),
        }
    }
}

/// A refusal, with the places in the workload where it has any.
pub(crate) fn refused(refusal: &Refusal, source: &Source) -> Report {
    match refusal {
        Refusal::Workload(statements) => {
            let label = |at: &lowmark_model::Unsupported| {
                LabeledSpan::new_with_span(Some(at.statement.clone()), line(&source.text, at.line))
            };
            let labels: Vec<LabeledSpan> = statements.iter().map(label).collect();
            miette!(
                labels = labels,
                help = "`lowmark list workloads` says which workloads the model can run",
                "{}: {refusal}",
                source.name
            )
            .with_source_code(NamedSource::new(&source.name, source.text.clone()))
        }
        Refusal::Kernel(_) => miette!(
            help = "`lowmark list kernels` and `lowmark list mechanisms` show what there is",
            "{refusal}"
        ),
        Refusal::Machine { .. } | Refusal::Cgroup { .. } => miette!("{refusal}"),
    }
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
/// with `_guest` before the seed.
fn directory_name(scenario: &Scenario, guest: bool) -> String {
    let mut parts = vec![scenario.workload.name.clone()];
    parts.extend(
        scenario
            .params
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    parts.push(scenario.machine.name.clone());
    parts.push(scenario.kernel.text.clone());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+=,-".contains(c);
    let mut name: String = parts
        .join("_")
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    name.truncate(NAME_BYTES_MAX);
    let guest = if guest { "_guest" } else { "" };
    format!("{name}{guest}_seed{}", scenario.seed)
}

/// Two runs of the same name would replace each other's recording, and be a comparison of one thing with
/// itself.
fn distinct(runs: &[Run]) -> miette::Result<()> {
    let mut names = BTreeSet::new();
    match runs.iter().find(|run| !names.insert(&run.name)) {
        None => Ok(()),
        Some(run) => Err(miette!(
            help = "name every kernel and every value of a parameter once",
            "two runs are the same: {}",
            run.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories() {
        let mut scenario = lowmark_model::example_scenario();
        assert_eq!(directory_name(&scenario, false), "example_small_v3.6_seed0");
        scenario.params = vec![("dir".into(), "../a b".into())];
        scenario.seed = 7;
        assert_eq!(
            directory_name(&scenario, false),
            "example_dir=..-a-b_small_v3.6_seed7"
        );
        scenario.params = vec![("long".into(), "é".repeat(400))];
        assert!(directory_name(&scenario, false).len() < 255);
    }

    #[test]
    fn settings_are_noted_once_and_in_order() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut params = vec![pair(("order", "seq"))];
        let set = [
            ("size", "1M"),
            ("order", "seq"),
            ("ram", "2M"),
            ("size", "3M"),
        ]
        .map(pair);
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
