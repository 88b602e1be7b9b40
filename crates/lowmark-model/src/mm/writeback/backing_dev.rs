//! What writeback knows of a device (`struct backing_dev_info` with its `struct bdi_writeback`), and waiting
//! for congestion to pass (`mm/backing-dev.c`).
//!
//! `congestion_wait` sleeps until some async request ends on a queue that is not nearly full, on any
//! device, or until the timeout; with nothing being written that is the whole timeout.
//! `wait_iff_congested` does so only when a queue is congested *and* the zone has been marked so, if it is asked about
//! one; otherwise it merely lets others run.

use crate::ids::{DeviceId, InodeId, WbId, ZoneId};
use crate::kernel::Strictlimit;
use crate::mm::writeback::page_writeback::estimate::Estimate;
use crate::time::{Nanos, WaitQueue};
use crate::world::Sys;
use lowmark_record::{Field, Kind};
use lowmark_spec::machine::Device;
use std::collections::VecDeque;

/// Why the flusher works (`enum wb_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Background,
    TryToFreePages,
    Sync,
    Periodic,
}

impl Reason {
    /// As tracepoints print it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Background => "background",
            Reason::TryToFreePages => "try_to_free_pages",
            Reason::Sync => "sync",
            Reason::Periodic => "periodic",
        }
    }
}

/// Something for the flusher to do (`struct wb_writeback_work`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    /// Pages to write at most.
    pub(crate) nr_pages: u64,
    /// WB_SYNC_ALL: every page, and those that are being written again.
    pub(crate) sync: bool,
    pub(crate) reason: Reason,
}

/// A device, or a memory cgroup's part of it (`struct bdi_writeback`).
#[derive(Debug, Default)]
pub(crate) struct Bdi {
    /// BDI_RECLAIMABLE: dirty pages.
    pub(crate) reclaimable: u64,
    /// BDI_WRITEBACK
    pub(crate) writeback: u64,
    /// BDI_DIRTIED, BDI_WRITTEN: pages so far.
    pub(crate) dirtied: u64,
    pub(crate) written: u64,
    /// Pages that it has written, the older for less.
    pub(crate) completions: u64,
    /// The same within its memory cgroup.
    pub(crate) memcg_completions: u64,
    pub(crate) estimate: Estimate,
    /// Inodes with pages under writeback.
    pub(crate) writeback_inodes: u64,
    /// A sample of the bandwidth will be taken soon (`bw_dwork`).
    pub(crate) sample_is_coming: bool,
    /// How much of the dirty threshold it may and must have (`min_ratio`, `max_ratio`), percent.
    pub(crate) ratios: Ratios,
    /// Its share in what was written before the workload began, percent; to 3.5.
    pub(crate) written_share: u64,
    /// It is held to its share (`BDI_CAP_STRICTLIMIT`).
    pub(crate) strict: bool,
    /// Its writers are to look more often.
    pub(crate) dirty_exceeded: bool,
    /// Dirty inodes in the order in which they became so.
    pub(crate) b_dirty: VecDeque<InodeId>,
    /// To be written in this round.
    pub(crate) b_io: VecDeque<InodeId>,
    /// Have had their turn, and are not clean yet.
    pub(crate) b_more_io: VecDeque<InodeId>,
    /// Work that was asked for.
    pub(crate) work: VecDeque<Work>,
    /// Works begun and ended, so that one can be waited for.
    pub(crate) queued: u64,
    pub(crate) done: u64,
    /// Who waits for the end of a work or of an inode's turn.
    pub(crate) waiters: WaitQueue,
    /// The flusher is at work (`BDI_writeback_running`).
    pub(crate) running: bool,
    /// Where the flusher sleeps.
    pub(crate) flusher: WaitQueue,
    /// When it last looked for old inodes.
    pub(crate) last_old_flush: Nanos,
}

/// `/sys/class/bdi`: `min_ratio` and `max_ratio`, percent of the dirty threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratios {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Default for Ratios {
    fn default() -> Self {
        Ratios { min: 0, max: 100 }
    }
}

impl WbId {
    /// The root's part of a device: those of the root come first, numbered as their devices.
    pub(crate) fn of_root(device: DeviceId) -> WbId {
        WbId::from(usize::from(device))
    }
}

impl Bdi {
    pub(crate) fn new(device: &Device, strictlimit: Strictlimit) -> Bdi {
        Bdi {
            ratios: Ratios {
                min: device.min_ratio,
                max: device.max_ratio,
            },
            written_share: device.written_share,
            strict: device.strictlimit && strictlimit == Strictlimit::On,
            ..Bdi::default()
        }
    }

    /// Whether there are dirty inodes (`wb_has_dirty_io`).
    pub(crate) fn has_dirty_io(&self) -> bool {
        !(self.b_dirty.is_empty() && self.b_io.is_empty() && self.b_more_io.is_empty())
    }

    /// Dirty pages and those under writeback.
    pub(crate) fn dirty(&self) -> u64 {
        self.reclaimable + self.writeback
    }
}

/// On which of its device's lists an inode is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Listed {
    #[default]
    Clean,
    Dirty,
    Io,
    MoreIo,
}

/// What writeback knows of an inode.
#[derive(Debug, Clone, Default)]
pub(crate) struct InodeWriteback {
    /// Whose dirty pages its own are (`i_wb`): of the group that the first of them was charged to. None before
    /// there was one.
    pub(crate) wb: Option<WbId>,
    pub(crate) listed: Listed,
    /// When its first page became dirty.
    pub(crate) dirtied_when: Nanos,
    /// I_SYNC: somebody writes it.
    pub(crate) sync: bool,
    /// I_DIRTY_PAGES: a page became dirty since the last turn began.
    pub(crate) pages: bool,
    /// I_DIRTY_DATASYNC: `write_inode` has something to do.
    pub(crate) datasync: bool,
    /// Page at which writing goes on.
    pub(crate) index: u32,
}

impl Sys {
    /// `congestion_wait(BLK_RW_ASYNC, timeout)`; the timeout is in whole jiffies.
    pub(crate) async fn congestion_wait(&self, timeout: Nanos) {
        let delayed = self.sleep_on_congestion(timeout).await;
        self.trace_wait(Kind::CongestionWait, timeout, delayed);
    }

    /// `wait_iff_congested(zone, BLK_RW_ASYNC, timeout)`; as it was posted first there was no zone to it.
    pub(crate) async fn wait_iff_congested(&self, zone: Option<ZoneId>, timeout: Nanos) {
        let congested = {
            let world = self.world();
            let marked = zone.is_none_or(|zone| world.mm.zones[zone].congested);
            world.block.any_congested(false) && marked
        };
        let delayed = if congested {
            self.sleep_on_congestion(timeout).await
        } else {
            0
        };
        self.trace_wait(Kind::WaitIffCongested, timeout, delayed);
    }

    fn trace_wait(&self, kind: Kind, timeout: Nanos, delayed: Nanos) {
        self.world().trace(kind, |_| {
            vec![
                (Field::UsecTimeout, timeout / 1000),
                (Field::UsecDelayed, delayed / 1000),
            ]
        });
    }

    async fn sleep_on_congestion(&self, timeout: Nanos) -> Nanos {
        let start = {
            let world = &mut *self.world();
            let timeout = world.jiffies(timeout);
            world.block.block_for_congestion(&mut world.sched, timeout);
            world.sched.now()
        };
        self.suspend().await;
        let world = &mut *self.world();
        world.block.end_congestion_wait(&world.sched);
        world.sched.now() - start
    }
}
