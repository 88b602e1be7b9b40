//! Figures that the metrics of a recipe take from a recording.

use super::*;
use lowmark_record::event::{RECLAIM_WB_ASYNC, RECLAIM_WB_FILE};
use lowmark_record::{
    Event, Field, Kind, Outcome, Phase, Recording, RunInfo, Series, TaskTimes, Unit,
};

fn evidence(recording: &Recording) -> Evidence {
    Evidence::without_events(recording.clone())
}

fn recording() -> Recording {
    let task = |name: &str, kthread, user_ns, system_ns| TaskTimes {
        name: name.to_owned(),
        pid: 1,
        kthread,
        user_ns,
        system_ns,
        start_ns: 0,
        end_ns: None,
    };
    Recording {
        run: RunInfo {
            workload: "w".to_owned(),
            params: Vec::new(),
            machine: "m".to_owned(),
            kernel: "v3.6".to_owned(),
            backend: "model".to_owned(),
            lowmark: "0.1.0".to_owned(),
            seed: 0,
            left_out: Vec::new(),
        },
        outcome: Outcome::Completed,
        elapsed_ns: 2_500_000_000,
        counters: [("pswpin".to_owned(), 7)].into(),
        state: Default::default(),
        tasks: vec![
            task("w", false, 1_000_000_000, 500_000_000),
            task("kswapd0", true, 0, 9),
        ],
        phases: Vec::new(),
        series: Vec::new(),
        gauges: Default::default(),
        history: Vec::new(),
        not_modelled: Vec::new(),
        system: None,
        events: Default::default(),
    }
}

#[test]
fn metrics_of_a_recording() {
    let time = |value, unit| Metric::of_run(value, Some(unit));
    let count = |value, name: Option<&str>| Metric {
        name: name.map(str::to_owned),
        ..Metric::of_run(value, None)
    };
    let mut recording = recording();
    for (metric, row, expected) in [
        (
            time(Measure::Elapsed, Unit::Centiseconds),
            "Seq",
            Some(250.0),
        ),
        (time(Measure::User, Unit::Seconds), "Seq", Some(1.0)),
        (
            time(Measure::System, Unit::Milliseconds),
            "Seq",
            Some(500.0),
        ),
        (time(Measure::UserSystem, Unit::Seconds), "Seq", Some(1.5)),
        (count(Measure::Counter, Some("pswpin")), "Seq", Some(7.0)),
        (count(Measure::Counter, None), "pswpin", Some(7.0)),
        (count(Measure::Counter, None), "pswpout", None),
        (count(Measure::Vmstat, None), "Swap Ins", Some(7.0)),
        (count(Measure::Vmstat, Some("Swap Outs")), "Swap Ins", None),
    ] {
        assert_eq!(
            metric.measure(&evidence(&recording), row),
            expected,
            "{metric:?} {row}"
        );
    }
    recording.outcome = Outcome::Deadlock {
        verdict: "a waits for b".to_owned(),
    };
    assert_eq!(
        time(Measure::Elapsed, Unit::Seconds).measure(&evidence(&recording), "Seq"),
        None
    );
}

#[test]
fn figures_of_devices_and_series() {
    let mut recording = recording();
    recording.counters = [
        ("sda/sectors_written", 2_000_000),
        ("sdb/sectors_written", 1_906_250),
        ("sda/write_seeks", 30),
        ("sdb/writes", 100),
        ("io/rchar", 5_000_000_000),
        ("io/wchar", 1_000_000),
        ("list_lock/acquisitions", 4000),
        ("list_lock/contentions", 100),
        ("list_lock/waittime_ns", 50_000_000),
        ("list_lock/holdtime_ns", 2_000_000),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    recording.series = vec![Series {
        name: "gone".to_owned(),
        unit: Unit::Milliseconds,
        samples: vec![(1, 2_000_000), (2, 6_000_000)],
    }];
    let answers = [
        ("fault", 5),
        ("fault-huge", 1),
        ("fault-base", 3),
        ("other-fault-base", 7),
    ];
    let answers = answers.map(|(name, count)| Series {
        name: name.to_owned(),
        unit: Unit::Microseconds,
        samples: (1..=count).map(|at| (at, 1000)).collect(),
    });
    recording.series.extend(answers);
    let figure = |metric: &str| {
        let text = SMALL.replace("{ value = \"elapsed\", unit = \"s\" }", metric);
        let recipe = Recipe::parse("small.toml", &text).expect("a recipe");
        recipe.metric.measure(&evidence(&recording), "Seq")
    };
    // 2 GB in 2.5 s.
    let device = |name: &str| figure(&format!("{{ value = \"device\", name = \"{name}\" }}"));
    assert_eq!(device("write-rate"), Some(800.0));
    assert_eq!(device("write-seeks"), Some(15.0));
    assert_eq!(device("write-requests"), Some(50.0));
    let io = |name: &str| figure(&format!("{{ value = \"io\", name = \"{name}\" }}"));
    assert_eq!(io("read-rate"), Some(2000.0));
    assert_eq!(io("write-rate"), Some(0.4));
    let lock = |name: &str| figure(&format!("{{ value = \"lock\", name = \"{name}\" }}"));
    assert_eq!(lock("acquisitions"), Some(4000.0));
    assert_eq!(lock("contentions"), Some(100.0));
    assert_eq!(lock("contended"), Some(2.5));
    assert_eq!(lock("spinning"), Some(2.0));
    assert_eq!(lock("holding"), Some(0.08));
    assert_eq!(lock("hold"), Some(500.0));
    let series = |rest: &str| {
        figure(&format!(
            "{{ value = \"series\", name = \"gone\", {rest} }}"
        ))
    };
    assert_eq!(series("unit = \"ms\""), Some(4.0));
    assert_eq!(series("of = \"max\", unit = \"us\""), Some(6000.0));
    assert_eq!(series("of = \"count\""), Some(2.0));
    let share = |name: &str| {
        figure(&format!(
            "{{ value = \"series\", name = \"{name}\", of = \"share\" }}"
        ))
    };
    assert_eq!(share("fault-huge"), Some(25.0));
    assert_eq!(share("fault-resident"), Some(0.0));
    assert_eq!(share("none-huge"), None);
    let cpu = figure("{ value = \"cpu\" }").expect("a share");
    assert!((cpu - 20.0).abs() < 1e-6, "{cpu}");
    assert_eq!(figure("{ value = \"dirty\", name = \"mean_share\" }"), None);
}

/// A recording with a phase of two seconds after half a second, and a series `op` with these samples: time of
/// completion and length, ms.
fn with_samples(samples: &[(u64, u64)]) -> Recording {
    let mark = |label: &str, ms: u64| Phase {
        label: label.to_owned(),
        task: "w".to_owned(),
        time_ns: ms * 1_000_000,
    };
    let series = |name: &str, samples: &[(u64, u64)]| Series {
        name: name.to_owned(),
        unit: Unit::Milliseconds,
        samples: samples
            .iter()
            .map(|(at, ns)| (at * 1_000_000, ns * 1_000_000))
            .collect(),
    };
    Recording {
        phases: vec![mark("run", 500), mark("run", 700), mark("end", 2500)],
        series: vec![
            series("op", samples),
            series("round", &[(1500, 1000), (2500, 1000)]),
        ],
        ..recording()
    }
}

/// The figure that a metric takes from a recording.
fn measured(recording: &Recording, metric: &str) -> Option<f64> {
    let text = SMALL.replace("{ value = \"elapsed\", unit = \"s\" }", metric);
    let recipe = Recipe::parse("small.toml", &text).expect("a recipe");
    recipe.metric.measure(&evidence(recording), "Seq")
}

#[test]
fn statistics_of_series() {
    let samples: Vec<(u64, u64)> = (1..=10).map(|ms| (ms, ms * ms)).collect();
    let recording = with_samples(&samples);
    let of = |of: &str| {
        let metric =
            format!("{{ value = \"series\", name = \"op\", of = \"{of}\", unit = \"ms\" }}");
        measured(&recording, &metric).expect(of)
    };
    let expected = [
        ("min", 1.0),
        ("1st-qrtle", 9.0),
        ("2nd-qrtle", 36.0),
        ("3rd-qrtle", 64.0),
        ("max-90", 81.0),
        ("max-99", 100.0),
        ("max", 100.0),
        ("mean", 38.5),
        ("p50", 25.0),
        ("p95", 81.0),
    ];
    for (name, value) in expected {
        assert_eq!(of(name), value, "{name}");
    }
    assert!((of("stddev-of-all") - 32.4199).abs() < 1e-3);
    assert!((of("stddev") - 34.1736).abs() < 1e-3);
    assert!((of("hmean") - 10.0 / 1.549_767_7).abs() < 1e-3);
    let empty = with_samples(&[]);
    for statistic in ["mean", "p50", "max-99", "stddev"] {
        let metric =
            format!("{{ value = \"series\", name = \"op\", of = \"{statistic}\", unit = \"ms\" }}");
        assert_eq!(measured(&empty, &metric), None, "{statistic}");
    }
}

#[test]
fn figures_of_phases_windows_groups_and_rates() {
    // One sample before the phase, one after it; in the phase 600 ms with two, 600 ms with one, and one late.
    let recording = with_samples(&[
        (400, 90),
        (600, 10),
        (1000, 30),
        (1200, 50),
        (2400, 70),
        (2600, 5),
    ]);
    let figure = |metric: &str| measured(&recording, metric);
    assert_eq!(
        figure("{ value = \"elapsed\", unit = \"ms\", phase = \"run\" }"),
        Some(2000.0)
    );
    assert_eq!(
        figure("{ value = \"elapsed\", unit = \"ms\", phase = \"end\" }"),
        Some(0.0)
    );
    assert_eq!(
        figure("{ value = \"elapsed\", unit = \"ms\", phase = \"else\" }"),
        None
    );
    let series = |rest: &str| {
        figure(&format!(
            "{{ value = \"series\", name = \"op\", unit = \"ms\", {rest} }}"
        ))
    };
    assert_eq!(series("phase = \"run\""), Some(40.0));
    // Windows of 600 ms from the mark on: (10, 30), 50 and 70 in the fourth; the third has none.
    assert_eq!(
        series("phase = \"run\", window = \"600ms\", of = \"max\""),
        Some(50.0)
    );
    assert_eq!(
        series("phase = \"run\", window = \"10s\", of = \"max\""),
        Some(70.0)
    );
    // Below 60 ms two by two: (10, 30) as two of their mean, 50 waits for one more; 90 and 70 by themselves. The last
    // sample comes after the end.
    let grouped = "group = { count = 2, below = \"60ms\" }";
    assert_eq!(series(&format!("{grouped}, of = \"min\"")), Some(20.0));
    assert_eq!(
        series(&format!("{grouped}, of = \"mean\"")),
        Some((90.0 + 40.0 + 70.0) / 4.0)
    );
    let rest = "group = { count = 4, below = \"60ms\" }, of = \"mean\", phase = \"run\"";
    assert_eq!(series(rest), Some(70.0), "three of four are not printed");
    let rate = |rest: &str| figure(&format!("{{ value = \"rate\", name = \"op\"{rest} }}"));
    // All but the one after the end of the run.
    assert_eq!(rate(""), Some(2.0));
    assert_eq!(rate(", phase = \"run\""), Some(2.0));
    // Rounds from 500 to 1500 ms and from there to 2500.
    assert_eq!(rate(", each = \"round\", of = \"max\""), Some(3.0));
    assert_eq!(rate(", each = \"round\", of = \"min\""), Some(1.0));
    assert_eq!(rate(", each = \"nothing\""), None);
    // The sum of the samples in each round.
    let sums = |of: &str| series(&format!("each = \"round\", of = \"{of}\""));
    assert_eq!((sums("min"), sums("max")), (Some(70.0), Some(90.0)));
}

/// Attempts that succeeded and those that did not are two series; the percentage has no fraction, as in mmtests.
#[test]
fn success_is_a_whole_percentage_of_attempts() {
    let mut recording = with_samples(&[(600, 1), (700, 1), (2400, 1), (2600, 1)]);
    let failed = Series {
        name: "op-failed".into(),
        unit: Unit::Milliseconds,
        samples: vec![(800_000_000, 1), (2_700_000_000, 1), (2_800_000_000, 1)],
    };
    recording.series.push(failed);
    let of = |rest: &str| {
        let metric = format!("{{ value = \"success\", name = \"op\"{rest} }}");
        measured(&recording, &metric)
    };
    // 3 of 4 to the end of the phase, 1 of 3 after it.
    assert_eq!(of(", phase = \"run\""), Some(75.0));
    let elsewhere = "{ value = \"success\", name = \"round\", phase = \"run\" }";
    assert_eq!(measured(&recording, elsewhere), Some(100.0));
    let none = "{ value = \"success\", name = \"nothing\" }";
    assert_eq!(measured(&recording, none), None);
}

/// kswapd and a task wait, kswapd reclaims and writes.
#[test]
fn rows_of_the_blocks_of_a_trace() {
    let mut recording = recording();
    let event = |task, kind, time_ns, fields: &[(Field, u64)]| {
        let mut event = Event::new(kind, time_ns, 0, task);
        fields
            .iter()
            .for_each(|(field, value)| event.set(*field, *value));
        event
    };
    let wait = |usec| [(Field::UsecTimeout, 100_000), (Field::UsecDelayed, usec)];
    let events = [
        event(1, Kind::KswapdWake, 0, &[(Field::Nid, 0)]),
        event(0, Kind::DirectReclaimBegin, 1000, &[(Field::Order, 0)]),
        event(0, Kind::CongestionWait, 2000, &wait(100_000)),
        event(0, Kind::WaitIffCongested, 3000, &wait(0)),
        event(
            0,
            Kind::DirectReclaimEnd,
            500_001_000,
            &[(Field::NrReclaimed, 4)],
        ),
        event(
            1,
            Kind::LruShrinkInactive,
            600_000_000,
            &[(Field::NrScanned, 32), (Field::NrReclaimed, 8)],
        ),
        event(
            1,
            Kind::Writepage,
            700_000_000,
            &[(Field::Flags, RECLAIM_WB_FILE | RECLAIM_WB_ASYNC)],
        ),
        event(1, Kind::KswapdSleep, 1_000_000_000, &[(Field::Nid, 0)]),
    ];
    events.iter().for_each(|event| recording.events.push(event));
    let run = Evidence::of(recording.clone());
    let figure = |kind: &str, row: &str| {
        let metric = format!("{{ value = \"{kind}\" }}");
        let text = SMALL.replace("{ value = \"elapsed\", unit = \"s\" }", &metric);
        let recipe = Recipe::parse("small.toml", &text).expect("a recipe");
        assert!(recipe.metric.needs_events());
        let nobody_looked = recipe.metric.measure(&evidence(&recording), row);
        assert_eq!(nobody_looked, None);
        recipe.metric.measure(&run, row)
    };
    for (row, expected) in [
        ("Direct reclaims", 1.0),
        ("Time stalled direct reclaim (seconds)", 0.5),
        ("Time kswapd awake (seconds)", 1.0),
        ("Kswapd pages scanned", 32.0),
        ("%age total pages scanned/reclaimed", 25.0),
        ("Kswapd reclaim write file async I/O", 1.0),
        // 0.5 of 1.5 s of user and system time and 0.5 s of stall; 1 of 2.5 s.
        ("Percentage Time Spent Direct Reclaim", 25.0),
        ("Percentage Time kswapd Awake", 40.0),
    ] {
        assert_eq!(figure("vmscan", row), Some(expected), "{row}");
    }
    assert_eq!(
        figure("congestion", "Direct time congest waited"),
        Some(100.0)
    );
    assert_eq!(
        figure("congestion", "Direct full congest waited"),
        Some(1.0)
    );
    assert_eq!(
        figure("congestion", "Direct number conditional waited"),
        Some(1.0)
    );
    assert_eq!(
        figure("congestion", "KSwapd number congest waited"),
        Some(0.0)
    );
    assert_eq!(figure("writepage", "KSwapd writes file async"), Some(1.0));
    assert_eq!(figure("writepage", "Direct writes anon sync"), Some(0.0));
}
