//! Compaction, looked at from outside: who is moved, for what, and that nobody notices.

use crate::common::guest;
use lowmark_model::Options;
use lowmark_record::{Field, Kind, Recording};

/// Two processes take memory in turns; one gives its part back, the other waits, and then goes through its own again.
fn in_turns(kernel: &str, kind: &str) -> Recording {
    let tasks = format!(
        r#"
[file.f]
kind = "random"
size = "90M"
[task.stays]
run = [
  {{ map = "m", {kind}, size = "90M" }},
  {{ touch = "m", access = "read" }},
  {{ sleep = "3s" }},
  {{ touch = "m", access = "read" }},
]
[task.goes]
run = [
  {{ map = "n", kind = "anon-private", size = "90M" }},
  {{ touch = "n", access = "write" }},
]"#
    );
    let options = Options {
        events: false,
        check_every: 20_000,
    };
    guest::record(kernel, 2, 4000, &tasks, &options)
}

/// A process goes twice through more memory than there is.
fn too_large(kernel: &str) -> Recording {
    let tasks = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "220M" },
  { touch = "m", access = "write", passes = 2 },
]"#;
    guest::record(kernel, 1, 6285, tasks, &guest::EVENTS)
}

/// Whatever the pages are, all of them are still there when they have been moved.
#[test]
fn pages_that_were_moved_are_not_missed() {
    for version in ["v6.1", "v6.18"] {
        for kind in [
            r#"kind = "anon-shared""#,
            r#"kind = "file-shared", file = "f""#,
        ] {
            let eager = in_turns(&format!("{version},compaction_proactiveness=100"), kind);
            let never = in_turns(&format!("{version},model.compaction=off"), kind);
            let counted = |name: &str| (eager.counters[name], never.counters[name]);
            let moved = eager.counters["pgmigrate_success"];
            assert!(moved > 1000, "{version} {kind}: {moved}");
            // What the model leaves out is not counted as 0.
            assert_eq!(never.counters.get("pgmigrate_success"), None);
            for name in ["pgmajfault", "pswpin", "workingset_refault_file"] {
                let (eager, never) = counted(name);
                assert_eq!(eager, never, "{version} {kind} {name}");
            }
        }
    }
}

/// kswapd frees more when blocks change their type, and leaves it to kcompactd to make pageblocks of that. Without it,
/// and unless memory is looked after anyway, nothing moves.
#[test]
fn a_boost_is_followed_by_compaction() {
    for version in ["v6.1", "v6.18"] {
        let plain = too_large(version);
        let woken = plain.counters["compact_daemon_wake"];
        assert!(woken > 0, "{version}");
        // Events and counters say the same.
        let of = |kind: Kind| plain.events.iter().filter(move |event| event.kind == kind);
        assert_eq!(of(Kind::KcompactdWake).count() as u64, woken, "{version}");
        let passes = of(Kind::CompactionBegin).count();
        assert!(passes > 0 && passes == of(Kind::CompactionEnd).count());
        let sum = |kind, field| of(kind).filter_map(|event| event.get(field)).sum::<u64>();
        let moved = sum(Kind::Migratepages, Field::NrMigrated);
        assert_eq!(moved, plain.counters["pgmigrate_success"], "{version}");
        let taken = sum(Kind::IsolateMigratepages, Field::NrTaken);
        assert_eq!(taken, moved + sum(Kind::Migratepages, Field::NrFailed));
        let off = too_large(&format!("{version},model.compaction=off"));
        assert_eq!(
            off.events
                .iter()
                .filter(|event| event.kind == Kind::KcompactdWake)
                .count(),
            0
        );
        for calm in ["+proactive_compaction=off", ",compaction_proactiveness=0"] {
            let kernel = format!("{version}+watermark_boost=off{calm}");
            let counters = too_large(&kernel).counters;
            assert_eq!(counters["compact_isolated"], 0, "{kernel}");
        }
    }
}

/// Before 6.3 kcompactd's own counters are those of blocks that were asked for; what it does without a request is among
/// those of all.
#[test]
fn what_nobody_asked_for_counts_as_the_daemons_since_6_3() {
    let scanned = |kernel: &str| {
        let kernel = format!("{kernel}+watermark_boost=off,compaction_proactiveness=100");
        let counters = in_turns(&kernel, r#"kind = "anon-shared""#).counters;
        assert_eq!(counters["compact_stall"], 0, "{kernel}");
        let names = ["compact_migrate_scanned", "compact_daemon_migrate_scanned"];
        names.map(|name| counters[name])
    };
    let [all, daemon] = scanned("v6.1");
    assert!(all > 1000 && daemon < all / 2, "{daemon} of {all}");
    assert_eq!(scanned("v6.1+daemon_scans=all"), [all, all]);
    let [all, daemon] = scanned("v6.18");
    assert!(all > 1000 && daemon == all, "{daemon} of {all}");
}

/// The pool of hugetlbfs grows where every second page of most of memory is in use.
fn pool_grows(kernel: &str) -> Recording {
    let tasks = r#"
[task.main]
run = [
  { map = "held", kind = "anon-private", size = "150M" },
  { touch = "held", access = "write" },
  { repeat = "150M/2/PAGE", index = "i", do = [
    { advise = "held", advice = "dontneed", offset = "(2*i + 1)*PAGE", length = "PAGE" },
  ] },
  { alloc = "pages", order = "HPAGE_ORDER", gfp = "hugetlb", count = 90, pace = "1ms" },
  { free = "pages" },
]"#;
    guest::record(kernel, 1, 6285, tasks, &guest::EVENTS)
}

/// Sum of a field over events of a kind.
fn total(recording: &Recording, kind: Kind, field: Field) -> u64 {
    let of_kind = recording.events.iter().filter(|event| event.kind == kind);
    of_kind.filter_map(|event| event.get(field)).sum()
}

fn count(recording: &Recording, kind: Kind) -> u64 {
    let of_kind = recording.events.iter().filter(|event| event.kind == kind);
    of_kind.count() as u64
}

/// A text field of the events of a kind, all that it says.
fn said(recording: &Recording, kind: Kind, field: Field) -> Vec<String> {
    let of_kind = recording.events.iter().filter(|event| event.kind == kind);
    let mut said: Vec<String> = of_kind
        .filter_map(|event| event.get(field))
        .map(|name| recording.events.names.text(name).to_owned())
        .collect();
    said.sort_unstable();
    said.dedup();
    said
}

/// What the tracepoints of both scanners and of migration say adds up to the counters. A pass begins where compaction could help,
/// and ends with a look that says what came of it.
#[test]
fn events_of_compaction_add_up() {
    for version in ["v4.9", "v6.1", "v6.12", "v6.18"] {
        let recording = pool_grows(version);
        let counters = &recording.counters;
        let sum = |kind, field| total(&recording, kind, field);
        let free = [Kind::IsolateFreepages, Kind::FastIsolateFreepages];
        let isolated: u64 = free.map(|kind| sum(kind, Field::NrTaken)).iter().sum();
        let scanned: u64 = free.map(|kind| sum(kind, Field::NrScanned)).iter().sum();
        let migrate = |field| sum(Kind::IsolateMigratepages, field);
        // To 6.3 the search of the lists of free blocks has no event.
        let silent = ["v4.9", "v6.1"].contains(&version);
        let untold = counters["compact_free_scanned"] - scanned;
        assert!(untold == 0 || silent, "{version}: {untold}");
        let taken = isolated + migrate(Field::NrTaken);
        let unsaid = counters["compact_isolated"] - taken;
        assert!(unsaid == 0 || silent, "{version}: {unsaid}");
        let looked = migrate(Field::NrScanned);
        assert!(looked <= counters["compact_migrate_scanned"], "{version}");
        let moved = [
            (Field::NrSucceeded, "pgmigrate_success"),
            (Field::NrFailed, "pgmigrate_fail"),
        ];
        for (field, counter) in moved {
            assert_eq!(
                sum(Kind::MigratePages, field),
                counters[counter],
                "{version}"
            );
        }
        let passes = count(&recording, Kind::CompactionBegin);
        let looks = count(&recording, Kind::CompactionFinished);
        let fit = said(&recording, Kind::CompactionSuitable, Field::Ret);
        assert!(passes > 0 && looks >= passes, "{version}");
        assert!(fit.contains(&"continue".to_owned()), "{version}: {fit:?}");
        let ends = said(&recording, Kind::CompactionEnd, Field::Status);
        let finished = said(&recording, Kind::CompactionFinished, Field::Ret);
        for end in ends.iter().filter(|&end| end != "contended") {
            assert!(finished.contains(end), "{version}: {end} of {finished:?}");
        }
    }
}

/// Compaction that fails is put off for twice as many attempts each time, and is put off no longer when a block was made.
#[test]
fn what_is_put_off_is_told() {
    for version in ["v4.9", "v6.1", "v6.12", "v6.18"] {
        let recording = pool_grows(version);
        let mut failures = 0;
        for event in recording.events.iter() {
            let of = |field| event.get(field).expect("a field of the event");
            match event.kind {
                Kind::DeferCompaction => {
                    failures += 1;
                    assert_eq!(of(Field::Consider), 0, "{version}");
                    assert!(of(Field::DeferLimit).is_power_of_two(), "{version}");
                    assert!(of(Field::OrderFailed) <= of(Field::Order), "{version}");
                }
                Kind::CompactionDeferred => {
                    assert!(failures > 0, "{version}: put off before anything failed");
                    assert!(of(Field::Consider) < of(Field::DeferLimit), "{version}");
                }
                Kind::DeferReset => {
                    assert!(of(Field::OrderFailed) > of(Field::Order), "{version}");
                }
                _ => {}
            }
        }
        let passes = count(&recording, Kind::CompactionEnd);
        let resets = count(&recording, Kind::DeferReset);
        assert!(failures + resets > 0 && failures <= passes, "{version}");
    }
}

/// To 4.0 none of these tracepoints is there; looks at free pages and at pages that move are, without their ranges.
#[test]
fn kernels_before_4_1_say_less() {
    let recording = pool_grows("v3.19");
    for kind in [
        Kind::CompactionFinished,
        Kind::CompactionSuitable,
        Kind::CompactionDeferred,
        Kind::DeferCompaction,
        Kind::DeferReset,
        Kind::FastIsolateFreepages,
    ] {
        assert_eq!(count(&recording, kind), 0, "{kind:?}");
    }
}
