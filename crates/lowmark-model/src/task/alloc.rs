//! Blocks of pages that a task asks for and holds: `alloc` and `free`.
//!
//! The pool of hugetlbfs takes its pages from one node after the other, and from none but that: one that has none is followed
//! by the next (`alloc_pool_huge_folio`; `alloc_fresh_huge_page` to 5.3).

use super::context::{Context, Stop};
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::types::{Gfp, OutOfMemory, Pfn};
use crate::time::{Nanos, SECOND};
use crate::world::Sys;
use lowmark_record::event::gfp;
use lowmark_spec::workload::{Alloc, AllocFlags, PoolId, series_number};

/// A task that waits busily looks at the clock so often.
const LOOK: Nanos = SECOND / 1000;

/// Asks for the blocks one after the other, each at its time.
pub(super) async fn alloc(context: &mut Context, what: &Alloc) -> Result<(), Stop> {
    let sys = context.sys.clone();
    for attempt in 1..=what.count {
        sys.charge_kernel(sys.costs.syscall_ns).await;
        let began = sys.world().sched.now();
        let block = one_block(&sys, what).await?;
        let now = sys.world().sched.now();
        record(context, what, block, (began, now));
        if what.gives_up(block.is_some(), now - began) {
            for _ in attempt..what.count {
                record(context, what, None, (now, now));
            }
            break;
        }
        if attempt == what.count {
            break;
        }
        wait_until(&sys, began.saturating_add(what.pace_ns), what.busy).await;
        if sys.world().sched.current_killed() {
            return Err(Stop::Killed);
        }
    }
    Ok(())
}

/// Waits for the next attempt: asleep, or in a loop of `schedule`, in which the task has its share of a CPU.
async fn wait_until(sys: &Sys, due: Nanos, busy: bool) {
    if !busy {
        return sys.sleep_until(due).await;
    }
    loop {
        let (left, killed) = {
            let sched = &sys.world().sched;
            (due.saturating_sub(sched.now()), sched.current_killed())
        };
        if left == 0 || killed {
            return;
        }
        sys.charge_kernel(left.min(LOOK)).await;
    }
}

/// An attempt from `began` to `now` is over.
fn record(context: &mut Context, what: &Alloc, block: Option<Pfn>, (began, now): (Nanos, Nanos)) {
    let world = &mut *context.sys.world();
    if let Some(pfn) = block {
        let compound = matches!(what.flags, AllocFlags::Hugetlb | AllocFlags::Thp);
        world.mm.hold(pfn, what.order as usize, compound);
        context.held.entry(what.pool).or_default().push(pfn);
    }
    if let Some(series) = what.series {
        let series = match block {
            Some(_) => series.success,
            None => series.failed,
        };
        let samples = world.workload.samples.entry(series_number(series, None));
        samples.or_default().push((now, now - began));
    }
}

/// A block, or none if there is none.
async fn one_block(sys: &Sys, what: &Alloc) -> Result<Option<Pfn>, Stop> {
    let node = sys.world().sched.current_node();
    let movable = Gfp::user(node).with(gfp::NOWARN);
    let block = match what.flags {
        AllocFlags::Kernel => alloc_pages(sys, Gfp::kernel(node), what.order as usize).await,
        AllocFlags::Movable => alloc_pages(sys, movable, what.order as usize).await,
        AllocFlags::Hugetlb => pool_page(sys, what.order as usize).await,
        AllocFlags::Thp => alloc_pages(sys, Gfp::transhuge(node), what.order as usize).await,
    };
    if sys.world().sched.current_killed() {
        Err(Stop::Killed)
    } else {
        Ok(block.ok())
    }
}

/// A page for the pool of hugetlbfs (`alloc_buddy_hugetlb_folio`): each node is tried hard, but once.
async fn pool_page(sys: &Sys, order: usize) -> Result<Pfn, OutOfMemory> {
    const FLAGS: u64 = gfp::NOWARN | gfp::RETRY_MAYFAIL | gfp::THISNODE | gfp::COMP;
    let nodes = sys.world().mm.nodes.len();
    for _ in 0..nodes {
        let node = sys.world().mm.next_node_of_pool();
        let found = alloc_pages(sys, Gfp::user(node).with(FLAGS), order).await;
        if found.is_ok() || sys.world().sched.current_killed() {
            return found;
        }
    }
    Err(OutOfMemory)
}

/// Gives back all that the instance holds in a pool.
pub(super) async fn free(context: &mut Context, pool: PoolId) {
    let sys = context.sys.clone();
    let blocks = context.held.remove(&pool).unwrap_or_default();
    {
        let world = &mut *sys.world();
        for pfn in blocks {
            world.mm.let_go(pfn);
        }
    }
    sys.charge_kernel(sys.costs.syscall_ns).await;
}

/// The instance ends: so does what it holds.
pub(super) fn free_all(context: &mut Context) {
    let world = &mut *context.sys.world();
    for pfn in std::mem::take(&mut context.held).into_values().flatten() {
        world.mm.let_go(pfn);
    }
}

#[cfg(test)]
mod tests;
