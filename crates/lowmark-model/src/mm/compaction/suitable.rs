//! Whether compaction can help in a zone, and whether it has.

use super::control::{Asked, CompactControl, Goal, Mode};
use super::events::success_name;
use super::pageblock_start;
use crate::ids::ZoneId;
use crate::kernel::{CompactFinish, CompactSuitable};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{
    Gfp, MAX_ORDER, Mark, MigrateType, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, ZoneType,
};
use lowmark_record::{Kind, Release};

/// Whether compaction can help in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mm) enum Suitable {
    /// Too little is free, or it is for want of memory that there is no block (`COMPACT_SKIPPED`).
    Short,
    /// There is a block (`COMPACT_PARTIAL`, `COMPACT_SUCCESS`).
    HasBlock,
    /// There is room to move pages to (`COMPACT_CONTINUE`).
    Fragmented,
}

/// Free pages beside a mark that compaction needs (`compact_gap`).
pub(crate) fn compact_gap(order: usize) -> u64 {
    2 << order
}

impl Mm {
    /// `compaction_suitable` for an allocation that goes down to the min watermark, and its event. Since 6.5 it is the callers
    /// that look for a block, before they ask.
    pub(in crate::mm) fn compaction_suitable(
        &self,
        zone: &Zone,
        order: usize,
        class: ZoneType,
    ) -> Suitable {
        let (suitable, fragmented) = self.is_suitable(zone, order, class);
        let name = match suitable {
            Suitable::Fragmented => "continue",
            Suitable::Short if fragmented => "not_suitable_zone",
            Suitable::Short => "skipped",
            Suitable::HasBlock => success_name(&self.kernel.mechanisms.blocks),
        };
        let silent = self.kernel.version.release() >= Release::new(6, 5);
        if suitable != Suitable::HasBlock || !silent {
            self.told
                .result(Kind::CompactionSuitable, zone, order as i64, name);
        }
        suitable
    }

    /// Whether compaction can help in a zone, and whether there was room for it.
    fn is_suitable(&self, zone: &Zone, order: usize, class: ZoneType) -> (Suitable, bool) {
        let rule = self.kernel.mechanisms.blocks.compact_suitable;
        let costly = order > PAGE_ALLOC_COSTLY_ORDER;
        let (mark, class, room) = match rule {
            CompactSuitable::RoomFirst => (Mark::Low, ZoneType::Dma, Mark::Low),
            CompactSuitable::BlockFirst => (Mark::Low, class, Mark::Low),
            CompactSuitable::CostlyApart if costly => (Mark::Min, class, Mark::Low),
            CompactSuitable::CostlyApart => (Mark::Min, class, Mark::Min),
        };
        let room = zone.mark(room) + compact_gap(order);
        if rule != CompactSuitable::RoomFirst && zone.watermark_ok(order, zone.mark(mark), class) {
            return (Suitable::HasBlock, false);
        }
        if !zone.watermark_ok(0, room, class) {
            return (Suitable::Short, false);
        }
        let judged = costly || rule != CompactSuitable::CostlyApart;
        let index = zone.fragmentation_index(order);
        if judged && (0..=self.kernel.sysctl.extfrag_threshold as i64).contains(&index) {
            return (Suitable::Short, true);
        }
        let has_block = rule == CompactSuitable::RoomFirst
            && index == -1000
            && zone.watermark_ok(order, room, class);
        if has_block {
            (Suitable::HasBlock, true)
        } else {
            (Suitable::Fragmented, true)
        }
    }

    /// `compaction_zonelist_suitable`: would compaction have room in some zone if a part of what can be reclaimed there were
    /// free?
    pub(in crate::mm) fn room_could_be_made(&self, gfp: Gfp, order: usize) -> bool {
        let swap = self.swap.free_slots() > 0;
        let room = if order > PAGE_ALLOC_COSTLY_ORDER {
            Mark::Low
        } else {
            Mark::Min
        };
        let gap = compact_gap(order);
        let zonelist = self.zonelist(gfp).iter();
        let mut zones = zonelist.map(|&zone| &self.zones[zone]);
        zones.any(|zone| {
            let part = self.zone_reclaimable_pages(zone, swap) / order as u64;
            let available = zone.free_without_reserve() + part;
            zone.kind <= gfp.highest()
                && zone.watermark_ok_with(available, 0, zone.mark(room) + gap, gfp.highest())
        })
    }

    /// Whether an allocation finds a block in a zone that has been compacted, where the kernel looks
    /// (`try_to_compact_pages`, to 4.8).
    pub(super) fn has_block_after(&self, zone: &Zone, order: usize, class: ZoneType) -> bool {
        let class = match self.kernel.mechanisms.blocks.compact_suitable {
            CompactSuitable::RoomFirst => ZoneType::Dma,
            _ => class,
        };
        zone.watermark_ok(order, zone.mark(Mark::Low), class)
    }
}

impl Mm {
    /// `compaction_deferred` of a zone.
    pub(in crate::mm) fn compaction_deferred(&mut self, zone: ZoneId, order: usize) -> bool {
        let rule = self.kernel.mechanisms.blocks.compact_defer;
        let deferred = self.zones[zone].compaction_deferred(order, rule);
        if deferred {
            self.tell_deferral(Kind::CompactionDeferred, zone, order);
        }
        deferred
    }

    /// `defer_compaction` of a zone.
    pub(in crate::mm) fn defer_compaction(&mut self, zone: ZoneId, order: usize) {
        self.zones[zone].defer_compaction(order);
        self.tell_deferral(Kind::DeferCompaction, zone, order);
    }

    /// `compaction_defer_reset` of a zone, by a task that has allocated a block or has not yet.
    pub(in crate::mm) fn compaction_defer_reset(&mut self, zone: ZoneId, order: usize, has: bool) {
        if has {
            self.zones[zone].compaction_succeeded(order)
        } else {
            self.zones[zone].compaction_defer_reset(order)
        }
        self.tell_deferral(Kind::DeferReset, zone, order);
    }

    fn tell_deferral(&self, kind: Kind, zone: ZoneId, order: usize) {
        self.told.deferral(kind, &self.zones[zone], order);
    }
}

impl Zone {
    /// There is a block on the lists of the type, or one of which it may claim the pageblock.
    fn has_block_for(&self, order: usize, list: MigrateType) -> bool {
        self.has_block_of(order, list) || self.has_claimable(order, list)
    }

    fn has_block_of(&self, order: usize, list: MigrateType) -> bool {
        let areas = &self.free_area[list as usize][order..];
        areas.iter().any(|area| area.len() > 0)
    }

    /// `find_suitable_fallback`, of a pageblock that would be taken as a whole.
    fn has_claimable(&self, order: usize, list: MigrateType) -> bool {
        let rule = self.rules.migrate_types;
        let others = list.fallbacks().iter();
        let mut areas = others.flat_map(|&other| {
            let areas = &self.free_area[other as usize];
            (order..MAX_ORDER).filter(|&at| areas[at].len() > 0)
        });
        areas.any(|at| rule.may_claim(at, self.blocks.pageblock, list))
    }

    /// Whether `__compact_finished` looks for a block at all: to 4.11 above a watermark alone, from 5.1 on when a pageblock has
    /// been gone through.
    pub(super) fn is_worth_a_look(&self, cc: &CompactControl, order: usize) -> bool {
        let class = cc.asked.class;
        let mark = match cc.rules.compact_suitable {
            CompactSuitable::RoomFirst => self.mark(Mark::Low) + (1 << order),
            CompactSuitable::BlockFirst => self.mark(Mark::Low),
            CompactSuitable::CostlyApart => self.mark(Mark::Min),
        };
        let class = match cc.rules.compact_suitable {
            CompactSuitable::RoomFirst => ZoneType::Dma,
            _ => class,
        };
        match cc.rules.compact_finish {
            CompactFinish::OwnList | CompactFinish::Claimable => {
                self.watermark_ok(order, mark, class)
            }
            CompactFinish::NoWatermark => true,
            CompactFinish::WholePageblock => cc.migrate_pfn == pageblock_start(cc.migrate_pfn),
        }
    }

    /// Whether a pass that has looked has what it is done for (`__compact_finished`), but for the score of the zone.
    pub(super) fn compacted(&self, cc: &CompactControl, order: usize) -> bool {
        let list = cc.asked.list;
        let at_start = cc.migrate_pfn == pageblock_start(cc.migrate_pfn);
        match cc.rules.compact_finish {
            CompactFinish::OwnList => {
                let large = order.max(PAGEBLOCK_ORDER);
                self.has_block_of(order, list) || self.has_block(large)
            }
            CompactFinish::Claimable => self.has_block_for(order, list),
            CompactFinish::NoWatermark => {
                let movable = list == MigrateType::Movable;
                let claims = at_start || movable || cc.asked.mode.is_async();
                self.has_block_of(order, list) || claims && self.has_claimable(order, list)
            }
            CompactFinish::WholePageblock => self.has_block_for(order, list),
        }
    }

    /// The scanners have met: the next pass begins anew. A task that wanted a block has kswapd forget what is known of
    /// pageblocks.
    pub(super) fn scanners_have_met(&mut self, asked: &Asked) {
        self.reset_cached_positions();
        self.compaction.blockskip_flush |= match asked.goal {
            Goal::Score => false,
            Goal::Block(_) => !matches!(asked.mode, Mode::Background | Mode::Kswapd),
        };
    }
}
