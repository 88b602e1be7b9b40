//! Invariants of the kernel's own objects.

use crate::kernel::SwapCacheIndex;
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, NO_OBJECT, group_of};
use crate::mm::alloc::xarray::{CHUNK_SHIFT, Nodes};
use crate::mm::fault::shmem::ShmemEntry;
use crate::mm::files::inode::Inode;
use crate::mm::types::{UNMAPPED, flag};
use crate::world::World;

/// What drivers have allocated belongs to requests.
pub(super) fn requests_have_their_tables(world: &World) {
    for cache in Cache::all().filter(|cache| cache.is_of_drivers()) {
        let of_requests = world.block.all_tables().map(|tables| tables.count(cache));
        let in_use = world.mm.slub.in_use(cache);
        assert_eq!(in_use, of_requests.sum::<u64>(), "{cache:?}");
    }
}

/// Bios are kept for bad times or belong to I/O under way.
pub(super) fn io_has_bios(world: &World) {
    let in_use = world.mm.slub.in_use(Cache::Bio);
    assert_eq!(in_use, world.bios.len() as u64, "bios in memory");
}

/// Groups are charged for the objects that say so, byte by byte.
pub(super) fn groups_are_charged_for_their_objects(mm: &Mm) {
    if mm.memcontrol.len() == 1 {
        return;
    }
    let dentries = mm.shrinkers.dentries.iter();
    let dentries = dentries.map(|dentry| (Cache::Dentry, dentry.cached.object));
    let of_inode = |file: &Inode| (mm.shrinkers.inode_cache(file.fs), file.cached.object);
    let inodes = mm.inodes.iter().map(of_inode);
    let files = mm.inodes.iter().flat_map(|file| file.nodes.objects());
    let shared = mm
        .shmem
        .iter()
        .flat_map(|object| object.tree.parts().0.objects());
    let evicted = mm.shrinkers.evicted_objects();
    let nodes = files.chain(shared).map(|node| (Cache::RadixTreeNode, node));
    let heads = mm.buffer_heads.iter();
    let heads = heads.map(|(_, object)| (Cache::BufferHead, object));
    let nodes = nodes.chain(evicted).chain(heads);
    let mut bytes = vec![0; mm.memcontrol.len()];
    for (cache, object) in dentries.chain(inodes).chain(nodes) {
        bytes[usize::from(group_of(object))] += cache.charge();
    }
    for (memcg, charged) in mm.memcontrol.object_bytes() {
        assert_eq!(
            charged,
            bytes[usize::from(memcg)],
            "bytes of objects of memory cgroup {memcg}"
        );
    }
}

/// Buffer heads belong to pages of files, and there are no others.
pub(super) fn pages_have_buffers(mm: &Mm) {
    let mut heads = 0;
    for (pfn, _) in mm.buffer_heads.iter() {
        let page = &mm.pages[pfn];
        let of_file = page.owner != UNMAPPED && !page.is_anon() && !page.has(flag::SWAPBACKED);
        assert!(
            of_file,
            "frame {pfn} has a buffer head but holds no page of a file"
        );
        heads += 1;
    }
    let in_use = mm.slub.in_use(Cache::BufferHead);
    assert_eq!(in_use, heads, "buffer heads in memory");
}

/// Every object in use is somebody's, and trees have the leaves that their entries need.
pub(super) fn check(mm: &Mm, index: SwapCacheIndex) {
    if !mm.slub.is_on() {
        return;
    }
    let in_memory = |nodes: &Nodes| {
        nodes
            .objects()
            .filter(|&object| object != NO_OBJECT)
            .count()
    };
    let shared = mm
        .shmem
        .iter()
        .map(|object| in_memory(object.tree.parts().0));
    let files = mm.inodes.iter().map(|file| in_memory(&file.nodes));
    let swap = mm.swap.memory.spaces().iter().map(in_memory);
    let nodes: usize = shared.chain(files).chain(swap).sum::<usize>() + mm.slub.nr_preloaded();
    let in_use = mm.slub.in_use(Cache::RadixTreeNode);
    assert_eq!(in_use, nodes as u64, "nodes of trees in memory");

    for (number, object) in mm.shmem.iter().enumerate() {
        let (nodes, entries) = object.tree.parts();
        for (leaf, slots) in object.slots.chunks(1 << CHUNK_SHIFT).enumerate() {
            let used = slots.iter().filter(|slot| slot.get() != ShmemEntry::Hole);
            let (used, counted) = (used.count(), entries.get(leaf).copied().unwrap_or(0));
            assert_eq!(used, usize::from(counted), "entries of object {number}");
            assert_eq!(
                used > 0,
                nodes.has(leaf as u32),
                "leaves of object {number}"
            );
        }
    }
    for (number, file) in mm.inodes.iter_enumerated() {
        for (page, _) in file.pages.iter() {
            assert!(
                file.nodes.has(page >> CHUNK_SHIFT),
                "a leaf of file {number} is missing"
            );
        }
    }
    if index == SwapCacheIndex::Trees {
        let mut entries = vec![0; mm.swap.memory.entries().len()];
        for slot in mm.swap.remembered() {
            entries[(slot >> CHUNK_SHIFT) as usize] += 1;
        }
        assert_eq!(
            entries,
            mm.swap.memory.entries(),
            "entries of the swap cache"
        );
    }
}
