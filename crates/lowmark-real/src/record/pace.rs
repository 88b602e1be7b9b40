//! How often a file is looked at: at every tick, unless that would cost more than it may.
//!
//! Reading a large machine's `/proc/zoneinfo` takes milliseconds, a small one's a hundredth of that. So what a reading
//! costs is measured, and a file that costs more than its share of a tick is read at every second one, or fewer.

use rustix::time::{ClockId, clock_gettime};

/// A share of the CPU time that recording may cost: 1/4096 of one CPU. What is looked at everywhere has 20 of them, less
/// than 0.5 %, whatever the machine.
const SHARE: u64 = 1 << 12;
/// Readings over which the cost is averaged.
const AVERAGED: u64 = 8;

/// When to look.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// Shares that it may cost.
    shares: u64,
    /// Average CPU time of a reading, ns.
    cost_ns: u64,
    /// Ticks until the next look.
    left: u64,
}

impl Pace {
    /// One that may cost so many shares.
    pub(super) fn new(shares: u64) -> Pace {
        Pace {
            shares,
            cost_ns: 0,
            left: 0,
        }
    }

    /// A tick: whether it is time to look.
    pub(super) fn tick(&mut self) -> bool {
        match self.left {
            0 => true,
            _ => {
                self.left -= 1;
                false
            }
        }
    }

    /// A look took so much CPU time; ticks are `tick_ns` apart.
    pub(super) fn took(&mut self, cpu_ns: u64, tick_ns: u64) {
        self.cost_ns = match self.cost_ns {
            0 => cpu_ns,
            cost => (cost * (AVERAGED - 1) + cpu_ns) / AVERAGED,
        };
        let allowed_ns = (tick_ns * self.shares / SHARE).max(1);
        self.left = self.cost_ns.div_ceil(allowed_ns).max(1) - 1;
    }
}

/// CPU time that this thread has used, ns.
pub(super) fn thread_cpu_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

/// CPU time that this process has used, ns: what getrusage(2) counts, in finer units.
pub(super) fn process_cpu_ns() -> u64 {
    ns(ClockId::ProcessCPUTime)
}

/// A clock, ns.
pub(super) fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(cost_ns: u64) -> usize {
        let mut pace = Pace::new(2);
        let ticks = 0..1000;
        let looks = ticks.filter(|_| {
            let now = pace.tick();
            if now {
                pace.took(cost_ns, 100_000_000);
            }
            now
        });
        looks.count()
    }

    #[test]
    fn what_costs_much_is_looked_at_less_often() {
        assert_eq!(looks(30_000), 1000);
        assert_eq!(looks(48_828), 1000);
        assert_eq!(looks(60_000), 500);
        assert_eq!(looks(1_000_000), 48);
    }
}
