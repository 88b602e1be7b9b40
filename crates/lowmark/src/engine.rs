//! Carries out runs, several at a time, and keeps their recordings.
//!
//! 1. Before anything runs, it is checked that every recording can be written.
//! 2. A pool of threads takes the runs, those with most touches first. Guests come one at a time, each
//!    repeat of all before the next, so that whatever else the machine does falls on all alike.
//! 3. Each recording is written as soon as its run is over; its events are then forgotten, unless somebody
//!    asked for them.
//! 4. The results come in the order of the runs, whatever the number of threads.

use crate::cli::Running;
use crate::output::remark;
use crate::plan::Run;
use crate::progress::Display;
use crate::{guests, interrupt, unfinished};
use lowmark_model::Options;
use lowmark_record::{Recording, check_writable};
use lowmark_report::identities::{Identity, identities};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::cmp::Reverse;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Running that keeps nothing.
pub(crate) fn quietly(quiet: bool) -> Running {
    Running {
        jobs: None,
        out: None,
        events: false,
        quiet,
    }
}

/// Carries out all runs; a recording for each, in the same order, without its events.
pub(crate) fn execute(runs: &[Run], running: &Running) -> miette::Result<Vec<Recording>> {
    execute_and_keep(runs, running, &vec![false; runs.len()])
}

/// The same; of runs that are marked in `keep` the events are recorded and kept.
pub(crate) fn execute_and_keep(
    runs: &[Run],
    running: &Running,
    keep: &[bool],
) -> miette::Result<Vec<Recording>> {
    if let Some(out) = &running.out {
        check_out(out, runs)?;
        unfinished::clear(out, running.quiet);
        unfinished::clear_at_end(out);
    }
    let guests = runs.iter().any(|run| run.guest.is_some());
    let usual = || if guests { 1 } else { cpus() };
    let jobs = running.jobs.map_or_else(usual, usize::from);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.min(runs.len()))
        .build()
        .into_diagnostic()
        .wrap_err("cannot start threads")?;
    let display = Display::new(runs.len(), running.quiet);
    let slots: Vec<OnceLock<miette::Result<Recording>>> =
        runs.iter().map(|_| OnceLock::new()).collect();
    let failed = AtomicBool::new(false);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    match guests {
        true => order.sort_by_key(|&at| runs[at].repeat),
        false => {
            order.sort_by_cached_key(|&at| Reverse(runs[at].scenario.workload.touches_expected()))
        }
    }
    pool.scope_fifo(|scope| {
        for at in order {
            let (display, slots, failed) = (&display, &slots, &failed);
            scope.spawn_fifo(move |_| {
                if failed.load(Ordering::Relaxed) {
                    return;
                }
                let result = one(&runs[at], running, keep[at], display);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                // Nobody else fills this slot.
                let _ = slots[at].set(result);
            });
        }
    });
    display.finish();
    let results = slots.into_iter().filter_map(OnceLock::into_inner);
    let recordings = results.collect::<miette::Result<Vec<Recording>>>()?;
    if let Some(out) = &running.out {
        let plural = if recordings.len() == 1 { "" } else { "s" };
        let text = format!(
            "{} recording{plural} in {}",
            recordings.len(),
            out.display()
        );
        remark(running.quiet, &text);
    }
    Ok(recordings)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn one(run: &Run, running: &Running, keep: bool, display: &Display) -> miette::Result<Recording> {
    let events = running.events || keep;
    let mut recording = match &run.guest {
        None => on_model(run, events, display)?,
        Some(guest) => {
            let line = display.begin_guest(&run.name);
            let result = guests::run(&run.name, &run.scenario, guest, events, running.quiet);
            display.end(line);
            result?
        }
    };
    for identity in identities(&recording)
        .iter()
        .filter(|identity| !identity.holds())
    {
        let Identity {
            name,
            trace,
            counters,
            ..
        } = identity;
        let text = format!("the trace adds up to {trace} {name}, the counters say {counters}");
        remark(running.quiet, &format!("warning: {}: {text}", run.name));
    }
    if let Some(out) = &running.out {
        let written = recording.write(&out.join(&run.name));
        interrupt::wait_if_ending();
        written.into_diagnostic()?;
    }
    if !keep {
        recording.events = Default::default();
    }
    Ok(recording)
}

fn on_model(run: &Run, events: bool, display: &Display) -> miette::Result<Recording> {
    let options = Options {
        events,
        ..Options::default()
    };
    let mut line = display.begin(&run.name, &run.scenario.workload);
    let result = lowmark_model::run(&run.scenario, &options, &mut |progress| {
        line.update(progress);
    });
    display.end(line);
    result.map_err(|refusal| miette!("{}: {refusal}", run.name))
}

/// Finds out before a long run what would fail after it.
fn check_out(out: &Path, runs: &[Run]) -> miette::Result<()> {
    const HELP: &str =
        "--out takes a directory, which is made if need be; each run has one below it";
    if out.exists() && !out.is_dir() {
        return Err(miette!(
            help = HELP,
            "{}: is not a directory",
            out.display()
        ));
    }
    if out.join(lowmark_record::store::RECORDING_FILE).exists() {
        return Err(miette!(
            help = HELP,
            "{}: is itself a recording",
            out.display()
        ));
    }
    runs.iter()
        .try_for_each(|run| check_writable(&out.join(&run.name)))
        .into_diagnostic()
}
