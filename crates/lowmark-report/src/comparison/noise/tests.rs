//! What is told from noise, and what is not.

use super::*;
use crate::stats::Preference;
use crate::vmstat::ValueFormat;

/// A row with the samples of each column.
fn row(samples: Vec<Vec<f64>>) -> ComparedRow {
    let columns = samples.len();
    ComparedRow {
        name: "row".into(),
        unit: String::new(),
        better: Preference::Lower,
        format: ValueFormat::Decimals(2),
        values: vec![None; columns],
        percents: vec![None; columns],
        exact_values: vec![None; columns],
        exact_percents: vec![None; columns],
        spreads: vec![None; columns],
        significant: vec![None; columns],
        sign_flips: vec![None; columns],
        samples,
    }
}

fn judged(rows: Vec<ComparedRow>) -> Vec<ComparedRow> {
    let columns = rows[0].samples.len();
    let mut blocks = [Block {
        id: "test",
        title: "test",
        rows,
    }];
    judge(&mut blocks, columns);
    let [block] = blocks;
    block.rows
}

/// Numbers in 0..1 that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    fn samples(&mut self, mean: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| mean + self.normal()).collect()
    }
}

/// A column that differs from the first by chance alone is called different as often as stated, whatever the number of
/// its rows.
#[test]
fn the_error_is_that_of_the_whole_column() {
    let mut numbers = Numbers(1);
    for rows in [1, 10, 60] {
        let trials = 1000;
        let wrong = (0..trials).filter(|_| {
            let one = |_| row(vec![numbers.samples(100.0, 5), numbers.samples(100.0, 5)]);
            let judged = judged((0..rows).map(one).collect());
            judged.iter().any(|row| row.significant[1] == Some(true))
        });
        let wrong = wrong.count();
        // 50 are expected; 77 and more come by chance once in ten thousand times.
        assert!(wrong < 77, "{wrong} of {trials} columns of {rows} rows");
    }
}

#[test]
fn a_difference_of_several_deviations_is_found_among_many_rows() {
    let mut numbers = Numbers(2);
    let found = (0..200).filter(|_| {
        let mut rows: Vec<ComparedRow> = (0..50)
            .map(|_| row(vec![numbers.samples(100.0, 5), numbers.samples(100.0, 5)]))
            .collect();
        rows.push(row(vec![
            numbers.samples(100.0, 5),
            numbers.samples(108.0, 5),
        ]));
        judged(rows)[50].significant[1] == Some(true)
    });
    assert!(found.count() > 190);
}

#[test]
fn what_never_varies_is_different_once_there_are_enough_repeats() {
    let constant = |repeats, value| vec![value; repeats];
    // Beside forty others.
    let of = |repeats, value| {
        let one = |value| row(vec![constant(repeats, 7.0), constant(repeats, value)]);
        let others = std::iter::repeat_n(7.0, 40);
        judged(std::iter::once(value).chain(others).map(one).collect())
    };
    assert_eq!(of(5, 8.0)[0].significant, [None, Some(true)]);
    assert_eq!(of(5, 7.0)[0].significant, [None, Some(false)]);
    assert_eq!(of(2, 8.0)[0].significant, [None, Some(false)]);
    assert_eq!(of(1, 8.0)[0].significant, [None, None]);
    assert_eq!(arrangements(5, 5), 252.0);
}

#[test]
fn rows_whose_sign_flips_are_told() {
    let rows = vec![
        row(vec![vec![1.0, 5.0, 3.0], vec![2.0, 4.0, 9.0]]),
        row(vec![vec![1.0, 5.0, 3.0], vec![2.0, 6.0, 3.0]]),
        row(vec![vec![1.0], vec![2.0]]),
    ];
    let flips: Vec<_> = judged(rows).iter().map(|row| row.sign_flips[1]).collect();
    assert_eq!(flips, [Some(true), Some(false), None]);
}
