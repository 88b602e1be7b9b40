//! `lowmark recover`: undoes what a lowmark that was killed left in this system.

use crate::error;
use crate::output;
use crate::recovering::{all, sentence};
use lowmark_real::undo::Recovered;

/// Undoes what recorders and runs on this system left that were killed
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  lowmark recover\n\n\
    A recorder, and a run on this system, write a journal before they change anything, and remove it when all is as it was. \
    Journals are in /run/lowmark, in $XDG_RUNTIME_DIR/lowmark or in the directory for temporary files. Those of a lowmark that \
    runs are left alone. `lowmark record` and `lowmark run --on host` do the same before they begin. Exit status 2 if something \
    could not be undone.")]
pub(crate) struct Args {}

/// Does it.
pub(crate) fn run(_args: &Args) -> miette::Result<u8> {
    let recovered = all();
    let mut text = String::new();
    for one in &recovered {
        text += &format!("{}\n", sentence(one));
    }
    if recovered.is_empty() {
        text = "Nothing is left of a lowmark that was killed.\n".to_owned();
    }
    output::print(&text)?;
    let failed = recovered
        .iter()
        .any(|one| matches!(one, Recovered::Failed { .. }));
    Ok(if failed { error::EXIT_STATUS } else { 0 })
}
