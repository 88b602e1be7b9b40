//! The recipes that come with lowmark, and recipes that are wrong.

use super::*;
use crate::evaluation;
use crate::reclaim::ReclaimFigures;
use lowmark_record::event::{RECLAIM_WB_ASYNC, RECLAIM_WB_FILE};
use lowmark_record::{
    Event, Field, Kind, Outcome, Phase, Recording, RunInfo, Series, TaskTimes, Unit,
};
use std::path::Path;

const SMALL: &str = r#"
lowmark = 1
evaluation = "swap-readahead-shaohua-2014"
workload = "w"
metric = { value = "elapsed", unit = "s" }

[variant.default]
title = "as is"
set = { touches = 5 }

[variant.short]
title = "shorter"
set = { touches = 1, order = "none" }

[column.Vanilla]
kernel = "v3.13"
set = { kind = "column", only = true }

[table.elapsed]
machine = "m"
set = { kind = "table", half = 0.5 }

[row.Seq]
set = { order = "seq" }
"#;

fn recipe() -> Recipe {
    Recipe::parse("small.toml", SMALL).expect("a recipe")
}

fn shaohua() -> Evaluation {
    evaluation::get("swap-readahead-shaohua-2014").expect("embedded")
}

#[test]
fn every_recipe_is_embedded_and_fits_its_evaluation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of recipes")
        .filter_map(|entry| {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8");
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    assert_eq!(ids().collect::<Vec<_>>(), names);
    for id in ids() {
        let recipe = get(id).expect("a valid recipe");
        let evaluation = evaluation::get(&recipe.evaluation).expect("its evaluation");
        assert_eq!(evaluation.id, id);
        for variant in &recipe.variants {
            let plans = recipe.cells(&evaluation, &variant.name).expect("cells");
            let printed = plans.iter().filter(|p| p.printed).count();
            // Of an evaluation in prose the cells are the recipe's own.
            let expected = if evaluation.tables.is_empty() {
                plans.len()
            } else {
                // The source does not say what a line counts that is printed twice under one name.
                let rows = evaluation.tables.iter().flat_map(|table| &table.rows);
                let unsaid = rows.filter(|row| row.name.ends_with("(second line)"));
                evaluation.cell_count() - unsaid.map(|row| row.values.len()).sum::<usize>()
            };
            assert_eq!(printed, expected, "{id}");
        }
    }
}

#[test]
fn swap_readahead_as_asked() {
    let recipe = get("swap-readahead").expect("embedded");
    let evaluation = evaluation::get("swap-readahead").expect("embedded");
    let plans = recipe.cells(&evaluation, DEFAULT_VARIANT).expect("cells");
    // The 48 printed cells, and the four sequential rows of a kernel that is only spoken of.
    assert_eq!(plans.len(), 52);
    let pc4 = &plans[4];
    assert_eq!(pc4.cell, CellId::new("hdd", "Seq Anon", "HughPC4"));
    assert_eq!(
        pc4.run.kernel,
        "v3.6+swapin_readahead=hugh-new,page_cluster=4"
    );
    assert_eq!(
        (pc4.run.machine.as_str(), pc4.run.workload.as_str()),
        ("desktop-900m-hdd", "swap-seq-rand")
    );
    assert_eq!(pc4.run.set["touches"], "5000000");
    assert_eq!(pc4.run.set["kind"], "anon-private");
    let (printed, extra) = plans.split_at(48);
    assert!(printed.iter().all(|p| p.printed) && extra.iter().all(|p| !p.printed));
    assert_eq!(extra[0].cell, CellId::new("hdd", "Seq Anon", "Konstantin"));
    assert_eq!(extra[3].cell, CellId::new("ssd", "Seq Shmem", "Konstantin"));
    let short = recipe.cells(&evaluation, "five-passes").expect("cells");
    assert_eq!(short[0].run.set["touches"], "1280000");
}

#[test]
fn the_more_particular_setting_wins() {
    let plans = recipe().cells(&shaohua(), "short").expect("cells");
    assert_eq!(plans.len(), 1);
    let expected: Settings = [
        ("half", "0.5"),
        ("kind", "column"),
        ("only", "true"),
        ("order", "none"),
        ("touches", "1"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    assert_eq!(plans[0].run.set, expected);
}

#[test]
fn a_recipe_without_variants_has_a_default() {
    let text = SMALL.replace(
        "[variant.default]\ntitle = \"as is\"\nset = { touches = 5 }",
        "",
    );
    let text = text.replace(
        "[variant.short]\ntitle = \"shorter\"\nset = { touches = 1, order = \"none\" }",
        "",
    );
    let recipe = Recipe::parse("r", &text).expect("a recipe");
    assert_eq!(recipe.variants.len(), 1);
    assert_eq!(
        recipe
            .cells(&shaohua(), DEFAULT_VARIANT)
            .expect("cells")
            .len(),
        1
    );
}

#[test]
fn wrong_recipes_are_refused_with_their_place() {
    for (from, to, expected) in [
        (
            "lowmark = 1",
            "lowmark = 2",
            "small.toml:2: lowmark: expected 1, found 2",
        ),
        (
            "workload = \"w\"",
            "worklod = \"w\"",
            "unknown field `worklod`",
        ),
        ("workload = \"w\"", "", "missing field `workload`"),
        (
            "unit = \"s\"",
            "unit = \"m\"",
            "small.toml:5: metric: unit: expected one of ns, us, ms, cs, s, found `m`",
        ),
        (", unit = \"s\"", "", "metric: a time needs a unit"),
        (
            "unit = \"s\"",
            "unit = \"s\", name = \"x\"",
            "metric: a time has no name",
        ),
        (
            "\"elapsed\", unit",
            "\"counter\", unit",
            "metric: only a time has a unit",
        ),
        (
            "title = \"as is\"",
            "title = \"as is\"\njudged = false",
            "variant default, judged: expected true",
        ),
        (
            "[variant.default]",
            "[variant.usual]",
            "variant: expected one called `default`",
        ),
        ("[row.Seq]", "[row.Seq]\nkind = 1", "unknown field `kind`"),
        (
            "touches = 5 ",
            "touches = [5] ",
            "small.toml: TOML parse error at line 9",
        ),
        (
            "[row.Seq]",
            "[extra.Vanilla]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1\"\n[row.Seq]",
            "extra Vanilla: is a column",
        ),
        (
            "[row.Seq]",
            "[extra.X]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1 <\"\n[row.Seq]",
            "extra X: expected a value, found the end",
        ),
        (
            "[row.Seq]",
            "[extra.X]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1 < 2\"\n[row.Seq]",
            "expr names no cell of column `X`",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let error = Recipe::parse("small.toml", &SMALL.replacen(from, to, 1)).expect_err(expected);
        let error = error.to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
    let error = get("nonsense").expect_err("no such recipe").to_string();
    assert!(
        error.contains("`nonsense`") && error.contains("swap-readahead"),
        "{error}"
    );
}

#[test]
fn recipes_must_fit_their_evaluation() {
    for (from, to, expected) in [
        (
            "[row.Seq]",
            "[row.Sequ]",
            "row Sequ: not in the evaluation; expected one of Seq, Random",
        ),
        (
            "[table.elapsed]",
            "[table.e]",
            "table e: not in the evaluation",
        ),
        (
            "[column.Vanilla]",
            "[column.V]",
            "column V: not in the evaluation",
        ),
        (
            "unit = \"s\"",
            "unit = \"cs\"",
            "the published figures are seconds, the metric is cs",
        ),
        (
            "-shaohua-2014\"",
            "\"",
            "expected `swap-readahead-shaohua-2014`, found `swap-readahead`",
        ),
    ] {
        let recipe = Recipe::parse("small.toml", &SMALL.replacen(from, to, 1)).expect("a recipe");
        let error = recipe.check(&shaohua()).expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
    let error = recipe()
        .cells(&shaohua(), "long")
        .expect_err("no such variant")
        .to_string();
    assert!(
        error.contains("variant long: expected one of default, short"),
        "{error}"
    );
}

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

/// What a metric is of a recording.
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
    // What the samples in each round come to.
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

/// The names by which recipes are checked are those of the published blocks.
#[test]
fn names_of_rows_are_those_in_print() {
    for id in ids() {
        let evaluation = evaluation::get(id).expect("embedded");
        let recipe = get(id).expect("embedded");
        recipe.check(&evaluation).expect("every row has a figure");
    }
    let evaluation = evaluation::get("vmscan-2010-x86_64-stress-highalloc").expect("embedded");
    let rows = |table: &str| {
        let table = evaluation.table(table).expect("a table");
        table
            .rows
            .iter()
            .map(|row| row.name.clone())
            .collect::<Vec<String>>()
    };
    assert_eq!(ReclaimFigures::vmscan_names(), rows("ftrace-vmscan"));
    assert_eq!(
        ReclaimFigures::congestion_names()[..12],
        rows("congestion-wait")[..12]
    );
    assert_eq!(ReclaimFigures::writepage_names().len(), 12);
}

#[test]
fn figures_that_there_are_not() {
    for (metric, problem) in [
        (
            "{ value = \"device\", name = \"seeks\" }",
            "expected one of write-rate",
        ),
        (
            "{ value = \"lock\", name = \"hold_max\" }",
            "expected one of acquisitions",
        ),
        ("{ value = \"dirty\" }", "which figure"),
        (
            "{ value = \"series\", name = \"gone\" }",
            "a series needs a unit",
        ),
        (
            "{ value = \"cpu\", unit = \"s\" }",
            "only a time has a unit",
        ),
        ("{ value = \"counter\", of = \"max\" }", "only a series"),
        (
            "{ value = \"vmscan\", name = \"Direct reclaim\" }",
            "small.toml:5: metric: name: expected one of Direct reclaims, ",
        ),
        (
            "{ value = \"congestion\", name = \"x\" }",
            "expected one of Direct number congest waited, ",
        ),
        (
            "{ value = \"writepage\", name = \"x\" }",
            "expected one of Direct writes anon sync, ",
        ),
        (
            "{ value = \"vmstat\", name = \"Swaps\" }",
            "expected one of Page Ins, ",
        ),
        ("{ value = \"rate\" }", "name: which figure is it?"),
        (
            "{ value = \"rate\", name = \"a\", of = \"max\" }",
            "of: only a series, and a rate with `each`",
        ),
        (
            "{ value = \"rate\", name = \"a\", window = \"1s\" }",
            "window: only a series",
        ),
        (
            "{ value = \"cpu\", phase = \"p\" }",
            "phase: only elapsed, series, rate and success",
        ),
        (
            "{ value = \"cpu\", each = \"p\" }",
            "each: only a rate or a series",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", window = \"1 s\" }",
            "window: expected a time like 60s or 5ms, found `1 s`",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", window = \"0s\" }",
            "window: expected a time",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", group = { count = 0, below = \"5ms\" } }",
            "group: count: expected a number above 0",
        ),
        (
            "{ value = \"series\", of = \"p90\" }",
            "unknown variant `p90`",
        ),
    ] {
        let text = SMALL.replace("{ value = \"elapsed\", unit = \"s\" }", metric);
        let error = Recipe::parse("small.toml", &text).expect_err(metric);
        assert!(error.to_string().contains(problem), "{error}");
    }
    // A row without a metric of its own is one of those of the recipe's.
    let text = SMALL.replace(
        "{ value = \"elapsed\", unit = \"s\" }",
        "{ value = \"vmscan\" }",
    );
    let recipe = Recipe::parse("small.toml", &text).expect("TOML");
    let error = recipe
        .check(&shaohua())
        .expect_err("no such row")
        .to_string();
    assert!(
        error.starts_with(
            "small.toml:23: row Seq: metric: the row's name: expected one of Direct reclaims, "
        ),
        "{error}"
    );
    let either = SMALL.to_owned() + "\n[claim.x]\nnote = \"neither\"\n";
    let error = Recipe::parse("small.toml", &either).expect_err("neither");
    assert!(
        error
            .to_string()
            .contains("either `before` and `after`, or `expr`, or `reason`"),
        "{error}"
    );
}

/// A figure that states a change is judged by the rule for changes, and a recipe cannot say otherwise.
#[test]
fn what_a_figure_states_says_how_it_is_judged() {
    let evaluation = evaluation::get("ioless-dirty-2011").expect("embedded");
    let text = recipe_text("ioless-dirty-2011");
    let change = text.replacen(
        "before = \"[dd100::system time::legacy]\"\nafter = \"[dd100::system time::ioless-4M]\"",
        "expr = \"[dd100::system time::ioless-4M] < 100\"",
        1,
    );
    assert_ne!(change, text);
    let error = Recipe::parse("r.toml", &change)
        .expect("TOML")
        .check(&evaluation);
    let error = error.expect_err("it states a change").to_string();
    assert!(error.contains("expected `before` and `after`"), "{error}");
    let value = text.replacen(
        "[claim.pause-1dd]\nexpr = \"5 <= [dd1::pause, median::ioless] <= 20\"",
        "[claim.pause-1dd]\nbefore = \"[dd1::a::b]\"\nafter = \"[dd1::a::c]\"",
        1,
    );
    assert_ne!(value, text);
    let error = Recipe::parse("r.toml", &value)
        .expect("TOML")
        .check(&evaluation);
    let error = error.expect_err("it states none").to_string();
    assert!(error.contains("states no change"), "{error}");
    let error = Recipe::parse("r.toml", &value.replace("[dd1::a::b]", "dd1::a::b"));
    let error = error.expect_err("no cell").to_string();
    assert!(
        error.contains("claim pause-1dd: before: expected a cell"),
        "{error}"
    );
}

fn recipe_text(id: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations");
    std::fs::read_to_string(path.join(format!("{id}.toml"))).expect("the recipe")
}
