//! Loading ahead what will be looked at soon (`prefetchw_prev_lru_page` and its like).
//!
//! A processor waits for memory at each decision that depends on it. Before a batch of pages or of touches
//! is gone through one by one, what they need is loaded for all of them without deciding on anything, so
//! that the waits overlap. Nothing here changes anything.

use crate::ids::LruvecId;
use crate::mm::Mm;
use crate::mm::fault::memory::Backing;
use crate::mm::frames::page::Page;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{Lru, Pfn, flag};
use std::hint::black_box;

/// Touches that are looked at together.
pub(crate) const AHEAD: usize = 64;
/// Isolated pages that are looked at together.
const AT_ONCE: usize = 32;

impl Mm {
    /// What reclaim will look at of the pages that it has just isolated, whose frames are [there](Self::fetch_tail): PTEs,
    /// and if it may free them the places in their shared object of those that seem unused.
    ///
    /// A processor waits for as many pages at once as it has in view, so what is loaded is loaded in loops that do
    /// nothing else.
    pub(crate) fn fetch_pages(&self, batch: &[Pfn], may_free: bool) {
        for batch in batch.chunks(AT_ONCE) {
            let mut rest = batch;
            while !rest.is_empty() {
                rest = self.fetch_ptes_of_one(rest, may_free);
            }
        }
    }

    /// The PTEs of those pages at the beginning that belong to the same object; the other pages.
    fn fetch_ptes_of_one<'a>(&self, pages: &'a [Pfn], may_free: bool) -> &'a [Pfn] {
        let mut indexes = [0; AT_ONCE];
        let mut count = 0;
        let mut only: Option<(Page, usize)> = None;
        let mut looked = 0;
        for &pfn in pages {
            let page = self.pages[pfn];
            if page.is_mapped() {
                let (object, index) = self.mappings.of(page.owner);
                let (first, of) = *only.get_or_insert((page, object));
                if object != of || !page.is_like(&first, flag::ANON | flag::SWAPBACKED) {
                    break;
                }
                indexes[count] = index;
                count += 1;
            }
            looked += 1;
        }
        if let Some((page, object)) = only {
            self.fetch_ptes(page, object, &indexes[..count], may_free);
        }
        &pages[looked..]
    }

    /// The first PTEs of the pages at these indexes of an object, `page` being one of them, and the places of those that
    /// seem unused.
    fn fetch_ptes(&self, page: Page, object: usize, indexes: &[usize], may_free: bool) {
        let (ptes, offset) = self.first_table(page, object);
        let mut young = 0_u32;
        for (number, &index) in indexes.iter().enumerate() {
            let pte = ptes.get(index.wrapping_sub(offset));
            let pte = pte.copied().unwrap_or_default();
            young |= u32::from(pte.is_young()) << number;
        }
        if may_free && !page.is_anon() && page.has(flag::SWAPBACKED) {
            let slots = &self.shmem[object].slots;
            let unused = indexes.iter().enumerate();
            let unused = unused.filter(|(number, _)| young & 1 << number == 0);
            let seen = unused.fold(0, |seen, (_, &index)| {
                seen ^ slots.get(index).map_or(0, |slot| slot.bits())
            });
            black_box(seen);
        }
        black_box(young);
    }

    /// The frames of the pages that will be taken off the tail of a list next.
    pub(crate) fn fetch_tail(&self, lruvec: LruvecId, lru: Lru, want: u64) {
        self.fetch_frames(self.lruvecs[lruvec].next_at_tail(&self.chunks, lru, want));
    }

    /// The frames of these pages, if there are such.
    pub(crate) fn fetch_frames(&self, pages: &[Pfn]) {
        let seen = pages.iter().fold(0, |seen, &pfn| {
            seen ^ self.pages.get(pfn).map_or(0, |page| page.position)
        });
        black_box(seen);
    }

    /// The table of the first region that maps pages of the object of one of them, and the page of the object at which
    /// it begins.
    fn first_table(&self, page: Page, object: usize) -> (&[Pte], usize) {
        let mappers = match (page.is_anon(), page.has(flag::SWAPBACKED)) {
            (true, _) => return (&self.vmas[object].ptes, 0),
            (false, true) => &self.shmem[object].mappers,
            (false, false) => &self.inodes[self.file_of(&page).0].mappers,
        };
        mappers.first().map_or((&[], 0), |&vma| {
            let region = &self.vmas[vma as usize];
            (&region.ptes, region.offset as usize)
        })
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
