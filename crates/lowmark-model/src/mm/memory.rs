//! Mapped regions, page tables, page faults (`mm/memory.c`).

use super::page::{Pfn, UNMAPPED, flag};
use super::page_alloc::{Gfp, OutOfMemory, alloc_page};
use super::page_io;
use super::shmem::{ShmemEntry, ShmemSlot};
use super::swap_state;
use crate::kernel::NewAnon;
use crate::world::{Sys, World};

/// A page table entry in 32 bits: present, young, dirty, writable and a frame; or a swap entry; or
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pte(u32);

const PRESENT: u32 = 1 << 0;
const YOUNG: u32 = 1 << 1;
const DIRTY: u32 = 1 << 2;
const WRITABLE: u32 = 1 << 3;
const PAYLOAD: u32 = 4;
/// The page of zeroes that read faults map before anything is written.
const ZERO_FRAME: u32 = u32::MAX >> PAYLOAD;
/// Most frames and swap slots that an entry can name: 1 TiB.
pub(crate) const MAX_PAYLOAD: u32 = ZERO_FRAME - 1;

impl Pte {
    fn mapped(pfn: Pfn, write: bool, writable: bool) -> Pte {
        let dirty = if write { DIRTY } else { 0 };
        let writable = if writable { WRITABLE } else { 0 };
        Pte(pfn << PAYLOAD | PRESENT | YOUNG | dirty | writable)
    }

    /// A swap entry; slot 0 is never used, so it is not empty.
    pub(crate) fn swapped(slot: u32) -> Pte {
        Pte(slot << PAYLOAD)
    }

    /// Swap entry.
    pub(crate) fn swap_entry(self) -> Option<u32> {
        (self.0 & PRESENT == 0 && self.0 != 0).then_some(self.0 >> PAYLOAD)
    }

    /// The frame that it maps, the page of zeroes left out.
    #[inline]
    pub(crate) fn frame(self) -> Option<Pfn> {
        let frame = self.0 >> PAYLOAD;
        (self.0 & PRESENT != 0 && frame != ZERO_FRAME).then_some(frame)
    }

    /// Touches the page if that needs no fault. The processor sets young and dirty.
    #[inline]
    pub(crate) fn touch(&mut self, write: bool) -> bool {
        let need = match write {
            true => PRESENT | WRITABLE,
            false => PRESENT,
        };
        let ok = self.0 & need == need;
        if ok && !self.is_touched(write) {
            self.0 |= Pte::touched(write);
        }
        ok
    }

    /// Touches pages in order up to the first one that faults.
    #[inline]
    pub(crate) fn touch_all(ptes: &mut [Pte], write: bool) -> Option<usize> {
        const BLOCK: usize = 16;
        for (number, block) in ptes.chunks_mut(BLOCK).enumerate() {
            // Most often there is nothing to do for any of them.
            let common = block.iter().fold(Pte::ALL, |common, &pte| common.and(pte));
            if common.is_touched(write) {
                continue;
            }
            if let Some(at) = block.iter_mut().position(|pte| !pte.touch(write)) {
                return Some(number * BLOCK + at);
            }
        }
        None
    }

    /// What is set of a page that a touch of this kind leaves as it is.
    #[inline]
    fn touched(write: bool) -> u32 {
        match write {
            true => PRESENT | WRITABLE | YOUNG | DIRTY,
            false => PRESENT | YOUNG,
        }
    }

    /// Nothing would change by a touch.
    #[inline]
    pub(super) fn is_touched(self, write: bool) -> bool {
        self.0 & Pte::touched(write) == Pte::touched(write)
    }

    /// What two have in common, [`Pte::ALL`] being the neutral one.
    #[inline]
    pub(super) fn and(self, other: Pte) -> Pte {
        Pte(self.0 & other.0)
    }

    /// Everything set.
    pub(super) const ALL: Pte = Pte(!0);

    /// It maps a frame or the page of zeroes.
    #[inline]
    pub(crate) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// The page has been accessed since this was last cleared.
    #[inline]
    pub(crate) fn is_young(self) -> bool {
        self.0 & YOUNG != 0
    }

    pub(crate) fn is_dirty(self) -> bool {
        self.0 & (PRESENT | DIRTY) == PRESENT | DIRTY
    }

    pub(crate) fn test_and_clear_young(&mut self) -> bool {
        let young = self.0 & YOUNG != 0;
        self.0 &= !YOUNG;
        young
    }
}

/// What a region is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Private anonymous memory.
    Anon,
    /// A shared object from offset 0.
    Shmem(u32),
}

/// A mapped region (`struct vm_area_struct`) with its page table.
#[derive(Debug)]
pub(crate) struct Vma {
    /// What it is made of.
    pub(crate) backing: Backing,
    /// Its process (index of the `mmap_sem` that guards it).
    pub(crate) space: usize,
    /// Node whose zonelist its pages are allocated from.
    pub(crate) node: usize,
    /// One entry per page; empty after munmap.
    pub(crate) ptes: Vec<Pte>,
    /// Owner number of its first page if it is private.
    pub(crate) first: u32,
    /// Misses that Shaohua's variant counts in the region's anon_vma.
    pub(crate) swapra_miss: u32,
    /// What its last swap-ins were (4.14 and later).
    pub(crate) readahead: swap_state::VmaReadahead,
}

/// What a fault found to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// The PTE is there now.
    Done { cost: u64 },
    /// A new page is needed first.
    Allocate,
    /// Read this slot, then look again.
    Read { slot: u32 },
    /// Wait for this page, then look again.
    Wait { pfn: Pfn, flags: u16 },
}

/// Resolves a fault on page `index` of a region (`handle_mm_fault`).
///
/// `mmap_sem` is held for reading, except while the fault waits for a page. After everything that may
/// have slept the fault looks again at what there is, as the kernel does when it finds that the PTE has
/// changed or replays a fault that had to give up `mmap_sem`. `begun` is where [`World::try_fault`] got.
pub(crate) async fn handle_mm_fault(
    sys: &Sys,
    vma: u32,
    index: u32,
    write: bool,
    begun: Option<Step>,
) -> Result<(), OutOfMemory> {
    let (space, gfp) = {
        let world = sys.world();
        let region = &world.mm.vmas[vma as usize];
        (region.space, Gfp::user(region.node))
    };
    let mut begun = begun;
    let mut page = None;
    let mut major = false;
    let mut replay = false;
    sys.down_read(space).await;
    let result = loop {
        let step = match begun.take() {
            Some(step) => step,
            None => sys
                .world()
                .advance_fault(vma, index, write, replay, &mut page),
        };
        match step {
            Step::Done { cost } => {
                let fault = sys.world().count_fault(major);
                sys.charge_kernel(fault + cost).await;
                break Ok(());
            }
            Step::Allocate => match alloc_page(sys, gfp).await {
                Ok(pfn) => page = Some(pfn),
                Err(error) => break Err(error),
            },
            Step::Read { slot } => {
                major = true;
                let anon = sys.world().mm.vmas[vma as usize].backing == Backing::Anon;
                let at = anon.then_some((vma, index));
                if let Err(error) = swap_state::swapin_readahead(sys, slot, at, gfp).await {
                    break Err(error);
                }
                // What the fault itself has just asked for is no hit.
                replay = true;
            }
            Step::Wait { pfn, flags } => {
                sys.up_read(space);
                page_io::wait_on_page(sys, pfn, flags).await;
                sys.down_read(space).await;
                replay = true;
            }
        }
    };
    sys.up_read(space);
    result
}

/// A fault tried without sleeping.
#[derive(Debug)]
pub(crate) enum Tried {
    /// It is resolved; its time in the kernel, ns.
    Done(u64),
    /// It has to sleep, first of all for this; none if it could not even begin.
    Sleeps(Option<Step>),
}

impl World {
    /// Resolves a fault that needs neither reclaim nor I/O nor a lock that somebody holds: most do.
    #[inline]
    pub(crate) fn try_fault(&mut self, vma: u32, index: u32, write: bool) -> Tried {
        let space = self.mm.vmas[vma as usize].space;
        if !self.spaces[space].is_open() {
            return Tried::Sleeps(None);
        }
        match self.advance_fault(vma, index, write, false, &mut None) {
            Step::Done { cost } => Tried::Done(cost + self.count_fault(false)),
            step => Tried::Sleeps(Some(step)),
        }
    }

    /// Goes as far as it goes without sleeping; a page for it is allocated if the fast path has one.
    #[inline]
    fn advance_fault(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        replay: bool,
        page: &mut Option<Pfn>,
    ) -> Step {
        let mut tried = false;
        let step = loop {
            let step = self.fault_step(vma, index, write, replay, page);
            if tried || !matches!(step, Step::Allocate) {
                break step;
            }
            tried = true;
            *page = self.alloc_page_fast(Gfp::user(self.mm.vmas[vma as usize].node));
            if page.is_none() {
                break step;
            }
        };
        // Somebody else may have brought the page while this fault waited for memory.
        if matches!(step, Step::Done { .. })
            && let Some(unneeded) = page.take()
        {
            self.mm.free_page(unneeded);
        }
        step
    }

    #[inline]
    fn fault_step(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        replay: bool,
        page: &mut Option<Pfn>,
    ) -> Step {
        let region = &mut self.mm.vmas[vma as usize];
        let Some(pte) = region.ptes.get_mut(index as usize) else {
            // The region is gone: a thread unmapped it while another faulted.
            return Step::Done { cost: 0 };
        };
        if pte.touch(write) {
            return Step::Done { cost: 0 };
        }
        let pte = *pte;
        match (region.backing, pte.swap_entry(), pte.frame()) {
            (Backing::Shmem(inode), ..) => self.shmem_fault(vma, inode, index, write, replay, page),
            (Backing::Anon, Some(slot), _) => self.do_swap_page(vma, index, slot, write, replay),
            (Backing::Anon, None, Some(pfn)) => self.do_wp_page(vma, index, pfn),
            (Backing::Anon, None, None) => self.do_anonymous_page(vma, index, write, page),
        }
    }

    /// First touch of private memory: the page of zeroes for a read, a page of one's own for a write.
    fn do_anonymous_page(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        page: &mut Option<Pfn>,
    ) -> Step {
        if !write {
            self.set_pte(vma, index, Pte::mapped(ZERO_FRAME, false, false));
            return Step::Done { cost: 0 };
        }
        let Some(pfn) = page.take() else {
            return Step::Allocate;
        };
        self.map_anon(vma, index, pfn, true, true);
        self.mm.pages[pfn].set(flag::SWAPBACKED);
        if self.kernel.mechanisms.new_anon == NewAnon::Active {
            self.mm.pages[pfn].set(flag::ACTIVE);
        }
        self.mm.lru_add(pfn);
        Step::Done {
            cost: self.costs.zero_page_ns,
        }
    }

    /// `do_swap_page`
    #[inline]
    fn do_swap_page(&mut self, vma: u32, index: u32, slot: u32, write: bool, replay: bool) -> Step {
        let Some(pfn) = self.lookup_swap_cache(slot, Some((vma, index)), replay) else {
            return Step::Read { slot };
        };
        let page = &self.mm.pages[pfn];
        if page.has(flag::LOCKED) {
            return Step::Wait {
                pfn,
                flags: flag::LOCKED,
            };
        }
        let sole_owner = self.mm.swap.references(slot) == 1 && !page.is_mapped();
        self.map_anon(vma, index, pfn, write, write && sole_owner);
        if write && sole_owner {
            self.reuse_swap_page(pfn);
        }
        self.mm.swap.drop_reference(slot);
        if self.mm.swap.is_full() {
            self.try_to_free_swap(pfn);
        }
        Step::Done { cost: 0 }
    }

    /// A write to a page mapped read-only: with one owner the page is simply made writable.
    fn do_wp_page(&mut self, vma: u32, index: u32, pfn: Pfn) -> Step {
        self.reuse_swap_page(pfn);
        self.set_pte(vma, index, Pte::mapped(pfn, true, true));
        Step::Done { cost: 0 }
    }

    /// `reuse_swap_page` for a sole owner: what is in the slot will be stale, so the slot goes. While
    /// the page is being written out it has to stay.
    #[inline]
    fn reuse_swap_page(&mut self, pfn: Pfn) {
        let page = &self.mm.pages[pfn];
        if page.has(flag::SWAPCACHE) && !page.has(flag::WRITEBACK) {
            self.delete_from_swap_cache(pfn);
            self.mm.pages[pfn].set(flag::DIRTY);
        }
    }

    /// `shmem_fault`: pages belong to the object; one read from swap moves there and gives up its slot.
    fn shmem_fault(
        &mut self,
        vma: u32,
        inode: u32,
        index: u32,
        write: bool,
        replay: bool,
        page: &mut Option<Pfn>,
    ) -> Step {
        let mut cost = 0;
        let pfn = match self.mm.shmem[inode as usize].slots[index as usize].get() {
            ShmemEntry::Page(pfn) => pfn,
            ShmemEntry::Swap(slot) => {
                let Some(pfn) = self.lookup_swap_cache(slot, None, replay) else {
                    return Step::Read { slot };
                };
                for flags in [flag::LOCKED, flag::WRITEBACK] {
                    if self.mm.pages[pfn].has(flags) {
                        return Step::Wait { pfn, flags };
                    }
                }
                self.delete_from_swap_cache(pfn);
                self.mm.swap.drop_reference(slot);
                self.add_to_shmem(inode, index, pfn);
                self.mm.pages[pfn].set(flag::DIRTY);
                pfn
            }
            ShmemEntry::Hole => {
                let Some(pfn) = page.take() else {
                    return Step::Allocate;
                };
                self.add_to_shmem(inode, index, pfn);
                self.mm.pages[pfn].set(flag::SWAPBACKED);
                self.mm.lru_add(pfn);
                cost = self.costs.zero_page_ns;
                pfn
            }
        };
        self.mm.pages[pfn].mapcount += 1;
        self.set_pte(vma, index, Pte::mapped(pfn, write, true));
        Step::Done { cost }
    }

    fn add_to_shmem(&mut self, inode: u32, index: u32, pfn: Pfn) {
        let object = &mut self.mm.shmem[inode as usize];
        object.slots[index as usize] = ShmemSlot::page(pfn);
        self.mm.pages[pfn].owner = object.first + index;
    }

    #[inline]
    fn map_anon(&mut self, vma: u32, index: u32, pfn: Pfn, write: bool, writable: bool) {
        let region = &mut self.mm.vmas[vma as usize];
        region.ptes[index as usize] = Pte::mapped(pfn, write && writable, writable);
        let page = &mut self.mm.pages[pfn];
        page.owner = region.first + index;
        page.set(flag::ANON);
        page.mapcount += 1;
    }

    #[inline]
    fn set_pte(&mut self, vma: u32, index: u32, pte: Pte) {
        self.mm.vmas[vma as usize].ptes[index as usize] = pte;
    }

    /// Counts a fault; its own cost, without what it did.
    fn count_fault(&mut self, major: bool) -> u64 {
        self.mm.stat.pgfault += 1;
        self.mm.stat.pgmajfault += u64::from(major);
        if major {
            self.costs.major_fault_ns
        } else {
            self.costs.minor_fault_ns
        }
    }

    /// `munmap` of a whole region: pages and slots that only it used are free.
    pub(crate) fn unmap_region(&mut self, vma: u32) {
        let region = &mut self.mm.vmas[vma as usize];
        let (ptes, backing) = (std::mem::take(&mut region.ptes), region.backing);
        let (first, pages) = (region.first, ptes.len() as u64);
        if let Backing::Shmem(inode) = backing {
            self.mm.shmem[inode as usize]
                .mappers
                .retain(|&mapper| mapper != vma);
        }
        for pte in ptes {
            if let Some(pfn) = pte.frame() {
                self.zap_page(pfn, pte.is_dirty());
            } else if let Some(slot) = pte.swap_entry() {
                self.mm.swap.drop_reference(slot);
                self.free_swap_cache(slot);
            }
        }
        match backing {
            Backing::Anon => self.mm.mappings.remove(first, pages),
            Backing::Shmem(inode) if self.mm.shmem[inode as usize].mappers.is_empty() => {
                self.evict_shmem(inode);
            }
            Backing::Shmem(_) => {}
        }
    }

    fn zap_page(&mut self, pfn: Pfn, dirty: bool) {
        let page = &mut self.mm.pages[pfn];
        page.mapcount -= 1;
        if !page.is_anon() {
            if dirty {
                page.set(flag::DIRTY);
            }
            return;
        }
        self.forget_page(pfn);
    }

    /// Nobody will ever look at the page again: frees it, or leaves it to the end of its I/O and to
    /// reclaim.
    fn forget_page(&mut self, pfn: Pfn) {
        let page = &mut self.mm.pages[pfn];
        if page.has_any(flag::WRITEBACK | flag::LOCKED) || !page.has(flag::LRU) {
            page.clear(flag::DIRTY);
            page.owner = UNMAPPED;
            return;
        }
        if page.has(flag::SWAPCACHE) {
            self.delete_from_swap_cache(pfn);
        }
        self.mm.release_page(pfn);
    }

    /// `free_swap_and_cache`: a cached page whose slot nobody refers to any more.
    fn free_swap_cache(&mut self, slot: u32) {
        if self.mm.swap.references(slot) == 0
            && let Some(pfn) = self.mm.swap.cached(slot)
            && !self.mm.pages[pfn].is_mapped()
        {
            self.forget_page(pfn);
        }
    }

    /// The last user of a shared object is gone (`shmem_evict_inode`).
    fn evict_shmem(&mut self, inode: u32) {
        let object = &mut self.mm.shmem[inode as usize];
        let (slots, first) = (std::mem::take(&mut object.slots), object.first);
        self.mm.mappings.remove(first, slots.len() as u64);
        for slot in slots {
            match slot.get() {
                ShmemEntry::Hole => {}
                ShmemEntry::Page(pfn) => self.forget_page(pfn),
                ShmemEntry::Swap(slot) => {
                    self.mm.swap.drop_reference(slot);
                    self.free_swap_cache(slot);
                }
            }
        }
    }
}
