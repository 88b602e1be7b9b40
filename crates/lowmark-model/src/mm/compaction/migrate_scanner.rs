//! The migrate scanner: from the beginning of a zone up, pages of users are isolated.

use super::control::{CompactControl, FastStart, Mode};
use super::{COMPACT_CLUSTER_MAX, pageblock_start};
use crate::kernel::{
    CompactAsync, CompactCounts, CompactHeld, CompactStart, CompactUnevictable, FastMigrateblock,
    FolioMigration,
};
use crate::mm::Mm;
use crate::mm::frames::page::Page;
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
            cc.blocks_met += 1;
            let zone = &mut self.zones[cc.zone];
            let asks = low == pageblock_start(low) || !cc.scans_free_lists();
            if asks && !fast_found && cc.heeds_skip_hints() && *zone.skips(low) {
                cc.migrate_pfn = end;
                low = end;
                continue;
            }
            if !self.is_migration_source(cc, pageblock_start(low)) {
                if cc.scans_free_lists() {
                    self.update_cached_migrate(cc, end + PAGEBLOCK_PAGES);
                }
                cc.migrate_pfn = end;
                low = end;
                continue;
            }
            let scanned = self.isolate_migratepages_block(cc, low, end);
            return Some((low..cc.migrate_pfn, scanned));
        }
    }

    /// `suitable_migration_source`: a pageblock that is no compound page as a whole, on a list or not; a task that may not wait takes pages of movable
    /// pageblocks alone, or of those of the allocation's type.
    fn is_migration_source(&self, cc: &CompactControl, block: Pfn) -> bool {
        let whole = self.is_whole(block);
        let mode = cc.asked.mode;
        let wanted = match cc.rules.compact_async {
            CompactAsync::All => None,
            CompactAsync::Movable | CompactAsync::BlockByBlock => {
                mode.is_async().then_some(MigrateType::Movable)
            }
            CompactAsync::OwnType => (mode == Mode::Async).then_some(cc.asked.list),
        };
        let of_type = |list| self.zones[cc.zone].pageblock_type(block) == list;
        !(whole && cc.scans_free_lists()) && wanted.is_none_or(of_type)
    }

    /// `pageblock_skip_persistent`: a compound page takes up all of a pageblock.
    pub(super) fn is_whole(&self, block: Pfn) -> bool {
        let page = &self.pages[block];
        let folio = !page.has(flag::BUDDY) && page.order() >= PAGEBLOCK_ORDER;
        folio || self.held.compound_end(block).is_some()
    }

    /// `update_cached_migrate`, `update_pageblock_skip`: the next pass begins at a frame.
    fn update_cached_migrate(&mut self, cc: &CompactControl, pfn: Pfn) {
        let [quick, patient] = &mut self.zones[cc.zone].compaction.cached_migrate_pfn;
        *quick = pfn.max(*quick);
        if !cc.asked.mode.is_async() {
            *patient = pfn.max(*patient);
        }
    }

    /// `fast_find_migrateblock`: the pageblock of a free block near the beginning of what is left between the scanners,
    /// if a large block is wanted; the fewer pages have to move, the better.
    fn fast_find_migrateblock(&mut self, cc: &mut CompactControl) -> Pfn {
        let pfn = cc.migrate_pfn;
        let zone = &mut self.zones[cc.zone];
        let begins = pfn == zone.start || pfn == pageblock_start(pfn);
        let order = match cc.order() {
            Some(order) if order > PAGE_ALLOC_COSTLY_ORDER => order,
            _ => return pfn,
        };
        if cc.finish_pageblock || !begins || !cc.scans_free_lists() || !cc.heeds_skip_hints() {
            return pfn;
        }
        // A movable pageblock is not to be cleared for something else that a task waits for.
        if cc.asked.mode.is_direct() && cc.asked.list != MigrateType::Movable {
            return pfn;
        }
        let limit = u64::from(cc.freelist_scan_limit());
        let distance = cc.free_pfn.saturating_sub(pfn) >> 1;
        let distance = if pfn == zone.start {
            distance
        } else {
            distance >> 2
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
                if cc.rules.fast_migrateblock == FastMigrateblock::MarkedFirst {
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
        let begins_block = low == pageblock_start(low);
        let marks = begins_block && cc.heeds_skip_hints() && cc.scans_free_lists();
        let (mut pfn, mut scanned, mut marked) = (low, 0, false);
        let before = cc.migratepages.len();
        if marks && *self.zones[cc.zone].skips(low) {
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
                scanned += cc.passed(block) - 1;
                pfn += block as Pfn;
                continue;
            }
            if let Some(frames) = self.cannot_be_isolated(cc, pfn) {
                scanned += cc.passed(u64::from(frames)) - 1;
                pfn += frames;
                if let Some(wanted_end) = wanted_end {
                    for at in cc.migratepages.drain(before..) {
                        self.put_back_isolated(at);
                    }
                    pfn = pfn.max(wanted_end);
                }
                continue;
            }
            // Others are to leave the pageblock alone as soon as there is something in it.
            if marks && !marked {
                marked = true;
                let known = std::mem::replace(self.zones[cc.zone].skips(low), true);
                if known && !cc.finish_pageblock {
                    pfn = end;
                    break;
                }
            }
            let head = self.pages.head(pfn);
            let frames = self.pages.folio(head);
            scanned += u64::from(frames.end - pfn) - 1;
            pfn = frames.end;
            if self.pages[head].has(flag::LRU) {
                self.lru_del(head);
            }
            cc.migratepages.push(head);
            if self.is_enough(cc) {
                break;
            }
        }
        pfn = pfn.min(end);
        let isolated = self.pages.count_pages(&cc.migratepages[before..]);
        self.note_scanned_block(cc, low, pfn == end, isolated, marked);
        cc.total_migrate_scanned += scanned;
        cc.migrate_pfn = pfn;
        self.stat.compact_isolated += isolated;
        scanned
    }

    /// As many pages are isolated as move together, and no more of the pageblock is needed.
    fn is_enough(&self, cc: &CompactControl) -> bool {
        !cc.finish_pageblock
            && self.pages.count_pages(&cc.migratepages) >= COMPACT_CLUSTER_MAX as u64
    }

    /// What is known of a pageblock that has been scanned from a frame on, to its end or not.
    fn note_scanned_block(
        &mut self,
        cc: &CompactControl,
        low: Pfn,
        to_end: bool,
        isolated: u64,
        marked: bool,
    ) {
        let nothing = isolated == 0;
        if !to_end || !nothing && !cc.finish_pageblock || !cc.knows_pageblocks() {
            return;
        }
        if !cc.scans_free_lists() {
            if cc.heeds_skip_hints() {
                *self.zones[cc.zone].skips(low) = true;
                self.update_cached_migrate(cc, pageblock_start(low));
            }
            return;
        }
        if low == pageblock_start(low) && !marked {
            *self.zones[cc.zone].skips(low) = true;
        }
        // It goes on to the end of the pageblock behind this one.
        self.update_cached_migrate(cc, pageblock_start(low) + 2 * PAGEBLOCK_PAGES);
    }

    /// `putback_movable_pages`: a page that was isolated goes back to its list; that of unevictable pages is not one of the model's.
    pub(super) fn put_back_isolated(&mut self, pfn: Pfn) {
        if !self.pages[pfn].is_unevictable() {
            self.lru_add(pfn);
        }
    }

    /// Whether a task holds a page that is left alone for that.
    fn is_held(&self, cc: &CompactControl, folio: &Page) -> bool {
        let held = folio.is_gathered() && !folio.has(flag::SWAPCACHE);
        held && cc.rules.compact_held == CompactHeld::Left
    }

    /// Frames, from one that is not free on, in which there is nothing to isolate; none if its page can be.
    fn cannot_be_isolated(&self, cc: &CompactControl, pfn: Pfn) -> Option<Pfn> {
        if let Some(end) = self.held.compound_end(pfn) {
            return Some(end - pfn);
        }
        let head = self.pages.head(pfn);
        let folio = &self.pages[head];
        let order = folio.order();
        let left = self.pages.folio(head).end - pfn;
        if order > 0 && cc.rules.folio_migration == FolioMigration::Skipped {
            return Some(left);
        }
        let listed = match cc.rules.compact_unevictable {
            CompactUnevictable::Left => folio.has(flag::LRU),
            CompactUnevictable::Moved => folio.is_listed(),
        };
        if !listed || folio.has(flag::WRITEBACK) {
            return Some(1);
        }
        if self.is_held(cc, folio) {
            return Some(left);
        }
        // A folio as large as what is wanted is not worth moving, one that is read cannot be, and one that was begun in the
        // pageblock before is left alone.
        let target = cc.order().unwrap_or(PAGEBLOCK_ORDER).min(PAGEBLOCK_ORDER);
        let stays = order > 0 && (order >= target || folio.has(flag::LOCKED) || head != pfn);
        stays.then_some(left)
    }
}

impl CompactControl {
    /// What counts as scanned of so many frames that are gone past at once.
    pub(super) fn passed(&self, frames: u64) -> u64 {
        match self.rules.compact_counts {
            CompactCounts::Looks => 1,
            CompactCounts::Frames => frames,
        }
    }

    /// The kernel remembers what scanners found in pageblocks.
    fn knows_pageblocks(&self) -> bool {
        matches!(
            self.rules.compact_start,
            CompactStart::SkipHints | CompactStart::OwnPosition
        )
    }
}
