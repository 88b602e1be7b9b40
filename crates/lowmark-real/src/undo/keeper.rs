//! The keeper: a process that waits until lowmark lets go of it, or ends in any way, and then undoes what a journal names.
//!
//! There is one way on which changes are undone, and success, errors, signals, panics and SIGKILL all take it. If the keeper
//! itself is killed, the journal is still there: lowmark reads it where it can, and `lowmark recover` later.

use super::changes::{Changes, Real};
use super::journal::{self, Recovered};
use super::{Journal, Lock, Places, Process, Undo};
use crate::tracefs::Tracefs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// The verb of `lowmark-runner` for it.
pub(crate) const KEEP_ARGUMENT: &str = "keep";
/// Starts it deaf to what a terminal or a time limit sends to everyone; a program that is started deaf stays so.
const DEAF: &str = r#"trap '' HUP INT TERM; exec "$@""#;

/// A keeper at work.
#[derive(Debug)]
pub(crate) struct Keeper {
    journal: PathBuf,
    /// None once it was let go of.
    process: Option<Child>,
}

impl Keeper {
    /// Starts a keeper, and writes the journal of changes that are about to be made, in this order: whatever ends lowmark between
    /// the two leaves no journal behind.
    pub(crate) fn start(
        runner: &Path,
        places: &Places,
        lock: &Lock,
        undo: Vec<Undo>,
    ) -> io::Result<Keeper> {
        let own = Process::own()?;
        let journals = Journal::of_run(places, &own);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", DEAF, "lowmark-keeper"])
            .arg(runner)
            .arg(KEEP_ARGUMENT)
            .args(&journals)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // In a group of its own, it outlives signals to that of lowmark.
            .process_group(0);
        let process = lock.hand_on(|| command.spawn()).map_err(|error| {
            let text = format!("cannot start {}: {error}", runner.display());
            io::Error::new(error.kind(), text)
        })?;
        // If the journal cannot be written, the keeper is let go of, and finds none.
        let mut keeper = Keeper {
            journal: PathBuf::new(),
            process: Some(process),
        };
        let journal = Journal::write_run(&mut Real, places, &own, undo)?;
        keeper.journal = journal.path().to_owned();
        Ok(keeper)
    }

    /// Lets go of it, and waits until everything is undone; what could not be, as sentences.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.let_go()
    }

    fn let_go(&mut self) -> Vec<String> {
        let Some(mut process) = self.process.take() else {
            return Vec::new();
        };
        drop(process.stdin.take());
        let mut said = String::new();
        if let Some(mut output) = process.stdout.take() {
            // What cannot be read is seen by the journal.
            let _ = output.read_to_string(&mut said);
        }
        let _ = process.wait();
        if self.journal.exists() && said.is_empty() {
            // Somebody killed the keeper.
            return problems(journal::undo_now(&mut Real, &self.journal, &Tracefs::find));
        }
        said.lines().map(str::to_owned).collect()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The journal of what is not undone is still there.
        let _ = self.let_go();
    }
}

fn problems(recovered: Recovered) -> Vec<String> {
    match recovered {
        Recovered::Failed { problem, .. } => vec![problem],
        Recovered::Undone { .. } | Recovered::NothingLeft { .. } => Vec::new(),
    }
}

/// What the keeper does: it waits for the end of its standard input, and undoes what those of the journals name that are
/// there. It says what it could not undo on its standard output.
pub(crate) fn keep(journals: &[String]) -> ExitCode {
    let mut rest = Vec::new();
    // An input that cannot be read has ended as well.
    let _ = io::stdin().read_to_end(&mut rest);
    let mut changes = Real;
    let undone = journals.iter().flat_map(|journal| {
        let journal = Path::new(journal);
        // A lock in another place is another run's.
        let is_there = journal.exists();
        let problems = problems(journal::undo_now(
            &mut changes as &mut dyn Changes,
            journal,
            &Tracefs::find,
        ));
        if is_there {
            Lock::remove_beside(journal);
        }
        problems
    });
    let problems: Vec<String> = undone.collect();
    // Where lowmark was killed, there is nobody left to tell.
    for problem in &problems {
        use std::io::Write;
        let _ = writeln!(io::stdout(), "{problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}
