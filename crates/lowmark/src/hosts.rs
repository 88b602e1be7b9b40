//! The kernel that lowmark is on: whether it can run a workload, and how it does.

use crate::cli::Ask;
use crate::error::Host;
use crate::guests;
use crate::output::remark;
use crate::plan::Real;
use crate::recovering;
use lowmark_real::host::{self, HostOptions};
use lowmark_record::Recording;
use lowmark_spec::Scenario;
use miette::{WrapErr, miette};
use std::time::Duration;

/// The kernel of the specification: the one that runs, whatever the workload is made for, with the settings that were asked for.
pub(crate) fn kernels(ask: &Ask) -> miette::Result<Vec<String>> {
    let own = guests::of_release(&host::release());
    if ask.kernels.is_empty() {
        return Ok(vec![own]);
    }
    let one = |kernel: &String| {
        let kernel = guests::named(kernel);
        let end = kernel.find(['+', ',']).unwrap_or(kernel.len());
        if kernel[..end] == own {
            return Ok(kernel);
        }
        Err(miette!(
            help = "leave --kernel out, or run another kernel with --on guest",
            "--kernel {kernel}: this system runs {own}"
        ))
    };
    ask.kernels.iter().map(one).collect()
}

/// This system, if it can run a scenario.
pub(crate) fn host(scenario: &Scenario, ask: &Ask) -> miette::Result<Real> {
    let mut options = HostOptions {
        machine_wide: ask.machine_wide,
        ..HostOptions::default()
    };
    if let Some(seconds) = ask.timeout {
        options.timeout = Duration::from_secs(seconds);
    }
    host::check(scenario, &options).map_err(Host)?;
    Ok(Real::Host(Box::new(options)))
}

/// Runs a scenario on this system. What its reader should know is said on stderr, and stands in the recording.
pub(crate) fn run(
    name: &str,
    scenario: &Scenario,
    options: &HostOptions,
    events: bool,
    quiet: bool,
) -> miette::Result<Recording> {
    for one in recovering::all() {
        remark(quiet, &recovering::sentence(&one));
    }
    let options = HostOptions {
        events,
        ..options.clone()
    };
    let outcome = host::run(scenario, &options).map_err(Host);
    let outcome = outcome.wrap_err_with(|| name.to_owned())?;
    guests::say(name, &outcome.recording, quiet);
    for problem in &outcome.left {
        // Not to be left unsaid.
        remark(
            false,
            &format!(
                "warning: {name}: this system is not as it was: {problem}. Run `lowmark recover`."
            ),
        );
    }
    Ok(outcome.recording)
}

/// The name of this system, as far as it can be the name of a file.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let name: String = name.trim().chars().filter(|c| plain(*c)).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() {
        "host".to_owned()
    } else {
        name.to_owned()
    }
}
