//! A run of kswapd over a node (`balance_pgdat`, 4.8 and later).
//!
//! 1. While no zone up to the class is at its high watermark, a pass at each priority, the next one deeper if the
//!    last did not scan or free enough.
//! 2. From 5.0 on zones may be boosted. What is balanced with the boost is left; but as much as the boosts come to
//!    is freed nonetheless, of file pages that need not be written, and no deeper than priority 10.
//! 3. If kswapd has freed nothing down to priority 1, and inactive file pages seemed enough, kswapd goes through all priorities once more
//!    and weighs anonymous pages (6.9).
//! 4. In the end the boosts that there were when it began are over.

use super::{Request, age_active_anon, scan_control, shrink_node};
use crate::ids::{NodeId, ZoneId};
use crate::kernel::CacheTrimRetry;
use crate::mm::Mm;
use crate::mm::compaction::compact_gap;
use crate::mm::reclaim::vmscan::age_node;
use crate::mm::reclaim::vmscan::{ScanControl, Target, soft_limit_reclaim};
use crate::mm::types::{DEF_PRIORITY, Mark, PAGEBLOCK_ORDER, SWAP_CLUSTER_MAX};
use crate::world::Sys;

/// `balance_pgdat` over node lists (4.8 and later). From 5.0 on it may be for a boost alone: the node is
/// balanced with it, and file pages are reclaimed that need not be written.
pub(super) async fn balance_node(sys: &Sys, node: NodeId, request: Request) -> Request {
    let (target, boosts) = {
        let mut world = sys.world();
        world.mm.stat.pageoutrun += 1;
        let zone = world.mm.nodes[node].zones.last().copied();
        let zone = zone.unwrap_or(ZoneId::FIRST);
        let boosts = world.mm.boosts(node, request.class);
        let lruvec = world.mm.zones[zone].lruvec;
        (Target { lruvec, zone }, boosts)
    };
    let mut sc = scan_control(request, 0);
    let mut boost: u64 = boosts.iter().map(|&(_, boost)| boost).sum();
    let mut done = false;
    sys.world().mm.set_reclaim_active(node, request.class, true);
    while sc.priority >= 1 || sys.world().mm.runs_again(&mut sc) {
        let balanced = sys.world().node_balanced(node, sc.order, request.class);
        if !balanced && boost > 0 {
            // The boost is left to ordinary reclaim, which its watermarks bind as well.
            boost = 0;
            sc.priority = DEF_PRIORITY;
        }
        done = balanced && boost == 0;
        if done {
            break;
        }
        sc.may_swap = boost == 0;
        sc.may_writepage = boost == 0;
        let deepest = boost > 0 && sc.priority == DEF_PRIORITY - 2;
        sc.nr_scanned = 0;
        let before = sc.nr_reclaimed;
        let generations = sys.world().mm.lru_gen;
        if generations {
            age_node(sys, target, &mut sc).await;
        } else {
            age_active_anon(sys, target, &sc).await;
        }
        let soft = soft_limit_reclaim(sys, target, &sc).await;
        sc.nr_reclaimed += soft.reclaimed;
        sc.nr_to_reclaim = sys.world().mm.reclaim_target(node, request.class);
        shrink_node(sys, target, &mut sc).await;
        sys.world().wake_pfmemalloc_waiters(node);
        // Fragmentation may be why larger blocks are missing.
        if sc.order > 0 && sc.nr_reclaimed >= compact_gap(sc.order as usize) {
            sc.order = 0;
        }
        let reclaimed = sc.nr_reclaimed - before;
        boost = boost.saturating_sub(reclaimed);
        if boost > 0 && reclaimed == 0 {
            break;
        }
        if sc.nr_scanned < sc.nr_to_reclaim && !deepest || reclaimed == 0 {
            sc.priority = sc.priority.saturating_sub(1);
        }
    }
    {
        let world = &mut *sys.world();
        world.mm.set_reclaim_active(node, request.class, false);
        if !done {
            world.mm.count_failure(node, sc.nr_reclaimed);
        }
        if !boosts.is_empty() {
            for (zone, boost) in boosts {
                world.mm.end_boost(zone, boost);
            }
            // There is likely space now to make pageblocks whole again.
            world.wakeup_kcompactd(node, PAGEBLOCK_ORDER as u32, request.class);
        }
        world.mm.snapshot_refaults(&[target], sc.memcg);
    }
    Request {
        order: sc.order,
        class: request.class,
    }
}

impl Mm {
    /// Whether kswapd, at the end of a run that freed nothing, begins another one that weighs anonymous pages.
    fn runs_again(&self, sc: &mut ScanControl) -> bool {
        let retries = self.kernel.mechanisms.kswapd.cache_trim_retry == CacheTrimRetry::On;
        let again = retries && sc.nr_reclaimed == 0 && sc.forbid_cache_trim();
        if again {
            sc.priority = DEF_PRIORITY;
        }
        again
    }

    /// Pages that a pass of kswapd over a node aims at (`kswapd_shrink_node`).
    fn reclaim_target(&self, node: NodeId, class: usize) -> u64 {
        let high = |zone: ZoneId| self.zones[zone].mark(Mark::High).max(SWAP_CLUSTER_MAX);
        self.zones_up_to(node, class).map(high).sum()
    }

    /// The zones of a node that are boosted, up to a class, and by how much.
    fn boosts(&self, node: NodeId, class: usize) -> Vec<(ZoneId, u64)> {
        let zones = self.zones_up_to(node, class);
        let boosts = zones.map(|zone| (zone, self.zones[zone].watermark_boost));
        boosts.filter(|&(_, boost)| boost > 0).collect()
    }

    /// `pgdat_watermark_boosted`
    pub(super) fn node_boosted(&self, node: NodeId, class: usize) -> bool {
        self.zones_up_to(node, class)
            .any(|zone| self.zones[zone].watermark_boost > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LruvecId;
    use crate::mm::types::ZoneType;
    use crate::mm::types::flag;
    use crate::mm::types::{Gfp, Lru};
    use crate::time::run_until_idle;
    use crate::world::World;
    use std::cell::Cell;
    use std::rc::Rc;

    fn world() -> World {
        World::of_version("v6.18")
    }

    /// Takes a page of a zone, for a list.
    fn use_page(world: &mut World, zone: ZoneId) {
        let list = Gfp::user(NodeId::FIRST).migrate_type();
        let pfn = world.mm.zones[zone].take(&mut world.mm.pages, list);
        let pfn = pfn.expect("it is free");
        world.mm.pages[pfn].set(flag::SWAPBACKED);
        world.mm.lru_add(pfn);
    }

    /// A run for blocks of an order, of a node that has anonymous pages alone, and `left` pages more than its high
    /// watermark, or less.
    fn run_of(mut world: World, left: i64, order: u32) -> (Rc<Sys>, Request) {
        let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
        let reserve = |world: &World| {
            let keeps = &world.mm.zones[zone];
            keeps.mark(Mark::High) + keeps.lowmem_reserve[ZoneType::High as usize]
        };
        while world.mm.zones[zone].free as i64 > reserve(&world) as i64 + left {
            use_page(&mut world, zone);
        }
        for other in world.mm.zones.keys().filter(|&other| other < zone) {
            // Those below have no page for anybody.
            world.mm.zones[other].lowmem_reserve = [u64::from(u32::MAX); 4];
        }
        let sys = Sys::new(world);
        let done = Rc::new(Cell::new(None));
        let (task, result) = (Rc::clone(&sys), Rc::clone(&done));
        let body = Box::pin(async move {
            let class = ZoneType::High as usize;
            result.set(Some(
                balance_node(&task, NodeId::FIRST, Request { order, class }).await,
            ));
        });
        sys.world().spawn("kswapd".into(), false, body);
        run_until_idle(&sys, &mut |_| {});
        let done = done.take().expect("it has ended");
        (sys, done)
    }

    /// What a run over a boosted node came to; `left` counts the boost.
    fn boosted_run(left: i64) -> (u64, u64, u32) {
        let mut world = world();
        let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
        world.mm.zones[zone].boost_watermark();
        world.mm.note_boost(zone);
        let (sys, _) = run_of(world, left, 0);
        let world = sys.world();
        let boost = world.mm.zones[zone].watermark_boost;
        let failures = world.mm.nodes[NodeId::FIRST].kswapd.failures;
        (
            world.mm.stat.pgscan_kswapd.iter().sum::<u64>(),
            boost,
            failures,
        )
    }

    /// Pages scanned and failures of a run over anonymous pages, where counters say that there are inactive file pages enough.
    fn run_of_old_counters(version: &str) -> (u64, u32) {
        let mut world = World::of_version(version);
        let lruvec = LruvecId::from(0);
        world.mm.lruvecs[lruvec].flushed.len[Lru::InactiveFile as usize] = 1 << 20;
        let (sys, _) = run_of(world, -100, 0);
        let world = sys.world();
        let failures = world.mm.nodes[NodeId::FIRST].kswapd.failures;
        (world.mm.stat.pgscan_kswapd.iter().sum(), failures)
    }

    /// d221dd5fea64 (6.9): kswapd does not give up because old counters still report file pages that are gone.
    #[test]
    fn anonymous_pages_are_weighed_in_a_second_run() {
        let (scanned, failures) = run_of_old_counters("v6.18");
        assert!(scanned >= 100, "{scanned}");
        assert_eq!(failures, 0);
        assert_eq!(run_of_old_counters("v6.18+cache_trim_retry=off"), (0, 1));
    }

    /// Twice the pages of a block are enough: whether there is one is left to who wants it.
    #[test]
    fn blocks_are_given_up_for_pages() {
        let (sys, done) = run_of(world(), -100, 3);
        assert_eq!(done.order, 0);
        assert!(sys.world().mm.stat.pgsteal_kswapd.iter().sum::<u64>() >= 16);
        let (sys, done) = run_of(world(), 100, 3);
        assert_eq!(
            (
                done.order,
                sys.world().mm.stat.pgscan_kswapd.iter().sum::<u64>()
            ),
            (3, 0)
        );
    }

    /// Pages of other zones are gone past and counted, but are no work done: the next pass goes deeper.
    #[test]
    fn skipped_pages_are_no_progress() {
        let mut world = world();
        let (below, above) = (ZoneId::FIRST, world.mm.nodes[NodeId::FIRST].zonelist[0]);
        for zone in [above, below] {
            (0..1000).for_each(|_| use_page(&mut world, zone));
        }
        let sys = Sys::new(world);
        let task = Rc::clone(&sys);
        let scanned = Rc::new(Cell::new(0));
        let result = Rc::clone(&scanned);
        let body = Box::pin(async move {
            let class = task.world().mm.zones[below].kind as usize;
            let mut sc = scan_control(Request { order: 0, class }, 32);
            sc.priority = 6;
            let target = Target {
                lruvec: LruvecId::from(0),
                zone: above,
            };
            shrink_node(&task, target, &mut sc).await;
            result.set(sc.nr_scanned);
        });
        sys.world().spawn("kswapd".into(), false, body);
        run_until_idle(&sys, &mut |_| {});
        assert!((1..=1000 >> 6).contains(&scanned.get()));
        assert_eq!(
            sys.world().mm.stat.pgscan_kswapd.iter().sum::<u64>(),
            1000 + scanned.get()
        );
    }

    #[test]
    fn a_boost_alone_is_not_worth_swapping() {
        // Nothing was reclaimed, which counts as a failure up to 6.18.
        assert_eq!(boosted_run(100), (0, 0, 1));
    }

    #[test]
    fn a_node_that_is_short_is_reclaimed_with_its_boost() {
        let (scanned, boost, failures) = boosted_run(-100);
        assert!(scanned >= 100, "{scanned}");
        assert_eq!((boost, failures), (0, 0));
    }
}
