//! Waiting when reclaim gets nowhere (`reclaim_throttle`, 5.16 and later).
//!
//! | reason | who waits | until | at most |
//! |---|---|---|---|
//! | writeback | kswapd that met pages whose writeback it had met before | 32 pages for each waiter have been written | 100 ms |
//! | congested | a direct reclaimer of a node or group in which a pass met no dirty pages but those that had come round under writeback | | a tick |
//! | no progress | a direct reclaimer that freed nothing near the last priority while much is being written | another frees an eighth of what it scans | a tick |
//! | isolated | a direct reclaimer when others hold more pages than are left | fewer are held | 20 ms |

use super::{ScanControl, Target};
use crate::ids::{LruvecId, NodeId, ZoneId};
use crate::kernel::{BatchStall, ReclaimStall};
use crate::mm::Mm;
use crate::mm::types::{Lru, SWAP_CLUSTER_MAX};
use crate::time::SECOND;
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};

/// Why a reclaimer waits (`enum vmscan_throttle_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Writeback,
    Isolated,
    NoProgress,
    Congested,
}

impl Reason {
    /// `VMSCAN_THROTTLE_*`, one bit each.
    fn flag(self) -> u64 {
        1 << self as u64
    }
}

/// Runs of kswapd that reclaim nothing, after which nobody waits for it (`MAX_RECLAIM_RETRIES`).
pub(crate) const MAX_KSWAPD_FAILURES: u32 = 16;

/// Waits for a reason on the node, if there is still cause to.
pub(super) async fn reclaim_throttle(sys: &Sys, target: Target, reason: Reason) {
    let (node, timeout, began) = {
        let world = &mut *sys.world();
        let node = world.mm.zones[target.zone].node;
        let timeout = match reason {
            Reason::Writeback => SECOND / 10,
            Reason::Isolated => SECOND / 50,
            Reason::NoProgress | Reason::Congested if world.mm.skip_throttle_noprogress(node) => {
                return;
            }
            // One jiffy, whatever it is.
            Reason::NoProgress | Reason::Congested => 1,
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
            (Field::Nid, node.into()),
            (Field::UsecTimeout, timeout / 1000),
            (Field::UsecDelayed, delayed / 1000),
            (Field::ThrottleReason, reason.flag()),
        ]
    });
}

/// What a pass over the node found may make its reclaimer wait, or others later (the end of `shrink_node`).
pub(super) async fn after_pass(sys: &Sys, target: Target, sc: &ScanControl) {
    if !sys.world().mm.judges_passes() {
        return;
    }
    let throttles = sys.world().mm.throttles();
    let found = sc.found;
    if sc.kswapd {
        let node = &mut sys.world().mm.lruvecs[target.lruvec];
        node.all_writeback |= found.writeback > 0 && found.writeback == found.taken;
        node.tail_dirty |= found.unqueued > 0 && found.unqueued == found.file_taken;
    }
    if sc.kswapd && found.immediate > 0 {
        if throttles {
            reclaim_throttle(sys, target, Reason::Writeback).await;
        } else {
            sys.congestion_wait(SECOND / 10).await;
        }
    }
    let congested = {
        let mut world = sys.world();
        let mm = &mut world.mm;
        let lruvec = mm.memcg_lruvec(target.lruvec, sc.memcg);
        let all = found.dirty > 0 && found.dirty == found.congested;
        // Groups of version 1 wait for writes themselves (`writeback_throttling_sane`).
        let group = sc.cgroup_reclaim() && !mm.memcontrol.is_legacy();
        mm.lruvecs[lruvec].congested |= all && (sc.kswapd || group);
        mm.lruvecs[lruvec].congested
    };
    if congested && !sc.kswapd {
        if throttles {
            reclaim_throttle(sys, target, Reason::Congested).await;
        } else {
            sys.wait_iff_congested(None, SECOND / 10).await;
        }
    }
}

/// A direct reclaimer has been through all nodes at one priority: if it does well, those that waited for
/// that go on; if it has freed nothing near the end, it waits itself.
pub(super) async fn consider_reclaim_throttle(sys: &Sys, first: Target, sc: &ScanControl) {
    {
        let world = &mut *sys.world();
        if !world.mm.throttles() {
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

impl Mm {
    /// Whether reclaimers of this kernel wait for what they lack.
    pub(crate) fn throttles(&self) -> bool {
        self.kernel.mechanisms.reclaim.reclaim_stall == ReclaimStall::Throttle
    }

    /// Whether reclaimers decide about waits by a whole pass over a node, not by a batch.
    pub(super) fn judges_passes(&self) -> bool {
        self.throttles() || self.kernel.mechanisms.reclaim.batch_stall == BatchStall::Pass
    }

    /// `skip_throttle_noprogress`: kswapd has given up, or writing is not what is lacking.
    fn skip_throttle_noprogress(&self, node: NodeId) -> bool {
        let swap = self.swap.free_slots() > 0;
        let zones = &self.nodes[node].zones;
        let mut lruvecs: Vec<LruvecId> = zones.iter().map(|&z| self.zones[z].lruvec).collect();
        lruvecs.dedup();
        let reclaimable: u64 = lruvecs
            .iter()
            .map(|&lruvec| self.tree_reclaimable(lruvec, swap))
            .sum();
        self.nodes[node].kswapd.failures >= MAX_KSWAPD_FAILURES
            || 2 * (self.nr_dirty + self.nr_writeback) <= reclaimable
    }
}

impl World {
    /// A group's reclaimer is through: the next one finds out for itself. What is true of a node holds until
    /// kswapd sleeps.
    pub(super) fn forget_congestion(&mut self, targets: &[Target], sc: &ScanControl) {
        for target in targets.iter().filter(|_| sc.cgroup_reclaim()) {
            let lruvec = self.mm.memcg_lruvec(target.lruvec, sc.memcg);
            self.mm.lruvecs[lruvec].congested = false;
        }
    }

    /// `acct_reclaim_writeback`: pages of a node have been written while its reclaimers wait for that.
    pub(crate) fn account_reclaim_writeback(&mut self, zone: ZoneId, pages: u64) {
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
        if !idle && !self.mm.too_many_isolated(target, lru, sc) {
            let queue = &mut self.mm.nodes[node].throttled.waiting[Reason::Isolated as usize];
            queue.wake_all(&mut self.sched);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MemcgId;
    use crate::kernel::Kernel;
    use crate::mm::types::ZoneType;
    use crate::time;
    use crate::trace::Trace;
    use lowmark_spec::Machine;
    use lowmark_spec::workload::Cgroup;

    /// Who reclaims: whether it is kswapd, and the number of the memory cgroup.
    type Who = (bool, usize);
    const KSWAPD: Who = (true, 0);
    const DIRECT: Who = (false, 0);
    const GROUP: Who = (false, 1);

    /// The only zone of the machine, and its node's lists.
    fn target() -> Target {
        Target {
            lruvec: LruvecId::from(0),
            zone: ZoneId::FIRST,
        }
    }

    /// What a reclaimer does in a test.
    #[derive(Clone, Copy)]
    enum Step {
        /// Ends a pass that met so many dirty pages of files, of which so many had come round under writeback.
        Pass(Who, u64, u64),
        /// A group's reclaimer is through.
        Through,
        /// All that was dirty is written.
        Written,
    }

    /// Each step's reasons to wait and for how many ticks, on a machine with a group where much is dirty.
    fn waits(version: &str, steps: &'static [Step]) -> Vec<Option<(u64, u64)>> {
        let kernel = Kernel::named(version);
        let trace = Trace::new(Some(kernel.version.release()));
        let mut world = World::new(&Machine::small(64 << 20, 64 << 20), kernel, trace);
        let group = Cgroup {
            path: "box".into(),
            max: Some(1 << 20),
            ..Cgroup::default()
        };
        world.mm.make_cgroups(&[group], false, 1);
        world.mm.nr_dirty = 1000;
        let tick_us = world.jiffy() / 1000;
        let sys = Sys::new(world);
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let body = {
            let (sys, seen) = (sys.clone(), seen.clone());
            async move {
                for &step in steps {
                    take(&sys, step).await;
                    let events = sys.world().trace.take();
                    let wait = events.iter().find(|event| event.kind == Kind::Throttled);
                    let field = |field| wait.as_ref().and_then(|wait| wait.get(field));
                    let wait = field(Field::ThrottleReason).zip(field(Field::UsecDelayed));
                    seen.borrow_mut()
                        .push(wait.map(|(reason, usec)| (reason, usec / tick_us)));
                }
            }
        };
        sys.world().spawn("task".into(), false, Box::pin(body));
        time::run_until_idle(&sys, &mut |_| {});
        seen.take()
    }

    async fn take(sys: &Sys, step: Step) {
        let control = |(kswapd, memcg): Who| {
            let mut sc = ScanControl::new(kswapd, SWAP_CLUSTER_MAX, 0, ZoneType::High);
            sc.memcg = MemcgId::from(memcg);
            sc
        };
        match step {
            Step::Pass(who, dirty, congested) => {
                let mut sc = control(who);
                (sc.found.dirty, sc.found.congested) = (dirty, congested);
                after_pass(sys, target(), &sc).await;
            }
            Step::Through => sys.world().forget_congestion(&[target()], &control(GROUP)),
            Step::Written => sys.world().mm.nr_dirty = 0,
        }
    }

    use Step::{Pass, Through, Written};
    /// VMSCAN_THROTTLE_CONGESTED for a tick.
    const TICK: Option<(u64, u64)> = Some((8, 1));

    #[test]
    fn direct_reclaim_waits_a_tick_for_a_node_that_kswapd_found_congested() {
        // What a direct reclaimer finds says nothing of the node, nor does a pass with other dirty pages.
        let before = waits(
            "v6.1",
            &[Pass(DIRECT, 8, 8), Pass(KSWAPD, 8, 7), Pass(DIRECT, 0, 0)],
        );
        assert_eq!(before, [None; 3]);
        // In the end there is nothing left to wait for.
        let after = waits(
            "v6.1",
            &[
                Pass(KSWAPD, 8, 8),
                Pass(DIRECT, 0, 0),
                Pass(GROUP, 0, 0),
                Written,
                Pass(DIRECT, 0, 0),
            ],
        );
        assert_eq!(after, [None, TICK, None, None, None]);
    }

    #[test]
    fn a_group_waits_for_what_its_own_reclaim_found_until_that_is_over() {
        let steps = &[
            Pass(GROUP, 8, 8),
            Pass(GROUP, 0, 0),
            Pass(DIRECT, 0, 0),
            Through,
            Pass(GROUP, 0, 0),
        ];
        assert_eq!(waits("v6.18", steps), [TICK, TICK, None, None, None]);
    }

    #[test]
    fn older_kernels_do_not_wait_here() {
        let steps = &[Pass(KSWAPD, 8, 8), Pass(DIRECT, 8, 8)];
        assert_eq!(waits("v5.15", steps), [None, None]);
    }
}
