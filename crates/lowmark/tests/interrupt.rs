//! Signals, readers that go away, and several lowmarks in one place.

mod common;

use common::{Place, on_terminal};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest time that anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A direct reclaim as ftrace prints it.
const TRACE: &str = "\
              rl-7   [001] .....     5.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n\
              rl-7   [001] .....     5.001000: mm_vmscan_direct_reclaim_end: nr_reclaimed=32\n";

fn spawn(place: &Place, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .args(args)
        .current_dir(place.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("it runs");
}

/// Whether a process does something of its own at a SIGINT.
fn catches_sigint(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    mask >> (Signal::INT.as_raw() - 1) & 1 == 1
}

/// Bytes that the other end of a pipe has not read yet.
fn unread(pipe: impl std::os::fd::AsFd) -> u64 {
    rustix::io::ioctl_fionread(pipe).expect("a pipe")
}

/// What is interrupted with its input still open.
fn interrupted(place: &Place, args: &[&str]) -> Output {
    let mut child = spawn(place, args);
    let mut input = child.stdin.take().expect("piped");
    input.write_all(TRACE.as_bytes()).expect("it reads");
    // In the middle of a line, as a buffer that is full ends.
    input.write_all(b"   rl-7   [001] ..").expect("it reads");
    wait_until("the handler", || catches_sigint(&child));
    wait_until("the reader", || unread(&input) == 0);
    // From the read to the queue that the signal comes in as well.
    std::thread::sleep(Duration::from_millis(200));
    send(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    output
}

#[test]
fn a_report_of_an_endless_pipe_ends_at_a_sigint() {
    let place = Place::new();
    let output = interrupted(&place, &["report", "-"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("Direct reclaims"), "{text}{said}");
    assert!(
        said.contains("standard input: SIGINT ended the reading"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    // An export gets its end and its name, too.
    let args = ["export", "-", "--format", "json", "-o", "out.jsonl"];
    let output = interrupted(&place, &args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let exported = std::fs::read_to_string(place.path("out.jsonl")).expect("exported");
    assert_eq!(exported.lines().count(), 2, "{exported}");
}

#[test]
fn a_reader_that_goes_away_ends_an_export_quietly() {
    let place = Place::new();
    place.write("trace.txt", &TRACE.repeat(20_000));
    for format in ["ftrace", "perfetto", "json"] {
        let args = ["export", "trace.txt", "--format", format, "-o", "-", "-q"];
        let mut child = spawn(&place, &args);
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
        assert_eq!(output.status.code(), Some(0), "{format}");
    }
}

#[test]
fn terminals_are_spared_what_is_no_text() {
    let place = Place::new();
    place.write("trace.txt", TRACE);
    let export = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmark"));
        command
            .args(["export", "trace.txt", "--format", format])
            .current_dir(place.path("."));
        on_terminal(command, 80)
    };
    for format in ["perfetto", "trace.dat"] {
        export(format).error(&["is no text, and stdout is a terminal", "--output"]);
    }
    assert!(
        export("ftrace")
            .good()
            .contains("mm_vmscan_direct_reclaim_end")
    );
}

/// Writes so many events that there is time to interrupt it.
const LONG: [&str; 8] = [
    "run",
    "small.toml",
    "--set",
    "order=random",
    "--events",
    "--out",
    "out",
    "--quiet",
];

fn long(place: &Place) -> Child {
    let text = common::SMALL.replace("count = 3000", "count = 200000");
    place.write("small.toml", &text);
    spawn(place, &LONG)
}

/// The hidden directories in `out`.
fn hidden(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("out")).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("readable").path());
    let hidden = |path: &Path| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with('.'))
    };
    paths.filter(|path| hidden(path)).collect()
}

/// Waits until events are being written; the directory of them.
fn writes(place: &Place) -> PathBuf {
    let mut found = PathBuf::new();
    wait_until("the writing", || {
        let half = hidden(place)
            .into_iter()
            .find(|path| path.join("events.jsonl").exists());
        half.map(|path| found = path).is_some()
    });
    found
}

#[test]
fn a_signal_leaves_no_half_recording() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let child = long(&place);
        writes(&place);
        send(&child, signal);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
        assert_eq!(hidden(&place), Vec::<PathBuf>::new());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn what_a_killed_run_left_is_no_recording_and_is_cleared() {
    let place = Place::new();
    let mut child = long(&place);
    let half = writes(&place);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(hidden(&place), [half.as_path()]);
    assert!(!half.join("recording.json").exists());
    let name = half.to_string_lossy();
    for verb in ["compare", "report"] {
        place.lowmark(&[verb, &name]).error(&["recording"]);
    }
    // It is young, and might be another host's: it is named.
    place.write("small.toml", common::SMALL);
    let run = ["run", "small.toml", "--set", "order=seq", "--out", "out"];
    let said = place.lowmark(&run).stderr;
    let process = format!("process {}", child.id());
    assert!(
        said.contains("half written by") && said.contains(&process),
        "{said}"
    );
    assert!(half.exists());
    // Later it can be nobody's.
    let hour = std::time::SystemTime::now() - Duration::from_secs(3600);
    for path in [half.join("events.jsonl"), half.clone()] {
        let file = std::fs::File::open(path).expect("opened");
        file.set_modified(hour).expect("set");
    }
    let said = place.lowmark(&run).stderr;
    assert!(
        said.contains("removed; ") && said.contains(&process),
        "{said}"
    );
    assert!(!half.exists());
}

#[test]
fn several_may_write_to_one_place() {
    let place = Place::new();
    let args = [
        "run",
        "small.toml",
        "--kernel",
        "v3.6",
        "--kernel",
        "v3.14",
        "--out",
        "out",
    ];
    let children: Vec<Child> = (0..6).map(|_| spawn(&place, &args)).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    assert_eq!(hidden(&place), Vec::<PathBuf>::new());
    let recordings = std::fs::read_dir(place.path("out")).expect("made");
    assert_eq!(recordings.count(), 4);
}
