//! Objects in slabs that memory cgroups are charged for (`struct obj_cgroup`, 5.9 and later).
//!
//! 1. Dentries, inodes and nodes of the trees of files are charged to the group of the task that makes them, by their bytes.
//! 2. A CPU keeps what is left of the last page that it charged for a group ([`ObjStock`]). When it turns to another group, whole
//!    pages of that are given back, and the rest stays with the group until a CPU turns to it again.
//! 3. Bytes of freed objects go to the CPU as well; pages that it then has too many of go to its stock of pages.
//!
//! A group is there until the end of a run, so that none is ever charged for another's objects (`memcg_reparent_objcgs`).

use super::Memcontrol;
use super::charge::try_charge;
use super::counter::Charge;
use crate::ids::{MemcgId, NodeId};
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, NO_OBJECT, alloc_object_waiting, charged_to};
use crate::mm::alloc::xarray::Object;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, Reserves};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

/// Bytes that a CPU has charged ahead (part of `struct memcg_stock_pcp`).
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjStock {
    pub(super) memcg: MemcgId,
    pub(super) bytes: u64,
}

impl ObjStock {
    /// Nothing.
    pub(super) const EMPTY: ObjStock = ObjStock {
        memcg: MemcgId::ROOT,
        bytes: 0,
    };
}

impl Memcontrol {
    /// `consume_obj_stock`
    fn consume_obj_stock(&mut self, cpu: usize, memcg: MemcgId, bytes: u64) -> bool {
        let stock = &mut self.obj_stocks[cpu];
        let has = stock.memcg == memcg && stock.bytes >= bytes;
        stock.bytes -= if has { bytes } else { 0 };
        has
    }

    /// `drain_obj_stock`
    pub(super) fn drain_obj_stock(&mut self, cpu: usize) {
        let stock = std::mem::replace(&mut self.obj_stocks[cpu], ObjStock::EMPTY);
        if stock.memcg != MemcgId::ROOT {
            self.uncharge_kmem(cpu, stock.memcg, stock.bytes / PAGE_SIZE);
            self.groups[stock.memcg].loose += stock.bytes % PAGE_SIZE;
        }
    }

    /// `obj_cgroup_uncharge_pages`
    fn uncharge_kmem(&mut self, cpu: usize, memcg: MemcgId, pages: u64) {
        if pages > 0 {
            self.groups[memcg].kmem -= pages;
            self.refill_stock(cpu, memcg, pages);
        }
    }

    /// `refill_obj_stock`: of freed objects (`freed`), or what is left of pages that were charged.
    fn refill_obj_stock(&mut self, cpu: usize, memcg: MemcgId, bytes: u64, freed: bool) {
        let turns = self.obj_stocks[cpu].memcg != memcg;
        if turns {
            self.drain_obj_stock(cpu);
            let bytes = std::mem::take(&mut self.groups[memcg].loose);
            self.obj_stocks[cpu] = ObjStock { memcg, bytes };
        }
        let stock = &mut self.obj_stocks[cpu];
        stock.bytes += bytes;
        if (freed || turns) && stock.bytes > PAGE_SIZE {
            let pages = stock.bytes / PAGE_SIZE;
            stock.bytes %= PAGE_SIZE;
            self.uncharge_kmem(cpu, memcg, pages);
        }
    }

    /// Pages have been charged to a group for an object of `bytes` bytes.
    fn charged_kmem(&mut self, cpu: usize, memcg: MemcgId, pages: u64, bytes: u64) {
        self.groups[memcg].kmem += pages;
        self.refill_obj_stock(cpu, memcg, pages * PAGE_SIZE - bytes, false);
    }

    /// Pages that a group is charged for its objects; of the root, for which nobody is charged, none.
    pub(crate) fn kmem_pages(&self, memcg: MemcgId) -> u64 {
        self.groups.get(memcg).map_or(0, |group| group.kmem)
    }

    /// Bytes that each group but the root is charged for objects, those aside that CPUs or it have in hand: for tests of
    /// the model itself.
    pub(crate) fn object_bytes(&self) -> impl Iterator<Item = (MemcgId, u64)> {
        self.groups.iter_enumerated().skip(1).map(|(id, group)| {
            let stocks = self.obj_stocks.iter().filter(|stock| stock.memcg == id);
            let in_hand = group.loose + stocks.map(|stock| stock.bytes).sum::<u64>();
            (id, group.kmem * PAGE_SIZE - in_hand)
        })
    }
}

impl Mm {
    /// The group that is charged for objects that a group's tasks make.
    fn kmem_group(&self, memcg: MemcgId) -> MemcgId {
        if self.kernel.coverage.cgroup_slab && self.slub.has_slabs() {
            memcg
        } else {
            MemcgId::ROOT
        }
    }

    /// `obj_cgroup_uncharge`: an object of `bytes` bytes is freed.
    pub(crate) fn uncharge_object(&mut self, memcg: MemcgId, bytes: u64) {
        let cpu = self.cpu;
        self.memcontrol.refill_obj_stock(cpu, memcg, bytes, true);
    }

    /// An object that belongs to a page is charged to the group of the page, beyond its limit if need be.
    pub(in crate::mm) fn charge_object_of_page(
        &mut self,
        pfn: Pfn,
        cache: Cache,
        object: Object,
    ) -> Object {
        let memcg = self.kmem_group(self.memcontrol.of_page(pfn));
        if memcg == MemcgId::ROOT || object == NO_OBJECT {
            return object;
        }
        self.force_charge_object(memcg, cache.charge());
        charged_to(memcg, object)
    }

    /// Charges an object to a group that has no room for it, too.
    fn force_charge_object(&mut self, memcg: MemcgId, bytes: u64) {
        let (cpu, memcontrol) = (self.cpu, &mut self.memcontrol);
        if memcontrol.consume_obj_stock(cpu, memcg, bytes) {
            return;
        }
        let pages = bytes.div_ceil(PAGE_SIZE);
        if let Charge::Over(_) = memcontrol.try_charge(cpu, memcg, pages) {
            memcontrol.with_ancestors(memcg, |group| group.usage += pages);
        }
        memcontrol.charged_kmem(cpu, memcg, pages, bytes);
    }
}

impl World {
    /// `kmem_cache_alloc` with __GFP_ACCOUNT on a node, by who cannot wait. The group of the task that runs is charged beyond
    /// its limit if need be: the kernel tries again where it can reclaim, here the next charge of a page does so.
    pub(in crate::mm) fn alloc_charged_object(&mut self, cache: Cache, node: NodeId) -> Object {
        let object = self.alloc_object(cache, node, Reserves::None);
        let memcg = self.mm.kmem_group(self.current_memcg());
        if memcg == MemcgId::ROOT || object == NO_OBJECT {
            return object;
        }
        self.mm.force_charge_object(memcg, cache.charge());
        charged_to(memcg, object)
    }
}

/// `obj_cgroup_charge`
async fn charge_object(sys: &Sys, gfp: Gfp, memcg: MemcgId, bytes: u64) -> Result<(), OutOfMemory> {
    {
        let mm = &mut sys.world().mm;
        if mm.memcontrol.consume_obj_stock(mm.cpu, memcg, bytes) {
            return Ok(());
        }
    }
    let pages = bytes.div_ceil(PAGE_SIZE);
    try_charge(sys, gfp, memcg, pages).await?;
    let mm = &mut sys.world().mm;
    mm.memcontrol.charged_kmem(mm.cpu, memcg, pages, bytes);
    Ok(())
}

/// `kmem_cache_alloc` with GFP_KERNEL_ACCOUNT on a node: the group of the task that runs is charged first.
///
/// # Errors
///
/// When there is nothing left to reclaim.
pub(in crate::mm) async fn alloc_charged_object_waiting(
    sys: &Sys,
    cache: Cache,
    node: NodeId,
) -> Result<Object, OutOfMemory> {
    let memcg = {
        let world = sys.world();
        world.mm.kmem_group(world.current_memcg())
    };
    if memcg == MemcgId::ROOT {
        return alloc_object_waiting(sys, cache, node).await;
    }
    let gfp = cache.waiting_gfp(node);
    Box::pin(charge_object(sys, gfp, memcg, cache.charge())).await?;
    let object = alloc_object_waiting(sys, cache, node).await;
    if object.is_err() {
        sys.world().mm.uncharge_object(memcg, cache.charge());
    }
    Ok(charged_to(memcg, object?))
}
