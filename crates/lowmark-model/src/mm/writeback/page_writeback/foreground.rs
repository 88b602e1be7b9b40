//! `balance_dirty_pages` up to 3.1: a writer above its limit writes a chunk itself, and sleeps ever longer
//! until it is below.
//!
//! 1. The limit of a task is its device's share of the threshold, less an eighth of that times the task's
//!    share of what was dirtied of late: who dirties most is held back first.
//! 2. If the device's dirty pages that nobody writes yet are above the limit, the task writes 1.5 times
//!    what it was let dirty, through the flusher's own lists, and has done its duty.
//! 3. Else it sleeps 1, 2, 4 … 100 ms, and looks again. 3.1 lets it go after 200 ms if things are not too
//!    bad (ffd1f609ab10, bb0822954aab).

use super::domains::Domains;
use super::throttle::Due;
use crate::ids::WbId;
use crate::kernel::Throttle;
use crate::mm::writeback::fs_writeback;
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};

impl Throttle {
    /// Writers above their limits write pages themselves.
    pub(super) fn writers_write(self) -> bool {
        matches!(self, Throttle::Foreground | Throttle::ForegroundBounded)
    }
}

/// What to do next.
enum Next {
    Leave,
    Write,
    Sleep,
}

/// A look.
struct Look {
    next: Next,
    /// The device, or all of memory, is over its limit.
    exceeded: bool,
    /// It may leave when it has been here for long.
    bearable: bool,
    /// No task's limit is exceeded any more.
    clear: bool,
}

pub(super) async fn balance_dirty_pages(sys: &Sys, due: Due) {
    let (chunk, bounded, start, max_pause) = {
        let world = sys.world();
        let pages = due.pages.max(world.dirtying.ratelimit_pages);
        let bounded = world.mm.kernel.mechanisms.writeback.throttle == Throttle::ForegroundBounded;
        let longest = (world.hz() / 10).max(1);
        (pages + pages / 2, bounded, world.jiffies_now(), longest)
    };
    let (mut pause, mut written) = (1, 0);
    let look = loop {
        let look = sys.world().look(due.wb, start);
        sys.charge_kernel(sys.costs.balance_dirty_ns).await;
        if matches!(look.next, Next::Leave) {
            break look;
        }
        sys.world().mm.bdis[due.wb].dirty_exceeded = true;
        sys.world().trace_start(due.wb, chunk);
        let mut left = chunk;
        if matches!(look.next, Next::Write) {
            let pages = fs_writeback::writeback_inodes_wb(sys, due.wb, chunk).await;
            left = chunk.saturating_sub(pages);
            written += pages;
            sys.world().trace_written(due.wb, written, left);
            if written >= chunk {
                break look;
            }
        }
        sleep(sys, pause).await;
        sys.world().trace_wait(due.wb, left);
        let waited = sys.world().jiffies_now() - start;
        if bounded && look.bearable && waited > max_pause * 2 {
            break look;
        }
        pause = (pause * 2).min(max_pause);
    };
    {
        let mut world = sys.world();
        let clears = if bounded { look.clear } else { !look.exceeded };
        if clears {
            world.mm.bdis[due.wb].dirty_exceeded = false;
        }
        world.start_background_if_due(due.wb);
    }
}

/// `io_schedule_timeout`, uninterruptible: a kill does not shorten it.
async fn sleep(sys: &Sys, jiffies: u64) {
    let end = {
        let world = sys.world();
        world.sched.now() + jiffies * world.jiffy()
    };
    loop {
        let left = end.saturating_sub(sys.world().sched.now());
        if left == 0 || sys.sleep(left).await {
            return;
        }
    }
}

impl World {
    fn look(&mut self, wb: WbId, start: u64) -> Look {
        let at = self.dirty_position(wb);
        let eighth = at.bdi_thresh / 8;
        let recent = self.dirtying.recent.all();
        let mine = self.dirtying.task(self.sched.current()).recent;
        let task_thresh = (at.bdi_thresh - eighth * mine / recent).max(at.bdi_thresh / 2);
        let exceeded = at.bdi_dirty > task_thresh || at.dirty > at.thresh;
        let next = if at.is_freerun() || !exceeded {
            Next::Leave
        } else if self.mm.bdis[wb].reclaimable > task_thresh {
            Next::Write
        } else {
            Next::Sleep
        };
        if !matches!(next, Next::Leave) {
            self.balance_update_bandwidth(
                wb,
                &Domains {
                    global: at,
                    memcg: None,
                },
                start,
            );
        }
        Look {
            next,
            exceeded,
            bearable: at.dirty < at.limit && at.bdi_dirty < (task_thresh + at.bdi_thresh) / 2,
            clear: at.bdi_dirty <= at.bdi_thresh - eighth && at.dirty <= at.thresh,
        }
    }
}

/// Tracepoints: each under its name of 3.1 and, up to 3.0, with the whole `struct writeback_control`.
impl World {
    fn trace_start(&mut self, wb: WbId, to_write: u64) {
        self.trace_bdi(Kind::BalanceDirtyStart, wb, |_| Vec::new());
        self.trace_control(Kind::WbcBalanceDirtyStart, wb, to_write);
    }

    fn trace_written(&mut self, wb: WbId, written: u64, to_write: u64) {
        self.trace_bdi(Kind::BalanceDirtyWritten, wb, |_| {
            vec![(Field::Written, written)]
        });
        self.trace_control(Kind::WbcBalanceDirtyWritten, wb, to_write);
    }

    fn trace_wait(&mut self, wb: WbId, to_write: u64) {
        self.trace_bdi(Kind::BalanceDirtyWait, wb, |_| Vec::new());
        self.trace_control(Kind::WbcBalanceDirtyWait, wb, to_write);
    }

    fn trace_control(&mut self, kind: Kind, wb: WbId, to_write: u64) {
        self.trace_bdi(kind, wb, |_| {
            vec![(Field::ToWrite, to_write), (Field::RangeCyclic, 1)]
        });
    }
}
