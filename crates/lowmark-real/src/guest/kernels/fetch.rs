//! A distribution's kernel, fetched into the cache (no root needed, nothing on the machine changes):
//!
//! 1. The distributions are asked one after the other: apt-get gets lists of packages of its own, in the cache, from sources of its own.
//! 2. The newest package of the version is chosen.
//! 3. It is downloaded and unpacked beside the cache entry; the image, its configuration and the modules that guests need are kept
//!    as `kernels/VERSION/`.

use super::archive::{ARCHIVES, Archive};
use super::{KernelImage, directory};
use crate::guest::{GuestError, modules};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Fetches a distribution's kernel of a version (`6.18`, or `6.18.15`) into the cache. One that is there already is kept, unless it
/// lacks a module that guests may need and another can be had.
///
/// # Errors
///
/// [`GuestError::Fetch`] says which step failed and what the program said; where no distribution has the version, it lists the versions
/// that each distribution has.
pub fn fetch(version: &str) -> Result<KernelImage, GuestError> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let cached = directory().join(version).join("vmlinuz");
    if !cached.is_file() {
        return download(version);
    }
    let image = KernelImage::open(&cached)?;
    if image.is_complete() {
        return Ok(image);
    }
    download(version).or(Ok(image))
}

/// Fetches the kernel of a version from the first distribution that has it into the cache, in place of one that may be there.
fn download(version: &str) -> Result<KernelImage, GuestError> {
    let failed = |problem: String| GuestError::Fetch {
        version: version.to_owned(),
        problem,
    };
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    if version.is_empty() || !version.chars().all(plain) {
        return Err(failed("expected a version such as 6.18".into()));
    }
    let io_failed = |error: io::Error| failed(error.to_string());
    fs::create_dir_all(directory()).map_err(io_failed)?;
    let work = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(directory())
        .map_err(io_failed)?;
    let mut problems = Vec::new();
    for archive in &ARCHIVES {
        // Files of a fetch that failed stay out of the way of the next archive's.
        let work = work.path().join(archive.name);
        let unpacked = fs::create_dir(&work)
            .map_err(|error| error.to_string())
            .and_then(|()| unpack(archive, version, &work));
        match unpacked {
            Ok(unpacked) => {
                let target = directory().join(version);
                keep(&unpacked, version, &target, &work).map_err(io_failed)?;
                return KernelImage::open(&target.join("vmlinuz"));
            }
            Err(problem) => problems.push(format!("{}: {problem}", archive.name)),
        }
    }
    problems.push("other images can be given by path".into());
    Err(failed(problems.join("; ")))
}

/// Downloads the packages of a version from an archive and unpacks them in a directory of `work`.
fn unpack(archive: &Archive, version: &str, work: &Path) -> Result<PathBuf, String> {
    let apt = archive.open()?;
    let packages = apt.packages(version)?;
    let unpacked = work.join("unpacked");
    for package in apt.download(&packages, work)? {
        let (package, root) = (package.to_string_lossy(), unpacked.to_string_lossy());
        apt.run("dpkg", &["-x", &package, &root], work)?;
    }
    if unpacked.is_dir() {
        Ok(unpacked)
    } else {
        Err(format!(
            "apt-get downloaded none of {}",
            packages.join(", ")
        ))
    }
}

/// Moves what guests need out of unpacked packages.
fn keep(unpacked: &Path, version: &str, target: &Path, work: &Path) -> io::Result<()> {
    let boot = unpacked.join("boot");
    let one = |prefix: &str| {
        let found = files_with(&boot, "")?.into_iter().find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        });
        found.ok_or_else(|| io::Error::other(format!("the package has no {prefix}*")))
    };
    let entry = work.join("entry");
    fs::create_dir_all(entry.join("modules"))?;
    fs::rename(one("vmlinuz-")?, entry.join("vmlinuz"))?;
    if let Ok(config) = one("config-") {
        fs::rename(config, entry.join("config"))?;
    }
    if let Some(release) = release_by_changelog(unpacked, version)? {
        fs::write(entry.join("upstream"), release)?;
    }
    let lib = [
        unpacked.join("lib/modules"),
        unpacked.join("usr/lib/modules"),
    ];
    if let Some(lib) = lib.into_iter().find(|lib| lib.is_dir()) {
        for module in modules::needed(&modules::index(&lib)?, &[modules::XFS])? {
            fs::write(
                entry.join("modules").join(format!("{}.ko", module.name)),
                module.image,
            )?;
        }
    }
    if target.is_dir() {
        fs::remove_dir_all(target)?;
    }
    fs::rename(entry, target)
}

/// The kernel.org release whose changes unpacked packages have, by their changelogs; none where they do not say.
fn release_by_changelog(unpacked: &Path, version: &str) -> io::Result<Option<String>> {
    let documents = unpacked.join("usr/share/doc");
    if !documents.is_dir() {
        return Ok(None);
    }
    for package in files_with(&documents, "")? {
        let Ok(packed) = fs::read(package.join("changelog.Debian.gz")) else {
            continue;
        };
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text)?;
        if let Some(release) = last_merged(&String::from_utf8_lossy(&text), version) {
            return Ok(Some(release));
        }
    }
    Ok(None)
}

/// The last stable release of a version that a changelog of Ubuntu says has been merged.
fn last_merged(changelog: &str, version: &str) -> Option<String> {
    let lines = changelog
        .lines()
        .filter(|line| line.contains("upstream stable release"));
    let releases = lines.filter_map(|line| {
        let words = line.split(|c: char| c.is_whitespace() || c == ',');
        let mut named = words.filter_map(|word| word.strip_prefix('v'));
        let release = named.find(|word| {
            let rest = word.strip_prefix(version);
            rest.and_then(|rest| rest.strip_prefix('.')).is_some()
        })?;
        let last = release.rsplit('.').next()?;
        Some((last.parse::<u32>().ok()?, release.to_owned()))
    });
    releases.max().map(|(_, release)| release)
}

/// Paths in a directory whose names end so.
pub(super) fn files_with(directory: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::last_merged;

    #[test]
    fn a_changelog_says_which_stable_release_was_merged_last() {
        let changelog = "linux (5.4.0-216.236) focal; urgency=medium\n\n  \
            * Focal update: v5.4.291 upstream stable release (LP: #2106002)\n\n  \
            * Focal update: v5.4.290 upstream stable release (LP: #2101915)\n  \
            * Focal update: v5.10.1 upstream stable release\n";
        assert_eq!(last_merged(changelog, "5.4").as_deref(), Some("5.4.291"));
        assert_eq!(last_merged(changelog, "5.1"), None);
        let patchset = "  * Groovy update: upstream stable patchset 2021-06-10 (LP: #1931637)\n";
        assert_eq!(last_merged(patchset, "5.8"), None);
    }
}
