//! `pthread_barrier_wait`.

use crate::time::WaitQueue;
use crate::world::Sys;

/// A barrier that opens when all parties have arrived, and closes again behind them.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    pub(crate) parties: u64,
    pub(crate) arrived: u64,
    pub(crate) waiters: WaitQueue,
}

/// Arrives at a barrier and waits for the others.
pub(super) async fn wait(sys: &Sys, barrier: usize) {
    {
        let world = &mut *sys.world();
        let barrier = &mut world.workload.barriers[barrier];
        barrier.arrived += 1;
        if barrier.arrived >= barrier.parties {
            barrier.arrived = 0;
            barrier.waiters.wake_all(&mut world.sched);
            return;
        }
        barrier.waiters.block(&mut world.sched, "a barrier");
    }
    sys.suspend().await;
}
