//! The journal: what lowmark changes in the system is on the disk before it is changed, so that it can be undone
//! whatever becomes of lowmark.
//!
//! 1. Before the first change a file says who makes it, by process, time of its start and boot, and how all of the changes
//!    are undone: `lowmark-PID.journal` of a recorder, `lowmark-PID-run.journal` of a workload that runs on this system. It is
//!    written under another name and renamed when it is whole.
//! 2. Who made the changes undoes them, and removes the journal.
//! 3. If that did not happen, [`recover`] does, for every journal whose process is no more.
//!
//! Journals are in the first of `/run/lowmark`, `$XDG_RUNTIME_DIR/lowmark` and the directory for temporary files that can
//! be written, and are looked for in all of them; those of other users are left alone.

use super::changes::Changes;
use super::steps::{Instances, OWN, Undo};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a journal is called behind the name of its instance.
const ENDING: &str = ".journal";
/// What it is called before it is whole.
const UNFINISHED: &str = ".journal-new";
/// What stands between the process and the ending in the name of a run's journal.
const RUN: &str = "-run";
/// Longest journal that is read, bytes.
const LENGTH_MAX: u64 = 64 << 10;

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
    pub(super) fn runs(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot) && start_of(self.pid) == Some(self.start_ticks)
    }
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // One that has ended undoes nothing any more.
    crate::record::parse_stat(&stat)?.running_since()
}

fn boot() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Name of the instance that a process makes.
pub(crate) fn instance_of(pid: u32) -> String {
    format!("{OWN}{pid}")
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

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Who made the changes.
    #[serde(flatten)]
    process: Process,
    /// How they are undone, in the order in which they were made.
    #[serde(default = "of_recorder")]
    undo: Vec<Undo>,
}

/// What a recorder changes.
fn of_recorder() -> Vec<Undo> {
    vec![Undo::Instance]
}

/// A journal on the disk.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Writes the journal of a recorder into the first place that takes it.
    pub(crate) fn write(
        changes: &mut dyn Changes,
        places: &Places,
        process: &Process,
    ) -> io::Result<Journal> {
        Journal::write_as(changes, places, "", process, of_recorder())
    }

    /// Where the journal of a run may be: in the first of these places that takes it.
    pub(crate) fn of_run(places: &Places, process: &Process) -> Vec<PathBuf> {
        let name = format!("{}{RUN}{ENDING}", instance_of(process.pid));
        places.0.iter().map(|place| place.join(&name)).collect()
    }

    /// Writes the journal of a run.
    pub(crate) fn write_run(
        changes: &mut dyn Changes,
        places: &Places,
        process: &Process,
        undo: Vec<Undo>,
    ) -> io::Result<Journal> {
        Journal::write_as(changes, places, RUN, process, undo)
    }

    fn write_as(
        changes: &mut dyn Changes,
        places: &Places,
        kind: &str,
        process: &Process,
        undo: Vec<Undo>,
    ) -> io::Result<Journal> {
        let name = format!("{}{kind}", instance_of(process.pid));
        let content = serde_json::to_vec(&Entry {
            process: process.clone(),
            undo,
        })?;
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

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything is undone.
    pub(crate) fn remove(self, changes: &mut dyn Changes) -> io::Result<()> {
        changes.remove(&self.path)
    }
}

/// What became of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// What a process that is no more had changed was undone.
    Undone {
        /// Number of the process.
        pid: u32,
        /// What was done for it, as sentences without a beginning and an end: `the cgroup X was removed`.
        what: Vec<String>,
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
    instances: Instances<'_>,
) -> Vec<Recovered> {
    let mut recovered = Vec::new();
    for (path, pid, whole) in journals(places) {
        if let Some(undo) = left_by(&path, pid, whole) {
            recovered.push(carry_out(changes, &path, pid, &undo, instances));
        }
    }
    recovered
}

/// Undoes what a journal names though its process may run: it has asked for that.
pub(super) fn undo_now(
    changes: &mut dyn Changes,
    path: &Path,
    instances: Instances<'_>,
) -> Recovered {
    match entry_of(path) {
        Some(entry) => carry_out(changes, path, entry.process.pid, &entry.undo, instances),
        None => Recovered::NothingLeft {
            journal: path.to_owned(),
        },
    }
}

/// This user's journals, with the processes in their names, and whether they are whole.
fn journals(places: &Places) -> Vec<(PathBuf, u32, bool)> {
    let mut journals = Vec::new();
    for place in &places.0 {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some((pid, whole)) = name.and_then(pid_of)
                && is_own(&path)
            {
                journals.push((path, pid, whole));
            }
        }
    }
    journals
}

/// How what the process of a journal may have left is undone. None if it still runs.
fn left_by(path: &Path, pid: u32, whole: bool) -> Option<Vec<Undo>> {
    let entry = entry_of(path).filter(|entry| entry.process.pid == pid);
    match entry {
        // Before a journal is whole nothing is changed; whoever writes it may be about to finish.
        _ if !whole => start_of(pid).is_none().then(Vec::new),
        Some(entry) if entry.process.runs() => None,
        Some(entry) if boot().is_ok_and(|boot| boot == entry.process.boot) => Some(entry.undo),
        Some(mut entry) => {
            entry.undo.retain(Undo::outlives_boot);
            Some(entry.undo)
        }
        // It cannot be read. Where no process has this number, there is nobody whose instance it could be.
        None => start_of(pid).is_none().then(of_recorder),
    }
}

/// Undoes changes, the last one first; the journal goes if all of it could be done.
fn carry_out(
    changes: &mut dyn Changes,
    path: &Path,
    pid: u32,
    undo: &[Undo],
    instances: Instances<'_>,
) -> Recovered {
    let (mut what, mut problems) = (Vec::new(), Vec::new());
    for step in undo.iter().rev() {
        match step.carry_out(&instance_of(pid), changes, instances) {
            Ok(done) => what.extend(done),
            // What follows does not need it, or says so itself.
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty()
        && let Err(error) = changes.remove(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        problems.push(error.to_string());
    }
    if !problems.is_empty() {
        return Recovered::Failed {
            journal: path.to_owned(),
            problem: problems.join("; "),
        };
    }
    if what.is_empty() {
        return Recovered::NothingLeft {
            journal: path.to_owned(),
        };
    }
    Recovered::Undone { pid, what }
}

/// The process in the name of a journal, and whether the journal is whole.
fn pid_of(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix(OWN)?;
    let whole = rest.strip_suffix(ENDING).map(|rest| (rest, true));
    let (rest, whole) = whole.or_else(|| Some((rest.strip_suffix(UNFINISHED)?, false)))?;
    let pid = rest.strip_suffix(RUN).unwrap_or(rest);
    Some((pid.parse().ok()?, whole))
}

/// Whether a file is a plain one of this user's: in a directory for all, anybody may put one.
fn is_own(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    path.symlink_metadata()
        .is_ok_and(|data| data.is_file() && data.uid() == own && data.len() <= LENGTH_MAX)
}

fn entry_of(path: &Path) -> Option<Entry> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests;
