//! Guests: which kernel images, how they run, what they say.

use crate::cli::{self, Ask};
use crate::error::Guest;
use crate::output::remark;
use crate::plan::Real;
use lowmark_real::guest::{self, Accel, BUFFER_KB, GuestOptions, KernelImage, Trace};
use lowmark_record::{Recording, Release, System};
use lowmark_report::table::counted;
use lowmark_spec::Scenario;
use miette::WrapErr;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The images that were asked for, by the name that they were given.
pub(crate) struct Images(Vec<(String, KernelImage)>);

impl Images {
    /// Finds the images of `--image`; none means: by the kernel's version.
    pub(crate) fn find(ask: &Ask) -> miette::Result<Images> {
        let find = |name: &String| Ok((name.clone(), KernelImage::find(name)?));
        let images = ask.images.iter().map(find);
        Ok(Images(images.collect::<Result<_, _>>().map_err(Guest)?))
    }

    /// The kernels of the specification: an image is one, whatever the workload is made for.
    pub(crate) fn kernels(&self, ask: &Ask) -> Vec<String> {
        match self.0.first() {
            Some((_, image)) if ask.kernels.is_empty() => vec![version(image)],
            _ => ask.kernels.iter().map(|kernel| named(kernel)).collect(),
        }
    }

    /// The guests that run a scenario: one for each image. Guests that do not `boot` need none.
    pub(crate) fn guests(
        &self,
        scenario: &Scenario,
        ask: &Ask,
        boot: bool,
    ) -> miette::Result<Vec<(Scenario, Option<Real>)>> {
        guest::check(scenario).map_err(Guest)?;
        if self.0.is_empty() {
            let image = boot.then(|| of_version(&scenario.kernel.version));
            let guest = image.transpose()?.map(|image| options(image, ask));
            return Ok(vec![(scenario.clone(), guest.map(real))]);
        }
        let mut guests = Vec::new();
        for (name, image) in &self.0 {
            let mut scenario = scenario.clone();
            let kernel = &mut scenario.kernel;
            let settings = kernel.text.strip_prefix(&kernel.version).unwrap_or("");
            kernel.text = format!("{name}{settings}");
            kernel.version = version(image);
            guests.push((scenario, Some(real(options(image.clone(), ask)))));
        }
        Ok(guests)
    }
}

fn real(guest: GuestOptions) -> Real {
    Real::Guest(Box::new(guest))
}

/// A kernel as workloads write it: images go by `6.18` too.
pub(crate) fn named(kernel: &str) -> String {
    if kernel.starts_with(|c: char| c.is_ascii_digit()) {
        format!("v{kernel}")
    } else {
        kernel.to_owned()
    }
}

/// An image by its path or the version that was fetched.
pub(crate) fn image(name: &str) -> miette::Result<KernelImage> {
    Ok(KernelImage::find(name).map_err(Guest)?)
}

/// The fetched image of a version.
pub(crate) fn of_version(version: &str) -> miette::Result<KernelImage> {
    let found = KernelImage::find(version).map_err(Guest);
    found.wrap_err_with(|| format!("kernel {version}: no image was named with --image"))
}

/// `v6.18`, by the release in an image's header.
pub(crate) fn version(image: &KernelImage) -> String {
    of_release(&image.release)
}

/// The version of the stable kernel that an image was built from, `v6.18.15`: what the model of that very kernel is asked for.
pub(crate) fn stable_version(image: &KernelImage) -> String {
    format!("v{}", image.upstream)
}

/// The same by what `uname -r` says, of a kernel that is not at hand. Distributions that call a kernel the release itself,
/// `6.1.0-50-amd64`, build it from a stable one, whose number is not in the name then.
pub(crate) fn stable_of_release(release: &str) -> Option<String> {
    let (numbers, rest) = release.split_at(
        release
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(release.len()),
    );
    let [major, minor, patch] = numbers.split('.').collect::<Vec<_>>().try_into().ok()?;
    let build = rest
        .strip_prefix('-')
        .and_then(|rest| rest.split('-').next());
    let build: Option<u32> = build.and_then(|build| build.parse().ok());
    match (patch, build) {
        ("0", Some(1..)) => Some(format!("v{major}.{minor}.1")),
        _ => Some(format!("v{numbers}")),
    }
}

/// `v6.18`, by what `uname -r` says.
pub(crate) fn of_release(release: &str) -> String {
    match release.parse::<Release>() {
        Ok(release) => format!("v{release}"),
        Err(_) => format!("v{release}"),
    }
}

/// How a guest with this image is run.
pub(crate) fn options(image: KernelImage, ask: &Ask) -> GuestOptions {
    let mut options = GuestOptions::new(image);
    options.accel = ask.accel.map(|accel| match accel {
        cli::Accel::Kvm => Accel::Kvm,
        cli::Accel::Tcg => Accel::Tcg,
    });
    if let Some(seconds) = ask.timeout {
        options.timeout = Duration::from_secs(seconds);
    }
    if let Some(ms) = ask.interval {
        options.interval = Duration::from_millis(ms);
    }
    options
}

/// Runs a scenario in a guest. What its reader should know is said on stderr, and stands in the recording.
pub(crate) fn run(
    name: &str,
    scenario: &Scenario,
    options: &GuestOptions,
    events: bool,
    quiet: bool,
) -> miette::Result<Recording> {
    let mut options = options.clone();
    if events {
        options.trace = Some(Trace {
            events: guest::EVENTS.map(str::to_owned).to_vec(),
            file: None,
            buffer_kb: BUFFER_KB,
        });
    }
    let outcome = guest::run(scenario, &options).map_err(Guest);
    let recording = outcome.wrap_err_with(|| name.to_owned())?.recording;
    say(name, &recording, quiet);
    Ok(recording)
}

/// Says what the reader of a real kernel's recording should know; what was said of another run already, not again.
pub(crate) fn say(name: &str, recording: &Recording, quiet: bool) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let system = recording.system.as_deref();
    for note in system.map_or(&[][..], |system| &system.notes) {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(note.clone()) {
            remark(quiet, &format!("{name}: {note}"));
        }
    }
    if let Some(lost) = system
        .and_then(|system| system.lost_events)
        .filter(|&lost| lost > 0)
    {
        remark(
            quiet,
            &format!("warning: {name}: the trace lost {}", counted(lost, "event")),
        );
    }
}

/// One line on the kernel that ran.
pub(crate) fn describe(recording: &Recording) -> Option<String> {
    let system = recording.system.as_deref()?;
    let events = match system.lost_events {
        None => String::new(),
        Some(0) => ", no events lost".to_owned(),
        Some(lost) => format!(", {} lost", counted(lost, "event")),
    };
    let System {
        release,
        executed_by,
        ..
    } = system;
    Some(format!(
        "Linux {release}, executed by {executed_by}{events}"
    ))
}

#[cfg(test)]
mod tests {
    use super::stable_of_release;

    #[test]
    fn a_release_of_a_distribution_is_a_stable_kernel() {
        for (release, version) in [
            ("6.18.15+deb13-cloud-amd64", Some("v6.18.15")),
            ("6.1.0-50-cloud-amd64", Some("v6.1.1")),
            ("6.1.0", Some("v6.1.0")),
            ("6.1.0-rc3", Some("v6.1.0")),
            ("6.1", None),
        ] {
            assert_eq!(stable_of_release(release).as_deref(), version, "{release}");
        }
    }
}
