//! `lowmark man`: manual pages.

use crate::cli::Cli;
use crate::output::{self, remark};
use clap::CommandFactory;
use clap_mangen::{Man, generate_to};
use miette::{IntoDiagnostic, WrapErr};
use std::path::PathBuf;

/// Prints the manual page, or writes one of each verb into a directory
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark man | man -l -\n  lowmark man ~/.local/share/man/man1"
)]
pub(crate) struct Args {
    /// Directory for lowmark.1, lowmark-run.1 and so on; made if need be
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// The command line, without a page on its verb `help`.
fn command() -> clap::Command {
    Cli::command().disable_help_subcommand(true)
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        Man::new(command()).render(&mut page).into_diagnostic()?;
        output::print(&String::from_utf8(page).into_diagnostic()?)?;
        return Ok(0);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| generate_to(command(), directory))
        .into_diagnostic()
        .wrap_err_with(|| format!("{}: cannot write the pages", directory.display()))?;
    remark(false, &format!("pages in {}", directory.display()));
    Ok(0)
}
