//! A guest's disks: sparse files, with the header of a swap area or with a file system.

use super::{GuestError, modules};
use crate::protocol::{Mount, Setting, SwapDisk};
use crate::swap_area;
use lowmark_spec::Scenario;
use lowmark_spec::machine::{Atime, Device, Elevator, FileSystem, FsKind, INODE_RATIO, PAGE_SIZE};
use lowmark_spec::workload::SizeDist;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The type that guests have unless a machine has XFS and a guest can have it.
const EXT4: &str = "ext4";

/// Bytes that are read at a time.
const READ_THROUGH: usize = 1 << 20;

/// What makes XFS, or why there is none.
pub(super) type Xfs = Result<PathBuf, String>;

/// Least size of a file system that mkfs.xfs makes, and some more.
const XFS_MIN: u64 = 320 << 20;

/// Room on a file system beside the files of the workload: journal, inodes, what the workload appends.
const SLACK: u64 = 256 << 20;

/// A disk as QEMU gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) serial: String,
    /// The device of the machine on which it lies: disks of one device share its bandwidth.
    pub(super) device: String,
    /// Bytes a second.
    pub(super) bandwidth: Option<u64>,
}

/// All disks, and what PID 1 has to do with them.
#[derive(Debug, Default)]
pub(super) struct Disks {
    pub(super) disks: Vec<Disk>,
    pub(super) swap: Vec<SwapDisk>,
    pub(super) mounts: Vec<Mount>,
    pub(super) notes: Vec<String>,
}

/// How fast a guest's disks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bandwidth {
    /// As fast as the machine's devices transfer.
    #[default]
    Machine,
    /// As fast as they can.
    Unlimited,
    /// So many bytes a second.
    Bytes(u64),
}

impl Bandwidth {
    fn of(self, device: &Device) -> Option<u64> {
        match self {
            Bandwidth::Machine => (PAGE_SIZE * 1_000_000_000)
                .checked_div(device.page_ns)
                .filter(|&rate| rate > 0),
            Bandwidth::Unlimited => None,
            Bandwidth::Bytes(rate) => Some(rate),
        }
    }
}

/// Bytes that the disks may come to hold: all of swap, and the files.
pub(super) fn bytes_max(scenario: &Scenario) -> u64 {
    let swap = scenario
        .machine
        .swap
        .iter()
        .map(|area| area.size)
        .sum::<u64>();
    let used = scenario.workload.has_files();
    swap.saturating_add(if used { files_bytes(scenario) } else { 0 })
}

fn files_bytes(scenario: &Scenario) -> u64 {
    let files = scenario.workload.files.iter().map(|file| file.size);
    let sets = scenario.workload.filesets.iter().map(|set| {
        let size = match set.size {
            SizeDist::Fixed(size) | SizeDist::Uniform(_, size) | SizeDist::LogNormal(size, _) => {
                size
            }
        };
        size.saturating_mul(set.directories)
            .saturating_mul(set.files)
    });
    files.chain(sets).fold(0, u64::saturating_add)
}

/// What limits the choice of a guest's disks and file systems.
pub(super) struct Can {
    pub(super) bandwidth: Bandwidth,
    /// Version of the kernel: file systems are made with features that this version can mount.
    pub(super) version: (u32, u32),
    pub(super) xfs: Xfs,
}

/// Makes the disks of a scenario in a directory. File systems are made only if the workload has files.
pub(super) fn make(scenario: &Scenario, can: &Can, directory: &Path) -> Result<Disks, GuestError> {
    let machine = &scenario.machine;
    let mut made = Disks::default();
    for (at, area) in machine.swap.iter().enumerate() {
        let serial = format!("swap{at}");
        let path = directory.join(&serial);
        if area.file {
            // A file system that holds nothing else.
            let size = area.size.saturating_mul(21) / 20;
            make_ext4(&path, size.saturating_add(SLACK), INODE_RATIO, can.version)?;
        } else {
            make_partition(&path, area.size)?;
        }
        let device = &machine.devices[area.device];
        made.disks.push(Disk {
            path,
            serial: serial.clone(),
            device: device.name.clone(),
            bandwidth: can.bandwidth.of(device),
        });
        made.swap.push(SwapDisk {
            serial,
            priority: area.priority,
            file: area.file.then_some(area.size),
            elevator: names(device.elevator),
        });
    }
    if scenario.workload.has_files() {
        let file_systems = machine.filesystems.iter().enumerate();
        for (at, file_system) in file_systems {
            let name = format!("data{at}");
            make_mount(&mut made, scenario, can, file_system, &directory.join(name))?;
        }
    }
    Ok(made)
}

/// A swap partition, in this file.
fn make_partition(path: &Path, size: u64) -> Result<(), GuestError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(&swap_area::header(size))?;
        file.set_len(size / PAGE_SIZE * PAGE_SIZE)
    });
    written.map_err(|error| GuestError::io(path, error))
}

/// A file system on a disk of its own, in this file, unless it is in memory.
fn make_mount(
    made: &mut Disks,
    scenario: &Scenario,
    can: &Can,
    file_system: &FileSystem,
    path: &Path,
) -> Result<(), GuestError> {
    let device = file_system
        .device
        .filter(|_| file_system.kind != FsKind::Tmpfs)
        .map(|device| &scenario.machine.devices[device]);
    let (mut serial, mut kind) = (None, "tmpfs");
    if let Some(device) = device {
        let size = files_bytes(scenario).saturating_mul(5) / 4;
        let size = size.saturating_add(SLACK).max(device.size.min(8 << 30));
        kind = EXT4;
        let instead_of = match (file_system.kind, &can.xfs) {
            (FsKind::Xfs, Ok(program)) => {
                kind = modules::XFS;
                make_xfs(program, path, size.max(XFS_MIN), can.version)?;
                None
            }
            (FsKind::Xfs, Err(lacking)) => Some(format!("xfs: {lacking}")),
            (FsKind::Ext3, _) => Some("ext3".into()),
            (FsKind::Ext4 | FsKind::Tmpfs, _) => None,
        };
        if kind == EXT4 {
            make_ext4(path, size, file_system.inode_ratio, can.version)?;
        }
        let note = |other| format!("file system {}: ext4 in place of {other}", file_system.name);
        made.notes.extend(instead_of.map(note));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        made.disks.push(Disk {
            path: path.to_owned(),
            serial: name.clone().into_owned(),
            device: device.name.clone(),
            bandwidth: can.bandwidth.of(device),
        });
        serial = Some(name.into_owned());
    }
    made.mounts.push(Mount {
        name: file_system.name.clone(),
        point: Path::new("/fs").join(&file_system.name),
        serial,
        kind: kind.into(),
        noatime: file_system.atime == Atime::Noatime,
        bdi: device.map_or_else(Vec::new, shares),
        elevator: device.map_or_else(Vec::new, |device| names(device.elevator)),
    });
    Ok(())
}

/// What kernels call an I/O scheduler (`queue/scheduler`): blk-mq, and request queues before it.
fn names(elevator: Elevator) -> Vec<String> {
    let names: &[&str] = match elevator {
        Elevator::Noop => &["none", "noop"],
        Elevator::Deadline => &["mq-deadline", "deadline"],
        Elevator::Cfq => &["cfq"],
    };
    names.iter().map(|name| (*name).into()).collect()
}

/// What a device may have of the dirty pages, where that is not the kernel's default. The most comes first, as the least
/// must not be above it.
fn shares(device: &Device) -> Vec<Setting> {
    let settings = [
        ("max_ratio", device.max_ratio, 100),
        ("min_ratio", device.min_ratio, 0),
        // 6.2
        ("strict_limit", u64::from(device.strictlimit), 0),
    ];
    let changed = settings
        .into_iter()
        .filter(|(_, value, default)| value != default);
    let setting = |(name, value, _): (&str, u64, u64)| Setting {
        name: name.into(),
        value: value.to_string(),
        optional: false,
    };
    changed.map(setting).collect()
}

/// mke2fs, of e2fsprogs.
pub(crate) fn mke2fs() -> Option<PathBuf> {
    find_program("mke2fs")
}

/// mkfs.xfs, of xfsprogs.
pub(crate) fn mkfs_xfs() -> Option<PathBuf> {
    find_program("mkfs.xfs")
}

/// A program in the PATH or where those of the system administrator are.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// An empty ext4 in a sparse file. Nothing is left to be done by the guest's `ext4lazyinit`, whose writes
/// would be seen. 3.4 cannot mount one with checksums, which 3.6 can.
fn make_ext4(
    path: &Path,
    size: u64,
    inode_ratio: u64,
    version: (u32, u32),
) -> Result<(), GuestError> {
    let program = mke2fs().ok_or_else(|| GuestError::NoFileSystem {
        problem: "no mke2fs here; install e2fsprogs".into(),
    })?;
    let mut command = Command::new(program);
    command
        .args(["-q", "-F", "-t", EXT4, "-b", "4096", "-J", "size=32", "-i"])
        .arg(inode_ratio.to_string())
        .args([
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0",
        ]);
    if version < (3, 6) {
        command.args(["-O", "^metadata_csum"]);
    }
    make_file_system(command, path, size)
}

/// An empty XFS in a sparse file, as mkfs.xfs makes it by default. A kernel before 5.10 does not know all that is default
/// today (types of files in directories 3.13, sparse inodes 4.2, reflink 4.9, times after 2038 5.10), and gets the format of
/// old.
fn make_xfs(program: &Path, path: &Path, size: u64, version: (u32, u32)) -> Result<(), GuestError> {
    let mut command = Command::new(program);
    command.args(["-q", "-f"]);
    if version < (5, 10) {
        command.args(["-m", "crc=0", "-n", "ftype=0"]);
    }
    make_file_system(command, path, size)
}

/// Makes a sparse file, and runs a program that makes a file system in it.
fn make_file_system(mut command: Command, path: &Path, size: u64) -> Result<(), GuestError> {
    let failed = |problem: String| GuestError::NoFileSystem { problem };
    let name = Path::new(command.get_program()).file_name();
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    File::create(path)
        .and_then(|file| file.set_len(size))
        .map_err(|error| GuestError::io(path, error))?;
    let output = command
        .arg(path)
        .output()
        .map_err(|error| failed(format!("cannot start {name}: {error}")))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}

/// Reads the files of disks once, so that the host has memory for each of their pages when the guest begins to write: a guest's first write to
/// a page takes up to ten times as long as later ones if the host never used the memory before that it gives to the page. Files that would take
/// more than half of the available memory are not read, which the note says.
pub(super) fn read_through(disks: &[Disk]) -> io::Result<Option<String>> {
    let sizes = disks.iter().map(|disk| Ok(disk.path.metadata()?.len()));
    let bytes = sizes.sum::<io::Result<u64>>()?;
    let available = available_memory()?;
    if bytes > available / 2 {
        return Ok(Some(format!(
            "the guest's disks ({} MiB) were not read into the host's memory, of which {} MiB are available: first writes \
             to a disk may be slow",
            bytes >> 20,
            available >> 20
        )));
    }
    let mut buffer = vec![0; READ_THROUGH];
    for disk in disks {
        let mut file = File::open(&disk.path)?;
        while file.read(&mut buffer)? > 0 {}
    }
    Ok(None)
}

/// Memory that programs can have without swapping, bytes (`MemAvailable`); 0 if the host does not say.
fn available_memory() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kib.unwrap_or(0) * 1024)
}

/// Bytes that are free for files in a directory.
pub(super) fn room(directory: &Path) -> Result<u64, GuestError> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|error| GuestError::io(directory, io::Error::from(error)))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Refuses if the file system of a directory has too little room; half of it in reserve would be better,
/// but sparse files seldom fill up.
pub(super) fn check_room(directory: &Path, needed: u64) -> Result<(), GuestError> {
    let available = room(directory)?;
    if available < needed {
        Err(GuestError::DiskFull {
            path: fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned()),
            available_mb: available >> 20,
            needed_mb: needed.div_ceil(1 << 20),
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_follows_the_machine() {
        let device = Device::ssd("sda", 1 << 30);
        assert_eq!(Bandwidth::Machine.of(&device), Some(500_000_000));
        assert_eq!(Bandwidth::Unlimited.of(&device), None);
        assert_eq!(Bandwidth::Bytes(7).of(&device), Some(7));
    }

    #[test]
    fn a_full_disk_is_refused() {
        let error = check_room(Path::new("."), u64::MAX).expect_err("no disk is that large");
        assert!(error.to_string().contains("MB free"), "{error}");
    }
}
