//! A pass over a node, or over a zone where lists are per zone (`shrink_node`).
//!
//! 1. From 5.5 on what to scan is decided for all of the pass (`prepare_scan_control`): which active lists
//!    may shrink, whether there are file pages enough to spare anon, or so few that only anon is worth it.
//! 2. The lists are scanned, and from 3.19 on caches shrunk ([`slab`]).
//! 3. From 5.16 on what was found decides whether the reclaimer has to wait.

use super::page_list::Outcome;
use super::{ScanControl, Target, lru_gen, memcg, throttle};
use crate::ids::{MemcgId, ZoneId};
use crate::kernel::{
    BlockReclaim, CompactSuitable, HopelessNode, LruUnit, RefaultDeactivation, ScanControlTime,
};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::compaction::{Suitable, compact_gap};
use crate::mm::types::{Gfp, Lru, Mark, PAGE_ALLOC_COSTLY_ORDER, ZoneType};
use crate::world::Sys;
use lowmark_record::event::gfp;

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
    /// Anonymous pages are weighed even if there are (`no_cache_trim_mode`).
    no_cache_trim: bool,
    /// A pass over file pages alone, as there seemed to be enough of them, freed nothing (`cache_trim_mode_failed`).
    cache_trim_failed: bool,
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

    /// The next round begins like the first one.
    pub(super) fn forget_force(&mut self) {
        self.forced = false;
    }
}

impl ScanControl {
    /// Anonymous pages are weighed from now on although inactive file pages may seem enough; false if that was so in the passes before.
    pub(in crate::mm::reclaim) fn forbid_cache_trim(&mut self) -> bool {
        let differs = self.plan.cache_trim_failed && !self.plan.no_cache_trim;
        self.plan.no_cache_trim |= differs;
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

impl Found {
    /// Adds the outcome of a batch of `taken` pages of a list.
    pub(super) fn add_batch(&mut self, lru: Lru, taken: u64, outcome: &Outcome) {
        self.taken += taken;
        self.writeback += outcome.writeback;
        self.immediate += outcome.immediate;
        self.file_taken += if lru.is_file() { taken } else { 0 };
        self.dirty += outcome.dirty;
        self.unqueued += outcome.unqueued;
        self.congested += outcome.congested;
    }
}

/// Passes at the current priority: another one as long as compaction lacks room for a block that is wanted.
pub(crate) async fn shrink_node(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let alone = sys.world().mm.passes_alone(sc);
    if alone {
        lru_gen::shrink_node(sys, target, sc).await;
        return;
    }
    loop {
        let (reclaimed, scanned) = (sc.nr_reclaimed, sc.nr_scanned);
        shrink_node_once(sys, target, sc).await;
        let last = (sc.nr_reclaimed - reclaimed, sc.nr_scanned - scanned);
        let again = sys.world().mm.should_continue_reclaim(target, last, sc);
        if !again || sys.world().sched.current_killed() {
            break;
        }
    }
}

async fn shrink_node_once(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let reclaimed = sc.nr_reclaimed;
    sc.found = Found::default();
    sc.lru_pages = 0;
    let whole = {
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
        whole
    };
    memcg::shrink_node_memcgs(sys, whole, sc).await;
    throttle::after_pass(sys, target, sc).await;
    if sc.nr_reclaimed > reclaimed {
        sys.world().mm.node_made_progress(target);
    } else {
        sc.plan.cache_trim_failed |= sc.plan.cache_trim;
    }
}

/// What is kept above the high watermark, so that one zone is not reclaimed for another's sake all the time: the low watermark or
/// a hundredth of the zone (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
pub(in crate::mm::reclaim) fn low_or_percent(zone: &Zone) -> u64 {
    zone.mark(Mark::Low).min(zone.size().div_ceil(100))
}

impl Mm {
    /// Whether a direct reclaimer for a costly block passes over lists, as compaction can go on in every zone whose pages
    /// they have. Noted is whether it can in any (`shrink_zones`).
    pub(super) fn leaves_to_compaction(
        &mut self,
        target: Target,
        gfp: Gfp,
        sc: &mut ScanControl,
    ) -> bool {
        let costly = sc.order as usize > PAGE_ALLOC_COSTLY_ORDER;
        if !costly || sc.cgroup_reclaim() || !self.kernel.coverage.compaction {
            return false;
        }
        let of_lists = |&zone: &ZoneId| {
            let zone = &self.zones[zone];
            zone.lruvec == target.lruvec && zone.kind <= sc.reclaim_idx
        };
        let zones: Vec<ZoneId> = self
            .zonelist(gfp)
            .iter()
            .copied()
            .filter(of_lists)
            .collect();
        let (mut any, mut all) = (false, true);
        for zone in zones {
            let ready = self.compaction_ready(zone, sc);
            (any, all) = (any || ready, all && ready);
        }
        sc.compaction_ready |= any;
        all
    }

    /// `compaction_ready`: there is a block, or room enough above the high watermark to make one.
    fn compaction_ready(&mut self, number: ZoneId, sc: &ScanControl) -> bool {
        let order = sc.order as usize;
        let rules = self.kernel.mechanisms.blocks;
        let class = self.class_of_blocks(sc);
        let zone = &self.zones[number];
        let gap = match rules.block_reclaim {
            BlockReclaim::Batch | BlockReclaim::TwiceTheBlock => return false,
            BlockReclaim::CompactionReady | BlockReclaim::StopsReady => low_or_percent(zone),
            BlockReclaim::BlockReady | BlockReclaim::RoomAlone => 0,
        };
        let room = zone.mark(Mark::High) + gap + compact_gap(order);
        let roomy = zone.watermark_ok(0, room, class);
        if matches!(
            rules.block_reclaim,
            BlockReclaim::BlockReady | BlockReclaim::RoomAlone
        ) {
            let suitable = self.compaction_suitable(zone, order, class);
            return suitable == Suitable::HasBlock || suitable == Suitable::Fragmented && roomy;
        }
        let can_help = self.compaction_deferred(number, order)
            || self.compaction_suitable(&self.zones[number], order, class) != Suitable::Short;
        roomy && can_help
    }

    /// The class whose reserves count when reclaim asks whether compaction can help: to 4.8 that of the lowest zone.
    fn class_of_blocks(&self, sc: &ScanControl) -> ZoneType {
        match self.kernel.mechanisms.blocks.compact_suitable {
            CompactSuitable::CostlyApart => sc.reclaim_idx,
            CompactSuitable::RoomFirst | CompactSuitable::BlockFirst => ZoneType::Dma,
        }
    }

    /// `should_continue_reclaim`: a block is wanted, and the last pass, of which the reclaimed and the scanned pages are given,
    /// was not in vain. To 5.3 it goes on until twice the block is reclaimed, if there are inactive pages enough; and it goes on
    /// while there is neither a block nor room to make one in any zone.
    fn should_continue_reclaim(&self, target: Target, last: (u64, u64), sc: &ScanControl) -> bool {
        let rule = self.kernel.mechanisms.blocks.block_reclaim;
        let (reclaimed, scanned) = last;
        let twice = match rule {
            BlockReclaim::Batch => return false,
            BlockReclaim::RoomAlone => false,
            _ => true,
        };
        let insists = twice && sc.gfp.has(gfp::RETRY_MAYFAIL) && scanned > 0;
        let in_vain = reclaimed == 0 && !insists;
        if !self.kernel.coverage.compaction || !self.in_reclaim_compaction(sc) || in_vain {
            return false;
        }
        let (order, class) = (sc.order as usize, self.class_of_blocks(sc));
        let enough_inactive = self.inactive_pages(target) > compact_gap(order);
        if twice && sc.nr_reclaimed < compact_gap(order) && enough_inactive {
            return true;
        }
        let of_lists = |zone: &&Zone| match self.kernel.mechanisms.reclaim.lru_unit {
            LruUnit::Zone => zone.lruvec == self.zones[target.zone].lruvec,
            LruUnit::Node => zone.kind <= sc.reclaim_idx,
        };
        let node = self.zones[target.zone].node;
        let zones = self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let can_help =
            |zone: &Zone| self.compaction_suitable(zone, order, class) != Suitable::Short;
        let done = zones.filter(of_lists).any(can_help);
        !done && (twice || enough_inactive)
    }

    /// Inactive pages that reclaim could take.
    fn inactive_pages(&self, target: Target) -> u64 {
        let root = self.root_lruvec(target.lruvec);
        let anon = if self.swap.free_slots() > 0 {
            self.tree_len(root, Lru::InactiveAnon)
        } else {
            0
        };
        self.tree_len(root, Lru::InactiveFile) + anon
    }

    /// `prepare_scan_control`, `prepare_scan_count`: generations need none of it.
    fn prepare_scan_control(&self, target: Target, sc: &mut ScanControl) {
        if self.lru_gen {
            return;
        }
        for file in [false, true] {
            let due = || self.refaulted(target, file) || self.inactive_is_low(target, file, sc);
            sc.plan.deactivate[usize::from(file)] = sc.plan.forced || due();
        }
        let [anon_due, file_due] = sc.plan.deactivate;
        let inactive_file = self.lruvec_page_state(target.lruvec, Lru::InactiveFile);
        let enough = inactive_file >> sc.priority > 0 && !file_due;
        sc.plan.cache_trim = enough && !sc.plan.no_cache_trim;
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
    pub(super) fn node_made_progress(&mut self, target: Target) {
        let by_failures = self.kernel.mechanisms.kswapd.hopeless_node == HopelessNode::Failures;
        if by_failures && self.kernel.mechanisms.reclaim.lru_unit == LruUnit::Node {
            let node = self.zones[target.zone].node;
            self.nodes[node].kswapd.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LruvecId, NodeId};
    use crate::mm::reclaim::vmscan::{ScanControl, do_try_to_free_pages};
    use crate::mm::types::DEF_PRIORITY;
    use crate::mm::types::{PAGEBLOCK_ORDER, Pfn, ZoneType};
    use crate::time::run_until_idle;
    use crate::world::World;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Every page is in use but every second one, as many in each zone as its high watermark and `more` besides.
    fn fragmented(version: &str, more: u64) -> World {
        let mut world = World::of_version(version);
        let mm = &mut world.mm;
        mm.drain_all_pages();
        let list = Gfp::user(NodeId::FIRST).migrate_type();
        for at in mm.zones.keys() {
            let mut used: Vec<Pfn> = Vec::new();
            while let Some(pfn) = mm.zones[at].take(&mut mm.pages, list) {
                used.push(pfn);
            }
            let free = (mm.zones[at].mark(Mark::High) + more) as usize;
            used.sort_unstable();
            for &pfn in used.iter().step_by(2).take(free) {
                mm.free_block(pfn, 0);
            }
        }
        world
    }

    /// For a huge page nothing is reclaimed where compaction has the high watermark and twice the block to work with; for a
    /// small block it is reclaimed as ever.
    #[test]
    fn reclaim_for_a_huge_page_leaves_it_to_compaction_where_that_has_room() {
        let gfp = Gfp::user(NodeId::FIRST);
        let gap = compact_gap(PAGEBLOCK_ORDER);
        for (more, order, leaves) in [(gap + 1, 9, true), (gap / 2, 9, false), (gap + 1, 3, false)]
        {
            let mut world = fragmented("v6.1", more);
            let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
            let lruvec = LruvecId::from(0);
            let mut sc = ScanControl::new(false, 32, order, ZoneType::High);
            // ZONE_DMA is too small for so much to be free in it: the zone above it decides what is noted.
            world
                .mm
                .leaves_to_compaction(Target { lruvec, zone }, gfp, &mut sc);
            assert_eq!(sc.compaction_ready, leaves, "order {order}, {more}");
        }
    }

    /// Compaction can go on, and nothing is there to be reclaimed: to 3.16 a direct reclaimer for a huge page comes to priority 0
    /// all the same, from 3.17 on it stops at once. Both say that there is hope.
    #[test]
    fn to_3_16_leaving_it_to_compaction_ends_no_reclaim() {
        for (version, priority) in [("v3.3", 0), ("v3.16", 0), ("v3.17", DEF_PRIORITY)] {
            let sys = Sys::new(fragmented(version, compact_gap(PAGEBLOCK_ORDER) + 1000));
            let (task, came_to) = (Rc::clone(&sys), Rc::new(Cell::new(None)));
            let result = Rc::clone(&came_to);
            let body = Box::pin(async move {
                let mut sc = ScanControl::new(false, 32, 9, ZoneType::High);
                let hope = do_try_to_free_pages(&task, Gfp::user(NodeId::FIRST), &mut sc).await;
                result.set(Some((sc.priority, hope)));
            });
            sys.world().spawn("reclaimer".into(), false, body);
            run_until_idle(&sys, &mut |_| {});
            assert_eq!(came_to.take(), Some((priority, 1)), "{version}");
        }
    }
}
