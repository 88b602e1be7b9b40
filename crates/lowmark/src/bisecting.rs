//! From two kernels to the runs that tell which of their changes make a difference.
//!
//! 1. For each combination of the workload's parameters the two kernels are taken apart into alterations
//!    ([`lowmark_model::kernel::Difference`]), whose subsets a [`Bisection`] asks for.
//! 2. A subset is a kernel; one that works like a kernel that was run already is not run again.
//! 3. All repeats of all kernels that are wanted at a time are runs beside each other, with the same seeds for each kernel.
//!    Their figures are kept, their recordings are not.

use crate::cli::{Ask, Running};
use crate::plan::{self, Run};
use crate::{engine, outcome};
use lowmark_model::check;
use lowmark_model::kernel::{Difference, Kernel};
use lowmark_record::Remark;
use lowmark_report::bisect::{Bisection, Change, Figures, Subset, Verdict};
use lowmark_spec::Scenario;
use miette::{IntoDiagnostic, miette};
use std::rc::Rc;

/// What came of one combination of parameters.
pub(crate) struct Found {
    /// Workload, parameters and machine.
    pub(crate) title: String,
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// Changes that do nothing in the model of either kernel.
    pub(crate) left_out: Vec<&'static str>,
    /// What the backend left out of the runs.
    pub(crate) not_modelled: Vec<Remark>,
}

/// Figures of all repeats of a kernel, or why there are none.
type Repeats = Result<Rc<[Figures]>, String>;

/// What is kept of a run.
struct Kept {
    figures: Figures,
    /// Why it did not complete, if it did not.
    incomplete: Option<String>,
    not_modelled: Vec<Remark>,
}

/// A kernel that is to be run, and the subsets that it is.
struct Wanted {
    kernel: Kernel,
    subsets: Vec<Subset>,
    runs: Vec<Run>,
}

/// Takes the difference between the two kernels of `ask` apart.
pub(crate) fn bisect(
    target: &str,
    ask: &Ask,
    metrics: &[String],
    running: &Running,
) -> miette::Result<Vec<Found>> {
    let (pairs, repeats) = plan::of_bisection(target, ask)?;
    pairs
        .iter()
        .map(|pair| Search::new(pair, repeats, metrics)?.run(running))
        .collect()
}

/// The search for one combination of parameters.
struct Search {
    difference: Difference,
    bisection: Bisection,
    /// What is run, with the first kernel.
    scenario: Scenario,
    repeats: u64,
    /// Kernels that were run, with what came of it.
    known: Vec<(Kernel, Repeats)>,
    not_modelled: Vec<Remark>,
}

impl Search {
    fn new(pair: &[Scenario; 2], repeats: u64, metrics: &[String]) -> miette::Result<Search> {
        let [from, to] = pair.each_ref().map(|scenario| &scenario.kernel);
        let difference = Difference::between(from, to).into_diagnostic()?;
        let changes = difference.alterations().iter().map(|alteration| Change {
            name: alteration.name(),
            version: alteration.row().map(|row| row.version.to_string()),
            commit: alteration.row().map(|row| row.commit.to_owned()),
            summary: alteration.summary(),
        });
        let ends = [from, to].map(|kernel| kernel.text.clone());
        Ok(Search {
            bisection: Bisection::new(ends, changes.collect(), metrics.to_vec()),
            difference,
            scenario: pair[0].clone(),
            repeats,
            known: Vec::new(),
            not_modelled: Vec::new(),
        })
    }

    fn run(mut self, running: &Running) -> miette::Result<Found> {
        loop {
            let subsets = self.bisection.wanted().map_err(unknown)?;
            if subsets.is_empty() {
                break;
            }
            self.measure(subsets, running)?;
        }
        let left_out = self.difference.left_out();
        Ok(Found {
            title: plan::title_without_kernel(&self.scenario),
            verdict: self.bisection.verdict().map_err(unknown)?,
            left_out: left_out.iter().map(|change| change.name).collect(),
            not_modelled: self.not_modelled,
        })
    }

    /// Gives the search the figures of these subsets.
    fn measure(&mut self, subsets: Vec<Subset>, running: &Running) -> miette::Result<()> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for subset in subsets {
            let scenario = match self.scenario_of(&subset) {
                Ok(scenario) => scenario,
                Err(reason) => {
                    self.tell(&subset, &Err(reason))?;
                    continue;
                }
            };
            let kernel = Kernel::resolve(&scenario.kernel).into_diagnostic()?;
            if let Some((_, known)) = self.known.iter().find(|(it, _)| it.works_like(&kernel)) {
                let known = known.clone();
                self.tell(&subset, &known)?;
                continue;
            }
            match wanted.iter_mut().find(|it| it.kernel.works_like(&kernel)) {
                Some(same) => same.subsets.push(subset),
                None => wanted.push(Wanted {
                    kernel,
                    subsets: vec![subset],
                    runs: plan::repeated(&scenario, None, self.repeats)?,
                }),
            }
        }
        let runs: Vec<Run> = (wanted.iter_mut())
            .flat_map(|it| std::mem::take(&mut it.runs))
            .collect();
        if runs.is_empty() {
            return Ok(());
        }
        let unwatched = vec![false; runs.len()];
        let mut kept =
            engine::execute_and_make(&runs, running, &unwatched, u64::MAX, &|_, run| {
                let recording = run.into_recording();
                Kept {
                    figures: Figures::of(&recording),
                    incomplete: outcome::verdict(&recording.outcome),
                    not_modelled: recording.not_modelled,
                }
            })?
            .into_iter();
        for Wanted {
            kernel, subsets, ..
        } in wanted
        {
            let repeats: Vec<Kept> = kept.by_ref().take(self.repeats as usize).collect();
            let result = self.keep(repeats);
            for subset in &subsets {
                self.tell(subset, &result)?;
            }
            self.known.push((kernel, result));
        }
        Ok(())
    }

    /// The figures of the repeats of a kernel, if all completed.
    fn keep(&mut self, repeats: Vec<Kept>) -> Repeats {
        let remarks = repeats.iter().flat_map(|run| &run.not_modelled);
        for remark in remarks {
            if !self.not_modelled.contains(remark) {
                self.not_modelled.push(remark.clone());
            }
        }
        match repeats.iter().find_map(|run| run.incomplete.clone()) {
            Some(reason) => Err(reason),
            None => Ok(repeats.into_iter().map(|run| run.figures).collect()),
        }
    }

    /// What is to be run of a subset, or why there is no such kernel.
    fn scenario_of(&self, subset: &Subset) -> Result<Scenario, String> {
        let mut scenario = self.scenario.clone();
        let spec = self.difference.spec(subset);
        scenario.kernel = spec.map_err(|refused| refused.to_string())?;
        check(&scenario).map_err(|refused| refused.to_string())?;
        Ok(scenario)
    }

    /// Tells the search what came of a subset. Both ends are kernels that can be run, or there is nothing to take apart.
    fn tell(&mut self, subset: &Subset, result: &Repeats) -> miette::Result<()> {
        match result {
            Ok(figures) => self.bisection.measured(subset.clone(), figures.clone()),
            Err(reason) => {
                let all = subset.iter().all(|with| *with);
                if all || !subset.contains(&true) {
                    let end = usize::from(all && !subset.is_empty());
                    let which = ["--from", "--to"][end];
                    return Err(miette!(
                        help = "a kernel whose runs do not complete has no figures to compare",
                        "{which}: {reason}"
                    ));
                }
                self.bisection.refused(subset.clone(), reason.clone());
            }
        }
        Ok(())
    }
}

fn unknown(error: lowmark_report::bisect::UnknownMetric) -> miette::Report {
    miette!(
        help = "write a row as `lowmark compare` prints it, or a counter as in /proc/vmstat",
        "--metric: {error}"
    )
}
