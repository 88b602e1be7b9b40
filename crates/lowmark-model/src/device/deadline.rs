//! The deadline elevator (`block/deadline-iosched.c`, the same from 3.1 to 4.19).
//!
//! 1. Go on with the batch while it has fewer than 16 requests ahead of the last one.
//! 2. Else reads, unless writes have been passed over twice.
//! 3. Within the direction begin at the oldest request if it has expired or none is ahead.

use super::request::{Dir, Request, RequestId};
use super::waiting::{Next, Waiting};
use crate::time::{MSEC, Nanos};

const READ_EXPIRE: Nanos = 500 * MSEC;
const WRITE_EXPIRE: Nanos = 5_000 * MSEC;
const WRITES_STARVED: u32 = 2;
const FIFO_BATCH: u32 = 16;

/// State of the elevator.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    reads: Waiting,
    writes: Waiting,
    /// Direction of the batch, where its last request began, requests so far.
    batch: Option<(Dir, u64, u32)>,
    starved: u32,
}

impl Deadline {
    pub(super) fn waiting(&self, dir: Dir) -> &Waiting {
        match dir {
            Dir::Read => &self.reads,
            Dir::Write => &self.writes,
        }
    }

    pub(super) fn waiting_mut(&mut self, dir: Dir) -> &mut Waiting {
        match dir {
            Dir::Read => &mut self.reads,
            Dir::Write => &mut self.writes,
        }
    }

    pub(super) fn insert(&mut self, id: RequestId, request: &Request, now: Nanos) {
        let expire = match request.dir {
            Dir::Read => READ_EXPIRE,
            Dir::Write => WRITE_EXPIRE,
        };
        self.waiting_mut(request.dir)
            .insert(id, request.start, now + expire);
    }

    pub(super) fn next(&mut self, now: Nanos) -> Next {
        if let Some((dir, position, served)) = self.batch
            && served < FIFO_BATCH
            && let Some(key) = self.waiting(dir).at_or_after(position)
        {
            return self.dispatch(dir, key, served + 1);
        }
        let (reads, writes) = (!self.reads.is_empty(), !self.writes.is_empty());
        let dir = match (reads, writes) {
            (false, false) => return Next::Empty,
            (true, false) => Dir::Read,
            (true, true) if self.starved < WRITES_STARVED => {
                self.starved += 1;
                Dir::Read
            }
            _ => {
                self.starved = 0;
                Dir::Write
            }
        };
        let position = self
            .batch
            .filter(|(last, ..)| *last == dir)
            .map(|(_, position, _)| position);
        let waiting = self.waiting_mut(dir);
        let ahead = position.and_then(|position| waiting.at_or_after(position));
        let key = waiting.expired(now).or(ahead).or_else(|| waiting.oldest());
        key.map_or(Next::Empty, |key| self.dispatch(dir, key, 1))
    }

    fn dispatch(&mut self, dir: Dir, key: u64, served: u32) -> Next {
        self.batch = Some((dir, Waiting::position(key), served));
        self.waiting_mut(dir)
            .take(key)
            .map_or(Next::Empty, Next::Dispatch)
    }
}
