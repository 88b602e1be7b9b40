//! The command line of lowmark: one file per verb under `verb`, no logic of its own.
//!
//! A verb reads its flags (`cli`), turns them into runs (`plan`), lets the `engine` carry them out, and
//! prints what `lowmark-report` makes of the recordings (`output`).
//!
//! Exit status: 0 if all went well; 1 if a run did not complete, or a reproduction does not bear out the
//! claims; 2 for every error, those of usage included; 3 if a guest started and failed. `record` passes on that of its
//! command.

mod between;
mod bisecting;
mod cli;
mod columns;
mod comparing;
mod endless;
mod engine;
mod error;
mod group;
mod guests;
mod hosts;
mod interrupt;
mod kernel_runs;
mod library;
mod observed;
mod outcome;
mod output;
mod page;
mod plan;
mod progress;
mod recovering;
mod remarks;
mod sweeping;
mod traces;
mod turns;
mod unfinished;
mod verb;
mod watching;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    output::set_color(cli.color);
    // The message of a panic has been printed already; what is left is the exit status of an error.
    let result = std::panic::catch_unwind(|| cli.verb.run());
    match result {
        Ok(Ok(status)) => ExitCode::from(status),
        Ok(Err(report)) => {
            error::print(&report);
            ExitCode::from(error::status(&report))
        }
        Err(_) => ExitCode::from(error::EXIT_STATUS),
    }
}
