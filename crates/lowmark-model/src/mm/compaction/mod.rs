//! Memory compaction (`mm/compaction.c`): pages move together so that larger blocks become free.
//!
//! 1. The *migrate scanner* goes up from the beginning of a zone and isolates pages of users, 32 at a time, or what
//!    is left of a pageblock that it has begun; the *free scanner* comes down from the end and isolates free pages to
//!    move them to.
//! 2. Each page that moves, and each that could not, goes to the head of its LRU list: it is the last of all to be
//!    reclaimed now.
//! 3. When the scanners meet, or there is a block as large as was asked for, it ends.
//!
//! It is done by who wants a block ([`direct`]), by kswapd from 3.4 to 4.5 ([`pgdat`]), and by kcompactd from 4.6 on
//! ([`kcompactd`]). What differs between kernels are the mechanisms of [`Blocks`](crate::kernel::Blocks).
//!
//! Left out are: passes that end because a lock is contended or another task is to run; that 6.1 waits for pages that are being
//! read; that `vm.compact_unevictable_allowed` may be 0; before 3.3, that pages under writeback are isolated and fail to move where nobody waits for them.

mod control;
mod direct;
mod events;
mod free_pages;
mod free_scanner;
pub(crate) mod kcompactd;
mod migrate;
mod migrate_scanner;
mod pgdat;
mod suitable;
mod told;
mod zone;

use control::{CompactControl, Goal, Mode};
pub(in crate::mm) use pgdat::compact_pgdat;
pub(in crate::mm) use suitable::Suitable;
pub(crate) use suitable::compact_gap;
pub(crate) use told::{Told, Value};

use crate::kernel::{
    BlockCapture, CompactRetry, CompactStart, CompactWriteback, DaemonScans, FailedMigration,
    PageblockCheck,
};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Capture;
use crate::mm::io::wait_on_page;
use crate::mm::types::{CompactResult, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, flag};
use crate::mm::vmstat::VmStat;
use crate::world::{Sys, World};
use lowmark_record::Kind;

/// Pages that are isolated at once (`COMPACT_CLUSTER_MAX`).
const COMPACT_CLUSTER_MAX: usize = 32;
/// Compaction is put off 2^6 times at most (`COMPACT_MAX_DEFER_SHIFT`).
const COMPACT_MAX_DEFER_SHIFT: u32 = 6;

/// `pageblock_start_pfn`
fn pageblock_start(pfn: Pfn) -> Pfn {
    pfn & !(PAGEBLOCK_PAGES - 1)
}

/// `compact_zone`: moves pages until the goal is reached or the scanners meet. A block that was captured is the task's.
async fn compact_zone(sys: &Sys, cc: &mut CompactControl) -> (CompactResult, Option<Pfn>) {
    sys.world().trace_pass(cc, None);
    let mut captured = None;
    let result = loop {
        let result = sys.world().compact_finished(cc);
        if result != CompactResult::Continue {
            break result;
        }
        wait_for_writeback(sys, cc).await;
        let began = cc.migrate_pfn;
        cc.finish_pageblock =
            cc.scans_free_lists() && cc.last_migrated == Some(pageblock_start(began));
        let contended = loop {
            let (round, cost) = sys.world().compact_round(cc);
            sys.charge_kernel(cost).await;
            match round {
                Round::Rescan => cc.finish_pageblock = true,
                Round::Done => break false,
                Round::NoRoom => break true,
            }
        };
        if contended {
            break CompactResult::Contended;
        }
        captured = sys.world().mm.drain_after(cc);
        if captured.is_some() {
            break CompactResult::Success;
        }
    };
    let world = &mut *sys.world();
    world.mm.end_compaction(cc);
    world.trace_pass(cc, Some(result));
    (result, captured)
}

/// To 3.2 pages that are being written are waited for by who may wait. Nothing is isolated meanwhile, so that whatever becomes
/// of the pages is seen afterwards.
async fn wait_for_writeback(sys: &Sys, cc: &CompactControl) {
    let waits = match cc.rules.compact_writeback {
        CompactWriteback::Waits => true,
        CompactWriteback::SyncWaits => !cc.asked.mode.is_async(),
        CompactWriteback::Skipped => false,
    };
    if !waits {
        return;
    }
    let mut at = cc.migrate_pfn;
    loop {
        let next = sys.world().mm.next_under_writeback(cc, at);
        let Some(pfn) = next else { break };
        wait_on_page(sys, pfn, flag::WRITEBACK).await;
        at = pfn + 1;
    }
}

/// What one look of the migrate scanner came to.
enum Round {
    Done,
    /// A page could not be moved: all of its pageblock is to be gone through.
    Rescan,
    /// There are no free pages to move to.
    NoRoom,
}

impl Mm {
    /// The next page, from one on, that is being written and would be isolated together with those before it.
    fn next_under_writeback(&self, cc: &CompactControl, from: Pfn) -> Option<Pfn> {
        let end = pageblock_start(cc.migrate_pfn) + PAGEBLOCK_PAGES;
        let listed = |pfn: &Pfn| self.pages[*pfn].has(flag::LRU);
        let together = (cc.migrate_pfn..end.min(cc.free_pfn)).filter(listed);
        let mut later = together
            .take(COMPACT_CLUSTER_MAX)
            .skip_while(|&pfn| pfn < from);
        later.find(|&pfn| self.pages[pfn].has(flag::WRITEBACK))
    }

    /// What was freed on this CPU merges as soon as the scanner has left the block that it is for. That block, if the task has
    /// captured it.
    fn drain_after(&mut self, cc: &mut CompactControl) -> Option<Pfn> {
        let (order, last) = (cc.order()?, cc.last_migrated?);
        if last >= cc.migrate_pfn & !((1 << order) - 1) {
            return None;
        }
        cc.last_migrated = None;
        let captures = cc.rules.block_capture == BlockCapture::On && cc.asked.mode.is_direct();
        self.zones[cc.zone].compaction.capture = captures.then_some(Capture {
            order,
            list: cc.asked.list,
            page: None,
        });
        self.drain_local_pages(cc.zone);
        self.zones[cc.zone].compaction.capture.take()?.page
    }

    /// Free pages that were not needed go back.
    fn end_compaction(&mut self, cc: &mut CompactControl) {
        let left = cc.freepages.drain();
        let highest = left.iter().map(|&(pfn, _)| pfn).max();
        for (pfn, order) in left {
            match order {
                0 => self.free_page(pfn),
                order => self.free_pages(pfn, order),
            }
        }
        let zone = &mut self.zones[cc.zone];
        if let (Some(pfn), true) = (highest, cc.rules.compact_start != CompactStart::LastFree) {
            let cached = &mut zone.compaction.cached_free_pfn;
            *cached = (*cached).max(pageblock_start(pfn));
        }
        let stat = &mut self.stat;
        stat.compact_migrate_scanned += cc.total_migrate_scanned;
        stat.compact_free_scanned += cc.total_free_scanned;
        let counts = match cc.asked.goal {
            Goal::Score => cc.rules.daemon_scans == DaemonScans::All,
            _ => true,
        };
        if cc.asked.mode == Mode::Background && counts {
            stat.compact_daemon_migrate_scanned += cc.total_migrate_scanned;
            stat.compact_daemon_free_scanned += cc.total_free_scanned;
        }
    }
}

impl World {
    /// `compact_finished`
    fn compact_finished(&mut self, cc: &mut CompactControl) -> CompactResult {
        let (result, looked) = self.has_finished(cc);
        let zone = &self.mm.zones[cc.zone];
        let order = cc.order().map_or(-1, |order| order as i64);
        let name = told::finished_name(result, looked, &cc.rules);
        self.mm
            .told
            .result(Kind::CompactionFinished, zone, order, name);
        self.tell();
        result
    }

    /// `__compact_finished`, and whether it has looked for a block.
    fn has_finished(&mut self, cc: &mut CompactControl) -> (CompactResult, bool) {
        if self.sched.current_killed() {
            return (CompactResult::Contended, false);
        }
        if cc.scanners_met() {
            let zone = &mut self.mm.zones[cc.zone];
            if cc.rules.compact_start == CompactStart::LastFree && !cc.wrapped {
                cc.wrapped = true;
                cc.free_pfn = zone.last_pageblock();
                zone.compaction.cached_free_pfn = cc.free_pfn;
                return (CompactResult::Continue, false);
            }
            zone.scanners_have_met(&cc.asked);
            return (cc.complete(), false);
        }
        if cc.wrapped && cc.free_pfn <= cc.start_free_pfn {
            return (CompactResult::Complete, false);
        }
        let zone = &self.mm.zones[cc.zone];
        if cc.asked.goal == Goal::Score && self.kswapd_is_running(zone.node) {
            return (CompactResult::PartialSkipped, false);
        }
        let (looked, reached) = match cc.asked.goal {
            Goal::Score => (
                false,
                zone.fragmentation_score() <= self.mm.score_wmarks()[0],
            ),
            Goal::Block(order) => {
                let looked = zone.is_worth_a_look(cc, order);
                (looked, looked && zone.compacted(cc, order))
            }
        };
        if reached {
            (CompactResult::Success, looked)
        } else {
            (CompactResult::Continue, looked)
        }
    }

    /// Isolates some pages and moves them; the CPU time that it takes, ns.
    fn compact_round(&mut self, cc: &mut CompactControl) -> (Round, u64) {
        let before = (
            cc.total_migrate_scanned + cc.total_free_scanned,
            cc.moved,
            cc.remapped,
        );
        let met_before = cc.blocks_met;
        let isolated = self.mm.isolate_migratepages(cc);
        let taken = self.mm.pages.count_pages(&cc.migratepages);
        if let Some((range, scanned)) = isolated {
            self.trace_isolated(range, scanned, taken);
        }
        let round = match taken {
            0 => {
                self.mm.keep_positions_together(cc);
                Round::Done
            }
            _ => {
                cc.keeps_together = false;
                cc.note_migrated(&self.mm.zones[cc.zone]);
                self.trace_migrate_pages(cc, None);
                let counted = |stat: &VmStat| (stat.pgmigrate_success, stat.pgmigrate_fail);
                let (succeeded, failed) = counted(&self.mm.stat);
                let split = cc.split;
                let round = self.mm.migrate_isolated(cc);
                let after = counted(&self.mm.stat);
                let done = [after.0 - succeeded, after.1 - failed, cc.split - split];
                self.trace_migrate_pages(cc, Some(done));
                let moved = cc.moved - before.1;
                self.mm.stat.compact_blocks_moved += 1;
                self.trace_migrated(moved, taken - moved);
                round
            }
        };
        let looked_at = cc.total_migrate_scanned + cc.total_free_scanned - before.0;
        let costs = &self.costs;
        let moved = (cc.moved - before.1) * costs.migrate_page_ns
            + (cc.remapped - before.2) * costs.remap_page_ns();
        let frames = match cc.rules.pageblock_check {
            PageblockCheck::FirstFrame => 1,
            PageblockCheck::BothEnds => 2,
        };
        let met = costs.pageblocks_ns(cc.blocks_met - met_before, frames);
        (round, moved + costs.frames_ns(looked_at) + met)
    }
}

impl CompactControl {
    /// The scanners have met. From 4.7 on it counts whether the pass has seen all of the zone (c8f7de0bfae3).
    fn complete(&self) -> CompactResult {
        let told_apart = self.rules.compact_retry != CompactRetry::Never;
        if self.whole_zone || !told_apart {
            CompactResult::Complete
        } else {
            CompactResult::PartialSkipped
        }
    }
}

impl Mm {
    /// `migrate_pages`: the pages that were found last go first. Those that cannot move go back to their lists.
    fn migrate_isolated(&mut self, cc: &mut CompactControl) -> Round {
        let wanted = self.pages.count_pages(&cc.migratepages) as usize;
        let (mut left, mut unmovable) = (0, 0);
        let mut no_room = false;
        let mut heads = std::mem::take(&mut cc.migratepages);
        while let Some(pfn) = heads.pop() {
            let order = self.pages[pfn].order();
            // `compaction_alloc`: where there is nothing large enough, more is isolated, once.
            let mut room = cc.freepages.take(order);
            if room.is_none() && !no_room {
                self.isolate_freepages(cc, wanted);
                no_room = cc.freepages.is_empty();
                room = cc.freepages.take(order);
            }
            let movable = self.is_migratable(pfn);
            match room {
                Some(to) if movable => {
                    cc.remapped += self.mapped_entries(pfn);
                    self.migrate_folio(pfn, to);
                    cc.moved += 1 << order;
                }
                None if order > 0 && movable && !no_room && !self.pages[pfn].has(flag::DIRTY) => {
                    // Its pages may fit one by one.
                    let frames = self.pages.folio(pfn);
                    self.split_folio(pfn);
                    cc.split += 1;
                    frames.clone().skip(1).for_each(|tail| self.lru_del(tail));
                    heads.extend(frames);
                }
                unused => {
                    unmovable += u64::from(!no_room) << order;
                    if let Some(room) = unused {
                        cc.freepages.put_back(room, order);
                    }
                    self.put_back_isolated(pfn);
                    left += 1 << order;
                }
            }
        }
        self.stat.pgmigrate_success += (wanted - left) as u64;
        // Of those for which there is no room, one counts.
        self.stat.pgmigrate_fail += unmovable + u64::from(no_room);
        self.stat.compact_pagemigrate_failed += left as u64;
        cc.after_failures(left > 0, no_room)
    }
}

impl CompactControl {
    /// What is next when pages are left that could not be moved.
    fn after_failures(&mut self, left: bool, no_room: bool) -> Round {
        if !left {
            return Round::Done;
        }
        if no_room && !self.scanners_met() {
            return Round::NoRoom;
        }
        let in_block = self.migrate_pfn != pageblock_start(self.migrate_pfn);
        if self.rules.failed_migration == FailedMigration::FinishesPageblock {
            let rescans = in_block && self.heeds_skip_hints() && !self.finish_pageblock;
            if !rescans {
                return Round::Done;
            }
            if self.order() == Some(PAGEBLOCK_ORDER) {
                self.last_migrated = None;
            }
            return Round::Rescan;
        }
        if let Some(end) = self.wanted_block_end(self.migrate_pfn - 1) {
            // The block that they are in will not become free.
            self.migrate_pfn = end;
            self.last_migrated = None;
        }
        Round::Done
    }
}

#[cfg(test)]
mod tests;
