//! Pages that are locked in memory (`mm/mlock.c`): they are on no list that reclaim goes through.
//!
//! Pages of large folios stay where they are: reclaim may take what is locked of them.

use crate::mm::Mm;
use crate::mm::fault::memory::Backing;
use crate::mm::types::{Pfn, flag};
use std::ops::Range;

impl Mm {
    /// What mlock(2) or munlock(2) says of a range of a region; pages that are locked no more go back to their lists.
    pub(crate) fn set_locked(&mut self, vma: u32, range: Range<u32>, locked: bool) {
        let region = &mut self.vmas[vma as usize];
        let pages = region.pages();
        let set = |part: &mut crate::mm::fault::parts::Part| part.locked = locked;
        region.parts.change(range.clone(), pages, set);
        if !locked {
            for index in range {
                let pte = self.vmas[vma as usize].ptes[index as usize];
                if let Some(pfn) = pte.frame() {
                    self.munlock_page(pfn);
                }
            }
        }
    }

    /// `mlock_folio`: off its list. False: reclaim or compaction has the page in its hands.
    pub(crate) fn mlock_page(&mut self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        if page.has(flag::UNEVICTABLE) || page.order() > 0 {
            return true;
        }
        if !page.has(flag::LRU) {
            return false;
        }
        self.lru_del(pfn);
        let page = &mut self.pages[pfn];
        page.clear(flag::ACTIVE);
        page.set(flag::UNEVICTABLE);
        self.nr_unevictable += 1;
        self.stat.unevictable_pgs_mlocked += 1;
        self.stat.unevictable_pgs_culled += 1;
        true
    }

    /// `munlock_folio`: back on its list, unless another region has it locked.
    pub(in crate::mm) fn munlock_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].has(flag::UNEVICTABLE) && !self.is_locked(pfn) {
            self.rescue_page(pfn);
        }
    }

    /// Back on its list.
    pub(in crate::mm) fn rescue_page(&mut self, pfn: Pfn) {
        if self.pages[pfn].test_and_clear(flag::UNEVICTABLE) {
            self.nr_unevictable -= 1;
            self.stat.unevictable_pgs_munlocked += 1;
            self.stat.unevictable_pgs_rescued += 1;
            self.lru_add(pfn);
        }
    }

    /// Whether a region has locked a page.
    fn is_locked(&self, pfn: Pfn) -> bool {
        let page = self.pages[pfn];
        if page.is_anon() {
            let (vma, index) = self.mappings.of(page.owner);
            return self.vmas[vma].parts.at(index as u32).locked;
        }
        let (mappers, index) = if page.has(flag::SWAPBACKED) {
            let (object, index) = self.mappings.of(page.owner);
            (&self.shmem[object].mappers, index)
        } else {
            let (inode, index) = self.file_of(&page);
            (&self.inodes[inode].mappers, index as usize)
        };
        mappers.iter().any(|&vma| {
            let region = &self.vmas[vma as usize];
            let begin = match region.backing {
                Backing::File { .. } => region.offset as usize,
                _ => 0,
            };
            let at = index.wrapping_sub(begin);
            let maps = region
                .ptes
                .get(at)
                .is_some_and(|pte| pte.frame() == Some(pfn));
            maps && region.parts.at(at as u32).locked
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::mm::types::Lru;
    use crate::world::World;

    #[test]
    fn locked_pages_are_on_no_list_until_they_are_unlocked() {
        for version in ["v3.6", "v6.18"] {
            let mut world = World::of_version(version);
            world.map_private(600);
            let on_lists = |world: &World| -> u64 {
                let lists = world.mm.lruvecs.iter();
                lists
                    .map(|lists| Lru::EVICTABLE.map(|lru| lists.len(lru)).iter().sum::<u64>())
                    .sum()
            };
            world.mm.set_locked(0, 100..300, true);
            for index in 100..300 {
                let pfn = world.mm.vmas[0].ptes[index].frame().expect("mapped");
                assert!(world.mm.mlock_page(pfn));
            }
            assert_eq!((on_lists(&world), world.mm.nr_unevictable), (400, 200));
            world.mm.set_locked(0, 100..150, false);
            assert_eq!((on_lists(&world), world.mm.nr_unevictable), (450, 150));
            crate::invariants::check(&world);
            // What is unmapped is free, locked or not.
            world.mm.unmap_range(0, 0..200);
            assert_eq!((on_lists(&world), world.mm.nr_unevictable), (300, 100));
            world.mm.unmap_region(0);
            world.mm.drain_all_pages();
            assert_eq!((on_lists(&world), world.mm.nr_unevictable), (0, 0));
            crate::invariants::check(&world);
        }
    }
}
