//! Where workloads come from: a path, or the files of `workloads/`, which are part of the program.

use lowmark_spec::{BuiltIn, Directory, Library, Source, is_path};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::io::{self, ErrorKind};
use std::path::Path;

macro_rules! workload_files {
    ($($name:literal),* $(,)?) => {
        /// The files of `workloads/` by name, sorted; a test keeps this list complete.
        const WORKLOADS: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/", $name, ".toml")),
        )),*];
    };
}

workload_files![
    "dd-kill",
    "dd-n",
    "dd-rsync",
    "fs-mark",
    "iozone",
    "kernbench",
    "mapped-file-stream",
    "mapped-file-write",
    "oltp",
    "postmark",
    "simoop",
    "stress-highalloc",
    "stutter",
    "stutterp",
    "swap-seq-rand",
    "swap-small",
    "thpscale",
    "thpscale-all",
    "usemem",
    "usemem-all",
];

/// Names of the built-in workloads, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

/// A built-in workload.
pub(crate) fn built_in(name: &str) -> Option<Source> {
    let (name, text) = WORKLOADS.iter().find(|(known, _)| *known == name)?;
    Some(Source {
        name: format!("workloads/{name}.toml"),
        text: (*text).to_owned(),
    })
}

/// A workload, and where the machines that it names are looked for.
pub(crate) struct Found {
    /// The text.
    pub(crate) source: Source,
    /// Machines for its `use`.
    pub(crate) machines: Box<dyn Library>,
}

/// Machines for `--machine`: a path to a .toml file, or a built-in one.
pub(crate) struct CommandLine;

impl Library for CommandLine {
    fn machine(&self, name: &str) -> Option<Source> {
        let here = Directory { path: "".into() };
        // A path is recognised by its end, so that no file here can take the place of a built-in name.
        if is_path(name) {
            here.machine(name)
        } else {
            BuiltIn.machine(name)
        }
    }

    fn machines(&self) -> Vec<String> {
        BuiltIn.machines()
    }

    fn unread(&self, path: &str) -> Option<io::Error> {
        Directory { path: "".into() }.unread(path)
    }
}

/// Refuses a name of nothing, such as that of a variable of a shell that was never set.
pub(crate) fn refuse_empty(name: &str) -> miette::Result<()> {
    match name {
        "" => Err(miette!(
            help =
                "give a name or a path; a shell makes an empty one of a variable that is not set",
            "expected a name, found an empty one"
        )),
        _ => Ok(()),
    }
}

/// The workload that was asked for: a file if there is one of this name, else a built-in one.
pub(crate) fn find(target: &str) -> miette::Result<Found> {
    refuse_empty(target)?;
    let path = Path::new(target);
    if let Some(source) = built_in(target).filter(|_| !path.is_file()) {
        return Ok(Found {
            source,
            machines: Box::new(BuiltIn),
        });
    }
    if path.is_dir() {
        return Err(miette!(
            help = "give the .toml file itself; to print recordings, use `lowmark compare`",
            "{target}: is a directory, expected a workload"
        ));
    }
    if path
        .symlink_metadata()
        .is_err_and(|e| e.kind() == ErrorKind::NotFound)
    {
        return Err(miette!(
            help = format!("built in are: {}", names().collect::<Vec<_>>().join(", ")),
            "{target}: no such file, and no built-in workload of this name"
        ));
    }
    Ok(Found {
        source: Source::read(path)
            .into_diagnostic()
            .wrap_err_with(|| format!("{target}: cannot read"))?,
        machines: Box::new(Directory {
            path: path.parent().unwrap_or(Path::new("")).to_owned(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let entries = std::fs::read_dir(directory).expect("the directory exists");
        let files = entries.map(|entry| entry.expect("readable").file_name());
        let files = files.map(|name| name.to_string_lossy().into_owned());
        let mut stems: Vec<String> = files
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        stems.sort();
        assert_eq!(stems, names().collect::<Vec<_>>());
    }
}
