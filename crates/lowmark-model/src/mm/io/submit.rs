//! Handing a page to its device (`submit_bio`).

use crate::device::{Io, Submitted};
use crate::time::Nanos;
use crate::world::{Sys, World};

impl World {
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
        let waiting = match self.block.submit(&mut self.sched, io) {
            Submitted::Yes => None,
            Submitted::QueueFull => {
                self.block.wait_for_request(&mut self.sched, &io);
                Some(io)
            }
        };
        self.map_requests();
        waiting
    }

    /// The same for a task that will be charged for so much CPU time before it would be here: what goes to a device now, gets
    /// there no earlier.
    #[inline]
    pub(crate) fn try_submit_after(&mut self, work: Nanos, io: Io) -> Option<Io> {
        self.sched.owe(work);
        let waiting = self.try_submit(io);
        self.sched.no_longer_owes(work);
        waiting
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
