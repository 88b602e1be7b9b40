//! Kernels in guests: the image is one change, and each setting is another one.

use super::{End, change};
use crate::cli::Ask;
use crate::guests;
use lowmark_model::kernel::Alteration;
use lowmark_real::guest::{GuestOptions, KernelImage};
use lowmark_report::bisect::Change;
use lowmark_spec::{KernelSpec, Scenario};
use miette::miette;

/// In what two kernels in guests differ.
pub(super) struct Images {
    guests: [GuestOptions; 2],
    kernels: [KernelSpec; 2],
    /// Names of the images, where they differ.
    named: Option<[String; 2]>,
    settings: Vec<Alteration>,
}

/// The image that a kernel names: what stands before the first comma is a path, or a version that was fetched.
fn name(kernel: &str) -> &str {
    kernel.split(',').next().unwrap_or_default()
}

/// A kernel as workloads write it: the version of its image, and settings.
pub(super) fn written(kernel: &str, image: &KernelImage) -> String {
    let version = guests::version(image);
    match kernel.split_once(',') {
        Some((_, settings)) => format!("{version},{settings}"),
        None => version,
    }
}

/// The images of both ends.
pub(super) fn find(ends: &[End; 2], ask: &Ask) -> miette::Result<[KernelImage; 2]> {
    if !ask.images.is_empty() {
        return Err(miette!(
            help = "write its path or version as --from or --to",
            "--image has no meaning for bisect"
        ));
    }
    let [from, to] = ends.each_ref().map(|end| guests::image(name(&end.kernel)));
    Ok([from?, to?])
}

impl Images {
    /// The kernels of both ends, whose names become those that were asked for.
    pub(super) fn new(
        asked: &[End; 2],
        ask: &Ask,
        ends: &mut [Scenario; 2],
        images: &[KernelImage; 2],
    ) -> Images {
        for (end, asked) in ends.iter_mut().zip(asked) {
            end.kernel.text.clone_from(&asked.kernel);
        }
        let [before, after] = ends.each_ref().map(|end| &end.kernel.sysctl);
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| before.get(*name) != after.get(*name));
        let setting = |name: &String| Alteration::Setting {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        };
        let settings = names.into_iter().map(setting).collect();
        let names = asked.each_ref().map(|end| name(&end.kernel).to_owned());
        Images {
            settings,
            kernels: ends.each_ref().map(|end| end.kernel.clone()),
            named: (images[0].path != images[1].path).then_some(names),
            guests: images
                .each_ref()
                .map(|image| guests::options(image.clone(), ask)),
        }
    }

    /// What they differ in, the image first.
    pub(super) fn changes(&self) -> Vec<Change> {
        let image = |[from, to]: &[String; 2]| Change {
            name: format!("image={to}"),
            version: None,
            commit: None,
            summary: format!("the kernel image, from {from} to {to}"),
        };
        let settings = self.settings.iter().map(change);
        self.named.iter().map(image).chain(settings).collect()
    }

    /// The kernel that has some of the changes, and the guest that runs it.
    pub(super) fn kernel(&self, with: &[bool]) -> (KernelSpec, GuestOptions) {
        let (image, own) = with.split_at(usize::from(self.named.is_some()));
        let at = usize::from(image.contains(&true));
        let mut kernel = self.kernels[at].clone();
        kernel.sysctl.clone_from(&self.kernels[0].sysctl);
        for (setting, _) in self.settings.iter().zip(own).filter(|(_, with)| **with) {
            if let Alteration::Setting { name, after, .. } = setting {
                kernel.sysctl.remove(name);
                let after = after.iter();
                kernel
                    .sysctl
                    .extend(after.map(|after| (name.clone(), after.clone())));
            }
        }
        (kernel, self.guests[at].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Backend;

    fn image(release: &str) -> KernelImage {
        KernelImage {
            path: release.into(),
            release: release.to_owned(),
            upstream: release.to_owned(),
            modules: None,
            config: None,
        }
    }

    /// Two kernels that are written so, in images of these releases.
    fn images(written: [&str; 2], releases: [&str; 2]) -> Images {
        let end = |kernel: &str| End {
            name: kernel.to_owned(),
            kernel: kernel.to_owned(),
            machine: None,
            set: Vec::new(),
        };
        let ask = Ask {
            kernels: Vec::new(),
            machine: None,
            set: Vec::new(),
            seed: None,
            repeat: None,
            on: Backend::Guest,
            images: Vec::new(),
            timeout: None,
            interval: None,
            accel: None,
            machine_wide: false,
        };
        let images = releases.map(image);
        let mut scenarios = [0, 1].map(|at| {
            let mut scenario = lowmark_model::example_scenario();
            let kernel = super::written(written[at], &images[at]);
            scenario.kernel = KernelSpec::parse(&kernel).expect("a kernel");
            scenario
        });
        Images::new(&written.map(end), &ask, &mut scenarios, &images)
    }

    #[test]
    fn an_image_is_one_change_and_each_setting_another() {
        let written = ["6.1,page_cluster=0", "6.18,swappiness=10"];
        let images = images(written, ["6.1.2", "6.18.3"]);
        let names: Vec<String> = images.changes().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["image=6.18", "-page_cluster=0", "swappiness=10"]);
        let of = |with: [bool; 3]| {
            let (kernel, guest) = images.kernel(&with);
            let sysctl: Vec<String> = kernel.sysctl.into_keys().collect();
            (guest.image.release, sysctl.join(" "))
        };
        let expect = |release: &str, sysctl: &str| (release.to_owned(), sysctl.to_owned());
        assert_eq!(of([false; 3]), expect("6.1.2", "page_cluster"));
        assert_eq!(of([true, false, false]), expect("6.18.3", "page_cluster"));
        assert_eq!(
            of([false, false, true]),
            expect("6.1.2", "page_cluster swappiness")
        );
        assert_eq!(of([true; 3]), expect("6.18.3", "swappiness"));
    }

    #[test]
    fn the_same_image_is_no_change() {
        let images = images(["6.18", "6.18,swappiness=10"], ["6.18.3", "6.18.3"]);
        let names: Vec<String> = images.changes().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["swappiness=10"]);
    }
}
