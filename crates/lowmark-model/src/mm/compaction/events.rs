//! Events of compaction that are told where there is a trace; [`told`](super::told) has the others.

use super::control::CompactControl;
use crate::ids::NodeId;
use crate::kernel::{Blocks, CompactSuitable};
use crate::mm::types::{CompactResult, Pfn, ZoneType};
use crate::world::World;
use lowmark_record::{Field, Kind};

impl World {
    /// Where a pass begins, or ends with a result.
    pub(super) fn trace_pass(&mut self, cc: &CompactControl, result: Option<CompactResult>) {
        if !self.trace.enabled() {
            return;
        }
        let mode = self.trace.name(if cc.asked.mode.is_async() {
            "async"
        } else {
            "sync"
        });
        let has_block = success_name(&cc.rules);
        let status = result.map(|result| self.trace.name(result_name(result, has_block)));
        let kind = match status {
            None => Kind::CompactionBegin,
            Some(_) => Kind::CompactionEnd,
        };
        self.trace(kind, |world| {
            let zone = &world.mm.zones[cc.zone];
            vec![
                (Field::ZoneStart, u64::from(zone.start)),
                (Field::MigratePfn, u64::from(cc.migrate_pfn)),
                (Field::FreePfn, u64::from(cc.free_pfn)),
                (Field::ZoneEnd, u64::from(zone.end())),
                (Field::Mode, mode),
                (Field::Status, status.unwrap_or_default()),
            ]
        });
    }

    /// Pages of a range have been isolated.
    pub(super) fn trace_isolated(&mut self, range: std::ops::Range<Pfn>, scanned: u64, taken: u64) {
        self.trace(Kind::IsolateMigratepages, |_| {
            vec![
                (Field::StartPfn, u64::from(range.start)),
                (Field::EndPfn, u64::from(range.end)),
                (Field::NrScanned, scanned),
                (Field::NrTaken, taken),
            ]
        });
    }

    /// They have been moved, but for those that could not.
    pub(super) fn trace_migrated(&mut self, moved: u64, failed: u64) {
        self.trace(Kind::Migratepages, |_| {
            vec![(Field::NrMigrated, moved), (Field::NrFailed, failed)]
        });
    }

    /// Isolated pages are going to be moved, or have been (`migrate_pages`): pages that were moved and that were not, and folios
    /// that were split.
    pub(super) fn trace_migrate_pages(&mut self, cc: &CompactControl, done: Option<[u64; 3]>) {
        if !self.trace.enabled() {
            return;
        }
        let reason = self.trace.name("compaction");
        let mode = self.trace.name(if cc.asked.mode.is_async() {
            "MIGRATE_ASYNC"
        } else {
            "MIGRATE_SYNC_LIGHT"
        });
        let kind = match done {
            None => Kind::MigratePagesStart,
            Some(_) => Kind::MigratePages,
        };
        let [succeeded, failed, split] = done.unwrap_or_default();
        self.trace(kind, |_| {
            vec![
                (Field::NrSucceeded, succeeded),
                (Field::NrFailed, failed),
                // Compaction leaves huge pages where they are.
                (Field::NrThpSucceeded, 0),
                (Field::NrThpFailed, 0),
                (Field::NrThpSplit, 0),
                (Field::NrSplit, split),
                (Field::Mode, mode),
                (Field::Reason, reason),
            ]
        });
    }

    pub(super) fn trace_kcompactd_sleep(&mut self, node: NodeId) {
        self.trace(Kind::KcompactdSleep, |_| vec![(Field::Nid, node.into())]);
    }

    /// kcompactd is woken for an order, or begins to work for one.
    pub(super) fn trace_kcompactd(&mut self, kind: Kind, node: NodeId, order: u32, class: usize) {
        if !self.trace.enabled() {
            return;
        }
        let highest = self.trace.name(zone_name(ZoneType::ALL[class]));
        self.trace(kind, |_| {
            vec![
                (Field::Nid, node.into()),
                (Field::Order, u64::from(order)),
                (Field::HighestZone, highest),
            ]
        });
    }
}

/// `ZONE_TYPE`, where nothing is above what the kernel maps.
pub(super) fn zone_name(zone: ZoneType) -> &'static str {
    match zone {
        ZoneType::Dma => "DMA",
        ZoneType::Dma32 => "DMA32",
        ZoneType::Normal => "Normal",
        ZoneType::High => "Movable",
    }
}

/// What `COMPACTION_STATUS` calls success: to 4.8 `partial`.
pub(super) fn success_name(rules: &Blocks) -> &'static str {
    match rules.compact_suitable {
        CompactSuitable::CostlyApart => "success",
        CompactSuitable::RoomFirst | CompactSuitable::BlockFirst => "partial",
    }
}

/// `COMPACTION_STATUS`; `has_block` is what success is called.
pub(super) fn result_name(result: CompactResult, has_block: &'static str) -> &'static str {
    match result {
        CompactResult::Skipped => "skipped",
        CompactResult::Deferred => "deferred",
        CompactResult::Continue => "continue",
        CompactResult::Complete => "complete",
        CompactResult::PartialSkipped => "partial_skipped",
        CompactResult::Contended => "contended",
        CompactResult::Success => has_block,
    }
}
