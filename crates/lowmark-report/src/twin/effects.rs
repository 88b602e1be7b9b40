//! What a setting changes on both: the same load and kernel with two values of it.
//!
//! 1. Twins belong together that have the same workload, kernel and machine, and parameters that differ in one value.
//! 2. The effect on a counter is the median of the second less the median of the first. It is judged if it
//!    is beyond the kernel's spread: no run of the one lies within the range of the other, there are two runs of each
//!    at least, and the medians are a tenth of the greater and a batch of reclaim ([`SIZE_MIN`]) apart.
//! 3. The model is right in its sign if its own difference has that sign, and in its size if that is within
//!    [`SIZE_FACTOR`] of the kernel's.

use super::figures::Range;
use super::{Metric, Twin};
use crate::document::Section;
use crate::table::{Align, Field, Role, TextTable};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far the size of an effect may be off.
const SIZE_FACTOR: f64 = 1.5;
/// Least difference that is an effect, in what is counted (`SWAP_CLUSTER_MAX`).
const SIZE_MIN: f64 = 32.0;
/// Least difference as a part of the greater median.
const SIZE_PART: f64 = 0.1;
/// Runs of the kernel that tell its spread at least.
const RUNS_MIN: usize = 2;

/// What a setting changes in one counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The load with its kernel.
    pub load: String,
    /// The setting.
    pub knob: String,
    /// Its two values.
    pub values: [String; 2],
    /// The counter.
    pub counter: String,
    /// The kernel's medians with each.
    pub kernel: [f64; 2],
    /// The model's.
    pub model: [f64; 2],
    /// Whether the model's goes the same way.
    pub sign: bool,
    /// Whether it has the size of the kernel's.
    pub size: bool,
}

/// The effects of all loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effects {
    /// Pairs of twins that differ in a setting.
    pub pairs: usize,
    /// The effects that are beyond the kernel's spread.
    pub effects: Vec<Effect>,
}

impl Effects {
    /// The effects that twins show; none if no two of them differ in one parameter alone.
    pub fn new(twins: &[&Twin]) -> Option<Effects> {
        let mut effects = Vec::new();
        let mut pairs = 0;
        for (at, first) in twins.iter().enumerate() {
            for second in &twins[at + 1..] {
                let Some((knob, values)) = differs(first, second) else {
                    continue;
                };
                pairs += 1;
                if first.runs.min(second.runs) < RUNS_MIN {
                    continue;
                }
                for metric in &first.metrics {
                    let other = second.metrics.iter().find(|it| it.name == metric.name);
                    let Some((kernel, model)) = other.and_then(|other| beyond(metric, other))
                    else {
                        continue;
                    };
                    let (real, modelled) = (kernel[1] - kernel[0], model[1] - model[0]);
                    let ratio = modelled / real;
                    effects.push(Effect {
                        load: format!("{}, {}", first.workload_name, first.kernel),
                        knob: knob.to_owned(),
                        values: values.clone(),
                        counter: metric.name.clone(),
                        kernel,
                        model,
                        sign: ratio > 0.0,
                        size: (1.0 / SIZE_FACTOR..=SIZE_FACTOR).contains(&ratio),
                    });
                }
            }
        }
        (pairs > 0).then_some(Effects { pairs, effects })
    }

    /// The effects as tables: by setting, and each in which the model is not right.
    pub fn section(&self) -> Section<'static> {
        let mut knobs: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for effect in &self.effects {
            let [all, sign, size] = knobs.entry(&effect.knob).or_default();
            *all += 1;
            *sign += usize::from(effect.sign);
            *size += usize::from(effect.size);
        }
        let mut by_knob = TextTable::new().column("effects by setting", Align::Left);
        for heading in ["effects", "sign right", "within 1.5"] {
            by_knob = by_knob.column(heading, Align::Right);
        }
        for (knob, counts) in &knobs {
            let counts = counts.map(|count| Field::from(count.to_string()));
            by_knob.row(std::iter::once(Field::from(*knob)).chain(counts));
        }
        let mut each = TextTable::new()
            .column("not as in the kernel", Align::Left)
            .column("counter", Align::Left);
        for heading in ["kernel", "kernel'", "model", "model'", "sign"] {
            each = each.column(heading, Align::Right);
        }
        for effect in self.effects.iter().filter(|effect| !effect.size) {
            let [from, to] = &effect.values;
            let (right, role) = if effect.sign {
                ("right", Role::Unknown)
            } else {
                ("wrong", Role::Bad)
            };
            let what = format!("{} {from} to {to}: {}", effect.knob, effect.load);
            let figures = effect.kernel.iter().chain(&effect.model);
            each.row(
                [Field::from(what), Field::from(effect.counter.as_str())]
                    .into_iter()
                    .chain(figures.map(|figure| Field::from(format!("{figure:.0}"))))
                    .chain([Field::with_role(right, role)]),
            );
        }
        let total = |of: fn(&&Effect) -> bool| self.effects.iter().filter(of).count();
        let mut section = Section::new();
        section.table(by_knob);
        section.blank();
        section.table(each);
        section.blank();
        section.line(format!(
            "{} effects beyond the kernel's spread in {} pairs of twins: sign right {}, size within 1.5 {}",
            self.effects.len(),
            self.pairs,
            total(|effect| effect.sign),
            total(|effect| effect.size),
        ));
        section
    }
}

/// The one parameter in which twins of the same differ, with both values.
fn differs<'a>(first: &'a Twin, second: &'a Twin) -> Option<(&'a str, [String; 2])> {
    let same = first.workload_name == second.workload_name
        && first.kernel == second.kernel
        && first.machine == second.machine
        && first.params.len() == second.params.len();
    let pairs = || first.params.iter().zip(&second.params);
    if !same || pairs().any(|(one, other)| one.0 != other.0) {
        return None;
    }
    let mut differing = pairs().filter(|(one, other)| one.1 != other.1);
    match (differing.next(), differing.next()) {
        (Some((one, other)), None) => Some((&one.0, [one.1.clone(), other.1.clone()])),
        _ => None,
    }
}

/// The medians of both sides, if the kernel's differ by more than its spread.
fn beyond(first: &Metric, second: &Metric) -> Option<([f64; 2], [f64; 2])> {
    let (one, other): (&Range, &Range) = (&first.kernel, &second.kernel);
    let apart = one.max < other.min || other.max < one.min;
    let size = (one.median - other.median).abs();
    let least = (SIZE_PART * one.median.max(other.median)).max(SIZE_MIN);
    let model = [first.model?.median, second.model?.median];
    (apart && size >= least).then_some(([one.median, other.median], model))
}
