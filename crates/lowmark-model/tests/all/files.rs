//! Files through the page cache: against theory, against a naive model of a few lines, and with every
//! invariant checked after every event.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};
use lowmark_spec::Scenario;
use lowmark_spec::random::Stream;
use std::collections::{HashSet, VecDeque};

/// A workload on a machine with 20 MB, an SSD of 2 GB and swap on that.
fn scenarios(kernels: &str, body: &str) -> Vec<Scenario> {
    scenarios_on("20M", kernels, body)
}

fn scenarios_on(ram: &str, kernels: &str, body: &str) -> Vec<Scenario> {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "files"
title = "files"
[machine]
ram = "{ram}"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
swap = {{ device = "sda", start = "1G", size = "64M" }}
filesystem.data = {{ kind = "xfs", device = "sda" }}
filesystem.other = {{ kind = "ext4", device = "sda" }}
[kernel]
use = [{kernels}]
{body}
"#
    );
    common::scenarios(text)
}

fn record(scenario: &Scenario, check: bool) -> Recording {
    let options = Options {
        events: false,
        check_every: u64::from(check),
    };
    let recording = run(scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

fn one(body: &str) -> Recording {
    record(&scenarios("\"v3.6\"", body)[0], false)
}

#[test]
fn a_file_that_fits_is_read_once() {
    let recording = one(r#"
[file.f]
size = "8M"
[task.main]
run = [{ read = "f", block = "64K", passes = 5 }]
"#);
    assert_eq!(recording.counters["pgpgin"], 8 << 10);
    assert_eq!(recording.state["nr_file_pages"], 2048);
    // The second pass marks every page again: all are active then.
    assert_eq!(recording.state["nr_active_file"], 2048);
}

/// A read of 2 MiB, 512 pages, by hand. Up to 4.9 windows have 32 pages: the first two come together, and the mark of each
/// brings the next one, so that the last page wanted brings 32 more than are wanted. From 4.10 on a window has up to 320, as
/// many as a request; to 4.17 two of these at once, later one, whose mark brings another; then a mark 192 pages before the end
/// of the read brings 192 more.
#[test]
fn a_long_read_goes_as_far_as_requests_do() {
    let body = "[file.f]\nsize = \"16M\"\n\
                [task.main]\nrun = [{ read = \"f\", block = \"2M\", count = 1 }]\n";
    let kernels = ["v4.9", "v4.10", "v4.17", "v4.18", "v6.1"];
    let kernels = kernels.map(|kernel| format!("\"{kernel},model.metadata=off\""));
    let kib = scenarios_on("64M", &kernels.join(", "), body)
        .iter()
        .map(|scenario| record(scenario, true).counters["pgpgin"])
        .collect::<Vec<_>>();
    assert_eq!(kib, [544, 832, 832, 832, 832].map(|pages| 4 * pages));
}

#[test]
fn a_file_larger_than_memory_is_read_anew_each_time() {
    let recording = one(r#"
[file.f]
size = "60M"
[task.main]
run = [{ read = "f", block = "128K", passes = 3 }]
"#);
    let kib = recording.counters["pgpgin"];
    assert!(kib > 3 * (60 << 10) * 95 / 100, "{kib} KiB");
    assert_eq!(
        recording.counters["pgdeactivate"], 0,
        "nothing is used twice"
    );
}

#[test]
fn holes_are_read_without_the_device() {
    let recording = one(r#"
[file.f]
kind = "sparse"
size = "80M"
unlinked = true
[task.main]
run = [
  { map = "m", kind = "file-shared", file = "f", advice = "random" },
  { touch = "m", access = "read" },
]
"#);
    assert_eq!(recording.counters["pgpgin"], 0);
    assert_eq!(recording.counters["pgmajfault"], 80 << 8);
    assert_eq!(recording.state["nr_file_pages"], 0, "the file is gone");
    // Two-pass law: a mapped page that was touched once is scanned twice before it is free.
    let sum = |prefix| -> u64 {
        let counters = recording.counters.iter();
        let own = counters.filter(|(name, _)| name.starts_with(prefix));
        own.map(|(_, count)| count).sum()
    };
    let (scanned, freed) = (sum("pgscan_"), sum("pgsteal_"));
    assert!(
        scanned > freed * 19 / 10 && scanned < freed * 12 / 5,
        "{scanned} {freed}"
    );
}

/// Two lists of which the second holds what was used twice, and is shrunk when it is the longer one.
fn two_lists(frames: usize, reads: impl Iterator<Item = u64>) -> u64 {
    let (mut inactive, mut active) = (VecDeque::new(), VecDeque::new());
    let (mut marked, mut promoted, mut misses) = (HashSet::new(), HashSet::new(), 0);
    for page in reads {
        if promoted.contains(&page) {
            continue;
        }
        if inactive.contains(&page) {
            if !marked.insert(page) {
                inactive.retain(|&other| other != page);
                active.push_back(page);
                promoted.insert(page);
            }
            continue;
        }
        misses += 1;
        while inactive.len() + active.len() >= frames {
            if active.len() > inactive.len()
                && let Some(old) = active.pop_front()
            {
                promoted.remove(&old);
                inactive.push_back(old);
                marked.insert(old);
            }
            if let Some(old) = inactive.pop_front() {
                marked.remove(&old);
            }
        }
        inactive.push_back(page);
        marked.insert(page);
    }
    misses
}

#[test]
fn random_reads_miss_as_with_two_naive_lists() {
    let reads = 60_000u64;
    // Files of one page, so that nothing is read ahead; their dentries and inodes would need half of the memory.
    let body = r#"
[fileset.s]
files = 10240
size = "4K"
[task.reader]
run = [{ repeat = 60000, do = [{ read = "s", pick = "random" }] }]
"#;
    let recording = record(&scenarios("\"v3.6,model.shrinkers=off\"", body)[0], false);
    let mut stream = Stream::new(0, "reader", 0);
    // What kswapd keeps free and what tasks need is not for pages of files.
    let frames = 5120 - 400;
    let naive = two_lists(frames, (0..reads).map(|_| stream.below(10_240)));
    let misses = recording.counters["pgpgin"] / 4;
    assert!(
        misses.abs_diff(naive) * 100 < naive * 8,
        "{misses} misses, naive {naive}"
    );
}

#[test]
fn what_is_written_arrives() {
    for kernel in ["\"v3.2\"", "\"v3.10\"", "\"v4.12,model.metadata=off\""] {
        let body = r#"
[file.out]
copies = 2
exists = false
[task.writer]
processes = 2
run = [{ append = "out$idx", block = "100K", count = 300 }, { fsync = "out$idx" }]
"#;
        let recording = record(&scenarios(kernel, body)[0], false);
        let (dirtied, written) = (
            recording.counters["nr_dirtied"],
            recording.counters["nr_written"],
        );
        let pages = 2 * 30_000 / 4;
        assert!(written >= pages, "{kernel}: {written} of {pages} pages");
        assert_eq!(dirtied, written, "{kernel}");
        assert_eq!(
            recording.state["nr_dirty"] + recording.state["nr_writeback"],
            0
        );
        assert_eq!(recording.counters["sda/sectors_written"], written * 8);
    }
}

#[test]
fn what_is_deleted_before_its_time_is_never_written() {
    let recording = one(r#"
[file.out]
exists = false
[task.writer]
run = [{ append = "out", block = "4K", count = 100 }, { delete = "out" }]
"#);
    assert_eq!(recording.counters["nr_dirtied"], 100);
    assert_eq!(recording.counters["nr_written"], 0);
    assert_eq!(recording.state["nr_file_pages"], 0);
}

/// Pages written some time after a writer has dirtied `pages` of them.
fn written_after(kernel: &str, pages: u64, time: &str) -> u64 {
    let body = format!(
        r#"
[file.out]
exists = false
[task.writer]
run = [{{ append = "out", block = "4K", count = {pages} }}, {{ sleep = "{time}" }}]
"#
    );
    record(&scenarios(kernel, &body)[0], false).counters["nr_written"]
}

/// Nothing is allocated ahead of a file that nobody has open, so that the next one lies behind it.
#[test]
fn files_that_are_closed_lie_side_by_side() {
    for fs in ["data", "other"] {
        let recording = one(&format!(
            r#"
[fileset.s]
files = 64
size = "64K"
fs = "{fs}"
exists = false
[task.writer]
run = [{{ repeat = 64, do = [{{ write = "s" }}] }}, {{ sync = true }}]
"#
        ));
        assert_eq!(recording.counters["sda/sectors_written"], 64 * 128);
        let seeks = recording.counters["sda/write_seeks"];
        assert!(seeks <= 4, "{fs}: {seeks}");
    }
}

#[test]
fn old_pages_are_written_after_half_a_minute() {
    assert_eq!(written_after("\"v3.1\"", 100, "29s"), 0);
    assert_eq!(written_after("\"v3.1\"", 100, "36s"), 100);
}

/// From 3.2 on a device that has written nothing, from 3.6 on of late, has no share of the background threshold either,
/// so that whatever is dirty is above it when the flusher wakes after 5 s; 6.14 gives it an eighth.
#[test]
fn an_idle_device_writes_its_first_pages_early() {
    assert_eq!(written_after("\"v3.5\"", 40, "6s"), 40);
    assert_eq!(written_after("\"v3.6\"", 40, "4s"), 0);
    assert_eq!(written_after("\"v3.6\"", 40, "6s"), 40);
    assert_eq!(written_after("\"v6.12\"", 40, "6s"), 40);
    assert_eq!(written_after("\"v6.14\"", 40, "29s"), 0);
    assert_eq!(written_after("\"v6.14\"", 40, "36s"), 40);
}

#[test]
fn a_private_mapping_keeps_its_stores_to_itself() {
    let recording = one(r#"
[file.f]
size = "4M"
[task.main]
run = [
  { map = "p", kind = "file-private", file = "f" },
  { touch = "p", access = "write" },
]
"#);
    assert_eq!(recording.counters["nr_dirtied"], 0);
    assert_eq!(recording.counters["pgpgin"], 4 << 10);
    assert_eq!(recording.counters["pgfault"], 1024);
}

#[test]
fn fault_around_saves_faults() {
    let body = r#"
[file.f]
size = "4M"
[task.main]
run = [
  { read = "f" },
  { map = "m", kind = "file-shared", file = "f" },
  { touch = "m", access = "read" },
]
"#;
    let faults = |kernel: &str| record(&scenarios(kernel, body)[0], false).counters["pgfault"];
    assert_eq!(faults("\"v3.14\""), 1024);
    assert_eq!(faults("\"v3.15\""), 1024 / 16);
}

/// Everything at once, on every kind of kernel, small enough to be checked after every event.
#[test]
fn invariants_hold_with_files() {
    let body = r#"
[file.f]
size = "8M"
fs = "other"
[file.out]
copies = 3
exists = false
[fileset.s]
directories = 2
files = 6
size = { uniform = ["1K", "200K"] }
exists = false
[barrier.touched]
parties = 2
[task.main]
processes = 2
run = [
  { map = "a", kind = "anon-private", size = "3M" },
  { touch = "a", access = "write" },
  { read = "f", block = "12K", order = "random", count = 50 },
  { map = "m", kind = "file-shared", file = "f" },
  { touch = "m", access = "write", order = "random", count = 100 },
  { append = "out$idx", block = "300K", count = 6 },
  { repeat = 8, do = [{ write = "s", block = "10K" }] },
  { fsync = "out$idx" },
  { truncate = "out$idx", size = "100K" },
  { map = "p", kind = "file-private", file = "f" },
  { touch = "p", access = "write", order = "random", count = 60 },
  { touch = "p", access = "read", order = "random", count = 100 },
  { append = "out$idx", block = "3333", count = 40 },
  { barrier = "touched" },
  { truncate = "f", size = "6M" },
  { repeat = 3, do = [{ delete = "s" }] },
  { write = "out2", block = "5K", order = "random", count = 15, sync = true },
  { sync = true },
  { drop_caches = 1 },
  { delete = "out$idx" },
]
"#;
    let kernels =
        r#""v3.2", "v3.2+throttle=foreground", "v3.2+throttle=io-less", "v3.6", "v3.13", "v4.12""#;
    for scenario in scenarios_on("7M", kernels, body) {
        let recording = record(&scenario, true);
        assert_eq!(
            recording.state["nr_writeback"], 0,
            "{}",
            scenario.kernel.text
        );
    }
}

/// Up to 4.6 the second write to a page activates it (bbddabe2e436); guests of 6.18 that write a file twice count single
/// activations.
#[test]
fn writes_activate_pages_up_to_4_6() {
    let body = r#"
[file.f]
size = "4M"
exists = true
kind = "random"
[task.writer]
run = [{ write = "f", block = "4K" }, { write = "f", block = "4K" }]
"#;
    let activated = |kernel: &str| {
        let scenario = &scenarios(&format!("\"{kernel}\""), body)[0];
        record(scenario, false).counters["pgactivate"]
    };
    for kernel in ["v3.6", "v4.6", "v6.18-writes-do-not-activate"] {
        assert_eq!(activated(kernel), 1024, "{kernel}");
    }
    for kernel in ["v4.7", "v6.1", "v6.18", "v4.6+writes-do-not-activate"] {
        assert_eq!(activated(kernel), 0, "{kernel}");
    }
}

/// `rchar` and `wchar` of `/proc/PID/io`, from the page cache or not; loads and stores are none.
#[test]
fn bytes_of_system_calls_are_counted() {
    let recording = one(r#"
[file.f]
size = "1M"
[file.out]
exists = false
size = "512K"
[task.main]
run = [
  { read = "f", block = "64K", passes = 3 },
  { write = "out", block = "10K" },
  { map = "m", kind = "file-shared", file = "f" },
  { touch = "m", access = "read" },
]
"#);
    assert_eq!(recording.counters["io/rchar"], 3 << 20);
    assert_eq!(recording.counters["io/wchar"], 512 << 10);
}
