//! Twins of made-up recordings.

use super::*;
use crate::table::PlainStyle;

fn recording(counters: &[(&str, u64)]) -> Recording {
    let counters = counters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    crate::comparison::recording_of(counters.collect())
}

fn twin() -> Twin {
    let run = |steal, stalls, majfault| {
        recording(&[
            ("pgscan_anon", 10),
            ("pgscan_file", 90),
            ("pgsteal_anon", steal),
            ("allocstall_normal", stalls),
            ("allocstall_movable", 1),
            ("pgmajfault", majfault),
            ("pswpin", 0),
            ("swap_ra", 0),
        ])
    };
    let runs = [run(50, 9, 0), run(54, 1, 0), run(52, 4, 0)];
    let model = |stalls| {
        recording(&[
            ("pgscan_anon", 12),
            ("pgscan_file", 93),
            ("pgsteal_anon", 26),
            ("allocstall_movable", stalls),
            ("pgmajfault", 3),
            ("swap_ra", 0),
        ])
    };
    let models = [model(9), model(4), model(2)];
    Twin::new(
        &runs.iter().collect::<Vec<_>>(),
        &models.iter().collect::<Vec<_>>(),
    )
    .expect("runs")
}

/// Beside a run on a system with other tasks, these count as well: what is small is nobody's with certainty.
#[test]
fn small_counts_of_a_run_on_the_system_are_not_judged() {
    let run = |written, swapped| recording(&[("nr_written", written), ("pswpin", swapped)]);
    let mut kernel = run(57, 900);
    kernel.run.backend = "host".into();
    let twin = |kernel: &Recording| Twin::new(&[kernel], &[&run(0, 950)]).expect("runs");
    let names = |twin: &Twin| -> Vec<String> {
        twin.metrics
            .iter()
            .map(|metric| metric.name.clone())
            .collect()
    };
    let beside_others = twin(&kernel);
    assert_eq!(names(&beside_others), ["pswpin"]);
    assert_eq!(beside_others.too_small, ["nr_written"]);
    kernel.run.backend = "guest".into();
    assert_eq!(names(&twin(&kernel)), ["pswpin", "nr_written"]);
    // Large on one side is not small.
    kernel.run.backend = "host".into();
    let other = Twin::new(&[&kernel], &[&run(100, 950)]).expect("runs");
    assert!(other.too_small.is_empty());
}

/// What a group has is a figure like all others; what is its own alone is not, and what the model lacks is said. Over
/// several twins the groups of all are one counter.
#[test]
fn what_memory_cgroups_have_is_compared() {
    let run = |steal, current| {
        let mut run = recording(&[
            ("cgroup/a/b/memory.stat.pgsteal", steal),
            ("cgroup/a/memory.stat.pgsteal", 2 * steal),
            ("cgroup/a/memory.events.local.max", 7),
        ]);
        run.state.insert("cgroup/a/memory.current".into(), current);
        run
    };
    let (kernel, mut model) = (run(100, 4096), run(150, 4096));
    model.counters.remove("cgroup/a/memory.stat.pgsteal");
    let twin = Twin::new(&[&kernel], &[&model]).expect("runs");
    let figures: Vec<_> = twin
        .metrics
        .iter()
        .map(|m| (m.name.as_str(), m.error, m.model.is_some()))
        .collect();
    let expected = [
        ("cgroup/a/b/memory.stat.pgsteal", 0.5, true),
        ("cgroup/a/memory.stat.pgsteal", 0.0, false),
        ("cgroup/a/memory.current", 0.0, true),
    ];
    assert_eq!(figures, expected);
    let all = Distribution::new(&[("load", &twin)]).expect("figures");
    let counters: Vec<_> = all
        .by_counter
        .iter()
        .map(|of| (of.of.as_str(), of.figures))
        .collect();
    assert_eq!(
        counters,
        [("memory.stat.pgsteal", 1), ("memory.current", 1)]
    );
}

/// A run whose `alloc` got as many blocks as there are times, ms, and as many attempts in vain.
fn with_attempts(took_ms: &[u64], in_vain: usize) -> Recording {
    let mut run = recording(&[]);
    let series = |name: &str, samples: Vec<(u64, u64)>| lowmark_record::Series {
        name: name.to_owned(),
        unit: lowmark_record::Unit::Milliseconds,
        samples,
    };
    let took = took_ms.iter().map(|ms| (1, ms * 1_000_000)).collect();
    run.series = vec![
        series("pass", took),
        series("pass-failed", vec![(1, 9_000_000); in_vain]),
        series("never", Vec::new()),
        series("never-failed", Vec::new()),
    ];
    run
}

/// Success is a part of the attempts of each run; times are printed beside each other. What nobody sampled is left out.
#[test]
fn attempts_at_blocks_are_judged_by_their_success() {
    let kernel = [
        with_attempts(&[1, 2, 3], 1),
        with_attempts(&[5, 6, 8], 0),
        with_attempts(&[4, 4], 2),
    ];
    let twin = of_runs(&kernel, &[with_attempts(&[10, 20], 1)]);
    let names: Vec<&str> = twin.series.iter().map(|both| both.name.as_str()).collect();
    assert_eq!(names, ["pass", "pass-failed"]);
    let pass = &twin.series[0];
    assert_eq!((pass.kernel.samples.median, pass.unit), (3.0, "ms"));
    let kernel_p50 = pass.kernel.p50.expect("samples");
    assert_eq!(
        (kernel_p50.min, kernel_p50.median, kernel_p50.max),
        (2.0, 4.0, 6.0)
    );
    assert_eq!(pass.model.p99.map(|p99| p99.median), Some(20.0));
    assert_eq!(twin.attempts.len(), 1);
    let of = &twin.attempts[0];
    assert_eq!((of.kernel.median, of.kernel.min), (75.0, 50.0));
    assert!((of.points + 25.0 / 3.0).abs() < 1e-9);
    assert!(of.near, "8.3 points, and in the range of the kernel's runs");
    let far = of_runs(&kernel, &[with_attempts(&[10], 3)]);
    assert!((!far.attempts[0].near) && far.attempts[0].points == -50.0);
    let alone = of_runs(&kernel[1..2], &[with_attempts(&[1; 91], 9)]);
    assert!(alone.attempts[0].near, "9 points");
    let text = twin.text(&PlainStyle, None);
    assert!(text.contains("series"), "{text}");
    assert!(
        text.contains(
            "pass: of 4 attempts the kernel granted 75.0% (50.0 to 100.0), the model 66.7%"
        ),
        "{text}"
    );
    assert!(!text.contains("never"), "{text}");
}

#[test]
fn errors_are_parts_of_the_median() {
    let twin = twin();
    let metric = |name: &str| {
        twin.metrics
            .iter()
            .find(|m| m.name == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(metric("pgscan").error, 0.05);
    assert!(metric("pgscan").holds());
    let steal = metric("pgsteal");
    assert_eq!(
        (steal.kernel.median, steal.kernel.min, steal.kernel.max),
        (52.0, 50.0, 54.0)
    );
    assert_eq!(steal.error, -0.5);
    assert!(steal.repeats() && !steal.holds());
    let stalls = metric("allocstall");
    let model = stalls.model.expect("the model has it");
    assert_eq!((stalls.kernel.median, model.median), (5.0, 4.0));
    assert_eq!((model.min, model.max), (2.0, 9.0));
    assert!(!stalls.repeats() && stalls.holds());
    assert_eq!(metric("pgmajfault").error, 1.0);
    assert!(!metric("pgmajfault").holds());
    // What the kernel does not have is no metric.
    assert!(
        twin.metrics
            .iter()
            .all(|m| m.name != "workingset_refault_anon")
    );
    // 5, 50, 20 and 100 %: pswpin and swap_ra never moved.
    assert!(
        (twin.median_error - 0.35).abs() < 1e-9,
        "{}",
        twin.median_error
    );
    assert_eq!(twin.worst_error, 1.0);
}

#[test]
fn the_json_form_is_fixed() {
    let value = serde_json::to_value(twin()).expect("JSON");
    let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "attempts",
            "elapsed",
            "kernel",
            "machine",
            "median_error",
            "metrics",
            "model_runs",
            "one_sided",
            "release",
            "runs",
            "series",
            "workload",
            "worst_error"
        ]
    );
    let keys: Vec<&String> = value["metrics"][0]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(
        keys,
        [
            "error",
            "kernel_groups",
            "kernel_max",
            "kernel_median",
            "kernel_min",
            "model",
            "model_max",
            "model_min",
            "name",
            "near"
        ]
    );
}

#[test]
fn the_table_says_what_holds() {
    let text = twin().text(&PlainStyle, None);
    assert!(
        text.contains("pgsteal") && text.contains("-50.0%"),
        "{text}"
    );
    // Of the runs' pgscan all are near the others, of pgsteal (50, 54, 52) as well, and of allocstall (10, 2, 5) the one
    // in the midst alone, as twice what the others have in the median is 7, and half of it 3.
    let near =
        "within tolerance: 2 of 4; a run of the kernel, held against its other runs: 77.8%\n";
    assert!(text.contains(near), "{text}");
    assert!(Twin::new(&[], &[&recording(&[])]).is_none());
    assert!(Twin::new(&[&recording(&[])], &[]).is_none());
}

fn of_params(params: &[(&str, &str)], counters: &[(&str, u64)]) -> Recording {
    let mut recording = recording(counters);
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    recording.run.params = params.iter().map(pair).collect();
    recording
}

fn of_runs(kernel: &[Recording], model: &[Recording]) -> Twin {
    let kernel: Vec<&Recording> = kernel.iter().collect();
    let model: Vec<&Recording> = model.iter().collect();
    Twin::new(&kernel, &model).expect("runs")
}

#[test]
fn two_ways_to_go_take_the_place_of_one_median() {
    let run = |scan| recording(&[("pgscan_kswapd", scan)]);
    let kernel = [500, 910, 505, 900, 905].map(run);
    let twin = of_runs(&kernel, &[run(500)]);
    let scan = &twin.metrics[0];
    assert!((scan.error - (500.0 - 502.5) / 502.5).abs() < 1e-9);
    let value = serde_json::to_value(scan).expect("JSON");
    assert!(value["kernel_median"].is_null());
    assert_eq!(value["kernel_groups"][1]["runs"], 3);
    let text = twin.text(&PlainStyle, None);
    assert!(
        text.contains("two groups, 2 of 500 to 505 and 3 of 900 to 910"),
        "{text}"
    );
}

#[test]
fn what_the_model_lacks_is_said_and_not_judged() {
    let kernel = recording(&[
        ("pswpin", 100),
        ("slabs_scanned", 70),
        ("thp_fault_alloc", 0),
        ("compact_stall", 3),
    ]);
    let model = recording(&[("pswpin", 100), ("compact_stall", 0)]);
    let twin = of_runs(&[kernel], &[model]);
    assert_eq!(twin.near(), (2, 1));
    let text = twin.text(&PlainStyle, None);
    for said in [
        "within tolerance: 1 of 2",
        "not in the model: thp_fault_alloc, slabs_scanned\n",
        "0 in the model alone: compact_stall (3)\n",
        "elapsed: kernel ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let row = text.lines().find(|line| line.starts_with("slabs_scanned"));
    assert!(row.is_some_and(|row| row.ends_with("none")), "{text}");
}

#[test]
fn errors_of_several_twins_are_distributed() {
    let twin = |name: &str, model: u64| {
        let mut twin = of_runs(
            &[recording(&[("pswpin", 100), ("pswpout", 100)])],
            &[recording(&[("pswpin", model), ("pswpout", 100)])],
        );
        twin.workload = name.to_owned();
        twin
    };
    let twins = [twin("a", 100), twin("b", 150), twin("c", 105)];
    let classed: Vec<(&str, &Twin)> = ["read", "write", "read"].into_iter().zip(&twins).collect();
    let distribution = Distribution::new(&classed).expect("figures");
    let all = &distribution.all;
    assert_eq!((all.figures, all.near, all.worst), (6, 5, 0.5));
    assert!(all.worst_load.starts_with("b,"), "{}", all.worst_load);
    let swapped_in = &distribution.by_counter[0];
    assert_eq!(
        (
            swapped_in.of.as_str(),
            swapped_in.figures,
            swapped_in.median
        ),
        ("pswpin", 3, 0.05)
    );
    let classes: Vec<(&str, usize, usize)> = distribution
        .by_class
        .iter()
        .map(|errors| (errors.of.as_str(), errors.figures, errors.near))
        .collect();
    assert_eq!(classes, [("read", 4, 4), ("write", 2, 1)]);
    assert_eq!(Distribution::new(&[]), None);
    let text = distribution.section().text(&PlainStyle, None);
    assert!(
        text.contains("5 of 6 figures within tolerance (83.3%), in 3 combinations"),
        "{text}"
    );
}

#[test]
fn effects_of_a_setting_have_a_sign_and_a_size() {
    let runs = |value: &str, counters: [[u64; 4]; 2]| {
        counters.map(|[a, b, c, d]| {
            let counters = [
                ("pgscan_kswapd", a),
                ("pgsteal_kswapd", b),
                ("pswpin", c),
                ("pswpout", d),
            ];
            of_params(&[("page_cluster", value)], &counters)
        })
    };
    // From 1000 to 2000, to 500, within the spread, and by less than a tenth.
    let kernel = [
        runs("3", [[1000, 1000, 900, 1000], [1010, 990, 1400, 1000]]),
        runs("0", [[2000, 500, 1300, 1050], [2000, 500, 1600, 1050]]),
    ];
    // Twice as much as the kernel's, and the other way.
    let model = [
        runs("3", [[1000, 1000, 1000, 1000]; 2]),
        runs("0", [[3000, 1500, 1000, 1000]; 2]),
    ];
    let twins = [0, 1].map(|at| of_runs(&kernel[at], &model[at]));
    let effects = Effects::new(&twins.each_ref()).expect("a pair");
    let judged: Vec<(&str, bool, bool)> = effects
        .effects
        .iter()
        .filter(|effect| effect.counter.contains('_') || effect.counter.starts_with("psw"))
        .map(|effect| (effect.counter.as_str(), effect.sign, effect.size))
        .collect();
    assert_eq!(
        judged,
        [
            ("pgscan_kswapd", true, false),
            ("pgsteal_kswapd", false, false)
        ]
    );
    let effect = &effects.effects[0];
    assert_eq!(
        (effect.knob.as_str(), &effect.values),
        ("page_cluster", &["3".to_owned(), "0".to_owned()])
    );
    assert!(
        effects
            .section()
            .text(&PlainStyle, None)
            .contains("in 1 pairs of twins: sign right 2, size within 1.5 0")
    );
    // Of one run alone nobody knows the spread, and twins of one value are no pair.
    assert_eq!(Effects::new(&[&twins[0]]), None);
    let single = twins.clone().map(|mut twin| {
        twin.runs = 1;
        twin
    });
    assert_eq!(
        Effects::new(&single.each_ref()).expect("a pair").effects,
        []
    );
}
