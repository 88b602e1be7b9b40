//! Archives of distributions that kernels come from, and the packages that make up a kernel in each.
//!
//! | distribution | kernels |
//! |---|---|
//! | Debian | 5.10, and from 6.1 on those of its releases and backports; small "cloud" kernels where there are some |
//! | Ubuntu | 4.4, 4.15, 4.18, 5.0, 5.3, 5.4, 5.8, 5.11, 5.13, 5.15, 5.19, and several from 6.2 on |

use super::fetch::files_with;
use crate::guest::cache;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Archives in the order in which they are asked.
pub(super) const ARCHIVES: [Archive; 2] = [
    Archive {
        name: "Debian",
        variable: "LOWMARK_DEBIAN_MIRROR",
        mirror: "http://deb.debian.org/debian",
        suites: &["bullseye", "bookworm", "trixie", "trixie-backports"],
        keyring: "/usr/share/keyrings/debian-archive-keyring.gpg",
        keyring_package: None,
        naming: Naming::Debian,
    },
    Archive {
        name: "Ubuntu",
        variable: "LOWMARK_UBUNTU_MIRROR",
        mirror: "http://archive.ubuntu.com/ubuntu",
        suites: &[
            "xenial-updates",
            "bionic-updates",
            "focal-updates",
            "jammy-updates",
            "noble-updates",
        ],
        keyring: "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        keyring_package: Some(Pinned {
            path: "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
            sha256: "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8",
        }),
        naming: Naming::Ubuntu,
    },
];

/// Where a distribution keeps its packages.
pub(super) struct Archive {
    pub(super) name: &'static str,
    /// Environment variable that replaces the mirror.
    variable: &'static str,
    mirror: &'static str,
    suites: &'static [&'static str],
    /// The keys that sign its lists, where its own systems have them.
    keyring: &'static str,
    /// The package that has them, for other systems.
    keyring_package: Option<Pinned>,
    naming: Naming,
}

/// A file of an archive that is known by its checksum.
struct Pinned {
    path: &'static str,
    sha256: &'static str,
}

/// How a distribution names the packages of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// `linux-image-*-amd64`; from 7.x on image and modules come apart, and `linux-image-*` only depends on both.
    Debian,
    /// `linux-image-unsigned-*-generic`, or `linux-image-*-generic` where it is not signed, beside `linux-modules-*-generic`.
    Ubuntu,
}

impl Archive {
    /// apt with the lists of this archive as they are now.
    pub(super) fn open(&self) -> Result<Apt<'_>, String> {
        let root = cache().join("apt").join(self.name.to_lowercase());
        for directory in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(root.join(directory)).map_err(|error| error.to_string())?;
        }
        let apt = Apt::new(self, root);
        let keyring = apt.keyring()?;
        apt.write_sources(&keyring)
            .map_err(|error| error.to_string())?;
        apt.run("apt-get", &["update"], &apt.root)?;
        Ok(apt)
    }

    fn mirror(&self) -> String {
        std::env::var(self.variable).unwrap_or_else(|_| self.mirror.to_owned())
    }
}

/// apt with lists and sources of its own.
pub(super) struct Apt<'a> {
    archive: &'a Archive,
    root: PathBuf,
    options: Vec<String>,
}

impl<'a> Apt<'a> {
    fn new(archive: &'a Archive, root: PathBuf) -> Apt<'a> {
        let set = |name: &str, path: &str| format!("{name}={}", root.join(path).display());
        let options = vec![
            set("Dir::Etc::SourceList", "sources.list"),
            "Dir::Etc::SourceParts=/dev/null".into(),
            set("Dir::State::Lists", "lists"),
            set("Dir::Cache", "cache"),
            "APT::Architecture=amd64".into(),
            "Acquire::Languages=none".into(),
            // As root, apt would try to download as another user, who cannot write here.
            "APT::Sandbox::User=root".into(),
        ];
        Apt {
            archive,
            root,
            options,
        }
    }

    /// The keys of the archive: the system's, or those of a package of the archive whose checksum is known.
    fn keyring(&self) -> Result<PathBuf, String> {
        let of_system = PathBuf::from(self.archive.keyring);
        if of_system.is_file() {
            return Ok(of_system);
        }
        let Some(pinned) = &self.archive.keyring_package else {
            let package = of_system.file_stem().unwrap_or_default();
            return Err(format!(
                "no {}; install {}",
                of_system.display(),
                package.to_string_lossy()
            ));
        };
        let unpacked = self.root.join("keyring");
        let keyring = unpacked.join(self.archive.keyring.trim_start_matches('/'));
        if !keyring.is_file() {
            let from = format!("{}/{}", self.archive.mirror(), pinned.path);
            let package = self.root.join("keyring.deb");
            let (package, unpacked) = (package.to_string_lossy(), unpacked.to_string_lossy());
            let checksum = format!("SHA256:{}", pinned.sha256);
            let arguments = ["download-file", &from, &package, &checksum];
            self.run("/usr/lib/apt/apt-helper", &arguments, &self.root)?;
            self.run("dpkg", &["-x", &package, &unpacked], &self.root)?;
        }
        Ok(keyring)
    }

    fn write_sources(&self, keyring: &Path) -> io::Result<()> {
        let mut sources = fs::File::create(self.root.join("sources.list"))?;
        let (keyring, mirror) = (keyring.display(), self.archive.mirror());
        for suite in self.archive.suites {
            writeln!(
                sources,
                "deb [arch=amd64 signed-by={keyring}] {mirror} {suite} main"
            )?;
        }
        Ok(())
    }

    /// Runs apt-get, apt-cache, apt-helper or dpkg, and returns what the program printed, or why the program failed.
    pub(super) fn run(
        &self,
        program: &str,
        arguments: &[&str],
        directory: &Path,
    ) -> Result<String, String> {
        let mut command = Command::new(program);
        if program != "dpkg" {
            command.args(self.options.iter().flat_map(|option| ["-o", option]));
        }
        let output = command.args(arguments).current_dir(directory).output();
        let output = output.map_err(|error| format!("cannot start {program}: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said
                .lines()
                .filter(|line| line.starts_with("E:"))
                .collect::<Vec<_>>();
            return Err(format!(
                "{program} {}: {}",
                arguments.join(" "),
                said.join("; ")
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The packages that make up the newest kernel of a version.
    pub(super) fn packages(&self, version: &str) -> Result<Vec<String>, String> {
        let names = self.run("apt-cache", &["pkgnames", "linux-"], &self.root)?;
        let names: Vec<&str> = names.lines().collect();
        let naming = self.archive.naming;
        naming.choose(&names, version).ok_or_else(|| {
            let versions = naming.versions(&names);
            if versions.is_empty() {
                // apt-get takes lists that it cannot get for a warning.
                let (mirror, variable) = (self.archive.mirror(), self.archive.variable);
                return format!(
                    "{mirror} gave no list of kernels; {variable} names another mirror"
                );
            }
            format!("no such kernel, only {}", versions.join(", "))
        })
    }

    /// Downloads packages into a directory.
    pub(super) fn download(&self, names: &[String], to: &Path) -> Result<Vec<PathBuf>, String> {
        let mut arguments = vec!["download"];
        arguments.extend(names.iter().map(String::as_str));
        self.run("apt-get", &arguments, to)?;
        files_with(to, ".deb").map_err(|error| error.to_string())
    }
}

/// A release such as `5.4.0-216` in numbers.
fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The newest release of a version between a prefix and a suffix of the names of packages.
fn newest<'a>(names: &[&'a str], version: &str, (prefix, suffix): (&str, &str)) -> Option<&'a str> {
    let releases = names.iter().filter_map(|name| {
        let release = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let rest = release.strip_prefix(version)?;
        let exact = rest.is_empty() || rest.starts_with(['.', '-', '+']);
        (exact && !release.ends_with("-cloud") && !release.ends_with("-rt")).then_some(release)
    });
    releases.max_by_key(|release| numbers(release))
}

impl Naming {
    /// Chooses among the names of packages those that make up the newest kernel of a version.
    fn choose(self, names: &[&str], version: &str) -> Option<Vec<String>> {
        let there = |wanted: &[String]| -> Vec<String> {
            let there = wanted.iter().filter(|name| names.contains(&name.as_str()));
            there.cloned().collect()
        };
        match self {
            Naming::Debian => ["-cloud-amd64", "-amd64"].into_iter().find_map(|suffix| {
                if let Some(release) = newest(names, version, ("linux-binary-", suffix)) {
                    let parts = ["linux-binary-", "linux-modules-"];
                    return Some(there(
                        &parts.map(|prefix| format!("{prefix}{release}{suffix}")),
                    ));
                }
                let release = newest(names, version, ("linux-image-", suffix))?;
                Some(vec![format!("linux-image-{release}{suffix}")])
            }),
            Naming::Ubuntu => {
                let release = newest(names, version, ("linux-modules-", "-generic"))?;
                let of = |prefix: &str| format!("{prefix}-{release}-generic");
                let images = there(&[of("linux-image-unsigned"), of("linux-image")]);
                Some(vec![images.into_iter().next()?, of("linux-modules")])
            }
        }
    }

    /// The versions of all kernels among the names of packages, oldest first.
    fn versions(self, names: &[&str]) -> Vec<String> {
        let affixes = match self {
            Naming::Debian => ("linux-image-", "-amd64"),
            Naming::Ubuntu => ("linux-modules-", "-generic"),
        };
        let versions = names.iter().filter_map(|name| {
            let release = name.strip_prefix(affixes.0)?.strip_suffix(affixes.1)?;
            // Others have names before their numbers (`linux-modules-nvidia-*`).
            release.strip_prefix(|c: char| c.is_ascii_digit())?;
            match numbers(release).as_slice() {
                [major, minor, _, ..] => Some((*major, *minor)),
                _ => None,
            }
        });
        let versions: BTreeSet<(u64, u64)> = versions.collect();
        versions
            .iter()
            .map(|(major, minor)| format!("{major}.{minor}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_of_a_version_is_chosen() {
        let names = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-47-cloud-amd64",
            "linux-image-6.1.0-47-amd64",
            "linux-image-6.12.107+deb13-amd64",
            "linux-image-6.12.94+deb13-cloud-amd64",
            "linux-image-6.18.9+deb13-rt-amd64",
            "linux-image-6.18.9+deb13-amd64",
            "linux-image-7.2.9+deb13-cloud-amd64",
            "linux-binary-7.2.9+deb13-cloud-amd64",
            "linux-modules-7.2.9+deb13-cloud-amd64",
            "linux-image-cloud-amd64",
        ];
        let choose = |version: &str| {
            let chosen = Naming::Debian.choose(&names, version);
            chosen.unwrap_or_default().join(" ")
        };
        assert_eq!(choose("6.1"), "linux-image-6.1.0-47-cloud-amd64");
        assert_eq!(choose("6.12"), "linux-image-6.12.94+deb13-cloud-amd64");
        assert_eq!(choose("6.18"), "linux-image-6.18.9+deb13-amd64");
        assert_eq!(
            choose("7.2"),
            "linux-binary-7.2.9+deb13-cloud-amd64 linux-modules-7.2.9+deb13-cloud-amd64"
        );
        assert_eq!(choose("6.13"), "");
        assert_eq!(
            Naming::Debian.versions(&names),
            ["6.1", "6.12", "6.18", "7.2"]
        );
    }

    #[test]
    fn a_kernel_of_ubuntu_is_an_image_and_its_modules() {
        let names = [
            "linux-image-4.4.0-210-generic",
            "linux-image-unsigned-4.4.0-210-generic",
            "linux-image-unsigned-4.4.0-98-generic",
            "linux-modules-4.4.0-210-generic",
            "linux-modules-4.4.0-98-generic",
            "linux-modules-extra-4.4.0-210-generic",
            "linux-image-4.15.0-213-lowlatency",
            "linux-modules-4.15.0-213-lowlatency",
            "linux-image-5.3.0-76-generic",
            "linux-modules-5.3.0-76-generic",
            "linux-modules-5.0.0-65-generic",
            "linux-modules-nvidia-6.8.0-31-generic",
        ];
        let choose = |version: &str| {
            let chosen = Naming::Ubuntu.choose(&names, version);
            chosen.unwrap_or_default().join(" ")
        };
        assert_eq!(
            choose("4.4"),
            "linux-image-unsigned-4.4.0-210-generic linux-modules-4.4.0-210-generic"
        );
        assert_eq!(
            choose("5.3"),
            "linux-image-5.3.0-76-generic linux-modules-5.3.0-76-generic"
        );
        assert_eq!(choose("4.15"), "");
        assert_eq!(choose("5.0"), "", "modules without an image");
        assert_eq!(Naming::Ubuntu.versions(&names), ["4.4", "5.0", "5.3"]);
    }
}
