//! Fields of tracepoints and counters that say what reclaim met, held against each other and against what the kernels'
//! versions count.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// What tasks do on a machine with 20 MB, an SSD and swap on that.
fn record(kernel: &str, body: &str) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "fields"
title = "fields"
[machine]
ram = "20M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "80us",
}}
swap = {{ device = "sda", start = "1G", size = "64M" }}
filesystem.data = {{ kind = "xfs", device = "sda" }}
[kernel]
use = "{kernel}"
{body}
"#
    );
    let options = Options {
        events: true,
        check_every: 0,
    };
    let scenario = common::scenarios(text).remove(0);
    let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// Batches of a list, anon or file.
fn batches(recording: &Recording, flag: u64) -> impl Iterator<Item = Event> + '_ {
    recording.events.iter().filter(move |event| {
        event.kind == Kind::LruShrinkInactive && event.get(Field::Flags).unwrap_or(0) & flag != 0
    })
}

const ANON: u64 = lowmark_record::event::RECLAIM_WB_ANON;
const FILE: u64 = lowmark_record::event::RECLAIM_WB_FILE;

fn sum(events: impl Iterator<Item = Event>, field: Field) -> u64 {
    events.filter_map(|event| event.get(field)).sum()
}

/// A file is written, and nobody writes it out before a task wants the memory.
const DIRTY: &str = r#"
sysctl = { dirty_ratio = 90, dirty_background_ratio = 80 }
[file.f]
fs = "data"
exists = false
[task.main]
run = [
  { append = "f", block = "64K", count = 128 },
  { map = "m", kind = "anon-private", size = "13M" },
  { touch = "m", access = "write" },
]
"#;

/// Memory of tasks larger than RAM, gone through again and again.
const SWAP: &str = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "30M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "write", order = "random", count = 6000 },
]
"#;

/// From 3.11 on dirty pages are those under writeback as well. What has been seen of them is under writeback, for the
/// second time or not, or it was left to the flusher, or written: nothing of it was referenced.
#[test]
fn dirty_pages_at_the_tail_add_up() {
    let mut congested = 0;
    for kernel in ["v4.11", "v4.14", "v5.15", "v6.1", "v6.18"] {
        let recording = record(kernel, DIRTY);
        let total = |field| sum(batches(&recording, FILE), field);
        let counters = &recording.counters;
        let dirty = total(Field::NrDirty);
        assert!(dirty > 100, "{kernel}: {dirty}");
        let written = counters["nr_vmscan_write"] - counters["pswpout"];
        let unqueued = counters["nr_vmscan_immediate_reclaim"] + written;
        let writeback = total(Field::NrWriteback) + total(Field::NrImmediate);
        assert_eq!(dirty, unqueued + writeback, "{kernel}");
        for batch in batches(&recording, FILE) {
            let of = |field| batch.get(field).unwrap_or(0);
            assert!(of(Field::NrCongested) <= of(Field::NrDirty), "{kernel}");
            assert!(of(Field::NrDirty) <= of(Field::NrScanned), "{kernel}");
        }
        congested += total(Field::NrCongested);
    }
    assert!(congested > 0, "no page came round under writeback");
}

/// Pages that are swapped count as under writeback only.
#[test]
fn swapped_pages_are_not_dirty_files() {
    for (kernel, load) in [("v4.11", DIRTY), ("v6.1", SWAP), ("v6.18", SWAP)] {
        let recording = record(kernel, load);
        let total = |field| sum(batches(&recording, ANON), field);
        assert!(total(Field::NrWriteback) > 0, "{kernel}");
        assert_eq!(
            total(Field::NrDirty) + total(Field::NrCongested),
            0,
            "{kernel}"
        );
    }
}

/// Before 5.8 all that were referenced, later those that stay active, which only executables do.
#[test]
fn referenced_pages_of_active_lists() {
    let referenced = |kernel| {
        let recording = record(kernel, SWAP);
        let active = |event: &Event| event.kind == Kind::LruShrinkActive;
        let taken = sum(recording.events.iter().filter(active), Field::NrTaken);
        assert!(taken > 0, "{kernel}");
        sum(recording.events.iter().filter(active), Field::NrReferenced)
    };
    for kernel in ["v4.11", "v5.7"] {
        assert!(referenced(kernel) > 0, "{kernel}");
    }
    assert_eq!(referenced("v5.8"), 0);
}

/// The event of a batch comes when the wait that it was cause of is over (`shrink_inactive_list`).
#[test]
fn a_batch_is_told_of_after_its_wait() {
    let recording = record("v4.11", DIRTY);
    let events: Vec<Event> = recording.events.iter().collect();
    let waits = |kind| kind == Kind::CongestionWait || kind == Kind::WaitIffCongested;
    let mut judged = 0;
    for (at, event) in events
        .iter()
        .enumerate()
        .filter(|(_, event)| waits(event.kind))
    {
        let before = events[..at].iter().rfind(|other| other.task == event.task);
        let after = events[at..]
            .iter()
            .find(|other| other.task == event.task && !waits(other.kind));
        let (Some(before), Some(after)) = (before, after) else {
            continue;
        };
        // Between isolation and the end of the batch there may be writes; other waits have nothing to do with batches.
        let taken = before.get(Field::NrTaken).unwrap_or(0);
        if before.kind == Kind::LruIsolate && taken > 0 {
            assert_eq!(after.kind, Kind::LruShrinkInactive);
            judged += 1;
        }
    }
    assert!(judged > 0);
}

/// `nr_written` counts what swap writes, when that is done; `nr_dirtied` does not.
#[test]
fn written_pages_are_those_of_swap_too() {
    for kernel in ["v2.6.37", "v3.6", "v4.11", "v6.1", "v6.18"] {
        let recording = record(kernel, SWAP);
        let counters = &recording.counters;
        assert!(counters["pswpout"] > 1000, "{kernel}");
        let written = counters["nr_written"] + recording.state["nr_writeback"];
        assert_eq!(written, counters["pswpout"], "{kernel}");
        assert_eq!(counters["nr_dirtied"], 0, "{kernel}");
    }
    let recording = record("v6.18", DIRTY);
    assert!(recording.counters["nr_written"] > 1000);
    assert_eq!(recording.counters["nr_dirtied"], 128 * 16);
}

/// Pages activated where a file is mapped with advice and read at random, each page several times.
fn activated(kernel: &str, advice: &str) -> u64 {
    let body = format!(
        r#"
[file.f]
fs = "data"
size = "24M"
[task.main]
run = [
  {{ map = "m", kind = "file-shared", file = "f", advice = "{advice}" }},
  {{ touch = "m", access = "read", order = "random", count = 30000 }},
]
"#
    );
    record(kernel, &body).counters["pgactivate"]
}

/// References by mappings with MADV_SEQUENTIAL never count, those with MADV_RANDOM up to 6.2 (8788f6781486).
#[test]
fn mappings_that_are_gone_through_once_have_no_recency() {
    for (kernel, random) in [
        ("v6.2", true),
        ("v6.3", false),
        ("v6.18", false),
        ("v6.18+vma_recency=not-sequential", true),
    ] {
        assert!(activated(kernel, "normal") > 500, "{kernel}");
        assert_eq!(activated(kernel, "sequential"), 0, "{kernel}");
        let pages = activated(kernel, "random");
        assert_eq!(pages > 500, random, "{kernel}: {pages}");
    }
}
