//! What compaction knows of a zone: where its scanners are, how often it failed, how fragmented the zone is.

use super::control::CompactControl;
use super::{COMPACT_MAX_DEFER_SHIFT, pageblock_start};
use crate::ids::ZoneId;
use crate::kernel::{CompactDefer, CompactScan};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{
    MAX_ORDER, MigrateType, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, flag,
};

impl Mm {
    /// `reset_isolation_suitable`: kswapd has reclaimed, so that pageblocks may have changed since a task was through.
    pub(in crate::mm) fn flush_skip_hints(&mut self, zone: ZoneId) {
        if self.zones[zone].compaction.blockskip_flush {
            self.forget_pageblocks(zone);
        }
    }

    pub(super) fn restart_compaction(&mut self, zone: ZoneId, order: usize) {
        if self.zones[zone].restarts_compaction(order) {
            self.forget_pageblocks(zone);
        }
    }

    /// `__reset_isolation_suitable`: from 5.1 on (e332f741a8dd) pageblocks of which a sample has a free page or one on a list are
    /// forgotten, from both ends of the zone on, and the first of them on each side is where its scanner begins; nothing at
    /// all is if no task was through.
    fn forget_pageblocks(&mut self, zone: ZoneId) {
        if self.kernel.mechanisms.blocks.compact_scan != CompactScan::FreeLists {
            return self.zones[zone].forget_pageblocks();
        }
        let known = &mut self.zones[zone].compaction;
        if !std::mem::take(&mut known.blockskip_flush) {
            return;
        }
        let (mut up, mut down) = (self.zones[zone].start, self.zones[zone].end() - 1);
        let (mut source, mut target) = (None, None);
        while up < down {
            if self.forget_pageblock(zone, up, true, source.is_some()) && source.is_none() {
                source = Some(up);
                let known = &mut self.zones[zone].compaction;
                known.init_migrate_pfn = up;
                known.cached_migrate_pfn = [up; 2];
            }
            if self.forget_pageblock(zone, down, target.is_some(), true) && target.is_none() {
                target = Some(down);
                let known = &mut self.zones[zone].compaction;
                known.init_free_pfn = down;
                known.cached_free_pfn = down;
            }
            up += PAGEBLOCK_PAGES;
            down = down.saturating_sub(PAGEBLOCK_PAGES);
        }
        let (first, last) = (self.zones[zone].start, self.zones[zone].end() - 1);
        if source.unwrap_or(last) >= target.unwrap_or(first) {
            let known = &mut self.zones[zone].compaction;
            known.cached_migrate_pfn = [up; 2];
            known.cached_free_pfn = down;
        }
    }

    /// `__reset_isolation_pfn`: whether the pageblock around a frame may have something for the scanners asked about.
    fn forget_pageblock(&mut self, zone: ZoneId, pfn: Pfn, source: bool, target: bool) -> bool {
        let block = pageblock_start(pfn).max(self.zones[zone].start);
        if self.is_whole(block) {
            return false;
        }
        let zone = &mut self.zones[zone];
        let skipped = *zone.skips(block);
        let movable = zone.pageblock_type(block) == MigrateType::Movable;
        let end = (pageblock_start(pfn) + PAGEBLOCK_PAGES).min(zone.end());
        if source && target && !skipped {
            return true;
        }
        if !source && target && !movable {
            return false;
        }
        let mut sample = (block..end).step_by(1 << PAGE_ALLOC_COSTLY_ORDER);
        let found = sample.any(|at| {
            let page = &self.pages[at];
            source && page.is_listed() || target && page.has(flag::BUDDY)
        });
        if found {
            *zone.skips(block) = false;
        }
        found
    }

    /// Nothing was isolated: passes that may wait need not look there either.
    pub(super) fn keep_positions_together(&mut self, cc: &CompactControl) {
        if cc.keeps_together {
            let [quick, steady] = &mut self.zones[cc.zone].compaction.cached_migrate_pfn;
            *steady = *quick;
        }
    }
}

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

    /// Compaction that was put off as long as may be starts afresh (`compaction_restarting`).
    fn restarts_compaction(&self, order: usize) -> bool {
        let known = &self.compaction;
        order >= known.order_failed
            && known.defer_shift == COMPACT_MAX_DEFER_SHIFT
            && known.considered >= 1 << known.defer_shift
    }

    /// `__reset_isolation_suitable` to 5.0
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
    pub(super) fn defer_compaction(&mut self, order: usize) {
        let known = &mut self.compaction;
        known.considered = 0;
        known.defer_shift = (known.defer_shift + 1).min(COMPACT_MAX_DEFER_SHIFT);
        known.order_failed = known.order_failed.min(order);
    }

    /// `compaction_deferred`; to 3.3 for all orders.
    pub(super) fn compaction_deferred(&mut self, order: usize, rule: CompactDefer) -> bool {
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
    pub(super) fn compaction_succeeded(&mut self, order: usize) {
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
