//! Two kernels side by side.

use super::*;
use crate::table::PlainStyle;
use lowmark_record::{Outcome, RunInfo, TaskTimes};

fn recording(elapsed_s: u64, counters: &[(&str, u64)]) -> Recording {
    let task = |name: &str, kthread| TaskTimes {
        name: name.to_owned(),
        pid: 1,
        kthread,
        user_ns: 500_000_000,
        system_ns: elapsed_s * 100_000_000,
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
        elapsed_ns: elapsed_s * 1_000_000_000,
        counters: counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        state: Default::default(),
        tasks: vec![task("w", false), task("kswapd0", true)],
        phases: Vec::new(),
        series: Vec::new(),
        gauges: Default::default(),
        history: Vec::new(),
        not_modelled: Vec::new(),
        system: None,
        events: Default::default(),
    }
}

/// A recording with these counters.
pub(crate) fn recording_of(counters: std::collections::BTreeMap<String, u64>) -> Recording {
    Recording {
        counters,
        ..recording(1, &[])
    }
}

fn column<'a>(name: &str, recordings: &[&'a Recording]) -> ColumnInput<'a> {
    ColumnInput {
        name: name.to_owned(),
        recordings: recordings.to_vec(),
    }
}

fn row<'c>(comparison: &'c Comparison, name: &str) -> &'c ComparedRow {
    comparison
        .blocks
        .iter()
        .flat_map(|b| &b.rows)
        .find(|r| r.name == name)
        .expect(name)
}

#[test]
fn as_mmtests_prints_it() {
    let old = recording(100, &[("pswpin", 200), ("pgpgin", 5), ("allocstall", 0)]);
    let new = recording(50, &[("pswpin", 300), ("pgpgin", 6), ("allocstall", 0)]);
    let columns = [
        column("v3.6", &[&old]),
        column("v3.6+swapin_readahead=hugh-new", &[&new]),
    ];
    let comparison = Comparison::new(&columns, SeriesRows::default());
    let text = comparison.text(&PlainStyle, None);
    let expected = [
        "Duration",
        "                          v3.6                   v3.6",
        "                                   +swapin_readahead=",
        "                                             hugh-new",
        "User           0.50 (   0.00%)        0.50 (   0.00%)",
        "System        10.00 (   0.00%)        5.00 (  50.00%)",
        "Elapsed      100.00 (   0.00%)       50.00 (  50.00%)",
        "",
        "VM statistics",
        "                                    v3.6                   v3.6",
        "                                             +swapin_readahead=",
        "                                                       hugh-new",
        "Page Ins                    5                      6",
        "Swap Ins                  200 (   0.00%)         300 ( -50.00%)",
        "Allocation stalls           0 (   0.00%)           0 (   0.00%)",
        "",
    ];
    assert_eq!(text, expected.join("\n"));
}

#[test]
fn memory_cgroups_have_rows_of_their_own() {
    let counters = |max, scanned| {
        [
            ("cgroup/memory.failcnt", 3),
            ("cgroup/a/b/memory.events.max", max),
            ("cgroup/a/b/memory.events.local.max", 9),
            ("cgroup/a/b/memory.stat.pgscan", scanned),
            ("cgroup/a/b/memory.stat.pgrefill", 7),
        ]
    };
    let (old, new) = (
        recording(1, &counters(10, 200)),
        recording(1, &counters(5, 200)),
    );
    let columns = [column("old", &[&old]), column("new", &[&new])];
    let comparison = Comparison::new(&columns, SeriesRows::default());
    let block = comparison.blocks.iter().find(|block| block.id == "cgroups");
    let rows = &block.expect("a block").rows;
    let shown: Vec<(&str, Option<f64>)> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.percents[1]))
        .collect();
    let expected = [
        ("a/b/memory.events.max", Some(50.0)),
        ("a/b/memory.stat.pgscan", Some(0.0)),
        ("memory.failcnt", Some(0.0)),
    ];
    assert_eq!(shown, expected);
}

/// mmtests cuts efficiencies to whole percent and compares those; programs get what they are.
#[test]
fn json_is_exact_where_the_table_is_cut() {
    let scanned = |scanned, reclaimed| {
        let counters = [("pgscan_kswapd", scanned), ("pgsteal_kswapd", reclaimed)];
        recording(1, &counters)
    };
    let (old, new) = (scanned(10_000, 1_597), scanned(10_000, 1_676));
    let columns = [column("old", &[&old]), column("new", &[&new])];
    let comparison = Comparison::new(&columns, SeriesRows::default());
    let text = comparison.text(&PlainStyle, None);
    let line = text
        .lines()
        .find(|line| line.starts_with("Kswapd efficiency"));
    let line = line.expect("a row");
    assert!(
        line.contains("15%") && line.contains("16% (   6.67%)"),
        "{line}"
    );
    let json = comparison.json();
    let rows = json["blocks"][1]["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "Kswapd efficiency");
    let row = row.expect("a row");
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-9, "{value} for {expected}");
    };
    near(&row["values"][0], 15.97);
    near(&row["values"][1], 16.76);
    near(&row["percents"][1], 100.0 * 16.76 / 15.97 - 100.0);
}

#[test]
fn repeats_are_averaged_before_percentages() {
    let old = [recording(90, &[]), recording(110, &[])];
    let new = [recording(40, &[]), recording(60, &[]), recording(80, &[])];
    let columns = [
        column("old", &old.iter().collect::<Vec<_>>()),
        column("new", &new.iter().collect::<Vec<_>>()),
    ];
    let comparison = Comparison::new(&columns, SeriesRows::default());
    let elapsed = row(&comparison, "Elapsed");
    assert_eq!(elapsed.values, [Some(100.0), Some(60.0)]);
    assert_eq!(elapsed.percents, [Some(0.0), Some(40.0)]);
    assert!(
        comparison
            .text(&PlainStyle, None)
            .contains("new (mean of 3)")
    );
}

#[test]
fn rows_of_one_era_leave_gaps_in_the_other() {
    let old = recording(1, &[("pgpgin", 1), ("pgrescued", 2), ("compact_stall", 3)]);
    let new = recording(
        1,
        &[("pgpgin", 1), ("slabs_scanned", 4), ("compact_stall", 5)],
    );
    let columns = [column("old", &[&old]), column("new", &[&new])];
    let comparison = Comparison::new(&columns, SeriesRows::default());
    let vmstat = &comparison.blocks.last().expect("a block").rows;
    let names: Vec<&str> = vmstat.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Page Ins",
            "Slabs scanned",
            "Page rescued immediate",
            "Compaction stalls"
        ]
    );
    let rescued = row(&comparison, "Page rescued immediate");
    assert_eq!(
        (&rescued.values[..], &rescued.percents[..]),
        (&[Some(2.0), None][..], &[None, None][..])
    );
    assert!(comparison.text(&PlainStyle, None).contains(" -\n"));
}

#[test]
fn series_in_their_unit() {
    let mut old = recording(1, &[]);
    let samples = (1..=9u64).map(|i| (i, i * 1_000_000)).collect();
    old.series = vec![Series {
        name: "mmap".to_owned(),
        unit: Unit::Milliseconds,
        samples,
    }];
    let columns = [column("old", &[&old])];
    let comparison = Comparison::new(&columns, SeriesRows::Quartiles);
    assert_eq!(row(&comparison, "1st-qrtle mmap").values, [Some(3.0)]);
    assert_eq!(row(&comparison, "Mean mmap").values, [Some(5.0)]);
    assert!(
        comparison
            .text(&PlainStyle, None)
            .contains("Max-99% mmap        9.0000 (   0.00%)")
    );
    let comparison = Comparison::new(&columns, SeriesRows::Means);
    assert_eq!(row(&comparison, "BAmean-50 mmap").values, [Some(2.5)]);
    assert_eq!(row(&comparison, "CoeffVar mmap").unit, "%");
    old.series[0].samples.clear();
    let comparison = Comparison::new(&[column("old", &[&old])], SeriesRows::Means);
    assert!(comparison.blocks.iter().all(|b| b.id != "series"));
}

#[test]
fn json_has_its_stable_names() {
    let old = recording(2, &[("pswpin", 0)]);
    let new = recording(1, &[("pswpin", 5)]);
    let columns = [column("old", &[&old]), column("new", &[&new, &new])];
    let json = Comparison::new(&columns, SeriesRows::default()).json();
    assert_eq!(json["version"], 2);
    assert_eq!(json["columns"][1]["name"], "new");
    assert_eq!(json["columns"][1]["recordings"], 2);
    assert_eq!(json["blocks"][0]["id"], "duration");
    let elapsed = &json["blocks"][0]["rows"][2];
    assert_eq!(
        (&elapsed["name"], &elapsed["unit"]),
        (&"Elapsed".into(), &"s".into())
    );
    assert_eq!(elapsed["better"], "lower");
    assert_eq!(elapsed["values"], serde_json::json!([2.0, 1.0]));
    assert_eq!(elapsed["percents"], serde_json::json!([0.0, 50.0]));
    assert_eq!(elapsed["samples"], serde_json::json!([[2.0], [1.0, 1.0]]));
    assert_eq!(elapsed["spreads"], serde_json::json!([null, 0.0]));
    assert_eq!(elapsed["sign_flips"], serde_json::json!([null, null]));
    let swap_ins = &json["blocks"][1]["rows"][0];
    assert_eq!(swap_ins["percents"], serde_json::json!([0.0, -99.0]));
}

#[test]
fn no_time_is_not_negative() {
    let run = recording(1, &[]);
    let rows = duration_rows(&Recording {
        tasks: Vec::new(),
        ..run
    });
    let shown = rows.iter().map(|row| row.format.text(row.value));
    assert_eq!(shown.collect::<Vec<_>>(), ["0.00", "0.00", "1.00"]);
}

#[test]
fn nothing_to_compare() {
    let comparison = Comparison::new(&[], SeriesRows::default());
    assert!(comparison.blocks.is_empty());
    assert_eq!(comparison.text(&PlainStyle, None), "");
    let empty = Comparison::new(&[column("none", &[])], SeriesRows::default());
    assert!(empty.blocks.is_empty());
}

#[test]
fn no_winner_is_named_inside_the_noise() {
    let runs = |values: [u64; 5]| {
        values.map(|value| recording(10, &[("pswpin", value), ("pswpout", 100)]))
    };
    let (base, near, far) = (
        runs([100, 140, 120, 110, 130]),
        runs([120, 150, 110, 130, 105]),
        runs([10, 12, 11, 10, 12]),
    );
    let columns = [("a", &base), ("b", &near), ("c", &far)].map(|(name, runs)| ColumnInput {
        name: name.to_owned(),
        recordings: runs.iter().collect(),
    });
    let comparison = Comparison::new(&columns, SeriesRows::default());
    assert_eq!(
        row(&comparison, "Swap Ins").significant,
        [None, Some(false), Some(true)]
    );
    let text = comparison.text(&PlainStyle, None);
    let line = text
        .lines()
        .find(|line| line.starts_with("Swap Ins"))
        .expect("a row");
    assert_eq!(line.matches('~').count(), 1, "{line}");
    assert!(line.contains("120 ±13%"), "{line}");
    // What the marks mean stands below.
    for explained in ["Welch's t test", "standard deviation of the repeats"] {
        assert!(text.contains(explained), "{text}");
    }
    assert!(
        text.contains("b: better in some repeats and worse in others: Swap Ins"),
        "{text}"
    );
    // One run has no noise that could be known.
    let single = [column("a", &[&base[0]]), column("b", &[&far[0]])];
    let comparison = Comparison::new(&single, SeriesRows::default());
    assert_eq!(row(&comparison, "Swap Ins").significant, [None, None]);
}

/// By hand: means 120 and 11, standard errors √50 and √0.2, 4 degrees of freedom, 2.776 of √50.2 on both sides.
#[test]
fn a_change_is_plotted_with_its_interval() {
    let runs = |values: [u64; 5]| values.map(|value| recording(10, &[("pswpin", value)]));
    let (base, far) = (runs([100, 140, 120, 110, 130]), runs([10, 12, 11, 10, 12]));
    let columns = [("a", &base), ("b", &far)].map(|(name, runs)| ColumnInput {
        name: name.to_owned(),
        recordings: runs.iter().collect(),
    });
    let section = Comparison::new(&columns, SeriesRows::default()).section();
    let [crate::plot::Plot::Intervals(plot)] = section.plots.as_slice() else {
        panic!("{:?}", section.plots);
    };
    let [row] = plot.rows.as_slice() else {
        panic!("only this figure differs: {:?}", plot.rows);
    };
    assert_eq!((row.name.as_str(), row.role), ("Swap Ins", Role::Good));
    assert!((row.value - 90.833).abs() < 0.001, "{row:?}");
    let [low, high] = row.interval.expect("it varies");
    assert!(((high - low) / 2.0 - 16.393).abs() < 0.01, "{row:?}");
    let answer = section.answers.join("");
    assert!(
        answer.contains("b against a")
            && answer.contains("1 are better and 0 are worse beyond the noise"),
        "{answer}"
    );
}
