//! Where dirty pages stand between their limits, and what that means for writers (`bdi_position_ratio`,
//! `wb_position_ratio`). All integer, as in the kernel.
//!
//! 1. The *position ratio* says whether there are too many dirty pages (below 1) or too few: a cubic of the
//!    distance from the set point for all of memory.
//! 2. It is multiplied by a line for the device, which has a share of the set point.
//! 3. A device with hardly any dirty pages gets more, so that it does not run dry.
//! 4. With *strictlimit* (5a53748568f7, 3.12) the device's own limits count, whatever there is elsewhere.

use crate::kernel::{IdleDevices, Mechanisms, PositionRatio, Throttle};

/// Fraction bits of the position ratio: 1024 is 1.
pub(super) const RATELIMIT_CALC_SHIFT: u32 = 10;
/// 1
const ONE: i64 = 1 << RATELIMIT_CALC_SHIFT;

/// Dirty pages and their limits, as a throttled writer sees them (`struct dirty_throttle_control`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Dirty threshold.
    pub thresh: u64,
    /// Background threshold.
    pub bg_thresh: u64,
    /// Dirty pages and those under writeback.
    pub dirty: u64,
    /// The threshold smoothed, not below it (`hard_dirty_limit`).
    pub limit: u64,
    /// The device's share of the threshold.
    pub bdi_thresh: u64,
    /// The device's part of `dirty`.
    pub bdi_dirty: u64,
    /// The device is held to its share (`BDI_CAP_STRICTLIMIT`).
    pub strict: bool,
}

impl Position {
    /// Half way between the thresholds (`dirty_freerun_ceiling`).
    pub fn freerun(&self) -> u64 {
        (self.thresh + self.bg_thresh) / 2
    }

    /// Whether nobody is throttled.
    pub fn is_freerun(&self) -> bool {
        if self.strict {
            self.bdi_dirty <= self.bdi_setpoint_of_strict()
        } else {
            self.dirty <= self.freerun()
        }
    }

    /// Where dirty pages are held.
    pub fn setpoint(&self) -> u64 {
        (self.freerun() + self.limit) / 2
    }

    /// The device's part of the set point, as tracepoints show it.
    pub(super) fn bdi_setpoint(&self) -> u64 {
        self.setpoint() * self.bdi_thresh / (self.thresh + 1)
    }

    /// The device's share of the background threshold.
    fn bdi_bg_thresh(&self) -> u64 {
        match self.thresh {
            0 => 0,
            thresh => self.bdi_thresh * self.bg_thresh / thresh,
        }
    }

    /// Freerun ceiling and set point of a device that is held to its share.
    fn bdi_setpoint_of_strict(&self) -> u64 {
        (self.bdi_thresh + self.bdi_bg_thresh()) / 2
    }

    /// Whether the base rate may go up.
    pub(super) fn is_below_setpoint(&self) -> bool {
        if self.strict {
            self.bdi_dirty < self.bdi_setpoint_of_strict()
        } else {
            self.dirty < self.setpoint()
        }
    }

    /// What the looks of the writers are compared with: dirty pages and threshold.
    pub(super) fn poll(&self) -> (u64, u64) {
        if self.strict {
            (self.bdi_dirty, self.bdi_thresh)
        } else {
            (self.dirty, self.thresh)
        }
    }

    /// The position ratio for a device that writes `write_bw`, 1024 for 1.
    pub fn ratio(&self, write_bw: u64, mechanisms: &Mechanisms) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let rule = mechanisms.writeback.position_ratio;
        let setpoint = self.setpoint();
        let ratio = polynomial(setpoint, self.dirty, self.limit, rule);
        if self.strict {
            self.ratio_of_strict(ratio, mechanisms)
        } else {
            self.ratio_of_device(ratio, setpoint, write_bw, mechanisms)
        }
    }

    fn ratio_of_strict(&self, ratio: u64, mechanisms: &Mechanisms) -> u64 {
        if self.bdi_dirty < 8 && mechanisms.writeback.idle_devices == IdleDevices::Ratio {
            return (2 * ratio).min(2 * ONE as u64);
        }
        let setpoint = self.bdi_setpoint_of_strict();
        if self.bdi_dirty >= self.bdi_thresh || setpoint == 0 || setpoint == self.bdi_thresh {
            return 0;
        }
        let rule = mechanisms.writeback.position_ratio;
        ratio.min(polynomial(setpoint, self.bdi_dirty, self.bdi_thresh, rule))
    }

    fn ratio_of_device(
        &self,
        mut ratio: u64,
        setpoint: u64,
        write_bw: u64,
        mechanisms: &Mechanisms,
    ) -> u64 {
        let rule = mechanisms.writeback.position_ratio;
        // 8927f66c4ede (3.2), which the first commit of the series is without.
        let reserve = mechanisms.writeback.throttle != Throttle::IoLess;
        let mut bdi_thresh = self.bdi_thresh.min(self.thresh);
        if reserve && mechanisms.writeback.idle_devices == IdleDevices::Ratio {
            bdi_thresh = bdi_thresh.max((self.limit - self.dirty) / 8);
        }
        let x = (bdi_thresh << 16) / rule.divisor(self.thresh);
        let bdi_setpoint = (setpoint * x) >> 16;
        let room = self.thresh - bdi_thresh.min(self.thresh);
        let span = ((room + 8 * write_bw) * x) >> 16;
        let intercept = bdi_setpoint + span;
        if self.bdi_dirty < intercept.saturating_sub(span / 4) {
            ratio = ratio * (intercept - self.bdi_dirty) / rule.divisor(intercept - bdi_setpoint);
        } else {
            ratio /= 4;
        }
        // Where a device has less than half its share, its writers catch up.
        let half = bdi_thresh / 2;
        if reserve && self.bdi_dirty < half {
            ratio = if self.bdi_dirty > half / 8 {
                ratio * half / self.bdi_dirty
            } else {
                ratio * 8
            };
        }
        ratio
    }
}

/// `pos_ratio_polynom`: 2 at the freerun ceiling, 1 at the set point, 0 at the limit.
fn polynomial(setpoint: u64, dirty: u64, limit: u64, rule: PositionRatio) -> u64 {
    let x = ((setpoint as i64 - dirty as i64) << RATELIMIT_CALC_SHIFT)
        / rule.divisor(limit.saturating_sub(setpoint)) as i64;
    let square = (x * x) >> RATELIMIT_CALC_SHIFT;
    let cube = (square * x) >> RATELIMIT_CALC_SHIFT;
    let most = match rule {
        PositionRatio::Unbounded => i64::MAX,
        PositionRatio::Clamped | PositionRatio::OddDivisors => 2 * ONE,
    };
    (cube + ONE).clamp(0, most) as u64
}

impl PositionRatio {
    /// What is divided by in place of `value`, which may be 0.
    fn divisor(self, value: u64) -> u64 {
        match self {
            PositionRatio::Unbounded | PositionRatio::Clamped => value + 1,
            PositionRatio::OddDivisors => value | 1,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kernel::Version;
    use crate::kernel::versions::at;

    pub(crate) fn of(version: &str) -> Mechanisms {
        at(Version::known(version).unwrap())
    }

    /// 3 GiB dirtyable, 20 and 10 %, one device.
    pub(crate) fn position(dirty: u64) -> Position {
        Position {
            thresh: 157_286,
            bg_thresh: 78_643,
            dirty,
            limit: 157_286,
            bdi_thresh: 157_286,
            bdi_dirty: dirty,
            strict: false,
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
                assert_eq!(at.ratio(20480, &of("v3.2")), ratio, "{dirty} of {share}");
            }
        }
    }

    /// 8927f66c4ede: below half its share a device's writers go faster by what it lacks, up to eight times.
    #[test]
    fn a_device_with_few_dirty_pages_catches_up() {
        let ratio = |bdi_dirty, reserve: bool| {
            let at = Position {
                bdi_dirty,
                ..position(130_000)
            };
            let mut mechanisms = of("v3.2");
            if !reserve {
                mechanisms.writeback.throttle = Throttle::IoLess;
            }
            at.ratio(20480, &mechanisms)
        };
        let half = 157_286 / 2;
        assert_eq!(ratio(half, true), ratio(half, false));
        assert_eq!(ratio(40_000, true), ratio(40_000, false) * half / 40_000);
        assert_eq!(ratio(10_000, true), ratio(10_000, false) * half / 10_000);
        assert_eq!(ratio(half / 8, true), ratio(half / 8, false) * 8);
        assert_eq!(ratio(0, true), ratio(0, false) * 8);
    }

    #[test]
    fn from_3_12_on_the_ratio_is_at_most_two() {
        let far_below = Position {
            limit: 160_000,
            ..position(60_000)
        };
        assert!(far_below.ratio(20480, &of("v3.11")) > 20 * 1024);
        let clamped = far_below.ratio(20480, &of("v3.12"));
        let cubic = polynomial(138_982, 60_000, 160_000, PositionRatio::Clamped);
        assert_eq!(cubic, 2048);
        // The device's line and its reserve come on top of that.
        assert!((2048..4 * 1024).contains(&clamped), "{clamped}");
    }

    /// A device with a hundredth of the threshold: 1572 pages, from 1179 on its writers are held back.
    #[test]
    fn strictlimit_counts_the_device_alone() {
        let strict = |bdi_dirty| Position {
            bdi_thresh: 1572,
            bdi_dirty,
            strict: true,
            ..position(20_000)
        };
        assert!(strict(1179).is_freerun() && !strict(1180).is_freerun());
        let ratio = |bdi_dirty, version| strict(bdi_dirty).ratio(20480, &of(version));
        assert_eq!(ratio(1179, "v6.18"), 1024);
        assert_eq!(ratio(1572, "v6.18"), 0);
        assert!((100..1024).contains(&ratio(1400, "v6.18")));
        // Up to 6.13 a device with next to nothing is let go.
        assert_eq!((ratio(7, "v6.12"), ratio(7, "v6.18")), (2048, 2048));
        let over = Position {
            dirty: 157_286,
            ..strict(7)
        };
        assert_eq!(
            over.ratio(20480, &of("v6.12")),
            0,
            "all of memory counts too"
        );
    }
}
