//! Direct reclaimers wait while next to nothing is free (`throttle_direct_reclaim`).
//!
//! What is left below half of the min watermarks is for those who reclaim themselves. Who comes to reclaim directly when
//! the node has less waits until kswapd has freed enough, a second at most if it may hold what kswapd needs. As a
//! boost counts for the watermarks, that is half of the boosts, too.

use crate::ids::NodeId;
use crate::kernel::DirectThrottle;
use crate::mm::reclaim::vmscan::throttle::MAX_KSWAPD_FAILURES;
use crate::mm::types::{Gfp, Mark, ZoneType};
use crate::time::SECOND;
use crate::world::{Sys, World};
use lowmark_record::event::gfp;

/// `throttle_direct_reclaim`. True: the task was killed meanwhile, and need not reclaim.
pub(super) async fn throttle_direct_reclaim(sys: &Sys, gfp: Gfp) -> bool {
    let node = {
        let world = &mut *sys.world();
        if world.mm.kernel.mechanisms.kswapd.direct_throttle == DirectThrottle::Off {
            return false;
        }
        let zone = world.mm.preferred_zone(gfp);
        let node = world.mm.zones[zone].node;
        if world.allow_direct_reclaim(node) {
            return false;
        }
        world.mm.stat.pgscan_direct_throttle += 1;
        node
    };
    // Who may not use file systems may hold what one needs.
    let deadline = (!gfp.has(gfp::FS)).then(|| sys.world().sched.now() + SECOND);
    loop {
        let waits = sys.world().wait_for_kswapd(node, deadline);
        if !waits {
            return sys.world().sched.current_killed();
        }
        sys.suspend().await;
        let world = &mut *sys.world();
        let me = world.sched.current();
        world.mm.nodes[node].pfmemalloc_wait.remove(me);
    }
}

impl World {
    /// `allow_direct_reclaim` (`pfmemalloc_watermark_ok`): more than half of the min watermarks is free, from 4.2 on of zones
    /// with something to reclaim, or kswapd has given up. If not, it is woken for what the kernel itself can use.
    fn allow_direct_reclaim(&mut self, node: NodeId) -> bool {
        if self.mm.nodes[node].kswapd.failures >= MAX_KSWAPD_FAILURES {
            return true;
        }
        let all_zones =
            self.mm.kernel.mechanisms.kswapd.direct_throttle != DirectThrottle::Reclaimable;
        let swap = self.mm.swap.free_slots() > 0;
        let (mut reserve, mut free) = (0, 0);
        for &zone in &self.mm.nodes[node].zones {
            let zone = &self.mm.zones[zone];
            let counts = || all_zones || self.mm.zone_reclaimable_pages(zone, swap) > 0;
            if zone.kind <= ZoneType::Normal && counts() {
                reserve += zone.mark(Mark::Min);
                free += zone.free;
            }
        }
        let enough = reserve == 0 || free > reserve / 2;
        if !enough {
            self.wake_kswapd_for_reserves(node);
        }
        enough
    }

    /// The current task waits on the node, unless it need not any more.
    fn wait_for_kswapd(&mut self, node: NodeId, deadline: Option<u64>) -> bool {
        let now = self.sched.now();
        let late = deadline.is_some_and(|deadline| now >= deadline);
        if late || self.sched.current_killed() || self.allow_direct_reclaim(node) {
            return false;
        }
        let timeout = deadline.map(|deadline| self.jiffies(deadline - now));
        let wait = &mut self.mm.nodes[node].pfmemalloc_wait;
        match timeout {
            Some(timeout) => wait.block_for(&mut self.sched, "free memory", timeout),
            None => wait.block(&mut self.sched, "free memory"),
        }
        true
    }

    /// kswapd has made a pass: if it has freed enough, those go on that wait for it.
    pub(in crate::mm) fn wake_pfmemalloc_waiters(&mut self, node: NodeId) {
        if !self.mm.nodes[node].pfmemalloc_wait.is_empty() && self.allow_direct_reclaim(node) {
            self.wake_all_pfmemalloc_waiters(node);
        }
    }

    /// kswapd would go to sleep: nobody is to wait for it. False: to 3.18 it does not sleep if a task waited.
    pub(in crate::mm) fn release_pfmemalloc_waiters(&mut self, node: NodeId) -> bool {
        let keeps_awake =
            self.mm.kernel.mechanisms.kswapd.direct_throttle == DirectThrottle::KeepsAwake;
        let waited = !self.mm.nodes[node].pfmemalloc_wait.is_empty();
        self.wake_all_pfmemalloc_waiters(node);
        !(keeps_awake && waited)
    }

    fn wake_all_pfmemalloc_waiters(&mut self, node: NodeId) {
        let wait = &mut self.mm.nodes[node].pfmemalloc_wait;
        wait.wake_all(&mut self.sched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::types::{Pfn, flag};
    use crate::time::{MSEC, Nanos, run_until_idle};
    use std::cell::Cell;
    use std::rc::Rc;

    /// A node with so many free pages for every hundred of its min watermarks, and its pages in use.
    fn with_free(percent: u64) -> (World, Vec<Pfn>) {
        let mut world = World::of_version("v6.18");
        world.mm.drain_all_pages();
        let list = Gfp::user(NodeId::FIRST).migrate_type();
        let mut used = Vec::new();
        for at in world.mm.zones.keys() {
            let keep = world.mm.zones[at].mark(Mark::Min) * percent / 100;
            while world.mm.zones[at].free > keep {
                let pfn = world.mm.zones[at].take(&mut world.mm.pages, list);
                let pfn = pfn.expect("it is free");
                world.mm.pages[pfn].set(flag::SWAPBACKED);
                world.mm.lru_add(pfn);
                used.push(pfn);
            }
        }
        (world, used)
    }

    /// When somebody may reclaim who comes to that at once; after 20 ms all pages that are given are free.
    fn waits(world: World, freed: Vec<Pfn>, gfp: Gfp) -> (Rc<Sys>, Nanos) {
        let sys = Sys::new(world);
        let (task, done) = (Rc::clone(&sys), Rc::new(Cell::new(0)));
        let result = Rc::clone(&done);
        let body = Box::pin(async move {
            assert!(!throttle_direct_reclaim(&task, gfp).await);
            result.set(task.world().sched.now());
        });
        sys.world().spawn("task".into(), false, body);
        let kswapd = Rc::clone(&sys);
        let body = Box::pin(async move {
            kswapd.sleep(20 * MSEC).await;
            let world = &mut *kswapd.world();
            for pfn in freed {
                world.mm.release_page(pfn);
            }
            world.mm.drain_all_pages();
            world.wake_pfmemalloc_waiters(NodeId::FIRST);
        });
        sys.world().spawn("kswapd".into(), true, body);
        run_until_idle(&sys, &mut |_| {});
        (sys, done.get())
    }

    #[test]
    fn with_half_of_the_reserves_nobody_waits() {
        let (world, _) = with_free(52);
        let (sys, done) = waits(world, Vec::new(), Gfp::user(NodeId::FIRST));
        assert!(done < MSEC, "{done}");
        assert_eq!(sys.world().mm.stat.pgscan_direct_throttle, 0);
    }

    #[test]
    fn with_less_a_task_waits_until_pages_are_free() {
        let (world, used) = with_free(48);
        let enough = used[..200].to_vec();
        let (sys, done) = waits(world, enough, Gfp::user(NodeId::FIRST));
        assert!((20 * MSEC..25 * MSEC).contains(&done), "{done}");
        assert_eq!(sys.world().mm.stat.pgscan_direct_throttle, 1);
    }

    #[test]
    fn a_boost_counts() {
        let (mut world, used) = with_free(90);
        let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
        world.mm.zones[zone].watermark_boost = 400;
        let (_, done) = waits(world, used[..300].to_vec(), Gfp::user(NodeId::FIRST));
        assert!(done >= 20 * MSEC, "{done}");
    }

    #[test]
    fn who_reads_ahead_waits_a_second_at_most() {
        let (world, _) = with_free(10);
        let gfp = Gfp::user(NodeId::FIRST).without(gfp::FS);
        let (_, done) = waits(world, Vec::new(), gfp);
        assert!((SECOND..SECOND + 10 * MSEC).contains(&done), "{done}");
    }

    #[test]
    fn nobody_waits_for_a_kswapd_that_has_given_up() {
        let (mut world, _) = with_free(10);
        world.mm.nodes[NodeId::FIRST].kswapd.failures = MAX_KSWAPD_FAILURES;
        let (_, done) = waits(world, Vec::new(), Gfp::user(NodeId::FIRST));
        assert!(done < MSEC, "{done}");
    }
}
