//! kswapd: one kernel thread per node that reclaims in the background.
//!
//! It is woken when an allocation finds its zones below the low watermark, reclaims until the zones are
//! balanced, naps for 100 ms, and sleeps if they are balanced still. What *balanced* means, for which
//! zones, and what is remembered between runs are the mechanisms of [`BalancePgdat`] and
//! [`KswapdClasszone`].

mod node;

use super::Mm;
use super::mmzone::{Lru, MAX_NR_ZONES, Mark, Node, ZoneType};
use super::page_alloc::Gfp;
use super::vmscan::{
    DEF_PRIORITY, MAX_KSWAPD_FAILURES, SWAP_CLUSTER_MAX, ScanControl, Target, age_active_anon,
    shrink_node,
};
use crate::kernel::{
    BalanceGap, BalancePgdat, HopelessNode, KswapdClasszone, KswapdWait, KswapdWake,
};
use crate::time::{MSEC, Nanos, SECOND, TaskId, TaskState, WaitQueue};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};

/// What others tell kswapd, and what it tells itself (`pg_data_t`).
#[derive(Debug, Default)]
pub(crate) struct Kswapd {
    /// `kswapd_wait`: where it naps and sleeps.
    wait: WaitQueue,
    /// `kswapd_max_order`
    order: u32,
    /// `kswapd_classzone_idx`; none means that nobody asked.
    class: Option<usize>,
    /// Runs in a row that reclaimed nothing (`kswapd_failures`).
    pub(crate) failures: u32,
    /// Asleep for good, not only napping.
    pub(crate) asleep: bool,
    /// Who it is.
    task: Option<TaskId>,
}

impl World {
    /// `wake_all_kswapds`: tells the kswapd of every node that the allocation could use, with the flags that it has.
    pub(crate) fn wake_all_kswapds(&mut self, gfp: Gfp, flags: u64, order: u32) {
        // Zone kernels tell one that is awake nothing but a higher order.
        let mechanisms = &self.kernel.mechanisms;
        let by_node = mechanisms.balance_pgdat == BalancePgdat::Node;
        let told = mechanisms.kswapd_wake == KswapdWake::Told;
        let awake = |node: &Node| node.kswapd.wait.is_empty();
        if !by_node && !told && order == 0 && self.mm.nodes.iter().all(awake) {
            return;
        }
        let preferred = self.mm.zones[self.mm.preferred_zone(gfp)].kind;
        for at in 0..self.mm.nodes[gfp.node].zonelist.len() {
            let zone = self.mm.nodes[gfp.node].zonelist[at];
            if self.mm.zones[zone].kind <= gfp.highest {
                self.wakeup_kswapd(zone, (flags, order), preferred, gfp.highest);
            }
        }
    }

    /// `wakeup_kswapd` for an allocation with these flags and of this order; who boosts a zone has none.
    pub(super) fn wakeup_kswapd(
        &mut self,
        zone: usize,
        (gfp_flags, order): (u64, u32),
        preferred: ZoneType,
        highest: ZoneType,
    ) {
        let node = self.mm.zones[zone].node;
        let by_node = self.kernel.mechanisms.balance_pgdat == BalancePgdat::Node;
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
        let rule = self.kernel.mechanisms.kswapd_wake;
        let awake = kswapd.wait.is_empty() && rule != KswapdWake::Told;
        if awake {
            return;
        }
        let needed = !self.node_hopeless(node)
            && match rule {
                KswapdWake::Told | KswapdWake::BelowLow => {
                    !self.zone_ok(zone, order, Mark::Low, ZoneType::Dma)
                }
                KswapdWake::NotBalanced => !self.zone_ok(zone, order, Mark::High, ZoneType::Dma),
                KswapdWake::NodeNotBalanced => {
                    let class = highest as usize;
                    !self.node_balanced(node, order, class) || self.node_boosted(node, class)
                }
            };
        let waits = gfp_flags & gfp::DIRECT_RECLAIM != 0;
        if !needed && !waits {
            // There may be enough, but in pieces that are too small.
            self.wakeup_kcompactd(node, order, highest as usize);
        }
        if needed {
            // Zones count anew in each node; e716f2eb24de (4.12) traces what it is woken for.
            let zid = match self.kernel.mechanisms.kswapd_classzone {
                KswapdClasszone::Vanilla | KswapdClasszone::Clear => self.mm.zones[zone].kind,
                KswapdClasszone::KeepAwake | KswapdClasszone::Remembers => highest,
            };
            self.trace(Kind::WakeupKswapd, |_| {
                vec![
                    (Field::Nid, node as u64),
                    (Field::Zid, zid as u64),
                    (Field::Order, u64::from(order)),
                    (Field::GfpFlags, gfp_flags),
                ]
            });
            self.mm.nodes[node].kswapd.wait.wake_all(&mut self.sched);
        }
    }

    /// Somebody waits to reclaim directly: kswapd is to look after what the kernel itself can use.
    pub(super) fn wake_kswapd_for_reserves(&mut self, node: usize) {
        let kswapd = &mut self.mm.nodes[node].kswapd;
        if !kswapd.wait.is_empty() {
            let normal = ZoneType::Normal as usize;
            kswapd.class = Some(kswapd.class.map_or(normal, |class| class.min(normal)));
            kswapd.wait.wake_all(&mut self.sched);
        }
    }

    /// `kswapd_is_running`: it runs or would like to.
    pub(super) fn kswapd_is_running(&self, node: usize) -> bool {
        let task = self.mm.nodes[node].kswapd.task;
        let state = task.map(|task| self.sched.task(task).state);
        matches!(state, Some(TaskState::Running | TaskState::Runnable))
    }

    /// kswapd has given up on the node and leaves it to direct reclaim.
    fn node_hopeless(&self, node: usize) -> bool {
        self.mm.nodes[node].kswapd.failures >= MAX_KSWAPD_FAILURES
    }

    /// A run of kswapd over a node is over.
    fn count_failure(&mut self, node: usize, reclaimed: u64) {
        if reclaimed == 0 && self.kernel.mechanisms.hopeless_node == HopelessNode::Failures {
            self.mm.nodes[node].kswapd.failures += 1;
        }
    }

    fn set_reclaim_active(&mut self, node: usize, class: usize, active: bool) {
        for at in 0..self.mm.nodes[node].zones.len() {
            let zone = self.mm.nodes[node].zones[at];
            if self.mm.zones[zone].kind as usize <= class {
                self.mm.zones[zone].set_reclaim_active(active);
            }
        }
    }

    fn zone_ok(&self, zone: usize, order: u32, mark: Mark, class: ZoneType) -> bool {
        let zone = &self.mm.zones[zone];
        let rule = self.kernel.mechanisms.watermark_order;
        zone.watermark_ok(order as usize, zone.mark(mark), class, rule)
    }

    /// Zones of a node up to a class (`pgdat->node_zones`).
    fn zones_up_to(
        &self,
        node: usize,
        class: usize,
    ) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let zones = self.mm.nodes[node].zones.iter().copied();
        zones.filter(move |&zone| self.mm.zones[zone].kind as usize <= class)
    }

    /// `pgdat_balanced` of node kernels: some zone up to the class is at its high watermark.
    fn node_balanced(&self, node: usize, order: u32, class: usize) -> bool {
        let class_zone = class_type(class);
        let mut zones = self.zones_up_to(node, class).peekable();
        let none = zones.peek().is_none();
        if none {
            return matches!(
                self.kernel.mechanisms.kswapd_classzone,
                KswapdClasszone::KeepAwake | KswapdClasszone::Remembers
            );
        }
        zones.any(|zone| self.zone_ok(zone, order, Mark::High, class_zone))
    }

    /// `prepare_kswapd_sleep`: if it may sleep, what it has seen of the node's writeback is forgotten.
    fn prepare_sleep(&mut self, node: usize, done: Request) -> bool {
        self.wake_all_pfmemalloc_waiters(node);
        let may = self.may_sleep(node, done.order, done.class);
        if may && self.throttles() {
            for &zone in &self.mm.nodes[node].zones {
                let lruvec = self.mm.zones[zone].lruvec;
                self.mm.lruvecs[lruvec].all_writeback = false;
            }
        }
        may
    }

    /// May it sleep now (`sleeping_prematurely`)?
    fn may_sleep(&self, node: usize, order: u32, class: usize) -> bool {
        if self.kernel.mechanisms.balance_pgdat == BalancePgdat::Node {
            if self.node_hopeless(node) {
                return true;
            }
            let class_zone = class_type(class);
            return match self.kernel.mechanisms.kswapd_classzone {
                KswapdClasszone::Vanilla => self
                    .zones_up_to(node, class)
                    .all(|zone| self.zone_ok(zone, order, Mark::High, class_zone)),
                _ => self.node_balanced(node, order, class),
            };
        }
        self.pgdat_balanced(node, order, class)
    }

    /// `clear_pgdat_congested`: what batches of dirty pages said of a node's devices is over.
    fn clear_node_flags(&mut self, node: usize) {
        for &zone in &self.mm.nodes[node].zones {
            let zone = &mut self.mm.zones[zone];
            zone.congested = false;
            self.mm.lruvecs[zone.lruvec].tail_dirty = false;
            self.mm.lruvecs[zone.lruvec].congested = false;
        }
    }

    /// `pgdat_balanced` of zone kernels: at order 0 all zones, above it a quarter of the pages.
    fn pgdat_balanced(&self, node: usize, order: u32, class: usize) -> bool {
        let (mut balanced, mut present, mut all) = (0, 0, true);
        for index in self.zones_up_to(node, class) {
            let zone = &self.mm.zones[index];
            present += zone.present;
            if zone.all_unreclaimable || self.zone_ok(index, order, Mark::High, zone.kind) {
                balanced += zone.present;
            } else {
                all = false;
            }
        }
        if order == 0 {
            all
        } else {
            balanced >= present / 4
        }
    }
}

impl Mm {
    /// Type of a node's highest populated zone.
    fn highest_zone(&self, node: usize) -> ZoneType {
        let zone = self.nodes[node].zones.last();
        zone.map_or(ZoneType::Normal, |&zone| self.zones[zone].kind)
    }
}

fn class_type(class: usize) -> ZoneType {
    ZoneType::ALL[class.min(MAX_NR_ZONES - 1)]
}

/// What a run was asked for or achieved.
#[derive(Debug, Clone, Copy)]
struct Request {
    order: u32,
    class: usize,
}

/// The thread (`kswapd`). Never returns.
pub(crate) async fn kswapd(sys: crate::world::SysRef, node: usize) {
    let by_node = sys.world().kernel.mechanisms.balance_pgdat == BalancePgdat::Node;
    let highest = match by_node {
        true => ZoneType::High,
        // pgdat->nr_zones - 1
        false => sys.world().mm.highest_zone(node),
    } as usize;
    let (keeps_class, remembers) = {
        use KswapdClasszone as K;
        let classzone = sys.world().kernel.mechanisms.kswapd_classzone;
        let keeps = matches!(classzone, K::KeepAwake | K::Remembers);
        (keeps, classzone == K::Remembers)
    };
    let mut done = Request {
        order: 0,
        class: if by_node && !keeps_class { 0 } else { highest },
    };
    let mut alloc_order = 0;
    {
        let world = &mut *sys.world();
        world.mm.nodes[node].kswapd.task = Some(world.sched.current());
    }
    loop {
        let began = sys.world().sched.now();
        try_to_sleep(&sys, node, done, alloc_order).await;
        let request = {
            let world = &mut *sys.world();
            let kswapd = &mut world.mm.nodes[node].kswapd;
            let order = std::mem::take(&mut kswapd.order);
            let unasked = match (by_node, remembers) {
                (true, true) => done.class,
                (true, false) => 0,
                (false, _) => highest,
            };
            let class = kswapd.class.take().unwrap_or(unasked);
            world.trace(Kind::KswapdWake, |_| {
                vec![
                    (Field::Nid, node as u64),
                    (Field::Zid, class as u64),
                    (Field::Order, u64::from(order)),
                ]
            });
            Request { order, class }
        };
        done = match by_node {
            true => node::balance_node(&sys, node, request).await,
            false => balance_zones(&sys, node, request).await,
        };
        pass_some_time(&sys, began).await;
        alloc_order = request.order;
        if by_node && done.order == request.order {
            // Position D, then T: what was asked for meanwhile, or the default.
            let (order, asked) = {
                let kswapd = &sys.world().mm.nodes[node].kswapd;
                (kswapd.order, kswapd.class)
            };
            (done.order, alloc_order) = (order, order);
            done.class = match (asked, keeps_class) {
                (Some(asked), true) if !remembers => asked.max(request.class),
                (Some(asked), _) => asked,
                (None, true) => request.class,
                (None, false) => 0,
            };
        }
    }
}

/// `kswapd_try_to_sleep`: a nap of 100 ms; if nobody woke it and all is well still, sleep. Blocks of the order that it
/// was asked for, which it may have given up, are left to kcompactd.
async fn try_to_sleep(sys: &Sys, node: usize, done: Request, alloc_order: u32) {
    if !sys.world().prepare_sleep(node, done) {
        return;
    }
    {
        let world = &mut *sys.world();
        for at in 0..world.mm.nodes[node].zones.len() {
            let zone = world.mm.nodes[node].zones[at];
            world.mm.zones[zone].flush_skip_hints();
        }
        world.wakeup_kcompactd(node, alloc_order, done.class);
    }
    if sys.world().kernel.mechanisms.balance_pgdat == BalancePgdat::Node {
        sys.world().clear_node_flags(node);
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
            world.mm.stat.kswapd_low_wmark_hit_quickly += 1;
            let kswapd = &mut world.mm.nodes[node].kswapd;
            kswapd.order = kswapd.order.max(done.order);
            if world.kernel.mechanisms.balance_pgdat == BalancePgdat::Node {
                let lower = world.kernel.mechanisms.kswapd_classzone == KswapdClasszone::Remembers;
                let class = match kswapd.class {
                    Some(class) if lower => class,
                    Some(class) => class.max(done.class),
                    None => done.class,
                };
                kswapd.class = Some(class);
            }
            return;
        }
        if !world.prepare_sleep(node, done) {
            world.mm.stat.kswapd_high_wmark_hit_quickly += 1;
            return;
        }
        world.trace(Kind::KswapdSleep, |_| vec![(Field::Nid, node as u64)]);
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

/// `balance_pgdat` over zone lists.
async fn balance_zones(sys: &Sys, node: usize, request: Request) -> Request {
    let era = sys.world().kernel.mechanisms.balance_pgdat;
    let mut request = request;
    let mut sc = scan_control(request, u64::MAX);
    loop {
        {
            let mut world = sys.world();
            world.mm.stat.pageoutrun += 1;
        }
        let began = sys.world().sched.now();
        sc.nr_reclaimed = 0;
        sc.priority = DEF_PRIORITY;
        let mut total_scanned = 0;
        loop {
            let Some(end_zone) = find_end_zone(sys, node, &sc, request).await else {
                return request;
            };
            let pass = balance_pass(sys, node, end_zone, request, &mut sc, era).await;
            total_scanned += pass.scanned;
            if sys
                .world()
                .pgdat_balanced(node, request.order, request.class)
            {
                return request;
            }
            if era == BalancePgdat::EveryPass {
                if total_scanned > 0 && sc.priority < DEF_PRIORITY - 2 {
                    wait_without_progress(sys, pass.under_min).await;
                }
                if sc.nr_reclaimed >= SWAP_CLUSTER_MAX || sc.priority == 0 {
                    break;
                }
                sc.priority -= 1;
            } else {
                if pass.raise_priority || sc.nr_reclaimed == 0 {
                    sc.priority -= 1;
                }
                if sc.priority < 1 {
                    return request;
                }
            }
        }
        pass_some_time(sys, began).await;
        if sc.nr_reclaimed < SWAP_CLUSTER_MAX {
            request.order = 0;
            sc.order = 0;
        }
    }
}

/// A round in which there was nothing to scan must not stop the clock for everybody else.
async fn pass_some_time(sys: &Sys, began: Nanos) {
    let stood_still = sys.world().sched.now() == began;
    if stood_still {
        sys.charge_kernel(MSEC / 1000).await;
    }
}

/// kswapd pauses when it gets nowhere, unless somebody is close to running out.
async fn wait_without_progress(sys: &Sys, under_min: bool) {
    if sys.world().kernel.mechanisms.kswapd_wait == KswapdWait::None {
        return;
    }
    if under_min {
        sys.world().mm.stat.kswapd_skip_congestion_wait += 1;
    } else {
        sys.congestion_wait(SECOND / 10).await;
    }
}

/// What one priority came to.
struct Pass {
    scanned: u64,
    under_min: bool,
    raise_priority: bool,
}

async fn balance_pass(
    sys: &Sys,
    node: usize,
    end_zone: usize,
    request: Request,
    sc: &mut ScanControl,
    era: BalancePgdat,
) -> Pass {
    let mut pass = Pass {
        scanned: 0,
        under_min: false,
        raise_priority: true,
    };
    let class = sys.world().mm.zones[end_zone].kind;
    let zones: Vec<usize> = sys.world().zones_up_to(node, class as usize).collect();
    for zone in zones {
        let (shrink, lruvec) = {
            let world = sys.world();
            let hopeless = world.mm.zones[zone].all_unreclaimable && sc.priority != DEF_PRIORITY;
            let gap = if era == BalancePgdat::EveryPass {
                balance_gap(&world, zone)
            } else {
                0
            };
            let mark = world.mm.zones[zone].mark(Mark::High) + gap;
            let rule = world.kernel.mechanisms.watermark_order;
            let ok = world.mm.zones[zone].watermark_ok(request.order as usize, mark, class, rule);
            (!hopeless && !ok, world.mm.zones[zone].lruvec)
        };
        if shrink {
            sc.nr_scanned = 0;
            if era == BalancePgdat::ScannedTarget {
                let high = sys.world().mm.zones[zone].mark(Mark::High);
                sc.nr_to_reclaim = SWAP_CLUSTER_MAX.max(high);
            }
            shrink_node(sys, Target { lruvec, zone }, sc).await;
            pass.scanned += sc.nr_scanned;
            if sc.nr_scanned >= sc.nr_to_reclaim {
                pass.raise_priority = false;
            }
        }
        let world = &mut *sys.world();
        if era == BalancePgdat::ScannedTarget {
            world.mm.lruvecs[lruvec].all_writeback = false;
        }
        if shrink && !world.zone_reclaimable(zone) {
            world.mm.zones[zone].all_unreclaimable = true;
        }
        if world.zone_ok(zone, request.order, Mark::High, class) {
            world.mm.zones[zone].congested = false;
            world.mm.lruvecs[lruvec].tail_dirty = false;
        } else {
            pass.under_min |= !world.zone_ok(zone, request.order, Mark::Min, class);
        }
    }
    pass
}

/// kswapd goes on above high, so that one zone is not reclaimed for another's sake all the time.
fn balance_gap(world: &World, zone: usize) -> u64 {
    let zone = &world.mm.zones[zone];
    match world.kernel.mechanisms.balance_gap {
        BalanceGap::EightTimesHigh => 7 * zone.mark(Mark::High),
        BalanceGap::LowOrPercent => zone
            .mark(Mark::Low)
            .min(zone.size(&world.kernel).div_ceil(100)),
    }
}

/// The highest zone that is below its high watermark; anonymous pages of the zones down to it are aged
/// a little. None: all are balanced.
async fn find_end_zone(
    sys: &Sys,
    node: usize,
    sc: &ScanControl,
    request: Request,
) -> Option<usize> {
    let zones: Vec<usize> = sys.world().zones_up_to(node, request.class).collect();
    for &zone in zones.iter().rev() {
        let (hopeless, target, due) = {
            let world = sys.world();
            let state = &world.mm.zones[zone];
            let target = Target {
                lruvec: state.lruvec,
                zone,
            };
            let hopeless = state.all_unreclaimable && sc.priority != DEF_PRIORITY;
            (hopeless, target, world.due_for_ageing(target, sc))
        };
        if hopeless {
            continue;
        }
        if due {
            age_active_anon(sys, target, sc).await;
        }
        let world = &mut *sys.world();
        if !world.zone_ok(zone, request.order, Mark::High, ZoneType::Dma) {
            return Some(zone);
        }
        world.mm.zones[zone].congested = false;
        world.mm.lruvecs[target.lruvec].tail_dirty = false;
    }
    None
}

impl World {
    /// `age_active_anon`: the target of the ageing that a balancing run does first, if it is due.
    fn due_for_ageing(&self, target: Target, sc: &ScanControl) -> bool {
        self.inactive_is_low(target, false, sc)
            && self.mm.tree_len(target.lruvec, Lru::ActiveAnon) > 0
    }
}
