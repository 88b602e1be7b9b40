//! When a sleep ends (`schedule_timeout`, `kernel/time/timer.c`).

use super::Nanos;
use crate::kernel::TimerWheel;

/// Bits by which the levels of the wheel differ in their grain (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u64 = 3;
/// Slots of a level (`LVL_SIZE`).
const LEVEL_SLOTS: u64 = 64;

/// The end of a sleep of so many jiffies that begins now.
pub(crate) fn expiry(now: Nanos, jiffies: u64, jiffy: Nanos, wheel: TimerWheel) -> Nanos {
    match wheel {
        TimerWheel::Cascading => now + jiffies * jiffy,
        TimerWheel::Rounded => {
            // __mod_timer, calc_wheel_index
            let beyond = |level: &u64| jiffies >= (LEVEL_SLOTS - 1) << (level * LEVEL_SHIFT);
            let shift = (0..8).take_while(beyond).count() as u64 * LEVEL_SHIFT;
            ((((now / jiffy + jiffies) >> shift) + 1) << shift) * jiffy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_go_off_with_a_jiffy_that_is_not_too_early() {
        let jiffy = 4;
        let expiry = |now, timeout, wheel| expiry(now * jiffy + 3, timeout, jiffy, wheel);
        for timeout in [1, 50, 63, 200] {
            assert_eq!(
                expiry(1000, timeout, TimerWheel::Cascading),
                (1000 + timeout) * jiffy + 3
            );
        }
        // 0 to 62 jiffies: the next one. From 63 on the next multiple of 8, from 504 on of 64.
        for (now, timeout, late) in [
            (1000, 1, 1002),
            (1000, 62, 1063),
            (1000, 63, 1064),
            (1001, 63, 1072),
            (1000, 200, 1208),
            (1007, 200, 1208),
            (1000, 504, 1536),
        ] {
            assert_eq!(expiry(now, timeout, TimerWheel::Rounded), late * jiffy);
        }
    }
}
