//! A run of kswapd over the zone lists of a node (`balance_pgdat`, to 4.7).
//!
//! 1. From the highest zone downward the first one below its high watermark is the *end zone*; if there is none, all is
//!    done.
//! 2. Zones up to it are reclaimed from the lowest upward, each until it is a gap above its high watermark
//!    ([`balance_gap`]), for an allocation that could use the end zone.
//! 3. To 3.10 the priority is raised after every pass, and what has been freed is counted over all of them; a run that
//!    ends without balance begins anew. From 3.11 on it is raised only if no zone was scanned to its target, or the pass
//!    freed nothing, and there is one run.

use super::{Request, age_active_anon, pass_some_time, scan_control, shrink_node};
use crate::ids::{NodeId, ZoneId};
use crate::kernel::{BalanceGap, BalancePgdat, BalancedZones, KswapdWait};
use crate::mm::Mm;
use crate::mm::reclaim::vmscan::{DEF_PRIORITY, ScanControl, Target, after_zone};
use crate::mm::types::{Mark, SWAP_CLUSTER_MAX, ZoneType};
use crate::time::SECOND;
use crate::world::{Sys, World};

/// `balance_pgdat` over zone lists, to 4.7.
pub(super) async fn balance_zones(sys: &Sys, node: NodeId, request: Request) -> Request {
    let era = sys.world().mm.kernel.mechanisms.kswapd.balance_pgdat;
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
            if era == BalancePgdat::ScannedTarget {
                sc.nr_reclaimed = 0;
            }
            let pass = balance_pass(sys, node, end_zone, request, &mut sc, era).await;
            total_scanned += pass.scanned;
            sys.world().wake_pfmemalloc_waiters(node);
            if sys.world().mm.zones_done(node, request, &pass) {
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
    era: BalancePgdat,
) -> Pass {
    let mut pass = Pass {
        scanned: 0,
        all_ok: true,
        under_min: false,
        raise_priority: true,
    };
    let class = sys.world().mm.zones[end_zone].kind;
    sc.reclaim_idx = class;
    let zones: Vec<ZoneId> = sys.world().mm.zones_up_to(node, class as usize).collect();
    for zone in zones {
        let (hopeless, ok, high, lruvec) = {
            let world = sys.world();
            let state = &world.mm.zones[zone];
            let hopeless = state.all_unreclaimable && sc.priority != DEF_PRIORITY;
            let (high, gap) = (state.mark(Mark::High), balance_gap(&world, zone));
            let ok = state.watermark_ok(request.order as usize, high + gap, class);
            (hopeless, ok, high, state.lruvec)
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
        if world.mm.zone_ok(zone, request.order, Mark::High, class) {
            world.mm.zones[zone].congested = false;
            world.mm.lruvecs[lruvec].tail_dirty = false;
        } else {
            pass.all_ok = false;
            pass.under_min |= !world.mm.zone_ok(zone, request.order, Mark::Min, class);
        }
    }
    pass
}

/// kswapd goes on above high, so that one zone is not reclaimed for another's sake all the time.
fn balance_gap(world: &World, zone: ZoneId) -> u64 {
    let zone = &world.mm.zones[zone];
    match world.mm.kernel.mechanisms.kswapd.balance_gap {
        BalanceGap::EightTimesHigh => 7 * zone.mark(Mark::High),
        BalanceGap::LowOrPercent => zone.mark(Mark::Low).min(zone.size().div_ceil(100)),
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
        let (hopeless, target, due) = {
            let world = sys.world();
            let state = &world.mm.zones[zone];
            let target = Target {
                lruvec: state.lruvec,
                zone,
            };
            let hopeless = state.all_unreclaimable && sc.priority != DEF_PRIORITY;
            (hopeless, target, world.mm.due_for_ageing(target, sc))
        };
        if hopeless {
            continue;
        }
        if due {
            age_active_anon(sys, target, sc).await;
        }
        let world = &mut *sys.world();
        if !world
            .mm
            .zone_ok(zone, request.order, Mark::High, ZoneType::Dma)
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
        let by_request = self.kernel.mechanisms.kswapd.balanced_zones == BalancedZones::Request;
        if by_request || request.order > 0 {
            let balanced = self.pgdat_balanced(node, request.order, request.class);
            return balanced || !by_request && pass.all_ok;
        }
        pass.all_ok
    }

    /// `pgdat_balanced` of zone kernels: at order 0 all zones, above it a quarter of the pages.
    pub(super) fn pgdat_balanced(&self, node: NodeId, order: u32, class: usize) -> bool {
        let (mut balanced, mut present, mut all) = (0, 0, true);
        for index in self.zones_up_to(node, class) {
            let zone = &self.zones[index];
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
