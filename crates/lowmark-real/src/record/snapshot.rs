//! Files under `/proc` and `/sys` as they are at one time: what memory looks like, and every setting that it depends on.

use super::Roots;
use crate::kernel_log;
use crate::protocol::KERNEL_LOG;
use crate::runner::procfs::CHANGED_BY_READING;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Files of `/proc`; a kernel may not have all of them, and some are only root's.
const PROC: [&str; 12] = [
    "vmstat",
    "zoneinfo",
    "meminfo",
    "buddyinfo",
    "pagetypeinfo",
    "swaps",
    "diskstats",
    "pressure/cpu",
    "pressure/io",
    "pressure/memory",
    "cmdline",
    "sys/kernel/task_delayacct",
];

/// Directories of settings below `/sys`, and of those in it the files that all may read.
const SETTINGS: [&str; 6] = [
    "kernel/mm/transparent_hugepage",
    "kernel/mm/transparent_hugepage/khugepaged",
    "kernel/mm/lru_gen",
    "kernel/mm/swap",
    "kernel/mm/numa",
    "module/zswap/parameters",
];

/// Settings of a disk.
const DISK: [&str; 5] = [
    "queue/rotational",
    "queue/scheduler",
    "queue/read_ahead_kb",
    "queue/nr_requests",
    "queue/wbt_lat_usec",
];

/// Longest file that is kept, bytes: settings are short, and `zoneinfo` of a large machine is long.
const LENGTH_MAX: usize = 4 << 20;

/// The files, by path without the leading slash.
pub(super) fn files(roots: &Roots, cgroups: &[String]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for name in PROC {
        keep(&roots.proc.join(name), format!("proc/{name}"), &mut files);
    }
    directory(&roots.proc.join("sys/vm"), "proc/sys/vm", &mut files);
    for name in SETTINGS {
        directory(&roots.sys.join(name), &format!("sys/{name}"), &mut files);
    }
    for disk in names(&roots.sys.join("block")) {
        // Those of no use would be the most.
        if disk.starts_with("loop") || disk.starts_with("ram") {
            continue;
        }
        for name in DISK {
            let name = format!("block/{disk}/{name}");
            keep(&roots.sys.join(&name), format!("sys/{name}"), &mut files);
        }
    }
    for group in cgroups {
        let path = Path::new("/").join(group);
        for name in names(&path)
            .iter()
            .filter(|name| name.starts_with("memory."))
        {
            readable(&path.join(name), format!("{group}/{name}"), &mut files);
        }
    }
    files
}

/// What the kernel said while it booted, where it may be read.
pub(super) fn kernel_log_into(files: &mut BTreeMap<String, String>) {
    if let Ok(Some(said)) = kernel_log::of_memory() {
        files.insert(KERNEL_LOG.into(), said);
    }
}

/// Names in a directory, in order; none where it cannot be listed.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The settings in a directory that may be looked at without a change.
fn directory(path: &Path, name: &str, files: &mut BTreeMap<String, String>) {
    for setting in names(path) {
        if !CHANGED_BY_READING.contains(&setting.as_str()) {
            readable(&path.join(&setting), format!("{name}/{setting}"), files);
        }
    }
}

/// A file that all may read. One that is only root's may do something when it is read: `stat_refresh` does.
fn readable(path: &Path, name: String, files: &mut BTreeMap<String, String>) {
    const ALL: u32 = 0o444;
    if fs::metadata(path).is_ok_and(|data| data.is_file() && data.mode() & ALL == ALL) {
        keep(path, name, files);
    }
}

fn keep(path: &Path, name: String, files: &mut BTreeMap<String, String>) {
    let content = fs::read(path)
        .ok()
        .filter(|content| content.len() <= LENGTH_MAX);
    if let Some(content) = content {
        files.insert(name, String::from_utf8_lossy(&content).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn settings_are_kept_and_triggers_are_not_read() {
        let place = tempfile::tempdir().expect("a directory");
        let roots = Roots {
            proc: place.path().join("proc"),
            sys: place.path().join("sys"),
        };
        let write = |name: &str, mode: u32| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(&path, name).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        };
        for name in [
            "proc/vmstat",
            "proc/sys/vm/swappiness",
            "proc/sys/vm/lowmem_reserve_ratio",
            "sys/kernel/mm/lru_gen/enabled",
            "sys/kernel/mm/transparent_hugepage/defrag",
            "sys/block/vda/queue/scheduler",
            "sys/block/loop0/queue/scheduler",
        ] {
            write(name, 0o644);
        }
        write("proc/sys/vm/stat_refresh", 0o600);
        write("proc/sys/vm/drop_caches", 0o200);
        let kept = files(&roots, &[]);
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "proc/sys/vm/swappiness",
                "proc/vmstat",
                "sys/block/vda/queue/scheduler",
                "sys/kernel/mm/lru_gen/enabled",
                "sys/kernel/mm/transparent_hugepage/defrag",
            ]
        );
    }
}
