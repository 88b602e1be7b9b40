//! Kernel modules: which a guest needs, in which order, and their plain bytes.
//!
//! What each module needs stands in the module itself (`depends=` in `.modinfo`), from which depmod makes
//! `modules.dep` only when a package is installed. A module that is not there is taken to be built in: if
//! it is neither, the guest says that a device did not appear.

use super::elf;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a guest cannot be without, as modules or built in.
const NEEDED: [&str; 4] = ["virtio_pci", "virtio_blk", "virtio_console", "ext4"];

/// The module of a file system that guests have only if their machine does.
pub(super) const XFS: &str = "xfs";

/// The modules of a kernel by name, with hyphens as underscores.
pub(super) type Index = BTreeMap<String, PathBuf>;

/// A module ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) image: Vec<u8>,
}

/// Name of a module by its file.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (name, rest) = file.split_once(".ko")?;
    matches!(rest, "" | ".gz" | ".xz" | ".zst").then(|| name.replace('-', "_"))
}

/// All modules below a directory.
pub(super) fn index(directory: &Path) -> io::Result<Index> {
    let mut found = Index::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            // Symbolic links (`build`, `source`) lead elsewhere.
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if let Some(name) = module_name(&path) {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

/// The plain bytes of a module.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    let mut plain = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => {
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
        }
        Some("xz") => {
            liblzma::read::XzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
        }
        Some("zst") => {
            zstd::stream::copy_decode(bytes.as_slice(), &mut plain)?;
        }
        _ => return Ok(bytes),
    }
    Ok(plain)
}

/// The modules that a guest needs, and `more` of those that it may have, each after those that it needs itself.
pub(super) fn needed(index: &Index, more: &[&str]) -> io::Result<Vec<Module>> {
    let load = |name: &str| {
        let Some(path) = index.get(name) else {
            return Ok(None);
        };
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let image = read(path).map_err(named)?;
        let depends = elf::depends(&image).unwrap_or_default();
        Ok(Some((image, depends)))
    };
    in_order(&[&NEEDED, more].concat(), load)
}

/// Depth first; a circle, which modpost does not allow, is cut.
fn in_order(
    wanted: &[&str],
    mut load: impl FnMut(&str) -> io::Result<Option<(Vec<u8>, Vec<String>)>>,
) -> io::Result<Vec<Module>> {
    enum Step {
        Enter(String),
        Leave(Module),
    }
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    let mut steps: Vec<Step> = wanted
        .iter()
        .rev()
        .map(|name| Step::Enter((*name).into()))
        .collect();
    while let Some(step) = steps.pop() {
        let name = match step {
            Step::Leave(module) => {
                order.push(module);
                continue;
            }
            Step::Enter(name) => name.replace('-', "_"),
        };
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some((image, depends)) = load(&name)? {
            steps.push(Step::Leave(Module { name, image }));
            steps.extend(depends.into_iter().rev().map(Step::Enter));
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs() {
        let depends = |name: &str| match name {
            "virtio_pci" => Some(vec!["virtio_pci_legacy-dev", "virtio", "virtio_ring"]),
            "virtio_blk" | "virtio_pci_legacy_dev" => Some(vec!["virtio", "virtio_ring"]),
            "virtio_ring" => Some(vec!["virtio"]),
            "virtio" => Some(vec!["virtio_ring"]),
            _ => None,
        };
        let load = |name: &str| {
            let depends = depends(name).map(|names| names.into_iter().map(str::to_owned).collect());
            Ok(depends.map(|depends| (Vec::new(), depends)))
        };
        let order = in_order(&["virtio_pci", "virtio_blk", "ext4"], load).expect("no I/O");
        let names: Vec<String> = order.into_iter().map(|module| module.name).collect();
        assert_eq!(
            names,
            [
                "virtio_ring",
                "virtio",
                "virtio_pci_legacy_dev",
                "virtio_pci",
                "virtio_blk"
            ]
        );
    }

    #[test]
    fn modules_are_known_by_their_files() {
        let name = |file: &str| module_name(Path::new(file));
        assert_eq!(name("a/virtio-rng.ko.xz").as_deref(), Some("virtio_rng"));
        assert_eq!(name("a/ext4.ko").as_deref(), Some("ext4"));
        assert_eq!(name("a/ext4.ko.sig"), None);
        assert_eq!(name("a/modules.dep"), None);
    }
}
