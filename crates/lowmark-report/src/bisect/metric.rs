//! Which figures differ between the two kernels.

use super::{Bisection, Cell, Figures, chance};
use crate::comparison::{Measured, noise};
use crate::stats::Preference;
use crate::vmstat::ValueFormat;

/// A figure of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Name of a row of a comparison, or of a counter.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How its values are printed.
    pub format: ValueFormat,
    better: Preference,
    kind: Kind,
}

/// Where a figure is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A cell of a published table.
    Cell,
    /// A row of a comparison.
    Row,
    /// A counter of `/proc/vmstat`.
    Counter,
}

/// No figure has the name that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runs of both kernels have no figure called {name}; they have {known}")]
pub struct UnknownMetric {
    /// What was asked for.
    pub name: String,
    /// Rows that there are.
    pub known: String,
}

/// The figures, sorted by whether they differ.
pub(super) struct Sorted {
    /// Those to take apart.
    pub(super) differ: Vec<Metric>,
    /// Those that differ and are neither good nor bad.
    pub(super) neutral: Vec<Metric>,
    /// The others.
    pub(super) alike: Vec<Metric>,
    /// Those that are the same as another one in every run, that one behind them.
    pub(super) same: Vec<[String; 2]>,
}

impl Metric {
    fn row(row: &Measured) -> Metric {
        Metric {
            name: row.name.clone(),
            unit: row.unit.to_owned(),
            format: row.format,
            better: row.better,
            kind: Kind::Row,
        }
    }

    fn cell(cell: &Cell) -> Metric {
        Metric {
            name: cell.name.clone(),
            unit: cell.unit.clone(),
            format: cell.format,
            better: Preference::None,
            kind: Kind::Cell,
        }
    }

    fn counter(name: &str) -> Metric {
        Metric {
            name: name.to_owned(),
            unit: String::new(),
            format: ValueFormat::Count,
            better: Preference::None,
            kind: Kind::Counter,
        }
    }

    /// Its value in a run; none where the run has no such figure.
    pub(super) fn value(&self, figures: &Figures) -> Option<f64> {
        match self.kind {
            Kind::Cell => {
                let mut cells = figures.cells.iter();
                cells.find(|cell| cell.name == self.name)?.value
            }
            Kind::Row => {
                let mut rows = figures.rows.iter();
                rows.find(|row| row.name == self.name).map(|row| row.exact)
            }
            Kind::Counter => {
                let count = figures.counters.get(&self.name)?;
                Some(*count as f64)
            }
        }
    }
}

/// A name as it may be written: `Swap Outs`, `swap-outs`.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], " ")
}

impl Bisection {
    /// Every row that all runs of both kernels have.
    fn rows(&self) -> Vec<Metric> {
        let ends = [self.prefix(0), self.prefix(self.changes.len())];
        let ends = ends.each_ref().map(|end| self.repeats(end).unwrap_or(&[]));
        let mut runs = ends.iter().flat_map(|end| end.iter());
        let rows = runs.next().map_or(&[][..], |run| &run.rows);
        rows.iter()
            .map(Metric::row)
            .filter(|metric| runs.clone().all(|run| metric.value(run).is_some()))
            .collect()
    }

    /// The cells of published tables that were asked for.
    fn cells(&self) -> Result<Vec<Metric>, UnknownMetric> {
        let ends = [self.prefix(0), self.prefix(self.changes.len())];
        let ends = ends.each_ref().map(|end| self.repeats(end).unwrap_or(&[]));
        let runs = ends.iter().flat_map(|end| end.iter());
        let cells = runs.clone().next().map_or(&[][..], |run| &run.cells);
        let metrics: Vec<Metric> = cells.iter().map(Metric::cell).collect();
        let lacks = |it: &&Metric| runs.clone().any(|run| it.value(run).is_none());
        let missing = metrics.iter().find(lacks);
        match missing {
            None => Ok(metrics),
            Some(cell) => Err(Self::unknown(&cell.name, &self.rows())),
        }
    }

    /// Figures that were asked for, or all, sorted by whether both kernels differ in them.
    pub(super) fn metrics(&self) -> Result<Sorted, UnknownMetric> {
        let ends = [self.prefix(0), self.prefix(self.changes.len())];
        let (rows, cells) = (self.rows(), self.cells()?);
        let all_rows = self.asked.is_empty() && cells.is_empty();
        let asked = self.asked.iter().map(|name| self.find(name, &rows));
        let metrics: Vec<Metric> = if all_rows {
            rows.clone()
        } else {
            (cells.into_iter().map(Ok))
                .chain(asked)
                .collect::<Result<_, _>>()?
        };
        let values = |metric: &Metric| {
            let [from, to] = ends.each_ref().map(|end| self.samples(end, metric));
            from.zip(to).map_or(1.0, |(from, to)| chance(&from, &to))
        };
        let mut sorted = Sorted {
            differ: Vec::new(),
            neutral: Vec::new(),
            alike: Vec::new(),
            same: Vec::new(),
        };
        let by_chance: Vec<f64> = metrics.iter().map(values).collect();
        let tests = by_chance.iter().filter(|p| **p < 1.0).count();
        let beyond = noise::holm(&by_chance, tests);
        for ((metric, p), beyond) in metrics.into_iter().zip(by_chance).zip(beyond) {
            let apart = !all_rows || metric.better != Preference::None;
            match (beyond && p < 1.0, apart) {
                (true, true) => {
                    let samples = |it: &Metric| ends.each_ref().map(|end| self.samples(end, it));
                    let own = samples(&metric);
                    match sorted.differ.iter().find(|known| samples(known) == own) {
                        Some(known) => sorted.same.push([metric.name, known.name.clone()]),
                        None => sorted.differ.push(metric),
                    }
                }
                (true, false) => sorted.neutral.push(metric),
                (false, _) => sorted.alike.push(metric),
            }
        }
        Ok(sorted)
    }

    fn find(&self, name: &str, rows: &[Metric]) -> Result<Metric, UnknownMetric> {
        let row = rows.iter().find(|row| plain(&row.name) == plain(name));
        let counter = Metric::counter(name);
        let ends = [self.prefix(0), self.prefix(self.changes.len())];
        let counted = || {
            ends.iter().all(|end| {
                let samples = self.samples(end, &counter);
                samples.is_some_and(|samples| !samples.is_empty())
            })
        };
        match row {
            Some(row) => Ok(row.clone()),
            None if counted() => Ok(counter.clone()),
            None => Err(Self::unknown(name, rows)),
        }
    }

    fn unknown(name: &str, rows: &[Metric]) -> UnknownMetric {
        let known: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        UnknownMetric {
            name: name.to_owned(),
            known: known.join(", ") + ", and the counters of /proc/vmstat",
        }
    }

    /// Whether a comparison of two kernels would call any of their figures different.
    pub(super) fn differ(&self, a: &[Figures], b: &[Figures]) -> bool {
        let values = |metric: &Metric, repeats: &[Figures]| -> Option<Vec<f64>> {
            repeats.iter().map(|run| metric.value(run)).collect()
        };
        let rows = self.rows();
        let judged = rows.iter().filter(|row| row.better != Preference::None);
        let asked = self
            .asked
            .iter()
            .filter_map(|name| self.find(name, &[]).ok());
        let cells = self.cells().unwrap_or_default();
        let metrics: Vec<Metric> = judged.cloned().chain(asked).chain(cells).collect();
        let pairs = (metrics.iter()).filter_map(|it| Some((values(it, a)?, values(it, b)?)));
        let by_chance: Vec<f64> = pairs.map(|(a, b)| chance(&a, &b)).collect();
        let tested: Vec<f64> = by_chance.into_iter().filter(|p| *p < 1.0).collect();
        noise::holm(&tested, tested.len()).contains(&true)
    }
}
