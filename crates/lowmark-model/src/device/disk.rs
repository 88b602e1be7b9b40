//! What a device needs to serve a request.
//!
//! Three costs: the command, the repositioning when the request is not contiguous, the transfer. A
//! rotating disk has one head for reads and writes; a short skip forward costs the time in which the
//! skipped pages pass under it; of the commands that it holds it serves the next one ahead first. A
//! solid-state disk pays for reads that do not go on where the last read ended, and not for writes.

use super::queue::Dir;
use crate::time::Nanos;
use lowmark_spec::machine::{Device, DeviceKind};

/// A device's moving parts.
#[derive(Debug)]
pub(super) struct Disk {
    spec: Device,
    /// Page after the last one transferred.
    head: u64,
    /// Page after the last one read.
    read_end: u64,
    /// When the link is free for the next transfer.
    link_free: Nanos,
}

impl Disk {
    pub(super) fn new(spec: &Device) -> Disk {
        Disk {
            spec: spec.clone(),
            head: 0,
            read_end: 0,
            link_free: 0,
        }
    }

    /// Where the head is.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Which of the commands that it has taken a device begins next, given where they start: a disk the
    /// first one ahead of its head, else the lowest; flash the oldest.
    pub(super) fn choose(&self, starts: impl Iterator<Item = u64>) -> usize {
        if self.spec.kind == DeviceKind::Ssd {
            return 0;
        }
        let sweep = |&(_, start): &(usize, u64)| (start < self.head, start);
        starts
            .enumerate()
            .min_by_key(sweep)
            .map_or(0, |(index, _)| index)
    }

    /// Begins to serve `pages` from `start` now: the time until that is done.
    pub(super) fn serve(&mut self, dir: Dir, start: u64, pages: u64, now: Nanos) -> Nanos {
        let spec = &self.spec;
        let (command, reposition) = match dir {
            Dir::Read => (spec.command_read_ns, spec.position_read_ns),
            Dir::Write => (spec.command_write_ns, spec.position_write_ns),
        };
        let from = match (spec.kind, dir) {
            (DeviceKind::Ssd, Dir::Read) => self.read_end,
            _ => self.head,
        };
        let position = match start.checked_sub(from) {
            Some(0) => 0,
            Some(skip) if skip <= spec.skip_pages => (skip * spec.page_ns).min(reposition),
            _ => reposition,
        };
        self.head = start + pages;
        if dir == Dir::Read {
            self.read_end = self.head;
        }
        self.link_free = self.link_free.max(now + command + position) + pages * spec.page_ns;
        self.link_free - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that has finished before it is asked again.
    struct Idle {
        disk: Disk,
        now: Nanos,
    }

    impl Idle {
        fn new(spec: &Device) -> Idle {
            Idle {
                disk: Disk::new(spec),
                now: 0,
            }
        }

        fn serve(&mut self, dir: Dir, start: u64, pages: u64) -> Nanos {
            let time = self.disk.serve(dir, start, pages, self.now);
            self.now += time;
            time
        }
    }

    #[test]
    fn parallel_commands_share_the_link() {
        let spec = Device::ssd("nvme", 1 << 30);
        let mut disk = Disk::new(&spec);
        let alone = disk.serve(Dir::Read, 100, 1, 0);
        let beside = disk.serve(Dir::Read, 500, 1, 0);
        assert_eq!(beside, alone + spec.page_ns);
    }

    #[test]
    fn a_disk_pays_for_what_is_not_contiguous() {
        let spec = Device::hdd("sda", 1 << 30);
        let mut disk = Idle::new(&spec);
        let command = spec.command_read_ns;
        assert_eq!(disk.serve(Dir::Read, 0, 8), command + 8 * spec.page_ns);
        assert_eq!(disk.serve(Dir::Read, 8, 8), command + 8 * spec.page_ns);
        assert_eq!(disk.serve(Dir::Read, 20, 1), command + 5 * spec.page_ns);
        assert_eq!(
            disk.serve(Dir::Read, 1000, 1),
            command + spec.position_read_ns + spec.page_ns
        );
        assert_eq!(
            disk.serve(Dir::Write, 0, 2),
            spec.command_write_ns + spec.position_write_ns + 2 * spec.page_ns
        );
    }

    #[test]
    fn flash_reads_follow_reads_whatever_was_written_between() {
        let spec = Device::ssd("sdb", 1 << 30);
        let mut disk = Idle::new(&spec);
        disk.serve(Dir::Read, 0, 8);
        disk.serve(Dir::Write, 500, 8);
        assert_eq!(
            disk.serve(Dir::Read, 8, 1),
            spec.command_read_ns + spec.page_ns
        );
        assert_eq!(
            disk.serve(Dir::Read, 8, 1),
            spec.command_read_ns + spec.position_read_ns + spec.page_ns
        );
    }
}
