//! Captures of real kernels against the counters, texts and sums that were taken with them.

use crate::needed;
use lowmark_trace::format::{Format, Formats, NameTable};
use lowmark_trace::perf_data::PerfData;
use lowmark_trace::record::{Accounting, Endian, Error, RawRecord};
use lowmark_trace::trace_dat::TraceDat;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

pub(crate) fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .expect("xz");
    bytes
}

/// A file of the captures; `None`, with a word why, if there are none here.
fn capture(name: &str) -> Option<Vec<u8>> {
    let Some(directory) = std::env::var_os("LOWMARK_CAPTURES") else {
        needed::absent(format!(
            "LOWMARK_CAPTURES does not name the directory of {name}"
        ));
        return None;
    };
    let path = PathBuf::from(directory).join(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            needed::absent(format!("{name} is not among these captures"));
            return None;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    Some(if name.ends_with(".xz") {
        unpack(&bytes)
    } else {
        bytes
    })
}

fn text(name: &str) -> Option<String> {
    capture(name).map(|bytes| String::from_utf8(bytes).expect("text"))
}

type Deliver<'a> = dyn FnMut(RawRecord<'_>) -> ControlFlow<()> + 'a;
type Counts = BTreeMap<String, u64>;

/// Reads a file: its account, the number of records by event, and the sums of `event.field`.
pub(crate) fn sums(
    formats: &Formats,
    endian: Endian,
    read: &mut dyn FnMut(&mut Deliver<'_>) -> Result<Accounting, Error>,
) -> (Accounting, Counts, Counts) {
    let (mut counts, mut sums) = (Counts::new(), Counts::new());
    let mut latest = 0;
    let account = read(&mut |record| {
        assert!(record.time_ns >= latest);
        latest = record.time_ns;
        let format = formats.get(record.event).expect("a format");
        *counts.entry(format.name.clone()).or_default() += 1;
        if format.name == "mm_vmscan_lru_shrink_inactive" {
            for name in ["nr_scanned", "nr_reclaimed"] {
                let field = format.field(name).expect("a field");
                let value = field.read_u64(record.data, endian).expect("a value");
                *sums.entry(name.to_owned()).or_default() += value;
            }
        }
        ControlFlow::Continue(())
    });
    (account.expect("a file"), counts, sums)
}

/// The counters that moved while a capture was taken.
fn vmstat(name: &str) -> Option<BTreeMap<String, i64>> {
    let toml = text(&format!("{name}.toml"))?;
    let lines = toml.lines().skip_while(|line| *line != "[vmstat_delta]");
    let pairs = lines.filter_map(|line| line.split_once(" = "));
    Some(
        pairs
            .map(|(key, value)| (key.to_owned(), value.parse().expect("a number")))
            .collect(),
    )
}

/// What the README of the captures says of the counters: exact but for the writes of a busy host.
fn check_counters(name: &str, counts: &Counts, sums: &Counts) {
    let vmstat = vmstat(name).expect("shipped with it");
    let scanned = vmstat["pgscan_anon"] + vmstat.get("pgscan_file").unwrap_or(&0);
    let reclaimed = vmstat["pgsteal_anon"] + vmstat.get("pgsteal_file").unwrap_or(&0);
    assert_eq!(sums["nr_scanned"] as i64, scanned, "{name}");
    assert_eq!(sums["nr_reclaimed"] as i64, reclaimed, "{name}");
    let written = counts["mm_vmscan_write_folio"] as i64;
    assert!(
        (written - vmstat["nr_vmscan_write"]).abs() <= 60,
        "{name}: {written}"
    );
}

#[test]
fn trace_dat_has_the_records_that_trace_cmd_counts() {
    for (name, records) in [
        ("host-tracecmd-seq-64m-56m", 37_613),
        ("vm-6.18-tracecmd-swap-seq-470m-classic", 28_019),
    ] {
        let Some(file) = capture(&format!("{name}.trace.dat.xz")) else {
            return;
        };
        let mut trace = TraceDat::open(Cursor::new(file)).expect(name);
        let (formats, endian) = (trace.formats().clone(), trace.endian());
        assert_eq!(formats.rejected().1, 0, "{:?}", formats.rejected());
        let (account, counts, sums) = sums(&formats, endian, &mut |d| trace.for_each(d));
        assert_eq!(account.records, records, "{name}");
        assert!(account.is_complete(), "{account:?}");
        check_counters(name, &counts, &sums);
    }
}

const PERF: &str = "host-perf-seq-64m-56m";

#[test]
fn perf_data_agrees_with_the_counters() {
    let Some(file) = capture(&format!("{PERF}.perf.data.xz")) else {
        return;
    };
    let mut perf = PerfData::open(Cursor::new(file)).expect(PERF);
    let (formats, endian) = (perf.formats().clone(), perf.endian());
    let (account, counts, sums) = sums(&formats, endian, &mut |d| perf.for_each(d));
    assert_eq!(account.records, 49_909);
    assert!(account.is_complete(), "{account:?}");
    // Only one tree of processes was recorded: what others reclaimed is in the counters only.
    let vmstat = vmstat(PERF).expect("shipped with it");
    assert!(sums["nr_scanned"] as i64 <= vmstat["pgscan_anon"] + vmstat["pgscan_file"]);
    assert!(counts["mm_vmscan_write_folio"] as i64 <= vmstat["nr_vmscan_write"]);
}

/// A line of `perf script`: name of the task, pid, CPU, time in us, event, text.
fn script_line(line: &str) -> Option<(&str, i64, u32, u64, &str, &str)> {
    let (head, rest) = line.split_once(" [")?;
    let (comm, pid) = head.trim().rsplit_once(' ')?;
    let (cpu, rest) = rest.split_once(']')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, micros) = time.split_once('.')?;
    let time = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (event, text) = rest
        .trim_start()
        .strip_prefix("vmscan:")?
        .split_once(": ")?;
    Some((
        comm.trim_end(),
        pid.parse().ok()?,
        cpu.parse().ok()?,
        time,
        event,
        text,
    ))
}

/// Field of the record and value of each part of a text.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    if !text.contains(": nid: ") {
        let pairs = text
            .split(' ')
            .map(|pair| pair.split_once('=').expect("a pair"));
        let alias = |key| match key {
            "classzone" => "highest_zoneidx",
            "flags" => "reclaim_flags",
            "nr_activate_anon" => "nr_activate0",
            "nr_activate_file" => "nr_activate1",
            "usect_delayed" => "usec_delayed",
            other => other,
        };
        return pairs.map(|(key, value)| (alias(key), value)).collect();
    }
    let labels = [
        ("nid: ", "nid"),
        ("objects to shrink ", "nr_objects_to_shrink"),
        ("gfp_flags ", "gfp_flags"),
        ("cache items ", "cache_items"),
        ("delta ", "delta"),
        ("total_scan ", "total_scan"),
        ("priority ", "priority"),
        ("unused scan count ", "unused_scan"),
        ("new scan count ", "new_scan"),
        ("return val ", "retval"),
    ];
    let found = labels.iter().filter_map(|(label, field)| {
        let (_, rest) = text.split_once(label)?;
        Some((*field, rest.split(' ').next()?))
    });
    found.collect()
}

fn check_field(format: &Format, record: &RawRecord<'_>, endian: Endian, key: &str, printed: &str) {
    if key == "page" {
        return;
    }
    let field = format
        .field(key)
        .unwrap_or_else(|| panic!("{} has {key}", format.name));
    let value = field.read(record.data, endian).expect("a value");
    let table = format
        .flags(key)
        .filter(|table| table.unresolved().next().is_none());
    let expected = match table {
        Some(table) => table.render(value as u64),
        None if key == "pfn" => format!("{value:#x}"),
        // The kernel's own enum, which the format only names.
        None if key == "reason" && value == 1 => "VMSCAN_THROTTLE_WRITEBACK".to_owned(),
        None => value.to_string(),
    };
    assert_eq!(printed, expected, "{} {key}", format.name);
}

#[test]
fn perf_data_agrees_with_perf_script_event_by_event() {
    let Some(file) = capture(&format!("{PERF}.perf.data.xz")) else {
        return;
    };
    let Some(script) = text(&format!("{PERF}.perf-script.txt.xz")) else {
        return;
    };
    let mut perf = PerfData::open(Cursor::new(file)).expect(PERF);
    let (formats, endian) = (perf.formats().clone(), perf.endian());
    let mut lines = script.lines();
    let account = perf.for_each(&mut |record| {
        let line = lines.next().expect("a line for each record");
        let (comm, pid, cpu, time, event, text) = script_line(line).expect(line);
        let format = formats.get(record.event).expect("a format");
        assert_eq!(record.comm, Some(comm), "{line}");
        let common_pid = format
            .field("common_pid")
            .and_then(|f| f.read(record.data, endian));
        assert_eq!((record.cpu, common_pid), (cpu, Some(pid)), "{line}");
        // perf cuts to microseconds.
        assert_eq!(
            (record.time_ns / 1000, format.name.as_str()),
            (time, event),
            "{line}"
        );
        for (key, value) in pairs(text) {
            check_field(format, &record, endian, key, value);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(account.expect("a file").records, 49_909);
    assert_eq!(lines.next(), None);
}

const FORMATS: [&str; 5] = ["6.1.192", "6.12.107", "6.18.15", "6.18.44-host", "7.2.12"];

/// Values that only the source of the kernel knows: in all five kernels `reason` of `throttled`, ...
const THROTTLE_VALUES: [&str; 4] = [
    "(1 << VMSCAN_THROTTLE_CONGESTED)",
    "(1 << VMSCAN_THROTTLE_ISOLATED)",
    "(1 << VMSCAN_THROTTLE_NOPROGRESS)",
    "(1 << VMSCAN_THROTTLE_WRITEBACK)",
];

/// ... and since 6.18 the state of an inode in events of writeback.
const INODE_STATES: [&str; 18] = [
    "I_CLEAR",
    "I_CREATING",
    "I_DIRTY_DATASYNC",
    "I_DIRTY_PAGES",
    "I_DIRTY_SYNC",
    "I_DIRTY_TIME",
    "I_DONTCACHE",
    "I_FREEING",
    "I_LINKABLE",
    "I_LRU_ISOLATING",
    "I_NEW",
    "I_OVL_INUSE",
    "I_PINNING_NETFS_WB",
    "I_REFERENCED",
    "I_SYNC",
    "I_SYNC_QUEUED",
    "I_WB_SWITCH",
    "I_WILL_FREE",
];

/// The formats of a kernel: group, name, text.
fn formats_of(kernel: &str) -> Option<Vec<(String, String, String)>> {
    let file = text(&format!("formats/{kernel}.formats.txt.xz"))?;
    let parts = file.split("### ").filter_map(|part| {
        let (head, text) = part.split_once('\n')?;
        let (system, name) = head.split_once('/')?;
        text.starts_with("name:")
            .then(|| (system.to_owned(), name.to_owned(), text.to_owned()))
    });
    Some(parts.collect())
}

#[test]
fn every_format_of_five_kernels_is_parsed_and_the_unresolved_names_are_known() {
    let mut unresolved = BTreeMap::<String, BTreeSet<&str>>::new();
    for kernel in FORMATS {
        let Some(formats) = formats_of(kernel) else {
            return;
        };
        assert!(formats.len() > 100, "{kernel}: {}", formats.len());
        for (system, name, text) in formats {
            let format = Format::parse(&system, &text).expect(&name);
            assert_eq!(format.name, name);
            // As many tables as calls.
            let calls = ["__print_flags(", "__print_symbolic("];
            let calls: usize = calls.iter().map(|call| text.matches(call).count()).sum();
            assert_eq!(format.tables().count(), calls, "{kernel} {name}");
            for (field, table) in format.tables() {
                assert!(!table.entries.is_empty(), "{kernel} {name} {field}");
                for (value, _) in table.unresolved() {
                    unresolved
                        .entry(value.to_owned())
                        .or_default()
                        .insert(kernel);
                }
            }
        }
    }
    let in_kernels = |kernels: &[&str]| -> Vec<&str> {
        let same = unresolved
            .iter()
            .filter(|(_, found)| found.iter().eq(kernels));
        same.map(|(value, _)| value.as_str()).collect()
    };
    assert_eq!(in_kernels(&FORMATS), THROTTLE_VALUES);
    assert_eq!(in_kernels(&FORMATS[2..]), INODE_STATES);
    assert_eq!(unresolved.len(), THROTTLE_VALUES.len() + INODE_STATES.len());
}

#[test]
fn flags_of_6_18_are_those_of_the_kernel() {
    let Some(formats) = formats_of("6.18.15") else {
        return;
    };
    let table = |event: &str, field: &str| -> NameTable {
        let found = formats
            .iter()
            .find(|(_, name, _)| name == event)
            .expect(event);
        let format = Format::parse(&found.0, &found.2).expect(event);
        format.flags(field).expect(field).clone()
    };
    let gfp = table("mm_vmscan_direct_reclaim_begin", "gfp_flags");
    let bits = [
        ("__GFP_HIGH", 5),
        ("__GFP_IO", 6),
        ("__GFP_FS", 7),
        ("__GFP_MOVABLE", 3),
    ];
    for (name, bit) in bits {
        assert_eq!(gfp.value_of(name), Some(1 << bit), "{name}");
    }
    assert_eq!(gfp.value_of("GFP_KERNEL"), Some(0xcc0));
    assert_eq!(gfp.zero.as_deref(), Some("none"));
    let reclaim = table("mm_vmscan_lru_shrink_inactive", "reclaim_flags");
    assert_eq!(reclaim.render(0), "RECLAIM_WB_NONE");
    assert_eq!(reclaim.render(0x0a), "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC");
    let lru = table("mm_vmscan_lru_isolate", "lru");
    assert_eq!(
        (lru.render(2), lru.render(4)),
        ("inactive_file".into(), "unevictable".into())
    );
}

/// Real formats with pieces cut out, put in again or changed.
#[test]
fn changed_formats_do_no_harm() {
    let Some(formats) = formats_of("7.2.12") else {
        return;
    };
    // A small generator, so that a failure comes again.
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for (system, _, text) in &formats {
        for _ in 0..20 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..3 {
                let (at, len) = (random(bytes.len()), random(40));
                let end = (at + len).min(bytes.len());
                match random(3) {
                    0 => drop(bytes.drain(at..end)),
                    1 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                    _ => bytes[at] = b"(){}\",|&~0xZ\n;:"[random(15)],
                }
            }
            if let Ok(format) = Format::parse(system, &String::from_utf8_lossy(&bytes)) {
                format
                    .tables()
                    .for_each(|(_, table)| drop(table.render(u64::MAX)));
            }
        }
    }
}
