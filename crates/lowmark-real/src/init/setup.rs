//! Making a system out of a kernel that has just started.

use crate::protocol::{CGROUPS, MODULES_DIRECTORY, Mount, NO_DEVICE, Setting, SwapDisk};
use crate::runner::{procfs, sys};
use crate::swap_area;
use lowmark_spec::workload::Cgroup;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Devices appear a little after their driver.
const DEVICE_WAIT: Duration = Duration::from_secs(10);
const DEVICE_POLL: Duration = Duration::from_millis(2);

fn named<T>(what: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
}

fn mount_at(source: &str, target: &str, kind: &str, options: &str) -> io::Result<()> {
    mount_with(source, target, kind, options, MountFlags::NOATIME)
}

fn mount_with(
    source: &str,
    target: &str,
    kind: &str,
    options: &str,
    flags: MountFlags,
) -> io::Result<()> {
    let what = format!("cannot mount {kind} at {target}");
    named(&what, fs::create_dir_all(target))?;
    // cgroup2 of 4.18 takes an empty string for an option that it does not know.
    let given = (!options.is_empty()).then(|| CString::new(options));
    let given = given.transpose()?;
    named(
        &what,
        mount(source, target, kind, flags, given.as_deref()).map_err(Into::into),
    )
}

/// Mounts what every program expects.
pub(super) fn mount_system() -> io::Result<()> {
    mount_at("proc", "/proc", "proc", "")?;
    mount_at("sysfs", "/sys", "sysfs", "")?;
    mount_at("devtmpfs", "/dev", "devtmpfs", "")?;
    // A kernel before 4.1 has its trace in debugfs. One without debugfs does not tell its generations of
    // pages; one with neither is told of when events are asked for.
    let _ = mount_at("tracefs", "/sys/kernel/tracing", "tracefs", "");
    let _ = mount_at("debugfs", "/sys/kernel/debug", "debugfs", "");
    Ok(())
}

/// Loads modules in order, and gives back the memory in which they lie.
pub(super) fn load_modules(names: &[String]) -> io::Result<()> {
    for name in names {
        let path = Path::new("/").join(MODULES_DIRECTORY).join(name);
        let image = named(name, fs::read(&path))?;
        match sys::init_module(&image) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return named(&format!("cannot load the module {name}"), Err(error));
            }
            _ => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Waits until a lookup finds something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let mut left = DEVICE_WAIT;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if left.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{what}{NO_DEVICE}"),
            ));
        }
        std::thread::sleep(DEVICE_POLL);
        left = left.saturating_sub(DEVICE_POLL);
    }
}

/// The entry of a directory of `/sys` of which a file holds this text.
fn device_with(directory: &str, file: &str, text: &str) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found = names.filter(|name| {
        let content = fs::read_to_string(format!("{directory}/{name}/{file}"));
        content.is_ok_and(|content| content.trim() == text)
    });
    found.next()
}

/// Opens the virtio port of this name.
pub(super) fn open_port(name: &str) -> io::Result<File> {
    let what = format!("the virtio port {name}");
    let device = wait_for(&what, || {
        let device = device_with("/sys/class/virtio-ports", "name", name)?;
        Path::new("/dev").join(&device).exists().then_some(device)
    })?;
    named(
        &what,
        OpenOptions::new()
            .write(true)
            .open(format!("/dev/{device}")),
    )
}

/// The disk of this serial number, as it is called under `/dev`.
fn disk(serial: &str) -> io::Result<String> {
    let what = format!("the disk {serial}");
    wait_for(&what, || device_with("/sys/block", "serial", serial))
}

/// Makes settings.
pub(super) fn apply(settings: &[Setting]) -> io::Result<()> {
    for setting in settings {
        let missing = !Path::new(&procfs::setting_path(&setting.name)).exists();
        if !(missing && setting.optional) {
            procfs::set(&setting.name, &setting.value)?;
        }
    }
    Ok(())
}

/// Stops the thread that samples the accessed bits of all memory from boot on (`CONFIG_DAMON_STAT_ENABLED_DEFAULT`, 6.17),
/// whose CPU time would be missing from the workload's. What was stopped, if anything was.
pub(super) fn stop_sampling() -> Option<String> {
    const ENABLED: &str = "/sys/module/damon_stat/parameters/enabled";
    let runs = fs::read_to_string(ENABLED).is_ok_and(|value| value.trim() == "Y");
    (runs && fs::write(ENABLED, "N").is_ok()).then(|| {
        "kdamond.0 was stopped: damon_stat.enabled is N, where this kernel boots with Y".into()
    })
}

/// Gives a disk its I/O scheduler, by the first of its names that the kernel knows. What the disk has instead if the
/// kernel knows none.
fn set_elevator(disk: &str, names: &[String]) -> Option<String> {
    let path = format!("/sys/block/{disk}/queue/scheduler");
    if names.is_empty() || names.iter().any(|name| fs::write(&path, name).is_ok()) {
        return None;
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    Some(format!(
        "{disk}: this kernel has no I/O scheduler {}; its disks have {}",
        names.join(" or "),
        present.trim()
    ))
}

/// Switches swap areas on. What they lack of what the machine says.
pub(super) fn swap_on(areas: &[SwapDisk]) -> io::Result<Vec<String>> {
    let mut lacking = Vec::new();
    for area in areas {
        let name = disk(&area.serial)?;
        lacking.extend(set_elevator(&name, &area.elevator));
        let mut what = format!("/dev/{name}");
        if let Some(size) = area.file {
            let point = format!("/swap/{}", area.serial);
            mount_with(&what, &point, "ext4", "", MountFlags::RELATIME)?;
            what = format!("{point}/swap");
            named(&what, swap_area::make_file(Path::new(&what), size))?;
        }
        let path = CString::new(what.as_str())?;
        named(&format!("swapon {what}"), sys::swapon(&path, area.priority))?;
    }
    Ok(lacking)
}

/// Mounts file systems. What their disks lack of what the machine says.
pub(super) fn mount_disks(mounts: &[Mount]) -> io::Result<Vec<String>> {
    let mut lacking = Vec::new();
    for file_system in mounts {
        let target = file_system.point.to_string_lossy();
        let Some(serial) = &file_system.serial else {
            mount_at("tmpfs", &target, "tmpfs", "size=100%")?;
            continue;
        };
        let name = disk(serial)?;
        lacking.extend(set_elevator(&name, &file_system.elevator));
        let flags = if file_system.noatime {
            MountFlags::NOATIME
        } else {
            MountFlags::RELATIME
        };
        mount_with(
            &format!("/dev/{name}"),
            &target,
            &file_system.kind,
            "",
            flags,
        )?;
        for setting in &file_system.bdi {
            let path = format!("/sys/block/{name}/bdi/{}", setting.name);
            named(&path, fs::write(&path, &setting.value))?;
        }
    }
    Ok(lacking)
}

/// Makes the cgroups of a workload, with their limits: each before those inside it.
pub(super) fn make_cgroups(groups: &[Cgroup], recursive_protection: bool) -> io::Result<()> {
    let options = if recursive_protection {
        "memory_recursiveprot"
    } else {
        ""
    };
    let mounted = mount_at("cgroup2", CGROUPS, "cgroup2", options);
    if groups.is_empty() {
        // Without groups it is there for the statistics of the root, which a kernel may not have.
        return Ok(());
    }
    mounted?;
    let write = |path: &str, value: &str| {
        named(
            &format!("cannot write {value} to {path}"),
            fs::write(path, value),
        )
    };
    write(&format!("{CGROUPS}/cgroup.subtree_control"), "+memory")?;
    for group in groups {
        let directory = format!("{CGROUPS}/{}", group.path);
        named(&directory, fs::create_dir_all(&directory))?;
        for (file, limit) in group.files() {
            if let Some(limit) = limit {
                write(&format!("{directory}/{file}"), &limit.to_string())?;
            }
        }
        if groups
            .iter()
            .any(|other| other.path.starts_with(&format!("{}/", group.path)))
        {
            write(&format!("{directory}/cgroup.subtree_control"), "+memory")?;
        }
    }
    Ok(())
}
