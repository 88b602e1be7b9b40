//! What memory management looks like: before, after, and four times a second in between.

use super::{Port, say, setup};
use crate::protocol::{GuestLine, KERNEL_LOG, ROTATIONAL};
use crate::runner::{now_ns, procfs};
use lowmark_spec::kernel::SYSCTLS;
use lowmark_spec::workload::Cgroup;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Files of a snapshot; a kernel may not have all of them. `proc/vmstat` is read apart.
const FILES: [&str; 10] = [
    "proc/zoneinfo",
    "proc/meminfo",
    "proc/buddyinfo",
    "proc/pagetypeinfo",
    "proc/swaps",
    "proc/diskstats",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/pressure/memory",
    ROTATIONAL,
];

/// Files of a cgroup.
const CGROUP_FILES: [&str; 6] = [
    "memory.stat",
    "memory.events",
    "memory.max",
    "memory.high",
    "memory.peak",
    "memory.pressure",
];

/// Its handler computes all reserves again whether it is written or read, by the pages managed at that time: what
/// is looked at would no longer be what booting left (`lowmem_reserve_ratio_sysctl_handler`).
const CHANGED_BY_READING: &str = "lowmem_reserve_ratio";

const VMSTAT: &str = "proc/vmstat";

/// Longest record of the kernel's log (`PRINTKRB_RECORD_MAX` and less before).
const LOG_RECORD_MAX: usize = 8 << 10;
/// How lines of the kernel's log begin that are kept.
const OF_MEMORY: [&str; 3] = ["Memory: ", "RAMDISK: ", "Freeing "];

/// Adds up what CPUs keep for themselves, so that counters are exact (`vm.stat_refresh`).
pub(super) fn fold() {
    // A kernel without it has counters that are a few pages off.
    let _ = procfs::set("stat_refresh", "1");
}

/// Everything but `/proc/vmstat`.
pub(super) fn files(groups: &[Cgroup]) -> BTreeMap<String, String> {
    let knobs = SYSCTLS.iter().filter(|knob| **knob != CHANGED_BY_READING);
    let knobs = knobs.map(|knob| {
        procfs::setting_path(knob)
            .trim_start_matches('/')
            .to_owned()
    });
    let root = setup::CGROUPS.trim_start_matches('/');
    let cgroups = groups
        .iter()
        .flat_map(|group| CGROUP_FILES.map(|file| format!("{root}/{}/{file}", group.name)));
    FILES
        .iter()
        .map(|file| (*file).to_owned())
        .chain(knobs)
        .chain(cgroups)
        .filter_map(|path| Some((fs::read_to_string(format!("/{path}")).ok()?, path)))
        .map(|(content, path)| (path, content))
        .collect()
}

/// What the kernel said of memory while it booted, into a snapshot: where its initial file system lay, and
/// what it freed when it needed no more of it.
pub(super) fn boot_into(files: &mut BTreeMap<String, String>) -> io::Result<()> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nonblocking);
    let mut log = match options.open(format!("/{KERNEL_LOG}")) {
        // A kernel without printk.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        log => log?,
    };
    let (mut said, mut record) = (String::new(), [0; LOG_RECORD_MAX]);
    loop {
        let length = match log.read(&mut record) {
            Ok(length) => length,
            // So much was said that the oldest is gone: what is left goes on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&record[..length]);
        // `level,number,time,flags;text`, and lines about devices.
        let line = text.lines().next().and_then(|line| line.split_once(';'));
        if let Some((_, line)) = line
            && OF_MEMORY.iter().any(|begin| line.starts_with(begin))
        {
            said.push_str(line);
            said.push('\n');
        }
    }
    files.insert(KERNEL_LOG.into(), said);
    Ok(())
}

/// Reads `/proc/vmstat` into a snapshot.
pub(super) fn vmstat_into(files: &mut BTreeMap<String, String>) -> io::Result<()> {
    files.insert(VMSTAT.into(), procfs::vmstat_text()?);
    Ok(())
}

/// Tells a thread to end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until the thread is to end; whether it is.
    fn wait(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Looks at `/proc/vmstat` again and again.
pub(super) fn series(port: &Port, interval: Duration, stop: &Stop) -> io::Result<()> {
    let names: Vec<String> = procfs::vmstat()?.into_keys().collect();
    say(port, &GuestLine::VmstatNames { names })?;
    while !stop.wait(interval) {
        let values = procfs::vmstat()?.into_values().collect();
        let time_ns = now_ns();
        say(port, &GuestLine::Vmstat { time_ns, values })?;
    }
    Ok(())
}
