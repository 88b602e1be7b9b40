//! From a page to the PTEs that map it (`mm/rmap.c`).

use super::Mm;
use super::memory::Pte;
use super::page::{MAPPING_ANON, Pfn, UNMAPPED, flag};

impl Mm {
    /// Calls `f` for every PTE that maps the page.
    #[inline]
    fn for_each_pte(&mut self, pfn: Pfn, mut f: impl FnMut(&mut Pte)) {
        let page = self.pages[pfn];
        if page.mapping == UNMAPPED || !page.is_mapped() {
            return;
        }
        if page.is_anon() {
            let vma = (page.mapping & !MAPPING_ANON) as usize;
            f(&mut self.vmas[vma].ptes[page.index as usize]);
            return;
        }
        for &vma in &self.shmem[page.mapping as usize].mappers {
            if let Some(pte) = self.vmas[vma as usize].ptes.get_mut(page.index as usize)
                && pte.frame() == Some(pfn)
            {
                f(pte);
            }
        }
    }

    /// `page_referenced`: how many PTEs were young; they are old afterwards.
    #[inline]
    pub(crate) fn page_referenced(&mut self, pfn: Pfn) -> u32 {
        let mut young = 0;
        self.for_each_pte(pfn, |pte| young += u32::from(pte.test_and_clear_young()));
        young
    }

    /// `try_to_unmap`: an anonymous page's PTE becomes its swap entry, a shared page's is cleared. What
    /// the PTE knows of dirt goes to the page.
    #[inline]
    pub(crate) fn try_to_unmap(&mut self, pfn: Pfn) {
        let page = self.pages[pfn];
        let replacement = if page.is_anon() {
            Pte::swapped(page.private)
        } else {
            Pte::default()
        };
        let (mut dirty, mut unmapped) = (false, 0);
        self.for_each_pte(pfn, |pte| {
            dirty |= pte.is_dirty();
            unmapped += 1;
            *pte = replacement;
        });
        if page.is_anon() {
            self.swap.add_reference(page.private);
        }
        let page = &mut self.pages[pfn];
        page.mapcount -= unmapped;
        if dirty {
            page.set(flag::DIRTY);
        }
    }
}
