//! The lock over the lists of dirty inodes: taken by whoever dirties a clean one, and by whoever writes inodes, before
//! and after each. What else `inode_lock` protected, up to 2.6.38, is left out.

use crate::ids::WbId;
use crate::kernel::ListLock;
use crate::time::{LockStat, Nanos, SpinLock};
use crate::world::{Sys, World};
use typed_index_collections::TiVec;

/// One lock for all lists, or one for each part of writeback.
#[derive(Debug, Default)]
pub(crate) struct ListLocks {
    all: SpinLock,
    by_wb: TiVec<WbId, SpinLock>,
}

impl ListLocks {
    /// The lock over the lists of one part.
    fn of(&mut self, wb: WbId) -> &mut SpinLock {
        if self.by_wb.next_key() <= wb {
            let parts = usize::from(wb) + 1;
            self.by_wb.resize_with(parts, SpinLock::default);
        }
        &mut self.by_wb[wb]
    }

    /// The figures of all of them.
    pub(crate) fn stat(&self) -> LockStat {
        let mut stat = LockStat::default();
        let locks = self.by_wb.iter().chain([&self.all]);
        locks.for_each(|lock| stat.add(&lock.stat));
        stat
    }
}

impl World {
    /// Takes the lock over the lists of `wb`, to move so many inodes from one to another: the time until it is given
    /// back, which the current task has to spend without being preempted. Nothing for files on a server, whose calls
    /// take no CPU time either: a flusher that has no other cost than this would chase writers page by page.
    pub(crate) fn hold_list_lock(&mut self, wb: WbId, moved: u64) -> Nanos {
        let (device, _) = self.mm.whose_wb(wb);
        if self.nfs.is_remote(device) {
            return 0;
        }
        let lock = match self.mm.kernel.mechanisms.writeback.list_lock {
            ListLock::Inode | ListLock::InodeWbList => &mut self.list_locks.all,
            ListLock::Wb => self.list_locks.of(wb),
        };
        let time = self.costs.list_lock_ns + moved * self.costs.move_inode_ns;
        lock.hold(self.sched.now(), time)
    }
}

impl Sys {
    /// The same, with the time spent.
    pub(crate) async fn hold_list_lock(&self, wb: WbId, moved: u64) {
        let time = self.world().hold_list_lock(wb, moved);
        if time > 0 {
            self.charge_locked(time).await;
        }
    }
}
