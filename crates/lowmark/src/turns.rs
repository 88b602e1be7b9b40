//! Which run is carried out next, so that runs at the same time do not take too much memory together.
//!
//! 1. Threads ask for a run, those that stand first in the list come first.
//! 2. One that does not fit into the limit beside those under way is passed over; who finds none that fits waits until
//!    a run is over.
//! 3. A run that alone is beyond the limit is carried out alone.
//! 4. Large runs, of more than half of the limit, are all carried out by one thread. An allocator that gives each thread
//!    an arena of its own keeps what a run has freed for the next one of this thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Runs that wait for a thread.
pub(crate) struct Turns {
    limit: u64,
    state: Mutex<State>,
    over: Condvar,
}

struct State {
    /// Numbers of runs and the bytes that each is to take.
    waiting: Vec<(usize, u64)>,
    /// Bytes of those that are under way.
    taken: u64,
}

/// A run under way; when this is dropped it is over.
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    /// Number of the run.
    pub(crate) run: usize,
    bytes: u64,
}

impl Turns {
    /// Runs with the bytes that each is to take, in the order in which they are to begin, and how many bytes may be
    /// taken at the same time.
    pub(crate) fn new(runs: Vec<(usize, u64)>, limit: u64) -> Turns {
        Turns {
            limit,
            state: Mutex::new(State {
                waiting: runs,
                taken: 0,
            }),
            over: Condvar::new(),
        }
    }

    /// The next run of a thread, as soon as one fits; none when all that it may carry out have begun. One thread alone
    /// carries out `large` runs.
    pub(crate) fn next(&self, large: bool) -> Option<Turn<'_>> {
        let own = |(_, bytes): &(usize, u64)| large || *bytes <= self.limit / 2;
        let mut state = self.lock();
        while state.waiting.iter().any(own) {
            let room = self.limit.saturating_sub(state.taken);
            let alone = state.taken == 0;
            let fits = |run: &(usize, u64)| own(run) && (alone || run.1 <= room);
            let at = state.waiting.iter().position(fits);
            if let Some(at) = at {
                let (run, bytes) = state.waiting.remove(at);
                // One that takes nothing would not be known to be under way.
                let bytes = bytes.max(1);
                state.taken += bytes;
                return Some(Turn {
                    turns: self,
                    run,
                    bytes,
                });
            }
            let woken = self.over.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// The state is whole between any two changes, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().taken -= self.bytes;
        self.turns.over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_beside_others_only_if_it_fits() {
        let turns = Turns::new(vec![(0, 60), (1, 50), (2, 40), (3, 500)], 100);
        let run = |turn: &Option<Turn<'_>>| turn.as_ref().map(|turn| turn.run);
        let first = turns.next(true);
        assert_eq!(run(&first), Some(0));
        let second = turns.next(true);
        assert_eq!(run(&second), Some(2), "1 does not fit beside 0");
        drop(first);
        let third = turns.next(true);
        assert_eq!(run(&third), Some(1));
        drop((second, third));
        assert!(turns.next(false).is_none(), "the last one is large");
        let last = turns.next(true);
        assert_eq!(run(&last), Some(3), "too large for all, so alone");
        assert!(turns.next(true).is_none());
    }

    #[test]
    fn who_waits_goes_on_when_a_run_is_over() {
        // Two that are large, and small ones that fit beside others only in threes.
        let bytes = |run: usize| if run % 20 == 5 { 90 } else { 30 };
        let turns = Turns::new((0..40).map(|run| (run, bytes(run))).collect(), 100);
        let under_way = Mutex::new((0, 0));
        let large_by = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (turns, under_way, large_by) = (&turns, &under_way, &large_by);
                scope.spawn(move || {
                    while let Some(turn) = turns.next(thread == 0) {
                        let bytes = bytes(turn.run);
                        if bytes == 90 {
                            large_by.lock().expect("no panic").push(thread);
                        }
                        let mut count = under_way.lock().expect("no panic");
                        count.0 += bytes;
                        count.1 = count.1.max(count.0);
                        drop(count);
                        std::thread::yield_now();
                        under_way.lock().expect("no panic").0 -= bytes;
                    }
                });
            }
        });
        let (left, most) = *under_way.lock().expect("no panic");
        assert_eq!(left, 0);
        assert_eq!(most, 90);
        assert_eq!(*large_by.lock().expect("no panic"), [0, 0]);
        assert!(turns.next(true).is_none());
    }
}
