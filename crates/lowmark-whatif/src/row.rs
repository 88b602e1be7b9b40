//! What is said of one counter.

use crate::counters::{COUNTERS, Counter, Figures, Sort};
use serde::Serialize;

/// How much of an answer there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Verdict {
    /// It would hardly change: by less than two runs of the same kernel differ.
    NoChange,
    /// About so much.
    Number,
    /// The reconstructions agree on which way it goes, and differ in how far.
    Range,
    /// Which way it goes is all that can be said: kernels do not repeat it themselves.
    Direction,
    /// There was none, and there would be some.
    Begins,
    /// The reconstructions do not agree on which way it goes.
    CannotSay,
    /// The model is off with the setting as it was.
    Off {
        /// What the best reconstruction has there.
        model: u64,
    },
    /// Across kernels it says no more than chance.
    OtherKernel,
}

/// A counter that was, and would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name in `/proc/vmstat`, or of the sum of several.
    pub name: &'static str,
    /// As it was recorded.
    pub was: u64,
    /// The middle of what it would be by all reconstructions.
    pub would_be: u64,
    /// The least of them.
    pub least: u64,
    /// The greatest of them.
    pub most: u64,
    /// How much of it is an answer.
    pub verdict: Verdict,
}

impl Row {
    /// Whether it says that something would change.
    pub(crate) fn moves(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Number | Verdict::Range | Verdict::Direction | Verdict::Begins
        )
    }

    /// Whether it says what would change, or that nothing would.
    pub(crate) fn says(&self) -> bool {
        self.moves() || self.verdict == Verdict::NoChange
    }
}

/// The model may be off by one in this many with the setting as it was.
const OFF: u64 = 4;

/// Figures of a reconstruction with the setting as it was and with the other one.
pub(crate) struct Both {
    pub(crate) was: Figures,
    pub(crate) would_be: Figures,
}

/// The row of each counter that is answered for, in their order; `both` has the best reconstruction first.
pub(crate) fn rows(seen: &Figures, both: &[Both], other_kernel: bool) -> Vec<Row> {
    let rows = COUNTERS.iter().enumerate().filter_map(|(at, counter)| {
        if counter.sort == Sort::Shape {
            return None;
        }
        let was = seen.0[at]?;
        let models: Option<Vec<(u64, u64)>> = both
            .iter()
            .map(|both| Some((both.was.0[at]?, both.would_be.0[at]?)))
            .collect();
        let row = row(counter, was, &models?, other_kernel);
        let means_something = was.max(row.most) > counter.floor;
        means_something.then_some(row)
    });
    rows.collect()
}

fn row(counter: &'static Counter, was: u64, models: &[(u64, u64)], other_kernel: bool) -> Row {
    let floor = counter.floor;
    let scaled = |&(before, after): &(u64, u64)| {
        let [was, after, before] =
            [was, after, before].map(|it| u128::from(it) + u128::from(floor));
        let would = u64::try_from(was * after / before).unwrap_or(u64::MAX);
        would.saturating_sub(floor)
    };
    let mut would: Vec<u64> = models.iter().map(scaled).collect();
    let model = models.first().map_or(0, |&(before, _)| before);
    would.sort_unstable();
    let (least, most) = match would.as_slice() {
        [] => (was, was),
        [least, .., most] => (*least, *most),
        [one] => (*one, *one),
    };
    let middle = would.get(would.len().saturating_sub(1) / 2);
    let changed = Changed {
        was: u128::from(was) + u128::from(floor),
        least: u128::from(least) + u128::from(floor),
        most: u128::from(most) + u128::from(floor),
    };
    let off = model.abs_diff(was) > (was / OFF).max(floor);
    let verdict = if off {
        Verdict::Off { model }
    } else if other_kernel && counter.sort == Sort::Stall {
        Verdict::OtherKernel
    } else if changed.hardly() {
        Verdict::NoChange
    } else if changed.both_ways() {
        Verdict::CannotSay
    } else if was <= floor {
        Verdict::Begins
    } else if counter.sort == Sort::Stall {
        Verdict::Direction
    } else if changed.differ() {
        Verdict::Range
    } else {
        Verdict::Number
    };
    Row {
        name: counter.name,
        was,
        would_be: middle.copied().unwrap_or(was),
        least,
        most,
        verdict,
    }
}

/// A figure and the ends of the range that it would be in.
struct Changed {
    was: u128,
    least: u128,
    most: u128,
}

impl Changed {
    /// By less than 15 % in all reconstructions.
    fn hardly(&self) -> bool {
        self.least * 100 > self.was * 85 && self.most * 100 < self.was * 115
    }

    /// Up in some and down in others.
    fn both_ways(&self) -> bool {
        self.least * 100 <= self.was * 85 && self.most * 100 >= self.was * 115
    }

    /// By more than a half of the lesser.
    fn differ(&self) -> bool {
        self.most * 2 > self.least * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, was: u64, models: &[(u64, u64)]) -> Verdict {
        let counter = COUNTERS.iter().find(|it| it.name == name);
        row(counter.expect("one"), was, models, false).verdict
    }

    #[test]
    fn what_models_agree_on_is_a_number() {
        let half = [(10_000, 5_000), (11_000, 5_200)];
        assert_eq!(verdict("pswpin", 10_000, &half), Verdict::Number);
        assert_eq!(verdict("allocstall", 10_000, &half), Verdict::Direction);
        assert_eq!(
            verdict("pswpin", 10_000, &[(10_000, 9_500)]),
            Verdict::NoChange
        );
    }

    #[test]
    fn what_they_do_not_agree_on_is_none() {
        let apart = [(10_000, 5_000), (10_000, 20_000)];
        assert_eq!(verdict("pswpin", 10_000, &apart), Verdict::CannotSay);
        let wide = [(10_000, 12_000), (10_000, 40_000)];
        assert_eq!(verdict("pswpin", 10_000, &wide), Verdict::Range);
        assert_eq!(
            verdict("pswpin", 10_000, &[(5_000, 1)]),
            Verdict::Off { model: 5_000 }
        );
        assert_eq!(verdict("pswpin", 0, &[(0, 40_000)]), Verdict::Begins);
    }

    #[test]
    fn across_kernels_stalls_are_not_answered() {
        let counter = COUNTERS.iter().find(|it| it.name == "allocstall");
        let row = row(counter.expect("one"), 1_000, &[(1_000, 10)], true);
        assert_eq!(row.verdict, Verdict::OtherKernel);
    }
}
