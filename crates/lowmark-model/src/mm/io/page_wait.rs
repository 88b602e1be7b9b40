//! Waiting for a page that is being read or written (`folio_wait_bit`, `mm/filemap.c`).

use crate::mm::types::{Pfn, flag};
use crate::time::{Sched, TaskId};
use crate::world::{Sys, World};

/// Tasks that wait for a page, in the order in which they came (`page_waitqueue`).
#[derive(Debug, Default)]
pub(crate) struct PageWaiters {
    waiting: Vec<(Pfn, TaskId)>,
}

impl PageWaiters {
    /// Blocks the current task until the page's I/O is done.
    fn block(&mut self, pfn: Pfn, sched: &mut Sched) {
        self.waiting.push((pfn, sched.current()));
        sched.block("a page");
    }

    /// Wakes all that wait for the page.
    fn wake(&mut self, pfn: Pfn, sched: &mut Sched) {
        self.waiting.retain(|&(other, task)| {
            if other == pfn {
                sched.wake(task);
            }
            other != pfn
        });
    }
}

impl World {
    /// Wakes the tasks that wait for a page; each looks at the page again.
    #[inline]
    pub(super) fn wake_page(&mut self, pfn: Pfn) {
        if self.mm.pages[pfn].test_and_clear(flag::WAITERS) {
            self.page_waiters.wake(pfn, &mut self.sched);
        }
    }
}

/// Waits for the I/O of a page that has all of `flags`: LOCKED while it is read, WRITEBACK while it is written
/// (`lock_page`, `wait_on_page_writeback`). The task that waited has to look again at what the page is.
pub(crate) async fn wait_on_page(sys: &Sys, pfn: Pfn, flags: u16) {
    {
        let world = &mut *sys.world();
        if !world.mm.pages[pfn].has(flags) {
            return;
        }
        world.block.unplug_queues(&mut world.sched);
        world.map_requests();
        world.mm.pages[pfn].set(flag::WAITERS);
        world.page_waiters.block(pfn, &mut world.sched);
    }
    sys.suspend().await;
}

/// Waits until a page is written, and keeps it locked meanwhile: tasks that want it go on when that is over.
pub(in crate::mm) async fn wait_on_locked_page(sys: &Sys, pfn: Pfn) {
    sys.world().mm.pages[pfn].set(flag::LOCKED);
    wait_on_page(sys, pfn, flag::WRITEBACK).await;
    let world = &mut *sys.world();
    world.mm.pages[pfn].clear(flag::LOCKED);
    world.wake_page(pfn);
}
