//! So many units a second: when each may begin, the same on every backend.

const SECOND: u64 = 1_000_000_000;

/// Holds touches, or the bytes of transfers, to a rate. The schedule counts from the first unit, so a backend that
/// is late catches up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    start_ns: u64,
    rate: u64,
    done: u64,
}

impl Pace {
    /// `rate` units a second, at least one, from `start_ns` of the backend's clock on.
    pub fn new(rate: u64, start_ns: u64) -> Pace {
        Pace {
            start_ns,
            rate: rate.max(1),
            done: 0,
        }
    }

    /// When the next `units` units may begin, ns of the same clock; the largest number if that is beyond it.
    pub fn next(&mut self, units: u64) -> u64 {
        let due = u128::from(self.done) * u128::from(SECOND) / u128::from(self.rate);
        self.done = self.done.saturating_add(units);
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        self.start_ns.saturating_add(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_begin_at_their_rate() {
        let mut pace = Pace::new(3, 100);
        let due: Vec<u64> = (0..4).map(|_| pace.next(1)).collect();
        assert_eq!(due, [100, 333_333_433, 666_666_766, 1_000_000_100]);
        // Blocks of several units.
        let mut pace = Pace::new(1000, 0);
        assert_eq!(
            [pace.next(500), pace.next(500), pace.next(1)],
            [0, SECOND / 2, SECOND]
        );
    }

    #[test]
    fn a_schedule_beyond_the_clock_does_not_wrap() {
        let mut pace = Pace::new(1, 5);
        assert_eq!(
            [pace.next(u64::MAX), pace.next(u64::MAX), pace.next(1)],
            [5, u64::MAX, u64::MAX]
        );
    }
}
