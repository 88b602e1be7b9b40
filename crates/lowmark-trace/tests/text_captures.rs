//! Captures of real kernels, line for line against the sums that another counter took from them. All were
//! taken with two CPUs.
//!
//! `LOWMARK_CAPTURES` names the directory; without it these tests judge nothing, which `LOWMARK_CI=1` makes an error.

#[path = "../../../tests/needed.rs"]
mod needed;

use lowmark_trace::input::{Compression, Input, Kind, TextKind};
use lowmark_trace::text::{Header, Line, Parser, Time, parse_raw};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Header lines of the `trace` file of 6.18, which `host-*` have; `trace_pipe` has none.
const HEADER_LINES: u64 = 12;
/// Samples of the perf capture.
const PERF_SAMPLES: u64 = 49_909;

type Counts = BTreeMap<String, u64>;

#[derive(Default)]
struct Sums {
    lines: u64,
    events: Counts,
    flags: Counts,
    /// Lines of which the parser knew that their event has the name of the one before.
    named_again: u64,
}

#[test]
fn every_line_of_every_capture() {
    let Some(directory) = captures() else {
        return;
    };
    let (mut files, mut named_again) = (0, 0);
    for path in files_ending(&directory, ".trace.txt.xz") {
        let name = path.to_string_lossy().into_owned();
        let expected = read_sums(Path::new(&name.replace(".trace.txt.xz", ".sums.toml")));
        let is_host = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("host-"));
        let (sums, headers) = count(&path, TextKind::Ftrace);
        assert_eq!(sums.lines, expected.lines, "{name}");
        assert_eq!(sums.events, expected.events, "{name}");
        assert_eq!(sums.flags, expected.flags, "{name}");
        assert_eq!(headers, if is_host { HEADER_LINES } else { 0 }, "{name}");
        files += 1;
        named_again += sums.named_again;
    }
    assert!(named_again > 0, "no event is like the one before");
    assert!(
        files > 4,
        "only {files} captures in {}",
        directory.display()
    );
}

#[test]
fn every_line_of_perf_script() {
    let Some(directory) = captures() else {
        return;
    };
    let files = files_ending(&directory, ".perf-script.txt.xz");
    assert!(!files.is_empty());
    for path in files {
        let (sums, headers) = count(&path, TextKind::Perf);
        assert_eq!(
            (sums.lines, headers),
            (PERF_SAMPLES, 0),
            "{}",
            path.display()
        );
        assert_eq!(sums.flags, Counts::new());
    }
}

fn captures() -> Option<PathBuf> {
    let directory = std::env::var_os("LOWMARK_CAPTURES");
    if directory.is_none() {
        needed::absent("LOWMARK_CAPTURES does not name a directory of captures");
    }
    directory.map(PathBuf::from)
}

fn files_ending(directory: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("LOWMARK_CAPTURES is a directory");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}

/// Counts a capture in which nothing but events and headers may be, in the order of time.
fn count(path: &Path, kind: TextKind) -> (Sums, u64) {
    let input = Input::open(path).expect("opens");
    assert_eq!(input.kind(), Kind::Text(kind));
    assert_eq!(input.compression(), Some(Compression::Xz));
    let mut lines = input.into_lines();
    let (mut sums, mut headers, mut last_ns) = (Sums::default(), 0, [0; 2]);
    let (mut row, mut again) = (Parser::default(), 0);
    let mut name = String::new();
    while let Some(line) = lines.next_line().expect("not damaged") {
        let mut in_a_row = row.parse_raw(&line);
        if let Line::Event(event) = &mut in_a_row {
            again += u64::from(std::mem::take(&mut event.again));
            if std::mem::take(&mut event.named_again) {
                assert_eq!(event.event, name.as_bytes());
                sums.named_again += 1;
            } else {
                name = text(event.event);
            }
        }
        let alone = parse_raw(&line);
        assert_eq!(in_a_row, alone);
        match alone {
            Line::Event(event) => {
                sums.lines += 1;
                *sums.events.entry(text(event.event)).or_default() += 1;
                if let Some(flags) = event.flags {
                    *sums.flags.entry(text(flags)).or_default() += 1;
                }
                let cpu = event.cpu.expect("every line has one") as usize;
                assert!(event.pid > 0 && !event.comm.is_empty(), "{event:?}");
                let Time::Ns(ns) = event.time else {
                    panic!("{event:?}");
                };
                // `trace_pipe` merges CPUs as they are read: only each one by itself is in order.
                assert!(ns >= last_ns[cpu], "{event:?}");
                last_ns[cpu] = ns;
            }
            Line::Header(Header::Entries {
                in_buffer,
                written,
                cpus,
            }) => {
                assert_eq!((in_buffer, cpus), (written, Some(2)));
                headers += 1;
            }
            Line::Header(_) => headers += 1,
            other => panic!("{}: line {}: {other:?}", path.display(), line.number),
        }
    }
    if kind == TextKind::Ftrace {
        assert!(again > sums.lines / 4, "{again} of {} lines", sums.lines);
    }
    (sums, headers)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The few parts of a `.sums.toml` that are needed: `lines = n` and two tables of counts.
fn read_sums(path: &Path) -> Sums {
    let mut sums = Sums::default();
    let mut table = String::new();
    for line in std::fs::read_to_string(path).expect("readable").lines() {
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut table);
        } else if let Some((key, value)) = line.split_once(" = ") {
            let key = key.trim_matches('"').to_owned();
            let counts = match table.as_str() {
                "" if key == "lines" => {
                    sums.lines = value.parse().expect("a number");
                    continue;
                }
                "events" => &mut sums.events,
                "flag_columns" => &mut sums.flags,
                _ => continue,
            };
            counts.insert(key, value.parse().expect("a number"));
        }
    }
    sums
}
