//! Large folios (`struct folio`): 2^order frames side by side that the page cache reads, and reclaim frees, as one.
//!
//! 1. The first frame, the *head*, stands for all of them: it has the flags, and it alone is on an LRU list, where it
//!    counts for as many pages as the folio has. The others, the *tails*, have no flags.
//! 2. Every frame has the order, and its own place in its file and its own PTEs.
//! 3. While the folio is read, `position` of its second frame says how many of its pages are still to come.
//! 4. It is for pages that are read. Who writes to one, or cuts its file short, or moves it, splits it first; kernels
//!    write large folios as they are.

use crate::mm::Mm;
use crate::mm::frames::page::{Page, Pages};
use crate::mm::types::{Pfn, flag};

/// The largest order in the page cache (`MAX_PAGECACHE_ORDER`): that of a huge page.
pub(in crate::mm) const MAX_PAGECACHE_ORDER: usize = 9;

/// Flags that the pages of a folio have when it has been split.
const HANDED_ON: [u16; 3] = [flag::REFERENCED, flag::ACTIVE, flag::WORKINGSET];

impl Page {
    /// `folio_nr_pages`
    #[inline]
    pub(crate) fn folio_nr_pages(&self) -> u64 {
        1 << self.order()
    }
}

impl Pages {
    /// `page_folio`: the head of the folio that a page belongs to.
    #[inline]
    pub(crate) fn head(&self, pfn: Pfn) -> Pfn {
        pfn & (!0 << self[pfn].order())
    }

    /// Frames of the folio with this head.
    pub(crate) fn folio(&self, head: Pfn) -> std::ops::Range<Pfn> {
        head..head + self[head].folio_nr_pages() as Pfn
    }

    /// Pages of folios with these heads.
    pub(in crate::mm) fn count_pages(&self, heads: &[Pfn]) -> u64 {
        heads.iter().map(|&head| self[head].folio_nr_pages()).sum()
    }

    /// A block that has just been allocated becomes a folio (`prep_compound_page`).
    pub(in crate::mm) fn make_folio(&mut self, head: Pfn, order: usize) {
        for pfn in head..head + (1 << order) {
            self[pfn].reset();
            self[pfn].set_order(order);
        }
    }

    /// Reads of so many of its pages are to come: the folio is locked.
    pub(in crate::mm) fn lock_for_reads(&mut self, head: Pfn, reads: u32) {
        self[head].set(flag::LOCKED);
        if self[head].order() > 0 {
            self[head + 1].position = reads;
        }
    }

    /// A page has been read. The folio that is unlocked with that, unless more of it is to come (`folio_end_read`).
    pub(in crate::mm) fn end_read(&mut self, pfn: Pfn) -> Option<Pfn> {
        let head = self.head(pfn);
        if self[head].order() > 0 {
            let left = &mut self[head + 1].position;
            *left -= 1;
            if *left > 0 {
                return None;
            }
        }
        self[head].clear(flag::LOCKED);
        Some(head)
    }
}

impl Mm {
    /// Whether any page of a folio is mapped (`folio_mapped`).
    #[inline]
    pub(crate) fn is_folio_mapped(&self, head: Pfn) -> bool {
        if self.pages[head].order() == 0 {
            return self.pages[head].is_mapped();
        }
        let mut frames = self.pages.folio(head);
        frames.any(|pfn| self.pages[pfn].is_mapped())
    }

    /// `split_folio` of the one that a page belongs to, which nobody reads into: all of its pages are pages of their
    /// own. Tails go to the head of the list, where the kernel has them follow the folio's head.
    pub(crate) fn split_folio(&mut self, pfn: Pfn) {
        let head = self.pages.head(pfn);
        let frames = self.pages.folio(head);
        if frames.len() == 1 {
            return;
        }
        if self.is_huge(head) {
            self.split_huge_page(head);
            return;
        }
        debug_assert!(!self.pages[head].has_any(flag::LOCKED | flag::DIRTY | flag::WRITEBACK));
        let listed = self.pages[head].has(flag::LRU);
        if listed {
            self.lru_del(head);
        }
        let whole = self.pages[head];
        for pfn in frames.clone() {
            let page = &mut self.pages[pfn];
            page.set_order(0);
            for one in HANDED_ON.into_iter().filter(|&one| whole.has(one)) {
                page.set(one);
            }
        }
        let lru = if listed {
            frames.start
        } else {
            frames.start + 1
        };
        for pfn in lru..frames.end {
            self.lru_add(pfn);
        }
    }

    /// Frees all frames of a folio that nobody uses.
    pub(crate) fn free_folio(&mut self, head: Pfn) {
        match self.pages[head].order() {
            0 => self.free_page(head),
            order => self.free_large_folio(head, order),
        }
    }

    #[cold]
    fn free_large_folio(&mut self, head: Pfn, order: usize) {
        if self.is_huge(head) {
            self.forget_huge_page(head);
        }
        self.pages.forget_generation(head);
        for pfn in self.pages.folio(head) {
            debug_assert!(!self.pages[pfn].has(flag::LRU) && !self.pages[pfn].is_mapped());
            self.pages[pfn].reset();
            self.uncharge(pfn);
        }
        self.free_pages(head, order);
    }
}
