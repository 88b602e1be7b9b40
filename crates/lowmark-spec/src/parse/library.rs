//! Where machines named in a specification come from.

use std::io;
use std::path::PathBuf;

use super::source::Source;

/// Machines by name.
pub trait Library {
    /// The machine file of this name.
    fn machine(&self, name: &str) -> Option<Source>;
    /// All names, sorted.
    fn machines(&self) -> Vec<String>;
    /// Why there is no machine of a name that is a path, as [`is_path`] has it: what reading it said.
    fn unread(&self, _path: &str) -> Option<io::Error> {
        None
    }
}

/// Whether the name of a machine is a path: with a slash in it, or `.toml` at its end.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

macro_rules! machine_files {
    ($($name:literal),* $(,)?) => {
        [$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/", $name, ".toml")),
        )),*]
    };
}

/// The files of `machines/`; a test keeps this list complete.
const MACHINES: [(&str, &str); 17] = machine_files![
    "desktop-2g-usb",
    "desktop-3g-hdd",
    "desktop-7g-hdd",
    "desktop-8g-hdd",
    "desktop-900m-hdd",
    "desktop-900m-ssd",
    "guest-256m",
    "guest-512m",
    "phenom-3g-hdd",
    "ppc970-3g-hdd",
    "raid0-12",
    "server-16g-nvme",
    "server-32g-nfs",
    "server-4g-2node",
    "server-64g-2node",
    "server-64g-hdd",
    "small-512m-ssd",
];

/// The machines that come with lowmark.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Library for BuiltIn {
    fn machine(&self, name: &str) -> Option<Source> {
        let found = MACHINES.iter().find(|(known, _)| *known == name);
        found.map(|(name, text)| Source {
            name: format!("machines/{name}.toml"),
            text: (*text).to_owned(),
        })
    }

    fn machines(&self) -> Vec<String> {
        MACHINES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }
}

/// `NAME.toml` of a directory, then a path to a machine file, then the built-in machines.
#[derive(Debug, Clone)]
pub struct Directory {
    /// Where `NAME.toml` is looked for, and where relative paths start.
    pub path: PathBuf,
}

impl Library for Directory {
    fn machine(&self, name: &str) -> Option<Source> {
        let read = |file: &str| Source::read(&self.path.join(file)).ok();
        let path = || is_path(name).then(|| read(name)).flatten();
        read(&format!("{name}.toml"))
            .or_else(path)
            .or_else(|| BuiltIn.machine(name))
    }

    fn machines(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten();
        let names = files.filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".toml")?
                    .to_owned(),
            )
        });
        let mut names: Vec<String> = names.chain(BuiltIn.machines()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn unread(&self, path: &str) -> Option<io::Error> {
        Source::read(&self.path.join(path)).err()
    }
}
