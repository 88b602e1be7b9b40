//! Files that are read into large folios: what is the same as with single pages, and what is not. Every invariant is
//! checked after every event. Metadata is left out, so that pages read are those of the file.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// A workload on 6.18, with large folios and without, on a machine with so much memory.
fn both(ram: &str, body: &str) -> [Recording; 2] {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "folios"
title = "folios"
[machine]
ram = "{ram}"
cpus = 1
description = "small"
device.sda = {{
  kind = "ssd", rotational = true, size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = ["v6.18,model.metadata=off", "v6.18,model.metadata=off,model.read_folios=off"]
{body}
"#
    );
    let scenarios = common::scenarios(text);
    let record = |at: usize| {
        let options = Options {
            events: false,
            check_every: 1,
        };
        let recording = run(&scenarios[at], &options, &mut |_| {}).expect("the model can run it");
        assert_eq!(recording.outcome, Outcome::Completed);
        recording
    };
    [record(0), record(1)]
}

fn counters<const N: usize>(recording: &Recording, names: [&str; N]) -> [u64; N] {
    names.map(|name| recording.counters[name])
}

#[test]
fn what_fits_is_read_once() {
    let [large, pages] = both(
        "64M",
        r#"
[file.f]
kind = "random"
size = "20M"
[task.main]
run = [{ read = "f", block = "128K", passes = 2 }]
"#,
    );
    for recording in [&large, &pages] {
        let read = counters(
            recording,
            ["pgpgin", "workingset_refault_file", "pgsteal_kswapd"],
        );
        assert_eq!(read, [20 << 10, 0, 0]);
    }
    // A folio is marked as accessed once in each pass, as a page is: with the second all are active.
    let active = counters(&large, ["pgactivate"]);
    assert_eq!(active, counters(&pages, ["pgactivate"]));
    assert_eq!(active, [5120]);
}

/// Beyond 40 MB a file is read around its faults into folios that are mapped as a whole.
#[test]
fn a_mapped_file_takes_fewer_faults() {
    let [large, pages] = both(
        "128M",
        r#"
[file.f]
kind = "random"
size = "56M"
[task.main]
run = [
  { map = "m", kind = "file-shared", file = "f" },
  { touch = "m", access = "read" },
]
"#,
    );
    let names = ["pgpgin", "thp_file_mapped", "pgfault"];
    assert_eq!(counters(&large, names), [56 << 10, 8, 10_240 / 16 + 8]);
    assert_eq!(counters(&pages, names), [56 << 10, 0, 14_336 / 16]);
}

#[test]
fn memory_that_is_short_is_reclaimed_by_folios() {
    let [large, pages] = both(
        "32M",
        r#"
[file.f]
kind = "random"
size = "48M"
[task.main]
run = [{ read = "f", block = "128K", passes = 2 }]
"#,
    );
    for recording in [&large, &pages] {
        // All of it is read twice, and as much goes as does not fit.
        let [read] = counters(recording, ["pgpgin"]);
        assert!((92 << 10..=100 << 10).contains(&read), "{read}");
        let stolen: u64 = counters(recording, ["pgsteal_kswapd", "pgsteal_direct"])
            .iter()
            .sum();
        assert!((16_000..25_600).contains(&stolen), "{stolen}");
    }
}

/// Who writes to a page, or cuts a file short, has nothing to do with the rest of its folio.
#[test]
fn a_folio_is_split_by_who_changes_it() {
    for recording in both(
        "64M",
        r#"
[file.f]
kind = "random"
size = "20M"
[task.main]
run = [
  { read = "f", block = "128K" },
  { map = "m", kind = "file-shared", file = "f" },
  { touch = "m", access = "write", offset = "12M", length = "4K" },
  { touch = "m", access = "write", offset = "17M", length = "8K" },
  { fsync = "f" },
  { unmap = "m" },
  { truncate = "f", size = "14M" },
  { drop_caches = 1 },
]
"#,
    ) {
        assert_eq!(counters(&recording, ["nr_dirtied", "nr_written"]), [3, 3]);
    }
}
