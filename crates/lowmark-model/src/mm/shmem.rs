//! Shared anonymous memory (`mm/shmem.c`): pages belong to an object, not to a PTE.

use super::page::Pfn;

/// What an object holds at one offset: nothing, a page, or a swap entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShmemSlot(u32);

/// A slot, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShmemEntry {
    /// Never written.
    Hole,
    /// In memory.
    Page(Pfn),
    /// In this swap slot.
    Swap(u32),
}

impl ShmemSlot {
    /// In memory.
    pub(crate) fn page(pfn: Pfn) -> ShmemSlot {
        ShmemSlot(pfn << 1 | 1)
    }

    /// In swap; slot 0 of an area is its header, so no entry is 0.
    pub(crate) fn swapped(slot: u32) -> ShmemSlot {
        ShmemSlot(slot << 1)
    }

    /// All that is in it, for loading it ahead.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// What is there.
    #[inline]
    pub(crate) fn get(self) -> ShmemEntry {
        match (self.0 & 1, self.0 >> 1) {
            (1, pfn) => ShmemEntry::Page(pfn),
            (_, 0) => ShmemEntry::Hole,
            (_, slot) => ShmemEntry::Swap(slot),
        }
    }
}

/// A shared object.
#[derive(Debug)]
pub(crate) struct ShmemInode {
    /// Its pages by offset (the radix tree).
    pub(crate) slots: Vec<ShmemSlot>,
    /// Owner number of its first page.
    pub(crate) first: u32,
    /// VMAs that map it from offset 0 (`i_mmap`).
    pub(crate) mappers: Vec<u32>,
}
