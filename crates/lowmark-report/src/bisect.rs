//! Which changes make the difference between two kernels, and how much each.
//!
//! Two kernels differ in changes, in an order. A kernel between them has a [`Subset`] of these. What a kernel is, and how
//! it is run, is not known here: [`Bisection::wanted`] says which subsets are to be run next, and gets the figures of
//! their repeats ([`Bisection::measured`]) or the reason why there is no such kernel ([`Bisection::refused`]).
//!
//! 1. Both kernels are run. A figure in which they do not differ beyond noise is not taken apart.
//! 2. What a change does is looked for in three places: *in order*, added to the changes before it; *alone* on the first
//!    kernel; *left out* of the second one.
//! 3. The changes are halved in their order (`search`): of two kernels between which some figure differs beyond noise, the
//!    one in the middle is run as well, until two that differ have one change between them. Where nothing shows in order,
//!    the stretch of changes is looked at alone (left out, if there is no such kernel): what shows in two of three places
//!    shows in one of any two. A stretch that shows in neither is left alone if it is short, so that hundreds of changes
//!    take few runs.
//! 4. An effect is beyond noise if Welch's test says so by Holm's method with a test for every change, every figure and
//!    every place, made or not. A change is *named* if in two places it does the same beyond noise. To name one that
//!    does nothing, chance has to fool one test at least, which Holm's method allows in [`noise::ERROR`] of all searches.
//! 5. All named changes together on the first kernel, without all others, give what they account for. What that is more
//!    or less than the sum of each alone is their interaction, looked for in pairs; the rest of the difference is that of
//!    all other changes.
//!
//! What is noise is what `compare` takes for noise ([`crate::comparison::noise`]).

mod document;
mod effects;
mod metric;
mod search;
mod text;

pub use effects::{Attribution, Effect, MetricVerdict, Pair};
pub use metric::{Metric, UnknownMetric};

use crate::comparison::{self, Rows};
use crate::vmstat::ValueFormat;
use crate::{SeriesRows, comparison::noise};
use lowmark_record::Recording;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Which of the changes a kernel has, in their order.
pub type Subset = Vec<bool>;

/// One change, as it is told.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// The version that brought it; none of what was set by hand.
    pub version: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// What it changes, one line.
    pub summary: String,
}

/// A cell of a published table, as a run has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Name of its row.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How its values are printed.
    pub format: ValueFormat,
    /// Its value; none where the run has no such figure.
    pub value: Option<f64>,
}

/// The figures of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    cells: Vec<Cell>,
    rows: Rows,
    counters: BTreeMap<String, u64>,
}

impl Figures {
    /// Those of a recording.
    pub fn of(recording: &Recording) -> Figures {
        Figures {
            cells: Vec::new(),
            rows: comparison::rows(recording, SeriesRows::default()),
            counters: recording.counters.clone(),
        }
    }

    /// The same with cells of a published table, which are taken apart in place of all other figures.
    pub fn with_cells(self, cells: Vec<Cell>) -> Figures {
        Figures { cells, ..self }
    }
}

/// What came of a kernel.
#[derive(Debug, Clone)]
enum Probe {
    /// Figures of its repeats.
    Measured(Rc<[Figures]>),
    /// There is no such kernel, or its runs did not complete.
    Refused(String),
}

/// The search for the changes that make a difference.
#[derive(Debug)]
pub struct Bisection {
    ends: [String; 2],
    changes: Vec<Change>,
    asked: Vec<String>,
    probes: BTreeMap<Subset, Probe>,
}

/// What came of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The two kernels.
    pub ends: [String; 2],
    /// Repeats of each kernel.
    pub repeats: usize,
    /// What they differ in.
    pub changes: Vec<Change>,
    /// Kernels that were asked for, the two ends among them, and those of them that cannot be run.
    pub kernels: [usize; 2],
    /// The figures that were taken apart.
    pub metrics: Vec<MetricVerdict>,
    /// Figures that differ and were not taken apart, as they are neither good nor bad.
    pub others: Vec<String>,
    /// Figures that were asked for, or all, in which the kernels do not differ beyond noise.
    pub alike: Vec<String>,
    /// Figures that are not taken apart because they are the same as another one in every run of both kernels; that one
    /// stands behind them.
    pub same: Vec<[String; 2]>,
}

impl Bisection {
    /// A search between two kernels that differ in these changes. Without any `metrics` every figure with good and bad
    /// values is taken apart; else those of a comparison's rows or counters that have these names.
    pub fn new(ends: [String; 2], changes: Vec<Change>, metrics: Vec<String>) -> Bisection {
        Bisection {
            ends,
            changes,
            asked: metrics,
            probes: BTreeMap::new(),
        }
    }

    /// The figures of the repeats of a kernel, in the order of their seeds.
    pub fn measured(&mut self, subset: Subset, repeats: Rc<[Figures]>) {
        self.probes.insert(subset, Probe::Measured(repeats));
    }

    /// There is no such kernel, or its runs did not complete: why.
    pub fn refused(&mut self, subset: Subset, reason: String) {
        self.probes.insert(subset, Probe::Refused(reason));
    }

    /// The subset of the first changes.
    fn prefix(&self, length: usize) -> Subset {
        (0..self.changes.len()).map(|at| at < length).collect()
    }

    /// The subset of some changes alone.
    fn only(&self, ranges: &[&Range<usize>]) -> Subset {
        let among = |at: usize| ranges.iter().any(|range| range.contains(&at));
        (0..self.changes.len()).map(among).collect()
    }

    /// The subset of all changes but some.
    fn without(&self, range: &Range<usize>) -> Subset {
        let count = self.changes.len();
        (0..count).map(|at| !range.contains(&at)).collect()
    }

    /// The repeats of a subset; none where there are none, or none yet.
    fn repeats(&self, subset: &Subset) -> Option<&[Figures]> {
        match self.probes.get(subset)? {
            Probe::Measured(repeats) => Some(repeats),
            Probe::Refused(_) => None,
        }
    }

    /// Why there are no repeats of a subset.
    fn refusal(&self, subset: &Subset) -> Option<&str> {
        match self.probes.get(subset)? {
            Probe::Measured(_) => None,
            Probe::Refused(reason) => Some(reason),
        }
    }

    /// The values of a figure in the repeats of a subset.
    fn samples(&self, subset: &Subset, metric: &Metric) -> Option<Vec<f64>> {
        let repeats = self.repeats(subset)?;
        repeats
            .iter()
            .map(|figures| metric.value(figures))
            .collect()
    }

    /// What came of it.
    ///
    /// # Errors
    ///
    /// When no figure has a name that was asked for.
    pub fn verdict(&self) -> Result<Verdict, UnknownMetric> {
        let found = self.metrics()?;
        let refused = self.probes.values();
        let refused = refused.filter(|probe| matches!(probe, Probe::Refused(_)));
        let names = |metrics: Vec<Metric>| metrics.into_iter().map(|it| it.name).collect();
        let first = self.repeats(&self.prefix(0));
        Ok(Verdict {
            ends: self.ends.clone(),
            repeats: first.map_or(0, <[Figures]>::len),
            changes: self.changes.clone(),
            kernels: [self.probes.len(), refused.count()],
            metrics: self.effects(&found.differ),
            others: names(found.neutral),
            alike: names(found.alike),
            same: found.same,
        })
    }
}

/// How likely a difference of two samples is by chance; 1 where it cannot be told.
fn chance(a: &[f64], b: &[f64]) -> f64 {
    noise::probability(a, b).unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
