//! Pages of groups that are read from swap.
//!
//! 1. From 5.8 on (4c6355b25e8b) a page is charged to the group that its slot is of before it is read.
//! 2. Before that it is nobody's until a task maps it: it stands on the lists of the root, where reclaim for a group does not
//!    find it. A page that was read for a neighbour's sake and is not needed is never charged.

use super::charge::{reclaim_large_overcharge, try_charge};
use super::counter::Charge;
use crate::ids::MemcgId;
use crate::kernel::SwapinCharge;
use crate::mm::Mm;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};

impl Mm {
    /// The group that a page is charged to before it is read from a slot.
    #[inline]
    pub(in crate::mm) fn group_of_read(&self, slot: u32) -> MemcgId {
        match self.kernel.mechanisms.memcg.swapin_charge {
            SwapinCharge::Mapped => MemcgId::ROOT,
            SwapinCharge::Read => self.swap_group(slot),
        }
    }

    /// The group that a page of the swap cache, which is going to be mapped, has yet to be charged to.
    fn owed_group(&self, pfn: Pfn, slot: u32) -> Option<MemcgId> {
        if self.kernel.mechanisms.memcg.swapin_charge == SwapinCharge::Read {
            return None;
        }
        let memcg = self.swap_group(slot);
        let owed = memcg != MemcgId::ROOT && self.memcontrol.of_page(pfn) == MemcgId::ROOT;
        owed.then_some(memcg)
    }

    /// `commit_charge` of a page that may be on the lists of the root: it comes to the head of those of its group.
    fn commit_charge(&mut self, pfn: Pfn, memcg: MemcgId) {
        let listed = self.pages[pfn].has(flag::LRU);
        if listed {
            self.lru_del(pfn);
        }
        self.memcontrol.of_page[pfn as usize] = memcg;
        if listed {
            self.lru_add(pfn);
        }
        self.check_soft_limits(pfn, memcg, 1);
    }
}

impl World {
    /// Charges a page of the swap cache, which is going to be mapped, if that is still to be done. False: that takes reclaim.
    #[inline]
    pub(in crate::mm) fn charge_mapped(&mut self, pfn: Pfn, slot: u32) -> bool {
        let Some(memcg) = self.mm.owed_group(pfn, slot) else {
            return true;
        };
        let (cpu, memcontrol) = (self.mm.cpu, &mut self.mm.memcontrol);
        if memcontrol.has_high(memcg)
            || matches!(memcontrol.try_charge(cpu, memcg, 1), Charge::Over(_))
        {
            return false;
        }
        self.mm.commit_charge(pfn, memcg);
        true
    }
}

/// [`charge_mapped`](World::charge_mapped) with reclaim: the page may be gone, or charged by another task, after that.
///
/// # Errors
///
/// When the group may not have the page.
pub(in crate::mm) async fn charge_mapped_waiting(
    sys: &Sys,
    pfn: Pfn,
    slot: u32,
    gfp: Gfp,
) -> Result<(), OutOfMemory> {
    let Some(memcg) = sys.world().mm.owed_group(pfn, slot) else {
        return Ok(());
    };
    try_charge(sys, gfp, memcg, 1).await?;
    {
        let mm = &mut sys.world().mm;
        if mm.swap.cached(slot) == Some(pfn) && mm.owed_group(pfn, slot) == Some(memcg) {
            mm.commit_charge(pfn, memcg);
        } else {
            mm.memcontrol.uncharge_counter(memcg, 1);
        }
    }
    reclaim_large_overcharge(sys, gfp).await;
    Ok(())
}
