//! The memory cgroups of a workload: who is in which, and `memory.reclaim`.

use super::interpreter::Program;
use lowmark_spec::workload::CgroupId;
use std::io;
use std::path::{Path, PathBuf};

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The limit of a group of version 1.
const LIMIT_V1: &str = "memory.limit_in_bytes";

/// Version 1 has no file to ask for reclaim, but a limit that is lowered below what the group has is reclaimed to at once
/// (`mem_cgroup_resize_max`); then it is as it was.
fn reclaim_v1(limit: &Path, size: u64) -> io::Result<()> {
    let number = |path: &Path| -> io::Result<u64> {
        let text = std::fs::read_to_string(path).map_err(|error| named(path, &error))?;
        let parsed = text.trim().parse();
        parsed.map_err(|_| io::Error::other(format!("{}: {text:?}", path.display())))
    };
    let before = number(limit)?;
    let usage = number(&limit.with_file_name("memory.usage_in_bytes"))?;
    let write = |bytes: u64| std::fs::write(limit, bytes.to_string());
    let lowered = write(usage.saturating_sub(size).min(before));
    write(before).map_err(|error| named(limit, &error))?;
    match lowered {
        // Less could be had.
        Err(error) if error.kind() != io::ErrorKind::ResourceBusy => Err(named(limit, &error)),
        _ => Ok(()),
    }
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
    let limit = file(program, group, LIMIT_V1)?;
    if limit.exists() {
        return reclaim_v1(&limit, size);
    }
    let path = file(program, group, "memory.reclaim")?;
    match std::fs::write(&path, size.to_string()) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(named(&path, &error)),
        _ => Ok(()),
    }
}
