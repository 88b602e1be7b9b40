//! `lowmark watch`: lines, the screen of a terminal, and that the terminal is as it was afterwards.

mod common;

use common::{Place, SMALL, terminal};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::tcgetattr;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// What leaves the screen that programs have for themselves.
const LEAVES: &str = "\x1b[?1049l";

/// A small workload as a recording with events, in `out`; the name of its directory.
fn recorded(place: &Place) -> String {
    place.write("small.toml", SMALL);
    let args = [
        "run",
        "small.toml",
        "--set",
        "order=seq",
        "--events",
        "--out",
        "out",
    ];
    place.lowmark(&args).good();
    let mut found = std::fs::read_dir(place.path("out")).expect("a directory");
    let run = found.next().expect("a run").expect("read").path();
    run.to_string_lossy().into_owned()
}

fn looks(json: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    json.lines().map(parse).collect()
}

/// Rates times the time that they hold are what the run counted in all.
#[test]
fn lines_add_up_to_the_counters_of_the_run() {
    let place = Place::new();
    let recording = recorded(&place);
    let text = std::fs::read_to_string(format!("{recording}/recording.json")).expect("read");
    let counters: Value = serde_json::from_str(&text).expect("JSON");
    let watched = place
        .lowmark(&["watch", &recording, "--format", "json"])
        .good();
    let run = place
        .lowmark(&[
            "watch",
            "small.toml",
            "--set",
            "order=seq",
            "--format",
            "json",
        ])
        .good();
    assert_eq!(
        watched, run,
        "a workload is run, and then shown like its recording"
    );
    let looks = looks(&watched);
    assert!(looks.len() > 10, "{}", looks.len());
    let time = |look: &Value| look["time_ns"].as_f64().expect("a time");
    for (name, counter) in [
        ("swpout", "pswpout"),
        ("majflt", "pgmajfault"),
        ("swpin", "pswpin"),
    ] {
        let counted = counters["counters"][counter].as_f64().expect("a counter");
        let rate = |look: &Value| look[name].as_f64().expect("a rate");
        let sum: f64 = looks
            .windows(2)
            .map(|pair| rate(&pair[1]) * (time(&pair[1]) - time(&pair[0])) / 1e9)
            .sum();
        // What happens after the last look is in none.
        assert!(
            sum <= counted + 1.0 && sum > 0.9 * counted,
            "{counter}: {sum} of {counted}"
        );
    }
    let says = |look: &Value| look["says"].as_str().expect("a text").to_owned();
    let all: Vec<String> = looks.iter().map(says).collect();
    assert!(all.iter().any(|text| text == "Nothing is reclaimed."));
    assert!(
        all.iter()
            .any(|text| text.contains("reclaim memory themselves"))
    );
    let table = place
        .lowmark(&["watch", &recording, "--every", "1h"])
        .good();
    assert_eq!(table.lines().count(), 2, "{table}");
}

#[test]
fn this_system_is_looked_at() {
    let place = Place::new();
    let args = [
        "watch", "--for", "3s", "--every", "100ms", "--format", "json",
    ];
    let looks = looks(&place.lowmark(&args).good());
    assert!(looks.len() >= 2, "{}", looks.len());
    assert!(looks.iter().all(|look| look["free"].as_u64() > Some(0)));
    assert!(looks.iter().all(|look| look["kscan"].is_number()));
    let lines = place
        .lowmark(&["watch", "--for", "3s", "--every", "100ms"])
        .good();
    assert!(lines.starts_with("       s    free    anon"), "{lines}");
    place
        .lowmark(&["watch", "--cgroup", "/proc"])
        .error(&["memory controller"]);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let place = Place::new();
    let recording = recorded(&place);
    place
        .lowmark(&["watch", &recording, "--kernel", "v6.1"])
        .error(&["--kernel", "recording"]);
    place
        .lowmark(&["watch", "--set", "order=seq"])
        .error(&["--set", "this system"]);
    place
        .lowmark(&["watch", "small.toml"])
        .error(&["runs, and one is watched", "--set"]);
    let args = ["run", "small.toml", "--set", "order=seq", "--out", "bare"];
    place.lowmark(&args).good();
    place
        .lowmark(&["watch", "bare"])
        .error(&["does not say what memory was like", "--events"]);
    place.lowmark(&["watch", "out/.."]).error(&["found none"]);
    place.write("trace.txt", "a trace");
    place
        .lowmark(&["watch", "trace.txt"])
        .error(&["trace.txt", "another file", "lowmark why"]);
}

#[test]
fn it_ends_with_its_reader() {
    let place = Place::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .current_dir(place.path("."))
        .args(["watch", "--every", "20ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a head");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
}

/// Lowmark on a terminal, and our end of it.
fn on_screen(place: &Place, args: &[&str]) -> (Child, File, File) {
    let (ours, theirs) = terminal(120);
    let end = || Stdio::from(theirs.try_clone().expect("another end"));
    let child = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .current_dir(place.path("."))
        .env("TERM", "xterm")
        .args(args)
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    (child, ours, theirs)
}

/// What comes until a text, which is the last that comes.
fn until(ours: &mut File, text: &str) -> String {
    let mut screen = Vec::new();
    let mut some = [0; 4096];
    loop {
        let read = ours.read(&mut some).expect("the terminal is there");
        screen.extend(&some[..read]);
        let so_far = String::from_utf8_lossy(&screen);
        if so_far.contains(text) {
            return so_far.into_owned();
        }
    }
}

/// Starts, waits until the screen is there, does something, and waits for the end. What was shown, and how it ended.
fn shown(
    args: &[&str],
    place: &Place,
    end: impl FnOnce(&Child, &mut File),
) -> (String, ExitStatus) {
    let (mut child, mut ours, theirs) = on_screen(place, args);
    let screen = until(&mut ours, "quits");
    end(&child, &mut ours);
    until(&mut ours, LEAVES);
    let status = child.wait().expect("it ends");
    let modes = tcgetattr(&theirs).expect("modes").local_modes;
    let (_other, fresh) = terminal(120);
    assert_eq!(
        modes,
        tcgetattr(&fresh).expect("modes").local_modes,
        "{args:?}"
    );
    (screen, status)
}

#[test]
fn a_terminal_is_as_it_was_however_it_ends() {
    let place = Place::new();
    let recording = recorded(&place);
    let key = |key: &'static [u8]| {
        move |_: &Child, ours: &mut File| ours.write_all(key).expect("pressed")
    };
    for args in [vec!["watch", recording.as_str()], vec!["watch"]] {
        let (screen, status) = shown(&args, &place, key(b" q"));
        // The screen is empty where words are apart.
        assert!(screen.contains("memory,") && screen.contains("kswapd"));
        assert!(status.success());
        // Ctrl-C is a key there.
        assert!(shown(&args, &place, key(b"\x03")).1.success());
        let signal = |child: &Child, _: &mut File| {
            let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
            kill_process(pid, Signal::TERM).expect("sent");
        };
        let status = shown(&args, &place, signal).1;
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    }
    let (_, status) = shown(&["watch", "--for", "500ms"], &place, |_, _| {});
    assert!(status.success());
}
