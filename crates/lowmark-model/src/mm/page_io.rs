//! Pages to and from swap devices (`mm/page_io.c`), and what happens when the I/O of any page is done.

use super::page::{Pfn, flag};
use crate::device::{Completed, Dir, Io, Submitted};
use crate::kernel::TailWriteback;
use crate::time::{Sched, TaskId};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

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
    /// Begins to write a page of the swap cache that is already marked as under writeback
    /// (`swap_writepage`).
    pub(crate) fn swap_write(&mut self, pfn: Pfn) -> Io {
        self.mm.stat.pswpout += 1;
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        self.mm.nr_writeback += 1;
        self.mm.memcontrol.count_writeback(pfn);
        let (device, position) = self.mm.swap.location(self.mm.pages[pfn].private);
        Io {
            device,
            dir: Dir::Write,
            sync: false,
            position,
            pfn,
            in_folio: false,
            needs_bio: self.bios.is_on(),
        }
    }

    /// Begins to read a locked page of the swap cache (`swap_readpage`).
    pub(crate) fn swap_read(&mut self, pfn: Pfn, slot: u32) -> Io {
        self.mm.stat.pswpin += 1;
        self.mm.stat.pgpgin += PAGE_SIZE / 1024;
        let (device, position) = self.mm.swap.location(slot);
        Io {
            device,
            dir: Dir::Read,
            sync: true,
            position,
            pfn,
            in_folio: false,
            needs_bio: self.bios.is_on(),
        }
    }

    /// The pages of a finished request (`end_swap_bio_read`, `end_page_writeback` and their like). One written for reclaim
    /// is moved to where reclaim finds it next; one that the device did not take stays dirty in swap, and is lost
    /// in a file.
    pub(crate) fn end_io(&mut self, completed: &Completed, pages: &[Pfn]) {
        self.mm.fetch_frames(pages);
        self.bio_put(pages);
        match completed.dir {
            Dir::Read => {
                for &pfn in pages {
                    if let Some(head) = self.mm.pages.end_read(pfn) {
                        self.wake_page(head);
                    }
                }
            }
            Dir::Write => {
                self.mm.nr_writeback -= pages.len() as u64;
                for (number, &pfn) in pages.iter().enumerate() {
                    self.end_page_writeback(pfn, completed.failed.contains(&number));
                    self.wake_page(pfn);
                }
            }
        }
    }

    fn end_page_writeback(&mut self, pfn: Pfn, failed: bool) {
        self.mm.memcontrol.uncount_writeback(pfn);
        let page = &mut self.mm.pages[pfn];
        page.clear(flag::WRITEBACK);
        let (zone, file) = (page.zone(), !page.has(flag::SWAPBACKED));
        if failed && !file {
            // end_swap_bio_write
            page.clear(flag::RECLAIM);
            page.set(flag::DIRTY);
        }
        self.mm.stat.nr_written += 1;
        self.account_reclaim_writeback(zone, 1);
        if failed && file {
            self.mapping_set_error(pfn);
        }
        if self.mm.pages[pfn].test_and_clear(flag::RECLAIM) {
            let tail = self.kernel.mechanisms.tail_writeback;
            self.mm
                .rotate_reclaimable_page(pfn, tail == TailWriteback::Activate);
        }
        if file {
            self.end_file_writeback(pfn);
        }
    }

    /// Whoever waits for a page looks at it again.
    #[inline]
    fn wake_page(&mut self, pfn: Pfn) {
        if self.mm.pages[pfn].test_and_clear(flag::WAITERS) {
            self.page_waiters.wake(pfn, &mut self.sched);
        }
    }

    /// Submits a page for the current task (`submit_bio`). What is given back has found no memory or no free request,
    /// for which the task waits now.
    #[inline]
    pub(crate) fn try_submit(&mut self, mut io: Io) -> Option<Io> {
        if self.nfs.is_remote(io.device) {
            self.nfs_submit(io);
            return None;
        }
        if io.needs_bio {
            if !self.bio_alloc(io.pfn) {
                self.bios.wait(&mut self.sched);
                return Some(io);
            }
            io.needs_bio = false;
        }
        let submitted = self.block.submit(&mut self.sched, io);
        self.map_requests();
        match submitted {
            Submitted::Yes => None,
            Submitted::QueueFull => {
                self.block.wait_for_request(&mut self.sched, &io);
                Some(io)
            }
        }
    }
}

/// Submits a page, waiting for what that takes if need be.
#[inline]
pub(crate) async fn submit(sys: &Sys, mut io: Io) {
    loop {
        let blocked = sys.world().try_submit(io);
        match blocked {
            None => return,
            Some(waiting) => io = waiting,
        }
        sys.suspend().await;
    }
}

/// Waits until a page is neither being read nor, if `writeback`, being written (`lock_page`,
/// `wait_on_page_writeback`). Whoever waited has to look again at what the page is.
pub(crate) async fn wait_on_page(sys: &Sys, pfn: Pfn, flags: u16) {
    {
        let world = &mut *sys.world();
        if !world.mm.pages[pfn].has(flags) {
            return;
        }
        world.block.unplug_queues(&mut world.sched);
        world.mm.pages[pfn].set(flag::WAITERS);
        world.page_waiters.block(pfn, &mut world.sched);
    }
    sys.suspend().await;
}
