//! Blocks that tasks of the workload hold: pages in use that are on no list, that nobody maps, and that nothing moves, as
//! those of a kernel module are.

use crate::ids::NodeId;
use crate::mm::Mm;
use crate::mm::types::Pfn;
use std::collections::BTreeMap;

/// The blocks that are held now.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The order of each by its first page, and whether it is a compound page.
    blocks: BTreeMap<Pfn, (usize, bool)>,
    /// Number of the node that the pool of hugetlbfs takes its next page from (`next_nid_to_alloc`).
    next_node: usize,
}

impl Held {
    /// First page and order of each, in the order of their pages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, usize)> + '_ {
        self.blocks.iter().map(|(&pfn, &(order, _))| (pfn, order))
    }

    /// Whether a page is the first of a block that is held.
    pub(crate) fn begins(&self, pfn: Pfn) -> bool {
        self.blocks.contains_key(&pfn)
    }

    /// Where the compound page ends that a page belongs to, as those of hugetlbfs do.
    pub(crate) fn compound_end(&self, pfn: Pfn) -> Option<Pfn> {
        let (&first, &(order, compound)) = self.blocks.range(..=pfn).next_back()?;
        let end = first + (1 << order);
        (compound && pfn < end).then_some(end)
    }
}

impl Mm {
    /// A block that has just been allocated, as a compound page or as so many single ones, is held from now on.
    pub(crate) fn hold(&mut self, pfn: Pfn, order: usize, compound: bool) {
        let before = self.held.blocks.insert(pfn, (order, compound));
        debug_assert!(before.is_none(), "a block that is held already");
    }

    /// The node that the pool of hugetlbfs takes its next page from; the one after that is then the turn of the next
    /// (`hstate_next_node_to_alloc`).
    pub(crate) fn next_node_of_pool(&mut self) -> NodeId {
        let node = self.held.next_node;
        self.held.next_node = (node + 1) % self.nodes.len();
        NodeId::from(node)
    }

    /// A block is no longer held: its pages are free.
    pub(crate) fn let_go(&mut self, pfn: Pfn) {
        if let Some((order, _)) = self.held.blocks.remove(&pfn) {
            self.free_pages(pfn, order);
        }
    }

    /// Blocks are no longer held.
    pub(crate) fn let_all_go(&mut self, blocks: Vec<Pfn>) {
        for pfn in blocks {
            self.let_go(pfn);
        }
    }
}
