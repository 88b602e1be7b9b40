//! A sleeping reader-writer lock (`struct rw_semaphore`): contention costs virtual time.

use super::{Sched, WaitQueue};

/// `mmap_sem` and its like. Writers are preferred over readers that come after them.
#[derive(Debug, Default)]
pub(crate) struct RwSem {
    readers: u32,
    writer: bool,
    writers_waiting: u32,
    queue: WaitQueue,
}

impl RwSem {
    /// `down_read_trylock`; on failure the caller queues with [`wait`](Self::wait) and tries again.
    #[inline]
    pub(crate) fn try_read(&mut self) -> bool {
        let free = self.is_open();
        self.readers += u32::from(free);
        free
    }

    /// Whether a reader could have it now.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.writer && self.writers_waiting == 0
    }

    /// `down_write_trylock`.
    pub(crate) fn try_write(&mut self) -> bool {
        let free = !self.writer && self.readers == 0;
        self.writer |= free;
        free
    }

    /// Blocks the current task until the lock changes hands.
    pub(crate) fn wait(&mut self, sched: &mut Sched, as_writer: bool) {
        self.writers_waiting += u32::from(as_writer);
        self.queue.block(sched, "a lock");
    }

    /// A writer that waited is about to try again.
    pub(crate) fn retry_write(&mut self) {
        self.writers_waiting -= 1;
    }

    /// `up_read`.
    #[inline]
    pub(crate) fn release_read(&mut self, sched: &mut Sched) {
        self.readers -= 1;
        if self.readers == 0 && !self.queue.is_empty() {
            self.queue.wake_all(sched);
        }
    }

    /// `up_write`.
    pub(crate) fn release_write(&mut self, sched: &mut Sched) {
        self.writer = false;
        self.queue.wake_all(sched);
    }
}
