//! kswapd: one kernel thread per node that reclaims in the background.
//!
//! It is woken when an allocation finds its zones below the low watermark, reclaims until the zones are
//! balanced, naps for 100 ms, and sleeps if they are balanced still. What *balanced* means, for which
//! zones, and what is remembered between runs are the mechanisms of [`BalancePgdat`] and
//! [`KswapdClasszone`].

mod class;
mod node;
#[cfg(test)]
mod tests;
mod zones;

use crate::ids::{NodeId, ZoneId};
use crate::kernel::{
    BalancePgdat, HopelessNode, KswapdBlocks, KswapdClasszone, KswapdWake, NodeWriteback,
};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::{Kswapd, Node};
use crate::mm::reclaim::vmscan::{MAX_KSWAPD_FAILURES, ScanControl, age_active_anon, shrink_node};
use crate::mm::types::{Gfp, MAX_NR_ZONES, Mark, ZoneType};
use crate::time::{MSEC, Nanos, SECOND, TaskState};
use crate::world::{Sys, World};
use class::ClassMemory;
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};

impl Mm {
    /// kswapd balances a node's lists, not those of one zone after the other.
    fn balances_nodes(&self) -> bool {
        self.kernel.mechanisms.kswapd.balance_pgdat == BalancePgdat::Node
    }

    /// kswapd has given up on the node and leaves it to direct reclaim.
    fn node_hopeless(&self, node: NodeId) -> bool {
        self.nodes[node].kswapd.failures >= MAX_KSWAPD_FAILURES
    }

    /// A run of kswapd over a node is over.
    fn count_failure(&mut self, node: NodeId, reclaimed: u64) {
        if reclaimed == 0 && self.kernel.mechanisms.kswapd.hopeless_node == HopelessNode::Failures {
            self.nodes[node].kswapd.failures += 1;
        }
    }

    fn set_reclaim_active(&mut self, node: NodeId, class: usize, active: bool) {
        for at in 0..self.nodes[node].zones.len() {
            let zone = self.nodes[node].zones[at];
            if self.zones[zone].kind as usize <= class {
                self.zones[zone].set_reclaim_active(active);
            }
        }
    }

    fn zone_ok(&self, zone: ZoneId, order: u32, mark: Mark, class: ZoneType) -> bool {
        let zone = &self.zones[zone];
        zone.watermark_ok(order as usize, zone.mark(mark), class)
    }

    /// Zones of a node up to a class (`pgdat->node_zones`).
    fn zones_up_to(
        &self,
        node: NodeId,
        class: usize,
    ) -> impl DoubleEndedIterator<Item = ZoneId> + '_ {
        let zones = self.nodes[node].zones.iter().copied();
        zones.filter(move |&zone| self.zones[zone].kind as usize <= class)
    }

    /// `clear_pgdat_congested`: what batches of dirty pages said of a node's devices is over.
    fn clear_node_flags(&mut self, node: NodeId) {
        let writeback = self.kernel.mechanisms.kswapd.node_writeback == NodeWriteback::Balanced;
        for &zone in &self.nodes[node].zones {
            let zone = &mut self.zones[zone];
            zone.congested = false;
            let lists = &mut self.lruvecs[zone.lruvec];
            lists.tail_dirty = false;
            lists.congested = false;
            lists.all_writeback &= !writeback;
        }
    }
}

impl World {
    /// `wake_all_kswapds`: tells the kswapd of every node that the allocation could use.
    pub(crate) fn wake_all_kswapds(&mut self, gfp: Gfp, order: u32) {
        // Zone kernels tell one that is awake nothing but a higher order.
        let by_node = self.mm.balances_nodes();
        let told = self.mm.kernel.mechanisms.kswapd.kswapd_wake == KswapdWake::Told;
        let awake = |node: &Node| node.kswapd.wait.is_empty();
        if !by_node && !told && order == 0 && self.mm.nodes.iter().all(awake) {
            return;
        }
        let preferred = self.mm.zones[self.mm.preferred_zone(gfp)].kind;
        let highest = gfp.highest();
        let flags = gfp.flags();
        for at in 0..self.mm.zonelist(gfp).len() {
            let zone = self.mm.zonelist(gfp)[at];
            if self.mm.zones[zone].kind <= highest {
                self.wakeup_kswapd(zone, (flags, order), preferred, highest);
            }
        }
    }

    /// `wakeup_kswapd` for an allocation with these flags and of this order; a wake-up for a boosted zone has no flags.
    pub(in crate::mm) fn wakeup_kswapd(
        &mut self,
        zone: ZoneId,
        (gfp_flags, order): (u64, u32),
        preferred: ZoneType,
        highest: ZoneType,
    ) {
        let node = self.mm.zones[zone].node;
        let by_node = self.mm.balances_nodes();
        let kswapd = &mut self.mm.nodes[node].kswapd;
        if by_node {
            let class = highest as usize;
            kswapd.class = Some(kswapd.class.map_or(class, |old| old.max(class)));
            kswapd.order = kswapd.order.max(order);
        } else if kswapd.order < order {
            kswapd.order = order;
            let class = preferred as usize;
            kswapd.class = Some(kswapd.class.map_or(class, |old| old.min(class)));
        }
        let rule = self.mm.kernel.mechanisms.kswapd.kswapd_wake;
        let awake = kswapd.wait.is_empty() && rule != KswapdWake::Told;
        if awake {
            return;
        }
        let needed = !self.mm.node_hopeless(node)
            && match rule {
                KswapdWake::Told | KswapdWake::BelowLow => {
                    !self.mm.zone_ok(zone, order, Mark::Low, ZoneType::Dma)
                }
                KswapdWake::NotBalanced => !self.mm.zone_has_block(zone, order),
                KswapdWake::NodeNotBalanced => {
                    let class = highest as usize;
                    !self.node_balanced(node, order, class) || self.mm.node_boosted(node, class)
                }
            };
        let waits = gfp_flags & gfp::DIRECT_RECLAIM != 0;
        let on_request = self.mm.kernel.mechanisms.blocks.kswapd_blocks == KswapdBlocks::OnRequest;
        if !needed && !waits && on_request {
            // There may be enough, but in pieces that are too small.
            self.wakeup_kcompactd(node, order, highest as usize);
        }
        if needed {
            // Zones count anew in each node; e716f2eb24de (4.12) traces what it is woken for.
            let zid = match self.mm.kernel.mechanisms.kswapd.kswapd_classzone {
                KswapdClasszone::KeepAwake | KswapdClasszone::Remembers => highest,
                _ => self.mm.zones[zone].kind,
            };
            self.trace(Kind::WakeupKswapd, |_| {
                vec![
                    (Field::Nid, node.into()),
                    (Field::Zid, zid as u64),
                    (Field::Order, u64::from(order)),
                    (Field::GfpFlags, gfp_flags),
                ]
            });
            self.mm.nodes[node].kswapd.wait.wake_all(&mut self.sched);
        }
    }

    /// Somebody waits to reclaim directly: kswapd is to look after what the kernel itself can use.
    pub(super) fn wake_kswapd_for_reserves(&mut self, node: NodeId) {
        let kswapd = &mut self.mm.nodes[node].kswapd;
        if !kswapd.wait.is_empty() {
            let normal = ZoneType::Normal as usize;
            kswapd.class = Some(kswapd.class.map_or(normal, |class| class.min(normal)));
            kswapd.wait.wake_all(&mut self.sched);
        }
    }

    /// `kswapd_is_running`: it runs or would like to.
    pub(in crate::mm) fn kswapd_is_running(&self, node: NodeId) -> bool {
        let task = self.mm.nodes[node].kswapd.task;
        let state = task.map(|task| self.sched.task(task).state);
        matches!(state, Some(TaskState::Running | TaskState::Runnable))
    }

    /// `zone_balanced` of node kernels: the zone is at its high watermark. Up to 4.11 the test itself
    /// clears the flags that call the node congested or dirty, also where an allocation makes it before it wakes kswapd.
    fn zone_balanced(&mut self, zone: ZoneId, order: u32, class: usize) -> bool {
        let balanced = self.mm.zone_ok(zone, order, Mark::High, class_type(class));
        let clears = matches!(
            self.mm.kernel.mechanisms.kswapd.kswapd_classzone,
            KswapdClasszone::Vanilla | KswapdClasszone::FixCheck
        );
        if balanced && clears {
            self.mm.clear_node_flags(self.mm.zones[zone].node);
        }
        balanced
    }

    /// `pgdat_balanced` of node kernels: some zone up to the class is at its high watermark.
    fn node_balanced(&mut self, node: NodeId, order: u32, class: usize) -> bool {
        if self.mm.zones_up_to(node, class).next().is_none() {
            return matches!(
                self.mm.kernel.mechanisms.kswapd.kswapd_classzone,
                KswapdClasszone::EmptyBalanced
                    | KswapdClasszone::KeepAwake
                    | KswapdClasszone::Remembers
            );
        }
        (0..self.mm.nodes[node].zones.len()).any(|at| {
            let zone = self.mm.nodes[node].zones[at];
            self.mm.zones[zone].kind as usize <= class && self.zone_balanced(zone, order, class)
        })
    }

    /// `prepare_kswapd_sleep` (`sleeping_prematurely`): may it sleep now? If so, what reclaim has seen of the node's
    /// writeback is forgotten.
    fn prepare_sleep(&mut self, node: NodeId, done: Request) -> bool {
        if !self.release_pfmemalloc_waiters(node) {
            return false;
        }
        let Request { order, class } = done;
        if !self.mm.balances_nodes() {
            return self.mm.pgdat_balanced(node, order, class);
        }
        if self.mm.node_hopeless(node) {
            return true;
        }
        let rule = self.mm.kernel.mechanisms.kswapd.kswapd_classzone;
        let may = match rule {
            KswapdClasszone::Vanilla | KswapdClasszone::ClearBits => {
                (0..self.mm.nodes[node].zones.len()).all(|at| {
                    let zone = self.mm.nodes[node].zones[at];
                    let above = self.mm.zones[zone].kind as usize > class;
                    above || self.zone_balanced(zone, order, class)
                })
            }
            _ => self.node_balanced(node, order, class),
        };
        // In the oldest kernels the test of a zone has done it, unless there was none to test.
        if may && rule != KswapdClasszone::Vanilla {
            self.mm.clear_node_flags(node);
        }
        may
    }
}

impl Mm {
    /// Type of a node's highest populated zone.
    fn highest_zone(&self, node: NodeId) -> ZoneType {
        let zone = self.nodes[node].zones.last();
        zone.map_or(ZoneType::Normal, |&zone| self.zones[zone].kind)
    }
}

fn class_type(class: usize) -> ZoneType {
    ZoneType::ALL[class.min(MAX_NR_ZONES - 1)]
}

/// What a run was asked for or achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    order: u32,
    class: usize,
}

/// The thread (`kswapd`). Never returns.
pub(crate) async fn kswapd(sys: crate::world::SysRef, node: NodeId) {
    {
        let world = &mut *sys.world();
        world.mm.nodes[node].kswapd.task = Some(world.sched.current());
    }
    if !sys.world().mm.balances_nodes() {
        zones::run(&sys, node).await;
    }
    let mut done = sys.world().mm.first_request();
    let mut alloc_order = 0;
    loop {
        let began = sys.world().sched.now();
        try_to_sleep(&sys, node, done, alloc_order).await;
        let request = sys.world().take_request(node, done);
        done = node::balance_node(&sys, node, request).await;
        pass_some_time(&sys, began).await;
        (done, alloc_order) = sys.world().mm.look_again(node, request, done);
    }
}

impl Mm {
    /// What kswapd takes for asked of it before anybody has.
    fn first_request(&self) -> Request {
        Request {
            order: 0,
            class: ClassMemory::of(&self.kernel).first(),
        }
    }

    /// After a run: by what it asks whether it may sleep, and the order that is left to kcompactd. A run that gave up
    /// the order asks by what it has done; one that did not, by what has been asked for meanwhile.
    fn look_again(&self, node: NodeId, request: Request, done: Request) -> (Request, u32) {
        if done.order != request.order {
            return (done, request.order);
        }
        let Kswapd { order, class, .. } = self.nodes[node].kswapd;
        let class = ClassMemory::of(&self.kernel).after_run(request.class, class);
        (Request { order, class }, order)
    }

    /// A nap was cut short: from 4.8 on what kswapd would have slept by is asked for as well.
    fn note_interrupted_nap(&mut self, node: NodeId, done: Request) {
        self.stat.kswapd_low_wmark_hit_quickly += 1;
        if !self.balances_nodes() {
            return;
        }
        let memory = ClassMemory::of(&self.kernel);
        let kswapd = &mut self.nodes[node].kswapd;
        kswapd.order = kswapd.order.max(done.order);
        kswapd.class = memory.after_nap(done.class, kswapd.class);
    }
}

impl World {
    /// After its sleep kswapd reads what it is asked for, and resets that.
    fn take_request(&mut self, node: NodeId, done: Request) -> Request {
        let memory = ClassMemory::of(&self.mm.kernel);
        let unasked = memory.unasked(done.class);
        let kswapd = &mut self.mm.nodes[node].kswapd;
        let order = std::mem::take(&mut kswapd.order);
        let class = kswapd.class.take().unwrap_or(unasked);
        let request = Request { order, class };
        self.trace_wake(node, request);
        request
    }

    /// kswapd begins a run (`mm_vmscan_kswapd_wake`).
    fn trace_wake(&mut self, node: NodeId, request: Request) {
        self.trace(Kind::KswapdWake, |_| {
            vec![
                (Field::Nid, node.into()),
                (Field::Zid, request.class as u64),
                (Field::Order, u64::from(request.order)),
            ]
        });
    }
}

/// `kswapd_try_to_sleep`: a nap of 100 ms; if nobody woke it and all is well still, sleep. Blocks of the order that it
/// was asked for, which it may have given up, are left to kcompactd.
async fn try_to_sleep(sys: &Sys, node: NodeId, done: Request, alloc_order: u32) {
    {
        let world = &mut *sys.world();
        if !world.prepare_sleep(node, done) {
            world.mm.stat.kswapd_high_wmark_hit_quickly += 1;
            return;
        }
    }
    {
        let world = &mut *sys.world();
        for at in 0..world.mm.nodes[node].zones.len() {
            let zone = world.mm.nodes[node].zones[at];
            world.mm.flush_skip_hints(zone);
        }
        world.wakeup_kcompactd(node, alloc_order, done.class);
    }
    {
        let world = &mut *sys.world();
        let nap = world.jiffies(SECOND / 10);
        world.mm.nodes[node]
            .kswapd
            .wait
            .block_for(&mut world.sched, "kswapd's nap", nap);
    }
    sys.suspend().await;
    {
        let world = &mut *sys.world();
        let me = world.sched.current();
        world.mm.nodes[node].kswapd.wait.remove(me);
        let interrupted = !world.sched.timed_out();
        if interrupted {
            world.mm.note_interrupted_nap(node, done);
            return;
        }
        if !world.prepare_sleep(node, done) {
            world.mm.stat.kswapd_high_wmark_hit_quickly += 1;
            return;
        }
        world.trace(Kind::KswapdSleep, |_| vec![(Field::Nid, node.into())]);
        let kswapd = &mut world.mm.nodes[node].kswapd;
        kswapd.asleep = true;
        kswapd.wait.block(&mut world.sched, "work for kswapd");
    }
    sys.suspend().await;
    sys.world().mm.nodes[node].kswapd.asleep = false;
}

fn scan_control(request: Request, nr_to_reclaim: u64) -> ScanControl {
    let class = class_type(request.class);
    ScanControl::new(true, nr_to_reclaim, request.order, class)
}

/// A round in which there was nothing to scan must not stop the clock for everybody else.
async fn pass_some_time(sys: &Sys, began: Nanos) {
    let stood_still = sys.world().sched.now() == began;
    if stood_still {
        sys.charge_kernel(MSEC / 1000).await;
    }
}
