//! The journal: what a recorder changes in the system is on the disk before it is changed, so that it can be undone
//! whatever becomes of the recorder.
//!
//! 1. Before the first change a file `lowmark-PID.journal` says who makes it, by process, time of its start and boot, and
//!    which instance of tracefs it is. It is written under another name and renamed when it is whole.
//! 2. The recorder removes the instance, and then the journal.
//! 3. If it did not get to do so, [`recover`] does, for every journal whose process is no more. The name of the
//!    instance follows from the process, so that no journal can name anything else.
//!
//! Journals are in the first of `/run/lowmark`, `$XDG_RUNTIME_DIR/lowmark` and the directory for temporary files that can
//! be written, and are looked for in all of them; those of other users are left alone.

use super::changes::Changes;
use super::tracefs::Tracefs;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a journal is called behind the name of its instance.
const ENDING: &str = ".journal";
/// What it is called before it is whole.
const UNFINISHED: &str = ".journal-new";
/// How instances are called, before the process.
const INSTANCE: &str = "lowmark-";
/// Longest journal that is read, bytes.
const LENGTH_MAX: u64 = 4096;

/// A process, told apart from later ones with its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, ticks of 10 ms since boot.
    pub start_ticks: u64,
    /// Which boot that was (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
}

impl Process {
    /// This process.
    ///
    /// # Errors
    ///
    /// `/proc` is not there or says something else than `proc(5)` does.
    pub fn own() -> io::Result<Process> {
        let pid = std::process::id();
        let start_ticks =
            start_of(pid).ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?;
        let boot = boot()?;
        Ok(Process {
            pid,
            start_ticks,
            boot,
        })
    }

    /// Whether it still runs.
    fn runs(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot) && start_of(self.pid) == Some(self.start_ticks)
    }
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(super::parse::stat(&stat)?.start_ticks)
}

fn boot() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Name of the instance that a process makes.
pub(super) fn instance_of(pid: u32) -> String {
    format!("{INSTANCE}{pid}")
}

/// Where journals may be, the best place first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places(pub Vec<PathBuf>);

impl Places {
    /// Those of this system and user.
    pub fn of_system() -> Places {
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(|run| PathBuf::from(run).join("lowmark"));
        let run = Some(PathBuf::from("/run/lowmark"));
        let places = [run, own, Some(std::env::temp_dir())];
        Places(places.into_iter().flatten().collect())
    }
}

/// A journal on the disk.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Writes the journal of a process into the first place that takes it.
    pub(super) fn write(
        changes: &mut dyn Changes,
        places: &Places,
        process: &Process,
    ) -> io::Result<Journal> {
        let content = serde_json::to_vec(process)?;
        let name = instance_of(process.pid);
        let mut problem = io::Error::other("there is no place for a journal");
        for place in &places.0 {
            // Only its owner may look into it. That it cannot be made shows when it is written into.
            let _ = fs::DirBuilder::new().mode(0o700).create(place);
            let unfinished = place.join(format!("{name}{UNFINISHED}"));
            let path = place.join(format!("{name}{ENDING}"));
            let written = changes
                .create(&unfinished, &content)
                .and_then(|()| changes.rename(&unfinished, &path));
            match written {
                Ok(()) => return Ok(Journal { path }),
                Err(error) => {
                    // Best effort: half of it may be there.
                    let _ = changes.remove(&unfinished);
                    let text = format!("cannot write the journal {}: {error}", path.display());
                    problem = io::Error::new(error.kind(), text);
                }
            }
        }
        Err(problem)
    }

    /// Everything is undone.
    pub(super) fn remove(self, changes: &mut dyn Changes) -> io::Result<()> {
        changes.remove(&self.path)
    }
}

/// What became of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// The instance of a process that is no more was removed.
    Removed {
        /// Its name.
        instance: String,
    },
    /// The process of a journal is no more and had left nothing.
    NothingLeft {
        /// The journal, which was removed.
        journal: PathBuf,
    },
    /// It could not be undone; the journal stays.
    Failed {
        /// The journal.
        journal: PathBuf,
        /// Why.
        problem: String,
    },
}

/// Undoes what the journals of processes that are no more name. Those of processes that run are left alone, as are files
/// that are no journals.
pub fn recover(
    changes: &mut dyn Changes,
    places: &Places,
    tracefs: &dyn Fn() -> io::Result<Tracefs>,
) -> Vec<Recovered> {
    let mut recovered = Vec::new();
    for place in &places.0 {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some((pid, whole)) = name.and_then(pid_of) else {
                continue;
            };
            if !is_own(&path) {
                continue;
            }
            if let Some(left) = left_by(&path, pid, whole) {
                recovered.push(undo(changes, &path, left, tracefs));
            }
        }
    }
    recovered
}

/// What the process of a journal may have left: the name of an instance, or nothing. None if it still runs.
fn left_by(path: &Path, pid: u32, whole: bool) -> Option<Option<String>> {
    let instance = Some(instance_of(pid));
    let process = process_of(path).filter(|process| process.pid == pid);
    match process {
        // Before a journal is whole nothing is changed; whoever writes it may be about to finish.
        _ if !whole => start_of(pid).is_none().then_some(None),
        Some(process) if process.runs() => None,
        // An instance does not live on when the system boots.
        Some(process) => Some(instance.filter(|_| boot().is_ok_and(|boot| boot == process.boot))),
        // It cannot be read. Where no process has this number, there is nobody whose instance it could be.
        None => start_of(pid).is_none().then_some(instance),
    }
}

/// Undoes what one journal names.
fn undo(
    changes: &mut dyn Changes,
    path: &Path,
    instance: Option<String>,
    tracefs: &dyn Fn() -> io::Result<Tracefs>,
) -> Recovered {
    let failed = |problem: String| Recovered::Failed {
        journal: path.to_owned(),
        problem,
    };
    let mut removed = None;
    if let Some(name) = instance {
        let tracefs = match tracefs() {
            Ok(tracefs) => tracefs,
            Err(error) => return failed(format!("tracefs: {error}")),
        };
        match changes.remove_instance(&tracefs.instance(&name)) {
            Ok(()) => removed = Some(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return failed(format!("cannot remove the trace instance {name}: {error}"));
            }
        }
    }
    match (changes.remove(path), removed) {
        (Err(error), _) if error.kind() != io::ErrorKind::NotFound => failed(error.to_string()),
        (_, Some(instance)) => Recovered::Removed { instance },
        (_, None) => Recovered::NothingLeft {
            journal: path.to_owned(),
        },
    }
}

/// The process in the name of a journal, and whether the journal is whole.
fn pid_of(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix(INSTANCE)?;
    let whole = rest.strip_suffix(ENDING).map(|pid| (pid, true));
    let (pid, whole) = whole.or_else(|| Some((rest.strip_suffix(UNFINISHED)?, false)))?;
    Some((pid.parse().ok()?, whole))
}

/// Whether a file is a plain one of this user's: in a directory for all, anybody may put one.
fn is_own(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    path.symlink_metadata()
        .is_ok_and(|data| data.is_file() && data.uid() == own && data.len() <= LENGTH_MAX)
}

fn process_of(path: &Path) -> Option<Process> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests;
