//! Figures on dirty throttling as rows, of the table of a report and of comparisons.

use super::DirtyFigures;
use crate::comparison::{BlockInput, Comparison, Measured, Rows};
use crate::stats::Preference;
use crate::vmstat::ValueFormat;

/// Heading of the table.
pub(super) const TITLE: &str = "Dirty throttling";

impl DirtyFigures {
    /// The figures that are known, by the names that reports print.
    pub(crate) fn rows(&self) -> Rows {
        use Preference::{Lower, None as Neither};
        let count = |value: u64| Some(value as f64);
        let impossible = Some(self.impossible).filter(|events| *events > 0);
        let rows = [
            ("Writers", Neither, 0, count(self.writers)),
            ("balance_dirty_pages() calls", Neither, 0, count(self.looks)),
            ("First throttled after (ms)", Neither, 0, self.first_ms),
            (
                "Dirty pages then (% of threshold)",
                Neither,
                1,
                self.first_share,
            ),
            (
                "Dirty pages, second half (% of threshold)",
                Neither,
                1,
                self.mean_share,
            ),
            ("Pause, shortest (ms)", Neither, 0, self.pause_min_ms),
            (
                "Pause, median of the second half (ms)",
                Neither,
                0,
                self.pause_median_ms,
            ),
            ("Pause, longest (ms)", Neither, 0, self.pause_max_ms),
            ("Time waited by all (s)", Lower, 2, Some(self.waited_s)),
            (
                "Spread of rates, second half (%)",
                Neither,
                1,
                self.rate_spread,
            ),
            (
                "Largest foreground write (pages)",
                Neither,
                0,
                self.written_max,
            ),
            (
                "Events left out: no kernel has such values",
                Neither,
                0,
                impossible.and_then(count),
            ),
        ];
        let row = |(name, better, digits, value): (&str, Preference, usize, Option<f64>)| {
            let value = value?;
            Some(Measured {
                name: name.to_owned(),
                unit: "",
                better,
                format: ValueFormat::Decimals(digits),
                value,
                exact: value,
            })
        };
        rows.into_iter().filter_map(row).collect()
    }
}

impl Comparison {
    /// The same with a block on dirty throttling, of one trace for each column; without one if none has an event of it.
    #[must_use]
    pub fn with_throttling(mut self, figures: &[DirtyFigures]) -> Comparison {
        if figures.iter().any(|it| it.looks > 0 || it.impossible > 0) {
            let block = BlockInput {
                id: "dirty-throttling",
                title: TITLE,
                columns: figures.iter().map(|it| vec![it.rows()]).collect(),
            };
            let throttling = Comparison::of_blocks(self.columns.clone(), [block]);
            self.blocks.extend(throttling.blocks);
        }
        self
    }
}
