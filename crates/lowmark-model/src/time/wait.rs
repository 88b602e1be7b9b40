//! Wait queues: tasks that wait for the same thing, woken in the order in which they came.

use super::{Sched, TaskId};
use std::collections::VecDeque;

/// Tasks waiting for one thing.
///
/// A task adds itself, blocks and suspends. One that timed out is taken off with
/// [`remove`](Self::remove).
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    waiters: VecDeque<TaskId>,
}

impl WaitQueue {
    /// Adds the current task at the end and blocks it.
    pub(crate) fn block(&mut self, sched: &mut Sched, waiting_for: &'static str) {
        self.waiters.push_back(sched.current());
        sched.block(waiting_for);
    }

    /// As [`block`](Self::block), but no longer than `timeout`.
    pub(crate) fn block_for(
        &mut self,
        sched: &mut Sched,
        waiting_for: &'static str,
        timeout: super::Nanos,
    ) {
        self.waiters.push_back(sched.current());
        sched.block_for(waiting_for, timeout);
    }

    /// As [`block_for`](Self::block_for), but the timeout alone keeps no run going.
    pub(crate) fn block_in_background(
        &mut self,
        sched: &mut Sched,
        waiting_for: &'static str,
        timeout: super::Nanos,
    ) {
        self.waiters.push_back(sched.current());
        sched.block_in_background(waiting_for, timeout);
    }

    /// Takes a task off that went on for another reason.
    pub(crate) fn remove(&mut self, task: TaskId) {
        self.waiters.retain(|&t| t != task);
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Wakes the one that waits longest.
    pub(crate) fn wake_one(&mut self, sched: &mut Sched) {
        if let Some(task) = self.waiters.pop_front() {
            sched.wake(task);
        }
    }

    /// Wakes all.
    pub(crate) fn wake_all(&mut self, sched: &mut Sched) {
        for task in self.waiters.drain(..) {
            sched.wake(task);
        }
    }
}
