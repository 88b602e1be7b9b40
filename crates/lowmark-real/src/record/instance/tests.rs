//! A recorder that is killed before any of its changes, and what is found of it afterwards.

use super::*;
use crate::undo::{Real, Recovered, recover};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Set for the recorder that is to be killed: the directory that it works in, and how many changes it lives to make.
const VICTIM: &str = "LOWMARK_TEST_VICTIM";
/// Name of the test below.
const NAME: &str =
    "record::instance::tests::a_recorder_that_is_killed_leaves_nothing_that_is_not_undone";

/// Files of an instance, as the kernel would put them there.
const INSTANCE_FILES: [(&str, &str); 6] = [
    ("tracing_on", "1"),
    ("trace_clock", "local"),
    ("buffer_size_kb", "1408"),
    ("per_cpu/cpu0/trace_pipe_raw", ""),
    ("per_cpu/cpu0/stats", "overrun: 0\n"),
    (
        "events/vmscan/mm_vmscan_kswapd_wake/format",
        "name: mm_vmscan_kswapd_wake\n",
    ),
];

fn fill(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }
}

/// A tracefs that is a plain directory, in which nothing appears or goes by itself.
fn make_tracefs(root: &Path) {
    fill(root, &INSTANCE_FILES);
    let more = [
        (
            "events/header_page",
            "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n",
        ),
        ("events/header_event", "# compressed entry header\n"),
        ("saved_cmdlines", "7 rl\n"),
        ("events/vmscan/mm_vmscan_kswapd_wake/enable", "0"),
    ];
    fill(root, &more);
    fs::create_dir(root.join("instances")).expect("made");
}

/// Does what the kernel does when an instance is made or removed, and ends the process before a change.
#[derive(Debug)]
struct Mortal {
    left: Option<usize>,
}

impl Mortal {
    fn step(&mut self) {
        if let Some(left) = &mut self.left {
            if *left == 0 {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("killed");
            }
            *left -= 1;
        }
    }
}

impl Changes for Mortal {
    fn create(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.step();
        Real.create(path, content)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        Real.rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step();
        Real.remove(path)
    }

    fn make_instance(&mut self, path: &Path) -> io::Result<()> {
        self.step();
        Real.make_instance(path)?;
        fill(path, &INSTANCE_FILES);
        fill(path, &[("events/vmscan/mm_vmscan_kswapd_wake/enable", "0")]);
        Ok(())
    }

    fn remove_instance(&mut self, path: &Path) -> io::Result<()> {
        self.step();
        fs::remove_dir_all(path)
    }

    fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        self.step();
        Real.set(path, value)
    }

    // A recorder makes none of the others.
    fn make_group(&mut self, path: &Path) -> io::Result<()> {
        panic!("{}", path.display())
    }

    fn kill_tasks(&mut self, group: &Path) -> io::Result<()> {
        panic!("{}", group.display())
    }

    fn remove_group(&mut self, path: &Path) -> io::Result<()> {
        panic!("{}", path.display())
    }

    fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        panic!("{}", path.display())
    }

    fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        panic!("{}", path.display())
    }

    fn swap_on(&mut self, file: &Path) -> io::Result<()> {
        panic!("{}", file.display())
    }

    fn swap_off(&mut self, file: &Path) -> io::Result<()> {
        panic!("{}", file.display())
    }
}

/// What a directory holds, by path.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path)
            } else {
                found.insert(path.clone(), fs::read(&path).expect("read"));
            }
        }
    }
    found
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("listed");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The recorder that is killed, unless it gets to its end.
fn victim(place: &str) {
    let (directory, changes) = place.rsplit_once(' ').expect("two words");
    let directory = Path::new(directory);
    let left = changes.parse().expect("a number");
    let changes = Box::new(Mortal { left: Some(left) });
    let places = Places(vec![directory.join("journals")]);
    let tracefs = Tracefs::at(&directory.join("tracefs"));
    let mut instance =
        Instance::make(tracefs, changes, Some(&places), Level::Events).expect("made");
    assert_eq!(instance.events, 1);
    let mut pages = 0;
    instance.read(&mut |_, _| pages += 1).expect("read");
    instance.stop().expect("stopped");
    instance.remove().expect("removed");
}

#[test]
fn a_recorder_that_is_killed_leaves_nothing_that_is_not_undone() {
    if let Ok(place) = std::env::var(VICTIM) {
        return victim(&place);
    }
    let place = tempfile::tempdir().expect("a directory");
    let (root, journals) = (place.path().join("tracefs"), place.path().join("journals"));
    make_tracefs(&root);
    let before = content(&root);
    let places = Places(vec![journals.clone()]);
    let (mut killed, mut removed) = (0, 0);
    for changes in 0.. {
        let child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", NAME])
            .env(VICTIM, format!("{} {changes}", place.path().display()))
            .output()
            .expect("started");
        let instances = entries(&root.join("instances"));
        let left = entries(&journals);
        if child.status.success() {
            assert_eq!(
                (instances, left),
                (Vec::new(), Vec::new()),
                "it saw to it itself"
            );
            break;
        }
        assert_eq!(
            child.status.signal(),
            Some(9),
            "{}",
            String::from_utf8_lossy(&child.stdout)
        );
        killed += 1;
        // Nothing is changed that is not in the journal.
        let journal = instances.iter().map(|name| format!("{name}.journal"));
        assert!(
            journal.clone().all(|journal| left.contains(&journal)),
            "{left:?}"
        );
        let recovered = recover(&mut Mortal { left: None }, &places, &|| {
            Ok(Tracefs::at(&root))
        });
        let undone = recovered
            .iter()
            .filter(|one| matches!(one, Recovered::Undone { .. }));
        assert_eq!(undone.count(), instances.len());
        removed += instances.len();
        assert_eq!(recovered.len(), left.len(), "{recovered:?}");
        assert_eq!(entries(&journals), Vec::<String>::new());
        assert_eq!(entries(&root.join("instances")), Vec::<String>::new());
        assert_eq!(content(&root), before);
    }
    // Two for the journal, one for the instance, six settings, and the way back.
    assert_eq!((killed, removed), (11, 7));
}

#[test]
fn an_error_on_the_way_undoes_what_was_done() {
    let place = tempfile::tempdir().expect("a directory");
    let (root, journals) = (place.path().join("tracefs"), place.path().join("journals"));
    make_tracefs(&root);
    fs::remove_file(root.join("events/header_event")).expect("removed");
    let before = content(&root);
    let places = Places(vec![place.path().join("no/such/place"), journals.clone()]);
    let changes = Box::new(Mortal { left: None });
    let made = Instance::make(Tracefs::at(&root), changes, Some(&places), Level::Events);
    assert!(made.is_err());
    assert_eq!((entries(&journals), content(&root)), (Vec::new(), before));
}

#[test]
fn a_panic_undoes_what_was_done() {
    let place = tempfile::tempdir().expect("a directory");
    let (root, journals) = (place.path().join("tracefs"), place.path().join("journals"));
    make_tracefs(&root);
    let before = content(&root);
    let places = Places(vec![journals.clone()]);
    let panicked = std::panic::catch_unwind(|| {
        let changes = Box::new(Mortal { left: None });
        let instance = Instance::make(Tracefs::at(&root), changes, Some(&places), Level::Events)
            .expect("made");
        assert_eq!(entries(&journals).len(), 1);
        assert_eq!(instance.events, 0, "there is one, so this panics");
    });
    assert!(panicked.is_err());
    assert_eq!((entries(&journals), content(&root)), (Vec::new(), before));
}

/// A journal of a process, as it would have written it.
fn journal(places: &Path, process: &Process) -> PathBuf {
    let places = Places(vec![places.to_owned()]);
    let journal = Journal::write(&mut Real, &places, process);
    journal.expect("written").path().to_owned()
}

#[test]
fn only_what_the_dead_left_is_undone() {
    let place = tempfile::tempdir().expect("a directory");
    let (root, journals) = (place.path().join("tracefs"), place.path().join("journals"));
    make_tracefs(&root);
    let instance = |pid: u32| root.join("instances").join(instance_of(pid));
    let own = Process::own().expect("a process");
    // This one lives; this one had the number of one that lives; this one is of an earlier boot.
    let alive = journal(&journals, &own);
    assert_eq!(
        fs::metadata(&alive).expect("there").permissions().mode() & 0o777,
        0o600
    );
    let reused = Process {
        pid: 1,
        start_ticks: 999_999_999,
        ..own.clone()
    };
    let earlier = Process {
        pid: 4_100_001,
        boot: "another".to_owned(),
        ..own.clone()
    };
    for process in [&reused, &earlier] {
        journal(&journals, process);
    }
    for pid in [own.pid, 1, 4_100_001, 4_100_002, 4_100_003] {
        fs::create_dir(instance(pid)).expect("made");
    }
    // Of these nothing can be read, and no process has their number; one was not even whole.
    fs::write(journals.join("lowmark-4100002.journal"), [0; 100]).expect("written");
    fs::write(journals.join("lowmark-4100003.journal-new"), "{\"pid\"").expect("written");
    // These are no journals.
    fs::write(journals.join("lowmark-x.journal"), "").expect("written");
    fs::write(journals.join("other"), "").expect("written");
    std::os::unix::fs::symlink("other", journals.join("lowmark-4100004.journal")).expect("linked");

    let places = Places(vec![place.path().join("nowhere"), journals.clone()]);
    let recovered = recover(&mut Mortal { left: None }, &places, &|| {
        Ok(Tracefs::at(&root))
    });
    let removed = |pid: u32| Recovered::Undone {
        pid,
        what: vec![format!(
            "the trace instance {} was removed",
            instance_of(pid)
        )],
    };
    let nothing = |name: &str| Recovered::NothingLeft {
        journal: journals.join(name),
    };
    assert_eq!(
        recovered,
        [
            removed(1),
            nothing("lowmark-4100001.journal"),
            removed(4_100_002),
            nothing("lowmark-4100003.journal-new"),
        ]
    );
    assert!(
        instance(own.pid).is_dir() && instance(4_100_001).is_dir() && instance(4_100_003).is_dir()
    );
    assert!(!instance(1).exists() && !instance(4_100_002).exists());
    let mut left = entries(&journals);
    left.sort();
    let own_journal = format!("{}.journal", instance_of(own.pid));
    let mut expected = vec![
        own_journal,
        "lowmark-4100004.journal".into(),
        "lowmark-x.journal".into(),
        "other".into(),
    ];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn what_cannot_be_undone_keeps_its_journal() {
    let place = tempfile::tempdir().expect("a directory");
    let journals = place.path().join("journals");
    let own = Process::own().expect("a process");
    let dead = Process {
        pid: 4_100_001,
        ..own
    };
    let path = journal(&journals, &dead);
    let places = Places(vec![journals]);
    let none = || Err(io::Error::other("only root may"));
    let recovered = recover(&mut Real, &places, &none);
    let [Recovered::Failed { journal, problem }] = recovered.as_slice() else {
        panic!("{recovered:?}");
    };
    assert_eq!(
        (journal, problem.as_str()),
        (&path, "tracefs: only root may")
    );
    assert!(path.exists());
}

#[test]
fn the_size_of_a_page_is_the_kernels() {
    let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:16368;\tsigned:0;\n";
    assert_eq!(page_size(text), 16_384);
    assert_eq!(page_size("field: char data;\toffset:x;\tsize:1;"), 4096);
}
