//! What every elevator does: sorted waiting requests, merging, choosing the next.

use super::cfq::Cfq;
use super::deadline::Deadline;
use super::queue::{Dir, Request, RequestId};
use crate::time::{Nanos, TaskId};
use lowmark_spec::machine::{Device, Elevator as Kind};
use std::collections::{BTreeMap, VecDeque};

/// Waiting requests by position, and in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_start: BTreeMap<u64, RequestId>,
    fifo: VecDeque<(Nanos, RequestId, u64)>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Adds a request that must not wait longer than until `deadline`.
    pub(super) fn insert(&mut self, id: RequestId, start: u64, deadline: Nanos) {
        // Two requests may begin at the same page; the later one then waits behind the earlier.
        let mut key = start * KEYS_PER_PAGE;
        while self.by_start.contains_key(&key) {
            key += 1;
        }
        self.by_start.insert(key, id);
        self.fifo.push_back((deadline, id, key));
    }

    /// The oldest request, if its deadline has passed.
    pub(super) fn expired(&mut self, now: Nanos) -> Option<u64> {
        self.drop_gone();
        self.fifo
            .front()
            .filter(|(deadline, ..)| *deadline <= now)
            .map(|&(.., key)| key)
    }

    /// The oldest request.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        self.drop_gone();
        self.fifo.front().map(|&(.., key)| key)
    }

    /// Position of the request with this key.
    pub(super) fn position(key: u64) -> u64 {
        key / KEYS_PER_PAGE
    }

    /// The first request at or after `position`.
    pub(super) fn at_or_after(&self, position: u64) -> Option<u64> {
        self.by_start
            .range(position * KEYS_PER_PAGE..)
            .next()
            .map(|(&key, _)| key)
    }

    /// The last request before `position`.
    pub(super) fn before(&self, position: u64) -> Option<u64> {
        self.by_start
            .range(..position * KEYS_PER_PAGE)
            .next_back()
            .map(|(&key, _)| key)
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<u64> {
        self.by_start.keys().next().copied()
    }

    /// Takes the request with this key out.
    pub(super) fn take(&mut self, key: u64) -> Option<RequestId> {
        self.by_start.remove(&key)
    }

    /// Requests that might be merged with a page at `page`: the last one that begins there or before, and
    /// the first one after it.
    pub(super) fn neighbours(&self, page: u64) -> [Option<RequestId>; 2] {
        let after = (page + 1) * KEYS_PER_PAGE;
        let before = self.by_start.range(..after).next_back().map(|(_, &id)| id);
        [
            before,
            self.by_start.range(after..).next().map(|(_, &id)| id),
        ]
    }

    /// A front merge moved the start of a request.
    pub(super) fn moved(&mut self, old_start: u64, id: RequestId, new_start: u64) {
        let range = old_start * KEYS_PER_PAGE..(old_start + 1) * KEYS_PER_PAGE;
        let key = self
            .by_start
            .range(range)
            .find(|(_, other)| **other == id)
            .map(|(&key, _)| key);
        if let Some(key) = key {
            self.by_start.remove(&key);
            let entry = self
                .fifo
                .iter()
                .find(|&&(_, other, k)| other == id && k == key)
                .copied();
            let deadline = entry.map_or(0, |(deadline, ..)| deadline);
            let mut new_key = new_start * KEYS_PER_PAGE;
            while self.by_start.contains_key(&new_key) {
                new_key += 1;
            }
            self.by_start.insert(new_key, id);
            for slot in self
                .fifo
                .iter_mut()
                .filter(|(_, other, k)| *other == id && *k == key)
            {
                *slot = (deadline, id, new_key);
            }
        }
    }

    fn drop_gone(&mut self) {
        while let Some(&(_, id, key)) = self.fifo.front() {
            if self.by_start.get(&key) == Some(&id) {
                return;
            }
            self.fifo.pop_front();
        }
    }
}

/// Room for requests that begin at the same page.
const KEYS_PER_PAGE: u64 = 256;

/// What the device shall do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Serve this request.
    Dispatch(RequestId),
    /// Nothing before this time, unless a request arrives.
    IdleUntil(Nanos),
    /// Nothing to do.
    Empty,
}

/// An I/O scheduler.
#[derive(Debug)]
pub(super) enum Elevator {
    Noop(Waiting),
    Deadline(Deadline),
    Cfq(Cfq),
}

impl Elevator {
    pub(super) fn new(device: &Device) -> Elevator {
        match device.elevator {
            Kind::Noop => Elevator::Noop(Waiting::default()),
            Kind::Deadline => Elevator::Deadline(Deadline::default()),
            Kind::Cfq => Elevator::Cfq(Cfq::new(device.rotational)),
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
