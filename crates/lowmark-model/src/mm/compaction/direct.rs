//! Direct compaction: who wants a block compacts zones for it, one by one.
//!
//! Asynchronously at first: then the migrate scanner keeps to movable pageblocks, and gives up a block of the size that is
//! wanted as soon as one of its pages cannot be moved.

use super::{CompactControl, CompactResult, Goal, Mode, compact_zone};
use crate::ids::ZoneId;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{CompactPriority, Gfp, Mark, MigrateType, PAGEBLOCK_ORDER};
use crate::world::Sys;
use lowmark_record::{Field, Kind};

impl CompactResult {
    /// There was nothing to work with in any zone.
    pub(crate) fn is_skipped(self) -> bool {
        self == CompactResult::Skipped
    }

    /// The same, or it failed so lately that it was not tried.
    pub(crate) fn is_hopeless(self) -> bool {
        self <= CompactResult::Deferred
    }
}

impl Sys {
    /// `try_to_compact_pages`: the best that came of it in any zone of the zonelist.
    pub(crate) async fn try_to_compact_pages(
        &self,
        gfp: Gfp,
        order: usize,
        priority: CompactPriority,
    ) -> CompactResult {
        let zones: Vec<ZoneId> = {
            let world = &mut *self.world();
            if !world.mm.kernel.coverage.compaction {
                return CompactResult::Skipped;
            }
            world.trace(Kind::TryToCompactPages, |_| {
                vec![
                    (Field::Order, order as u64),
                    (Field::GfpFlags, gfp.flags()),
                    (Field::Priority, priority as u64),
                ]
            });
            let zonelist = world.mm.nodes[gfp.node].zonelist.iter().copied();
            zonelist
                .filter(|&zone| world.mm.zones[zone].kind <= gfp.highest())
                .collect()
        };
        let mut best = CompactResult::Skipped;
        for zone in zones {
            let result = compact_zone_order(self, zone, order, gfp, priority).await;
            best = best.max(result);
            let world = &mut *self.world();
            match (result, priority) {
                (CompactResult::Success, _) => {
                    world.mm.zones[zone].compaction_defer_reset(order);
                    break;
                }
                (
                    CompactResult::Complete | CompactResult::PartialSkipped,
                    CompactPriority::SyncLight,
                ) => {
                    world.mm.zones[zone].defer_compaction(order);
                }
                _ => {}
            }
            if world.sched.current_killed() {
                break;
            }
        }
        best
    }
}

/// `compact_zone_order` of a zone in which compaction is not put off.
async fn compact_zone_order(
    sys: &Sys,
    zone: ZoneId,
    order: usize,
    gfp: Gfp,
    priority: CompactPriority,
) -> CompactResult {
    let mut cc = {
        let world = &mut *sys.world();
        if world.mm.zones[zone].compaction_deferred(order) {
            return CompactResult::Deferred;
        }
        let state = &world.mm.zones[zone];
        if state.watermark_ok(order, state.mark(Mark::Min), gfp.highest()) {
            return CompactResult::Success;
        }
        if !world.mm.compaction_suitable(state, order, gfp.highest()) {
            return CompactResult::Skipped;
        }
        let state = &mut world.mm.zones[zone];
        state.restart_compaction(order);
        state.init_cached_positions();
        let mode = match priority {
            CompactPriority::Async => Mode::Async,
            CompactPriority::SyncLight => Mode::SyncLight,
        };
        CompactControl::new(state, zone, Goal::Block(order), mode)
    };
    compact_zone(sys, &mut cc).await
}

impl Zone {
    /// There is a block for movable pages, or one that they may claim with its pageblock.
    pub(super) fn has_movable_block(&self, order: usize) -> bool {
        let movable = &self.free_area[MigrateType::Movable as usize][order..];
        let own = movable.iter().any(|area| area.len() > 0);
        own || self.has_block(order.max(PAGEBLOCK_ORDER / 2))
    }
}
