//! Events of compaction. Free pages that are isolated, and the many looks whether it can help or is done, have none.

use super::control::CompactControl;
use crate::ids::NodeId;
use crate::kernel::CompactSuitable;
use crate::mm::types::{CompactResult, Pfn, ZoneType};
use crate::world::World;
use lowmark_record::{Field, Kind};

impl World {
    /// Where a pass begins, or ends with a result.
    pub(super) fn trace_pass(&mut self, cc: &CompactControl, result: Option<CompactResult>) {
        if !self.trace.enabled() {
            return;
        }
        let mode = self.trace.name(match cc.asked.mode.is_async() {
            true => "async",
            false => "sync",
        });
        let has_block = match cc.rules.compact_suitable {
            CompactSuitable::CostlyApart => "success",
            CompactSuitable::RoomFirst | CompactSuitable::BlockFirst => "partial",
        };
        let status = result.map(|result| self.trace.name(result.name(has_block)));
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
fn zone_name(zone: ZoneType) -> &'static str {
    match zone {
        ZoneType::Dma => "DMA",
        ZoneType::Dma32 => "DMA32",
        ZoneType::Normal => "Normal",
        ZoneType::High => "Movable",
    }
}

impl CompactResult {
    /// `COMPACTION_STATUS`; `has_block` is what success is called.
    fn name(self, has_block: &'static str) -> &'static str {
        match self {
            CompactResult::Skipped => "skipped",
            CompactResult::Deferred => "deferred",
            CompactResult::Continue => "continue",
            CompactResult::Complete => "complete",
            CompactResult::PartialSkipped => "partial_skipped",
            CompactResult::Contended => "contended",
            CompactResult::Success => has_block,
        }
    }
}
