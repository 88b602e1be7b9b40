//! Whether KVM works.
//!
//! `/dev/kvm` may be there and a virtual machine may be created, and yet no ordinary kernel boots in it
//! (nested, `kvm_pvm`). So a guest is booted once, with little memory and an empty workload; the answer
//! holds until the machine restarts.

use super::directory::Directory;
use super::qemu::{Accel, Launch, Watch};
use super::{GuestError, GuestOptions, archive, cache, modules};
use crate::protocol::Job;
use lowmark_spec::workload::Workload;
use lowmark_spec::{KernelSpec, Machine, Scenario};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guest under KVM is up in one second.
const PROBE_LIMIT: Duration = Duration::from_secs(8);

/// KVM if it works with this QEMU, else TCG.
pub(super) fn choose(qemu: &Path, options: &GuestOptions) -> Result<Accel, GuestError> {
    if !can_open() {
        return Ok(Accel::Tcg);
    }
    let works = match known(qemu) {
        Some(works) => works,
        None => {
            let works = probe(qemu, options)?;
            let text = format!("{} {}\n", question(qemu), if works { "yes" } else { "no" });
            // Not written, it is asked again.
            let _ = fs::create_dir_all(cache()).and_then(|()| fs::write(answer_file(), text));
            works
        }
    };
    Ok(if works { Accel::Kvm } else { Accel::Tcg })
}

fn answer_file() -> PathBuf {
    cache().join("kvm")
}

/// What the answer depends on.
fn question(qemu: &Path) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{} {}", boot.trim(), qemu.display())
}

/// The answer, if it was found out since the machine started.
fn known(qemu: &Path) -> Option<bool> {
    let text = fs::read_to_string(answer_file()).ok()?;
    match text.strip_prefix(&question(qemu))?.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Whether this user may use KVM, and whether it works, if that is known.
pub(crate) fn kvm_known() -> (bool, Option<bool>) {
    let works = super::qemu::find().ok().and_then(|qemu| known(&qemu));
    (can_open(), works)
}

/// Whether this user may use KVM.
fn can_open() -> bool {
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok()
}

/// Boots a guest with KVM; whether PID 1 came to its end.
fn probe(qemu: &Path, options: &GuestOptions) -> Result<bool, GuestError> {
    let scenario = Scenario {
        params: Vec::new(),
        machine: Machine::small(256 << 20, 0),
        kernel: KernelSpec {
            text: "probe".into(),
            version: "probe".into(),
            toggles: Vec::new(),
            sysctl: Default::default(),
        },
        workload: Workload {
            name: "probe".into(),
            ..Workload::default()
        },
        seed: 0,
        phase: 0,
        boot: 0,
    };
    let scratch = options.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let failed = |error| GuestError::io(&scratch, error);
    let directory = Directory::new(&scratch, "lowmark-probe-")?;
    let index = match &options.image.modules {
        Some(path) => modules::index(path).map_err(|error| GuestError::io(path, error))?,
        None => modules::Index::new(),
    };
    let modules = modules::needed(&index, &[]).map_err(failed)?;
    let job = Job {
        modules: modules
            .iter()
            .map(|module| format!("{}.ko", module.name))
            .collect(),
        swap: Vec::new(),
        mounts: Vec::new(),
        settings: Vec::new(),
        events: Vec::new(),
        buffer_kb: 0,
        interval_ms: 1_000,
        touches: false,
        cgroups: crate::protocol::CGROUPS.into(),
        scenario,
    };
    let initramfs = directory.path().join("initramfs");
    fs::write(
        &initramfs,
        archive(&job, &modules, options.runner.as_deref())?,
    )
    .map_err(failed)?;
    let results = directory.path().join("results");
    let launch = Launch {
        qemu,
        accel: Accel::Kvm,
        machine: &job.scenario.machine,
        kernel: &options.image.path,
        initramfs: &initramfs,
        append: &[],
        disks: &[],
        results: &results,
        trace: None,
    };
    let (watch, ended) = launch.start()?.wait(PROBE_LIMIT, directory.path())?;
    let text = fs::read_to_string(&results).unwrap_or_default();
    let finished = super::outcome::Heard::read(&text).finished == Some(Some(0));
    Ok(watch == Watch::Ended && ended.status.success() && finished)
}
