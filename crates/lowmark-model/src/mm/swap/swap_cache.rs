//! Memory in which the kernel finds the swap cache's pages.
//!
//! 1. Up to 6.17 each 64 MiB of swap are a tree like that of a file, with the pages and the shadows of those that
//!    were evicted. A slot that is free has neither.
//! 2. From 6.18 on a cluster of slots has a table of one page while any of its slots is in use.
//!
//! What is allocated follows at once; what is freed, like the kernel's after a grace period, with the next
//! allocation.

use crate::ids::NodeId;
use crate::kernel::{Kernel, SwapCacheIndex};
use crate::mm::alloc::slub::Cache;
use crate::mm::alloc::xarray::{CHUNK_SHIFT, Nodes};
use crate::mm::types::{Gfp, NONE, Pfn, Reserves};
use crate::world::World;

/// Slots of a tree as a power of two (`SWAP_ADDRESS_SPACE_SHIFT`).
const SPACE_SHIFT: u32 = 14;
/// Slots of a table (`SWAPFILE_CLUSTER`).
const TABLE_SHIFT: u32 = 9;

/// Trees or tables of all areas.
#[derive(Debug, Default)]
pub(crate) struct SwapCacheMemory {
    /// Entries of each leaf or table; none if they are left out.
    entries: Vec<u16>,
    /// Slots of a leaf or table as a power of two.
    shift: u32,
    /// Leaves or tables that got their first or lost their last entry, and have not been looked at since.
    changed: Vec<u32>,
    spaces: Vec<Nodes>,
    tables: Vec<Pfn>,
}

impl SwapCacheMemory {
    /// For so many slots, all of them free.
    pub(super) fn new(slots: usize, kernel: &Kernel) -> SwapCacheMemory {
        if !kernel.coverage.slab_pages {
            return SwapCacheMemory::default();
        }
        let pieces = |shift: u32| slots.div_ceil(1 << shift);
        match kernel.mechanisms.swap.swap_cache_index {
            SwapCacheIndex::Trees => SwapCacheMemory {
                entries: vec![0; pieces(CHUNK_SHIFT)],
                shift: CHUNK_SHIFT,
                changed: Vec::new(),
                spaces: (0..pieces(SPACE_SHIFT)).map(|_| Nodes::default()).collect(),
                tables: Vec::new(),
            },
            SwapCacheIndex::Tables => SwapCacheMemory {
                entries: vec![0; pieces(TABLE_SHIFT)],
                shift: TABLE_SHIFT,
                changed: Vec::new(),
                spaces: Vec::new(),
                tables: vec![NONE; pieces(TABLE_SHIFT)],
            },
        }
    }

    /// A slot has been taken.
    #[inline]
    pub(super) fn slot_taken(&mut self, slot: u32) {
        if self.shift == TABLE_SHIFT {
            self.gained(slot);
        }
    }

    /// A slot is free again.
    #[inline]
    pub(super) fn slot_freed(&mut self, slot: u32) {
        if self.shift == TABLE_SHIFT {
            self.lost(slot);
        }
    }

    /// A slot has got a page or a shadow and had neither.
    #[inline]
    pub(super) fn entry_added(&mut self, slot: u32) {
        if self.shift == CHUNK_SHIFT {
            self.gained(slot);
        }
    }

    /// A slot has neither page nor shadow any more.
    #[inline]
    pub(super) fn entry_removed(&mut self, slot: u32) {
        if self.shift == CHUNK_SHIFT {
            self.lost(slot);
        }
    }

    #[inline(never)]
    fn gained(&mut self, slot: u32) {
        let place = slot >> self.shift;
        let entries = &mut self.entries[place as usize];
        *entries += 1;
        if *entries == 1 {
            self.changed.push(place);
        }
    }

    #[inline(never)]
    fn lost(&mut self, slot: u32) {
        let place = slot >> self.shift;
        let entries = &mut self.entries[place as usize];
        *entries -= 1;
        if *entries == 0 {
            self.changed.push(place);
        }
    }

    /// The trees.
    pub(crate) fn spaces(&self) -> &[Nodes] {
        &self.spaces
    }

    /// Slots with an entry, by leaf or table.
    pub(crate) fn entries(&self) -> &[u16] {
        &self.entries
    }
}

impl World {
    /// Allocates what the swap cache needs for the entries that it has got, on the node of a page, and frees what it
    /// does not need any more.
    #[inline]
    pub(super) fn settle_swap_cache(&mut self, page: Pfn) {
        if !self.mm.swap.memory.changed.is_empty() {
            self.change_swap_cache(self.mm.node_of(page));
        }
    }

    #[cold]
    fn change_swap_cache(&mut self, node: NodeId) {
        let mut memory = std::mem::take(&mut self.mm.swap.memory);
        for place in memory.changed.drain(..) {
            let needed = memory.entries[place as usize] > 0;
            match memory
                .spaces
                .get_mut((place >> (SPACE_SHIFT - CHUNK_SHIFT)) as usize)
            {
                Some(nodes) if needed => {
                    nodes.add(place, || {
                        self.alloc_object(Cache::RadixTreeNode, node, Reserves::All)
                    });
                }
                Some(nodes) => {
                    for object in nodes.remove(place) {
                        self.mm.free_object(Cache::RadixTreeNode, object);
                    }
                }
                None => self.change_table(&mut memory.tables[place as usize], needed, node),
            }
        }
        self.mm.swap.memory = memory;
    }

    /// `swap_cluster_alloc_table`, `swap_cluster_free_table`
    fn change_table(&mut self, table: &mut Pfn, needed: bool, node: NodeId) {
        match (needed, *table) {
            (true, NONE) => {
                let page = self.alloc_pages_nowait(Gfp::kernel(node).nowait(Reserves::High), 0);
                *table = page.unwrap_or(NONE);
            }
            (false, pfn) if pfn != NONE => {
                self.mm.free_pages(pfn, 0);
                *table = NONE;
            }
            _ => {}
        }
    }
}
