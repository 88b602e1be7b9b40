//! Guests: a kernel image in QEMU, the runner as its PID 1, and what came out of it as a recording.
//!
//! 1. What cannot be done is refused before anything starts.
//! 2. In a temporary directory: the initial file system with the runner, its libraries, modules and the
//!    job (`initramfs.rs`, `elf.rs`, `modules.rs`); the disks (`disks.rs`).
//! 3. QEMU runs (`qemu.rs`). The guest writes lines and trace through virtio ports into files.
//! 4. When it has ended, the lines become a recording (`outcome.rs`) and the trace its events (`events.rs`),
//!    or the console says why there is none (`console.rs`).
//!
//! Nothing stays behind: QEMU is killed and the directory removed, whatever happens (`directory.rs`).

mod accel;
mod console;
mod directory;
mod disks;
mod elf;
mod error;
mod events;
pub(crate) mod generations;
mod initramfs;
pub mod kernels;
mod modules;
mod outcome;
mod qemu;
mod runner_files;

pub use disks::Bandwidth;
pub use error::GuestError;
pub(crate) use events::notes as trace_notes;
pub use kernels::KernelImage;
pub use qemu::{Accel, find as find_qemu};

pub(crate) use accel::kvm_known;
pub(crate) use disks::{mke2fs, mkfs_xfs};
pub(crate) use runner_files::find as find_runner;

use crate::protocol::{CGROUPS, JOB_FILE, Job, MODULES_DIRECTORY, Mount, Setting, SwapDisk};
use crate::runner::unsupported;
use directory::Directory;
use lowmark_record::Recording;
use lowmark_spec::Scenario;
use lowmark_spec::machine::Arch;
use outcome::Heard;
use qemu::{Ended, Launch, Watch};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Which events to trace, and where their text goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `group` or `group:event`.
    pub events: Vec<String>,
    /// File for the text of `trace_pipe`, if it is to be kept; times are CLOCK_MONOTONIC of the guest.
    pub file: Option<PathBuf>,
    /// Ring buffer of each CPU, KiB. It is the guest's memory.
    pub buffer_kb: u64,
}

/// How to run a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestOptions {
    /// The kernel.
    pub image: KernelImage,
    /// Trace, if one is wanted.
    pub trace: Option<Trace>,
    /// Time after which the guest is stopped.
    pub timeout: Duration,
    /// KVM or not; none for KVM where it works.
    pub accel: Option<Accel>,
    /// QEMU, if not the one that is found.
    pub qemu: Option<PathBuf>,
    /// The runner, if not the one that is found.
    pub runner: Option<PathBuf>,
    /// Speed of the disks.
    pub bandwidth: Bandwidth,
    /// Time between two looks at `/proc/vmstat`.
    pub interval: Duration,
    /// More for the kernel's command line.
    pub append: Vec<String>,
    /// Directory for the guest's disks; none for the system's.
    pub scratch: Option<PathBuf>,
}

/// Whether pages stand in generations.
const LRU_GEN: &str = "lru_gen.enabled";

/// Ring buffer of each CPU: enough for the busiest of the captures that were made, a small part of the
/// smallest guest.
pub const BUFFER_KB: u64 = 4096;

/// Events that say what reclaim did and who waited for it, without one for every page or allocation.
pub const EVENTS: [&str; 7] = [
    "vmscan",
    "compaction",
    "huge_memory",
    "migrate:mm_migrate_pages",
    "migrate:mm_migrate_pages_start",
    "oom:mark_victim",
    "writeback:balance_dirty_pages",
];

impl GuestOptions {
    /// A guest with this kernel, without a trace.
    pub fn new(image: KernelImage) -> GuestOptions {
        GuestOptions {
            image,
            trace: None,
            timeout: Duration::from_secs(600),
            accel: None,
            qemu: None,
            runner: None,
            bandwidth: Bandwidth::default(),
            interval: Duration::from_millis(250),
            append: Vec::new(),
            scratch: None,
        }
    }
}

/// What a guest showed.
#[derive(Debug)]
pub struct GuestOutcome {
    /// The recording.
    pub recording: Recording,
    /// CLOCK_MONOTONIC of the guest when the run began: the zero of the recording's times.
    pub start_ns: u64,
    /// From the kernel's first instruction to PID 1, by the guest's clock.
    pub boot: Duration,
    /// The whole run of QEMU.
    pub wall: Duration,
    /// Minor and major faults of all tasks, by getrusage(2).
    pub faults: (u64, u64),
    /// Bytes of trace.
    pub trace_bytes: u64,
    /// The console's lines, the last 2000.
    pub console: Vec<String>,
}

/// `${XDG_CACHE_HOME:-~/.cache}/lowmark`
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("lowmark")
}

/// Runs a scenario in a guest.
///
/// # Errors
///
/// A [`GuestError`] says what is missing, what the workload asks for in vain, or how the guest ended. A
/// task that the OOM killer ended is no error but an outcome of the recording.
pub fn run(scenario: &Scenario, options: &GuestOptions) -> Result<GuestOutcome, GuestError> {
    check(scenario)?;
    let qemu = options.qemu.clone().map_or_else(qemu::find, Ok)?;
    let index = index(&options.image)?;
    let scratch = options.scratch.clone().unwrap_or_else(std::env::temp_dir);
    disks::check_room(&scratch, disks::bytes_max(scenario))?;
    let directory = Directory::new(&scratch, "lowmark-guest-")?;
    let can = can(options, &index);
    let disks = disks::make(scenario, &can, directory.path())?;
    let unread = disks::read_through(&disks.disks)
        .map_err(|error| GuestError::io(directory.path(), error))?;
    let has_xfs = disks.mounts.iter().any(|mount| mount.kind == modules::XFS);
    let more: &[&str] = if has_xfs { &[modules::XFS] } else { &[] };
    let modules = modules::needed(&index, more).map_err(|error| {
        GuestError::io(options.image.modules.as_deref().unwrap_or(&scratch), error)
    })?;
    let mut notes = disks.notes;
    notes.extend(unread);
    let job = job(scenario, options, &modules, (disks.swap, disks.mounts));
    let initramfs = directory.path().join("initramfs");
    let archive = archive(&job, &modules, options.runner.as_deref())?;
    fs::write(&initramfs, archive).map_err(|error| GuestError::io(&initramfs, error))?;
    let accel = match options.accel {
        Some(accel) => accel,
        None => accel::choose(&qemu, options)?,
    };
    notes.extend(accel.note(scenario.machine.cpus));
    let results = directory.path().join("results");
    let trace_file = options.trace.as_ref().map(|trace| {
        let own = || directory.path().join("trace");
        trace.file.clone().unwrap_or_else(own)
    });
    let launch = Launch {
        qemu: &qemu,
        accel,
        machine: &scenario.machine,
        kernel: &options.image.path,
        initramfs: &initramfs,
        append: &append(scenario, options),
        disks: &disks.disks,
        results: &results,
        trace: trace_file.as_deref(),
    };
    let started = Instant::now();
    let (watch, ended) = launch.start()?.wait(options.timeout, directory.path())?;
    let wall = started.elapsed();
    let text = fs::read(&results).unwrap_or_default();
    let heard = Heard::read(&String::from_utf8_lossy(&text));
    ended_well(watch, &ended, &scratch, options)?;
    judge(scenario, &heard, &ended.console)?;
    let mut recording = heard.recording(scenario)?;
    let mut system = heard.system(accel);
    system.notes.splice(0..0, notes);
    if let Some(file) = &trace_file {
        check_trace(file, &heard)?;
        let start_ns = heard.ran.start_ns.unwrap_or(0);
        system
            .notes
            .extend(events::read(file, start_ns, &mut recording)?);
        system.lost_events = Some(heard.lost_events);
    }
    recording.system = Some(Box::new(system));
    Ok(GuestOutcome {
        recording,
        start_ns: heard.ran.start_ns.unwrap_or(0),
        boot: Duration::from_nanos(heard.boot_ns.unwrap_or(0)),
        wall,
        faults: heard.ran.faults,
        trace_bytes: heard.trace_bytes,
        console: ended.console,
    })
}

/// The modules that lie beside a kernel.
///
/// # Errors
///
/// The modules cannot be read, or neither they nor the kernel have the drivers that every guest
/// needs.
fn index(image: &KernelImage) -> Result<modules::Index, GuestError> {
    let index = match &image.modules {
        Some(path) => modules::index(path).map_err(|error| GuestError::io(path, error))?,
        None => modules::Index::new(),
    };
    let missing = image.missing_drivers(&index);
    if missing.is_empty() {
        return Ok(index);
    }
    Err(GuestError::NoVirtio {
        what: missing.join(", "),
        console: String::new(),
    })
}

/// What the disks of a guest can be.
fn can(options: &GuestOptions, index: &modules::Index) -> disks::Can {
    disks::Can {
        bandwidth: options.bandwidth,
        version: options.image.version(),
        xfs: xfs(&options.image, index),
    }
}

/// What makes XFS for a guest with this kernel, or why it is to have ext4 in its place.
fn xfs(image: &KernelImage, index: &modules::Index) -> disks::Xfs {
    if image.has("CONFIG_XFS_FS", modules::XFS, index) == Some(false) {
        return Err(
            "the kernel has no XFS built in, and no module of it is here; `lowmark kernels fetch` gets kernels that have one".into(),
        );
    }
    mkfs_xfs().ok_or_else(|| "no mkfs.xfs here; install xfsprogs".into())
}

/// What the guest is to do, with the places of its swap and its file systems.
fn job(
    scenario: &Scenario,
    options: &GuestOptions,
    modules: &[modules::Module],
    (swap, mounts): (Vec<SwapDisk>, Vec<Mount>),
) -> Job {
    let trace = options.trace.as_ref();
    let names = modules.iter().map(|module| format!("{}.ko", module.name));
    Job {
        scenario: scenario.clone(),
        modules: names.collect(),
        swap,
        mounts,
        settings: settings(scenario),
        events: trace.map_or(Vec::new(), |trace| trace.events.clone()),
        buffer_kb: trace.map_or(BUFFER_KB, |trace| trace.buffer_kb),
        interval_ms: u64::try_from(options.interval.as_millis()).unwrap_or(u64::MAX),
        touches: false,
        cgroups: CGROUPS.into(),
    }
}

/// An error if the guest did not end by itself, or lost a disk that lies in `scratch`.
fn ended_well(
    watch: Watch,
    ended: &Ended,
    scratch: &Path,
    options: &GuestOptions,
) -> Result<(), GuestError> {
    let tail = || console::tail(&ended.console);
    let full = (watch == Watch::DiskFull).then_some("the disk ran full");
    if let Some(problem) = console::disk_error(&ended.console).or(full) {
        return Err(GuestError::DisksLost {
            path: scratch.to_owned(),
            problem: problem.to_owned(),
            available_mb: disks::room(scratch)? >> 20,
            console: tail(),
        });
    }
    if watch == Watch::TimedOut {
        return Err(GuestError::TimedOut {
            limit: options.timeout,
            console: tail(),
        });
    }
    match ended.failure() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Whether what a guest said is a whole result.
fn judge(scenario: &Scenario, heard: &Heard, console: &[String]) -> Result<(), GuestError> {
    let ram = scenario.machine.ram();
    if let Some(problem) = heard.problem.as_ref().or(heard.ran.failed.as_ref()) {
        let lacking = console::no_virtio(problem, console);
        return Err(lacking.unwrap_or_else(|| GuestError::WorkloadFailed {
            problem: problem.clone(),
        }));
    }
    let Some(code) = heard.finished else {
        return Err(console::diagnose(console, heard.boot_ns.is_some(), ram));
    };
    match heard
        .ran
        .problem(&scenario.workload, code, heard.oom_kills())
    {
        Some(problem) => Err(GuestError::WorkloadFailed { problem }),
        None => Ok(()),
    }
}

/// The trace must be as long as the guest says.
fn check_trace(file: &Path, heard: &Heard) -> Result<(), GuestError> {
    let length = fs::metadata(file)
        .map_err(|error| GuestError::io(file, error))?
        .len();
    if length == heard.trace_bytes {
        Ok(())
    } else {
        Err(GuestError::NoResult {
            problem: format!(
                "{}: {length} bytes of trace, the guest wrote {}: is the disk full?",
                file.display(),
                heard.trace_bytes
            ),
            console: "  (it finished)".into(),
        })
    }
}

/// Refuses what a guest cannot do, all of it at once.
///
/// # Errors
///
/// [`GuestError::Unsupported`] with everything that is asked for in vain.
pub fn check(scenario: &Scenario) -> Result<(), GuestError> {
    let mut what: Vec<String> = unsupported(&scenario.workload)
        .iter()
        .map(ToString::to_string)
        .collect();
    let toggles = scenario.kernel.toggles.iter();
    what.extend(
        toggles.map(|toggle| {
            format!("{toggle}: a real kernel is as it was built; give another image")
        }),
    );
    if scenario.machine.arch != Arch::X86_64 {
        what.push("a machine that is not x86-64".into());
    }
    if let Some(group) = scenario
        .workload
        .cgroups
        .iter()
        .find(|group| group.soft.is_some())
    {
        what.push(format!(
            "the soft limit of the cgroup {}: a guest's cgroups are of version 2",
            group.name
        ));
    }
    let files = scenario.workload.has_files();
    if files && scenario.machine.filesystems.is_empty() {
        what.push("files on a machine without a file system".into());
    }
    let comma = |name: &str| name.contains([',', '=']);
    if scenario
        .machine
        .devices
        .iter()
        .any(|device| comma(&device.name))
    {
        what.push("a device with a comma in its name".into());
    }
    // A guest's disk is one file.
    for device in &scenario.machine.devices {
        for (asked, name) in [
            (device.members > 1, "members"),
            (device.write_errors.is_some(), "write_errors"),
            (device.server.is_some(), "server"),
        ] {
            if asked {
                what.push(format!("device {} with {name}", device.name));
            }
        }
    }
    if what.is_empty() {
        Ok(())
    } else {
        Err(GuestError::Unsupported { what })
    }
}

/// What is written into `/proc/sys/vm` and the like, in this order.
fn settings(scenario: &Scenario) -> Vec<Setting> {
    // Pages stand where they do on the model unless the workload says otherwise; a kernel without the setting has no
    // generations.
    let without_generations = (!scenario.kernel.sysctl.contains_key(LRU_GEN)).then(|| Setting {
        name: LRU_GEN.into(),
        value: "0".into(),
        optional: true,
    });
    let own = without_generations.into_iter();
    own.chain(crate::settings::of(scenario)).collect()
}

/// The kernel's command line. Huge pages are decided upon before khugepaged raises `min_free_kbytes`.
fn append(scenario: &Scenario, options: &GuestOptions) -> Vec<String> {
    let asked = scenario.kernel.sysctl.get("thp.enabled").cloned();
    let default = if scenario.machine.thp {
        "always"
    } else {
        "never"
    };
    let thp = asked.unwrap_or_else(|| default.into());
    let mut append = vec![format!("transparent_hugepage={thp}")];
    // Older kernels of some distributions count the swap of groups only if they are asked to.
    let groups = &scenario.workload.cgroups;
    if groups.iter().any(|group| group.swap_max.is_some()) {
        append.push("swapaccount=1".to_owned());
    }
    append.extend(options.append.iter().cloned());
    append
}

/// The initial file system.
fn archive(
    job: &Job,
    modules: &[modules::Module],
    runner: Option<&Path>,
) -> Result<Vec<u8>, GuestError> {
    let mut archive = initramfs::Archive::default();
    archive.console();
    let runner = runner.map_or_else(runner_files::find, |path| Ok(path.to_owned()))?;
    for (path, content) in runner_files::collect(&runner)? {
        archive.file(&path, &content);
    }
    for module in modules {
        archive.file(
            &format!("{MODULES_DIRECTORY}/{}.ko", module.name),
            &module.image,
        );
    }
    let text = serde_json::to_vec(job).map_err(|error| GuestError::io(&runner, error.into()))?;
    archive.file(JOB_FILE, &text);
    Ok(archive.finish())
}
