//! Which object a page belongs to and at which offset (`page->mapping`, `page->index`), in one number.
//!
//! Every private region and every shared object has a range of *owner numbers*, one for each of its
//! pages, that begins at a multiple of [`BLOCK`]; a file has one for each block of its pages that are in
//! memory. A table with an entry for each block leads back to the object. Ranges that are free again are
//! used again, the lowest first.

use crate::ids::InodeId;

/// Pages of a block of owner numbers.
pub(in crate::mm) const BLOCK: u32 = 512;

/// Whose a block is.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Index of the region, of the shared object or of the file; which of them, the page's flags say.
    object: u32,
    /// Owner number of the object's first page; for a file, which has blocks only where it has pages, what
    /// that number would be.
    first: u32,
}

/// All owner numbers.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    blocks: Vec<Block>,
    /// Unused runs of blocks, (first, count), in ascending order and not adjacent.
    unused: Vec<(u32, u32)>,
}

impl Mappings {
    /// Numbers for the pages of an object: the first one. None: it is too large.
    pub(crate) fn add(&mut self, object: u32, pages: u64) -> Option<u32> {
        let count = u32::try_from(pages.div_ceil(u64::from(BLOCK)).max(1)).ok()?;
        self.add_run(object, count, 0)
    }

    /// Numbers for the [`BLOCK`] pages of a file from `index` on: the first one. None: there are no more.
    pub(in crate::mm) fn add_block(&mut self, inode: InodeId, index: u32) -> Option<u32> {
        self.add_run(u32::from(inode), 1, index)
    }

    fn add_run(&mut self, object: u32, count: u32, index: u32) -> Option<u32> {
        let fit = self.unused.iter().position(|&(_, length)| length >= count);
        let start = match fit {
            Some(at) => {
                let (start, length) = self.unused[at];
                match length - count {
                    0 => drop(self.unused.remove(at)),
                    rest => self.unused[at] = (start + count, rest),
                }
                start
            }
            None => {
                let start = self.blocks.len() as u32;
                // The last block has the number that means nobody.
                let end = start
                    .checked_add(count)
                    .filter(|&end| end < u32::MAX / BLOCK)?;
                self.blocks.resize(end as usize, Block::default());
                start
            }
        };
        let numbers = start * BLOCK;
        let first = numbers.wrapping_sub(index);
        self.blocks[start as usize..(start + count) as usize].fill(Block { object, first });
        Some(numbers)
    }

    /// The numbers of an object's pages mean nobody any more.
    pub(crate) fn remove(&mut self, first: u32, pages: u64) {
        let mut start = first / BLOCK;
        let mut count = pages.div_ceil(u64::from(BLOCK)).max(1) as u32;
        let mut at = self.unused.partition_point(|&(other, _)| other < start);
        if let Some(&(next, length)) = self.unused.get(at)
            && next == start + count
        {
            count += length;
            self.unused.remove(at);
        }
        if at > 0 && self.unused[at - 1].0 + self.unused[at - 1].1 == start {
            at -= 1;
            count += self.unused[at].1;
            start = self.unused.remove(at).0;
        }
        self.unused.insert(at, (start, count));
    }

    /// Object and page offset of an owner number.
    #[inline]
    pub(crate) fn of(&self, owner: u32) -> (usize, usize) {
        let block = self.blocks[(owner / BLOCK) as usize];
        (
            block.object as usize,
            owner.wrapping_sub(block.first) as usize,
        )
    }

    /// File and page offset of an owner number of a file's page.
    #[inline]
    pub(crate) fn file_of(&self, owner: u32) -> (InodeId, u32) {
        let (inode, index) = self.of(owner);
        (InodeId::from(inode), index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_objects() {
        let mut mappings = Mappings::default();
        let a = mappings.add(7, 1).unwrap();
        let b = mappings.add(8, 1000).unwrap();
        let c = mappings.add(9, 512).unwrap();
        assert_eq!(mappings.of(a), (7, 0));
        assert_eq!(mappings.of(b + 999), (8, 999));
        assert_eq!(mappings.of(c + 511), (9, 511));
    }

    #[test]
    fn free_numbers_are_used_again_from_the_lowest_on() {
        let mut mappings = Mappings::default();
        let pages = 2 * u64::from(BLOCK);
        let firsts: Vec<u32> = (0..4).map(|n| mappings.add(n, pages).unwrap()).collect();
        mappings.remove(firsts[2], pages);
        mappings.remove(firsts[0], pages);
        assert_eq!(mappings.add(10, 1), Some(firsts[0]));
        assert_eq!(mappings.add(11, pages), Some(firsts[2]));
        mappings.remove(firsts[1], pages);
        // The rest of the first range and the second one are one again.
        assert_eq!(
            mappings.add(12, 3 * u64::from(BLOCK)),
            Some(firsts[0] + BLOCK)
        );
        assert_eq!(mappings.unused, []);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut mappings = Mappings::default();
        assert_eq!(mappings.add(0, 1 << 32), None);
        assert_eq!(mappings.add(0, u64::MAX), None);
        assert_eq!(mappings.add(0, 1), Some(0));
    }
}
