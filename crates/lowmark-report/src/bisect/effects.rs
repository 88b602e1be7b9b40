//! How much each change does, and what of it is beyond noise.

use super::{Bisection, Metric, Subset, chance};
use crate::comparison::noise;
use crate::stats;
use std::ops::Range;

/// A difference of means.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Effect {
    /// How much the figure rises.
    pub value: f64,
    /// Whether that is more than chance.
    pub beyond_noise: bool,
    /// Half of its interval, which has the true effect in 95 % of cases; none where nothing varies.
    pub half_interval: Option<f64>,
}

/// Places in which a change is looked at: in order, alone, left out.
const PLACES: usize = 3;

/// What a step does in each place; none where there is no such kernel.
type Seen = [Option<Effect>; PLACES];

/// Whether a step shows anywhere.
fn shows(seen: &Seen) -> bool {
    seen.iter().flatten().any(|effect| effect.beyond_noise)
}

/// Whether a step is a cause: in two places it does the same beyond noise. Where there are kernels for one place alone,
/// that one decides.
fn is_cause(seen: &Seen) -> bool {
    let known = seen.iter().flatten().count();
    let does = |rises: bool| {
        let same = seen.iter().flatten();
        let same = same.filter(|it| it.beyond_noise && (it.value > 0.0) == rises);
        same.count()
    };
    let enough = known.min(2);
    enough > 0 && (does(true) >= enough || does(false) >= enough)
}

/// A change, or several that no kernel has apart, and what it does to a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// The changes by their number.
    pub changes: Range<usize>,
    /// What it adds to those before it.
    pub in_order: Effect,
    /// What it does to the first kernel alone, or why there is no such kernel.
    pub alone: Result<Effect, String>,
    /// What the second kernel loses without it, or why there is no such kernel.
    pub left_out: Result<Effect, String>,
    /// Whether it is a cause of the difference.
    pub named: bool,
}

impl Attribution {
    /// Whether what it does in order is among what makes it a cause: elsewhere it does the same.
    pub fn is_cause_in_order(&self) -> bool {
        let own = &self.in_order;
        let elsewhere = || [&self.alone, &self.left_out].into_iter().flatten();
        let same = |it: &Effect| it.beyond_noise && (it.value > 0.0) == (own.value > 0.0);
        own.beyond_noise && (elsewhere().any(same) || elsewhere().next().is_none())
    }
}

/// Two named changes, and what they do together besides what each does alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The changes of one.
    pub first: Range<usize>,
    /// Those of the other.
    pub second: Range<usize>,
    /// What is left when both effects alone are taken off.
    pub interaction: Effect,
}

/// What makes the difference in a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricVerdict {
    /// The figure.
    pub metric: Metric,
    /// Its mean in the first kernel.
    pub from: f64,
    /// Its mean in the second one.
    pub to: f64,
    /// Changes that show beyond noise in some place, those that are named first, the largest effects in order first.
    pub attributions: Vec<Attribution>,
    /// What all named changes do together to the first kernel; none where there is no such kernel, or none is named.
    pub together: Option<Effect>,
    /// What of that is not the sum of each alone; none where one of these is not known.
    pub interaction: Option<Effect>,
    /// What the other changes add to that.
    pub rest: Option<Effect>,
    /// Interactions of the largest in pairs.
    pub pairs: Vec<Pair>,
    /// Mean after so many changes in order, where it was measured.
    pub in_order: Vec<(usize, f64)>,
}

impl MetricVerdict {
    /// The difference that is taken apart.
    pub fn difference(&self) -> f64 {
        self.to - self.from
    }

    /// The causes, the largest effect first.
    pub fn named(&self) -> impl Iterator<Item = &Attribution> {
        self.attributions.iter().filter(|it| it.named)
    }
}

/// A sum of means with weights, and how likely it is by chance.
struct Tested {
    value: f64,
    p: f64,
    half_interval: Option<f64>,
}

impl Tested {
    fn effect(&self, beyond_noise: bool) -> Effect {
        Effect {
            value: self.value,
            beyond_noise,
            half_interval: self.half_interval,
        }
    }
}

impl Bisection {
    /// What has to be added up of which kernels; none where one of them was not measured.
    fn tested(&self, metric: &Metric, weighted: &[(f64, Subset)]) -> Option<Tested> {
        let samples: Option<Vec<Vec<f64>>> = weighted
            .iter()
            .map(|(_, subset)| self.samples(subset, metric))
            .collect();
        let samples = samples?;
        let weights = weighted.iter().map(|(weight, _)| *weight);
        let pairs: Vec<(f64, &[f64])> = weights
            .zip(&samples)
            .map(|(weight, samples)| (weight, samples.as_slice()))
            .collect();
        let means = pairs
            .iter()
            .map(|(weight, it)| Some(weight * stats::amean(it)?));
        let value: f64 = means.sum::<Option<f64>>()?;
        let p = match (stats::welch_of(&pairs), pairs.as_slice()) {
            (Some(test), _) => test.p,
            (None, [(_, b), (_, a)]) => chance(a, b),
            // Nothing varies: what is not nothing is no chance.
            (None, _) => f64::from(value == 0.0),
        };
        // No negative zero.
        let value = value + 0.0;
        Some(Tested {
            value,
            p,
            half_interval: stats::half_interval(&pairs),
        })
    }

    /// The figure of a subset less that of another.
    fn more(&self, metric: &Metric, subset: Subset, than: Subset) -> Option<Tested> {
        self.tested(metric, &[(1.0, subset), (-1.0, than)])
    }

    /// Steps that show beyond noise in some place and some of these figures.
    pub(super) fn candidates(
        &self,
        steps: &[Range<usize>],
        metrics: &[Metric],
    ) -> Vec<Range<usize>> {
        let seen = self.seen(steps, metrics);
        let shows = |at: usize| seen.iter().any(|of_metric| shows(&of_metric[at]));
        let found = steps.iter().enumerate().filter(|(at, _)| shows(*at));
        found.map(|(_, range)| range.clone()).collect()
    }

    /// For each figure what each step does in each of the three places. All of it is one family of tests, of every change in
    /// every figure in every place, made or not.
    fn seen(&self, steps: &[Range<usize>], metrics: &[Metric]) -> Vec<Vec<Seen>> {
        let of_step = |metric: &Metric, step: &Range<usize>| {
            self.places(step)
                .map(|[with, without]| self.more(metric, with, without))
        };
        let tested: Vec<Vec<[Option<Tested>; PLACES]>> = metrics
            .iter()
            .map(|metric| steps.iter().map(|step| of_step(metric, step)).collect())
            .collect();
        let by_chance = tested.iter().flatten().flatten();
        let by_chance: Vec<f64> = by_chance
            .map(|it| it.as_ref().map_or(1.0, |it| it.p))
            .collect();
        let tests = PLACES * self.changes.len() * metrics.len();
        let mut beyond = noise::holm(&by_chance, tests).into_iter();
        let judged = |tested: &Option<Tested>, beyond: bool| {
            let tested = tested.as_ref();
            tested.map(|tested| tested.effect(beyond))
        };
        let of_places = |places: &[Option<Tested>; PLACES],
                         beyond: &mut dyn Iterator<Item = bool>| {
            places
                .each_ref()
                .map(|tested| judged(tested, beyond.next().unwrap_or_default()))
        };
        (tested.iter())
            .map(|of_metric| {
                let steps = of_metric.iter();
                steps.map(|places| of_places(places, &mut beyond)).collect()
            })
            .collect()
    }

    /// The causes of the difference in a figure, the largest effect in order first.
    pub(super) fn named(&self, metric: &Metric) -> Vec<Range<usize>> {
        let Ok(found) = self.metrics() else {
            return Vec::new();
        };
        let attributions = self.attributions(&found.differ);
        let own = found.differ.iter().zip(attributions);
        let own = own.filter(|(known, _)| *known == metric);
        own.flat_map(|(_, attributions)| attributions)
            .filter(|it| it.named)
            .map(|it| it.changes)
            .collect()
    }

    /// What is known of each step that shows in a figure, for each figure.
    fn attributions(&self, metrics: &[Metric]) -> Vec<Vec<Attribution>> {
        let steps = self.steps(&mut Vec::new());
        let of_metric = |seen: Vec<Seen>| {
            let steps = steps.iter().zip(seen).filter(|(_, seen)| shows(seen));
            let mut found: Vec<Attribution> = steps
                .filter_map(|(step, seen)| self.attribution(step, seen))
                .collect();
            found.sort_by(|a, b| {
                let size = |it: &Attribution| it.in_order.value.abs();
                let named = b.named.cmp(&a.named);
                named.then(size(b).total_cmp(&size(a)))
            });
            found
        };
        let seen = self.seen(&steps, metrics).into_iter();
        seen.map(of_metric).collect()
    }

    fn attribution(&self, step: &Range<usize>, seen: Seen) -> Option<Attribution> {
        let kernels = self.confirming(step);
        let reason = |kernel: &Subset| self.refusal(kernel).unwrap_or_default().to_owned();
        let named = is_cause(&seen);
        let [in_order, alone, left_out] = seen;
        Some(Attribution {
            changes: step.clone(),
            in_order: in_order?,
            alone: alone.ok_or_else(|| reason(&kernels[0])),
            left_out: left_out.ok_or_else(|| reason(&kernels[1])),
            named,
        })
    }

    /// The verdict on each figure.
    pub(super) fn effects(&self, metrics: &[Metric]) -> Vec<MetricVerdict> {
        let attributions = self.attributions(metrics);
        let of_metric = metrics.iter().zip(attributions);
        of_metric
            .map(|(metric, attributions)| self.of_metric(metric, attributions))
            .collect()
    }

    fn of_metric(&self, metric: &Metric, attributions: Vec<Attribution>) -> MetricVerdict {
        let mean = |length: usize| stats::amean(&self.samples(&self.prefix(length), metric)?);
        let count = self.changes.len();
        let named: Vec<Range<usize>> = attributions
            .iter()
            .filter(|it| it.named)
            .map(|it| it.changes.clone())
            .collect();
        let all_named = self.only(&named.iter().collect::<Vec<_>>());
        let from = || self.prefix(0);
        let together = self.more(metric, all_named.clone(), from());
        // Together, less each alone: the first kernel is in all of them.
        let mut sum = vec![(1.0, all_named.clone()), (named.len() as f64 - 1.0, from())];
        sum.extend(named.iter().map(|range| (-1.0, self.only(&[range]))));
        let interaction = (named.len() > 1)
            .then(|| self.tested(metric, &sum))
            .flatten();
        let rest = self.more(metric, self.prefix(count), all_named);
        let pairs: Vec<_> = self
            .pairs(&named)
            .into_iter()
            .filter_map(|(a, b)| {
                let sum = [
                    (1.0, self.only(&[a, b])),
                    (-1.0, self.only(&[a])),
                    (-1.0, self.only(&[b])),
                    (1.0, from()),
                ];
                Some((a, b, self.tested(metric, &sum)?))
            })
            .collect();
        let singles = [&together, &interaction, &rest];
        let by_chance = singles.iter().map(|it| it.as_ref().map_or(1.0, |it| it.p));
        let by_chance: Vec<f64> = by_chance.chain(pairs.iter().map(|it| it.2.p)).collect();
        let beyond = noise::holm(&by_chance, by_chance.len());
        let effect = |at: usize, tested: &Option<Tested>| Some(tested.as_ref()?.effect(beyond[at]));
        let is_any = !named.is_empty();
        MetricVerdict {
            metric: metric.clone(),
            from: mean(0).unwrap_or_default(),
            to: mean(count).unwrap_or_default(),
            attributions,
            together: effect(0, &together).filter(|_| is_any),
            interaction: effect(1, &interaction),
            rest: effect(2, &rest),
            pairs: (pairs.iter().zip(&beyond[3..]))
                .map(|((first, second, tested), beyond)| Pair {
                    first: (*first).clone(),
                    second: (*second).clone(),
                    interaction: tested.effect(*beyond),
                })
                .collect(),
            in_order: (0..=count)
                .filter_map(|length| Some((length, mean(length)?)))
                .collect(),
        }
    }
}
