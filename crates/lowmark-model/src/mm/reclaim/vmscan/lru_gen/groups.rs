//! A pass over a node that goes through memory cgroups in an order of their own (`shrink_many`, `shrink_one`); the order is in
//! `alloc/mmzone/lru_gen/groups.rs`.

use super::{ScanControl, Target, try_to_shrink_lruvec};
use crate::ids::{MemcgId, NodeId};
use crate::kernel::GenGroup;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::lru_gen::{GroupLru, Move};
use crate::mm::memcontrol::{Event, Protected};
use crate::mm::reclaim::vmscan::slab;
use crate::world::Sys;

impl Mm {
    /// Groups stand in the order in which they have been made; what is random is that of a boot.
    pub(crate) fn make_group_lrus(&mut self, boot: u64) {
        if self.lru_gen {
            let groups = self.memcontrol.len();
            for (node, number) in self.nodes.iter_mut().zip(0..) {
                node.groups = Some(GroupLru::new(groups, boot, number));
            }
        }
    }

    /// The order of the groups of a node. There is one wherever pages stand in generations.
    fn group_lru(&mut self, node: NodeId) -> &mut GroupLru {
        let groups = self.memcontrol.len();
        self.nodes[node]
            .groups
            .get_or_insert_with(|| GroupLru::new(groups, 0, 0))
    }

    /// Whether a share of a group's pages is worth the while at a priority (`lruvec_is_sizable`).
    fn is_sizable(&self, target: Target, sc: &ScanControl) -> bool {
        let swap = self.gen_swappiness(target, sc) > 0;
        self.ages(target.lruvec, swap).all >> sc.priority > 0
    }

    /// A group's lists have been left as a new generation was made, in a pass for the sake of a group
    /// (`lru_gen_shrink_lruvec`).
    pub(super) fn group_has_aged(&mut self, target: Target) {
        let memcg = self.lruvec_memcg(target.lruvec);
        let node = self.zones[target.zone].node;
        self.group_lru(node).rotate(memcg, Move::Young);
    }
}

/// `shrink_many`
pub(super) async fn shrink_many(sys: &Sys, whole: Target, sc: &mut ScanControl) {
    let node = sys.world().mm.zones[whole.zone].node;
    let mut walk = sys.world().mm.group_lru(node).walk();
    loop {
        let next = sys.world().mm.group_lru(node).next(&mut walk);
        let Some(memcg) = next else {
            break;
        };
        let to = shrink_one(sys, whole, memcg, sc).await;
        let ends = {
            let mm = &mut sys.world().mm;
            mm.group_lru(node).pass(&mut walk, memcg, to);
            mm.gen_pass_ends(whole, &Default::default(), sc)
        };
        if ends {
            break;
        }
    }
}

/// `shrink_one`: the lists and the caches of a group. Where the group goes.
async fn shrink_one(
    sys: &Sys,
    whole: Target,
    memcg: MemcgId,
    sc: &mut ScanControl,
) -> Option<Move> {
    let (target, tried, size_first) = {
        let mm = &mut sys.world().mm;
        let lruvec = mm.memcg_lruvec(whole.lruvec, memcg);
        let target = Target { lruvec, ..whole };
        let node = mm.zones[whole.zone].node;
        let tried = mm.group_lru(node).was_tried(memcg);
        let size_first = mm.kernel.mechanisms.lru_gen.gen_group == GenGroup::SizeFirst;
        (target, tried, size_first)
    };
    let again = if tried { Move::Young } else { Move::Tail };
    {
        let mm = &mut sys.world().mm;
        if size_first && !mm.is_sizable(target, sc) {
            return Some(again);
        }
        mm.memcontrol.calculate_protection(MemcgId::ROOT, memcg);
        match mm.protected(MemcgId::ROOT, memcg) {
            Protected::Min => return Some(Move::Young),
            Protected::Low if !tried => return Some(Move::Tail),
            Protected::Low => mm.memcontrol.note(memcg, Event::Low),
            Protected::No => {}
        }
    }
    let scanned = sc.nr_scanned;
    let aged = try_to_shrink_lruvec(sys, target, sc).await;
    let freed = slab::in_pass(sys, target, memcg, sc.nr_scanned - scanned, sc).await;
    slab::flush_reclaim_state(sys, freed, sc);
    if aged {
        Some(Move::Young)
    } else if size_first || sys.world().mm.is_sizable(target, sc) {
        None
    } else {
        Some(again)
    }
}
