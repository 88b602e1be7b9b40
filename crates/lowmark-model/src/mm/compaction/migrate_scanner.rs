//! The migrate scanner: from the beginning of a zone up, pages of users are isolated.

use super::{COMPACT_CLUSTER_MAX, CompactControl, FastStart, Goal, Mode, pageblock_start};
use crate::kernel::FastMigrateblock;
use crate::mm::Mm;
use crate::mm::types::{
    MigrateType, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, flag,
};
use std::ops::Range;

impl Mm {
    /// `isolate_migratepages`: pages of the first pageblock that has not been found to have none, from where the
    /// scanner is on. Gives the frames that were gone through, if any, and how many of them were looked at.
    pub(super) fn isolate_migratepages(
        &mut self,
        cc: &mut CompactControl,
    ) -> Option<(Range<Pfn>, u64)> {
        let mut low = self.fast_find_migrateblock(cc);
        let fast_found = low != cc.migrate_pfn && cc.fast_search_fail == 0;
        loop {
            let end = pageblock_start(low) + PAGEBLOCK_PAGES;
            if end > cc.free_pfn {
                return None;
            }
            let zone = &mut self.zones[cc.zone];
            let at_start = low == pageblock_start(low);
            if at_start && !fast_found && cc.heeds_skip_hints() && *zone.skips(low) {
                cc.migrate_pfn = end;
                low = end;
                continue;
            }
            if !self.is_migration_source(cc, pageblock_start(low)) {
                self.update_cached_migrate(cc, end);
                cc.migrate_pfn = end;
                low = end;
                continue;
            }
            let scanned = self.isolate_migratepages_block(cc, low, end);
            return Some((low..cc.migrate_pfn, scanned));
        }
    }

    /// `suitable_migration_source`: a pageblock that is no large folio as a whole; those who may not wait take pages of
    /// movable pageblocks alone.
    fn is_migration_source(&self, cc: &CompactControl, block: Pfn) -> bool {
        let page = &self.pages[block];
        let whole = page.has(flag::LRU) && page.order() >= PAGEBLOCK_ORDER;
        let movable = || self.zones[cc.zone].pageblock_type(block) == MigrateType::Movable;
        !whole && (cc.mode != Mode::Async || movable())
    }

    /// `update_cached_migrate`: the next pass begins behind a frame. It goes on to the end of the pageblock that this lies
    /// in, the next one.
    fn update_cached_migrate(&mut self, cc: &CompactControl, end: Pfn) {
        let [quick, patient] = &mut self.zones[cc.zone].compaction.cached_migrate_pfn;
        let end = end + PAGEBLOCK_PAGES;
        *quick = end.max(*quick);
        if cc.mode != Mode::Async {
            *patient = end.max(*patient);
        }
    }

    /// `fast_find_migrateblock`: the pageblock of a free block near the beginning of what is left between the scanners,
    /// if a large block is wanted; the fewer pages have to move, the better.
    fn fast_find_migrateblock(&mut self, cc: &mut CompactControl) -> Pfn {
        let pfn = cc.migrate_pfn;
        let zone = &mut self.zones[cc.zone];
        let begins = pfn == zone.start || pfn == pageblock_start(pfn);
        let order = match cc.goal {
            Goal::Block(order) if order > PAGE_ALLOC_COSTLY_ORDER => order,
            _ => return pfn,
        };
        if cc.finish_pageblock || !begins {
            return pfn;
        }
        let limit = (COMPACT_CLUSTER_MAX as u64).checked_shr(cc.fast_search_fail);
        let limit = limit.unwrap_or(0) + 1;
        let distance = cc.free_pfn.saturating_sub(pfn) >> 1;
        let distance = match pfn == zone.start {
            true => distance,
            false => distance >> 2,
        };
        let high = pageblock_start(pfn + distance);
        let mut scanned = 0;
        let mut found = None;
        for list in (PAGE_ALLOC_COSTLY_ORDER..order).rev() {
            if found.is_some() || scanned >= limit {
                break;
            }
            let area = &zone.free_area[MigrateType::Movable as usize][list];
            let blocks: Vec<Pfn> = area.iter(&self.pages).collect();
            for free in blocks {
                scanned += 1;
                let enough = scanned > limit;
                if !enough && (free >= high || *zone.skips(free)) {
                    continue;
                }
                let area = &mut zone.free_area[MigrateType::Movable as usize][list];
                area.rotate_to_tail(&mut self.pages, free);
                if !enough {
                    found = Some(free);
                }
                break;
            }
        }
        cc.total_migrate_scanned += scanned;
        match found {
            Some(free) => {
                cc.fast_start = match cc.fast_start {
                    FastStart::Unknown => FastStart::From(free),
                    FastStart::From(other) => FastStart::From(other.min(free)),
                    FastStart::Used => FastStart::Used,
                };
                cc.fast_search_fail = 0;
                if zone.rules.fast_migrateblock == FastMigrateblock::MarkedFirst {
                    *zone.skips(free) = true;
                }
                pageblock_start(free).max(zone.start)
            }
            None => {
                cc.fast_search_fail += 1;
                if let FastStart::From(first) = cc.fast_start {
                    cc.fast_start = FastStart::Used;
                    cc.migrate_pfn = first;
                }
                cc.migrate_pfn
            }
        }
    }

    /// `isolate_migratepages_block`: pages from one frame to another of the same pageblock that are on LRU lists and
    /// not being written. Gives how many frames were looked at.
    fn isolate_migratepages_block(&mut self, cc: &mut CompactControl, low: Pfn, end: Pfn) -> u64 {
        let zone = &mut self.zones[cc.zone];
        let begins_block = low == pageblock_start(low);
        let (mut pfn, mut scanned, mut marked) = (low, 0, false);
        let before = cc.migratepages.len();
        if begins_block && cc.heeds_skip_hints() && *zone.skips(low) {
            scanned = 1;
            pfn = end;
            marked = true;
        }
        let mut wanted_end = cc.wanted_block_end(pfn);
        while pfn < end {
            if wanted_end.is_some_and(|wanted_end| pfn >= wanted_end) {
                // All of the last block can be moved.
                if cc.migratepages.len() > before {
                    break;
                }
                wanted_end = cc.wanted_block_end(pfn);
            }
            scanned += 1;
            let page = self.pages[pfn];
            if page.has(flag::BUDDY) {
                let block = 1 << page.order();
                scanned += block - 1;
                pfn += block as Pfn;
                continue;
            }
            if let Some(frames) = self.cannot_be_isolated(cc, pfn) {
                scanned += u64::from(frames) - 1;
                pfn += frames;
                if let Some(wanted_end) = wanted_end {
                    for at in cc.migratepages.drain(before..) {
                        self.lru_add(at);
                    }
                    pfn = pfn.max(wanted_end);
                }
                continue;
            }
            pfn += 1;
            // Others are to leave the pageblock alone as soon as there is something in it.
            if begins_block && !marked && cc.heeds_skip_hints() {
                marked = true;
                let known = std::mem::replace(self.zones[cc.zone].skips(low), true);
                if known && !cc.finish_pageblock {
                    pfn = end;
                    break;
                }
            }
            self.split_folio(pfn - 1);
            self.lru_del(pfn - 1);
            cc.migratepages.push(pfn - 1);
            if cc.migratepages.len() >= COMPACT_CLUSTER_MAX && !cc.finish_pageblock {
                break;
            }
        }
        pfn = pfn.min(end);
        let isolated = cc.migratepages.len() - before;
        if pfn == end && (isolated == 0 || cc.finish_pageblock) {
            if begins_block && !marked {
                *self.zones[cc.zone].skips(low) = true;
            }
            self.update_cached_migrate(cc, end);
        }
        cc.total_migrate_scanned += scanned;
        cc.migrate_pfn = pfn;
        self.stat.compact_isolated += isolated as u64;
        scanned
    }

    /// Frames, from one that is not free on, in which there is nothing to isolate; none if its page can be.
    fn cannot_be_isolated(&self, cc: &CompactControl, pfn: Pfn) -> Option<Pfn> {
        let head = self.pages.head(pfn);
        let folio = &self.pages[head];
        let order = folio.order();
        if !folio.has(flag::LRU) || folio.has(flag::WRITEBACK) {
            return Some(1);
        }
        // A folio as large as what is wanted is not worth moving, and one that is read cannot be split.
        let target = match cc.goal {
            Goal::Block(order) => order.min(PAGEBLOCK_ORDER),
            Goal::Score => PAGEBLOCK_ORDER,
        };
        let stays = order > 0 && (order >= target || folio.has(flag::LOCKED));
        stays.then(|| self.pages.folio(head).end - pfn)
    }
}

impl CompactControl {
    /// Where the block around a frame ends all of whose pages must move if any is to (`skip_on_failure`).
    fn wanted_block_end(&self, pfn: Pfn) -> Option<Pfn> {
        match (self.mode, self.goal) {
            (Mode::Async, Goal::Block(order)) => Some(((pfn >> order) + 1) << order),
            _ => None,
        }
    }
}
