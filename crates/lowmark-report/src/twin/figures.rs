//! One counter, or the elapsed time, on both sides.
//!
//! 1. Of each side the median, the least and the greatest count, as some loads have two ways to go and a mean would
//!    be neither.
//! 2. The error is the difference between the model's median and the kernel's, as a part of the kernel's; it is negative
//!    where the model's is the smaller one. Where the kernel's is 0 and the model's is not, the error is 1. Where the
//!    kernel's runs fall into two groups, the error is from the median of the group that is nearer.
//! 3. A run of the kernel is not always as near to the others as the model is asked to be. How often one is says how
//!    much can be asked for.

use super::groups::{Group, two_groups};
use crate::stats;
use lowmark_record::Recording;
use serde::Serialize;

/// Spread up to which the kernel is said to repeat itself, and error that is then allowed.
const REPEATS: f64 = 0.1;
/// Where it does not, the model may be off by this factor.
const FACTOR: f64 = 2.0;
/// What other tasks of a system add to a counter in a run, about.
const OF_OTHERS: f64 = 100.0;

/// What runs of one side had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Range {
    /// The range of values; none if there are none.
    pub fn of(values: &[f64]) -> Option<Range> {
        Some(Range {
            median: stats::median(values)?,
            min: stats::min(values)?,
            max: stats::max(values)?,
        })
    }

    /// From the least to the greatest, as a part of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 {
            (self.max - self.min) / self.median
        } else if self.max > 0.0 {
            f64::INFINITY
        } else {
            0.0
        }
    }
}

/// One counter on both.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name as in `/proc/vmstat`, without what tells zones apart; of a memory cgroup `cgroup/PATH/FILE.KEY`.
    pub name: String,
    /// The kernel's runs.
    pub kernel: Range,
    /// The two groups into which they fall, if they do.
    pub groups: Option<[Group; 2]>,
    /// The model's runs; none if the model has no such counter.
    pub model: Option<Range>,
    /// (model − median) / median; 0 if the model has no such counter.
    pub error: f64,
    /// Of the kernel's runs, how many are as near to the others as the model is to be to all.
    pub runs_near: usize,
}

/// A metric as it is written in JSON: flat, with null for what there is not.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    kernel_median: Option<f64>,
    kernel_min: f64,
    kernel_max: f64,
    kernel_groups: &'a [Group],
    model: Option<f64>,
    model_min: Option<f64>,
    model_max: Option<f64>,
    error: Option<f64>,
    near: Option<bool>,
}

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let groups = self.groups.as_ref().map_or(&[][..], |groups| groups);
        let judged = self.model.is_some();
        let written = Written {
            name: &self.name,
            kernel_median: groups.is_empty().then_some(self.kernel.median),
            kernel_min: self.kernel.min,
            kernel_max: self.kernel.max,
            kernel_groups: groups,
            model: self.model.map(|model| model.median),
            model_min: self.model.map(|model| model.min),
            model_max: self.model.map(|model| model.max),
            error: judged.then_some(self.error),
            near: judged.then(|| self.holds()),
        };
        written.serialize(serializer)
    }
}

impl Metric {
    pub(super) fn of(
        name: &str,
        value: impl Fn(&Recording) -> Option<u64>,
        kernel: &[&Recording],
        model: &[&Recording],
    ) -> Option<Metric> {
        let values = |runs: &[&Recording]| -> Option<Vec<f64>> {
            runs.iter().map(|run| Some(value(run)? as f64)).collect()
        };
        let kernel = values(kernel)?;
        let model = values(model);
        let mut metric = Metric::between(name, &kernel, model.as_deref())?;
        let beside_others = |at: usize| {
            let mut others = kernel.clone();
            let run = others.remove(at);
            Metric::between(name, &others, Some(&[run]))
        };
        let near = (0..kernel.len())
            .filter_map(beside_others)
            .filter(Metric::holds);
        metric.runs_near = near.count();
        Some(metric)
    }

    /// Whether it moved by less than other tasks of a system may have moved it.
    pub(super) fn is_too_small(&self) -> bool {
        let is_small = |range: &Range| range.max < OF_OTHERS;
        self.moved() && is_small(&self.kernel) && self.model.as_ref().is_none_or(is_small)
    }

    fn between(name: &str, kernel: &[f64], model: Option<&[f64]>) -> Option<Metric> {
        let range = Range::of(kernel)?;
        let groups = two_groups(kernel);
        let model = match model {
            Some(values) => Some(Range::of(values)?),
            None => None,
        };
        let error = model.map_or(0.0, |model| match &groups {
            None => error(model.median, range.median),
            Some([low, high]) => {
                let errors = [low, high].map(|group| error(model.median, group.median));
                if errors[0].abs() <= errors[1].abs() {
                    errors[0]
                } else {
                    errors[1]
                }
            }
        });
        Some(Metric {
            name: name.to_owned(),
            kernel: range,
            groups,
            model,
            error,
            runs_near: 0,
        })
    }

    /// Whether it is judged: it moved, and the model has it.
    pub fn moved(&self) -> bool {
        let moved = |model: Range| self.kernel.max > 0.0 || model.median > 0.0;
        self.model.is_some_and(moved)
    }

    /// Whether the kernel counted where the model has no such counter.
    pub fn lacking(&self) -> bool {
        self.model.is_none() && self.kernel.max > 0.0
    }

    /// Whether the kernel's runs are so much alike that one figure stands for them.
    pub fn repeats(&self) -> bool {
        self.kernel.spread() <= REPEATS
    }

    /// Whether the model is as near as can be asked for: within 10 % where the kernel repeats itself, else
    /// within its range or a factor of two.
    pub fn holds(&self) -> bool {
        let Some(Range { median: model, .. }) = self.model else {
            return false;
        };
        let inside = (self.kernel.min..=self.kernel.max).contains(&model);
        if self.repeats() {
            self.error.abs() <= REPEATS
        } else {
            let median = self.kernel.median;
            inside || (model <= median * FACTOR && model * FACTOR >= median)
        }
    }
}

/// The difference between the model's count and the kernel's, as a part of the kernel's; 1 where the kernel's alone is 0.
pub(super) fn error(model: f64, kernel: f64) -> f64 {
    match (kernel > 0.0, model > 0.0) {
        (true, _) => (model - kernel) / kernel,
        (false, true) => 1.0,
        (false, false) => 0.0,
    }
}
