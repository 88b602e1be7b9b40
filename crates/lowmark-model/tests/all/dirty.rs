//! Writers held back by the dirty limits, of every era: against what the kernels' own arithmetic gives, and against
//! what a simulation of the controllers alone gave.
//!
//! That simulation had the formulas of `mm/page-writeback.c` in floating point, an ideal disk and no memory behind
//! them. It was written before this model, from the same reading of the kernel, and is not part of this project: its
//! figures show that the model's controllers do what was read, not that what was read is right.

use crate::common;
use lowmark_model::Options;
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// Statements of one of N writers, which begin within 10 ms of each other, as in the simulation.
fn statements(n: u64) -> String {
    format!(
        r#"{{ sleep = "10ms*idx/{n}" }},
  {{ repeat = "forever", do = [{{ append = "out$idx", block = "1M" }}] }}"#
    )
}

/// A disk without seeks to which all has been written so far.
const WARM: &str = r#"position_write = "0ns", written_share = 100,"#;

/// N times dd on 3 GB and a disk of 80 MiB/s without seeks, as the simulation has it.
fn dd(n: u64, kernel: &str, length: &str, more: &str, events: bool) -> Recording {
    writers(n, &statements(n), WARM, kernel, length, more, events)
}

/// N writers, on a disk with these fields beside its rate.
fn writers(
    n: u64,
    run: &str,
    disk: &str,
    kernel: &str,
    length: &str,
    more: &str,
    events: bool,
) -> Recording {
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
  kind = "hdd", size = "500GB", position_read = "0ns", {disk}
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
run = [{run}]
{more}
"#
    );
    let options = Options {
        events,
        check_every: 0,
    };
    let recording = lowmark_model::run(&common::scenarios(text)[0], &options, &mut |_| {})
        .expect("the model can run it");
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

/// A row of the simulation of the controllers on an ideal disk.
struct Row {
    /// Writers.
    n: u64,
    /// Dirty pages at rest, ‱ of the threshold, and how far from that is near enough.
    share: (u64, u64),
    /// Mean pause, ms.
    pause: f64,
    /// Pages dirtied between two looks.
    pages: u64,
    /// Looks of all writers a second.
    looks: u64,
    /// Base rate, KiB/s.
    base: u64,
    /// How near pauses, looks and pages are to be, percent.
    near: f64,
    /// How near the base rate is to be, percent.
    base_near: f64,
}

const fn row(n: u64, share: (u64, u64), pause: f64, pages: u64, looks: u64, base: u64) -> Row {
    Row {
        n,
        share,
        pause,
        pages,
        looks,
        base,
        near: 10.0,
        base_near: 10.0,
    }
}

const V3_2: [Row; 7] = [
    row(1, (9045, 100), 14.5, 324, 63, 90_432),
    row(2, (9070, 100), 18.3, 195, 105, 43_252),
    // What the pause of ten is between a quarter of the longest and the longest is history: within one run of the
    // simulation it is 26 to 61 ms (5th and 95th percentile). That of fifty and of a hundred is, too: on five boots of the
    // model's machine the calls of a hundred differ by up to a quarter, with the free pages that CPUs keep and without, and
    // fifty pause for 41.3 to 47.0 ms, 41.5 to 50.7 with the batches of `ioc_batching`, which the simulation has not.
    Row {
        near: 30.0,
        ..row(10, (9105, 100), 38.8, 80, 256, 8_652)
    },
    Row {
        near: 15.0,
        ..row(50, (9170, 100), 39.1, 16, 1278, 1_760)
    },
    Row {
        near: 30.0,
        ..row(100, (9220, 100), 73.2, 15, 1365, 900)
    },
    row(500, (9320, 100), 122.0, 5, 4096, 192),
    row(1000, (9285, 100), 146.5, 3, 6827, 96),
];
/// There the simulation's disk completed pages in batches and with noise, which moves the point of rest to and fro
/// within the band in which the controllers hold still; the model's disk has no noise, and the band is what it must
/// keep to. A thousand come to rest at a base rate of 25 or of 27 pages a second, as nanoseconds at the start decide (of
/// five runs with other times for a page two and three): with 27 they are above the set point by what that is too much,
/// at 9440, look a sixth to a fifth more often.
const V3_4: [Row; 4] = [
    row(1, (8870, 425), 8.7, 194, 105, 79_528),
    row(10, (8833, 398), 38.0, 78, 261, 8_260),
    row(100, (9143, 148), 156.7, 32, 638, 884),
    Row {
        near: 25.0,
        base_near: 25.0,
        ..row(1000, (9200, 250), 200.0, 4, 5108, 92)
    },
];

/// They rest after this, and 20 s are looked at; a thousand begin with a third more than the
/// threshold.
fn settled_s(n: u64) -> u64 {
    match n {
        0..=100 => 60,
        101..=500 => 90,
        _ => 160,
    }
}

fn near(what: &str, found: f64, expected: f64, percent: f64) {
    let error = (found / expected - 1.0).abs() * 100.0;
    assert!(error <= percent, "{what}: {found}, not {expected}");
}

fn rests_as_simulated(kernel: &str, row: &Row) {
    const LOOKED_AT_S: u64 = 20;
    let from = settled_s(row.n);
    // The simulation knows of no memory that inodes take.
    let without_inodes = format!("{kernel},model.shrinkers=off");
    let time = format!("{}s", from + LOOKED_AT_S);
    let recording = dd(row.n, &without_inodes, &time, "", true);
    let of = |what: &str| format!("{what} of {} dd on {kernel}", row.n);
    let [mean, least, most] = share(&recording, from);
    let text = format!("{}: {mean} ({least} to {most})", of("dirty pages"));
    assert!(mean.abs_diff(row.share.0) <= row.share.1, "{text}");
    // 1.3 % of memory round the set point, which is 17.5 %. Known miss: a thousand on 3.4 at the higher base rate.
    let many_on_3_4 = row.n > 500 && kernel == "v3.4";
    assert!(many_on_3_4 || (8100..=9400).contains(&mean), "{text}");
    let pauses = pauses(&recording, from);
    let pause = pauses.iter().sum::<i64>() as f64 / pauses.len() as f64;
    near(&of("pause"), pause, row.pause, row.near);
    assert!(pauses.last() <= Some(&200), "{pauses:?}");
    let looks = events(&recording, Kind::BalanceDirtyPages, from).len() as u64;
    let per_second = looks as f64 / LOOKED_AT_S as f64;
    near(&of("looks"), per_second, row.looks as f64, row.near);
    let rates = dirtied_by_task(&recording, from);
    assert_eq!(rates.len() as u64, row.n);
    // 0.02 up to 3.2. In the simulation a thousand of 3.4 come to 0.018, twenty times as much as any others; in the model
    // to 0.02 or, at the higher base rate, to 0.030 to 0.058, by the boot.
    let most = if many_on_3_4 { 600 } else { 200 };
    assert!(
        spread(&rates) < most,
        "{}: {}",
        of("spread"),
        spread(&rates)
    );
    let dirtied = rates.iter().sum::<u64>();
    near(
        &of("pages"),
        dirtied as f64 / looks as f64,
        row.pages as f64,
        row.near,
    );
    let rate = dirtied as f64 / LOOKED_AT_S as f64;
    near(&of("pages a second"), rate, 20480.0, 1.0);
    let steps = events(&recording, Kind::BdiDirtyRatelimit, from);
    let base = steps
        .iter()
        .filter_map(|step| step.get(Field::DirtyRatelimit));
    let base = base.sum::<u64>() / steps.len() as u64;
    near(
        &of("base rate"),
        base as f64,
        row.base as f64,
        row.base_near,
    );
}

#[test]
fn writers_of_3_2_rest_as_simulated() {
    V3_2.iter().for_each(|row| rests_as_simulated("v3.2", row));
}

#[test]
fn writers_of_3_4_rest_as_simulated() {
    V3_4.iter().for_each(|row| rests_as_simulated("v3.4", row));
}

/// 143dfe8611a6 comes before its own tracepoint, so that only its dirty pages are seen. With more than a few writers
/// it does not keep its promise.
#[test]
fn the_commit_alone_rests_as_simulated() {
    let rows = [
        (1, 9080, 60),
        (10, 9100, 60),
        (100, 9775, 100),
        (1000, 10_775, 1075),
    ];
    for (n, expected, off) in rows {
        let from = settled_s(n);
        let recording = dd(n, "v3.1+io-less", &format!("{}s", from + 20), "", true);
        let [mean, least, most] = share(&recording, from);
        assert!(
            mean.abs_diff(expected) <= off,
            "{n} dd: {mean} ({least} to {most})"
        );
    }
}

/// Up to 3.1 a device's limit for N equal writers is T (1 - 1/8N), and they rest at it; in 3.0 many of them a little
/// above, in the simulation ten at 19.9 % of memory and more at 20.1. There nobody displaces anybody on a CPU.
#[test]
fn before_io_less_writers_rest_at_the_limit_of_a_task() {
    for (kernel, off) in [("v3.0", 150), ("v3.1", 50)] {
        for n in [1, 2, 10, 50, 100, 1000] {
            let limit = match (kernel, n) {
                ("v3.0", 50..) => 10_050,
                ("v3.0", 10) => 9_950,
                (_, n) => 10_000 - 10_000 / (8 * n),
            };
            // A task's share of what is dirtied grows from none.
            let from = match n {
                0..=10 => 70,
                _ => 25,
            };
            let recording = dd(n, kernel, &format!("{}s", from + 20), "", true);
            let [mean, ..] = share(&recording, from);
            assert!(
                mean.abs_diff(limit) <= off,
                "{n} dd on {kernel}: {mean}, not {limit}"
            );
        }
    }
}

/// How long 95 of 100 writes that were held back at all took at most, ms.
fn stall_p95(n: u64, kernel: &str) -> u64 {
    let run = r#"{ repeat = "forever", do = [{ sample = "write", do = [{ append = "out$idx", block = "64K" }] }] }"#;
    let recording = writers(n, run, WARM, kernel, "60s", "[series.write]", false);
    let samples = &recording.series[0].samples;
    let settled = samples.iter().filter(|(time, _)| *time > 20_000_000_000);
    let mut stalls: Vec<u64> = settled
        .map(|(_, took)| took / 1_000_000)
        .filter(|&ms| ms > 1)
        .collect();
    stalls.sort_unstable();
    stalls[stalls.len() * 95 / 100]
}

/// In the simulation 7.1 s, 0.2 s and 74 ms.
#[test]
fn a_hundred_writers_stall_for_seconds_in_3_0_alone() {
    let [old, bounded, io_less] = ["v3.0", "v3.1", "v3.2"].map(|kernel| stall_p95(100, kernel));
    let text = format!("{old} {bounded} {io_less} ms");
    assert!(old > 3_000, "{text}");
    assert!((200..=500).contains(&bounded), "{text}");
    assert!((60..=120).contains(&io_less), "{text}");
}

/// MiB/s, and seeks per GiB, of N dd whose disk takes 13 ms for a discontiguity, in the second minute.
fn seeks(n: u64, kernel: &str) -> (f64, f64) {
    let until = |end: &str| {
        let disk = r#"position_write = "13ms", written_share = 100,"#;
        let recording = writers(n, &statements(n), disk, kernel, end, "", false);
        let counter = |name: &str| recording.counters[name] as f64;
        (
            counter("sda/sectors_written") / 2048.0,
            counter("sda/write_seeks"),
        )
    };
    let ((before, early), (after, all)) = (until("60s"), until("120s"));
    let mib = after - before;
    (mib / 60.0, (all - early) * 1024.0 / mib)
}

/// Turns of half a second's bandwidth write as much as the simulation says, and take its seeks with up to 40 % on top:
/// the simulation's files are of one piece, those of the model's XFS are not. Of how many pieces they are is chance: ten
/// with turns of 4 MiB took 87 to 104 seeks in sixteen runs with other times for a page.
#[test]
fn larger_turns_save_seeks_as_simulated() {
    let rows = [
        (50, "v3.2+writeback_slice=fixed", 63.5, 256.0),
        (50, "v3.2", 76.1, 50.0),
        (100, "v3.2+writeback_slice=fixed", 63.5, 256.0),
        (100, "v3.2", 72.6, 101.0),
        (10, "v3.2+writeback_slice=fixed", 74.3, 75.0),
        (10, "v3.2", 78.0, 26.0),
    ];
    let mut io_less = 0.0;
    for (n, kernel, rate, per_gib) in rows {
        let (found, seeks) = seeks(n, kernel);
        let text = format!("{n} dd on {kernel}");
        near(&text, found, rate, 5.0);
        let more = seeks / per_gib;
        assert!(
            (0.98..1.4).contains(&more),
            "{text}: {seeks} seeks, not {per_gib}"
        );
        if (n, kernel) == (50, "v3.2") {
            io_less = seeks;
        }
    }
    // Before, between what the simulation gives for writers that never write (63.4 MiB/s, 259 seeks), which is what the
    // code's test comes to there, and for those that always do (57.0 and 397).
    let (rate, legacy) = seeks(50, "v2.6.37");
    assert!((57.0..63.4).contains(&rate), "{rate} MiB/s");
    assert!((259.0..397.0).contains(&legacy), "{legacy} seeks");
    let saved = legacy / io_less;
    // A sixth to a tenth is what it should be; 1/5.9 and 1/6.1 were seen, as files are of more pieces or of fewer.
    assert!((5.5..10.0).contains(&saved), "1/{saved} of the seeks");
}

/// After boot the share of a device that is alone is half of the threshold when 1 GiB has been written and grows to all
/// of it, up to 3.5: the simulation has one writer rest at 16.8 % of memory in place of 18.1, and at 17.7 % at most.
#[test]
fn after_boot_a_writer_rests_lower() {
    let recording = writers(
        1,
        &statements(1),
        r#"position_write = "0ns","#,
        "v3.2",
        "260s",
        "",
        true,
    );
    let [mean, least, most] = share(&recording, 240);
    let text = format!("{mean} ({least} to {most})");
    assert!(mean.abs_diff(8_400) <= 125, "{text}");
    let [_, _, peak] = share(&recording, 0);
    assert!(peak.abs_diff(8_850) <= 150, "{peak}");
}

/// The first writer that is throttled has just passed (background + dirty)/2. Before it looks a writer dirties as many
/// pages as it was let, in 6.18 up to the end of the large folio that a write of 1 MiB is, and all together
/// `ratelimit_pages` a CPU, of all CPUs a 32nd of the threshold.
#[test]
fn throttling_begins_half_way_between_the_thresholds() {
    for (kernel, folio, counts) in [
        ("v3.2", 1, [1, 2, 10, 50, 100, 500, 1000].as_slice()),
        ("v3.4", 1, &[1, 10, 100, 1000]),
        ("v6.18", 256, &[1, 100]),
    ] {
        for &n in counts {
            let recording = dd(n, kernel, "1s", "", true);
            let first = events(&recording, Kind::BalanceDirtyPages, 0);
            let get = |field| first[0].get(field).expect("a field of the event");
            let (limit, dirty) = (get(Field::Limit), get(Field::Dirty));
            let freerun = 2 * get(Field::Setpoint) - limit;
            // The threshold is four thirds of where throttling begins.
            let together = freerun * 4 / 3 / 32;
            let most = ((129 + folio) * n).min(together);
            assert!(
                dirty > freerun && dirty <= freerun + most,
                "{n} dd on {kernel}: {dirty}, {freerun} and {most}"
            );
        }
    }
}

/// The longest time that a write of 1 MiB took beside 50 dd, and the time from the kill of five copies to the
/// end of the last, ms.
fn stall_and_end(kernel: &str, kill_at: u64) -> (u64, u64) {
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
  { sleep = "KILL_ATs" },
  { sample = "gone", do = [{ kill = "cp" }, { wait = "cp" }] },
]
"#;
    let more = more.replace("KILL_AT", &kill_at.to_string());
    let recording = dd(50, kernel, "30s", &more, false);
    let longest = |name: &str| {
        let series = recording.series.iter().find(|series| series.name == name);
        let samples = series.expect("a series").samples.iter();
        samples.map(|(_, time)| time / 1_000_000).max().unwrap_or(0)
    };
    (longest("write"), longest("gone"))
}

#[test]
fn a_kill_takes_effect_at_once_since_pauses_can_be_interrupted() {
    let (stall, end) = stall_and_end("v3.2", 20);
    assert!(end <= 20, "v3.2: {end} ms");
    assert!(stall < 3_000, "v3.2: {stall} ms");
    // In the simulation a writer is still there for 1.3 s in the mean.
    let old = [15, 18, 20, 22, 25].map(|kill_at| stall_and_end("v3.0", kill_at));
    let end = old.iter().map(|(_, end)| end).sum::<u64>() / 5;
    assert!(end > 500, "v3.0: {end} ms, {old:?}");
    assert!(old.iter().all(|&(stall, _)| stall > 3_000), "v3.0: {old:?}");
    // Half of a pause of 200 ms, and what is left of a write.
    let alone = [15, 18, 20, 22, 25].map(|kill_at| stall_and_end("v3.1+io-less", kill_at).1);
    let end = alone.iter().sum::<u64>() / 5;
    assert!(
        (100..=180).contains(&end),
        "143dfe8611a6 alone: {end} ms, {alone:?}"
    );
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
