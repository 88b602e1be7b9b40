//! A verdict for programs.

use super::{Attribution, Change, Effect, MetricVerdict, Verdict};
use serde::Serialize;
use std::ops::Range;

/// What came of a search.
#[derive(Serialize)]
struct Document<'v> {
    from: &'v str,
    to: &'v str,
    repeats: usize,
    /// Kernels that were run.
    kernels: usize,
    changes: &'v [Change],
    metrics: Vec<Metric<'v>>,
    /// Figures that differ as well, and are neither good nor bad.
    others: &'v [String],
    /// Figures without a difference beyond noise.
    alike: &'v [String],
    /// Figures that are the same in every run as another one, that one behind them.
    same: &'v [[String; 2]],
}

/// A figure that was taken apart.
#[derive(Serialize)]
struct Metric<'v> {
    name: &'v str,
    unit: &'v str,
    sentence: String,
    from: f64,
    to: f64,
    difference: f64,
    /// The changes that show beyond noise in some place.
    changes: Vec<Cause<'v>>,
    together: Option<Effect>,
    interaction: Option<Effect>,
    rest: Option<Effect>,
    pairs: Vec<Pair>,
    /// Mean after so many changes in order.
    in_order: Vec<Step>,
}

/// A change, or several by their numbers, and its effects.
#[derive(Serialize)]
struct Cause<'v> {
    /// Numbers in the list of changes.
    changes: Vec<usize>,
    names: Vec<&'v str>,
    named: bool,
    in_order: Effect,
    alone: Option<Effect>,
    left_out: Option<Effect>,
    /// Why `alone` or `left_out` is not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<&'v str>,
}

#[derive(Serialize)]
struct Pair {
    first: Vec<usize>,
    second: Vec<usize>,
    interaction: Effect,
}

#[derive(Serialize)]
struct Step {
    changes: usize,
    mean: f64,
}

impl Verdict {
    /// The verdict as JSON with stable field names.
    pub fn json(&self) -> serde_json::Value {
        let [from, to] = &self.ends;
        let [asked, refused] = self.kernels;
        let document = Document {
            from,
            to,
            repeats: self.repeats,
            kernels: asked - refused,
            changes: &self.changes,
            metrics: self.metrics.iter().map(|it| self.metric_json(it)).collect(),
            others: &self.others,
            alike: &self.alike,
            same: &self.same,
        };
        serde_json::to_value(document).unwrap_or_default()
    }

    fn metric_json<'v>(&'v self, metric: &'v MetricVerdict) -> Metric<'v> {
        let numbers = |range: &Range<usize>| range.clone().collect::<Vec<usize>>();
        Metric {
            name: &metric.metric.name,
            unit: &metric.metric.unit,
            sentence: self.sentence(metric),
            from: metric.from,
            to: metric.to,
            difference: metric.difference(),
            changes: metric
                .attributions
                .iter()
                .map(|it| self.cause(it))
                .collect(),
            together: metric.together,
            interaction: metric.interaction,
            rest: metric.rest,
            pairs: (metric.pairs.iter())
                .map(|pair| Pair {
                    first: numbers(&pair.first),
                    second: numbers(&pair.second),
                    interaction: pair.interaction,
                })
                .collect(),
            in_order: (metric.in_order.iter())
                .map(|&(changes, mean)| Step { changes, mean })
                .collect(),
        }
    }

    fn cause<'v>(&'v self, attribution: &'v Attribution) -> Cause<'v> {
        let own = &self.changes[attribution.changes.clone()];
        let effects = [&attribution.alone, &attribution.left_out];
        let [alone, left_out] = effects.map(|effect| effect.as_ref().ok().copied());
        Cause {
            changes: attribution.changes.clone().collect(),
            names: own.iter().map(|it| it.name.as_str()).collect(),
            named: attribution.named,
            in_order: attribution.in_order,
            alone,
            left_out,
            refused: (effects.into_iter())
                .filter_map(|effect| effect.as_ref().err().map(String::as_str))
                .collect(),
        }
    }
}
