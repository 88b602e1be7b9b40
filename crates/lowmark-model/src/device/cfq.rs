//! The completely fair queueing elevator (`block/cfq-iosched.c`, defaults of 2.6.38 to 4.19).
//!
//! 1. Every process has a queue for its sync requests; all async ones share a queue.
//! 2. One queue is active. A sync queue keeps the disk for a slice of 100 ms and, on a disk that seeks,
//!    the disk idles up to 8 ms for the process's next request, if the process usually comes back
//!    within that time.
//! 3. The async queue is active for 40 ms or 16 requests while others wait; a sync request that arrives
//!    ends its slice at once.
//! 4. The device gets four commands of the active queue, eight early in its slice, any number if nobody
//!    else has any. Reads and writes are not mixed: async waits for sync in flight, and a sync queue
//!    for async in flight. Every 100 ms since a sync request last took more than 125 ms allow one more
//!    async command.
//! 5. Within the queue the next request is the nearest ahead of the head, or behind it at twice the
//!    distance within 16 MiB; once a slice the oldest one goes first if it has expired.
//!
//! Simplified: one priority and one group, slices are not scaled by the number of queues, queues take
//! turns, no cooperating queues.

use super::request::{Request, RequestId};
use super::waiting::{Next, Waiting};
use crate::time::{MSEC, Nanos, TaskId};
use std::collections::VecDeque;

const SLICE_SYNC: Nanos = 100 * MSEC;
const SLICE_ASYNC: Nanos = 40 * MSEC;
/// `cfq_prio_to_maxrq`: 2 · slice_async_rq · (8 − 4).
const ASYNC_REQUESTS: u32 = 16;
const SLICE_IDLE: Nanos = 8 * MSEC;
const EXPIRE_SYNC: Nanos = 125 * MSEC;
const EXPIRE_ASYNC: Nanos = 250 * MSEC;
/// `cfq_quantum` / 2: commands of one queue that the device gets without asking who else waits.
const QUANTUM: u32 = 4;
/// A sync request that took longer was delayed by async ones (`cfq_fifo_expire[1]`).
const DELAYED_SYNC: Nanos = EXPIRE_SYNC;
const BACK_SEEK_MAX: u64 = (16 << 20) / lowmark_spec::machine::PAGE_SIZE;
const BACK_SEEK_PENALTY: u64 = 2;

/// Number of a process's queue: [`ASYNC`], or one more than the task whose sync requests it holds.
type CfqQueueId = usize;
/// The queue that all async requests share.
const ASYNC: CfqQueueId = 0;

#[derive(Debug, Default)]
struct Queue {
    waiting: Waiting,
    in_rotation: bool,
    /// Mean time from the completion of a request to the arrival of the next (`ttime_mean`), as an
    /// exponential average with weight 1/8.
    think_time: Nanos,
    last_completion: Option<Nanos>,
    in_service: u32,
}

#[derive(Debug)]
struct Active {
    queue: CfqQueueId,
    /// Starts with the first completion (`slice_end == 0` until then).
    slice_end: Option<Nanos>,
    served: u32,
    checked_fifo: bool,
    idle_until: Option<Nanos>,
}

/// State of the elevator.
#[derive(Debug)]
pub(super) struct Cfq {
    idles: bool,
    /// Commands at the device: async, sync.
    in_flight: [u32; 2],
    /// `cfq_data.last_delayed_sync`
    last_delayed_sync: Option<Nanos>,
    queues: Vec<Queue>,
    rotation: VecDeque<CfqQueueId>,
    active: Option<Active>,
}

impl Cfq {
    pub(super) fn new(rotational: bool) -> Cfq {
        Cfq {
            idles: rotational,
            in_flight: [0; 2],
            last_delayed_sync: None,
            queues: Vec::new(),
            rotation: VecDeque::new(),
            active: None,
        }
    }

    fn id(sync: bool, submitter: TaskId) -> CfqQueueId {
        if sync {
            submitter.0 as usize + 1
        } else {
            ASYNC
        }
    }

    pub(super) fn waiting(&self, sync: bool, submitter: TaskId) -> Option<&Waiting> {
        self.queues
            .get(Self::id(sync, submitter))
            .map(|queue| &queue.waiting)
    }

    pub(super) fn waiting_mut(&mut self, sync: bool, submitter: TaskId) -> Option<&mut Waiting> {
        self.queues
            .get_mut(Self::id(sync, submitter))
            .map(|queue| &mut queue.waiting)
    }

    pub(super) fn insert(&mut self, id: RequestId, request: &Request, now: Nanos) {
        let queue_id = Self::id(request.sync, request.submitter);
        let expire = if request.sync {
            EXPIRE_SYNC
        } else {
            EXPIRE_ASYNC
        };
        if self.queues.len() <= queue_id {
            self.queues.resize_with(queue_id + 1, Queue::default);
        }
        let queue = &mut self.queues[queue_id];
        if queue.waiting.is_empty()
            && queue.in_service == 0
            && let Some(completion) = queue.last_completion
        {
            let thought = (now - completion).min(2 * SLICE_IDLE);
            queue.think_time = (7 * queue.think_time + thought) / 8;
        }
        queue.waiting.insert(id, request.start, now + expire);
        let active = self
            .active
            .as_mut()
            .filter(|active| active.queue == queue_id);
        if let Some(active) = active {
            active.idle_until = None;
        } else if !queue.in_rotation {
            queue.in_rotation = true;
            self.rotation.push_back(queue_id);
        }
        // cfq_should_preempt: sync against async.
        if request.sync
            && self
                .active
                .as_ref()
                .is_some_and(|active| active.queue == ASYNC)
        {
            self.expire_active();
            self.rotation.retain(|other| *other != queue_id);
            self.rotation.push_front(queue_id);
        }
    }

    pub(super) fn next(&mut self, head: u64, now: Nanos) -> Next {
        if let Some(active) = &self.active {
            let queue = &self.queues[active.queue];
            let others_wait = !self.rotation.is_empty();
            let slice_used = others_wait && active.slice_end.is_some_and(|end| now >= end);
            let requests_used =
                others_wait && active.queue == ASYNC && active.served >= ASYNC_REQUESTS;
            if slice_used || requests_used {
                self.expire_active();
            } else if queue.waiting.is_empty() {
                match active.idle_until {
                    // The device may not idle for nobody's sake.
                    Some(until) if until > now => {
                        return if others_wait {
                            Next::IdleUntil(until)
                        } else {
                            Next::Empty
                        };
                    }
                    _ if queue.in_service > 0 && active.queue != ASYNC => return Next::Empty,
                    _ => self.expire_active(),
                }
            }
        }
        if self.active.is_none() {
            let Some(queue) = self.rotation.pop_front() else {
                return Next::Empty;
            };
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.in_rotation = false;
            }
            self.active = Some(Active {
                queue,
                slice_end: None,
                served: 0,
                checked_fifo: false,
                idle_until: None,
            });
        }
        if self.may_dispatch(now) {
            self.dispatch(head, now)
        } else {
            Next::Empty
        }
    }

    /// `cfq_may_dispatch`: whether the device may have one more command of the active queue.
    fn may_dispatch(&self, now: Nanos) -> bool {
        let Some(active) = &self.active else {
            return false;
        };
        let sync = active.queue != ASYNC;
        if self.in_flight[usize::from(!sync)] > 0 {
            return false;
        }
        let at_device = self
            .queues
            .get(active.queue)
            .map_or(0, |queue| queue.in_service);
        let alone = self.rotation.is_empty();
        let early = active
            .slice_end
            .is_some_and(|end| now + SLICE_IDLE * Nanos::from(at_device) <= end);
        let limit = match (at_device < QUANTUM, alone, early) {
            (true, ..) => QUANTUM,
            (_, true, _) => u32::MAX,
            (_, _, true) => 2 * QUANTUM,
            _ => return false,
        };
        let async_limit = match self.last_delayed_sync {
            _ if sync => u32::MAX,
            None => u32::MAX,
            Some(delayed) => {
                let depth = (now - delayed) / SLICE_SYNC;
                u32::try_from(depth)
                    .unwrap_or(u32::MAX)
                    .max(u32::from(at_device == 0))
            }
        };
        at_device < limit.min(async_limit)
    }

    fn dispatch(&mut self, head: u64, now: Nanos) -> Next {
        let Some(active) = &mut self.active else {
            return Next::Empty;
        };
        let Some(queue) = self.queues.get_mut(active.queue) else {
            return Next::Empty;
        };
        let expired = if active.checked_fifo {
            None
        } else {
            queue.waiting.expired(now)
        };
        active.checked_fifo = true;
        let key = expired.or_else(|| nearest(&queue.waiting, head));
        let Some(id) = key.and_then(|key| queue.waiting.take(key)) else {
            return Next::Empty;
        };
        active.served += 1;
        active.idle_until = None;
        queue.in_service += 1;
        self.in_flight[usize::from(active.queue != ASYNC)] += 1;
        Next::Dispatch(id)
    }

    pub(super) fn completed(&mut self, request: &Request, now: Nanos) {
        let queue_id = Self::id(request.sync, request.submitter);
        self.in_flight[usize::from(request.sync)] -= 1;
        if request.sync && now - request.since > DELAYED_SYNC {
            self.last_delayed_sync = Some(now);
        }
        let Some(queue) = self.queues.get_mut(queue_id) else {
            return;
        };
        queue.in_service -= 1;
        queue.last_completion = Some(now);
        let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.queue == queue_id)
        else {
            return;
        };
        let slice = if queue_id != ASYNC {
            SLICE_SYNC
        } else {
            SLICE_ASYNC
        };
        let slice_end = *active.slice_end.get_or_insert(now + slice);
        let comes_back = queue_id != ASYNC && queue.think_time <= SLICE_IDLE;
        if queue.waiting.is_empty() && self.idles && comes_back && now < slice_end {
            active.idle_until = Some(now + SLICE_IDLE);
        }
    }

    /// The active queue goes to the end of the rotation if it still has requests.
    fn expire_active(&mut self) {
        if let Some(active) = self.active.take()
            && let Some(queue) = self.queues.get_mut(active.queue)
            && !queue.waiting.is_empty()
            && !queue.in_rotation
        {
            queue.in_rotation = true;
            self.rotation.push_back(active.queue);
        }
    }
}

/// `cfq_choose_req`: the nearest ahead, or behind at a penalty, or the first after wrapping.
fn nearest(waiting: &Waiting, head: u64) -> Option<u64> {
    let ahead = waiting.at_or_after(head);
    let behind = waiting.before(head);
    match (ahead, behind) {
        (Some(ahead), Some(behind)) => {
            let back = head - Waiting::position(behind);
            let forward = Waiting::position(ahead) - head;
            if back <= BACK_SEEK_MAX && back * BACK_SEEK_PENALTY < forward {
                Some(behind)
            } else {
                Some(ahead)
            }
        }
        (Some(ahead), None) => Some(ahead),
        (None, Some(behind)) if head - Waiting::position(behind) <= BACK_SEEK_MAX => Some(behind),
        _ => waiting.first(),
    }
}
