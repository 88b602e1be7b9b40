//! The free scanner: from the end of a zone down, free pages are isolated for others to move to.

use super::control::{CompactControl, Mode};
use super::{COMPACT_CLUSTER_MAX, pageblock_start};
use crate::kernel::{CompactScan, CompactStart, CompactSuitable, RefusedBlock};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Mark, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneType, flag};
use lowmark_record::Kind;

impl Zone {
    /// `__isolate_free_page`: a free block is nobody's, unless that would leave too little free.
    fn isolate_free_page(&mut self, pages: &mut Pages, pfn: Pfn, keeps: Mark) -> Option<usize> {
        let (order, list) = (pages[pfn].order(), pages[pfn].buddy_list());
        let mark = self.unboosted(keeps) + (1 << order);
        if !self.watermark_ok(0, mark, ZoneType::Dma) {
            return None;
        }
        self.free_area[list][order].remove(pages, pfn);
        for at in pfn..pfn + (1 << order) {
            pages[at].reset();
        }
        self.free -= 1 << order;
        Some(order)
    }

    /// `suitable_migration_target`: a movable pageblock that is not free as a whole; where scanners take all that is free in a
    /// pageblock, also one that is. At the highest priority its type does not matter.
    fn is_migration_target(&self, cc: &CompactControl, pages: &Pages, block: Pfn) -> bool {
        let page = &pages[block];
        let free = page.has(flag::BUDDY) && page.order() >= PAGEBLOCK_ORDER;
        let list = self.pageblock_type(block);
        if free {
            cc.rules.compact_scan == CompactScan::WholeBlocks && list != MigrateType::HighAtomic
        } else {
            cc.asked.mode == Mode::Full || list == MigrateType::Movable
        }
    }
}

impl Mm {
    /// `isolate_freepages`: free pages for so many pages that are to move, or as many as there are in a pageblock
    /// with one.
    pub(super) fn isolate_freepages(&mut self, cc: &mut CompactControl, wanted: usize) {
        match (cc.rules.compact_scan, cc.order()) {
            (CompactScan::WholeBlocks, _) => return self.isolate_whole_pageblocks(cc, wanted),
            (CompactScan::FreeLists, Some(order)) => {
                self.fast_isolate_freepages(cc, order, wanted);
                if !cc.freepages.is_empty() {
                    return;
                }
            }
            _ => {}
        }
        let mut at = cc.free_pfn;
        let mut block = pageblock_start(at);
        let low = pageblock_start(cc.migrate_pfn) + PAGEBLOCK_PAGES;
        // A task that may not wait looks at every 32nd frame until there is something.
        let mut stride = if cc.scans_free_lists() && cc.asked.mode.is_async() {
            COMPACT_CLUSTER_MAX as Pfn
        } else {
            1
        };
        while block >= low {
            cc.blocks_met += 1;
            let end = (block + PAGEBLOCK_PAGES).min(self.zones[cc.zone].end());
            let zone = &mut self.zones[cc.zone];
            let skipped = cc.heeds_skip_hints() && *zone.skips(block);
            if !skipped && zone.is_migration_target(cc, &self.pages, block) {
                let isolated = self.isolate_freepages_block(cc, &mut at, end, wanted, stride);
                if at == end {
                    self.note_freed_block(cc, block, isolated);
                }
                let enough = cc.freepages.len() >= wanted;
                if enough && at == end {
                    at = block - PAGEBLOCK_PAGES;
                }
                if enough || at < end {
                    break;
                }
                // Where nothing is free, fewer frames are looked at in the next one.
                stride = match isolated {
                    0 if cc.scans_free_lists() => (stride << 1).min(COMPACT_CLUSTER_MAX as Pfn),
                    _ => 1,
                };
            }
            block -= PAGEBLOCK_PAGES;
            at = block;
        }
        cc.free_pfn = at;
    }

    /// `isolate_freepages` where scanners take all that is free in a pageblock: the free scanner stays at the highest one
    /// that had something free, as pages may have come back there.
    fn isolate_whole_pageblocks(&mut self, cc: &mut CompactControl, wanted: usize) {
        let low = pageblock_start(cc.migrate_pfn) + PAGEBLOCK_PAGES;
        let mut block = pageblock_start(cc.free_pfn);
        let mut high = low.min(block);
        while block >= low && cc.freepages.len() < wanted {
            cc.blocks_met += 1;
            let mut at = block;
            let end = (block + PAGEBLOCK_PAGES).min(self.zones[cc.zone].end());
            let zone = &mut self.zones[cc.zone];
            let skipped = cc.heeds_skip_hints() && *zone.skips(block);
            if !skipped && zone.is_migration_target(cc, &self.pages, block) {
                let isolated = self.isolate_freepages_block(cc, &mut at, end, usize::MAX, 1);
                if isolated > 0 {
                    high = high.max(block);
                }
                if at == end {
                    self.note_freed_block(cc, block, isolated);
                }
            }
            block -= PAGEBLOCK_PAGES;
        }
        let first = self.zones[cc.zone].start;
        let met = block < low && cc.freepages.is_empty();
        cc.free_pfn = if met { block.max(first) } else { high };
        if cc.rules.compact_start == CompactStart::LastFree {
            let zone = &mut self.zones[cc.zone];
            let last = zone.last_pageblock();
            let cached = &mut zone.compaction.cached_free_pfn;
            if cc.wrapped || *cached == last {
                *cached = high;
            }
        }
    }

    /// What is known of a pageblock that the free scanner has gone through to its end.
    fn note_freed_block(&mut self, cc: &CompactControl, block: Pfn, isolated: u32) {
        let fast = cc.scans_free_lists();
        if !fast && (isolated > 0 || !cc.heeds_skip_hints()) {
            return;
        }
        let zone = &mut self.zones[cc.zone];
        *zone.skips(block) = true;
        let from = if fast {
            block.saturating_sub(PAGEBLOCK_PAGES)
        } else {
            block
        };
        let cached = &mut zone.compaction.cached_free_pfn;
        *cached = (*cached).min(from);
    }

    /// `isolate_freepages_block`: free blocks from `at` on, until there are enough pages; how many there were.
    fn isolate_freepages_block(
        &mut self,
        cc: &mut CompactControl,
        at: &mut Pfn,
        end: Pfn,
        wanted: usize,
        stride: Pfn,
    ) -> u32 {
        let (start, mut pfn, mut total) = (*at, *at, 0);
        let before = cc.total_free_scanned;
        while pfn < end {
            cc.total_free_scanned += 1;
            if !self.pages[pfn].has(flag::BUDDY) {
                if let Some(end) = self.compound_end(pfn) {
                    cc.total_free_scanned += cc.passed(u64::from(end - pfn)) - 1;
                    pfn = end - 1;
                }
                pfn += stride;
                continue;
            }
            let Some(isolated) = self.take_free_block(cc, pfn) else {
                match cc.rules.refused_block {
                    RefusedBlock::Passed => {
                        // It looks at the frames of the block one by one, of which none but the first says that it is free.
                        pfn += 1;
                        continue;
                    }
                    RefusedBlock::Ends => break,
                }
            };
            total += isolated;
            if cc.freepages.len() >= wanted {
                pfn += isolated;
                break;
            }
            pfn += isolated - 1 + stride;
        }
        *at = pfn.min(end);
        let scanned = cc.total_free_scanned - before;
        self.told.freepages(
            Kind::IsolateFreepages,
            [start, *at],
            scanned,
            u64::from(total),
        );
        total
    }

    /// Where a compound page ends that begins at a frame, or is held.
    fn compound_end(&self, pfn: Pfn) -> Option<Pfn> {
        let order = self.pages[pfn].order();
        let folio = (order > 0).then(|| pfn + (1 << order));
        folio.or_else(|| self.held.compound_end(pfn))
    }

    /// `fast_isolate_freepages`: looks for a free block near the end of what is left between the scanners, on the lists
    /// of free blocks, and goes through the pageblock around it.
    fn fast_isolate_freepages(&mut self, cc: &mut CompactControl, order: usize, wanted: usize) {
        let distance = cc.free_pfn.saturating_sub(cc.migrate_pfn);
        let begins = cc.free_pfn >= self.zones[cc.zone].compaction.init_free_pfn;
        let before = (cc.total_free_scanned, cc.freepages.len());
        let mut search = FastSearch {
            limit: if begins {
                PAGEBLOCK_PAGES / 2
            } else {
                (cc.freelist_scan_limit() >> 1).max(1)
            },
            low: pageblock_start(cc.free_pfn - (distance >> 2)),
            min: pageblock_start(cc.free_pfn - (distance >> 1)),
            highest: 0,
        };
        cc.search_order = cc.search_order.min(order.saturating_sub(1));
        let mut found = None;
        let mut at = Some(cc.search_order);
        while let (Some(list), None) = (at, found) {
            let mut last = list;
            if let Some(pfn) = self.search_free_list(list, &mut search, cc) {
                match self.take_free_block(cc, pfn) {
                    Some(_) => found = Some(pfn),
                    // Too little is free: the search is over.
                    None => last = cc.search_order + 1,
                }
            }
            if cc.freepages.len() >= wanted {
                break;
            }
            at = cc.next_search_order(last, order);
        }
        self.told.freepages(
            Kind::FastIsolateFreepages,
            [search.min, cc.free_pfn],
            cc.total_free_scanned - before.0,
            (cc.freepages.len() - before.1) as u64,
        );
        if found.is_none() {
            cc.fast_search_fail += 1;
            if begins {
                // A task that wants a block for itself goes on in the middle at the worst.
                let highest = search.highest >= search.min;
                let from = if highest {
                    Some(search.highest)
                } else {
                    cc.asked.mode.is_direct().then_some(search.min)
                };
                cc.free_pfn = from.unwrap_or(cc.free_pfn);
                found = from;
            }
        }
        let cached = &mut self.zones[cc.zone].compaction.cached_free_pfn;
        if search.highest > 0 && search.highest >= *cached {
            *cached = search.highest.saturating_sub(PAGEBLOCK_PAGES);
        }
        if let Some(pfn) = found {
            self.isolate_around(cc, pfn, wanted);
        }
    }

    /// The free blocks of an order, from the tail of their list on: the first one that is far enough up, or the highest
    /// one of those that will do. They are looked at in another order the next time.
    fn search_free_list(
        &mut self,
        order: usize,
        search: &mut FastSearch,
        cc: &mut CompactControl,
    ) -> Option<Pfn> {
        let zone = &mut self.zones[cc.zone];
        let area = &mut zone.free_area[MigrateType::Movable as usize][order];
        let blocks: Vec<Pfn> = area.iter(&self.pages).collect();
        let (mut found, mut high, mut looked_at) = (None, None, 0);
        let mut stopped = None;
        for &pfn in blocks.iter().rev() {
            looked_at += 1;
            if pfn >= search.highest {
                search.highest = pageblock_start(pfn).max(zone.start);
            }
            if pfn >= search.low {
                cc.fast_search_fail = 0;
                cc.search_order = order;
                found = Some(pfn);
                stopped = found;
                break;
            }
            if pfn >= search.min && high.is_none_or(|high| pfn > high) {
                high = Some(pfn);
                search.limit >>= 1;
            }
            if looked_at >= search.limit {
                stopped = Some(pfn);
                break;
            }
        }
        cc.total_free_scanned += u64::from(looked_at);
        if found.is_none() && high.is_some() {
            (found, stopped) = (high, high);
        }
        if let Some(pfn) = stopped {
            area.rotate_to_head(&mut self.pages, pfn);
        }
        if looked_at >= search.limit {
            search.limit = (search.limit >> 1).max(1);
        }
        found
    }

    /// Isolates a free block for pages that are to move, if that leaves enough: its pages.
    fn take_free_block(&mut self, cc: &mut CompactControl, pfn: Pfn) -> Option<u32> {
        let keeps = match cc.rules.compact_suitable {
            CompactSuitable::CostlyApart => Mark::Min,
            CompactSuitable::RoomFirst | CompactSuitable::BlockFirst => Mark::Low,
        };
        let zone = &mut self.zones[cc.zone];
        let order = zone.isolate_free_page(&mut self.pages, pfn, keeps)?;
        let isolated = 1 << order;
        cc.total_free_scanned += u64::from(isolated) - 1;
        cc.freepages.add(pfn, order);
        self.stat.compact_isolated += u64::from(isolated);
        Some(isolated)
    }

    /// `fast_isolate_around`: more of the same pageblock, if there are not enough yet and the pass is not one that gives up soon.
    fn isolate_around(&mut self, cc: &mut CompactControl, pfn: Pfn, wanted: usize) {
        if cc.freepages.len() >= wanted || cc.asked.mode == Mode::Async {
            return;
        }
        let zone = &self.zones[cc.zone];
        let mut at = pageblock_start(pfn).max(zone.start);
        let end = (pageblock_start(pfn) + PAGEBLOCK_PAGES).min(zone.end());
        self.isolate_freepages_block(cc, &mut at, end, wanted, 1);
        if at == end {
            *self.zones[cc.zone].skips(pfn) = true;
        }
    }
}

/// A search of lists of free blocks.
struct FastSearch {
    /// Blocks of a list to look at.
    limit: u32,
    /// A block from here on is taken at once.
    low: Pfn,
    /// One below this is not taken.
    min: Pfn,
    /// The highest pageblock that has been seen.
    highest: Pfn,
}

impl CompactControl {
    /// `freelist_scan_limit`: free blocks of a list that are looked at, the fewer the more searches have failed.
    pub(super) fn freelist_scan_limit(&self) -> u32 {
        let limit = (COMPACT_CLUSTER_MAX as u32).checked_shr(self.fast_search_fail);
        limit.unwrap_or(0) + 1
    }

    /// `next_search_order`: all orders in turn; none once they have been through.
    fn next_search_order(&mut self, order: usize, goal: usize) -> Option<usize> {
        let next = order.checked_sub(1).unwrap_or(goal.saturating_sub(1));
        if next == self.search_order {
            let before = self.search_order.checked_sub(1);
            self.search_order = before.unwrap_or(goal.saturating_sub(1));
            return None;
        }
        Some(next)
    }
}
