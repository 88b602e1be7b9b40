//! A page moves to another frame (`mm/migrate.c`): who knew the old one by its number knows the new one.

use crate::mm::Mm;
use crate::mm::fault::shmem::ShmemSlot;
use crate::mm::frames::page::Page;
use crate::mm::frames::pte::Pte;
use crate::mm::types::{Pfn, UNMAPPED, flag};

impl Mm {
    /// Whether a page that has been isolated can be moved without waiting: nobody reads into it, and it belongs to
    /// somebody who can be told.
    pub(super) fn is_migratable(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        let known = page.has_owner() || page.has(flag::SWAPCACHE) && !page.is_gathered();
        known && !page.has_any(flag::LOCKED | flag::WRITEBACK) && !self.holds_buffers(pfn)
    }

    /// Whether a page cannot move because of its buffers: a journal holds them, or it is one of a block device and dirty, which
    /// a device has no function for (`fallback_migrate_page`) and, from 5.0 on, a journal holds for its checkpoints
    /// (`buffer_migrate_page_norefs`, 88dbcbb3a484).
    fn holds_buffers(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        if page.has(flag::SWAPBACKED) || page.is_anon() || page.owner == UNMAPPED {
            return false;
        }
        let (inode, _) = self.file_of(page);
        self.has_busy_buffers(pfn) || self.inodes[inode].is_device() && page.has(flag::DIRTY)
    }

    /// `migrate_folio_move`: a folio from frames that are off their LRU list to others of the same node, which nobody uses. It
    /// goes to the head of the list that it was on; the old frames are free.
    pub(super) fn migrate_folio(&mut self, from: Pfn, to: Pfn) {
        debug_assert!(!self.pages[from].has(flag::LRU) && self.is_migratable(from));
        let frames = self.pages.folio(from);
        let head = self.pages[from];
        for (at, old) in frames.clone().enumerate() {
            self.migrate_frame(&head, old, to + at as Pfn);
        }
        if self.is_huge(from) {
            self.move_huge_page(from, to);
        }
        self.put_back_isolated(to);
        for old in frames {
            self.pages[old].mapcount = 0;
        }
        self.free_folio(from);
    }

    /// A page of a folio with this head, and all that knows the page.
    fn migrate_frame(&mut self, head: &Page, from: Pfn, to: Pfn) {
        let page = self.pages[from];
        // The head's flags say what the tails are.
        let mut seen = page;
        for kind in [flag::ANON, flag::SWAPBACKED, flag::SWAPCACHE] {
            if head.has(kind) {
                seen.set(kind);
            }
        }
        if page.is_mapped() {
            self.for_each_pte(from, seen, |pte| *pte = pte.moved_to(to));
        }
        self.replace_in_cache(seen, to);
        self.pages[to].take_over(&page);
        self.memcontrol.migrate(from, to);
        self.move_buffers(from, to);
    }

    /// Entries of page tables that a folio's move changes: one if it is mapped as a whole, else one for each frame that is mapped
    /// (`try_to_migrate`; of a page that several processes map one counts).
    pub(super) fn mapped_entries(&self, head: Pfn) -> u64 {
        if self.is_huge(head) && self.is_pmd_mapped(head) {
            return 1;
        }
        let mapped = |&pfn: &Pfn| self.pages[pfn].is_mapped();
        self.pages.folio(head).filter(mapped).count() as u64
    }

    /// Calls `f` for every PTE that maps a page.
    fn for_each_pte(&mut self, pfn: Pfn, page: Page, mut f: impl FnMut(&mut Pte)) {
        if page.is_anon() {
            f(self.anon_pte(page))
        } else {
            self.for_each_shared_pte(pfn, page, f)
        }
    }

    /// `folio_migrate_mapping`: the swap cache, the shared object or the file has a page in another frame.
    fn replace_in_cache(&mut self, page: Page, to: Pfn) {
        if page.has(flag::SWAPCACHE) {
            self.swap.replace_cached(page.slot(), to);
        } else if page.is_anon() {
            // Its PTE alone knows it.
        } else if page.has(flag::SWAPBACKED) {
            let (object, index) = self.mappings.of(page.owner);
            self.shmem[object].slots[index] = ShmemSlot::page(to);
        } else {
            let (inode, index) = self.file_of(&page);
            self.inodes[inode].pages.replace(index, to);
        }
    }
}
