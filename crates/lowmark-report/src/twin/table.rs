//! A twin as text.

use super::figures::Range;
use super::{Metric, Twin, Why, errors, percent, series};
use crate::document::Section;
use crate::plot::{IntervalRow, Intervals, Plot};
use crate::table::{Align, Field, Role, Style, TextTable};

/// Least number of runs of the kernel of which each is held against the others.
const RUNS_MIN: usize = 3;

impl Twin {
    /// The twin as text: a table, with what is to be said below it.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// The same, to be written.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::new();
        let mut table = TextTable::new().column("", Align::Left);
        for heading in [
            "median", "min", "max", "spread", "model", "min", "max", "error",
        ] {
            table = table.column(heading, Align::Right);
        }
        for metric in &self.metrics {
            if metric.moved() || metric.lacking() {
                table.row(row(metric));
            }
        }
        let (all, near) = self.near();
        section.answer(format!(
            "{near} of {all} counters are within tolerance; the model's errors have a median of {}, and its elapsed time is {:+.1}% off.",
            percent(self.median_error),
            self.elapsed.error * 100.0
        ));
        section.plots.extend(self.plot());
        section.table(table);
        section.blank();
        self.summary()
            .into_iter()
            .for_each(|line| section.line(line));
        for metric in &self.metrics {
            if let Some(groups) = &metric.groups {
                let group = |at: usize| {
                    let group = &groups[at];
                    format!("{} of {:.0} to {:.0}", group.runs, group.min, group.max)
                };
                section.line(format!(
                    "{}: the kernel's runs fall into two groups, {} and {}; the error is from the nearer",
                    metric.name,
                    group(0),
                    group(1)
                ));
            }
        }
        let zero = |metric: &&Metric| metric.model.is_some() && !metric.moved();
        let none = |metric: &&Metric| metric.model.is_none();
        let named = [
            names("0 on both", self.metrics.iter().filter(zero)),
            names("not in the model", self.metrics.iter().filter(none)),
        ];
        named
            .into_iter()
            .flatten()
            .for_each(|line| section.line(line));
        if !self.too_small.is_empty() {
            section.line(format!(
                "below 100 on both, where the rest of the system counts as well: {}",
                self.too_small.join(", ")
            ));
        }
        for why in [Why::KernelZero, Why::ModelZero] {
            let these = self.one_sided.iter().filter(|counter| counter.why == why);
            let these: Vec<String> = these
                .map(|counter| format!("{} ({})", counter.name, counter.most))
                .collect();
            if !these.is_empty() {
                section.line(format!("{why} alone: {}", these.join(", ")));
            }
        }
        series::write(&self.series, &self.attempts, &mut section);
        section
    }

    /// The error of each counter.
    fn plot(&self) -> Option<Plot> {
        let moved = self.metrics.iter().filter(|metric| metric.moved());
        let rows: Vec<IntervalRow> = moved.map(error_row).collect();
        (!rows.is_empty()).then(|| {
            Plot::Intervals(Intervals {
                title: format!("Error by counter: {}", self.title()),
                axis: "error of the model, % of the kernel's median".to_owned(),
                remark: "The point is the model's median, the line goes from its least run to its greatest. Green is within \
                         tolerance. Triangles lie beyond the axis."
                    .to_owned(),
                rows,
            })
        })
    }

    fn summary(&self) -> [String; 3] {
        let moved = || self.metrics.iter().filter(|metric| metric.moved());
        let stable = || moved().filter(|metric| metric.repeats());
        let (median, worst) = errors(stable());
        let holding = moved().filter(|metric| metric.holds()).count();
        [
            self.elapsed_text(),
            format!(
                "error: median {}, worst {}; where the kernel repeats within 10% ({} of {}): median {}, worst {}",
                percent(self.median_error),
                percent(self.worst_error),
                stable().count(),
                moved().count(),
                percent(median),
                percent(worst)
            ),
            format!(
                "within tolerance: {holding} of {}{}",
                moved().count(),
                self.kernel_beside_itself()
            ),
        ]
    }

    fn elapsed_text(&self) -> String {
        let side = |range: &Range| {
            format!(
                "{:.2} s ({:.2} to {:.2})",
                range.median, range.min, range.max
            )
        };
        let elapsed = &self.elapsed;
        format!(
            "elapsed: kernel {}, model {}: {:+.1}%",
            side(&elapsed.kernel_s),
            side(&elapsed.model_s),
            elapsed.error * 100.0
        )
    }

    /// How many of the metrics that moved are within tolerance when each run of the kernel is held against the others, of a
    /// hundred.
    fn kernel_beside_itself(&self) -> String {
        let moved = self.metrics.iter().filter(|metric| metric.kernel.max > 0.0);
        let near: usize = moved.clone().map(|metric| metric.runs_near).sum();
        match moved.count() * self.runs {
            all if all > 0 && self.runs >= RUNS_MIN => {
                let part = percent(near as f64 / all as f64);
                format!("; a run of the kernel, held against its other runs: {part}")
            }
            _ => String::new(),
        }
    }
}

fn row(metric: &Metric) -> Vec<Field> {
    let count = |count: f64| Field::from(format!("{count:.0}"));
    let median = match metric.groups {
        None => count(metric.kernel.median),
        Some(_) => Field::from("two groups"),
    };
    let mut fields = vec![
        Field::from(metric.name.as_str()),
        median,
        count(metric.kernel.min),
        count(metric.kernel.max),
        Field::from(percent(metric.kernel.spread())),
    ];
    match metric.model {
        Some(model) => {
            fields.extend([model.median, model.min, model.max].map(count));
            let role = if metric.holds() {
                Role::Good
            } else {
                Role::Bad
            };
            fields.push(Field::with_role(
                format!("{:+.1}%", metric.error * 100.0),
                role,
            ));
        }
        None => {
            fields.push(Field::with_role("none", Role::Unknown));
            fields.extend(["", "", ""].map(Field::from));
        }
    }
    fields
}

fn names<'a>(what: &str, metrics: impl Iterator<Item = &'a Metric>) -> Option<String> {
    let names: Vec<&str> = metrics.map(|metric| metric.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
}

/// The error of a counter. Its runs have a range around that where one median stands for the kernel.
fn error_row(metric: &Metric) -> IntervalRow {
    let median = metric.kernel.median;
    let around = metric
        .model
        .filter(|_| median > 0.0 && metric.groups.is_none());
    let part = |model: f64| 100.0 * (model - median) / median;
    IntervalRow {
        name: metric.name.to_owned(),
        value: 100.0 * metric.error,
        interval: around.map(|model| [part(model.min), part(model.max)]),
        words: format!("{:+.1}%", 100.0 * metric.error),
        role: if metric.holds() {
            Role::Good
        } else {
            Role::Bad
        },
    }
}
