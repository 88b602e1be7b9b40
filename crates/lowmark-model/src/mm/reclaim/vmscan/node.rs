//! A pass over a node, or over a zone where lists are per zone (`shrink_node`).
//!
//! 1. From 5.5 on what to scan is decided for all of the pass (`prepare_scan_control`): which active lists
//!    may shrink, whether there are file pages enough to spare anon, or so few that only anon is worth it.
//! 2. The lists are scanned, and from 3.19 on caches shrunk ([`slab`]).
//! 3. From 5.16 on what was found decides whether the reclaimer has to wait.

use super::classic::shrink_lruvec;
use super::{DEF_PRIORITY, ScanControl, Target, slab, throttle};
use crate::ids::MemcgId;
use crate::kernel::{HopelessNode, LruUnit, RefaultDeactivation, ScanControlTime};
use crate::mm::Mm;
use crate::mm::compaction::compact_gap;
use crate::mm::types::{Lru, Mark, PAGE_ALLOC_COSTLY_ORDER};
use crate::world::Sys;

/// What is decided before a pass; anon first, then file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    /// Active lists that may shrink (`may_deactivate`).
    pub(super) deactivate: [bool; 2],
    /// Both may, because nothing else was left to take (`force_deactivate`).
    forced: bool,
    /// An active list that was not to shrink was passed over (`skipped_deactivate`).
    pub(super) skipped: bool,
    /// There are inactive file pages enough (`cache_trim_mode`).
    pub(super) cache_trim: bool,
    /// There are hardly any file pages (`file_is_tiny`).
    pub(super) file_is_tiny: bool,
}

impl Plan {
    /// Another round will take active pages, too; false if this one would not differ.
    pub(super) fn force_deactivation(&mut self) -> bool {
        let differs = self.skipped && !self.forced;
        self.forced |= differs;
        self.skipped = false;
        differs
    }
}

/// What a pass found (`sc->nr`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// Pages taken off the inactive lists.
    pub(super) taken: u64,
    /// Pages under writeback among them.
    pub(super) writeback: u64,
    /// Those for the second time.
    pub(super) immediate: u64,
    /// Pages of files taken off the inactive lists.
    pub(super) file_taken: u64,
    /// Those that were dirty or under writeback.
    pub(super) dirty: u64,
    /// Dirty ones that nobody writes yet.
    pub(super) unqueued: u64,
    /// Those under writeback that had been marked for reclaim.
    pub(super) congested: u64,
}

impl ScanControl {
    /// `in_reclaim_compaction`: a block is wanted, and it is not to be had by reclaiming a little.
    fn in_reclaim_compaction(&self) -> bool {
        let costly = self.order as usize > PAGE_ALLOC_COSTLY_ORDER;
        self.order > 0 && (costly || self.priority < DEF_PRIORITY - 2)
    }
}

/// Passes at the current priority: another one as long as compaction lacks room for a block that is wanted.
pub(crate) async fn shrink_node(sys: &Sys, target: Target, sc: &mut ScanControl) {
    loop {
        let before = sc.nr_reclaimed;
        shrink_node_once(sys, target, sc).await;
        let reclaimed = sc.nr_reclaimed - before;
        let again = sys
            .world()
            .mm
            .should_continue_reclaim(target, reclaimed, sc);
        if !again || sys.world().sched.current_killed() {
            break;
        }
    }
}

async fn shrink_node_once(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let (reclaimed, scanned) = (sc.nr_reclaimed, sc.nr_scanned);
    sc.found = Found::default();
    sc.lru_pages = 0;
    let groups = {
        let mut world = sys.world();
        debug_assert_eq!(
            world.mm.zones[target.zone].lruvec,
            world.mm.root_lruvec(target.lruvec),
            "lists that are not those of their zone"
        );
        let whole = Target {
            lruvec: world.mm.memcg_lruvec(target.lruvec, sc.memcg),
            ..target
        };
        if world.mm.kernel.mechanisms.reclaim.scan_control == ScanControlTime::Node {
            world.flush_before_reclaim();
            world.mm.prepare_scan_control(whole, sc);
        }
        world.mm.lruvec_tree(whole.lruvec)
    };
    for lruvec in groups {
        shrink_lruvec(sys, Target { lruvec, ..target }, sc).await;
    }
    slab::in_pass(sys, target, sc.nr_scanned - scanned, sc).await;
    throttle::after_pass(sys, target, sc).await;
    if sc.nr_reclaimed > reclaimed {
        sys.world().mm.node_made_progress(target);
    }
}

impl Mm {
    /// `should_continue_reclaim`: a block is wanted, the last pass has freed something, there is neither a block nor
    /// room to make one in any zone, and there are inactive pages enough for that.
    fn should_continue_reclaim(&self, target: Target, reclaimed: u64, sc: &ScanControl) -> bool {
        if !self.kernel.coverage.compaction || !sc.in_reclaim_compaction() || reclaimed == 0 {
            return false;
        }
        let (order, class) = (sc.order as usize, sc.reclaim_idx);
        let node = self.zones[target.zone].node;
        let mut zones = self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let enough = zones.any(|zone| {
            zone.kind <= class
                && (zone.watermark_ok(order, zone.mark(Mark::Min), class)
                    || self.compaction_suitable(zone, order, class))
        });
        if enough {
            return false;
        }
        let root = self.root_lruvec(target.lruvec);
        let anon = match self.swap.free_slots() > 0 {
            true => self.tree_len(root, Lru::InactiveAnon),
            false => 0,
        };
        self.tree_len(root, Lru::InactiveFile) + anon > compact_gap(order)
    }

    /// `prepare_scan_control`, `prepare_scan_count`
    fn prepare_scan_control(&self, target: Target, sc: &mut ScanControl) {
        for file in [false, true] {
            let due = || self.refaulted(target, file) || self.inactive_is_low(target, file, sc);
            sc.plan.deactivate[usize::from(file)] = sc.plan.forced || due();
        }
        let [anon_due, file_due] = sc.plan.deactivate;
        let inactive_file = self.lruvec_page_state(target.lruvec, Lru::InactiveFile);
        sc.plan.cache_trim = inactive_file >> sc.priority > 0 && !file_due;
        // node_page_state: that of the whole node, at this moment.
        let len = |lru| self.tree_len(target.lruvec, lru);
        let file = len(Lru::InactiveFile) + len(Lru::ActiveFile);
        let (free, high) = self.free_and_high(target);
        let anon = len(Lru::InactiveAnon) >> sc.priority > 0;
        sc.plan.file_is_tiny = !sc.cgroup_reclaim() && file + free <= high && !anon_due && anon;
    }

    /// Whether pages that came back too soon have been activated since the last snapshot.
    pub(super) fn refaulted(&self, target: Target, file: bool) -> bool {
        let counts = match self.kernel.mechanisms.reclaim.refault_deactivation {
            RefaultDeactivation::Off => false,
            RefaultDeactivation::File => file,
            RefaultDeactivation::All => true,
        };
        let kind = usize::from(file);
        let before = self.lruvecs[target.lruvec].refaults[kind];
        counts && self.workingset_activations(target.lruvec)[kind] != before
    }

    /// `snapshot_refaults`: a reclaimer of the group is through.
    pub(crate) fn snapshot_refaults(&mut self, targets: &[Target], memcg: MemcgId) {
        for target in targets {
            let lruvec = self.memcg_lruvec(target.lruvec, memcg);
            self.lruvecs[lruvec].refaults = self.workingset_activations(lruvec);
        }
    }

    /// Something was reclaimed: the node is worth kswapd's while again.
    fn node_made_progress(&mut self, target: Target) {
        let by_failures = self.kernel.mechanisms.kswapd.hopeless_node == HopelessNode::Failures;
        if by_failures && self.kernel.mechanisms.reclaim.lru_unit == LruUnit::Node {
            let node = self.zones[target.zone].node;
            self.nodes[node].kswapd.failures = 0;
        }
    }
}
