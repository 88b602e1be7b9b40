//! Series of samples on both sides: what operations took, and how many attempts of an `alloc` got their block.
//!
//! 1. What an operation took is a time, and printed beside the kernel's; it is not among the figures.
//! 2. The attempts of an `alloc` are the samples of the series of its name and of that with `-failed`. Of each run the part
//!    that got a block is taken, in percent. The model's median may be 10 points off, or within the range of the kernel's runs.

use super::figures::Range;
use crate::document::Section;
use crate::stats;
use crate::table::{Align, TextTable};
use lowmark_record::{Recording, Series, Unit};
use serde::Serialize;

/// What a series of attempts without success has at the end of its name.
const FAILED: &str = "-failed";
/// Percentage points that the model may be off.
const POINTS: f64 = 10.0;

/// A series on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Side {
    /// Samples of a run.
    pub samples: Range,
    /// Median of the samples of a run, in the unit of the series; none if no run has any.
    pub p50: Option<Range>,
    /// Their 99th percentile.
    pub p99: Option<Range>,
}

/// A series on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Both {
    /// Name.
    pub name: String,
    /// Symbol of the unit of its times.
    pub unit: &'static str,
    /// The kernel's runs.
    pub kernel: Side,
    /// The model's runs.
    pub model: Side,
}

/// Attempts of an `alloc` on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempts {
    /// Name of the series.
    pub series: String,
    /// Attempts of a run of the kernel, and of the model.
    pub attempts: [Range; 2],
    /// Of a run of the kernel, the part that got a block, %.
    pub kernel: Range,
    /// The same of the model.
    pub model: Range,
    /// What the model's median has more, percentage points.
    pub points: f64,
    /// Whether that is near enough.
    pub near: bool,
}

/// The series that have a sample on either side, those of the kernel first.
pub(super) fn series(kernel: &[&Recording], model: &[&Recording]) -> Vec<Both> {
    let both = |name: String| {
        let unit = kernel.iter().chain(model).find_map(|run| find(run, &name));
        let unit = unit.map_or(Unit::Nanoseconds, |series| series.unit);
        Some(Both {
            unit: unit.symbol(),
            kernel: side(kernel, &name, unit)?,
            model: side(model, &name, unit)?,
            name,
        })
    };
    let moved = |both: &Both| both.kernel.samples.max > 0.0 || both.model.samples.max > 0.0;
    let found = names(kernel, model).into_iter().filter_map(both);
    found.filter(moved).collect()
}

/// The attempts of each `alloc` that names a series.
pub(super) fn attempts(kernel: &[&Recording], model: &[&Recording]) -> Vec<Attempts> {
    let names = names(kernel, model);
    let of_attempts = |name: &&String| names.contains(&format!("{name}{FAILED}"));
    let both = |name: &String| {
        let (of_kernel, of_model) = (shares(kernel, name), shares(model, name));
        let range = |of: fn(&Share) -> f64, shares: &[Share]| {
            Range::of(&shares.iter().map(of).collect::<Vec<f64>>())
        };
        let attempts = |shares| range(|share| share.attempts, shares);
        let percent = |shares| range(|share| share.percent, shares);
        let (kernel, model) = (percent(&of_kernel)?, percent(&of_model)?);
        let points = model.median - kernel.median;
        let inside = (kernel.min..=kernel.max).contains(&model.median);
        Some(Attempts {
            series: name.clone(),
            attempts: [attempts(&of_kernel)?, attempts(&of_model)?],
            kernel,
            model,
            points,
            near: inside || points.abs() <= POINTS,
        })
    };
    names.iter().filter(of_attempts).filter_map(both).collect()
}

/// The series as a table, and a sentence for the attempts of each `alloc`.
pub(super) fn write(series: &[Both], attempts: &[Attempts], section: &mut Section<'_>) {
    if series.is_empty() {
        return;
    }
    let mut table = TextTable::new().column("series", Align::Left);
    for heading in ["samples", "model", "p50", "model", "p99", "model", "unit"] {
        table = table.column(heading, Align::Right);
    }
    for both in series {
        let count = |side: &Side| format!("{:.0}", side.samples.median);
        let time = |range: Option<Range>| {
            range.map_or("-".to_owned(), |range| format!("{:.2}", range.median))
        };
        let cells = [
            both.name.clone(),
            count(&both.kernel),
            count(&both.model),
            time(both.kernel.p50),
            time(both.model.p50),
            time(both.kernel.p99),
            time(both.model.p99),
            both.unit.to_owned(),
        ];
        table.row(cells);
    }
    section.blank();
    section.table(table);
    for of in attempts {
        let side = |range: &Range| {
            format!(
                "{:.1}% ({:.1} to {:.1})",
                range.median, range.min, range.max
            )
        };
        section.line(format!(
            "{}: of {:.0} attempts the kernel granted {}, the model {}: {:+.1} points, {}",
            of.series,
            of.attempts[0].median,
            side(&of.kernel),
            side(&of.model),
            of.points,
            if of.near {
                "within tolerance"
            } else {
                "beyond tolerance"
            }
        ));
    }
}

/// Names of the series of all runs, in their order.
fn names(kernel: &[&Recording], model: &[&Recording]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for series in kernel.iter().chain(model).flat_map(|run| &run.series) {
        if !names.contains(&series.name) {
            names.push(series.name.clone());
        }
    }
    names
}

fn find<'a>(run: &'a Recording, name: &str) -> Option<&'a Series> {
    run.series.iter().find(|series| series.name == name)
}

fn count(run: &Recording, name: &str) -> f64 {
    find(run, name).map_or(0.0, |series| series.samples.len() as f64)
}

/// A series in the runs of one side; none if there is no run.
fn side(runs: &[&Recording], name: &str, unit: Unit) -> Option<Side> {
    let samples: Vec<f64> = runs.iter().map(|run| count(run, name)).collect();
    let quantile = |percent: f64| {
        let of_run = |run: &&Recording| {
            let times = find(run, name)?.samples.iter().map(|&(_, ns)| ns as f64);
            let sorted = stats::sorted(&times.collect::<Vec<f64>>());
            Some(stats::quartile_2016(&sorted, percent)? / unit.nanoseconds() as f64)
        };
        Range::of(&runs.iter().filter_map(of_run).collect::<Vec<f64>>())
    };
    Some(Side {
        samples: Range::of(&samples)?,
        p50: quantile(50.0),
        p99: quantile(99.0),
    })
}

/// The attempts of a run.
struct Share {
    attempts: f64,
    percent: f64,
}

/// The attempts of each run that made any.
fn shares(runs: &[&Recording], name: &str) -> Vec<Share> {
    let share = |run: &&Recording| {
        let got = count(run, name);
        let attempts = got + count(run, &format!("{name}{FAILED}"));
        (attempts > 0.0).then(|| Share {
            attempts,
            percent: 100.0 * got / attempts,
        })
    };
    runs.iter().filter_map(share).collect()
}
