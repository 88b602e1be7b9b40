//! Pages of page tables: a region needs one for each 2 MiB in which something is mapped (`pte_alloc`).
//!
//! They are the memory that a workload makes the kernel itself take, and it cannot be moved: where there are
//! no unmovable pages left, pageblocks change their type for them. The memory cgroup of the task is charged for them
//! (`GFP_PGTABLE_USER`). Levels above the lowest are left out, and so are machines with high memory, whose tables may
//! lie there.

use crate::ids::MemcgId;
use crate::mm::Mm;
use crate::mm::memcontrol::alloc_charged;
use crate::mm::types::{Gfp, NONE, OutOfMemory, Pfn, ZoneType};
use crate::world::{Sys, World};
use std::ops::Range;

/// Entries of a table.
const PTRS_PER_PTE: usize = 512;

impl Mm {
    /// The tables of a region of so many pages, none allocated yet; an empty list where they are left out.
    pub(crate) fn no_tables(&self, pages: usize) -> Vec<Pfn> {
        let high = |kind| kind == ZoneType::High;
        let left_out =
            !self.kernel.coverage.page_tables || self.zones.iter().any(|zone| high(zone.kind));
        match left_out {
            true => Vec::new(),
            false => vec![NONE; pages.div_ceil(PTRS_PER_PTE)],
        }
    }

    /// The page becomes the table, unless somebody else was faster or the region is gone.
    fn set_table(&mut self, vma: u32, index: u32, pfn: Pfn) {
        let region = &mut self.vmas[vma as usize];
        match region.tables.get_mut(index as usize / PTRS_PER_PTE) {
            Some(table) if *table == NONE => *table = pfn,
            _ => self.free_page(pfn),
        }
    }

    /// `free_pgtables` of a region that is gone.
    pub(super) fn free_tables(&mut self, tables: Vec<Pfn>) {
        for pfn in tables.into_iter().filter(|&pfn| pfn != NONE) {
            self.free_page(pfn);
        }
    }
}

impl Mm {
    /// `free_pgtables` of a range of a region: a table goes when nothing of its 2 MiB is mapped any more.
    pub(super) fn free_unmapped_tables(&mut self, vma: u32, range: Range<u32>) {
        let region = &mut self.vmas[vma as usize];
        let pages = region.pages();
        let numbers =
            range.start as usize / PTRS_PER_PTE..(range.end as usize).div_ceil(PTRS_PER_PTE);
        let mut unused = Vec::new();
        for number in numbers {
            let begin = (number * PTRS_PER_PTE) as u32;
            let end = pages.min(begin + PTRS_PER_PTE as u32);
            if let Some(table) = region.tables.get_mut(number)
                && !region.parts.any_mapped(begin..end)
            {
                unused.push(std::mem::replace(table, NONE));
            }
        }
        self.free_tables(unused);
    }
}

impl World {
    /// Whether the table for a page is there; if it is not, one is allocated if the fast path has a page.
    #[inline]
    pub(super) fn has_table(&mut self, vma: u32, index: u32) -> bool {
        !self.mm.kernel.coverage.page_tables || self.pte_alloc(vma, index)
    }

    #[inline(never)]
    fn pte_alloc(&mut self, vma: u32, index: u32) -> bool {
        let tables = &self.mm.vmas[vma as usize].tables;
        let lacks = tables.get(index as usize / PTRS_PER_PTE) == Some(&NONE);
        !lacks || self.alloc_table_fast(vma, index)
    }

    #[cold]
    fn alloc_table_fast(&mut self, vma: u32, index: u32) -> bool {
        let node = self.sched.current_node();
        let page = self.alloc_charged_fast(Gfp::kernel(node), self.current_memcg());
        if let Some(pfn) = page {
            self.mm.set_table(vma, index, pfn);
        }
        page.is_some()
    }
}

/// Allocates the table for a page, reclaiming if necessary.
pub(super) async fn alloc_table(
    sys: &Sys,
    vma: u32,
    index: u32,
    memcg: MemcgId,
) -> Result<(), OutOfMemory> {
    let node = sys.world().sched.current_node();
    let pfn = alloc_charged(sys, Gfp::kernel(node), memcg).await?;
    sys.world().mm.set_table(vma, index, pfn);
    Ok(())
}
