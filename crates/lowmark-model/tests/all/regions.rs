//! Statements about parts of a region: what they leave in memory, on every kernel, with every invariant checked.

use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};
use std::collections::BTreeMap;

/// A workload on a machine with 64 MB and swap.
fn workload(kernel: &str, body: &str) -> String {
    format!(
        r#"
lowmark = 1
[workload]
name = "regions"
[machine]
ram = "64M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
swap = {{ device = "sda", start = "1G", size = "256M" }}
filesystem.data = {{ kind = "xfs", device = "sda" }}
[kernel]
use = "{kernel}"
[file.data]
kind = "random"
size = "16M"
{body}
"#
    )
}

fn record(kernel: &str, body: &str) -> Recording {
    let scenarios = crate::common::scenarios(workload(kernel, body));
    let options = Options {
        events: true,
        check_every: 499,
    };
    run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it")
}

/// What `/proc/vmstat` says behind each phase of a run that ends well.
fn at_phases(kernel: &str, body: &str) -> Vec<BTreeMap<String, u64>> {
    let recording = record(kernel, body);
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    let gauges = &recording.gauges;
    let states = recording.phases.iter().map(|phase| {
        let sample = gauges.samples.iter().find(|(at, _)| *at > phase.time_ns);
        let (_, values) = sample.expect("a phase is followed by several sleeps");
        gauges
            .names
            .iter()
            .cloned()
            .zip(values.iter().copied())
            .collect()
    });
    states.collect()
}

const KERNELS: [&str; 4] = ["v2.6.38", "v4.4", "v6.1", "v6.18"];

#[test]
fn what_is_unmapped_is_free_and_the_rest_stays() {
    for kernel in KERNELS {
        let states = at_phases(
            kernel,
            r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "16M" },
  { touch = "m", access = "write" },
  { phase = "all" }, { repeat = 4, do = [{ sleep = "2ms" }] },
  { unmap = "m", length = "1M", every = "2M" },
  { phase = "half" }, { repeat = 4, do = [{ sleep = "2ms" }] },
  { repeat = 8, index = "i", do = [{ touch = "m", access = "verify", offset = "i*2M + 1M", length = "1M" }] },
  { unmap = "m", offset = "1M", length = "1M", every = "2M" },
  { phase = "none" }, { repeat = 4, do = [{ sleep = "2ms" }] },
]
"#,
        );
        let anon = |at: usize| {
            let of = |name| states[at].get(name).copied().unwrap_or(0);
            of("nr_active_anon") + of("nr_inactive_anon")
        };
        assert_eq!([anon(0), anon(1), anon(2)], [4096, 2048, 0], "{kernel}");
    }
}

#[test]
fn a_touch_of_a_hole_is_named_with_its_line() {
    for kind in ["anon-private", "anon-shared"] {
        let body = format!(
            r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "1M" }},
  {{ touch = "m", access = "write" }},
  {{ unmap = "m", offset = "64K", length = "4K" }},
  {{ touch = "m", access = "write", length = "64K" }},
  {{ touch = "m", access = "read", offset = "68K" }},
  {{ touch = "m", access = "read" }},
]
"#
        );
        let recording = record("v4.4", &body);
        let Outcome::Failed {
            line,
            verdict: problem,
            ..
        } = &recording.outcome
        else {
            panic!("{:?}", recording.outcome);
        };
        let text = workload("v4.4", &body);
        let hole = text
            .lines()
            .position(|line| line.contains("access = \"read\" }"));
        assert_eq!(Some(*line as usize), hole.map(|at| at + 1));
        assert_eq!(problem, "touch: the page was unmapped (SIGSEGV)");
    }
}

/// Private memory is zero after MADV_DONTNEED, that is: it faults again. What is shared stays in memory and is mapped
/// again.
#[test]
fn dontneed_drops_private_pages_alone() {
    for kernel in KERNELS {
        for (kind, kept) in [("anon-private", 0), ("anon-shared", 1024)] {
            let body = format!(
                r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "8M" }},
  {{ touch = "m", access = "write" }},
  {{ advise = "m", advice = "dontneed", offset = "4M" }},
  {{ phase = "dropped" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
  {{ touch = "m", access = "write" }},
  {{ phase = "again" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
]
"#
            );
            let states = at_phases(kernel, &body);
            let anon = |at: usize| states[at]["nr_active_anon"] + states[at]["nr_inactive_anon"];
            assert_eq!([anon(0), anon(1)], [1024 + kept, 2048], "{kernel} {kind}");
            let faults = record(kernel, &body).counters["pgfault"];
            assert_eq!(faults, 2048 + 1024, "{kernel} {kind}");
        }
    }
}

/// A private copy of a file's page goes, and the file's page is read from memory again.
#[test]
fn dontneed_of_a_file_leaves_it_in_memory() {
    let body = r#"
[task.main]
run = [
  { map = "f", kind = "file-private", file = "data", size = "4M" },
  { touch = "f", access = "write" },
  { phase = "copied" }, { repeat = 4, do = [{ sleep = "2ms" }] },
  { advise = "f", advice = "dontneed" },
  { phase = "dropped" }, { repeat = 4, do = [{ sleep = "2ms" }] },
  { touch = "f", access = "read" },
]
"#;
    for kernel in KERNELS {
        let states = at_phases(kernel, body);
        let lists = |at: usize, of: &str| {
            states[at][&format!("nr_active_{of}")] + states[at][&format!("nr_inactive_{of}")]
        };
        assert_eq!([lists(0, "anon"), lists(1, "anon")], [1024, 0], "{kernel}");
        assert!(lists(1, "file") >= 1024, "{kernel}");
        assert_eq!(lists(0, "file"), lists(1, "file"), "{kernel}");
    }
}

/// What lies in swap is given up with its range.
#[test]
fn slots_of_a_range_are_free() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "96M" },
  { touch = "m", access = "write" },
  { phase = "swapped" }, { repeat = 4, do = [{ sleep = "20ms" }] },
  { unmap = "m", length = "90M" },
  { phase = "unmapped" }, { repeat = 4, do = [{ sleep = "2ms" }] },
  { touch = "m", access = "write", offset = "90M" },
]
"#;
    for kernel in KERNELS {
        let recording = record(kernel, body);
        assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
        assert!(recording.counters["pswpout"] > 4000, "{kernel}");
        let states = at_phases(kernel, body);
        let free = states[1]["nr_free_pages"];
        assert!(free > 12_000, "{kernel}: {free} pages are free");
    }
}

/// Reads of a file by fault-around and readahead stop at a hole, as they do at the end of a VMA.
#[test]
fn faults_of_files_stay_beside_holes() {
    for kernel in ["v3.14", "v4.4", "v6.18"] {
        let recording = record(
            kernel,
            r#"
[task.main]
run = [
  { map = "f", kind = "file-shared", file = "data" },
  { touch = "f", access = "read" },
  { advise = "f", advice = "dontneed" },
  { unmap = "f", offset = "4K", length = "4K", every = "8K" },
  { touch = "f", access = "read", step = "8K" },
  { advise = "f", advice = "random", offset = "8M" },
  { unmap = "f", offset = "8M" },
  { touch = "f", access = "read", length = "4K" },
]
"#,
        );
        assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    }
}

/// Two threads of a process: one unmaps all, in pieces, what the other has unmapped as well.
#[test]
fn what_is_unmapped_in_pieces_is_gone_as_a_whole() {
    let recording = record(
        "v6.1",
        r#"
[task.main]
run = [
  { repeat = 3, do = [
    { map = "s", kind = "anon-shared", size = "4M" },
    { touch = "s", access = "write" },
    { unmap = "s", length = "2M" },
    { unmap = "s", offset = "2M", length = "2M" },
    { phase = "gone" }, { repeat = 4, do = [{ sleep = "2ms" }] },
    { unmap = "s" },
  ] },
]
"#,
    );
    assert_eq!(recording.outcome, Outcome::Completed);
    for phase in &recording.phases {
        let gauges = &recording.gauges;
        let sample = gauges.samples.iter().find(|(at, _)| *at > phase.time_ns);
        let (_, values) = sample.expect("a sample");
        let state: BTreeMap<_, _> = gauges.names.iter().zip(values).collect();
        assert_eq!(*state[&"nr_inactive_anon".to_owned()], 0);
        assert_eq!(*state[&"nr_active_anon".to_owned()], 0);
    }
}

/// What MADV_POPULATE_WRITE and MADV_POPULATE_READ do is what touches would do.
#[test]
fn populated_is_as_touched() {
    for (advice, access) in [("populate", "write"), ("populate-read", "read")] {
        for kind in ["anon-private", "anon-shared", "file-private", "file-shared"] {
            let file = if kind.starts_with("file") {
                "file = \"data\""
            } else {
                "size = \"16M\""
            };
            let body = |statement: &str| {
                format!(
                    "[task.main]\nrun = [\n{{ map = \"m\", kind = \"{kind}\", {file} }},\n{statement},\n\
                     {{ touch = \"m\", access = \"{access}\", offset = \"4M\", length = \"2M\" }},\n]\n"
                )
            };
            let found = |statement: &str| {
                let recording = record("v6.1", &body(statement));
                assert_eq!(recording.outcome, Outcome::Completed, "{kind} {advice}");
                ["pgfault", "pgmajfault", "pgpgin"].map(|name| recording.counters[name])
            };
            let range = "offset = \"4M\", length = \"2M\"";
            let advised = found(&format!(
                "{{ advise = \"m\", advice = \"{advice}\", {range} }}"
            ));
            let touched = found(&format!(
                "{{ touch = \"m\", access = \"{access}\", {range} }}"
            ));
            assert_eq!(advised, touched, "{kind} {advice}");
            assert!(advised[0] > 0);
        }
    }
    let hole = record(
        "v6.1",
        r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "1M" },
  { unmap = "m", offset = "64K", length = "4K" },
  { advise = "m", advice = "populate" },
]
"#,
    );
    assert!(
        matches!(&hole.outcome, Outcome::Failed { verdict, .. } if verdict.contains("ENOMEM")),
        "{:?}",
        hole.outcome
    );
}

/// Pages that are paged out on purpose come back from swap, each with a read that nobody had to wait for if it was asked for
/// ahead.
#[test]
fn paged_out_is_in_swap_and_willneed_reads_it_ahead() {
    for kernel in ["v5.4", "v6.1", "v6.18"] {
        for kind in ["anon-private", "anon-shared"] {
            let body = |ahead: &str| {
                format!(
                    r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "8M" }},
  {{ touch = "m", access = "write" }},
  {{ advise = "m", advice = "pageout", length = "4M" }},
  {{ sleep = "500ms" }},
  {{ phase = "out" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
  {ahead}
  {{ touch = "m", access = "read" }},
]
"#
                )
            };
            let plain = record(kernel, &body(""));
            let states = at_phases(kernel, &body(""));
            let anon = states[0]["nr_active_anon"] + states[0]["nr_inactive_anon"];
            // What was being written when reclaim looked is on the list until the next look.
            let counters = &plain.counters;
            assert_eq!(counters["pswpout"], 1024, "{kernel} {kind}");
            assert!(anon <= 2048, "{kernel} {kind}: {anon}");
            let ahead = "{ advise = \"m\", advice = \"willneed\" }, { sleep = \"500ms\" },";
            let ahead = record(kernel, &body(ahead));
            assert_eq!(ahead.outcome, Outcome::Completed);
            assert_eq!(ahead.counters["pgmajfault"], 0, "{kernel} {kind}");
            assert!(ahead.counters["pswpin"] >= plain.counters["pswpin"]);
        }
    }
}

/// Memory that may be dropped is what a load takes before it swaps, and comes back as zeroes.
#[test]
fn freed_memory_goes_before_anything_is_swapped() {
    for kernel in ["v4.5", "v4.12", "v6.1", "v6.18"] {
        let recording = record(
            kernel,
            r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "32M" },
  { touch = "m", access = "write" },
  { advise = "m", advice = "free" },
  { touch = "m", access = "write", length = "1M" },
  { map = "n", kind = "anon-private", size = "36M" },
  { touch = "n", access = "write" },
  { touch = "m", access = "verify", length = "1M" },
  { touch = "m", access = "read" },
]
"#,
        );
        assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
        let counters = &recording.counters;
        let dropped = counters["pglazyfreed"];
        assert!(dropped > 1000, "{kernel}: {dropped} pages dropped");
        assert_eq!(counters.get("pglazyfree").is_some(), kernel != "v4.5");
        if kernel != "v4.5" {
            assert_eq!(counters["pglazyfree"], 8192, "{kernel}");
        }
        let out = counters["pswpout"];
        assert!(out < 600, "{kernel}: {out} pages swapped out");
    }
}

/// A hole of a shared object frees its pages and slots for all who map it.
#[test]
fn what_is_punched_is_free() {
    for kernel in KERNELS {
        for kind in ["anon-private", "anon-shared"] {
            let body = format!(
                r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "8M" }},
  {{ touch = "m", access = "write" }},
  {{ punch = "m", length = "1M", every = "2M" }},
  {{ phase = "punched" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
  {{ touch = "m", access = "write" }},
]
"#
            );
            let states = at_phases(kernel, &body);
            let anon = states[0]["nr_active_anon"] + states[0]["nr_inactive_anon"];
            assert_eq!(anon, 1024, "{kernel} {kind}");
            let faults = record(kernel, &body).counters["pgfault"];
            assert_eq!(faults, 2048 + 1024, "{kernel} {kind}");
        }
    }
}

/// A probe names the series of the sample around it.
#[test]
fn answers_of_probes_name_their_series() {
    let recording = record(
        "v4.4",
        r#"
[series.fault]
unit = "us"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "1M" },
  { sample = "fault", do = [{ probe = "m", what = "resident" }] },
  { touch = "m", access = "write" },
  { sample = "fault", do = [{ probe = "m", what = "resident" }] },
  { sample = "fault", do = [{ probe = "m", what = "huge" }] },
  { sample = "fault", do = [{ touch = "m", access = "read" }] },
  { sample = "never", do = [{ probe = "m", what = "huge" }, { probe = "m", what = "resident" }] },
]
"#,
    );
    let series: Vec<(&str, usize)> = recording
        .series
        .iter()
        .map(|series| (series.name.as_str(), series.samples.len()))
        .collect();
    let expected = [
        "fault",
        "fault-base",
        "fault-absent",
        "fault-resident",
        "never-resident",
    ];
    assert_eq!(series, expected.map(|name| (name, 1)));
}

/// What is locked is in memory however little of that there is, and can be taken as soon as it is unlocked.
#[test]
fn locked_memory_is_not_swapped() {
    for kernel in KERNELS {
        for kind in ["anon-private", "anon-shared"] {
            let body = |unlock: &str| {
                format!(
                    r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "16M" }},
  {{ mlock = "m", offset = "4M", length = "8M" }},
  {{ touch = "m", access = "write", offset = "4M", length = "8M" }},
  {{ phase = "locked" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
  {unlock}
  {{ map = "n", kind = "anon-private", size = "64M" }},
  {{ touch = "n", access = "write" }},
  {{ unmap = "n" }},
  {{ phase = "after" }}, {{ repeat = 4, do = [{{ sleep = "2ms" }}] }},
  {{ sample = "part", do = [{{ touch = "m", access = "read", offset = "4M", length = "8M" }}] }},
]
"#
                )
            };
            let locked = record(kernel, &body(""));
            assert_eq!(locked.outcome, Outcome::Completed, "{kernel} {kind}");
            assert_eq!(locked.counters["pswpin"], 0, "{kernel} {kind}");
            assert_eq!(locked.counters["unevictable_pgs_mlocked"], 2048);
            let states = at_phases(kernel, &body(""));
            assert_eq!(states[0]["nr_mlock"], 2048, "{kernel} {kind}");
            assert_eq!(states[1]["nr_unevictable"], 2048, "{kernel} {kind}");
            let unlock = "{ mlock = \"m\", lock = false, offset = \"4M\" },";
            let unlocked = at_phases(kernel, &body(unlock));
            assert_eq!(unlocked[1]["nr_unevictable"], 0, "{kernel} {kind}");
        }
    }
    let refused = record(
        "v6.1",
        r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "1M", lock = true },
  { advise = "m", advice = "dontneed", length = "64K" },
]
"#,
    );
    assert!(
        matches!(&refused.outcome, Outcome::Failed { verdict, .. } if verdict.contains("EINVAL")),
        "{:?}",
        refused.outcome
    );
}
