//! Splitting: the entry of the directory that maps a huge page (`__split_huge_pmd`), and a huge page itself
//! (`split_huge_page_to_list`); unmapping a part of one.

use super::fault::first_of_extent;
use crate::kernel::{ThpSplit, ThpTails, ThpUnmap, ThpZap};
use crate::mm::Mm;
use crate::mm::fault::mmu_gather::MmuGather;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{HPAGE_PMD_NR, HPAGE_PMD_ORDER, Pfn, flag};
use crate::world::World;
use std::ops::Range;

/// Flags of the head that all pages have when it has been split.
const HANDED_ON: [u16; 5] = [
    flag::REFERENCED,
    flag::ACTIVE,
    flag::WORKINGSET,
    flag::DIRTY,
    flag::SWAPCACHE,
];

impl Mm {
    /// Whether a page belongs to a huge page of private memory.
    #[inline]
    pub(crate) fn is_huge(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        page.order() == HPAGE_PMD_ORDER && page.is_anon() && self.huge.is_on()
    }

    /// Whether all of a huge page is mapped, by an entry of the directory (`folio_entire_mapcount`).
    pub(crate) fn is_pmd_mapped(&self, head: Pfn) -> bool {
        let owner = self.pages[head].owner;
        if !self.pages[head].has_owner() || !self.pages[head].is_mapped() {
            return false;
        }
        let (vma, index) = self.mappings.of(owner);
        self.pmd(vma as u32, index as u32)
            .is_some_and(|pmd| pmd.is_huge())
    }

    /// The 2 MiB around a page of a region are mapped by a table from now on.
    ///
    /// The entry knew of its 2 MiB only that something there was accessed, so that afterwards each of the 512 PTEs is young if
    /// it was (`__split_huge_pmd_locked`: `young`).
    pub(crate) fn split_huge_pmd(&mut self, vma: u32, index: u32) {
        self.clear_huge_pmd(vma, index);
        self.stat.thp_split_pmd += 1;
        let first = first_of_extent(index) as usize;
        let ptes = &mut self.vmas[vma as usize].ptes[first..first + HPAGE_PMD_NR as usize];
        if ptes.iter().any(|pte| pte.is_young()) {
            ptes.iter_mut().for_each(|pte| pte.mkyoung());
        }
    }

    /// A region is about to be cut, or treated in two ways, before a page of it: what maps the 2 MiB around the page as one
    /// is split unless they begin there (`vma_adjust_trans_huge`).
    pub(crate) fn split_huge_at(&mut self, vma: u32, index: u32) {
        if index == first_of_extent(index) || !self.pmd(vma, index).is_some_and(|pmd| pmd.is_huge())
        {
            return;
        }
        self.split_huge_pmd(vma, index);
        let pte = self.vmas[vma as usize].ptes[first_of_extent(index) as usize];
        if let Some(head) = pte.frame()
            && self.kernel.mechanisms.huge.thp_split == ThpSplit::AtOnce
        {
            self.split_huge_page(head);
        }
    }

    /// Pages of a range are about to be treated one by one: huge pages of it are split unless another task holds them or they
    /// are being written. MADV_COLD and MADV_FREE of kernels treat a huge page that lies in the range as one.
    pub(crate) fn split_huge_in(&mut self, vma: u32, range: Range<u32>) {
        for index in range {
            let pte = self.vmas[vma as usize].ptes[index as usize];
            let Some(pfn) = pte.frame().filter(|&pfn| self.is_huge(pfn)) else {
                continue;
            };
            let head = self.pages.head(pfn);
            let page = &self.pages[head];
            if page.has(flag::LRU) && !page.has_any(flag::LOCKED | flag::WRITEBACK) {
                self.split_huge_page(head);
            }
        }
    }

    /// `zap_huge_pmd`: if the 2 MiB that begin at a page of a region are mapped as one, they are unmapped. The page behind
    /// them. `ptes` are those of the region.
    pub(crate) fn zap_huge_pmd(
        &mut self,
        vma: u32,
        index: u32,
        ptes: &mut [Pte],
        gather: &mut MmuGather,
    ) -> Option<u32> {
        let begins = index == first_of_extent(index);
        if !begins || !self.pmd(vma, index).is_some_and(|pmd| pmd.is_huge()) {
            return None;
        }
        let end = index + HPAGE_PMD_NR;
        let head = ptes[index as usize].frame();
        ptes[index as usize..end as usize].fill(Pte::default());
        self.clear_huge_pmd(vma, index);
        if let Some(head) = head {
            self.forget_huge(head, gather);
        }
        Some(end)
    }

    fn forget_huge(&mut self, head: Pfn, gather: &mut MmuGather) {
        for pfn in self.pages.folio(head) {
            self.pages[pfn].mapcount -= 1;
        }
        let rules = self.kernel.mechanisms.huge;
        let spared = rules.thp_unmap != ThpUnmap::Pages && self.pages[head].has(flag::SWAPCACHE);
        let page = self.huge.of_mut(head);
        page.mapped = 0;
        // It is off the list again before anybody else sees it there.
        let queued = rules.thp_zap == ThpZap::Queued && !page.queued && !spared;
        self.stat.thp_deferred_split_page += u64::from(queued);
        self.tlb_remove_page(head, gather);
    }

    /// A frame of a huge page, mapped by a table, has been unmapped: it is free when the last one is, and until then it
    /// waits to be split.
    pub(crate) fn zap_huge_frame(&mut self, pfn: Pfn, gather: &mut MmuGather) {
        let head = self.pages.head(pfn);
        let page = self.huge.of_mut(head);
        page.mapped -= 1;
        if page.mapped == 0 {
            self.tlb_remove_page(head, gather);
        } else if !self.pages[head].has(flag::SWAPCACHE) {
            self.note_partly_mapped(head);
        }
    }

    /// A frame of a huge page is mapped by a PTE again.
    pub(crate) fn note_huge_frame_mapped(&mut self, pfn: Pfn) {
        let head = self.pages.head(pfn);
        self.huge.of_mut(head).mapped += 1;
    }

    /// `try_to_unmap` of a huge page in the swap cache: its PTEs become its swap entries.
    pub(crate) fn unmap_huge_page(&mut self, head: Pfn) {
        if self.is_pmd_mapped(head) {
            let (vma, index) = self.mappings.of(self.pages[head].owner);
            self.split_huge_pmd(vma as u32, index as u32);
        }
        for pfn in self.pages.folio(head) {
            if self.pages[pfn].is_mapped() {
                let page = self.pages[pfn];
                let pte = self.anon_pte(page);
                let dirty = pte.is_dirty();
                *pte = Pte::swapped(page.slot());
                self.swap.add_reference(page.slot());
                self.pages[pfn].mapcount -= 1;
                if dirty {
                    self.pages[head].set(flag::DIRTY);
                }
            }
        }
        self.huge.of_mut(head).mapped = 0;
    }

    /// `split_huge_page`: its frames are pages of their own. Of a page on its list those are free that no task maps or has in swap;
    /// the others go to the head of that list, where the kernel has them stay in its place. From 6.12 on no task maps what was
    /// never written either.
    ///
    /// A page that reclaim has isolated gives back all of its frames, which reclaim holds, in the order in which reclaim comes
    /// to them.
    pub(crate) fn split_huge_page(&mut self, head: Pfn) -> Vec<Pfn> {
        debug_assert!(!self.pages[head].has_any(flag::LOCKED | flag::WRITEBACK));
        if self.is_pmd_mapped(head) {
            if self.unmaps_parts(head) {
                self.stat.thp_deferred_split_page += 1;
            }
            let (vma, index) = self.mappings.of(self.pages[head].owner);
            self.split_huge_pmd(vma as u32, index as u32);
        }
        if self.kernel.mechanisms.huge.thp_split == ThpSplit::Underused {
            self.free_unused(head);
        }
        self.unqueue(head);
        self.huge.forget(head);
        self.stat.thp_split_page += 1;
        let listed = self.pages[head].has(flag::LRU);
        if listed {
            self.lru_del(head);
        }
        let whole = self.pages[head];
        let mut kept = Vec::new();
        for pfn in self.pages.folio(head) {
            let page = &mut self.pages[pfn];
            page.leave_folio();
            for one in HANDED_ON.into_iter().filter(|&one| whole.has(one)) {
                page.set(one);
            }
            let used = page.is_mapped() || page.has(flag::SWAPCACHE);
            match (listed, used) {
                (true, true) => self.lru_add(pfn),
                (true, false) => self.free_page(pfn),
                (false, _) => kept.push(pfn),
            }
        }
        let from_the_end = self.kernel.mechanisms.huge.thp_tails == ThpTails::Descending;
        if let Some(tails) = kept.get_mut(1..).filter(|_| from_the_end) {
            tails.reverse();
        }
        kept
    }
}

/// What splitting a huge page keeps from others, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitTime {
    /// Region whose mappings no reclaimer can look at meanwhile.
    pub(crate) vma: u32,
    /// CPU time, ns.
    pub(crate) cost: u64,
}

impl World {
    /// What splitting a huge page is going to take: each of its pages is looked at as reclaim looks at one, and from 6.12 on those
    /// that were never written are gone through for anything but zeroes (`try_to_map_unused_to_zeropage`). None: no task maps it.
    pub(crate) fn time_to_split(&self, head: Pfn) -> Option<SplitTime> {
        let mm = &self.mm;
        let mut frames = mm.pages.folio(head);
        let mapped = frames.find(|&pfn| mm.pages[pfn].is_mapped())?;
        let (vma, _) = mm.mappings.of(mm.pages[mapped].owner);
        let unwritten = match mm.kernel.mechanisms.huge.thp_split {
            ThpSplit::Underused => mm.unwritten(head).count() as u64,
            _ => 0,
        };
        let looked_at = u64::from(HPAGE_PMD_NR) * self.costs.reclaim_clean_ns();
        Some(SplitTime {
            vma: vma as u32,
            cost: looked_at + unwritten * self.costs.zero_page_ns,
        })
    }
}

impl Mm {
    /// A task is splitting a huge page of the region that an anonymous page belongs to, so that its mappings cannot be looked at.
    #[inline(always)]
    pub(crate) fn is_locked_for_split(&self, pfn: Pfn) -> bool {
        !self.huge.splitting.is_empty() && self.region_is_being_split(pfn)
    }

    #[cold]
    fn region_is_being_split(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        if !page.is_anon() || !page.has_owner() {
            return false;
        }
        let (vma, _) = self.mappings.of(page.owner);
        self.huge.splitting.contains(&(vma as u32))
    }
}

impl Mm {
    /// Whether a huge page counts as partly mapped for a moment while its entry is replaced for a split.
    fn unmaps_parts(&self, head: Pfn) -> bool {
        let by_pages = match self.kernel.mechanisms.huge.thp_unmap {
            ThpUnmap::Pages => true,
            ThpUnmap::SwapCacheSpared => !self.pages[head].has(flag::SWAPCACHE),
            ThpUnmap::Whole => false,
        };
        by_pages && !self.huge.of(head).partly_mapped
    }
}

impl super::HugeMemory {
    /// It is a huge page no more.
    pub(super) fn forget(&mut self, head: Pfn) {
        *self.of_mut(head) = super::FRESH;
    }
}
