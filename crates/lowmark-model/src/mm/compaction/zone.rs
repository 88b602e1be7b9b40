//! What compaction knows of a zone: where its scanners are, how often it failed, how fragmented the zone is.

use super::{COMPACT_MAX_DEFER_SHIFT, pageblock_start};
use crate::kernel::CompactDefer;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{MAX_ORDER, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Zone {
    pub(super) fn end(&self) -> Pfn {
        self.start + self.spanned as Pfn
    }

    pub(super) fn last_pageblock(&self) -> Pfn {
        pageblock_start(self.end() - 1)
    }

    pub(super) fn skips(&mut self, pfn: Pfn) -> &mut bool {
        let block = ((pfn - self.start) / PAGEBLOCK_PAGES) as usize;
        let known = &mut self.compaction.skip;
        if known.len() <= block {
            known.resize(block + 1, false);
        }
        &mut known[block]
    }

    /// `reset_cached_positions`
    pub(super) fn reset_cached_positions(&mut self) {
        self.compaction.cached_migrate_pfn = [self.start; 2];
        self.compaction.cached_free_pfn = self.last_pageblock();
    }

    /// `reset_isolation_suitable`: kswapd has reclaimed, so that pageblocks may have changed since a task was through.
    pub(in crate::mm) fn flush_skip_hints(&mut self) {
        if self.compaction.blockskip_flush {
            self.forget_pageblocks();
        }
    }

    /// Compaction that was put off as long as may be starts afresh (`compaction_restarting`).
    pub(super) fn restart_compaction(&mut self, order: usize) {
        let known = &self.compaction;
        if order >= known.order_failed
            && known.defer_shift == COMPACT_MAX_DEFER_SHIFT
            && known.considered >= 1 << known.defer_shift
        {
            self.forget_pageblocks();
        }
    }

    /// `__reset_isolation_suitable`
    fn forget_pageblocks(&mut self) {
        self.compaction.blockskip_flush = false;
        self.compaction.skip.clear();
        self.reset_cached_positions();
    }

    /// `compact_zone`: positions that mean nothing yet are those of a new pass.
    pub(super) fn init_cached_positions(&mut self) {
        let zone = self.start..self.end();
        if !zone.contains(&self.compaction.cached_free_pfn) {
            self.compaction.cached_free_pfn = self.last_pageblock();
        }
        let cached = &mut self.compaction.cached_migrate_pfn;
        if cached.iter().any(|pfn| !zone.contains(pfn)) {
            *cached = [self.start; 2];
        }
    }

    /// `defer_compaction`
    pub(in crate::mm) fn defer_compaction(&mut self, order: usize) {
        let known = &mut self.compaction;
        known.considered = 0;
        known.defer_shift = (known.defer_shift + 1).min(COMPACT_MAX_DEFER_SHIFT);
        known.order_failed = known.order_failed.min(order);
    }

    /// `compaction_deferred`; to 3.3 for all orders.
    pub(in crate::mm) fn compaction_deferred(&mut self, order: usize, rule: CompactDefer) -> bool {
        let by_order = matches!(rule, CompactDefer::ByOrder | CompactDefer::ByZone);
        let known = &mut self.compaction;
        if by_order && order < known.order_failed {
            return false;
        }
        let limit = 1 << known.defer_shift;
        known.considered = (known.considered + 1).min(limit);
        known.considered < limit
    }

    /// `compaction_defer_reset` of who has not allocated the block yet.
    pub(super) fn compaction_defer_reset(&mut self, order: usize) {
        let failed = &mut self.compaction.order_failed;
        *failed = (*failed).max(order + 1);
    }

    /// `compaction_defer_reset` of who has allocated the block.
    pub(in crate::mm) fn compaction_succeeded(&mut self, order: usize) {
        let known = &mut self.compaction;
        (known.considered, known.defer_shift) = (0, 0);
        known.blockskip_flush = false;
        self.compaction_defer_reset(order);
    }

    /// Free pages, free blocks, and free blocks that are as large as an order at least, in units of it
    /// (`fill_contig_page_info`).
    pub(super) fn contig_page_info(&self, order: usize) -> (u64, u64, u64) {
        let (mut pages, mut blocks, mut suitable) = (0, 0, 0);
        for of_order in 0..MAX_ORDER {
            let free: u64 = self
                .free_area
                .iter()
                .map(|areas| areas[of_order].len())
                .sum();
            pages += free << of_order;
            blocks += free;
            if of_order >= order {
                suitable += free << (of_order - order);
            }
        }
        (pages, blocks, suitable)
    }

    /// `__fragmentation_index`: towards 0 memory is short, towards 1000 it is fragmented; −1000 if neither.
    pub(super) fn fragmentation_index(&self, order: usize) -> i64 {
        let (pages, blocks, suitable) = self.contig_page_info(order);
        match (blocks, suitable) {
            (0, _) => 0,
            (_, 1..) => -1000,
            _ => 1000 - (1000 + ((pages * 1000) >> order) as i64) / blocks as i64,
        }
    }

    /// `fragmentation_score_zone`: percent of the free pages that are in no block as large as a huge page.
    pub(super) fn fragmentation_score(&self) -> u64 {
        let (pages, _, suitable) = self.contig_page_info(PAGEBLOCK_ORDER);
        let fragmented = pages - (suitable << PAGEBLOCK_ORDER);
        (fragmented * 100).checked_div(pages).unwrap_or(0)
    }

    /// There is a free block of an order or more.
    pub(super) fn has_block(&self, order: usize) -> bool {
        let large = MigrateType::ALL.iter();
        let mut large = large.flat_map(|&list| &self.free_area[list as usize][order..]);
        large.any(|area| area.len() > 0)
    }
}
