//! Kernel images: any file, or a distribution's kernel fetched into the cache ([`fetch`](mod@fetch)).
//!
//! The cache has one directory for each version, `kernels/VERSION/`: the image as `vmlinuz`, its configuration as `config`, the modules
//! that guests need in `modules/`, and, where the image does not say it, the kernel.org release in `upstream`.

mod archive;
mod fetch;

pub use fetch::fetch;

use super::modules;
use super::{GuestError, cache};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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

/// Versions that have been fetched, oldest first.
pub fn fetched() -> Vec<String> {
    let entries = fs::read_dir(directory()).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort_by_cached_key(|name| {
        let parts = name.split('.').map(|part| part.parse::<u32>().ok());
        (parts.collect::<Vec<_>>(), name.clone())
    });
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
            upstream: fs::read_to_string(parent.join("upstream"))
                .map_or_else(|_| upstream(&banner), |named| named.trim().to_owned()),
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

    /// Whether it has all that guests may need of a distribution's kernel.
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

#[cfg(test)]
mod tests {
    use super::*;

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
