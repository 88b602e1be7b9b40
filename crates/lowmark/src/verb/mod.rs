//! What lowmark can be told to do.

mod bisect;
mod calibrate;
pub(crate) mod compare;
mod completions;
mod doctor;
mod export;
mod kernels;
mod list;
mod man;
mod record;
mod recover;
mod report;
mod reproduce;
mod run;
mod twin;
mod watch;
mod whatif;
mod why;

use clap::Subcommand;

/// A verb with its flags.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Runs a workload and prints what happened
    Run(run::Args),
    /// Runs a workload on several kernels and prints them side by side, or compares recordings
    Compare(compare::Args),
    /// Says which changes make the difference between two kernels, and how much each
    Bisect(bisect::Args),
    /// Reports on reclaim from traces and recordings: who stalled, for how long, what it came to
    Report(report::Args),
    /// Says why tasks waited for memory: what made them wait, what needed the room, what would help
    Why(why::Args),
    /// Says what another setting, more RAM or another kernel would have done to a load that was recorded
    Whatif(whatif::Args),
    /// Shows what memory management does: of this system as it goes on, of a recording, or of a workload on the model
    Watch(watch::Args),
    /// Writes events as ftrace text, Perfetto, JSON, CSV or Parquet
    Export(export::Args),
    /// Runs a published evaluation and checks every claim made of it
    Reproduce(reproduce::Args),
    /// Lists workloads, machines, kernels, mechanisms, sysctls and evaluations
    List(list::Args),
    /// Runs a workload on a real kernel and on the model, and says how far they are apart
    Twin(twin::Args),
    /// Measures what elementary work costs on a real kernel, and writes a machine file
    Calibrate(calibrate::Args),
    /// Fetches and lists kernel images for guests
    Kernels(kernels::Args),
    /// Records what happens on this host: counters, and trace events if asked for
    Record(record::Args),
    /// Undoes what a recorder that was killed left in the kernel's tracing
    Recover(recover::Args),
    /// Says what guests need, what of it is here, and what to do about the rest
    Doctor(doctor::Args),
    /// Prints the completions of a shell
    #[command(hide = true)]
    Completions(completions::Args),
    /// Prints the manual page, or writes one of each verb into a directory
    #[command(hide = true)]
    Man(man::Args),
}

impl Verb {
    /// Does it; gives the exit status.
    pub(crate) fn run(&self) -> miette::Result<u8> {
        match self {
            Verb::Run(args) => run::run(args),
            Verb::Compare(args) => compare::run(args),
            Verb::Bisect(args) => bisect::run(args),
            Verb::Report(args) => report::run(args),
            Verb::Why(args) => why::run(args),
            Verb::Whatif(args) => whatif::run(args),
            Verb::Watch(args) => watch::run(args),
            Verb::Export(args) => export::run(args),
            Verb::Reproduce(args) => reproduce::run(args),
            Verb::List(args) => list::run(args),
            Verb::Twin(args) => twin::run(args),
            Verb::Calibrate(args) => calibrate::run(args),
            Verb::Kernels(args) => kernels::run(args),
            Verb::Record(args) => record::run(args),
            Verb::Recover(args) => recover::run(args),
            Verb::Doctor(args) => doctor::run(args),
            Verb::Completions(args) => completions::run(args),
            Verb::Man(args) => man::run(args),
        }
    }
}
