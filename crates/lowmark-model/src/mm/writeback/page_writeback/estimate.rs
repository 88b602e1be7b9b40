//! What is known of a device: how fast it writes, and at which rate each of its writers may dirty pages
//! (3.1 and 3.2). All integer, as in the kernel; rates are pages a second, times jiffies.
//!
//! 1. Every 200 ms the pages written since are a sample of the write bandwidth; three seconds of samples
//!    are its value, and a second average follows that where two samples agree.
//! 2. The *base rate* is what one of N writers may do: the rate at which pages became dirty, times
//!    bandwidth over that rate. It moves only towards what three witnesses agree on, and never far.

use super::position::{Position, RATELIMIT_CALC_SHIFT};
use crate::kernel::BalancedRate;

/// Bandwidth that a device is given before it is known: 100 MiB/s.
const INIT_BW: u64 = 100 << 8;

/// Estimates of a device (`struct backing_dev_info`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// When they were made, jiffies (`bw_time_stamp`).
    pub(super) stamp: u64,
    /// `dirtied_stamp`, `written_stamp`
    pub(super) dirtied: u64,
    pub(super) written: u64,
    /// Pages written a second, as a mean of three seconds.
    pub write_bandwidth: u64,
    /// The same, smoothed once more.
    pub avg_write_bandwidth: u64,
    /// The base rate.
    pub dirty_ratelimit: u64,
    /// What the last step found it should be.
    pub balanced_dirty_ratelimit: u64,
}

impl Default for Estimate {
    fn default() -> Self {
        Estimate {
            stamp: 0,
            dirtied: 0,
            written: 0,
            write_bandwidth: INIT_BW,
            avg_write_bandwidth: INIT_BW,
            dirty_ratelimit: INIT_BW,
            balanced_dirty_ratelimit: INIT_BW,
        }
    }
}

/// What a step of the base rate followed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Pages that became dirty a second, since the last step.
    pub dirty_rate: u64,
    /// What a task was let do.
    pub task_ratelimit: u64,
}

impl Estimate {
    /// A device of which so much is known: its bandwidth, the base rate, and what that should be.
    pub fn of(avg_write_bandwidth: u64, dirty_ratelimit: u64, balanced: u64) -> Estimate {
        Estimate {
            avg_write_bandwidth,
            dirty_ratelimit,
            balanced_dirty_ratelimit: balanced,
            ..Estimate::default()
        }
    }

    /// `bdi_update_write_bandwidth`: a sample of `elapsed` jiffies, `written` pages so far.
    pub(super) fn update_write_bandwidth(&mut self, elapsed: u64, written: u64, hz: u64) {
        let period = (3 * hz).next_power_of_two();
        let mut bw = (written - self.written) * hz;
        let old = self.write_bandwidth;
        let mut avg = self.avg_write_bandwidth;
        if elapsed > period {
            bw /= elapsed;
            avg = bw;
        } else {
            bw = (bw + old * (period - elapsed)) >> period.ilog2();
            if avg > old && old >= bw {
                avg -= (avg - old) >> 3;
            } else if avg < old && old <= bw {
                avg += (old - avg) >> 3;
            }
        }
        self.write_bandwidth = bw;
        // At least a page a second (95a46c65e3c0, 4.2); nothing came of less before.
        self.avg_write_bandwidth = avg.max(1);
    }

    /// `bdi_update_dirty_ratelimit` after `elapsed` jiffies, `dirtied` pages so far; the writers were held
    /// back by `ratio`.
    pub(super) fn update_dirty_ratelimit(
        &mut self,
        at: &Position,
        ratio: u64,
        dirtied: u64,
        elapsed: u64,
        hz: u64,
        rule: BalancedRate,
    ) -> Step {
        let step = Step {
            dirty_rate: (dirtied - self.dirtied) * hz / elapsed.max(1),
            task_ratelimit: ((self.dirty_ratelimit * ratio) >> RATELIMIT_CALC_SHIFT) + 1,
        };
        self.follow(at, &step, rule);
        step
    }

    /// Moves the base rate to where a step points.
    pub fn follow(&mut self, at: &Position, step: &Step, rule: BalancedRate) {
        let (write_bw, rate) = (self.avg_write_bandwidth, self.dirty_ratelimit);
        let task_ratelimit = step.task_ratelimit;
        let mut balanced = task_ratelimit * write_bw / (step.dirty_rate | 1);
        if rule == BalancedRate::BelowBandwidth {
            balanced = balanced.min(write_bw);
        }
        let witnesses = [self.balanced_dirty_ratelimit, balanced, task_ratelimit];
        let mut by = if at.is_below_setpoint() {
            let least = witnesses.into_iter().min().unwrap_or(0);
            least.saturating_sub(rate)
        } else {
            let most = witnesses.into_iter().max().unwrap_or(0);
            rate.saturating_sub(most)
        };
        // The smaller the step, the less of it is trusted.
        let shift = rate / (2 * by + 1);
        by = by
            .checked_shr(shift.min(64) as u32)
            .unwrap_or(0)
            .div_ceil(8);
        let moved = if rate < balanced {
            rate + by
        } else {
            rate.saturating_sub(by)
        };
        self.dirty_ratelimit = moved.max(1);
        self.balanced_dirty_ratelimit = balanced;
    }
}

#[cfg(test)]
mod tests {
    use super::super::position::tests::{of, position};
    use super::*;

    /// elapsed, pages, bandwidth and average before; both after. HZ = 1000.
    #[test]
    fn write_bandwidth_follows_its_samples() {
        let vectors = [
            ((200, 4096, 25600, 25600), (25350, 25600)),
            ((200, 4096, 25600, 26000), (25350, 25950)),
            ((200, 4096, 20480, 18000), (20480, 18310)),
            ((200, 10000, 20480, 18000), (21921, 18310)),
            ((5000, 1000, 20480, 18000), (200, 200)),
        ];
        for ((elapsed, pages, old, avg), expected) in vectors {
            let mut estimate = Estimate {
                write_bandwidth: old,
                avg_write_bandwidth: avg,
                ..Estimate::default()
            };
            estimate.update_write_bandwidth(elapsed, pages, 1000);
            let found = (estimate.write_bandwidth, estimate.avg_write_bandwidth);
            assert_eq!(found, expected, "{elapsed} {pages} {old} {avg}");
        }
    }

    #[test]
    fn the_base_rate_moves_where_all_witnesses_point() {
        // Rate, balanced before, dirty pages, rate of dirtying; position ratio, rate of the task,
        // balanced and base rate after.
        let vectors = [
            ((25600, 22000, 150_000, 30000), (710, 17751, 12117, 25543)),
            ((25600, 25600, 145_000, 20480), (926, 23151, 23149, 25600)),
        ];
        for ((rate, before, dirty, dirty_rate), (ratio, task, balanced, after)) in vectors {
            let mut estimate = Estimate {
                avg_write_bandwidth: 20480,
                dirty_ratelimit: rate,
                balanced_dirty_ratelimit: before,
                ..Estimate::default()
            };
            let at = position(dirty);
            assert_eq!(at.ratio(20480, &of("v3.2")), ratio);
            let pages = dirty_rate / 5;
            let step =
                estimate.update_dirty_ratelimit(&at, ratio, pages, 200, 1000, BalancedRate::Any);
            assert_eq!(step.dirty_rate, dirty_rate);
            assert_eq!(step.task_ratelimit, task);
            assert_eq!(estimate.balanced_dirty_ratelimit, balanced);
            assert_eq!(estimate.dirty_ratelimit, after);
        }
    }
}
