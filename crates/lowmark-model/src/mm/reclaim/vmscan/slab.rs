//! When reclaim calls the shrinkers, and with what (`shrink_slab`).
//!
//! 1. To 3.18 direct reclaim calls them at each priority after all zones, with what it scanned of all of them; kswapd
//!    after each zone, with what it scanned of that one, to 2.6.39 also after zones that it left alone.
//! 2. From 3.19 on a pass over the highest zone that the allocation could use calls them, from 4.8 on one over a node,
//!    with what was scanned in it: for each memory cgroup that it comes to after the group's lists.
//! 3. What shrinkers free counts as reclaimed at the end of the pass, but from 6.4 on not for a group that is at its limit.

use super::{ScanControl, Target};
use crate::ids::{MemcgId, NodeId, ZoneId};
use crate::kernel::{GroupSlabCredit, KswapdSlab, LruUnit, SlabCaller};
use crate::mm::Mm;
use crate::mm::shrinker::{Caller, Freed, Pressure, shrink_slab};
use crate::world::Sys;

impl Mm {
    /// Whether there is anything to shrink, and this is when.
    fn shrinks_slab(&self, sc: &ScanControl, caller: SlabCaller) -> bool {
        self.has_shrinkers()
            && self.kernel.mechanisms.shrinker.slab_caller == caller
            && (!sc.cgroup_reclaim() || self.kernel.coverage.cgroup_slab)
    }

    /// Whether a pass over the target calls the shrinkers: with lists by zone, that over the highest zone of the node
    /// that helps.
    fn is_classzone(&self, target: Target, sc: &ScanControl) -> bool {
        let node = self.zones[target.zone].node;
        let mut above = self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let kind = self.zones[target.zone].kind;
        self.kernel.mechanisms.reclaim.lru_unit == LruUnit::Node
            || !above.any(|zone| zone.kind > kind && zone.kind <= sc.reclaim_idx)
    }

    /// Pages that reclaim may find in some zones (`zone_reclaimable_pages`).
    fn reclaimable_of(&self, zones: impl Iterator<Item = ZoneId>) -> u64 {
        let swap = self.swap.free_slots() > 0;
        zones
            .map(|zone| self.tree_reclaimable(self.zones[zone].lruvec, swap))
            .sum()
    }
}

async fn call(
    sys: &Sys,
    nodes: &[NodeId],
    memcg: MemcgId,
    pressure: Pressure,
    sc: &mut ScanControl,
) -> Freed {
    let caller = Caller {
        pressure,
        gfp: sc.gfp,
        kswapd: sc.kswapd,
    };
    sys.charge_work(sys.costs.shrink_slab_ns).await;
    Box::pin(shrink_slab(sys, nodes, memcg, &caller)).await
}

/// After all zones of a priority, by a direct reclaimer.
pub(super) async fn after_zones(sys: &Sys, targets: &[Target], sc: &mut ScanControl) {
    let (nodes, pressure) = {
        let mm = &sys.world().mm;
        if !mm.shrinks_slab(sc, SlabCaller::AfterZones) {
            return;
        }
        let nodes = targets.iter().map(|target| mm.zones[target.zone].node);
        let mut nodes: Vec<NodeId> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        let pressure = Pressure {
            scanned: sc.nr_scanned,
            eligible: mm.reclaimable_of(targets.iter().map(|target| target.zone)),
            priority: sc.priority,
        };
        (nodes, pressure)
    };
    let freed = call(sys, &nodes, MemcgId::ROOT, pressure, sc).await;
    sc.nr_reclaimed += freed.pages;
}

/// After a zone that kswapd has come to, of which it has scanned `sc.nr_scanned` pages, or which it left alone; zones
/// up to `end_zone` are reclaimed. How many objects were freed.
pub(in crate::mm::reclaim) async fn after_zone(
    sys: &Sys,
    end_zone: ZoneId,
    shrunk: bool,
    sc: &mut ScanControl,
) -> u64 {
    let (node, pressure) = {
        let mm = &sys.world().mm;
        let every = mm.kernel.mechanisms.shrinker.kswapd_slab == KswapdSlab::EveryZone;
        if !mm.shrinks_slab(sc, SlabCaller::AfterZones) || !(shrunk || every) {
            return 0;
        }
        let (node, kind) = (mm.zones[end_zone].node, mm.zones[end_zone].kind);
        let zones = mm.nodes[node].zones.iter().copied();
        let pressure = Pressure {
            scanned: if shrunk { sc.nr_scanned } else { 0 },
            eligible: mm.reclaimable_of(zones.filter(|&zone| mm.zones[zone].kind <= kind)),
            priority: sc.priority,
        };
        (node, pressure)
    };
    let freed = call(sys, &[node], MemcgId::ROOT, pressure, sc).await;
    sc.nr_reclaimed += freed.pages;
    freed.objects
}

/// After the lists of a memory cgroup in a pass over a node or zone, of which `scanned` pages were scanned: pages freed.
pub(super) async fn in_pass(
    sys: &Sys,
    target: Target,
    memcg: MemcgId,
    scanned: u64,
    sc: &mut ScanControl,
) -> u64 {
    let (node, pressure) = {
        let mm = &sys.world().mm;
        let of_group = memcg == MemcgId::ROOT || mm.kernel.coverage.cgroup_slab;
        if !of_group || !mm.shrinks_slab(sc, SlabCaller::InPass) || !mm.is_classzone(target, sc) {
            return 0;
        }
        let pressure = Pressure {
            scanned,
            eligible: sc.lru_pages,
            priority: sc.priority,
        };
        (mm.zones[target.zone].node, pressure)
    };
    call(sys, &[node], memcg, pressure, sc).await.pages
}

/// What shrinkers freed in a pass counts (`flush_reclaim_state`).
pub(super) fn flush_reclaim_state(sys: &Sys, freed: u64, sc: &mut ScanControl) {
    let counts = match sys.world().mm.kernel.mechanisms.memcg.group_slab_credit {
        GroupSlabCredit::Counted => true,
        GroupSlabCredit::None => !sc.cgroup_reclaim(),
    };
    sc.nr_reclaimed += if counts { freed } else { 0 };
}
