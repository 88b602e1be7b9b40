//! What is changed in the system, and how it is undone.
//!
//! A recorder that reads trace events needs a trace buffer of its own, an instance of tracefs. That is all that it
//! changes, and everything inside of it goes with it. Each change is one call of [`Changes`], so that a test can end
//! the program before any of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The changes that there are.
pub trait Changes: std::fmt::Debug + Send {
    /// Writes a file that only its owner may read, to the disk; it must not be there yet.
    fn create(&mut self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Gives a file its name, to the disk.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
    /// Makes an instance of tracefs.
    fn make_instance(&mut self, path: &Path) -> io::Result<()>;
    /// Removes an instance of tracefs, with all that is set in it.
    fn remove_instance(&mut self, path: &Path) -> io::Result<()>;
    /// Writes a value into a file of an instance.
    fn set(&mut self, path: &Path, value: &str) -> io::Result<()>;
}

/// Does them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Changes for Real {
    fn create(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(content)?;
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        match to.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_instance(&mut self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_instance(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        // Files of tracefs are there already.
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(value.as_bytes())
    }
}
