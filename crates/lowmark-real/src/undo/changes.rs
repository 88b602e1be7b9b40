//! The changes to the system, one call each, so that a test can end the program before any of them.

use crate::runner::sys;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tasks that were killed are gone, and a cgroup without tasks can be removed, a little later.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

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
    /// Writes a value into an existing file of a trace instance, a cgroup or `/proc/sys`.
    fn set(&mut self, path: &Path, value: &str) -> io::Result<()>;
    /// Makes a cgroup.
    fn make_group(&mut self, path: &Path) -> io::Result<()>;
    /// Kills all tasks in a cgroup and in those inside it, and waits until they are gone.
    fn kill_tasks(&mut self, group: &Path) -> io::Result<()>;
    /// Removes a cgroup without tasks, with those inside it.
    fn remove_group(&mut self, path: &Path) -> io::Result<()>;
    /// Makes a directory that only its owner may look into.
    fn make_directory(&mut self, path: &Path) -> io::Result<()>;
    /// Removes a directory with everything in it.
    fn remove_directory(&mut self, path: &Path) -> io::Result<()>;
    /// Switches swap on, to be used before any other.
    fn swap_on(&mut self, file: &Path) -> io::Result<()>;
    /// Switches swap off; `NotFound` if it is not on.
    fn swap_off(&mut self, file: &Path) -> io::Result<()>;
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
        // It is busy as long as somebody reads it, who may be about to end.
        patiently(|| fs::remove_dir(path))
    }

    fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(value.as_bytes())
    }

    fn make_group(&mut self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn kill_tasks(&mut self, group: &Path) -> io::Result<()> {
        // Since 5.14, and of version 2 alone.
        let _ = self.set(&group.join("cgroup.kill"), "1");
        let mut left = PATIENCE;
        loop {
            let tasks = tasks_in(group)?;
            if tasks.is_empty() {
                return Ok(());
            }
            // A task that is gone already needs no signal.
            for task in &tasks {
                let _ = kill_process(*task, Signal::KILL);
            }
            if left.is_zero() {
                let text = format!("{} tasks do not end", tasks.len());
                return Err(io::Error::other(text));
            }
            std::thread::sleep(POLL);
            left = left.saturating_sub(POLL);
        }
    }

    fn remove_group(&mut self, path: &Path) -> io::Result<()> {
        for inner in groups_in(path)? {
            self.remove_group(&inner)?;
        }
        // What is charged to it would stay behind; of version 1 alone.
        let _ = self.set(&path.join("memory.force_empty"), "0");
        patiently(|| fs::remove_dir(path))
    }

    fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        patiently(|| fs::remove_dir_all(path))
    }

    fn swap_on(&mut self, file: &Path) -> io::Result<()> {
        /// The highest that swapon(2) takes.
        const PRIORITY: i32 = 32_767;
        sys::swapon(&CString::new(file.as_os_str().as_bytes())?, PRIORITY)
    }

    fn swap_off(&mut self, file: &Path) -> io::Result<()> {
        if !swaps()?.iter().any(|on| on == file) {
            return Err(io::ErrorKind::NotFound.into());
        }
        sys::swapoff(&CString::new(file.as_os_str().as_bytes())?)
    }
}

/// Does something again and again while others keep it busy.
fn patiently(mut change: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut left = PATIENCE;
    loop {
        match change() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ResourceBusy | io::ErrorKind::DirectoryNotEmpty
                ) && !left.is_zero() =>
            {
                std::thread::sleep(POLL);
                left = left.saturating_sub(POLL);
            }
            done => return done,
        }
    }
}

/// Cgroups directly in a cgroup.
fn groups_in(group: &Path) -> io::Result<Vec<PathBuf>> {
    let mut groups = Vec::new();
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            groups.push(entry.path());
        }
    }
    groups.sort();
    Ok(groups)
}

/// Tasks in a cgroup and in those inside it.
fn tasks_in(group: &Path) -> io::Result<Vec<Pid>> {
    let text = fs::read_to_string(group.join("cgroup.procs"))?;
    let numbers = text.lines().filter_map(|line| line.parse::<i32>().ok());
    let mut tasks: Vec<Pid> = numbers.filter_map(Pid::from_raw).collect();
    for inner in groups_in(group)? {
        tasks.extend(tasks_in(&inner)?);
    }
    Ok(tasks)
}

/// Files and devices that are swapped to, as `/proc/swaps` has them.
fn swaps() -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/swaps")?;
    let lines = text.lines().skip(1);
    let names = lines.filter_map(|line| line.split_whitespace().next());
    // A space in a name stands as an octal number there; lowmark gives its files no such names.
    Ok(names.map(PathBuf::from).collect())
}
