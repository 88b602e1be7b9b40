//! Shared anonymous memory (`mm/shmem.c`): pages belong to an object, not to a PTE.

use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::mm::alloc::xarray::{CHUNK_SHIFT, Nodes};
use crate::mm::types::Pfn;
use crate::world::World;
use std::ops::Range;

/// What an object holds at one offset: nothing, a page, or a swap entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShmemSlot(u32);

/// A slot, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShmemEntry {
    /// Never written.
    Hole,
    /// In memory.
    Page(Pfn),
    /// In this swap slot.
    Swap(u32),
}

impl ShmemSlot {
    /// In memory.
    pub(crate) fn page(pfn: Pfn) -> ShmemSlot {
        ShmemSlot(pfn << 1 | 1)
    }

    /// In swap; slot 0 of an area is its header, so no entry is 0.
    pub(crate) fn swapped(slot: u32) -> ShmemSlot {
        ShmemSlot(slot << 1)
    }

    /// All that is in it, for loading it ahead.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// What is there.
    #[inline]
    pub(crate) fn get(self) -> ShmemEntry {
        match (self.0 & 1, self.0 >> 1) {
            (1, pfn) => ShmemEntry::Page(pfn),
            (_, 0) => ShmemEntry::Hole,
            (_, slot) => ShmemEntry::Swap(slot),
        }
    }
}

/// A shared object.
#[derive(Debug)]
pub(crate) struct ShmemInode {
    /// Its pages by offset (the radix tree).
    pub(crate) slots: Vec<ShmemSlot>,
    /// Owner number of its first page.
    pub(crate) first: u32,
    /// VMAs that map it from offset 0 (`i_mmap`).
    pub(crate) mappers: Vec<u32>,
    /// What finds them.
    pub(crate) tree: ShmemTree,
}

/// The tree of an object (`i_pages`), as far as it takes memory.
#[derive(Debug, Default)]
pub(crate) struct ShmemTree {
    /// Pages and swap entries of each leaf.
    entries: Vec<u8>,
    nodes: Nodes,
}

impl ShmemTree {
    /// Its nodes, and how many entries each leaf has.
    pub(crate) fn parts(&self) -> (&Nodes, &[u8]) {
        (&self.nodes, &self.entries)
    }
}

impl Mm {
    /// A hole is where a page was.
    pub(in crate::mm) fn remove_shmem_entry(&mut self, object: usize, index: usize) {
        if !self.slub.is_on() {
            return;
        }
        let tree = &mut self.shmem[object].tree;
        let leaf = index >> CHUNK_SHIFT;
        tree.entries[leaf] -= 1;
        if tree.entries[leaf] == 0 {
            for node in tree.nodes.remove(leaf as u32) {
                self.free_object(Cache::RadixTreeNode, node);
            }
        }
    }

    /// `shmem_fallocate` with a hole to punch: pages and slots of a range of an object are free, and nobody maps them.
    pub(crate) fn punch_shmem(&mut self, object: u32, range: Range<usize>) {
        let mappers = self.shmem[object as usize].mappers.clone();
        for vma in mappers {
            let end = range.end.min(self.vmas[vma as usize].ptes.len());
            self.zap_range(vma, range.start as u32..end as u32);
        }
        for index in range {
            let slot = &mut self.shmem[object as usize].slots[index];
            match std::mem::take(slot).get() {
                ShmemEntry::Hole => continue,
                ShmemEntry::Page(pfn) => self.forget_page(pfn),
                ShmemEntry::Swap(slot) => {
                    self.swap.drop_reference(slot);
                    self.free_swap_cache(slot);
                }
            }
            self.remove_shmem_entry(object as usize, index);
        }
    }

    /// All that is left of an object is holes.
    pub(super) fn free_shmem_tree(&mut self, object: u32) {
        let tree = std::mem::take(&mut self.shmem[object as usize].tree);
        for node in tree.nodes.into_objects() {
            self.free_object(Cache::RadixTreeNode, node);
        }
    }
}

impl World {
    /// A page is where a hole was (`shmem_add_to_page_cache`).
    #[inline]
    pub(super) fn add_shmem_entry(&mut self, object: u32, index: u32, pfn: Pfn) {
        if !self.mm.slub.is_on() {
            return;
        }
        let leaf = index >> CHUNK_SHIFT;
        let tree = &mut self.mm.shmem[object as usize].tree;
        if tree.entries.len() <= leaf as usize {
            tree.entries.resize(leaf as usize + 1, 0);
        }
        let entries = &mut tree.entries[leaf as usize];
        *entries += 1;
        if *entries == 1 {
            let mut nodes = std::mem::take(&mut tree.nodes);
            let node = self.mm.node_of(pfn);
            nodes.add(leaf, || {
                self.alloc_charged_object(Cache::RadixTreeNode, node)
            });
            self.mm.shmem[object as usize].tree.nodes = nodes;
        }
    }
}
