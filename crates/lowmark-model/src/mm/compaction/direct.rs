//! Direct compaction: who wants a block compacts zones for it, one by one.
//!
//! Asynchronously at first: then the migrate scanner keeps to movable pageblocks, and from 4.7 on gives up a block of the size
//! that is wanted as soon as one of its pages cannot be moved.

use super::compact_zone;
use super::control::{Asked, CompactControl, Goal, Mode};
use super::suitable::Suitable;
use crate::ids::ZoneId;
use crate::kernel::{BlockSlowPath, CompactDefer, CompactRetry, CompactSuitable};
use crate::mm::Mm;
use crate::mm::types::{CompactPriority, CompactResult, Compacted, Gfp, PAGE_ALLOC_COSTLY_ORDER};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};

impl Compacted {
    /// Nothing was captured.
    fn only(result: CompactResult) -> Compacted {
        let captured = None;
        Compacted { result, captured }
    }
}

impl CompactPriority {
    fn mode(self) -> Mode {
        match self {
            CompactPriority::Async => Mode::Async,
            CompactPriority::SyncLight => Mode::SyncLight,
            CompactPriority::SyncFull => Mode::Full,
        }
    }
}

impl Sys {
    /// `try_to_compact_pages`: the best that came of it in any zone of the zonelist; none if that was not entered.
    pub(crate) async fn try_to_compact_pages(
        &self,
        gfp: Gfp,
        order: usize,
        priority: CompactPriority,
    ) -> Option<Compacted> {
        let zones = {
            let world = &mut *self.world();
            if !world.mm.compacts_for(gfp, order) {
                return None;
            }
            let put_off = world.mm.is_put_off_everywhere(gfp, order);
            world.tell();
            if put_off {
                return Some(Compacted::only(CompactResult::Deferred));
            }
            world.trace_try_to_compact(gfp, order, priority);
            world.mm.usable_zones(gfp)
        };
        let mut seen = Seen::default();
        for zone in zones {
            let pass = {
                let world = &mut *self.world();
                let pass = world.mm.begin_direct_pass(zone, order, gfp, priority);
                world.tell();
                pass
            };
            let (result, captured) = match pass {
                Ok(mut cc) => compact_zone(self, &mut cc).await,
                Err(result) => (result, None),
            };
            seen.note(result);
            if captured.is_some() {
                return Some(Compacted { result, captured });
            }
            let world = &mut *self.world();
            let stops = world.mm.stops_at(zone, order, gfp, result) || world.sched.current_killed();
            if !stops {
                world.mm.defer_after(zone, order, priority, result);
            }
            world.tell();
            if stops {
                break;
            }
        }
        let told_apart = self.world().mm.kernel.mechanisms.blocks.compact_retry;
        Some(Compacted::only(seen.best(told_apart)))
    }
}

/// What the zones have come to.
#[derive(Debug, Default)]
struct Seen {
    best: Option<CompactResult>,
    deferred: bool,
}

impl Seen {
    fn note(&mut self, result: CompactResult) {
        match result {
            CompactResult::Deferred => self.deferred = true,
            result => self.best = self.best.max(Some(result)),
        }
    }

    /// The best of them. From 4.7 on a zone that was put off counts for more than one that was skipped, before for less.
    fn best(&self, retry: CompactRetry) -> CompactResult {
        let deferred = self.deferred.then_some(CompactResult::Deferred);
        let best = match retry {
            CompactRetry::Never => self.best.or(deferred),
            _ => self.best.max(deferred),
        };
        best.unwrap_or(CompactResult::Skipped)
    }
}

impl World {
    fn trace_try_to_compact(&mut self, gfp: Gfp, order: usize, priority: CompactPriority) {
        if !self.trace.enabled() {
            return;
        }
        // To 4.7 the mode is printed as its number.
        let mode = self.trace.name(match priority {
            CompactPriority::Async => "0",
            CompactPriority::SyncLight | CompactPriority::SyncFull => "1",
        });
        self.trace(Kind::TryToCompactPages, |_| {
            vec![
                (Field::Order, order as u64),
                (Field::GfpFlags, gfp.flags()),
                (Field::Mode, mode),
                (Field::Priority, priority as u64),
            ]
        });
    }
}

impl Mm {
    /// Whether the kernel compacts for such an allocation at all: it may need I/O, and locks of file systems; to 2.6.37 only for
    /// costly blocks.
    fn compacts_for(&self, gfp: Gfp, order: usize) -> bool {
        let by_priority = matches!(
            self.kernel.mechanisms.blocks.block_slow_path,
            BlockSlowPath::ByPriority
                | BlockSlowPath::PageblocksGiveUp
                | BlockSlowPath::NoretryGivesUp
        );
        let least = match self.kernel.mechanisms.blocks.block_slow_path {
            BlockSlowPath::OneCompaction => PAGE_ALLOC_COSTLY_ORDER + 1,
            _ => 1,
        };
        self.kernel.coverage.compaction
            && order >= least
            && gfp.has(gfp::IO)
            && (by_priority || gfp.has(gfp::FS))
    }

    /// The preferred zone decides for all of them whether compaction is put off (to 3.17).
    fn is_put_off_everywhere(&mut self, gfp: Gfp, order: usize) -> bool {
        let rule = self.kernel.mechanisms.blocks.compact_defer;
        let zone = self.preferred_zone(gfp);
        rule != CompactDefer::ByZone && self.compaction_deferred(zone, order)
    }

    /// Zones of the zonelist that the allocation may use.
    fn usable_zones(&self, gfp: Gfp) -> Vec<ZoneId> {
        let zones = self.zonelist(gfp).iter().copied();
        zones
            .filter(|&zone| self.zones[zone].kind <= gfp.highest())
            .collect()
    }

    /// `compact_zone_order`: a pass over a zone, or why there is none.
    fn begin_direct_pass(
        &mut self,
        zone: ZoneId,
        order: usize,
        gfp: Gfp,
        priority: CompactPriority,
    ) -> Result<CompactControl, CompactResult> {
        let rules = self.kernel.mechanisms.blocks;
        let by_zone = rules.compact_defer == CompactDefer::ByZone;
        let full = priority == CompactPriority::SyncFull;
        if by_zone && !full && self.compaction_deferred(zone, order) {
            return Err(CompactResult::Deferred);
        }
        match self.compaction_suitable(&self.zones[zone], order, gfp.highest()) {
            Suitable::HasBlock => return Err(CompactResult::Success),
            Suitable::Short => return Err(CompactResult::Skipped),
            Suitable::Fragmented => {}
        }
        self.restart_compaction(zone, order);
        let asked = Asked {
            goal: Goal::Block(order),
            mode: priority.mode(),
            class: gfp.highest(),
            list: gfp.migrate_type(),
        };
        let state = &mut self.zones[zone];
        Ok(CompactControl::new(state, zone, asked, rules))
    }

    /// Whether zones after this one are left alone, as there should be a block now.
    fn stops_at(&mut self, zone: ZoneId, order: usize, gfp: Gfp, result: CompactResult) -> bool {
        let rules = self.kernel.mechanisms.blocks;
        let stops = match rules.compact_suitable {
            CompactSuitable::CostlyApart => result == CompactResult::Success,
            _ if result == CompactResult::Deferred => false,
            _ => self.has_block_after(&self.zones[zone], order, gfp.highest()),
        };
        if stops && rules.compact_defer == CompactDefer::ByZone {
            self.compaction_defer_reset(zone, order, false);
        }
        stops
    }

    /// A zone that has been gone through to the end is left alone for a while, unless the pass could not wait (3.18 and later).
    fn defer_after(
        &mut self,
        zone: ZoneId,
        order: usize,
        priority: CompactPriority,
        result: CompactResult,
    ) {
        let by_zone = self.kernel.mechanisms.blocks.compact_defer == CompactDefer::ByZone;
        let ended = matches!(
            result,
            CompactResult::Complete | CompactResult::PartialSkipped
        );
        if by_zone && ended && priority != CompactPriority::Async {
            self.defer_compaction(zone, order);
        }
    }
}
