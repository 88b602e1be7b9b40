//! Page table entries.

use crate::mm::types::Pfn;

/// A page table entry in 32 bits: present, young, dirty, writable and a frame; or a swap entry; or
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pte(u32);

const PRESENT: u32 = 1 << 0;
const YOUNG: u32 = 1 << 1;
const DIRTY: u32 = 1 << 2;
const WRITABLE: u32 = 1 << 3;
const PAYLOAD: u32 = 4;
/// The page of zeroes that read faults map before anything is written.
pub(in crate::mm) const ZERO_FRAME: u32 = u32::MAX >> PAYLOAD;
/// Most frames and swap slots that an entry can name: 1 TiB.
pub(crate) const MAX_PAYLOAD: u32 = ZERO_FRAME - 1;

impl Pte {
    pub(in crate::mm) fn mapped(pfn: Pfn, write: bool, writable: bool) -> Pte {
        let dirty = if write { DIRTY } else { 0 };
        let writable = if writable { WRITABLE } else { 0 };
        Pte(pfn << PAYLOAD | PRESENT | YOUNG | dirty | writable)
    }

    /// It maps a page of a huge page that was not touched itself.
    pub(in crate::mm) fn mapped_beside(pfn: Pfn) -> Pte {
        Pte(pfn << PAYLOAD | PRESENT | WRITABLE)
    }

    /// A swap entry; slot 0 is never used, so it is not empty.
    pub(crate) fn swapped(slot: u32) -> Pte {
        Pte(slot << PAYLOAD)
    }

    /// Swap entry.
    pub(crate) fn swap_entry(self) -> Option<u32> {
        (self.0 & PRESENT == 0 && self.0 != 0).then_some(self.0 >> PAYLOAD)
    }

    /// The frame that it maps, the page of zeroes left out.
    #[inline]
    pub(crate) fn frame(self) -> Option<Pfn> {
        let frame = self.0 >> PAYLOAD;
        (self.0 & PRESENT != 0 && frame != ZERO_FRAME).then_some(frame)
    }

    /// The same for a page that is in another frame now.
    pub(in crate::mm) fn moved_to(self, pfn: Pfn) -> Pte {
        Pte(pfn << PAYLOAD | self.0 & ((1 << PAYLOAD) - 1))
    }

    /// The same of a page that was copied, and that nobody shares any more. The copy was stored to (`collapse_huge_page`:
    /// `pmd_mkdirty`).
    pub(in crate::mm) fn collapsed_to(self, pfn: Pfn) -> Pte {
        Pte(self.moved_to(pfn).0 | WRITABLE | DIRTY)
    }

    /// Whether stores need no fault.
    pub(in crate::mm) fn is_writable(self) -> bool {
        self.0 & (PRESENT | WRITABLE) == PRESENT | WRITABLE
    }

    /// Whether a touch needs no fault.
    #[inline]
    pub(crate) fn is_there_for(self, write: bool) -> bool {
        if write {
            self.is_writable()
        } else {
            self.is_present()
        }
    }

    /// Touches the page if that needs no fault. The processor sets young and dirty.
    #[inline]
    pub(crate) fn touch(&mut self, write: bool) -> bool {
        let ok = self.is_there_for(write);
        if ok && !self.is_touched(write) {
            self.0 |= Pte::touched(write);
        }
        ok
    }

    /// Touches pages in order up to the first one that faults.
    #[inline]
    pub(crate) fn touch_all(ptes: &mut [Pte], write: bool) -> Option<usize> {
        const BLOCK: usize = 16;
        for (number, block) in ptes.chunks_mut(BLOCK).enumerate() {
            // Most often there is nothing to do for any of them.
            let common = block.iter().fold(Pte::ALL, |common, &pte| common.and(pte));
            if common.is_touched(write) {
                continue;
            }
            if let Some(at) = block.iter_mut().position(|pte| !pte.touch(write)) {
                return Some(number * BLOCK + at);
            }
        }
        None
    }

    /// What is set of a page that a touch of this kind leaves as it is.
    #[inline]
    fn touched(write: bool) -> u32 {
        if write {
            PRESENT | WRITABLE | YOUNG | DIRTY
        } else {
            PRESENT | YOUNG
        }
    }

    /// Nothing would change by a touch.
    #[inline]
    pub(in crate::mm) fn is_touched(self, write: bool) -> bool {
        self.0 & Pte::touched(write) == Pte::touched(write)
    }

    /// What two have in common, [`Pte::ALL`] being the neutral one.
    #[inline]
    pub(in crate::mm) fn and(self, other: Pte) -> Pte {
        Pte(self.0 & other.0)
    }

    /// Everything set.
    pub(in crate::mm) const ALL: Pte = Pte(!0);

    /// It maps a frame or the page of zeroes.
    #[inline]
    pub(crate) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// The page has been accessed since this was last cleared.
    #[inline]
    pub(crate) fn is_young(self) -> bool {
        self.0 & YOUNG != 0
    }

    /// `pte_mkyoung`
    pub(in crate::mm) fn mkyoung(&mut self) {
        if self.is_present() {
            self.0 |= YOUNG;
        }
    }

    pub(crate) fn is_dirty(self) -> bool {
        self.0 & (PRESENT | DIRTY) == PRESENT | DIRTY
    }

    /// What it maps was never written: it maps the page of zeroes instead.
    pub(in crate::mm) fn map_zeroes(&mut self) {
        *self = Pte(ZERO_FRAME << PAYLOAD | PRESENT | self.0 & YOUNG);
    }

    /// `page_mkclean_one`: clean, and the next store faults.
    pub(crate) fn mkclean(&mut self) {
        self.0 &= !(DIRTY | WRITABLE);
    }

    /// The same, not accessed and not stored to since now.
    pub(in crate::mm) fn old_and_clean(self) -> Pte {
        Pte(self.0 & !(YOUNG | DIRTY))
    }

    pub(crate) fn test_and_clear_young(&mut self) -> bool {
        let young = self.0 & YOUNG != 0;
        self.0 &= !YOUNG;
        young
    }
}
