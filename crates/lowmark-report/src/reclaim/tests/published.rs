//! The derived rows of the vmscan block against the tables of 2010.

use super::*;
use crate::evaluation::{self, Evaluation, Printed, Table};

const TABLES: [&str; 4] = [
    "vmscan-2010-x86_64-micro-mapped-file-stream",
    "vmscan-2010-ppc64-micro-mapped-file-stream",
    "vmscan-2010-x86_64-stress-highalloc",
    "vmscan-2010-ppc64-stress-highalloc",
];

fn table<'e>(evaluation: &'e Evaluation, id: &str) -> &'e Table {
    let found = evaluation.tables.iter().find(|t| t.id == id);
    found.expect("these evaluations have it")
}

fn printed<'t>(table: &'t Table, row: &str, column: usize) -> &'t Printed {
    let found = table.rows.iter().find(|r| r.name == row);
    &found.expect("these tables have it").values[column]
}

fn measures(evaluation: &Evaluation, column: usize) -> Measures {
    let vmscan = table(evaluation, "ftrace-vmscan");
    let duration = table(evaluation, "duration");
    let value = |row: &str| printed(vmscan, row, column).value;
    let of_test = |row: &str| Some(printed(duration, row, column).value);
    let writes = |actor: &str| {
        ["file async", "anon async", "file sync", "anon sync"]
            .map(|kind| value(&format!("{actor} reclaim write {kind} I/O")))
    };
    Measures {
        direct_scanned: value("Direct reclaim pages scanned"),
        kswapd_scanned: value("Kswapd pages scanned"),
        direct_reclaimed: Some(value("Direct reclaim pages reclaimed")),
        kswapd_reclaimed: Some(value("Kswapd pages reclaimed")),
        direct_writes: writes("Direct"),
        kswapd_writes: writes("Kswapd"),
        stalled_s: value("Time stalled direct reclaim (seconds)"),
        awake_s: value("Time kswapd awake (seconds)"),
        user_system_s: of_test("User/Sys Time Running Test (seconds)"),
        elapsed_s: of_test("Total Elapsed Time (seconds)"),
    }
}

#[test]
fn every_derived_figure() {
    let mut compared = 0;
    for id in TABLES {
        let evaluation = evaluation::get(id).expect("embedded");
        let vmscan = table(&evaluation, "ftrace-vmscan");
        for column in 0..vmscan.columns.len() {
            let derived = Derived::of(&measures(&evaluation, column));
            let rows = [
                ("Total pages scanned", Some(derived.scanned)),
                ("Total pages reclaimed", derived.reclaimed),
                (
                    "%age total pages scanned/reclaimed",
                    derived.reclaimed_percent,
                ),
                ("%age total pages scanned/written", derived.written_percent),
                (
                    "%age file pages scanned/written",
                    derived.file_written_percent,
                ),
                (
                    "Percentage Time Spent Direct Reclaim",
                    derived.stalled_percent,
                ),
                ("Percentage Time kswapd Awake", derived.awake_percent),
            ];
            for (row, computed) in rows {
                let printed = printed(vmscan, row, column);
                let computed = computed.expect("everything is known");
                // The times themselves are printed to two digits.
                let near = (computed - printed.value).abs();
                let slack = if row.starts_with("Percentage Time") {
                    0.06
                } else {
                    0.0
                };
                assert!(
                    near <= printed.ulp() / 2.0 + slack + 1e-9,
                    "{id} {row}: printed {}, computed {computed}",
                    printed.value
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 112);
}

/// The labels are those of the tables.
#[test]
fn names_of_rows() {
    let report = figures(&lines(&[("a-1", 0.0, BEGIN), ("a-1", 1.0, END)]));
    let context = RunContext {
        elapsed_s: Some(10.0),
        user_s: Some(1.0),
        system_s: Some(1.0),
        vmstat: VmstatChange::between(
            "kswapd_steal 0\npgsteal_normal 0",
            "kswapd_steal 5\npgsteal_normal 9",
        )
        .ok(),
    };
    let options = ReclaimOptions::default();
    let known = figures_with(
        &lines(&[
            ("a-1", 0.0, BEGIN),
            (
                "a-1",
                0.1,
                "writepage: page=ffffea0000000000 pfn=4 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
            ),
            (
                "a-1",
                0.2,
                "writeback_congestion_wait: usec_timeout=100000 usec_delayed=4000",
            ),
            (
                "a-1",
                0.3,
                "lru_isolate: isolate_mode=0 order=0 nr_requested=1 nr_scanned=1 nr_taken=1 contig_taken=0 contig_dirty=0 contig_failed=0",
            ),
            ("a-1", 1.0, END),
        ]),
        options,
        context,
    );
    assert!(report.missing().len() > known.missing().len());
    assert_eq!(known.missing(), []);
    let column = ReportColumn {
        name: "a".to_owned(),
        reports: vec![&known],
    };
    let comparison = crate::Comparison::of_traces(&[column]);
    let blocks = [
        ("ftrace-vmscan", TABLES[0], "ftrace-vmscan"),
        ("congestion-wait", TABLES[0], "congestion-wait"),
        (
            "writepage",
            "lumpy-removal-2012-stress-highalloc",
            "writepage",
        ),
    ];
    for (id, evaluation, name) in blocks {
        let evaluation = evaluation::get(evaluation).expect("embedded");
        let expected: Vec<&str> = table(&evaluation, name)
            .rows
            .iter()
            .map(|r| r.name.as_str())
            .collect();
        let block = comparison.blocks.iter().find(|b| b.id == id);
        let rows = &block.expect("there are such events").rows;
        let names: Vec<&str> = rows.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, expected, "{id}");
    }
}
