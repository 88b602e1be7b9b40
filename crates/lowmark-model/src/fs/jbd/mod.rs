//! The journals of ext3 (`fs/jbd`) and ext4 (`fs/jbd2`).
//!
//! 1. Metadata that an operation changes belongs to the running transaction (`journal_dirty_metadata`), and so does, with
//!    ext3 and `data=ordered`, a page that write(2) has written to (`journal_dirty_data`).
//! 2. Five seconds after a transaction began, or when fsync(2) asks for it, kjournald commits the transaction: it gives the
//!    device all of its data in the order in which that was written, and waits for it; then the metadata, block after block
//!    into the journal, and at last a commit record (`journal_commit_transaction`).
//! 3. It writes data as buffers, not pages: the page stays dirty. A flusher, or reclaim, that comes to the page afterwards
//!    finds nothing to write, and the page is clean at once (`__block_write_full_page`); while the journal writes, both leave
//!    the page dirty.
//! 4. Metadata that is committed is dirty from then on, and is written to its place by a flusher as other pages are.
//!
//! Simplified: the journal is never full, so it never keeps a writer waiting and nothing is written for its sake
//! (checkpoints); device caches are not flushed; ext4's journal waits for no data. Without metadata in the model
//! (`model.metadata`) a transaction has data alone. A page that is written to while its transaction commits is written with
//! that transaction, unless the device has the page already: then the page belongs to the next.

mod data;
mod log;

use crate::fs::metadata::Block;
use crate::ids::InodeId;
use crate::time::{Nanos, SECOND, WaitQueue};
use crate::world::{Interrupt, Sys, SysRef, World};
use log::Log;
use std::ops::Range;

/// How long a transaction runs (`JBD_DEFAULT_MAX_COMMIT_AGE`).
const COMMIT_AGE: Nanos = 5 * SECOND;

/// A page of a file.
type DataPage = (InodeId, u32);

/// The journal of a file system (`journal_t`).
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// It writes data (`data=ordered` of ext3).
    writes_data: bool,
    /// Data of the running transaction, in the order in which it was written (`t_sync_datalist`).
    data: Vec<DataPage>,
    /// Where it writes metadata; none if that is left out.
    log: Option<Log>,
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

impl Journal {
    /// A journal that writes data or not, and metadata into these blocks if there are any.
    pub(super) fn new(writes_data: bool, log: Option<Vec<Range<Block>>>) -> Journal {
        Journal {
            writes_data,
            log: log.map(Log::new),
            ..Journal::default()
        }
    }

    /// The running transaction, or the next if there is none, counted from 1 on.
    pub(super) fn transaction(&self) -> u64 {
        self.running + 1
    }

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
    /// `start_this_handle`: a transaction begins, unless one runs.
    fn begin_transaction(&mut self, fs: usize) {
        let Some(journal) = &mut self.mounts.get(fs).journal else {
            return;
        };
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
        } else {
            self.take_metadata(fs);
        }
        data
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

/// `journal_commit_transaction`: data and metadata of a transaction are written, and are on the device.
async fn commit_transaction(sys: &Sys, fs: usize, data: &[DataPage]) {
    data::write_data(sys, data).await;
    log::write_metadata(sys, fs).await;
    let world = &mut *sys.world();
    if let Some(journal) = &mut world.mounts.get(fs).journal {
        journal.committed += 1;
        journal.waiting.wake_all(&mut world.sched);
    }
}

/// `ext3_sync_file`, `ext4_sync_file` after the data of the file itself: the transaction that it may be in is committed, with
/// all that others have changed.
pub(crate) async fn commit_and_wait(sys: &Sys, inode: InodeId) {
    let (fs, wanted) = {
        let world = &mut *sys.world();
        let file = &world.mm.inodes[inode];
        let (fs, changed_in) = (file.fs, file.place.changed_in);
        let Some(journal) = &world.mounts.get(fs).journal else {
            return;
        };
        let wanted = if journal.log.is_some() {
            changed_in
        } else {
            journal.newest()
        };
        (fs, wanted)
    };
    wait_commit(sys, fs, wanted).await;
}

/// `ext4_force_commit`: kjournald commits the running transaction, and the current task waits for that.
pub(crate) async fn force_commit(sys: &Sys, fs: usize) {
    let newest = {
        let world = &mut *sys.world();
        let journal = world.mounts.get(fs).journal.as_ref();
        journal.map(Journal::newest)
    };
    if let Some(newest) = newest {
        wait_commit(sys, fs, newest).await;
    }
}

impl Journal {
    /// Transactions that there have been, the running one included.
    fn newest(&self) -> u64 {
        self.running + u64::from(self.expires.is_some())
    }
}

/// `log_start_commit`, `log_wait_commit`: the current task waits until `wanted` transactions are committed.
async fn wait_commit(sys: &Sys, fs: usize, wanted: u64) {
    {
        let world = &mut *sys.world();
        let Some(journal) = &mut world.mounts.get(fs).journal else {
            return;
        };
        if journal.expires.is_some() && wanted > journal.running {
            journal.requested = true;
            journal.thread.wake_all(&mut world.sched);
        }
    }
    loop {
        {
            let world = &mut *sys.world();
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
