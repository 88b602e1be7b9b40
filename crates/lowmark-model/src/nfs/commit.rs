//! Pages that the server has, but only in its memory (`fs/nfs/write.c`).
//!
//! 1. A page whose unstable write is answered goes on its file's commit list. It counts as dirty memory until
//!    a COMMIT of the file is answered; then it is clean.
//! 2. A COMMIT is for all pages that are on the list when it is sent. The flusher sends one after an inode's
//!    turn, without waiting for it, if not too many writes of the file are still under way; since 4.14 the
//!    end of the turn's last write does so, too (919e3bd9a875). fsync, sync and the last close wait for one.
//! 3. A page that is written to before leaves the list: it will be sent once more.

use super::rpc::{Call, Priority, Procedure};
use crate::ids::{DeviceId, InodeId, WbId};
use crate::kernel::{NfsCommit, NfsUnstable};
use crate::mm::Mm;
use crate::mm::types::{Pfn, Tag};
use crate::world::{Sys, World};
use std::collections::BTreeMap;

/// What of a file the server may still lose (`struct nfs_mds_commit_info`).
#[derive(Debug, Clone, Default)]
pub(crate) struct CommitInfo {
    /// Its pages, and the COMMIT that was sent for each; 0 for none.
    pages: BTreeMap<u32, u32>,
    /// Pages without one.
    ncommit: u64,
    /// COMMITs under way.
    rpcs_out: u32,
}

impl CommitInfo {
    /// Pages that are unstable.
    pub(crate) fn pages(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.pages.keys().copied()
    }

    /// Whether a page is.
    pub(crate) fn has(&self, page: u32) -> bool {
        self.pages.contains_key(&page)
    }

    /// Pages on the commit list.
    pub(super) fn ncommit(&self) -> u64 {
        self.ncommit
    }
}

impl Mm {
    /// Pages that are dirty, or unstable where those count so (`NR_FILE_DIRTY` and `NR_UNSTABLE_NFS`).
    pub(crate) fn nr_reclaimable(&self) -> u64 {
        self.nr_dirty + self.nr_unstable
    }

    /// Counts `pages` more unstable pages of a device, or less. Since 8d92890bd6b8 (5.8) they count as if they
    /// were being written.
    fn count_unstable(&mut self, device: DeviceId, pages: i64, rule: NfsUnstable) {
        let bdi = &mut self.bdis[WbId::of_root(device)];
        let counters = match rule {
            NfsUnstable::Reclaimable => [&mut self.nr_unstable, &mut bdi.reclaimable],
            NfsUnstable::Writeback => [&mut self.nr_writeback, &mut bdi.writeback],
        };
        for counter in counters {
            *counter = counter.wrapping_add_signed(pages);
        }
    }
}

impl Mm {
    /// `nfs_clear_request_commit`: a page is dirty again, or gone.
    pub(crate) fn nfs_clear_commit(&mut self, inode: InodeId, page: u32) {
        let file = &mut self.inodes[inode];
        let Some(number) = file.commit_info.pages.remove(&page) else {
            return;
        };
        file.commit_info.ncommit -= u64::from(number == 0);
        let device = file.device;
        let rule = self.kernel.mechanisms.nfs.nfs_unstable;
        self.count_unstable(device, -1, rule);
        self.count_file_page_in_zone(inode, page, -1);
    }

    fn count_file_page_in_zone(&mut self, inode: InodeId, page: u32, change: i64) {
        if let Some(pfn) = self.inodes[inode].pages.page(page) {
            self.count_dirty_in_zone(pfn, change);
        }
    }
}

impl World {
    /// `nfs_mark_request_commit` of pages whose write is answered.
    pub(super) fn nfs_mark_commit(&mut self, inode: InodeId, first: u32, pages: u32) {
        let file = &mut self.mm.inodes[inode];
        for page in first..first + pages {
            file.commit_info.pages.insert(page, 0);
        }
        file.commit_info.ncommit += u64::from(pages);
        let device = file.device;
        let rule = self.mm.kernel.mechanisms.nfs.nfs_unstable;
        self.mm.count_unstable(device, i64::from(pages), rule);
        for page in first..first + pages {
            self.mm.count_file_page_in_zone(inode, page, 1);
        }
        self.mark_inode_datasync(inode);
    }

    /// Whether a clean page of a file may not be freed yet, as a COMMIT is needed first.
    pub(crate) fn is_unstable(&self, pfn: Pfn) -> bool {
        if !self.nfs.any() {
            return false;
        }
        let (inode, index) = self.mm.file_of(&self.mm.pages[pfn]);
        self.mm.inodes[inode].commit_info.has(index)
    }

    /// `nfs_release_page`: reclaim has met a page that waits for a COMMIT, which is sent now.
    pub(crate) fn nfs_release_page(&mut self, pfn: Pfn) {
        let (inode, _) = self.mm.file_of(&self.mm.pages[pfn]);
        self.nfs_commit_inode(inode);
    }

    /// `nfs_commit_inode` without waiting: the pages that a COMMIT was sent for. Up to 4.13 a file has one at
    /// a time.
    pub(super) fn nfs_commit_inode(&mut self, inode: InodeId) -> u64 {
        let one = self.mm.kernel.mechanisms.nfs.nfs_commit == NfsCommit::HalfOfWrites;
        let file = &mut self.mm.inodes[inode];
        let (device, info) = (file.device, &mut file.commit_info);
        if one && info.rpcs_out > 0 {
            self.mark_inode_datasync(inode);
            return 0;
        }
        let pages = std::mem::take(&mut info.ncommit);
        if pages == 0 {
            return 0;
        }
        let Some(client) = self.nfs.client(device) else {
            return 0;
        };
        client.commits += 1;
        client.commit_pages_max = client.commit_pages_max.max(pages);
        let number = client.commits;
        for commit in info.pages.values_mut().filter(|commit| **commit == 0) {
            *commit = number;
        }
        info.rpcs_out += 1;
        let call = Call {
            procedure: Procedure::Commit(number),
            inode,
            first: 0,
            pages: Vec::new(),
        };
        self.nfs_call(device, call, Priority::Normal);
        // Until it is answered nobody may take the file for clean.
        self.mark_inode_datasync(inode);
        pages
    }

    /// `nfs_commit_release_pages`: a COMMIT is answered.
    pub(super) fn nfs_commit_done(&mut self, inode: InodeId, number: u32) {
        let file = &mut self.mm.inodes[inode];
        let (device, info) = (file.device, &mut file.commit_info);
        let done = info.pages.iter().filter(|(_, commit)| **commit == number);
        let clean: Vec<u32> = done.map(|(page, _)| *page).collect();
        for page in &clean {
            info.pages.remove(page);
        }
        info.rpcs_out -= 1;
        let rule = self.mm.kernel.mechanisms.nfs.nfs_unstable;
        self.mm.count_unstable(device, -(clean.len() as i64), rule);
        for page in clean {
            self.mm.count_file_page_in_zone(inode, page, -1);
        }
        if let Some(client) = self.nfs.client(device) {
            client.waiters.wake_all(&mut self.sched);
        }
    }

    /// `nfs_write_inode` after an inode's turn, if something of it became unstable since the last: the pages
    /// that a COMMIT was sent for.
    pub(crate) fn nfs_write_inode(&mut self, inode: InodeId) -> u64 {
        let file = &mut self.mm.inodes[inode];
        if !std::mem::take(&mut file.writeback.datasync) {
            return 0;
        }
        let info = &file.commit_info;
        let under_way = file.pages.tagged(Tag::Writeback);
        let (nothing, postponed) = match self.mm.kernel.mechanisms.nfs.nfs_commit {
            NfsCommit::HalfOfWrites => {
                let requests = file.pages.tagged(Tag::Dirty) + under_way + info.pages.len() as u64;
                (info.ncommit == 0, info.ncommit <= requests / 2)
            }
            NfsCommit::AfterWriteback => (info.ncommit == 0 && info.rpcs_out == 0, under_way > 0),
        };
        match (nothing, postponed || info.ncommit == 0) {
            (true, _) => 0,
            (false, true) => {
                self.mark_inode_datasync(inode);
                0
            }
            (false, false) => self.nfs_commit_inode(inode),
        }
    }
}

/// `nfs_commit_inode(inode, FLUSH_SYNC)`: until no page of the file is unstable that was when this began.
/// Nothing to do for files that are not on a server.
pub(crate) async fn nfs_commit_and_wait(sys: &Sys, inode: InodeId) {
    let remote = {
        let world = sys.world();
        let device = world.mm.inodes[inode].device;
        world.nfs.is_remote(device)
    };
    if !remote {
        return;
    }
    // nfs_commit_set_lock
    let one = sys.world().mm.kernel.mechanisms.nfs.nfs_commit == NfsCommit::HalfOfWrites;
    if one {
        wait_on_commit(sys, inode).await;
    }
    sys.world().nfs_commit_inode(inode);
    wait_on_commit(sys, inode).await;
}

/// Until no COMMIT of a file is under way, or the task is killed.
async fn wait_on_commit(sys: &Sys, inode: InodeId) {
    loop {
        {
            let world = &mut *sys.world();
            let file = &world.mm.inodes[inode];
            if file.commit_info.rpcs_out == 0 || world.sched.current_killed() {
                return;
            }
            let Some(client) = world.nfs.client(file.device) else {
                return;
            };
            client.waiters.block(&mut world.sched, "a COMMIT");
        }
        sys.suspend().await;
        let world = &mut *sys.world();
        let me = world.sched.current();
        let device = world.mm.inodes[inode].device;
        if let Some(client) = world.nfs.client(device) {
            client.waiters.remove(me);
        }
    }
}
