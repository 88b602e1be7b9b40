//! Data that a journal writes (`data=ordered` of `fs/jbd`).

use super::DataPage;
use crate::device::{Dir, Io};
use crate::ids::InodeId;
use crate::mm::io;
use crate::mm::types::{Pfn, flag};
use crate::mm::writeback::fs_writeback::BATCH;
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

/// The event that keeps the journal from giving the device more data of a transaction.
enum Wait {
    /// A free request for this page.
    Request(Io),
    /// The end of an earlier write of this page, while the page has the flag.
    Write(Pfn, u16),
}

impl World {
    /// `journal_dirty_data`: a page has been written to that was clean, or that the journal had written. Its data belongs to
    /// the running transaction, which begins now if there is none.
    pub(crate) fn journal_dirty_data(&mut self, inode: InodeId, index: u32) {
        let fs = self.mm.inodes[inode].fs;
        let journal = &mut self.mounts.get(fs).journal;
        if let Some(journal) = journal.as_mut().filter(|journal| journal.writes_data) {
            journal.data.push((inode, index));
            self.begin_transaction(fs);
        }
    }

    /// `journal_submit_data_buffers`: gives the device data from `at` on. Returns the number of pages that the device got, and the event that the
    /// journal has to wait for first.
    fn submit_data(&mut self, data: &[DataPage], at: &mut usize) -> (u64, Option<Wait>) {
        let mut submitted = 0;
        while submitted < BATCH
            && let Some(&page) = data.get(*at)
        {
            // lock_buffer: a task has written to the page since a flusher took it.
            if let Some((pfn, flags)) = self.data_under_way(page)
                && self.mm.pages[pfn].has_dirty_buffers()
            {
                return (submitted, Some(Wait::Write(pfn, flags)));
            }
            *at += 1;
            let Some(io) = self.data_to_write(page) else {
                continue;
            };
            submitted += 1;
            if let Some(io) = self.try_submit(io) {
                return (submitted, Some(Wait::Request(io)));
            }
        }
        (submitted, None)
    }

    /// The write of a page of a transaction; none: the page is clean, or is gone.
    fn data_to_write(&mut self, (inode, index): DataPage) -> Option<Io> {
        let file = &self.mm.inodes[inode];
        let pfn = file.pages.page(index)?;
        let page = &mut self.mm.pages[pfn];
        if !page.has_dirty_buffers() {
            return None;
        }
        let position = file.extents.find(index)?;
        page.set(flag::BUFFERS_CLEAN | flag::BUFFERS_LOCKED);
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        Some(Io {
            device: file.device,
            dir: Dir::Write,
            sync: false,
            position,
            pfn,
            in_folio: false,
            own_bio: false,
            needs_bio: false,
        })
    }

    /// `end_buffer_write_sync`: the journal's write of a page is over; the device has the page, or refused it.
    pub(crate) fn end_data_write(&mut self, pfn: Pfn, failed: bool) {
        self.mm.pages[pfn].clear(flag::BUFFERS_LOCKED);
        if failed {
            self.mm.mapping_set_error(pfn);
        }
    }

    /// The frame of a page of a transaction that the journal or a flusher is writing, and the flag of that write.
    fn data_under_way(&self, (inode, index): DataPage) -> Option<(Pfn, u16)> {
        let pfn = self.mm.inodes[inode].pages.page(index)?;
        let flags = self.mm.pages[pfn].write_under_way()?;
        Some((pfn, flags))
    }
}

/// `journal_submit_data_buffers`, and waiting for them: the data of a transaction is written, and is on the device.
pub(super) async fn write_data(sys: &Sys, data: &[DataPage]) {
    sys.start_plug();
    let mut at = 0;
    while at < data.len() {
        let (submitted, wait) = sys.world().submit_data(data, &mut at);
        match wait {
            None => {}
            Some(Wait::Request(io)) => {
                sys.suspend().await;
                io::submit(sys, io).await;
            }
            Some(Wait::Write(pfn, flags)) => io::wait_on_page(sys, pfn, flags).await,
        }
        sys.charge_kernel(submitted * sys.costs.file_page_ns).await;
    }
    sys.finish_plug();
    for &page in data {
        let busy = sys.world().data_under_way(page);
        if let Some((pfn, flags)) = busy {
            io::wait_on_page(sys, pfn, flags).await;
        }
    }
}
