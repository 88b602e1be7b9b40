//! The journal of a run: what is undone, in which order, and what stays when it cannot be.

use super::super::steps::OWN;
use super::*;

/// Writes down what it is asked to do, and fails at what it is told to.
#[derive(Debug, Default)]
struct Scribe {
    done: Vec<String>,
    fails_at: Option<&'static str>,
}

impl Scribe {
    fn note(&mut self, what: &str, path: &Path) -> io::Result<()> {
        if self.fails_at == Some(what) {
            return Err(io::Error::other("it does not"));
        }
        let name = path.file_name().expect("a name").to_string_lossy();
        self.done.push(format!("{what} {name}"));
        Ok(())
    }
}

impl Changes for Scribe {
    fn create(&mut self, path: &Path, _content: &[u8]) -> io::Result<()> {
        self.note("create", path)
    }

    fn rename(&mut self, from: &Path, _to: &Path) -> io::Result<()> {
        self.note("rename", from)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        self.note("remove", path)
    }

    fn make_instance(&mut self, path: &Path) -> io::Result<()> {
        self.note("make instance", path)
    }

    fn remove_instance(&mut self, path: &Path) -> io::Result<()> {
        self.note("remove instance", path)
    }

    fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        fs::write(path, value)?;
        self.note("set", path)
    }

    fn make_group(&mut self, path: &Path) -> io::Result<()> {
        self.note("make group", path)
    }

    fn kill_tasks(&mut self, group: &Path) -> io::Result<()> {
        self.note("kill tasks", group)
    }

    fn remove_group(&mut self, path: &Path) -> io::Result<()> {
        self.note("remove group", path)
    }

    fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        self.note("make directory", path)
    }

    fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        self.note("remove directory", path)
    }

    fn swap_on(&mut self, file: &Path) -> io::Result<()> {
        self.note("swap on", file)
    }

    fn swap_off(&mut self, file: &Path) -> io::Result<()> {
        self.note("swap off", file)
    }
}

/// A process that is no more.
fn dead() -> Process {
    Process {
        pid: 4_100_007,
        ..Process::own().expect("a process")
    }
}

/// Everything that a run changes, below a directory, with a setting that has another value now.
fn all(place: &Path) -> Vec<Undo> {
    let own = format!("{OWN}{}", dead().pid);
    let knob = place.join("knob");
    fs::write(&knob, "1\n").expect("written");
    vec![
        Undo::Setting {
            file: knob,
            value: "60".into(),
        },
        Undo::Cgroup {
            path: place.join("groups").join(&own),
        },
        Undo::Directory {
            path: place.join("files").join(&own),
        },
        Undo::Swap {
            file: place.join("files").join(&own).join("swap"),
        },
        Undo::Tasks {
            group: place.join("groups").join(&own),
        },
        Undo::Instance,
    ]
}

fn tracefs() -> io::Result<crate::tracefs::Tracefs> {
    Ok(crate::tracefs::Tracefs::at(Path::new("/nowhere")))
}

fn written(place: &Path, process: &Process) -> (Places, PathBuf) {
    let places = Places(vec![place.to_owned()]);
    let journal = Journal::write_run(&mut super::super::Real, &places, process, all(place));
    let path = journal.expect("written").path().to_owned();
    (places, path)
}

#[test]
fn what_was_changed_last_is_undone_first() {
    let place = tempfile::tempdir().expect("a directory");
    let (places, path) = written(place.path(), &dead());
    assert!(path.ends_with("lowmark-4100007-run.journal"), "{path:?}");
    let mut scribe = Scribe::default();
    let recovered = recover(&mut scribe, &places, &tracefs);
    let own = "lowmark-4100007";
    assert_eq!(
        scribe.done,
        [
            format!("remove instance {own}"),
            format!("kill tasks {own}"),
            "swap off swap".into(),
            format!("remove directory {own}"),
            format!("remove group {own}"),
            "set knob".into(),
            format!("remove {own}-run.journal"),
        ]
    );
    let [Recovered::Undone { pid, what }] = recovered.as_slice() else {
        panic!("{recovered:?}");
    };
    assert_eq!(*pid, 4_100_007);
    assert!(
        what.iter()
            .any(|what| what.ends_with("knob has the value 60 again"))
    );
    assert!(recover(&mut scribe, &places, &tracefs).is_empty());
}

#[test]
fn what_can_be_undone_is_undone_though_something_else_cannot() {
    let place = tempfile::tempdir().expect("a directory");
    let (places, path) = written(place.path(), &dead());
    let mut scribe = Scribe {
        fails_at: Some("swap off"),
        ..Scribe::default()
    };
    let recovered = recover(&mut scribe, &places, &tracefs);
    let [Recovered::Failed { journal, problem }] = recovered.as_slice() else {
        panic!("{recovered:?}");
    };
    assert_eq!(journal, &path);
    assert!(problem.starts_with("cannot switch swap off"), "{problem}");
    assert!(scribe.done.contains(&"set knob".to_owned()));
    // The next one finds the rest.
    let mut scribe = Scribe::default();
    let recovered = recover(&mut scribe, &places, &tracefs);
    assert!(matches!(recovered.as_slice(), [Recovered::Undone { .. }]));
    assert!(!path.exists() && !scribe.done.contains(&"set knob".to_owned()));
}

#[test]
fn of_an_earlier_boot_only_files_are_left() {
    let place = tempfile::tempdir().expect("a directory");
    let earlier = Process {
        boot: "another".into(),
        ..dead()
    };
    let (places, _) = written(place.path(), &earlier);
    let mut scribe = Scribe::default();
    recover(&mut scribe, &places, &tracefs);
    let own = "lowmark-4100007";
    let expected = [
        format!("remove directory {own}"),
        format!("remove {own}-run.journal"),
    ];
    assert_eq!(scribe.done, expected);
}

#[test]
fn a_run_that_goes_on_is_left_alone_unless_it_asks() {
    let place = tempfile::tempdir().expect("a directory");
    let own = Process::own().expect("a process");
    let (places, path) = written(place.path(), &own);
    let mut scribe = Scribe::default();
    assert_eq!(recover(&mut scribe, &places, &tracefs), []);
    assert!(scribe.done.is_empty());
    // Its own name is not in what it would have made.
    let undone = undo_now(&mut scribe, &path, &tracefs);
    assert!(matches!(undone, Recovered::Undone { .. }), "{undone:?}");
    assert!(!path.exists());
}

#[test]
fn a_journal_of_an_older_lowmark_is_one_of_a_recorder() {
    let process = dead();
    let text = serde_json::to_string(&process).expect("JSON");
    let entry: Entry = serde_json::from_str(&text).expect("an entry");
    assert_eq!((entry.process, entry.undo), (process, vec![Undo::Instance]));
}
