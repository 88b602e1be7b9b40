//! What the host and PID 1 of a guest say to each other: a job goes in with the initramfs, lines come out
//! through a virtio port.

use crate::runner::Line;
use lowmark_record::CounterLog;
use lowmark_spec::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the job lies in the initramfs.
pub const JOB_FILE: &str = "job.json";
/// Where the modules lie in the initramfs.
pub const MODULES_DIRECTORY: &str = "modules";
/// Name of the port that lines go through.
pub const RESULT_PORT: &str = "lowmark.result";
/// Name of the port that the trace goes through.
pub const TRACE_PORT: &str = "lowmark.trace";
/// How what PID 1 says on the console begins when it gives up.
pub const CONSOLE_PREFIX: &str = "lowmark-runner: ";

/// Where the memory cgroups of a workload are in a guest.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// Whether the kernel takes a guest's disks, all of one kind, to be rotating: virtio_blk does not say.
pub const ROTATIONAL: &str = "sys/block/vda/queue/rotational";

/// The kernel's log, of which a snapshot has the lines about memory.
pub const KERNEL_LOG: &str = "dev/kmsg";

/// What follows the name of a device that a guest looked for in vain.
pub const NO_DEVICE: &str = " did not appear: does the kernel have its virtio driver?";

/// What a guest is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The workload, its machine, its kernel settings.
    pub scenario: Scenario,
    /// Files under [`MODULES_DIRECTORY`], in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Swap areas, with a header already.
    pub swap: Vec<SwapDisk>,
    /// File systems, made already.
    pub mounts: Vec<Mount>,
    /// Settings by the names that workloads use, in the order in which they are made.
    pub settings: Vec<Setting>,
    /// Tracepoints to switch on, `group` or `group:event`; none for no trace.
    pub events: Vec<String>,
    /// Size of the ring buffer of each CPU.
    pub buffer_kb: u64,
    /// Time between two looks at `/proc/vmstat`.
    pub interval_ms: u64,
    /// Every page that is touched is to be reported.
    pub touches: bool,
    /// Directory in which the workload's memory cgroups are.
    pub cgroups: PathBuf,
}

/// A swap area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapDisk {
    /// Serial number of the disk.
    pub serial: String,
    /// Priority; below zero the kernel chooses.
    pub priority: i32,
    /// Size of the area in bytes where it is a file in the file system of the disk; none where it is the disk.
    pub file: Option<u64>,
    /// Its disk's I/O scheduler, by the names that kernels have for it.
    pub elevator: Vec<String>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Name in the machine.
    pub name: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Serial number of the disk; none for tmpfs.
    pub serial: Option<String>,
    /// Its type, as mount(2) takes it.
    pub kind: String,
    /// What its device may have of the dirty pages: files under `/sys/block/*/bdi`.
    pub bdi: Vec<Setting>,
    /// It is mounted with `noatime`.
    pub noatime: bool,
    /// Its disk's I/O scheduler, by the names that kernels have for it.
    pub elevator: Vec<String>,
}

/// A setting of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name as in a workload.
    pub name: String,
    /// Value as written into its file.
    pub value: String,
    /// Whether a kernel without it will do.
    pub optional: bool,
}

/// A line of PID 1. Times are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestLine {
    /// PID 1 runs.
    Boot {
        /// `uname -r`
        release: String,
        /// Time since the kernel began.
        time_ns: u64,
    },
    /// Something that the reader of the recording should know.
    Note {
        /// What.
        text: String,
    },
    /// Files under `/proc` and `/sys` as they are.
    Snapshot {
        /// `before` or `after`
        when: String,
        /// Content by path, without the leading slash.
        files: BTreeMap<String, String>,
    },
    /// Names of the fields of a series of `/proc/vmstat`.
    VmstatNames {
        /// In order.
        names: Vec<String>,
    },
    /// One look at `/proc/vmstat`.
    Vmstat {
        /// When.
        time_ns: u64,
        /// Values in the order of the names.
        values: Vec<u64>,
    },
    /// What another file said while `/proc/vmstat` was looked at.
    History {
        /// With the times of those looks.
        log: CounterLog,
    },
    /// CPU time that a kernel thread used in the run.
    KernelThread {
        /// `comm`
        name: String,
        /// Process id.
        pid: u32,
        /// User time.
        user_ns: u64,
        /// System time.
        system_ns: u64,
    },
    /// What became of the trace.
    Trace {
        /// Bytes that went through the port.
        bytes: u64,
        /// Events that the ring buffer lost.
        lost: u64,
    },
    /// PID 1 gives up.
    GaveUp {
        /// Why.
        problem: String,
    },
    /// Everything was said; the guest switches itself off.
    Finished {
        /// Exit code of the runner, none if it was killed.
        code: Option<i32>,
    },
}

/// Any line that comes out of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// By the runner.
    Runner(Line),
    /// By PID 1.
    Guest(GuestLine),
}
