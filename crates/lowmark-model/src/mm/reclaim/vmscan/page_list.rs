//! What becomes of each isolated page (`shrink_page_list`), in the kernel's order of decisions:
//!
//! 1. locked: keep;
//! 2. under writeback: mark for reclaim, keep (from 4.11: activate, out of the way); a second go in sync waits with the page
//!    locked (`lumpy.rs`), and a reclaimer for a memory cgroup of version 1 waits as well;
//! 3. referenced: activate, or keep once; a file page that was only marked may go if it is clean; lumpy reclaim takes all;
//! 4. anonymous without a slot: give it one, or activate when swap is full;
//! 5. mapped: unmap;
//! 6. dirty: write it out, keep; a file page mostly waits for its flusher, marked for reclaim;
//! 7. clean: free.

use super::{Batch, ScanControl};
use crate::device::Io;
use crate::kernel::{
    ExecutableReferences, GenRefault, Lazyfree, PageReferences, RmapLock, RotatingSwap,
    SharedReferences, SwapSlots, TailWriteback, ThpScan,
};
use crate::mm::Mm;
use crate::mm::fault::rmap::References;
use crate::mm::fault::shmem::ShmemSlot;
use crate::mm::huge_memory::SplitTime;
use crate::mm::io;
use crate::mm::types::{Pfn, UNMAPPED, flag};
use crate::world::{Sys, World};
use lowmark_record::event::{RECLAIM_WB_ANON, RECLAIM_WB_ASYNC, RECLAIM_WB_SYNC, gfp};
use lowmark_record::{Field, Kind};

/// What a batch came to.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Outcome {
    /// Pages freed.
    pub(super) reclaimed: u64,
    /// Pages found under writeback.
    pub(super) writeback: u64,
    /// Pages found under writeback for the second time.
    pub(super) immediate: u64,
    /// Pages whose write has begun.
    pub(super) pageout: u64,
    /// Anon and file pages activated.
    pub(super) activated: [u64; 2],
    /// Pages kept because they were referenced.
    pub(super) ref_keep: u64,
    /// File pages that were dirty; from 3.11 on also those under writeback.
    pub(super) dirty: u64,
    /// Of these, pages that nobody writes yet.
    pub(super) unqueued: u64,
    /// Dirty pages that could not be written because of congestion; from 3.11 on also those on congested
    /// devices, and those met again under writeback.
    pub(super) congested: u64,
    /// CPU time, ns.
    pub(super) cost: u64,
}

/// What becomes of a page.
pub(super) enum Fate {
    Keep,
    Activate,
    Free,
    /// It is free, as no task needs it any more, but does not count as reclaimed.
    Drop,
    /// Its write begins; it is kept until that is over.
    Write,
    /// It is a huge page that does not go as one: it is split, and its pages are looked at one by one.
    Split,
    /// It is looked at again when its write is over. Locked until then: a task that wants it back waits as well.
    Wait {
        locked: bool,
    },
}

impl Outcome {
    /// What a batch came to that was gone through twice.
    pub(super) fn and(mut self, second: &Outcome) -> Outcome {
        self.reclaimed += second.reclaimed;
        self.writeback += second.writeback;
        self.immediate += second.immediate;
        self.pageout += second.pageout;
        self.activated[0] += second.activated[0];
        self.activated[1] += second.activated[1];
        self.ref_keep += second.ref_keep;
        self.dirty += second.dirty;
        self.unqueued += second.unqueued;
        self.congested += second.congested;
        self
    }

    /// References decided what becomes of so many pages.
    pub(super) fn note_kept(&mut self, fate: &Fate, pages: u64) {
        if matches!(fate, Fate::Keep) {
            self.ref_keep += pages;
        }
    }
}

/// Where the work on a batch is.
struct Progress {
    /// The next page to look at.
    next: usize,
    /// Survivors so far; they are at the beginning of the batch.
    survivors: usize,
    /// Frames of the last survivor whose writes have yet to begin.
    unwritten: std::ops::Range<Pfn>,
    /// The last page that was written so that its write is waited for.
    written: Option<Pfn>,
    outcome: Outcome,
}

/// Why others run before a batch is through.
enum Pause {
    /// The write of a page finds no memory or no free request: the current task is waiting for that.
    Blocked(Io),
    /// The next slot may be another CPU's.
    Turn,
    /// The page is being written, and is looked at again after that.
    Page { pfn: Pfn, locked: bool },
    /// A huge page was split, which keeps others from looking at pages of its region.
    Split(SplitTime),
}

/// `trace_reclaim_flags`
pub(super) fn writepage_flags(kind: u64, sc: &ScanControl) -> u64 {
    if sc.mode.is_sync() {
        kind | RECLAIM_WB_SYNC
    } else {
        kind | RECLAIM_WB_ASYNC
    }
}

impl World {
    /// `mm_vmscan_writepage` and `mm_vmscan_write_folio`, the same under its old and its new name: a kernel has one of
    /// them.
    pub(super) fn trace_writepage(&mut self, pfn: Pfn, flags: u64) {
        for kind in [Kind::Writepage, Kind::WriteFolio] {
            self.trace(kind, |_| {
                vec![(Field::Pfn, u64::from(pfn)), (Field::Flags, flags)]
            });
        }
    }
}

/// Works off a batch; what is left of it are the survivors.
pub(super) async fn shrink_page_list(
    sys: &Sys,
    batch: &mut Batch,
    sc: &mut ScanControl,
) -> Outcome {
    let mut progress = Progress {
        next: 0,
        survivors: 0,
        unwritten: 0..0,
        written: None,
        outcome: Outcome {
            cost: batch.len() as u64 * sys.costs.scan_page_ns,
            ..Outcome::default()
        },
    };
    loop {
        let pause = sys.world().shrink_pages(batch, sc, &mut progress);
        match pause {
            None => break,
            Some(Pause::Blocked(io)) => {
                sys.suspend().await;
                io::submit(sys, io).await;
            }
            Some(Pause::Page { pfn, locked: true }) => io::wait_on_locked_page(sys, pfn).await,
            Some(Pause::Page { pfn, .. }) => io::wait_on_page(sys, pfn, flag::WRITEBACK).await,
            Some(Pause::Split(time)) => {
                sys.charge_kernel(time.cost).await;
                sys.world().mm.huge.end_split(time.vma);
            }
            Some(Pause::Turn) => {
                let cost = std::mem::take(&mut progress.outcome.cost);
                sys.charge_kernel(cost).await;
            }
        }
    }
    batch.truncate(progress.survivors);
    sys.charge_kernel(progress.outcome.cost).await;
    progress.outcome
}

impl Mm {
    /// Whether all CPUs take slots one by one from the same cluster, so that it matters how the pages of several
    /// reclaimers alternate. Where a CPU has slots of its own, a batch goes through at once.
    fn slots_are_taken_in_turn(&self) -> bool {
        self.kernel.mechanisms.swap.rotating_swap == RotatingSwap::Clusters
            && self.kernel.mechanisms.swap.swap_slots == SwapSlots::Single
            && self.swap.rotates()
    }

    /// Whether reclaim keeps the page without a look at its references, as a task that splits a huge page of the same region has the
    /// lock of the mappings.
    #[inline(always)]
    pub(super) fn is_kept_for_split(&self, pfn: Pfn) -> bool {
        self.is_locked_for_split(pfn) && self.kernel.mechanisms.reclaim.rmap_lock == RmapLock::Keeps
    }

    /// `page_check_references`; `None` means reclaim.
    #[inline(always)]
    pub(super) fn check_references(&mut self, pfn: Pfn, sc: &ScanControl) -> Option<Fate> {
        if sc.ignore_references {
            return None;
        }
        if self.is_kept_for_split(pfn) {
            return Some(Fate::Keep);
        }
        let References { young, executable } = if self.lru_gen {
            let references = self.referenced_around(pfn, sc.gens.walks());
            if self.counts_looks() {
                return self.look(pfn, references);
            }
            references
        } else {
            self.page_referenced(pfn)
        };
        let page = &mut self.pages[pfn];
        let referenced = page.test_and_clear(flag::REFERENCED);
        if young == 0 || sc.mode.is_lumpy() {
            return None;
        }
        let reclaim = &self.kernel.mechanisms.reclaim;
        let shared = young > 1 && reclaim.shared_references == SharedReferences::AtOnce;
        let executable = executable
            && !page.has(flag::SWAPBACKED)
            && reclaim.executable_references == ExecutableReferences::AtOnce;
        let at_once = match reclaim.page_references {
            PageReferences::Anon => page.is_anon(),
            PageReferences::SwapBacked => page.has(flag::SWAPBACKED),
            PageReferences::SecondLook => false,
        };
        if at_once || referenced || shared || executable {
            return Some(Fate::Activate);
        }
        page.set(flag::REFERENCED);
        Some(Fate::Keep)
    }

    /// What becomes of a page of a generation that was found with these references, where the second look counts.
    #[cold]
    fn look(&mut self, pfn: Pfn, references: References) -> Option<Fate> {
        match references.young {
            0 => None,
            _ if self.pages.note_used(pfn, GenRefault::Window) => Some(Fate::Activate),
            _ => Some(Fate::Keep),
        }
    }

    /// `__remove_mapping` of a clean page.
    #[inline(always)]
    pub(super) fn remove_mapping(&mut self, pfn: Pfn, sc: &ScanControl) {
        let page = self.pages[pfn];
        if page.has(flag::SWAPCACHE) {
            let shadow = self.workingset_eviction(pfn, sc.memcg);
            self.delete_from_swap_cache(pfn);
            for slot in page.slot()..page.slot() + page.folio_nr_pages() as u32 {
                self.swap.set_shadow(slot, shadow);
            }
        } else if page.owner != UNMAPPED && !page.is_anon() {
            // Never written to: it is a hole again.
            let (object, index) = self.mappings.of(page.owner);
            self.shmem[object].slots[index] = ShmemSlot::default();
            self.remove_shmem_entry(object, index);
        }
    }

    /// MADV_FREE: nobody needs what is in an anonymous page. To 4.11 that is told by nobody having stored to it since; its
    /// slot of swap, which it needs all the same, is free again at once.
    fn may_be_dropped(&mut self, pfn: Pfn) -> bool {
        let page = self.pages[pfn];
        if !page.is_anon() || page.has(flag::SWAPCACHE) {
            return false;
        }
        match self.kernel.mechanisms.reclaim.lazyfree {
            Lazyfree::InactiveFile => !page.has(flag::SWAPBACKED),
            Lazyfree::InactiveAnon => {
                let clean = !page.has(flag::DIRTY) && page.is_mapped();
                clean && !self.anon_pte(page).is_dirty() && self.swap.free_slots() > 0
            }
        }
    }

    /// What becomes of a page that reclaim writes itself and waits for (`pageout`): it is not locked meanwhile, and stays when it
    /// is dirty or mapped again (`__remove_mapping` finds more references than reclaim's own). `None`: it can go.
    fn after_write(&self, pfn: Pfn) -> Option<Fate> {
        let page = self.pages[pfn];
        if page.has(flag::WRITEBACK) {
            return Some(Fate::Wait { locked: false });
        }
        (page.has_any(flag::DIRTY | flag::LOCKED) || page.is_mapped()).then_some(Fate::Keep)
    }

    fn activate(&mut self, pfn: Pfn) {
        if self.swap_full(pfn) {
            self.try_to_free_swap(pfn);
        }
        let page = &mut self.pages[pfn];
        page.set(flag::ACTIVE);
        self.stat.pgactivate += page.folio_nr_pages();
    }
}

impl World {
    /// Works on as far as it goes without others.
    fn shrink_pages(
        &mut self,
        batch: &mut Batch,
        sc: &mut ScanControl,
        progress: &mut Progress,
    ) -> Option<Pause> {
        let turns = self.mm.slots_are_taken_in_turn();
        let huge_counts = self.mm.kernel.mechanisms.huge.thp_scan;
        let (mut next, mut survivors) = (progress.next, progress.survivors);
        let (mut written, mut outcome) = (progress.written, progress.outcome);
        let mut unwritten = std::mem::take(&mut progress.unwritten);
        let mut pause = self.write_out_all(&mut unwritten, &mut outcome.cost);
        while next < batch.len() && pause.is_none() {
            let pfn = batch[next];
            next += 1;
            let pages = self.mm.pages[pfn].folio_nr_pages();
            match self.fate(pfn, written, sc, &mut outcome) {
                Fate::Free => {
                    outcome.cost += self.costs.free_page_ns;
                    self.mm.free_folio(pfn);
                    outcome.reclaimed += match huge_counts {
                        ThpScan::One => 1,
                        ThpScan::Pages => pages,
                    };
                    continue;
                }
                // It goes back to its list, but the reclaimer was the last to hold it.
                Fate::Drop => {
                    self.mm.free_folio(pfn);
                    continue;
                }
                Fate::Wait { locked } => {
                    next -= 1;
                    pause = Some(Pause::Page { pfn, locked });
                    continue;
                }
                Fate::Keep => self.note_kept(pfn, sc),
                Fate::Activate => {
                    self.note_kept(pfn, sc);
                    let file = !self.mm.pages[pfn].has(flag::SWAPBACKED);
                    outcome.activated[usize::from(file)] += pages;
                    self.mm.activate(pfn);
                }
                Fate::Split => {
                    next -= 1;
                    let time = self.split_in_place(batch, next, &mut outcome);
                    pause = time.map(Pause::Split);
                    continue;
                }
                Fate::Write => {
                    outcome.pageout += pages;
                    unwritten = self.mm.pages.folio(pfn);
                    pause = self.write_out_all(&mut unwritten, &mut outcome.cost);
                    if pause.is_none() && turns {
                        pause = Some(Pause::Turn);
                    }
                    if sc.mode.waits_for_writes() {
                        next -= 1;
                        written = Some(pfn);
                        continue;
                    }
                }
            }
            batch[survivors] = pfn;
            survivors += 1;
        }
        *progress = Progress {
            next,
            survivors,
            unwritten,
            written,
            outcome,
        };
        pause
    }

    /// Splits the huge page at a place of a batch, where its pages come in its stead. What that keeps from others, if anything.
    fn split_in_place(
        &mut self,
        batch: &mut Batch,
        at: usize,
        outcome: &mut Outcome,
    ) -> Option<SplitTime> {
        let time = self.time_to_split(batch[at]);
        let parts = self.mm.split_huge_page(batch[at]);
        if let Some(time) = time {
            self.mm.huge.begin_split(time.vma);
        }
        outcome.cost += (parts.len() as u64 - 1) * self.costs.scan_page_ns;
        batch.splice(at..at + 1, parts);
        time
    }

    /// Begins to write frames that are marked as under writeback already, one after the other. A request that leaves the plug
    /// before the batch is through is there when the work so far is done: its write may end while its pages are isolated.
    #[inline(always)]
    fn write_out_all(
        &mut self,
        unwritten: &mut std::ops::Range<Pfn>,
        cost: &mut u64,
    ) -> Option<Pause> {
        for pfn in unwritten {
            let io = self.write_out(pfn, cost);
            if let Some(io) = self.try_submit_after(*cost, io) {
                return Some(Pause::Blocked(io));
            }
        }
        None
    }

    /// A page is kept or activated.
    #[inline]
    fn note_kept(&self, pfn: Pfn, sc: &mut ScanControl) {
        if !self.mm.pages[pfn].has(flag::WRITEBACK) {
            self.mm.note_kept(sc);
        }
    }

    /// Begins to write a page that is marked as under writeback already.
    #[inline]
    fn write_out(&mut self, pfn: Pfn, cost: &mut u64) -> Io {
        if self.mm.pages[pfn].has(flag::SWAPBACKED) {
            *cost += match self.mm.pages[pfn].order() {
                0 => self.costs.swap_page_ns,
                _ if self.mm.pages.head(pfn) == pfn => self.costs.swap_huge_page_ns,
                _ => 0,
            };
            return self.swap_write(pfn);
        }
        *cost += self.costs.file_page_ns;
        self.mm.file_write(pfn)
    }

    /// What becomes of a page of a batch, where `written` is the last one that was written so that its write is waited for.
    #[inline]
    fn fate(
        &mut self,
        pfn: Pfn,
        written: Option<Pfn>,
        sc: &ScanControl,
        outcome: &mut Outcome,
    ) -> Fate {
        let own_write = if written == Some(pfn) {
            self.mm.after_write(pfn)
        } else {
            None
        };
        own_write.unwrap_or_else(|| self.shrink_page(pfn, sc, outcome))
    }

    #[inline]
    fn shrink_page(&mut self, pfn: Pfn, sc: &ScanControl, outcome: &mut Outcome) -> Fate {
        if self.mm.was_found_used(pfn, sc) {
            return Fate::Keep;
        }
        let page = self.mm.pages[pfn];
        if self.mm.is_huge(pfn) {
            return self.shrink_huge_page(pfn, sc, outcome);
        }
        if page.has_any(flag::LOCKED | flag::WRITEBACK) {
            return if page.has(flag::LOCKED) {
                Fate::Keep
            } else {
                self.under_writeback(pfn, sc, outcome)
            };
        }
        if !page.has(flag::SWAPBACKED) && !page.is_anon() {
            return self.shrink_file_page(pfn, sc, outcome);
        }
        if page.is_gathered() {
            // pageout, is_page_cache_freeable: another task has a reference.
            return Fate::Keep;
        }
        if let Some(fate) = self.mm.check_references(pfn, sc) {
            outcome.note_kept(&fate, 1);
            return fate;
        }
        if self.mm.may_be_dropped(pfn) {
            return if self.mm.drop_lazyfree(pfn) {
                Fate::Free
            } else {
                Fate::Activate
            };
        }
        if page.is_anon() && !page.has(flag::SWAPCACHE) && !self.add_to_swap(pfn) {
            // No task refers to it any more: it is free when it goes back to its list.
            return if page.is_mapped() {
                Fate::Activate
            } else {
                Fate::Drop
            };
        }
        if page.is_mapped() {
            outcome.cost += self.costs.unmap_page_ns;
            self.mm.try_to_unmap(pfn);
        } else if page.is_anon() && !page.has(flag::SWAPCACHE) {
            // What was just added to the swap cache is dirty (`add_to_swap`).
            self.mm.pages[pfn].set(flag::DIRTY);
        }
        if self.mm.pages[pfn].has(flag::DIRTY) {
            return self.pageout(pfn, sc, outcome);
        }
        self.mm.remove_mapping(pfn, sc);
        Fate::Free
    }

    pub(super) fn under_writeback(
        &mut self,
        pfn: Pfn,
        sc: &ScanControl,
        outcome: &mut Outcome,
    ) -> Fate {
        if !self.mm.pages[pfn].has(flag::SWAPBACKED) {
            self.count_file_page(pfn, outcome);
        }
        if sc.mode.is_sync() {
            outcome.writeback += 1;
            return Fate::Wait { locked: true };
        }
        let lruvec = self.mm.zones[self.mm.pages.zone(pfn)].lruvec;
        // Writers of groups of version 1 are not throttled: a reclaimer for one waits for the page and looks again.
        let legacy = sc.cgroup_reclaim() && self.mm.memcontrol.is_legacy();
        let page = &mut self.mm.pages[pfn];
        let pages = page.folio_nr_pages();
        if sc.kswapd && page.has(flag::RECLAIM) && self.mm.lruvecs[lruvec].all_writeback {
            outcome.immediate += pages;
        } else if legacy && page.has(flag::RECLAIM) && sc.gfp.has(gfp::FS) {
            return Fate::Wait { locked: false };
        } else {
            page.set(flag::RECLAIM);
            outcome.writeback += pages;
        }
        match self.mm.kernel.mechanisms.reclaim.tail_writeback {
            TailWriteback::Keep => Fate::Keep,
            TailWriteback::Activate => Fate::Activate,
        }
    }

    /// `pageout`: a swap cache page goes to its slot; a shared page gets one only now.
    fn pageout(&mut self, pfn: Pfn, sc: &ScanControl, outcome: &mut Outcome) -> Fate {
        if !self.mm.pages[pfn].has(flag::SWAPCACHE) && !self.shmem_writepage(pfn) {
            return Fate::Activate;
        }
        let needed = self.mm.swap.references(self.mm.pages[pfn].slot()) > 0;
        if needed {
            self.mm.start_swap_writeback(pfn);
            self.mm.pages[pfn].set(flag::RECLAIM);
        }
        self.mm.stat.nr_vmscan_write += 1;
        self.trace_writepage(pfn, writepage_flags(RECLAIM_WB_ANON, sc));
        if needed {
            return Fate::Write;
        }
        // swap_writepage: no task needs what is in the page, as it was given up while it was isolated, or its huge page was split.
        self.mm.delete_from_swap_cache(pfn);
        outcome.pageout += 1;
        outcome.cost += self.costs.swap_page_ns;
        Fate::Drop
    }

    /// Moves a page from its shared object to the swap cache. False: swap is full.
    fn shmem_writepage(&mut self, pfn: Pfn) -> bool {
        if !self.add_to_swap(pfn) {
            return false;
        }
        let page = self.mm.pages[pfn];
        self.mm.swap.set_shmem(page.slot());
        let (object, index) = self.mm.mappings.of(page.owner);
        self.mm.shmem[object].slots[index] = ShmemSlot::swapped(page.slot());
        self.mm.pages[pfn].owner = UNMAPPED;
        true
    }
}
