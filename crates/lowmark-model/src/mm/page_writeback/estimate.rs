//! What is known of a device: how fast it writes, and at which rate each of its writers may dirty pages
//! (3.1 and 3.2). All integer, as in the kernel; rates are pages a second, times jiffies.
//!
//! 1. Every 200 ms the pages written since are a sample of the write bandwidth; three seconds of samples
//!    are its value, and a second average follows that where two samples agree.
//! 2. The *position ratio* says whether there are too many dirty pages (below 1) or too few: a cubic of
//!    the distance from the set point for all of memory, times a line for the device.
//! 3. The *base rate* is what one of N writers may do: the rate at which pages became dirty, times
//!    bandwidth over that rate. It moves only towards what three witnesses agree on, and never far.

use crate::kernel::BalancedRate;

/// Fraction bits of the position ratio: 1024 is 1.
pub(super) const RATELIMIT_CALC_SHIFT: u32 = 10;
/// Bandwidth that a device is given before it is known: 100 MiB/s.
const INIT_BW: u64 = 100 << 8;

/// Estimates of a device (`struct backing_dev_info`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// When they were made, jiffies (`bw_time_stamp`).
    pub(super) stamp: u64,
    /// `dirtied_stamp`, `written_stamp`
    pub(super) dirtied: u64,
    pub(super) written: u64,
    /// `write_bandwidth`, `avg_write_bandwidth`
    pub(super) write_bandwidth: u64,
    pub(crate) avg_write_bandwidth: u64,
    /// The base rate, and what the last step found it should be.
    pub(crate) dirty_ratelimit: u64,
    pub(super) balanced_dirty_ratelimit: u64,
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

/// Dirty pages and their limits, as a throttled writer sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Dirty threshold.
    pub(crate) thresh: u64,
    /// Background threshold.
    pub(crate) bg_thresh: u64,
    /// Dirty pages and those under writeback.
    pub(crate) dirty: u64,
    /// The threshold smoothed, not below it (`hard_dirty_limit`).
    pub(crate) limit: u64,
    /// The device's share of the threshold.
    pub(crate) bdi_thresh: u64,
    /// The device's part of `dirty`.
    pub(crate) bdi_dirty: u64,
}

impl Position {
    /// Up to here nobody is throttled (`dirty_freerun_ceiling`).
    pub(crate) fn freerun(&self) -> u64 {
        (self.thresh + self.bg_thresh) / 2
    }

    /// Where dirty pages are held.
    pub(super) fn setpoint(&self) -> u64 {
        (self.freerun() + self.limit) / 2
    }

    /// `bdi_position_ratio` for a device that writes `write_bw`; `reserve` is what 8927f66c4ede (3.2)
    /// leaves to a device that has been idle.
    pub(super) fn ratio(&self, write_bw: u64, reserve: bool) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let setpoint = self.setpoint();
        let x = ((setpoint as i64 - self.dirty as i64) << RATELIMIT_CALC_SHIFT)
            / (self.limit as i64 - setpoint as i64 + 1);
        let square = (x * x) >> RATELIMIT_CALC_SHIFT;
        let cube = (square * x) >> RATELIMIT_CALC_SHIFT;
        let mut ratio = (cube + (1 << RATELIMIT_CALC_SHIFT)).max(0) as u64;
        let mut bdi_thresh = self.bdi_thresh.min(self.thresh);
        if reserve {
            bdi_thresh = bdi_thresh.max((self.limit - self.dirty) / 8);
        }
        let x = (bdi_thresh << 16) / (self.thresh + 1);
        let bdi_setpoint = (setpoint * x) >> 16;
        let room = self.thresh - bdi_thresh.min(self.thresh);
        let span = ((room + 8 * write_bw) * x) >> 16;
        let intercept = bdi_setpoint + span;
        if self.bdi_dirty < intercept.saturating_sub(span / 4) {
            ratio = ratio * (intercept - self.bdi_dirty) / (intercept - bdi_setpoint + 1);
        } else {
            ratio /= 4;
        }
        // Where a device has less than half its share, its writers catch up.
        let half = bdi_thresh / 2;
        if reserve && self.bdi_dirty < half {
            ratio = match self.bdi_dirty > half / 8 {
                true => ratio * half / self.bdi_dirty,
                false => ratio * 8,
            };
        }
        ratio
    }

    /// The device's part of the set point.
    pub(super) fn bdi_setpoint(&self) -> u64 {
        self.setpoint() * self.bdi_thresh / (self.thresh + 1)
    }
}

/// A step of the base rate, for the tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) dirty_rate: u64,
    pub(super) task_ratelimit: u64,
}

impl Estimate {
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
        self.avg_write_bandwidth = avg;
    }

    /// `bdi_update_dirty_ratelimit` after `elapsed` jiffies, `dirtied` pages so far.
    pub(super) fn update_dirty_ratelimit(
        &mut self,
        at: &Position,
        ratio: u64,
        dirtied: u64,
        elapsed: u64,
        hz: u64,
        rule: BalancedRate,
    ) -> Step {
        let write_bw = self.avg_write_bandwidth;
        let rate = self.dirty_ratelimit;
        let dirty_rate = (dirtied - self.dirtied) * hz / elapsed.max(1);
        let task_ratelimit = ((rate * ratio) >> RATELIMIT_CALC_SHIFT) + 1;
        let mut balanced = task_ratelimit * write_bw / (dirty_rate | 1);
        if rule == BalancedRate::BelowBandwidth {
            balanced = balanced.min(write_bw);
        }
        let witnesses = [self.balanced_dirty_ratelimit, balanced, task_ratelimit];
        let mut step = 0;
        if at.dirty < at.setpoint() {
            let least = witnesses.into_iter().min().unwrap_or(0);
            step = least.saturating_sub(rate);
        } else {
            let most = witnesses.into_iter().max().unwrap_or(0);
            step += rate.saturating_sub(most);
        }
        // The smaller the step, the less of it is trusted.
        let shift = rate / (2 * step + 1);
        step = step
            .checked_shr(shift.min(64) as u32)
            .unwrap_or(0)
            .div_ceil(8);
        let moved = match rate < balanced {
            true => rate + step,
            false => rate.saturating_sub(step),
        };
        self.dirty_ratelimit = moved.max(1);
        self.balanced_dirty_ratelimit = balanced;
        Step {
            dirty_rate,
            task_ratelimit,
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// 3 GiB dirtyable, 20 and 10 %, one device.
    fn position(dirty: u64) -> Position {
        Position {
            thresh: 157_286,
            bg_thresh: 78_643,
            dirty,
            limit: 157_286,
            bdi_thresh: 157_286,
            bdi_dirty: dirty,
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
            assert_eq!(at.ratio(20480, true), ratio);
            let pages = dirty_rate / 5;
            let step =
                estimate.update_dirty_ratelimit(&at, ratio, pages, 200, 1000, BalancedRate::Any);
            assert_eq!(step.dirty_rate, dirty_rate);
            assert_eq!(step.task_ratelimit, task);
            assert_eq!(estimate.balanced_dirty_ratelimit, balanced);
            assert_eq!(estimate.dirty_ratelimit, after);
        }
    }

    /// Dirty pages and the ratio, for a device with all of the threshold, half of it and none.
    #[test]
    fn the_ratio_falls_from_the_freerun_ceiling_to_the_limit() {
        let whole = [
            (117_964, 2290),
            (120_000, 1948),
            (125_000, 1393),
            (130_000, 1133),
            (137_625, 1023),
            (140_000, 1007),
            (145_000, 926),
            (150_000, 710),
            (155_000, 285),
            (157_285, 1),
            (157_286, 0),
        ];
        let half = [(117_964, 1215), (130_000, 536), (137_625, 442)];
        let none = [(117_964, 511), (137_625, 256)];
        assert_eq!(position(0).freerun(), 117_964);
        assert_eq!(position(0).setpoint(), 137_625);
        for (share, vectors) in [
            (157_286, whole.as_slice()),
            (157_286 / 2, &half),
            (0, &none),
        ] {
            for &(dirty, ratio) in vectors {
                let at = Position {
                    bdi_thresh: share,
                    ..position(dirty)
                };
                assert_eq!(at.ratio(20480, true), ratio, "{dirty} of {share}");
            }
        }
    }

    /// 8927f66c4ede: below half its share a device's writers go faster by what it lacks, up to eight times.
    #[test]
    fn a_device_with_few_dirty_pages_catches_up() {
        let ratio = |bdi_dirty, reserve| {
            let at = Position {
                bdi_dirty,
                ..position(130_000)
            };
            at.ratio(20480, reserve)
        };
        let half = 157_286 / 2;
        assert_eq!(ratio(half, true), ratio(half, false));
        assert_eq!(ratio(40_000, true), ratio(40_000, false) * half / 40_000);
        assert_eq!(ratio(10_000, true), ratio(10_000, false) * half / 10_000);
        assert_eq!(ratio(half / 8, true), ratio(half / 8, false) * 8);
        assert_eq!(ratio(0, true), ratio(0, false) * 8);
    }
}
