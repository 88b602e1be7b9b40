//! A ticket spinlock in virtual time: who finds it taken spins on its CPU until all who came before have had it.
//!
//! 1. What is done under the lock takes effect when it is asked for, in the order of the tickets. So it is known then
//!    how long the lock is held, and when the next one gets it.
//! 2. The taker spends the time until it has the lock, and that for which it holds it, on its CPU.
//!
//! What it costs that the lock's cache line changes CPUs, the more of them wait, is left out.

use super::Nanos;

/// What `/proc/lock_stat` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LockStat {
    pub(crate) acquisitions: u64,
    /// Of these, how many found it taken.
    pub(crate) contentions: u64,
    /// Time spent spinning, and the longest.
    pub(crate) wait: Nanos,
    pub(crate) wait_max: Nanos,
    /// Time for which it was held, and the longest.
    pub(crate) hold: Nanos,
    pub(crate) hold_max: Nanos,
}

impl LockStat {
    /// Figures of a class are those of all its locks.
    pub(crate) fn add(&mut self, other: &LockStat) {
        self.acquisitions += other.acquisitions;
        self.contentions += other.contentions;
        self.wait += other.wait;
        self.wait_max = self.wait_max.max(other.wait_max);
        self.hold += other.hold;
        self.hold_max = self.hold_max.max(other.hold_max);
    }
}

/// `spinlock_t`
#[derive(Debug, Default)]
pub(crate) struct SpinLock {
    free_at: Nanos,
    pub(crate) stat: LockStat,
}

impl SpinLock {
    /// Takes the lock for so long and gives it back: the time until then, which the taker has to spend.
    pub(crate) fn hold(&mut self, now: Nanos, time: Nanos) -> Nanos {
        let wait = self.free_at.saturating_sub(now);
        self.free_at = now + wait + time;
        self.stat.add(&LockStat {
            acquisitions: 1,
            contentions: u64::from(wait > 0),
            wait,
            wait_max: wait,
            hold: time,
            hold_max: time,
        });
        wait + time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_get_the_lock_in_the_order_in_which_they_came() {
        let mut lock = SpinLock::default();
        assert_eq!(lock.hold(1000, 500), 500);
        assert_eq!(lock.hold(1100, 200), 400 + 200);
        assert_eq!(lock.hold(1100, 300), 600 + 300);
        // Free from 2000 on.
        assert_eq!(lock.hold(2000, 100), 100);
        let stat = LockStat {
            acquisitions: 4,
            contentions: 2,
            wait: 1000,
            wait_max: 600,
            hold: 1100,
            hold_max: 500,
        };
        assert_eq!(lock.stat, stat);
    }
}
