//! How long a writer pauses, and after how many pages it is asked again. Times are jiffies.

use super::estimate::Estimate;

/// Pages between two checks at least (128 KiB), 3.3 and later.
const DIRTY_POLL_THRESH: u64 = (128 << 10) / 4096;

/// Longest pause: 200 ms.
pub fn max_pause_of(hz: u64) -> u64 {
    (hz / 5).max(1)
}

/// `dirty_poll_interval`: pages that may be dirtied before the next look, far from the threshold more.
pub fn dirty_poll_interval(dirty: u64, thresh: u64) -> u64 {
    match thresh.checked_sub(dirty).filter(|&room| room > 0) {
        Some(room) => 1 << (room.ilog2() / 2),
        None => 1,
    }
}

fn doublings(estimate: &Estimate) -> u64 {
    let high = estimate.avg_write_bandwidth.max(1).ilog2();
    let low = estimate.dirty_ratelimit.max(1).ilog2();
    u64::from(high.saturating_sub(low))
}

/// `bdi_max_pause` of 3.2 (c8462cc9de9e): 20 ms for one writer, 20 more each time their number doubles,
/// and never more than an eighth of the time in which the device writes what it has.
pub fn bdi_max_pause(estimate: &Estimate, bdi_dirty: u64, hz: u64) -> u64 {
    let pause = hz / 50 + doublings(estimate) * (20 * hz) / 1024;
    let drained = bdi_dirty * hz / (8 * estimate.avg_write_bandwidth + 1);
    pause
        .min(drained)
        .clamp(4.min(max_pause_of(hz)), max_pause_of(hz))
}

/// `bdi_max_pause` of 3.3 (7ccb9ad5364d).
pub fn think_max_pause(estimate: &Estimate, bdi_dirty: u64, hz: u64) -> u64 {
    let per_pause = estimate.avg_write_bandwidth / (1 + hz / 8).next_power_of_two();
    (bdi_dirty / (1 + per_pause) + 1).min(max_pause_of(hz))
}

/// Shortest pause worth sleeping, and the pages until the next check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Shortest pause, jiffies.
    pub min_pause: u64,
    /// Pages until the next look.
    pub pages: u64,
}

/// `bdi_min_pause` of 3.3 (7ccb9ad5364d): pauses of 10 ms for one writer, more for many, as long as there
/// are 32 pages between two of them.
pub fn think_min_pause(
    estimate: &Estimate,
    task_ratelimit: u64,
    max_pause: u64,
    hz: u64,
) -> Target {
    let second = hz.next_power_of_two();
    let rate = estimate.dirty_ratelimit;
    let mut time = (hz / 100).max(1) + doublings(estimate) * (10 * hz) / 1024;
    time = time.min(1 + max_pause / 2);
    let mut pages = rate * time / second;
    if pages < DIRTY_POLL_THRESH {
        time = max_pause;
        pages = rate * time / second;
        if pages > DIRTY_POLL_THRESH {
            pages = DIRTY_POLL_THRESH;
            time = hz * DIRTY_POLL_THRESH / rate.max(1);
        }
    }
    if hz * pages / (task_ratelimit + 1) > max_pause {
        time = max_pause;
        pages = task_ratelimit * time / second;
    }
    let min_pause = if pages >= DIRTY_POLL_THRESH {
        1 + time / 2
    } else {
        time
    };
    Target { min_pause, pages }
}

/// How 3.2 (57fc978cfb61) moves the pages between two pauses so that pauses come near half the longest.
pub fn next_dirtied_pause(
    now: u64,
    dirtied: u64,
    pause: u64,
    max_pause: u64,
    estimate: &Estimate,
    hz: u64,
) -> u64 {
    let aim = estimate.dirty_ratelimit * (max_pause / 2) / hz;
    if pause <= max_pause / 4 && dirtied >= now {
        aim.clamp(dirtied * 9 / 8, dirtied * 4)
    } else if pause >= max_pause {
        1 | aim.clamp(dirtied / 4, dirtied * 7 / 8)
    } else {
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: u64 = 137_625;

    fn estimate(dirty_ratelimit: u64) -> Estimate {
        Estimate {
            avg_write_bandwidth: 20480,
            dirty_ratelimit,
            ..Estimate::default()
        }
    }

    #[test]
    fn longest_pauses_of_3_2() {
        let rates = [20480, 10240, 2048, 204, 41, 20];
        let pauses = rates.map(|rate| bdi_max_pause(&estimate(rate), POOL, 1000));
        assert_eq!(pauses, [20, 39, 78, 156, 195, 200]);
        assert_eq!(bdi_max_pause(&estimate(20480), 0, 1000), 4);
    }

    #[test]
    fn pauses_of_3_3() {
        let rates = [20480, 10240, 2048, 410, 204, 41, 20];
        let expected = [
            (200, 6, 200),
            (200, 10, 190),
            (200, 20, 78),
            (200, 40, 32),
            (200, 79, 32),
            (200, 200, 8),
            (200, 200, 3),
        ];
        for (rate, (max, min, pages)) in rates.into_iter().zip(expected) {
            let estimate = estimate(rate);
            let longest = think_max_pause(&estimate, POOL, 1000);
            assert_eq!(longest, max, "{rate}");
            let target = think_min_pause(&estimate, rate, longest, 1000);
            assert_eq!((target.min_pause, target.pages), (min, pages), "{rate}");
        }
    }

    #[test]
    fn looks_come_more_often_near_the_threshold() {
        assert_eq!(dirty_poll_interval(0, 157_286), 256);
        assert_eq!(dirty_poll_interval(117_964, 157_286), 128);
        assert_eq!(dirty_poll_interval(157_286, 157_286), 1);
        assert_eq!(dirty_poll_interval(200_000, 157_286), 1);
    }

    #[test]
    fn pauses_are_steered_to_half_the_longest() {
        let next = |now, dirtied, pause| {
            next_dirtied_pause(now, dirtied, pause, 80, &estimate(2048), 1000)
        };
        assert_eq!(next(32, 40, 20), 81, "shorter than a quarter: more pages");
        assert_eq!(next(32, 10, 20), 32, "it was asked for another reason");
        assert_eq!(next(32, 400, 80), 1 | 100, "too long: fewer");
        assert_eq!(next(32, 40, 50), 32);
    }
}
