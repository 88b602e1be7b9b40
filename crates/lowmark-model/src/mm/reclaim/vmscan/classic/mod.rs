//! One pass over active and inactive lists (`shrink_lruvec`), batch by batch: how reclaim goes through the lists of the
//! classic policy (`alloc/mmzone/lruvec.rs`).

mod blocks;
mod isolate;
mod scan_count;

use super::account::{reclaim_flags, trace_shrink_inactive};
use super::{Batch, ScanControl, Target, lumpy, page_list, throttle};
use crate::kernel::{
    BatchStall, IsolatedWait, ReclaimPlug, ScanBalance, ScanControlTime, ScanTarget,
};
use crate::mm::Mm;
use crate::mm::fault::rmap::References;
use crate::mm::types::{DEF_PRIORITY, Lru, SWAP_CLUSTER_MAX, flag};
use crate::mm::writeback::page_writeback::throttle_vm_writeout;
use crate::time::SECOND;
use crate::world::Sys;
use isolate::Isolated;
use lowmark_record::{Field, Kind};

/// Scans the share of each list that the priority says, the four lists in turns of 32 pages.
pub(super) async fn shrink_lruvec(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let (mut left, plug, proportional) = {
        let mut world = sys.world();
        let mechanisms = &world.mm.kernel.mechanisms;
        let plug = mechanisms.reclaim.reclaim_plug == ReclaimPlug::On;
        let proportional = match mechanisms.reclaim.scan_target {
            ScanTarget::Unbounded => None,
            ScanTarget::Proportional => Some(!sc.kswapd),
            ScanTarget::ProportionalDirect => Some(false),
        };
        world.mm.begin_pass(sc);
        (world.mm.get_scan_count(target, sc), plug, proportional)
    };
    let wanted = left;
    if wanted.iter().all(|&pages| pages == 0) {
        // Finding that there is nothing to scan takes time, too, and others go on meanwhile.
        sys.charge_kernel(sys.costs.scan_page_ns).await;
    }
    // Direct reclaim goes through the whole of its first share.
    let whole = proportional == Some(false) && !sc.kswapd && sc.priority == DEF_PRIORITY;
    let mut adjusted = whole;
    let before = sc.nr_reclaimed;
    if plug {
        sys.start_plug();
    }
    // The active anon list alone does not keep the pass going.
    let keep_going = [Lru::InactiveAnon, Lru::InactiveFile, Lru::ActiveFile];
    while keep_going.iter().any(|&lru| left[lru as usize] > 0) {
        for lru in Lru::EVICTABLE {
            let take = left[lru as usize].min(SWAP_CLUSTER_MAX);
            if take > 0 {
                left[lru as usize] -= take;
                shrink_list(sys, target, lru, take, sc).await;
            }
        }
        let reclaimed = sc.nr_reclaimed - before;
        let enough = match proportional {
            Some(_) => reclaimed,
            None => sc.nr_reclaimed,
        } >= sc.nr_to_reclaim;
        if !enough || adjusted {
            continue;
        }
        match proportional {
            // At the first priority all that was set out to be scanned is scanned.
            None if sc.priority < DEF_PRIORITY => break,
            None => {}
            Some(at_once) if at_once || !cut_in_proportion(&mut left, &wanted) => break,
            Some(_) => adjusted = true,
        }
    }
    if plug {
        sys.finish_plug();
    }
    let low = sys.world().mm.inactive_is_low(target, false, sc);
    if low {
        shrink_active_list(sys, target, Lru::ActiveAnon, SWAP_CLUSTER_MAX, sc).await;
    }
    throttle_vm_writeout(sys).await;
}

/// The target is reached: the type with less left stops, the other goes on to the same percentage of
/// what it wanted. False: one of them is through, so that is enough.
fn cut_in_proportion(left: &mut [u64; 4], wanted: &[u64; 4]) -> bool {
    let [anon, file] = Lru::by_type(left);
    if anon == 0 || file == 0 {
        return false;
    }
    let file_goes_on = file > anon;
    let of_stopped = |counts: &[u64; 4]| Lru::by_type(counts)[usize::from(!file_goes_on)];
    let percentage = of_stopped(left) * 100 / (of_stopped(wanted) + 1);
    for lru in Lru::of_type(!file_goes_on) {
        left[lru as usize] = 0;
    }
    for lru in Lru::of_type(file_goes_on) {
        let list = lru as usize;
        let scanned = wanted[list] - left[list];
        left[list] = (wanted[list] * (100 - percentage) / 100)
            .saturating_sub(scanned)
            .min(left[list]);
    }
    true
}

async fn shrink_list(sys: &Sys, target: Target, lru: Lru, take: u64, sc: &mut ScanControl) {
    if !lru.is_active() {
        shrink_inactive_list(sys, target, lru, take, sc).await;
        return;
    }
    let low = {
        let world = sys.world();
        match world.mm.kernel.mechanisms.reclaim.scan_control {
            ScanControlTime::Node => sc.plan.deactivate[usize::from(lru.is_file())],
            ScanControlTime::Batch => {
                world.mm.inactive_is_low(target, lru.is_file(), sc)
                    || world.mm.refaulted(target, lru.is_file())
                        && world.mm.lru_size(target, lru, sc) > 0
            }
        }
    };
    if low {
        shrink_active_list(sys, target, lru, take, sc).await;
    } else {
        sc.plan.skipped = true;
    }
}

/// `age_active_anon`: kswapd makes a batch of active anonymous pages of each group inactive before it reclaims anything, if they
/// are too many. To 5.4 each group's own lists say whether they are, from 5.5 on (b91ac374346b) those of all groups together.
pub(crate) async fn age_active_anon(sys: &Sys, target: Target, sc: &ScanControl) {
    let by_group = {
        let mm = &sys.world().mm;
        let by_group = mm.kernel.mechanisms.reclaim.scan_control == ScanControlTime::Batch;
        if !by_group && !mm.has_too_many_active_anon(target, sc) {
            return;
        }
        by_group
    };
    let groups = sys.world().mm.lruvec_tree(target.lruvec);
    for lruvec in groups {
        let target = Target { lruvec, ..target };
        if !by_group || sys.world().mm.has_too_many_active_anon(target, sc) {
            shrink_active_list(sys, target, Lru::ActiveAnon, SWAP_CLUSTER_MAX, sc).await;
        }
    }
}

/// Active pages go to the inactive list; only those of files that were used through an executable mapping stay
/// (8cab4754d24a, 2.6.31).
async fn shrink_active_list(sys: &Sys, target: Target, lru: Lru, take: u64, sc: &ScanControl) {
    let (locked_cost, cost) = {
        let world = &mut *sys.world();
        let mut batch = world.batches.pop().unwrap_or_default();
        let isolated = world.isolate(target, lru, take, sc, &mut batch);
        let locked_cost = world.isolation_cost(&isolated);
        let Isolated {
            scanned,
            taken,
            by_kind,
            ..
        } = isolated;
        let zone = world.mm.zones[target.zone].kind as usize;
        world.mm.stat.pgrefill[zone] += scanned;
        let Deactivated { referenced, kept } = world.mm.deactivate(&batch);
        if let Some(counts) = world.mm.memcg_counts(target.lruvec) {
            counts.pgrefill += scanned;
            counts.pgdeactivate += taken - kept;
        }
        world.mm.lru_add_all(target.lruvec, &batch);
        let kind = usize::from(lru.is_file());
        // Since 264e90cc07f1 (5.8) only those count that stay.
        let referenced = match world.mm.kernel.mechanisms.reclaim.scan_balance {
            ScanBalance::Rotated => referenced,
            ScanBalance::IoCost | ScanBalance::WorkCost => kept,
        };
        world.mm.lruvecs[target.lruvec].classic().recent_rotated[kind] += referenced;
        // Rotations are a cost, and this one is told of, since 0538a82c39e9 (6.3).
        let counts = world.mm.kernel.mechanisms.reclaim.scan_balance == ScanBalance::WorkCost;
        if counts && kept > 0 {
            world.mm.note_cost(target.lruvec, lru.is_file(), 0, kept);
        }
        world.mm.isolated(target.lruvec)[kind] -= by_kind[kind];
        world.mm.stat.pgdeactivate += taken - kept;
        world.trace(Kind::LruShrinkActive, |world| {
            vec![
                (Field::Nid, world.mm.zones[target.zone].node.into()),
                (Field::NrTaken, taken),
                (Field::NrActive, kept),
                (Field::NrDeactivated, taken - kept),
                (Field::NrReferenced, referenced),
                (Field::Priority, u64::from(sc.priority)),
                (Field::Flags, reclaim_flags(lru, false)),
            ]
        });
        let cost = batch.len() as u64 * world.costs.scan_page_ns;
        world.recycle(batch);
        (locked_cost, cost)
    };
    if locked_cost > 0 {
        sys.charge_locked(locked_cost).await;
    }
    sys.charge_kernel(cost).await;
}

/// Pages of a batch from an active list.
#[derive(Debug, Clone, Copy, Default)]
struct Deactivated {
    /// Used since the last look.
    referenced: u64,
    /// Those of them that stay active.
    kept: u64,
}

impl Mm {
    /// Marks each page of a batch from an active list for the list on which `shrink_active_list` puts it.
    fn deactivate(&mut self, batch: &Batch) -> Deactivated {
        let mut pages = Deactivated::default();
        for &pfn in batch {
            let References { young, executable } = self.page_referenced(pfn);
            let page = &mut self.pages[pfn];
            let count = page.folio_nr_pages();
            if young > 0 {
                pages.referenced += count;
            }
            if executable && !page.has(flag::SWAPBACKED) {
                pages.kept += count;
                continue;
            }
            page.clear(flag::ACTIVE);
            page.set(flag::WORKINGSET);
        }
        pages
    }
}

/// Waits while too many pages are in the hands of other reclaimers. False: there is nothing to scan after that.
async fn wait_for_isolated(sys: &Sys, target: Target, lru: Lru, sc: &mut ScanControl) -> bool {
    let mut stalled = false;
    while sys.world().mm.too_many_isolated(target, lru, sc) {
        let (wait, throttles) = {
            let world = sys.world();
            (
                world.mm.kernel.mechanisms.reclaim.isolated_wait,
                world.mm.throttles(),
            )
        };
        if wait == IsolatedWait::Once && stalled {
            return false;
        }
        stalled = true;
        match (wait, throttles) {
            (_, true) => throttle::reclaim_throttle(sys, target, throttle::Reason::Isolated).await,
            (IsolatedWait::Fewer, false) => sys.congestion_wait(SECOND / 10).await,
            (IsolatedWait::Once, false) => {
                let tenth = sys.world().jiffies(SECOND / 10);
                sys.sleep(tenth).await;
            }
        }
        if sys.world().sched.current_killed() {
            sc.nr_reclaimed += SWAP_CLUSTER_MAX;
            return false;
        }
    }
    true
}

/// Takes a batch off the inactive tail, reclaims what it can, puts the rest back at the head.
async fn shrink_inactive_list(
    sys: &Sys,
    target: Target,
    lru: Lru,
    take: u64,
    sc: &mut ScanControl,
) {
    if !wait_for_isolated(sys, target, lru, sc).await {
        return;
    }
    let mut batch;
    let (scanned, taken, by_kind, locked_cost);
    {
        let world = &mut *sys.world();
        world.mm.begin_batch(sc);
        batch = world.batches.pop().unwrap_or_default();
        let isolated = world.isolate(target, lru, take, sc, &mut batch);
        (scanned, taken, by_kind) = (isolated.scanned, isolated.taken, isolated.by_kind);
        if sc.mode.is_lumpy() {
            world.mm.clear_active_flags(&batch);
        }
        locked_cost = world.isolation_cost(&isolated);
        let root = world.mm.root_lruvec(target.lruvec);
        for zone in world.mm.zones.iter_mut().filter(|zone| zone.lruvec == root) {
            zone.pages_scanned += scanned;
        }
        world.mm.count_scanned(target, lru, scanned, sc);
    }
    if locked_cost > 0 {
        sys.charge_locked(locked_cost).await;
    }
    if batch.is_empty() {
        sys.world().recycle(batch);
        return;
    }
    // shrink_page_list counts what it looks at, not what isolation went past.
    sc.nr_scanned += taken;
    let outcome = page_list::shrink_page_list(sys, &mut batch, sc).await;
    let outcome = lumpy::again_in_sync(sys, &mut batch, taken, outcome, sc).await;
    sc.nr_reclaimed += outcome.reclaimed;
    {
        let world = &mut *sys.world();
        world.mm.count_reclaimed(target, lru, outcome.reclaimed, sc);
        world.mm.put_back(target, &batch, by_kind);
        world.note_dirty_pages(target, taken, &outcome);
        world.recycle(batch);
        world.wake_throttle_isolated(target, lru, sc);
        world.mm.note_cost(
            target.lruvec,
            lru.is_file(),
            outcome.pageout,
            // Where a huge page is scanned as one more pages may be reclaimed than scanned.
            scanned.saturating_sub(outcome.reclaimed),
        );
        sc.found.add_batch(lru, taken, &outcome);
    }
    stall_on_writeback(sys, target, taken, &outcome, sc).await;
    trace_shrink_inactive(sys, target, lru, scanned, &outcome, sc);
}

/// What a reclaimer does about finding mostly pages under writeback.
async fn stall_on_writeback(
    sys: &Sys,
    target: Target,
    taken: u64,
    outcome: &page_list::Outcome,
    sc: &ScanControl,
) {
    let rule = {
        let world = sys.world();
        // Those that throttle wait after the whole pass.
        if world.mm.throttles() {
            return;
        }
        world.mm.kernel.mechanisms.reclaim.batch_stall
    };
    match rule {
        BatchStall::None | BatchStall::Pass => {}
        // The deeper the priority, the smaller a share of them is enough.
        BatchStall::Priority => {
            let enough = taken >> (DEF_PRIORITY - sc.priority);
            if outcome.writeback > 0 && outcome.writeback >= enough {
                sys.wait_iff_congested(Some(target.zone), SECOND / 10).await;
            }
        }
        // Pages seen again before their writeback ended, else every direct reclaimer.
        BatchStall::Contents | BatchStall::Immediate => {
            if outcome.writeback == taken {
                sys.world().mm.lruvecs[target.lruvec].all_writeback = true;
            }
            // Flushers that do not keep up.
            let behind = rule == BatchStall::Contents && outcome.unqueued == taken;
            if outcome.immediate > 0 || behind {
                sys.congestion_wait(SECOND / 10).await;
            }
            if !sc.kswapd {
                sys.wait_iff_congested(Some(target.zone), SECOND / 10).await;
            }
        }
    }
}
