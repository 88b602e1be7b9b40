//! From a page to the PTEs that map it (`mm/rmap.c`).

use crate::mm::Mm;
use crate::mm::fault::parts::Part;
use crate::mm::frames::page::Page;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{Pfn, flag};

/// References to a page that reclaim finds in the PTEs that map the page (`page_referenced`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// PTEs that were young, in regions whose references count.
    pub(crate) young: u32,
    /// One of them is in a region that is mapped to be executed.
    pub(crate) executable: bool,
}

impl References {
    /// Adds the PTE of a page in a part of a region, which was young or not (`page_referenced_one`).
    #[inline]
    fn add(&mut self, young: bool, part: Part) {
        if young && part.recency {
            self.young += 1;
            self.executable |= part.executable;
        }
    }
}

impl Mm {
    /// The PTE of a mapped anonymous page.
    #[inline]
    pub(in crate::mm) fn anon_pte(&mut self, page: Page) -> &mut Pte {
        let (vma, index) = self.mappings.of(page.owner);
        &mut self.vmas[vma].ptes[index]
    }

    /// Calls `f` for every PTE that maps a page of a shared object or a file.
    #[inline]
    pub(in crate::mm) fn for_each_shared_pte(
        &mut self,
        pfn: Pfn,
        page: Page,
        mut f: impl FnMut(&mut Pte),
    ) {
        if !page.has(flag::SWAPBACKED) {
            self.for_each_file_pte(pfn, page, f);
            return;
        }
        let (object, index) = self.mappings.of(page.owner);
        for &vma in &self.shmem[object].mappers {
            if let Some(pte) = self.vmas[vma as usize].ptes.get_mut(index)
                && pte.frame() == Some(pfn)
            {
                f(pte);
            }
        }
    }

    /// `page_referenced`: how many PTEs were young, in regions whose references count; all are old afterwards. All that
    /// a region has of a large folio count once (`folio_referenced_one`).
    #[inline(always)]
    pub(crate) fn page_referenced(&mut self, pfn: Pfn) -> References {
        let page = self.pages[pfn];
        if page.order() > 0 {
            self.large_folio_referenced(pfn)
        } else if !page.is_mapped() {
            References::default()
        } else if page.is_anon() {
            self.anon_page_referenced(page)
        } else {
            self.shared_page_referenced(pfn, page)
        }
    }

    #[inline]
    fn anon_page_referenced(&mut self, page: Page) -> References {
        let mut references = References::default();
        let (vma, index) = self.mappings.of(page.owner);
        let region = &mut self.vmas[vma];
        if region.ptes[index].test_and_clear_young() {
            references.add(true, region.parts.at(index as u32));
        }
        references
    }

    #[inline(never)]
    fn shared_page_referenced(&mut self, pfn: Pfn, page: Page) -> References {
        let mut references = References::default();
        let file = !page.has(flag::SWAPBACKED);
        let (mappers, index) = if file {
            let (inode, index) = self.file_of(&page);
            (&self.inodes[inode].mappers, index as usize)
        } else {
            let (object, index) = self.mappings.of(page.owner);
            (&self.shmem[object].mappers, index)
        };
        for &vma in mappers {
            let region = &mut self.vmas[vma as usize];
            let begin = if file { region.offset as usize } else { 0 };
            let at = index.wrapping_sub(begin);
            if let Some(pte) = region.ptes.get_mut(at)
                && pte.frame() == Some(pfn)
            {
                references.add(pte.test_and_clear_young(), region.parts.at(at as u32));
            }
        }
        references
    }

    #[cold]
    fn large_folio_referenced(&mut self, head: Pfn) -> References {
        let page = self.pages[head];
        let mut references = References::default();
        if !page.has_owner() {
            return references;
        }
        if page.is_anon() {
            references.young = u32::from(self.huge_page_referenced(head));
            return references;
        }
        let (inode, index) = self.file_of(&page);
        for &vma in &self.inodes[inode].mappers {
            let region = &mut self.vmas[vma as usize];
            let mut of_region = References::default();
            for (index, pfn) in (index..).zip(self.pages.folio(head)) {
                let at = index.wrapping_sub(region.offset) as usize;
                if let Some(pte) = region.ptes.get_mut(at)
                    && pte.frame() == Some(pfn)
                {
                    of_region.add(pte.test_and_clear_young(), region.parts.at(at as u32));
                }
            }
            references.young += of_region.young.min(1);
            references.executable |= of_region.executable;
        }
        references
    }

    fn huge_page_referenced(&mut self, head: Pfn) -> bool {
        let mut young = false;
        for pfn in self.pages.folio(head) {
            let page = self.pages[pfn];
            if page.is_mapped() {
                let (vma, index) = self.mappings.of(page.owner);
                let region = &mut self.vmas[vma];
                young |= region.ptes[index].test_and_clear_young()
                    && region.parts.at(index as u32).recency;
            }
        }
        young
    }

    /// `try_to_unmap` of a mapped page: an anonymous page's PTE becomes its swap entry, a shared page's
    /// is cleared. What the PTE knows of dirt goes to the page.
    #[inline]
    pub(crate) fn try_to_unmap(&mut self, pfn: Pfn) {
        let page = self.pages[pfn];
        let (mut dirty, mut unmapped) = (false, 0);
        if page.is_anon() {
            let pte = self.anon_pte(page);
            (dirty, unmapped) = (pte.is_dirty(), 1);
            *pte = Pte::swapped(page.slot());
            self.swap.add_reference(page.slot());
        } else {
            self.for_each_shared_pte(pfn, page, |pte| {
                dirty |= pte.is_dirty();
                unmapped += 1;
                *pte = Pte::default();
            });
        }
        let page = &mut self.pages[pfn];
        page.mapcount -= unmapped;
        // A page of a file is dirty since it was mapped for stores.
        debug_assert!(!dirty || page.has_any(flag::SWAPBACKED | flag::DIRTY));
        if dirty {
            page.set(flag::DIRTY);
        }
    }
}
