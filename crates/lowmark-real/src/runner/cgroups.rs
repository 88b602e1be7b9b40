//! The memory cgroups of a workload: who is in which, and `memory.reclaim`.

use super::interpreter::Program;
use lowmark_spec::workload::CgroupId;
use std::io;
use std::path::{Path, PathBuf};

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A file of a group.
fn file(program: &Program, group: CgroupId, name: &str) -> io::Result<PathBuf> {
    let path = &program.workload.cgroups[group].path;
    match &program.cgroups {
        Some(root) => Ok(root.join(path).join(name)),
        None => Err(io::Error::other(format!(
            "no place for the cgroup {path}: the runner was not told where cgroups are"
        ))),
    }
}

/// Moves this process into a group: what it allocates from now on is charged there.
pub(super) fn join(program: &Program, group: CgroupId) -> io::Result<()> {
    let path = file(program, group, "cgroup.procs")?;
    std::fs::write(&path, "0").map_err(|error| named(&path, &error))
}

/// Asks for so many bytes of a group to be reclaimed. That less could be had is no error (`EAGAIN`).
pub(super) fn reclaim(program: &Program, group: CgroupId, size: u64) -> io::Result<()> {
    let path = file(program, group, "memory.reclaim")?;
    match std::fs::write(&path, size.to_string()) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(named(&path, &error)),
        _ => Ok(()),
    }
}
