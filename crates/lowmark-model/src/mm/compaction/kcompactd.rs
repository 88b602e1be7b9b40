//! kcompactd: one kernel thread per node that compacts in the background.
//!
//! 1. From 4.6 on kswapd wakes it when it has freed enough and goes to sleep, for blocks of the order that it was woken for, and
//!    from 5.0 on after a boost, for a pageblock; from 4.17 on so does who wants a larger block, cannot wait, and finds the node
//!    balanced. It compacts each zone once that has no such block.
//! 2. Every half second it looks how fragmented the node is (5.9 and later). If it is too much so, and kswapd does not
//!    run, it compacts all of it; if that did not help, it looks again after 32 seconds.

use super::control::{Asked, CompactControl, Goal, Mode};
use super::suitable::Suitable;
use super::{COMPACT_MAX_DEFER_SHIFT, compact_zone};
use crate::ids::{NodeId, ZoneId};
use crate::kernel::{KswapdBlocks, ProactiveCompaction};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Kcompactd;
use crate::mm::types::{CompactResult, MAX_NR_ZONES, ZoneType};
use crate::time::{MSEC, Nanos};
use crate::world::{Sys, SysRef, World};
use lowmark_record::Kind;

/// `HPAGE_FRAG_CHECK_INTERVAL_MSEC`
const CHECK_INTERVAL: Nanos = 500 * MSEC;

impl Kcompactd {
    fn class(&self) -> usize {
        self.highest.unwrap_or(MAX_NR_ZONES - 1)
    }
}

impl Mm {
    /// `kcompactd_node_suitable`
    fn node_suitable(&self, node: NodeId) -> bool {
        let kcompactd = &self.nodes[node].kcompactd;
        let (order, class) = (kcompactd.max_order as usize, kcompactd.class());
        let mut zones = self.nodes[node].zones.iter().copied();
        zones.any(|zone| {
            self.zones[zone].kind as usize <= class
                && self.needs_compaction(zone, order, ZoneType::ALL[class])
        })
    }

    /// The zone has no block of an order for a class, and could have one.
    pub(super) fn needs_compaction(&self, zone: ZoneId, order: usize, class: ZoneType) -> bool {
        self.compaction_suitable(&self.zones[zone], order, class) == Suitable::Fragmented
    }

    /// The kernel has kcompactd, and the model what kcompactd does.
    pub(crate) fn has_kcompactd(&self) -> bool {
        let rule = self.kernel.mechanisms.blocks.kswapd_blocks;
        let has = matches!(
            rule,
            KswapdBlocks::Kcompactd | KswapdBlocks::HeedsHints | KswapdBlocks::OnRequest
        );
        has && self.kernel.coverage.compaction
    }

    /// `fragmentation_score_node`
    fn node_fragmentation_score(&self, node: NodeId) -> u64 {
        let zones = || self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let present: u64 = zones().map(|zone| zone.present).sum();
        zones()
            .map(|zone| zone.present * zone.fragmentation_score() / (present + 1))
            .sum()
    }

    /// `fragmentation_score_wmark`: memory is compacted down to the lower score, from above the higher one.
    pub(super) fn score_wmarks(&self) -> [u64; 2] {
        let low = (100 - self.kernel.sysctl.compaction_proactiveness).max(5);
        [low, (low + 10).min(100)]
    }
}

impl World {
    /// `wakeup_kcompactd`
    pub(in crate::mm) fn wakeup_kcompactd(&mut self, node: NodeId, order: u32, class: usize) {
        if order == 0 || !self.mm.has_kcompactd() {
            return;
        }
        let kcompactd = &mut self.mm.nodes[node].kcompactd;
        kcompactd.max_order = kcompactd.max_order.max(order);
        kcompactd.highest = Some(kcompactd.class().min(class));
        let wakes = !kcompactd.wait.is_empty() && self.mm.node_suitable(node);
        self.tell();
        if wakes {
            self.trace_kcompactd(Kind::WakeupKcompactd, node, order, class);
            let kcompactd = &mut self.mm.nodes[node].kcompactd;
            kcompactd.wait.wake_all(&mut self.sched);
        }
    }

    /// `should_proactive_compact_node`
    fn should_compact_proactively(&self, node: NodeId) -> bool {
        let [_, high] = self.mm.score_wmarks();
        self.mm.kernel.mechanisms.blocks.proactive_compaction == ProactiveCompaction::On
            && self.mm.kernel.sysctl.compaction_proactiveness > 0
            && !self.kswapd_is_running(node)
            && self.mm.node_fragmentation_score(node) > high
    }
}

/// The thread (`kcompactd`). Never returns.
pub(crate) async fn kcompactd(sys: SysRef, node: NodeId) {
    let mut timeout = CHECK_INTERVAL;
    loop {
        let requested = wait_for_work(&sys, node, timeout).await;
        timeout = CHECK_INTERVAL;
        if requested {
            do_work(&sys, node).await;
            continue;
        }
        let before = {
            let world = sys.world();
            let due = world.should_compact_proactively(node);
            due.then(|| world.mm.node_fragmentation_score(node))
        };
        if let Some(before) = before {
            compact_node_proactively(&sys, node).await;
            if sys.world().mm.node_fragmentation_score(node) >= before {
                timeout = CHECK_INTERVAL << COMPACT_MAX_DEFER_SHIFT;
            }
        }
    }
}

/// Sleeps until there is work; where kcompactd looks after fragmentation as well, for a time at most. True: there is work.
async fn wait_for_work(sys: &Sys, node: NodeId, timeout: Nanos) -> bool {
    {
        let world = &mut *sys.world();
        let timeout = world.jiffies(timeout);
        if world.mm.nodes[node].kcompactd.max_order > 0 {
            return true;
        }
        world.trace_kcompactd_sleep(node);
        let proactive = world.mm.kernel.mechanisms.blocks.proactive_compaction;
        let wait = &mut world.mm.nodes[node].kcompactd.wait;
        match proactive {
            ProactiveCompaction::On => {
                wait.block_in_background(&mut world.sched, "work for kcompactd", timeout);
            }
            ProactiveCompaction::Off => wait.block(&mut world.sched, "work for kcompactd"),
        }
    }
    sys.suspend().await;
    let world = &mut *sys.world();
    let me = world.sched.current();
    let kcompactd = &mut world.mm.nodes[node].kcompactd;
    kcompactd.wait.remove(me);
    kcompactd.max_order > 0
}

/// `kcompactd_do_work`: one attempt in each zone that has no block of the order.
pub(super) async fn do_work(sys: &Sys, node: NodeId) {
    let (order, class) = {
        let world = &mut *sys.world();
        world.mm.stat.compact_daemon_wake += 1;
        let kcompactd = &world.mm.nodes[node].kcompactd;
        let (order, class) = (kcompactd.max_order, kcompactd.class());
        world.trace_kcompactd(Kind::KcompactdWake, node, order, class);
        (order, class)
    };
    let zones = sys.world().mm.nodes[node].zones.clone();
    for zone in zones {
        let pass = {
            let world = &mut *sys.world();
            let pass = world.mm.begin_work(zone, order as usize, class);
            world.tell();
            pass
        };
        let Some(mut cc) = pass else { continue };
        let (result, _) = compact_zone(sys, &mut cc).await;
        let world = &mut *sys.world();
        match result {
            CompactResult::Success => {
                world.mm.compaction_defer_reset(zone, order as usize, false);
            }
            CompactResult::Complete | CompactResult::PartialSkipped => {
                world.mm.drain_zone(zone);
                world.mm.defer_compaction(zone, order as usize);
            }
            _ => {}
        }
        world.tell();
    }
    let world = &mut *sys.world();
    let kcompactd = &mut world.mm.nodes[node].kcompactd;
    if kcompactd.max_order <= order {
        kcompactd.max_order = 0;
    }
    if kcompactd.class() >= class {
        kcompactd.highest = None;
    }
}

/// `proactive_compact_node`
async fn compact_node_proactively(sys: &Sys, node: NodeId) {
    let zones = sys.world().mm.nodes[node].zones.clone();
    for zone in zones {
        let mut cc = {
            let mm = &mut sys.world().mm;
            let rules = mm.kernel.mechanisms.blocks;
            let asked = Asked::in_background(Goal::Score, Mode::Background, ZoneType::High);
            CompactControl::new(&mut mm.zones[zone], zone, asked, rules)
        };
        compact_zone(sys, &mut cc).await;
    }
}

impl Mm {
    /// A pass over a zone, if it is to be compacted for an order.
    fn begin_work(&mut self, zone: ZoneId, order: usize, class: usize) -> Option<CompactControl> {
        let kind = self.zones[zone].kind;
        let rules = self.kernel.mechanisms.blocks;
        if kind as usize > class || self.compaction_deferred(zone, order) {
            return None;
        }
        // kcompactd asks, and then compact_zone does.
        if !self.needs_compaction(zone, order, kind) || !self.needs_compaction(zone, order, kind) {
            return None;
        }
        self.restart_compaction(zone, order);
        let state = &mut self.zones[zone];
        let asked = Asked::in_background(Goal::Block(order), Mode::Background, kind);
        Some(CompactControl::new(state, zone, asked, rules))
    }
}
