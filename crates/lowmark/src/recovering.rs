//! What a lowmark that was killed left in this system.

use lowmark_real::tracefs::Tracefs;
use lowmark_real::undo::{Places, Real, Recovered, recover};

/// Undoes what there is to undo.
pub(crate) fn all() -> Vec<Recovered> {
    recover(&mut Real, &Places::of_system(), &Tracefs::find)
}

/// What became of a journal.
pub(crate) fn sentence(recovered: &Recovered) -> String {
    match recovered {
        Recovered::Undone { pid, what } => format!(
            "Of process {pid}, a lowmark that had been killed, {}.",
            what.join(", ")
        ),
        Recovered::NothingLeft { journal } => format!(
            "The journal {} was removed: a lowmark that had been killed had left nothing else.",
            journal.display()
        ),
        Recovered::Failed { journal, problem } => format!(
            "What the journal {} names could not be undone: {problem}. Run `lowmark recover` as root.",
            journal.display()
        ),
    }
}
