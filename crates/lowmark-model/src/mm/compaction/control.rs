//! One pass of compaction over a zone: what it is done for and how, and where its scanners are
//! (`struct compact_control`).

use super::free_pages::FreePages;
use super::pageblock_start;
use crate::ids::ZoneId;
use crate::kernel::{Blocks, CompactAsync, CompactScan, CompactStart, KswapdBlocks};
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{MigrateType, PAGEBLOCK_ORDER, Pfn, ZoneType};

/// Who compacts, and how (`enum migrate_mode`, `direct_compaction`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// kcompactd.
    Background,
    /// kswapd, without waiting.
    Kswapd,
    /// A task that gives up soon.
    Async,
    /// A task that does not.
    SyncLight,
    /// The same at last: all of the zone, whatever is known of it.
    Full,
}

impl Mode {
    /// It may not wait (`MIGRATE_ASYNC`).
    pub(super) fn is_async(self) -> bool {
        matches!(self, Mode::Kswapd | Mode::Async)
    }

    /// A task that wants a block (`direct_compaction`).
    pub(super) fn is_direct(self) -> bool {
        matches!(self, Mode::Async | Mode::SyncLight | Mode::Full)
    }
}

/// What it is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// A free block of this order.
    Block(usize),
    /// A zone that is less fragmented (`proactive_compaction`).
    Score,
}

/// What is asked of a pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) goal: Goal,
    pub(super) mode: Mode,
    /// Class of the allocation, whose reserves are not for it.
    pub(super) class: ZoneType,
    /// Type of the pageblocks that the allocation belongs in.
    pub(super) list: MigrateType,
}

impl Asked {
    /// What kcompactd and kswapd ask for: a block for the kernel itself.
    pub(super) fn in_background(goal: Goal, mode: Mode, class: ZoneType) -> Asked {
        Asked {
            goal,
            mode,
            class,
            list: MigrateType::Unmovable,
        }
    }
}

/// `fast_start_pfn`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FastStart {
    /// Nothing was found yet.
    Unknown,
    /// The first free block of all that were found.
    From(Pfn),
    /// The scanner has begun there since.
    Used,
}

/// One pass over a zone.
#[derive(Debug)]
pub(super) struct CompactControl {
    pub(super) zone: ZoneId,
    pub(super) asked: Asked,
    /// The rules that it works by.
    pub(super) rules: Blocks,
    /// Where the migrate scanner is.
    pub(super) migrate_pfn: Pfn,
    /// Where the free scanner is.
    pub(super) free_pfn: Pfn,
    /// Where the free scanner began.
    pub(super) start_free_pfn: Pfn,
    /// The free scanner has begun anew at the end of the zone (3.6).
    pub(super) wrapped: bool,
    /// The migrate scanner began with the zone.
    pub(super) whole_zone: bool,
    /// Isolated pages that are to move, in the order in which they were found.
    pub(super) migratepages: Vec<Pfn>,
    /// Isolated free pages.
    pub(super) freepages: FreePages,
    /// Both positions of the migrate scanner were the same, and stay so until something is found (`update_cached`).
    pub(super) keeps_together: bool,
    /// All of the pageblock is to be isolated.
    pub(super) finish_pageblock: bool,
    /// Order whose free blocks are looked through first.
    pub(super) search_order: usize,
    /// Searches in a row that found nothing.
    pub(super) fast_search_fail: u32,
    /// Where the first pageblock begins that such a search has found.
    pub(super) fast_start: FastStart,
    pub(super) total_migrate_scanned: u64,
    pub(super) total_free_scanned: u64,
    /// Pageblocks that the scanners have come to, whether they were gone through or passed over.
    pub(super) blocks_met: u64,
    /// Pages that have moved.
    pub(super) moved: u64,
    /// Entries of page tables that mapped them.
    pub(super) remapped: u64,
    /// Folios that were split because there was no room for them.
    pub(super) split: u64,
    /// Pageblock that was migrated from last and not flushed since.
    pub(super) last_migrated: Option<Pfn>,
}

impl CompactControl {
    /// A pass that begins where the kernel of the era begins it.
    pub(super) fn new(zone: &mut Zone, id: ZoneId, asked: Asked, rules: Blocks) -> CompactControl {
        zone.init_cached_positions();
        let known = &zone.compaction;
        let patient = rules.compact_start == CompactStart::OwnPosition && !asked.mode.is_async();
        let all = asked.goal == Goal::Score || asked.mode == Mode::Full;
        let migrate_pfn = match rules.compact_start {
            CompactStart::ZoneEnds | CompactStart::LastFree => zone.start,
            _ if all => zone.start,
            _ => known.cached_migrate_pfn[usize::from(patient)],
        };
        let free_pfn = match rules.compact_start {
            CompactStart::ZoneEnds => zone.last_pageblock(),
            _ if all => zone.last_pageblock(),
            _ => known.cached_free_pfn,
        };
        let by_lists = rules.compact_scan == CompactScan::FreeLists;
        let whole_zone = if by_lists && !all {
            migrate_pfn <= known.init_migrate_pfn
        } else {
            migrate_pfn == zone.start
        };
        let [quick, steady] = known.cached_migrate_pfn;
        let keeps_together = by_lists && asked.mode.is_async() && quick == steady;
        CompactControl {
            zone: id,
            asked,
            rules,
            migrate_pfn,
            free_pfn,
            start_free_pfn: free_pfn,
            wrapped: false,
            whole_zone,
            migratepages: Vec::new(),
            freepages: FreePages::new(rules.folio_migration),
            keeps_together,
            finish_pageblock: false,
            search_order: match asked.goal {
                Goal::Block(order) => order,
                Goal::Score => 0,
            },
            fast_search_fail: 0,
            fast_start: FastStart::Unknown,
            total_migrate_scanned: 0,
            blocks_met: 0,
            total_free_scanned: 0,
            moved: 0,
            remapped: 0,
            split: 0,
            last_migrated: None,
        }
    }

    /// Order of the block that it is done for; none if it is not for a block.
    pub(super) fn order(&self) -> Option<usize> {
        match self.asked.goal {
            Goal::Block(order) => Some(order),
            Goal::Score => None,
        }
    }

    /// `compact_scanners_met`
    pub(super) fn scanners_met(&self) -> bool {
        self.free_pfn >> PAGEBLOCK_ORDER <= self.migrate_pfn >> PAGEBLOCK_ORDER
    }

    /// Whether what is known of pageblocks counts (`ignore_skip_hint`).
    pub(super) fn heeds_skip_hints(&self) -> bool {
        let known = matches!(
            self.rules.compact_start,
            CompactStart::SkipHints | CompactStart::OwnPosition
        );
        let ignored = match self.asked.mode {
            Mode::Background => self.rules.kswapd_blocks == KswapdBlocks::Kcompactd,
            mode => mode == Mode::Full,
        };
        known && !ignored && self.asked.goal != Goal::Score
    }

    /// Scanners find pageblocks through the lists of free blocks.
    pub(super) fn scans_free_lists(&self) -> bool {
        self.rules.compact_scan == CompactScan::FreeLists
    }

    /// Where the block around a frame ends all of whose pages must move if any is to (`skip_on_failure`).
    pub(super) fn wanted_block_end(&self, pfn: Pfn) -> Option<Pfn> {
        let block_by_block = matches!(
            self.rules.compact_async,
            CompactAsync::BlockByBlock | CompactAsync::OwnType
        );
        let order = self.order()?;
        (block_by_block && self.asked.mode == Mode::Async).then_some(((pfn >> order) + 1) << order)
    }

    /// Pageblock of the last page that was isolated.
    pub(super) fn note_migrated(&mut self, zone: &Zone) {
        self.last_migrated = Some(pageblock_start(self.migrate_pfn - 1).max(zone.start));
    }
}
