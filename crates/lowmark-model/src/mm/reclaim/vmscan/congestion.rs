//! Waiting for congestion when reclaim gets nowhere (to 5.15; later kernels wait in `throttle.rs`).
//!
//! | who waits | where | at most | 2.6.36 | patch 7 as posted | patch 8 as posted | 2.6.37 |
//! |---|---|---|---|---|---|---|
//! | an allocation that reclaims and finds no page | before it tries again | 20 ms | always | a queue is congested | the same, and the first zone is marked | as patch 8 |
//! | a direct reclaimer below priority 10 | before the next priority | 100 ms | always | always | a queue is congested, and the zone with most writeback is marked | the same, of the first zone |
//!
//! A zone is marked by batches of dirty pages (`World::note_dirty_pages`).

use super::Target;
use crate::kernel::{AllocWait, DirectWait};
use crate::mm::types::Gfp;
use crate::time::SECOND;
use crate::world::Sys;

/// A direct reclaimer that has not found enough gives writes some time to end. From 3.11 on that wait is in
/// `shrink_inactive_list`.
pub(super) async fn wait_between_priorities(sys: &Sys, gfp: Gfp, targets: &[Target]) {
    let zone = {
        let world = sys.world();
        match world.mm.kernel.mechanisms.reclaim.direct_wait {
            DirectWait::Always => None,
            // The first of equals.
            DirectWait::BusiestZone => {
                let zones = targets.iter().map(|target| target.zone).rev();
                zones.max_by_key(|&zone| world.mm.zones[zone].writeback)
            }
            DirectWait::Priority => Some(world.mm.preferred_zone(gfp)),
            DirectWait::None => return,
        }
    };
    match zone {
        None => sys.congestion_wait(SECOND / 10).await,
        zone => sys.wait_iff_congested(zone, SECOND / 10).await,
    }
}

impl Sys {
    /// An allocation that has reclaimed and found no page is about to try again.
    pub(in crate::mm) async fn wait_before_retry(&self, gfp: Gfp) {
        let (rule, zone) = {
            let world = self.world();
            let rule = world.mm.kernel.mechanisms.zones.alloc_wait;
            (rule, world.mm.preferred_zone(gfp))
        };
        match rule {
            AllocWait::Always => self.congestion_wait(SECOND / 50).await,
            AllocWait::AnyQueue => self.wait_iff_congested(None, SECOND / 50).await,
            AllocWait::MarkedZone => self.wait_iff_congested(Some(zone), SECOND / 50).await,
            // should_reclaim_retry() lets the allocation try again at once.
            AllocWait::None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{DeviceId, NodeId, ZoneId};
    use crate::kernel::Kernel;
    use crate::time;
    use crate::trace::Trace;
    use crate::world::World;
    use lowmark_record::{Event, Field, Kind};
    use lowmark_spec::Machine;

    /// The kernels of the posting of 15 September 2010, and what came of it.
    const BEFORE: &str = "v2.6.37-wait-iff-congested";
    const PATCH_7: &str = "v2.6.37-wait-iff-congested+alloc_wait=any-queue";
    const PATCH_8: &str = "v2.6.37+direct_wait=busiest-zone+congested_zone=none-left";
    const MERGED: &str = "v2.6.37";

    /// The zones of the machine, the preferred one first.
    const FIRST: usize = 1;
    const SECOND_ZONE: usize = 0;

    /// What reclaim finds.
    #[derive(Clone, Copy)]
    struct Found {
        /// A queue is congested.
        congested: bool,
        /// Zones that are marked.
        marked: &'static [usize],
        /// The zone that has most pages under writeback.
        busiest: usize,
    }

    /// Kind and length in ms of a wait of 20 ms and of one of 100 ms, as tracepoints say it.
    fn waits(kernel: &str, found: Found) -> [Option<(Kind, u64)>; 2] {
        let kernel = Kernel::named(kernel);
        let trace = Trace::new(Some(kernel.version.release()));
        let mut world = World::new(&Machine::small(64 << 20, 64 << 20), kernel, trace);
        if found.congested {
            world.block.set_congested(DeviceId::FIRST);
        }
        for &zone in found.marked {
            world.mm.zones[ZoneId::from(zone)].congested = true;
        }
        world.mm.zones[ZoneId::from(found.busiest)].writeback = 10;
        let sys = Sys::new(world);
        let body = {
            let sys = sys.clone();
            async move {
                let gfp = Gfp::user(NodeId::FIRST);
                let targets = sys.world().mm.targets(gfp);
                sys.wait_before_retry(gfp).await;
                wait_between_priorities(&sys, gfp, &targets).await;
            }
        };
        sys.world().spawn("task".into(), false, Box::pin(body));
        time::run_until_idle(&sys, &mut |_| {});
        let events: Vec<Event> = sys.world().trace.take().iter().collect();
        [20_000, 100_000].map(|timeout| {
            let of = |event: &&Event| event.get(Field::UsecTimeout) == Some(timeout);
            let wait = events.iter().find(of)?;
            Some((wait.kind, wait.get(Field::UsecDelayed)? / 1000))
        })
    }

    const IDLE: Found = Found {
        congested: false,
        marked: &[FIRST, SECOND_ZONE],
        busiest: FIRST,
    };
    use Kind::{CongestionWait, WaitIffCongested};

    #[test]
    fn without_congestion_only_those_before_patch_8_sleep() {
        let conditional = |ms| Some((WaitIffCongested, ms));
        let always = |ms| Some((CongestionWait, ms));
        assert_eq!(waits(BEFORE, IDLE), [always(20), always(100)]);
        // As posted the patch leaves direct reclaim alone.
        assert_eq!(waits(PATCH_7, IDLE), [conditional(0), always(100)]);
        assert_eq!(waits(PATCH_8, IDLE), [conditional(0), conditional(0)]);
        assert_eq!(waits(MERGED, IDLE), [conditional(0), conditional(0)]);
        assert_eq!(waits("v4.7", IDLE), [None, None]);
    }

    #[test]
    fn with_congestion_the_mark_of_a_zone_decides() {
        let slept = |found: Found, kernel: &str| {
            waits(kernel, found).map(|wait| wait.map_or(0, |(_, ms)| ms))
        };
        let unmarked = Found {
            congested: true,
            marked: &[],
            busiest: SECOND_ZONE,
        };
        assert_eq!(slept(unmarked, PATCH_7), [20, 100]);
        assert_eq!(slept(unmarked, PATCH_8), [0, 0]);
        assert_eq!(slept(unmarked, MERGED), [0, 0]);
        // The zone with most writeback as posted, the first one as merged.
        let busiest = Found {
            marked: &[SECOND_ZONE],
            ..unmarked
        };
        assert_eq!(slept(busiest, PATCH_8), [0, 100]);
        assert_eq!(slept(busiest, MERGED), [0, 0]);
        let first = Found {
            marked: &[FIRST],
            ..unmarked
        };
        assert_eq!(slept(first, PATCH_8), [20, 0]);
        assert_eq!(slept(first, MERGED), [20, 100]);
    }
}
