//! trace.dat: read back by our own reader, and by trace-cmd itself (`LOWMARK_TRACE_CMD`).

use crate::support::{Parts, Source, captures, options, release, variable};
use lowmark_record::event::gfp;
use lowmark_record::{Event, Field, Kind, Release, Sink, Tables};
use lowmark_trace::export::Format;
use lowmark_trace::input::Input;
use std::path::Path;
use std::process::Command;

/// One for each table of allocation flags, and those in which the texts changed most.
const ERAS: &[&str] = &[
    "2.6.36", "3.2", "3.16", "4.4", "4.6", "4.17", "5.15", "6.1", "6.12", "6.18", "7.1",
];

/// An event as everybody shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    time_us: u64,
    cpu: u32,
    pid: i32,
    event: String,
    text: String,
}

impl Shown {
    fn of(event: &Event, tables: &Tables, release: Release) -> Shown {
        let mut text = Vec::new();
        event.render(&tables.names, release, &mut text);
        Shown {
            time_us: (event.time_ns + 500) / 1_000,
            cpu: event.cpu,
            pid: tables.actor(event.task).expect("a task").pid,
            event: event.kind.name().to_owned(),
            text: String::from_utf8(text).expect("UTF-8").trim().to_owned(),
        }
    }
}

/// Events of one time may come in another order from another reader.
fn sorted(mut shown: Vec<Shown>) -> Vec<Shown> {
    shown.sort_by_key(|event| (event.time_us, event.cpu));
    shown
}

struct Collector {
    shown: Vec<Shown>,
    release: Release,
}

impl Sink for Collector {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.shown.push(Shown::of(event, tables, self.release));
    }
}

fn written(source: &Source, era: &str) -> Vec<Shown> {
    let release = release(era);
    let events = source.events.iter().filter(|e| e.kind.exists_in(release));
    let shown = events.map(|event| Shown::of(event, &source.tables, release));
    sorted(shown.collect())
}

fn read_back(path: &Path, era: &str) -> Vec<Shown> {
    let mut collector = Collector {
        shown: Vec::new(),
        release: release(era),
    };
    let source = lowmark_trace::read(Input::open(path).expect("opened"), &mut collector);
    let account = source.expect("read").account;
    assert_eq!(account.understood, account.lines, "{era}");
    assert_eq!((account.lost, account.damaged), (0, 0), "{era}");
    sorted(collector.shown)
}

/// What `trace-cmd report` makes of a file; none if there is no trace-cmd.
fn reported(path: &Path) -> Option<Vec<Shown>> {
    let program = variable("LOWMARK_TRACE_CMD", "trace-cmd report")?;
    let output = Command::new(program).arg("report").arg(path).output();
    let output = output.expect("trace-cmd runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = text.lines().filter(|line| !line.starts_with("cpus="));
    let shown = lines.map(|line| {
        let parts = Parts::of(line).unwrap_or_else(|| panic!("not an event: {line}"));
        Shown {
            time_us: parts.time_ns / 1_000,
            cpu: parts.cpu,
            pid: parts.pid,
            event: parts.event.to_owned(),
            text: parts.text.trim().to_owned(),
        }
    });
    Some(sorted(shown.collect()))
}

fn check(source: &Source, era: &str, name: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.dat");
    let exported = source.export(Format::TraceDat, &path, &options(era));
    let expected = written(source, era);
    assert_eq!(exported.events, expected.len() as u64, "{name}");
    same(&expected, &read_back(&path, era), name);
    if let Some(reported) = reported(&path) {
        same(&expected, &reported, name);
    }
}

fn same(expected: &[Shown], found: &[Shown], name: &str) {
    assert_eq!(expected.len(), found.len(), "{name}");
    for (expected, found) in expected.iter().zip(found) {
        assert_eq!(expected, found, "{name}");
    }
}

#[test]
fn every_event_of_every_era_is_read_back() {
    for era in ERAS {
        check(&Source::every_kind(release(era), 40), era, era);
    }
}

#[test]
fn allocation_flags_of_every_kind_are_printed_as_the_kernel_does() {
    let sets = [
        0,
        gfp::KSWAPD_RECLAIM,
        gfp::HIGHUSER_MOVABLE | gfp::ZERO | gfp::COMP,
        gfp::TRANSHUGE,
        // Old kernels print these as numbers.
        gfp::RECLAIM | gfp::DMA32 | gfp::HIGHMEM | gfp::FS,
        // Flags of other eras, and bits without a name.
        gfp::RECLAIM | gfp::COLD | gfp::ACCOUNT | gfp::NO_OBJ_EXT,
        gfp::KERNEL | 0x40_0001 << gfp::UNNAMED_SHIFT,
    ];
    for era in ERAS {
        let mut source = Source::default();
        let task = source.tables.task(b"cc1", 4242);
        for (index, set) in sets.into_iter().enumerate() {
            let event = Event::new(Kind::DirectReclaimBegin, index as u64 * 1_000, 0, task);
            let mut event = event.with(&[(Field::GfpFlags, set)]);
            let mask = event.kind.mask_in(release(era));
            event.keep(mask.expect("it exists"));
            source.events.push(event);
        }
        check(&source, era, era);
    }
}

#[test]
fn long_times_other_cpus_and_times_that_go_back_are_kept() {
    let mut source = Source::default();
    let task = source.tables.task(b"kswapd0", 49);
    let times = [0, 1, 134_217_728_000, 134_217_729_000, 1 << 62, 5_000];
    for (index, time_ns) in times.into_iter().enumerate() {
        let cpu = [0, 7, 0, 7, 0, 0][index];
        let event = Event::new(Kind::KswapdSleep, time_ns, cpu, task);
        source.events.push(event.with(&[(Field::Nid, 0)]));
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.dat");
    let exported = source.export(Format::TraceDat, &path, &options("6.18"));
    assert_eq!((exported.events, exported.unsorted), (6, 1));
    same(
        &written(&source, "6.18"),
        &read_back(&path, "6.18"),
        "times",
    );
}

#[test]
fn captures_come_back() {
    for (name, text) in captures(|name| name.contains("classic") || name.contains("thp-defer-frag"))
    {
        let (source, _) = Source::read(text, |_| {});
        check(&source, "6.18", &name);
    }
}
