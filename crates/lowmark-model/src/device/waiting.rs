//! Requests that wait in an elevator, by position and by age.

use super::request::RequestId;
use crate::time::Nanos;
use std::collections::VecDeque;

/// Waiting requests by position, and in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In ascending order of their keys: a queue has no more than a few hundred requests.
    by_start: Vec<(u64, RequestId)>,
    fifo: VecDeque<(Nanos, RequestId, u64)>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Adds a request that must not wait longer than until `deadline`.
    pub(super) fn insert(&mut self, id: RequestId, start: u64, deadline: Nanos) {
        let key = self.enter(id, start);
        self.fifo.push_back((deadline, id, key));
    }

    /// Enters a request by position. Two may begin at the same page; the later one then waits behind the
    /// earlier.
    fn enter(&mut self, id: RequestId, start: u64) -> u64 {
        let mut key = start * KEYS_PER_PAGE;
        let mut at = self.index_of(key);
        while self
            .by_start
            .get(at)
            .is_some_and(|&(other, _)| other == key)
        {
            key += 1;
            at += 1;
        }
        self.by_start.insert(at, (key, id));
        key
    }

    /// Index of the first request whose key is at least this one.
    #[inline]
    fn index_of(&self, key: u64) -> usize {
        self.by_start.partition_point(|&(other, _)| other < key)
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
        let at = self.index_of(position * KEYS_PER_PAGE);
        self.by_start.get(at).map(|&(key, _)| key)
    }

    /// The last request before `position`.
    pub(super) fn before(&self, position: u64) -> Option<u64> {
        let at = self.index_of(position * KEYS_PER_PAGE).checked_sub(1)?;
        self.by_start.get(at).map(|&(key, _)| key)
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<u64> {
        self.by_start.first().map(|&(key, _)| key)
    }

    /// Takes the request with this key out.
    pub(super) fn take(&mut self, key: u64) -> Option<RequestId> {
        let at = self.index_of(key);
        self.by_start.get(at).filter(|&&(other, _)| other == key)?;
        Some(self.by_start.remove(at).1)
    }

    /// Requests that might be merged with a page at `page`: the last one that begins there or before, and
    /// the first one after it.
    pub(super) fn neighbours(&self, page: u64) -> [Option<RequestId>; 2] {
        let after = self.index_of((page + 1) * KEYS_PER_PAGE);
        let id = |at: usize| self.by_start.get(at).map(|&(_, id)| id);
        [after.checked_sub(1).and_then(id), id(after)]
    }

    /// A front merge moved the start of a request.
    pub(super) fn moved(&mut self, old_start: u64, id: RequestId, new_start: u64) {
        let old = old_start * KEYS_PER_PAGE..(old_start + 1) * KEYS_PER_PAGE;
        let first = self.index_of(old.start);
        let mut there = self.by_start[first..].iter();
        let Some(offset) = there
            .position(|&(key, other)| other == id || key >= old.end)
            .filter(|&offset| self.by_start[first + offset].1 == id)
        else {
            return;
        };
        let (key, _) = self.by_start.remove(first + offset);
        let new_key = self.enter(id, new_start);
        let same = |&&mut (_, other, k): &&mut (Nanos, RequestId, u64)| other == id && k == key;
        if let Some(slot) = self.fifo.iter_mut().find(same) {
            slot.2 = new_key;
        }
    }

    fn drop_gone(&mut self) {
        while let Some(&(_, id, key)) = self.fifo.front() {
            let at = self.index_of(key);
            if self.by_start.get(at) == Some(&(key, id)) {
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
