//! Compaction in the slow path of an allocation that wants a block of pages, by era.
//!
//! 1. To 4.7 it is tried before reclaim, without waiting at first. From 2.6.38 on it is tried again at the end, and waits then,
//!    but from 3.16 on not for a huge page of a fault.
//! 2. From 4.8 on it is tried before reclaim only for costly blocks and what cannot be moved, and after each reclaim, with a
//!    priority that is raised when it fails.
//! 3. Who gives up soon ends without reclaim where compaction is put off, and from 5.4 on also where it lacks room.

use crate::kernel::{BlockSlowPath, CompactDefer, CompactRetry, CompactStalls};
use crate::mm::Mm;
use crate::mm::types::{
    CompactPriority, CompactResult, Compacted, Gfp, MigrateType, OutOfMemory,
    PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, Pfn,
};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;

/// Times that an allocation tries again because compaction made blocks, which others took (`MAX_COMPACT_RETRIES`).
const MAX_COMPACT_RETRIES: u32 = 16;

/// What compaction has come to for an allocation of a block.
#[derive(Debug)]
pub(super) struct BlockAttempt {
    gfp: Gfp,
    order: usize,
    /// With which the next attempt is made.
    priority: CompactPriority,
    /// What the last one came to.
    result: CompactResult,
    /// Attempts that made a block, since the priority was raised.
    retries: u32,
}

impl BlockSlowPath {
    /// Compaction comes after reclaim (4.8 and later).
    fn by_priority(self) -> bool {
        matches!(
            self,
            BlockSlowPath::ByPriority
                | BlockSlowPath::PageblocksGiveUp
                | BlockSlowPath::NoretryGivesUp
        )
    }
}

impl BlockAttempt {
    pub(super) fn new(gfp: Gfp, order: usize) -> BlockAttempt {
        BlockAttempt {
            gfp,
            order,
            priority: CompactPriority::Async,
            result: CompactResult::Skipped,
            retries: 0,
        }
    }

    fn is_costly(&self) -> bool {
        self.order > PAGE_ALLOC_COSTLY_ORDER
    }

    /// Compaction before anything is reclaimed; an error is the end of it.
    pub(super) async fn compact_first(&mut self, sys: &Sys) -> Result<Option<Pfn>, OutOfMemory> {
        let era = sys.world().mm.kernel.mechanisms.blocks.block_slow_path;
        if era.by_priority() {
            let first = self.is_costly() || self.gfp.migrate_type() != MigrateType::Movable;
            let found = if first { self.compact(sys).await } else { None };
            let ends = first && found.is_none() && self.gives_up(era);
            // What reclaim is followed by.
            let soon = self.is_costly() && self.gfp.has(gfp::NORETRY);
            self.priority = if soon {
                CompactPriority::Async
            } else {
                CompactPriority::SyncLight
            };
            if ends {
                return Err(OutOfMemory);
            }
            if !first || found.is_some() {
                return Ok(found);
            }
            // Time has passed: kswapd may have gone to sleep, or have freed something.
            return Ok(sys.world().wake_and_take(self.gfp, self.order));
        }
        let found = self.compact(sys).await;
        if found.is_none() && self.gives_up(era) {
            return Err(OutOfMemory);
        }
        let kthread = sys.world().current_is_kthread();
        self.priority = match era {
            BlockSlowPath::FaultsStayAsync if self.gfp.is_for_huge_page() && !kthread => {
                CompactPriority::Async
            }
            _ => CompactPriority::SyncLight,
        };
        Ok(found)
    }

    /// The same in a round that follows another: to 4.7.
    pub(super) async fn compact_again(&mut self, sys: &Sys) -> Result<Option<Pfn>, OutOfMemory> {
        let era = sys.world().mm.kernel.mechanisms.blocks.block_slow_path;
        if era.by_priority() {
            return Ok(None);
        }
        let found = self.compact(sys).await;
        if found.is_none() && self.gives_up(era) {
            Err(OutOfMemory)
        } else {
            Ok(found)
        }
    }

    /// Compaction after reclaim: from 4.8 on.
    pub(super) async fn compact_after_reclaim(&mut self, sys: &Sys) -> Option<Pfn> {
        let era = sys.world().mm.kernel.mechanisms.blocks.block_slow_path;
        if era.by_priority() {
            self.compact(sys).await
        } else {
            None
        }
    }

    /// Compaction at the end of an allocation that does not try again: from 2.6.38 to 4.7.
    pub(super) async fn compact_last(&mut self, sys: &Sys) -> Result<Pfn, OutOfMemory> {
        let era = sys.world().mm.kernel.mechanisms.blocks.block_slow_path;
        if self.order == 0 || era.by_priority() || era == BlockSlowPath::OneCompaction {
            return Err(OutOfMemory);
        }
        self.compact(sys).await.ok_or(OutOfMemory)
    }

    /// `__alloc_pages_direct_compact`
    async fn compact(&mut self, sys: &Sys) -> Option<Pfn> {
        let (gfp, order, priority) = (self.gfp, self.order, self.priority);
        let compacted = sys.try_to_compact_pages(gfp, order, priority).await;
        self.result = compacted.map_or(CompactResult::Skipped, |compacted| compacted.result);
        sys.world().take_compacted(gfp, order, priority, compacted?)
    }

    /// Whether an allocation is at its end without reclaim, by what compaction came to before that.
    fn gives_up(&self, era: BlockSlowPath) -> bool {
        let gfp = self.gfp;
        let noretry = self.is_costly() && gfp.has(gfp::NORETRY);
        let hopeless = self.result.is_deferred() || self.result.is_skipped();
        match era {
            BlockSlowPath::OneCompaction | BlockSlowPath::SecondCompaction => false,
            BlockSlowPath::LightGivesUp => {
                self.result.is_deferred() && !gfp.has(gfp::KSWAPD_RECLAIM)
            }
            BlockSlowPath::FaultsStayAsync => self.result.is_deferred() && gfp.is_for_huge_page(),
            BlockSlowPath::ByPriority => self.result.is_deferred() && noretry,
            BlockSlowPath::PageblocksGiveUp => {
                let large = self.order >= PAGEBLOCK_ORDER && gfp.has(gfp::IO);
                let without = large && !gfp.has(gfp::RETRY_MAYFAIL) && hopeless;
                without || self.result.is_deferred() && noretry
            }
            BlockSlowPath::NoretryGivesUp => hopeless && noretry,
        }
    }
}

impl World {
    /// The current task is one of the kernel's (`PF_KTHREAD`).
    fn current_is_kthread(&self) -> bool {
        self.sched.task(self.sched.current()).kthread
    }

    /// `__alloc_pages_direct_compact`, the second half: a block that compaction may have made. If compaction had nothing to work
    /// with there is no need to look.
    fn take_compacted(
        &mut self,
        gfp: Gfp,
        order: usize,
        priority: CompactPriority,
        compacted: Compacted,
    ) -> Option<Pfn> {
        let rules = self.mm.kernel.mechanisms.blocks;
        let result = compacted.result;
        let counts = match rules.compact_stalls {
            CompactStalls::Entered => !result.is_deferred(),
            CompactStalls::Done => !result.is_deferred() && !result.is_skipped(),
            CompactStalls::NotSkipped => !result.is_skipped(),
        };
        self.mm.stat.compact_stall += u64::from(counts);
        if !counts || result.is_skipped() {
            return None;
        }
        if rules.compact_defer != CompactDefer::ByZone {
            // What migration has freed is to merge.
            for zone in self.mm.zones.keys() {
                self.mm.drain_local_pages(zone);
            }
        }
        let found = compacted
            .captured
            .or_else(|| self.take_down_to_min(gfp, order));
        match found {
            Some(pfn) => {
                self.mm.stat.compact_success += 1;
                let zone = match rules.compact_defer {
                    CompactDefer::ByZone => self.mm.pages.zone(pfn),
                    _ => self.mm.preferred_zone(gfp),
                };
                self.mm.compaction_defer_reset(zone, order, true);
            }
            None => {
                self.mm.stat.compact_fail += 1;
                self.mm.defer_after_failure(gfp, order, priority);
            }
        }
        self.tell();
        found
    }
}

impl Mm {
    /// To 3.17 what an allocation found afterwards decides whether compaction is put off, for all zones at once.
    fn defer_after_failure(&mut self, gfp: Gfp, order: usize, priority: CompactPriority) {
        let defers = match self.kernel.mechanisms.blocks.compact_defer {
            CompactDefer::AnyFailure => true,
            CompactDefer::SyncFailure | CompactDefer::ByOrder => priority != CompactPriority::Async,
            CompactDefer::ByZone => false,
        };
        if defers {
            let zone = self.preferred_zone(gfp);
            self.defer_compaction(zone, order);
        }
    }

    /// `should_compact_retry`: whether an allocation tries again because compaction may still help.
    pub(super) fn compaction_may_help(&mut self, block: &mut BlockAttempt) -> bool {
        let rule = self.kernel.mechanisms.blocks.compact_retry;
        if block.order == 0 || rule == CompactRetry::Never || !self.kernel.coverage.compaction {
            return false;
        }
        let made_one = block.result == CompactResult::Success;
        if made_one && block.may_lose_another() {
            return true;
        }
        match block.result {
            CompactResult::Success | CompactResult::Complete => {}
            CompactResult::Skipped => return self.room_could_be_made(block.gfp, block.order),
            _ if rule == CompactRetry::WithdrawnToo => {}
            _ => return self.room_could_be_made(block.gfp, block.order),
        }
        rule != CompactRetry::Feedback && block.raise_priority(rule)
    }
}

impl BlockAttempt {
    /// Compaction made a block, which somebody else took: that happens so many times before it counts as a failure.
    fn may_lose_another(&mut self) -> bool {
        self.retries += 1;
        let most = if self.is_costly() {
            MAX_COMPACT_RETRIES / 4
        } else {
            MAX_COMPACT_RETRIES
        };
        self.retries <= most
    }

    /// The next attempt tries harder, if that is possible.
    fn raise_priority(&mut self, rule: CompactRetry) -> bool {
        let full = rule != CompactRetry::RaisesPriority && !self.is_costly();
        let next = match self.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            CompactPriority::SyncLight if full => CompactPriority::SyncFull,
            _ => return false,
        };
        self.priority = next;
        self.retries = 0;
        true
    }
}
