//! How far the model is from a real kernel: the same workload on both, counter by counter.
//!
//! 1. A metric is a counter of `/proc/vmstat` under the name of kernels of today, or a sum of such.
//! 2. Of the kernel's runs the median counts, with the least and the greatest beside it: some runs have two
//!    ways to go, and a mean would be neither.
//! 3. So it is with the model's runs, each on the machine as one run of the kernel reported it.
//! 4. The error is what the model's median has more than the kernel's, as a part of that. Where the kernel's is 0
//!    and the model's is not, it is 1.
//! 5. Metrics that are 0 everywhere say nothing and are left out of the median and the worst error.
//! 6. A run of the kernel is not always as near to the others as the model is asked to be. How often one is says how much can
//!    be asked for.

use crate::stats;
use crate::table::{Align, Field, Role, Style, TextTable};
use crate::vmstat::Deltas;
use lowmark_record::Recording;
use serde::Serialize;
use std::collections::BTreeMap;

/// Spread up to which the kernel is said to repeat itself, and error that is then allowed.
const REPEATS: f64 = 0.1;
/// Where it does not, the model may be off by this factor.
const FACTOR: f64 = 2.0;

/// One counter on both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Name as in `/proc/vmstat`, without what tells zones apart.
    pub name: &'static str,
    /// Median of the kernel's runs.
    pub kernel_median: f64,
    /// Their least.
    pub kernel_min: f64,
    /// Their greatest.
    pub kernel_max: f64,
    /// Median of the model's runs.
    pub model: f64,
    /// Their least and their greatest.
    #[serde(skip)]
    pub model_range: [f64; 2],
    /// (model − median) / median.
    pub error: f64,
    /// Of the kernel's runs, how many are as near to the others as the model is to be to all.
    #[serde(skip)]
    pub runs_near: usize,
}

/// Runs of the kernel with which it makes sense to hold one against the others.
const RUNS_MIN: usize = 3;

/// A workload on both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Twin {
    /// Workload with its parameters.
    pub workload: String,
    /// Kernel.
    pub kernel: String,
    /// Machine.
    pub machine: String,
    /// Runs of the kernel.
    #[serde(skip)]
    pub runs: usize,
    /// The counters.
    pub metrics: Vec<Metric>,
    /// Median of the errors, without sign.
    pub median_error: f64,
    /// The worst of them.
    pub worst_error: f64,
}

/// Where a metric comes from: the first of these sums of which a counter exists. `name` stands for itself
/// and `name_<zone>`.
struct Definition {
    name: &'static str,
    sums: &'static [&'static [&'static str]],
}

const fn counter(name: &'static str, sums: &'static [&'static [&'static str]]) -> Definition {
    Definition { name, sums }
}

/// The metrics in the order in which they are printed. `pgscan_anon` and so on (5.8) count every reclaim,
/// that of memory cgroups too.
const METRICS: [Definition; 17] = [
    counter(
        "pgscan",
        &[
            &["pgscan_anon", "pgscan_file"],
            &["pgscan_kswapd", "pgscan_direct"],
        ],
    ),
    counter("pgscan_kswapd", &[&["pgscan_kswapd"]]),
    counter("pgscan_direct", &[&["pgscan_direct"]]),
    counter(
        "pgsteal",
        &[
            &["pgsteal_anon", "pgsteal_file"],
            &["pgsteal_kswapd", "pgsteal_direct"],
        ],
    ),
    counter("pgsteal_kswapd", &[&["pgsteal_kswapd"]]),
    counter("pgsteal_direct", &[&["pgsteal_direct"]]),
    counter("pswpin", &[&["pswpin"]]),
    counter("pswpout", &[&["pswpout"]]),
    // Pages of zones that were not asked for: they are in pgscan, too.
    counter("pgskip", &[&["pgskip"]]),
    counter("pgmajfault", &[&["pgmajfault"]]),
    counter("allocstall", &[&["allocstall"]]),
    counter("workingset_refault_anon", &[&["workingset_refault_anon"]]),
    counter(
        "workingset_refault_file",
        &[&["workingset_refault_file"], &["workingset_refault"]],
    ),
    counter("pgactivate", &[&["pgactivate"]]),
    counter("pgdeactivate", &[&["pgdeactivate"]]),
    counter("swap_ra", &[&["swap_ra"]]),
    counter("swap_ra_hit", &[&["swap_ra_hit"]]),
];

impl Definition {
    fn value(&self, counters: &BTreeMap<String, u64>) -> Option<u64> {
        let deltas = Deltas::new(counters);
        self.sums.iter().find_map(|sum| {
            let parts = sum.iter().filter_map(|name| deltas.zones(name));
            parts.reduce(u64::saturating_add)
        })
    }
}

impl Metric {
    fn of(definition: &Definition, kernel: &[&Recording], model: &[&Recording]) -> Option<Metric> {
        let values = |runs: &[&Recording], missing: Option<u64>| -> Option<Vec<f64>> {
            let value =
                |run: &&Recording| Some(definition.value(&run.counters).or(missing)? as f64);
            runs.iter().map(value).collect()
        };
        let kernel = values(kernel, None)?;
        // A counter that the model does not keep never moved there.
        let model = values(model, Some(0))?;
        let mut metric = Metric::between(definition.name, &kernel, &model)?;
        let beside_others = |at: usize| {
            let mut others = kernel.clone();
            let run = others.remove(at);
            Metric::between(definition.name, &others, &[run])
        };
        let near = (0..kernel.len())
            .filter_map(beside_others)
            .filter(Metric::holds);
        metric.runs_near = near.count();
        Some(metric)
    }

    fn between(name: &'static str, kernel: &[f64], model: &[f64]) -> Option<Metric> {
        let (kernel_median, model_median) = (stats::median(kernel)?, stats::median(model)?);
        Some(Metric {
            name,
            kernel_median,
            kernel_min: stats::min(kernel)?,
            kernel_max: stats::max(kernel)?,
            model: model_median,
            model_range: [stats::min(model)?, stats::max(model)?],
            error: error(model_median, kernel_median),
            runs_near: 0,
        })
    }

    /// Whether it ever moved.
    fn moved(&self) -> bool {
        self.kernel_max > 0.0 || self.model > 0.0
    }

    /// From the least to the greatest of the kernel's values, as a part of the median.
    pub fn spread(&self) -> f64 {
        match self.kernel_median > 0.0 {
            true => (self.kernel_max - self.kernel_min) / self.kernel_median,
            false if self.kernel_max > 0.0 => f64::INFINITY,
            false => 0.0,
        }
    }

    /// Whether the kernel's runs are so much alike that one figure stands for them.
    pub fn repeats(&self) -> bool {
        self.spread() <= REPEATS
    }

    /// Whether the model is as near as can be asked for: within 10 % where the kernel repeats itself, else
    /// within its range or a factor of two.
    pub fn holds(&self) -> bool {
        let inside = (self.kernel_min..=self.kernel_max).contains(&self.model);
        match self.repeats() {
            true => self.error.abs() <= REPEATS,
            false => {
                let near = self.model <= self.kernel_median * FACTOR
                    && self.model * FACTOR >= self.kernel_median;
                inside || near
            }
        }
    }
}

fn error(model: f64, median: f64) -> f64 {
    match (median > 0.0, model > 0.0) {
        (true, _) => (model - median) / median,
        (false, true) => 1.0,
        (false, false) => 0.0,
    }
}

impl Twin {
    /// Compares runs of the model with runs of a kernel; none if there is no run of one of them.
    pub fn new(kernel: &[&Recording], model: &[&Recording]) -> Option<Twin> {
        let (run, _) = (&kernel.first()?.run, model.first()?);
        let params = run
            .params
            .iter()
            .map(|(name, value)| format!(" {name}={value}"));
        let metrics: Vec<Metric> = METRICS
            .iter()
            .filter_map(|definition| Metric::of(definition, kernel, model))
            .collect();
        let (median_error, worst_error) = errors(metrics.iter().filter(|metric| metric.moved()));
        Some(Twin {
            workload: format!("{}{}", run.workload, params.collect::<String>()),
            kernel: run.kernel.clone(),
            machine: run.machine.clone(),
            runs: kernel.len(),
            metrics,
            median_error,
            worst_error,
        })
    }

    /// The twin as a table.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        let mut table = TextTable::new().column("", Align::Left);
        for heading in [
            "median", "min", "max", "spread", "model", "min", "max", "error",
        ] {
            table = table.column(heading, Align::Right);
        }
        for metric in &self.metrics {
            let count = |count: f64| Field::from(format!("{count:.0}"));
            let kernel = [metric.kernel_median, metric.kernel_min, metric.kernel_max].map(count);
            let [least, greatest] = metric.model_range.map(count);
            let role = match (metric.moved(), metric.holds()) {
                (false, _) => Role::Unknown,
                (true, true) => Role::Good,
                (true, false) => Role::Bad,
            };
            let rest = [
                Field::from(percent(metric.spread())),
                count(metric.model),
                least,
                greatest,
                Field::with_role(format!("{:+.1}%", metric.error * 100.0), role),
            ];
            table.row(
                std::iter::once(Field::from(metric.name))
                    .chain(kernel)
                    .chain(rest),
            );
        }
        let moved = || self.metrics.iter().filter(|metric| metric.moved());
        let stable = || moved().filter(|metric| metric.repeats());
        let (median, worst) = errors(stable());
        let holding = moved().filter(|metric| metric.holds()).count();
        format!(
            "{}\nerror: median {}, worst {}; where the kernel repeats within 10% ({} of {}): median {}, \
             worst {}\nas near as asked for: {holding} of {}{}\n",
            table.render(style, width),
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

    /// In how many of the metrics that moved a run of the kernel is as near to the others, of a hundred.
    fn kernel_beside_itself(&self) -> String {
        let moved = self.metrics.iter().filter(|metric| metric.kernel_max > 0.0);
        let near: usize = moved.clone().map(|metric| metric.runs_near).sum();
        match moved.count() * self.runs {
            all if all > 0 && self.runs >= RUNS_MIN => {
                let part = percent(near as f64 / all as f64);
                format!("; a run of the kernel to the others: {part}")
            }
            _ => String::new(),
        }
    }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// Median and worst of the errors, without sign.
fn errors<'a>(metrics: impl Iterator<Item = &'a Metric>) -> (f64, f64) {
    let errors: Vec<f64> = metrics.map(|metric| metric.error.abs()).collect();
    let or_none = |value: Option<f64>| value.unwrap_or(0.0);
    (
        or_none(stats::median(&errors)),
        or_none(stats::max(&errors)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PlainStyle;

    fn recording(counters: &[(&str, u64)]) -> Recording {
        let counters = counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        crate::comparison::recording_of(counters.collect())
    }

    fn twin() -> Twin {
        let run = |steal, stalls, majfault| {
            recording(&[
                ("pgscan_anon", 10),
                ("pgscan_file", 90),
                ("pgsteal_anon", steal),
                ("allocstall_normal", stalls),
                ("allocstall_movable", 1),
                ("pgmajfault", majfault),
                ("pswpin", 0),
                ("swap_ra", 0),
            ])
        };
        let runs = [run(50, 9, 0), run(54, 1, 0), run(52, 4, 0)];
        let model = |stalls| {
            recording(&[
                ("pgscan_anon", 12),
                ("pgscan_file", 93),
                ("pgsteal_anon", 26),
                ("allocstall_movable", stalls),
                ("pgmajfault", 3),
                ("swap_ra", 0),
            ])
        };
        let models = [model(9), model(4), model(2)];
        Twin::new(
            &runs.iter().collect::<Vec<_>>(),
            &models.iter().collect::<Vec<_>>(),
        )
        .expect("runs")
    }

    #[test]
    fn errors_are_parts_of_the_median() {
        let twin = twin();
        let metric = |name: &str| {
            twin.metrics
                .iter()
                .find(|m| m.name == name)
                .unwrap_or_else(|| panic!("{name}"))
        };
        assert_eq!(metric("pgscan").error, 0.05);
        assert!(metric("pgscan").holds());
        let steal = metric("pgsteal");
        assert_eq!(
            (steal.kernel_median, steal.kernel_min, steal.kernel_max),
            (52.0, 50.0, 54.0)
        );
        assert_eq!(steal.error, -0.5);
        assert!(steal.repeats() && !steal.holds());
        let stalls = metric("allocstall");
        assert_eq!((stalls.kernel_median, stalls.model), (5.0, 4.0));
        assert_eq!(stalls.model_range, [2.0, 9.0]);
        assert!(!stalls.repeats() && stalls.holds());
        assert_eq!(metric("pgmajfault").error, 1.0);
        assert!(!metric("pgmajfault").holds());
        // What the kernel does not have is no metric.
        assert!(
            twin.metrics
                .iter()
                .all(|m| m.name != "workingset_refault_anon")
        );
        // 5, 50, 20 and 100 %: pswpin and swap_ra never moved.
        assert!(
            (twin.median_error - 0.35).abs() < 1e-9,
            "{}",
            twin.median_error
        );
        assert_eq!(twin.worst_error, 1.0);
    }

    #[test]
    fn the_json_form_is_fixed() {
        let value = serde_json::to_value(twin()).expect("JSON");
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert_eq!(
            keys,
            [
                "kernel",
                "machine",
                "median_error",
                "metrics",
                "workload",
                "worst_error"
            ]
        );
        let keys: Vec<&String> = value["metrics"][0]
            .as_object()
            .expect("an object")
            .keys()
            .collect();
        assert_eq!(
            keys,
            [
                "error",
                "kernel_max",
                "kernel_median",
                "kernel_min",
                "model",
                "name"
            ]
        );
    }

    #[test]
    fn the_table_says_what_holds() {
        let text = twin().text(&PlainStyle, None);
        assert!(
            text.contains("pgsteal") && text.contains("-50.0%"),
            "{text}"
        );
        // Of the runs' pgscan all are near the others, of pgsteal (50, 54, 52) as well, and of allocstall (10, 2, 5) the one
        // in the midst alone, as twice what the others have in the median is 7, and half of it 3.
        let near = "as near as asked for: 2 of 4; a run of the kernel to the others: 77.8%\n";
        assert!(text.contains(near), "{text}");
        assert!(Twin::new(&[], &[&recording(&[])]).is_none());
        assert!(Twin::new(&[&recording(&[])], &[]).is_none());
    }
}
