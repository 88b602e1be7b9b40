//! What madvise(2) does to pages on the lists (`mm/madvise.c`): cold ones go to the inactive list, those to be paged out
//! are reclaimed, and those whose content nobody needs any more are made ready to be dropped.
//!
//! Pages that others map as well are left alone, and so are those of large folios of files, which the kernel splits. A huge page that lies in the
//! range is paged out as one.

use super::vmscan;
use crate::kernel::{GenRefault, Lazyfree};
use crate::mm::Mm;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{Pfn, flag};
use crate::world::Sys;
use std::ops::Range;

/// Pages of a page table, which are paged out together.
const PAGES_PER_PMD: u32 = 512;

impl Mm {
    /// MADV_COLD of a range of a region.
    pub(crate) fn madvise_cold(&mut self, vma: u32, range: Range<u32>) {
        for index in range {
            if let Some(pfn) = self.age_page(vma, index) {
                self.deactivate_page(pfn);
            }
        }
    }

    /// A page of a region that is on a list, and that nobody else maps: nobody seems to have used it lately.
    fn age_page(&mut self, vma: u32, index: u32) -> Option<Pfn> {
        let pte = self.vmas[vma as usize].ptes.get_mut(index as usize)?;
        let pfn = pte.frame()?;
        let page = &mut self.pages[pfn];
        if !page.has(flag::LRU) || page.mapcount != 1 || page.order() > 0 {
            return None;
        }
        pte.test_and_clear_young();
        page.clear(flag::REFERENCED);
        Some(pfn)
    }

    /// The huge page that is mapped as one where a range of a region lies, and by all of it: nobody seems to have used it lately.
    fn age_huge_page(&mut self, vma: u32, range: &Range<u32>) -> Option<Pfn> {
        if range.len() < PAGES_PER_PMD as usize || !self.pmd(vma, range.start)?.is_huge() {
            return None;
        }
        let ptes = &mut self.vmas[vma as usize].ptes[range.start as usize..range.end as usize];
        let head = ptes.first()?.frame()?;
        let page = &mut self.pages[head];
        if !page.has(flag::LRU) || !page.is_anon() {
            return None;
        }
        for pte in ptes {
            pte.test_and_clear_young();
        }
        page.clear(flag::REFERENCED);
        Some(head)
    }

    /// Takes pages of a range of a region, which lie in one page table, from their lists to be paged out: a huge page as one if all of it is in the
    /// range, otherwise in parts.
    fn isolate_to_pageout(&mut self, vma: u32, range: Range<u32>) -> Vec<Pfn> {
        let aged: Vec<Pfn> = match self.age_huge_page(vma, &range) {
            Some(head) => vec![head],
            None => {
                self.split_huge_in(vma, range.clone());
                range
                    .filter_map(|index| self.age_page(vma, index))
                    .collect()
            }
        };
        for &pfn in &aged {
            self.lru_del(pfn);
            self.pages[pfn].clear(flag::ACTIVE);
        }
        aged
    }

    /// `deactivate_page`: an active page goes to the inactive head; where pages stand in generations, any page enters anew.
    fn deactivate_page(&mut self, pfn: Pfn) {
        if self.lru_gen && self.forget_use(pfn) {
            return;
        }
        if self.lru_gen || self.pages[pfn].has(flag::ACTIVE) {
            self.lru_del(pfn);
            self.pages[pfn].clear(flag::ACTIVE | flag::REFERENCED);
            self.lru_add(pfn);
            self.stat.pgdeactivate += 1;
        }
    }

    /// `lru_gen_clear_refs`, from 6.14 on: nothing is known of a page's use any more. True: it is in the oldest generation, and stays
    /// there.
    fn forget_use(&mut self, pfn: Pfn) -> bool {
        if self.kernel.mechanisms.lru_gen.gen_refault == GenRefault::Oldest {
            return false;
        }
        self.pages[pfn].clear(flag::REFERENCED | flag::WORKINGSET);
        self.pages.generation_mut(pfn).set_refs(0);
        let lists = &self.lruvecs[self.lruvec_of(pfn)];
        !lists.is_promoted(&self.pages, pfn)
    }

    /// MADV_FREE of a range of a private region: what is in swap is given up, what is in memory may be dropped unless it
    /// is stored to again.
    pub(crate) fn madvise_free(&mut self, vma: u32, range: Range<u32>) {
        for index in range {
            let pte = self.vmas[vma as usize].ptes[index as usize];
            if pte.swap_entry().is_some() {
                self.zap_range(vma, index..index + 1);
            } else if let Some(pfn) = pte.frame() {
                self.free_lazily(vma, index, pfn);
            }
        }
    }

    /// `madvise_free_pte_range` of one page.
    fn free_lazily(&mut self, vma: u32, index: u32, pfn: Pfn) {
        let page = &self.pages[pfn];
        let busy = page.has(flag::LOCKED) || page.mapcount != 1 || page.order() > 0;
        if busy || page.has(flag::SWAPCACHE) && !self.try_to_free_swap(pfn) {
            return;
        }
        self.pages[pfn].clear(flag::DIRTY);
        let pte = &mut self.vmas[vma as usize].ptes[index as usize];
        *pte = pte.old_and_clean();
        match self.kernel.mechanisms.reclaim.lazyfree {
            Lazyfree::InactiveAnon if self.pages[pfn].has(flag::LRU) => self.deactivate_page(pfn),
            Lazyfree::InactiveFile => self.mark_page_lazyfree(pfn),
            Lazyfree::InactiveAnon => {}
        }
    }

    /// `mark_page_lazyfree`: the page goes to the inactive list of files, as one that needs no swap.
    fn mark_page_lazyfree(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::LRU | flag::SWAPBACKED) {
            self.lru_del(pfn);
            self.pages[pfn].clear(flag::ACTIVE | flag::REFERENCED | flag::SWAPBACKED);
            self.lru_add(pfn);
            self.stat.pglazyfree += 1;
        }
    }

    /// `try_to_unmap` of a page that may be dropped: its PTE is empty then. False: it was stored to since, and needs swap
    /// like any other.
    pub(super) fn drop_lazyfree(&mut self, pfn: Pfn) -> bool {
        let page = self.pages[pfn];
        if page.is_mapped() {
            let pte = self.anon_pte(page);
            if pte.is_dirty() {
                self.pages[pfn].set(flag::SWAPBACKED);
                return false;
            }
            *pte = Pte::default();
            self.pages[pfn].mapcount -= 1;
        }
        self.stat.pglazyfreed += 1;
        true
    }
}

/// MADV_PAGEOUT of a range of a region, a page table at a time.
pub(crate) async fn madvise_pageout(sys: &Sys, vma: u32, range: Range<u32>) {
    let mut begin = range.start;
    while begin < range.end {
        let end = range.end.min((begin / PAGES_PER_PMD + 1) * PAGES_PER_PMD);
        let batch = sys.world().mm.isolate_to_pageout(vma, begin..end);
        vmscan::reclaim_pages(sys, batch).await;
        begin = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::types::Lru;
    use crate::world::World;

    /// A region of private pages, all stored to.
    fn region(version: &str, pages: u32) -> World {
        let mut world = World::of_version(version);
        world.map_private(pages);
        world
    }

    fn frame(world: &World, index: usize) -> Option<Pfn> {
        world.mm.vmas[0].ptes[index].frame()
    }

    #[test]
    fn pages_to_be_dropped_wait_where_the_version_has_them() {
        for (version, list, counted) in [
            ("v4.5", Lru::InactiveAnon, 0),
            ("v4.11", Lru::InactiveAnon, 0),
            ("v4.12", Lru::InactiveFile, 8),
            ("v6.18", Lru::InactiveFile, 8),
        ] {
            let mut world = region(version, 16);
            world.mm.madvise_free(0, 4..12);
            let pfn = frame(&world, 4).expect("it stays in memory");
            assert_eq!(world.mm.page_lru(pfn), list, "{version}");
            assert!(!world.mm.vmas[0].ptes[4].is_dirty());
            assert_eq!(world.mm.stat.pglazyfree, counted, "{version}");
            let other = frame(&world, 3).expect("it is mapped");
            assert!(!world.mm.page_lru(other).is_file());
            crate::invariants::check(&world);
        }
    }

    /// One that is stored to again is kept; one that is not is dropped, and what was in it is gone.
    #[test]
    fn a_store_keeps_a_page() {
        let mut world = region("v6.1", 4);
        world.mm.madvise_free(0, 0..4);
        assert!(world.mm.vmas[0].ptes[1].touch(true), "no fault is needed");
        let pages = [0, 1].map(|index| frame(&world, index).expect("mapped"));
        assert!(world.mm.drop_lazyfree(pages[0]));
        assert_eq!(world.mm.vmas[0].ptes[0], Pte::default());
        assert!(!world.mm.drop_lazyfree(pages[1]));
        assert!(world.mm.pages[pages[1]].has(flag::SWAPBACKED));
        assert_eq!(world.mm.stat.pglazyfreed, 1);
    }

    /// Pages in use are in the youngest generation; what is cold enters anew, as a page that has to be written first.
    #[test]
    fn cold_pages_of_generations_enter_anew() {
        for version in ["v6.12", "v6.18"] {
            let mut world = region(&format!("{version},lru_gen.enabled=7"), 8);
            for index in 0..8 {
                let pfn = frame(&world, index).expect("mapped");
                world.mm.lru_del(pfn);
                world.mm.pages[pfn].set(flag::ACTIVE | flag::WORKINGSET);
                world.mm.lru_add(pfn);
            }
            world.mm.madvise_cold(0, 2..5);
            let lists = &world.mm.lruvecs[crate::ids::LruvecId::from(0)];
            let gens = lists.generations().expect("they are on");
            let young = |&index: &usize| {
                let pfn = frame(&world, index).expect("mapped");
                gens.is_youngest(&world.mm.pages, pfn)
            };
            let found: Vec<usize> = (0..8).filter(|index| !young(index)).collect();
            assert_eq!(found, [2, 3, 4], "{version}");
            assert_eq!(world.mm.stat.pgdeactivate, 3);
            crate::invariants::check(&world);
        }
    }

    #[test]
    fn cold_pages_are_inactive_and_old() {
        for version in ["v5.4", "v6.18"] {
            let mut world = region(version, 8);
            for index in 0..8 {
                let pfn = frame(&world, index).expect("mapped");
                world.mm.lru_del(pfn);
                world.mm.pages[pfn].set(flag::ACTIVE | flag::REFERENCED);
                world.mm.lru_add(pfn);
            }
            world.mm.madvise_cold(0, 2..5);
            let active = |index| {
                let pfn = frame(&world, index).expect("mapped");
                let young = world.mm.vmas[0].ptes[index].is_young();
                assert_eq!(young, world.mm.page_lru(pfn).is_active(), "{version}");
                young
            };
            let found: Vec<usize> = (0..8).filter(|&index| !active(index)).collect();
            assert_eq!(found, [2, 3, 4], "{version}");
            assert_eq!(world.mm.stat.pgdeactivate, 3);
        }
    }
}
