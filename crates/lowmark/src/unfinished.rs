//! Half written recordings: none stays when the program is ended by a signal, and those of earlier runs that could not
//! see to that are removed.

use crate::interrupt;
use crate::output::remark;
use lowmark_record::store::{Cleared, Leftover, leftovers};
use std::path::Path;
use std::time::Duration;

/// For so long after it was last written to, something may belong to a process that is not seen from here: on another
/// host, in another container.
const LEFT_ALONE: Duration = Duration::from_secs(60);

/// How often what a signal interrupted is removed.
const CLEARED_MAX: usize = 10;

/// Removes what processes that are no more left below `out`, and says so.
pub(crate) fn clear(out: &Path, quiet: bool) {
    for leftover in leftovers(out).iter().filter(|leftover| !runs(leftover)) {
        let path = leftover.path.display();
        let process = leftover.process;
        let text = if is_fresh(leftover) {
            format!(
                "{path}: half written by process {process}, which does not run here; remove it if it runs nowhere else"
            )
        } else {
            match leftover.clear() {
                Ok(Cleared::Removed) => format!("{path}: removed; process {process} had left it"),
                Ok(Cleared::PutBack) => {
                    format!("{path}: has its name back; process {process} had moved it aside")
                }
                Err(error) => format!("warning: {error}; process {process} had left it"),
            }
        };
        remark(quiet, &text);
    }
}

/// Lets nothing of this process stay below `out` when a signal ends it.
pub(crate) fn clear_at_end(out: &Path) {
    let out = out.to_owned();
    interrupt::before_end(move || {
        let own = |leftover: &Leftover| leftover.process == std::process::id();
        // A writer that is still at work may put a file where another was just removed.
        for _ in 0..CLEARED_MAX {
            let found: Vec<Leftover> = leftovers(&out).into_iter().filter(own).collect();
            if found.is_empty() {
                return;
            }
            for leftover in found {
                // There is nobody left to tell; the next run tries again.
                let _ = leftover.clear();
            }
        }
    });
}

/// Whether the process that made something runs; where that cannot be told, it is taken to.
fn runs(leftover: &Leftover) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(leftover.process.to_string()).exists()
}

fn is_fresh(leftover: &Leftover) -> bool {
    // A time in the future is no age.
    let age = leftover.written().and_then(|time| time.elapsed().ok());
    age.is_none_or(|age| age < LEFT_ALONE)
}
