//! What a device needs to serve a request.
//!
//! Three costs: the command, the repositioning when the request is not contiguous, the transfer. A
//! rotating disk has one head for reads and writes; a short skip forward costs the time in which the
//! skipped pages pass under it, and after a read the disk goes on reading into its buffer, so that a
//! sequential reader waits for the media only where that is slower than the reader. Of the commands that it
//! holds it serves the next one ahead first. A solid-state disk pays for reads that do not go on where the
//! last read ended, and for writes what its erase blocks cost, if it does not hide them ([`super::flash`]).

use super::flash::Flash;
use super::request::Dir;
use crate::time::Nanos;
use lowmark_spec::machine::{Device, DeviceKind, PAGE_SIZE};
use lowmark_spec::random::Stream;

/// By how much the time of a command may differ from what the machine file says, in thousandths of that.
const JITTER_PERMILLE: u64 = 50;

/// A device's moving parts.
#[derive(Debug)]
pub(crate) struct Disk {
    spec: Device,
    /// Page after the last one transferred.
    head: u64,
    /// Page after the last one read.
    read_end: u64,
    /// When the link is free for the next transfer.
    link_free: Nanos,
    /// A page and when the media passes it, if it goes on reading after the last read: the disk fills
    /// its buffer while the host thinks.
    streaming: Option<(u64, Nanos)>,
    flash: Flash,
    /// Random numbers for the times of commands; none: each command takes exactly the time of the machine file.
    jitter: Option<Stream>,
}

impl Disk {
    pub(crate) fn new(spec: &Device) -> Disk {
        Disk {
            spec: spec.clone(),
            head: 0,
            read_end: 0,
            link_free: 0,
            streaming: None,
            flash: Flash::new(spec),
            jitter: None,
        }
    }

    /// Another boot: the head is somewhere else, and no command takes exactly the time of the one before.
    pub(super) fn vary(&mut self, mut stream: Stream) {
        let pages = (self.spec.size / PAGE_SIZE).max(1);
        self.head = stream.below(pages);
        self.jitter = Some(stream);
    }

    /// A time that a command takes, give or take [`JITTER_PERMILLE`].
    fn jittered(&mut self, time: Nanos) -> Nanos {
        match &mut self.jitter {
            None => time,
            Some(stream) => {
                let permille = 1000 - JITTER_PERMILLE + stream.below(2 * JITTER_PERMILLE + 1);
                (u128::from(time) * u128::from(permille) / 1000) as Nanos
            }
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

    /// Begins to serve `pages` from `start` now: the time until that is done, and whether the device had
    /// to reposition.
    pub(crate) fn serve(&mut self, dir: Dir, start: u64, pages: u64, now: Nanos) -> (Nanos, bool) {
        let spec = &self.spec;
        let (command, reposition, page_ns) = match dir {
            Dir::Read => (spec.command_read_ns, spec.position_read_ns, spec.page_ns),
            Dir::Write => (
                spec.command_write_ns,
                spec.position_write_ns,
                spec.page_write_ns,
            ),
        };
        let copied = match dir {
            Dir::Read => 0,
            Dir::Write => self.flash.write(start, pages),
        };
        let from = match (spec.kind, dir) {
            (DeviceKind::Ssd, Dir::Read) => self.read_end,
            _ => self.head,
        };
        let skip = start.checked_sub(from);
        let (command, reposition) = (self.jittered(command), self.jittered(reposition));
        let spec = &self.spec;
        let (position, seek) = match skip {
            Some(0) => (0, false),
            Some(skip) if skip <= spec.skip_pages => ((skip * page_ns).min(reposition), false),
            _ => (reposition, true),
        };
        let end = start + pages;
        let ready = self.link_free.max(now + command);
        self.link_free = match self
            .media_passes(end, now)
            .filter(|_| dir == Dir::Read && !seek)
        {
            Some(passed) => passed.max(ready),
            None => {
                let positioned = ready.max(now + command + position);
                let done = positioned + (pages + copied) * page_ns;
                let reads_on = dir == Dir::Read && self.spec.read_ahead > 0;
                self.streaming = reads_on.then_some((end, done));
                done
            }
        };
        self.head = end;
        if dir == Dir::Read {
            self.read_end = end;
        }
        (self.link_free - now, seek || copied > 0)
    }

    /// When the media passes `end`, if it has been reading on since the last read.
    fn media_passes(&mut self, end: u64, now: Nanos) -> Option<Nanos> {
        let (page, time) = self.streaming?;
        let full = self.head + self.spec.read_ahead / PAGE_SIZE;
        if page + now.saturating_sub(time) / self.spec.page_ns.max(1) >= full {
            // The buffer was full; reading goes on from here now.
            self.streaming = Some((full, now));
        }
        let (page, time) = self.streaming?;
        Some(time + end.saturating_sub(page) * self.spec.page_ns)
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
            let (time, _) = self.disk.serve(dir, start, pages, self.now);
            self.now += time;
            time
        }
    }

    #[test]
    fn parallel_commands_share_the_link() {
        let spec = Device::ssd("nvme", 1 << 30);
        let mut disk = Disk::new(&spec);
        let (alone, _) = disk.serve(Dir::Read, 100, 1, 0);
        let (beside, _) = disk.serve(Dir::Read, 500, 1, 0);
        assert_eq!(beside, alone + spec.page_ns);
    }

    #[test]
    fn a_disk_pays_for_what_is_not_contiguous() {
        let spec = Device::hdd("sda", 1 << 30);
        let mut disk = Idle::new(&spec);
        let command = spec.command_read_ns;
        assert_eq!(disk.serve(Dir::Read, 0, 8), command + 8 * spec.page_ns);
        // Contiguous, and the media is already on its way: the command is hidden.
        assert_eq!(disk.serve(Dir::Read, 8, 8), 8 * spec.page_ns);
        assert_eq!(disk.serve(Dir::Read, 20, 1), 5 * spec.page_ns);
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
    fn a_disk_reads_on_while_the_host_thinks() {
        let spec = Device::hdd("sda", 1 << 30);
        let mut disk = Idle::new(&spec);
        disk.serve(Dir::Read, 0, 8);
        // Half of the next eight pages has passed under the head meanwhile.
        disk.now += 4 * spec.page_ns;
        assert_eq!(disk.serve(Dir::Read, 8, 8), 4 * spec.page_ns);
        // After a long pause only the command is left, and the buffer has its end.
        disk.now += 1_000_000_000;
        assert_eq!(disk.serve(Dir::Read, 16, 8), spec.command_read_ns);
        let buffered = spec.read_ahead / PAGE_SIZE;
        let rest = disk.serve(Dir::Read, 24, 2 * buffered);
        assert!(rest > buffered * spec.page_ns / 2, "{rest}");
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
