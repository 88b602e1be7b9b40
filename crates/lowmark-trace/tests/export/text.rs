//! ftrace text: read back by the parser, against lines of real kernels, and by the kernel's own script.

use crate::needed;
use crate::support::{Parts, Source, captures, options, release, variable};
use lowmark_record::event::{Columns, TextParser, Understood};
use lowmark_record::{Event, Field, Kind, Release, Sink};
use lowmark_trace::export::{Entries, EraFinder, Format, Options};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const ERAS: &[&str] = &[
    "2.6.36", "2.6.38", "3.0", "3.2", "3.4", "3.16", "4.1", "4.4", "4.8", "4.11", "4.16", "4.17",
    "5.2", "5.9", "5.12", "5.15", "5.18", "6.1", "6.7", "6.13", "6.18", "7.1",
];

fn exported(source: &Source, options: &Options) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    source.export(Format::Ftrace, &path, options);
    std::fs::read_to_string(path).expect("UTF-8")
}

fn event_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// A trace is written in the text of an era that has all of its events; the newest if that is one.
#[test]
fn the_era_follows_from_the_events() {
    for era in ERAS {
        let source = Source::every_kind(release(era), 3);
        let mut finder = EraFinder::default();
        for event in &source.events {
            finder.event(event, &source.tables);
        }
        let found = finder.release();
        for event in &source.events {
            let mask = event.kind.mask_in(found);
            let mask = mask.unwrap_or_else(|| panic!("{era}: {found} has no {:?}", event.kind));
            let unprinted = event.kind.spec().unprinted;
            for (slot, field) in event.kind.fields().iter().enumerate() {
                let has = event.get(*field).is_none() || unprinted.contains(field);
                assert!(has || mask >> slot & 1 != 0, "{era}: {found}, {field:?}");
            }
        }
    }
    let of = |kind| {
        let mut finder = EraFinder::default();
        finder.event(&Event::new(kind, 1, 0, 0), &Default::default());
        finder.release()
    };
    assert_eq!(EraFinder::default().release(), Release::NEWEST);
    assert_eq!(of(Kind::KswapdSleep), Release::NEWEST);
    assert!(of(Kind::BalancePgdatBegin) > Release::NEWEST);
    assert_eq!(of(Kind::BalanceDirtyWait), release("3.1"));
}

#[test]
fn every_event_of_every_era_is_read_back() {
    for era in ERAS {
        let source = Source::every_kind(release(era), 3);
        let options = Options {
            any_comm: true,
            ..options(era)
        };
        let text = exported(&source, &options);
        let mut parser = TextParser::default();
        let mut names = source.tables.names.clone();
        let lines: Vec<&str> = event_lines(&text).collect();
        assert_eq!(lines.len(), source.events.len(), "{era}");
        for (line, event) in lines.iter().zip(&source.events) {
            let parts = Parts::of(line).expect("a line");
            let actor = source.tables.actor(event.task).expect("a task");
            assert_eq!(
                (parts.comm, parts.pid),
                (actor.name.as_str(), actor.pid),
                "{line}"
            );
            assert_eq!(
                (parts.time_ns, parts.cpu),
                (event.time_ns, event.cpu),
                "{line}"
            );
            assert_eq!(parts.event, event.kind.name());
            let mut read = Event::new(event.kind, parts.time_ns, parts.cpu, event.task);
            let understood = parser.parse(parts.text.as_bytes(), &mut read, &mut names);
            assert_eq!(understood, Understood::Exactly, "{era}: {line}");
            // Text has all but what only the binary record has.
            let unprinted = event.kind.spec().unprinted;
            for (field, value) in event.fields() {
                let printed = !unprinted.contains(&field) || read.get(field).is_some();
                if printed {
                    assert_eq!(read.get(field), Some(value), "{era}: {field:?} of {line}");
                }
            }
            for (field, _) in read.fields() {
                assert!(event.get(field).is_some(), "{era}: {field:?} of {line}");
            }
        }
    }
}

#[test]
fn events_of_other_eras_are_left_out_and_counted() {
    let mut source = Source::every_kind(release("6.18"), 2);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("old");
    let exported = source.export(Format::Ftrace, &path, &options("2.6.36"));
    let known = source
        .events
        .iter()
        .filter(|e| e.kind.exists_in(release("2.6.36")))
        .count();
    assert_eq!(exported.events, known as u64);
    assert_eq!(exported.not_in_era["mm_vmscan_throttled"], 2);
    let left_out: u64 = exported.not_in_era.values().sum();
    assert_eq!(exported.events + left_out, source.events.len() as u64);
    assert_eq!(exported.renamed["kworker/0:1"], "kworker-0-1");
    assert_eq!(exported.renamed["a, \"b\""], "a---b-");
    assert_eq!(exported.renamed.len(), 2);
    assert_eq!(exported.unsorted, 0);
    source.events.swap(0, 9);
    assert!(
        source
            .export(Format::Ftrace, &path, &options("6.18"))
            .unsorted
            > 0
    );
}

/// Lines of the fact sheet, set as the kernel's format strings set them.
const GOLDEN: &[(&str, &str)] = &[
    (
        "2.6.38",
        "         kswapd0-29    [001]  1042.118234: mm_vmscan_lru_isolate: isolate_mode=1 order=0 \
         nr_requested=32 nr_scanned=32 nr_taken=32 contig_taken=0 contig_dirty=0 contig_failed=0",
    ),
    (
        "3.5",
        "         kswapd0-41    [000] d..1    88.120001: mm_vmscan_lru_isolate: isolate_mode=0 \
         order=0 nr_requested=32 nr_scanned=33 nr_taken=32 file=1",
    ),
    (
        "3.5",
        "         kswapd0-41    [000] ....    88.120055: mm_vmscan_lru_shrink_inactive: nid=0 zid=1 \
         nr_scanned=32 nr_reclaimed=31 priority=11 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    ),
    (
        "4.17",
        "             cc1-4242  [003] ....    91.000100: mm_vmscan_direct_reclaim_begin: order=0 \
         may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO classzone_idx=2",
    ),
    (
        "5.12",
        "             cc1-4242    [003] ....    91.000100: mm_vmscan_direct_reclaim_begin: order=0 \
         gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO",
    ),
    (
        "6.18",
        "             cc1-4242    [003] .....    91.000100: mm_vmscan_direct_reclaim_begin: order=0 \
         gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO",
    ),
    (
        "6.18",
        "             cc1-4242    [003] d..1.    91.000140: mm_vmscan_lru_isolate: classzone=2 order=0 \
         nr_requested=32 nr_scanned=32 nr_skipped=0 nr_taken=32 lru=inactive_file",
    ),
    (
        "6.18",
        "             cc1-4242    [003] .....    91.004140: mm_vmscan_throttled: nid=0 \
         usec_timeout=100000 usect_delayed=4000 reason=VMSCAN_THROTTLE_WRITEBACK",
    ),
];

#[test]
fn golden_lines_are_written_to_the_letter() {
    for (era, golden) in GOLDEN {
        let (mut source, unknown) = Source::read(golden.as_bytes(), |_| {});
        assert_eq!((source.events.len(), unknown), (1, 0));
        // Without its own columns an event gets those that its tracepoint usually has.
        source.events[0].columns = Columns::default();
        let text = exported(&source, &options(era));
        assert_eq!(event_lines(&text).collect::<Vec<_>>(), [*golden]);
    }
}

#[test]
fn columns_fit_the_era() {
    let mut source = Source::every_kind(release("3.4"), 1);
    source.events.truncate(1);
    for (columns, era, shown) in [
        ("dNh2", "3.4", "dNh2"),
        ("dNh2", "6.18", "dNh2."),
        ("dNh21", "4.4", "dNh2"),
        ("", "6.18", "....."),
        ("dNh21", "3.2", ""),
    ] {
        source.events[0].columns = Columns::of(columns.as_bytes());
        let text = exported(&source, &options(era));
        let line = event_lines(&text).next().expect("a line");
        assert_eq!(Parts::of(line).expect("a line").columns, shown, "{era}");
    }
}

#[test]
fn headers_are_the_eras() {
    let source = Source::default();
    let header = |era: &str, counted: bool| {
        let entries = counted.then_some(Entries { events: 7, cpus: 2 });
        exported(
            &source,
            &Options {
                entries,
                ..options(era)
            },
        )
    };
    let bare = "# tracer: nop\n#\n#           TASK-PID    CPU#    TIMESTAMP  FUNCTION\n\
                #              | |       |          |         |\n";
    assert_eq!(header("2.6.36", true), bare);
    let newest = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 7/7   #P:2\n#\n\
        #                                _-----=> irqs-off/BH-disabled\n";
    assert!(header("6.18", true).starts_with(newest));
    assert!(!header("6.18", false).contains("entries"));
    assert!(header("4.4", true).contains("\n#           TASK-PID   CPU#  ||||    TIMESTAMP"));
    assert!(header("5.12", true).contains("\n#           TASK-PID     CPU#  ||||   TIMESTAMP"));
}

#[test]
fn times_are_rounded_as_the_kernel_rounds() {
    let mut source = Source::every_kind(release("6.18"), 1);
    source.events.truncate(1);
    for (time_ns, shown) in [
        (0, " [000] .....     0.000000: "),
        (499, " [000] .....     0.000000: "),
        (500, " [000] .....     0.000001: "),
        (999_999_500, " [000] .....     1.000000: "),
        (123_456_000_001_000, " [000] ..... 123456.000001: "),
        (u64::MAX, " [000] ..... 18446744073.709551: "),
    ] {
        source.events[0].time_ns = time_ns;
        source.events[0].cpu = 0;
        let text = exported(&source, &options("6.18"));
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

/// What events do not keep: since 6.16 `GFP_NOWAIT` stands for `__GFP_NOWARN` too, which the name alone does
/// not tell.
const NOT_KEPT: &str = "GFP_NOWAIT";

/// Captures of 6.18, host and guest: each line comes out as the kernel wrote it, prefix and all.
#[test]
fn captures_come_out_as_they_went_in() {
    let host = |name: &str| name.starts_with("host-") || name.starts_with("vm-6.18");
    for (name, text) in captures(host) {
        let mut lines = Vec::new();
        let (source, unknown) = Source::read(text, |line| lines.push(line.to_owned()));
        let options = Options {
            any_comm: true,
            ..options("6.18")
        };
        let exported = exported(&source, &options);
        let mut different: BTreeMap<&str, (u64, String)> = BTreeMap::new();
        let mut not_kept = 0;
        for ((line, written), event) in lines.iter().zip(event_lines(&exported)).zip(&source.events)
        {
            if line.contains(NOT_KEPT) && line != written {
                not_kept += 1;
            } else if line != written {
                let first = || format!("\n  {line}\n  {written}");
                let (count, _) = different
                    .entry(event.kind.name())
                    .or_insert_with(|| (0, first()));
                *count += 1;
            }
        }
        println!(
            "{name}: {} lines, {not_kept} of them differ by {NOT_KEPT}; {unknown} of unknown tracepoints",
            lines.len()
        );
        assert_eq!(event_lines(&exported).count(), lines.len(), "{name}");
        assert!(different.is_empty(), "{name}: {different:#?}");
    }
}

/// Events of 6.1 of which the script of 6.1 expects the fields of earlier kernels. It counts most of them all the same, but
/// no pages that they tell.
const OUTDATED: [&str; 3] = ["direct_reclaim_begin", "lru_isolate", "wakeup_kswapd"];

/// The totals that the kernel's own script finds in our text are those of the events, as far as it understands its kernel.
#[test]
fn the_script_of_the_kernel_finds_the_same_totals() {
    let Some(script) = variable("LOWMARK_VMSCAN_SCRIPT", "the kernel's script") else {
        return;
    };
    if Path::new("/sys/kernel/debug/tracing/events").exists() {
        return needed::absent("the kernel's script would read the formats of the running kernel");
    }
    let mut source = Source::every_kind(release("6.1"), 200);
    // The script tells kswapd by its events.
    let tables = &source.tables;
    source.events.retain(|event| {
        let actor = tables.actor(event.task).expect("a task");
        let kswapd = actor.name.starts_with("kswapd");
        match event.kind {
            Kind::KswapdWake | Kind::KswapdSleep => kswapd,
            Kind::DirectReclaimBegin | Kind::DirectReclaimEnd | Kind::WakeupKswapd => !kswapd,
            _ => true,
        }
    });
    let text = exported(&source, &options("6.1"));
    let mut child = Command::new("perl")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("perl runs");
    let mut stdin = child.stdin.take().expect("piped");
    let fed = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("perl ends");
    fed.join().expect("no panic").expect("read by perl");
    let report = String::from_utf8_lossy(&output.stdout);
    for line in report.lines() {
        if let Some(event) = line.strip_prefix("WARNING: Failed to parse mm_vmscan_") {
            let event = event.trim_end_matches(" as expected");
            assert!(OUTDATED.contains(&event), "{event} in\n{report}");
        }
    }
    let figure = |label: &str| -> u64 {
        let line = report.lines().find(|line| line.starts_with(label));
        let line = line.unwrap_or_else(|| panic!("{label} in\n{report}"));
        let figure = line.split_whitespace().last().expect("a figure");
        figure.parse().expect("a number")
    };
    // Of the tasks that are kswapd, or of the others, over those events that `wanted` takes.
    let sum = |kswapd: bool, kind: Kind, wanted: &dyn Fn(&Event) -> u64| -> u64 {
        let events = source.events.iter().filter(|event| {
            let actor = source.tables.actor(event.task).expect("a task");
            event.kind == kind && actor.name.starts_with("kswapd") == kswapd
        });
        events.map(wanted).sum()
    };
    let one = |_: &Event| 1;
    let reclaimed = |event: &Event| event.get(Field::NrReclaimed).unwrap_or(0);
    type Wanted<'a> = &'a dyn Fn(&Event) -> u64;
    let rows: [(&str, bool, Kind, Wanted<'_>); 4] = [
        ("Direct reclaims:", false, Kind::DirectReclaimBegin, &one),
        (
            "Direct reclaim pages reclaimed:",
            false,
            Kind::LruShrinkInactive,
            &reclaimed,
        ),
        ("Wake kswapd requests:", false, Kind::WakeupKswapd, &one),
        (
            "Kswapd pages reclaimed:",
            true,
            Kind::LruShrinkInactive,
            &reclaimed,
        ),
    ];
    for (label, kswapd, kind, wanted) in rows {
        assert_eq!(
            figure(label),
            sum(kswapd, kind, wanted),
            "{label} in\n{report}"
        );
    }
}
