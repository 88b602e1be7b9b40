//! Compaction, looked at from outside: who is moved, for what, and that nobody notices.

mod common;
#[path = "common/guest.rs"]
mod guest;

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
