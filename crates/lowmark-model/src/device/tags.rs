//! How many requests of a queue may be under way, and which tasks wait for one.
//!
//! - To 4.20 (`struct request_list`), but for drivers of blk-mq, requests with a waiter and those without are counted apart, and one that is done
//!   lets one sleeper go on. A task that took the last one or had to sleep may then take more than there are, half as many
//!   again at most, and those that came meanwhile wait (`ioc_batching`), but for the one for which CFQ keeps the disk idle,
//!   once a turn (`ELV_MQUEUE_MUST`).
//! - With blk-mq (`struct sbitmap_queue`; all devices from 5.0 on) both share the tags of the queue. Sleepers spread over eight wait
//!   queues and are woken for eight requests that are done, so that each finds several to take. Nothing is congested.

use crate::kernel::RequestTags;
use crate::time::{MSEC, Nanos, Sched, TaskId, WaitQueue};
use std::collections::BTreeMap;

/// Wait queues of tags (`SBQ_WAIT_QUEUES`).
const WAIT_QUEUES: usize = 8;
/// Requests for which sleepers are woken at most (`SBQ_WAKE_BATCH`).
const WAKE_BATCH: u32 = 8;

/// Requests that a task may take though the queue is full (`BLK_BATCH_REQ`), in what time (`BLK_BATCH_TIME`).
const BATCH_REQUESTS: u32 = 32;
const BATCH_TIME: Nanos = 20 * MSEC;

/// What a task may take of a queue that is full (`nr_batch_requests` and `last_waited` of `struct io_context`).
#[derive(Debug, Clone, Copy)]
struct Batch {
    left: u32,
    since: Nanos,
}

impl Batch {
    /// `ioc_batching`
    fn goes_on(self, now: Nanos) -> bool {
        self.left == BATCH_REQUESTS || (self.left > 0 && now < self.since + BATCH_TIME)
    }
}

/// The requests of a queue.
#[derive(Debug)]
pub(super) struct Tags {
    rule: RequestTags,
    /// How many there are, of each class where these are counted apart.
    nr_requests: u32,
    /// Under way: async, sync; with shared tags all are in the first.
    used: [u32; 2],
    congested: [bool; 2],
    /// The last request of a class was taken: only batches go on (`blk_rl_full`).
    full: [bool; 2],
    batches: BTreeMap<TaskId, Batch>,
    /// Tasks that have slept for a request; each has a batch from when it goes on.
    slept: Vec<TaskId>,
    waits: [WaitQueue; WAIT_QUEUES],
    /// Where the next sleeper goes.
    wait_index: usize,
    /// Where the next one is woken.
    wake_index: usize,
    /// Requests done since sleepers of each wait queue were woken; with one counter the first.
    done: [u32; WAIT_QUEUES],
}

impl Tags {
    pub(super) fn new(nr_requests: u32, rule: RequestTags) -> Tags {
        Tags {
            rule,
            nr_requests,
            used: [0; 2],
            congested: [false; 2],
            full: [false; 2],
            batches: BTreeMap::new(),
            slept: Vec::new(),
            waits: Default::default(),
            wait_index: 0,
            wake_index: 0,
            done: [0; WAIT_QUEUES],
        }
    }

    /// Requests under way.
    pub(super) fn used(&self) -> u32 {
        self.used.iter().sum()
    }

    /// Whether there are too many of a class (`bdi_congested`).
    pub(super) fn congested(&self, sync: bool) -> bool {
        self.congested[usize::from(sync)]
    }

    /// Says so of a device that counts its requests elsewhere.
    pub(super) fn set_congested(&mut self, sync: bool, congested: bool) {
        self.congested[usize::from(sync)] = congested;
    }

    /// Takes one for a task, if there is one for it. `must`: the elevator waits for that task (`ELV_MQUEUE_MUST`).
    pub(super) fn take(&mut self, sync: bool, task: TaskId, must: bool, now: Nanos) -> bool {
        let class = self.class(sync);
        if self.rule == RequestTags::Classes {
            return self.take_of_class(class, task, must, now);
        }
        let there = self.used[class] < self.nr_requests;
        self.used[class] += u32::from(there);
        there
    }

    /// `get_request` of `struct request_list`.
    fn take_of_class(&mut self, class: usize, task: TaskId, must: bool, now: Nanos) -> bool {
        if let Some(at) = self.slept.iter().position(|&slept| slept == task) {
            self.slept.swap_remove(at);
            self.start_batch(task, now);
        }
        let (nr, with_it) = (self.nr_requests, self.used[class] + 1);
        if with_it >= nr {
            if !self.full[class] {
                self.full[class] = true;
                self.start_batch(task, now);
            } else if !must && !self.has_batch(task, now) {
                return false;
            }
        }
        // blk_queue_congestion_threshold: on at 7/8 + 1.
        self.congested[class] |= with_it > nr - nr / 8;
        if self.used[class] >= 3 * nr / 2 {
            return false;
        }
        self.used[class] = with_it;
        if self.has_batch(task, now)
            && let Some(batch) = self.batches.get_mut(&task)
        {
            batch.left -= 1;
        }
        true
    }

    fn has_batch(&self, task: TaskId, now: Nanos) -> bool {
        self.batches
            .get(&task)
            .is_some_and(|batch| batch.goes_on(now))
    }

    /// `ioc_set_batching`
    fn start_batch(&mut self, task: TaskId, now: Nanos) {
        if !self.has_batch(task, now) {
            let batch = Batch {
                left: BATCH_REQUESTS,
                since: now,
            };
            self.batches.insert(task, batch);
        }
    }

    /// Gives one back. True if those who wait for the end of congestion are to be woken, which is at every
    /// completion on a queue below its threshold (`freed_request`).
    pub(super) fn give_back(&mut self, sched: &mut Sched, sync: bool) -> bool {
        let class = self.class(sync);
        self.used[class] -= 1;
        match self.rule {
            RequestTags::Classes => {
                let nr = self.nr_requests;
                let uncongested = self.used[class] < nr - nr / 8 - nr / 16 - 1;
                if uncongested {
                    self.congested[class] = false;
                }
                if self.used[class] < nr {
                    self.waits[class].wake_one(sched);
                    self.full[class] = false;
                }
                uncongested
            }
            RequestTags::QueueBatches => {
                self.wake_queue(sched);
                false
            }
            RequestTags::Batches => {
                self.wake_batch(sched);
                false
            }
        }
    }

    /// Blocks the current task until it is worth trying again.
    pub(super) fn wait(&mut self, sched: &mut Sched, sync: bool) {
        let queue = match self.rule {
            RequestTags::Classes => {
                self.slept.push(sched.current());
                self.class(sync)
            }
            RequestTags::QueueBatches | RequestTags::Batches => {
                let queue = self.wait_index;
                self.wait_index = (queue + 1) % WAIT_QUEUES;
                queue
            }
        };
        self.waits[queue].block(sched, "a free request");
    }

    fn class(&self, sync: bool) -> usize {
        match self.rule {
            RequestTags::Classes => usize::from(sync),
            RequestTags::QueueBatches | RequestTags::Batches => 0,
        }
    }

    /// Of a small queue fewer are woken (`sbq_calc_wake_batch`).
    fn batch(&self) -> u32 {
        (self.nr_requests / WAIT_QUEUES as u32).clamp(1, WAKE_BATCH)
    }

    /// One is done: the first wait queue with sleepers counts it, and has its batch when it has counted enough
    /// (`__sbq_wake_up`).
    fn wake_queue(&mut self, sched: &mut Sched) {
        let Some(queue) = self.next_with_sleepers() else {
            return;
        };
        self.wake_index = queue;
        self.done[queue] += 1;
        if self.done[queue] < self.batch() {
            return;
        }
        self.done[queue] = 0;
        for _ in 0..self.batch() {
            self.waits[queue].wake_one(sched);
        }
        self.wake_index = (queue + 1) % WAIT_QUEUES;
    }

    /// One is done: when there are enough, as many sleepers go on, from one wait queue after the other
    /// (`sbitmap_queue_wake_up`).
    fn wake_batch(&mut self, sched: &mut Sched) {
        if self.next_with_sleepers().is_none() {
            return;
        }
        self.done[0] += 1;
        let mut left = self.batch();
        if self.done[0] < left {
            return;
        }
        self.done[0] = 0;
        for _ in 0..WAIT_QUEUES {
            let queue = &mut self.waits[self.wake_index];
            self.wake_index = (self.wake_index + 1) % WAIT_QUEUES;
            while left > 0 && !queue.is_empty() {
                queue.wake_one(sched);
                left -= 1;
            }
            if left == 0 {
                return;
            }
        }
    }

    fn next_with_sleepers(&self) -> Option<usize> {
        (0..WAIT_QUEUES)
            .map(|step| (self.wake_index + step) % WAIT_QUEUES)
            .find(|&queue| !self.waits[queue].is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Version, versions};
    use crate::time::TaskState;

    /// How many sleepers have been woken after each of so many requests is done, with three tasks that found all
    /// of 256 taken by writes.
    fn woken(version: &str, sync: bool, requests: usize) -> Vec<usize> {
        let kernel = versions::at(Version::known(version).expect("known"));
        let mut sched = Sched::new(4, 250, crate::time::SwitchCosts::default(), kernel.sched);
        let mut tags = Tags::new(256, kernel.block.request_tags);
        (0..256).for_each(|_| assert!(tags.take(sync, TaskId(9), false, 0)));
        let sleepers: Vec<_> = (0..3).map(|_| sched.add("t".into(), false)).collect();
        for &sleeper in &sleepers {
            sched.next_ready().expect("it has a CPU");
            assert!(!tags.take(sync, sleeper, false, 0));
            tags.wait(&mut sched, sync);
        }
        let blocked = |sched: &Sched| {
            let states = sleepers.iter().map(|&id| sched.task(id).state);
            states.filter(|&state| state == TaskState::Blocked).count()
        };
        (0..requests)
            .map(|_| {
                tags.give_back(&mut sched, sync);
                sleepers.len() - blocked(&sched)
            })
            .collect()
    }

    #[test]
    fn sleepers_are_woken_one_by_one_and_later_for_eight_requests() {
        assert_eq!(woken("v4.17", false, 3), [1, 2, 3]);
        let each_its_batch: Vec<usize> = (1..=24).map(|done| done / 8).collect();
        assert_eq!(woken("v6.1", false, 24), each_its_batch);
        let all_at_once: Vec<usize> = (1..=9).map(|done| 3 * (done / 8)).collect();
        assert_eq!(woken("v6.18", false, 9), all_at_once);
    }

    #[test]
    fn reads_have_requests_of_their_own_up_to_4_20() {
        for (version, own) in [("v4.17", true), ("v5.0", false), ("v6.18", false)] {
            let kernel = versions::at(Version::known(version).expect("known"));
            let mut tags = Tags::new(128, kernel.block.request_tags);
            (0..128).for_each(|_| assert!(tags.take(false, TaskId(1), false, 0)));
            assert_eq!(tags.take(true, TaskId(2), false, 0), own, "{version}");
            assert_eq!(tags.congested(false), own, "{version}");
            assert!(!tags.congested(true));
        }
    }

    /// By hand, of 128: the task that takes the last one may take 31 more within 20 ms, and others wait; one that has slept
    /// has 32 as well, but no task gets the 193rd.
    #[test]
    fn who_took_the_last_or_slept_has_a_batch() {
        let kernel = versions::at(Version::known("v3.2").expect("known"));
        let mut sched = Sched::new(4, 250, crate::time::SwitchCosts::default(), kernel.sched);
        let (first, second) = (TaskId(7), sched.add("second".into(), false));
        let mut tags = Tags::new(128, kernel.block.request_tags);
        let taken = |tags: &mut Tags, task, now| {
            (0..500)
                .take_while(|_| tags.take(false, task, false, now))
                .count()
        };
        assert_eq!(taken(&mut tags, first, 0), 127 + 32);
        sched.next_ready().expect("it has a CPU");
        assert!(!tags.take(false, second, false, 0));
        tags.wait(&mut sched, false);
        for _ in 0..31 {
            tags.give_back(&mut sched, false);
        }
        assert_eq!(tags.used(), 128);
        assert!(
            !tags.take(false, first, false, BATCH_TIME),
            "its batch is over"
        );
        assert_eq!(taken(&mut tags, second, BATCH_TIME), 32);
        let third = TaskId(8);
        tags.slept.push(third);
        assert_eq!(taken(&mut tags, third, BATCH_TIME), 192 - 160);
        tags.slept.push(first);
        assert_eq!(taken(&mut tags, first, 9 * BATCH_TIME), 0);
        // Not even the one that the elevator waits for gets it; a full queue that is below that limit has one for it alone.
        let fourth = TaskId(9);
        assert!(!tags.take(false, fourth, true, 9 * BATCH_TIME));
        tags.give_back(&mut sched, false);
        assert!(!tags.take(false, fourth, false, 9 * BATCH_TIME));
        assert!(tags.take(false, fourth, true, 9 * BATCH_TIME));
    }
}
