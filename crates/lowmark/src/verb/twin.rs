//! `lowmark twin`: the same workload on a real kernel and on the model, and how far they are apart.
//!
//! 1. Which workloads: files, those that a seed gives, or those that were kept ([`loads`]).
//! 2. What either cannot run is refused before anything runs.
//! 3. The kernel runs several times in guests, with one seed: its spread is its own. Or what an earlier twin kept
//!    of that is read again.
//! 4. The model runs as often, each time on the machine as that run of the kernel reported it: zones, and memory
//!    in use before the first task, with the settings that it had ([`observed`]), and at another phase of what the kernel
//!    does periodically. What a few pages or moments more or less make of a workload shows on both sides then.
//! 5. What is printed is in [`printing`]. Of several workloads, one that fails does not keep the others from running.

mod loads;
mod printing;

use crate::cli::{Ask, Backend, Paging, Printing, Running};
use crate::error;
use crate::output::remark;
use crate::page::PageFile;
use crate::plan::{self, Real, Run};
use crate::{engine, guests, kernel_runs, observed, outcome};
use loads::Load;
use lowmark_real::{host, zoneinfo};
use lowmark_record::Recording;
use lowmark_report::twin::Twin;
use lowmark_spec::{KernelSpec, Scenario};
use miette::miette;
use printing::Judged;
use std::path::PathBuf;

/// Runs of the kernel unless --repeat is given.
const REPEATS: u64 = 5;

/// Runs a workload on a real kernel and on the model, and says how far they are apart
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("on", |arg| arg.hide(true)),
    after_help = "Examples:\n  lowmark twin swap-small --kernel 6.18 --set order=seq\n  \
    lowmark twin my.toml --image path/to/bzImage --repeat 3 --out runs --events\n  \
    lowmark twin swap-small --kernel 6.18 --set order=seq --kernel-runs runs\n  \
    lowmark twin --random 20 --seed 1 --knobs --out loads\n  \
    lowmark twin --kept loads --html loads.html\n\n\
    The kernel runs 5 times, or as --repeat says, and the model once on the machine of each of them: on what \
    was free and in use there. Medians are compared: error = (model - kernel) / kernel. A figure is \
    within tolerance if the error is at most 10 % where the kernel's runs are within 10 % of each other, and otherwise \
    if the model is within the kernel's range or a factor of two. All runs have the same seed. Of several workloads the distribution of errors is printed as well."
)]
pub(crate) struct Args {
    /// Workloads: built-in ones (see `lowmark list workloads`) or paths to .toml files
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["random", "kept"])]
    workloads: Vec<String>,
    /// Makes this many workloads from --seed in place of given ones, and keeps them with all recordings below
    /// --out [default: twin-random-SEED]
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["workloads", "set", "machine"],
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    random: Option<u64>,
    /// With --random, runs each workload with two values of a setting, and says what that changes on both sides
    #[arg(long, requires = "random")]
    knobs: bool,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    running: Running,
    /// The kernel's recordings, as an earlier `lowmark twin --out DIR` kept them, instead of running it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["timeout", "interval", "accel"])]
    kernel_runs: Option<PathBuf>,
    /// The same of several workloads, each in the directory of its name below DIR; without a WORKLOAD, of all .toml
    /// files in DIR, as --random keeps them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["timeout", "interval", "accel", "kernel_runs", "random", "out"])]
    kept: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// One combination of parameters and kernel on both sides.
struct Pair {
    kernel: Vec<Recording>,
    model: Vec<Recording>,
}

/// What is to be run of a load.
struct Planned {
    runs: Vec<Run>,
    /// Combinations of which no run of the kernel was kept.
    missing: Vec<String>,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let loads = loads::of(args)?;
    let several = args.random.is_some() || args.kept.is_some() || loads.len() > 1;
    let planned: Vec<miette::Result<Planned>> = loads
        .iter()
        .map(|load| planned(args, load, several))
        .collect();
    let none = planned
        .iter()
        .all(|planned| planned.as_ref().is_ok_and(|it| it.runs.is_empty()));
    if let (true, Some(dir)) = (none, &args.kept) {
        return Err(miette!(
            help = "`lowmark twin --out DIR` keeps them, for several workloads each below its name",
            "{}: no run of a kernel was kept there of any of these workloads",
            dir.display()
        ));
    }
    let page = PageFile::create(&args.paging)?;
    let mut status = 0;
    let mut judged = Vec::new();
    for (load, planned) in loads.into_iter().zip(planned) {
        let result = planned.and_then(|planned| {
            let pairs = pairs(args, &load, &planned.runs)?;
            Ok((pairs, planned.missing))
        });
        match result {
            Ok((pairs, missing)) => {
                let recordings = pairs
                    .iter()
                    .flat_map(|it| it.kernel.iter().chain(&it.model));
                status = status.max(outcome::exit_status(recordings));
                judged.push(Judged::new(load, &pairs, missing));
            }
            Err(report) if several => {
                error::print(&report);
                status = status.max(error::status(&report));
                judged.push(Judged::failed(load, report.to_string()));
            }
            Err(report) => return Err(report),
        }
    }
    printing::print(args, &judged, several, page)?;
    Ok(status)
}

/// A load on the kernel, or what was kept of that, and on the model.
fn pairs(args: &Args, load: &Load, planned: &[Run]) -> miette::Result<Vec<Pair>> {
    let running = Running {
        jobs: args.running.jobs,
        out: load.out.clone(),
        events: args.running.events,
        quiet: args.running.quiet,
    };
    let repeats: Vec<u64> = planned
        .iter()
        .map(|run| match (args.ask.repeat, &load.kernel_runs) {
            (Some(repeats), _) => repeats,
            (None, Some(dir)) => kernel_runs::repeats(dir, run).max(1),
            (None, None) => REPEATS,
        })
        .collect();
    let each = || planned.iter().zip(&repeats);
    let runs: Vec<Run> = each()
        .flat_map(|(run, &repeats)| repeated(run, repeats))
        .collect();
    let kernels = match &load.kernel_runs {
        None => engine::execute(&runs, &running)?,
        Some(dir) => kernel_runs::read(dir, &runs)?,
    };
    let mut seen = kernels.iter();
    let mut models = Vec::new();
    for (run, &repeats) in each() {
        for (repeat, seen) in (0..repeats).zip(seen.by_ref()) {
            models.push(model(run, repeat, seen)?);
        }
    }
    let models = engine::execute(&models, &running)?;
    for recording in kernels.iter().chain(&models) {
        if let Some(verdict) = outcome::verdict(&recording.outcome) {
            let run = &recording.run;
            remark(
                false,
                &format!("{} by {}: {verdict}", run.workload, run.backend),
            );
        }
    }
    let (mut kernels, mut models) = (kernels.into_iter(), models.into_iter());
    let pairs = repeats.iter().map(|&repeats| Pair {
        kernel: kernels.by_ref().take(repeats as usize).collect(),
        model: models.by_ref().take(repeats as usize).collect(),
    });
    Ok(pairs.collect())
}

/// The runs in guests, one for each combination, after the model was asked whether it can run them too. Where runs of
/// kernels were kept, combinations of which there is none are left out, unless there is none at all of a single load.
fn planned(args: &Args, load: &Load, several: bool) -> miette::Result<Planned> {
    if load.kernel_runs.is_some() {
        args.ask
            .check_not_host("twin", "runs of a kernel that were kept are of guests")?;
    }
    let ask = Ask {
        on: match args.ask.on {
            Backend::Host => Backend::Host,
            Backend::Model | Backend::Guest => Backend::Guest,
        },
        repeat: None,
        // The seed of random loads is what they are made from; each has one of its own.
        seed: args.ask.seed.filter(|_| args.random.is_none()),
        ..args.ask.clone()
    };
    let mut planned = match load.kernel_runs {
        None => plan::of_workload(&load.target, &ask)?,
        Some(_) => plan::of_kernel_runs(&load.target, &ask)?,
    };
    let mut missing = Vec::new();
    if let Some(dir) = &load.kernel_runs {
        let kept = |run: &Run| kernel_runs::repeats(dir, run) > 0;
        if several || planned.iter().any(kept) {
            let (with, without): (Vec<Run>, Vec<Run>) = planned.into_iter().partition(kept);
            planned = with;
            missing = without.iter().map(Run::title).collect();
        }
    }
    for run in &planned {
        lowmark_model::check(&for_model(run, None)).map_err(|refusal| {
            miette!(
                help = "`lowmark list kernels` says which kernels the model has",
                "{}: no twin: {refusal}",
                run.name
            )
        })?;
    }
    Ok(Planned {
        runs: planned,
        missing,
    })
}

/// The runs of one combination, told apart by their number.
fn repeated(run: &Run, repeats: u64) -> Vec<Run> {
    (0..repeats)
        .map(|repeat| Run {
            name: kernel_runs::name(run, repeat),
            repeat,
            scenario: run.scenario.clone(),
            real: run.real.clone(),
        })
        .collect()
}

/// What the model is asked for: the kernel by its version, with what the stable kernel that ran took over from later ones.
fn for_model(run: &Run, kernel: Option<&Recording>) -> Scenario {
    let mut scenario = match (&run.real, host::cgroups()) {
        (Some(Real::Host(_)), Ok((version, _))) => host::modelled(&run.scenario, version),
        _ => run.scenario.clone(),
    };
    let (text, version) = match run.real.as_ref().and_then(Real::guest) {
        Some(guest) => (
            guests::version(&guest.image),
            guests::stable_version(&guest.image),
        ),
        None => {
            let text = scenario.kernel.version.clone();
            let system = kernel.and_then(|kernel| kernel.system.as_deref());
            let stable = system.and_then(|system| guests::stable_of_release(&system.release));
            (text.clone(), stable.unwrap_or(text))
        }
    };
    scenario.machine = scenario.machine.under_kernel(&text);
    scenario.kernel = KernelSpec {
        text,
        version,
        toggles: scenario.kernel.toggles.clone(),
        sysctl: scenario.kernel.sysctl.clone(),
    };
    scenario
}

/// The run of the model on the machine that a run of the kernel saw.
fn model(run: &Run, repeat: u64, kernel: &Recording) -> miette::Result<Run> {
    let mut scenario = for_model(run, Some(kernel));
    for (name, value) in observed::settings(kernel) {
        scenario.kernel.sysctl.entry(name).or_insert(value);
    }
    if let Some(system) = kernel.system.as_deref() {
        scenario.machine = zoneinfo::observed(&scenario.machine, system);
    }
    (scenario.phase, scenario.boot) = (repeat, 0);
    Ok(Run {
        name: format!("{}_model{}", run.name, repeat + 1),
        scenario,
        repeat,
        real: None,
    })
}

impl Pair {
    fn twin(&self) -> Option<Twin> {
        let kernel: Vec<&Recording> = self.kernel.iter().collect();
        let model: Vec<&Recording> = self.model.iter().collect();
        Twin::new(&kernel, &model)
    }
}
