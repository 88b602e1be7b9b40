//! What an earlier twin kept of its kernel's runs, so that another model can be held against it without a guest.
//!
//! 1. A recording is found by the name under which a twin keeps it, which holds what was asked for, or under which twins
//!    kept it before names had hashes.
//! 2. What it says of itself has to be what is asked for now; of the kernel, its release has to be of that version.
//!
//! A workload or machine file that was edited since under the same name is not noticed.

use crate::guests;
use crate::plan::{self, Real, Run};
use lowmark_record::Recording;
use lowmark_record::store::RECORDING_FILE;
use miette::{IntoDiagnostic, miette};
use std::path::{Path, PathBuf};

/// Under which name a twin keeps a run of the kernel; the first has the number 0.
pub(crate) fn name(run: &Run, repeat: u64) -> String {
    numbered(&run.name, repeat)
}

fn numbered(name: &str, repeat: u64) -> String {
    format!("{name}_run{}", repeat + 1)
}

/// Where a run was kept; none if it was not. `name` is that of the run without its number.
fn found(dir: &Path, name: &str, run: &Run, repeat: u64) -> Option<PathBuf> {
    let earlier = plan::guest_name_without_hash(&run.scenario);
    [name, &earlier]
        .map(|name| dir.join(numbered(name, repeat)))
        .into_iter()
        .find(|path| path.join(RECORDING_FILE).is_file())
}

/// How many runs of a combination were kept.
pub(crate) fn repeats(dir: &Path, run: &Run) -> u64 {
    let kept = |repeat: &u64| found(dir, &run.name, run, *repeat).is_some();
    (0..).take_while(kept).count() as u64
}

/// The recordings of these runs, without events.
pub(crate) fn read(dir: &Path, runs: &[Run]) -> miette::Result<Vec<Recording>> {
    runs.iter().map(|run| one(dir, run)).collect()
}

/// A run that has its number in its name.
fn one(dir: &Path, run: &Run) -> miette::Result<Recording> {
    let number = format!("_run{}", run.repeat + 1);
    let name = run.name.strip_suffix(&number).unwrap_or(&run.name);
    let Some(path) = found(dir, name, run, run.repeat) else {
        return Err(miette!(
            help =
                "`lowmark twin --out DIR` keeps them; --set, --kernel and --repeat ask for fewer",
            "{}: no such recording of a run of the kernel",
            dir.join(&run.name).display()
        ));
    };
    let recording = Recording::read_without_events(&path).into_diagnostic()?;
    match difference(&recording, run) {
        None => Ok(recording),
        Some((what, found, expected)) => Err(miette!(
            help = "make it anew with `lowmark twin --out DIR`, or ask for what was run",
            "{}: {what} {found}, expected {expected}",
            path.join(RECORDING_FILE).display()
        )),
    }
}

/// The first thing that is not as asked for: what, as it is, as it should be.
fn difference(recording: &Recording, run: &Run) -> Option<(&'static str, String, String)> {
    let (seen, scenario) = (&recording.run, &run.scenario);
    let params = |params: &[(String, String)]| {
        let pairs = params.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let version = match run.real.as_ref().and_then(Real::guest) {
        Some(guest) => guests::version(&guest.image),
        None => scenario.kernel.version.clone(),
    };
    let release = recording
        .system
        .as_deref()
        .map_or("", |system| system.release.as_str());
    let pairs = [
        ("backend", seen.backend.clone(), "guest".to_owned()),
        (
            "workload",
            seen.workload.clone(),
            scenario.workload.name.clone(),
        ),
        ("parameters", params(&seen.params), params(&scenario.params)),
        (
            "machine",
            seen.machine.clone(),
            scenario.machine.name.clone(),
        ),
        ("kernel", seen.kernel.clone(), scenario.kernel.text.clone()),
        ("release", guests::of_release(release), version),
        ("seed", seen.seed.to_string(), scenario.seed.to_string()),
    ];
    pairs.into_iter().find(|(_, seen, asked)| seen != asked)
}
