//! Slots for a huge page that is swapped out as it is.

use super::{Area, Swap};
use crate::mm::types::{HPAGE_PMD_NR, Pfn};

impl Swap {
    /// `get_swap_pages` of a cluster: 512 slots side by side for a huge page that enters the swap cache, the first one. Only
    /// the first area is asked, which goes behind the others of its priority even if it has none.
    pub(crate) fn allocate_cluster(&mut self, head: Pfn) -> Option<u32> {
        let at = *self
            .order
            .first()
            .filter(|_| self.free >= u64::from(HPAGE_PMD_NR))?;
        self.take_turns(0);
        let area = &mut self.areas[at];
        let first = area.base + area.take_cluster()?;
        self.free -= u64::from(HPAGE_PMD_NR);
        for (slot, pfn) in (first..first + HPAGE_PMD_NR).zip(head..) {
            self.memory.slot_taken(slot);
            self.slots[slot as usize].set_page(Some(pfn));
            self.memory.entry_added(slot);
        }
        Some(first)
    }
}

impl Area {
    /// `swap_alloc_cluster`: the slots of a free cluster, the first one.
    fn take_cluster(&mut self) -> Option<u32> {
        let clusters = self.clusters.as_mut().filter(|_| self.takes_huge_pages);
        let first = clusters?.take_whole()?;
        for offset in first..first + HPAGE_PMD_NR {
            self.used[offset as usize / 64] |= 1 << (offset % 64);
        }
        self.in_use += HPAGE_PMD_NR;
        let end = first + HPAGE_PMD_NR;
        if (first..end).contains(&self.lowest_bit) {
            self.lowest_bit = end;
        }
        if (first..end).contains(&self.highest_bit) {
            self.highest_bit = first - 1;
        }
        Some(first)
    }
}
