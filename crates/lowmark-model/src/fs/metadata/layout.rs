//! Layout of the metadata of ext3 and ext4, as mke2fs(8) makes it: superblock and group descriptors at the
//! beginning, bitmaps and inode tables in each group or, on ext4, those of sixteen groups together (`flex_bg`), and the
//! journal in the middle.
//!
//! Simplified: the copies of superblock and descriptors in other groups take no room, and no blocks are kept for descriptors
//! to come.

use super::super::{EXT4_FLEX, EXT4_GROUP};
use lowmark_spec::machine::{FsKind, PAGE_SIZE};
use std::ops::Range;

/// A block, by its place on the device in pages: it is the offset of its page in the page cache of the block device.
pub(crate) type Block = u32;

/// Bytes of an inode on the device (`inode_size` of mke2fs.conf(5) since e2fsprogs 1.40.5).
const INODE_SIZE: u64 = 256;
/// Inodes in a block.
pub(super) const INODES_PER_BLOCK: u64 = PAGE_SIZE / INODE_SIZE;
/// Group descriptors in a block.
const DESCRIPTORS_PER_BLOCK: u64 = PAGE_SIZE / 32;

/// Blocks of the journal, by the blocks of its file system (`ext2fs_default_journal_size`).
fn journal_blocks(pages: u64) -> u64 {
    /// From how many blocks on a file system gets how many for its journal.
    const SIZES: [(u64, u64); 5] = [
        (2_048, 1_024),
        (32_768, 4_096),
        (262_144, 8_192),
        (524_288, 16_384),
        (4_194_304, 32_768),
    ];
    let known = SIZES.iter().rev().find(|&&(from, _)| pages >= from);
    known.map_or(0, |&(_, journal)| journal)
}

/// The layout of a file system.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Its first page on the device, and the one behind its last.
    pages: Range<u64>,
    /// Groups of which bitmaps and tables lie together.
    flex: u64,
    /// Blocks of the inode table of a group.
    table: u64,
    /// Blocks of the journal.
    journal: u64,
}

impl Layout {
    /// For a file system on these pages of a device; `inode_ratio` is the number of bytes for each of its inodes.
    pub(crate) fn new(kind: FsKind, pages: Range<u64>, inode_ratio: u64) -> Layout {
        let length = pages.end - pages.start;
        let group = EXT4_GROUP.min(length);
        let inodes = group * PAGE_SIZE / inode_ratio.max(INODE_SIZE);
        Layout {
            flex: if kind == FsKind::Ext4 {
                EXT4_FLEX as u64
            } else {
                1
            },
            table: inodes.div_ceil(INODES_PER_BLOCK).max(1),
            journal: journal_blocks(length),
            pages,
        }
    }

    /// The groups that have a page of the file system.
    fn groups(&self) -> Range<u64> {
        self.pages.start / EXT4_GROUP..self.pages.end.div_ceil(EXT4_GROUP)
    }

    /// Inodes of a group.
    pub(super) fn inodes_per_group(&self) -> u64 {
        self.table * INODES_PER_BLOCK
    }

    /// Blocks with descriptors of groups.
    fn descriptors(&self) -> u64 {
        let groups = self.groups();
        (groups.end - groups.start).div_ceil(DESCRIPTORS_PER_BLOCK)
    }

    /// The superblock.
    pub(super) fn superblock(&self) -> Block {
        self.pages.start as Block
    }

    /// The block with the descriptor of a group.
    pub(super) fn descriptor(&self, group: u64) -> Block {
        let number = group.saturating_sub(self.groups().start) / DESCRIPTORS_PER_BLOCK;
        self.superblock() + 1 + number as Block
    }

    /// The first block of bitmaps and tables of the groups that a group has its own with, and these groups.
    fn tables(&self, group: u64) -> (u64, Range<u64>) {
        let groups = self.groups();
        let first = (group / self.flex * self.flex).max(groups.start);
        let last = ((group / self.flex + 1) * self.flex).min(groups.end);
        let start = (first * EXT4_GROUP).max(self.pages.start);
        let own = if first == groups.start {
            1 + self.descriptors()
        } else {
            0
        };
        (start + own, first..last)
    }

    /// The bitmap of the blocks of a group.
    pub(super) fn block_bitmap(&self, group: u64) -> Block {
        let (start, groups) = self.tables(group);
        (start + group - groups.start) as Block
    }

    /// The bitmap of the inodes of a group.
    pub(super) fn inode_bitmap(&self, group: u64) -> Block {
        let (_, groups) = self.tables(group);
        self.block_bitmap(group) + (groups.end - groups.start) as Block
    }

    /// The inode table of a group.
    pub(super) fn table(&self, group: u64) -> Range<Block> {
        let (start, groups) = self.tables(group);
        let count = groups.end - groups.start;
        let first = start + 2 * count + (group - groups.start) * self.table;
        first as Block..(first + self.table) as Block
    }

    /// The group that a page of the device lies in.
    pub(super) fn group_of(&self, page: u64) -> u64 {
        let groups = self.groups();
        (page / EXT4_GROUP).clamp(groups.start, groups.end.saturating_sub(1).max(groups.start))
    }

    /// The blocks of the journal, in runs: those from the middle on that are no bitmaps or tables.
    pub(crate) fn journal(&self) -> Vec<Range<Block>> {
        let middle = (self.pages.start + self.pages.end) / 2;
        let (mut runs, mut left) = (Vec::new(), self.journal);
        for group in self.group_of(middle)..self.groups().end {
            let (start, together) = self.tables(group);
            let behind = start + (together.end - together.start) * (2 + self.table);
            let first = behind.max(group * EXT4_GROUP).max(middle);
            let end = ((group + 1) * EXT4_GROUP).min(self.pages.end);
            let length = end.saturating_sub(first).min(left);
            if length > 0 {
                runs.push(first as Block..(first + length) as Block);
                left -= length;
            }
        }
        runs
    }

    /// Blocks that metadata and the journal take, so that files cannot have them: (start, length) in pages of the device, ascending.
    pub(crate) fn taken(&self) -> Vec<(u64, u64)> {
        let mut taken = vec![(self.pages.start, 1 + self.descriptors())];
        let mut groups = self.groups();
        while let Some(group) = groups.next() {
            let (start, together) = self.tables(group);
            let count = together.end - together.start;
            taken.push((start, count * (2 + self.table)));
            groups.start = together.end;
        }
        let journal = self.journal();
        taken.extend(
            journal
                .iter()
                .map(|run| (run.start.into(), run.len() as u64)),
        );
        taken.sort_unstable();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_sixteen_groups_lie_together_on_ext4() {
        let layout = Layout::new(FsKind::Ext4, 0..40 * 32_768, 16_384);
        assert_eq!(layout.inodes_per_group(), 8_192);
        assert_eq!((layout.superblock(), layout.descriptor(39)), (0, 1));
        assert_eq!([0, 15].map(|group| layout.block_bitmap(group)), [2, 17]);
        assert_eq!([0, 15].map(|group| layout.inode_bitmap(group)), [18, 33]);
        assert_eq!(layout.table(1), 34 + 512..34 + 1024);
        // The last groups are eight.
        let start = 32 * 32_768;
        assert_eq!(layout.block_bitmap(33), start + 1);
        assert_eq!(layout.inode_bitmap(33), start + 9);
    }

    #[test]
    fn each_group_of_ext3_has_its_own() {
        let layout = Layout::new(FsKind::Ext3, 0..40 * 32_768, 16_384);
        let start = 7 * 32_768;
        assert_eq!(layout.block_bitmap(7), start);
        assert_eq!(layout.inode_bitmap(7), start + 1);
        assert_eq!(layout.table(7), start + 2..start + 514);
    }

    #[test]
    fn nothing_of_the_layout_overlaps() {
        for kind in [FsKind::Ext3, FsKind::Ext4] {
            for pages in [1_500, 30_000, 100_000, 40 * 32_768, 1 << 26] {
                for start in [0, 12_345] {
                    let layout = Layout::new(kind, start..start + pages, 16_384);
                    let mut end = start;
                    for (from, length) in layout.taken() {
                        assert!(from >= end, "{kind:?} {start} {pages}: {from} {end}");
                        end = from + length;
                    }
                    assert!(end <= start + pages, "{kind:?} {start} {pages}");
                }
            }
        }
    }
}
