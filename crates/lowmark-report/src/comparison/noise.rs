//! What a comparison can tell from noise.
//!
//! 1. A row of a column is compared with that of the first by Welch's t test, which asks how likely a difference of
//!    this size is if nothing but chance is between them.
//! 2. A table has many rows, so that some would be found different by chance. By Holm's method all rows of a column
//!    together are called different wrongly in [`ERROR`] of all comparisons of a kernel with itself: that is the error of
//!    the whole column, not of each row.
//! 3. Repeats with the same seed are the same boot of the machine. Where the sign of the difference changes from one to
//!    the next, what a single pair of runs shows is chance, whatever the means are; it is said of such rows.
//!
//! Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).

use super::{Block, ComparedRow, Comparison};
use crate::stats;
use crate::table::counted;

/// Part of the comparisons of a kernel with itself in which some row of a column may be called different.
pub const ERROR: f64 = 0.05;
/// Repeats that are enough to say of a row that does not vary that it never does.
const ENOUGH: usize = 5;

/// Judges all rows: sets [`ComparedRow::significant`] and [`ComparedRow::sign_flips`].
pub(super) fn judge(blocks: &mut [Block], columns: usize) {
    let mut rows: Vec<&mut ComparedRow> = blocks.iter_mut().flat_map(|b| &mut b.rows).collect();
    for column in 1..columns {
        let probable = rows.iter().enumerate().filter_map(|(at, row)| {
            let p = probability(&row.samples[0], &row.samples[column])?;
            Some((at, p))
        });
        let mut probable: Vec<(usize, f64)> = probable.collect();
        // Where nothing differs nothing is tested.
        for &(at, _) in probable.iter().filter(|(_, p)| *p == 1.0) {
            rows[at].significant[column] = Some(false);
        }
        probable.retain(|&(_, p)| p < 1.0);
        let values: Vec<f64> = probable.iter().map(|(_, p)| *p).collect();
        let beyond = holm(&values, values.len());
        for (&(at, _), beyond) in probable.iter().zip(beyond) {
            rows[at].significant[column] = Some(beyond);
        }
        for row in &mut rows {
            row.sign_flips[column] = flips(&row.samples[0], &row.samples[column]);
        }
    }
}

/// Which of these probabilities are too small for chance by Holm's method, where `tests` were made in all: those that are
/// not among them count as not small.
pub(crate) fn holm(probabilities: &[f64], tests: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| {
        let values = probabilities[a].total_cmp(&probabilities[b]);
        values.then(a.cmp(&b))
    });
    let mut beyond = vec![false; probabilities.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if probabilities[at] > ERROR / tests.saturating_sub(rank).max(1) as f64 {
            break;
        }
        beyond[at] = true;
    }
    beyond
}

/// How likely a difference of the means at least as large is by chance; none without repeats of both.
pub(crate) fn probability(baseline: &[f64], own: &[f64]) -> Option<f64> {
    if baseline.len() < 2 || own.len() < 2 {
        return None;
    }
    if let Some(test) = stats::welch(own, baseline) {
        return Some(test.p);
    }
    // No repeat differs from another of its kernel, and with enough of them that is no chance.
    let same = own.first() == baseline.first();
    let enough = own.len().min(baseline.len()) >= ENOUGH;
    Some(match (same, enough) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => 2.0 / arrangements(own.len(), baseline.len()),
    })
}

/// Ways to choose `a` of `a + b` values: with fewer repeats two of these would look as different by chance.
fn arrangements(a: usize, b: usize) -> f64 {
    (1..=a).fold(1.0, |ways, at| ways * (b + at) as f64 / at as f64)
}

/// Whether some repeats have more than the same repeat of the first column and others less; none with fewer than two
/// pairs.
fn flips(baseline: &[f64], own: &[f64]) -> Option<bool> {
    let pairs = baseline.len().min(own.len());
    let differences = || own.iter().zip(baseline).map(|(own, base)| own - base);
    (pairs > 1).then(|| differences().any(|d| d > 0.0) && differences().any(|d| d < 0.0))
}

/// Whether anything differs that chance might have made.
fn is_tested(row: &ComparedRow, column: usize) -> bool {
    row.significant[column].is_some()
        && probability(&row.samples[0], &row.samples[column]).is_some_and(|p| p < 1.0)
}

/// How many rows are tested together, of the column with most.
pub(super) fn tests(blocks: &[Block], columns: usize) -> usize {
    let rows = || blocks.iter().flat_map(|block| &block.rows);
    let of_column = |column| rows().filter(|row| is_tested(row, column)).count();
    (1..columns).map(of_column).max().unwrap_or(0)
}

/// What stands below a table whose values are means.
pub(super) fn legend(comparison: &Comparison) -> Vec<String> {
    let Comparison {
        columns,
        blocks,
        tests,
    } = comparison;
    let rows = || blocks.iter().flat_map(|block| &block.rows);
    if columns.iter().all(|(_, repeats)| *repeats < 2) {
        return Vec::new();
    }
    let mut lines = vec![
        "±  standard deviation of the repeats, each with another seed and on another boot of the machine.".to_owned(),
    ];
    let judged = |row: &&ComparedRow| row.significant.iter().any(Option::is_some);
    if rows().any(|row| judged(&row)) {
        lines.push(format!(
            "~  within the noise: Welch's t test with Holm's correction for {}. A kernel compared with itself shows \
             a row without ~ in at most {} % of comparisons.",
            counted(*tests as u64, "row"),
            100.0 * ERROR
        ));
    }
    for (column, (name, _)) in columns.iter().enumerate().skip(1) {
        let flipping = |row: &&ComparedRow| {
            row.sign_flips[column] == Some(true) && row.percents[column].is_some()
        };
        let names: Vec<&str> = rows()
            .filter(flipping)
            .map(|row| row.name.as_str())
            .collect();
        if !names.is_empty() {
            lines.push(format!(
                "{name}: better in some repeats and worse in others: {}.",
                names.join(", ")
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
