//! Memory cgroups: who reclaims from whom, against what their limits say.

use crate::common;
use lowmark_model::{Options, Refusal, check, run};
use lowmark_record::{Kind, Outcome, Recording};
use lowmark_spec::Scenario;

/// A workload on a machine with 64 MB, of which the kernel itself needs little, and an SSD.
fn scenario(kernel: &str, body: &str) -> Scenario {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "memcg"
title = "memcg"
[machine]
ram = "64M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
swap = {{ device = "sda", start = "1G", size = "128M" }}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = "{kernel}"
{body}
"#
    );
    common::scenarios(text).remove(0)
}

/// Runs with every invariant checked after every event.
fn record(kernel: &str, body: &str) -> Recording {
    record_with(kernel, body, true)
}

fn record_with(kernel: &str, body: &str, check: bool) -> Recording {
    let options = Options {
        events: true,
        check_every: u64::from(check),
    };
    let recording = run(&scenario(kernel, body), &options, &mut |_| {}).expect("it can run");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// 12 MB in a group of 8 MB, and 24 MB outside.
const SMALL_GROUP: &str = r#"
[cgroup.box]
max = "8M"
[barrier.filled]
[task.outside]
run = [
  { map = "m", kind = "anon-private", size = "24M" },
  { touch = "m", access = "write" },
  { barrier = "filled" },
]
[task.inside]
cgroup = "box"
run = [
  { barrier = "filled" },
  { map = "m", kind = "anon-private", size = "12M" },
  { touch = "m", access = "write", passes = 2 },
]
"#;

/// What reclaim writes for a window of readahead from 6.13 on may wait in the plug until nothing is left that could be
/// reclaimed. Debian's 6.18.15 kills such a group too, with 12 MB gone through eight times beside 100 MB outside.
#[test]
fn a_plug_may_hold_all_of_a_small_group() {
    let outcome = |kernel: &str| {
        let recording = run(
            &scenario(kernel, SMALL_GROUP),
            &Options::default(),
            &mut |_| {},
        );
        recording.expect("it can run").outcome
    };
    assert!(matches!(outcome("v6.18"), Outcome::OutOfMemory { .. }));
    assert_eq!(
        outcome("v6.18+plug_flush=more-requests"),
        Outcome::Completed
    );
}

#[test]
fn a_group_at_its_limit_reclaims_from_itself_alone() {
    for kernel in [
        "v4.13",
        "v4.18",
        "v5.4",
        "v5.10",
        "v6.1",
        "v6.12",
        "v6.18+plug_flush=more-requests",
    ] {
        let recording = record(kernel, SMALL_GROUP);
        let counter = |name: &str| recording.counters[name];
        // 12 MB go through 8 MB: what does not fit is written, and nothing of the 24 MB outside is.
        assert!(counter("pswpout") >= 1024, "{kernel}");
        assert!(counter("pgmajfault") > 0 && counter("pgmajfault") <= 3072);
        assert!(counter("cgroup/box/memory.events.max") > 0);
        // Memory as such is not short.
        for global in ["pgscan_kswapd", "pgscan_direct", "pgsteal_direct"] {
            assert_eq!(counter(global), 0, "{kernel}: {global}");
        }
        let stalls = recording.counters.iter();
        let stalls = stalls.filter(|(name, _)| name.starts_with("allocstall"));
        assert_eq!(stalls.map(|(_, count)| count).sum::<u64>(), 0);
        let anon = |name: &str| recording.counters.get(name).copied();
        // The split by kind came with 5.8.
        if let Some((steal, scan)) = anon("pgsteal_anon").zip(anon("pgscan_anon")) {
            assert!(steal > 0 && steal <= scan, "{kernel}");
        }
        let events = |kind| recording.events.iter().filter(|e| e.kind == kind).count() as u64;
        assert_eq!(events(Kind::DirectReclaimBegin), 0);
        assert_eq!(
            events(Kind::MemcgReclaimBegin),
            counter("cgroup/box/memory.events.max")
        );
        assert_eq!(
            events(Kind::MemcgReclaimBegin),
            events(Kind::MemcgReclaimEnd)
        );
    }
}

/// Up to 5.7 a page that is read from swap is nobody's until a task maps it: reading ahead all that a group has in swap charges
/// nothing, though the group is full. From 5.8 on each page has to have room in the group.
#[test]
fn pages_read_from_swap_are_charged_when_they_are_mapped_or_before_they_are_read() {
    let met_limit = |kernel: &str, more: &str| {
        let body = format!(
            r#"
[cgroup.box]
max = "8M"
[task.inside]
cgroup = "box"
run = [
  {{ map = "m", kind = "anon-private", size = "12M" }},
  {{ touch = "m", access = "write" }},
  {more}
]
"#
        );
        let recording = record(kernel, &body);
        let read = recording.counters["pswpin"];
        (read, recording.counters["cgroup/box/memory.events.max"])
    };
    let read_ahead = r#"{ advise = "m", advice = "willneed" },"#;
    let map = r#"{ touch = "m", access = "read" },"#;
    for (kernel, at_once) in [("v5.7", false), ("v5.8", true)] {
        let (none, filled) = met_limit(kernel, "");
        let (read, ahead) = met_limit(kernel, read_ahead);
        assert!(none == 0 && read >= 1024, "{kernel}: {read}");
        assert_eq!(ahead > filled, at_once, "{kernel}: {filled}, {ahead}");
        let (_, mapped) = met_limit(kernel, &format!("{read_ahead}{map}"));
        assert!(mapped > filled, "{kernel}: {mapped}");
    }
}

#[test]
fn a_group_below_its_limit_is_left_alone() {
    let body = |group: &str| {
        format!(
            r#"
{group}
run = [
  {{ map = "m", kind = "anon-shared", size = "10M" }},
  {{ touch = "m", access = "write", passes = 2 }},
]
"#
        )
    };
    let free = record("v6.1", &body("[task.main]"));
    let boxed = record(
        "v6.1",
        &body("[cgroup.box]\nmax = \"11M\"\n[task.main]\ncgroup = \"box\""),
    );
    assert_eq!(boxed.counters["cgroup/box/memory.events.max"], 0);
    assert_eq!(free.elapsed_ns, boxed.elapsed_ns);
    for (name, value) in &free.counters {
        assert_eq!(*value, boxed.counters[name], "{name}");
    }
}

#[test]
fn page_tables_are_charged_to_who_touches() {
    let written = |limit: &str| {
        let body = format!(
            r#"
[cgroup.box]
max = "{limit}"
[task.main]
cgroup = "box"
run = [
  {{ map = "m", kind = "anon-private", size = "2G" }},
  {{ touch = "m", access = "write", step = "2M" }},
]
"#
        );
        record("v6.1,overcommit_memory=1", &body).counters["pswpout"]
    };
    // 4 MB of pages, and a table for each.
    assert_eq!(written("9M"), 0);
    assert!(written("7M") > 0);
}

#[test]
fn pages_of_files_are_charged_to_who_reads_them() {
    let recording = record(
        "v6.1",
        r#"
[file.f]
size = "24M"
[cgroup.box]
max = "6M"
[task.main]
cgroup = "box"
run = [{ read = "f", block = "64K", passes = 2 }]
"#,
    );
    let cached = recording.state["nr_file_pages"];
    assert!(cached <= (6 << 8), "{cached} pages");
    assert!(cached > (5 << 8), "{cached} pages");
    assert!(recording.counters["pgsteal_file"] >= 2 * (24 << 8) - (6 << 8));
}

#[test]
fn beyond_memory_high_a_task_reclaims_and_is_slowed_down() {
    let body = |limit: &str| {
        format!(
            r#"
[cgroup.box]
{limit}
[task.main]
cgroup = "box"
run = [
  {{ map = "m", kind = "anon-private", size = "16M" }},
  {{ touch = "m", access = "write", passes = 2 }},
]
"#
        )
    };
    let high = record("v6.1", &body("high = \"8M\""));
    assert!(high.counters["cgroup/box/memory.events.high"] > 0);
    assert_eq!(high.counters["cgroup/box/memory.events.max"], 0);
    assert!(high.counters["pswpout"] > 0);
    let free = record("v6.1", &body("max = \"32M\""));
    assert_eq!(free.counters["pswpout"], 0);
    assert!(high.elapsed_ns > free.elapsed_ns);
}

/// One read(2) of four times `memory.high`: up to 5.17 the task reclaims once, on its way out of the kernel; from 5.18 on again and
/// again while it reads.
#[test]
fn a_task_far_beyond_memory_high_reclaims_at_once_from_5_18_on() {
    let reclaims = |kernel: &str| {
        let recording = record(
            kernel,
            r#"
[cgroup.box]
high = "2M"
[file.f]
size = "8M"
[task.main]
cgroup = "box"
run = [{ read = "f", block = "8M" }]
"#,
        );
        recording.counters["cgroup/box/memory.events.high"]
    };
    assert_eq!(reclaims("v5.17"), 1);
    for kernel in ["v5.18", "v6.1"] {
        assert!(reclaims(kernel) > 5, "{kernel}");
    }
}

/// Two groups share what there is when memory itself is short: both are scanned.
#[test]
fn when_memory_is_short_all_groups_are_scanned() {
    let recording = record_with(
        "v6.1",
        r#"
[cgroup.one]
max = "60M"
[cgroup.two]
max = "60M"
[task.a]
cgroup = "one"
run = [
  { map = "m", kind = "anon-private", size = "40M" },
  { touch = "m", access = "write", passes = 2 },
]
[task.b]
cgroup = "two"
run = [
  { map = "m", kind = "anon-private", size = "40M" },
  { touch = "m", access = "write", passes = 2 },
]
"#,
        false,
    );
    for group in ["one", "two"] {
        let key = format!("cgroup/{group}/memory.events.max");
        assert_eq!(recording.counters[&key], 0);
    }
    assert!(recording.counters["pgscan_kswapd"] > 0);
    assert!(recording.counters["pswpin"] > 0);
}

#[test]
fn a_group_that_cannot_reclaim_runs_out_of_memory() {
    let mut scenario = scenario(
        "v6.1",
        r#"
[cgroup.box]
max = "4M"
[task.main]
cgroup = "box"
run = [
  { map = "m", kind = "anon-private", size = "8M" },
  { touch = "m", access = "write" },
]
"#,
    );
    scenario.machine.swap.clear();
    let options = Options::default();
    let recording = run(&scenario, &options, &mut |_| {}).expect("it can begin");
    assert!(matches!(recording.outcome, Outcome::OutOfMemory { .. }));
}

/// Writers in a group and outside, each also to the other's file, one of which is cut short: every dirty page counts
/// for the group that it is charged to and for the flusher of its file, until it is written or given up.
#[test]
fn dirty_pages_of_groups_are_counted_until_they_are_written() {
    for kernel in ["v6.1", "v6.18", "v6.18+cgroup_writeback=off"] {
        let recording = record(
            kernel,
            r#"
[cgroup.box]
max = "6M"
[barrier.shared]
[file.a]
exists = false
[file.b]
exists = false
[task.outside]
run = [
  { append = "a", block = "64K", count = 16 },
  { barrier = "shared" },
  { append = "b", block = "64K", count = 64 },
  { fsync = "b" },
]
[task.inside]
cgroup = "box"
run = [
  { append = "b", block = "64K", count = 64 },
  { barrier = "shared" },
  { append = "a", block = "64K", count = 64 },
  { truncate = "a" },
  { append = "a", block = "64K", count = 16 },
]
"#,
        );
        let [dirtied, written] = ["nr_dirtied", "nr_written"].map(|name| recording.counters[name]);
        assert!(dirtied >= (64 + 64) * 16 && written >= 64 * 16, "{kernel}");
    }
}

#[test]
fn kernels_whose_groups_the_model_lacks_are_refused() {
    let body =
        "[cgroup.box]\nmax = \"4M\"\n[task.main]\ncgroup = \"box\"\nrun = [{ sleep = \"1s\" }]";
    let refusal = check(&scenario("v4.4", body)).expect_err("too old");
    assert!(matches!(refusal, Refusal::Cgroup { .. }), "{refusal}");
    let text = refusal.to_string();
    assert!(
        text.contains("box") && text.contains("v4.4") && text.contains("v4.13"),
        "{text}"
    );
}
