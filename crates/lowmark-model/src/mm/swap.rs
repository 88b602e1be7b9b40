//! Pages on and off the LRU lists (`mm/swap.c`). Pages go on their list at once: the per-CPU vectors of
//! the kernel are left out.

use super::Mm;
use super::mmzone::Lru;
use super::page::{Pfn, flag};

impl Mm {
    /// List on which a page is or belongs.
    #[inline]
    pub(crate) fn page_lru(&self, pfn: Pfn) -> Lru {
        let page = &self.pages[pfn];
        Lru::new(!page.has(flag::SWAPBACKED), page.has(flag::ACTIVE))
    }

    /// The page's list set, with the page counted in or out of its zone.
    #[inline]
    fn account(&mut self, pfn: Pfn, lru: Lru, by: i64) -> usize {
        let zone = &mut self.zones[self.pages[pfn].zone()];
        let pages = &mut zone.lru_pages[lru as usize];
        *pages = pages.wrapping_add_signed(by);
        zone.lruvec
    }

    /// `lru_cache_add_lru`: at the head of the list that the page's flags say.
    #[inline]
    pub(crate) fn lru_add(&mut self, pfn: Pfn) {
        let lru = self.page_lru(pfn);
        let lruvec = self.account(pfn, lru, 1);
        self.pages[pfn].set(flag::LRU);
        self.lruvecs[lruvec].lists[lru as usize].push_head(&mut self.chunks, &mut self.pages, pfn);
    }

    /// At the tail of its list.
    #[inline]
    pub(crate) fn lru_add_tail(&mut self, pfn: Pfn) {
        let lru = self.page_lru(pfn);
        let lruvec = self.account(pfn, lru, 1);
        self.pages[pfn].set(flag::LRU);
        self.lruvecs[lruvec].lists[lru as usize].push_tail(&mut self.chunks, &mut self.pages, pfn);
    }

    /// Off its list.
    #[inline]
    pub(crate) fn lru_del(&mut self, pfn: Pfn) {
        let lru = self.page_lru(pfn);
        let lruvec = self.account(pfn, lru, -1);
        self.pages[pfn].clear(flag::LRU);
        self.lruvecs[lruvec].lists[lru as usize].remove(&mut self.chunks, &mut self.pages, pfn);
    }

    /// Takes the oldest page off a list.
    pub(crate) fn lru_pop(&mut self, lruvec: usize, lru: Lru) -> Option<Pfn> {
        let pfn = self.lruvecs[lruvec].lists[lru as usize].pop_tail(&mut self.chunks)?;
        self.account(pfn, lru, -1);
        self.pages[pfn].clear(flag::LRU);
        Some(pfn)
    }

    /// Takes up to `want` pages off the tail of a zone's list at once, oldest first.
    pub(crate) fn take_tail(&mut self, lruvec: usize, lru: Lru, want: u64, batch: &mut Vec<Pfn>) {
        let list = &mut self.lruvecs[lruvec].lists[lru as usize];
        list.cut_tail(&mut self.chunks, want, batch);
        for &pfn in batch.iter() {
            self.pages[pfn].clear(flag::LRU);
        }
        if let Some(&pfn) = batch.first() {
            self.zones[self.pages[pfn].zone()].lru_pages[lru as usize] -= batch.len() as u64;
        }
    }

    /// `rotate_reclaimable_page`: writeback of a page meant for reclaim is over, it is to be found
    /// first. Active pages stay where they are unless `active_too` (4.11 and later).
    pub(crate) fn rotate_reclaimable_page(&mut self, pfn: Pfn, active_too: bool) {
        let page = &self.pages[pfn];
        let stays = page.has(flag::ACTIVE) && !active_too;
        if page.has(flag::LRU) && !stays && !page.has(flag::DIRTY) {
            self.lru_del(pfn);
            self.pages[pfn].clear(flag::ACTIVE);
            self.lru_add_tail(pfn);
            self.stat.pgrotated += 1;
        }
    }

    /// Takes a page off its list if it is on one and frees it: nobody refers to it any more.
    pub(crate) fn release_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::LRU) {
            self.lru_del(pfn);
        }
        self.free_page(pfn);
    }
}
