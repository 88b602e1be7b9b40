//! Blocks that tasks of the workload hold: pages in use that are on no list, that nobody maps, and that nothing moves, as
//! those of a kernel module are.

use crate::mm::Mm;
use crate::mm::types::Pfn;
use std::collections::BTreeMap;

/// The blocks that are held now: the order of each by its first page.
#[derive(Debug, Default)]
pub(crate) struct Held(BTreeMap<Pfn, usize>);

impl Held {
    /// First page and order of each, in the order of their pages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, usize)> + '_ {
        self.0.iter().map(|(&pfn, &order)| (pfn, order))
    }
}

impl Mm {
    /// A block that has just been allocated is held from now on.
    pub(crate) fn hold(&mut self, pfn: Pfn, order: usize) {
        let before = self.held.0.insert(pfn, order);
        debug_assert!(before.is_none(), "a block that is held already");
    }

    /// A block is no longer held: its pages are free.
    pub(crate) fn let_go(&mut self, pfn: Pfn) {
        if let Some(order) = self.held.0.remove(&pfn) {
            self.free_pages(pfn, order);
        }
    }
}
