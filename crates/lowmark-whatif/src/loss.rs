//! How far a run of the model is from what was recorded.
//!
//! The loss is the weighted mean of squared natural logarithms of ratios, in millionths: a run in which every figure is off by
//! 10 % has 9,000 or so. Logarithms are in fixed point, so that they are the same on every machine.

use crate::counters::{COUNTERS, Counter, Figures};

/// A reconstruction that is further off than this is none, millionths.
pub const LOSS_MAX: u64 = 50_000;
/// One that is further off than this is called rough, millionths.
pub const LOSS_ROUGH: u64 = 20_000;

/// Binary digits of a logarithm behind the point.
const DIGITS: u32 = 16;
/// The square of the natural logarithm of 2, millionths.
const LN_2_SQUARED: u128 = 480_453;

/// The binary logarithm of a number from 1 on, in units of 2^-16, cut off.
pub(crate) fn log2(number: u64) -> i64 {
    debug_assert!(number > 0);
    let whole = number.ilog2();
    // The number between 1 and 2, with 32 digits behind the point.
    let mut rest = (u128::from(number) << 32) >> whole;
    let mut log = i64::from(whole);
    for _ in 0..DIGITS {
        rest = (rest * rest) >> 32;
        log <<= 1;
        if rest >= 2 << 32 {
            rest >>= 1;
            log += 1;
        }
    }
    log
}

/// How far the model's figure is from the recorded one, for each counter that both have: the weight and the difference of the
/// logarithms.
pub(crate) fn offs(
    model: &Figures,
    seen: &Figures,
    pages: u64,
) -> impl Iterator<Item = (&'static Counter, u64)> {
    let figures = COUNTERS.iter().zip(model.0).zip(seen.0);
    figures.filter_map(move |((counter, model), seen)| {
        let ground = counter.ground(pages);
        let off = log2(model?.saturating_add(ground)) - log2(seen?.saturating_add(ground));
        Some((counter, off.unsigned_abs()))
    })
}

/// The loss of a run of the model beside what was recorded of a load of so many pages, millionths. A figure that either does not
/// have is left out.
pub(crate) fn loss(model: &Figures, seen: &Figures, pages: u64) -> u64 {
    let (mut sum, mut weights) = (0u128, 0u128);
    for (counter, off) in offs(model, seen, pages) {
        sum += u128::from(off * off) * u128::from(counter.weight);
        weights += u128::from(counter.weight);
    }
    let mean = sum * LN_2_SQUARED / weights.max(1);
    (mean >> (2 * DIGITS)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn logarithms_are_right_to_the_last_digit() {
        assert_eq!(log2(1), 0);
        assert_eq!(log2(2), 1 << 16);
        assert_eq!(log2(1024), 10 << 16);
        // log2(3) = 1.58496250…, in units of 2^-16 103,872.1…
        assert_eq!(log2(3), 103_872);
    }

    #[test]
    fn ten_percent_everywhere_cost_nine_thousandths() {
        let run = |value| Figures([Some(value); COUNTERS.len()]);
        let off = loss(&run(1_100_000_000), &run(1_000_000_000), 1_000);
        // ln(1.1)² = 0.009084
        assert!((9_080..=9_090).contains(&off), "{off}");
        assert_eq!(loss(&run(5), &run(5), 1_000), 0);
    }

    proptest! {
        #[test]
        fn logarithms_grow(a in 1u64..u64::MAX / 2, b in 1u64..u64::MAX / 2) {
            let (small, large) = (a.min(b), a.max(b));
            prop_assert!(log2(small) <= log2(large));
        }

        #[test]
        fn a_product_has_the_sum_of_the_logarithms(a in 1u64..1 << 31, b in 1u64..1 << 31) {
            let off = log2(a * b) - log2(a) - log2(b);
            prop_assert!((-1..=2).contains(&off), "{}", off);
        }
    }
}
