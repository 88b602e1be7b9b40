//! Shares out the time of waits among what needed the room.
//!
//! 1. What the waiting task asked for decides where it can: a zeroed page is new, a page to be written is new, a page
//!    to be read is a file's.
//! 2. Where that leaves a choice (back or new, of any kind), time is shared out in proportion to the pages that came in
//!    in the same slice of time, or over the whole capture where there is no series.
//! 3. Memory that the kernel asks for is on nobody's account: its time goes to all in proportion to what came in; if
//!    that is not known, to what the others' time went to.
//! 4. What no counter decides is *unclear*, by what it could be.

use super::inflow::Inflow;
use super::sink::Moment;
use super::wait::{Limit, Request};

/// What needed room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    AnonBack,
    AnonNew,
    FileBack,
    FileNew,
}

/// Time by what needed room, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Split {
    /// By [`Demand`].
    pub(super) known_ns: [u64; 4],
    /// Anonymous memory, back or new.
    pub(super) anon_ns: u64,
    /// Files, back or new.
    pub(super) file_ns: u64,
    /// Anything.
    pub(super) any_ns: u64,
}

/// Limits under which tasks wait for room: all but those of writers.
pub(super) const ROOM: [Limit; 4] = [
    Limit::Global,
    Limit::Memcg,
    Limit::Node,
    Limit::Fragmentation,
];

/// `time` in proportion to weights; what rounding leaves goes to the largest. None if all are 0.
pub(super) fn share(time: u64, weights: [u64; 4]) -> Option<[u64; 4]> {
    let all: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    if all == 0 {
        return None;
    }
    let part = |weight: u64| (u128::from(time) * u128::from(weight) / all) as u64;
    let mut parts = weights.map(part);
    let largest = (0..4).max_by_key(|at| (weights[*at], 4 - at)).unwrap_or(0);
    let given = parts.iter().sum::<u64>();
    parts[largest] += time - given;
    Some(parts)
}

impl Split {
    /// All of it, ns.
    pub(super) fn total_ns(&self) -> u64 {
        let unclear = [self.anon_ns, self.file_ns, self.any_ns];
        let parts = self.known_ns.iter().chain(&unclear);
        parts.fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Adds the time of a moment with what came in then. `files_told` says whether requests for files are told apart from those for
    /// anonymous memory: then a user's page is anonymous. Gives back what the kernel asked for while nothing is known to have
    /// come in, ns.
    pub(super) fn add(
        &mut self,
        moment: &Moment,
        inflow: Option<&Inflow>,
        files_told: bool,
    ) -> u64 {
        let parts = inflow.map_or([0; 4], Inflow::parts);
        let only = |wanted: [bool; 4]| {
            let mut weights = parts;
            for (weight, is_wanted) in weights.iter_mut().zip(wanted) {
                *weight *= u64::from(is_wanted);
            }
            weights
        };
        let anon = only([true, true, false, false]);
        let file = only([false, false, true, true]);
        let mut left = 0u64;
        for limit in ROOM {
            let time = |request: Request| moment.time_ns[limit as usize][request as usize];
            let new = time(Request::Zeroed);
            self.known(Demand::AnonNew, new);
            if limit != Limit::Fragmentation {
                self.known(Demand::AnonNew, time(Request::Huge));
            }
            self.known(Demand::FileNew, time(Request::FileWrite));
            let read = time(Request::FileRead);
            if !self.shared(read, file) {
                self.file_ns = self.file_ns.saturating_add(read);
            }
            let user = time(Request::User);
            let shared = if files_told {
                self.shared(user, anon)
            } else {
                false
            };
            if !shared && !self.shared(user, parts) {
                let unclear = if files_told || limit == Limit::Global {
                    &mut self.anon_ns
                } else {
                    &mut self.any_ns
                };
                *unclear = unclear.saturating_add(user);
            }
            let kernel = time(Request::Kernel).saturating_add(time(Request::Unknown));
            if !self.shared(kernel, parts) {
                left = left.saturating_add(kernel);
            }
        }
        left
    }

    fn known(&mut self, demand: Demand, time: u64) {
        let sum = &mut self.known_ns[demand as usize];
        *sum = sum.saturating_add(time);
    }

    /// Shares time out; whether there was anything to go by.
    fn shared(&mut self, time: u64, weights: [u64; 4]) -> bool {
        let Some(parts) = share(time, weights) else {
            return time == 0;
        };
        for (sum, part) in self.known_ns.iter_mut().zip(parts) {
            *sum = sum.saturating_add(part);
        }
        true
    }

    /// Shares out what the kernel asked for, by what the others' time went to.
    pub(super) fn add_left(&mut self, left: u64) {
        if !self.shared(left, self.known_ns) {
            self.any_ns = self.any_ns.saturating_add(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(limit: Limit, request: Request, time: u64) -> Moment {
        let mut moment = Moment::default();
        moment.time_ns[limit as usize][request as usize] = time;
        moment
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(share(100, [1, 1, 1, 0]), Some([34, 33, 33, 0]));
        assert_eq!(share(7, [0, 0, 0, 3]), Some([0, 0, 0, 7]));
        assert_eq!(share(7, [0; 4]), None);
        let parts = share(u64::MAX, [u64::MAX; 4]).expect("weights");
        assert_eq!(
            parts.iter().map(|p| u128::from(*p)).sum::<u128>(),
            u128::from(u64::MAX)
        );
    }

    #[test]
    fn requests_decide_and_then_what_came_in() {
        let inflow = Inflow {
            anon_back: 3,
            anon_new: 1,
            file_back: 4,
            ..Inflow::default()
        };
        let split = |request, files_told| {
            let mut split = Split::default();
            let left = split.add(
                &moment(Limit::Global, request, 80),
                Some(&inflow),
                files_told,
            );
            assert_eq!(left, 0);
            split.known_ns
        };
        assert_eq!(split(Request::Zeroed, true), [0, 80, 0, 0]);
        assert_eq!(split(Request::User, true), [60, 20, 0, 0]);
        assert_eq!(split(Request::User, false), [30, 10, 40, 0]);
        assert_eq!(split(Request::FileRead, true), [0, 0, 80, 0]);
        assert_eq!(split(Request::Kernel, true), [30, 10, 40, 0]);
    }

    #[test]
    fn without_counters_it_is_unclear() {
        let mut split = Split::default();
        let left = split.add(&moment(Limit::Memcg, Request::User, 5), None, true);
        assert_eq!((left, split.anon_ns), (0, 5));
        let left = split.add(&moment(Limit::Global, Request::Kernel, 6), None, true);
        split.add_left(left);
        assert_eq!((split.any_ns, split.total_ns()), (6, 11));
    }
}
