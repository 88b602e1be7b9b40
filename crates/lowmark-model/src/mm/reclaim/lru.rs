//! Pages on and off the LRU lists (`mm/swap.c`). Pages go on their list at once: the per-CPU vectors of
//! the kernel are left out. A large folio is on its list with its head, and counts for all of its pages.

use crate::ids::{LruvecId, MemcgId};
use crate::mm::Mm;
use crate::mm::types::{Lru, Pfn, ZoneType, flag};
use crate::world::World;

impl Mm {
    /// Type of the zone that a frame lies in.
    #[inline]
    pub(super) fn zone_type(&self, pfn: Pfn) -> ZoneType {
        self.zones[self.pages.zone(pfn)].kind
    }

    /// The lists that a page is or belongs on, and the type of its zone.
    #[inline]
    pub(in crate::mm) fn place_of(&self, pfn: Pfn) -> (LruvecId, ZoneType) {
        let zone = &self.zones[self.pages.zone(pfn)];
        let lruvec = match self.memcontrol.of_page(pfn) {
            MemcgId::ROOT => zone.lruvec,
            memcg => self.memcg_lruvec(zone.lruvec, memcg),
        };
        (lruvec, zone.kind)
    }

    /// List on which a page is or belongs.
    #[inline]
    pub(crate) fn page_lru(&self, pfn: Pfn) -> Lru {
        self.pages[pfn].lru()
    }

    /// `lru_cache_add_lru`: at the head of the list that the page's flags say.
    #[inline]
    pub(crate) fn lru_add(&mut self, pfn: Pfn) {
        let (lruvec, kind) = self.place_of(pfn);
        self.lruvecs[lruvec].add(&mut self.chunks, &mut self.pages, pfn, kind);
    }

    /// [`lru_add`](Self::lru_add) of pages of one list set.
    pub(crate) fn lru_add_all(&mut self, lruvec: LruvecId, batch: &[Pfn]) {
        let lists = &mut self.lruvecs[lruvec];
        for &pfn in batch {
            let kind = self.zones[self.pages.zone(pfn)].kind;
            lists.add(&mut self.chunks, &mut self.pages, pfn, kind);
        }
    }

    /// `activate_page` of a page that may be active already, or on no list at all.
    pub(in crate::mm) fn activate_listed(&mut self, pfn: Pfn) {
        let page = &self.pages[pfn];
        if page.has(flag::LRU) && !page.has_any(flag::ACTIVE | flag::UNEVICTABLE) {
            self.activate_page(pfn);
        }
    }

    /// `activate_page`: to the head of the active list, or of the youngest generation.
    pub(in crate::mm) fn activate_page(&mut self, pfn: Pfn) {
        let file = self.page_lru(pfn).is_file();
        self.lru_del(pfn);
        self.pages[pfn].set(flag::ACTIVE);
        self.lru_add(pfn);
        let pages = self.pages[pfn].folio_nr_pages();
        self.stat.pgactivate += pages;
        let lruvec = self.lruvec_of(pfn);
        self.lruvecs[lruvec].note_activation(file, pages);
    }

    /// Off its list.
    #[inline]
    pub(crate) fn lru_del(&mut self, pfn: Pfn) {
        let (lruvec, kind) = self.place_of(pfn);
        self.lruvecs[lruvec].delete(&mut self.chunks, &mut self.pages, pfn, kind);
    }

    /// `rotate_reclaimable_page`: writeback of a page meant for reclaim is over, it is to be found
    /// first. Active pages stay where they are unless `active_too` (4.11 and later).
    #[inline(always)]
    pub(crate) fn rotate_reclaimable_page(&mut self, pfn: Pfn, active_too: bool) {
        let page = &self.pages[pfn];
        let stays = page.has(flag::ACTIVE) && !active_too;
        if !page.has(flag::LRU) || stays || page.has(flag::DIRTY) {
            return;
        }
        let (lruvec, kind) = self.place_of(pfn);
        self.lruvecs[lruvec].rotate(&mut self.chunks, &mut self.pages, pfn, kind);
        self.stat.pgrotated += 1;
    }

    /// Takes a page or folio off its list if it is on one and frees it: nobody refers to it any more.
    pub(crate) fn release_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::LRU) {
            self.lru_del(pfn);
        }
        self.free_folio(pfn);
    }
}

impl World {
    /// `folio_add_lru` of a page that is new: one that a fault has brought counts as used, where pages stand in generations.
    #[inline]
    pub(in crate::mm) fn folio_add_lru(&mut self, pfn: Pfn) {
        if self.in_lru_fault() {
            self.mm.pages[pfn].set(flag::ACTIVE);
        }
        self.mm.lru_add(pfn);
    }

    /// Whether the current task resolves a fault in a region whose references count; known where pages stand in generations.
    #[inline]
    pub(in crate::mm) fn in_lru_fault(&self) -> bool {
        self.mm.lru_gen && self.sched.in_lru_fault()
    }

    /// `lru_gen_enter_fault`: the current task begins to resolve a fault.
    #[inline]
    pub(in crate::mm) fn enter_lru_fault(&mut self, vma: u32, index: u32) {
        if self.mm.lru_gen {
            let recency = self.mm.vmas[vma as usize].parts.at(index).recency;
            self.sched.set_in_lru_fault(recency);
        }
    }

    /// `lru_gen_exit_fault`
    #[inline]
    pub(in crate::mm) fn exit_lru_fault(&mut self) {
        if self.mm.lru_gen {
            self.sched.set_in_lru_fault(false);
        }
    }
}
