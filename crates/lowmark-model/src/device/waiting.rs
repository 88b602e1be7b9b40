//! Requests that wait in an elevator, by position and by age.

use super::request::RequestId;
use crate::time::Nanos;
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
