//! Which inode is written next, and where it goes after its turn.

use super::put;
use crate::ids::{InodeId, WbId};
use crate::kernel::WritebackRound;
use crate::mm::Mm;
use crate::mm::types::Tag;
use crate::mm::writeback::backing_dev::{Listed, Reason, Work};
use crate::time::SECOND;
use crate::world::World;
use lowmark_record::{Field, Kind};

impl Mm {
    /// The oldest inode of the round. It is on no list while it is being written, so nobody else gets it.
    pub(super) fn next_inode(&mut self, wb: WbId) -> Option<InodeId> {
        let inode = self.bdis[wb].b_io.pop_front()?;
        let writeback = &mut self.inodes[inode].writeback;
        writeback.listed = Listed::Clean;
        writeback.sync = true;
        writeback.pages = false;
        Some(inode)
    }

    /// An inode without a dirty page that is not being written leaves the lists (`inode_wb_list_del`). Whether it was on
    /// one.
    pub(crate) fn forget_dirty_inode(&mut self, inode: InodeId) -> bool {
        let file = &mut self.inodes[inode];
        let listed = std::mem::take(&mut file.writeback.listed);
        file.writeback.datasync = false;
        let bdi = &mut self.bdis[file.wb()];
        let list = match listed {
            Listed::Clean => return false,
            Listed::Dirty => &mut bdi.b_dirty,
            Listed::Io => &mut bdi.b_io,
            Listed::MoreIo => &mut bdi.b_more_io,
        };
        list.retain(|&other| other != inode);
        self.inode_add_lru(inode, false);
        true
    }
}

impl World {
    /// `queue_io`, when there is nothing left of the last round, or whenever there is a new pass (to 3.0):
    /// those that wait for their next turn, then the dirty ones, for periodic work only those that have been
    /// so for long. How many of these there are, which are moved one by one.
    pub(super) fn queue_io(&mut self, wb: WbId, work: &Work) -> u64 {
        let now = self.sched.now();
        let expire = self.mm.kernel.sysctl.dirty_expire();
        let older = match work.reason {
            Reason::Periodic => now.checked_sub(expire),
            _ => Some(now),
        };
        let open = self.mm.kernel.mechanisms.writeback.writeback_round == WritebackRound::Open
            && work.reason != Reason::Periodic;
        let bdi = &mut self.mm.bdis[wb];
        if !bdi.b_io.is_empty() && !open {
            return 0;
        }
        while let Some(inode) = bdi.b_more_io.pop_front() {
            self.mm.inodes[inode].writeback.listed = Listed::Io;
            bdi.b_io.push_back(inode);
        }
        let mut moved = 0;
        while let Some(&inode) = bdi.b_dirty.front() {
            let writeback = &mut self.mm.inodes[inode].writeback;
            if older.is_none_or(|older| writeback.dirtied_when > older) {
                break;
            }
            writeback.listed = Listed::Io;
            bdi.b_dirty.pop_front();
            bdi.b_io.push_back(inode);
            moved += 1;
        }
        if self.trace.enabled() {
            let reason = self.trace.name(work.reason.name());
            let jiffy = self.jiffy();
            self.trace_bdi(Kind::WritebackQueueIo, wb, |_| {
                vec![
                    (Field::Older, older.unwrap_or(0) / jiffy),
                    (Field::Age, (now - older.unwrap_or(now)) * 1000 / SECOND),
                    (Field::Enqueue, moved),
                    (Field::Reason, reason),
                ]
            });
        }
        moved
    }

    /// `requeue_inode` at the end of a turn, which may have used up its `slice`.
    pub(super) fn requeue_inode(&mut self, inode: InodeId, used_up: bool) {
        let now = self.sched.now();
        let file = &mut self.mm.inodes[inode];
        let wb = file.wb();
        let dirty = file.pages.tagged(Tag::Dirty) > 0;
        let writeback = &mut file.writeback;
        writeback.sync = false;
        writeback.pages = dirty;
        writeback.listed = match (dirty, used_up) {
            (false, _) if !writeback.datasync => Listed::Clean,
            (true, true) => Listed::MoreIo,
            (true, false) | (false, _) => Listed::Dirty,
        };
        let (listed, dirtied) = (writeback.listed, writeback.dirtied_when);
        if listed == Listed::Dirty {
            // redirty_tail keeps the list in order of age.
            let last = self.mm.bdis[wb].b_dirty.back().copied();
            let newest = last.map(|last| self.mm.inodes[last].writeback.dirtied_when);
            if newest.is_some_and(|newest| dirtied < newest) {
                self.mm.inodes[inode].writeback.dirtied_when = now;
            }
        }
        let bdi = &mut self.mm.bdis[wb];
        put(bdi, listed, inode);
        bdi.waiters.wake_all(&mut self.sched);
        // inode_sync_complete
        if listed == Listed::Clean {
            self.mm.inode_add_lru(inode, false);
        }
    }

    pub(super) fn trace_single_inode(&mut self, inode: InodeId, slice: u64, wrote: u64) {
        let file = &self.mm.inodes[inode];
        let (wb, writeback) = (file.wb(), file.writeback.clone());
        if !self.trace.enabled() {
            return;
        }
        let state = self.trace.name(match file.pages.tagged(Tag::Dirty) {
            0 => "",
            _ => "I_DIRTY_PAGES",
        });
        let (now, jiffy) = (self.sched.now(), self.jiffy());
        self.trace_bdi(Kind::WritebackSingleInode, wb, |_| {
            vec![
                (Field::Ino, u64::from(inode)),
                (Field::State, state),
                (Field::DirtiedWhen, writeback.dirtied_when / jiffy),
                (Field::Age, (now - writeback.dirtied_when) / SECOND),
                (Field::Index, u64::from(writeback.index)),
                (Field::ToWrite, slice.min(i64::MAX as u64)),
                (Field::Wrote, wrote),
            ]
        });
    }
}
