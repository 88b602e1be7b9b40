//! Memory for users: what is allocated is charged to the group of who wants it.

use super::counter::Charge;
use super::events::{Event, Reclaimer};
use super::high::handle_over_high;
use super::{MAX_RECLAIM_RETRIES, Memcontrol};
use crate::ids::MemcgId;
use crate::kernel::ChargeRetries;
use crate::mm::alloc::page_alloc::{alloc_page, alloc_pages};
use crate::mm::types::{Gfp, OutOfMemory, PAGE_ALLOC_COSTLY_ORDER, Pfn, SWAP_CLUSTER_MAX};
use crate::world::Sys;
use lowmark_record::event::gfp;

/// Allocates a page and charges it to a group.
#[inline]
pub(crate) async fn alloc_charged(sys: &Sys, gfp: Gfp, memcg: MemcgId) -> Result<Pfn, OutOfMemory> {
    let pfn = alloc_page(sys, gfp).await?;
    if memcg != MemcgId::ROOT {
        let charged = Box::pin(charge(sys, pfn, gfp, memcg)).await;
        if charged.is_err() {
            sys.world().mm.free_page(pfn);
        }
        charged?;
    }
    Ok(pfn)
}

/// Allocates a folio, not above order 0 for callers that insist on it, and charges it to a group.
pub(crate) async fn alloc_folio_charged(
    sys: &Sys,
    gfp: Gfp,
    order: usize,
    memcg: MemcgId,
) -> Result<Pfn, OutOfMemory> {
    if order == 0 {
        return alloc_charged(sys, gfp, memcg).await;
    }
    let head = alloc_pages(sys, gfp, order).await?;
    sys.world().mm.pages.make_folio(head, order);
    let charged = charge_folio(sys, head, gfp, memcg).await;
    if charged.is_err() {
        sys.world().mm.free_folio(head);
    }
    charged.map(|()| head)
}

/// Charges all pages of a folio to a group (`mem_cgroup_charge`).
///
/// # Errors
///
/// When the group may not have them. Then none is charged.
pub(crate) async fn charge_folio(
    sys: &Sys,
    head: Pfn,
    gfp: Gfp,
    memcg: MemcgId,
) -> Result<(), OutOfMemory> {
    if memcg != MemcgId::ROOT {
        Box::pin(charge(sys, head, gfp, memcg)).await?;
    }
    Ok(())
}

/// Charges a page, or all pages of a folio. For many pages nobody is killed: they are not to be had.
async fn charge(sys: &Sys, head: Pfn, gfp: Gfp, memcg: MemcgId) -> Result<(), OutOfMemory> {
    let pages = sys.world().mm.pages[head].folio_nr_pages();
    try_charge(sys, gfp, memcg, pages).await?;
    {
        let mm = &mut sys.world().mm;
        mm.memcontrol.of_page[head as usize..][..pages as usize].fill(memcg);
        mm.check_soft_limits(head, memcg, pages);
    }
    reclaim_large_overcharge(sys, gfp).await;
    Ok(())
}

/// What follows the charge of a page: the task reclaims at once if it has charged far more than `memory.high` allows. The kernel
/// does so before the page is the group's, and after charges for objects as well.
pub(super) async fn reclaim_large_overcharge(sys: &Sys, gfp: Gfp) {
    let over = sys.world().take_large_overcharge(gfp);
    if let Some(over) = over {
        Box::pin(handle_over_high(sys, over)).await;
    }
}

impl Memcontrol {
    /// Rounds of reclaim without progress before a charge fails.
    fn charge_retries(&self) -> u32 {
        match self.rules.charge_retries {
            ChargeRetries::Few => 5,
            ChargeRetries::Many => MAX_RECLAIM_RETRIES,
        }
    }
}

/// `try_charge_memcg` of `pages` pages.
pub(super) async fn try_charge(
    sys: &Sys,
    gfp: Gfp,
    memcg: MemcgId,
    pages: u64,
) -> Result<(), OutOfMemory> {
    let costly = pages > 1 << PAGE_ALLOC_COSTLY_ORDER;
    let (mut retries, mut drained) = (sys.world().mm.memcontrol.charge_retries(), false);
    loop {
        let over = {
            let world = &mut *sys.world();
            let (cpu, task) = (world.mm.cpu, world.sched.current());
            let memcontrol = &mut world.mm.memcontrol;
            match memcontrol.try_charge(cpu, memcg, pages) {
                Charge::Over(group) => {
                    memcontrol.note(group, Event::Max);
                    group
                }
                charge => {
                    if let Charge::Batch(pages) = charge
                        && memcontrol.is_over_high(memcg)
                        && let Some(over) = memcontrol.over_high.get_mut(task.index())
                    {
                        *over += pages;
                    }
                    return Ok(());
                }
            }
        };
        if !gfp.has(gfp::DIRECT_RECLAIM) {
            return Err(OutOfMemory);
        }
        let by = Reclaimer::Direct;
        let reclaimed = sys
            .try_to_free_mem_cgroup_pages(gfp, over, pages.max(SWAP_CLUSTER_MAX), by)
            .await;
        let world = &mut *sys.world();
        let memcontrol = &mut world.mm.memcontrol;
        if memcontrol.margin(over) >= pages {
            continue;
        }
        if !drained {
            memcontrol.drain_all_stock(over);
            drained = true;
        } else if gfp.has(gfp::NORETRY) {
            return Err(OutOfMemory);
        } else if reclaimed == 0 || costly {
            if retries == 0 && costly {
                return Err(OutOfMemory);
            }
            if retries == 0 || world.sched.current_killed() {
                memcontrol.note(over, Event::Oom);
                world.out_of_memory(0);
                return Err(OutOfMemory);
            }
            retries -= 1;
        }
    }
}
