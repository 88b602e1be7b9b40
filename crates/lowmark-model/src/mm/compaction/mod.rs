//! Memory compaction (`mm/compaction.c`): pages move together so that larger blocks become free.
//!
//! 1. The *migrate scanner* goes up from the beginning of a zone and isolates pages of users, 32 at a time, or what
//!    is left of a pageblock that it has begun; the *free scanner* comes down from the end and isolates free pages to
//!    move them to.
//! 2. Each page that moves, and each that could not, goes to the head of its LRU list: it is the last of all to be
//!    reclaimed now.
//! 3. When the scanners meet, or there is a block as large as was asked for, it ends.
//!
//! It is done by kcompactd ([`kcompactd`]), and by who wants a block ([`direct`]). Large folios that move are split.
//! Left out is that 6.1 waits for pages that are being read.

mod direct;
mod events;
mod free_scanner;
pub(crate) mod kcompactd;
mod migrate;
mod migrate_scanner;
mod zone;

use crate::ids::ZoneId;
pub(crate) use zone::compact_gap;

use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use crate::world::{Sys, World};

/// Pages that are isolated at once (`COMPACT_CLUSTER_MAX`).
const COMPACT_CLUSTER_MAX: usize = 32;
/// Compaction is put off 2^6 times at most (`COMPACT_MAX_DEFER_SHIFT`).
const COMPACT_MAX_DEFER_SHIFT: u32 = 6;
/// A frame that a scanner looks at takes so much less time than a page that reclaim scans: 512 frames took 60 us in a guest
/// of 6.1, and such a page 5.5 us.
const LOOKED_AT_FOR_ONE_SCANNED: u64 = 48;

/// What came of compacting a zone (`enum compact_result`), the better the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CompactResult {
    /// There was too little free memory, or too much.
    Skipped,
    /// It has failed too lately.
    Deferred,
    /// The scanners have not met.
    Continue,
    /// They have.
    Complete,
    /// Other things come first.
    PartialSkipped,
    /// There was no room to go on.
    Contended,
    /// There is a block of the order, or the zone is less fragmented than it may be.
    Success,
}

/// Who compacts, and how (`enum migrate_mode`, `direct_compaction`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// kcompactd.
    Background,
    /// A task that gives up soon.
    Async,
    /// A task that does not.
    SyncLight,
}

/// What it is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// A free block of this order.
    Block(usize),
    /// A zone that is less fragmented (`proactive_compaction`).
    Score,
}

/// `fast_start_pfn`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FastStart {
    /// Nothing was found yet.
    Unknown,
    /// The first free block of all that were found.
    From(Pfn),
    /// The scanner has begun there since.
    Used,
}

/// One pass over a zone (`struct compact_control`).
#[derive(Debug)]
struct CompactControl {
    zone: ZoneId,
    goal: Goal,
    mode: Mode,
    /// Where the migrate scanner is.
    migrate_pfn: Pfn,
    /// Where the free scanner is.
    free_pfn: Pfn,
    /// Isolated pages that are to move, in the order in which they were found.
    migratepages: Vec<Pfn>,
    /// Isolated free pages; the next to be used is the last.
    freepages: Vec<Pfn>,
    /// All of the pageblock is to be isolated.
    finish_pageblock: bool,
    /// Order whose free blocks are looked through first.
    search_order: usize,
    /// Searches in a row that found nothing.
    fast_search_fail: u32,
    /// Where the first pageblock begins that such a search has found.
    fast_start: FastStart,
    total_migrate_scanned: u64,
    total_free_scanned: u64,
    /// Pages that have moved.
    moved: u64,
    /// Pageblock that was migrated from last and not flushed since.
    last_migrated: Option<Pfn>,
}

impl CompactControl {
    fn new(zone: &Zone, id: ZoneId, goal: Goal, mode: Mode) -> CompactControl {
        let (migrate_pfn, free_pfn) = match goal {
            Goal::Score => (zone.start, zone.last_pageblock()),
            Goal::Block(_) => {
                let known = &zone.compaction;
                (
                    known.cached_migrate_pfn[usize::from(mode != Mode::Async)],
                    known.cached_free_pfn,
                )
            }
        };
        CompactControl {
            zone: id,
            goal,
            mode,
            migrate_pfn,
            free_pfn,
            migratepages: Vec::new(),
            freepages: Vec::new(),
            finish_pageblock: false,
            search_order: match goal {
                Goal::Block(order) => order,
                Goal::Score => 0,
            },
            fast_search_fail: 0,
            fast_start: FastStart::Unknown,
            total_migrate_scanned: 0,
            total_free_scanned: 0,
            moved: 0,
            last_migrated: None,
        }
    }

    /// `compact_scanners_met`
    fn scanners_met(&self) -> bool {
        self.free_pfn >> PAGEBLOCK_ORDER <= self.migrate_pfn >> PAGEBLOCK_ORDER
    }

    /// Whether what is known of pageblocks counts (`ignore_skip_hint`).
    fn heeds_skip_hints(&self) -> bool {
        self.goal != Goal::Score
    }
}

/// `pageblock_start_pfn`
fn pageblock_start(pfn: Pfn) -> Pfn {
    pfn & !(PAGEBLOCK_PAGES - 1)
}

/// `compact_zone`: moves pages until the goal is reached or the scanners meet.
async fn compact_zone(sys: &Sys, cc: &mut CompactControl) -> CompactResult {
    sys.world().trace_pass(cc, None);
    let result = loop {
        let result = sys.world().compact_finished(cc);
        if result != CompactResult::Continue {
            break result;
        }
        let began = cc.migrate_pfn;
        cc.finish_pageblock = cc.last_migrated == Some(pageblock_start(began));
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
        sys.world().mm.drain_after(cc);
    };
    let world = &mut *sys.world();
    world.mm.end_compaction(cc);
    world.trace_pass(cc, Some(result));
    result
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
    /// What was freed on this CPU merges as soon as the scanner has left the block that it is for.
    fn drain_after(&mut self, cc: &mut CompactControl) {
        let (Goal::Block(order), Some(last)) = (cc.goal, cc.last_migrated) else {
            return;
        };
        if last < cc.migrate_pfn & !((1 << order) - 1) {
            self.drain_local_pages(cc.zone);
            cc.last_migrated = None;
        }
    }

    /// Free pages that were not needed go back.
    fn end_compaction(&mut self, cc: &mut CompactControl) {
        let highest = cc.freepages.iter().copied().max();
        for pfn in cc.freepages.drain(..) {
            self.free_page(pfn);
        }
        let zone = &mut self.zones[cc.zone];
        if let Some(pfn) = highest {
            let cached = &mut zone.compaction.cached_free_pfn;
            *cached = (*cached).max(pageblock_start(pfn));
        }
        let stat = &mut self.stat;
        stat.compact_migrate_scanned += cc.total_migrate_scanned;
        stat.compact_free_scanned += cc.total_free_scanned;
        if cc.mode == Mode::Background {
            stat.compact_daemon_migrate_scanned += cc.total_migrate_scanned;
            stat.compact_daemon_free_scanned += cc.total_free_scanned;
        }
    }
}

impl World {
    /// `__compact_finished`
    fn compact_finished(&mut self, cc: &CompactControl) -> CompactResult {
        if cc.scanners_met() {
            let zone = &mut self.mm.zones[cc.zone];
            zone.reset_cached_positions();
            zone.compaction.blockskip_flush |= cc.mode != Mode::Background;
            return CompactResult::Complete;
        }
        let zone = &self.mm.zones[cc.zone];
        if cc.goal == Goal::Score && self.kswapd_is_running(zone.node) {
            return CompactResult::PartialSkipped;
        }
        let reached = match cc.goal {
            Goal::Score => zone.fragmentation_score() <= self.mm.score_wmarks()[0],
            // A pageblock that was begun is finished; whatever block there is, the kernel's own pages can have it.
            Goal::Block(_) if cc.migrate_pfn != pageblock_start(cc.migrate_pfn) => false,
            Goal::Block(order) if cc.mode == Mode::Background => zone.has_block(order),
            Goal::Block(order) => zone.has_movable_block(order),
        };
        match reached {
            true => CompactResult::Success,
            false => CompactResult::Continue,
        }
    }

    /// Isolates some pages and moves them; the CPU time that it takes, ns.
    fn compact_round(&mut self, cc: &mut CompactControl) -> (Round, u64) {
        let before = (cc.total_migrate_scanned + cc.total_free_scanned, cc.moved);
        let isolated = self.mm.isolate_migratepages(cc);
        let taken = cc.migratepages.len() as u64;
        if let Some((range, scanned)) = isolated {
            self.trace_isolated(range, scanned, taken);
        }
        let round = match taken {
            0 => Round::Done,
            _ => {
                let zone = &self.mm.zones[cc.zone];
                cc.last_migrated = Some(pageblock_start(cc.migrate_pfn - 1).max(zone.start));
                let round = self.mm.migrate_isolated(cc);
                let moved = cc.moved - before.1;
                self.trace_migrated(moved, taken - moved);
                round
            }
        };
        let looked_at = cc.total_migrate_scanned + cc.total_free_scanned - before.0;
        let costs = &self.costs;
        let moved = (cc.moved - before.1) * costs.migrate_page_ns;
        let cost = moved + looked_at * costs.scan_page_ns / LOOKED_AT_FOR_ONE_SCANNED;
        (round, cost)
    }
}

impl Mm {
    /// `migrate_pages`: the pages that were found last go first. Those that cannot move go back to their lists.
    fn migrate_isolated(&mut self, cc: &mut CompactControl) -> Round {
        let wanted = cc.migratepages.len();
        let (mut left, mut unmovable) = (0, 0);
        let mut no_room = false;
        for pfn in std::mem::take(&mut cc.migratepages).into_iter().rev() {
            if cc.freepages.is_empty() && !no_room {
                self.isolate_freepages(cc, wanted);
                no_room = cc.freepages.is_empty();
            }
            let movable = self.is_migratable(pfn);
            match cc.freepages.pop() {
                Some(to) if movable => {
                    self.migrate_page(pfn, to);
                    cc.moved += 1;
                }
                unused => {
                    unmovable += u64::from(!no_room);
                    cc.freepages.extend(unused);
                    self.lru_add(pfn);
                    left += 1;
                }
            }
        }
        self.stat.pgmigrate_success += (wanted - left) as u64;
        // Of those for which there is no room, one counts.
        self.stat.pgmigrate_fail += unmovable + u64::from(no_room);
        let in_block = cc.migrate_pfn != pageblock_start(cc.migrate_pfn);
        let rescans = in_block && cc.heeds_skip_hints() && !cc.finish_pageblock;
        match left > 0 {
            true if no_room && !cc.scanners_met() => Round::NoRoom,
            true if rescans => Round::Rescan,
            _ => Round::Done,
        }
    }
}

#[cfg(test)]
mod tests;
