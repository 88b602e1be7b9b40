//! How far the model is from a real kernel: the same workload on both, counter by counter.
//!
//! 1. A metric is a counter of `/proc/vmstat` under the name of kernels of today, or a sum of such ([`counters`]); beside
//!    them, what the files of memory cgroups say.
//! 2. What it is on both sides, and its error, is in [`figures`]; whether the kernel's runs have two ways to go, in
//!    [`groups`].
//! 3. Metrics that are 0 everywhere say nothing and are left out of the median and the worst error, and so are those
//!    that the model does not have, which are named.
//! 4. Of all counters, those are named that moved on one side only ([`one_sided`]).
//! 5. What operations took and how many attempts of an `alloc` had success is in [`series`].
//! 6. Several twins have a [`distribution`] of errors, and those that differ in a setting alone its [`effects`].

mod counters;
pub mod distribution;
pub mod effects;
pub mod figures;
pub mod groups;
pub mod one_sided;
pub mod series;
mod table;

pub use distribution::Distribution;
pub use effects::Effects;
pub use figures::{Metric, Range};
pub use groups::Group;
pub use one_sided::{OneSided, OneSidedOverAll, Why};

use crate::stats;
use lowmark_record::Recording;
use serde::Serialize;

/// Error of the elapsed time up to which it is called near.
const ELAPSED_NEAR: f64 = 0.1;
/// Nanoseconds of a second.
const NS_PER_S: f64 = 1e9;

/// How long the runs took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Elapsed {
    /// The kernel's, s.
    pub kernel_s: Range,
    /// The model's, s.
    pub model_s: Range,
    /// What the model's median has more, as a part of the kernel's.
    pub error: f64,
}

impl Elapsed {
    /// Whether the model's median is within 10 % of the kernel's, or in the range of its runs.
    pub fn near(&self) -> bool {
        let (kernel, model) = (&self.kernel_s, self.model_s.median);
        self.error.abs() <= ELAPSED_NEAR || (kernel.min..=kernel.max).contains(&model)
    }
}

/// A workload on both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Twin {
    /// Workload with its parameters.
    pub workload: String,
    /// Its name alone.
    #[serde(skip)]
    pub workload_name: String,
    /// Its parameters alone.
    #[serde(skip)]
    pub params: Vec<(String, String)>,
    /// Kernel as asked for.
    pub kernel: String,
    /// Its release in full, as `uname -r` has it; none if the recordings do not say.
    pub release: Option<String>,
    /// Machine.
    pub machine: String,
    /// Runs of the kernel.
    pub runs: usize,
    /// Runs of the model.
    pub model_runs: usize,
    /// How long they took.
    pub elapsed: Elapsed,
    /// The counters.
    pub metrics: Vec<Metric>,
    /// Counters of a run on a system with other tasks that are too small to be the workload's with certainty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_small: Vec<String>,
    /// What operations took.
    pub series: Vec<series::Both>,
    /// How many attempts of each `alloc` had success.
    pub attempts: Vec<series::Attempts>,
    /// Of all counters of `/proc/vmstat`, those that moved on one side only.
    pub one_sided: Vec<OneSided>,
    /// Median of the errors, without sign.
    pub median_error: f64,
    /// The worst of them.
    pub worst_error: f64,
}

/// The backend of runs beside which other tasks run, whose counters are among those of the workload.
const HOST: &str = "host";

impl Twin {
    /// Compares runs of the model with runs of a kernel; none if there is no run of one of them.
    pub fn new(kernel: &[&Recording], model: &[&Recording]) -> Option<Twin> {
        let (first, _) = (kernel.first()?, model.first()?);
        let run = &first.run;
        let params = run
            .params
            .iter()
            .map(|(name, value)| format!(" {name}={value}"));
        let of_machine = counters::all().filter_map(|definition| {
            let value = |run: &Recording| definition.value(&run.counters);
            Metric::of(definition.name, value, kernel, model)
        });
        let of_groups = counters::of_groups(first).filter_map(|name| {
            let value = |run: &Recording| counters::group_value(name, run);
            Metric::of(name, value, kernel, model)
        });
        let metrics = of_machine.chain(of_groups);
        let (too_small, metrics) = match run.backend.as_str() {
            HOST => metrics.partition(Metric::is_too_small),
            _ => (Vec::new(), metrics.collect::<Vec<Metric>>()),
        };
        let (median_error, worst_error) = errors(metrics.iter().filter(|metric| metric.moved()));
        let seconds = |runs: &[&Recording]| {
            let elapsed = runs.iter().map(|run| run.elapsed_ns as f64 / NS_PER_S);
            Range::of(&elapsed.collect::<Vec<f64>>())
        };
        let (kernel_s, model_s) = (seconds(kernel)?, seconds(model)?);
        Some(Twin {
            workload: format!("{}{}", run.workload, params.collect::<String>()),
            workload_name: run.workload.clone(),
            params: run.params.clone(),
            kernel: run.kernel.clone(),
            release: first.system.as_deref().map(|system| system.release.clone()),
            machine: run.machine.clone(),
            runs: kernel.len(),
            model_runs: model.len(),
            elapsed: Elapsed {
                kernel_s,
                model_s,
                error: figures::error(model_s.median, kernel_s.median),
            },
            metrics,
            too_small: too_small.into_iter().map(|metric| metric.name).collect(),
            series: series::series(kernel, model),
            attempts: series::attempts(kernel, model),
            one_sided: one_sided::one_sided(kernel, model),
            median_error,
            worst_error,
        })
    }

    /// Workload with its parameters, and kernel.
    pub fn title(&self) -> String {
        format!("{}, {}", self.workload, self.kernel)
    }

    /// Its figures, and how many of them are within tolerance.
    pub fn near(&self) -> (usize, usize) {
        let moved = || self.metrics.iter().filter(|metric| metric.moved());
        (
            moved().count(),
            moved().filter(|metric| metric.holds()).count(),
        )
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
mod tests;
