//! Why a guest gave no recording.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a guest gave no recording. Where a guest ran, its console's last lines stand in the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// QEMU is not here.
    #[error(
        "{program}: not found; install QEMU for x86-64 (package qemu-system-x86), run \
         bin/install-guest-tools.sh, or name it in LOWMARK_QEMU"
    )]
    NoQemu {
        /// What was looked for.
        program: String,
    },
    /// QEMU does not start, or ends with an error.
    #[error("QEMU failed ({status}): {said}")]
    QemuFailed {
        /// Exit status.
        status: String,
        /// Its last words.
        said: String,
    },
    /// Somebody killed QEMU.
    #[error("QEMU was killed by signal {signal}; last console output:\n{console}")]
    QemuKilled {
        /// Signal.
        signal: i32,
        /// Last lines.
        console: String,
    },
    /// KVM was asked for and does not work.
    #[error("KVM does not work here: {problem}; without it, QEMU's own emulator is used")]
    NoKvm {
        /// What was tried.
        problem: String,
    },
    /// The runner is not here.
    #[error(
        "lowmark-runner: not found beside this program; `cargo install --locked --path crates/lowmark` installs \
         both, `cargo build --release` builds both; or name it in LOWMARK_RUNNER"
    )]
    NoRunner,
    /// The kernel image is not here.
    #[error(
        "{}: no such kernel image{}", path.display(),
        version.as_ref().map(|v| format!("; fetch it with `lowmark kernels fetch {v}`")).unwrap_or_default()
    )]
    NoImage {
        /// Where it was looked for.
        path: PathBuf,
        /// The version, if it can be fetched.
        version: Option<String>,
    },
    /// The image is no kernel.
    #[error("{}: not a kernel image: expected a bzImage, found {found}", path.display())]
    NotAKernel {
        /// File.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// The kernel cannot use a guest's devices.
    #[error(
        "this kernel lacks {what}; build it with CONFIG_VIRTIO_PCI, CONFIG_VIRTIO_BLK and \
         CONFIG_VIRTIO_CONSOLE, or put its modules into `modules` beside the image{console}"
    )]
    NoVirtio {
        /// Drivers, or the device that did not appear.
        what: String,
        /// Last lines of the console, if it ran.
        console: String,
    },
    /// Fetching a kernel failed.
    #[error("cannot fetch kernel {version}: {problem}")]
    Fetch {
        /// Version asked for.
        version: String,
        /// What went wrong.
        problem: String,
    },
    /// The workload, machine or kernel asks for what a guest cannot do.
    #[error("a guest cannot run this: {}", what.join("; "))]
    Unsupported {
        /// Everything that it cannot do.
        what: Vec<String>,
    },
    /// The guest has too little memory to start.
    #[error(
        "the guest did not start with {ram_mb} MB of RAM; give it more (--set machine.ram=128M). Last \
         console output:\n{console}"
    )]
    RamTooSmall {
        /// RAM of the machine.
        ram_mb: u64,
        /// Last lines.
        console: String,
    },
    /// Memory ran out so that the guest could not go on.
    #[error("the guest ran out of memory and stopped; last console output:\n{console}")]
    OutOfMemory {
        /// Last lines.
        console: String,
    },
    /// The kernel oopsed or panicked.
    #[error("the guest's kernel crashed: {what}; last console output:\n{console}")]
    Crashed {
        /// The line that says so.
        what: String,
        /// Last lines.
        console: String,
    },
    /// The guest ended without a result.
    #[error("the guest ended before its result: {problem}; last console output:\n{console}")]
    NoResult {
        /// What is known.
        problem: String,
        /// Last lines.
        console: String,
    },
    /// The workload could not be carried out.
    #[error("the workload failed in the guest: {problem}")]
    WorkloadFailed {
        /// Which statement, and what the kernel said.
        problem: String,
    },
    /// It took too long.
    #[error(
        "the guest did not finish within {}.{:03} s and was stopped; give it longer with --timeout. Last \
         console output:\n{console}", limit.as_secs(), limit.subsec_millis()
    )]
    TimedOut {
        /// Time that it had.
        limit: Duration,
        /// Last lines.
        console: String,
    },
    /// The disk with the images is full.
    #[error(
        "{}: {available_mb} MB free, the guest's disks may need {needed_mb} MB; choose another directory \
         with TMPDIR, or a machine with less swap", path.display()
    )]
    DiskFull {
        /// Directory of the images.
        path: PathBuf,
        /// Room.
        available_mb: u64,
        /// Largest use.
        needed_mb: u64,
    },
    /// While the guest ran, the host could not write to the files that are its disks.
    #[error(
        "{}: {problem}, {available_mb} MB are free now; what the guest wrote to its disks is lost, so that its \
         result would be wrong. Make room, choose another directory with TMPDIR, raise the limit on the size of \
         files (ulimit -f), or take a machine with less swap. Last console output:\n{console}", path.display()
    )]
    DisksLost {
        /// Directory of the images.
        path: PathBuf,
        /// What tells of it.
        problem: String,
        /// Room that is left there.
        available_mb: u64,
        /// Last lines.
        console: String,
    },
    /// The program that makes file systems is missing or failed.
    #[error("cannot make a file system for the guest: {problem}")]
    NoFileSystem {
        /// What is missing, and how to get it.
        problem: String,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl GuestError {
    /// Whether QEMU had started: what was asked for could have worked.
    pub fn started(&self) -> bool {
        match self {
            GuestError::QemuFailed { .. }
            | GuestError::QemuKilled { .. }
            | GuestError::RamTooSmall { .. }
            | GuestError::OutOfMemory { .. }
            | GuestError::Crashed { .. }
            | GuestError::NoResult { .. }
            | GuestError::WorkloadFailed { .. }
            | GuestError::DisksLost { .. }
            | GuestError::TimedOut { .. } => true,
            GuestError::NoVirtio { console, .. } => !console.is_empty(),
            GuestError::NoQemu { .. }
            | GuestError::NoKvm { .. }
            | GuestError::NoRunner
            | GuestError::NoImage { .. }
            | GuestError::NotAKernel { .. }
            | GuestError::Fetch { .. }
            | GuestError::Unsupported { .. }
            | GuestError::DiskFull { .. }
            | GuestError::NoFileSystem { .. }
            | GuestError::Io { .. } => false,
        }
    }

    pub(super) fn io(path: &Path, source: io::Error) -> GuestError {
        GuestError::Io {
            path: path.to_owned(),
            source,
        }
    }
}
