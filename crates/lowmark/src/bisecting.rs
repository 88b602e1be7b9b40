//! From two ends to the runs that tell which of their changes make a difference.
//!
//! 1. For each combination of the workload's parameters the two ends are taken apart into changes ([`Between`]), whose
//!    subsets a [`Bisection`] asks for.
//! 2. A subset is something that can be run; what works like something that was run already is not run again.
//! 3. All repeats of all that is wanted at a time are runs beside each other, with the same seeds for each. Their figures
//!    are kept, their recordings are not.

use crate::between::{self, Between, Point};
use crate::cli::{Ask, Backend, Running};
use crate::columns::{self, Columns};
use crate::plan::Run;
use crate::{comparing, engine, outcome};
use lowmark_record::Remark;
use lowmark_report::bisect::{Bisection, Figures, Subset, Verdict};
use lowmark_report::recipe::CellPlan;
use miette::miette;
use std::rc::Rc;

/// Repeats in guests, unless `--repeat` says otherwise: with fewer no difference is beyond noise for sure.
const REPEATS_IN_GUESTS: u64 = 5;

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

/// Figures of all repeats, or why there are none.
type Repeats = Result<Rc<[Figures]>, String>;

/// What is kept of a run.
struct Kept {
    figures: Figures,
    /// Why it did not complete, if it did not.
    incomplete: Option<String>,
    not_modelled: Vec<Remark>,
}

/// What is to be run, and the subsets that it is.
struct Wanted {
    point: Point,
    subsets: Vec<Subset>,
    runs: Vec<Run>,
}

/// Takes the difference between two ends apart.
pub(crate) fn bisect(
    Columns { pair, cells }: Columns,
    ask: &Ask,
    metrics: &[String],
    running: &Running,
) -> miette::Result<Vec<Found>> {
    ask.check()?;
    ask.check_not_host(
        "bisect",
        "there are several kernels to run, and this system has one",
    )?;
    let ends = pair.ends.each_ref().map(|end| end.name.clone());
    let all = between::all(pair, ask)?;
    let usual = all.iter().map(|between| match ask.on {
        Backend::Guest => REPEATS_IN_GUESTS,
        Backend::Model | Backend::Host => comparing::repeats(between.ends()),
    });
    let repeats = ask.repeat.or_else(|| usual.min()).unwrap_or(1);
    all.into_iter()
        .map(|between| Search::new(between, &ends, repeats, metrics, &cells).run(running))
        .collect()
}

/// The search for one combination of parameters.
struct Search<'c> {
    between: Between,
    bisection: Bisection,
    repeats: u64,
    /// Cells of a published table that are the figures; all figures if there are none.
    cells: &'c [CellPlan],
    /// What was run, and what came of it.
    known: Vec<(Point, Repeats)>,
    not_modelled: Vec<Remark>,
}

impl<'c> Search<'c> {
    fn new(
        between: Between,
        ends: &[String; 2],
        repeats: u64,
        metrics: &[String],
        cells: &'c [CellPlan],
    ) -> Search<'c> {
        Search {
            bisection: Bisection::new(ends.clone(), between.changes(), metrics.to_vec()),
            between,
            repeats,
            cells,
            known: Vec::new(),
            not_modelled: Vec::new(),
        }
    }

    fn run(mut self, running: &Running) -> miette::Result<Found> {
        loop {
            let subsets = self.bisection.wanted().map_err(unknown)?;
            if subsets.is_empty() {
                break;
            }
            self.measure(subsets, running)?;
        }
        Ok(Found {
            title: self.between.title(),
            verdict: self.bisection.verdict().map_err(unknown)?,
            left_out: self.between.left_out(),
            not_modelled: self.not_modelled,
        })
    }

    /// Gives the search the figures of these subsets.
    fn measure(&mut self, subsets: Vec<Subset>, running: &Running) -> miette::Result<()> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for subset in subsets {
            let point = match self.between.point(&subset) {
                Ok(point) => point,
                Err(reason) => {
                    self.tell(&subset, &Err(reason))?;
                    continue;
                }
            };
            if let Some((_, known)) = self.known.iter().find(|(it, _)| it.is_like(&point)) {
                let known = known.clone();
                self.tell(&subset, &known)?;
                continue;
            }
            match wanted.iter_mut().find(|it| it.point.is_like(&point)) {
                Some(same) => same.subsets.push(subset),
                None => wanted.push(Wanted {
                    runs: point.runs(self.repeats)?,
                    subsets: vec![subset],
                    point,
                }),
            }
        }
        let runs: Vec<Run> = (wanted.iter_mut())
            .flat_map(|it| std::mem::take(&mut it.runs))
            .collect();
        if runs.is_empty() {
            return Ok(());
        }
        let cells = self.cells;
        let needs_events = cells.iter().any(|cell| cell.metric.needs_events());
        let watched = vec![needs_events; runs.len()];
        let mut kept = engine::execute_and_make(&runs, running, &watched, u64::MAX, &|_, run| {
            let cells = columns::measured(cells, &run);
            let recording = run.into_recording();
            Kept {
                figures: Figures::of(&recording).with_cells(cells),
                incomplete: outcome::verdict(&recording.outcome),
                not_modelled: recording.not_modelled,
            }
        })?
        .into_iter();
        for Wanted { point, subsets, .. } in wanted {
            let repeats: Vec<Kept> = kept.by_ref().take(self.repeats as usize).collect();
            let result = self.keep(repeats);
            for subset in &subsets {
                self.tell(subset, &result)?;
            }
            self.known.push((point, result));
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

    /// Tells the search what came of a subset. Both ends can be run, or there is nothing to take apart.
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
