//! Allocations of objects that may wait for memory, and nodes of trees that CPUs keep for allocations that may not.
//!
//! 1. A slab of the cache's order is allocated if there is a free block at once; whether the allocation wakes kswapd or
//!    reclaims to get one depends on the kernel. Without a block, memory is reclaimed for the smallest slab that holds an
//!    object.
//! 2. To 4.19 a CPU keeps nodes of trees. A task that is about to add a page to a file fills up the CPU's store first, and
//!    may wait for memory; the insertion, which may not, takes from the store.

use super::slabs::get_order;
use super::{Cache, NO_OBJECT, Object, Slub};
use crate::ids::NodeId;
use crate::kernel::SlabBlock;
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::types::{Gfp, OutOfMemory, Pfn};
use crate::world::Sys;
use lowmark_record::event::gfp;

/// `RADIX_TREE_MAX_PATH`: levels of the highest tree on a 64-bit machine, and the nodes that a CPU keeps.
const PRELOAD: usize = 11;

impl Slub {
    /// Whether a CPU lacks nodes for a page that is about to enter the tree of a file.
    #[inline]
    pub(in crate::mm) fn needs_preload(&self, cpu: usize) -> bool {
        let store = self.preloaded.get(cpu);
        store.is_some_and(|store| store.len() < PRELOAD)
    }

    /// A node of a CPU's store.
    #[inline]
    pub(in crate::mm) fn take_preloaded(&mut self, cpu: usize) -> Option<Object> {
        self.preloaded.get_mut(cpu)?.pop()
    }

    /// Nodes that all CPUs keep.
    pub(crate) fn nr_preloaded(&self) -> usize {
        self.preloaded.iter().map(Vec::len).sum()
    }
}

/// `kmem_cache_alloc` with GFP_KERNEL on a node. No object where slabs are left out.
///
/// # Errors
///
/// When there is nothing left to reclaim.
pub(in crate::mm) async fn alloc_object_waiting(
    sys: &Sys,
    cache: Cache,
    node: NodeId,
) -> Result<Object, OutOfMemory> {
    alloc_object_with(sys, cache, cache.waiting_gfp(node)).await
}

/// `kmem_cache_alloc` by a task that may wait.
async fn alloc_object_with(sys: &Sys, cache: Cache, gfp: Gfp) -> Result<Object, OutOfMemory> {
    let order = {
        let world = &mut *sys.world();
        let cpu = world.mm.cpu;
        let Some(slabs) = world.mm.slub.caches.get_mut(cache.number()) else {
            return Ok(NO_OBJECT);
        };
        if let Some(object) = slabs.take(cpu) {
            return Ok(object);
        }
        slabs.order
    };
    let smallest = get_order(cache.size()) as usize;
    let block = if order > smallest {
        alloc_slab_block(sys, gfp, order).await
    } else {
        None
    };
    let (pfn, order) = match block {
        Some(pfn) => (pfn, order),
        None => (alloc_pages(sys, gfp, smallest).await?, smallest),
    };
    let world = &mut *sys.world();
    let cpu = world.mm.cpu;
    Ok(world.mm.slub.caches[cache.number()].add(cpu, pfn, order))
}

/// The block of a slab that is larger than it has to be (`allocate_slab`, `alloc_slab_page`).
async fn alloc_slab_block(sys: &Sys, gfp: Gfp, order: usize) -> Option<Pfn> {
    let slab_block = sys.world().mm.kernel.mechanisms.blocks.slab_block;
    match slab_block {
        SlabBlock::Reclaims => alloc_pages(sys, gfp.noretry(), order).await.ok(),
        SlabBlock::Wakes => {
            let gfp = gfp.noretry().without(gfp::DIRECT_RECLAIM);
            sys.world().alloc_pages_nowait(gfp, order)
        }
        SlabBlock::Nothing => sys.world().alloc_pages_if_there(gfp, order),
    }
}

/// `radix_tree_preload`: fills up the store of the CPU on which a task is about to add pages to a file, as far as the
/// kernel has such stores.
///
/// # Errors
///
/// When there is nothing left to reclaim.
pub(in crate::mm) async fn preload_file_nodes(sys: &Sys, gfp: Gfp) -> Result<(), OutOfMemory> {
    let needs = || {
        let mm = &sys.world().mm;
        mm.slub.needs_preload(mm.cpu)
    };
    while needs() {
        let cache = Cache::RadixTreeNode;
        let gfp = gfp
            .without(gfp::HIGHMEM | gfp::MOVABLE | gfp::WRITE)
            .with(cache.gfp());
        let object = alloc_object_with(sys, cache, gfp).await?;
        let mm = &mut sys.world().mm;
        // Whoever waited may have come to another CPU, whose store is full.
        if mm.slub.needs_preload(mm.cpu) {
            mm.slub.preloaded[mm.cpu].push(object)
        } else {
            mm.free_object(cache, object)
        }
    }
    Ok(())
}
