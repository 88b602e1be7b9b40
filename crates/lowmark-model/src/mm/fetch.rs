//! Loading ahead what will be looked at soon (`prefetchw_prev_lru_page` and its like).
//!
//! A processor waits for memory at each decision that depends on it. Before a batch of pages or of touches
//! is gone through one by one, what they need is loaded for all of them without deciding on anything, so
//! that the waits overlap. Nothing here changes anything.

use super::Mm;
use super::memory::{Backing, Pte};
use super::page::Pfn;
use std::hint::black_box;

/// Touches that are looked at together.
pub(crate) const AHEAD: usize = 64;

impl Mm {
    /// What reclaim will look at of the pages that it has just isolated: frames and PTEs, and if it may
    /// free them the places in their shared object of those that seem unused.
    pub(crate) fn fetch_pages(&self, batch: &[Pfn], may_free: bool) {
        let mut unused = [0; AHEAD];
        let mut count = 0;
        for &pfn in batch.iter().take(AHEAD) {
            let page = self.pages[pfn];
            if !page.is_mapped() {
                continue;
            }
            let (object, index) = self.mappings.of(page.owner);
            let vma = match page.is_anon() {
                true => object,
                false => self.shmem[object]
                    .mappers
                    .first()
                    .map_or(0, |&vma| vma as usize),
            };
            let young = self.vmas[vma]
                .ptes
                .get(index)
                .is_some_and(|pte| pte.is_young());
            unused[count] = page.owner;
            count += usize::from(!young & !page.is_anon());
        }
        let mut seen = 0;
        for &owner in &unused[..count * usize::from(may_free)] {
            let (object, index) = self.mappings.of(owner);
            let slot = self.shmem[object].slots.get(index);
            seen ^= slot.map_or(0, |slot| slot.bits());
        }
        black_box((seen, count));
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
