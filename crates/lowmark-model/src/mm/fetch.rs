//! Loading ahead what will be looked at soon (`prefetchw_prev_lru_page` and its like).
//!
//! A processor waits for memory at each decision that depends on it. Before a batch of pages or of touches
//! is gone through one by one, what they need is loaded for all of them without deciding on anything, so
//! that the waits overlap. Nothing here changes anything.

use super::Mm;
use super::memory::{Backing, Pte};
use super::page::{Page, Pfn, flag};
use std::hint::black_box;

/// Touches that are looked at together.
pub(crate) const AHEAD: usize = 64;

impl Mm {
    /// What reclaim will look at of the pages that it has just isolated: frames and PTEs, and if it may
    /// free them the places in their shared object of those that seem unused.
    pub(crate) fn fetch_pages(&self, batch: &[Pfn], may_free: bool) {
        let mut common = Pte::ALL;
        let mut shared = false;
        for &pfn in batch {
            let page = self.pages[pfn];
            if page.is_mapped() {
                shared |= !page.is_anon() && page.has(flag::SWAPBACKED);
                common = common.and(self.first_pte(page));
            }
        }
        if shared && may_free {
            self.fetch_unused_shared(batch);
        }
        black_box(common);
    }

    /// The frames of these pages.
    pub(crate) fn fetch_frames(&self, pages: &[Pfn]) {
        let seen = pages
            .iter()
            .fold(0, |seen, &pfn| seen ^ self.pages[pfn].position);
        black_box(seen);
    }

    /// The first PTE that maps the page, or any.
    #[inline]
    fn first_pte(&self, page: Page) -> Pte {
        let (object, index) = self.mappings.of(page.owner);
        let (vma, index) = match page.is_anon() {
            true => (object, index),
            false => self.first_mapper(page, object, index),
        };
        self.vmas[vma].ptes.get(index).copied().unwrap_or_default()
    }

    /// The region that maps a page of a shared object or a file, and its place there; or any.
    #[inline(never)]
    fn first_mapper(&self, page: Page, object: usize, index: usize) -> (usize, usize) {
        let first = |mappers: &[u32]| mappers.first().map_or(0, |&vma| vma as usize);
        if page.has(flag::SWAPBACKED) {
            return (first(&self.shmem[object].mappers), index);
        }
        let vma = first(&self.inodes[object].mappers);
        (vma, index.wrapping_sub(self.vmas[vma].offset as usize))
    }

    /// The places in their shared objects of pages that seem unused.
    fn fetch_unused_shared(&self, batch: &[Pfn]) {
        let mut unused = [0; AHEAD];
        let mut count = 0;
        for &pfn in batch.iter().take(AHEAD) {
            let page = self.pages[pfn];
            if page.is_mapped() && !page.is_anon() && page.has(flag::SWAPBACKED) {
                unused[count] = page.owner;
                count += usize::from(!self.first_pte(page).is_young());
            }
        }
        let mut seen = 0;
        for &owner in &unused[..count] {
            let (object, index) = self.mappings.of(owner);
            let slot = self.shmem[object].slots.get(index);
            seen ^= slot.map_or(0, |slot| slot.bits());
        }
        black_box(seen);
    }

    /// What touches of these pages of a region will look at, [`AHEAD`] at most, and their faults. True if
    /// none of the touches changes anything now.
    pub(crate) fn fetch_touches(&self, vma: u32, pages: &[u32], write: bool) -> bool {
        let region = &self.vmas[vma as usize];
        let mut common = Pte::ALL;
        for &page in pages {
            common = common.and(region.ptes[page as usize]);
        }
        if common.is_present() {
            return common.is_touched(write);
        }
        let mut missing = [0; AHEAD];
        let mut count = 0;
        for &page in pages {
            missing[count] = page;
            count += usize::from(!region.ptes[page as usize].is_present());
        }
        let mut seen = 0;
        match region.backing {
            Backing::Shmem(inode) => {
                let slots = &self.shmem[inode as usize].slots;
                for &page in &missing[..count] {
                    seen ^= slots.get(page as usize).map_or(0, |slot| slot.bits());
                }
            }
            // The pages of a file are looked for one by one.
            Backing::File { .. } => {}
            Backing::Anon => {
                for &page in &missing[..count] {
                    let slot = region.ptes[page as usize].swap_entry().unwrap_or(0);
                    if let Some(pfn) = self.swap.cached(slot) {
                        seen ^= self.pages[pfn].owner;
                    }
                }
            }
        }
        black_box(seen);
        false
    }
}
