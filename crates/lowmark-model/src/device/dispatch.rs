//! From the elevator to the device: the task that submits a request gives it to the device, or kblockd does.
//!
//! 1. In a queue of blk-mq that has an elevator, a task leaves a request that it has not plugged to kblockd
//!    (`blk_mq_run_hw_queue` with `async`). A task that goes to sleep leaves its plugged requests to kblockd, too; a task
//!    that goes on dispatches them itself.
//! 2. Without an elevator the submitter calls the driver (`blk_mq_try_issue_directly`), as it always did before blk-mq.
//! 3. Requests for which the device had no room are dispatched when one is done (`blk_mq_sched_restart`).
//!
//! Simplified: one worker for all queues, on any CPU, in place of one for each CPU. A sleeping task's plug is given to a
//! device without an elevator at once; kernels leave it to kblockd, where that takes as long.

use super::queue::BlockLayer;
use super::waiting::Next;
use crate::ids::QueueId;
use crate::time::{Nanos, Sched, TaskId};
use crate::world::{Interrupt, SysRef, World};
use std::collections::VecDeque;

/// Queues that kblockd is to run.
#[derive(Debug, Default)]
pub(super) struct Kblockd {
    worker: Option<TaskId>,
    /// The first to be run first, each once.
    queues: VecDeque<QueueId>,
    /// The one that it runs.
    running: Option<QueueId>,
}

impl BlockLayer {
    /// Whether there is work for kblockd at all.
    pub(crate) fn has_kblockd(&self) -> bool {
        self.queues.iter().any(|queue| queue.by_kblockd)
    }

    /// The worker that runs [`kblockd`].
    pub(crate) fn set_kblockd(&mut self, worker: TaskId) {
        self.kblockd.worker = Some(worker);
    }

    /// Gives the device as many commands as it and the elevator allow (`__blk_run_queue`).
    pub(crate) fn run_queue(&mut self, sched: &mut Sched, at: QueueId) {
        self.queues[at].plugged = false;
        self.dispatch(sched, at, usize::MAX);
    }

    /// The same, by kblockd if this queue is left to it (`blk_mq_run_hw_queue`).
    pub(crate) fn run_async(&mut self, sched: &mut Sched, at: QueueId) {
        // Without a worker, as where one function is tested alone, nothing is left to it.
        let Some(worker) = self.kblockd.worker.filter(|_| self.queues[at].by_kblockd) else {
            self.run_queue(sched, at);
            return;
        };
        if !self.kblockd.queues.contains(&at) {
            self.kblockd.queues.push_back(at);
            sched.wake(worker);
        }
    }

    /// A request is done: there is room for the next.
    pub(crate) fn restart_queue(&mut self, sched: &mut Sched, at: QueueId) {
        let queue = &self.queues[at];
        if !queue.by_kblockd {
            self.run_queue(sched, at);
            return;
        }
        // kblockd sees requests that were inserted during its run when it runs again.
        if queue.queued > 0 && self.kblockd.running != Some(at) {
            self.run_async(sched, at);
        }
        self.serve(sched, at);
    }

    /// Gives the device at most `most` commands.
    fn dispatch(&mut self, sched: &mut Sched, at: QueueId, most: usize) {
        let queue = &mut self.queues[at];
        let room = queue.room().min(most);
        for _ in 0..room {
            match queue.elevator.next(queue.disk.head(), sched.now()) {
                Next::Dispatch(id) => {
                    queue.queued -= 1;
                    queue.taken.push(id);
                    if queue.virtio.is_some() {
                        self.unmapped.push((at, id));
                    }
                }
                Next::IdleUntil(time) => {
                    if queue.idle_timer != Some(time) {
                        queue.idle_timer = Some(time);
                        let after = time - sched.now();
                        sched.interrupt_after(after, Interrupt::RunQueue { queue: at });
                    }
                    break;
                }
                Next::Empty => break,
            }
        }
        self.serve(sched, at);
    }

    /// The device begins as many of the commands that it has taken as it can serve at once.
    fn serve(&mut self, sched: &mut Sched, at: QueueId) {
        let queue = &mut self.queues[at];
        while queue.in_service < queue.parallelism && !queue.taken.is_empty() {
            let id = queue.begin_next();
            let request = &queue.requests[id as usize];
            let pages = request.pages.len() as u64;
            let from = request.ready.max(sched.now());
            let (time, seek) = queue.disk.serve(request.dir, request.start, pages, from);
            queue.served.busy += time;
            queue.served.seeks[request.dir as usize] += u64::from(seek);
            queue.served.requests[request.dir as usize] += 1;
            queue.served.pages[request.dir as usize] += pages;
            queue.in_service += 1;
            sched.interrupt_after(
                from + time - sched.now(),
                Interrupt::RequestDone {
                    queue: at,
                    request: id,
                },
            );
        }
    }
}

impl World {
    /// The queue that kblockd runs next, for how many requests there is room, and the CPU time that these take; the
    /// current task, which is kblockd, sleeps if there is none.
    fn next_run(&mut self) -> Option<(QueueId, usize, Nanos)> {
        let BlockLayer {
            kblockd, queues, ..
        } = &mut self.block;
        kblockd.running = kblockd.queues.pop_front();
        let Some(at) = kblockd.running else {
            self.sched.block("work for kblockd");
            return None;
        };
        let queue = &queues[at];
        let requests = queue.queued.min(queue.room());
        let dispatch_ns = self.costs.dispatch_ns * queue.times(requests);
        Some((at, requests, self.costs.kblockd_ns + dispatch_ns))
    }
}

/// kblockd's worker (`blk_mq_run_work_fn`).
pub(crate) async fn kblockd(sys: SysRef) {
    loop {
        let next = sys.world().next_run();
        let Some((queue, requests, time)) = next else {
            sys.suspend().await;
            continue;
        };
        sys.charge_kernel(time).await;
        let world = &mut *sys.world();
        world.block.dispatch(&mut world.sched, queue, requests);
        world.map_requests();
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::tests::read;
    use super::super::{Flush, Submitted};
    use super::*;
    use crate::kernel::{Kernel, Version};
    use crate::time::SwitchCosts;
    use lowmark_spec::machine::{Costs, Device, Driver, Elevator};

    /// How a task submits a page.
    #[derive(Clone, Copy, PartialEq)]
    enum By {
        Itself,
        Plug(Flush),
    }

    /// A task submits pages far apart: the commands that the disk has then, the requests that wait for kblockd, and the CPU
    /// time that the task owes.
    fn submitted(version: &str, disk: Device, by: By, pages: u64) -> (usize, usize, u64) {
        let kernel = Kernel::released(Version::known(version).expect("known"));
        let mut sched = Sched::new(1, 250, SwitchCosts::default(), kernel.mechanisms.sched);
        let reader = sched.add("reader".into(), false);
        sched.next_ready();
        let costs = Costs {
            request_ns: 20_000,
            dispatch_ns: 40_000,
            ..Costs::default()
        };
        let mut layer = BlockLayer::new(&[disk], &costs, &kernel);
        layer.set_kblockd(sched.add_worker("kblockd".into()));
        if by != By::Itself {
            layer.start_plug(&sched);
        }
        for page in 0..pages {
            assert_eq!(layer.submit(&mut sched, read(page)), Submitted::Yes);
        }
        if let By::Plug(flush) = by {
            layer.flush_plug(&mut sched, reader, flush);
        }
        let at = QueueId::from(0);
        let queue = &layer.queues[at];
        let left = if layer.kblockd.queues.contains(&at) {
            queue.queued
        } else {
            0
        };
        let commands = queue.in_service as usize + queue.taken.len();
        (commands, left, sched.free_from(reader))
    }

    fn disk(elevator: Elevator, driver: Option<Driver>) -> Device {
        Device {
            elevator,
            driver,
            ..Device::ssd("sda", 1 << 30)
        }
    }

    #[test]
    fn kblockd_dispatches_what_was_not_plugged_from_an_elevator_of_blk_mq() {
        let sleeps = By::Plug(Flush::Sleeps);
        let goes_on = By::Plug(Flush::GoesOn);
        let [deadline, noop] = [Elevator::Deadline, Elevator::Noop].map(|it| disk(it, None));
        for by in [By::Itself, sleeps, goes_on] {
            // The submitter pays for both where it gives the request to the disk.
            for (version, disk) in [("v4.20", &deadline), ("v6.1", &noop)] {
                assert_eq!(submitted(version, disk.clone(), by, 1), (1, 0, 60_000));
            }
        }
        let submitted = |by| submitted("v6.1", deadline.clone(), by, 1);
        assert_eq!(submitted(By::Itself), (0, 1, 20_000));
        assert_eq!(submitted(sleeps), (0, 1, 20_000));
        assert_eq!(submitted(goes_on), (1, 0, 60_000));
    }

    /// A virtio disk is told once of the requests of a plug, and of each that was not plugged.
    #[test]
    fn requests_that_a_device_is_told_of_at_once_take_what_one_takes() {
        let goes_on = By::Plug(Flush::GoesOn);
        for (driver, by, owed) in [
            (None, goes_on, 180_000),
            (Some(Driver::VirtioBlk), goes_on, 60_000),
            (Some(Driver::VirtioBlk), By::Itself, 180_000),
        ] {
            let disk = disk(Elevator::Noop, driver);
            assert_eq!(submitted("v6.18", disk, by, 3), (3, 0, owed));
        }
    }
}
