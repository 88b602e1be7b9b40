//! Giving up what is mapped (`unmap_region` and `zap_page_range` in `mm/memory.c`): munmap(2) and MADV_DONTNEED.

use crate::mm::Mm;
use crate::mm::fault::memory::Backing;
use crate::mm::fault::mmu_gather::MmuGather;
use crate::mm::fault::parts::Part;
use crate::mm::fault::shmem::ShmemEntry;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{HPAGE_PMD_NR, Pfn, UNMAPPED, flag};
use crate::world::Sys;
use std::ops::Range;

impl Sys {
    /// munmap(2) of a range of a region. With the last page that was mapped the region goes.
    pub(crate) async fn unmap_range(&self, vma: u32, range: Range<u32>) {
        self.zap_page_range(vma, range.clone()).await;
        let mut gather = MmuGather::of_none();
        self.world().mm.forget_range(vma, range, &mut gather);
        self.pay(&mut gather).await;
    }

    /// munmap(2) of a whole region: pages and slots that only it used are free. Nothing of a region that is gone is left
    /// to be unmapped.
    pub(crate) async fn unmap_region(&self, vma: u32) {
        let pages = self.world().mm.vmas[vma as usize].pages();
        self.zap_page_range(vma, 0..pages).await;
        let mut gather = MmuGather::of_none();
        self.world().mm.forget_region(vma, &mut gather);
        self.pay(&mut gather).await;
    }

    /// `unmap_page_range` of a range of a region: others may get the CPU behind each table (`zap_pmd_range`), while the task
    /// holds what it has unmapped so far.
    pub(crate) async fn zap_page_range(&self, vma: u32, range: Range<u32>) {
        let mut gather = self.world().mm.tlb_gather_mmu();
        let mut begin = range.start;
        while begin < range.end {
            let end = range.end.min((begin / HPAGE_PMD_NR + 1) * HPAGE_PMD_NR);
            self.world().mm.zap_range_into(vma, begin..end, &mut gather);
            begin = end;
            self.pay(&mut gather).await;
        }
        loop {
            let more = self.world().mm.tlb_flush_some(&mut gather);
            self.pay(&mut gather).await;
            if !more {
                break;
            }
        }
    }

    /// Spends the CPU time of the task's work so far.
    async fn pay(&self, gather: &mut MmuGather) {
        let cost = gather.take_cost(&self.costs);
        self.charge_work(cost).await;
    }
}

impl Mm {
    /// Nothing of a range of a region is mapped any more. With the last page of all the region goes.
    fn forget_range(&mut self, vma: u32, range: Range<u32>, gather: &mut MmuGather) {
        let region = &mut self.vmas[vma as usize];
        let pages = region.pages();
        let unmap = |part: &mut Part| part.mapped = false;
        region.parts.change(range.clone(), pages, unmap);
        if region.parts.any_mapped(0..pages) {
            self.free_unmapped_tables(vma, range)
        } else {
            self.forget_region(vma, gather)
        }
    }

    /// A region goes whose pages have been unmapped, and with it the shared object that no other region maps.
    fn forget_region(&mut self, vma: u32, gather: &mut MmuGather) {
        let region = &self.vmas[vma as usize];
        let (backing, first, pages) = (region.backing, region.first, region.pages());
        if pages == 0 {
            return;
        }
        match backing {
            Backing::Anon => {}
            Backing::Shmem(inode) => self.shmem[inode as usize]
                .mappers
                .retain(|&mapper| mapper != vma),
            Backing::File { inode, .. } => {
                self.inodes[inode].mappers.retain(|&mapper| mapper != vma)
            }
        }
        let region = &mut self.vmas[vma as usize];
        region.ptes = Vec::new();
        let pmds = std::mem::take(&mut region.pmds);
        self.free_tables(pmds);
        match backing {
            Backing::Anon => self.mappings.remove(first, u64::from(pages)),
            Backing::Shmem(inode) if self.shmem[inode as usize].mappers.is_empty() => {
                self.evict_shmem(inode, gather);
            }
            Backing::Shmem(_) | Backing::File { shared: true, .. } => {}
            Backing::File { shared: false, .. } => self.mappings.remove(first, u64::from(pages)),
        }
    }

    /// `zap_page_range` in one go: nothing of a range is in the page table any more.
    pub(crate) fn zap_range(&mut self, vma: u32, range: Range<u32>) {
        self.zap_range_into(vma, range, &mut MmuGather::of_none());
    }

    /// The same of a part of what a task unmaps.
    pub(in crate::mm) fn zap_range_into(
        &mut self,
        vma: u32,
        range: Range<u32>,
        gather: &mut MmuGather,
    ) {
        self.split_huge_at(vma, range.start);
        self.split_huge_at(vma, range.end);
        let region = &mut self.vmas[vma as usize];
        let (mut ptes, parts) = (
            std::mem::take(&mut region.ptes),
            std::mem::take(&mut region.parts),
        );
        let mut last = None;
        for (pages, part) in parts.of(range) {
            let mut index = pages.start;
            while index < pages.end {
                if let Some(end) = self.zap_huge_pmd(vma, index, &mut ptes, gather) {
                    index = end;
                    continue;
                }
                let pte = std::mem::take(&mut ptes[index as usize]);
                index += 1;
                if let Some(pfn) = pte.frame() {
                    let head = self.pages.head(pfn);
                    if part.locked {
                        self.munlock_page(pfn);
                    }
                    let accessed = part.recency && last != Some(head);
                    self.zap_page(pfn, pte, accessed, gather);
                    last = Some(head);
                } else if let Some(slot) = pte.swap_entry() {
                    gather.note_slot(self.swap.cached(slot).is_some());
                    self.swap.drop_reference(slot);
                    self.free_swap_cache(slot);
                }
            }
        }
        let region = &mut self.vmas[vma as usize];
        (region.ptes, region.parts) = (ptes, parts);
    }

    /// The slots of a range of a region that are in swap.
    pub(crate) fn swapped_of(&self, vma: u32, range: Range<u32>) -> Vec<u32> {
        let region = &self.vmas[vma as usize];
        let range = range.start as usize..range.end as usize;
        match region.backing {
            Backing::Shmem(object) => {
                let slots = self.shmem[object as usize].slots[range].iter();
                slots
                    .filter_map(|slot| match slot.get() {
                        ShmemEntry::Swap(slot) => Some(slot),
                        _ => None,
                    })
                    .collect()
            }
            _ => {
                let ptes = region.ptes[range].iter();
                ptes.filter_map(|pte| pte.swap_entry()).collect()
            }
        }
    }

    /// `zap_pte`. A page of a file or of shared memory that was touched counts as accessed, if references of its region
    /// count; a large folio once, with its first page (`zap_present_folio_ptes`). What was stored to a file's page made
    /// it dirty when it was mapped for that.
    fn zap_page(&mut self, pfn: Pfn, pte: Pte, accessed: bool, gather: &mut MmuGather) {
        gather.note_page();
        let page = &mut self.pages[pfn];
        page.mapcount -= 1;
        if page.is_anon() {
            match page.order() {
                0 => self.tlb_remove_page(pfn, gather),
                _ => self.zap_huge_frame(pfn, gather),
            }
            return;
        }
        if page.has(flag::SWAPBACKED) && pte.is_dirty() {
            page.set(flag::DIRTY);
        }
        if accessed && pte.is_young() {
            self.mark_page_accessed(pfn);
        }
    }

    /// Nobody will ever look at the page, or the huge page with this head, again: frees it, or leaves it to the end of
    /// its I/O and to reclaim.
    pub(in crate::mm) fn forget_page(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        if page.has_any(flag::WRITEBACK | flag::LOCKED) || !page.has(flag::LRU) {
            page.clear(flag::DIRTY);
            page.owner = UNMAPPED;
            return;
        }
        if page.has(flag::SWAPCACHE) {
            self.delete_from_swap_cache(pfn);
        }
        self.release_page(pfn);
    }

    /// `free_swap_and_cache`: a cached page whose slot nobody refers to any more.
    pub(super) fn free_swap_cache(&mut self, slot: u32) {
        if self.swap.references(slot) == 0
            && let Some(pfn) = self.swap.cached(slot)
        {
            let head = self.pages.head(pfn);
            // What a task holds is freed by that task.
            let held = self.pages[head].is_gathered();
            if !held && !self.is_folio_mapped(head) && !self.is_swapped(head) {
                self.forget_page(head);
            }
        }
    }

    /// The last user of a shared object is gone (`shmem_evict_inode`).
    fn evict_shmem(&mut self, inode: u32, gather: &mut MmuGather) {
        let object = &mut self.shmem[inode as usize];
        let (slots, first) = (std::mem::take(&mut object.slots), object.first);
        self.mappings.remove(first, slots.len() as u64);
        for slot in slots {
            match slot.get() {
                ShmemEntry::Hole => {}
                ShmemEntry::Page(pfn) => {
                    gather.note_page();
                    self.forget_page(pfn);
                }
                ShmemEntry::Swap(slot) => {
                    gather.note_slot(self.swap.cached(slot).is_some());
                    self.swap.drop_reference(slot);
                    self.free_swap_cache(slot);
                }
            }
        }
        self.free_shmem_tree(inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    impl Mm {
        /// munmap(2) of a range of a region, in which no time passes.
        pub(crate) fn unmap_range(&mut self, vma: u32, range: Range<u32>) {
            self.zap_range(vma, range.clone());
            self.forget_range(vma, range, &mut MmuGather::of_none());
        }

        /// The same of a whole region.
        pub(crate) fn unmap_region(&mut self, vma: u32) {
            self.unmap_range(vma, 0..self.vmas[vma as usize].pages());
        }
    }

    /// A table goes with the last page of its 2 MiB, and the region with the last page of all.
    #[test]
    fn tables_go_with_their_pages() {
        let mut world = World::of_version("v6.1");
        world.map_private(1200);
        let mut unmap = |range: Range<u32>| {
            world.mm.unmap_range(0, range);
            let pmds = world.mm.vmas[0].pmds.iter();
            pmds.map(|pmd| !pmd.is_none()).collect::<Vec<_>>()
        };
        assert_eq!(unmap(0..500), [true, true, true]);
        assert_eq!(unmap(1024..1200), [true, true, false]);
        assert_eq!(unmap(512..600), [true, true, false]);
        assert_eq!(unmap(400..512), [false, true, false]);
        assert_eq!(unmap(0..512), [false, true, false]);
        assert_eq!(unmap(590..1024), [false; 0]);
        assert_eq!(world.mm.vmas[0].pages(), 0);
        // Once more is nothing.
        world.mm.unmap_region(0);
        world.mm.drain_all_pages();
        crate::invariants::check(&world);
    }
}
