//! What processes that were killed while they wrote recordings left behind.
//!
//! A process writes `.NAME.new-PID` and lets it swap names with what it replaces; where the file system cannot do that,
//! it moves what it replaces to `.NAME.old-PID` first. If the process is killed, the one is half a recording or
//! superseded, and the other is either superseded or the only one that is left.

use super::{EVENTS_FILE, RECORDING_FILE, StoreError};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A hidden directory that the writing of a recording made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The directory.
    pub path: PathBuf,
    /// Process that made it.
    pub process: u32,
    /// The recording that it stepped aside for, if it was one; otherwise it is half of one.
    pub aside_for: Option<PathBuf>,
}

/// What became of a [`Leftover`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// It was removed.
    Removed,
    /// It was the only recording of its name, and has that name again.
    PutBack,
}

/// The hidden directories in `parent` that hold nothing but parts of a recording, by name; none where it cannot be
/// listed. Those of processes that are still writing are among them.
pub fn leftovers(parent: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<Leftover> = entries
        .filter_map(|entry| Leftover::of(&entry.path()))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Leftover {
    fn of(path: &Path) -> Option<Leftover> {
        let hidden = path.file_name()?.to_str()?.strip_prefix('.')?;
        let (name, role) = hidden.rsplit_once('.')?;
        let (role, process) = role.split_once('-')?;
        let aside_for = match role {
            "new" | "try" => None,
            "old" => Some(path.with_file_name(name)),
            _ => return None,
        };
        let process = process.parse().ok()?;
        let data = path.symlink_metadata().ok()?;
        let ours = |entry: fs::DirEntry| {
            let name = entry.file_name();
            name == RECORDING_FILE || name == EVENTS_FILE
        };
        let mut entries = fs::read_dir(path).ok().filter(|_| data.is_dir())?;
        let only_ours = entries.all(|entry| entry.is_ok_and(ours));
        only_ours.then(|| Leftover {
            path: path.to_owned(),
            process,
            aside_for,
        })
    }

    /// When it was last written to.
    pub fn written(&self) -> Option<SystemTime> {
        let files = [RECORDING_FILE, EVENTS_FILE].map(|name| self.path.join(name));
        let paths = files.iter().chain([&self.path]);
        paths
            .filter_map(|path| path.metadata().ok()?.modified().ok())
            .max()
    }

    /// Removes it, or gives it its name back if there is no other recording of that name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the file system refuses.
    pub fn clear(&self) -> Result<Cleared, StoreError> {
        if let Some(recording) = &self.aside_for
            && recording.symlink_metadata().is_err()
        {
            fs::rename(&self.path, recording)
                .map_err(StoreError::io(&self.path, "give it its name back"))?;
            return Ok(Cleared::PutBack);
        }
        fs::remove_dir_all(&self.path).map_err(StoreError::io(&self.path, "remove"))?;
        Ok(Cleared::Removed)
    }
}
