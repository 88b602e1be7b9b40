//! Waiting when reclaim gets nowhere (`reclaim_throttle`, 5.16 and later).
//!
//! | reason | who waits | until | at most |
//! |---|---|---|---|
//! | writeback | kswapd that met pages whose writeback it had met before | 32 pages for each waiter have been written | 100 ms |
//! | no progress | a direct reclaimer that freed nothing near the last priority while much is being written | another frees an eighth of what it scans | a tick |
//! | isolated | a direct reclaimer when others hold more pages than are left | fewer are held | 20 ms |

use super::{SWAP_CLUSTER_MAX, ScanControl, Target};
use crate::kernel::ReclaimStall;
use crate::mm::mmzone::Lru;
use crate::time::{SECOND, WaitQueue};
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};

/// Why a reclaimer waits (`enum vmscan_throttle_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Writeback,
    Isolated,
    NoProgress,
}

impl Reason {
    /// `VMSCAN_THROTTLE_*`, one bit each.
    fn flag(self) -> u64 {
        1 << self as u64
    }
}

/// Who waits on a node, and how much has been written since (`pg_data_t`).
#[derive(Debug, Default)]
pub(crate) struct Throttled {
    /// `reclaim_wait` by [`Reason`].
    waiting: [WaitQueue; 3],
    /// `nr_writeback_throttled`
    for_writeback: u64,
    /// Pages written since the first of them began to wait (`NR_THROTTLED_WRITTEN`).
    written: u64,
}

/// Runs of kswapd in vain after which nobody waits for it (`MAX_RECLAIM_RETRIES`).
pub(crate) const MAX_KSWAPD_FAILURES: u32 = 16;

/// Waits for a reason on the node, if there is still cause to.
pub(super) async fn reclaim_throttle(sys: &Sys, target: Target, reason: Reason) {
    let (node, timeout, began) = {
        let world = &mut *sys.world();
        let node = world.mm.zones[target.zone].node;
        let timeout = match reason {
            Reason::Writeback => SECOND / 10,
            Reason::Isolated => SECOND / 50,
            Reason::NoProgress if world.skip_throttle_noprogress(node) => return,
            // One jiffy, whatever it is.
            Reason::NoProgress => 1,
        };
        let timeout = world.jiffies(timeout);
        let throttled = &mut world.mm.nodes[node].throttled;
        if reason == Reason::Writeback {
            if throttled.for_writeback == 0 {
                throttled.written = 0;
            }
            throttled.for_writeback += 1;
        }
        let queue = &mut throttled.waiting[reason as usize];
        queue.block_for(&mut world.sched, "reclaim to go on", timeout);
        (node, timeout, world.sched.now())
    };
    sys.suspend().await;
    let world = &mut *sys.world();
    let me = world.sched.current();
    let throttled = &mut world.mm.nodes[node].throttled;
    throttled.waiting[reason as usize].remove(me);
    if reason == Reason::Writeback {
        throttled.for_writeback -= 1;
    }
    let delayed = world.sched.now() - began;
    world.trace(Kind::Throttled, |_| {
        vec![
            (Field::Nid, node as u64),
            (Field::UsecTimeout, timeout / 1000),
            (Field::UsecDelayed, delayed / 1000),
            (Field::ThrottleReason, reason.flag()),
        ]
    });
}

/// What a pass over the node found may make kswapd wait (the end of `shrink_node`).
pub(super) async fn after_pass(sys: &Sys, target: Target, sc: &ScanControl) {
    if !sc.kswapd || !sys.world().throttles() {
        return;
    }
    if sc.found.writeback > 0 && sc.found.writeback == sc.found.taken {
        sys.world().mm.lruvecs[target.lruvec].all_writeback = true;
    }
    if sc.found.immediate > 0 {
        reclaim_throttle(sys, target, Reason::Writeback).await;
    }
}

/// A direct reclaimer has been through all nodes at one priority: if it does well, those that waited for
/// that go on; if it has freed nothing near the end, it waits itself.
pub(super) async fn consider_reclaim_throttle(sys: &Sys, first: Target, sc: &ScanControl) {
    {
        let world = &mut *sys.world();
        if !world.throttles() {
            return;
        }
        if sc.nr_reclaimed > sc.nr_scanned >> 3 {
            let node = world.mm.zones[first.zone].node;
            let queue = &mut world.mm.nodes[node].throttled.waiting[Reason::NoProgress as usize];
            queue.wake_all(&mut world.sched);
            return;
        }
    }
    // A group waits for writeback only.
    if sc.priority == 1 && sc.nr_reclaimed == 0 && !sc.cgroup_reclaim() {
        reclaim_throttle(sys, first, Reason::NoProgress).await;
    }
}

impl World {
    /// Whether reclaimers of this kernel wait for what they lack.
    pub(crate) fn throttles(&self) -> bool {
        self.kernel.mechanisms.reclaim_stall == ReclaimStall::Throttle
    }

    /// `skip_throttle_noprogress`: kswapd has given up, or writing is not what is lacking.
    fn skip_throttle_noprogress(&self, node: usize) -> bool {
        let swap = self.mm.swap.free_slots() > 0;
        let zones = &self.mm.nodes[node].zones;
        let mut lruvecs: Vec<usize> = zones.iter().map(|&z| self.mm.zones[z].lruvec).collect();
        lruvecs.dedup();
        let reclaimable: u64 = lruvecs
            .iter()
            .map(|&lruvec| self.mm.tree_reclaimable(lruvec, swap))
            .sum();
        self.mm.nodes[node].kswapd.failures >= MAX_KSWAPD_FAILURES
            || 2 * self.mm.nr_writeback <= reclaimable
    }

    /// `acct_reclaim_writeback`: pages of a node have been written while its reclaimers wait for that.
    pub(crate) fn account_reclaim_writeback(&mut self, zone: usize, pages: u64) {
        let node = self.mm.zones[zone].node;
        let throttled = &mut self.mm.nodes[node].throttled;
        if throttled.for_writeback == 0 {
            return;
        }
        throttled.written += pages;
        if throttled.written > SWAP_CLUSTER_MAX * throttled.for_writeback {
            throttled.waiting[Reason::Writeback as usize].wake_all(&mut self.sched);
        }
    }

    /// `wake_throttle_isolated`: not too many pages are isolated any more.
    pub(super) fn wake_throttle_isolated(&mut self, target: Target, lru: Lru, sc: &ScanControl) {
        let node = self.mm.zones[target.zone].node;
        let idle = self.mm.nodes[node].throttled.waiting[Reason::Isolated as usize].is_empty();
        if !idle && !self.too_many_isolated(target, lru, sc) {
            let queue = &mut self.mm.nodes[node].throttled.waiting[Reason::Isolated as usize];
            queue.wake_all(&mut self.sched);
        }
    }
}
