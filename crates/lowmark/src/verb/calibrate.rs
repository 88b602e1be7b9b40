//! `lowmark calibrate`: a machine file for the model, from small probes on a real kernel.

use crate::cli::{Ask, Backend};
use crate::output::{self, remark};
use crate::{engine, guests, outcome, plan};
use lowmark_real::calibrate;
use lowmark_real::host::Disk;
use miette::{IntoDiagnostic, WrapErr, miette};
use std::path::PathBuf;

/// Measures what elementary work costs on a real kernel, and writes a machine file
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("kernels", |arg| arg.help("Kernel whose fetched image is booted")),
    mut_arg("images", |arg| arg.help("Kernel image to boot: a path, or a version that was fetched")),
    mut_arg("repeat", |arg| arg.hide(true)),
    after_help = "Examples:\n  lowmark calibrate --on guest --image 6.18 --set ram=256M --out guest-256m.toml\n  \
    lowmark calibrate --on host --machine-wide --set ram=256M --out host-256m.toml\n\n\
    Faults, zeroing, copying, scanning, swapping of one page, and the disk, each for a moment; no \
    workload takes part. The file goes to stdout without --out."
)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: Ask,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// No progress and no remarks on stderr, only errors
    #[arg(long, short)]
    quiet: bool,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    if args.ask.on == Backend::Model {
        return Err(miette!(
            help = "add --on guest, or --on host",
            "calibrate measures a real kernel; the model's costs are those of its machine"
        ));
    }
    if let Some(out) = &args.out
        && out.exists()
    {
        return Err(miette!(
            help = "remove it, or choose another name",
            "{}: already exists",
            out.display()
        ));
    }
    let mut runs = plan::of_source(calibrate::PROBES, &args.ask)?;
    let [run] = runs.as_mut_slice() else {
        return Err(miette!(
            help = "give one kernel, and no --repeat: the probes repeat themselves",
            "calibrate needs exactly one run, found {}",
            runs.len()
        ));
    };
    let base = run.scenario.machine.clone();
    run.scenario.machine.cpus = calibrate::CPUS;
    let recordings = engine::execute(&runs, &engine::quietly(args.quiet))?;
    let recording = &recordings[0];
    if let Some(verdict) = outcome::verdict(&recording.outcome) {
        return Err(miette!("{}: {verdict}", runs[0].name));
    }
    let mut machine = calibrate::machine(&base, recording).into_diagnostic()?;
    if args.ask.on == Backend::Host
        && let Some(disk) = Disk::of_files()
    {
        let devices = machine.devices.iter_mut();
        devices.for_each(|device| disk.describe(device));
    }
    let kernel = guests::describe(recording).unwrap_or_default();
    let (megabytes, cpus) = (machine.ram() >> 20, machine.cpus);
    machine.description = match args.ask.on {
        Backend::Host => {
            format!("a host of which the workload has {megabytes} MB and {cpus} CPUs: {kernel}")
        }
        Backend::Model | Backend::Guest => {
            format!("x86-64 guest with {megabytes} MB and {cpus} CPUs: {kernel}")
        }
    };
    let text = calibrate::to_toml(&machine, &format!("lowmark calibrate: {kernel}"));
    match &args.out {
        None => output::print(&text)?,
        Some(out) => {
            std::fs::write(out, text)
                .into_diagnostic()
                .wrap_err_with(|| format!("{}: cannot write", out.display()))?;
            remark(args.quiet, &format!("{} written", out.display()));
        }
    }
    Ok(0)
}
