//! Where XFS has its metadata, as mkfs.xfs(8) makes it: the headers of each allocation group at its beginning, the roots of
//! the trees of free space and of inodes behind them, and the log in the middle of the device.

use crate::fs::metadata::Block;
use crate::kernel::{Version, v};
use lowmark_spec::machine::PAGE_SIZE;
use std::ops::Range;

/// Inodes that are allocated together (`XFS_INODES_PER_CHUNK`).
pub(super) const CHUNK: u64 = 64;
/// Inodes that are read and written together (`M_IGEO(mp)->inodes_per_cluster`).
pub(super) const CLUSTER: u64 = 32;
/// Blocks at the beginning of a group that are not for files.
const TAKEN: u64 = 8;

/// From which kernels on file systems are taken to have checksums: mkfs.xfs makes them by default since xfsprogs 3.2.3 of 2015.
const CHECKSUMS: Version = v(4, 2);
/// From which kernels on the log has 64 MiB at least: since xfsprogs 5.15.
const LARGE_LOG: Version = v(5, 15);

/// The geometry of a file system.
#[derive(Debug)]
pub(super) struct Geometry {
    /// Its first page on the device, and the one behind its last.
    pages: Range<u64>,
    /// Pages of a group.
    group: u64,
    /// Inodes of a block: of 256 bytes, with checksums of 512.
    per_block: u64,
    log: Range<u64>,
}

impl Geometry {
    /// For a file system on these pages of a device, in groups that begin at multiples of `group` pages.
    pub(super) fn new(pages: Range<u64>, group: u64, version: Version) -> Geometry {
        let mut geometry = Geometry {
            pages,
            group,
            per_block: if version >= CHECKSUMS { 8 } else { 16 },
            log: 0..0,
        };
        let length = geometry.pages.end - geometry.pages.start;
        let least = if version >= LARGE_LOG {
            64 << 20
        } else {
            10 << 20
        };
        // calculate_log_size: a 2048th of the device; a small file system has less than the least.
        let log = (length / 2048).clamp(least / PAGE_SIZE, ((2 << 30) - (10 << 20)) / PAGE_SIZE);
        let log = log.min(length / 8);
        let middle =
            geometry.groups().start + (geometry.groups().end - geometry.groups().start) / 2;
        let start = (geometry.start(middle) + TAKEN).min(geometry.pages.end);
        geometry.log = start..(start + log).min(geometry.pages.end);
        geometry
    }

    /// The groups that have a page of it.
    pub(super) fn groups(&self) -> Range<u64> {
        self.pages.start / self.group..self.pages.end.div_ceil(self.group)
    }

    /// The group of a block.
    pub(super) fn group_of(&self, block: u64) -> u64 {
        block / self.group
    }

    /// The group of an inode.
    pub(super) fn group_of_inode(&self, ino: u64) -> u64 {
        self.group_of(ino / self.per_block)
    }

    /// The first page of a group.
    pub(super) fn start(&self, group: u64) -> u64 {
        (group * self.group).max(self.pages.start)
    }

    /// The block with the headers of a group (`xfs_agf`, `xfs_agi`), which are sectors of it.
    pub(super) fn headers(&self, group: u64) -> Block {
        self.start(group) as Block
    }

    /// The blocks of the trees of free space of a group, by place and by length.
    pub(super) fn free_space(&self, group: u64) -> [Block; 2] {
        [1, 2].map(|at| self.headers(group) + at)
    }

    /// The blocks of the trees of inodes of a group: with checksums, of those that have free inodes there is another one.
    pub(super) fn inode_trees(&self, group: u64) -> impl Iterator<Item = Block> + use<> {
        let first = self.headers(group) + 3;
        let last = first + Block::from(self.has_checksums());
        first..=last
    }

    fn has_checksums(&self) -> bool {
        self.per_block == 8
    }

    /// Bytes of the core of an inode in the log.
    pub(super) fn inode_core(&self) -> u64 {
        if self.has_checksums() { 176 } else { 96 }
    }

    /// Inodes of a block.
    pub(super) fn per_block(&self) -> u64 {
        self.per_block
    }

    /// Blocks of a chunk of inodes.
    pub(super) fn chunk_blocks(&self) -> u64 {
        CHUNK / self.per_block
    }

    /// Blocks of a cluster of inodes.
    pub(super) fn cluster_blocks(&self) -> u64 {
        CLUSTER / self.per_block
    }

    /// The blocks of the log.
    pub(super) fn log(&self) -> Range<u64> {
        self.log.clone()
    }

    /// What is not for files, as first page and length.
    pub(super) fn taken(&self) -> Vec<(u64, u64)> {
        let headers = self.groups().map(|group| (self.start(group), TAKEN));
        let log = (self.log.start, self.log.end - self.log.start);
        headers.chain([log]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_in_the_middle() {
        let pages = (1 << 40) / PAGE_SIZE;
        let old = Geometry::new(0..pages, pages / 4, v(3, 4));
        assert_eq!(old.log().start, pages / 2 + TAKEN);
        // A terabyte has a log of 512 MiB.
        assert_eq!(old.log().end - old.log().start, (512 << 20) / PAGE_SIZE);
        assert_eq!((old.chunk_blocks(), old.cluster_blocks()), (4, 2));
        assert_eq!(old.inode_trees(1).count(), 1);
        let new = Geometry::new(0..(8 << 30) / PAGE_SIZE, (2 << 30) / PAGE_SIZE, v(6, 1));
        assert_eq!(new.log().end - new.log().start, (64 << 20) / PAGE_SIZE);
        assert_eq!((new.chunk_blocks(), new.cluster_blocks()), (8, 4));
        assert_eq!(new.inode_trees(1).count(), 2);
    }

    #[test]
    fn a_small_device_has_a_small_log() {
        let tiny = Geometry::new(0..100, 25, v(6, 1));
        assert_eq!(tiny.log(), 58..70);
        assert_eq!(tiny.taken().len(), 5);
    }
}
