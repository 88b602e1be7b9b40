//! Caches of dentries, inodes and shadows: filled by files, shrunk by reclaim and by `drop_caches`, with every invariant
//! checked now and then.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind, Outcome, Recording};

/// A kernel of each era: lists by zone and a cache for all file systems; nodes; the priority; inodes with pages off the
/// list.
const VERSIONS: [&str; 4] = ["v2.6.37", "v3.14", "v4.9", "v6.18"];

/// A workload on a machine with 24 MB, two file systems on an SSD, and swap.
fn record(kernel: &str, body: &str, check: bool) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "shrinkers"
title = "shrinkers"
[machine]
ram = "24M"
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
use = "{kernel}"
{body}
"#
    );
    let scenarios = common::scenarios(text);
    let options = Options {
        events: true,
        // A number that no period of the loads has a part in.
        check_every: if check { 499 } else { 0 },
    };
    let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

fn counter(recording: &Recording, name: &str) -> u64 {
    let counters = &recording.counters;
    counters
        .get(name)
        .copied()
        .unwrap_or_else(|| panic!("no {name}"))
}

/// Files are made, read and asked about beside a task that needs memory.
const PRESSURE: &str = r#"
[fileset.small]
directories = 4
files = 1000
size = "4K"
[fileset.other]
fs = "other"
directories = 1
files = 500
size = "6K"
exists = true
[task.files]
run = [
  { repeat = 4000, do = [{ write = "small" }] },
  { sync = true },
  { stat_walk = "other" },
  { repeat = 500, do = [{ read = "other" }] },
  { repeat = 100, do = [{ delete = "small" }] },
]
[task.memory]
run = [
  { sleep = "50ms" },
  { map = "m", kind = "anon-private", size = "14M" },
  { repeat = 3, do = [{ touch = "m", access = "write" }, { sleep = "30ms" }] },
]
"#;

/// What the trace says of each shrinker that was called: calls, and objects that were set out to be scanned.
fn calls(recording: &Recording) -> Vec<(String, u64)> {
    let events = recording.events.iter();
    let starts = events.filter(|event| event.kind == Kind::ShrinkSlabStart);
    let named = starts.map(|event| {
        let name = event.get(Field::Shrinker).expect("a function");
        let name = recording.events.names.text(name);
        let total = event.get(Field::TotalScan).expect("an amount");
        (name.to_owned(), total)
    });
    named.collect()
}

#[test]
fn files_fill_caches_and_reclaim_shrinks_them() {
    for kernel in VERSIONS {
        let recording = match kernel {
            // Metadata of XFS is allocated by tasks that must not call the shrinkers of file systems, which end at once.
            "v4.9" => record("v4.9,model.metadata=off", PRESSURE, true),
            _ => record(kernel, PRESSURE, true),
        };
        let scanned = counter(&recording, "slabs_scanned");
        assert!(scanned > 2_000, "{kernel}: {scanned}");
        // 4,000 dentries of 192 bytes and inodes of 1 KiB take 1,190 pages, more than what is left of them.
        let slab = recording.state["nr_slab_reclaimable"];
        assert!((10..1_000).contains(&slab), "{kernel}: {slab} pages");
        let stolen = counter(&recording, "pginodesteal") + counter(&recording, "kswapd_inodesteal");
        // In batches of 1024 a shrinker comes to an inode so late that its page has gone: a marked dentry, and then a marked inode,
        // takes two looks.
        assert_eq!(stolen > 0, kernel != "v3.14", "{kernel}: {stolen} pages");
        // Batches of 1024 since there is a shrinker for each file system, and less since 3.15.
        let calls = calls(&recording);
        let batches: u64 = calls.iter().map(|(_, total)| total / 1024 * 1024).sum();
        match kernel {
            "v2.6.37" => assert_eq!((calls.len(), scanned % 128), (0, 0)),
            "v3.14" => assert_eq!(scanned, batches),
            "v4.9" => assert!(scanned >= batches, "{scanned} of {batches}"),
            _ => {}
        }
        // What was set out to be scanned, less what the ends of calls say was left.
        if ["v4.9", "v6.18"].contains(&kernel) {
            let ends = recording.events.iter();
            let ends = ends.filter(|event| event.kind == Kind::ShrinkSlabEnd);
            let left: u64 = ends.filter_map(|event| event.get(Field::TotalScan)).sum();
            let total: u64 = calls.iter().map(|(_, total)| total).sum();
            assert_eq!(total - left, scanned, "{kernel}");
        }
        let vfs = calls.iter().filter(|(name, _)| name == "super_cache_scan");
        assert_eq!(vfs.count() > 0, kernel != "v2.6.37", "{kernel}");
    }
}

/// Without pressure everything stays in memory: as many pages as the slabs of 1,000 dentries and as many inodes take, one
/// or two that are not full among them.
#[test]
fn files_cost_slabs() {
    for kernel in VERSIONS {
        let body = |statements: &str| {
            format!(
                "[fileset.f]\ndirectories = 1\nfiles = 1000\nsize = \"1K\"\nexists = true\n[task.t]\nrun = [{statements}]\n"
            )
        };
        let nothing = record(kernel, &body("{ sleep = \"1ms\" }"), true);
        assert_eq!(nothing.state["nr_slab_reclaimable"], 0, "{kernel}");
        let walked = record(kernel, &body("{ stat_walk = \"f\" }"), true);
        // 21 dentries in a page, 32 inodes in eight; a CPU has begun with half a slab.
        let (dentries, inodes) = (
            (1_000u64 - 10).div_ceil(21),
            8 * (1_000u64 - 16).div_ceil(32),
        );
        let slab = walked.state["nr_slab_reclaimable"];
        assert!(
            slab.abs_diff(dentries + inodes) <= 9,
            "{kernel}: {slab} pages"
        );
        assert_eq!(counter(&walked, "slabs_scanned"), 0, "{kernel}");
        let twice = record(
            kernel,
            &body("{ stat_walk = \"f\" }, { stat_walk = \"f\" }"),
            true,
        );
        assert_eq!(twice.state["nr_slab_reclaimable"], slab, "{kernel}");
        // A name whose file is gone is a negative dentry; its inode has gone, with metadata when it is at its place.
        let gone = record(
            kernel,
            &body(
                "{ stat_walk = \"f\" }, { repeat = 1000, do = [{ delete = \"f\" }] }, { sleep = \"70s\" }",
            ),
            true,
        );
        let slab = gone.state["nr_slab_reclaimable"];
        assert!(
            (dentries..dentries + 100).contains(&slab),
            "{kernel}: {slab} pages"
        );
    }
}

#[test]
fn dropped_caches_are_empty() {
    let body = |statements: &str| {
        format!(
            "[fileset.f]\ndirectories = 1\nfiles = 2000\nsize = \"5K\"\nexists = true\n[task.t]\nrun = [\n\
             {{ stat_walk = \"f\" }}, {{ repeat = 200, do = [{{ read = \"f\" }}] }}, {statements}]\n"
        )
    };
    for kernel in VERSIONS {
        let kept = record(kernel, &body("{ drop_caches = 1 }"), true);
        let before = kept.state["nr_slab_reclaimable"];
        assert!(before > 550, "{kernel}: {before} pages");
        assert_eq!(kept.state["nr_file_pages"], 0, "{kernel}");
        let dropped = record(kernel, &body("{ drop_caches = 3 }"), true);
        // Empty slabs that are kept: of each kind ten, and those of the CPUs.
        let after = dropped.state["nr_slab_reclaimable"];
        assert!(after <= 250, "{kernel}: {after} of {before} pages");
        if kernel != "v2.6.37" && kernel != "v3.14" {
            assert_eq!(counter(&dropped, "drop_slab"), 1, "{kernel}");
            assert_eq!(counter(&dropped, "drop_pagecache"), 1, "{kernel}");
            assert_eq!(counter(&kept, "drop_slab"), 0, "{kernel}");
        }
        // Slabs alone: inodes with pages lose these up to 5.15, and stay with them since.
        let slabs = record(kernel, &body("{ drop_caches = 2 }"), true);
        // To 3.14 what is less than half a batch is not scanned: 64 objects, or 512 of a file system.
        let stolen = counter(&slabs, "pginodesteal");
        let left = slabs.state["nr_file_pages"];
        assert_eq!(stolen + left, 400, "{kernel}");
        let expected = match kernel {
            "v2.6.37" => 0..=128,
            "v3.14" => 0..=199,
            "v4.9" => 0..=0,
            _ => 400..=400,
        };
        assert!(expected.contains(&left), "{kernel}: {left} pages");
    }
}

/// A call looks 4,096 times at what lies on the lists, where there are 2,000 dentries. To 4.11 the first look at a dentry or inode
/// removes the mark that its only user left; from 4.12 on the first look frees it, and the call comes to most inodes as well.
#[test]
fn what_was_used_once_is_marked_to_4_11() {
    let body = "[fileset.f]\ndirectories = 1\nfiles = 2000\nsize = \"1K\"\nexists = true\n[task.t]\nrun = [\n\
                { stat_walk = \"f\" }, { drop_caches = 2 }]\n";
    for (kernel, expected) in [
        ("v4.11", 1_000..=1_100),
        ("v4.12+first_use=marks", 1_000..=1_100),
        ("v4.12", 3_000..=3_200),
    ] {
        // Nothing else is there to be freed.
        let kernel = format!("{kernel},model.metadata=off,model.extent_status=off");
        let recording = record(&kernel, body, true);
        let ends = recording.events.iter();
        let mut freed = ends
            .filter(|event| event.kind == Kind::ShrinkSlabEnd)
            .filter_map(|event| event.get(Field::Retval));
        let first = freed.find(|&freed| freed > 0).expect("something is freed");
        assert!(expected.contains(&first), "{kernel}: {first} objects");
    }
}

/// Under the same pressure more inodes stay in memory with a mark than without, in which 2.6.37 differs from 2.6.36.
#[test]
fn inodes_are_marked_from_2_6_37() {
    let slab = |kernel: &str| record(kernel, PRESSURE, true).state["nr_slab_reclaimable"];
    let (before, lazy) = (slab("v2.6.36"), slab("v2.6.36+lazy-inode-lru"));
    assert!(lazy > before + before / 10, "{lazy} pages for {before}");
}

/// No dentry and no inode is reclaimed without pressure on them, and files with their pages stay. Nodes with shadows alone,
/// extents that ext4 remembers and metadata of XFS go all the same.
#[test]
fn without_pressure_on_them_dentries_stay() {
    for kernel in VERSIONS {
        let spared = record(&format!("{kernel},vfs_cache_pressure=0"), PRESSURE, true);
        let stolen = counter(&spared, "pginodesteal") + counter(&spared, "kswapd_inodesteal");
        assert_eq!(stolen, 0, "{kernel}");
        let others = [
            "scan_shadow_nodes",
            "ext4_es_scan",
            "xfs_buftarg_shrink_scan",
        ];
        assert!(
            calls(&spared)
                .iter()
                .all(|(name, _)| others.contains(&name.as_str())),
            "{kernel}"
        );
        // 3,900 inodes and 500, and 4,500 dentries.
        let slab = spared.state["nr_slab_reclaimable"];
        assert!(slab > 1_200, "{kernel}: {slab} pages");
        let more = record(&format!("{kernel},vfs_cache_pressure=400"), PRESSURE, true);
        let usual = record(kernel, PRESSURE, true);
        let scanned = [&more, &usual].map(|recording| counter(recording, "slabs_scanned"));
        assert!(scanned[0] > scanned[1], "{kernel}: {scanned:?}");
    }
}

/// A run without them has no such counters, and says what it leaves out.
#[test]
fn shrinkers_can_be_left_out() {
    let body = "[fileset.f]\ndirectories = 1\nfiles = 10\nsize = \"5K\"\n[task.t]\nrun = [\n\
                { stat_walk = \"f\" },\n{ drop_caches = 3 },\n]\n";
    let without = record("v6.18,model.shrinkers=off", body, true);
    assert!(!without.counters.contains_key("slabs_scanned"));
    assert!(!without.state.contains_key("nr_slab_reclaimable"));
    assert_eq!(without.not_modelled.len(), 2);
    assert_eq!(record("v6.18", body, true).not_modelled, []);
    // What has no files has nothing to shrink.
    let swap = "[task.t]\nrun = [{ map = \"m\", kind = \"anon-private\", size = \"30M\" }, { touch = \"m\", access = \"write\" }]\n";
    assert!(
        !record("v6.18", swap, true)
            .counters
            .contains_key("slabs_scanned")
    );
}

/// A file that is read once and is larger than memory leaves shadows, whose leaves are forgotten when there are more
/// than an eighth of the pages.
#[test]
fn shadows_are_forgotten() {
    let body = "[file.f]\nsize = \"900M\"\nexists = true\n[task.t]\nrun = [{ read = \"f\" }]\n";
    for (kernel, forgets) in [
        ("v3.14", false),
        ("v4.9", true),
        ("v6.18", true),
        ("v6.18,model.slab_pages=on", true),
    ] {
        let recording = record(kernel, body, false);
        let shadows = calls(&recording)
            .iter()
            .filter(|(name, _)| name == "scan_shadow_nodes")
            .count();
        assert_eq!(shadows > 0, forgets, "{kernel}");
        if forgets {
            let forgotten = counter(&recording, "workingset_nodereclaim");
            // 3,600 leaves of 256 KiB; 24 MB are 6,144 pages, an eighth of which is 768.
            assert!((2_000..3_600).contains(&forgotten), "{kernel}: {forgotten}");
        }
    }
}

/// A group reads files until it is at its limit, while the machine has plenty of memory; another has as many of its own.
const IN_A_GROUP: &str = r#"
[cgroup.box]
max = "4M"
[cgroup.other]
[fileset.small]
fs = "other"
directories = 2
files = 500
size = "4K"
exists = true
[fileset.others]
fs = "other"
directories = 1
files = 1000
size = "4K"
exists = true
[barrier.there]
[task.other]
cgroup = "other"
run = [{ stat_walk = "others" }, { barrier = "there" }]
[task.files]
cgroup = "box"
run = [
  { stat_walk = "small" },
  { barrier = "there" },
  { repeat = 1000, do = [{ read = "small" }] },
  { map = "m", kind = "anon-private", size = "3M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "read" },
]
"#;

/// Objects are charged to the group whose task made them, and reclaim of the group shrinks these and no others.
#[test]
fn a_group_at_its_limit_shrinks_its_own_objects() {
    for kernel in ["v6.1", "v6.18"] {
        let recording = record(kernel, IN_A_GROUP, true);
        assert_eq!(counter(&recording, "pgscan_kswapd"), 0, "{kernel}");
        assert!(counter(&recording, "slabs_scanned") > 0, "{kernel}");
        // A thousand inodes of 1096 bytes and dentries of 200 are the other's still, in pages.
        let of_other = recording.state.get("cgroup/other/memory.current").copied();
        let objects = 1000 * (1096 + 200);
        assert!(
            of_other.is_some_and(|bytes| bytes >= objects),
            "{of_other:?}"
        );
        let within = |kind: Kind| recording.events.iter().filter(|e| e.kind == kind).count();
        assert!(within(Kind::MemcgReclaimBegin) > 0, "{kernel}");
        assert!(within(Kind::ShrinkSlabStart) > 0, "{kernel}");

        let without = record(&format!("{kernel},model.cgroup_slab=off"), IN_A_GROUP, true);
        assert_eq!(counter(&without, "slabs_scanned"), 0, "{kernel}");
    }
}

/// Who reads ahead may not call shrinkers of file systems from 5.8 on, and nobody who needs pages of XFS from 3.15 on.
#[test]
fn who_reads_ahead_leaves_file_systems_alone() {
    let memory = r#"  { map = "m", kind = "anon-private", size = "3M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "read" },
"#;
    let reads = IN_A_GROUP.replace(
        memory,
        "  { repeat = 2000, do = [{ read = \"small\" }] },\n",
    );
    assert_ne!(reads, IN_A_GROUP);
    let on_xfs = reads.replace("fs = \"other\"", "fs = \"data\"");
    // Of the times that the group was reclaimed from, those by who might.
    let might = |kernel: &str, body: &str| {
        let recording = record(kernel, body, false);
        let begins = recording.events.iter();
        let begins = begins.filter(|event| event.kind == Kind::MemcgReclaimBegin);
        let flags: Vec<u64> = begins
            .filter_map(|event| event.get(Field::GfpFlags))
            .collect();
        assert!(flags.len() > 10, "{kernel}");
        flags.iter().filter(|&&flags| flags & gfp::FS != 0).count() * 10 / flags.len()
    };
    assert_eq!(might("v6.1", &reads), 0);
    assert_eq!(might("v6.1-readahead-nofs", &reads), 10);
    assert_eq!(might("v6.1-readahead-nofs", &on_xfs), 0);
}

/// Calls of the shrinker of extents: what it could free, what it was to scan, and what it freed.
fn calls_for_extents(recording: &Recording) -> Vec<[u64; 3]> {
    let events = recording.events.iter();
    let of_extents = events.filter(|event| {
        let name = event.get(Field::Shrinker);
        name.is_some_and(|name| recording.events.names.text(name) == "ext4_es_scan")
    });
    let of_extents: Vec<_> = of_extents.collect();
    let value = |event: &lowmark_record::Event, field| event.get(field).expect("a field");
    of_extents
        .chunks(2)
        .map(|call| {
            let [start, end] = call else {
                panic!("a call begins and ends");
            };
            [
                value(start, Field::CacheItems),
                value(start, Field::TotalScan),
                value(end, Field::Retval),
            ]
        })
        .collect()
}

/// 256 files of ext4 have an extent each, which drop_caches forgets, with two scans for each. On XFS there are none, nor on a kernel
/// without that shrinker in the model.
#[test]
fn extents_are_forgotten_by_a_shrinker_of_their_own() {
    let calls = |kernel: &str, fs: &str| {
        let body = format!(
            "[fileset.small]\nfs = \"{fs}\"\ndirectories = 4\nfiles = 64\nsize = \"4K\"\nexists = true\n[task.main]\n\
             run = [{{ repeat = 256, do = [{{ read = \"small\" }}] }}, {{ drop_caches = 2 }}]\n"
        );
        calls_for_extents(&record(kernel, &body, true))
    };
    assert_eq!(calls("v6.1", "other"), [[256, 512, 256]]);
    assert!(calls("v6.1", "data").is_empty());
    assert!(calls("v4.3", "other").is_empty());
}
