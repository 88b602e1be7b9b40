//! What happens when the I/O of pages is done (`end_swap_bio_read`, `end_page_writeback` and their like).

use crate::device::{Completed, Dir};
use crate::kernel::TailWriteback;
use crate::mm::types::{Pfn, flag};
use crate::world::World;

impl World {
    /// The pages of a finished request (`end_swap_bio_read`, `end_page_writeback` and their like). One written for reclaim
    /// is moved to where reclaim finds it next; one that the device did not take stays dirty in swap, and is lost
    /// in a file.
    pub(crate) fn end_io(&mut self, completed: &Completed, pages: &[Pfn]) {
        self.mm.fetch_frames(pages);
        self.bio_put(pages);
        match completed.dir {
            Dir::Read => {
                for &pfn in pages {
                    if let Some(head) = self.mm.pages.end_read(pfn) {
                        self.wake_page(head);
                    }
                }
            }
            Dir::Write => {
                for (number, &pfn) in pages.iter().enumerate() {
                    let failed = completed.failed.contains(&number);
                    if self.mm.pages[pfn].has(flag::BUFFERS_LOCKED) {
                        let is_metadata = self.end_metadata_write(pfn);
                        if !is_metadata {
                            self.end_data_write(pfn, failed);
                        }
                    } else {
                        self.mm.nr_writeback -= 1;
                        self.end_page_writeback(pfn, failed);
                    }
                    self.wake_page(self.mm.pages.head(pfn));
                }
            }
        }
    }

    /// `__block_write_full_page` of a dirty page none of whose buffers is dirty: the page is clean, without I/O.
    pub(crate) fn write_nothing(&mut self, pfn: Pfn) {
        self.mm.set_page_writeback(pfn);
        self.mm.nr_writeback -= 1;
        self.end_page_writeback(pfn, false);
        self.wake_page(pfn);
    }

    fn end_page_writeback(&mut self, pfn: Pfn, failed: bool) {
        self.mm.memcontrol.uncount_writeback(pfn);
        let zone = self.mm.pages.zone(pfn);
        self.mm.count_written_in_zone(zone, -1);
        if self.mm.pages[pfn].order() > 0 {
            self.mm.stat.nr_written += 1;
            self.account_reclaim_writeback(zone, 1);
            self.end_huge_frame_writeback(self.mm.pages.head(pfn), failed);
            return;
        }
        let page = &mut self.mm.pages[pfn];
        page.clear(flag::WRITEBACK);
        let file = !page.has(flag::SWAPBACKED);
        if failed && !file {
            // end_swap_bio_write
            page.clear(flag::RECLAIM);
            page.set(flag::DIRTY);
        }
        self.mm.stat.nr_written += 1;
        self.account_reclaim_writeback(zone, 1);
        if failed && file {
            self.mm.mapping_set_error(pfn);
        }
        self.rotate_written(pfn);
        if file {
            self.end_file_writeback(pfn);
        }
    }

    /// A page that was written for reclaim goes to where reclaim finds it next.
    #[inline(always)]
    fn rotate_written(&mut self, pfn: Pfn) {
        if self.mm.pages[pfn].test_and_clear(flag::RECLAIM) {
            let tail = self.mm.kernel.mechanisms.reclaim.tail_writeback;
            self.mm
                .rotate_reclaimable_page(pfn, tail == TailWriteback::Activate);
        }
    }

    /// A frame of a huge page has been written, or the device did not take it. The page is clean when all have been.
    fn end_huge_frame_writeback(&mut self, head: Pfn, failed: bool) {
        if failed {
            self.mm.pages[head].clear(flag::RECLAIM);
            self.mm.pages[head].set(flag::DIRTY);
        }
        if self.mm.huge.end_write(head) {
            self.mm.pages[head].clear(flag::WRITEBACK);
            self.rotate_written(head);
        }
    }
}
