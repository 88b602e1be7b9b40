//! `lowmark completions`: what shells need to complete a command line.

use crate::cli::Cli;
use crate::output;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use miette::IntoDiagnostic;

/// Prints the completions of a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark completions bash > ~/.local/share/bash-completion/completions/lowmark\n  \
    lowmark completions zsh > ~/.zfunc/_lowmark\n  \
    lowmark completions fish > ~/.config/fish/completions/lowmark.fish"
)]
pub(crate) struct Args {
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8(script).into_diagnostic()?)?;
    Ok(0)
}
