//! Distributions of durations.
//!
//! 1. The first [`FEW_MAX`] durations are kept as they are: most tasks never have more, and a histogram for
//!    each of them would cost too much.
//! 2. Beyond that they go into an HDR histogram of three significant digits, in µs.
//! 3. Number, sum and largest are exact throughout.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Most durations that are kept one by one.
const FEW_MAX: usize = 64;

/// Significant digits of the histogram.
const DIGITS: u8 = 3;

/// Longest duration that is told from longer ones, µs: an hour. It bounds the size of a histogram.
const LONGEST_US: u64 = 3_600_000_000;

/// Durations of one kind.
#[derive(Debug, Clone)]
pub struct Distribution {
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    kept: Kept,
}

#[derive(Debug, Clone)]
enum Kept {
    /// All of them, µs.
    Few(Vec<u64>),
    Many(Box<Histogram<u32>>),
}

/// What is printed of a distribution; quantiles are absent where there was nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// Sum, µs.
    pub sum_us: u64,
    /// Half were not longer, µs.
    pub p50_us: Option<u64>,
    /// 95 % were not longer, µs.
    pub p95_us: Option<u64>,
    /// 99 % were not longer, µs.
    pub p99_us: Option<u64>,
    /// Longest, µs.
    pub max_us: Option<u64>,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            kept: Kept::Few(Vec::new()),
        }
    }
}

/// ns to the nearest µs.
pub(crate) fn microseconds(ns: u64) -> u64 {
    ns / 1000 + u64::from(ns % 1000 >= 500)
}

impl Distribution {
    /// Adds a duration, ns.
    #[inline]
    pub fn record_ns(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.keep(microseconds(ns).min(LONGEST_US));
    }

    #[inline]
    fn keep(&mut self, us: u64) {
        match &mut self.kept {
            Kept::Few(few) if few.len() < FEW_MAX => few.push(us),
            Kept::Few(few) => {
                // Three digits are a valid precision, and it grows by itself: neither can fail.
                let Ok(mut many) = Histogram::new(DIGITS) else {
                    return;
                };
                for us in few.drain(..).chain([us]) {
                    let _ = many.record(us);
                }
                self.kept = Kept::Many(Box::new(many));
            }
            Kept::Many(many) => {
                let _ = many.record(us);
            }
        }
    }

    /// How many durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, s.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// The duration that `share` (0 to 1) of all do not exceed, µs, to three digits; none if there are none.
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let longest = microseconds(self.max_ns).min(LONGEST_US);
        match &self.kept {
            Kept::Few(few) => {
                let mut sorted = few.clone();
                sorted.sort_unstable();
                let rank = (share * sorted.len() as f64).ceil() as usize;
                sorted.get(rank.max(1) - 1).copied()
            }
            Kept::Many(many) => Some(many.value_at_quantile(share).min(longest)),
        }
    }

    /// What is printed.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.count,
            sum_us: microseconds(self.sum_ns),
            p50_us: self.quantile_us(0.5),
            p95_us: self.quantile_us(0.95),
            p99_us: self.quantile_us(0.99),
            max_us: (self.count > 0).then(|| microseconds(self.max_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantiles(), Quantiles::default());
        for us in (1..=50).rev() {
            distribution.record_ns(us * 1000);
        }
        let expected = Quantiles {
            count: 50,
            sum_us: 1275,
            p50_us: Some(25),
            p95_us: Some(48),
            p99_us: Some(50),
            max_us: Some(50),
        };
        assert_eq!(distribution.quantiles(), expected);
    }

    #[test]
    fn many_are_exact_to_three_digits() {
        let mut distribution = Distribution::default();
        for us in 1..=1_000_000u64 {
            distribution.record_ns(us * 1000);
        }
        let quantiles = distribution.quantiles();
        assert_eq!(quantiles.sum_us, 500_000_500_000);
        assert_eq!(quantiles.max_us, Some(1_000_000));
        for (quantile, exact) in [
            (quantiles.p50_us, 500_000),
            (quantiles.p95_us, 950_000),
            (quantiles.p99_us, 990_000),
        ] {
            let off = quantile.expect("some").abs_diff(exact);
            assert!(off <= exact / 1000, "{quantile:?} for {exact}");
        }
    }

    #[test]
    fn absurd_durations_do_no_harm() {
        let mut distribution = Distribution::default();
        for _ in 0..100 {
            distribution.record_ns(u64::MAX);
        }
        assert_eq!(distribution.count(), 100);
        assert_eq!(distribution.quantile_us(0.5), Some(LONGEST_US));
        distribution.record_ns(0);
        assert_eq!(distribution.quantile_us(0.0), Some(0));
    }
}
