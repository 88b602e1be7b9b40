//! Waiting for congestion to pass (`mm/backing-dev.c`).
//!
//! `congestion_wait` sleeps until some async request ends on a queue that is not nearly full, on any
//! device, or until the timeout; with nothing being written that is the whole timeout.
//! `wait_iff_congested` does so only when a queue is congested *and* the zone has been marked so;
//! otherwise it merely lets others run.

use crate::time::Nanos;
use crate::world::Sys;
use lowmark_record::{Field, Kind};

impl Sys {
    /// `congestion_wait(BLK_RW_ASYNC, timeout)`; the timeout is in whole jiffies.
    pub(crate) async fn congestion_wait(&self, timeout: Nanos) {
        let delayed = self.sleep_on_congestion(timeout).await;
        self.trace_wait(Kind::CongestionWait, timeout, delayed);
    }

    /// `wait_iff_congested(zone, BLK_RW_ASYNC, timeout)`
    pub(crate) async fn wait_iff_congested(&self, zone: usize, timeout: Nanos) {
        let congested = {
            let world = self.world();
            world.block.any_congested(false) && world.mm.zones[zone].congested
        };
        let delayed = if congested {
            self.sleep_on_congestion(timeout).await
        } else {
            0
        };
        self.trace_wait(Kind::WaitIffCongested, timeout, delayed);
    }

    fn trace_wait(&self, kind: Kind, timeout: Nanos, delayed: Nanos) {
        self.world().trace(kind, |_| {
            vec![
                (Field::UsecTimeout, timeout / 1000),
                (Field::UsecDelayed, delayed / 1000),
            ]
        });
    }

    async fn sleep_on_congestion(&self, timeout: Nanos) -> Nanos {
        let start = {
            let world = &mut *self.world();
            let timeout = world.jiffies(timeout);
            world.block.block_for_congestion(&mut world.sched, timeout);
            world.sched.now()
        };
        self.suspend().await;
        let world = &mut *self.world();
        world.block.end_congestion_wait(&world.sched);
        world.sched.now() - start
    }
}
