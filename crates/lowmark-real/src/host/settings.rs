//! Settings of the whole system: which a workload wants otherwise, and how they get their values back.

use crate::protocol::Setting;
use crate::runner::procfs::setting_path;
use crate::undo::{Undo, read_setting};
use std::io;
use std::path::{Path, PathBuf};

/// Settings of which one that is written makes the other 0, which cannot be written.
const PAIRS: [(&str, &str); 2] = [
    ("dirty_bytes", "dirty_ratio"),
    ("dirty_background_bytes", "dirty_background_ratio"),
];

/// A setting that has another value than the workload wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) name: String,
    /// Its file.
    pub(super) file: PathBuf,
    /// The value that it has.
    pub(super) from: String,
    /// The value that it is to have.
    pub(super) to: String,
    /// What gives it its value back.
    pub(super) undo: Undo,
}

/// What has to be changed so that settings have these values; what this kernel does not have, as sentences.
pub(super) fn changes(wanted: &[Setting]) -> (Vec<Change>, Vec<String>) {
    let (mut changes, mut lacking) = (Vec::new(), Vec::new());
    for setting in wanted {
        let file = PathBuf::from(setting_path(&setting.name));
        match change(setting, file) {
            Ok(change) => changes.extend(change),
            Err(error) => lacking.push(format!("the setting {}: {error}", setting.name)),
        }
    }
    (changes, lacking)
}

fn change(setting: &Setting, file: PathBuf) -> io::Result<Option<Change>> {
    let from = read_setting(&file)?;
    if in_words(&from) == in_words(&setting.value) {
        return Ok(None);
    }
    Ok(Some(Change {
        name: setting.name.clone(),
        from,
        to: setting.value.clone(),
        undo: undo(&setting.name, &file)?,
        file,
    }))
}

/// What gives a setting the value back that it has now.
pub(super) fn undo(name: &str, file: &Path) -> io::Result<Undo> {
    let pair = PAIRS
        .into_iter()
        .find(|(bytes, ratio)| [*bytes, *ratio].contains(&name));
    let mut files = vec![file.to_owned()];
    if let Some((bytes, ratio)) = pair {
        files = [bytes, ratio]
            .map(|name| file.with_file_name(name))
            .to_vec();
    }
    for file in &files {
        let value = read_setting(file)?;
        // Of a pair the one that counts is not 0.
        if files.len() == 1 || value != "0" {
            return Ok(Undo::Setting {
                file: file.clone(),
                value,
            });
        }
    }
    Err(io::Error::other(
        "neither it nor its counterpart has a value",
    ))
}

/// Values that are several numbers are told with tabs and written with spaces.
fn in_words(value: &str) -> Vec<&str> {
    value.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn of_a_pair_the_one_that_counts_is_written_back() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |name: &str, value: &str| {
            fs::write(place.path().join(name), value).expect("written");
        };
        write("dirty_bytes", "0\n");
        write("dirty_ratio", "20\n");
        write("swappiness", "60\n");
        let undo = |name: &str| undo(name, &place.path().join(name)).expect("an undo");
        let expected = |name: &str, value: &str| Undo::Setting {
            file: place.path().join(name),
            value: value.to_owned(),
        };
        assert_eq!(undo("dirty_bytes"), expected("dirty_ratio", "20"));
        assert_eq!(undo("dirty_ratio"), expected("dirty_ratio", "20"));
        assert_eq!(undo("swappiness"), expected("swappiness", "60"));
        write("dirty_bytes", "4096\n");
        write("dirty_ratio", "0\n");
        assert_eq!(undo("dirty_ratio"), expected("dirty_bytes", "4096"));
    }

    #[test]
    fn settings_that_have_their_value_are_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("lowmem_reserve_ratio");
        fs::write(&file, "256\t256\t32\n").expect("written");
        let wanted = |value: &str| Setting {
            name: "lowmem_reserve_ratio".into(),
            value: value.into(),
            optional: false,
        };
        let changed = |value: &str| change(&wanted(value), file.clone()).expect("read");
        assert_eq!(changed("256 256 32"), None);
        assert_eq!(
            changed("256 256 0").map(|change| change.to).as_deref(),
            Some("256 256 0")
        );
        assert!(change(&wanted("1"), place.path().join("none")).is_err());
    }
}
