//! A comparison in a sentence and as plots: how much each figure changes, with its interval.

use super::{ComparedRow, Comparison};
use crate::plot::{IntervalRow, Intervals, Plot};
use crate::stats;
use crate::table::Role;

/// Figures that a plot has at most; tables have all.
const ROWS_MAX: usize = 30;

impl Comparison {
    /// What came out, a sentence for each column but the first; none where no figure is good or bad.
    pub(super) fn answers(&self) -> Vec<String> {
        let columns = 1..self.columns.len();
        columns
            .filter_map(|column| self.answer_of(column))
            .collect()
    }

    /// How much each figure changes, a plot for each column but the first.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let columns = 1..self.columns.len();
        columns.filter_map(|column| self.plot_of(column)).collect()
    }

    /// Rows that are good or bad and differ.
    fn differing(&self, column: usize) -> impl Iterator<Item = (&ComparedRow, f64)> {
        let rows = self.blocks.iter().flat_map(|block| &block.rows);
        rows.filter_map(move |row| {
            let percent = row.exact_percents[column]?;
            (percent != 0.0 && percent.is_finite()).then_some((row, percent))
        })
    }

    fn answer_of(&self, column: usize) -> Option<String> {
        let judged = self.blocks.iter().flat_map(|block| &block.rows);
        let count = judged
            .filter(|row| row.exact_percents[column].is_some())
            .count();
        let is_tested = self
            .differing(column)
            .any(|(row, _)| row.significant[column].is_some());
        let told = |row: &ComparedRow| row.significant[column] != Some(false);
        let better = self
            .differing(column)
            .filter(|(row, p)| told(row) && *p > 0.0);
        let worse = self
            .differing(column)
            .filter(|(row, p)| told(row) && *p < 0.0);
        let (better, worse) = (better.count(), worse.count());
        let ([first, own], chance) = (
            [&self.columns[0].0, &self.columns[column].0],
            if is_tested {
                " beyond the noise"
            } else {
                "; without repeats nothing tells that from chance"
            },
        );
        (count > 0).then(|| {
            format!(
                "{own} against {first}: of {count} figures that are good or bad {better} are better and {worse} are \
                 worse{chance}."
            )
        })
    }

    fn plot_of(&self, column: usize) -> Option<Plot> {
        let row = |(row, percent): (&ComparedRow, f64)| {
            let noise = row.significant[column] == Some(false);
            let role = match (noise, percent > 0.0) {
                (true, _) => Role::Unknown,
                (false, true) => Role::Good,
                (false, false) => Role::Bad,
            };
            IntervalRow {
                name: row.name.clone(),
                value: percent,
                interval: half_percent(row, column).map(|half| [percent - half, percent + half]),
                words: format!("{percent:+.2} %{}", if noise { " ~" } else { "" }),
                role,
            }
        };
        let rows: Vec<IntervalRow> = self.differing(column).take(ROWS_MAX).map(row).collect();
        let (first, own) = (&self.columns[0].0, &self.columns[column].0);
        (!rows.is_empty()).then(|| {
            Plot::Intervals(Intervals {
                title: format!("{own} against {first}"),
                axis: "change, % (plus is better)".to_owned(),
                remark: "The line is the interval that has the change in 95 % of cases by Welch's t, without correction \
                         for many rows. ~ within the noise. Triangles lie beyond the axis."
                    .to_owned(),
                rows,
            })
        })
    }
}

/// Half of the interval of a change, % of the first column's mean; none without repeats or where that is 0.
fn half_percent(row: &ComparedRow, column: usize) -> Option<f64> {
    let (base, own) = (&row.samples[0], &row.samples[column]);
    let mean = stats::amean(base).filter(|mean| *mean != 0.0)?;
    let half = stats::half_interval(&[(1.0, own), (-1.0, base)])?;
    Some(100.0 * half / mean.abs())
}
