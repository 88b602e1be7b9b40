//! Pages to and from swap devices (`mm/page_io.c`).

use crate::device::{Dir, Io};
use crate::mm::Mm;
use crate::mm::types::{Pfn, flag};
use crate::world::World;
use lowmark_spec::machine::PAGE_SIZE;

impl Mm {
    /// `folio_start_writeback` of a page of the swap cache, or of a huge page: all of it counts as being written.
    #[inline(always)]
    pub(crate) fn start_swap_writeback(&mut self, head: Pfn) {
        let page = &mut self.pages[head];
        page.clear(flag::DIRTY);
        page.set(flag::WRITEBACK);
        let frames = page.folio_nr_pages();
        self.stat.pswpout += frames;
        self.nr_writeback += frames;
        self.count_written_in_zone(self.pages.zone(head), frames as i64);
        self.memcontrol.count_writeback(head, frames);
    }
}

impl World {
    /// Begins to write a page of the swap cache that is already marked as under writeback
    /// (`swap_writepage`).
    pub(crate) fn swap_write(&mut self, pfn: Pfn) -> Io {
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        let (device, position) = self.mm.swap.location(self.mm.pages[pfn].slot());
        Io {
            device,
            dir: Dir::Write,
            sync: false,
            position,
            pfn,
            in_folio: false,
            own_bio: true,
            needs_bio: self.bios.is_on(),
        }
    }

    /// Begins to read a locked page of the swap cache (`swap_readpage`).
    pub(crate) fn swap_read(&mut self, pfn: Pfn, slot: u32) -> Io {
        self.mm.stat.pswpin += 1;
        self.mm.stat.pgpgin += PAGE_SIZE / 1024;
        let (device, position) = self.mm.swap.location(slot);
        Io {
            device,
            dir: Dir::Read,
            sync: true,
            position,
            pfn,
            in_folio: false,
            own_bio: true,
            needs_bio: self.bios.is_on(),
        }
    }
}
