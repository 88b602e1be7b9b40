//! kswapd compacts a node for the block that it was woken for (`compact_pgdat`, 3.4 to 4.5).

use super::compact_zone;
use super::control::{Asked, CompactControl, Goal, Mode};
use super::suitable::Suitable;
use crate::ids::{NodeId, ZoneId};
use crate::mm::Mm;
use crate::mm::types::ZoneType;
use crate::world::Sys;

/// `compact_pgdat`: each zone of the node once, without waiting. What has failed here is not put off.
pub(in crate::mm) async fn compact_pgdat(sys: &Sys, node: NodeId, order: usize) {
    let zones = sys.world().mm.nodes[node].zones.clone();
    for zone in zones {
        let pass = {
            let world = &mut *sys.world();
            let pass = world.mm.begin_pgdat_pass(zone, order);
            world.tell();
            pass
        };
        if let Some(mut cc) = pass {
            compact_zone(sys, &mut cc).await;
        }
        let world = &mut *sys.world();
        let has_block = world
            .mm
            .has_block_after(&world.mm.zones[zone], order, ZoneType::Dma);
        if has_block {
            world.mm.compaction_defer_reset(zone, order, false);
            world.tell();
        }
    }
}

impl Mm {
    /// A pass over a zone, if compaction can help there and is not put off.
    fn begin_pgdat_pass(&mut self, zone: ZoneId, order: usize) -> Option<CompactControl> {
        let rules = self.kernel.mechanisms.blocks;
        let asked = Asked::in_background(Goal::Block(order), Mode::Kswapd, ZoneType::Dma);
        if self.compaction_deferred(zone, order) {
            return None;
        }
        let suitable = self.compaction_suitable(&self.zones[zone], order, ZoneType::Dma);
        (suitable == Suitable::Fragmented)
            .then(|| CompactControl::new(&mut self.zones[zone], zone, asked, rules))
    }
}
