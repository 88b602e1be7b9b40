//! Writers held back by the dirty limits, of every era: against what the kernels' own arithmetic and an
//! independent simulation of the controllers give.

mod common;

use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// N times dd on 3 GB and a disk of 80 MiB/s without seeks, as the simulation has it.
fn dd(n: u64, kernel: &str, length: &str, more: &str, events: bool) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "dd"
title = "dd"
end = {{ after = "{length}" }}
[machine]
ram = "3328M"
cpus = 8
hz = 1000
reserved = "0B"
occupied = "200M"
description = "3 GiB for files"
device.sda = {{
  kind = "hdd", size = "500GB", position_read = "0ns", position_write = "0ns",
  command_read = "0ns", command_write = "0ns", rate = "80M/s", elevator = "deadline",
}}
filesystem.data = {{ kind = "xfs", device = "sda" }}
costs = {{ copy_page = "2500ns", file_page = "1us", balance_dirty = "1us" }}
[kernel]
use = "{kernel}"
[file.out]
copies = {n}
exists = false
[task.dd]
processes = {n}
run = [{{ repeat = "forever", do = [{{ append = "out$idx", block = "1M" }}] }}]
{more}
"#
    );
    let options = Options {
        events,
        check: false,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// Events of a kind from this second on.
fn events(recording: &Recording, kind: Kind, from_s: u64) -> Vec<Event> {
    let after = |event: &Event| event.kind == kind && event.time_ns >= from_s * 1_000_000_000;
    recording.events.iter().filter(after).collect()
}

/// Dirty pages and those under writeback over the dirty threshold, from this second on, ‱: mean, least,
/// most. The threshold is 20 % of what may be dirty, so that 8750 is 17.5 %.
fn share(recording: &Recording, from_s: u64) -> [u64; 3] {
    let at = |name: &str| {
        let found = recording
            .gauges
            .names
            .iter()
            .position(|known| known == name);
        found.expect("a gauge")
    };
    let (dirty, writeback) = (at("nr_dirty"), at("nr_writeback"));
    let thresh = at("nr_dirty_threshold");
    let samples = recording.gauges.samples.iter();
    let shares: Vec<u64> = samples
        .filter(|(time, _)| *time >= from_s * 1_000_000_000)
        .map(|(_, values)| 10_000 * (values[dirty] + values[writeback]) / values[thresh])
        .collect();
    let sum: u64 = shares.iter().sum();
    let mean = sum / shares.len() as u64;
    let ends = [shares.iter().min(), shares.iter().max()];
    [mean, *ends[0].expect("samples"), *ends[1].expect("samples")]
}

/// Pauses of the writers in ms from this second on, the shortest first.
fn pauses(recording: &Recording, from_s: u64) -> Vec<i64> {
    let events = events(recording, Kind::BalanceDirtyPages, from_s);
    let pause = |event: &Event| event.signed(Field::Pause).expect("a pause");
    let mut pauses: Vec<i64> = events.iter().map(pause).collect();
    pauses.sort_unstable();
    pauses
}

/// Pages dirtied by each task between two calls from this second on, over all its calls.
fn dirtied_by_task(recording: &Recording, from_s: u64) -> Vec<u64> {
    let mut pages = std::collections::BTreeMap::new();
    for event in events(recording, Kind::BalanceDirtyPages, from_s) {
        *pages.entry(event.task).or_insert(0) += event.get(Field::Dirtied).unwrap_or(0);
    }
    pages.into_values().collect()
}

/// Standard deviation over the mean, ‱.
fn spread(values: &[u64]) -> u64 {
    let count = values.len() as u64;
    let mean = values.iter().sum::<u64>() / count;
    let square = |value: &u64| value.abs_diff(mean).pow(2);
    let variance = values.iter().map(square).sum::<u64>() / count;
    10_000 * variance.isqrt() / mean
}

/// Where dirty pages rest and how long writers pause, in the simulation of the controllers on an ideal disk:
/// writers, kernel, ‱ of the threshold, mean pause in ms.
const RESTS: [(u64, &str, u64, f64); 6] = [
    (1, "v3.2", 9045, 14.5),
    (10, "v3.2", 9105, 38.8),
    (100, "v3.2", 9220, 73.2),
    (1, "v3.4", 8950, 8.7),
    (100, "v3.4", 9215, 156.7),
    (100, "v3.1+io-less", 9775, 0.0),
];
/// Within 0.2 % of what may be dirty.
const SHARE_OFF: u64 = 100;
/// They rest after this, of two minutes.
const SETTLED_S: u64 = 90;

#[test]
fn dirty_pages_rest_where_the_controllers_hold_them() {
    for (n, kernel, expected, pause) in RESTS {
        let recording = dd(n, kernel, "120s", "", true);
        let [mean, least, most] = share(&recording, SETTLED_S);
        let text = format!("{n} dd on {kernel}: {mean} ({least} to {most}), not {expected}");
        assert!(mean.abs_diff(expected) <= SHARE_OFF, "{text}");
        // 143dfe8611a6 comes before its own tracepoint.
        let pauses = pauses(&recording, SETTLED_S);
        assert_eq!(pauses.is_empty(), pause == 0.0);
        if let Some(longest) = pauses.last() {
            let found = pauses.iter().sum::<i64>() as f64 / pauses.len() as f64;
            assert!((found / pause - 1.0).abs() < 0.1, "{text}: {found} ms");
            assert!(*longest <= 200, "{longest} ms");
            let rates = dirtied_by_task(&recording, SETTLED_S);
            assert_eq!(rates.len() as u64, n);
            assert!(spread(&rates) < 200, "{text}: {rates:?}");
            let sum = rates.iter().sum::<u64>() / (120 - SETTLED_S);
            assert!(sum.abs_diff(20480) < 205, "{text}: {sum} pages/s");
        }
    }
}

/// Up to 3.1 a device's limit for N equal writers is T (1 - 1/8N), and they rest at it.
#[test]
fn before_io_less_writers_rest_at_the_limit_of_a_task() {
    for (kernel, off) in [("v3.0", 100), ("v3.1", 50)] {
        for n in [1, 10, 50] {
            let limit = 10_000 - 10_000 / (8 * n);
            let [mean, ..] = share(&dd(n, kernel, "60s", "", true), 30);
            assert!(
                mean.abs_diff(limit) <= off,
                "{n} dd on {kernel}: {mean}, not {limit}"
            );
        }
    }
}

#[test]
fn a_thousand_writers_are_equals() {
    let recording = dd(1000, "v3.2", "60s", "", true);
    let pauses = pauses(&recording, 40);
    assert!(pauses.last() <= Some(&200));
    let rates = dirtied_by_task(&recording, 40);
    assert_eq!(rates.len(), 1000);
    assert!(spread(&rates) < 500, "{}", spread(&rates));
    let mean = pauses.iter().sum::<i64>() / pauses.len() as i64;
    assert!((60..=200).contains(&mean), "{mean} ms");
}

/// The first writer that is throttled has just passed (background + dirty)/2.
#[test]
fn throttling_begins_half_way_between_the_thresholds() {
    for kernel in ["v3.2", "v3.4"] {
        let recording = dd(1, kernel, "2s", "", true);
        let first = events(&recording, Kind::BalanceDirtyPages, 0);
        let get = |field| first[0].get(field).expect("a field of the event");
        let freerun = 2 * get(Field::Setpoint) - get(Field::Limit);
        let beyond = get(Field::Dirty) - freerun;
        assert!((1..=130).contains(&beyond), "{kernel}: {beyond} pages");
    }
}

/// The longest time that a write of 1 MiB took beside 50 dd, and the time from the kill of five copies to the
/// end of the last, ms.
fn stall_and_end(kernel: &str) -> (u64, u64) {
    let more = r#"
[series.gone]
[series.write]
[task.slow]
run = [{ repeat = 20000, do = [
  { sleep = "10ms" }, { sample = "write", do = [{ append = "log", block = "1M" }] },
] }]
[file.log]
exists = false
[file.copy]
copies = 5
exists = false
[task.cp]
processes = 5
run = [{ repeat = "forever", do = [{ append = "copy$idx", block = "128K" }] }]
[task.killer]
run = [
  { sleep = "20s" },
  { sample = "gone", do = [{ kill = "cp" }, { wait = "cp" }] },
]
"#;
    let recording = dd(50, kernel, "30s", more, false);
    let longest = |name: &str| {
        let series = recording.series.iter().find(|series| series.name == name);
        let samples = series.expect("a series").samples.iter();
        samples.map(|(_, time)| time / 1_000_000).max().unwrap_or(0)
    };
    (longest("write"), longest("gone"))
}

#[test]
fn a_kill_takes_effect_at_once_since_pauses_can_be_interrupted() {
    let (stall, end) = stall_and_end("v3.2");
    assert!(end <= 20, "v3.2: {end} ms");
    assert!(stall < 3_000, "v3.2: {stall} ms");
    let (stall, end) = stall_and_end("v3.0");
    assert!(end > 500, "v3.0: {end} ms");
    assert!(stall > 3_000, "v3.0: {stall} ms");
    let (_, end) = stall_and_end("v3.1+io-less");
    assert!((50..=220).contains(&end), "143dfe8611a6 alone: {end} ms");
}

/// Most pages that a turn of an inode wrote.
fn longest_turn(recording: &Recording) -> u64 {
    let turns = events(recording, Kind::WritebackSingleInode, 0);
    let wrote = turns.iter().filter_map(|event| event.get(Field::Wrote));
    wrote.max().unwrap_or(0)
}

#[test]
fn each_era_has_its_own_tracepoints_turns_and_rounds() {
    let recordings = ["v2.6.37", "v3.0", "v3.1", "v3.2"].map(|kernel| {
        let recording = dd(10, kernel, "15s", "", true);
        let count = |kind| events(&recording, kind, 0).len();
        let found = [
            Kind::WbcBalanceDirtyStart,
            Kind::BalanceDirtyStart,
            Kind::BalanceDirtyPages,
            Kind::GlobalDirtyState,
        ]
        .map(|kind| count(kind) > 0);
        let rounds = count(Kind::WritebackQueueIo);
        (found, longest_turn(&recording) > 1024, rounds)
    });
    let old = ([true, false, false, false], false);
    let found = recordings.map(|(found, long, rounds)| ((found, long), rounds));
    assert_eq!(found[0].0, old);
    assert_eq!(found[1].0, old);
    assert_eq!(found[2].0, ([false, true, false, true], true));
    assert_eq!(found[3].0, ([false, false, true, true], true));
    // Every pass of 1024 pages takes what has become dirty.
    assert_eq!(found[0].1, 0, "no tracepoint for it yet");
}
