//! What XFS keeps besides data: headers and trees of allocation groups, inodes, directories, and its log.
//!
//! 1. Operations change *items*: inodes, which are in memory by themselves, and buffers ([`buf`]). Code that cannot sleep notes
//!    them ([`Xfs::owe`]), and the task that runs that code gets the buffers and adds all to the running checkpoint of the
//!    [`log`] when it can sleep ([`pay`]).
//! 2. What the log has must be written to its place at some time: the list of that, and xfsaild, are in [`ail`].
//! 3. Inodes that the kernel's cache has let go stay in memory until XFS frees them ([`reclaim`]), for which it waits for all
//!    of the above in some versions.
//!
//! Simplified: trees have one block in each group; a directory is made with the first of its files, and each of its blocks takes
//! 100 names; extents are in the inode; bytes in the log are estimates by item; one checkpoint is written at a time, from 2.6.39 on
//! and before alike; the log is never full, and device caches are not flushed; times and sizes of inodes change in one
//! transaction with what precedes the data's I/O; what a device refuses counts as written.

mod access;
mod ail;
mod buf;
mod geometry;
mod inodes;
mod log;
mod reclaim;

pub(crate) use access::{fsync, pay, read_entry, read_inode, sync_logs};
pub(crate) use ail::xfsaild;
pub(crate) use log::{xfs_log_worker, xlog_cil_push_work};
pub(crate) use reclaim::{reclaim_inodes_nr, xfs_reclaim_worker};

use super::Mount;
use super::directory::{Directory, Folder};
use super::metadata::{Block, Place};
use super::space::Space;
use crate::kernel::{Version, XfsInodes};
use crate::mm::types::Pfn;
use crate::time::TaskId;
use ail::Ail;
use buf::Buffers;
use geometry::Geometry;
use inodes::Inodes;
use log::Log;
use reclaim::Groups;
use std::collections::BTreeMap;
use std::ops::Range;

/// Changes among which one that is noted again is looked for. It does no harm if it is not found.
const RECENT: usize = 8;

/// Bytes that a change of a buffer takes in the log: two pieces of 128, with a description and headers.
const BUFFER_BYTES: u64 = 2 * 128 + 32 + 2 * 12;
/// The same of an inode, besides its core: a description, one extent and headers.
const INODE_BYTES: u64 = 56 + 16 + 3 * 12;

/// Something that a transaction changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// An inode, by its number.
    Inode(u64),
    /// A buffer, by its first block.
    Buffer(Block),
}

/// Something that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// An item that was there before.
    Old(Item),
    /// A buffer with nothing in it before, which need not be read.
    New(Block),
}

/// The metadata of a mounted file system.
#[derive(Debug)]
pub(crate) struct Xfs {
    geometry: Geometry,
    inodes: Inodes,
    directories: BTreeMap<Folder, Directory>,
    buffers: Buffers,
    log: Log,
    ail: Ail,
    groups: Groups,
    rules: XfsInodes,
    /// Changes that no checkpoint has yet, each with the task that made it.
    owed: Vec<(TaskId, Change)>,
    /// Who changes something now.
    task: TaskId,
}

impl Xfs {
    /// Of a file system on these pages of a device, in groups that begin at multiples of `group` pages.
    pub(super) fn new(pages: Range<u64>, group: u64, version: Version, rules: XfsInodes) -> Xfs {
        let geometry = Geometry::new(pages, group, version);
        Xfs {
            log: Log::new(geometry.log(), version),
            geometry,
            inodes: Inodes::default(),
            directories: BTreeMap::new(),
            buffers: Buffers::default(),
            ail: Ail::default(),
            groups: Groups::default(),
            rules,
            owed: Vec::new(),
            task: TaskId::default(),
        }
    }

    /// The changes that are noted from now on are those of `task`.
    pub(super) fn changed_by(&mut self, task: TaskId) {
        self.task = task;
    }

    /// What is not for files, as first page and length.
    pub(super) fn taken(&self) -> Vec<(u64, u64)> {
        self.geometry.taken()
    }

    /// What making the files that exist before the run has changed is on the device.
    pub(crate) fn forget_made(&mut self) {
        self.owed.clear();
    }

    fn owe(&mut self, change: Change) {
        let recent = self.owed.len().saturating_sub(RECENT);
        let change = (self.task, change);
        if !self.owed[recent..].contains(&change) {
            self.owed.push(change);
        }
    }

    fn owe_block(&mut self, block: Block) {
        self.owe(Change::Old(Item::Buffer(block)));
    }

    /// The inode of a file has changed. Nothing comes of it if the running checkpoint has it.
    pub(crate) fn note_inode(&mut self, ino: u64) {
        let item = Item::Inode(ino);
        if ino > 0 && !self.log.is_running(item) {
            self.owe(Change::Old(item));
        }
    }

    /// Blocks of the device are in use, or are free again (`xfs_alloc_ag_vextent`, `xfs_free_extent`).
    pub(super) fn note_blocks(&mut self, start: u64, length: u64) {
        let (first, last) = (
            self.geometry.group_of(start),
            self.geometry.group_of(start + length.max(1) - 1),
        );
        for group in first..=last {
            self.owe_block(self.geometry.headers(group));
            for block in self.geometry.free_space(group) {
                self.owe_block(block);
            }
        }
    }

    /// An inode is in use, or is free again.
    fn note_inode_trees(&mut self, ino: u64) {
        let group = self.geometry.group_of_inode(ino);
        self.owe_block(self.geometry.headers(group));
        for block in self.geometry.inode_trees(group) {
            self.owe_block(block);
        }
    }

    /// `xfs_dialloc`, `xfs_ialloc_ag_alloc`: an inode near another one.
    fn add_inode(&mut self, space: &mut Space, near: u64, group: u64) -> Option<u64> {
        let allocated = self.inodes.allocate(&self.geometry, space, near, group)?;
        if let Some((start, length)) = allocated.chunk {
            self.note_blocks(start, length);
            let step = self.geometry.cluster_blocks() as usize;
            for block in (start..start + length).step_by(step) {
                self.owe(Change::New(block as Block));
            }
        }
        self.note_inode_trees(allocated.ino);
        self.note_inode(allocated.ino);
        Some(allocated.ino)
    }

    /// A directory, which the first of its files makes (`xfs_create`).
    fn directory(
        &mut self,
        space: &mut Space,
        home: u64,
        folder: Folder,
    ) -> Option<&mut Directory> {
        if !self.directories.contains_key(&folder) {
            let ino = self.add_inode(space, 0, self.geometry.group_of(home))?;
            let (block, length) = space.allocate(home, 1)?;
            self.note_blocks(block, length);
            self.owe(Change::New(block as Block));
            self.directories
                .insert(folder, Directory::new(ino, block as Block));
        }
        self.directories.get_mut(&folder)
    }

    /// `xfs_create`: the inode of a new file in a directory, under this name.
    pub(super) fn add_file(
        &mut self,
        space: &mut Space,
        home: u64,
        folder: Folder,
        name: u64,
    ) -> Option<Place> {
        let known = self.directory(space, home, folder)?;
        let (full, parent) = (known.add_name(), known.ino);
        let goal = known.last().map_or(home, u64::from);
        if full && let Some((block, length)) = space.allocate(goal, 1) {
            self.note_blocks(block, length);
            self.owe(Change::New(block as Block));
            if let Some(known) = self.directories.get_mut(&folder) {
                known.add_block(block as Block);
            }
        }
        let group = self.geometry.group_of_inode(parent);
        let ino = self.add_inode(space, parent, group)?;
        self.note_entry(folder, name);
        Some(Place {
            ino,
            directory: folder,
            changed_in: 0,
            unread: true,
        })
    }

    /// The blocks of a directory through which a name is found.
    fn entry_blocks(&self, folder: Folder, name: u64) -> Vec<Block> {
        let known = self.directories.get(&folder);
        known.map_or_else(Vec::new, |known| known.entry_blocks(name))
    }

    /// A name of a directory is new or gone, which changes a block of it and its inode.
    fn note_entry(&mut self, folder: Folder, name: u64) {
        if let Some(block) = self.entry_blocks(folder, name).pop() {
            self.owe_block(block);
        }
        if let Some(ino) = self.directories.get(&folder).map(|known| known.ino) {
            self.note_inode(ino);
        }
    }

    /// `xfs_remove`, `xfs_iunlink`: a file loses its name, and is on a list of its group.
    pub(crate) fn note_unlinked(&mut self, place: Place, name: u64) {
        self.note_entry(place.directory, name);
        self.owe_block(
            self.geometry
                .headers(self.geometry.group_of_inode(place.ino)),
        );
        self.note_inode(place.ino);
    }

    /// `xfs_inactive_ifree`
    pub(super) fn free_inode(&mut self, ino: u64) {
        self.inodes.release(&self.geometry, ino);
        self.note_inode_trees(ino);
        self.note_inode(ino);
    }

    /// The buffer that an item is written with; none of an inode that is in no chunk.
    fn buffer_of(&self, item: Item) -> Option<Block> {
        match item {
            Item::Inode(ino) => self.inodes.cluster_of(&self.geometry, ino),
            Item::Buffer(block) => Some(block),
        }
    }

    /// All that a buffer is written for.
    fn items_of(&self, block: Block) -> impl Iterator<Item = Item> + use<> {
        let inodes = self.inodes.of_cluster(&self.geometry, block);
        let inodes = inodes.into_iter().flatten().map(Item::Inode);
        [Item::Buffer(block)].into_iter().chain(inodes)
    }

    /// Pages of the buffer that begins with a block.
    fn length_of(&self, block: Block) -> usize {
        match self.inodes.of_cluster(&self.geometry, block) {
            Some(_) => self.geometry.cluster_blocks() as usize,
            None => 1,
        }
    }

    /// Whether an item is being written to its place (`xfs_iflock`).
    fn is_flushing(&self, item: Item) -> bool {
        let block = self.buffer_of(item);
        block.is_some_and(|block| self.buffers.is_flushing(block, item))
    }

    /// Whether something has changed and is not at its place.
    fn is_dirty(&self, item: Item) -> bool {
        self.log.is_pinned(item) || self.ail.lsn(item).is_some()
    }

    /// Whether a buffer has to stay in memory: it has changed, or from 5.9 on an inode of it has (298f7bec503f).
    fn is_held(&self, block: Block) -> bool {
        let by_inodes = self.rules == XfsInodes::Pushed;
        self.is_dirty(Item::Buffer(block))
            || by_inodes && self.items_of(block).any(|item| self.is_dirty(item))
    }

    /// Buffers that have changed, and are not in memory: there are none.
    pub(crate) fn lost_buffers(&self) -> Vec<Block> {
        let changed = self.log.items().chain(self.ail.items());
        let changed = changed.filter_map(|item| match item {
            Item::Buffer(block) => Some(block),
            Item::Inode(_) => None,
        });
        changed.filter(|&block| !self.buffers.has(block)).collect()
    }

    /// Bytes that a change takes in the log.
    fn bytes_of(&self, change: Change) -> u64 {
        match change {
            Change::Old(Item::Inode(_)) => self.geometry.inode_core() + INODE_BYTES,
            Change::Old(Item::Buffer(_)) | Change::New(_) => BUFFER_BYTES,
        }
    }
}

impl super::Mounts {
    /// What XFS keeps of all file systems.
    pub(crate) fn all_xfs(&self) -> impl Iterator<Item = &Xfs> + '_ {
        let mounts = self.all.iter().flatten();
        mounts.filter_map(|mount| mount.xfs.as_ref())
    }

    /// What XFS keeps of a file system; none of others, or where metadata is left out.
    pub(crate) fn xfs(&mut self, fs: usize) -> Option<&mut Xfs> {
        let xfs = self.all.get_mut(fs)?.as_mut()?.xfs.as_mut()?;
        xfs.changed_by(self.task);
        Some(xfs)
    }

    /// The file systems of which XFS keeps something.
    pub(crate) fn with_xfs(&self) -> Vec<usize> {
        let has_xfs = |mount: &Option<Mount>| mount.as_ref().is_some_and(|fs| fs.xfs.is_some());
        let mounts = self.all.iter().enumerate();
        mounts
            .filter(|(_, mount)| has_xfs(mount))
            .map(|(fs, _)| fs)
            .collect()
    }

    /// What of them has a page of metadata or of a log.
    fn xfs_with_page(&mut self, pfn: Pfn) -> Option<&mut Xfs> {
        let all = self.all.iter_mut().flatten();
        let mut all = all.filter_map(|mount| mount.xfs.as_mut());
        all.find(|xfs| xfs.buffers.has_page(pfn) || xfs.log.has_page(pfn))
    }
}
