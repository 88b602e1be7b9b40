//! What becomes of each isolated page (`shrink_page_list`), in the kernel's order of decisions:
//!
//! 1. locked: keep;
//! 2. under writeback: mark for reclaim, keep (from 4.11: activate, out of the way);
//! 3. referenced: activate, or keep once; a file page that was only marked may go if it is clean;
//! 4. anonymous without a slot: give it one, or activate when swap is full;
//! 5. mapped: unmap;
//! 6. dirty: write it out, keep; a file page mostly waits for its flusher, marked for reclaim;
//! 7. clean: free.

use super::{Batch, ScanControl};
use crate::device::Io;
use crate::kernel::{Lazyfree, PageReferences, RotatingSwap, SwapSlots, TailWriteback};
use crate::mm::Mm;
use crate::mm::fault::shmem::ShmemSlot;
use crate::mm::io;
use crate::mm::types::{Pfn, UNMAPPED, flag};
use crate::world::{Sys, World};
use lowmark_record::event::{RECLAIM_WB_ANON, RECLAIM_WB_ASYNC};
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
    cost: u64,
}

/// What becomes of a page.
pub(super) enum Fate {
    Keep,
    Activate,
    Free,
    /// Its write begins; it is kept until that is over.
    Write,
}

impl Outcome {
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
    outcome: Outcome,
}

/// Why others run before a batch is through.
enum Pause {
    /// The write of a page finds no memory or no free request: the current task is waiting for that.
    Blocked(Io),
    /// The next slot may be another CPU's.
    Turn,
}

/// Works off a batch; what is left of it are the survivors.
pub(super) async fn shrink_page_list(sys: &Sys, batch: &mut Batch, sc: &ScanControl) -> Outcome {
    let mut progress = Progress {
        next: 0,
        survivors: 0,
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

    /// `page_check_references`; `None` means reclaim.
    #[inline]
    pub(super) fn check_references(&mut self, pfn: Pfn, sc: &ScanControl) -> Option<Fate> {
        if sc.ignore_references {
            return None;
        }
        let young = self.page_referenced(pfn);
        let page = &mut self.pages[pfn];
        let referenced = page.test_and_clear(flag::REFERENCED);
        if young == 0 {
            return None;
        }
        let at_once = match self.kernel.mechanisms.reclaim.page_references {
            PageReferences::Anon => page.is_anon(),
            PageReferences::SwapBacked => page.has(flag::SWAPBACKED),
            PageReferences::SecondLook => false,
        };
        if at_once || referenced || young > 1 {
            return Some(Fate::Activate);
        }
        page.set(flag::REFERENCED);
        Some(Fate::Keep)
    }

    /// `__remove_mapping` of a clean page.
    #[inline]
    fn remove_mapping(&mut self, pfn: Pfn, sc: &ScanControl) {
        let page = self.pages[pfn];
        if page.has(flag::SWAPCACHE) {
            let shadow = self.workingset_eviction(pfn, sc.memcg);
            self.delete_from_swap_cache(pfn);
            self.swap.set_shadow(page.slot(), shadow);
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

    fn activate(&mut self, pfn: Pfn) {
        if self.swap.is_full() {
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
        sc: &ScanControl,
        progress: &mut Progress,
    ) -> Option<Pause> {
        let turns = self.mm.slots_are_taken_in_turn();
        let (mut next, mut survivors) = (progress.next, progress.survivors);
        let mut outcome = progress.outcome;
        let mut pause = None;
        while next < batch.len() && pause.is_none() {
            let pfn = batch[next];
            next += 1;
            let pages = self.mm.pages[pfn].folio_nr_pages();
            match self.shrink_page(pfn, sc, &mut outcome) {
                Fate::Free => {
                    self.mm.free_folio(pfn);
                    outcome.reclaimed += pages;
                    continue;
                }
                Fate::Keep => {}
                Fate::Activate => {
                    let file = !self.mm.pages[pfn].has(flag::SWAPBACKED);
                    outcome.activated[usize::from(file)] += pages;
                    self.mm.activate(pfn);
                }
                Fate::Write => {
                    outcome.pageout += 1;
                    let io = self.write_out(pfn, &mut outcome.cost);
                    pause = match self.try_submit(io) {
                        Some(io) => Some(Pause::Blocked(io)),
                        None => turns.then_some(Pause::Turn),
                    };
                }
            }
            batch[survivors] = pfn;
            survivors += 1;
        }
        *progress = Progress {
            next,
            survivors,
            outcome,
        };
        pause
    }

    /// Begins to write a page that is marked as under writeback already.
    #[inline]
    fn write_out(&mut self, pfn: Pfn, cost: &mut u64) -> Io {
        if self.mm.pages[pfn].has(flag::SWAPBACKED) {
            *cost += self.costs.swap_page_ns;
            return self.swap_write(pfn);
        }
        *cost += self.costs.file_page_ns;
        self.mm.file_write(pfn)
    }

    #[inline]
    fn shrink_page(&mut self, pfn: Pfn, sc: &ScanControl, outcome: &mut Outcome) -> Fate {
        let page = self.mm.pages[pfn];
        if page.has_any(flag::LOCKED | flag::WRITEBACK) {
            return match page.has(flag::LOCKED) {
                true => Fate::Keep,
                false => self.under_writeback(pfn, sc, outcome),
            };
        }
        // Nobody refers to it any more: it was given up while it was isolated.
        if page.is_anon() && !page.is_mapped() && !page.has(flag::SWAPCACHE) {
            return Fate::Free;
        }
        if !page.has(flag::SWAPBACKED) && !page.is_anon() {
            return self.shrink_file_page(pfn, sc, outcome);
        }
        if let Some(fate) = self.mm.check_references(pfn, sc) {
            outcome.note_kept(&fate, 1);
            return fate;
        }
        if self.mm.may_be_dropped(pfn) {
            return match self.mm.drop_lazyfree(pfn) {
                true => Fate::Free,
                false => Fate::Activate,
            };
        }
        if page.is_anon() && !page.has(flag::SWAPCACHE) && !self.add_to_swap(pfn) {
            return Fate::Activate;
        }
        if page.is_mapped() {
            self.mm.try_to_unmap(pfn);
        }
        if self.mm.pages[pfn].has(flag::DIRTY) {
            return self.pageout(pfn);
        }
        self.mm.remove_mapping(pfn, sc);
        Fate::Free
    }

    fn under_writeback(&mut self, pfn: Pfn, sc: &ScanControl, outcome: &mut Outcome) -> Fate {
        if !self.mm.pages[pfn].has(flag::SWAPBACKED) {
            self.count_file_page(pfn, outcome);
        }
        let lruvec = self.mm.zones[self.mm.pages.zone(pfn)].lruvec;
        let page = &mut self.mm.pages[pfn];
        if sc.kswapd && page.has(flag::RECLAIM) && self.mm.lruvecs[lruvec].all_writeback {
            outcome.immediate += 1;
        } else {
            page.set(flag::RECLAIM);
            outcome.writeback += 1;
        }
        match self.mm.kernel.mechanisms.reclaim.tail_writeback {
            TailWriteback::Keep => Fate::Keep,
            TailWriteback::Activate => Fate::Activate,
        }
    }

    /// `pageout`: a swap cache page goes to its slot; a shared page gets one only now.
    fn pageout(&mut self, pfn: Pfn) -> Fate {
        if !self.mm.pages[pfn].has(flag::SWAPCACHE) && !self.shmem_writepage(pfn) {
            return Fate::Activate;
        }
        // swap_writepage: nobody needs what is in the page.
        if self.mm.swap.references(self.mm.pages[pfn].slot()) == 0 {
            self.mm.delete_from_swap_cache(pfn);
            return Fate::Free;
        }
        let page = &mut self.mm.pages[pfn];
        page.clear(flag::DIRTY);
        page.set(flag::WRITEBACK | flag::RECLAIM);
        self.mm.stat.nr_vmscan_write += 1;
        // The same under its old and its new name: a kernel has one of them.
        for kind in [Kind::Writepage, Kind::WriteFolio] {
            self.trace(kind, |_| {
                vec![
                    (Field::Pfn, u64::from(pfn)),
                    (Field::Flags, RECLAIM_WB_ANON | RECLAIM_WB_ASYNC),
                ]
            });
        }
        Fate::Write
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
