//! What generations (`lru_gen`) know of a page beside its flags: a byte per frame, where they are switched on.
//!
//! 1. Accesses by read(2) and write(2) are counted up to five. To 6.13 the first two are the flags REFERENCED and
//!    WORKINGSET and the others `refs`; from 6.14 on the first is REFERENCED, then comes `refs`, and WORKINGSET is the
//!    fifth.
//! 2. From these follows the *tier* of a page, 0 to 3. Reclaim compares tiers by how many of their pages come back.

use crate::kernel::GenRefault;
use crate::mm::frames::page::{Page, Pages};
use crate::mm::types::{Pfn, flag};

/// Where a page stands among the generations, and how often it was accessed by read(2) and write(2).
///
/// The generation that a page belongs to and the list that it is on differ when a walk of page tables has found the page
/// used: it stays on its list until reclaim comes to it (`folio_update_gen`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Generation(u8);

const GEN: u8 = 0b11;
const LIST_SHIFT: u32 = 2;
const REFS_SHIFT: u32 = 4;
const REFS: u8 = 0b11 << REFS_SHIFT;

/// The most that `refs` counts (`LRU_REFS_MASK`).
pub(crate) const REFS_MAX: u8 = 3;

impl Generation {
    /// Slot of the generation that the page belongs to: its number modulo 4 (`folio_lru_gen`).
    #[inline]
    pub(crate) fn slot(self) -> usize {
        usize::from(self.0 & GEN)
    }

    /// Slot of the list that the page is on.
    #[inline]
    pub(crate) fn list(self) -> usize {
        usize::from(self.0 >> LIST_SHIFT & GEN)
    }

    /// Accesses by read(2) and write(2) beyond the first ones, which are flags: 0 to 3 (`LRU_REFS_MASK`).
    #[inline]
    pub(crate) fn refs(self) -> u8 {
        self.0 >> REFS_SHIFT
    }

    /// The page belongs to another generation, and stays on its list.
    #[inline]
    pub(crate) fn set_slot(&mut self, slot: usize) {
        self.0 = self.0 & !GEN | slot as u8;
    }

    /// The page is on the list of another generation.
    #[inline]
    pub(crate) fn set_list(&mut self, list: usize) {
        self.0 = self.0 & !(GEN << LIST_SHIFT) | (list as u8) << LIST_SHIFT;
    }

    /// So many accesses.
    #[inline]
    pub(crate) fn set_refs(&mut self, refs: u8) {
        debug_assert!(refs <= REFS_MAX);
        self.0 = self.0 & !REFS | refs << REFS_SHIFT;
    }
}

/// Tiers of pages (`MAX_NR_TIERS`).
pub(crate) const MAX_NR_TIERS: usize = 4;

/// The tier of a page with `refs` references (`lru_tier_from_refs`). `workingset`: the page was in use before it was evicted, or
/// has become young since.
pub(crate) fn tier_of(refs: u64, workingset: bool, rule: GenRefault) -> usize {
    match rule {
        GenRefault::Oldest => order_base_2(refs + 1),
        GenRefault::Window if workingset => MAX_NR_TIERS - 1,
        GenRefault::Window => order_base_2(refs),
    }
}

/// The logarithm of a number to base 2, rounded up; 0 of 0 and 1.
fn order_base_2(number: u64) -> usize {
    number.next_power_of_two().trailing_zeros() as usize
}

impl Pages {
    /// References of a page as a shadow and a tier count them, 0 to 4 (`folio_lru_refs`).
    pub(crate) fn lru_refs(&self, pfn: Pfn, rule: GenRefault) -> u64 {
        let (page, more) = (&self[pfn], u64::from(self.generation(pfn).refs()));
        match rule {
            GenRefault::Oldest => more + u64::from(page.has(flag::WORKINGSET)),
            GenRefault::Window if page.has(flag::REFERENCED) => more + 1,
            GenRefault::Window => 0,
        }
    }

    /// The tier that a page is in.
    pub(crate) fn lru_tier(&self, pfn: Pfn, rule: GenRefault) -> usize {
        tier_of(
            self.lru_refs(pfn, rule),
            self[pfn].has(flag::WORKINGSET),
            rule,
        )
    }

    /// Another access by read(2) or write(2) (`folio_inc_refs`, `lru_gen_inc_refs`).
    pub(crate) fn inc_refs(&mut self, pfn: Pfn, rule: GenRefault) {
        let refs = self.generation(pfn).refs();
        let page = &mut self[pfn];
        let counts = match rule {
            GenRefault::Oldest => flag::REFERENCED | flag::WORKINGSET,
            GenRefault::Window => flag::REFERENCED,
        };
        if !page.has(flag::REFERENCED) {
            page.set(flag::REFERENCED);
            if rule == GenRefault::Window {
                self.generation_mut(pfn).set_refs(0);
            }
        } else if !page.has(counts) || refs == REFS_MAX {
            page.set(flag::WORKINGSET);
        } else {
            self.generation_mut(pfn).set_refs(refs + 1);
        }
    }

    /// The page was used through a page table: what was counted of it is over (`folio_update_gen`, `lru_gen_set_refs`).
    /// False: it was not known to be used, which is marked and all that happens (from 6.14 on).
    pub(crate) fn note_used(&mut self, pfn: Pfn, rule: GenRefault) -> bool {
        let page = &mut self[pfn];
        let known = page.has_any(flag::REFERENCED | flag::WORKINGSET);
        match rule {
            GenRefault::Oldest => page.clear(flag::REFERENCED | flag::WORKINGSET),
            GenRefault::Window if known => {
                page.clear(flag::REFERENCED);
                page.set(flag::WORKINGSET);
            }
            GenRefault::Window => page.set(flag::REFERENCED),
        }
        self.generation_mut(pfn).set_refs(0);
        known || rule == GenRefault::Oldest
    }

    /// What was counted of a page is over, as it becomes a generation younger without having been used
    /// (`folio_inc_gen`).
    pub(crate) fn forget_refs(&mut self, pfn: Pfn, rule: GenRefault) {
        let forgotten = match rule {
            GenRefault::Oldest => flag::REFERENCED | flag::WORKINGSET,
            GenRefault::Window => flag::REFERENCED,
        };
        self[pfn].clear(forgotten);
        self.generation_mut(pfn).set_refs(0);
    }
}

impl Page {
    /// It cannot be taken at once, as it has to be written first: anonymous and without a slot of swap, or marked for
    /// reclaim and not written yet.
    pub(crate) fn is_to_be_written(&self) -> bool {
        let without_slot = self.has(flag::SWAPBACKED) && !self.has(flag::SWAPCACHE);
        without_slot || self.has(flag::RECLAIM) && self.has_any(flag::DIRTY | flag::WRITEBACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: one to six accesses by read(2), as both rules count them.
    #[test]
    fn accesses_make_tiers() {
        for (rule, refs, tiers) in [
            (GenRefault::Oldest, [0, 1, 2, 3, 4, 4], [0, 1, 2, 2, 3, 3]),
            (GenRefault::Window, [1, 2, 3, 4, 4, 4], [0, 1, 2, 2, 3, 3]),
        ] {
            let mut pages = Pages::new(1, &[]);
            pages.make_generations();
            assert_eq!((pages.lru_refs(0, rule), pages.lru_tier(0, rule)), (0, 0));
            for (&refs, &tier) in refs.iter().zip(&tiers) {
                pages.inc_refs(0, rule);
                assert_eq!(pages.lru_refs(0, rule), refs, "{rule:?}");
                assert_eq!(pages.lru_tier(0, rule), tier, "{rule:?}");
            }
        }
    }

    #[test]
    fn a_page_is_young_at_once_or_at_the_second_look() {
        for (rule, looks) in [
            (GenRefault::Oldest, [true, true]),
            (GenRefault::Window, [false, true]),
        ] {
            let mut pages = Pages::new(1, &[]);
            pages.make_generations();
            assert_eq!([(); 2].map(|()| pages.note_used(0, rule)), looks);
        }
    }

    #[test]
    fn the_three_parts_do_not_touch_each_other() {
        let mut page = Generation::default();
        for (slot, list, refs) in [(3, 0, 1), (0, 3, 3), (2, 1, 0), (1, 2, 2)] {
            page.set_refs(refs);
            page.set_list(list);
            page.set_slot(slot);
            assert_eq!((page.slot(), page.list(), page.refs()), (slot, list, refs));
        }
    }
}
