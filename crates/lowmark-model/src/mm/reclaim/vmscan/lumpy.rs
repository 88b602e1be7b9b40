//! How a reclaimer goes about a block of several pages, to 3.4 (`lumpy_reclaim_mode`, `reclaim_mode_t`).
//!
//! | | lumpy reclaim of 2.6.36 | 2.6.37 | reclaim for compaction, 2.6.38 to 3.4 |
//! |---|---|---|---|
//! | decided | before a pass over a zone | before each batch | before each batch |
//! | lists that pages of a block come from | all | all | the one that is scanned |
//! | references | do not count | do not count | count |
//! | a page that is kept, unless for its writeback | changes nothing | ends it for the batch | ends it for the batch |
//! | a direct reclaimer that could not free all of a batch | waits for congestion, then goes through it again and waits for each page | goes through it again if it has not ended, and waits for each page | the same |
//!
//! Only a costly block is worth that at once; for others the priority has to be below 10, and below 5 for a second go.

use super::page_list::{self, Outcome};
use super::{Batch, ScanControl};
use crate::kernel::{CongestedQueue, LumpyReclaim, SyncReclaim};
use crate::mm::Mm;
use crate::mm::types::{DEF_PRIORITY, PAGE_ALLOC_COSTLY_ORDER, flag};
use crate::time::SECOND;
use crate::world::Sys;

/// What a reclaimer is after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Aim {
    /// Single pages.
    #[default]
    Pages,
    /// All pages of a block.
    Block,
    /// Pages enough for compaction.
    Compaction,
}

/// The mode of a reclaimer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mode {
    aim: Aim,
    /// It waits for pages under writeback.
    sync: bool,
    /// It waits for those that it writes itself.
    sync_writes: bool,
}

impl Mode {
    /// Whether all pages of a block are wanted, wherever they are, and references to them do not count.
    pub(super) fn is_lumpy(self) -> bool {
        self.aim == Aim::Block
    }

    /// Whether the reclaimer waits for pages under writeback.
    pub(super) fn is_sync(self) -> bool {
        self.sync
    }

    /// Whether it also waits for pages that it writes.
    pub(super) fn waits_for_writes(self) -> bool {
        self.sync && self.sync_writes
    }
}

impl ScanControl {
    fn is_costly(&self) -> bool {
        self.order as usize > PAGE_ALLOC_COSTLY_ORDER
    }

    /// A block is wanted, and it is not to be had by reclaiming a little.
    fn wants_a_block(&self) -> bool {
        self.order > 0 && (self.is_costly() || self.priority < DEF_PRIORITY - 2)
    }
}

impl Mm {
    /// A pass over a zone begins.
    pub(super) fn begin_pass(&self, sc: &mut ScanControl) {
        if self.kernel.mechanisms.reclaim.lumpy_reclaim == LumpyReclaim::Whole {
            sc.mode = self.reclaim_mode(sc);
        }
    }

    /// A batch begins.
    pub(super) fn begin_batch(&self, sc: &mut ScanControl) {
        match self.kernel.mechanisms.reclaim.lumpy_reclaim {
            LumpyReclaim::Whole => sc.mode.sync = false,
            LumpyReclaim::GivesUp | LumpyReclaim::Compaction => sc.mode = self.reclaim_mode(sc),
            LumpyReclaim::Never => {}
        }
    }

    fn reclaim_mode(&self, sc: &ScanControl) -> Mode {
        let aim = match self.kernel.mechanisms.reclaim.lumpy_reclaim {
            _ if !sc.wants_a_block() => Aim::Pages,
            LumpyReclaim::Never => Aim::Pages,
            // COMPACTION_BUILD
            LumpyReclaim::Compaction if self.kernel.coverage.compaction => Aim::Compaction,
            _ => Aim::Block,
        };
        let sync_writes = matches!(
            self.kernel.mechanisms.reclaim.sync_reclaim,
            SyncReclaim::CongestionFirst | SyncReclaim::EachPage
        );
        Mode {
            aim,
            sync: false,
            sync_writes,
        }
    }

    /// `disable_lumpy_reclaim_mode`, `reset_reclaim_mode`: a page has to be kept, and not because it is being written.
    pub(super) fn note_kept(&self, sc: &mut ScanControl) {
        match self.kernel.mechanisms.reclaim.lumpy_reclaim {
            LumpyReclaim::GivesUp | LumpyReclaim::Compaction => sc.mode = Mode::default(),
            LumpyReclaim::Whole | LumpyReclaim::Never => {}
        }
    }

    /// `in_reclaim_compaction`: reclaim goes on until there is room for compaction.
    pub(super) fn in_reclaim_compaction(&self, sc: &ScanControl) -> bool {
        match self.kernel.mechanisms.reclaim.lumpy_reclaim {
            LumpyReclaim::Whole | LumpyReclaim::GivesUp => false,
            LumpyReclaim::Compaction => sc.mode.aim == Aim::Compaction,
            LumpyReclaim::Never => sc.wants_a_block(),
        }
    }

    /// Whether a direct reclaimer writes to a device although its queue is congested.
    pub(super) fn writes_to_congested(&self, sc: &ScanControl) -> bool {
        let costly_too =
            self.kernel.mechanisms.reclaim.congested_queue == CongestedQueue::CostlyBlocks;
        sc.kswapd || costly_too && sc.is_costly()
    }

    /// `should_reclaim_stall`
    fn should_reclaim_stall(&self, taken: u64, reclaimed: u64, sc: &ScanControl) -> bool {
        let never = self.kernel.mechanisms.reclaim.sync_reclaim == SyncReclaim::Never;
        if never || sc.kswapd || sc.mode.aim == Aim::Pages || reclaimed == taken {
            return false;
        }
        sc.is_costly() || sc.priority <= DEF_PRIORITY / 3
    }

    /// `clear_active_flags`: pages that were taken off active lists, or activated since.
    pub(super) fn clear_active_flags(&mut self, batch: &Batch) {
        for &pfn in batch {
            let page = &mut self.pages[pfn];
            if page.test_and_clear(flag::ACTIVE) {
                self.stat.pgdeactivate += page.folio_nr_pages();
            }
        }
    }
}

/// Goes through a batch a second time and waits for its pages, if there is reason to; what both times came to.
pub(super) async fn again_in_sync(
    sys: &Sys,
    batch: &mut Batch,
    taken: u64,
    first: Outcome,
    sc: &mut ScanControl,
) -> Outcome {
    let stalls = sys
        .world()
        .mm
        .should_reclaim_stall(taken, first.reclaimed, sc);
    if !stalls {
        return first;
    }
    let rule = sys.world().mm.kernel.mechanisms.reclaim.sync_reclaim;
    if rule == SyncReclaim::CongestionFirst {
        sys.congestion_wait(SECOND / 10).await;
        sys.world().mm.clear_active_flags(batch);
    }
    sc.mode.sync = true;
    let second = page_list::shrink_page_list(sys, batch, sc).await;
    first.and(&second)
}
