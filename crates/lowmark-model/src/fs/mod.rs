//! File systems: where files land on their devices.
//!
//! XFS and ext4 allocate late: a page gets its place when it is written back, together with all pages around it
//! that wait for one (delayed allocation). In ext3, write(2) gives a page its place. File systems differ in what they put where:
//!
//! - XFS has four allocation groups on a disk and more on striped ones, and the files of a directory begin in its group. An extending write
//!   asks for as much again as the file has, up to 8 GiB (`xfs_iomap_prealloc_size`, 055388a3188f, 2.6.38);
//!   what is not used goes back when the file is closed (`xfs_free_eofblocks`).
//! - ext4 has block groups of 128 MiB, directories are spread over them, and requests are rounded up by
//!   the size of the file, to 8 MiB at most (`ext4_mb_normalize_request`).
//!
//! - ext3 has the same groups, and directories share those of their parents while there is room (`find_group_orlov`): here
//!   all begin in the first. A file has a window of reserved blocks ahead, 8 at first, which doubles as the file grows, to
//!   1,024 at most (`ext3_alloc_new_reservation`); it is given up when the file is closed.
//!
//! What ext3 and ext4 keep besides data is in [`metadata`], and their journals in [`jbd`]; what XFS keeps is in [`xfs`], with its
//! log.

mod directory;
mod extents;
pub(crate) mod jbd;
pub(crate) mod metadata;
mod space;
mod writepage;
pub(crate) mod xfs;

pub(crate) use directory::Folder;
pub(crate) use extents::{Extent, Extents};
pub(crate) use writepage::Writepage;

use crate::ids::{DeviceId, InodeId};
use crate::kernel::{Kernel, WriteFolios, XfsAhead};
use crate::time::TaskId;
use jbd::Journal;
use lowmark_spec::machine::{Atime, Device, FileSystem, FsKind, Machine, PAGE_SIZE};
use metadata::{Layout, Metadata, Place};
use space::Space;
use std::ops::Range;
use xfs::Xfs;

/// Pages of a block group of ext4.
const EXT4_GROUP: u64 = (128 << 20) / PAGE_SIZE;
/// Directories of ext4 begin this many groups apart (a flex group).
const EXT4_FLEX: usize = 16;
/// Allocation groups that mkfs.xfs makes on a disk.
const XFS_GROUPS: u64 = 4;
/// Those that it makes on striped disks of up to 8 GiB, up to 512 GiB, and larger
/// (`calc_default_ag_geometry`).
const XFS_STRIPED_GROUPS: [u64; 3] = [8, 16, 32];
/// Most that XFS allocates ahead, pages.
const XFS_AHEAD_MAX: u64 = (8 << 30) / PAGE_SIZE;
/// Least that it allocates ahead, pages (`m_writeio_blocks`).
const XFS_AHEAD_MIN: u64 = (64 << 10) / PAGE_SIZE;
/// Most that ext4 rounds a request up to, pages.
const EXT4_REQUEST_MAX: u64 = (8 << 20) / PAGE_SIZE;
/// Least that it rounds up to, pages.
const EXT4_REQUEST_MIN: u64 = (16 << 10) / PAGE_SIZE;
/// Blocks of inode tables that are read together (`EXT4_DEF_INODE_READAHEAD_BLKS`).
const EXT4_INODE_READAHEAD: u32 = 32;
/// Blocks of the first window of a file of ext3 (`EXT3_DEFAULT_RESERVE_BLOCKS`).
const EXT3_WINDOW_MIN: u64 = 8;
/// Blocks of its largest window (`EXT3_MAX_RESERVE_BLOCKS`, 1,027, as far as doubling comes).
const EXT3_WINDOW_MAX: u64 = 1024;

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount {
    kind: FsKind,
    /// Its device.
    pub(crate) device: DeviceId,
    space: Space,
    /// Pages that are dirty and have no place yet.
    reserved: u64,
    xfs_ahead: XfsAhead,
    /// Its pages on the device.
    pages: Range<u64>,
    /// Where metadata of ext3 and ext4 lies; none if that is left out.
    layout: Option<Layout>,
    /// Reading a file changes its inode.
    pub(crate) atime: Atime,
    /// Metadata of ext3 and ext4, once the block device is open.
    pub(crate) metadata: Option<Metadata>,
    /// Metadata of XFS; none if that is left out.
    xfs: Option<Xfs>,
    /// The journal, if it has one that writes anything.
    pub(crate) journal: Option<Journal>,
}

/// The mounted file systems of a machine, by their number there; none for those without a device.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    all: Vec<Option<Mount>>,
    /// The task that runs.
    task: TaskId,
}

impl Mounts {
    /// As a kernel mounts them.
    pub(crate) fn new(machine: &Machine, kernel: &Kernel) -> Mounts {
        let mounts = machine.filesystems.iter();
        let mount = |spec| Mount::new(machine, spec, kernel);
        Mounts {
            all: mounts.map(mount).collect(),
            task: TaskId::default(),
        }
    }

    /// The changes of metadata that are noted from now on are those of `task`, if one runs.
    #[inline]
    pub(crate) fn changed_by(&mut self, task: Option<TaskId>) {
        self.task = task.unwrap_or(self.task);
    }

    /// A file system that files lie on.
    pub(crate) fn get(&mut self, fs: usize) -> &mut Mount {
        let mount = self.all[fs]
            .as_mut()
            .expect("files on a file system without device are refused before the run");
        if let Some(xfs) = &mut mount.xfs {
            xfs.changed_by(self.task);
        }
        mount
    }

    /// The file systems with metadata whose block devices are not open yet.
    pub(crate) fn to_be_opened(&self) -> Vec<usize> {
        let mounts = self.all.iter().enumerate();
        mounts
            .filter(|(_, mount)| mount.as_ref().is_some_and(|fs| fs.layout.is_some()))
            .map(|(fs, _)| fs)
            .collect()
    }

    /// The file systems with a journal that writes anything.
    pub(crate) fn with_journal(&self) -> Vec<usize> {
        let journal = |fs: &Mount| fs.journal.is_some();
        let mounts = self.all.iter().enumerate();
        mounts
            .filter(|(_, mount)| mount.as_ref().is_some_and(journal))
            .map(|(fs, _)| fs)
            .collect()
    }

    /// Devices with file systems, each once, in order.
    pub(crate) fn devices(&self) -> Vec<DeviceId> {
        let mut devices: Vec<DeviceId> = self
            .all
            .iter()
            .flatten()
            .map(|mount| mount.device)
            .collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Pages waiting for a place, on all of them.
    pub(crate) fn reserved(&self) -> u64 {
        self.all.iter().flatten().map(|mount| mount.reserved).sum()
    }
}

/// Allocation groups of XFS on a device.
fn xfs_groups(device: &Device) -> u64 {
    match (device.members, device.size >> 30) {
        (1, _) => XFS_GROUPS,
        (_, ..=8) => XFS_STRIPED_GROUPS[0],
        (_, ..=512) => XFS_STRIPED_GROUPS[1],
        _ => XFS_STRIPED_GROUPS[2],
    }
}

impl Mount {
    fn new(machine: &Machine, spec: &FileSystem, kernel: &Kernel) -> Option<Mount> {
        let device = spec.device?;
        let metadata = kernel.coverage.metadata;
        let pages = machine.devices[device].size / PAGE_SIZE;
        let group = match spec.kind {
            FsKind::Xfs => pages.div_ceil(xfs_groups(&machine.devices[device])).max(1),
            FsKind::Ext4 | FsKind::Ext3 => EXT4_GROUP,
            FsKind::Tmpfs => return None,
        };
        // Swap areas on the device are partitions of their own.
        let mut taken: Vec<(u64, u64)> = machine
            .swap
            .iter()
            .filter(|area| area.device == device)
            .map(|area| {
                (
                    area.start / PAGE_SIZE,
                    (area.start + area.size).div_ceil(PAGE_SIZE),
                )
            })
            .collect();
        // File systems of one device have equal parts of it.
        let mut on_device = machine
            .filesystems
            .iter()
            .filter(|fs| fs.device == Some(device));
        let count = on_device.clone().count() as u64;
        let number = on_device.position(|fs| fs.name == spec.name).unwrap_or(0) as u64;
        let (mut from, last) = (pages * number / count, pages * (number + 1) / count);
        let own = from..last;
        // A page of the page cache has an offset of 32 bits, and the metadata of a server's file system is not part of the model.
        let metadata =
            metadata && last <= u64::from(u32::MAX) && machine.devices[device].server.is_none();
        let layout = match spec.kind {
            FsKind::Ext3 | FsKind::Ext4 if metadata => {
                Some(Layout::new(spec.kind, own.clone(), spec.inode_ratio))
            }
            _ => None,
        };
        let xfs = (spec.kind == FsKind::Xfs && metadata).then(|| {
            let rules = kernel.mechanisms.shrinker.xfs_inodes;
            Xfs::new(own.clone(), group, kernel.version, rules)
        });
        let of_metadata = layout.iter().flat_map(Layout::taken);
        let of_metadata = of_metadata.chain(xfs.iter().flat_map(Xfs::taken));
        taken.extend(of_metadata.map(|(start, length)| (start, start + length)));
        taken.sort_unstable();
        let mut free = Vec::new();
        for (start, end) in taken {
            free.push((from, start.min(last).saturating_sub(from)));
            from = from.max(end);
        }
        free.push((from, last.saturating_sub(from)));
        let journal = (spec.kind == FsKind::Ext3 || layout.is_some()).then(|| {
            let log = layout.as_ref().map(Layout::journal);
            Journal::new(spec.kind == FsKind::Ext3, log)
        });
        Some(Mount {
            kind: spec.kind,
            device: DeviceId::from(device),
            space: Space::new(&free, pages, group),
            reserved: 0,
            xfs_ahead: kernel.mechanisms.files.xfs_ahead,
            pages: own,
            layout,
            atime: spec.atime,
            metadata: None,
            xfs,
            journal,
        })
    }

    /// Its block device is a file from now on, with these pages.
    pub(crate) fn open_device(&mut self, device: InodeId) -> Range<u64> {
        let readahead = match self.kind {
            FsKind::Ext4 => EXT4_INODE_READAHEAD,
            _ => 1,
        };
        let layout = self.layout.take();
        self.metadata = layout.map(|layout| Metadata::new(device, layout, readahead));
        self.pages.clone()
    }

    /// The running transaction of its journal, or the next if there is none, counted from 1 on; 0 if it has no metadata.
    pub(crate) fn running_transaction(&self) -> u64 {
        match (&self.metadata, &self.journal) {
            (Some(_), Some(journal)) => journal.transaction(),
            _ => 0,
        }
    }

    /// Whether its files are in large folios, as far as the kernel uses them.
    pub(crate) fn has_large_folios(&self, folios: WriteFolios) -> bool {
        match self.kind {
            FsKind::Xfs => folios != WriteFolios::Pages,
            FsKind::Ext4 => folios == WriteFolios::XfsAndExt4,
            FsKind::Ext3 | FsKind::Tmpfs => false,
        }
    }

    /// Whether a page has its place as soon as it is dirty.
    pub(crate) fn allocates_at_once(&self) -> bool {
        self.kind == FsKind::Ext3
    }

    /// Where the first page of a new file in a directory should lie.
    pub(crate) fn home(&self, directory: u64) -> u64 {
        let step = match self.kind {
            FsKind::Ext4 => EXT4_FLEX,
            FsKind::Ext3 => 0,
            FsKind::Xfs | FsKind::Tmpfs => 1,
        };
        let groups = self.space.groups() as u64;
        // When every step has had its directory the next ones begin between them.
        let place = directory.wrapping_mul(step as u64);
        let group = place + place / groups;
        self.space.start_of((group % groups) as usize)
    }

    /// Keeps room for a page that is dirty and has no place yet. False: the file system is full.
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.reserved < self.space.free();
        self.reserved += u64::from(room);
        room
    }

    /// Pages that had room kept do not need it any more.
    pub(crate) fn unreserve(&mut self, pages: u64) {
        self.reserved -= pages;
    }

    /// A place for the `need` pages of a file from `page` on, which have none; the file has `size` pages
    /// up to there. It may be for fewer pages, or for more if they are at the end of the file.
    pub(crate) fn allocate(&mut self, request: &Request) -> Option<Extent> {
        let Request { page, need, .. } = *request;
        let want = self.request(request).min(u64::from(request.hole));
        // What others have been promised is not for allocating ahead.
        let spare = self.space.free().saturating_sub(self.reserved);
        let want = want.min(u64::from(need) + spare);
        let (start, length) = self.space.allocate(request.goal, want)?;
        self.note_blocks(start, length);
        Some(Extent {
            page,
            start,
            length: length as u32,
        })
    }

    /// Pages to ask for.
    fn request(&self, request: &Request) -> u64 {
        let need = u64::from(request.need);
        if !request.extends {
            return need;
        }
        let size = u64::from(request.page) + need;
        match self.kind {
            FsKind::Ext4 => {
                let unit = size
                    .next_power_of_two()
                    .clamp(EXT4_REQUEST_MIN, EXT4_REQUEST_MAX);
                // The request ends where a file of that unit would.
                need.max(size.next_multiple_of(unit) - u64::from(request.page))
            }
            FsKind::Ext3 => {
                need + size
                    .next_power_of_two()
                    .clamp(EXT3_WINDOW_MIN, EXT3_WINDOW_MAX)
            }
            _ if self.xfs_ahead == XfsAhead::Fixed => need + XFS_AHEAD_MIN,
            _ => {
                let mut ahead = (1 << size.ilog2()).clamp(XFS_AHEAD_MIN, XFS_AHEAD_MAX);
                // Less when less than a twentieth is free.
                while ahead > XFS_AHEAD_MIN && ahead > self.space.free() / 20 {
                    ahead /= 2;
                }
                need + ahead
            }
        }
    }

    /// Gives the places of a file back.
    pub(crate) fn release(&mut self, runs: &[(u64, u64)]) {
        for &(start, length) in runs {
            self.space.release(start, length);
            if length > 0 {
                self.note_blocks(start, length);
            }
        }
    }

    /// Blocks of the device are in use, or are free again.
    fn note_blocks(&mut self, start: u64, length: u64) {
        if let Some(metadata) = &mut self.metadata {
            metadata.note_blocks(start, length);
        }
        if let Some(xfs) = &mut self.xfs {
            xfs.note_blocks(start, length);
        }
    }

    /// `ext4_create`, `xfs_create`: the inode of a new file in a directory, under this name.
    pub(crate) fn add_file(&mut self, inode: InodeId, directory: Folder, name: u64) -> Place {
        let home = self.home(directory.number);
        match &mut self.xfs {
            Some(xfs) => xfs.add_file(&mut self.space, home, directory, name),
            None => self.add_file_to_table(inode, directory, name),
        }
        .unwrap_or_default()
    }

    /// The inode of a file that has gone is free.
    pub(crate) fn free_inode(&mut self, place: Place) {
        match &mut self.xfs {
            Some(xfs) if place.ino > 0 => xfs.free_inode(place.ino),
            Some(_) => {}
            None => self.free_inode_of_table(place),
        }
    }

    /// Free pages.
    #[cfg(test)]
    pub(crate) fn free(&self) -> u64 {
        self.space.free()
    }
}

/// Pages that need a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// First page of the file.
    pub(crate) page: u32,
    /// Pages that need it.
    pub(crate) need: u32,
    /// Pages up to the next one that has a place.
    pub(crate) hole: u32,
    /// Nothing of the file lies behind them: more may be allocated.
    pub(crate) extends: bool,
    /// Where they should lie.
    pub(crate) goal: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::machine::{Atime, INODE_RATIO, SwapArea};

    fn mount(kind: FsKind) -> Mount {
        let mut machine = Machine::small(64 << 20, 0);
        machine.devices = vec![Device::hdd("sda", 40 << 30)];
        machine.swap = vec![SwapArea {
            device: 0,
            start: 10 << 30,
            size: 1 << 30,
            priority: -1,
            file: false,
        }];
        let spec = FileSystem {
            name: "data".into(),
            kind,
            device: Some(0),
            inode_ratio: INODE_RATIO,
            atime: Atime::default(),
        };
        machine.filesystems = vec![spec.clone()];
        Mount::new(&machine, &spec, &Kernel::named("v3.14")).unwrap()
    }

    fn append(mount: &mut Mount, page: u32, need: u32, goal: u64) -> Extent {
        let request = Request {
            page,
            need,
            hole: u32::MAX - page,
            extends: true,
            goal,
        };
        mount.allocate(&request).unwrap()
    }

    #[test]
    fn swap_is_not_for_files() {
        let mut mount = mount(FsKind::Xfs);
        assert_eq!(mount.free(), (39 << 30) / PAGE_SIZE);
        let third = (10 << 30) / PAGE_SIZE;
        let extent = append(&mut mount, 0, 16, third);
        assert_eq!(extent.start, (11 << 30) / PAGE_SIZE);
    }

    #[test]
    fn a_growing_file_gets_ever_longer_extents_on_xfs() {
        let mut mount = mount(FsKind::Xfs);
        let lengths: Vec<u32> = [(0, 16), (32, 16), (80, 48)]
            .map(|(page, need)| append(&mut mount, page, need, 0).length)
            .to_vec();
        assert_eq!(lengths, [16 + 16, 16 + 32, 48 + 128]);
        mount.xfs_ahead = XfsAhead::Fixed;
        assert_eq!(append(&mut mount, 500, 48, 0).length, 48 + 16);
    }

    #[test]
    fn requests_of_ext4_are_rounded_up() {
        let mut mount = mount(FsKind::Ext4);
        assert_eq!(append(&mut mount, 0, 1, 0).length, 4);
        assert_eq!(append(&mut mount, 4, 60, 0).length, 60);
        assert_eq!(append(&mut mount, 5000, 100, 0).length, 1144);
    }

    #[test]
    fn windows_of_ext3_double_with_the_file() {
        let mut mount = mount(FsKind::Ext3);
        let lengths = [0, 9, 33, 5000].map(|page| append(&mut mount, page, 1, 0).length);
        assert_eq!(lengths, [1 + 8, 1 + 16, 1 + 64, 1 + 1024]);
    }

    #[test]
    fn directories_begin_apart() {
        let xfs = mount(FsKind::Xfs);
        let gib10 = (10 << 30) / PAGE_SIZE;
        assert_eq!([0, 1, 4].map(|d| xfs.home(d)), [0, gib10, gib10]);
        let ext4 = mount(FsKind::Ext4);
        assert_eq!([0, 1].map(|d| ext4.home(d)), [0, 16 * EXT4_GROUP]);
        let ext3 = mount(FsKind::Ext3);
        assert_eq!([0, 1].map(|d| ext3.home(d)), [0, 0]);
    }

    #[test]
    fn room_that_is_kept_is_not_given_away() {
        let mut mount = mount(FsKind::Xfs);
        while mount.space.free() > 100 {
            let too_many = mount.space.free() - 100;
            mount.space.allocate(0, too_many);
        }
        for _ in 0..mount.space.free() {
            assert!(mount.reserve());
        }
        assert!(!mount.reserve());
        let before = mount.space.free();
        append(&mut mount, 0, 10, 0);
        assert!(before - mount.space.free() <= 10);
    }
}
