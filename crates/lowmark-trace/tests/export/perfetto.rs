//! Perfetto traces: decoded by our own messages and by the published ones.

use crate::support::{Source, options, python, release};
use lowmark_record::{Event, Field, Kind, Tables};
use lowmark_trace::export::perfetto::schema::{
    Data, FtraceData, TYPE_COUNTER, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, Trace,
};
use lowmark_trace::export::{Exporter, Format, create};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn exported(path: &Path, feed: impl FnOnce(&mut dyn Exporter)) -> Trace {
    let mut exporter = create(Format::Perfetto, path, &options("6.18")).expect("created");
    feed(exporter.as_mut());
    exporter.finish().expect("written");
    let bytes = std::fs::read(path).expect("a file");
    Trace::decode(bytes.as_slice()).expect("a trace")
}

/// Name of the event that a message stands for.
fn name(data: &FtraceData) -> String {
    let kind = match data {
        FtraceData::DirectReclaimBegin(_) => Kind::DirectReclaimBegin,
        FtraceData::DirectReclaimEnd(_) => Kind::DirectReclaimEnd,
        FtraceData::MemcgReclaimBegin(_) => Kind::MemcgReclaimBegin,
        FtraceData::MemcgReclaimEnd(_) => Kind::MemcgReclaimEnd,
        FtraceData::KswapdWake(_) => Kind::KswapdWake,
        FtraceData::KswapdSleep(_) => Kind::KswapdSleep,
        FtraceData::ShrinkSlabStart(_) => Kind::ShrinkSlabStart,
        FtraceData::ShrinkSlabEnd(_) => Kind::ShrinkSlabEnd,
        FtraceData::Generic(generic) => return generic.event_name.clone().expect("a name"),
    };
    kind.name().to_owned()
}

/// Events by name, and packets of the other kinds, as the script prints them.
fn summary(trace: &Trace) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for packet in &trace.packet {
        let name = match packet.data.as_ref().expect("data") {
            Data::FtraceEvents(bundle) => {
                for event in &bundle.event {
                    *counts
                        .entry(name(event.event.as_ref().expect("data")))
                        .or_default() += 1;
                }
                continue;
            }
            Data::ClockSnapshot(_) => "clock_snapshot".to_owned(),
            Data::SystemInfo(_) => "system_info".to_owned(),
            Data::TrackDescriptor(_) => "track_descriptor".to_owned(),
            Data::TrackEvent(event) => format!("track_event {}", event.r#type.expect("a type")),
        };
        *counts.entry(name).or_default() += 1;
    }
    let lines = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}\n"));
    lines.collect()
}

#[test]
fn every_event_is_there_for_both_readers() {
    let source = Source::every_kind(release("6.18"), 50);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.pftrace");
    let trace = exported(&path, |exporter| {
        source.feed(exporter);
        for (time_ns, value) in [(1, 500), (2, 400)] {
            exporter.counter(time_ns, "nr_free_pages", value);
            exporter.counter(time_ns, "nr_inactive_file", value / 2);
        }
    });
    let mut times = BTreeSet::new();
    let mut events: BTreeMap<(u64, String), (u32, u32)> = BTreeMap::new();
    for packet in &trace.packet {
        if let Some(Data::FtraceEvents(bundle)) = &packet.data {
            assert!(bundle.event.is_sorted_by_key(|event| event.timestamp));
            for event in &bundle.event {
                let time = event.timestamp.expect("a time");
                times.insert(time);
                let key = (time, name(event.event.as_ref().expect("data")));
                events.insert(key, (bundle.cpu.expect("a CPU"), event.pid.expect("a pid")));
            }
        }
    }
    assert_eq!(
        (events.len(), times.len()),
        (source.events.len(), source.events.len())
    );
    for event in &source.events {
        let actor = source.tables.actor(event.task).expect("a task");
        let found = events[&(event.time_ns, event.kind.name().to_owned())];
        assert_eq!(found, (event.cpu, actor.pid.cast_unsigned()));
    }
    let ours = summary(&trace);
    assert!(ours.contains("clock_snapshot 1\n"), "{ours}");
    let given = counters(&trace);
    assert_eq!(given["nr_free_pages"], [(1, 500), (2, 400)]);
    assert_eq!(given["nr_inactive_file"], [(1, 250), (2, 200)]);
    if let Some(theirs) = python("read_perfetto.py", &[&path]) {
        assert_eq!(theirs, ours);
    }
}

/// The values of every counter, by name, with their times.
fn counters(trace: &Trace) -> BTreeMap<String, Vec<(u64, i64)>> {
    let mut names = BTreeMap::new();
    let mut values: BTreeMap<String, Vec<(u64, i64)>> = BTreeMap::new();
    for packet in &trace.packet {
        match packet.data.as_ref().expect("data") {
            Data::TrackDescriptor(track) if track.counter.is_some() => {
                names.insert(track.uuid, track.name.clone().expect("a name"));
            }
            Data::TrackEvent(event) if event.r#type == Some(TYPE_COUNTER) => {
                let name: &String = &names[&event.track_uuid];
                let value = event.counter_value.expect("a value");
                let time = packet.timestamp.expect("a time");
                values.entry(name.clone()).or_default().push((time, value));
            }
            _ => {}
        }
    }
    values
}

/// One stall as it is shown: name, begin and end.
type Slice = (String, u64, u64);

/// The slices of every track, each ended by the end of its nesting.
fn slices(trace: &Trace) -> BTreeMap<u64, Vec<Slice>> {
    let mut events: Vec<(u64, i32, u64, String)> = Vec::new();
    for packet in &trace.packet {
        if let Some(Data::TrackEvent(event)) = &packet.data {
            let (time, track) = (
                packet.timestamp.expect("a time"),
                event.track_uuid.expect("one"),
            );
            let name = event.name.clone().unwrap_or_default();
            events.push((time, event.r#type.expect("a type"), track, name));
        }
    }
    // As readers do: by time, and where that is the same in the order of the file.
    events.sort_by_key(|event| event.0);
    let mut open: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    let mut done: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for (time, kind, track, name) in events {
        match kind {
            TYPE_SLICE_BEGIN => open.entry(track).or_default().push((name, time)),
            TYPE_SLICE_END => {
                let begun = open.get_mut(&track).and_then(Vec::pop);
                let (name, begin) = begun.expect("no end without a begin");
                done.entry(track).or_default().push((name, begin, time));
            }
            TYPE_INSTANT => done.entry(track).or_default().push((name, time, time)),
            kind => assert_eq!(kind, TYPE_COUNTER),
        }
    }
    done
}

/// The slices of the thread of a name.
fn slices_of(trace: &Trace, thread: &str) -> Vec<Slice> {
    let mut tracks = BTreeMap::new();
    for packet in &trace.packet {
        if let Some(Data::TrackDescriptor(track)) = &packet.data {
            tracks.insert(track.uuid.expect("a number"), track.clone());
        }
    }
    let name = |track: &u64| {
        let parent = tracks[track].parent_uuid.expect("a parent");
        let thread = tracks[&parent].thread.clone().expect("a thread");
        thread.thread_name.unwrap_or_default()
    };
    let all = slices(trace).into_iter();
    all.filter(|(track, _)| name(track) == thread)
        .flat_map(|(_, slices)| slices)
        .collect()
}

#[test]
fn throttled_writers_are_slices_and_rates_are_counters() {
    const MS: u64 = 1_000_000;
    let mut tables = Tables::default();
    let (dd, cp) = (tables.task(b"dd", 7), tables.task(b"cp", 8));
    let event = |kind, ms: u64, task| Event::new(kind, ms * MS, 0, task);
    let look = |ms, task, pause: i64| {
        event(Kind::BalanceDirtyPages, ms, task).with(&[(Field::Pause, pause.cast_unsigned())])
    };
    let state = |ms, dirty| {
        event(Kind::GlobalDirtyState, ms, dd).with(&[(Field::Dirty, dirty), (Field::Thresh, 200)])
    };
    let shrink = |ms, scanned| {
        let pages = [
            (Field::NrScanned, scanned),
            (Field::NrReclaimed, scanned / 2),
        ];
        event(Kind::LruShrinkInactive, ms, dd).with(&pages)
    };
    let events = [
        state(100, 50),
        look(100, dd, 10),
        shrink(102, 32),
        shrink(108, 32),
        state(109, 50),
        shrink(112, 32),
        look(120, dd, -4),
        look(121, dd, 200),
        // It was woken early.
        look(130, dd, 20),
        event(Kind::Throttled, 160, dd).with(&[(Field::UsecDelayed, 40_000)]),
        state(170, 70),
        shrink(200, 8),
        event(Kind::BalanceDirtyStart, 210, cp),
        event(Kind::BalanceDirtyWait, 215, cp),
        look(220, cp, i64::MAX),
        look(230, cp, 30),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let trace = exported(&directory.path().join("trace"), |exporter| {
        events
            .iter()
            .for_each(|event| exporter.event(event, &tables));
    });
    let slice = |name: &str, from, to| (name.to_owned(), from * MS, to * MS);
    let balance = |from, to| slice("balance_dirty_pages", from, to);
    let expected = [
        balance(100, 110),
        balance(120, 120),
        balance(121, 130),
        balance(130, 150),
        slice("throttled", 150, 160),
    ];
    assert_eq!(slices_of(&trace, "dd"), expected);
    // No kernel pauses for so long: the time is not known.
    let expected = [balance(210, 215), balance(220, 220), balance(230, 260)];
    assert_eq!(slices_of(&trace, "cp"), expected);

    let given = counters(&trace);
    assert_eq!(given["dirty pages"], [(100 * MS, 50), (170 * MS, 70)]);
    assert_eq!(given["dirty threshold"], [(100 * MS, 200)]);
    let scanned = [
        (102 * MS, 6400),
        (112 * MS, 3200),
        (122 * MS, 0),
        (200 * MS, 800),
        (210 * MS, 0),
    ];
    assert_eq!(given["pages scanned per second"], scanned);
    assert_eq!(given["pages reclaimed per second"][0], (102 * MS, 3200));
}

#[test]
fn stalls_are_slices_of_their_threads() {
    let mut tables = Tables::default();
    let (kswapd, cc1) = (tables.task(b"kswapd0", 29), tables.task(b"cc1", 4242));
    let us = |time: u64| time * 1_000;
    let event = |kind, time, task| Event::new(kind, us(time), 0, task);
    let waited =
        |kind, time, task, delay| event(kind, time, task).with(&[(Field::UsecDelayed, delay)]);
    let events = [
        event(Kind::DirectReclaimEnd, 1, cc1),
        event(Kind::KswapdWake, 10, kswapd),
        event(Kind::DirectReclaimBegin, 20, cc1).with(&[(Field::Order, 3)]),
        event(Kind::KswapdWake, 30, kswapd),
        waited(Kind::CongestionWait, 60, kswapd, 20),
        waited(Kind::WaitIffCongested, 61, kswapd, 0),
        // Said to be longer than it can have been.
        waited(Kind::Throttled, 70, cc1, 4_000),
        event(Kind::DirectReclaimEnd, 80, cc1).with(&[(Field::NrReclaimed, 32)]),
        event(Kind::KswapdSleep, 90, kswapd),
        event(Kind::KswapdSleep, 95, kswapd),
        event(Kind::MemcgReclaimBegin, 100, cc1),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    let trace = exported(&path, |exporter| {
        events
            .iter()
            .for_each(|event| exporter.event(event, &tables));
    });
    let mut tracks = BTreeMap::new();
    for packet in &trace.packet {
        if let Some(Data::TrackDescriptor(track)) = &packet.data {
            tracks.insert(track.uuid.expect("a number"), track.clone());
        }
    }
    let mut shown = Vec::new();
    for (track, slices) in slices(&trace) {
        let track = &tracks[&track];
        assert_eq!(track.name.as_deref(), Some("stalls"));
        let thread = &tracks[&track.parent_uuid.expect("a parent")].thread;
        let thread = thread
            .as_ref()
            .and_then(|thread| thread.thread_name.clone());
        shown.push((thread.expect("a name"), slices));
    }
    let slice = |name: &str, from, to| (name.to_owned(), us(from), us(to));
    let expected = vec![
        (
            "kswapd0".to_owned(),
            vec![
                slice("congestion_wait", 40, 60),
                // A wait that did not sleep.
                slice("wait_iff_congested", 61, 61),
                slice("kswapd awake", 10, 90),
            ],
        ),
        (
            "cc1".to_owned(),
            vec![slice("throttled", 20, 70), slice("direct reclaim", 20, 80)],
        ),
    ];
    assert_eq!(shown, expected);
}
