//! Recordings of this very host, by the program: how they end, what is read of them, and what is left behind.

mod common;
#[path = "../../../tests/needed.rs"]
mod needed;

use common::Place;
use lowmark_real::tracefs::Tracefs;
use lowmark_real::undo::Places;
use lowmark_record::{Kind, Recording};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest time that anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a recorder, and waits until it says that it records.
fn start(place: &Place, args: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .arg("record")
        .args(args)
        .current_dir(place.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("Recording ") {
        line.clear();
        assert!(said.read_line(&mut line).expect("readable") > 0, "it ended");
    }
    (child, said)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("panicked"));
    output
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Why there are no trace events here, if there are none.
fn no_events() -> Option<String> {
    Tracefs::find().err().map(|error| error.to_string())
}

#[test]
fn a_recording_is_reported_and_exported() {
    let place = Place::new();
    let done = place.lowmark(&["record", "--for", "600ms", "-o", "a.rec"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stdout.contains("% of one CPU"), "{}", done.stdout);
    assert!(done.stderr.contains("a.rec written"), "{}", done.stderr);
    // The report says first why tasks waited.
    let report = place.lowmark(&["report", "a.rec"]);
    assert_eq!(report.status, 0, "{}", report.stderr);
    // What was said at the begin is in every later report, and not said again at the end.
    let is_note = |line: &&str| line.starts_with("note: ");
    for note in done.stderr.lines().filter(is_note) {
        assert!(report.stdout.contains(note), "{note}: {}", report.stdout);
    }
    let lines = report.stdout.lines().filter(|line| !is_note(line));
    let rest: String = lines.map(|line| line.to_owned() + "\n").collect();
    assert!(rest.ends_with(&done.stdout), "{}", report.stdout);
    let report = place.lowmark(&["report", "a.rec", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    let host = &document["host"];
    assert!(
        host["elapsed_s"].as_f64().expect("a number") >= 0.6,
        "{host}"
    );
    assert!(host["looks"].as_u64().expect("a number") >= 2, "{host}");
    assert!(
        document.get("direct_reclaims").is_none(),
        "no events were recorded: {document}"
    );
    let export = place.lowmark(&["export", "a.rec", "--format", "perfetto", "-o", "a.pftrace"]);
    assert_eq!(export.status, 0, "{}", export.stderr);
    assert!(
        std::fs::metadata(place.path("a.pftrace"))
            .expect("there")
            .len()
            > 1000
    );
    let compare = place.lowmark(&["record", "--for", "5"]);
    assert_eq!(compare.status, 2);
    assert!(
        compare.stderr.contains("expected a time"),
        "{}",
        compare.stderr
    );
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    let place = Place::new();
    let script = "sleep 0.3; exit 7";
    let done = place.lowmark(&["record", "-o", "b.rec", "--", "/bin/sh", "-c", script]);
    assert_eq!(done.status, 7, "{}", done.stderr);
    let recording = Recording::read(&place.path("b.rec")).expect("read");
    assert_eq!(recording.run.workload, "sh");
    assert_eq!(
        recording.run.params,
        [("command".to_owned(), format!("/bin/sh -c {script}"))]
    );
    assert!(recording.elapsed_ns >= 300_000_000);
    let done = place.lowmark(&[
        "record",
        "-q",
        "-o",
        "c.rec",
        "--",
        "/bin/sh",
        "-c",
        "kill -9 $$",
    ]);
    assert_eq!((done.status, done.stdout.as_str()), (128 + 9, ""));
    let done = place.lowmark(&["record", "-o", "d.rec", "--", "./no-such-program"]);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("./no-such-program: cannot be started"),
        "{}",
        done.stderr
    );
    assert!(!place.path("d.rec").exists());
}

#[test]
fn signals_end_a_recording_and_what_there_is_is_written() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let (child, _said) = start(&place, &["-o", "a.rec"]);
        std::thread::sleep(Duration::from_millis(300));
        send(&child, signal);
        let output = end(child);
        assert_eq!(output.status.code(), Some(0), "{signal:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("% of one CPU"));
        Recording::read(&place.path("a.rec")).expect("whole");
    }
}

/// A signal is the command's affair: it ends by a SIGTERM that is passed on, and may take a SIGINT for nothing.
#[test]
fn a_signal_is_for_the_command_first() {
    let place = Place::new();
    let script = "trap 'exit 5' TERM; : > ready; while :; do sleep 0.05; done";
    let (child, _said) = start(&place, &["-o", "a.rec", "--", "/bin/sh", "-c", script]);
    wait_until("the command", || place.path("ready").exists());
    send(&child, Signal::TERM);
    assert_eq!(end(child).status.code(), Some(5));

    // It outlives the recorder, and must not hold what that writes to.
    let script = "exec sleep 10 > /dev/null 2>&1";
    let (child, _said) = start(&place, &["-o", "b.rec", "--", "/bin/sh", "-c", script]);
    send(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!place.path("b.rec").exists(), "it goes on");
    send(&child, Signal::INT);
    assert_eq!(end(child).status.code(), Some(0));
    Recording::read(&place.path("b.rec")).expect("whole");
}

#[test]
fn a_ring_is_written_when_it_is_asked_for_and_at_the_end() {
    let place = Place::new();
    let (child, mut said) = start(&place, &["--ring", "1s", "-o", "ring.rec"]);
    for number in [1, 2] {
        send(&child, Signal::USR1);
        let path = place.path(&format!("ring.rec.{number}"));
        let mut line = String::new();
        said.read_line(&mut line).expect("readable");
        assert!(
            line.starts_with(&format!("ring.rec.{number}: the last ")),
            "{line}"
        );
        Recording::read(&path).expect("whole");
    }
    std::thread::sleep(Duration::from_millis(1_500));
    send(&child, Signal::INT);
    assert_eq!(end(child).status.code(), Some(0));
    let last = Recording::read(&place.path("ring.rec")).expect("whole");
    assert!(last.elapsed_ns <= 1_000_000_000);
    let recorder = last
        .system
        .and_then(|system| system.recorder)
        .expect("told");
    assert!(recorder.wall_ns >= 1_500_000_000);
    assert!(!place.path("ring.rec.3").exists());
}

#[test]
fn damaged_recordings_are_errors() {
    let place = Place::new();
    let done = place.lowmark(&["record", "-q", "--for", "200ms", "-o", "a.rec"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let path = place.path("a.rec/recording.json");
    let whole = std::fs::read(&path).expect("read");
    let history = whole
        .windows(9)
        .position(|bytes| bytes == b"\"history\"")
        .expect("there");
    let cuts = [
        0,
        1,
        200,
        history,
        history + 40,
        history + 4000,
        whole.len() - 3,
    ];
    for cut in cuts {
        std::fs::write(&path, &whole[..cut]).expect("written");
        refused(&place, &format!("cut at {cut}"));
    }
    // Digits and brackets of the logs, each replaced by another.
    for (number, at) in (history..whole.len()).step_by(whole.len() / 40).enumerate() {
        let mut damaged = whole.clone();
        damaged[at] = b"]9-\"{,"[number % 6];
        std::fs::write(&path, &damaged).expect("written");
        let done = place.lowmark(&["report", "a.rec"]);
        assert!([0, 2].contains(&done.status), "at {at}: {}", done.stderr);
        assert!(
            !done.stderr.contains("panicked"),
            "at {at}: {}",
            done.stderr
        );
    }
    std::fs::remove_file(&path).expect("removed");
    refused(&place, "without a file");
}

fn refused(place: &Place, what: &str) {
    for verb in [&["report"][..], &["export", "--format", "json", "-o", "x"]] {
        let mut args = verb.to_vec();
        args.insert(1, "a.rec");
        let done = place.lowmark(&args);
        assert_eq!(done.status, 2, "{what}: {}", done.stderr);
        assert!(!done.stderr.contains("panicked"), "{what}: {}", done.stderr);
        assert!(done.stderr.contains("a.rec"), "{what}: {}", done.stderr);
    }
}

/// Events of processes happen on any host: those of the command are there, and its trace buffer is not any more.
#[test]
fn trace_events_are_recorded_and_tracing_is_left_as_it_was() {
    if let Some(why) = no_events() {
        return needed::absent(format!("trace events: {why}"));
    }
    let place = Place::new();
    let script = "sleep 0.2; /bin/true; sleep 0.2";
    let args = [
        "--level", "events", "-o", "a.rec", "--", "/bin/sh", "-c", script,
    ];
    let (child, mut said) = start(&place, &args);
    let pid = child.id();
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    assert_eq!(end(child).status.code(), Some(0), "{rest}");
    assert!(rest.contains("a.rec written with "), "{rest}");
    assert_eq!(
        journal_of(pid),
        None,
        "it goes when the trace buffer has gone"
    );
    let recording = Recording::read(&place.path("a.rec")).expect("read");
    let executed = recording
        .events
        .iter()
        .filter(|event| event.kind == Kind::ProcessExec);
    let files = executed.filter_map(|event| event.get(lowmark_record::Field::Filename));
    let files: Vec<&str> = files.map(|id| recording.events.names.text(id)).collect();
    assert!(files.contains(&"/bin/true"), "{files:?}");
    let times: Vec<u64> = recording.events.iter().map(|event| event.time_ns).collect();
    assert!(times.is_sorted() && times[times.len() - 1] <= recording.elapsed_ns + 1_000_000_000);
    let system = recording.system.as_ref().expect("a system");
    assert_eq!(system.lost_events, Some(0));
    let report = place.lowmark(&["report", "a.rec", "--strict"]);
    assert_eq!(report.status, 0, "{}", report.stderr);
    assert!(report.stdout.contains("Direct reclaims") && report.stdout.contains("% of one CPU"));
    let trace = [
        "export", "a.rec", "--format", "ftrace", "-o", "a.txt", "--era", "6.18",
    ];
    assert_eq!(place.lowmark(&trace).status, 0);
}

#[test]
fn what_a_recorder_that_was_killed_left_is_undone() {
    if let Some(why) = no_events() {
        return needed::absent(format!("trace events: {why}"));
    }
    let place = Place::new();
    let (child, _said) = start(&place, &["--level", "events", "-o", "a.rec"]);
    let instance = format!("lowmark-{}", child.id());
    // While it runs, nobody takes it away.
    let done = place.lowmark(&["recover"]);
    assert!(!done.stdout.contains(&instance), "{}", done.stdout);
    assert!(journal_of(child.id()).is_some());
    send(&child, Signal::KILL);
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), Some(9));
    // What it had open may take a moment to be closed. Another recorder that begins meanwhile does the same.
    wait_until("the instance to be removed", || {
        let done = place.lowmark(&["recover"]);
        let removed = format!("{instance} was removed");
        done.stdout.contains(&removed) || journal_of(pid).is_none()
    });
    assert_eq!(journal_of(pid), None);
    assert!(!place.path("a.rec").exists());
}

/// The journal of a recorder, if there is one.
fn journal_of(pid: u32) -> Option<PathBuf> {
    let places = Places::of_system().0.into_iter();
    let mut paths = places.map(|place| place.join(format!("lowmark-{pid}.journal")));
    paths.find(|path| path.exists())
}
