//! How the errors of several twins are distributed: by counter and by class of load.
//!
//! Figures of a load are those of its counters that moved. Errors count without their sign.

use super::{Metric, Twin, counters, percent};
use crate::document::Section;
use crate::plot::{IntervalRow, Intervals, Plot};
use crate::stats;
use crate::table::{Align, Field, Role, TextTable};
use serde::Serialize;
use std::collections::BTreeMap;

/// The errors of some figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Errors {
    /// Whose they are: a counter or a class of loads.
    pub of: String,
    /// How many.
    pub figures: usize,
    /// Those within tolerance.
    pub near: usize,
    /// Median of the errors.
    pub median: f64,
    /// The least of them that nine in ten do not exceed.
    pub p90: f64,
    /// The worst.
    pub worst: f64,
    /// The load that has it.
    pub worst_load: String,
}

/// The distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Combinations of load, parameters and kernel.
    pub twins: usize,
    /// All figures.
    pub all: Errors,
    /// By counter, in the order of a twin's table.
    pub by_counter: Vec<Errors>,
    /// By class of load, by name.
    pub by_class: Vec<Errors>,
    /// Elapsed times.
    pub elapsed: Errors,
}

/// A figure: its error, whether it is near, whose it is.
struct Figure<'a> {
    error: f64,
    near: bool,
    twin: &'a Twin,
}

impl Errors {
    fn new(of: &str, figures: &[Figure<'_>]) -> Option<Errors> {
        let errors: Vec<f64> = figures.iter().map(|figure| figure.error.abs()).collect();
        let worst = figures
            .iter()
            .max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))?;
        Some(Errors {
            of: of.to_owned(),
            figures: figures.len(),
            near: figures.iter().filter(|figure| figure.near).count(),
            median: stats::median(&errors)?,
            p90: p90(&errors)?,
            worst: worst.error.abs(),
            worst_load: worst.twin.title(),
        })
    }
}

/// By nearest rank: of two values the greater. (mmtests' percentile takes the lesser of two.)
fn p90(errors: &[f64]) -> Option<f64> {
    let rank = (errors.len() * 9).div_ceil(10);
    stats::sorted(errors).get(rank.checked_sub(1)?).copied()
}

fn figures(twin: &Twin) -> impl Iterator<Item = (&Metric, Figure<'_>)> {
    twin.metrics
        .iter()
        .filter(|metric| metric.moved())
        .map(move |metric| {
            let figure = Figure {
                error: metric.error,
                near: metric.holds(),
                twin,
            };
            (metric, figure)
        })
}

impl Distribution {
    /// Over twins, each with the class of its load; none if nothing moved in any.
    pub fn new(twins: &[(&str, &Twin)]) -> Option<Distribution> {
        let all: Vec<Figure<'_>> = twins
            .iter()
            .flat_map(|(_, twin)| figures(twin).map(|(_, figure)| figure))
            .collect();
        let mut counters: Vec<(&str, Vec<Figure<'_>>)> = counters::all()
            .map(|definition| (definition.name, Vec::new()))
            .collect();
        let mut classes: BTreeMap<&str, Vec<Figure<'_>>> = BTreeMap::new();
        for (class, twin) in twins {
            for (metric, figure) in figures(twin) {
                let name = counters::own_name(&metric.name);
                match counters.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, of)) => of.push(figure),
                    None => counters.push((name, vec![figure])),
                }
            }
            let of_class = classes.entry(class).or_default();
            of_class.extend(figures(twin).map(|(_, figure)| figure));
        }
        let elapsed: Vec<Figure<'_>> = twins
            .iter()
            .map(|(_, twin)| Figure {
                error: twin.elapsed.error,
                near: twin.elapsed.near(),
                twin,
            })
            .collect();
        let each = |(of, figures): (&str, Vec<Figure<'_>>)| Errors::new(of, &figures);
        Some(Distribution {
            twins: twins.len(),
            all: Errors::new("all", &all)?,
            by_counter: counters.into_iter().filter_map(each).collect(),
            by_class: classes.into_iter().filter_map(each).collect(),
            elapsed: Errors::new("elapsed", &elapsed)?,
        })
    }

    /// The distribution as tables.
    pub fn section(&self) -> Section<'static> {
        let rows = |heading: &str, of: &mut dyn Iterator<Item = &Errors>| {
            let mut table = TextTable::new().column(heading, Align::Left);
            for heading in ["figures", "near", "median", "p90", "worst"] {
                table = table.column(heading, Align::Right);
            }
            table = table.column("in", Align::Left);
            for errors in of {
                let figures = [errors.figures, errors.near].map(|n| n.to_string());
                let parts = [errors.median, errors.p90, errors.worst].map(percent);
                let fields = figures.into_iter().chain(parts).map(Field::from);
                table.row(
                    std::iter::once(Field::from(errors.of.clone()))
                        .chain(fields)
                        .chain([Field::from(errors.worst_load.clone())]),
                );
            }
            table
        };
        let near = format!(
            "{} of {} figures within tolerance ({}), in {} combinations of load and kernel",
            self.all.near,
            self.all.figures,
            percent(self.all.near as f64 / self.all.figures.max(1) as f64),
            self.twins,
        );
        let mut section = Section::new();
        section.answer(format!("{near}."));
        section.plot(self.plot());
        section.table(rows("error by class", &mut self.by_class.iter()));
        section.blank();
        let all = [&self.elapsed, &self.all];
        section.table(rows(
            "error by counter",
            &mut self.by_counter.iter().chain(all),
        ));
        section.blank();
        section.line(near);
        section
    }

    fn plot(&self) -> Plot {
        let row = |errors: &Errors| IntervalRow {
            name: errors.of.clone(),
            value: 100.0 * errors.median,
            interval: Some([100.0 * errors.median, 100.0 * errors.p90]),
            words: format!("{}, {}", percent(errors.median), percent(errors.p90)),
            role: Role::Plain,
        };
        let rows = self.by_counter.iter().chain([&self.elapsed, &self.all]);
        Plot::Intervals(Intervals {
            title: "Error by counter over all loads".to_owned(),
            axis: "error without its sign, %".to_owned(),
            remark: "The point is the median, the line goes on to what nine in ten do not exceed."
                .to_owned(),
            rows: rows.map(row).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::p90;

    #[test]
    fn nine_in_ten_do_not_exceed_the_90th_percentile() {
        let to = |n: u32| (1..=n).map(f64::from).collect::<Vec<f64>>();
        for (n, expected) in [(1, 1.0), (2, 2.0), (10, 9.0), (11, 10.0), (20, 18.0)] {
            assert_eq!(p90(&to(n)), Some(expected), "of {n}");
        }
        assert_eq!(p90(&[]), None);
    }
}
