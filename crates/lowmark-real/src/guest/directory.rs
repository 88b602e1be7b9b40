//! The temporary directory of a guest, which goes away with whoever made it.
//!
//! What is dropped is removed. For what is not dropped, because lowmark was killed, there is a keeper: a
//! shell that waits for the end of its standard input and then removes the directory. The input ends when
//! lowmark does, however it ends. QEMU, which holds the files, dies then too (`sys::die_with_parent`).

use super::GuestError;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Waits for the end of the input, deaf to what a terminal or a time limit sends to everyone.
const KEEPER: &str = r#"trap '' HUP INT TERM; read -r _; rm -rf -- "$1""#;

/// The directory.
#[derive(Debug)]
pub(super) struct Directory {
    directory: TempDir,
    keeper: Child,
}

impl Directory {
    /// Makes a directory below `parent`, whose name begins with `prefix`.
    pub(super) fn new(parent: &Path, prefix: &str) -> Result<Directory, GuestError> {
        let failed = |error| GuestError::io(parent, error);
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir_in(parent)
            .map_err(failed)?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "lowmark-keeper"])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // In a group of its own, it outlives signals to that of lowmark.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Directory { directory, keeper })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The keeper removes it, and has done so when it has ended.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_gone_when_it_is_dropped() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(parent.path(), "odd 'name-").expect("made");
        let path = directory.path().to_owned();
        std::fs::write(path.join("file"), "content").expect("written");
        assert!(path.is_dir());
        drop(directory);
        assert!(!path.exists());
    }
}
