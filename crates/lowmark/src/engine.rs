//! Carries out runs, several at a time, and keeps their recordings.
//!
//! 1. Before anything runs, it is checked that every recording can be written.
//! 2. A pool of threads takes the runs, those with most touches first. Real kernels come one at a time, each
//!    repeat of all before the next, so that whatever else the machine does falls on all alike.
//! 3. Each recording is written as soon as its run is over, and its events are then forgotten. Where figures are made
//!    of events and no recording is written, they go by while the run goes on and are never kept.
//! 4. What is wanted of a run is made of it in the same thread, so that no more runs are in memory than there are
//!    threads.
//! 5. The results come in the order of the runs, whatever the number of threads.

use crate::cli::Running;
use crate::output::remark;
use crate::plan::{Real, Run};
use crate::progress::Display;
use crate::turns::Turns;
use crate::{guests, hosts, interrupt, unfinished};
use lowmark_model::{Options, Progress, Refusal};
use lowmark_record::{Recording, check_writable};
use lowmark_report::identities::Identity;
use lowmark_report::recipe::{Evidence, Watch};
use lowmark_report::table::counted;
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
    let watched = vec![false; runs.len()];
    execute_and_make(runs, running, &watched, u64::MAX, &|_, run| {
        run.into_recording()
    })
}

/// Carries out all runs, and gives what `make` makes of each by its number; the events of those that are marked in
/// `watched` are looked at for it. Of the model, runs that are to take more than `memory` bytes together are not carried
/// out at the same time.
pub(crate) fn execute_and_make<T: Send + Sync>(
    runs: &[Run],
    running: &Running,
    watched: &[bool],
    memory: u64,
    make: &(dyn Fn(usize, Evidence) -> T + Sync),
) -> miette::Result<Vec<T>> {
    if let Some(out) = &running.out {
        check_out(out, runs)?;
        unfinished::clear(out, running.quiet);
        unfinished::clear_at_end(out);
    }
    let real = runs.iter().any(|run| run.real.is_some());
    let usual = || if real { 1 } else { cpus() };
    let jobs = running.jobs.map_or_else(usual, usize::from);
    // One after the other: they would be each other's load.
    let on_host = |run: &Run| matches!(run.real, Some(Real::Host(_)));
    let jobs = if runs.iter().any(on_host) { 1 } else { jobs };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.min(runs.len()))
        .build()
        .into_diagnostic()
        .wrap_err("cannot start threads")?;
    let display = Display::new(runs.len(), running.quiet);
    let slots: Vec<OnceLock<miette::Result<T>>> = runs.iter().map(|_| OnceLock::new()).collect();
    let failed = AtomicBool::new(false);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    if real {
        order.sort_by_key(|&at| runs[at].repeat)
    } else {
        order.sort_by_cached_key(|&at| Reverse(runs[at].scenario.workload.touches_expected()))
    }
    let bytes = |at: usize| match &runs[at].real {
        None => lowmark_model::memory_expected(&runs[at].scenario),
        Some(_) => 0,
    };
    let turns = Turns::new(
        order.into_iter().map(|at| (at, bytes(at))).collect(),
        memory,
    );
    let thread = |large: bool| {
        while let Some(turn) = turns.next(large) {
            if failed.load(Ordering::Relaxed) {
                return;
            }
            let at = turn.run;
            let run = one(&runs[at], running, watched[at], &display);
            let result = run.map(|evidence| make(at, evidence));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            // Nobody else fills this slot.
            let _ = slots[at].set(result);
        }
    };
    pool.scope(|scope| {
        let thread = &thread;
        for number in 0..pool.current_num_threads() {
            scope.spawn(move |_| thread(number == 0));
        }
    });
    display.finish();
    let results = slots.into_iter().filter_map(OnceLock::into_inner);
    let made = results.collect::<miette::Result<Vec<T>>>()?;
    if let Some(out) = &running.out {
        let recordings = counted(made.len() as u64, "recording");
        let text = format!("{recordings} written to {}", out.display());
        remark(running.quiet, &text);
    }
    Ok(made)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn one(run: &Run, running: &Running, watched: bool, display: &Display) -> miette::Result<Evidence> {
    let events = running.events || watched;
    let evidence = match &run.real {
        None if events && running.out.is_none() => {
            let mut watch = Watch::default();
            let (recording, _) = on_model(run, display, |progress| {
                lowmark_model::stream(&run.scenario, &mut watch, progress)
            })?;
            Evidence::watched(recording, watch)
        }
        None => {
            let options = Options {
                events,
                ..Options::default()
            };
            let recording = on_model(run, display, |progress| {
                lowmark_model::run(&run.scenario, &options, progress)
            })?;
            kept(run, recording, running, events)?
        }
        Some(real) => {
            let line = display.begin_guest(&run.name);
            let (name, scenario, quiet) = (&run.name, &run.scenario, running.quiet);
            let result = match real {
                Real::Guest(guest) => guests::run(name, scenario, guest, events, quiet),
                Real::Host(host) => hosts::run(name, scenario, host, events, quiet),
            };
            display.end(line);
            kept(run, result?, running, events)?
        }
    };
    let broken = evidence.identities().iter().filter(|i| !i.holds());
    for identity in broken {
        let Identity {
            name,
            trace,
            counters,
            ..
        } = identity;
        let text = format!("the trace adds up to {trace} {name}, the counters say {counters}");
        remark(running.quiet, &format!("warning: {}: {text}", run.name));
    }
    Ok(evidence)
}

/// Writes the recording, if it is to be kept, and looks at the events that it has.
fn kept(
    run: &Run,
    recording: Recording,
    running: &Running,
    events: bool,
) -> miette::Result<Evidence> {
    if let Some(out) = &running.out {
        let written = recording.write(&out.join(&run.name));
        interrupt::wait_if_ending();
        written.into_diagnostic()?;
    }
    Ok(if events {
        Evidence::of(recording)
    } else {
        Evidence::without_events(recording)
    })
}

fn on_model<T>(
    run: &Run,
    display: &Display,
    go: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, Refusal>,
) -> miette::Result<T> {
    let mut line = display.begin(&run.name, &run.scenario.workload);
    let result = go(&mut |progress| line.update(progress));
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
