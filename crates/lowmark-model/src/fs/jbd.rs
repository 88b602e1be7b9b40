//! The journal of ext3 with `data=ordered` (`fs/jbd`), as far as it writes data.
//!
//! 1. A page that write(2) has written to belongs to the running transaction (`journal_dirty_data`).
//! 2. Five seconds after a transaction began, or when fsync(2) asks for it, kjournald commits the transaction: it gives the
//!    device all of its data in the order in which that was written, and waits for it (`journal_commit_transaction`).
//! 3. It writes buffers, not pages: the page stays dirty. A flusher, or reclaim, that comes to the page afterwards finds
//!    nothing to write, and the page is clean at once (`__block_write_full_page`); while the journal writes, both leave the
//!    page dirty.
//!
//! Simplified: a transaction has no metadata, so it has no blocks in the journal and no commit record, takes no room of the
//! journal, and never keeps a writer waiting. A page that is written to while its transaction commits is written with that
//! transaction, unless the device has the page already: then the page belongs to the next.

use crate::device::{Dir, Io};
use crate::ids::InodeId;
use crate::mm::io;
use crate::mm::types::{Pfn, flag};
use crate::mm::writeback::fs_writeback::BATCH;
use crate::time::{Nanos, SECOND, WaitQueue};
use crate::world::{Interrupt, Sys, SysRef, World};
use lowmark_spec::machine::PAGE_SIZE;

/// How long a transaction runs (`JBD_DEFAULT_MAX_COMMIT_AGE`).
const COMMIT_AGE: Nanos = 5 * SECOND;

/// A page of a file.
type DataPage = (InodeId, u32);

/// The journal of a file system (`journal_t`).
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Data of the running transaction, in the order in which it was written (`t_sync_datalist`).
    data: Vec<DataPage>,
    /// When the running transaction is to be committed; none: no transaction runs (`t_expires`).
    expires: Option<Nanos>,
    /// Number of the running transaction, or of the next (`t_tid`).
    running: u64,
    /// Transactions that are committed, from 0 on (`j_commit_sequence`).
    committed: u64,
    /// A task waits for the running transaction to be committed (`j_commit_request`).
    requested: bool,
    /// kjournald (`j_wait_commit`).
    thread: WaitQueue,
    /// Tasks that wait for a commit (`j_wait_done_commit`).
    waiting: WaitQueue,
}

/// The event that keeps the journal from giving the device more data of a transaction.
enum Wait {
    /// A free request for this page.
    Request(Io),
    /// The end of an earlier write of this page, while the page has the flag.
    Write(Pfn, u16),
}

impl Journal {
    /// Ends the running transaction if it is to be committed now, and returns its data. The next write begins another.
    fn take_due(&mut self, now: Nanos) -> Option<Vec<DataPage>> {
        let expires = self.expires?;
        if now < expires && !self.requested {
            return None;
        }
        (self.expires, self.requested) = (None, false);
        self.running += 1;
        Some(std::mem::take(&mut self.data))
    }
}

impl World {
    /// `journal_dirty_data`: a page has been written to that was clean, or that the journal had written. Its data belongs to
    /// the running transaction, which begins now if there is none.
    pub(crate) fn journal_dirty_data(&mut self, inode: InodeId, index: u32) {
        let fs = self.mm.inodes[inode].fs;
        let Some(journal) = &mut self.mounts.get(fs).journal else {
            return;
        };
        journal.data.push((inode, index));
        if journal.expires.is_none() {
            // round_jiffies_up
            let at = (self.sched.now() + COMMIT_AGE).next_multiple_of(SECOND);
            journal.expires = Some(at);
            let after = at - self.sched.now();
            self.sched
                .interrupt_after(after, Interrupt::CommitTransaction { fs });
        }
    }

    /// The timer of a transaction (`commit_timeout`).
    pub(crate) fn commit_timeout(&mut self, fs: usize) {
        if let Some(journal) = &mut self.mounts.get(fs).journal {
            journal.thread.wake_all(&mut self.sched);
        }
    }

    /// The data of the transaction that kjournald is to commit; else it sleeps.
    fn next_transaction(&mut self, fs: usize) -> Option<Vec<DataPage>> {
        let journal = self.mounts.get(fs).journal.as_mut()?;
        let data = journal.take_due(self.sched.now());
        if data.is_none() {
            journal.thread.block(&mut self.sched, "a transaction");
        }
        data
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

/// The thread of a file system's journal. Never returns.
pub(crate) async fn kjournald(sys: SysRef, fs: usize) {
    loop {
        let due = sys.world().next_transaction(fs);
        match due {
            Some(data) => commit_transaction(&sys, fs, &data).await,
            None => sys.suspend().await,
        }
    }
}

/// `journal_commit_transaction`: the data of a transaction is written, and is on the device.
async fn commit_transaction(sys: &Sys, fs: usize, data: &[DataPage]) {
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
    let world = &mut *sys.world();
    if let Some(journal) = &mut world.mounts.get(fs).journal {
        journal.committed += 1;
        journal.waiting.wake_all(&mut world.sched);
    }
}

/// `ext3_sync_file` after the data of the file itself: the transaction that it may be in is committed, with the data of all
/// other files in it (`log_wait_commit`).
pub(crate) async fn commit_and_wait(sys: &Sys, inode: InodeId) {
    let wanted = {
        let world = &mut *sys.world();
        let fs = world.mm.inodes[inode].fs;
        let Some(journal) = &mut world.mounts.get(fs).journal else {
            return;
        };
        if journal.expires.is_some() {
            journal.requested = true;
            journal.thread.wake_all(&mut world.sched);
        }
        journal.running + u64::from(journal.expires.is_some())
    };
    loop {
        {
            let world = &mut *sys.world();
            let fs = world.mm.inodes[inode].fs;
            let Some(journal) = &mut world.mounts.get(fs).journal else {
                return;
            };
            if journal.committed >= wanted || world.sched.current_killed() {
                return;
            }
            journal.waiting.block(&mut world.sched, "the journal");
        }
        sys.suspend().await;
    }
}
