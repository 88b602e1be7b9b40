//! A question, and the answer that the reconstructed loads give to it.

use crate::candidate::Order;
use crate::counters::Figures;
use crate::demand::Demand;
use crate::fit::{Fit, Fitted, Runner, fit};
use crate::loss::{LOSS_MAX, offs};
use crate::refusal::{Error, Refusal};
use crate::row::{Both, Row, rows};
use lowmark_record::Recording;
use lowmark_spec::Scenario;

/// Runs of each reconstructed load with each setting, each at another phase of the kernel's periodic work.
const RUNS: u64 = 3;
/// Most reconstructions that are asked.
const ASKED_MAX: usize = 12;
/// Where the answer depends on the order of touches, the loss of every other order must be this many times that of the best.
const ORDER_CLEAR: u64 = 10;

/// As it was, or as it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// As it was recorded.
    Was,
    /// As is asked.
    WouldBe,
}

/// A question about another setting, another size of memory or another kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Another kernel.
    pub other_kernel: bool,
    /// `page_cluster` was 0 and would be another: in what order pages were touched decides, and counters say little of it.
    pub readahead_from_none: bool,
    /// Less RAM.
    pub less_memory: bool,
}

/// The load of a recording, as far as counters tell it.
#[derive(Debug)]
pub struct Reconstructed {
    /// The memory that the load touched.
    pub demand: Demand,
    /// The loads that fit, the best one first.
    pub fit: Fit,
    /// What was recorded.
    pub seen: Figures,
    /// What the loads that are asked do with the setting as it was.
    was: Vec<Figures>,
}

/// The answer.
#[derive(Debug)]
pub struct Answer {
    /// The load.
    pub load: Reconstructed,
    /// What would have been.
    pub rows: Vec<Row>,
}

/// Asks what would have been.
///
/// # Errors
///
/// The question is refused, or the model cannot run.
pub fn ask<R: Runner>(
    recording: &Recording,
    question: Question,
    runner: &R,
) -> Result<Answer, Error<R::Error>> {
    let load = Reconstructed::of(recording, runner)?;
    let rows = load.ask(question, runner)?;
    Ok(Answer { load, rows })
}

impl Reconstructed {
    /// The load of a recording, with the settings as they were.
    ///
    /// # Errors
    ///
    /// No load is found that does what the kernel did, or the model cannot run.
    pub fn of<R: Runner>(
        recording: &Recording,
        runner: &R,
    ) -> Result<Reconstructed, Error<R::Error>> {
        let demand = Demand::of(recording)?;
        let seen = Figures::of(recording);
        let fit = fit(runner, &demand, &seen)?;
        refuse_bad(&fit, &seen, demand.pages)?;
        let was = medians(runner, asked(&fit), Setting::Was)?;
        Ok(Reconstructed {
            demand,
            fit,
            seen,
            was,
        })
    }

    /// What would have been of each counter.
    ///
    /// # Errors
    ///
    /// The question is refused, or the model cannot run.
    pub fn ask<R: Runner>(
        &self,
        question: Question,
        runner: &R,
    ) -> Result<Vec<Row>, Error<R::Error>> {
        refuse_unknown_order(&self.fit, question)?;
        let would_be = medians(runner, asked(&self.fit), Setting::WouldBe)?;
        let pairs = self.was.iter().zip(would_be);
        let both: Vec<Both> = pairs
            .map(|(was, would_be)| Both {
                was: was.clone(),
                would_be,
            })
            .collect();
        Ok(rows(&self.seen, &both, question.other_kernel))
    }
}

/// The loads that are asked.
fn asked(fit: &Fit) -> &[Fitted] {
    &fit.kept[..fit.kept.len().min(ASKED_MAX)]
}

/// What loads do with a setting: of each the medians of its runs.
fn medians<R: Runner>(
    runner: &R,
    asked: &[Fitted],
    setting: Setting,
) -> Result<Vec<Figures>, Error<R::Error>> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for fitted in asked {
        let scenario = runner
            .scenario(&fitted.candidate, setting)
            .map_err(Error::Run)?;
        scenarios.extend((0..RUNS).map(|phase| Scenario {
            phase,
            ..scenario.clone()
        }));
    }
    let recordings = runner.run(scenarios).map_err(Error::Run)?;
    let figures: Vec<Figures> = recordings.iter().map(Figures::of).collect();
    let runs = figures.chunks(RUNS as usize).map(Figures::median);
    Ok(runs.collect())
}

/// Refuses where even the best reconstruction does not do what the kernel did.
fn refuse_bad(fit: &Fit, seen: &Figures, pages: u64) -> Result<(), Refusal> {
    let Some(best) = fit.kept.first().filter(|best| best.loss > LOSS_MAX) else {
        return Ok(());
    };
    let (name, model, kernel) = worst(&best.figures, seen, pages);
    Err(Refusal::new(
        format!(
            "no load was found that does on the model what the kernel did: the nearest one, {}, has a loss of {} where {} is the most, \
             and {name} is {model} in place of {kernel}",
            best.candidate.describe(),
            thousandths(best.loss),
            thousandths(LOSS_MAX)
        ),
        "several loads at the same time, or one that was under way when the recording began, are not reconstructed yet",
    ))
}

/// The figure that costs most, on the model and as recorded.
fn worst(model: &Figures, seen: &Figures, pages: u64) -> (&'static str, u64, u64) {
    let name = offs(model, seen, pages)
        .max_by_key(|(counter, off)| counter.weight * off * off)
        .map_or("nothing", |(counter, _)| counter.name);
    (name, model.named(name), seen.named(name))
}

/// Refuses a question whose answer depends on something that counters do not show.
fn refuse_unknown_order(fit: &Fit, question: Question) -> Result<(), Refusal> {
    let clear = match fit.by_order.as_slice() {
        [best, second, ..] => second.loss >= best.loss.saturating_mul(ORDER_CLEAR),
        _ => true,
    };
    let best = fit.by_order.first().map(|best| best.candidate.order);
    if question.readahead_from_none && !clear {
        return Err(Refusal::new(
            "without readahead of swap, counters do not say in which order pages were touched, on which its effect depends",
            "record with page_cluster above 0",
        ));
    }
    let random = matches!(best, Some(Order::Random | Order::AllRandom));
    if question.less_memory && random {
        return Err(Refusal::new(
            "pages were touched at random, and counters do not say whether some of them more often than others, on which the \
             effect of less RAM depends",
            "ask for more RAM, or record with less",
        ));
    }
    Ok(())
}

/// Millionths as a number with three digits behind the point.
pub(crate) fn thousandths(millionths: u64) -> String {
    let thousandths = millionths.div_ceil(1000);
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}
