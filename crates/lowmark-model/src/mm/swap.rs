//! Pages on and off the LRU lists (`mm/swap.c`). Pages go on their list at once: the per-CPU vectors of
//! the kernel are left out.

use super::Mm;
use super::mmzone::Lru;
use super::page::{Pfn, flag};

impl Mm {
    /// List on which a page is or belongs.
    #[inline]
    pub(crate) fn page_lru(&self, pfn: Pfn) -> Lru {
        self.pages[pfn].lru()
    }

    /// `lru_cache_add_lru`: at the head of the list that the page's flags say.
    #[inline]
    pub(crate) fn lru_add(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        page.set(flag::LRU);
        let lru = page.lru() as usize;
        let zone = &mut self.zones[page.zone()];
        zone.lru_pages[lru] += 1;
        page.position = self.lruvecs[zone.lruvec].lists[lru].push_head(&mut self.chunks, pfn);
    }

    /// [`lru_add`](Self::lru_add) of pages of one list set; how many of them are active.
    pub(crate) fn lru_add_all(&mut self, lruvec: usize, batch: &[Pfn]) -> u64 {
        let lists = &mut self.lruvecs[lruvec].lists;
        let mut active = 0;
        for &pfn in batch {
            let page = &mut self.pages[pfn];
            page.set(flag::LRU);
            active += u64::from(page.has(flag::ACTIVE));
            let lru = page.lru() as usize;
            self.zones[page.zone()].lru_pages[lru] += 1;
            page.position = lists[lru].push_head(&mut self.chunks, pfn);
        }
        active
    }

    /// Off its list.
    #[inline]
    pub(crate) fn lru_del(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        page.clear(flag::LRU);
        let lru = page.lru() as usize;
        let zone = &mut self.zones[page.zone()];
        zone.lru_pages[lru] -= 1;
        let list = &mut self.lruvecs[zone.lruvec].lists[lru];
        list.remove(&mut self.chunks, page.position);
        if list.is_sparse() {
            list.pack(&mut self.chunks, &mut self.pages);
        }
    }

    /// Takes the oldest page off a list.
    pub(crate) fn lru_pop(&mut self, lruvec: usize, lru: Lru) -> Option<Pfn> {
        let pfn = self.lruvecs[lruvec].lists[lru as usize].pop_tail(&mut self.chunks)?;
        let page = &mut self.pages[pfn];
        page.clear(flag::LRU);
        self.zones[page.zone()].lru_pages[lru as usize] -= 1;
        Some(pfn)
    }

    /// Takes up to `want` pages off the tail of a zone's list at once, oldest first.
    pub(crate) fn take_tail(&mut self, lruvec: usize, lru: Lru, want: u64, batch: &mut Vec<Pfn>) {
        let list = &mut self.lruvecs[lruvec].lists[lru as usize];
        list.cut_tail(&mut self.chunks, want, batch);
        for &pfn in &*batch {
            self.pages[pfn].clear(flag::LRU);
        }
        if let Some(&pfn) = batch.first() {
            self.zones[self.pages[pfn].zone()].lru_pages[lru as usize] -= batch.len() as u64;
        }
    }

    /// `rotate_reclaimable_page`: writeback of a page meant for reclaim is over, it is to be found
    /// first. Active pages stay where they are unless `active_too` (4.11 and later).
    #[inline]
    pub(crate) fn rotate_reclaimable_page(&mut self, pfn: Pfn, active_too: bool) {
        let page = &mut self.pages[pfn];
        let stays = page.has(flag::ACTIVE) && !active_too;
        if !page.has(flag::LRU) || stays || page.has(flag::DIRTY) {
            return;
        }
        let from = page.lru() as usize;
        page.clear(flag::ACTIVE);
        let to = page.lru() as usize;
        let zone = &mut self.zones[page.zone()];
        zone.lru_pages[from] -= 1;
        zone.lru_pages[to] += 1;
        let lists = &mut self.lruvecs[zone.lruvec].lists;
        lists[from].remove(&mut self.chunks, page.position);
        page.position = lists[to].push_tail(&mut self.chunks, pfn);
        if lists[from].is_sparse() {
            lists[from].pack(&mut self.chunks, &mut self.pages);
        }
        self.stat.pgrotated += 1;
    }

    /// Takes a page off its list if it is on one and frees it: nobody refers to it any more.
    pub(crate) fn release_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::LRU) {
            self.lru_del(pfn);
        }
        self.free_page(pfn);
    }
}
