//! Brings records into order of time. perf writes what it finds in each CPU's buffer, round after round.
//!
//! 1. What a round brings is not earlier than what the round before the last brought
//!    (`perf_event__process_finished_round()`): at the end of a round all up to the latest time of the
//!    round before it can go.
//! 2. Of records of one time the first in the file goes first, as in `perf script`.
//! 3. Where no round ends for long, the earlier half of what is held goes.

use std::ops::ControlFlow;

/// Bytes held before some must go.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tracepoint's record of the task `tid` on the CPU `other`.
    Sample,
    /// The name of the task `tid`.
    Comm,
    /// The task `tid` begins, made by the task `other`.
    Fork,
}

/// A record that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) time: u64,
    pub(crate) tid: u32,
    pub(crate) other: u32,
    pub(crate) kind: Kind,
    start: u32,
    len: u32,
}

/// Records that wait for those that may be earlier.
pub(crate) struct Order {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Latest time so far, and that at the end of the last round.
    latest: u64,
    round_latest: u64,
    held_max: usize,
}

type Deliver<'a> = dyn FnMut(&Entry, &[u8]) -> ControlFlow<()> + 'a;

impl Order {
    pub(crate) fn new() -> Self {
        Order {
            entries: Vec::new(),
            bytes: Vec::new(),
            latest: 0,
            round_latest: 0,
            held_max: HELD_BYTES_MAX,
        }
    }

    /// Takes in a record of at most 64 KiB.
    #[inline]
    pub(crate) fn push(
        &mut self,
        (kind, time): (Kind, u64),
        (tid, other): (u32, u32),
        data: &[u8],
        deliver: &mut Deliver<'_>,
    ) -> ControlFlow<()> {
        if self.bytes.len() + self.entries.len() * size_of::<Entry>() > self.held_max {
            self.deliver_half(deliver)?;
        }
        // At most `held_max` and one record.
        let (start, len) = (self.bytes.len() as u32, data.len() as u32);
        self.bytes.extend_from_slice(data);
        self.entries.push(Entry {
            time,
            tid,
            other,
            kind,
            start,
            len,
        });
        self.latest = self.latest.max(time);
        ControlFlow::Continue(())
    }

    /// A round ends.
    pub(crate) fn end_round(&mut self, deliver: &mut Deliver<'_>) -> ControlFlow<()> {
        let limit = std::mem::replace(&mut self.round_latest, self.latest);
        self.deliver_until(limit, deliver)
    }

    /// All that waits goes.
    pub(crate) fn finish(&mut self, deliver: &mut Deliver<'_>) -> ControlFlow<()> {
        self.deliver_until(u64::MAX, deliver)
    }

    fn deliver_half(&mut self, deliver: &mut Deliver<'_>) -> ControlFlow<()> {
        self.entries.sort_by_key(|entry| entry.time);
        let middle = self
            .entries
            .get(self.entries.len() / 2)
            .map_or(u64::MAX, |entry| entry.time);
        self.deliver_until(middle, deliver)
    }

    fn deliver_until(&mut self, limit: u64, deliver: &mut Deliver<'_>) -> ControlFlow<()> {
        // A stable sort, and fast where each CPU's records are in order already.
        self.entries.sort_by_key(|entry| entry.time);
        let end = self.entries.partition_point(|entry| entry.time <= limit);
        for entry in &self.entries[..end] {
            let start = entry.start as usize;
            deliver(entry, &self.bytes[start..start + entry.len as usize])?;
        }
        let mut kept = Vec::new();
        for entry in &mut self.entries[end..] {
            let start = entry.start as usize;
            entry.start = kept.len() as u32;
            kept.extend_from_slice(&self.bytes[start..start + entry.len as usize]);
        }
        self.bytes = kept;
        self.entries.drain(..end);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers `rounds` of (time, name) and gives the names in the order delivered.
    fn order(rounds: &[&[(u64, &str)]], held_max: usize) -> String {
        let mut order = Order {
            held_max,
            ..Order::new()
        };
        let mut names = String::new();
        let mut deliver = |_: &Entry, data: &[u8]| {
            names.push_str(std::str::from_utf8(data).expect("text"));
            ControlFlow::Continue(())
        };
        for round in rounds {
            for (time, name) in *round {
                let key = (Kind::Sample, *time);
                assert!(
                    order
                        .push(key, (0, 0), name.as_bytes(), &mut deliver)
                        .is_continue()
                );
            }
            assert!(order.end_round(&mut deliver).is_continue());
        }
        assert!(order.finish(&mut deliver).is_continue());
        names
    }

    #[test]
    fn rounds_overlap_with_the_next_but_not_with_the_one_after() {
        let rounds: [&[_]; 3] = [
            &[(1, "a"), (2, "b"), (3, "d"), (2, "c"), (4, "f")],
            &[(3, "e"), (5, "h"), (6, "j"), (4, "g"), (5, "i")],
            &[(6, "k"), (8, "m"), (7, "l")],
        ];
        assert_eq!(order(&rounds, HELD_BYTES_MAX), "abcdefghijklm");
    }

    #[test]
    fn without_rounds_memory_is_bounded() {
        let round = [(4, "d"), (3, "c"), (2, "b"), (1, "a"), (5, "e"), (6, "f")];
        assert_eq!(order(&[&round], HELD_BYTES_MAX), "abcdef");
        assert_eq!(order(&[&round], 3 * size_of::<Entry>()), "bcadef");
    }
}
