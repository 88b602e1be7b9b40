//! Devices that do not take what is written to them: who is told, how often, and that every page that was
//! ever dirty is on the device, dirty, given up with its file, or counted as lost. Metadata, whose writes fail as well, is left
//! out where pages are counted (`metadata.rs`).

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// A run on a machine with 12 MB whose disk fails as `errors` says, with all invariants checked.
fn record(kernel: &str, errors: &str, body: &str) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "errors"
[machine]
ram = "12M"
cpus = 2
description = "small"
{disk}write_errors = {errors}
[machine.filesystem.data]
kind = "ext4"
device = "sda"
[kernel]
use = "{kernel},model.metadata=off"
{body}
"#,
        disk = include_str!("common/small-ssd.toml"),
    );
    let options = Options {
        events: false,
        check_every: 1,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// A writer and its fsync calls.
fn writer(calls: &str) -> String {
    format!(
        "[file.out]\nexists = false\n[task.writer]\nrun = [{{ append = \"out\", block = \"64K\" }}, {calls}]\n"
    )
}

const FSYNC: &str = "{ fsync = \"out\" }";

#[test]
fn fsync_tells_of_an_error_once() {
    for kernel in ["v3.2", "v4.12", "v4.13", "v4.17", "v6.18"] {
        let calls = [FSYNC; 3].join(", ");
        let recording = record(kernel, "{ count = 1 }", &writer(&calls));
        assert_eq!(recording.counters["fsync_eio"], 1, "{kernel}");
        assert_eq!(recording.counters["sda/write_errors"], 1, "{kernel}");
        assert_eq!(recording.counters["pages_lost"], 16, "{kernel}");
        assert_eq!(
            recording.state["nr_dirty"], 0,
            "{kernel}: what is lost is clean"
        );
    }
}

#[test]
fn a_device_that_is_well_loses_nothing() {
    let recording = record("v6.18", "{ start = \"1G\" }", &writer(FSYNC));
    let [eio, failed, lost] =
        ["fsync_eio", "sda/write_errors", "pages_lost"].map(|counter| recording.counters[counter]);
    assert_eq!((eio, failed, lost), (0, 0, 0));
}

/// The flusher meets the error; two tasks that have the file open ask for it later, and one that opens it then.
fn three_ask(kernel: &str) -> u64 {
    let body = r#"
[file.out]
size = "64K"
[task.one]
run = [{ sleep = "1s" }, { write = "out", block = "64K" }, { sleep = "60s" }, { fsync = "out" }]
[task.two]
run = [{ read = "out", count = 1 }, { sleep = "60s" }, { fsync = "out" }]
[task.three]
run = [{ sleep = "70s" }, { fsync = "out" }]
"#;
    record(kernel, "{ count = 1 }", body).counters["fsync_eio"]
}

#[test]
fn who_is_told_depends_on_the_kernel() {
    assert_eq!(three_ask("v4.12"), 1, "whoever asks first");
    assert_eq!(three_ask("v4.13"), 2, "every file that was open");
    assert_eq!(
        three_ask("v6.18"),
        2,
        "the third comes after the others were told"
    );
}

/// Nobody has the file open when it goes wrong; who opens it then is told from 4.17 on, and by the flag of
/// earlier kernels.
#[test]
fn a_file_opened_after_its_error() {
    let body = r#"
[file.out]
exists = false
[task.one]
run = [{ append = "out", block = "64K" }]
[task.late]
run = [{ sleep = "60s" }, { fsync = "out" }, { fsync = "out" }]
"#;
    let told = |kernel| record(kernel, "{ count = 1 }", body).counters["fsync_eio"];
    assert_eq!((told("v4.12"), told("v4.14"), told("v4.17")), (1, 0, 1));
}

/// sync(2) returns no errors; up to 4.3 it takes those away that others should have been told of.
#[test]
fn sync_may_swallow_an_error() {
    let calls = format!("{{ sync = true }}, {FSYNC}");
    let told = |kernel| record(kernel, "{ count = 1 }", &writer(&calls)).counters["fsync_eio"];
    assert_eq!((told("v4.2"), told("v4.4"), told("v6.18")), (0, 1, 1));
}

#[test]
fn o_sync_writes_are_told_each_for_itself() {
    let body = "[file.out]\nexists = false\n[task.writer]\nrun = [{ append = \"out\", block = \"64K\", count = 10, sync = true }]\n";
    let recording = record("v6.18", "{ every = 2 }", body);
    assert_eq!(recording.counters["fsync_eio"], 5);
    assert_eq!(recording.counters["pages_lost"], 5 * 16);
}

/// Every page that became dirty is accounted for, whatever happens to files and tasks meanwhile.
#[test]
fn nothing_is_lost_without_being_counted() {
    let bodies = [
        // Truncated and deleted while they are written.
        r#"
[file.out]
exists = false
copies = 3
[task.writer]
processes = 3
run = [{ repeat = 2, do = [
  { append = "out$idx", block = "64K", count = 10 }, { sync_range = "out$idx", length = "400K" }, { truncate = "out$idx", size = "100K" },
  { append = "out$idx", block = "64K", count = 6 }, { delete = "out$idx" },
] }]
"#,
        // Written here and there, and again while they are on their way.
        r#"
[file.out]
size = "4M"
[task.writer]
processes = 2
run = [{ write = "out", block = "4K", order = "random", count = 700 }, { fsync = "out" }]
"#,
        // Killed in the middle.
        r#"
[file.out]
exists = false
copies = 4
[task.writer]
processes = 4
run = [{ repeat = "forever", do = [{ append = "out$idx", block = "128K" }, { fsync = "out$idx" }] }]
[task.killer]
run = [{ sleep = "30ms" }, { kill = "writer" }, { sync = true }]
"#,
        // Mapped, and evicted for want of memory.
        r#"
[file.out]
size = "14M"
[task.writer]
run = [{ map = "m", kind = "file-shared", file = "out" }, { touch = "m", access = "write", order = "random", count = 1500 }]
"#,
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        for kernel in ["v3.2", "v4.12", "v6.18"] {
            let recording = record(kernel, "{ after = \"200K\", every = 3 }", body);
            let counter = |name: &str| recording.counters[name];
            let label = format!("body {number} on {kernel}");
            assert!(counter("sda/write_errors") > 0, "{label}");
            assert!(counter("pages_lost") > 0, "{label}");
            // What is under writeback at the end waits for the device, or is with it.
            let done = counter("nr_written");
            let begun = done + recording.state["nr_writeback"];
            let pages = counter("sda/sectors_written") / 8;
            assert!(
                (done..=begun).contains(&pages),
                "{label}: {done} {pages} {begun}"
            );
        }
    }
}

/// Swap that cannot be written keeps its pages in memory.
#[test]
fn pages_that_swap_does_not_take_stay() {
    let text = r#"
[task.toucher]
run = [{ map = "m", kind = "anon-private", size = "14M" }, { touch = "m", access = "write", passes = 2 }]
[machine.swap]
device = "sda"
start = "1G"
size = "512M"
"#;
    let recording = record("v6.18", "{ every = 4 }", text);
    assert!(recording.counters["sda/write_errors"] > 0);
    assert_eq!(recording.counters["pages_lost"], 0);
}
