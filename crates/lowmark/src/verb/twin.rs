//! `lowmark twin`: the same workload on a real kernel and on the model, and how far they are apart.
//!
//! 1. What either cannot run is refused before anything runs.
//! 2. The kernel runs several times in guests, with one seed: its spread is its own. Or what an earlier twin kept
//!    of that is read again.
//! 3. The model runs as often, each time on the machine as that run of the kernel reported it: zones, and memory
//!    in use before the first task, and at another phase of what the kernel does periodically. What a few pages or
//!    moments more or less make of a workload shows on both sides then.

use crate::cli::{Ask, Backend, Format, Printing, Running};
use crate::output::{self, Page, remark};
use crate::plan::{self, Run};
use crate::{engine, guests, kernel_runs, outcome};
use lowmark_real::zoneinfo;
use lowmark_record::Recording;
use lowmark_report::identities::lru_gen;
use lowmark_report::twin::Twin;
use lowmark_spec::{KernelSpec, Scenario};
use miette::miette;
use std::path::PathBuf;

/// Runs of the kernel when nobody says otherwise.
const REPEATS: u64 = 5;
/// The setting that switches the multi-generational LRU.
const LRU_GEN: &str = "lru_gen.enabled";
/// Why that cannot be compared.
const NO_LRU_GEN: &str = "the model has no multi-generational LRU: its counters would be compared with those of another design";

/// Runs a workload on a real kernel and on the model, and says how far they are apart
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("on", |arg| arg.hide(true)),
    after_help = "Examples:\n  lowmark twin swap-small --kernel 6.18 --set order=seq\n  \
    lowmark twin my.toml --image path/to/bzImage --repeat 3 --out runs --events\n  \
    lowmark twin swap-small --kernel 6.18 --set order=seq --kernel-runs runs\n\n\
    The kernel runs 5 times, or as --repeat says, and the model once on the machine of each of them: on what \
    was free and in use there. Medians count; the error is what the model's has more than the kernel's, as a \
    part of that. All runs have the same seed."
)]
pub(crate) struct Args {
    /// Workload: a built-in one (see `lowmark list workloads`) or a path to a .toml file
    workload: String,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    running: Running,
    /// The kernel's recordings, as an earlier `lowmark twin --out DIR` kept them, instead of running it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["timeout", "accel"])]
    kernel_runs: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let planned = planned(args)?;
    let kept = args.kernel_runs.as_deref();
    let repeats = args.ask.repeat.unwrap_or_else(|| match kept {
        None => REPEATS,
        Some(dir) => kernel_runs::repeats(dir, planned.first()),
    });
    let runs: Vec<Run> = planned
        .iter()
        .flat_map(|run| repeated(run, repeats))
        .collect();
    let kernels = match kept {
        None => engine::execute(&runs, &args.running)?,
        Some(dir) => kernel_runs::read(dir, &runs)?,
    };
    let kernels: Vec<&[Recording]> = kernels.chunks(repeats as usize).collect();
    let models = planned
        .iter()
        .zip(&kernels)
        .flat_map(|(run, seen)| {
            (0..)
                .zip(*seen)
                .map(move |(repeat, seen)| model(run, repeat, seen))
        })
        .collect::<miette::Result<Vec<Run>>>()?;
    let models = engine::execute(&models, &args.running)?;
    let models = models.chunks(repeats as usize);
    for recording in kernels.iter().copied().chain(models.clone()).flatten() {
        if let Some(verdict) = outcome::verdict(&recording.outcome) {
            let run = &recording.run;
            remark(
                false,
                &format!("{} by {}: {verdict}", run.workload, run.backend),
            );
        }
    }
    let twins = kernels
        .iter()
        .zip(models.clone())
        .filter_map(|(kernel, model)| {
            let kernel: Vec<&Recording> = kernel.iter().collect();
            let model: Vec<&Recording> = model.iter().collect();
            Some((Twin::new(&kernel, &model)?, kernel))
        });
    print(&twins.collect::<Vec<_>>(), args.printing.format)?;
    Ok(outcome::exit_status(
        kernels.iter().copied().chain(models).flatten(),
    ))
}

/// The runs in guests, one for each combination, after the model was asked whether it can run them too.
fn planned(args: &Args) -> miette::Result<Vec<Run>> {
    let ask = Ask {
        on: match args.ask.on {
            Backend::Host => Backend::Host,
            Backend::Model | Backend::Guest => Backend::Guest,
        },
        repeat: None,
        ..args.ask.clone()
    };
    let planned = match args.kernel_runs {
        None => plan::of_workload(&args.workload, &ask)?,
        Some(_) => plan::of_kernel_runs(&args.workload, &ask)?,
    };
    for run in &planned {
        let setting = run.scenario.kernel.sysctl.get(LRU_GEN);
        if setting.is_some_and(|value| !matches!(value.as_str(), "0" | "n" | "N")) {
            return Err(miette!(
                help = "leave lru_gen.enabled away: guests have the classic LRU then",
                "{NO_LRU_GEN}"
            ));
        }
        lowmark_model::check(&for_model(run)).map_err(|refusal| {
            miette!(
                help = "`lowmark list kernels` says which kernels the model has",
                "{}: no twin: {refusal}",
                run.name
            )
        })?;
    }
    Ok(planned)
}

/// The runs of one combination, told apart by their number.
fn repeated(run: &Run, repeats: u64) -> Vec<Run> {
    (0..repeats)
        .map(|repeat| Run {
            name: kernel_runs::name(run, repeat),
            repeat,
            scenario: run.scenario.clone(),
            guest: run.guest.clone(),
        })
        .collect()
}

/// What the model is asked for: the kernel by its version, without the setting that guests alone have.
fn for_model(run: &Run) -> Scenario {
    let mut scenario = run.scenario.clone();
    let version = match &run.guest {
        Some(guest) => guests::version(&guest.image),
        None => scenario.kernel.version.clone(),
    };
    scenario.machine = scenario.machine.under_kernel(&version);
    let mut sysctl = scenario.kernel.sysctl.clone();
    sysctl.remove(LRU_GEN);
    scenario.kernel = KernelSpec {
        text: version.clone(),
        version,
        toggles: scenario.kernel.toggles.clone(),
        sysctl,
    };
    scenario
}

/// The run of the model on the machine that a run of the kernel saw.
fn model(run: &Run, repeat: u64, kernel: &Recording) -> miette::Result<Run> {
    let mut scenario = for_model(run);
    if lru_gen(kernel) {
        return Err(miette!(
            help = "switch it off in the kernel's command line or configuration",
            "{}: {NO_LRU_GEN}",
            run.name
        ));
    }
    if let Some(system) = kernel.system.as_deref() {
        scenario.machine = zoneinfo::observed(&scenario.machine, system);
    }
    (scenario.phase, scenario.boot) = (repeat, 0);
    Ok(Run {
        name: format!("{}_model{}", run.name, repeat + 1),
        scenario,
        repeat,
        guest: None,
    })
}

fn print(twins: &[(Twin, Vec<&Recording>)], format: Format) -> miette::Result<()> {
    match (format, twins) {
        (Format::Json, [(twin, _)]) => output::print_json(twin),
        (Format::Json, twins) => {
            output::print_json(&twins.iter().map(|(twin, _)| twin).collect::<Vec<_>>())
        }
        (Format::Table, twins) => {
            let page = Page::stdout();
            let sections = twins.iter().map(|(twin, kernel)| {
                let title = format!("{} on {}, {}", twin.workload, twin.machine, twin.kernel);
                let system = kernel
                    .first()
                    .and_then(|recording| guests::describe(recording));
                format!(
                    "{}\n{}; runs of each: {}\n\n{}",
                    page.title(&title),
                    system.unwrap_or_default(),
                    kernel.len(),
                    twin.text(page.style.as_ref(), page.width)
                )
            });
            output::print(&sections.collect::<Vec<_>>().join("\n"))
        }
    }
}
