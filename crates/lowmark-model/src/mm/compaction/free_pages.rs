//! Free pages that a pass has isolated to move others to.
//!
//! Up to 6.8 they are single pages, and the next to be used is the last one. From 6.9 on they stay blocks, from which room for a
//! folio is split.

use crate::kernel::FolioMigration;
use crate::mm::types::{MAX_ORDER, Pfn};
use std::collections::VecDeque;

/// Isolated free pages (`cc->freepages`).
#[derive(Debug)]
pub(super) struct FreePages {
    folios: FolioMigration,
    by_order: [VecDeque<Pfn>; MAX_ORDER],
    pages: usize,
}

impl FreePages {
    pub(super) fn new(folios: FolioMigration) -> FreePages {
        FreePages {
            folios,
            by_order: Default::default(),
            pages: 0,
        }
    }

    /// How many pages there are.
    pub(super) fn len(&self) -> usize {
        self.pages
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// A free block has been isolated.
    pub(super) fn add(&mut self, pfn: Pfn, order: usize) {
        self.pages += 1 << order;
        match self.folios {
            // The last single page is used first.
            FolioMigration::Skipped => {
                let singles = pfn..pfn + (1 << order);
                singles.for_each(|single| self.by_order[0].push_front(single));
            }
            FolioMigration::Whole => self.by_order[order].push_back(pfn),
        }
    }

    /// Room for a folio of an order (`compaction_alloc`): the first block of the smallest order that will do; the rest of it
    /// stays here.
    pub(super) fn take(&mut self, order: usize) -> Option<Pfn> {
        let found = (order..MAX_ORDER).find(|&at| !self.by_order[at].is_empty())?;
        let pfn = self.by_order[found].pop_front()?;
        for half in (order..found).rev() {
            self.by_order[half].push_front(pfn + (1 << half));
        }
        self.pages -= 1 << order;
        Some(pfn)
    }

    /// It was not used.
    pub(super) fn put_back(&mut self, pfn: Pfn, order: usize) {
        self.by_order[order].push_front(pfn);
        self.pages += 1 << order;
    }

    /// All that is left, with the order of each, in the order in which they were isolated.
    pub(super) fn drain(&mut self) -> Vec<(Pfn, usize)> {
        self.pages = 0;
        let mut left = Vec::new();
        for (order, blocks) in self.by_order.iter_mut().enumerate() {
            match self.folios {
                FolioMigration::Skipped => {
                    left.extend(blocks.drain(..).rev().map(|pfn| (pfn, order)));
                }
                FolioMigration::Whole => left.extend(blocks.drain(..).map(|pfn| (pfn, order))),
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of 8 pages: a folio of 2 takes its first pages, one of 4 its second half; what comes after finds 2 pages.
    #[test]
    fn blocks_are_split_for_folios() {
        let mut free = FreePages::new(FolioMigration::Whole);
        free.add(64, 3);
        assert_eq!((free.take(1), free.take(2)), (Some(64), Some(68)));
        assert_eq!((free.take(2), free.len()), (None, 2));
        free.put_back(64, 1);
        assert_eq!(free.drain(), [(64, 1), (66, 1)]);
        assert!(free.is_empty());
    }

    #[test]
    fn single_pages_are_used_from_the_last_on() {
        let mut free = FreePages::new(FolioMigration::Skipped);
        free.add(8, 1);
        free.add(4, 0);
        assert_eq!(free.take(1), None);
        assert_eq!((free.take(0), free.take(0)), (Some(4), Some(9)));
        assert_eq!(free.drain(), [(8, 0)]);
    }
}
