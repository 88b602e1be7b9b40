//! Workloads on this very system, by the program: what they show, how they end, and that the system is as it was.
//!
//! Where no memory cgroup can be made, what is judged is that lowmark says so and does nothing.

mod common;

use common::{Done, Place};
use lowmark_real::host::cgroups;
use lowmark_real::undo::Places;
use lowmark_record::Recording;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One run at a time is all that lowmark does on a system.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest time that anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine without swap, so that nothing of the whole system need be changed.
const MACHINE: &str = r#"
[machine]
use = "small-512m-ssd"
ram = "64M"
occupied = "4M"
reserved = "4M"
swap = []
"#;

/// Reads a file of 96 MB twice in a machine of 64 MB: what it reads has to go again.
fn reading(more: &str) -> String {
    format!(
        r#"
lowmark = 1

[workload]
name = "reading"
title = "A file that does not fit"
{MACHINE}
[kernel]
use = "v6.18"
{more}
[file.f]
size = "96M"
exists = true

[task.main]
run = [
  {{ sample = "pass", unit = "ms", do = [
    {{ read = "f", block = "128K" }},
  ] }},
  {{ phase = "again" }},
  {{ read = "f", block = "128K" }},
]
"#
    )
}

/// What lowmark may leave, by what names it: cgroup, directories, journals.
fn left_by(pid: u32) -> Vec<PathBuf> {
    let names = [
        format!("lowmark-{pid}"),
        format!("lowmark-{pid}.journal"),
        format!("lowmark-{pid}-run.journal"),
    ];
    let mut places = Places::of_system().0;
    places.extend(cgroups().map(|(_, place)| place));
    places.extend([std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()]);
    let paths = places
        .iter()
        .flat_map(|place| names.iter().map(|name| place.join(name)));
    paths.filter(|path| path.exists()).collect()
}

/// Runs lowmark when nobody else runs a workload on this system: other tests of this project may be at work on it.
fn lowmark(place: &Place, args: &[&str]) -> Done {
    let start = Instant::now();
    loop {
        let done = place.lowmark(args);
        if !done
            .stderr
            .contains("runs a workload on this system already")
        {
            return done;
        }
        assert!(start.elapsed() < PATIENCE, "{}", done.stderr);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether workloads can run here. If not, whether that is what lowmark says.
fn runs(done: &Done) -> bool {
    match cgroups() {
        Ok(_) => true,
        Err(why) => {
            assert_eq!(done.status, 2, "{}", done.stderr);
            assert!(done.stderr.contains(&why), "{}", done.stderr);
            false
        }
    }
}

#[test]
fn a_workload_runs_in_a_cgroup_with_the_memory_of_its_machine() {
    let _alone = alone();
    let place = Place::new();
    place.write("reading.toml", &reading(""));
    let done = lowmark(
        &place,
        &["run", "reading.toml", "--on", "host", "--out", "o", "-q"],
    );
    if !runs(&done) {
        return;
    }
    assert_eq!(done.status, 0, "{}", done.stderr);
    let mut found = std::fs::read_dir(place.path("o")).expect("recordings");
    let path = found.next().expect("one").expect("readable").path();
    assert!(path.to_string_lossy().contains("_host_seed0"), "{path:?}");
    let recording = Recording::read(&path).expect("a recording");
    assert_eq!(recording.run.backend, "host");
    assert_eq!(recording.phases.len(), 1);
    assert_eq!(recording.series[0].samples.len(), 1);
    let main = recording.tasks.iter().find(|task| task.name == "main");
    assert!(main.is_some_and(|task| task.end_ns.is_some()));
    // The file does not fit: the cgroup met its limit, and kept to it. Version 1 says so by the most that it had; since 6.15 it
    // counts failures at the limit of memory alone, and not where the limit of memory and swap is the same.
    let counter = |name: &str| recording.counters.get(name).copied();
    let most = recording.state.get("cgroup/memory.max_usage_in_bytes");
    let met = counter("cgroup/memory.events.max").map(|times| times > 0);
    let met = met.or(most.map(|most| (55 << 20..=56 << 20).contains(most)));
    assert_eq!(met, Some(true), "{most:?}");
    let system = recording.system.as_deref().expect("of a real kernel");
    let limits = system.after.iter().filter(|(name, _)| {
        name.contains("/lowmark-")
            && (name.ends_with("/memory.max") || name.ends_with("/memory.limit_in_bytes"))
    });
    let limits: Vec<&str> = limits.map(|(_, limit)| limit.trim()).collect();
    assert_eq!(
        limits,
        [(56 << 20).to_string()],
        "RAM less occupied and reserved"
    );
    // 96 MB are 24,576 pages, of which each is read twice.
    let read = counter("cgroup/memory.stat.workingset_refault_file").unwrap_or(0);
    assert!(read > 10_000, "{read} pages came back");
}

#[test]
fn nothing_is_left_however_it_ends() {
    if let Err(why) = cgroups() {
        println!("no run begins here: {why}");
    }
    let _alone = alone();
    let place = Place::new();
    let endless = reading("").replace(
        "{ phase = \"again\" },",
        "{ phase = \"again\" }, { sleep = \"300s\" },",
    );
    place.write("endless.toml", &endless);
    let signals = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];
    for (number, signal) in signals.into_iter().cycle().take(12).enumerate() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lowmark"))
            .args(["run", "endless.toml", "--on", "host", "-q"])
            .current_dir(place.path("."))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(1 << number.min(10)));
        let pid = child.id();
        // Where nothing can run it has ended already.
        let _ = kill_process(Pid::from_child(&child), signal);
        child.wait().expect("it ends");
        let start = Instant::now();
        while !left_by(pid).is_empty() {
            assert!(start.elapsed() < PATIENCE, "{signal:?}: {:?}", left_by(pid));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_workload_that_takes_too_long_or_fails_is_an_error_and_leaves_nothing() {
    let _alone = alone();
    let place = Place::new();
    let slow = reading("").replace(
        "{ phase = \"again\" },",
        "{ phase = \"again\" }, { sleep = \"300s\" },",
    );
    place.write("slow.toml", &slow);
    let done = lowmark(
        &place,
        &["run", "slow.toml", "--on", "host", "--timeout", "2", "-q"],
    );
    if !runs(&done) {
        return;
    }
    assert_eq!(done.status, 3, "{}", done.stderr);
    assert!(
        done.stderr.contains("did not end within 2 s"),
        "{}",
        done.stderr
    );
    // One at a time.
    let mut first = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .args(["run", "slow.toml", "--on", "host", "-q"])
        .current_dir(place.path("."))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let start = Instant::now();
    while left_by(first.id()).is_empty() {
        assert!(start.elapsed() < PATIENCE, "waiting for its journal");
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = place.lowmark(&["run", "slow.toml", "--on", "host", "-q"]);
    let whose = format!("process {} runs a workload on this system", first.id());
    second.error(&[&whose]);
    first.kill().expect("killed");
    first.wait().expect("ended");
    while !left_by(first.id()).is_empty() {
        assert!(start.elapsed() < PATIENCE, "waiting for its keeper");
        std::thread::sleep(Duration::from_millis(5));
    }
    let failing = reading("").replace(
        "{ phase = \"again\" },",
        "{ phase = \"again\" }, { delete = \"f\" },",
    );
    place.write("failing.toml", &failing);
    let done = lowmark(&place, &["run", "failing.toml", "--on", "host", "-q"]);
    assert_eq!(done.status, 3, "{}", done.stderr);
    assert!(done.stderr.contains("task main, line"), "{}", done.stderr);
}

#[test]
fn what_changes_the_whole_system_needs_a_word() {
    let _alone = alone();
    let place = Place::new();
    let knob = "/proc/sys/vm/vfs_cache_pressure";
    let before = std::fs::read_to_string(knob).expect("readable");
    let other: u64 = before.trim().parse::<u64>().expect("a number") + 1;
    let settings = format!("sysctl = {{ vfs_cache_pressure = {other} }}");
    place.write("reading.toml", &reading(&settings));
    let run = ["run", "reading.toml", "--on", "host", "-q"];
    let done = lowmark(&place, &run);
    if !runs(&done) {
        return;
    }
    done.error(&[
        &format!(
            "the setting vfs_cache_pressure is {}, not {other}",
            before.trim()
        ),
        "--machine-wide",
    ]);
    let with_word = [&run[..], &["--machine-wide", "--out", "o"]].concat();
    let done = lowmark(&place, &with_word);
    assert_eq!(std::fs::read_to_string(knob).expect("readable"), before);
    // Root in a container may make cgroups and still not change this.
    if done.status != 0 {
        assert!(
            done.stderr.contains("cannot set vfs_cache_pressure"),
            "{}",
            done.stderr
        );
        return;
    }
    let mut found = std::fs::read_dir(place.path("o")).expect("recordings");
    let path = found.next().expect("one").expect("readable").path();
    let recording = Recording::read(&path).expect("a recording");
    let system = recording.system.expect("of a real kernel");
    let during = system.before.get("proc/sys/vm/vfs_cache_pressure");
    assert_eq!(
        during.map(|text| text.trim().to_owned()),
        Some(other.to_string())
    );
}

#[test]
fn what_has_no_meaning_on_this_system_is_an_error() {
    let _alone = alone();
    let place = Place::new();
    place.write("reading.toml", &reading(""));
    let on_host =
        |more: &[&str]| place.lowmark(&[&["run", "reading.toml", "--on", "host"], more].concat());
    on_host(&["--kernel", "v3.6"]).error(&["--kernel v3.6: this system runs v", "--on guest"]);
    on_host(&["--image", "6.18"]).error(&["--image has no meaning for --on host"]);
    let done = place.lowmark(&["run", "reading.toml", "--machine-wide"]);
    done.error(&["--machine-wide has no meaning for the model", "--on host"]);
    let kept = ["--kernel-runs", "nowhere"];
    let done = place.lowmark(&[&["twin", "reading.toml", "--on", "host"], &kept[..]].concat());
    done.error(&["twin --on host: ", "--on guest"]);
    let ends = ["--from", "v6.1", "--to", "v6.18"];
    let done = place.lowmark(&[&["bisect", "reading.toml", "--on", "host"], &ends[..]].concat());
    done.error(&["bisect --on host: ", "--on guest"]);
}
