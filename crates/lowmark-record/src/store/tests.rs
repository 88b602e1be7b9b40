//! Round trips, damage, and destinations that must be left alone.

use super::*;
use crate::counter_log::CounterLog;
use crate::event::{Event, EventLog, Names};
use crate::event::{Field, Kind};
use crate::recording::{Outcome, Phase, RunInfo, Series, System, TaskTimes, Unit};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tempfile::TempDir;

fn task(name: &str) -> TaskTimes {
    TaskTimes {
        name: name.to_owned(),
        pid: 7,
        kthread: false,
        user_ns: 1,
        system_ns: 2,
        start_ns: 0,
        end_ns: Some(u64::MAX),
    }
}

fn recording(events: Vec<Event>) -> Recording {
    Recording {
        run: RunInfo {
            workload: "swap-seq-rand".to_owned(),
            params: vec![("touches".to_owned(), "5".to_owned())],
            machine: "desktop".to_owned(),
            kernel: "v3.6+swapin_readahead=hugh-new".to_owned(),
            backend: "model".to_owned(),
            lowmark: "0.1.0".to_owned(),
            seed: u64::MAX,
            left_out: Vec::new(),
        },
        outcome: Outcome::Completed,
        elapsed_ns: 123,
        counters: [("pswpin".to_owned(), 5), ("pswpout".to_owned(), u64::MAX)].into(),
        state: BTreeMap::new(),
        tasks: vec![task("swapper")],
        phases: vec![Phase {
            label: "warm".to_owned(),
            task: "swapper".to_owned(),
            time_ns: 3,
        }],
        series: vec![Series {
            name: "mmap".to_owned(),
            unit: Unit::Milliseconds,
            samples: vec![(1, 2), (3, 4)],
        }],
        gauges: Default::default(),
        history: Vec::new(),
        not_modelled: Vec::new(),
        system: None,
        events: EventLog::of(Names::default(), &events),
    }
}

fn event(time_ns: u64) -> Event {
    Event::new(Kind::KswapdWake, time_ns, 1, 0).with(&[
        (Field::Nid, 0),
        (Field::Zid, 1),
        (Field::Order, 9),
    ])
}

/// A recording with three events, written.
fn written() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dir = place.path().join("run");
    recording(vec![event(1), event(1), event(5)])
        .write(&dir)
        .expect("written");
    (place, dir)
}

/// Names in a directory, hidden ones too.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("a directory")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

/// What reading says after `change` was done to a file of the recording.
fn damaged(file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> String {
    let (_place, dir) = written();
    let path = dir.join(file);
    let bytes = fs::read(&path).expect("readable");
    fs::write(&path, change(bytes)).expect("writable");
    Recording::read(&dir)
        .expect_err("damage is noticed")
        .to_string()
}

fn replaced(file: &str, from: &str, to: &str) -> String {
    damaged(file, |bytes| {
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(text.contains(from), "{from} in {text}");
        text.replacen(from, to, 1).into_bytes()
    })
}

#[test]
fn what_is_written_is_read() {
    let (place, dir) = written();
    let expected = recording(vec![event(1), event(1), event(5)]);
    assert_eq!(Recording::read(&dir).expect("read"), expected);
    assert_eq!(
        Recording::read_without_events(&dir).expect("read"),
        recording(Vec::new())
    );
    assert_eq!(names(place.path()), ["run"]);
    assert_eq!(names(&dir), [EVENTS_FILE, RECORDING_FILE]);
    let events = EventReader::open(&dir)
        .expect("events")
        .read_all()
        .expect("valid");
    assert_eq!(events, expected.events);
}

#[test]
fn the_form_on_disk_is_the_documented_one() {
    let (_place, dir) = written();
    let text = fs::read_to_string(dir.join(RECORDING_FILE)).expect("text");
    let start =
        "{\n  \"format\": \"lowmark-recording\",\n  \"version\": 1,\n  \"event_count\": 3,\n";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("\n  \"outcome\": \"completed\",\n"), "{text}");
    assert!(text.contains("\n    \"pswpin\": 5,\n"), "{text}");
    assert!(text.ends_with("}\n"), "{text}");
    let events = fs::read_to_string(dir.join(EVENTS_FILE)).expect("text");
    let first =
        r#"{"t":1,"cpu":1,"task":0,"event":"mm_vmscan_kswapd_wake","nid":0,"order":9,"zid":1}"#;
    assert_eq!(events.lines().next(), Some(first));
}

#[test]
fn without_events_there_is_no_events_file() {
    let (_place, dir) = written();
    recording(Vec::new())
        .write(&dir)
        .expect("a recording may be replaced");
    assert_eq!(names(&dir), [RECORDING_FILE]);
    assert_eq!(Recording::read(&dir).expect("read"), recording(Vec::new()));
    let error = EventReader::open(&dir).expect_err("no events").to_string();
    assert!(
        error.contains("no such file; expected the events"),
        "{error}"
    );
}

#[test]
fn damage_is_named_with_file_and_line() {
    let json = RECORDING_FILE;
    for (error, expected) in [
        (
            damaged(json, |b| b[..b.len() / 2].to_vec()),
            "recording.json:",
        ),
        (
            damaged(json, |_| Vec::new()),
            "expected the head of a recording: EOF",
        ),
        (
            damaged(json, |_| b"[1, 2]".to_vec()),
            "expected the head of a recording",
        ),
        (
            damaged(json, |_| b"\n\xff".to_vec()),
            "recording.json:2: expected UTF-8 text",
        ),
        (
            replaced(json, "\"version\": 1", "\"version\": 2"),
            "recording of format version 2; this",
        ),
        (
            replaced(json, "lowmark-recording", "other"),
            "found \"other\"",
        ),
        (
            replaced(json, "\"elapsed_ns\": 123", "\"elapsed_ns\": -1"),
            "recording.json:",
        ),
        (
            replaced(json, "  \"elapsed_ns\": 123,\n", ""),
            "missing field `elapsed_ns`",
        ),
        (replaced(json, "\"completed\"", "\"exploded\""), "exploded"),
        (
            replaced(json, "\"event_count\": 3", "\"event_count\": 4"),
            "expected 4 events, found 3",
        ),
        (
            replaced(json, "\"event_count\": 3", "\"event_count\": 0"),
            "events.jsonl: expected 0 events, found 3: the file was cut or changed",
        ),
        (
            damaged(EVENTS_FILE, |b| b[..b.len() - 9].to_vec()),
            "events.jsonl:3:",
        ),
        (
            damaged(EVENTS_FILE, |_| b"\xff".to_vec()),
            "events.jsonl:1: expected UTF-8 text",
        ),
        (
            damaged(EVENTS_FILE, |_| b"not json\n".to_vec()),
            "events.jsonl:1:",
        ),
        (
            damaged(EVENTS_FILE, |_| Vec::new()),
            "expected 3 events, found 0",
        ),
        (
            replaced(EVENTS_FILE, "kswapd_wake", "unheard_of"),
            "events.jsonl:1:",
        ),
        (
            replaced(EVENTS_FILE, "\"task\":0", "\"task\":1"),
            "expected the index of one of 1 tasks",
        ),
        (
            replaced(EVENTS_FILE, "\"t\":1,", "\"t\":9,"),
            "events.jsonl:2: expected a time of at least 9 ns, found 1",
        ),
        (
            replaced(EVENTS_FILE, "\"order\":9", "\"order\":\"nine\""),
            "events.jsonl:1:",
        ),
    ] {
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
}

/// Files without an end, as a link to a device or a file of zeros after a power cut.
#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read_for_ever() {
    for (file, start, expected) in [
        (
            EVENTS_FILE,
            "",
            "events.jsonl:1: longer than 1048576 bytes; expected one event as a JSON object",
        ),
        (
            RECORDING_FILE,
            "",
            "recording.json:1: longer than 65536 bytes; expected \"format\": \"lowmark-recording\"",
        ),
        (
            EVENTS_FILE,
            "\n\n",
            "events.jsonl:3: longer than 1048576 bytes",
        ),
    ] {
        let (_place, dir) = written();
        let path = dir.join(file);
        fs::remove_file(&path).expect("removed");
        if start.is_empty() {
            std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        } else {
            fs::write(&path, [start.as_bytes(), &vec![0; 2 << 20]].concat()).expect("written");
        }
        for read in [
            Recording::read(&dir).map(|_| ()),
            Recording::stream(&dir, &mut Seen::default()).map(|_| ()),
        ] {
            let error = read.expect_err("no end").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

/// An event file that holds nothing is none.
#[test]
fn no_events_may_be_an_empty_file() {
    let (_place, dir) = written();
    recording(Vec::new()).write(&dir).expect("replaced");
    fs::write(dir.join(EVENTS_FILE), "\n").expect("written");
    assert_eq!(Recording::read(&dir).expect("read"), recording(Vec::new()));
}

#[test]
fn missing_files_are_named() {
    let (_place, dir) = written();
    fs::remove_file(dir.join(EVENTS_FILE)).expect("removed");
    let error = Recording::read(&dir).expect_err("no events").to_string();
    assert!(error.contains("events.jsonl: no such file"), "{error}");
    assert!(Recording::read_without_events(&dir).is_ok());
    fs::remove_file(dir.join(RECORDING_FILE)).expect("removed");
    let error = Recording::read(&dir).expect_err("no recording").to_string();
    assert!(
        error.contains("recording.json: no such file; expected a recording"),
        "{error}"
    );
    assert!(Recording::read(&dir.join("nowhere")).is_err());
}

#[test]
fn unknown_keys_are_left_alone_and_blank_lines_skipped() {
    let (_place, dir) = written();
    let json = dir.join(RECORDING_FILE);
    let text = fs::read_to_string(&json).expect("text");
    fs::write(
        &json,
        text.replacen("\"run\"", "\"host\": {\"a\": [1]}, \"run\"", 1),
    )
    .expect("written");
    let events = dir.join(EVENTS_FILE);
    let text = fs::read_to_string(&events).expect("text");
    fs::write(&events, text.replace('\n', "\n\n")).expect("written");
    assert_eq!(Recording::read(&dir).expect("read").events.len(), 3);
}

#[test]
fn somebody_elses_work_is_not_overwritten() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let full = place.path().join("full");
    fs::create_dir(&full).expect("created");
    fs::write(full.join("thesis.txt"), "years").expect("written");
    let file = place.path().join("file");
    fs::write(&file, "x").expect("written");
    let other = place.path().join("other");
    fs::create_dir(&other).expect("created");
    fs::write(other.join(RECORDING_FILE), "{\"format\": \"audio\"}").expect("written");
    for (dir, expected) in [
        (&full, "a directory with `thesis.txt` in it"),
        (&file, "found a file"),
        (&other, "a directory whose recording.json is no recording"),
    ] {
        for error in [recording(Vec::new()).write(dir), check_writable(dir)] {
            let error = error.expect_err("refused").to_string();
            assert!(
                error.contains(expected) && error.contains("will not be overwritten"),
                "{error}"
            );
        }
    }
    assert_eq!(names(&full), ["thesis.txt"]);
    assert_eq!(names(place.path()), ["file", "full", "other"]);
}

#[test]
fn a_recording_with_notes_beside_it_is_not_overwritten() {
    let (_place, dir) = written();
    fs::write(dir.join("notes.txt"), "mine").expect("written");
    assert!(recording(Vec::new()).write(&dir).is_err());
    assert!(Recording::read(&dir).is_ok());
}

#[test]
fn empty_directories_parents_and_damaged_recordings_are_no_obstacle() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let deep = place.path().join("a/b/c");
    check_writable(&deep).expect("possible");
    assert_eq!(names(place.path()), Vec::<String>::new());
    recording(Vec::new())
        .write(&deep)
        .expect("parents are created");
    let empty = place.path().join("empty");
    fs::create_dir(&empty).expect("created");
    recording(Vec::new())
        .write(&empty)
        .expect("an empty directory is used");
    let json = empty.join(RECORDING_FILE);
    let text = fs::read_to_string(&json).expect("text");
    fs::write(&json, &text[..60]).expect("written");
    check_writable(&empty).expect("possible");
    recording(Vec::new())
        .write(&empty)
        .expect("a damaged recording is replaced");
    assert!(Recording::read(&empty).is_ok());
}

#[test]
fn impossible_destinations_are_refused_before_the_run() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = place.path().join("file");
    fs::write(&file, "x").expect("written");
    for dir in [
        file.join("below"),
        PathBuf::from("/"),
        PathBuf::new(),
        place.path().join("a/.."),
    ] {
        assert!(check_writable(&dir).is_err(), "{}", dir.display());
        assert!(
            recording(Vec::new()).write(&dir).is_err(),
            "{}",
            dir.display()
        );
    }
    assert_eq!(names(place.path()), ["file"]);
}

#[test]
fn events_that_could_not_be_read_are_not_written() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dir = place.path().join("run");
    assert!(recording(vec![event(5), event(4)]).write(&dir).is_err());
    assert!(
        recording(vec![Event::new(Kind::KswapdSleep, 5, 1, 1)])
            .write(&dir)
            .is_err()
    );
    assert_eq!(names(place.path()), Vec::<String>::new());
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Completed),
        (any::<String>(), any::<u32>(), any::<String>()).prop_map(|(task, order, verdict)| {
            Outcome::OutOfMemory {
                task,
                order,
                verdict,
            }
        }),
        any::<String>().prop_map(|verdict| Outcome::Deadlock { verdict }),
    ]
}

/// A kind with values for its numeric fields.
fn payloads() -> impl Strategy<Value = (Kind, Vec<(Field, u64)>)> {
    let values = prop::collection::vec(any::<u64>(), 1..20);
    ((0..Kind::ALL.len()), values).prop_map(|(kind, values)| {
        let kind = Kind::ALL[kind];
        let numbers = kind.fields().iter().filter(|f| f.spec().value.is_number());
        (kind, numbers.copied().zip(values).collect())
    })
}

prop_compose! {
    fn recordings()(
        outcome in outcomes(),
        params in prop::collection::vec(any::<(String, String)>(), 0..4),
        counters in prop::collection::btree_map(any::<String>(), any::<u64>(), 0..6),
        samples in prop::collection::vec(any::<(u64, u64)>(), 0..6),
        task_names in prop::collection::vec(any::<String>(), 1..4),
        mut events in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u32>(), payloads()), 0..20),
    ) -> Recording {
        events.sort_by_key(|e| e.0);
        let tasks: Vec<TaskTimes> = task_names.iter().map(|n| task(n)).collect();
        let count = tasks.len() as u32;
        let events = events.into_iter().map(|(time_ns, cpu, task, (kind, values))| {
            Event::new(kind, time_ns, cpu, task % count).with(&values)
        }).collect();
        let mut recording = recording(events);
        recording.run.params = params;
        recording.outcome = outcome;
        recording.counters = counters;
        recording.series[0].samples = samples;
        recording.tasks = tasks;
        recording
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_recording_survives(recording in recordings()) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let dir = place.path().join("run");
        recording.write(&dir).expect("written");
        prop_assert_eq!(Recording::read(&dir).expect("read"), recording);
    }

    #[test]
    fn no_damage_panics(
        file in prop::sample::select(vec![RECORDING_FILE, EVENTS_FILE]),
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 0..4),
        length in 0usize..6,
    ) {
        let (_place, dir) = written();
        let path = dir.join(file);
        let mut bytes = fs::read(&path).expect("readable");
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, with);
        fs::write(&path, bytes).expect("writable");
        let _ = Recording::read(&dir).map_err(|e| e.to_string());
    }
}

/// Counts what goes by, and remembers texts of it.
#[derive(Default)]
struct Seen(Vec<(u64, String)>);

impl Sink for Seen {
    fn event(&mut self, event: &Event, tables: &crate::stream::Tables) {
        let actor = tables.actor(event.task).expect("a task of the recording");
        self.0.push((event.time_ns, actor.name.clone()));
    }
}

/// What goes by is what a recording replays that was read as a whole; what does not fit is an error in both.
#[test]
fn a_stream_is_what_is_read() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("r");
    recording(vec![event(1), event(5), event(5)])
        .write(&dir)
        .unwrap();
    let whole = Recording::read(&dir).unwrap();
    let (mut replayed, mut streamed) = (Seen::default(), Seen::default());
    let source = whole.replay(&mut replayed);
    let (recording, of_stream) = Recording::stream(&dir, &mut streamed).unwrap();
    assert_eq!(streamed.0, replayed.0);
    assert_eq!(streamed.0.len(), 3);
    assert_eq!(of_stream.account, source.account);
    assert!(recording.events.is_empty());
    assert_eq!(recording.tasks, whole.tasks);

    let path = dir.join(EVENTS_FILE);
    let text = fs::read_to_string(&path).unwrap();
    for wrong in [
        text.lines().next().unwrap().to_owned(),
        text.replacen("\"t\":1,", "\"t\":9,", 1),
        text.replacen("\"task\":", "\"task\":1000,\"x\":", 1),
    ] {
        fs::write(&path, wrong).unwrap();
        let error = |result: Result<(), StoreError>| result.unwrap_err().to_string();
        assert_eq!(
            error(Recording::stream(&dir, &mut Seen::default()).map(|_| ())),
            error(Recording::read(&dir).map(|_| ())),
        );
    }
}

#[test]
fn half_a_recording_is_none() -> Result<(), StoreError> {
    let directory = TempDir::new().expect("a directory");
    let whole = directory.path().join("whole");
    let events: Vec<Event> = (0..1000).map(event).collect();
    recording(events).write(&whole)?;
    let half = directory.path().join(".half.new-1");
    fs::create_dir(&half).expect("made");
    fs::copy(whole.join(EVENTS_FILE), half.join(EVENTS_FILE)).expect("copied");
    let read = Recording::read_without_events(&half);
    assert!(matches!(read, Err(StoreError::Missing { .. })), "{read:?}");
    Ok(())
}

#[test]
fn what_was_left_is_found_and_cleared() -> Result<(), StoreError> {
    let directory = TempDir::new().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    for name in [
        ".a.b.new-12",
        ".a.try-12",
        ".gone.old-7",
        ".kept.old-7",
        "kept",
    ] {
        fs::create_dir(path(name)).expect("made");
    }
    fs::write(path(".a.b.new-12").join(EVENTS_FILE), "{").expect("written");
    recording(Vec::new()).write(&path(".gone.old-7"))?;
    // Somebody else's.
    for name in [".git", ".a.new-x", ".a.newer-12", "a.new-12"] {
        fs::create_dir(path(name)).expect("made");
    }
    fs::write(path(".file.new-12"), "").expect("written");
    fs::create_dir(path(".full.new-12")).expect("made");
    fs::write(path(".full.new-12").join("thesis.tex"), "").expect("written");

    let found = leftovers(directory.path());
    let names = found.iter().map(|leftover| {
        let name = leftover.path.file_name().expect("a name");
        (name.to_string_lossy().into_owned(), leftover.process)
    });
    let expected = [
        (".a.b.new-12", 12),
        (".a.try-12", 12),
        (".gone.old-7", 7),
        (".kept.old-7", 7),
    ]
    .map(|(name, process)| (name.to_owned(), process));
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert!(found[0].written() > Some(std::time::SystemTime::UNIX_EPOCH));
    let cleared: Result<Vec<Cleared>, StoreError> = found.iter().map(Leftover::clear).collect();
    use Cleared::{PutBack, Removed};
    assert_eq!(cleared?, [Removed, Removed, PutBack, Removed]);
    Recording::read(&path("gone"))?;
    assert!(leftovers(directory.path()).is_empty());
    assert!(path(".full.new-12").join("thesis.tex").exists());
    assert!(leftovers(&path("nowhere")).is_empty());
    Ok(())
}

/// The loser of a race finds a recording where there was nothing when it looked.
#[test]
fn several_may_write_one_recording() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("r");
    let target = Target::of(&path).expect("it can be written");
    recording(Vec::new()).write(&path).expect("the first");
    let new = directory.path().join("second");
    let mut second = recording(Vec::new());
    second.elapsed_ns = 456;
    second.write_files(&new).expect("written");
    target.replace_by(&new).expect("put in place");
    let found = Recording::read(&path).expect("a recording");
    assert_eq!(found.elapsed_ns, 456);
    assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 1);
}

/// Of `/proc/vmstat` a recording of a host keeps only what changed: who reads it finds counters and state as in others.
#[test]
fn the_history_of_vmstat_gives_counters_and_state() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dir = place.path().join("run");
    let mut log = CounterLog::new(crate::vmstat::FILE);
    log.add_names(["nr_free_pages", "pgfault"]);
    log.push(5, &[70, 1]);
    log.push(9, &[60, 3]);
    let system = System {
        history: vec![log],
        recorder: Some(crate::recording::Recorder {
            level: "counters".to_owned(),
            looks: 2,
            ..Default::default()
        }),
        ..System::default()
    };
    let recording = Recording {
        system: Some(Box::new(system)),
        ..recording(Vec::new())
    };
    recording.write(&dir).expect("written");
    let read = Recording::read(&dir).expect("read");
    assert_eq!(read.gauges.names, ["nr_free_pages"]);
    assert_eq!(read.gauges.samples, [(5, vec![70]), (9, vec![60])]);
    let system = read.system.as_ref().expect("a system");
    assert_eq!(system.vmstat.names, ["pgfault"]);
    assert_eq!(system.vmstat.samples, [(5, vec![1]), (9, vec![3])]);
    assert_eq!(
        system.history,
        recording.system.as_ref().expect("a system").history
    );
    read.write(&dir).expect("written again");
    assert_eq!(Recording::read(&dir).expect("read again"), read);

    let path = dir.join(RECORDING_FILE);
    let text = fs::read_to_string(&path).expect("text");
    let damaged = text.replace("[9,0,60,1,3]", "[4,0,60,1,3]");
    assert_ne!(text, damaged);
    fs::write(&path, damaged).expect("written");
    let error = Recording::read(&dir).expect_err("damaged").to_string();
    assert!(error.contains("recording.json:"), "{error}");
    assert!(
        error.contains("sample 1 of proc/vmstat: it is earlier"),
        "{error}"
    );
}
