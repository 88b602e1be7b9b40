//! tracefs: where it is. Where it is not mounted, it can be had for this process alone: a mount that has no place in any directory
//! and ends with the program (fsmount(2), Linux 5.2).

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where it is mounted, the newer place first.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// A file that every tracefs has.
const SIGN: &str = "trace_clock";

/// tracefs.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// The mount that is nobody else's, as long as it is needed.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds it, or mounts it for this process alone.
    ///
    /// # Errors
    ///
    /// Why it cannot be had, as a sentence.
    pub fn find() -> io::Result<Tracefs> {
        let there = MOUNTED.iter().map(Path::new);
        for root in there {
            match fs::metadata(root.join(SIGN)) {
                Ok(_) => return Ok(Tracefs::at(root)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(io::Error::new(
                        error.kind(),
                        "only root may read trace events",
                    ));
                }
                Err(_) => {}
            }
        }
        let mount = mount().map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "tracefs is not mounted, and only root may mount it".to_owned()
                }
                io::ErrorKind::NotFound => "this kernel has no tracefs".to_owned(),
                _ if error.raw_os_error() == Some(libc::ENODEV) => {
                    "this kernel has no tracefs".to_owned()
                }
                _ => format!("tracefs is not mounted and cannot be: {error}"),
            };
            io::Error::new(error.kind(), why)
        })?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs {
            root,
            _mount: Some(mount),
        })
    }

    /// The one at a place that is known.
    pub fn at(root: &Path) -> Tracefs {
        Tracefs {
            root: root.to_owned(),
            _mount: None,
        }
    }

    /// Its directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where an instance is.
    pub(crate) fn instance(&self, name: &str) -> PathBuf {
        self.root.join("instances").join(name)
    }
}

/// Why even root may not have trace events, if that is so (lockdown(7), since 5.4).
pub(crate) fn locked_down() -> Option<&'static str> {
    let state = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let locked = state.contains("[confidentiality]");
    locked
        .then_some("this kernel is locked down (confidentiality) and gives trace events to nobody")
}

/// tracefs without a place in any directory.
fn mount() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?)
}

/// Events that the ring buffers of a tracefs or of an instance lost.
pub(crate) fn lost(directory: &Path) -> io::Result<u64> {
    let mut lost = 0;
    for entry in fs::read_dir(directory.join("per_cpu"))? {
        let stats = fs::read_to_string(entry?.path().join("stats"))?;
        lost += lost_in(&stats);
    }
    Ok(lost)
}

/// Events lost by one CPU, from its `stats`.
fn lost_in(stats: &str) -> u64 {
    let fields = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = fields.filter(|(name, _)| matches!(*name, "overrun" | "dropped events"));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_added_up() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 0\nbytes: 9\ndropped events: 4\n\
            read events: 100\n";
        assert_eq!(lost_in(stats), 7);
    }
}
