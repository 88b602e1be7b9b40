//! The completely fair queueing elevator (`block/cfq-iosched.c` of 3.10, defaults of 2.6.38 to 4.20).
//!
//! 1. Every process has a queue for its sync requests; all async ones share a queue.
//! 2. Queues are served in turns ([`service`]), for a slice of 100 ms, 40 ms the async one; with many queues for less, 16
//!    and 6.4 ms at least, so that all have had their turn after 300 ms. A slice begins when the first request is done.
//! 3. When a queue has run dry the disk waits up to 8 ms for the process's next request, but not for processes that
//!    seek or think longer ([`habits`]): these are one workload, and the disk waits for the last of them alone.
//! 4. Workloads take turns by the queue that has waited longest: sync, sync without waiting, async. A sync request that
//!    arrives ends the turn of async ones at once; 16 async requests in a row do as well. From 4.9 on a turn in which a
//!    request is found expired goes on until the queue has given the device one.
//! 5. The device gets four commands of the active queue, eight early in its slice, any number if no other queue has any. Reads
//!    and writes are not mixed: async waits for sync in flight, and a sync queue that is waited for for async in flight.
//!    Every 100 ms since a sync request last took more than 125 ms allow one more async command.
//! 6. Within the queue the next request is the nearest ahead of the head, or behind it at twice the distance within
//!    16 MiB; once a slice the oldest one goes first if it has expired.
//!
//! Simplified: one priority and one group, times to the nanosecond in place of jiffies, no cooperating queues, no
//! `REQ_META` and `REQ_NOIDLE`, and no look at whether a process has ended.

mod habits;
mod service;
#[cfg(test)]
mod tests;

use super::request::{Request, RequestId};
use super::waiting::{Next, Waiting};
use crate::kernel::ExpiredRequest;
use crate::time::{MSEC, Nanos, TaskId};
use habits::{SLICE_IDLE, Seeks, ThinkTime};
use service::{ASYNC_QUEUE, CfqQueueId, Place, SLICE_SYNC, Service, WorkloadType};

/// `cfq_prio_to_maxrq`: 2 · slice_async_rq · (8 − 4).
const ASYNC_REQUESTS: u32 = 16;
const EXPIRE_SYNC: Nanos = 125 * MSEC;
const EXPIRE_ASYNC: Nanos = 250 * MSEC;
/// `cfq_quantum` / 2: commands of one queue that the device gets without asking who else waits.
const QUANTUM: u32 = 4;
/// A sync request that took longer was delayed by async ones (`cfq_fifo_expire[1]`).
const DELAYED_SYNC: Nanos = EXPIRE_SYNC;
/// Requests that wait in a queue from which on it is no longer taken for one that seeks (`cfq_mark_cfqq_deep`).
const DEEP: usize = 4;
/// So near a request is as good as one of the queue that the disk waits for (`CFQQ_CLOSE_THR`: 8192 sectors).
const CLOSE: u64 = 8192 * 512 / lowmark_spec::machine::PAGE_SIZE;
const BACK_SEEK_MAX: u64 = (16 << 20) / lowmark_spec::machine::PAGE_SIZE;
const BACK_SEEK_PENALTY: u64 = 2;

/// The requests of a process (`struct cfq_queue`).
#[derive(Debug)]
struct Queue {
    waiting: Waiting,
    /// Where it stands in which tree, if it has or had requests in its last turn.
    placed: Option<(WorkloadType, Place)>,
    /// Time of its last slice that was left to it; below zero if it had more.
    left: i64,
    /// Commands at the device.
    in_service: u32,
    think_time: ThinkTime,
    seeks: Seeks,
    idle_window: bool,
    deep: bool,
}

impl Queue {
    fn new() -> Queue {
        Queue {
            waiting: Waiting::default(),
            placed: None,
            left: 0,
            in_service: 0,
            think_time: ThinkTime::default(),
            seeks: Seeks::default(),
            idle_window: true,
            deep: false,
        }
    }
}

/// The queue whose turn it is.
#[derive(Debug)]
struct Active {
    queue: CfqQueueId,
    /// Begin and end, from the first completion on.
    slice: Option<(Nanos, Nanos)>,
    served: u32,
    checked_fifo: bool,
    /// A request was found expired: the turn does not end before the device has one of the queue.
    must_dispatch: bool,
    /// The disk waits for its next request until then.
    idle_until: Option<Nanos>,
    /// A process that the disk waits for was given a request though there was none left.
    must_alloc: bool,
}

impl Active {
    /// `cfq_slice_used`
    fn slice_used(&self, now: Nanos) -> bool {
        self.slice.is_some_and(|(_, end)| now >= end)
    }
}

/// State of the elevator (`struct cfq_data`).
#[derive(Debug)]
pub(super) struct Cfq {
    rotational: bool,
    expired_request: ExpiredRequest,
    /// Commands at the device: async, sync.
    in_flight: [u32; 2],
    last_delayed_sync: Option<Nanos>,
    queues: Vec<Queue>,
    /// Requests that wait in all of them.
    queued: usize,
    service: Service,
    active: Option<Active>,
    /// Where the disk was when it was last asked what to do.
    last_position: u64,
}

impl Cfq {
    pub(super) fn new(rotational: bool, expired_request: ExpiredRequest) -> Cfq {
        Cfq {
            rotational,
            expired_request,
            in_flight: [0; 2],
            last_delayed_sync: None,
            queues: Vec::new(),
            queued: 0,
            service: Service::new(),
            active: None,
            last_position: 0,
        }
    }

    fn id(sync: bool, submitter: TaskId) -> CfqQueueId {
        if sync {
            submitter.0 as usize + 1
        } else {
            ASYNC_QUEUE
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

    /// `cfqq_type`
    fn workload(&self, queue: CfqQueueId) -> WorkloadType {
        match queue {
            ASYNC_QUEUE => WorkloadType::Async,
            _ if self.queues[queue].idle_window => WorkloadType::Sync,
            _ => WorkloadType::SyncNoidle,
        }
    }

    /// `cfq_insert_request`
    pub(super) fn insert(&mut self, id: RequestId, request: &Request, now: Nanos) {
        let at = Self::id(request.sync, request.submitter);
        let expire = if request.sync {
            EXPIRE_SYNC
        } else {
            EXPIRE_ASYNC
        };
        while self.queues.len() <= at {
            self.queues.push(Queue::new());
        }
        self.end_idle_wait(now);
        self.queues[at]
            .waiting
            .insert(id, request.start, now + expire);
        self.queued += 1;
        if self.queues[at].placed.is_none() {
            self.place(at, now, false);
        }
        if request.sync {
            self.learn(at, request, now);
        }
        if let Some(active) = self.active.as_mut().filter(|active| active.queue == at) {
            active.idle_until = None;
        } else if self.should_preempt(at, request, now) {
            self.preempt(at, now);
        }
    }

    /// Ends the turn of an active queue for which the disk has waited long enough, while no other queue had requests
    /// (`cfq_idle_slice_timer`).
    fn end_idle_wait(&mut self, now: Nanos) {
        let Some(active) = &self.active else {
            return;
        };
        if self.queued == 0 && active.idle_until.is_some_and(|until| until <= now) {
            self.queues[active.queue].deep = false;
            self.expire_active(now, false);
        }
    }

    /// Puts a queue into the tree of its type, out of the one where it was.
    fn place(&mut self, at: CfqQueueId, now: Nanos, front: bool) {
        let busy = self.service.busy();
        self.unplace(at);
        let of = self.workload(at);
        let place = if front {
            self.service.add_front(at, of, now)
        } else {
            let left = std::mem::take(&mut self.queues[at].left);
            self.service.add(at, of, busy, now as i64 - left)
        };
        self.queues[at].placed = Some((of, place));
    }

    fn unplace(&mut self, at: CfqQueueId) {
        if let Some((of, place)) = self.queues[at].placed.take() {
            self.service.remove(at, of, place);
        }
    }

    /// Notes how long the process of a request has thought and how far it has seeked, and decides by that whether the
    /// disk waits for the process's next request (`cfq_update_idle_window`).
    fn learn(&mut self, at: CfqQueueId, request: &Request, now: Nanos) {
        let queue = &mut self.queues[at];
        queue.think_time.arrived(now);
        if let Some((of, _)) = queue.placed {
            self.service[of].think_time.arrived(now);
        }
        queue
            .seeks
            .arrived(self.rotational, request.start, request.end());
        queue.deep |= queue.waiting.len() >= DEEP;
        if !queue.deep && queue.seeks.seeky() {
            queue.idle_window = false;
        } else if queue.think_time.mean().is_some() {
            queue.idle_window = !queue.think_time.is_big();
        }
    }

    /// `cfq_should_idle`
    fn should_idle(&self, at: CfqQueueId) -> bool {
        let queue = &self.queues[at];
        if at == ASYNC_QUEUE {
            return false;
        }
        if queue.idle_window && self.rotational {
            return true;
        }
        queue.placed.is_some_and(|(of, _)| {
            let tree = &self.service[of];
            tree.len() == 1 && !tree.think_time.is_big()
        })
    }

    /// Whether a request of another queue ends the turn of the active one (`cfq_should_preempt`).
    fn should_preempt(&self, new: CfqQueueId, request: &Request, now: Nanos) -> bool {
        let Some(active) = &self.active else {
            return false;
        };
        let dry = self.queues[active.queue].waiting.is_empty();
        let noidle = |at| self.workload(at) == WorkloadType::SyncNoidle;
        (new != ASYNC_QUEUE && active.queue == ASYNC_QUEUE && !active.must_dispatch)
            || active.slice_used(now)
            || (self.service.serving == WorkloadType::SyncNoidle
                && noidle(new)
                && self.queues[new]
                    .placed
                    .is_some_and(|(of, _)| self.service[of].len() == 2)
                && dry)
            || (dry && !self.should_idle(active.queue))
            || (active.idle_until.is_some() && request.start.abs_diff(self.last_position) <= CLOSE)
    }

    /// `cfq_preempt_queue`
    fn preempt(&mut self, new: CfqQueueId, now: Nanos) {
        if let Some(active) = &self.active
            && self.workload(active.queue) != self.workload(new)
        {
            self.service.end_workload();
        }
        self.expire_active(now, true);
        self.place(new, now, true);
    }

    /// Whether a task is to have a request though there is none left: the disk waits for that task, and it is the first
    /// such request in this turn (`cfq_may_queue`: `ELV_MQUEUE_MUST`).
    pub(super) fn must_queue(&mut self, sync: bool, submitter: TaskId) -> bool {
        let at = Self::id(sync, submitter);
        self.active
            .as_mut()
            .filter(|active| active.queue == at && active.idle_until.is_some())
            .is_some_and(|active| !std::mem::replace(&mut active.must_alloc, true))
    }

    pub(super) fn next(&mut self, head: u64, now: Nanos) -> Next {
        self.last_position = head;
        if let Some(next) = self.keep_active(now) {
            return next;
        }
        if self.active.is_none() {
            let Some(queue) = self.service.next(now) else {
                return Next::Empty;
            };
            self.active = Some(Active {
                queue,
                slice: None,
                served: 0,
                checked_fifo: false,
                must_dispatch: false,
                idle_until: None,
                must_alloc: false,
            });
        }
        let found_before = match self.expired_request {
            ExpiredRequest::Checked => None,
            ExpiredRequest::HoldsTurn => self.check_fifo(now),
        };
        if let Some(active) = self.active.as_mut().filter(|_| found_before.is_some()) {
            active.must_dispatch = true;
        }
        if !self.may_dispatch(now) {
            return Next::Empty;
        }
        let expired = found_before.or_else(|| self.check_fifo(now));
        self.dispatch(expired, head, now)
    }

    /// Key of the active queue's oldest request, if that request has expired and this is the first check of the turn
    /// (`cfq_check_fifo`).
    fn check_fifo(&mut self, now: Nanos) -> Option<u64> {
        let active = self.active.as_mut()?;
        let first = !std::mem::replace(&mut active.checked_fifo, true);
        let waiting = &mut self.queues[active.queue].waiting;
        waiting.expired(now).filter(|_| first)
    }

    /// Whether the active queue stays though it has nothing to give; it goes if its turn is over (`cfq_select_queue`).
    fn keep_active(&mut self, now: Nanos) -> Option<Next> {
        let active = self.active.as_ref()?;
        let at = active.queue;
        if self.queued == 0 {
            // The device may not idle for nobody's sake.
            return Some(Next::Empty);
        }
        let used = active.slice_used(now) && !active.must_dispatch;
        let (slice, idle_until) = (active.slice, active.idle_until);
        let queue = &mut self.queues[at];
        let dry = queue.waiting.is_empty();
        if !used {
            if !dry {
                return None;
            }
            if let Some(until) = idle_until.filter(|&until| until > now) {
                return Some(Next::IdleUntil(until));
            }
            if idle_until.is_some() {
                // cfq_idle_slice_timer: no request came while the disk waited.
                queue.deep = false;
            } else {
                // The device is much faster than a queue that seeks can use.
                let early = slice.is_none_or(|(begin, end)| end - now > now - begin);
                if queue.seeks.seeky() && queue.idle_window && early {
                    queue.deep = false;
                    queue.idle_window = false;
                }
                if self.queues[at].in_service > 0 && self.should_idle(at) {
                    return Some(Next::Empty);
                }
            }
        }
        self.expire_active(now, false);
        None
    }

    /// `cfq_may_dispatch`: whether the device may have one more command of the active queue.
    fn may_dispatch(&self, now: Nanos) -> bool {
        let Some(active) = &self.active else {
            return false;
        };
        let sync = active.queue != ASYNC_QUEUE;
        let [async_in_flight, sync_in_flight] = self.in_flight;
        if self.should_idle(active.queue) && async_in_flight > 0 {
            return false;
        }
        if !sync && sync_in_flight > 0 {
            return false;
        }
        let at_device = self.queues[active.queue].in_service;
        let alone = self.service.busy() == 1 || (sync && self.service.busy_sync() == 1);
        let early = active
            .slice
            .is_some_and(|(_, end)| now + SLICE_IDLE * Nanos::from(at_device) <= end);
        let limit = match (at_device < QUANTUM, alone, early) {
            (true, ..) => QUANTUM,
            (_, true, _) => u32::MAX,
            (_, _, true) => 2 * QUANTUM,
            _ => return false,
        };
        let async_limit = match self.last_delayed_sync {
            Some(delayed) if !sync => {
                let depth = (now - delayed) / SLICE_SYNC;
                u32::try_from(depth)
                    .unwrap_or(u32::MAX)
                    .max(u32::from(at_device == 0))
            }
            _ => u32::MAX,
        };
        at_device < limit.min(async_limit)
    }

    /// `cfq_dispatch_request`
    fn dispatch(&mut self, expired: Option<u64>, head: u64, now: Nanos) -> Next {
        let Some(active) = &mut self.active else {
            return Next::Empty;
        };
        let at = active.queue;
        let queue = &mut self.queues[at];
        let key = expired.or_else(|| nearest(&queue.waiting, head));
        let Some(id) = key.and_then(|key| queue.waiting.take(key)) else {
            return Next::Empty;
        };
        active.served += 1;
        active.must_dispatch = false;
        let enough = at == ASYNC_QUEUE && active.served >= ASYNC_REQUESTS;
        queue.in_service += 1;
        self.queued -= 1;
        self.in_flight[usize::from(at != ASYNC_QUEUE)] += 1;
        if enough && self.service.busy() > 1 {
            self.expire_active(now, false);
        }
        Next::Dispatch(id)
    }

    /// `cfq_completed_request`
    pub(super) fn completed(&mut self, request: &Request, now: Nanos) {
        let at = Self::id(request.sync, request.submitter);
        self.in_flight[usize::from(request.sync)] -= 1;
        self.queues[at].in_service -= 1;
        if request.sync {
            self.queues[at].think_time.completed(now);
            let of = match self.queues[at].placed {
                Some((of, _)) => of,
                None => self.workload(at),
            };
            self.service[of].think_time.completed(now);
            if now - request.since >= DELAYED_SYNC {
                self.last_delayed_sync = Some(now);
            }
        }
        let Some(active) = self.active.as_mut().filter(|active| active.queue == at) else {
            return;
        };
        if active.slice.is_none() {
            active.slice = Some((now, now + self.service.slice(request.sync)));
        }
        if active.slice_used(now) {
            self.expire_active(now, true);
        } else if request.sync && self.queues[at].waiting.is_empty() {
            self.arm_slice_timer(now);
        }
    }

    /// The disk waits for the next request of the active queue, if that is likely to come (`cfq_arm_slice_timer`).
    fn arm_slice_timer(&mut self, now: Nanos) {
        let Some(active) = &self.active else {
            return;
        };
        let queue = &self.queues[active.queue];
        let thinks_longer = |(_, end): (Nanos, Nanos)| {
            queue
                .think_time
                .mean()
                .is_some_and(|mean| end.saturating_sub(now) < mean)
        };
        let idles = self.rotational
            && self.should_idle(active.queue)
            && queue.in_service == 0
            && !active.slice.is_some_and(thinks_longer);
        if idles && let Some(active) = &mut self.active {
            active.idle_until = Some(now + SLICE_IDLE);
        }
    }

    /// Ends the turn of the active queue (`__cfq_slice_expired`). With `keeps_rest` the queue's next turn comes sooner by the
    /// unused rest of the slice, or later by the time that the queue used beyond the slice.
    fn expire_active(&mut self, now: Nanos, keeps_rest: bool) {
        let Some(active) = self.active.take() else {
            return;
        };
        let at = active.queue;
        if keeps_rest {
            self.queues[at].left = match active.slice {
                None => self.service.slice(at != ASYNC_QUEUE) as i64,
                Some((_, end)) => end as i64 - now as i64,
            };
        }
        if self.queues[at].waiting.is_empty() {
            self.unplace(at);
        } else {
            self.place(at, now, false);
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
