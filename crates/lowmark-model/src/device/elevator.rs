//! The elevator of a queue: one of three, asked alike.

use super::cfq::Cfq;
use super::deadline::Deadline;
use super::request::{Dir, Request, RequestId};
use super::waiting::{Next, Waiting};
use crate::kernel::ExpiredRequest;
use crate::time::{Nanos, TaskId};
use lowmark_spec::machine::Device;
pub(super) use lowmark_spec::machine::Elevator as Kind;

/// An I/O scheduler.
#[derive(Debug)]
pub(super) enum Elevator {
    Noop(Waiting),
    Deadline(Deadline),
    Cfq(Cfq),
}

impl Elevator {
    /// The elevator of a kind for a device.
    pub(super) fn new(device: &Device, kind: Kind, expired_request: ExpiredRequest) -> Elevator {
        match kind {
            Kind::Noop => Elevator::Noop(Waiting::default()),
            Kind::Deadline => Elevator::Deadline(Deadline::default()),
            Kind::Cfq => Elevator::Cfq(Cfq::new(device.rotational, expired_request)),
        }
    }

    /// Requests among which a page of this kind may be merged.
    pub(super) fn candidates(&self, io: (Dir, bool, TaskId), page: u64) -> [Option<RequestId>; 2] {
        let waiting = match self {
            Elevator::Noop(waiting) => Some(waiting),
            Elevator::Deadline(deadline) => Some(deadline.waiting(io.0)),
            Elevator::Cfq(cfq) => cfq.waiting(io.1, io.2),
        };
        waiting
            .map(|waiting| waiting.neighbours(page))
            .unwrap_or_default()
    }

    /// A request's first page moved down by a front merge.
    pub(super) fn moved(&mut self, request: &Request, id: RequestId, old_start: u64) {
        let waiting = match self {
            Elevator::Noop(waiting) => Some(waiting),
            Elevator::Deadline(deadline) => Some(deadline.waiting_mut(request.dir)),
            Elevator::Cfq(cfq) => cfq.waiting_mut(request.sync, request.submitter),
        };
        if let Some(waiting) = waiting {
            waiting.moved(old_start, id, request.start);
        }
    }

    /// Adds a request.
    pub(super) fn insert(&mut self, id: RequestId, request: &Request, now: Nanos) {
        match self {
            Elevator::Noop(waiting) => waiting.insert(id, request.start, now),
            Elevator::Deadline(deadline) => deadline.insert(id, request, now),
            Elevator::Cfq(cfq) => cfq.insert(id, request, now),
        }
    }

    /// Whether a task is to have a request though there is none left (`elv_may_queue`).
    pub(super) fn must_queue(&mut self, sync: bool, submitter: TaskId) -> bool {
        match self {
            Elevator::Noop(_) | Elevator::Deadline(_) => false,
            Elevator::Cfq(cfq) => cfq.must_queue(sync, submitter),
        }
    }

    /// Chooses what to do next; a dispatched request is no longer waiting.
    pub(super) fn next(&mut self, head: u64, now: Nanos) -> Next {
        match self {
            Elevator::Noop(waiting) => match waiting.oldest().and_then(|key| waiting.take(key)) {
                Some(id) => Next::Dispatch(id),
                None => Next::Empty,
            },
            Elevator::Deadline(deadline) => deadline.next(now),
            Elevator::Cfq(cfq) => cfq.next(head, now),
        }
    }

    /// A request is done.
    pub(super) fn completed(&mut self, request: &Request, now: Nanos) {
        if let Elevator::Cfq(cfq) = self {
            cfq.completed(request, now);
        }
    }
}
