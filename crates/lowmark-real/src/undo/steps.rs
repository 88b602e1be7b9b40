//! The changes that lowmark makes to the system that it is on, by what undoes each.

use super::changes::Changes;
use crate::tracefs::Tracefs;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the names of what lowmark makes in the system begin; a process number follows.
pub(crate) const OWN: &str = "lowmark-";

/// Finds tracefs, when an instance of it is to be removed.
pub type Instances<'a> = &'a dyn Fn() -> io::Result<Tracefs>;

/// What undoes a change. What was not changed yet, or is undone already, is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// The trace instance of the process is removed: its name follows from the process.
    Instance,
    /// Tasks in a memory cgroup, and in those inside it, are killed.
    Tasks {
        /// Directory of the cgroup.
        group: PathBuf,
    },
    /// A swap area is switched off.
    Swap {
        /// Its file.
        file: PathBuf,
    },
    /// A directory is removed with everything in it.
    Directory {
        /// Which.
        path: PathBuf,
    },
    /// A memory cgroup is removed with those inside it.
    Cgroup {
        /// Its directory.
        path: PathBuf,
    },
    /// A setting gets the value that it had.
    Setting {
        /// Its file.
        file: PathBuf,
        /// The value.
        value: String,
    },
}

impl Undo {
    /// Whether the change outlives the system that it was made in: what is on a disk does.
    pub(super) fn outlives_boot(&self) -> bool {
        matches!(self, Undo::Directory { .. })
    }

    /// Undoes it; a sentence if there was anything to undo.
    ///
    /// # Errors
    ///
    /// What could not be undone, and why, as a sentence.
    pub(super) fn carry_out(
        &self,
        instance: &str,
        changes: &mut dyn Changes,
        instances: Instances<'_>,
    ) -> Result<Option<String>, String> {
        let failed = |what: String| move |error: io::Error| format!("{what}: {error}");
        match self {
            Undo::Instance => {
                let tracefs = instances().map_err(failed("tracefs".to_owned()))?;
                there(changes.remove_instance(&tracefs.instance(instance)))
                    .map_err(failed(format!(
                        "cannot remove the trace instance {instance}"
                    )))
                    .map(|done| done.then(|| format!("the trace instance {instance} was removed")))
            }
            Undo::Tasks { group } if is_own(group) => there(changes.kill_tasks(group))
                .map_err(failed(format!(
                    "cannot kill the tasks in the cgroup {}",
                    group.display()
                )))
                // That they are gone shows by the cgroup, which goes next.
                .map(|_| None),
            Undo::Swap { file } if file.parent().is_some_and(is_own) => {
                let done = there(changes.swap_off(file))
                    .map_err(failed(format!("cannot switch swap off {}", file.display())))?;
                Ok(done.then(|| format!("swap on {} was switched off", file.display())))
            }
            Undo::Directory { path } if is_own(path) => {
                let done = there(changes.remove_directory(path))
                    .map_err(failed(format!("cannot remove {}", path.display())))?;
                Ok(done.then(|| format!("{} was removed", path.display())))
            }
            Undo::Cgroup { path } if is_own(path) => {
                let done = there(changes.remove_group(path)).map_err(failed(format!(
                    "cannot remove the cgroup {}",
                    path.display()
                )))?;
                Ok(done.then(|| format!("the cgroup {} was removed", path.display())))
            }
            Undo::Setting { file, value } => {
                let now = read_setting(file)
                    .map_err(failed(format!("cannot read {}", file.display())))?;
                if now == *value {
                    return Ok(None);
                }
                changes.set(file, value).map_err(failed(format!(
                    "cannot write {value} to {}",
                    file.display()
                )))?;
                Ok(Some(format!(
                    "{} has the value {value} again",
                    file.display()
                )))
            }
            Undo::Tasks { group: path }
            | Undo::Swap { file: path }
            | Undo::Directory { path }
            | Undo::Cgroup { path } => Err(format!(
                "{} is left alone: lowmark makes nothing whose name does not begin with {OWN}",
                path.display()
            )),
        }
    }
}

/// Whether there was anything to undo.
fn there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether lowmark may have made something, by its name.
fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(OWN))
}

/// The value of a setting: of several words, the one in brackets.
pub(crate) fn read_setting(file: &Path) -> io::Result<String> {
    let text = fs::read_to_string(file)?;
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    Ok(chosen.map_or(text.trim(), |(word, _)| word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::Real;

    #[test]
    fn settings_with_several_words_have_the_one_in_brackets() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("enabled");
        for (text, value) in [
            ("always [madvise] never\n", "madvise"),
            ("60\n", "60"),
            ("0x0007\n", "0x0007"),
        ] {
            fs::write(&file, text).expect("written");
            assert_eq!(read_setting(&file).expect("read"), value);
        }
    }

    #[test]
    fn nothing_is_removed_that_lowmark_did_not_make() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("somebody-elses");
        fs::create_dir(&path).expect("made");
        let none = || Err(io::Error::other("no tracefs"));
        for undo in [
            Undo::Directory { path: path.clone() },
            Undo::Cgroup { path: path.clone() },
            Undo::Tasks {
                group: path.clone(),
            },
            Undo::Swap {
                file: path.join("swap"),
            },
        ] {
            let refused = undo.carry_out("lowmark-1", &mut Real, &none);
            assert!(refused.is_err_and(|why| why.contains("left alone")));
        }
        assert!(path.is_dir());
    }
}
