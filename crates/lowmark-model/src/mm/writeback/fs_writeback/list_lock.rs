//! The lock over the lists of dirty inodes: taken by whoever dirties a clean one, and by whoever writes inodes, before
//! and after each. What else `inode_lock` protected, up to 2.6.38, is left out.

use crate::kernel::ListLock;
use crate::time::{LockStat, Nanos, SpinLock};
use crate::world::{Sys, World};

/// One lock for all lists, or one for each part of writeback.
#[derive(Debug, Default)]
pub(crate) struct ListLocks {
    locks: Vec<SpinLock>,
}

impl ListLocks {
    fn lock(&mut self, at: usize) -> &mut SpinLock {
        if self.locks.len() <= at {
            self.locks.resize_with(at + 1, SpinLock::default);
        }
        &mut self.locks[at]
    }

    /// The figures of all of them.
    pub(crate) fn stat(&self) -> LockStat {
        let mut all = LockStat::default();
        self.locks.iter().for_each(|lock| all.add(&lock.stat));
        all
    }
}

impl World {
    /// Takes the lock over the lists of `wb`, to move so many inodes from one to another: the time until it is given
    /// back, which the current task has to spend without being preempted. Nothing for files on a server, whose calls
    /// take no CPU time either: a flusher that has no other cost than this would chase writers page by page.
    pub(crate) fn hold_list_lock(&mut self, wb: usize, moved: u64) -> Nanos {
        let (device, _) = self.mm.whose_wb(wb);
        if self.nfs.is_remote(device) {
            return 0;
        }
        let at = match self.mm.kernel.mechanisms.writeback.list_lock {
            ListLock::Inode | ListLock::InodeWbList => 0,
            ListLock::Wb => wb,
        };
        let time = self.costs.list_lock_ns + moved * self.costs.move_inode_ns;
        self.list_locks.lock(at).hold(self.sched.now(), time)
    }
}

impl Sys {
    /// The same, with the time spent.
    pub(crate) async fn hold_list_lock(&self, wb: usize, moved: u64) {
        let time = self.world().hold_list_lock(wb, moved);
        if time > 0 {
            self.charge_locked(time).await;
        }
    }
}
