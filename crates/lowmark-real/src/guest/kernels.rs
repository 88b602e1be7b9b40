//! Kernel images: any file, or a Debian kernel fetched into the cache.
//!
//! Fetching (no root needed, nothing on the machine changes):
//! 1. apt-get gets lists of packages of its own, in the cache, from sources of its own.
//! 2. The newest package of the version is chosen, the smaller "cloud" kernel where there is one.
//! 3. It is downloaded and unpacked beside the cache entry; the image, its configuration and the modules
//!    that guests need are kept as `kernels/VERSION/`.

use super::modules;
use super::{GuestError, cache};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that replaces the mirror.
const MIRROR_VARIABLE: &str = "LOWMARK_DEBIAN_MIRROR";
const MIRROR: &str = "http://deb.debian.org/debian";
/// Distributions, in which 5.10 is and kernels from 6.1 on are.
const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "trixie-backports"];
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelImage {
    /// The bzImage.
    pub path: PathBuf,
    /// `uname -r`, as its header has it.
    pub release: String,
    /// The kernel.org release that it was built from, such as `6.1.176`: Debian's 6.1 calls itself 6.1.0.
    pub upstream: String,
    /// Directory with its modules, if one was found.
    pub modules: Option<PathBuf>,
    /// Its configuration, if it was found.
    pub config: Option<PathBuf>,
}

/// Where fetched kernels are.
pub fn directory() -> PathBuf {
    cache().join("kernels")
}

/// Versions that have been fetched.
pub fn fetched() -> Vec<String> {
    let entries = fs::read_dir(directory()).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

impl KernelImage {
    /// A kernel by path or by a version that has been fetched, `6.18` or `v6.18`.
    ///
    /// # Errors
    ///
    /// [`GuestError::NoImage`] if there is none, [`GuestError::NotAKernel`] if the file is something else.
    pub fn find(name: &str) -> Result<KernelImage, GuestError> {
        let version = name.strip_prefix('v').unwrap_or(name);
        let cached = directory().join(version).join("vmlinuz");
        let is_version =
            version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains('/');
        if is_version && cached.is_file() {
            return KernelImage::open(&cached);
        }
        if is_version && !Path::new(name).exists() {
            return Err(GuestError::NoImage {
                path: cached,
                version: Some(version.to_owned()),
            });
        }
        KernelImage::open(Path::new(name))
    }

    /// The kernel in a file. Its modules are looked for beside it, and where they are installed.
    ///
    /// # Errors
    ///
    /// As for [`KernelImage::find`].
    pub fn open(path: &Path) -> Result<KernelImage, GuestError> {
        let mut head = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GuestError::NoImage {
                path: path.to_owned(),
                version: None,
            },
            _ => GuestError::io(path, error),
        })?;
        let not_a_kernel = |found: &str| GuestError::NotAKernel {
            path: path.to_owned(),
            found: found.to_owned(),
        };
        let banner = banner(&head).ok_or_else(|| {
            if super::elf::is_elf(&head) {
                not_a_kernel("an ELF file; take arch/x86/boot/bzImage, not vmlinux")
            } else {
                not_a_kernel("something else")
            }
        })?;
        let release = release(&banner);
        let parent = path.parent().unwrap_or(Path::new("."));
        let beside = [
            parent.join("modules"),
            parent.join("lib/modules").join(&release),
            parent.join("../lib/modules").join(&release),
            parent.join("../usr/lib/modules").join(&release),
            Path::new("/lib/modules").join(&release),
        ];
        let configs = [
            parent.join("config"),
            parent.join(format!("config-{release}")),
            parent.join("../../../.config"),
        ];
        Ok(KernelImage {
            path: path.to_owned(),
            modules: beside.into_iter().find(|directory| directory.is_dir()),
            config: configs.into_iter().find(|config| config.is_file()),
            upstream: upstream(&banner),
            release,
        })
    }

    /// The first two numbers of its kernel.org release; (0, 0) if it has none.
    pub(super) fn version(&self) -> (u32, u32) {
        let mut numbers = self.upstream.split('.').map(|number| number.parse());
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
            _ => (0, 0),
        }
    }

    /// The drivers that this kernel lacks, as far as its configuration says: neither built in nor there
    /// as a module.
    pub(super) fn missing_drivers(&self, modules: &modules::Index) -> Vec<&'static str> {
        let drivers = [
            ("CONFIG_VIRTIO_PCI", "virtio_pci"),
            ("CONFIG_VIRTIO_BLK", "virtio_blk"),
            ("CONFIG_VIRTIO_CONSOLE", "virtio_console"),
        ];
        let missing = drivers
            .into_iter()
            .filter(|(option, module)| self.has(option, module, modules) == Some(false));
        missing.map(|(_, module)| module).collect()
    }

    /// Whether this kernel has an option, built in or as a module that is there; none if its configuration is not there to tell.
    pub(super) fn has(&self, option: &str, module: &str, modules: &modules::Index) -> Option<bool> {
        if modules.contains_key(module) {
            return Some(true);
        }
        let config = fs::read_to_string(self.config.as_ref()?).ok()?;
        Some(config.lines().any(|line| line == format!("{option}=y")))
    }

    /// Whether it has all that guests may need of Debian's kernels.
    fn is_complete(&self) -> bool {
        let index = self.modules.as_deref().map(modules::index);
        let index = index.and_then(Result::ok).unwrap_or_default();
        self.has("CONFIG_XFS_FS", modules::XFS, &index) != Some(false)
    }
}

/// `uname -r` in a banner.
fn release(banner: &str) -> String {
    let first = banner.split_whitespace().next();
    first.unwrap_or_default().to_owned()
}

/// The kernel.org release in a banner: that of Debian's package (`Debian 6.1.176-1`), else the numbers of `uname -r`.
fn upstream(banner: &str) -> String {
    let mut words = banner
        .split_whitespace()
        .skip_while(|&word| word != "Debian");
    let packaged = words.nth(1);
    let named = packaged.or_else(|| banner.split_whitespace().next());
    let named = named.unwrap_or_default();
    let end = named.find(|c: char| !c.is_ascii_digit() && c != '.');
    named[..end.unwrap_or(named.len())].to_owned()
}

/// The banner in the header of a bzImage (Documentation/arch/x86/boot.rst): `uname -r`, and how it was built.
fn banner(head: &[u8]) -> Option<String> {
    if head.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = usize::from(u16::from_le_bytes(head.get(0x20e..0x210)?.try_into().ok()?)) + 0x200;
    let text = head.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(text);
    text.split_whitespace().next()?;
    Some(text.into_owned())
}

/// Fetches Debian's kernel of a version (`6.18`, or `6.18.15`) into the cache. One that is there already is kept, unless it
/// lacks a module that guests may need and another can be had.
///
/// # Errors
///
/// [`GuestError::Fetch`] says which step failed and what the program said.
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

/// Fetches Debian's kernel of a version into the cache, in place of one that may be there.
fn download(version: &str) -> Result<KernelImage, GuestError> {
    let failed = |problem: String| GuestError::Fetch {
        version: version.to_owned(),
        problem,
    };
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    if version.is_empty() || !version.chars().all(plain) {
        return Err(failed("expected a version such as 6.18".into()));
    }
    let target = directory().join(version);
    if !Path::new(KEYRING).is_file() {
        return Err(failed(format!(
            "no {KEYRING}; install debian-archive-keyring"
        )));
    }
    let io_failed = |error: io::Error| failed(error.to_string());
    fs::create_dir_all(directory()).map_err(io_failed)?;
    let apt = Apt::new().map_err(io_failed)?;
    apt.run("apt-get", &["update"], &apt.root).map_err(failed)?;
    let packages = apt.packages(version).map_err(failed)?;
    let work = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(directory())
        .map_err(io_failed)?;
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    apt.run(
        "apt-get",
        &[&["download"], names.as_slice()].concat(),
        work.path(),
    )
    .map_err(failed)?;
    let unpacked = work.path().join("unpacked");
    for package in files_with(work.path(), ".deb").map_err(io_failed)? {
        let package = package.to_string_lossy().into_owned();
        let root = unpacked.to_string_lossy().into_owned();
        apt.run("dpkg", &["-x", &package, &root], work.path())
            .map_err(failed)?;
    }
    keep(&unpacked, &target, work.path()).map_err(io_failed)?;
    KernelImage::open(&target.join("vmlinuz"))
}

/// Moves what guests need out of an unpacked package.
fn keep(unpacked: &Path, target: &Path, work: &Path) -> io::Result<()> {
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

fn files_with(directory: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect())
}

/// apt with lists and sources of its own.
struct Apt {
    root: PathBuf,
    options: Vec<String>,
}

impl Apt {
    fn new() -> io::Result<Apt> {
        let root = cache().join("apt");
        for directory in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(root.join(directory))?;
        }
        let mirror = std::env::var(MIRROR_VARIABLE).unwrap_or_else(|_| MIRROR.to_owned());
        let mut sources = fs::File::create(root.join("sources.list"))?;
        for suite in SUITES {
            writeln!(
                sources,
                "deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main"
            )?;
        }
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
        Ok(Apt { root, options })
    }

    /// Runs apt-get, apt-cache or dpkg; what it printed, or what went wrong.
    fn run(&self, program: &str, arguments: &[&str], directory: &Path) -> Result<String, String> {
        let mut command = Command::new(program);
        if program.starts_with("apt") {
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
    fn packages(&self, version: &str) -> Result<Vec<String>, String> {
        let names = self.run("apt-cache", &["pkgnames", "linux-"], &self.root)?;
        let names: Vec<&str> = names.lines().collect();
        choose(&names, version).ok_or_else(|| {
            format!(
                "no such kernel in {}; other images can be given by path",
                SUITES.join(", ")
            )
        })
    }
}

/// Chooses among the names of packages. From 7.x on, image and modules come apart, and `linux-image-*` only
/// depends on both.
fn choose(names: &[&str], version: &str) -> Option<Vec<String>> {
    let newest = |prefix: &str, suffix: &str| {
        let releases = names.iter().filter_map(|name| {
            let release = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            let rest = release.strip_prefix(version)?;
            let exact = rest.is_empty() || rest.starts_with(['.', '-', '+']);
            (exact && !release.ends_with("-cloud") && !release.ends_with("-rt")).then_some(release)
        });
        let numbers = |release: &&str| -> Vec<u64> {
            let parts = release.split(|c: char| !c.is_ascii_digit());
            parts.filter_map(|part| part.parse().ok()).collect()
        };
        releases.max_by_key(numbers)
    };
    ["-cloud-amd64", "-amd64"].into_iter().find_map(|suffix| {
        if let Some(release) = newest("linux-binary-", suffix) {
            let parts = ["linux-binary-", "linux-modules-"];
            let parts = parts.map(|prefix| format!("{prefix}{release}{suffix}"));
            return Some(
                parts
                    .into_iter()
                    .filter(|part| names.contains(&part.as_str()))
                    .collect(),
            );
        }
        let release = newest("linux-image-", suffix)?;
        Some(vec![format!("linux-image-{release}{suffix}")])
    })
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
        ];
        let choose = |version: &str| choose(&names, version).unwrap_or_default().join(" ");
        assert_eq!(choose("6.1"), "linux-image-6.1.0-47-cloud-amd64");
        assert_eq!(choose("6.12"), "linux-image-6.12.94+deb13-cloud-amd64");
        assert_eq!(choose("6.18"), "linux-image-6.18.9+deb13-amd64");
        assert_eq!(
            choose("7.2"),
            "linux-binary-7.2.9+deb13-cloud-amd64 linux-modules-7.2.9+deb13-cloud-amd64"
        );
        assert_eq!(choose("6.13"), "");
    }

    #[test]
    fn the_header_names_the_release() {
        let mut head = vec![0; 0x400];
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        head[0x300..0x310].copy_from_slice(b"6.18.15-x (a@b)\0");
        assert_eq!(
            banner(&head).map(|it| release(&it)).as_deref(),
            Some("6.18.15-x")
        );
        head.truncate(0x210);
        assert_eq!(banner(&head), None);
        assert_eq!(banner(b"MZ"), None);
    }

    #[test]
    fn the_banner_names_the_upstream_release() {
        for (banner, expected) in [
            (
                "6.1.0-50-cloud-amd64 (a@b) #1 SMP Debian 6.1.176-1 (2026-07-02)",
                "6.1.176",
            ),
            (
                "6.12.117+deb13-cloud-amd64 (a@b) #1 SMP Debian 6.12.117-1 (2026)",
                "6.12.117",
            ),
            ("6.18.15-x (a@b)", "6.18.15"),
            ("6.18.0 (a@b) #1 SMP", "6.18.0"),
        ] {
            assert_eq!(upstream(banner), expected);
        }
    }
}
