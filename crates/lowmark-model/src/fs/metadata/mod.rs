//! What ext3 and ext4 keep on the device besides data: inode tables, directories, bitmaps and descriptors of groups. The page
//! cache of the block device has them, where reclaim meets them among the pages of files, and a journal keeps blocks
//! in memory until it has written them.
//!
//! 1. A name that is looked up and is not in memory is read from its directory, a file's inode from the table of its group;
//!    ext4 reads 32 blocks of a table together (`inode_readahead_blks`).
//! 2. What an operation changes belongs to the running transaction of the journal ([`jbd`](super::jbd)): inode and directory
//!    of a file that is made or removed, bitmaps and descriptors of groups, the inode of a file that is written to, or that is
//!    read for the first time since (`relatime`).
//! 3. Code that cannot sleep notes its changes ([`Metadata::owe`]), and the task that runs that code reads the changed blocks and
//!    tells the journal of them when the task can sleep ([`pay`]).
//!
//! Simplified: a directory is made with the first of its files; each of its blocks takes 100 names, whose leaves are found by
//! a hash from the second block on; a directory that leads to it has no entry for it; files have no blocks with the places
//! of their data (indirect blocks of ext3 from 48 KB on, extents of ext4 from the fifth on); a table is read ahead to its
//! end, and not as far as it was ever used.

mod access;
mod layout;

pub(crate) use access::{pay, read_entry, read_inode, sync_metadata, touch_atime};
pub(crate) use layout::{Block, Layout};

use super::Mount;
use super::directory::{Directory, Folder};
use crate::ids::InodeId;
use layout::INODES_PER_BLOCK;
use std::collections::{BTreeMap, BTreeSet};

/// Inodes at the beginning of a file system that no file of a user has (`EXT4_GOOD_OLD_FIRST_INO`).
const RESERVED_INODES: u64 = 11;

/// Changes among which one that is noted again is looked for. It does no harm if it is not found.
const RECENT: usize = 8;

/// What an inode in memory knows of its place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Its number in its file system; 0 if it has none.
    pub(crate) ino: u64,
    /// Its directory.
    pub(crate) directory: Folder,
    /// The last transaction in which it changed, from 1 on; 0 if there is none (`i_sync_tid`).
    pub(crate) changed_in: u64,
    /// It has not been read since it was last written to: its next read changes `i_atime` (`relatime_need_update`).
    pub(crate) unread: bool,
}

/// Which inodes of a group are in use.
#[derive(Debug)]
struct InodeGroup {
    /// Inodes below this number have been used.
    used: u64,
    /// Those of them that are free.
    free: BTreeSet<u64>,
}

/// Something that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A block that was there before.
    Block(Block),
    /// A block with nothing in it before, which need not be read.
    New(Block),
    /// The inode of a file.
    Inode(InodeId),
}

/// The metadata of a mounted file system.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// Its block device, as the file whose pages have the metadata (`bd_inode`).
    pub(crate) device: InodeId,
    layout: Layout,
    /// Groups with inodes.
    groups: BTreeMap<u64, InodeGroup>,
    /// Directories that have had a file.
    directories: BTreeMap<Folder, Directory>,
    /// Changes that no transaction has yet.
    owed: Vec<Change>,
    /// Blocks of a table that are read together.
    readahead: Block,
}

impl Metadata {
    pub(super) fn new(device: InodeId, layout: Layout, readahead: Block) -> Metadata {
        Metadata {
            device,
            layout,
            groups: BTreeMap::new(),
            directories: BTreeMap::new(),
            owed: Vec::new(),
            readahead,
        }
    }

    /// The block of an inode.
    fn inode_block(&self, ino: u64) -> Block {
        let (group, number) = self.inode_at(ino);
        self.layout.table(group).start + (number / INODES_PER_BLOCK) as Block
    }

    /// The group of an inode, and its number there.
    fn inode_at(&self, ino: u64) -> (u64, u64) {
        let per_group = self.layout.inodes_per_group();
        (ino / per_group, ino % per_group)
    }

    /// The first free inode from a group on (`find_group_other`), and whether it is the first of its block.
    fn new_inode(&mut self, group: u64) -> (u64, bool) {
        let per_group = self.layout.inodes_per_group();
        let mut group = group;
        loop {
            let first = self.layout.group_of(0);
            let known = self.groups.entry(group).or_insert_with(|| InodeGroup {
                used: if group == first { RESERVED_INODES } else { 0 },
                free: BTreeSet::new(),
            });
            let number = match known.free.pop_first() {
                Some(number) => number,
                None if known.used < per_group => {
                    known.used += 1;
                    known.used - 1
                }
                None => {
                    group += 1;
                    continue;
                }
            };
            let first = number + 1 == known.used && number % INODES_PER_BLOCK == 0;
            return (group * per_group + number, first);
        }
    }

    /// Takes an inode as [`Self::new_inode`] does, and notes the blocks that this changes. A block of the table in which no other
    /// inode is in use need not be read.
    fn add_inode(&mut self, group: u64) -> u64 {
        let (ino, first) = self.new_inode(group);
        self.note_inode_bitmap(ino);
        let block = self.inode_block(ino);
        self.owe(if first {
            Change::New(block)
        } else {
            Change::Block(block)
        });
        ino
    }

    /// An inode is in use, or is free again.
    fn note_inode_bitmap(&mut self, ino: u64) {
        let (group, _) = self.inode_at(ino);
        self.owe(Change::Block(self.layout.inode_bitmap(group)));
        self.owe(Change::Block(self.layout.descriptor(group)));
    }

    /// Something has changed. It is part of a transaction when the current task has paid for it ([`pay`]).
    fn owe(&mut self, change: Change) {
        let recent = self.owed.len().saturating_sub(RECENT);
        if !self.owed[recent..].contains(&change) {
            self.owed.push(change);
        }
    }

    /// Blocks of the device are in use, or are free again.
    pub(super) fn note_blocks(&mut self, start: u64, length: u64) {
        let (first, last) = (
            self.layout.group_of(start),
            self.layout.group_of(start + length.max(1) - 1),
        );
        for group in first..=last {
            self.owe(Change::Block(self.layout.block_bitmap(group)));
            self.owe(Change::Block(self.layout.descriptor(group)));
        }
    }

    /// The inode of a file has changed.
    pub(crate) fn note_inode(&mut self, inode: InodeId) {
        self.owe(Change::Inode(inode));
    }

    /// The blocks of a directory through which a name is found: the index, if there is more than one block, and the block that
    /// has the name or would have it.
    fn entry_blocks(&self, directory: Folder, name: u64) -> Vec<Block> {
        let known = self.directories.get(&directory);
        known.map_or_else(Vec::new, |known| known.entry_blocks(name))
    }

    /// A name of a directory is new or gone, which changes a block of it and its inode.
    pub(crate) fn note_entry(&mut self, directory: Folder, name: u64) {
        if let Some(&block) = self.entry_blocks(directory, name).last() {
            self.owe(Change::Block(block));
        }
        if let Some(ino) = self.directories.get(&directory).map(|known| known.ino) {
            self.owe(Change::Block(self.inode_block(ino)));
        }
    }

    /// `ext4_orphan_add`: a file that has lost its name is on a list that begins in the superblock.
    pub(crate) fn note_orphan(&mut self, inode: InodeId) {
        self.owe(Change::Block(self.layout.superblock()));
        self.owe(Change::Inode(inode));
    }

    /// What making the files that exist before the run has changed is on the device, and these blocks may be in memory.
    fn take_made(&mut self) -> (BTreeSet<Block>, Vec<InodeId>) {
        let (mut blocks, mut inodes) = (BTreeSet::new(), Vec::new());
        for change in self.owed.drain(..) {
            match change {
                Change::Block(block) | Change::New(block) => drop(blocks.insert(block)),
                Change::Inode(inode) => inodes.push(inode),
            }
        }
        (blocks, inodes)
    }
}

impl Mount {
    /// A directory. The first of its files makes it (`ext4_mkdir`).
    fn directory(&mut self, folder: Folder) -> Option<&mut Directory> {
        let home = self.home(folder.number);
        let metadata = self.metadata.as_mut()?;
        if !metadata.directories.contains_key(&folder) {
            let (block, length) = self.space.allocate(home, 1)?;
            let ino = metadata.add_inode(metadata.layout.group_of(home));
            metadata.owe(Change::New(block as Block));
            metadata.note_blocks(block, length);
            let directory = Directory::new(ino, block as Block);
            metadata.directories.insert(folder, directory);
        }
        metadata.directories.get_mut(&folder)
    }

    /// `ext4_create`: the inode of a new file in a directory, under this name.
    pub(super) fn add_file_to_table(
        &mut self,
        inode: InodeId,
        directory: Folder,
        name: u64,
    ) -> Option<Place> {
        let home = self.home(directory.number);
        let known = self.directory(directory)?;
        let full = known.add_name();
        let (parent, near) = (known.ino, known.last());
        let goal = near.map_or(home, u64::from);
        let more = full.then(|| self.space.allocate(goal, 1)).flatten();
        let metadata = self.metadata.as_mut()?;
        if let (Some((block, _)), Some(known)) = (more, metadata.directories.get_mut(&directory)) {
            known.add_block(block as Block);
            metadata.owe(Change::New(block as Block));
            metadata.note_blocks(block, 1);
        }
        let (group, _) = metadata.inode_at(parent);
        let ino = metadata.add_inode(group);
        metadata.note_inode(inode);
        metadata.note_entry(directory, name);
        Some(Place {
            ino,
            directory,
            changed_in: 0,
            unread: true,
        })
    }

    /// `ext4_free_inode`
    pub(super) fn free_inode_of_table(&mut self, place: Place) {
        let Some(metadata) = self.metadata.as_mut().filter(|_| place.ino > 0) else {
            return;
        };
        let (group, number) = metadata.inode_at(place.ino);
        if let Some(known) = metadata.groups.get_mut(&group) {
            known.free.insert(number);
        }
        metadata.note_inode_bitmap(place.ino);
        metadata.owe(Change::Block(metadata.inode_block(place.ino)));
    }
}
