//! The disk under the files and the swap file of a workload, as the kernel describes it.

use super::plan;
use crate::undo::read_setting;
use lowmark_spec::machine::{Device, Driver, Elevator};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What `/sys/block/NAME` says of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name, `nvme0n1`.
    pub name: String,
    rotational: Option<bool>,
    elevator: Option<Elevator>,
    nr_requests: Option<u32>,
    max_segments: Option<u32>,
    /// Directories below `mq`.
    hardware_queues: Option<u32>,
    /// Its driver is virtio_blk.
    virtio: bool,
}

impl Disk {
    /// The disk that files of a workload lie on; none if no disk is behind their directory by its number, as behind overlayfs and
    /// btrfs.
    pub fn of_files() -> Option<Disk> {
        let directory = plan::on_disk();
        let number = fs::metadata(&directory).ok()?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let mut path = fs::canonicalize(link).ok()?;
        // A partition has no queue of its own.
        if path.join("partition").exists() {
            path.pop();
        }
        Disk::at(&path)
    }

    fn at(path: &Path) -> Option<Disk> {
        let setting = |name: &str| read_setting(&path.join("queue").join(name)).ok();
        let number = |name: &str| setting(name)?.parse().ok();
        let elevator = setting("scheduler").and_then(|name| match name.as_str() {
            "none" | "noop" => Some(Elevator::Noop),
            "mq-deadline" | "deadline" => Some(Elevator::Deadline),
            "cfq" => Some(Elevator::Cfq),
            _ => None,
        });
        let queues = fs::read_dir(path.join("mq"))
            .ok()
            .map(|queues| queues.count());
        let driver = fs::read_link(path.join("device/driver")).unwrap_or_default();
        Some(Disk {
            name: path.file_name()?.to_str()?.to_owned(),
            rotational: setting("rotational").map(|value| value == "1"),
            elevator,
            nr_requests: number("nr_requests"),
            max_segments: number("max_segments"),
            hardware_queues: queues.and_then(|count| count.try_into().ok()),
            virtio: driver.file_name().is_some_and(|name| name == "virtio_blk"),
        })
    }

    /// Gives a machine's device what the kernel says of the disk.
    pub fn describe(&self, device: &mut Device) {
        fn put<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        put(&mut device.rotational, self.rotational);
        put(&mut device.elevator, self.elevator);
        put(&mut device.nr_requests, self.nr_requests);
        put(
            &mut device.max_segments,
            self.max_segments.filter(|max| *max > 0),
        );
        put(
            &mut device.hardware_queues,
            self.hardware_queues.filter(|count| *count > 0),
        );
        if self.virtio {
            device.driver = Some(Driver::VirtioBlk);
            // As many requests as its ring has room for.
            put(&mut device.queue_depth, self.nr_requests);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_what_its_directory_says() {
        let place = tempfile::tempdir().expect("a directory");
        let disk = place.path().join("vdz");
        let write = |name: &str, text: &str| {
            let path = disk.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("queue/rotational", "1\n");
        write("queue/scheduler", "none [mq-deadline] kyber\n");
        write("queue/nr_requests", "128\n");
        write("queue/max_segments", "254\n");
        write("mq/0/tags", "");
        write("mq/1/tags", "");
        write("device/x", "");
        std::os::unix::fs::symlink("../../bus/virtio_blk", disk.join("device/driver"))
            .expect("linked");
        let found = Disk::at(&disk).expect("a disk");
        let mut device = Device::ssd("sda", 1 << 30);
        found.describe(&mut device);
        let described = (
            device.rotational,
            device.elevator,
            device.nr_requests,
            device.max_segments,
            device.hardware_queues,
            device.driver,
            device.queue_depth,
        );
        let expected = (
            true,
            Elevator::Deadline,
            128,
            254,
            2,
            Some(Driver::VirtioBlk),
            128,
        );
        assert_eq!(described, expected);
        // What it does not say, or the model does not have, stays.
        write("queue/scheduler", "none mq-deadline [kyber]\n");
        fs::remove_file(disk.join("queue/nr_requests")).expect("removed");
        fs::remove_file(disk.join("device/driver")).expect("removed");
        let found = Disk::at(&disk).expect("a disk");
        let untouched = Device::ssd("sda", 1 << 30);
        let mut device = untouched.clone();
        found.describe(&mut device);
        assert_eq!(device.elevator, untouched.elevator);
        assert_eq!(
            (device.nr_requests, device.driver),
            (untouched.nr_requests, None)
        );
    }
}
