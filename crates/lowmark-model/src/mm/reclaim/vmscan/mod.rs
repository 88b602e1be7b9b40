//! Page reclaim (`mm/vmscan.c`).
//!
//! 1. A reclaimer, kswapd or an allocating task, goes through priorities from 12 downward; at each it
//!    scans 1/2^priority of every list ([`classic::shrink_lruvec`]).
//! 2. Lists are worked off in batches of 32 pages taken from the tail: active pages move to the inactive
//!    list, inactive ones are decided upon one by one ([`page_list`]).
//! 3. Everything that can sleep is an `.await`; between two batches others run.

mod account;
mod classic;
mod congestion;
mod file_page;
mod huge_page;
mod lru_gen;
mod lumpy;
mod memcg;
mod node;
mod page_list;
mod pfmemalloc;
mod reclaim_pages;
mod slab;
mod soft_limit;
mod throttle;

use crate::ids::{LruvecId, MemcgId, NodeId, ZoneId};
pub(crate) use classic::age_active_anon;
pub(crate) use lru_gen::age_node;
pub(super) use node::low_or_percent;
pub(crate) use node::shrink_node;
pub(crate) use reclaim_pages::reclaim_pages;
pub(super) use slab::after_zone;
pub(super) use soft_limit::soft_limit_reclaim;
pub(crate) use throttle::MAX_KSWAPD_FAILURES;

use crate::kernel::{BlockReclaim, FlusherWakeup, HopelessNode, LruUnit};
use crate::mm::Mm;
use crate::mm::memcontrol::Reclaimer;
use crate::mm::types::{DEF_PRIORITY, Gfp, Lru, Pfn, SWAP_CLUSTER_MAX, ZoneType};
use crate::world::Sys;
use lowmark_record::{Field, Kind};

/// Pages taken off a list together.
pub(crate) type Batch = Vec<Pfn>;

/// What a reclaimer wants and what it has got (`struct scan_control`).
#[derive(Debug, Clone)]
pub(crate) struct ScanControl {
    /// kswapd, not an allocating task.
    pub(crate) kswapd: bool,
    /// Pages to reclaim.
    pub(crate) nr_to_reclaim: u64,
    /// Current priority.
    pub(crate) priority: u32,
    /// Order of the allocation.
    pub(crate) order: u32,
    /// Highest zone type whose pages help.
    pub(crate) reclaim_idx: ZoneType,
    /// The group at its limit, whose pages alone help (`target_mem_cgroup`); the root: memory is short.
    pub(crate) memcg: MemcgId,
    /// Anonymous and shmem pages may go (`may_swap`); a run of kswapd for a boost does not swap.
    pub(crate) may_swap: bool,
    /// Pages of files may be written (`may_writepage`).
    pub(crate) may_writepage: bool,
    /// Pages go whoever has used them (`ignore_references`).
    ignore_references: bool,
    /// Inactive pages scanned in this pass.
    pub(crate) nr_scanned: u64,
    /// Pages reclaimed.
    pub(crate) nr_reclaimed: u64,
    /// Compaction could go on in some zone without more being reclaimed.
    compaction_ready: bool,
    /// Pages on the lists that the pass over the node considers, as far as the kernel counts them for the shrinkers.
    lru_pages: u64,
    /// Flags of the allocation that wants memory; those of kswapd.
    gfp: Gfp,
    /// What it knows of memory cgroups.
    groups: memcg::Groups,
    /// How it goes about a block.
    mode: lumpy::Mode,
    /// What it knows of generations.
    gens: lru_gen::State,
    /// What has been decided for the pass over the node.
    plan: node::Plan,
    /// What the pass over the node has found.
    found: node::Found,
}

impl ScanControl {
    /// At the first priority, nothing scanned yet.
    pub(crate) fn new(
        kswapd: bool,
        nr_to_reclaim: u64,
        order: u32,
        reclaim_idx: ZoneType,
    ) -> ScanControl {
        ScanControl {
            kswapd,
            nr_to_reclaim,
            priority: DEF_PRIORITY,
            order,
            reclaim_idx,
            memcg: MemcgId::ROOT,
            may_swap: true,
            may_writepage: true,
            ignore_references: false,
            nr_scanned: 0,
            nr_reclaimed: 0,
            compaction_ready: false,
            lru_pages: 0,
            gfp: Gfp::kernel(NodeId::FIRST),
            groups: Default::default(),
            mode: Default::default(),
            gens: Default::default(),
            plan: Default::default(),
            found: Default::default(),
        }
    }
}

impl ScanControl {
    /// Whether a group is short of memory, not the machine (`cgroup_reclaim`).
    fn cgroup_reclaim(&self) -> bool {
        self.memcg != MemcgId::ROOT
    }
}

/// Pages that reclaim looks at in a list set: a zone's with zone lists, a node's otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// List set: the root's, or that of a memory cgroup.
    pub(crate) lruvec: LruvecId,
    /// The zone whose lists these are, or the highest zone of the node.
    pub(crate) zone: ZoneId,
}

impl Mm {
    /// Whether reclaim in the zone is hopeless: everything in it has been scanned six times since a
    /// page was last freed.
    pub(crate) fn zone_reclaimable(&self, zone: ZoneId) -> bool {
        let swap = self.swap.free_slots() > 0;
        let zone = &self.zones[zone];
        zone.pages_scanned < 6 * self.tree_reclaimable(zone.lruvec, swap)
    }

    /// The list sets that a direct reclaimer works on, in order: each zone of its zonelist, or each
    /// node once.
    fn targets(&self, gfp: Gfp) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for &zone in self.zonelist(gfp) {
            let lruvec = self.zones[zone].lruvec;
            let usable = self.zones[zone].kind <= gfp.highest();
            if usable && !targets.iter().any(|target| target.lruvec == lruvec) {
                targets.push(Target { lruvec, zone });
            }
        }
        targets
    }
}

/// Takes pages from lists in the way of their policy (`shrink_lruvec`).
async fn shrink_lruvec(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let generations = sys.world().mm.lru_gen;
    if generations {
        lru_gen::shrink_lruvec(sys, target, sc).await;
    } else {
        classic::shrink_lruvec(sys, target, sc).await;
    }
}

impl Sys {
    /// Direct reclaim (`try_to_free_pages`): pages reclaimed, or 1 if there is hope.
    pub(crate) async fn try_to_free_pages(&self, gfp: Gfp, order: u32) -> u64 {
        if pfmemalloc::throttle_direct_reclaim(self, gfp).await {
            return 1;
        }
        self.world().trace(Kind::DirectReclaimBegin, |_| {
            vec![
                (Field::Order, u64::from(order)),
                (Field::MayWritepage, 1),
                (Field::GfpFlags, gfp.flags()),
                (Field::Classzone, gfp.highest() as u64),
            ]
        });
        let mut sc = ScanControl::new(false, SWAP_CLUSTER_MAX, order, gfp.highest());
        sc.gfp = gfp;
        let reclaimed = do_try_to_free_pages(self, gfp, &mut sc).await;
        self.world().trace(Kind::DirectReclaimEnd, |_| {
            vec![(Field::NrReclaimed, reclaimed)]
        });
        reclaimed
    }

    /// Reclaim from a memory cgroup that is at its limit, or because of `memory.reclaim`: pages reclaimed.
    pub(crate) async fn try_to_free_mem_cgroup_pages(
        &self,
        gfp: Gfp,
        memcg: MemcgId,
        nr_pages: u64,
        by: Reclaimer,
    ) -> u64 {
        // The kernel's ids begin with 1, the root's.
        let id = u64::from(memcg) + 1;
        self.world().trace(Kind::MemcgReclaimBegin, |_| {
            vec![
                (Field::Order, 0),
                (Field::MayWritepage, 1),
                (Field::GfpFlags, gfp.flags()),
                (Field::MemcgId, id),
            ]
        });
        let want = nr_pages.max(SWAP_CLUSTER_MAX);
        let mut sc = ScanControl::new(false, want, 0, ZoneType::High);
        sc.memcg = memcg;
        sc.gfp = gfp;
        sc.groups.proactive = by == Reclaimer::Proactive;
        do_try_to_free_pages(self, gfp, &mut sc).await;
        self.world().trace(Kind::MemcgReclaimEnd, |_| {
            vec![(Field::NrReclaimed, sc.nr_reclaimed), (Field::MemcgId, id)]
        });
        sc.nr_reclaimed
    }
}

/// Rounds over all priorities: more than one only if a first one freed nothing, and mostly only if it spared some pages.
async fn do_try_to_free_pages(sys: &Sys, gfp: Gfp, sc: &mut ScanControl) -> u64 {
    let targets = sys.world().mm.targets(gfp);
    loop {
        if !sc.cgroup_reclaim() {
            sys.world().mm.stat.allocstall[gfp.highest() as usize] += 1;
        }
        let done = go_through_priorities(sys, gfp, &targets, sc).await;
        sys.world().mm.snapshot_refaults(&targets, sc.memcg);
        sys.world().forget_congestion(&targets, sc);
        if sc.compaction_ready {
            return sc.nr_reclaimed.max(1);
        }
        if done || sc.nr_reclaimed > 0 {
            return sc.nr_reclaimed;
        }
        let again = {
            let world = sys.world();
            sc.again(&world.mm.kernel.mechanisms)
        };
        if again == memcg::Again::No {
            break;
        }
    }
    let world = sys.world();
    u64::from(
        targets
            .iter()
            .any(|target| world.mm.node_is_hopeful(target.zone)),
    )
}

/// One round of direct reclaim. True: enough is reclaimed, compaction can go on, or the task is killed.
async fn go_through_priorities(
    sys: &Sys,
    gfp: Gfp,
    targets: &[Target],
    sc: &mut ScanControl,
) -> bool {
    let wakes = {
        // From 4.11 on what wakes the flushers is in shrink_inactive_list.
        let rule = sys.world().mm.kernel.mechanisms.writeback.flusher_wakeup;
        matches!(rule, FlusherWakeup::Scanned | FlusherWakeup::ScannedOrDirty)
    };
    let mut total_scanned = 0;
    let goes_on =
        sys.world().mm.kernel.mechanisms.blocks.block_reclaim == BlockReclaim::CompactionReady;
    for priority in (0..=DEF_PRIORITY).rev() {
        sc.priority = priority;
        sc.nr_scanned = 0;
        sc.compaction_ready &= !goes_on;
        for &target in targets {
            if priority != DEF_PRIORITY && sys.world().mm.zones[target.zone].all_unreclaimable {
                continue;
            }
            if sys.world().mm.leaves_to_compaction(target, gfp, sc) {
                continue;
            }
            let soft = soft_limit_reclaim(sys, target, sc).await;
            sc.nr_reclaimed += soft.reclaimed;
            sc.nr_scanned += soft.scanned;
            shrink_node(sys, target, sc).await;
        }
        slab::after_zones(sys, targets, sc).await;
        if let Some(first) = targets.first() {
            throttle::consider_reclaim_throttle(sys, *first, sc).await;
        }
        let ready = sc.compaction_ready && !goes_on;
        let enough = sc.nr_reclaimed >= sc.nr_to_reclaim || ready;
        if enough || sys.world().sched.current_killed() {
            return true;
        }
        total_scanned += sc.nr_scanned;
        if wakes && total_scanned > SWAP_CLUSTER_MAX + SWAP_CLUSTER_MAX / 2 {
            sys.world().wakeup_flusher_threads(Some(total_scanned));
        }
        if sc.nr_scanned > 0 && priority < DEF_PRIORITY - 2 {
            congestion::wait_between_priorities(sys, gfp, targets).await;
        }
    }
    false
}

impl Mm {
    /// Whether a direct reclaimer that freed nothing says that there is hope.
    fn node_is_hopeful(&self, zone: ZoneId) -> bool {
        match self.kernel.mechanisms.kswapd.hopeless_node {
            HopelessNode::PagesScanned => self.zone_reclaimable(zone),
            HopelessNode::Failures => false,
        }
    }

    /// Length of a list, counting only pages that the reclaimer may take.
    pub(crate) fn lru_size(&self, target: Target, lru: Lru, sc: &ScanControl) -> u64 {
        match self.kernel.mechanisms.reclaim.lru_unit {
            LruUnit::Zone => self.lruvecs[target.lruvec].len(lru),
            LruUnit::Node => self.lruvecs[target.lruvec].len_up_to(sc.reclaim_idx, lru),
        }
    }
}
