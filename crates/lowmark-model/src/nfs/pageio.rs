//! Pages put together to calls (`struct nfs_pageio_descriptor`, `fs/nfs/pagelist.c`).
//!
//! 1. Pages that follow each other in a file become one call, up to `wsize`.
//! 2. A call is stable if it is the only one so far and the file has nothing to commit
//!    (`FLUSH_COND_STABLE`): one message in place of two.
//! 3. Reclaim writes page by page, each a call of its own, stable and urgent.
//!
//! Pages under writeback to a server are counted: above `nfs_congestion_kb` it is congested, until a quarter
//! less is. Up to 5.17 that holds back reclaim alone, since then the flusher as well (6df25e58532b).

use super::rpc::{Call, Priority, Procedure};
use crate::device::{Dir, Io};
use crate::ids::{DeviceId, InodeId};
use crate::kernel::{NfsCommit, NfsCongestion};
use crate::mm::types::Pfn;
use crate::time::TaskId;
use crate::world::World;

/// Whom pages are put together for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Readahead.
    Read,
    /// A flusher, or whoever does its work.
    Flush,
    /// Somebody who waits for it.
    Sync,
}

/// A call that is being put together by a task.
#[derive(Debug)]
pub(super) struct PageIo {
    task: TaskId,
    device: DeviceId,
    how: How,
    inode: InodeId,
    first: u32,
    pages: Vec<Pfn>,
    /// No call has gone yet that filled up (`FLUSH_COND_STABLE`).
    cond_stable: bool,
    completion: Option<usize>,
}

/// Writes of a turn that are not answered yet (`struct nfs_io_completion`).
#[derive(Debug)]
pub(super) struct Completion {
    inode: InodeId,
    /// 0 for one that is free.
    count: u32,
}

impl World {
    /// `nfs_pageio_init_write`, `nfs_pageio_init_read`: pages of the file that the current task submits are
    /// put together from now on.
    pub(crate) fn nfs_pageio_init(&mut self, inode: InodeId, how: How) {
        let device = self.mm.inodes[inode].device;
        if !self.nfs.is_remote(device) {
            return;
        }
        let commits = self.mm.kernel.mechanisms.nfs.nfs_commit == NfsCommit::AfterWriteback;
        let completion = match self.nfs.client(device) {
            Some(client) if commits && how != How::Read => {
                let free = client.completions.iter().position(|it| it.count == 0);
                let at = free.unwrap_or(client.completions.len());
                if free.is_none() {
                    client.completions.push(Completion { inode, count: 0 });
                }
                client.completions[at] = Completion { inode, count: 1 };
                Some(at)
            }
            _ => None,
        };
        self.nfs.pageio.push(PageIo {
            task: self.sched.current(),
            device,
            how,
            inode,
            first: 0,
            pages: Vec::new(),
            cond_stable: true,
            completion,
        });
    }

    /// The task's call in the making, if there is one.
    fn nfs_pageio_of_task(&self) -> Option<usize> {
        let task = self.sched.current();
        self.nfs.pageio.iter().rposition(|it| it.task == task)
    }

    /// `nfs_pageio_add_request`: a page that is being read, or is marked as under writeback.
    pub(crate) fn nfs_submit(&mut self, io: Io) {
        let (inode, index) = self.mm.file_of(&self.mm.pages[io.pfn]);
        if io.dir == Dir::Write {
            self.nfs_set_page_writeback(io.device);
        }
        let at = self.nfs_pageio_of_task();
        let at = at.filter(|&at| self.nfs.pageio[at].inode == inode);
        let Some(at) = at else {
            let (procedure, priority) = match io.dir {
                Dir::Read => (Procedure::Read, Priority::Normal),
                Dir::Write => (nfs_write(true, None), Priority::High),
            };
            let call = Call {
                procedure,
                inode,
                first: index,
                pages: vec![io.pfn],
            };
            return self.nfs_call(io.device, call, priority);
        };
        let wsize = self.nfs.client(io.device).map_or(1, |client| client.wsize);
        let pageio = &self.nfs.pageio[at];
        let full = pageio.pages.len() == wsize;
        let follows = pageio.first + pageio.pages.len() as u32 == index;
        if full || !(follows || pageio.pages.is_empty()) {
            // pg_moreio: only a call that filled up says that there are more.
            self.nfs_pageio_doio(at, full && follows);
        }
        let pageio = &mut self.nfs.pageio[at];
        if pageio.pages.is_empty() {
            pageio.first = index;
        }
        pageio.pages.push(io.pfn);
    }

    /// `nfs_pageio_doio`: the call goes.
    fn nfs_pageio_doio(&mut self, at: usize, more: bool) {
        let pageio = &mut self.nfs.pageio[at];
        let pages = std::mem::take(&mut pageio.pages);
        if pages.is_empty() {
            return;
        }
        let (device, inode, first) = (pageio.device, pageio.inode, pageio.first);
        let (how, completion) = (pageio.how, pageio.completion);
        let ncommit = self.mm.inodes[inode].commit_info.ncommit();
        pageio.cond_stable &= !more && ncommit == 0;
        let stable = pageio.cond_stable;
        let (procedure, priority) = match how {
            How::Read => (Procedure::Read, Priority::Normal),
            How::Flush => (nfs_write(stable, completion), Priority::Low),
            How::Sync => (nfs_write(stable, completion), Priority::Normal),
        };
        if let (Some(completion), Some(client)) = (completion, self.nfs.client(device)) {
            client.completions[completion].count += 1;
        }
        let call = Call {
            procedure,
            inode,
            first,
            pages,
        };
        self.nfs_call(device, call, priority);
    }

    /// `nfs_pageio_complete`: what is left goes.
    pub(crate) fn nfs_pageio_complete(&mut self) {
        if !self.nfs.any() {
            return;
        }
        let Some(at) = self.nfs_pageio_of_task() else {
            return;
        };
        self.nfs_pageio_doio(at, false);
        let pageio = self.nfs.pageio.remove(at);
        if let Some(completion) = pageio.completion {
            self.nfs_io_completion_put(pageio.device, completion);
        }
    }

    /// `nfs_io_completion_put`: a write of a turn is answered. After the last one comes a COMMIT.
    pub(super) fn nfs_io_completion_put(&mut self, device: DeviceId, completion: usize) {
        let Some(client) = self.nfs.client(device) else {
            return;
        };
        let completion = &mut client.completions[completion];
        completion.count -= 1;
        let (left, inode) = (completion.count, completion.inode);
        if left == 0 {
            self.nfs_commit_inode(inode);
        }
    }

    /// Whether a turn that nobody waits for writes nothing of a file, as too much is under way to its server.
    pub(crate) fn nfs_holds_flusher(&self, inode: InodeId, sync: bool) -> bool {
        let device = self.mm.inodes[inode].device;
        let rule = self.mm.kernel.mechanisms.nfs.nfs_congestion;
        rule == NfsCongestion::Flusher
            && !sync
            && self.nfs.is_remote(device)
            && self.nfs.is_congested(device)
    }

    fn nfs_set_page_writeback(&mut self, device: DeviceId) {
        let Some(client) = self.nfs.client(device) else {
            return;
        };
        client.writeback += 1;
        if client.writeback > client.congestion {
            client.congested = true;
            self.block.set_congested(device);
        }
    }

    pub(super) fn nfs_end_page_writeback(&mut self, device: DeviceId, pages: u64) {
        let Some(client) = self.nfs.client(device) else {
            return;
        };
        client.writeback -= pages;
        if client.writeback < client.congestion - client.congestion / 4 {
            client.congested = false;
            self.block.clear_congested(&mut self.sched, device);
        }
    }
}

fn nfs_write(stable: bool, completion: Option<usize>) -> Procedure {
    Procedure::Write { stable, completion }
}
