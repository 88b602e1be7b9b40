//! Page tables: what stands for each 2 MiB of a region in the directory above its tables (`pmd_t`), and the pages that the
//! tables are in (`pte_alloc`).
//!
//! Tables are the memory that a workload makes the kernel itself take, and it cannot be moved: where there are
//! no unmovable pages left, pageblocks change their type for them. The memory cgroup of the task is charged for them
//! (`GFP_PGTABLE_USER`). Levels above the lowest are left out, and so are machines with high memory, whose tables may
//! lie there.
//!
//! A huge page is mapped by an entry of the directory itself. The PTEs of its pages are set all the same, so that a page that
//! is there is touched in one way; a table is kept for when the entry is split (`pgtable_trans_huge_deposit`).

use crate::ids::MemcgId;
use crate::mm::Mm;
use crate::mm::memcontrol::alloc_charged;
use crate::mm::types::{Gfp, HPAGE_PMD_NR, OutOfMemory, Pfn, ZoneType};
use crate::world::{Sys, World};
use std::ops::Range;

/// An entry of the directory above tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pmd(u32);

/// It maps a huge page.
const HUGE: u32 = 1 << 31;
/// The page of a table that is left out.
const NOWHERE: u32 = HUGE - 2;

impl Pmd {
    /// `pmd_none`
    const NONE: Pmd = Pmd(u32::MAX);

    /// A table in this page; none if tables take no memory.
    pub(super) fn table(page: Option<Pfn>) -> Pmd {
        Pmd(page.unwrap_or(NOWHERE))
    }

    /// A huge page; the table is kept.
    fn huge(page: Option<Pfn>) -> Pmd {
        Pmd(page.unwrap_or(NOWHERE) | HUGE)
    }

    /// Nothing has been mapped there yet.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == Pmd::NONE
    }

    /// `pmd_trans_huge`
    #[inline]
    pub(crate) fn is_huge(self) -> bool {
        !self.is_none() && self.0 & HUGE != 0
    }

    /// The page of its table.
    fn page(self) -> Option<Pfn> {
        let page = self.0 & !HUGE;
        (!self.is_none() && page != NOWHERE).then_some(page)
    }
}

/// The extent of 2 MiB of a region that a page lies in.
#[inline]
pub(crate) fn extent(index: u32) -> usize {
    (index / HPAGE_PMD_NR) as usize
}

impl Mm {
    /// Whether tables take memory.
    pub(in crate::mm) fn has_table_pages(&self) -> bool {
        let high = |kind| kind == ZoneType::High;
        self.kernel.coverage.page_tables && !self.zones.iter().any(|zone| high(zone.kind))
    }

    /// The directory of a region of so many pages, nothing mapped yet; an empty list where it does not matter.
    pub(crate) fn no_tables(&self, pages: usize) -> Vec<Pmd> {
        if self.has_table_pages() || self.huge.is_on() {
            vec![Pmd::NONE; pages.div_ceil(HPAGE_PMD_NR as usize)]
        } else {
            Vec::new()
        }
    }

    /// The entry for a page; none where it does not matter.
    #[inline]
    pub(crate) fn pmd(&self, vma: u32, index: u32) -> Option<Pmd> {
        self.vmas[vma as usize].pmds.get(extent(index)).copied()
    }

    /// Whether nothing has been mapped yet in the 2 MiB around a page.
    #[inline]
    pub(crate) fn lacks_table(&self, vma: u32, index: u32) -> bool {
        self.pmd(vma, index).is_some_and(Pmd::is_none)
    }

    /// The page becomes the table, unless somebody else was faster or the region is gone.
    fn set_table(&mut self, vma: u32, index: u32, page: Option<Pfn>) {
        let region = &mut self.vmas[vma as usize];
        match region.pmds.get_mut(extent(index)) {
            Some(pmd) if pmd.is_none() => *pmd = Pmd::table(page),
            _ => page.into_iter().for_each(|pfn| self.free_page(pfn)),
        }
    }

    /// A huge page is mapped from now on; the page of a table is kept for it, this one if there was none.
    pub(crate) fn set_huge_pmd(&mut self, vma: u32, index: u32, page: Option<Pfn>) {
        let pmd = &mut self.vmas[vma as usize].pmds[extent(index)];
        let (kept, unneeded) = match pmd.page() {
            Some(table) => (Some(table), page),
            None => (page, None),
        };
        *pmd = Pmd::huge(kept);
        unneeded.into_iter().for_each(|pfn| self.free_page(pfn));
    }

    /// The 2 MiB around a page are mapped by a table again (`pgtable_trans_huge_withdraw`).
    pub(crate) fn clear_huge_pmd(&mut self, vma: u32, index: u32) {
        let pmd = &mut self.vmas[vma as usize].pmds[extent(index)];
        *pmd = Pmd::table(pmd.page());
    }

    /// `free_pgtables` of a region that is gone.
    pub(super) fn free_tables(&mut self, pmds: Vec<Pmd>) {
        for pfn in pmds.into_iter().filter_map(Pmd::page) {
            self.free_page(pfn);
        }
    }
}

impl Mm {
    /// `free_pgtables` of a range of a region: a table goes when nothing of its 2 MiB is mapped any more.
    pub(super) fn free_unmapped_tables(&mut self, vma: u32, range: Range<u32>) {
        let region = &mut self.vmas[vma as usize];
        let pages = region.pages();
        let mut unused = Vec::new();
        for number in extent(range.start)..=extent(range.end.saturating_sub(1)) {
            let begin = number as u32 * HPAGE_PMD_NR;
            let end = pages.min(begin + HPAGE_PMD_NR);
            if let Some(pmd) = region.pmds.get_mut(number)
                && !region.parts.any_mapped(begin..end)
            {
                unused.push(std::mem::replace(pmd, Pmd::NONE));
            }
        }
        self.free_tables(unused);
    }
}

impl World {
    /// Whether the table for a page is there; if it is not, one is allocated if the fast path has a page.
    #[inline]
    pub(super) fn has_table(&mut self, vma: u32, index: u32) -> bool {
        !self.mm.lacks_table(vma, index) || self.alloc_table_fast(vma, index)
    }

    #[cold]
    pub(super) fn alloc_table_fast(&mut self, vma: u32, index: u32) -> bool {
        let page = self.table_page_fast();
        if let Some(page) = page {
            self.mm.set_table(vma, index, page);
        }
        page.is_some()
    }

    /// A page for a table if the fast path has one. The page is none where tables take no memory.
    pub(in crate::mm) fn table_page_fast(&mut self) -> Option<Option<Pfn>> {
        if !self.mm.has_table_pages() {
            return Some(None);
        }
        let node = self.sched.current_node();
        let page = self.alloc_charged_fast(Gfp::kernel(node), self.current_memcg());
        page.map(Some)
    }
}

/// Allocates a page for a table, reclaiming if necessary.
pub(in crate::mm) async fn alloc_table_page(sys: &Sys, memcg: MemcgId) -> Result<Pfn, OutOfMemory> {
    let node = sys.world().sched.current_node();
    alloc_charged(sys, Gfp::kernel(node), memcg).await
}

/// Allocates the table for a page, reclaiming if necessary.
pub(super) async fn alloc_table(
    sys: &Sys,
    vma: u32,
    index: u32,
    memcg: MemcgId,
) -> Result<(), OutOfMemory> {
    let pfn = alloc_table_page(sys, memcg).await?;
    sys.world().mm.set_table(vma, index, Some(pfn));
    Ok(())
}
