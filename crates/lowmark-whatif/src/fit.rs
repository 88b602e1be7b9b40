//! Which loads fit what was recorded.
//!
//! 1. Of each class (kind of memory, order) the number of touches is sought at which the model swaps in as many pages as the
//!    kernel did. All classes take a step at the same time, so that their runs go side by side.
//! 2. Those that are not hopeless are tried with memory that is a little smaller and larger, and read in place of written.
//! 3. What is kept is what fits about as well as the best: counters alone do not tell these apart.

use crate::answer::Setting;
use crate::candidate::{Access, Candidate, Kind, Order};
use crate::counters::Figures;
use crate::demand::Demand;
use crate::loss::{LOSS_MAX, loss};
use crate::refusal::{Error, Refusal};
use lowmark_record::Recording;
use lowmark_spec::Scenario;
use std::ops::Range;

/// Runs loads on the model.
pub trait Runner {
    /// What can go wrong.
    type Error;

    /// A recording of each scenario, in the same order.
    ///
    /// # Errors
    ///
    /// A scenario cannot be run.
    fn run(&self, scenarios: Vec<Scenario>) -> Result<Vec<Recording>, Self::Error>;

    /// The scenario of a load with a setting.
    ///
    /// # Errors
    ///
    /// The setting is wrong, or the model does not have it.
    fn scenario(&self, candidate: &Candidate, setting: Setting) -> Result<Scenario, Self::Error>;
}

/// Steps in which the number of touches is sought.
const STEPS: usize = 9;
/// The same where it is nearly known.
const STEPS_NEAR: usize = 4;
/// Swap-ins are right if they are off by no more than one in this many.
const NEAR: u64 = 100;
/// Fewer swap-ins than these say nothing of how much was touched again, pages.
const SWAPPED_IN_MIN: u64 = 100;
/// Most touches of each page that are tried.
const TOUCHES_MAX: u64 = 200;
/// Most touches of all, so that a fit ends.
const ALL_TOUCHES_MAX: u64 = 200_000_000;
/// Sizes that are tried beside the one that the counters say, hundredths.
const SIZES: [u64; 2] = [97, 103];
/// Pages of a mapping, in thousandths, of which one is touched once at least by as many touches at random as the mapping has
/// pages, twice as many, and so on: 1 - e^-k.
const TOUCHED_BY_CHANCE: [u64; 4] = [632, 865, 950, 982];

/// A load and what the model made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// The load.
    pub candidate: Candidate,
    /// Its figures with the setting as it was.
    pub figures: Figures,
    /// How far they are from those recorded, millionths.
    pub loss: u64,
}

/// The loads that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Those that fit about as well as the best one, which comes first.
    pub kept: Vec<Fitted>,
    /// The best one of each order that was tried, by loss.
    pub by_order: Vec<Fitted>,
    /// Runs of the model that it took.
    pub runs: usize,
}

/// A search for the number of touches.
struct Search {
    candidate: Candidate,
    /// Touches with too few and with too many swap-ins, with the swap-ins.
    below: Option<(u64, u64)>,
    above: Option<(u64, u64)>,
    best: Option<Fitted>,
    done: bool,
}

/// Seeks the loads that fit a recording.
///
/// # Errors
///
/// None fits, or the model cannot run.
pub fn fit<R: Runner>(runner: &R, demand: &Demand, seen: &Figures) -> Result<Fit, Error<R::Error>> {
    let of = (seen, demand.pages);
    let mut first = searches(demand, seen);
    let mut runs = seek(runner, &mut first, of, STEPS)?;
    let best = least(&first).map_or(u64::MAX, |fitted| fitted.loss);
    let hopeful = |fitted: &&Fitted| fitted.loss <= (10 * best).max(LOSS_MAX);
    let mut later: Vec<Search> = first
        .iter()
        .filter_map(|search| search.best.as_ref())
        .filter(hopeful)
        .flat_map(variations)
        .collect();
    runs += seek(runner, &mut later, of, STEPS_NEAR)?;
    let mut all: Vec<Fitted> = first
        .into_iter()
        .chain(later)
        .filter_map(|search| search.best)
        .collect();
    // Sorting keeps the order of those that are equal.
    all.sort_by_key(|fitted| fitted.loss);
    let Some(best) = all.first().map(|fitted| fitted.loss) else {
        return Err(Refusal::new("no load was tried", "record for longer").into());
    };
    let by_order = Order::ALL
        .iter()
        .filter_map(|&order| all.iter().find(|it| it.candidate.order == order).cloned());
    let mut by_order: Vec<Fitted> = by_order.collect();
    by_order.sort_by_key(|fitted| fitted.loss);
    let kept_max = (best * 5 / 2).max(best + 10_000);
    all.retain(|fitted| fitted.loss <= kept_max);
    Ok(Fit {
        kept: all,
        by_order,
        runs,
    })
}

/// One search for each class.
fn searches(demand: &Demand, seen: &Figures) -> Vec<Search> {
    let swapped_in = seen.named("pswpin");
    let mut searches = Vec::new();
    for &kind in &demand.kinds {
        searches.extend(
            Order::ALL
                .iter()
                .flat_map(|&order| of_class(kind, order, demand.pages, swapped_in)),
        );
    }
    searches
}

fn of_class(kind: Kind, order: Order, pages: u64, swapped_in: u64) -> Vec<Search> {
    let candidate = |pages, touches| Candidate {
        kind,
        order,
        access: Access::Write,
        pages,
        touches,
    };
    match order {
        Order::AllRandom => (1..)
            .zip(TOUCHED_BY_CHANCE)
            .map(|(passes, touched)| {
                let pages = pages * 1000 / touched;
                Search::fixed(candidate(pages, passes * pages))
            })
            .collect(),
        // Memory that was not touched again looks the same in any order.
        Order::Backward | Order::Random if swapped_in < SWAPPED_IN_MIN => Vec::new(),
        _ if swapped_in < SWAPPED_IN_MIN => vec![Search::fixed(candidate(pages, 0))],
        _ => vec![Search::of(candidate(
            pages,
            swapped_in.min(touches_max(pages)),
        ))],
    }
}

/// The same load with memory that is a little smaller or larger, and read later on.
fn variations(fitted: &Fitted) -> Vec<Search> {
    let Fitted { candidate, .. } = *fitted;
    let searches = |it: Candidate| match it.order {
        Order::AllRandom => Search::fixed(it),
        _ if it.touches == 0 => Search::fixed(it),
        _ => Search::of(it),
    };
    let mut all: Vec<Candidate> = SIZES
        .iter()
        .map(|percent| Candidate {
            pages: candidate.pages * percent / 100,
            touches: candidate.touches * percent / 100,
            ..candidate
        })
        .collect();
    if candidate.touches > 0 && candidate.order != Order::AllRandom {
        let access = Access::ReadLater;
        all.push(Candidate {
            access,
            ..candidate
        });
    }
    all.into_iter().map(searches).collect()
}

/// Takes all searches forward, a run of each at a time; how many runs that took.
fn seek<R: Runner>(
    runner: &R,
    searches: &mut [Search],
    (seen, pages): (&Figures, u64),
    steps: usize,
) -> Result<usize, Error<R::Error>> {
    let mut runs = 0;
    for _ in 0..steps {
        let mut open: Vec<&mut Search> = searches.iter_mut().filter(|it| !it.done).collect();
        if open.is_empty() {
            break;
        }
        let scenarios = open
            .iter()
            .map(|search| runner.scenario(&search.candidate, Setting::Was))
            .collect::<Result<Vec<Scenario>, R::Error>>()
            .map_err(Error::Run)?;
        let recordings = runner.run(scenarios).map_err(Error::Run)?;
        runs += recordings.len();
        for (search, recording) in open.iter_mut().zip(&recordings) {
            search.note(Figures::of(recording), seen, pages);
        }
    }
    Ok(runs)
}

fn least(searches: &[Search]) -> Option<&Fitted> {
    let fitted = searches.iter().filter_map(|search| search.best.as_ref());
    fitted.min_by_key(|fitted| fitted.loss)
}

impl Search {
    fn of(candidate: Candidate) -> Search {
        Search {
            candidate,
            below: None,
            above: None,
            best: None,
            done: false,
        }
    }

    /// One run will do: there is nothing to be sought.
    fn fixed(candidate: Candidate) -> Search {
        let nothing = Some((candidate.touches, 0));
        Search {
            below: nothing,
            above: nothing,
            ..Search::of(candidate)
        }
    }

    /// A run has come to these figures; chooses the touches of the next one.
    fn note(&mut self, figures: Figures, seen: &Figures, pages: u64) {
        let (swapped_in, wanted) = (figures.named("pswpin"), seen.named("pswpin"));
        let loss = loss(&figures, seen, pages);
        if self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best = Some(Fitted {
                candidate: self.candidate,
                figures,
                loss,
            });
        }
        let touches = self.candidate.touches;
        if swapped_in.abs_diff(wanted) <= wanted / NEAR
            || (self.below, self.above) == (None, None) && touches == 0
        {
            self.done = true;
            return;
        }
        if swapped_in < wanted {
            self.below = Some((touches, swapped_in));
        } else {
            self.above = Some((touches, swapped_in));
        }
        let bounds = self.candidate.pages..touches_max(self.candidate.pages);
        let next = next(self.below, self.above, wanted, &bounds);
        self.done = next.is_none_or(|next| next == touches);
        self.candidate.touches = next.unwrap_or(touches);
    }
}

/// Most touches of memory of this size, pages.
fn touches_max(pages: u64) -> u64 {
    ALL_TOUCHES_MAX.min(pages * TOUCHES_MAX)
}

/// `number * by / of`, as far as it can be told.
fn scaled(number: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Touches to be tried next; none if there is nothing between those that were.
fn next(
    below: Option<(u64, u64)>,
    above: Option<(u64, u64)>,
    wanted: u64,
    bounds: &Range<u64>,
) -> Option<u64> {
    match (below, above) {
        (Some((low, few)), Some((high, many))) if low + 1 < high => {
            let share = scaled(
                high - low,
                wanted.saturating_sub(few),
                many.saturating_sub(few),
            );
            // Not too near to either end, so that a bend between them does not make it creep.
            let margin = ((high - low) / 10).max(1);
            Some(low.saturating_add(share).clamp(low + margin, high - margin))
        }
        (Some((low, few)), None) if low < bounds.end => {
            let times = scaled(low, wanted, few).clamp(low + low / 20 + 1, 4 * low + 2);
            Some(times.min(bounds.end))
        }
        (None, Some((high, many))) if high > 1 => Some(scaled(high, wanted, many).min(high - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Swap-ins that begin behind a thousand touches and grow by two for each: found in a few steps.
    #[test]
    fn touches_are_found_where_swap_ins_are_as_many() {
        let swap_ins = |touches: u64| touches.saturating_sub(1000) * 2;
        let wanted = 12_345;
        let (mut below, mut above, mut touches) = (None, None, wanted);
        for _ in 0..STEPS {
            let found = swap_ins(touches);
            if found.abs_diff(wanted) <= wanted / NEAR {
                return;
            }
            if found < wanted {
                below = Some((touches, found));
            } else {
                above = Some((touches, found));
            }
            touches = next(below, above, wanted, &(0..1_000_000)).expect("somewhere");
        }
        panic!("not found: {touches}");
    }

    #[test]
    fn there_is_an_end_where_nothing_is_left_to_try() {
        assert_eq!(next(Some((7, 1)), Some((8, 90)), 50, &(0..100)), None);
        assert_eq!(next(Some((100, 1)), None, 50, &(0..100)), None);
        assert_eq!(next(None, Some((1, 60)), 50, &(0..100)), None);
    }
}
