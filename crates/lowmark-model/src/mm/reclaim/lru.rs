//! Pages on and off the LRU lists (`mm/swap.c`). Pages go on their list at once: the per-CPU vectors of
//! the kernel are left out. A large folio is on its list with its head, and counts for all of its pages.

use crate::ids::LruvecId;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Lruvec;
use crate::mm::frames::page::Page;
use crate::mm::types::{ByZone, Lru, Pfn, ZoneType, flag};

impl Lruvec {
    /// A page, or all of the folio that it is the head of, is on a list now (`update_lru_size`).
    #[inline]
    fn count_in(&mut self, page: &Page, kind: usize, lru: usize) {
        self.zone_pages[kind][lru] += 1;
        if page.order() > 0 {
            let tails = page.folio_nr_pages() - 1;
            self.zone_pages[kind][lru] += tails;
            self.tails[lru] += tails;
        }
    }

    /// It no longer is.
    #[inline]
    fn count_out(&mut self, page: &Page, kind: usize, lru: usize) {
        self.zone_pages[kind][lru] -= 1;
        if page.order() > 0 {
            let tails = page.folio_nr_pages() - 1;
            self.zone_pages[kind][lru] -= tails;
            self.tails[lru] -= tails;
        }
    }
}

impl Mm {
    /// Type of the zone that a frame lies in.
    #[inline]
    fn zone_type(&self, pfn: Pfn) -> ZoneType {
        self.zones[self.pages.zone(pfn)].kind
    }

    /// List on which a page is or belongs.
    #[inline]
    pub(crate) fn page_lru(&self, pfn: Pfn) -> Lru {
        self.pages[pfn].lru()
    }

    /// `lru_cache_add_lru`: at the head of the list that the page's flags say.
    #[inline]
    pub(crate) fn lru_add(&mut self, pfn: Pfn) {
        let (lruvec, kind) = (self.lruvec_of(pfn), self.zone_type(pfn) as usize);
        let page = &mut self.pages[pfn];
        page.set(flag::LRU);
        let lru = page.lru() as usize;
        let lists = &mut self.lruvecs[lruvec];
        lists.count_in(page, kind, lru);
        page.position = lists.lists[lru].push_head(&mut self.chunks, pfn);
    }

    /// [`lru_add`](Self::lru_add) of pages of one list set; how many of them are active.
    pub(crate) fn lru_add_all(&mut self, lruvec: LruvecId, batch: &[Pfn]) -> u64 {
        let mut active = 0;
        for &pfn in batch {
            let kind = self.zone_type(pfn) as usize;
            let lists = &mut self.lruvecs[lruvec];
            let page = &mut self.pages[pfn];
            page.set(flag::LRU);
            if page.has(flag::ACTIVE) {
                active += page.folio_nr_pages();
            }
            let lru = page.lru() as usize;
            lists.count_in(page, kind, lru);
            page.position = lists.lists[lru].push_head(&mut self.chunks, pfn);
        }
        active
    }

    /// Off its list.
    #[inline]
    pub(crate) fn lru_del(&mut self, pfn: Pfn) {
        let (lruvec, kind) = (self.lruvec_of(pfn), self.zone_type(pfn) as usize);
        let page = &mut self.pages[pfn];
        page.clear(flag::LRU);
        let lru = page.lru() as usize;
        let lists = &mut self.lruvecs[lruvec];
        lists.count_out(page, kind, lru);
        let list = &mut lists.lists[lru];
        list.remove(&mut self.chunks, page.position);
        if list.is_sparse() {
            list.pack(&mut self.chunks, &mut self.pages);
        }
    }

    /// Takes up to `want` pages or heads of folios off the tail of a list at once, the oldest first, and adds them to
    /// `batch`. They are still counted on it.
    pub(crate) fn take_tail(
        &mut self,
        lruvec: LruvecId,
        lru: Lru,
        want: u64,
        batch: &mut Vec<Pfn>,
    ) {
        let first = batch.len();
        let list = &mut self.lruvecs[lruvec].lists[lru as usize];
        list.cut_tail(&mut self.chunks, want, batch);
        for &pfn in &batch[first..] {
            self.pages[pfn].clear(flag::LRU);
        }
    }

    /// Gives back the last of what [`take_tail`](Self::take_tail) took.
    pub(crate) fn give_back_tail(&mut self, lruvec: LruvecId, lru: Lru, pages: &[Pfn]) {
        let list = &mut self.lruvecs[lruvec].lists[lru as usize];
        for &pfn in pages.iter().rev() {
            let page = &mut self.pages[pfn];
            page.set(flag::LRU);
            page.position = list.push_tail(&mut self.chunks, pfn);
        }
    }

    /// The rest is no longer counted on the list: pages by type of their zone, of which so many are tails of folios.
    pub(crate) fn count_taken(&mut self, lruvec: LruvecId, lru: Lru, by_zone: &ByZone, tails: u64) {
        let lists = &mut self.lruvecs[lruvec];
        for (on_list, taken) in lists.zone_pages.iter_mut().zip(by_zone) {
            on_list[lru as usize] -= taken;
        }
        lists.tails[lru as usize] -= tails;
    }

    /// `rotate_reclaimable_page`: writeback of a page meant for reclaim is over, it is to be found
    /// first. Active pages stay where they are unless `active_too` (4.11 and later).
    #[inline]
    pub(crate) fn rotate_reclaimable_page(&mut self, pfn: Pfn, active_too: bool) {
        let (lruvec, kind) = (self.lruvec_of(pfn), self.zone_type(pfn) as usize);
        let page = &mut self.pages[pfn];
        let stays = page.has(flag::ACTIVE) && !active_too;
        if !page.has(flag::LRU) || stays || page.has(flag::DIRTY) {
            return;
        }
        let from = page.lru() as usize;
        page.clear(flag::ACTIVE);
        let to = page.lru() as usize;
        let by_zone = &mut self.lruvecs[lruvec].zone_pages[kind];
        by_zone[from] -= 1;
        by_zone[to] += 1;
        let lists = &mut self.lruvecs[lruvec].lists;
        lists[from].remove(&mut self.chunks, page.position);
        page.position = lists[to].push_tail(&mut self.chunks, pfn);
        if lists[from].is_sparse() {
            lists[from].pack(&mut self.chunks, &mut self.pages);
        }
        self.stat.pgrotated += 1;
    }

    /// Takes a page of its own off its list if it is on one and frees it: nobody refers to it any more.
    pub(crate) fn release_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::LRU) {
            self.lru_del(pfn);
        }
        self.free_page(pfn);
    }
}
