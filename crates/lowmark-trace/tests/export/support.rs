//! Events to export, captures, and programs of others.

use crate::needed;
use liblzma::read::XzDecoder;
use lowmark_record::event::{Columns, ValueType, gfp};
use lowmark_record::{Event, Field, Kind, Release, Tables};
use lowmark_trace::export::{Exported, Exporter, Format, Options, create};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release by its text.
pub(crate) fn release(text: &str) -> Release {
    text.parse().expect("a release")
}

/// Options for a release.
pub(crate) fn options(text: &str) -> Options {
    Options {
        release: release(text),
        ..Options::new("0.0.0-test")
    }
}

/// Events with the tables that they need.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) tables: Tables,
    pub(crate) events: Vec<Event>,
}

impl Source {
    /// Writes the events.
    pub(crate) fn export(&self, format: Format, path: &Path, options: &Options) -> Exported {
        let mut exporter = create(format, path, options).expect("created");
        self.feed(exporter.as_mut());
        exporter.finish().expect("written")
    }

    /// Gives the events to an exporter.
    pub(crate) fn feed(&self, exporter: &mut dyn Exporter) {
        for event in &self.events {
            exporter.event(event, &self.tables);
        }
    }

    /// How many events there are of a tracepoint.
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.events.iter().filter(|e| e.kind == kind).count() as u64
    }

    /// The sum of a field over the events of a tracepoint.
    pub(crate) fn sum(&self, kind: Kind, field: Field) -> i64 {
        let events = self.events.iter().filter(|e| e.kind == kind);
        events.filter_map(|e| e.signed(field)).sum()
    }

    /// `rounds` events of every tracepoint that kernels of `release` have, with every field that they fill.
    pub(crate) fn every_kind(release: Release, rounds: u64) -> Source {
        let mut source = Source::default();
        let names = ["kswapd0", "cc1", "kworker/0:1", "a, \"b\""];
        let mut seed = 1u64;
        for round in 0..rounds {
            for kind in Kind::ALL.iter().filter(|kind| kind.exists_in(release)) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let who = (seed >> 33) as usize % names.len();
                let task = source.tables.task(names[who].as_bytes(), 29 + who as i32);
                // Whole microseconds, as text has them.
                let time_ns = 1_042_118_234_000 + source.events.len() as u64 * 7_000;
                let mut event = Event::new(*kind, time_ns, (seed >> 40) as u32 % 4, task);
                for (index, field) in kind.fields().iter().enumerate() {
                    let number = round * 31 + index as u64 + 1;
                    let text = |text: &str| text.as_bytes().to_vec();
                    let value = match (field.spec().value, *field) {
                        (ValueType::Text, Field::InIrq) => {
                            source.tables.names.intern(&text("(in-irq)"))
                        }
                        (ValueType::Text, Field::Bdi) => source.tables.names.intern(&text("8:0")),
                        (ValueType::Text, _) => source
                            .tables
                            .names
                            .intern(&text(["sync", "Normal"][index % 2])),
                        (ValueType::Gfp, _) => [gfp::KERNEL, gfp::HIGHUSER_MOVABLE][index % 2],
                        (ValueType::ReclaimFlags, _) => [0x09, 0x0a][round as usize % 2],
                        (ValueType::Lru, _) => round % 4,
                        (ValueType::Throttle, _) => 1 << (round % 4),
                        (ValueType::Device, _) => 8 << 20 | number,
                        (ValueType::Pointer, _) => 0xffff_8880_0000_0000 + number * 64,
                        (ValueType::Signed, Field::Retval) => (-(number as i64)).cast_unsigned(),
                        (ValueType::Signed | ValueType::Unsigned, _) => number,
                    };
                    event.set(*field, value);
                }
                event.keep(kind.mask_in(release).expect("it exists"));
                source.events.push(event);
            }
        }
        source
    }

    /// The lines of a text that are events of known tracepoints, and how many are of others.
    pub(crate) fn read(text: impl BufRead, mut line_seen: impl FnMut(&str)) -> (Source, u64) {
        let mut source = Source::default();
        let mut parser = lowmark_record::event::TextParser::default();
        let mut unknown = 0;
        for line in text.lines() {
            let line = line.expect("UTF-8");
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let Some(parts) = Parts::of(&line) else {
                panic!("not a line of ftrace: {line}");
            };
            let Some(kind) = Kind::named(parts.event) else {
                unknown += 1;
                continue;
            };
            let task = source.tables.task(parts.comm.as_bytes(), parts.pid);
            let mut event = Event::new(kind, parts.time_ns, parts.cpu, task);
            parser.parse(parts.text.as_bytes(), &mut event, &mut source.tables.names);
            event.columns = Columns::of(parts.columns.as_bytes());
            source.events.push(event);
            line_seen(&line);
        }
        (source, unknown)
    }
}

/// A line of ftrace text, taken apart without the crate's own reader.
pub(crate) struct Parts<'a> {
    pub(crate) comm: &'a str,
    pub(crate) pid: i32,
    pub(crate) cpu: u32,
    pub(crate) columns: &'a str,
    pub(crate) time_ns: u64,
    pub(crate) event: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(line: &'a str) -> Option<Parts<'a>> {
        let (task, rest) = line.split_once(" [")?;
        let (comm, pid) = task.trim().rsplit_once('-')?;
        let (cpu, rest) = rest.split_once("] ")?;
        let (place, rest) = rest.split_once(": ")?;
        let (columns, time) = match place.trim().rsplit_once(' ') {
            Some((columns, time)) => (columns.trim(), time),
            None => ("", place.trim()),
        };
        let (seconds, micros) = time.split_once('.')?;
        // Of an event without text the colon ends the line.
        let (event, text) = rest
            .split_once(": ")
            .or_else(|| Some((rest.strip_suffix(':')?, "")))?;
        let seconds: u64 = seconds.parse().ok()?;
        let micros: u64 = micros.parse().ok()?;
        Some(Parts {
            comm,
            pid: pid.trim().parse().ok()?,
            cpu: cpu.parse().ok()?,
            columns,
            time_ns: seconds * 1_000_000_000 + micros * 1_000,
            event,
            text,
        })
    }
}

/// A variable of the environment; if it is not set, the test that needs it judges nothing.
pub(crate) fn variable(name: &str, what: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).map(PathBuf::from);
    if value.is_none() {
        needed::absent(format!("{what}: {name} is not set"));
    }
    value
}

/// The captures whose names `wanted` likes.
pub(crate) fn captures(wanted: impl Fn(&str) -> bool) -> Vec<(String, BufReader<XzDecoder<File>>)> {
    let Some(directory) = variable("LOWMARK_CAPTURES", "captures of real kernels") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .expect("named")
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".trace.txt.xz") && wanted(&name) {
            let file = File::open(&path).expect("a capture");
            found.push((name, BufReader::new(XzDecoder::new(file))));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!found.is_empty(), "no captures there");
    found
}

/// Runs one of the scripts beside this file; none if there is no Python for it.
pub(crate) fn python(script: &str, arguments: &[&Path]) -> Option<String> {
    let python = variable("LOWMARK_PYTHON", script)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/export")
        .join(script);
    let output = Command::new(python).arg(script).args(arguments).output();
    let output = output.expect("Python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}
