//! The four conventions behind the percentages "( x%)" of mmtests tables.
//!
//! With b the baseline (first column) and v the value of another column:
//!
//! | | rule | formula | plus means | where |
//! |---|---|---|---|---|
//! | A | [`ChangeOverNew`](PercentRule::ChangeOverNew) | 100·(v−b)/v | more | vmstat rows of 2010 |
//! | B | [`GainHigher`](PercentRule::GainHigher) (`pdiff`) | 100·v/b − 100 | better | rates |
//! | C | [`GainLower`](PercentRule::GainLower) (`pndiff`) | 100 − 100·v/b | better | times |
//! | D | [`Points`](PercentRule::Points) | v − b | more | rows already in percent |
//!
//! The direction belongs to the row, not to the table: B and C mix within one report. The special
//! cases are those of `pdiff` and `pndiff` in mmtests' `Stat.pm`.

use crate::stats::Preference;
use serde::{Deserialize, Serialize};

/// How a percentage of a comparison is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PercentRule {
    /// A: change relative to the new value.
    ChangeOverNew,
    /// B, `pdiff`: gain where higher is better.
    GainHigher,
    /// C, `pndiff`: gain where lower is better.
    GainLower,
    /// D: plain difference, printed with a percent sign.
    Points,
}

impl PercentRule {
    /// The rule by which today's mmtests compares a row; none for a row that is neither good nor bad.
    pub fn of(preference: Preference) -> Option<PercentRule> {
        match preference {
            Preference::Lower => Some(PercentRule::GainLower),
            Preference::Higher => Some(PercentRule::GainHigher),
            Preference::None => None,
        }
    }

    /// The percentage printed for `value` beside `baseline`; 0 for the baseline itself.
    pub fn percent(self, value: f64, baseline: f64) -> f64 {
        if value == baseline {
            return 0.0;
        }
        match self {
            PercentRule::ChangeOverNew if value == 0.0 => 0.0,
            PercentRule::ChangeOverNew if baseline == 0.0 => 100.0,
            PercentRule::ChangeOverNew => 100.0 * (value - baseline) / value,
            PercentRule::GainHigher if value == 0.0 => 0.0,
            PercentRule::GainHigher if baseline == 0.0 || baseline.is_nan() => 100.0,
            PercentRule::GainHigher => value * 100.0 / baseline - 100.0,
            PercentRule::GainLower if value == 0.0 => 100.0,
            PercentRule::GainLower if baseline == 0.0 => -99.0,
            PercentRule::GainLower => 100.0 - value * 100.0 / baseline,
            PercentRule::Points => value - baseline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PercentRule::{ChangeOverNew, GainHigher, GainLower, Points};
    use super::*;
    use crate::evaluation::{self, Printed};

    #[test]
    fn printed_examples() {
        // pgalloc of 2010, 1639 to 667: printed -145.73.
        assert!((ChangeOverNew.percent(667.0, 1639.0) + 145.73).abs() < 0.01);
        assert!((GainLower.percent(46.81, 102.86) - 54.49).abs() < 0.01);
        assert_eq!(Points.percent(28.0, 81.0), -53.0);
        assert_eq!(GainHigher.percent(3.0, 2.0), 50.0);
    }

    #[test]
    fn special_cases() {
        assert_eq!(ChangeOverNew.percent(0.0, 5.0), 0.0);
        assert_eq!(ChangeOverNew.percent(5.0, 0.0), 100.0);
        assert_eq!(GainHigher.percent(0.0, 5.0), 0.0);
        assert_eq!(GainHigher.percent(5.0, 0.0), 100.0);
        assert_eq!(GainHigher.percent(5.0, f64::NAN), 100.0);
        assert_eq!(GainLower.percent(0.0, 5.0), 100.0);
        assert_eq!(GainLower.percent(5.0, 0.0), -99.0);
        for rule in [ChangeOverNew, GainHigher, GainLower, Points] {
            assert_eq!(rule.percent(7.0, 7.0), 0.0);
            assert_eq!(rule.percent(0.0, 0.0), 0.0);
        }
    }

    #[test]
    fn neutral_rows_have_no_rule() {
        assert_eq!(PercentRule::of(Preference::Lower), Some(GainLower));
        assert_eq!(PercentRule::of(Preference::Higher), Some(GainHigher));
        assert_eq!(PercentRule::of(Preference::None), None);
    }

    /// How far the percentage can move within the rounding of its printed inputs.
    fn spread(rule: PercentRule, value: &Printed, baseline: &Printed) -> f64 {
        if rule == Points {
            return 0.0;
        }
        let computed = rule.percent(value.value, baseline.value);
        let moved = |v: f64, b: f64| (rule.percent(v, b) - computed).abs();
        let half = |p: &Printed| p.decimals.map_or(0.0, |_| p.ulp() / 2.0);
        moved(value.value + half(value), baseline.value)
            + moved(value.value, baseline.value + half(baseline))
    }

    /// The criterion of `evaluations/published/check.py`.
    fn agrees(computed: f64, spread: f64, printed: &Printed) -> bool {
        let (unit, epsilon) = (printed.ulp(), 1e-9 * computed.abs().max(1.0));
        let distance = (computed - printed.value).abs();
        let truncated = (computed / unit + 1e-9f64.copysign(computed)).trunc() * unit;
        distance <= unit / 2.0 + spread + epsilon
            || (truncated - printed.value).abs() < unit / 1000.0
            || (spread > 0.0
                && (0.0..unit).contains(&(computed.abs() + spread - printed.value.abs())))
    }

    #[test]
    fn every_published_percentage() {
        let mut compared = 0;
        for id in evaluation::ids() {
            let evaluation = evaluation::get(id).expect("embedded evaluations are valid");
            for table in &evaluation.tables {
                let rows = table.rows.iter().filter_map(|r| Some((r, r.pct.as_ref()?)));
                for (row, percentages) in rows {
                    let rule = table
                        .pct_rule
                        .expect("a rule wherever percentages are printed");
                    let baseline = &row.values[0];
                    for (value, printed) in row.values.iter().zip(percentages) {
                        if value.value.is_nan() || baseline.value.is_nan() {
                            continue;
                        }
                        let computed = rule.percent(value.value, baseline.value);
                        assert!(
                            agrees(computed, spread(rule, value, baseline), printed),
                            "{id} {} {}: printed {}, computed {computed}",
                            table.id,
                            row.name,
                            printed.value
                        );
                        compared += 1;
                    }
                }
            }
        }
        assert_eq!(compared, 348);
    }
}
