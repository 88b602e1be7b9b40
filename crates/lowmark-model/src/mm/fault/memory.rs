//! Mapped regions, page tables, page faults (`mm/memory.c`).

use crate::ids::InodeId;
use crate::kernel::{NewAnon, SwappedIn};
use crate::mm::Mm;
use crate::mm::alloc::slub::preload_file_nodes;
use crate::mm::fault::filemap_fault::{self, FileFault};
use crate::mm::fault::parts::Parts;
use crate::mm::fault::pgtable::{self, Pmd};
use crate::mm::fault::shmem::{ShmemEntry, ShmemSlot};
use crate::mm::files::buffer_head::create_buffers;
use crate::mm::files::filemap::OpenFile;
use crate::mm::frames::pte::{Pte, ZERO_FRAME};
use crate::mm::io;
use crate::mm::memcontrol::{self, alloc_charged, charge_mapped_waiting};
use crate::mm::swap::swap_state;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::mm::writeback::page_writeback;
use crate::world::{Sys, World};
use std::ops::Range;

/// What a region is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Private anonymous memory.
    Anon,
    /// A shared object from offset 0.
    Shmem(u32),
    /// A file; what is stored goes to it, or stays private.
    File { inode: InodeId, shared: bool },
}

/// A mapped region (`struct vm_area_struct`) with its page table.
#[derive(Debug)]
pub(crate) struct Vma {
    /// What it is made of.
    pub(crate) backing: Backing,
    /// Its process (index of the `mmap_sem` that guards it).
    pub(crate) space: usize,
    /// One entry per page; empty after munmap.
    pub(crate) ptes: Vec<Pte>,
    /// What stands for each 2 MiB of it in the directory above its tables.
    pub(crate) pmds: Vec<Pmd>,
    /// Owner number of its first page if it is private.
    pub(crate) first: u32,
    /// Misses that Shaohua's variant counts in the region's anon_vma.
    pub(crate) swapra_miss: u32,
    /// What its last swap-ins were (4.14 and later).
    pub(crate) readahead: swap_state::VmaReadahead,
    /// Page of the file at which it begins (`vm_pgoff`).
    pub(crate) offset: u32,
    /// The file (`vm_file`).
    pub(crate) file: Option<Box<OpenFile>>,
    /// What differs from page to page.
    pub(crate) parts: Parts,
}

impl Vma {
    /// Its pages.
    pub(crate) fn pages(&self) -> u32 {
        self.ptes.len() as u32
    }

    /// The pages that the kernel has in the same VMA as this one: what is mapped together lies in there.
    pub(crate) fn vma_around(&self, index: u32) -> Range<u32> {
        self.parts.around(index, self.pages()).0
    }
}

/// What a fault found to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// The PTE is there now.
    Done { cost: u64 },
    /// A new page is needed first.
    Allocate,
    /// The CPU needs nodes for the tree of a file first.
    Preload,
    /// A page of a file lacks its buffer head.
    Buffers { inode: InodeId, index: u32 },
    /// The page table is needed first.
    AllocateTable,
    /// A huge page is needed first, or to know that there is none.
    AllocateHuge,
    /// Read this slot, then look again.
    Read { slot: u32 },
    /// Wait for this page, then look again.
    Wait { pfn: Pfn, flags: u16 },
    /// Charge this page of the swap cache to the group that its slot is of, then look again.
    Charge { pfn: Pfn, slot: u32 },
    /// A page of a file has to be read, then look again.
    Miss,
    /// A page of a file had the readahead mark: read on, then look again.
    Marked,
    /// The PTE is there now, and a page of a file has become dirty.
    Dirtied { cost: u64 },
    /// Behind the end of the file.
    Sigbus,
    /// In a hole of the region.
    Sigsegv,
}

/// What a fault has got for itself so far and not used yet.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    /// A page.
    page: Option<Pfn>,
    /// A huge page, and the page of the table that is kept for it.
    pub(in crate::mm) huge: Option<(Pfn, Option<Pfn>)>,
    /// There is no huge page for it.
    pub(in crate::mm) no_huge: bool,
    /// It has read its page from swap, and no other with it: the page is still in the CPU's vector of new pages (`lru_add`), on
    /// no list.
    read_alone: bool,
}

/// Why a fault cannot be resolved; the task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultError {
    OutOfMemory,
    /// There is no file where the page should be, or no room for it on the device.
    Sigbus,
    /// The page was unmapped.
    Sigsegv,
}

impl From<OutOfMemory> for FaultError {
    fn from(_: OutOfMemory) -> FaultError {
        FaultError::OutOfMemory
    }
}

/// The caller for whom a page of a region is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultBy {
    /// A task that touched it, or asked for it by madvise(2) (`handle_mm_fault`).
    Task,
    /// khugepaged, which calls `do_swap_page`: that is no fault of a task, though a read from swap counts as a major one.
    Khugepaged,
}

/// Resolves a fault on page `index` of a region (`handle_mm_fault`).
///
/// `mmap_sem` is held for reading, except while the fault waits for a page. After everything that may
/// have slept the fault looks again at what there is, as the kernel does when it finds that the PTE has
/// changed or replays a fault that had to give up `mmap_sem`. `begun` is where [`World::try_fault`] got.
///
/// Rare paths are boxed, so that the future of a common fault stays small.
pub(crate) async fn handle_mm_fault(
    sys: &Sys,
    vma: u32,
    index: u32,
    write: bool,
    begun: Option<Step>,
    by: FaultBy,
) -> Result<(), FaultError> {
    let (space, gfp, memcg) = {
        let world = sys.world();
        let region = &world.mm.vmas[vma as usize];
        let gfp = Gfp::user(world.sched.current_node());
        (region.space, gfp, world.current_memcg())
    };
    let mut begun = begun;
    let mut brought = Brought::default();
    let mut major = false;
    let mut replay = false;
    let mut dirtied = false;
    sys.down_read(space).await;
    if by == FaultBy::Task {
        sys.world().enter_lru_fault(vma, index);
    }
    let result = loop {
        let step = match begun.take() {
            Some(step) => step,
            None => sys
                .world()
                .advance_fault(vma, index, write, replay, &mut brought),
        };
        match step {
            Step::Done { cost } | Step::Dirtied { cost } => {
                dirtied = matches!(step, Step::Dirtied { .. });
                let fault = {
                    let world = &mut *sys.world();
                    // Somebody else may have brought the page while this fault waited for memory.
                    world.mm.free_brought(std::mem::take(&mut brought));
                    world.count_fault(by, major)
                };
                sys.charge_kernel(fault + cost).await;
                break Ok(());
            }
            Step::Allocate => match alloc_charged(sys, gfp, memcg).await {
                Ok(pfn) => brought.page = Some(pfn),
                Err(error) => break Err(error.into()),
            },
            Step::Preload => {
                if let Err(error) = Box::pin(preload_file_nodes(sys, gfp)).await {
                    break Err(error.into());
                }
            }
            Step::Buffers { inode, index } => {
                if let Err(error) = Box::pin(create_buffers(sys, inode, index)).await {
                    break Err(error.into());
                }
            }
            Step::AllocateTable => {
                if let Err(error) = Box::pin(pgtable::alloc_table(sys, vma, index, memcg)).await {
                    break Err(error.into());
                }
            }
            Step::AllocateHuge => match Box::pin(sys.alloc_huge_page(vma, index, memcg)).await {
                Ok(huge) => (brought.huge, brought.no_huge) = (huge, huge.is_none()),
                Err(error) => break Err(error.into()),
            },
            Step::Miss => {
                major = true;
                let read = Box::pin(filemap_fault::read_missing(sys, vma, index, gfp)).await;
                if let Err(error) = read {
                    break Err(error.into());
                }
                replay = true;
            }
            Step::Marked => {
                let read = Box::pin(filemap_fault::read_on(sys, vma, index, gfp)).await;
                if let Err(error) = read {
                    break Err(error.into());
                }
            }
            Step::Sigbus => break Err(FaultError::Sigbus),
            Step::Sigsegv => break Err(FaultError::Sigsegv),
            Step::Read { slot } => {
                major = true;
                let backing = sys.world().mm.vmas[vma as usize].backing;
                let at = (!matches!(backing, Backing::Shmem(_))).then_some((vma, index));
                match swap_state::swapin_readahead(sys, slot, at, gfp).await {
                    Ok(window) => brought.read_alone = window == 1,
                    Err(error) => break Err(error.into()),
                }
                // What the fault itself has just asked for is no hit.
                replay = true;
            }
            Step::Charge { pfn, slot } => {
                if let Err(error) = Box::pin(charge_mapped_waiting(sys, pfn, slot, gfp)).await {
                    break Err(error.into());
                }
                replay = true;
            }
            Step::Wait { pfn, flags } => {
                sys.up_read(space);
                io::wait_on_page(sys, pfn, flags).await;
                sys.down_read(space).await;
                replay = true;
            }
        }
    };
    {
        let mut world = sys.world();
        world.mm.free_brought(brought);
        world.exit_lru_fault();
    }
    sys.up_read(space);
    if dirtied {
        Box::pin(page_writeback::balance_dirty_pages_ratelimited(sys)).await;
    }
    let over = sys.world().take_over_high();
    if let Some(over) = over {
        Box::pin(memcontrol::handle_over_high(sys, over)).await;
    }
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

impl Mm {
    /// What a fault has not needed after all.
    fn free_brought(&mut self, brought: Brought) {
        if let Some(pfn) = brought.page {
            self.free_page(pfn);
        }
        if let Some((head, table)) = brought.huge {
            self.free_folio(head);
            table.into_iter().for_each(|pfn| self.free_page(pfn));
        }
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
        let head = self.pages.head(pfn);
        let page = &self.pages[head];
        if page.order() > 0 {
            self.try_to_free_swap(head);
        } else if page.has(flag::SWAPCACHE) && !page.has(flag::WRITEBACK) {
            self.delete_from_swap_cache(pfn);
            self.pages[pfn].set(flag::DIRTY);
        }
    }

    fn add_to_shmem(&mut self, inode: u32, index: u32, pfn: Pfn) {
        let object = &mut self.shmem[inode as usize];
        object.slots[index as usize] = ShmemSlot::page(pfn);
        self.pages[pfn].owner = object.first + index;
    }

    #[inline]
    pub(in crate::mm) fn map_anon(
        &mut self,
        vma: u32,
        index: u32,
        pfn: Pfn,
        write: bool,
        writable: bool,
    ) {
        let region = &mut self.vmas[vma as usize];
        region.ptes[index as usize] = Pte::mapped(pfn, write && writable, writable);
        let page = &mut self.pages[pfn];
        page.owner = region.first + index;
        page.set(flag::ANON);
        page.mapcount += 1;
    }

    #[inline]
    fn set_pte(&mut self, vma: u32, index: u32, pte: Pte) {
        self.vmas[vma as usize].ptes[index as usize] = pte;
    }
}

impl World {
    /// Resolves a fault that needs neither reclaim nor I/O nor a lock that somebody holds: most do.
    #[inline]
    pub(crate) fn try_fault(&mut self, vma: u32, index: u32, write: bool) -> Tried {
        let space = self.mm.vmas[vma as usize].space;
        if !self.spaces[space].is_open() {
            return Tried::Sleeps(None);
        }
        self.enter_lru_fault(vma, index);
        let step = self.advance_fault(vma, index, write, false, &mut Brought::default());
        self.exit_lru_fault();
        match step {
            Step::Done { cost } => Tried::Done(cost + self.count_fault(FaultBy::Task, false)),
            step => Tried::Sleeps(Some(step)),
        }
    }

    /// Goes as far as it goes without sleeping. A page that it needs is what it has `brought`, or one of the fast path.
    #[inline]
    fn advance_fault(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        replay: bool,
        brought: &mut Brought,
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
        if pte == Pte::default() && !region.parts.at(index).mapped {
            return Step::Sigsegv;
        }
        match (region.backing, pte.swap_entry(), pte.frame()) {
            (Backing::Shmem(inode), ..) => {
                self.shmem_fault(vma, inode, index, write, replay, &mut brought.page)
            }
            (_, Some(slot), _) => {
                self.do_swap_page(vma, index, slot, write, replay, !brought.read_alone)
            }
            (Backing::Anon, None, Some(pfn)) => self.mm.do_wp_page(vma, index, pfn),
            (Backing::Anon, None, None) => self.do_anonymous_page(vma, index, write, brought),
            (Backing::File { inode, shared }, None, frame) => {
                let fault = FileFault {
                    vma,
                    index,
                    write,
                    replay,
                    inode,
                    shared,
                };
                match frame {
                    Some(pfn) if self.mm.pages[pfn].is_anon() => {
                        self.mm.do_wp_page(vma, index, pfn)
                    }
                    Some(pfn) => self.file_wp_fault(fault, pfn, &mut brought.page),
                    None if !self.has_table(vma, index) => Step::AllocateTable,
                    None => self.file_fault(fault, &mut brought.page),
                }
            }
        }
    }

    /// The page that a fault has brought, or one of the fast path.
    #[inline]
    pub(super) fn fault_page(&mut self, page: &mut Option<Pfn>) -> Option<Pfn> {
        page.take().or_else(|| {
            let gfp = Gfp::user(self.sched.current_node());
            self.alloc_charged_fast(gfp, self.current_memcg())
        })
    }

    /// First touch of private memory: the page of zeroes for a read, a page of one's own for a write.
    fn do_anonymous_page(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        brought: &mut Brought,
    ) -> Step {
        let pmd = self.mm.pmd(vma, index);
        if pmd.is_some_and(|pmd| pmd.is_none() || pmd.is_huge())
            && let Some(step) = self.huge_fault(vma, index, write, brought)
        {
            return step;
        }
        if !self.has_table(vma, index) {
            return Step::AllocateTable;
        }
        if !write {
            self.mm
                .set_pte(vma, index, Pte::mapped(ZERO_FRAME, false, false));
            return Step::Done { cost: 0 };
        }
        let Some(pfn) = self.fault_page(&mut brought.page) else {
            return Step::Allocate;
        };
        self.mm.map_anon(vma, index, pfn, true, true);
        self.mm.pages[pfn].set(flag::SWAPBACKED);
        if self.mm.kernel.mechanisms.reclaim.new_anon == NewAnon::Active {
            self.mm.pages[pfn].set(flag::ACTIVE);
        }
        self.folio_add_lru(pfn);
        Step::Done {
            cost: self.memory_time(self.costs.zero_page_ns),
        }
    }

    /// `do_swap_page`; the page may not be `listed` yet.
    #[inline]
    fn do_swap_page(
        &mut self,
        vma: u32,
        index: u32,
        slot: u32,
        write: bool,
        replay: bool,
        listed: bool,
    ) -> Step {
        let Some(pfn) = self.mm.lookup_swap_cache(slot, Some((vma, index)), replay) else {
            return Step::Read { slot };
        };
        let head = self.mm.pages.head(pfn);
        if self.mm.pages[head].has(flag::LOCKED) {
            return Step::Wait {
                pfn: head,
                flags: flag::LOCKED,
            };
        }
        if !self.charge_mapped(head, slot) {
            return Step::Charge { pfn: head, slot };
        }
        let page = &self.mm.pages[pfn];
        let sole_owner = self.mm.swap.references(slot) == 1 && !page.is_mapped();
        self.mm
            .map_anon(vma, index, pfn, write, write && sole_owner);
        if self.mm.pages[pfn].order() > 0 {
            self.mm.note_huge_frame_mapped(pfn);
        }
        if write && sole_owner {
            self.mm.reuse_swap_page(pfn);
        }
        if listed && self.mm.kernel.mechanisms.reclaim.swapped_in == SwappedIn::Active {
            self.mm.activate_listed(head);
        }
        self.mm.swap.drop_reference(slot);
        if self.mm.swap_full(head) {
            self.mm.try_to_free_swap(head);
        }
        Step::Done {
            cost: self.costs.swap_map_ns,
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
        if !self.has_table(vma, index) {
            return Step::AllocateTable;
        }
        let mut cost = 0;
        let pfn = match self.mm.shmem[inode as usize].slots[index as usize].get() {
            ShmemEntry::Page(pfn) => pfn,
            ShmemEntry::Swap(slot) => {
                let Some(pfn) = self.mm.lookup_swap_cache(slot, None, replay) else {
                    return Step::Read { slot };
                };
                for flags in [flag::LOCKED, flag::WRITEBACK] {
                    if self.mm.pages[pfn].has(flags) {
                        return Step::Wait { pfn, flags };
                    }
                }
                if !self.charge_mapped(pfn, slot) {
                    return Step::Charge { pfn, slot };
                }
                self.mm.delete_from_swap_cache(pfn);
                self.mm.swap.drop_reference(slot);
                self.mm.add_to_shmem(inode, index, pfn);
                self.mm.pages[pfn].set(flag::DIRTY);
                cost = self.costs.swap_map_ns;
                pfn
            }
            ShmemEntry::Hole => {
                let Some(pfn) = self.fault_page(page) else {
                    return Step::Allocate;
                };
                self.add_shmem_entry(inode, index, pfn);
                self.mm.add_to_shmem(inode, index, pfn);
                self.mm.pages[pfn].set(flag::SWAPBACKED);
                self.folio_add_lru(pfn);
                cost = self.memory_time(self.costs.zero_page_ns);
                pfn
            }
        };
        self.mm.pages[pfn].mapcount += 1;
        self.mm.set_pte(vma, index, Pte::mapped(pfn, write, true));
        Step::Done { cost }
    }

    /// Counts a fault; its own cost, without what it did.
    fn count_fault(&mut self, by: FaultBy, major: bool) -> u64 {
        self.mm.stat.pgfault += u64::from(by == FaultBy::Task);
        self.mm.stat.pgmajfault += u64::from(major);
        if major {
            self.costs.major_fault_ns
        } else {
            self.costs.minor_fault_ns
        }
    }
}

#[cfg(test)]
impl World {
    /// Adds a private region of so many pages, all stored to, with its tables.
    pub(crate) fn map_private(&mut self, pages: u32) {
        let node = crate::ids::NodeId::FIRST;
        let counted = self.mm.kernel.coverage.page_tables;
        let mut page = |gfp| self.alloc_page_fast(gfp).expect("most of memory is free");
        let frames: Vec<Pfn> = (0..pages).map(|_| page(Gfp::user(node))).collect();
        let tables = (0..pages.div_ceil(512)).map(|_| page(Gfp::kernel(node)));
        let pmds = if counted {
            tables.map(|page| Pmd::table(Some(page))).collect()
        } else {
            Vec::new()
        };
        let vma = self.mm.vmas.len() as u32;
        let first = self.mm.mappings.add(vma, u64::from(pages));
        self.mm.vmas.push(Vma {
            backing: Backing::Anon,
            space: 0,
            ptes: vec![Pte::default(); pages as usize],
            pmds,
            first: first.expect("numbers"),
            swapra_miss: 0,
            readahead: Default::default(),
            offset: 0,
            file: None,
            parts: Default::default(),
        });
        for (index, pfn) in (0..).zip(frames) {
            self.mm.map_anon(vma, index, pfn, true, true);
            self.mm.pages[pfn].set(flag::SWAPBACKED);
            self.mm.lru_add(pfn);
        }
    }
}
