//! The journal of ext3: what it writes and when, which writes that spares, and with every invariant checked while a
//! run goes on.

use crate::common;
use crate::common::checked;
use lowmark_model::{Options, Refusal, run};
use lowmark_spec::Scenario;

/// A workload on a machine with 16 MB whose file system is of a kind, and whose disk is a small solid-state one with
/// `more` said of it.
fn scenario(kernel: &str, kind: &str, more: &str, body: &str) -> Scenario {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "journal"
[machine]
ram = "16M"
cpus = 2
description = "small"
{disk}{more}
[machine.filesystem.data]
kind = "{kind}"
device = "sda"
[kernel]
use = "{kernel}"
sysctl = {{ dirty_ratio = 90, dirty_background_ratio = 80 }}
{body}
"#,
        disk = include_str!("common/small-ssd.toml"),
    );
    common::scenarios(text).remove(0)
}

/// Pages that a file gets.
const PAGES: u64 = 500;

/// A task that writes a file of [`PAGES`] and waits: KiB given to the device by then, pages that are dirty, pages that were
/// written back.
fn after(kernel: &str, kind: &str, wait: &str) -> (u64, u64, u64) {
    let body = format!(
        "[file.out]\nexists = false\n[task.writer]\nrun = [{{ append = \"out\", block = \"4K\", count = {PAGES} }}, \
         {{ sleep = \"{wait}\" }}]\n"
    );
    let recording = checked(&scenario(kernel, kind, "", &body), 50);
    let [out, written] = ["pgpgout", "nr_written"].map(|counter| recording.counters[counter]);
    (out, recording.state["nr_dirty"], written)
}

/// A transaction is committed five seconds after it began, in whole seconds. Flushers look every five seconds for what has
/// been dirty for thirty: they find the pages of ext3 dirty, and nothing to write in them. (From 3.2 on they look sooner, as
/// a device that has written nothing yet has no share of the background threshold.)
#[test]
fn the_journal_writes_data_and_leaves_its_pages_dirty() {
    for kernel in ["v2.6.36", "v3.0"] {
        assert_eq!(after(kernel, "ext3", "4s"), (0, PAGES, 0), "{kernel}");
        assert_eq!(
            after(kernel, "ext3", "8s"),
            (4 * PAGES, PAGES, 0),
            "{kernel}"
        );
        assert_eq!(
            after(kernel, "ext3", "40s"),
            (4 * PAGES, 0, PAGES),
            "{kernel}"
        );
        assert_eq!(after(kernel, "ext4", "8s"), (0, PAGES, 0), "{kernel}");
        assert_eq!(
            after(kernel, "ext4", "40s"),
            (4 * PAGES, 0, PAGES),
            "{kernel}"
        );
    }
}

/// A page that is written again after its commit has something to write again: for the next transaction.
#[test]
fn data_that_changes_belongs_to_the_next_transaction() {
    let body = format!(
        r#"
[file.out]
size = "4K*{PAGES}"
exists = false
[task.writer]
run = [
  {{ append = "out", block = "4K", count = {PAGES} }}, {{ sleep = "8s" }},
  {{ write = "out", block = "4K", count = 100 }}, {{ write = "out", block = "4K", count = 100 }},
  {{ sleep = "8s" }},
]
"#
    );
    let recording = checked(&scenario("v3.0", "ext3", "", &body), 50);
    assert_eq!(recording.counters["pgpgout"], 4 * (PAGES + 100));
    assert_eq!(recording.state["nr_dirty"], PAGES);
}

/// The transaction is committed at 6 s. fsync(2) began to write the page at 5.5 s, for which the disk takes a second, and a task
/// wrote to the page again at 5.7 s: the journal waits for the first write and begins a second one.
#[test]
fn the_journal_waits_for_a_page_that_others_are_writing() {
    let body = r#"
[file.out]
size = "4K"
exists = false
[task.syncer]
run = [{ sleep = "5500ms" }, { fsync = "out" }]
[task.writer]
run = [
  { append = "out", block = "4K", count = 1 }, { sleep = "5700ms" }, { write = "out", block = "4K", count = 1 },
  { sleep = "3s" },
]
"#;
    let mut scenario = scenario("v2.6.36", "ext3", "", body);
    scenario.machine.devices[0].command_write_ns = 1_000_000_000;
    let recording = checked(&scenario, 1);
    assert_eq!(recording.counters["pgpgout"], 4 * 2);
}

/// fsync(2) of one file has the data of all files of the transaction written.
#[test]
fn fsync_waits_for_the_data_of_others() {
    let body = format!(
        r#"
[file.log]
exists = false
[file.out]
exists = false
[task.both]
run = [
  {{ append = "out", block = "4K", count = {PAGES} }}, {{ append = "log", block = "4K", count = 1 }},
  {{ fsync = "log" }},
]
"#
    );
    for (kind, written) in [("ext3", 4 * (PAGES + 1)), ("ext4", 4)] {
        let recording = checked(&scenario("v3.3", kind, "", &body), 50);
        assert_eq!(recording.counters["pgpgout"], written, "{kind}");
        assert_eq!(recording.state["nr_dirty"], PAGES, "{kind}");
    }
}

/// Reclaim of 3.0 writes dirty pages of files. On ext3 that makes pages free that the journal has written, and needs no device
/// for it.
#[test]
fn reclaim_finds_nothing_to_write_where_the_journal_has_written() {
    let body = r#"
[file.out]
exists = false
[file.in]
size = "40M"
[task.main]
run = [
  { append = "out", block = "4K", count = 1800 }, { sleep = "8s" }, { read = "in" },
]
"#;
    for kernel in ["v2.6.36", "v3.0"] {
        let recording = checked(&scenario(kernel, "ext3", "", body), 50);
        let [by_reclaim, out] =
            ["nr_vmscan_write", "pgpgout"].map(|counter| recording.counters[counter]);
        assert!(by_reclaim > 500, "{kernel}: {by_reclaim} pages");
        assert_eq!(out, 4 * 1800, "{kernel}: every page was written once");
    }
}

/// What writers, readers and a task that removes and makes files anew do to pages that a journal is writing, on devices that
/// take everything and on one that does not.
#[test]
fn invariants_hold_while_a_journal_writes() {
    let body = r#"
[fileset.set]
directories = 3
files = 10
size = { uniform = ["1K", "90K"] }
exists = false
[file.shared]
size = "4M"
[task.maker]
run = [{ repeat = 30, do = [{ write = "set" }, { sleep = "400ms" }] }]
[task.remover]
run = [{ sleep = "3s" }, { repeat = 20, do = [{ delete = "set", pick = "random" }, { sleep = "500ms" }] }]
[task.writer]
run = [{ repeat = 10, do = [
  { write = "shared", block = "4K", order = "random", count = 100 }, { sleep = "1s" }, { fsync = "shared" },
] }]
[task.mapper]
run = [
  { map = "m", kind = "file-shared", file = "shared" },
  { repeat = 6, do = [{ touch = "m", access = "write", order = "random", count = 60 }, { sleep = "2s" }] },
]
[task.hog]
run = [
  { sleep = "6s" }, { map = "a", kind = "anon-private", size = "6M" },
  { repeat = 3, do = [{ touch = "a", access = "write" }, { sleep = "1s" }] },
]
"#;
    for kernel in ["v2.6.36", "v3.2", "v3.3", "v3.10", "v4.2"] {
        for more in ["", "write_errors = { count = 40 }\n"] {
            checked(&scenario(kernel, "ext3", more, body), 21);
        }
    }
}

#[test]
fn kernels_without_the_driver_are_refused() {
    let of = |kernel| {
        run(
            &scenario(kernel, "ext3", "", "[task.t]\nrun = [{ sleep = \"1s\" }]\n"),
            &Options::default(),
            &mut |_| {},
        )
    };
    assert!(of("v4.2").is_ok());
    let Err(Refusal::Machine { reason, .. }) = of("v4.3") else {
        panic!("4.3 has no ext3");
    };
    assert!(reason.contains("kind = \"ext4\""), "{reason}");
}
