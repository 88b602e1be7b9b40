//! What memory management looks like: before, after, and four times a second in between.

use super::{Port, say};
use crate::guest::generations::FILE as GENERATIONS;
use crate::kernel_log;
use crate::protocol::{CGROUPS, GuestLine, KERNEL_LOG, ROTATIONAL};
use crate::record::Files;
use crate::runner::{now_ns, procfs};
use lowmark_spec::kernel::SYSCTLS;
use lowmark_spec::workload::Cgroup;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Files of a snapshot; a kernel may not have all of them. `proc/vmstat` is read apart.
const FILES: [&str; 11] = [
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
    GENERATIONS,
];

/// Files of a cgroup.
const CGROUP_FILES: [&str; 13] = [
    "memory.stat",
    "memory.events",
    "memory.events.local",
    "memory.swap.events",
    "memory.current",
    "memory.swap.current",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.peak",
    "memory.pressure",
];

const VMSTAT: &str = "proc/vmstat";

/// Adds up what CPUs keep for themselves, so that counters are exact (`vm.stat_refresh`). Reading `memory.stat` adds up the
/// counters of cgroups. Reclaim decides by these since 5.15, and a worker adds them up every two seconds: without
/// the reading, reclaim would know the memory of some moment of the boot when the workload begins.
pub(super) fn fold() {
    // A kernel without one of them has counters that are a few pages off, or no such counters.
    let _ = procfs::set("stat_refresh", "1");
    let _ = fs::read(format!("{CGROUPS}/memory.stat"));
}

/// Everything but `/proc/vmstat`.
pub(super) fn files(groups: &[Cgroup]) -> BTreeMap<String, String> {
    let knobs = SYSCTLS
        .iter()
        .filter(|knob| !procfs::CHANGED_BY_READING.contains(knob));
    let knobs = knobs.map(|knob| {
        procfs::setting_path(knob)
            .trim_start_matches('/')
            .to_owned()
    });
    let root = CGROUPS.trim_start_matches('/');
    let cgroups = groups
        .iter()
        .flat_map(|group| CGROUP_FILES.map(|file| format!("{root}/{}/{file}", group.path)));
    FILES
        .iter()
        .map(|file| (*file).to_owned())
        .chain(knobs)
        .chain(cgroups)
        .filter_map(|path| Some((fs::read_to_string(format!("/{path}")).ok()?, path)))
        .map(|(content, path)| (path, content))
        .collect()
}

/// What the kernel said of memory while it booted, into a snapshot.
pub(super) fn boot_into(files: &mut BTreeMap<String, String>) -> io::Result<()> {
    if let Some(said) = kernel_log::of_memory()? {
        files.insert(KERNEL_LOG.into(), said);
    }
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

/// Looks at `/proc/vmstat` again and again, and at memory, disks and pressure, of which it says everything at the end.
pub(super) fn series(port: &Port, interval: Duration, stop: &Stop) -> io::Result<()> {
    let names: Vec<String> = procfs::vmstat()?.into_keys().collect();
    say(port, &GuestLine::VmstatNames { names })?;
    let mut files = Files::beside_vmstat();
    while !stop.wait(interval) {
        let values = procfs::vmstat()?.into_values().collect();
        let time_ns = now_ns();
        say(port, &GuestLine::Vmstat { time_ns, values })?;
        files.look(time_ns);
    }
    let mut logs = files.into_logs();
    logs.try_for_each(|log| say(port, &GuestLine::History { log }))
}
