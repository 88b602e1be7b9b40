//! How runs ended.

use lowmark_record::{Outcome, Recording};

/// What went wrong in a run; none if it completed.
pub(crate) fn verdict(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed => None,
        Outcome::OutOfMemory {
            task,
            order,
            verdict,
        } => Some(format!(
            "out of memory: an allocation of order {order} by {task} failed; {verdict}"
        )),
        Outcome::Failed {
            task,
            line,
            verdict,
        } => Some(format!("line {line}, task {task}: {verdict}")),
        Outcome::Deadlock { verdict } => Some(format!("deadlock: {verdict}")),
    }
}

/// 0 if every run completed, else 1.
pub(crate) fn exit_status<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> u8 {
    let completed = |r: &Recording| r.outcome == Outcome::Completed;
    u8::from(!recordings.into_iter().all(completed))
}
