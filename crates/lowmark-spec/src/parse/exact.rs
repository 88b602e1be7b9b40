//! Exact numbers: fractions of 128-bit integers, and quantities with a unit.
//!
//! `0.64*RAM/threads` must give the same byte on every machine, so no floating point is involved. An
//! operation that does not fit gives `None`.

use std::cmp::Ordering;
use std::fmt;

/// A fraction in lowest terms with a positive denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    numerator: i128,
    denominator: i128,
}

fn gcd(a: i128, b: i128) -> u128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Ratio {
    /// An integer.
    pub(crate) const fn whole(numerator: i128) -> Ratio {
        Ratio {
            numerator,
            denominator: 1,
        }
    }

    /// A fraction; `None` for a zero denominator or one that does not fit.
    pub(crate) fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        let divisor = i128::try_from(gcd(numerator, denominator)).ok()?;
        let (n, d) = (
            numerator.checked_div(divisor)?,
            denominator.checked_div(divisor)?,
        );
        match d.cmp(&0) {
            Ordering::Greater => Some(Ratio {
                numerator: n,
                denominator: d,
            }),
            Ordering::Equal => None,
            Ordering::Less => Some(Ratio {
                numerator: n.checked_neg()?,
                denominator: d.checked_neg()?,
            }),
        }
    }

    /// A decimal literal: digits, `_`, at most one point.
    pub(crate) fn decimal(text: &str) -> Option<Ratio> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: String = whole
            .chars()
            .chain(fraction.chars())
            .filter(|&c| c != '_')
            .collect();
        let places = fraction.chars().filter(|&c| c != '_').count();
        let scale = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
        Ratio::new(digits.parse().ok()?, scale)
    }

    /// Whether it is an integer.
    pub(crate) fn is_whole(self) -> bool {
        self.denominator == 1
    }

    /// Below zero?
    pub(crate) fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// Zero?
    pub(crate) fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// Largest integer not above it.
    pub(crate) fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// Smallest integer not below it.
    pub(crate) fn ceil(self) -> i128 {
        self.floor() + i128::from(!self.is_whole())
    }

    /// Sign changed.
    pub(crate) fn negate(self) -> Option<Ratio> {
        Some(Ratio {
            numerator: self.numerator.checked_neg()?,
            ..self
        })
    }

    /// Sum.
    pub(crate) fn plus(self, other: Ratio) -> Option<Ratio> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Ratio::new(
            left.checked_add(right)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    /// Product. Reduced crosswise first, so that it overflows only when the result does not fit.
    pub(crate) fn times(self, other: Ratio) -> Option<Ratio> {
        let a = Ratio::new(self.numerator, other.denominator)?;
        let b = Ratio::new(other.numerator, self.denominator)?;
        Ratio::new(
            a.numerator.checked_mul(b.numerator)?,
            a.denominator.checked_mul(b.denominator)?,
        )
    }

    /// One over it; `None` for zero.
    pub(crate) fn inverse(self) -> Option<Ratio> {
        Ratio::new(self.denominator, self.numerator)
    }

    /// Which is larger; `None` when the comparison does not fit.
    pub(crate) fn compare(self, other: Ratio) -> Option<Ordering> {
        let left = self.numerator.checked_mul(other.denominator)?;
        Some(left.cmp(&other.numerator.checked_mul(self.denominator)?))
    }
}

impl fmt::Display for Ratio {
    /// As a decimal where that is exact, as a fraction otherwise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return write!(f, "{}", self.numerator);
        }
        for places in 1..=12_usize {
            let scale = 10_i128.pow(places as u32);
            if scale % self.denominator == 0 {
                let Some(digits) = self.numerator.checked_mul(scale / self.denominator) else {
                    break;
                };
                let sign = if digits < 0 { "-" } else { "" };
                let digits = digits.unsigned_abs();
                let (whole, rest) = (digits / scale.unsigned_abs(), digits % scale.unsigned_abs());
                return write!(f, "{sign}{whole}.{rest:0places$}");
            }
        }
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// What a number measures: powers of the byte and of the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    bytes: i8,
    time: i8,
}

impl Unit {
    /// A plain number.
    pub(crate) const NUMBER: Unit = Unit { bytes: 0, time: 0 };
    /// Bytes.
    pub(crate) const SIZE: Unit = Unit { bytes: 1, time: 0 };
    /// Nanoseconds.
    pub(crate) const TIME: Unit = Unit { bytes: 0, time: 1 };
    /// Bytes per nanosecond.
    pub(crate) const DATA_RATE: Unit = Unit { bytes: 1, time: -1 };
    /// Per nanosecond.
    pub(crate) const RATE: Unit = Unit { bytes: 0, time: -1 };

    fn times(self, other: Unit) -> Option<Unit> {
        Some(Unit {
            bytes: self.bytes.checked_add(other.bytes)?,
            time: self.time.checked_add(other.time)?,
        })
    }

    fn inverse(self) -> Option<Unit> {
        Some(Unit {
            bytes: self.bytes.checked_neg()?,
            time: self.time.checked_neg()?,
        })
    }

    /// Name with its article, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::NUMBER => "a plain number",
            Unit::SIZE => "a size",
            Unit::TIME => "a duration",
            Unit::DATA_RATE => "a data rate",
            Unit::RATE => "a rate",
            _ => "a product of units that measures nothing",
        }
    }
}

/// A number and what it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub(crate) value: Ratio,
    pub(crate) unit: Unit,
}

impl Quantity {
    /// A whole number of units.
    pub(crate) fn whole(value: u64, unit: Unit) -> Quantity {
        Quantity {
            value: Ratio::whole(value.into()),
            unit,
        }
    }

    /// Product.
    pub(crate) fn times(self, other: Quantity) -> Option<Quantity> {
        let unit = self.unit.times(other.unit)?;
        Some(Quantity {
            value: self.value.times(other.value)?,
            unit,
        })
    }

    /// One over it.
    pub(crate) fn inverse(self) -> Option<Quantity> {
        Some(Quantity {
            value: self.value.inverse()?,
            unit: self.unit.inverse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let third = Ratio::new(1, 3).and_then(|r| r.times(Ratio::whole(3)));
        assert_eq!(third, Some(Ratio::whole(1)));
        let sum = Ratio::decimal("0.1").and_then(|a| a.plus(Ratio::decimal("0.2")?));
        assert_eq!(sum, Ratio::decimal("0.3"));
        let printed = |text: &str| Ratio::decimal(text).map(|r| r.to_string());
        assert_eq!(printed("1_000.50").as_deref(), Some("1000.5"));
        assert_eq!(printed("0.007").as_deref(), Some("0.007"));
        assert_eq!(Ratio::new(-1, 3).map(Ratio::floor), Some(-1));
        assert_eq!(Ratio::new(7, 2).map(Ratio::ceil), Some(4));
        assert_eq!(
            Ratio::new(1, 3).map(|r| r.to_string()).as_deref(),
            Some("1/3")
        );
    }

    #[test]
    fn what_does_not_fit_is_none() {
        let huge = Ratio::whole(i128::MAX);
        assert_eq!(huge.plus(Ratio::whole(1)), None);
        assert_eq!(huge.times(Ratio::whole(2)), None);
        assert_eq!(Ratio::whole(i128::MIN).negate(), None);
        assert_eq!(Ratio::new(i128::MIN, -1), None);
        assert_eq!(Ratio::whole(0).inverse(), None);
        assert_eq!(Ratio::decimal(&"9".repeat(60)), None);
        assert_eq!(Ratio::decimal(&format!("0.{}", "1".repeat(60))), None);
    }
}
