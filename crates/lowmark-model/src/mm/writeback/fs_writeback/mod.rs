//! Flushers: one kernel thread for each device, which writes dirty inodes (`fs/fs-writeback.c`).
//!
//! 1. Work that was asked for comes first (`sync`, reclaim), then inodes that have been dirty for
//!    `dirty_expire_centisecs`, looked for every `dirty_writeback_centisecs`, then whatever is above the
//!    background threshold.
//! 2. A round moves inodes from `b_dirty` to `b_io` and gives each a turn of so many pages (*slice*), the
//!    oldest first. Who is not clean then waits in `b_more_io` for its next turn.
//! 3. The round ends when there is no more work of its kind, and every 100 ms it looks whether there is.

mod inodes;
mod list_lock;
mod pages;

pub(crate) use list_lock::ListLocks;
pub(crate) use pages::{BATCH, Range, fsync_range, wait_on_writeback, writepages};

use crate::fs::metadata::sync_metadata;
use crate::ids::{InodeId, MemcgId, WbId};
use crate::kernel::{ListLock, SyncErrors, WritebackSlice};
use crate::mm::Mm;
use crate::mm::writeback::backing_dev::{Bdi, Listed, Reason, Work};
use crate::nfs::nfs_commit_and_wait;
use crate::time::{Nanos, SECOND};
use crate::world::{Sys, SysRef, World};
use lowmark_record::{Field, Kind};

/// Pages of a turn at least, and of a pass up to 3.0 (`MAX_WRITEBACK_PAGES`): 4 MiB.
const MIN_WRITEBACK_PAGES: u64 = 1024;
/// A round looks so often whether it should go on.
const ROUND: Nanos = SECOND / 10;

impl World {
    /// Wakes the flusher of a device.
    pub(crate) fn wake_flusher(&mut self, wb: WbId) {
        self.mm.bdis[wb].flusher.wake_all(&mut self.sched);
    }

    /// `bdi_start_background_writeback`, unless the flusher is at work.
    pub(crate) fn start_background_writeback(&mut self, wb: WbId) {
        if self.mm.bdis[wb].running {
            return;
        }
        self.trace_bdi(Kind::WritebackWakeBackground, wb, |_| Vec::new());
        self.wake_flusher(wb);
    }

    /// The same at the end of a call of `balance_dirty_pages`, if there are more dirty pages than the
    /// background threshold.
    pub(crate) fn start_background_if_due(&mut self, wb: WbId) {
        let (background, _) = self.mm.dirty_thresholds();
        if self.mm.nr_reclaimable() > background {
            self.start_background_writeback(wb);
        }
    }

    fn queue_work(&mut self, wb: WbId, work: Work) -> u64 {
        self.trace_work(Kind::WritebackQueue, wb, &work);
        let bdi = &mut self.mm.bdis[wb];
        bdi.work.push_back(work);
        bdi.queued += 1;
        let number = bdi.queued;
        self.wake_flusher(wb);
        number
    }

    /// `wakeup_flusher_threads`: reclaim found so many dirty pages, or all of them are to be written.
    pub(crate) fn wakeup_flusher_threads(&mut self, nr_pages: Option<u64>) {
        let nr_pages = nr_pages.unwrap_or(self.mm.nr_reclaimable());
        for wb in self.mm.bdis.keys() {
            if self.mm.bdis[wb].has_dirty_io() {
                let work = Work {
                    nr_pages: self.mm.part_of_bandwidth(wb, nr_pages),
                    sync: false,
                    reason: Reason::TryToFreePages,
                };
                self.queue_work(wb, work);
            }
        }
    }

    /// Records an event of a device's writeback.
    pub(crate) fn trace_bdi(
        &mut self,
        kind: Kind,
        wb: WbId,
        values: impl Fn(&World) -> Vec<(Field, u64)>,
    ) {
        if !self.trace.enabled() {
            return;
        }
        let (device, memcg) = self.mm.whose_wb(wb);
        // A server has an anonymous device number.
        let major = if self.nfs.is_remote(device) { 0 } else { 8 };
        let name = self
            .trace
            .name(&format!("{major}:{}", 16 * u64::from(device)));
        // The root's inode has the number 1.
        let cgroup = u64::from(memcg) + 1;
        self.trace(kind, |world| {
            let mut all = vec![(Field::Bdi, name), (Field::CgroupIno, cgroup)];
            all.extend(values(world));
            all
        });
    }

    fn trace_work(&mut self, kind: Kind, wb: WbId, work: &Work) {
        if !self.trace.enabled() {
            return;
        }
        let reason = self.trace.name(work.reason.name());
        let work = *work;
        self.trace_bdi(kind, wb, |_| {
            vec![
                // No limit is LONG_MAX.
                (Field::NrPages, work.nr_pages.min(i64::MAX as u64)),
                (Field::SyncMode, u64::from(work.sync)),
                (Field::Kupdate, u64::from(work.reason == Reason::Periodic)),
                (Field::RangeCyclic, 1),
                (
                    Field::Background,
                    u64::from(work.reason == Reason::Background),
                ),
                (Field::Reason, reason),
            ]
        });
    }
}

/// `sync(2)`: writes everything and waits for it.
pub(crate) async fn sync(sys: &Sys) {
    let works: Vec<(WbId, u64)> = {
        let world = &mut *sys.world();
        let work = Work {
            nr_pages: u64::MAX,
            sync: true,
            reason: Reason::Sync,
        };
        let wbs = world.mm.bdis.iter_enumerated();
        let dirty = wbs.filter(|(_, bdi)| bdi.has_dirty_io());
        let dirty: Vec<WbId> = dirty.map(|(wb, _)| wb).collect();
        let queue = |wb| (wb, world.queue_work(wb, work));
        dirty.into_iter().map(queue).collect()
    };
    for (wb, number) in works {
        loop {
            {
                let world = &mut *sys.world();
                let bdi = &mut world.mm.bdis[wb];
                if bdi.done >= number || world.sched.current_killed() {
                    break;
                }
                bdi.waiters.block(&mut world.sched, "the flusher");
            }
            sys.suspend().await;
        }
    }
    // wait_sb_inodes; what somebody else was just writing is written here.
    let inodes = sys.world().mm.inodes.keys();
    for inode in inodes {
        fsync_range(sys, inode, Range::ALL).await;
        let world = &mut *sys.world();
        if world.mm.kernel.mechanisms.writeback.sync_errors == SyncErrors::Cleared {
            world.mm.forget_error(inode);
        }
    }
    sync_metadata(sys).await;
}

/// The thread. Never returns.
pub(crate) async fn flusher(sys: SysRef, wb: WbId) {
    loop {
        sys.world().mm.bdis[wb].running = true;
        do_writeback(&sys, wb).await;
        {
            let world = &mut *sys.world();
            let bdi = &mut world.mm.bdis[wb];
            bdi.running = false;
            if !bdi.work.is_empty() {
                continue;
            }
            let interval = world.mm.kernel.sysctl.dirty_writeback();
            if bdi.has_dirty_io() && interval > 0 {
                bdi.flusher
                    .block_for(&mut world.sched, "dirty pages", interval)
            } else {
                bdi.flusher.block(&mut world.sched, "dirty pages")
            }
        }
        sys.suspend().await;
        let world = &mut *sys.world();
        let me = world.sched.current();
        world.mm.bdis[wb].flusher.remove(me);
    }
}

/// `wb_do_writeback`: everything that there is to do now.
async fn do_writeback(sys: &Sys, wb: WbId) {
    loop {
        let work = {
            let world = &mut *sys.world();
            let work = world.mm.bdis[wb].work.pop_front();
            if let Some(work) = &work {
                world.trace_work(Kind::WritebackExec, wb, work);
            }
            work
        };
        let Some(work) = work else {
            break;
        };
        writeback(sys, wb, work).await;
        let world = &mut *sys.world();
        let bdi = &mut world.mm.bdis[wb];
        bdi.done += 1;
        bdi.waiters.wake_all(&mut world.sched);
    }
    let periodic = sys.world().periodic_work(wb);
    if let Some(work) = periodic {
        writeback(sys, wb, work).await;
    }
    let background = sys.world().over_bground_thresh(wb);
    if background {
        let work = Work {
            nr_pages: u64::MAX,
            sync: false,
            reason: Reason::Background,
        };
        writeback(sys, wb, work).await;
    }
}

impl Mm {
    /// `writeback_chunk_size`: pages of one turn.
    fn slice(&self, wb: WbId, work: &Work) -> u64 {
        if work.sync {
            return u64::MAX;
        }
        match self.kernel.mechanisms.writeback.writeback_slice {
            // A pass has so many pages, whatever the number of its inodes.
            WritebackSlice::Fixed => work.nr_pages,
            WritebackSlice::Bandwidth => {
                let bandwidth = self.bdis[wb].estimate.avg_write_bandwidth;
                let pages = (bandwidth / 2)
                    .min(self.limits[MemcgId::ROOT].hard_limit() / 8)
                    .min(work.nr_pages);
                (pages + MIN_WRITEBACK_PAGES) / MIN_WRITEBACK_PAGES * MIN_WRITEBACK_PAGES
            }
        }
    }
}

impl World {
    /// `wb_check_old_data_flush`
    fn periodic_work(&mut self, wb: WbId) -> Option<Work> {
        let interval = self.mm.kernel.sysctl.dirty_writeback();
        let now = self.sched.now();
        let bdi = &mut self.mm.bdis[wb];
        if interval == 0 || now < bdi.last_old_flush + interval {
            return None;
        }
        bdi.last_old_flush = now;
        // Inodes count as well: get_nr_dirty_pages.
        let inodes = bdi.b_dirty.len() + bdi.b_io.len() + bdi.b_more_io.len();
        let nr_pages = self.mm.nr_reclaimable() + inodes as u64;
        (nr_pages > 0).then_some(Work {
            nr_pages,
            sync: false,
            reason: Reason::Periodic,
        })
    }

    /// Whether a round of this work ends here.
    fn round_ends(&mut self, wb: WbId, work: &Work) -> bool {
        let automatic = matches!(work.reason, Reason::Background | Reason::Periodic);
        work.nr_pages == 0
            || (automatic && !self.mm.bdis[wb].work.is_empty())
            || (work.reason == Reason::Background && !self.over_bground_thresh(wb))
    }
}

impl Mm {
    /// What of a work is done in one pass: all, or the fixed number of pages (`nr_to_write`).
    fn pass(&self, work: &Work) -> Work {
        let fixed = self.kernel.mechanisms.writeback.writeback_slice == WritebackSlice::Fixed;
        let nr_pages = if fixed && !work.sync {
            work.nr_pages.min(MIN_WRITEBACK_PAGES)
        } else {
            work.nr_pages
        };
        Work { nr_pages, ..*work }
    }
}

/// `wb_writeback`: rounds until the work is done.
async fn writeback(sys: &Sys, wb: WbId, work: Work) {
    let mut work = work;
    sys.world().trace_work(Kind::WritebackStart, wb, &work);
    let start = sys.world().jiffies_now();
    loop {
        let ends = sys.world().round_ends(wb, &work);
        if ends {
            break;
        }
        let moved = sys.world().queue_io(wb, &work);
        let pass = sys.world().mm.pass(&work);
        let written = writeback_round(sys, wb, pass, moved).await;
        work.nr_pages = work.nr_pages.saturating_sub(written);
        let world = &mut *sys.world();
        world.round_update_bandwidth(wb, start);
        world.trace_work(Kind::WritebackWritten, wb, &work);
        let bdi = &world.mm.bdis[wb];
        if written == 0 && bdi.b_io.is_empty() && bdi.b_more_io.is_empty() {
            break;
        }
    }
}

/// `writeback_sb_inodes`: a turn for each inode of `b_io`, to which so many have just been moved, until 100 ms have
/// passed. Pages written.
async fn writeback_round(sys: &Sys, wb: WbId, work: Work, moved: u64) -> u64 {
    let start = sys.world().sched.now();
    let (mut work, mut moved) = (work, moved);
    let mut written = 0;
    loop {
        let next = sys.world().mm.next_inode(wb);
        sys.hold_list_lock(wb, std::mem::take(&mut moved)).await;
        let Some(inode) = next else {
            return written;
        };
        let slice = sys.world().mm.slice(wb, &work);
        let turn = write_single_inode(sys, wb, inode, slice, work.sync).await;
        work.nr_pages = work.nr_pages.saturating_sub(turn);
        written += turn;
        let over = sys.world().sched.now() > start + ROUND;
        if over || work.nr_pages == 0 {
            return written;
        }
    }
}

/// `writeback_single_inode` and what becomes of the inode: the pages written.
async fn write_single_inode(sys: &Sys, wb: WbId, inode: InodeId, slice: u64, sync: bool) -> u64 {
    let mut left = slice;
    writepages(sys, inode, Range::ALL, &mut left, sync).await;
    if sync {
        wait_on_writeback(sys, inode, Range::ALL).await;
        nfs_commit_and_wait(sys, inode).await;
    } else {
        let committed = sys.world().nfs_write_inode(inode);
        left = left.saturating_sub(committed);
    }
    let state_lock = sys.world().mm.kernel.mechanisms.writeback.list_lock == ListLock::Inode;
    if state_lock {
        sys.hold_list_lock(wb, 0).await;
    }
    if left < slice {
        sys.charge_kernel(sys.costs.write_inode_ns).await;
    }
    {
        let world = &mut *sys.world();
        world.trace_single_inode(inode, slice, slice - left);
        world.requeue_inode(inode, left == 0);
    }
    sys.hold_list_lock(wb, 0).await;
    slice - left
}

/// `writeback_inodes_wb`: a writer of the time before 3.2 writes so many pages itself, through the same
/// lists. Pages written.
pub(crate) async fn writeback_inodes_wb(sys: &Sys, wb: WbId, nr_pages: u64) -> u64 {
    let work = Work {
        nr_pages,
        sync: false,
        reason: Reason::Background,
    };
    let moved = sys.world().queue_io(wb, &work);
    writeback_round(sys, wb, work, moved).await
}

/// Adds an inode to the list that it is on from now on.
fn put(bdi: &mut Bdi, listed: Listed, inode: InodeId) {
    match listed {
        Listed::Clean => {}
        Listed::Dirty => bdi.b_dirty.push_back(inode),
        Listed::Io => bdi.b_io.push_back(inode),
        Listed::MoreIo => bdi.b_more_io.push_back(inode),
    }
}
