//! mlock(2) and munlock(2) of a range of a region, or of all of it.

use super::advise::populate;
use super::context::{Context, Stop};
use super::maps::pages_of;
use crate::mm::fault::memory::Backing;
use crate::time::MSEC;
use crate::world::World;
use lowmark_spec::workload::{Op, Range, Stmt, Workload};

/// How long a page is waited for that reclaim has in its hands.
const RETRY: u64 = MSEC;

/// Carries it out.
pub(super) async fn mlock(
    context: &Context,
    map: usize,
    lock: bool,
    range: Option<Range>,
) -> Result<(), Stop> {
    let vma = context.region(map)?;
    let sys = context.sys.clone();
    sys.down_write(context.space).await;
    let pages = {
        let world = &mut *sys.world();
        let pages = pages_of(world, vma, range);
        world.mm.set_locked(vma, pages.clone(), lock);
        world.mm.split_huge_in(vma, pages.clone());
        pages
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    if !lock {
        return Ok(());
    }
    // `populate_vma_page_range` stores to what is private, so that nobody has to be asked for a copy later.
    let write = match sys.world().mm.vmas[vma as usize].backing {
        Backing::Anon | Backing::File { shared: false, .. } => true,
        Backing::Shmem(_) | Backing::File { shared: true, .. } => false,
    };
    loop {
        populate(&sys, vma, pages.clone(), write).await?;
        sys.world().mm.split_huge_in(vma, pages.clone());
        let all = lock_those_there(&mut sys.world(), vma, pages.clone());
        if all {
            return Ok(());
        }
        sys.sleep(RETRY).await;
    }
}

/// Locks what is there of a range; whether that is all of it.
fn lock_those_there(world: &mut World, vma: u32, pages: std::ops::Range<u32>) -> bool {
    let mut all = true;
    for index in pages {
        let region = &world.mm.vmas[vma as usize];
        let Some(pte) = region.ptes.get(index as usize) else {
            return true;
        };
        if !region.parts.at(index).locked {
            continue;
        }
        all &= match pte.frame() {
            Some(pfn) => world.mm.mlock_page(pfn),
            None => pte.is_present(),
        };
    }
    all
}

/// Whether a workload locks memory.
pub(super) fn is_in(workload: &Workload) -> bool {
    fn locks(stmt: &Stmt) -> bool {
        let locks_itself = matches!(stmt.op, Op::Mlock { .. } | Op::Map { lock: true, .. });
        locks_itself || stmt.op.bodies().into_iter().flatten().any(locks)
    }
    let bodies = workload.tasks.iter().flat_map(|task| &task.instances);
    bodies.flatten().any(locks)
}
