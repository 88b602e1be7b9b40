//! A run of kswapd over the zone lists of a node (`balance_pgdat`, to 4.7).
//!
//! 1. From the highest zone downward the first one below its high watermark is the *end zone*; if there is none, all is
//!    done.
//! 2. Zones up to it are reclaimed from the lowest upward, each until it is a gap above its high watermark
//!    ([`balance_gap`]), for an allocation that could use the end zone.
//! 3. For blocks of several pages a zone has to have one above its high watermark to 3.3. From 3.4 on that does not matter where
//!    compaction has room; kswapd compacts then if no zone has a block. To 3.6 a run begins anew as long as compaction lacks room
//!    in any zone. From 4.6 on kswapd reclaims as many single pages, and leaves the rest to kcompactd.
//! 4. To 3.10 the priority is raised after every pass, and what has been freed is counted over all of them; a run that
//!    ends without balance begins anew. From 3.11 on it is raised only if no zone was scanned to its target, or the pass
//!    freed nothing, and there is one run.

use super::{Request, age_active_anon, pass_some_time, scan_control, shrink_node, try_to_sleep};
use crate::ids::{NodeId, ZoneId};
use crate::kernel::{
    BalanceGap, BalancePgdat, BalancedZones, KswapdBlocks, KswapdWait, KswapdWake,
};
use crate::mm::Mm;
use crate::mm::compaction::{Suitable, compact_gap, compact_pgdat};
use crate::mm::reclaim::vmscan::{ScanControl, Target, after_zone, low_or_percent};
use crate::mm::types::{DEF_PRIORITY, Mark, SWAP_CLUSTER_MAX, ZoneType};
use crate::time::SECOND;
use crate::world::{Sys, World};

/// The thread, to 4.7. Never returns.
///
/// From 2.6.38 on kswapd does not try to sleep while an allocation asks for a larger block or for a lower zone. kswapd reads such a
/// request only after a run that reached the order and the class it ran for. After any other run the order and the class that the
/// run did reach decide whether kswapd may sleep, so that a block which cannot be had does not keep kswapd awake (to 4.5). In
/// 2.6.36 and 2.6.37 kswapd does not clear a request when it starts to work on it, but at the end of the run.
pub(super) async fn run(sys: &Sys, node: NodeId) {
    let (told, kcompactd) = {
        let mm = &sys.world().mm;
        let told = mm.kernel.mechanisms.kswapd.kswapd_wake == KswapdWake::Told;
        (told, mm.has_kcompactd())
    };
    let unasked = Request {
        order: 0,
        class: sys.world().mm.highest_zone(node) as usize,
    };
    // The request that kswapd works on, the last request that it has read, and the order and class that its last run reached.
    let (mut request, mut heard, mut done) = (unasked, unasked, unasked);
    loop {
        let began = sys.world().sched.now();
        let came_to_it = done.class >= heard.class && (kcompactd || done.order == heard.order);
        if told || came_to_it {
            heard = sys.world().mm.take_pending(node, unasked);
        }
        if request.order < heard.order || !told && request.class > heard.class {
            request = heard;
        } else {
            if told || kcompactd {
                done.order = request.order;
            }
            try_to_sleep(sys, node, done, request.order).await;
            request = if told {
                sys.world().mm.pending(node, unasked)
            } else {
                sys.world().mm.take_pending(node, unasked)
            };
            heard = request;
        }
        sys.world().trace_wake(node, request);
        done = balance_zones(sys, node, request).await;
        pass_some_time(sys, began).await;
    }
}

impl Mm {
    /// The order and the class that allocations have asked kswapd of a node for (`kswapd_max_order`, `classzone_idx`).
    fn pending(&self, node: NodeId, unasked: Request) -> Request {
        let kswapd = &self.nodes[node].kswapd;
        Request {
            order: kswapd.order,
            class: kswapd.class.unwrap_or(unasked.class),
        }
    }

    /// The same; the request is cleared.
    fn take_pending(&mut self, node: NodeId, unasked: Request) -> Request {
        let pending = self.pending(node, unasked);
        let kswapd = &mut self.nodes[node].kswapd;
        (kswapd.order, kswapd.class) = (0, None);
        pending
    }
}

/// `balance_pgdat` over zone lists, to 4.7.
pub(super) async fn balance_zones(sys: &Sys, node: NodeId, request: Request) -> Request {
    let era = sys.world().mm.kernel.mechanisms.kswapd.balance_pgdat;
    let mut request = request;
    let mut sc = scan_control(request, u64::MAX);
    let mut end_zone = sys.world().mm.nodes[node].zones[0];
    loop {
        {
            let mut world = sys.world();
            world.mm.stat.pageoutrun += 1;
        }
        let began = sys.world().sched.now();
        sc.nr_reclaimed = 0;
        sc.priority = DEF_PRIORITY;
        let mut total_scanned = 0;
        let mut after = After::Unbalanced;
        loop {
            let found = find_end_zone(sys, node, &sc, request).await;
            end_zone = found.unwrap_or(end_zone);
            if found.is_none() {
                after = compact_when_done(sys, node, end_zone, &sc, request).await;
                break;
            }
            if era == BalancePgdat::ScannedTarget {
                sc.nr_reclaimed = 0;
            }
            let compacts = era == BalancePgdat::ScannedTarget
                && sys.world().mm.kswapd_compacts(node, end_zone, request);
            let pass = balance_pass(sys, node, end_zone, request, &mut sc).await;
            total_scanned += pass.scanned;
            sys.world().wake_pfmemalloc_waiters(node);
            if era == BalancePgdat::ScannedTarget {
                // Blocks are given up for as many pages as compaction needs.
                if request.order > 0 && sc.nr_reclaimed >= compact_gap(request.order as usize) {
                    request.order = 0;
                    sc.order = 0;
                }
                if compacts && request.order > 0 && sc.nr_reclaimed > pass.attempted {
                    compact_pgdat(sys, node, request.order as usize).await;
                }
            }
            if sys.world().mm.zones_done(node, request, &pass) {
                after = compact_when_done(sys, node, end_zone, &sc, request).await;
                break;
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
                    after = After::Done;
                    break;
                }
            }
        }
        if after == After::Done {
            return sys.world().mm.achieved(request, end_zone);
        }
        pass_some_time(sys, began).await;
        let in_vain = after == After::Unbalanced && sc.nr_reclaimed < SWAP_CLUSTER_MAX;
        if in_vain || after == After::SinglePagesShort {
            request.order = 0;
            sc.order = 0;
        }
    }
}

/// Why a run ends, or begins anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// All is done.
    Done,
    /// The node is not balanced.
    Unbalanced,
    /// The node is balanced for a block, but compaction lacks room in a zone.
    CompactionLacksRoom,
    /// The node is balanced for a block, but a zone has too few single pages.
    SinglePagesShort,
}

/// The node is balanced for a block: to 3.6 its zones up to the end zone are looked at once more, and from 3.4 on kswapd compacts
/// if none of them has the block above its low watermark.
async fn compact_when_done(
    sys: &Sys,
    node: NodeId,
    end_zone: ZoneId,
    sc: &ScanControl,
    request: Request,
) -> After {
    let compacts = {
        let world = sys.world();
        let rules = &world.mm.kernel.mechanisms;
        let every_pass = rules.kswapd.balance_pgdat == BalancePgdat::EveryPass;
        let blocks = rules.blocks.kswapd_blocks;
        if request.order == 0 || !every_pass || blocks == KswapdBlocks::EveryZone {
            return After::Done;
        }
        if blocks != KswapdBlocks::WeighsRoom {
            let problem = world.mm.look_once_more(node, end_zone, sc, request);
            if problem != After::Done {
                return problem;
            }
        }
        world.mm.kswapd_compacts(node, end_zone, request)
    };
    if compacts {
        compact_pgdat(sys, node, request.order as usize).await;
    }
    After::Done
}

/// kswapd pauses when it gets nowhere, unless somebody is close to running out.
async fn wait_without_progress(sys: &Sys, under_min: bool) {
    if sys.world().mm.kernel.mechanisms.kswapd.kswapd_wait == KswapdWait::None {
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
    /// Pages that were to be reclaimed, in all zones.
    attempted: u64,
    /// Pages of the zones of the request that it found balanced.
    balanced: u64,
    /// No zone that it came to is below its high watermark, for an allocation that could use the end zone.
    all_ok: bool,
    under_min: bool,
    raise_priority: bool,
}

async fn balance_pass(
    sys: &Sys,
    node: NodeId,
    end_zone: ZoneId,
    request: Request,
    sc: &mut ScanControl,
) -> Pass {
    let era = sys.world().mm.kernel.mechanisms.kswapd.balance_pgdat;
    let mut pass = Pass {
        scanned: 0,
        attempted: 0,
        balanced: 0,
        all_ok: true,
        under_min: false,
        raise_priority: true,
    };
    let class = sys.world().mm.zones[end_zone].kind;
    sc.reclaim_idx = class;
    let zones: Vec<ZoneId> = sys.world().mm.zones_up_to(node, class as usize).collect();
    for zone in zones {
        let (hopeless, ok, high, lruvec, order) = {
            let world = sys.world();
            let state = &world.mm.zones[zone];
            let hopeless = state.all_unreclaimable && sc.priority != DEF_PRIORITY;
            let (high, gap) = (state.mark(Mark::High), balance_gap(&world, zone));
            let order = world.mm.tested_order(zone, request.order, class);
            let ok = world.mm.zone_balanced_at(zone, order, high + gap, class);
            (hopeless, ok, high, state.lruvec, order)
        };
        if hopeless {
            continue;
        }
        if ok && era == BalancePgdat::ScannedTarget {
            // kswapd_shrink_zone: nothing to do here is as good as enough done.
            pass.raise_priority = false;
            continue;
        }
        if !ok {
            sc.nr_scanned = 0;
            if era == BalancePgdat::ScannedTarget {
                sc.nr_to_reclaim = SWAP_CLUSTER_MAX.max(high);
                pass.attempted += sc.nr_to_reclaim;
            }
            shrink_node(sys, Target { lruvec, zone }, sc).await;
            pass.scanned += sc.nr_scanned;
            pass.raise_priority &= sc.nr_scanned < sc.nr_to_reclaim;
        }
        let slab = after_zone(sys, end_zone, !ok, sc).await;
        let world = &mut *sys.world();
        if era == BalancePgdat::ScannedTarget {
            world.mm.lruvecs[lruvec].all_writeback = false;
        }
        if !ok && slab == 0 && !world.mm.zone_reclaimable(zone) {
            world.mm.zones[zone].all_unreclaimable = true;
        }
        if world.mm.zones[zone].all_unreclaimable {
            continue;
        }
        if world.mm.zone_balanced_at(zone, order, high, class) {
            world.mm.zones[zone].congested = false;
            world.mm.lruvecs[lruvec].tail_dirty = false;
            if world.mm.zones[zone].kind as usize <= request.class {
                pass.balanced += world.mm.zones[zone].present;
            }
        } else {
            pass.all_ok = false;
            pass.under_min |= !world.mm.zone_ok(zone, order, Mark::Min, class);
        }
    }
    pass
}

/// kswapd goes on above high, so that one zone is not reclaimed for another's sake all the time.
fn balance_gap(world: &World, zone: ZoneId) -> u64 {
    let zone = &world.mm.zones[zone];
    match world.mm.kernel.mechanisms.kswapd.balance_gap {
        BalanceGap::EightTimesHigh => 7 * zone.mark(Mark::High),
        BalanceGap::LowOrPercent => low_or_percent(zone),
    }
}

/// The highest zone that is below its high watermark; anonymous pages of the zones down to it are aged
/// a little. None: all are balanced.
async fn find_end_zone(
    sys: &Sys,
    node: NodeId,
    sc: &ScanControl,
    request: Request,
) -> Option<ZoneId> {
    let zones: Vec<ZoneId> = sys.world().mm.zones_up_to(node, request.class).collect();
    for &zone in zones.iter().rev() {
        let (hopeless, target) = {
            let world = sys.world();
            let state = &world.mm.zones[zone];
            let target = Target {
                lruvec: state.lruvec,
                zone,
            };
            let hopeless = state.all_unreclaimable && sc.priority != DEF_PRIORITY;
            (hopeless, target)
        };
        if hopeless {
            continue;
        }
        age_active_anon(sys, target, sc).await;
        let world = &mut *sys.world();
        let high = world.mm.zones[zone].mark(Mark::High);
        if !world
            .mm
            .zone_balanced_at(zone, request.order, high, ZoneType::Dma)
        {
            return Some(zone);
        }
        world.mm.zones[zone].congested = false;
        world.mm.lruvecs[target.lruvec].tail_dirty = false;
    }
    None
}

impl Mm {
    /// Whether a pass over zone lists was the last one.
    fn zones_done(&self, node: NodeId, request: Request, pass: &Pass) -> bool {
        if self.kernel.mechanisms.kswapd.balanced_zones == BalancedZones::Request {
            return self.pgdat_balanced(node, request.order, request.class);
        }
        let a_quarter_is_enough = request.order > 0
            && self.kernel.mechanisms.blocks.kswapd_blocks != KswapdBlocks::EveryZone;
        let zones = self.zones_up_to(node, request.class);
        let present: u64 = zones.map(|zone| self.zones[zone].present).sum();
        pass.all_ok || a_quarter_is_enough && pass.balanced >= present / 4
    }

    /// What a run of kswapd has reached: the order, or 0 if the run gave the order up; and from 2.6.38 on the last end zone in place
    /// of the class.
    fn achieved(&self, request: Request, end_zone: ZoneId) -> Request {
        match self.kernel.mechanisms.blocks.kswapd_blocks {
            KswapdBlocks::EveryZone => request,
            _ => Request {
                class: self.zones[end_zone].kind as usize,
                ..request
            },
        }
    }

    /// `pgdat_balanced` of zone kernels: at order 0 all zones, above it a quarter of the pages, but to 2.6.37 all zones.
    pub(super) fn pgdat_balanced(&self, node: NodeId, order: u32, class: usize) -> bool {
        let (mut balanced, mut present, mut all) = (0, 0, true);
        for index in self.zones_up_to(node, class) {
            let zone = &self.zones[index];
            let high = zone.mark(Mark::High);
            present += zone.present;
            if zone.all_unreclaimable || self.zone_balanced_at(index, order, high, zone.kind) {
                balanced += zone.present;
            } else {
                all = false;
            }
        }
        match self.kernel.mechanisms.blocks.kswapd_blocks {
            _ if order == 0 => all,
            KswapdBlocks::EveryZone => all,
            _ => balanced >= present / 4,
        }
    }

    /// `zone_balanced` of zone kernels, for what kswapd aims at: a mark, and a block above it where kswapd still reclaims for
    /// blocks; compaction has to have room as well then. From 4.6 on so many more single pages.
    fn zone_balanced_at(&self, zone: ZoneId, order: u32, mark: u64, class: ZoneType) -> bool {
        let state = &self.zones[zone];
        let order = order as usize;
        if order > 0 && self.has_kcompactd() {
            return state.watermark_ok(0, mark + (1 << order), class);
        }
        let weighs = self.kernel.mechanisms.blocks.kswapd_blocks == KswapdBlocks::WeighsRoom
            && self.kernel.coverage.compaction;
        let room = order == 0
            || !weighs
            || self.compaction_suitable(state, order, class) != Suitable::Short;
        room && state.watermark_ok(order, mark, class)
    }

    /// `zone_balanced` where an allocation asks before it wakes kswapd, of 3.12 to 4.7: there is the block itself.
    pub(super) fn zone_has_block(&self, zone: ZoneId, order: u32) -> bool {
        let state = &self.zones[zone];
        let (mark, class) = (state.mark(Mark::High), ZoneType::Dma);
        if self.has_kcompactd() {
            state.watermark_ok(order as usize, mark, class)
        } else {
            self.zone_balanced_at(zone, order, mark, class)
        }
    }

    /// What kswapd does for blocks depends on compaction (3.4 to 4.5).
    fn kswapd_weighs_compaction(&self) -> bool {
        let blocks = self.kernel.mechanisms.blocks.kswapd_blocks;
        matches!(blocks, KswapdBlocks::Compacts | KswapdBlocks::WeighsRoom)
            && self.kernel.coverage.compaction
    }

    /// `testorder`: kswapd reclaims as for single pages where compaction can go on.
    fn tested_order(&self, zone: ZoneId, order: u32, class: ZoneType) -> u32 {
        let can_go_on = order > 0
            && self.kswapd_weighs_compaction()
            && self.compaction_suitable(&self.zones[zone], order as usize, class)
                != Suitable::Short;
        if can_go_on { 0 } else { order }
    }

    /// `pgdat_needs_compaction`: kswapd compacts for blocks, and no zone up to the end zone has one above its low watermark.
    fn kswapd_compacts(&self, node: NodeId, end_zone: ZoneId, request: Request) -> bool {
        let class = self.zones[end_zone].kind as usize;
        let has = |zone| self.zone_ok(zone, request.order, Mark::Low, ZoneType::Dma);
        request.order > 0
            && self.kswapd_weighs_compaction()
            && !self.zones_up_to(node, class).any(has)
    }

    /// Zones up to the end zone that reclaim has not given up: whether compaction has room in each (3.4 to 3.6), and single pages
    /// are above the high watermark.
    fn look_once_more(
        &self,
        node: NodeId,
        end_zone: ZoneId,
        sc: &ScanControl,
        request: Request,
    ) -> After {
        let class = self.zones[end_zone].kind as usize;
        for zone in self.zones_up_to(node, class) {
            let state = &self.zones[zone];
            if state.all_unreclaimable && sc.priority != DEF_PRIORITY {
                continue;
            }
            let order = request.order as usize;
            if self.kswapd_weighs_compaction()
                && self.compaction_suitable(state, order, ZoneType::Dma) == Suitable::Short
            {
                return After::CompactionLacksRoom;
            }
            if !self.zone_ok(zone, 0, Mark::High, ZoneType::Dma) {
                return After::SinglePagesShort;
            }
        }
        After::Done
    }
}
