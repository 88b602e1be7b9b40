//! Reclaim from groups that are beyond their soft limits, before the node as a whole
//! (`mem_cgroup_soft_limit_reclaim`, memory cgroups of version 1).
//!
//! 1. kswapd and direct reclaimers, for single pages only, do it before each pass over a node.
//! 2. They take the group with the most beyond its limit, and go through it and all inside it, each at priority 0 until 32
//!    pages are reclaimed, until it is below its limit, or two rounds have brought a quarter of what was beyond or nothing.
//! 3. If it gave nothing, the next one; of these at most three.

use super::classic::shrink_lruvec;
use super::{ScanControl, Target};
use crate::ids::MemcgId;
use crate::mm::types::{SWAP_CLUSTER_MAX, ZoneType};
use crate::world::Sys;
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};

/// Rounds through a group (`MEM_CGROUP_MAX_RECLAIM_LOOPS`).
const MAX_RECLAIM_LOOPS: u32 = 100;
/// Groups that give nothing after which it is left (`MEM_CGROUP_MAX_SOFT_LIMIT_RECLAIM_LOOPS`).
const MAX_SOFT_LIMIT_RECLAIM_LOOPS: u32 = 2;

/// Pages that were reclaimed and scanned.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::mm::reclaim) struct SoftReclaim {
    pub(in crate::mm::reclaim) reclaimed: u64,
    pub(in crate::mm::reclaim) scanned: u64,
}

/// `mem_cgroup_soft_limit_reclaim` on the node of the target, for the sake of a reclaimer.
pub(in crate::mm::reclaim) async fn soft_limit_reclaim(
    sys: &Sys,
    target: Target,
    sc: &ScanControl,
) -> SoftReclaim {
    let node = sys.world().mm.zones[target.zone].node;
    let mut done = SoftReclaim::default();
    let none = sys.world().mm.memcontrol.has_no_soft_excess(node);
    if none || sc.order > 0 || sc.cgroup_reclaim() {
        return done;
    }
    let mut next = None;
    for groups in 1.. {
        let group = {
            let memcontrol = &mut sys.world().mm.memcontrol;
            next.or_else(|| memcontrol.take_largest_excess(node))
        };
        let Some(group) = group else {
            break;
        };
        let of_group = Box::pin(soft_reclaim(sys, target, group, sc)).await;
        done.reclaimed += of_group.reclaimed;
        done.scanned += of_group.scanned;
        let memcontrol = &mut sys.world().mm.memcontrol;
        next = match of_group.reclaimed {
            0 => memcontrol.take_largest_excess(node),
            _ => None,
        };
        memcontrol.enter_again(group, node);
        if done.reclaimed > 0 || next.is_none() || groups > MAX_SOFT_LIMIT_RECLAIM_LOOPS {
            break;
        }
    }
    done
}

/// `mem_cgroup_soft_reclaim`: from a group and all inside it.
async fn soft_reclaim(sys: &Sys, target: Target, root: MemcgId, sc: &ScanControl) -> SoftReclaim {
    let (lists, excess) = {
        let mm = &sys.world().mm;
        let excess = mm.memcontrol.soft_limit_excess(root);
        (mm.memcg_lruvec(target.lruvec, root), excess)
    };
    let mut done = SoftReclaim::default();
    let mut rounds = 0;
    let mut walk = sys.world().mm.memcontrol.walk(root, lists, Some(0));
    loop {
        let victim = sys.world().mm.memcontrol.next_of(&mut walk);
        let Some(victim) = victim else {
            rounds += 1;
            let enough = done.reclaimed >= excess >> 2 || rounds > MAX_RECLAIM_LOOPS;
            if rounds >= 2 && (done.reclaimed == 0 || enough) {
                return done;
            }
            walk = sys.world().mm.memcontrol.walk(root, lists, Some(0));
            continue;
        };
        let of_victim = shrink_group(sys, target, victim, sc).await;
        done.reclaimed += of_victim.reclaimed;
        done.scanned += of_victim.scanned;
        if sys.world().mm.memcontrol.soft_limit_excess(root) == 0 {
            return done;
        }
    }
}

/// `mem_cgroup_shrink_node`: the lists of one group on the node.
async fn shrink_group(sys: &Sys, target: Target, memcg: MemcgId, by: &ScanControl) -> SoftReclaim {
    let mut sc = ScanControl::new(by.kswapd, SWAP_CLUSTER_MAX, 0, ZoneType::High);
    sc.memcg = memcg;
    sc.gfp = by.gfp;
    sc.priority = 0;
    // The kernel's ids begin with 1, the root's.
    let id = u64::from(memcg) + 1;
    let flags = by.gfp.flags() & (gfp::RECLAIM | gfp::IO | gfp::FS)
        | gfp::HIGHUSER_MOVABLE & !(gfp::RECLAIM | gfp::IO | gfp::FS);
    let whole = {
        let mut world = sys.world();
        world.trace(Kind::MemcgSoftlimitReclaimBegin, |_| {
            vec![
                (Field::Order, 0),
                (Field::MayWritepage, 1),
                (Field::GfpFlags, flags),
                (Field::MemcgId, id),
            ]
        });
        let lruvec = world.mm.memcg_lruvec(target.lruvec, memcg);
        Target { lruvec, ..target }
    };
    shrink_lruvec(sys, whole, &mut sc).await;
    sys.world().trace(Kind::MemcgSoftlimitReclaimEnd, |_| {
        vec![(Field::NrReclaimed, sc.nr_reclaimed), (Field::MemcgId, id)]
    });
    SoftReclaim {
        reclaimed: sc.nr_reclaimed,
        scanned: sc.nr_scanned,
    }
}
