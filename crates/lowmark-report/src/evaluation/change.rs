//! A change that a source states in prose, and how far from it a model's may be.
//!
//! The rule is that of `evaluations/published/README.md`: the same sign, at least half and at most twice its size. Up to
//! a factor of 2 the size is taken in percent; above, as a factor k, of which half is (k + 1) / 2 and twice 2k - 1. Of
//! a rise both are the same; of a fall by more than half, the percentage would allow nearly anything.

use super::ProseFigure;

/// A fall to less than this is taken as a factor.
const HALF: f64 = 0.5;

/// A change from `before` to `after`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatedChange {
    /// After over before.
    pub ratio: f64,
}

impl ProseFigure {
    /// The change that it states; none if it states a value alone.
    pub fn change(&self) -> Option<StatedChange> {
        let of_values = self
            .before
            .zip(self.after)
            .map(|(before, after)| after / before);
        let of_percentage = self.change_pct.map(|percent| 1.0 + percent / 100.0);
        let ratio = of_values.or(of_percentage).or(self.factor)?;
        Some(StatedChange { ratio })
    }
}

impl StatedChange {
    /// The least and the greatest ratio of after to before that bear it out. A fall by half or less in percent has no
    /// lower bound where twice its size would be all.
    pub fn bounds(self) -> (f64, f64) {
        let toward = |size: f64| 1.0 + size * (self.ratio - 1.0);
        if self.ratio > 1.0 {
            return (toward(0.5), toward(2.0));
        }
        if self.ratio >= HALF {
            return (toward(2.0).max(0.0), toward(0.5));
        }
        // Of a fall to 1/k, 1/k is the rise that undoes it.
        let undone = StatedChange {
            ratio: self.ratio.recip(),
        };
        let (least, most) = undone.bounds();
        (most.recip(), least.recip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_twice_of_a_rise_and_of_a_fall() {
        for (ratio, least, most) in [
            // By 67 %: 33.5 to 134 %.
            (1.67, 1.335, 2.34),
            // 4 times: 2.5 to 7 times.
            (4.0, 2.5, 7.0),
            // By 20 %: 10 to 40 %.
            (0.8, 0.6, 0.9),
            // By half: a quarter to all of it.
            (0.5, 0.0, 0.75),
            // To a tenth: 1/19 to 1/5.5.
            (0.1, 1.0 / 19.0, 1.0 / 5.5),
        ] {
            let (low, high) = StatedChange { ratio }.bounds();
            assert!((low - least).abs() < 1e-12, "{ratio}: {low}");
            assert!((high - most).abs() < 1e-12, "{ratio}: {high}");
        }
    }
}
