//! Runs with generations of pages (`lru_gen.enabled`): what holds between any two events, sums of the trace and counters, and what
//! tells them from active and inactive lists.

use crate::common;
use lowmark_model::Options;
use lowmark_model::kernel::versions::at;
use lowmark_model::kernel::{DESCRIPTIONS, Version};
use lowmark_record::{Field, Kind, Outcome, Recording};

const MACHINE: &str = r#"
lowmark = 1
[workload]
name = "generations"
title = "generations"
[machine]
use = "small-512m-ssd"
ram = "64M"
reserved = "4M"
occupied = "8M"
"#;

/// Private and shared memory beside files that are read, mapped and written.
const MIXED: &str = r#"
[file.read]
size = "48M"
[file.again]
size = "8M"
[file.mapped]
size = "24M"
[file.written]
size = "24M"
[task.anon]
processes = 2
run = [
  { map = "m", kind = "anon-private", size = "24M" },
  { touch = "m", access = "write" },
  { repeat = 30, do = [{ touch = "m", access = "write", order = "zipf(0.9)", count = 2000 }, { sleep = "5ms" }] },
]
[task.shared]
run = [
  { map = "s", kind = "anon-shared", size = "12M" },
  { touch = "s", access = "write", passes = 3 },
]
[task.reader]
run = [{ repeat = 3, do = [{ read = "read" }, { read = "again" }] }]
[task.mapper]
run = [
  { map = "f", kind = "file-shared", file = "mapped" },
  { touch = "f", access = "read", passes = 2 },
  { touch = "f", access = "write", order = "random", count = 2000 },
]
[task.writer]
run = [{ write = "written" }]
"#;

fn run(kernel: &str, load: &str, check_every: u64) -> Recording {
    let text = format!("{MACHINE}[kernel]\nuse = \"{kernel}\"\n{load}");
    let options = Options {
        events: true,
        check_every,
    };
    let recording = lowmark_model::run(&common::scenarios(text)[0], &options, &mut |_| {})
        .expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

fn counter(recording: &Recording, name: &str) -> u64 {
    recording.counters.get(name).copied().unwrap_or(0)
}

fn sum(recording: &Recording, kind: Kind, field: Field) -> u64 {
    let events = recording.events.iter().filter(|event| event.kind == kind);
    events.filter_map(|event| event.get(field)).sum()
}

/// The identities that captures of 6.12, 6.18 and 7.2 obey to the page; 6.1 and 6.6 trace no batches.
#[test]
fn a_mixed_load_holds_what_holds_between_any_two_events() {
    for release in [
        "v6.1", "v6.1.170", "v6.3", "v6.6", "v6.12", "v6.13", "v6.14", "v6.18",
    ] {
        for enabled in [7, 1] {
            let kernel = format!("{release},lru_gen.enabled={enabled}");
            let run = run(&kernel, MIXED, 3_000);
            let scanned = counter(&run, "pgscan_anon") + counter(&run, "pgscan_file");
            let stolen = counter(&run, "pgsteal_anon") + counter(&run, "pgsteal_file");
            assert!(
                scanned >= stolen && stolen > 5_000,
                "{kernel}: {scanned} {stolen}"
            );
            assert!(counter(&run, "pswpin") > 0, "{kernel}");
            let taken = sum(&run, Kind::LruIsolate, Field::NrTaken);
            if ["v6.1", "v6.1.170", "v6.3", "v6.6"].contains(&release) {
                assert_eq!(taken, 0, "{kernel}");
                continue;
            }
            assert_eq!(taken, scanned, "{kernel}");
            let gone_past = sum(&run, Kind::LruIsolate, Field::NrScanned) - taken;
            let moved = gone_past - sum(&run, Kind::LruIsolate, Field::NrSkipped);
            assert_eq!(moved, counter(&run, "pgrefill"), "{kernel}");
            let reclaimed = sum(&run, Kind::LruShrinkInactive, Field::NrReclaimed);
            assert_eq!(reclaimed, stolen, "{kernel}");
        }
    }
}

/// Groups at their limits, one of them protected, beside tasks of the root, on a machine that is short of memory.
const GROUPS: &str = r#"
[cgroup.box]
max = "16M"
[cgroup.spared]
low = "12M"
[cgroup.small]
[file.read]
size = "64M"
[task.anon]
cgroup = "box"
run = [
  { map = "m", kind = "anon-private", size = "20M" },
  { repeat = 60, do = [{ touch = "m", access = "write", order = "random", count = 300 }, { sleep = "10ms" }] },
]
[task.kept]
cgroup = "spared"
run = [
  { map = "m", kind = "anon-private", size = "10M" },
  { touch = "m", access = "write" },
  { repeat = 40, do = [{ touch = "m", access = "read" }, { sleep = "20ms" }] },
]
[task.little]
cgroup = "small"
run = [
  { map = "m", kind = "anon-private", size = "256K" },
  { repeat = 20, do = [{ touch = "m", access = "write" }, { sleep = "20ms" }] },
]
[task.reader]
processes = 2
run = [
  { map = "m", kind = "anon-private", size = "14M" },
  { repeat = 60, do = [{ touch = "m", access = "write", order = "random", count = 200 }, { sleep = "10ms" }] },
  { read = "read" },
]
"#;

#[test]
fn groups_are_gone_through_in_an_order_of_their_own() {
    for release in ["v6.1", "v6.3", "v6.6", "v6.12", "v6.18"] {
        let kernel = format!("{release},lru_gen.enabled=7");
        let run = run(&kernel, GROUPS, 3_000);
        assert!(counter(&run, "pgsteal_kswapd") > 1_000, "{kernel}");
        assert!(counter(&run, "pswpin") > 0, "{kernel}");
    }
}

/// A mapped file of four times the RAM, read once; scans for each page that goes. On active and inactive lists a page is looked
/// at twice, as it was used. Guests with generations scan 1.8 and 2.0 pages on 6.1 and 6.12, as pages beside one that is found
/// used are kept, and 1.1 to 1.3 on 6.18, where they are not.
#[test]
fn a_mapped_stream_is_scanned_less_often_from_6_14_on() {
    let load = r#"
[file.stream]
size = "256M"
[task.reader]
run = [
  { map = "f", kind = "file-shared", file = "stream" },
  { touch = "f", access = "read" },
]
"#;
    let scans = |kernel: &str| {
        let run = run(kernel, load, 0);
        let stolen = counter(&run, "pgsteal_file");
        assert!(stolen > 40_000, "{kernel}");
        counter(&run, "pgscan_file") * 100 / stolen
    };
    for (version, expected) in [
        ("v6.1", 150..=210),
        ("v6.12", 150..=210),
        ("v6.18", 100..=170),
    ] {
        let classic = scans(version);
        let generations = scans(&format!("{version},lru_gen.enabled=7"));
        assert!(classic >= 190, "{version}: {classic} %");
        assert!(
            expected.contains(&generations),
            "{version}: {generations} %"
        );
    }
}

/// Memory that is used all the time beside a file that is read once and is larger than RAM: none of it is swapped out for long.
#[test]
fn memory_in_use_outlives_a_stream() {
    let load = r#"
[file.stream]
size = "512M"
[task.user]
run = [
  { map = "m", kind = "anon-private", size = "20M" },
  { touch = "m", access = "write" },
  { barrier = "used" },
  { repeat = 100, do = [{ touch = "m", access = "write" }, { sleep = "5ms" }] },
]
[task.reader]
run = [{ barrier = "used" }, { read = "stream" }]
[barrier.used]
parties = 2
"#;
    for version in ["v6.1", "v6.12", "v6.18"] {
        let run = run(&format!("{version},lru_gen.enabled=7"), load, 0);
        let back = counter(&run, "pswpin");
        assert!(counter(&run, "pgsteal_file") > 100_000, "{version}");
        assert!(back < 600, "{version}: {back} pages came back from swap");
    }
}

/// Each switch of generations alone, on kernels of three sets of rules: it is refused as it does not fit the others, or the load
/// ends, and what holds between any two events holds. Most of them change what the load comes to.
#[test]
fn every_switch_alone_is_refused_or_works() {
    for (version, works) in [("v6.1", 12), ("v6.12", 14), ("v6.18", 12)] {
        let base = format!("{version},lru_gen.enabled=7");
        let own = run(&base, MIXED, 20_000).counters;
        let has = at(Version::known(version).expect("a release")).settings();
        let (mut ran, mut differ) = (0, 0);
        for mechanism in DESCRIPTIONS.iter().filter(|it| it.group == "lru_gen") {
            for (variant, _) in mechanism.variants {
                let kernel = format!("{version}+{}={variant},lru_gen.enabled=7", mechanism.name);
                let text = format!("{MACHINE}[kernel]\nuse = \"{kernel}\"\n{MIXED}");
                let refused = lowmark_model::check(&common::scenarios(text)[0]).is_err();
                if refused || has.contains(&(mechanism.name, variant)) {
                    continue;
                }
                ran += 1;
                let found = run(&kernel, MIXED, 20_000).counters;
                differ += u32::from(found != own);
            }
        }
        assert_eq!(
            (ran, differ > ran / 3),
            (works, true),
            "{version}: {differ}"
        );
    }
}
