//! Pages to and from swap devices (`mm/page_io.c`), and what happens when the I/O is done.

use super::page::{Pfn, flag};
use crate::device::{Dir, Io, Submitted};
use crate::kernel::TailWriteback;
use crate::time::WaitQueue;
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

impl World {
    /// Begins to write a page of the swap cache that is already marked as under writeback
    /// (`swap_writepage`).
    pub(crate) fn swap_write(&mut self, pfn: Pfn) -> Io {
        self.mm.stat.pswpout += 1;
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        self.mm.nr_writeback += 1;
        let (device, position) = self.mm.swap.location(self.mm.pages[pfn].private);
        Io {
            device,
            dir: Dir::Write,
            sync: false,
            position,
            pfn,
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
        }
    }

    /// The pages of a finished request (`end_swap_bio_read`, `end_swap_bio_write`).
    pub(crate) fn end_io(&mut self, dir: Dir, pages: &[Pfn]) {
        for &pfn in pages {
            match dir {
                Dir::Read => self.mm.pages[pfn].clear(flag::LOCKED),
                Dir::Write => self.end_page_writeback(pfn),
            }
            if self.mm.pages[pfn].test_and_clear(flag::WAITERS)
                && let Some(mut waiters) = self.page_waiters.remove(&pfn)
            {
                waiters.wake_all(&mut self.sched);
            }
        }
    }

    /// A page written for reclaim is moved to where reclaim finds it next.
    fn end_page_writeback(&mut self, pfn: Pfn) {
        self.mm.nr_writeback -= 1;
        let page = &mut self.mm.pages[pfn];
        page.clear(flag::WRITEBACK);
        if page.test_and_clear(flag::RECLAIM) {
            let active_too = self.kernel.mechanisms.tail_writeback == TailWriteback::Activate;
            self.mm.rotate_reclaimable_page(pfn, active_too);
        }
    }
}

/// Submits a page, waiting for a free request if need be.
#[inline]
pub(crate) async fn submit(sys: &Sys, io: Io) {
    loop {
        {
            let world = &mut *sys.world();
            match world.block.submit(&mut world.sched, io) {
                Submitted::Yes => return,
                Submitted::QueueFull => {
                    world
                        .block
                        .wait_for_request(&mut world.sched, io.device, io.sync);
                }
            }
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
        world.mm.pages[pfn].set(flag::WAITERS);
        let waiters: &mut WaitQueue = world.page_waiters.entry(pfn).or_default();
        waiters.block(&mut world.sched, "a page");
    }
    sys.suspend().await;
}
