//! A twin as text.

use super::figures::Range;
use super::{Metric, Twin, Why, errors, percent};
use crate::table::{Align, Field, Role, Style, TextTable};

/// Least number of runs of the kernel of which each is held against the others.
const RUNS_MIN: usize = 3;

impl Twin {
    /// The twin as a table, with what is to be said below it.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
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
        let mut text = format!("{}\n{}", table.render(style, width), self.summary());
        for metric in &self.metrics {
            if let Some(groups) = &metric.groups {
                let group = |at: usize| {
                    let group = &groups[at];
                    format!("{} of {:.0} to {:.0}", group.runs, group.min, group.max)
                };
                text += &format!(
                    "{}: the kernel's runs fall into two groups, {} and {}; the error is from the nearer\n",
                    metric.name,
                    group(0),
                    group(1)
                );
            }
        }
        let zero = |metric: &&Metric| metric.model.is_some() && !metric.moved();
        text += &names("0 on both", self.metrics.iter().filter(zero));
        let none = |metric: &&Metric| metric.model.is_none();
        text += &names("not in the model", self.metrics.iter().filter(none));
        for why in [Why::KernelZero, Why::ModelZero] {
            let these = self.one_sided.iter().filter(|counter| counter.why == why);
            let these: Vec<String> = these
                .map(|counter| format!("{} ({})", counter.name, counter.most))
                .collect();
            if !these.is_empty() {
                text += &format!("{why} alone: {}\n", these.join(", "));
            }
        }
        text
    }

    fn summary(&self) -> String {
        let moved = || self.metrics.iter().filter(|metric| metric.moved());
        let stable = || moved().filter(|metric| metric.repeats());
        let (median, worst) = errors(stable());
        let holding = moved().filter(|metric| metric.holds()).count();
        format!(
            "{}\nerror: median {}, worst {}; where the kernel repeats within 10% ({} of {}): median {}, \
             worst {}\nwithin tolerance: {holding} of {}{}\n",
            self.elapsed_text(),
            percent(self.median_error),
            percent(self.worst_error),
            stable().count(),
            moved().count(),
            percent(median),
            percent(worst),
            moved().count(),
            self.kernel_beside_itself(),
        )
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

fn names<'a>(what: &str, metrics: impl Iterator<Item = &'a Metric>) -> String {
    let names: Vec<&str> = metrics.map(|metric| metric.name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("{what}: {}\n", names.join(", ")),
    }
}
