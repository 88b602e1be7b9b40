//! Pages that a task has unmapped and still holds, as CPUs may have them in their TLBs (`mm/mmu_gather.c`), and the CPU time that the
//! task spends on unmapping.

use crate::kernel::MmuBatches;
use crate::mm::Mm;
use crate::mm::types::{GATHERED, Pfn, UNMAPPED};
use lowmark_spec::machine::Costs;
use std::collections::VecDeque;

/// Pages and huge pages of all batches: one of 8 on the stack, and `MAX_GATHER_BATCH_COUNT` of 510.
const LIMIT: usize = 8 + 10_000 / 510 * 510;

/// The pages and slots that a task gives up in one call of munmap(2) or madvise(2), or as it ends (`struct mmu_gather`).
#[derive(Debug)]
pub(crate) struct MmuGather {
    /// Pages and heads of huge pages that the task has unmapped and not freed, oldest first. Neither reclaim nor compaction takes
    /// them.
    held: VecDeque<Pfn>,
    /// How many pages the task may hold; 0 if it frees each page as it unmaps it.
    most: usize,
    work: Work,
}

/// Work of a task that it has not spent the CPU time of yet.
#[derive(Debug, Default, Clone, Copy)]
struct Work {
    /// Pages unmapped, and huge pages that were freed.
    pages: u64,
    huge_pages: u64,
    /// Slots of swap given up, and those of which there was still a page.
    slots: u64,
    cached: u64,
}

impl MmuGather {
    /// Of a task that frees each page as it unmaps it.
    pub(super) fn of_none() -> MmuGather {
        MmuGather {
            held: VecDeque::new(),
            most: 0,
            work: Work::default(),
        }
    }

    /// A page has been unmapped.
    pub(super) fn note_page(&mut self) {
        self.work.pages += 1;
    }

    /// A slot of swap has been given up, of which there was a page in the swap cache or not.
    pub(super) fn note_slot(&mut self, cached: bool) {
        self.work.slots += 1;
        self.work.cached += u64::from(cached);
    }

    /// CPU time of the task's work since this was last called, ns.
    pub(super) fn take_cost(&mut self, costs: &Costs) -> u64 {
        let work = std::mem::take(&mut self.work);
        work.pages * costs.zap_page_ns
            + work.huge_pages * costs.zap_huge_page_ns
            + work.slots * costs.zap_swap_ns
            + work.cached * costs.zap_cached_ns()
    }
}

impl Mm {
    /// `tlb_gather_mmu`
    pub(in crate::mm) fn tlb_gather_mmu(&self) -> MmuGather {
        let most = match self.kernel.mechanisms.reclaim.mmu_batches {
            MmuBatches::Blocks => 0,
            MmuBatches::Unbounded => usize::MAX,
            MmuBatches::Bounded => LIMIT,
        };
        MmuGather {
            most,
            ..MmuGather::of_none()
        }
    }

    /// `__tlb_remove_page` of a page, or of a huge page with this head, that nothing maps any more.
    pub(in crate::mm) fn tlb_remove_page(&mut self, pfn: Pfn, gather: &mut MmuGather) {
        if gather.most == 0 {
            gather.work.huge_pages += u64::from(self.is_huge(pfn));
            self.forget_page(pfn);
            return;
        }
        self.pages[pfn].owner = GATHERED;
        gather.held.push_back(pfn);
        if gather.held.len() >= gather.most {
            self.tlb_flush_mmu(gather);
        }
    }

    /// `tlb_flush_mmu`: the task frees all pages that it holds.
    pub(in crate::mm) fn tlb_flush_mmu(&mut self, gather: &mut MmuGather) {
        while self.tlb_flush_some(gather) {}
    }

    /// The task frees the pages that it has held longest, up to a huge page, which takes long to free. False: it holds no more.
    pub(super) fn tlb_flush_some(&mut self, gather: &mut MmuGather) -> bool {
        while let Some(pfn) = gather.held.pop_front() {
            let huge = self.is_huge(pfn);
            self.pages[pfn].owner = UNMAPPED;
            self.forget_page(pfn);
            if huge {
                gather.work.huge_pages += 1;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    /// Of 10,000 pages that are unmapped none is held to 2.6.39, all are from 3.0 on, and from 3.8 on those behind the 9,698th.
    #[test]
    fn so_many_pages_are_held() {
        for (version, held) in [
            ("v2.6.39", 0),
            ("v3.0", 10_000),
            ("v3.8", 302),
            ("v6.18", 302),
        ] {
            let mut world = World::of_version(version);
            world.map_private(10_000);
            let mut gather = world.mm.tlb_gather_mmu();
            world.mm.zap_range_into(0, 0..10_000, &mut gather);
            let is_held = |pfn: &Pfn| world.mm.pages[*pfn].is_gathered();
            let found = (0..world.mm.pages.len()).filter(is_held).count();
            assert_eq!((found, gather.held.len()), (held, held), "{version}");
            world.mm.tlb_flush_mmu(&mut gather);
            let mapped = world.mm.vmas[0].ptes.iter().any(|pte| pte.is_present());
            assert!(!mapped, "{version}");
            world.mm.drain_all_pages();
            crate::invariants::check(&world);
        }
    }
}
