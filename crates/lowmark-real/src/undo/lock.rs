//! One run on this system at a time: what one changes of the whole system another would take for how it was.
//!
//! The lock is a file that is locked (flock(2)) by lowmark and by its keeper, so that it lasts until everything is undone, and no
//! longer, however they end.

use super::journal::Places;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

const NAME: &str = "lowmark-run.lock";

/// The lock, as long as it is held.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// Why it cannot be had.
#[derive(Debug)]
pub(crate) enum NoLock {
    /// Another process has it; its number, if the file says it yet.
    Held(Option<u32>),
    /// There is no place for it.
    Failed(io::Error),
}

impl Lock {
    /// Takes it, in the first place that there is for it.
    pub(crate) fn take(places: &Places) -> Result<Lock, NoLock> {
        let mut problem = io::Error::other("there is no place for a lock");
        for place in &places.0 {
            // Only its owner may look into it. That it cannot be made shows when the lock is.
            let _ = fs::DirBuilder::new().mode(0o700).create(place);
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).mode(0o600);
            let path = place.join(NAME);
            loop {
                match options.custom_flags(libc::O_NOFOLLOW).open(&path) {
                    Ok(file) => match Lock::of(file, &path)? {
                        Some(lock) => return Ok(lock),
                        None => continue,
                    },
                    Err(error) => {
                        let text = format!("cannot lock {}: {error}", path.display());
                        problem = io::Error::new(error.kind(), text);
                        break;
                    }
                }
            }
        }
        Err(NoLock::Failed(problem))
    }

    /// Locks a file; none if the file lost its name meanwhile, as its last holder removed it: such a file locks nobody out.
    fn of(mut file: File, path: &Path) -> Result<Option<Lock>, NoLock> {
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(NoLock::Failed(error.into()));
            }
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            return Err(NoLock::Held(
                read.ok().and_then(|_| text.trim().parse().ok()),
            ));
        }
        let same = file
            .metadata()
            .and_then(|own| Ok(own.ino() == fs::metadata(path)?.ino()));
        if !same.is_ok_and(|same| same) {
            return Ok(None);
        }
        let own = std::process::id().to_string();
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(own.as_bytes()));
        written.map_err(NoLock::Failed)?;
        Ok(Some(Lock(file)))
    }

    /// Removes the file of the lock that belongs to a journal, while it is still held.
    pub(super) fn remove_beside(journal: &Path) {
        // If it stays it locks nobody out.
        let _ = fs::remove_file(journal.with_file_name(NAME));
    }

    /// Programs that are started meanwhile hold it as well.
    pub(super) fn hand_on<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        fcntl_setfd(&self.0, FdFlags::empty())?;
        let started = start();
        fcntl_setfd(&self.0, FdFlags::CLOEXEC)?;
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_its_keeper_as_well() {
        let place = tempfile::tempdir().expect("a directory");
        let places = Places(vec![
            place.path().join("none/at/all"),
            place.path().to_owned(),
        ]);
        let lock = Lock::take(&places).expect("free");
        let own = Some(std::process::id());
        let is_held = || matches!(Lock::take(&places), Err(NoLock::Held(pid)) if pid == own);
        assert!(is_held());
        let mut keeper = std::process::Command::new("/bin/cat");
        let keeper = keeper.stdin(std::process::Stdio::piped());
        let mut keeper = lock.hand_on(|| keeper.spawn()).expect("started");
        drop(lock);
        assert!(is_held(), "the keeper holds it");
        drop(keeper.stdin.take());
        keeper.wait().expect("ended");
        assert!(Lock::take(&places).is_ok());
    }
}
