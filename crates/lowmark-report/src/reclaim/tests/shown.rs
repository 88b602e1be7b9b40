//! What is printed.

use super::*;
use crate::Comparison;
use crate::table::PlainStyle;

fn column<'a>(name: &str, reports: Vec<&'a ReclaimFigures>) -> ReportColumn<'a> {
    ReportColumn {
        name: name.to_owned(),
        reports,
    }
}

fn some(stall_ms: f64) -> String {
    let shrink =
        "lru_shrink_inactive: nid=0 nr_scanned=32 nr_reclaimed=8 priority=12 flags=RECLAIM_WB_ANON";
    lines(&[
        ("kswapd0-9", 0.0, WAKE),
        ("kswapd0-9", 0.5, shrink),
        ("cc1-7", 1.0, BEGIN),
        ("cc1-7", 1.5, shrink),
        ("cc1-7", 1.0 + stall_ms, END),
        ("kswapd0-9", 20.0, SLEEP),
    ])
}

#[test]
fn blocks_side_by_side() {
    let (a, b) = (figures(&some(2.0)), figures(&some(4.0)));
    let text =
        section(&[column("v3.6-a", vec![&a]), column("v3.6-b", vec![&b])]).text(&PlainStyle, None);
    let start = [
        "FTrace Reclaim Statistics: vmscan",
        "                                                v3.6        v3.6",
        "                                                   a           b",
        "Direct reclaims                                    1           1",
        "Direct reclaim pages scanned                      32          32",
        "Direct reclaim pages reclaimed                     8           8",
    ];
    let shown: Vec<&str> = text.lines().take(start.len()).collect();
    assert_eq!(shown, start, "{text}");
    assert!(text.contains("Time stalled direct reclaim (seconds)           0.00        0.00\n"));
    assert!(text.contains("%age total pages scanned/reclaimed            25.00%      25.00%\n"));
    assert!(text.contains("\nTime line: v3.6-b\n"), "{text}");
}

#[test]
fn compared_with_percentages() {
    let (a, b) = (figures(&some(2.0)), figures(&some(4.0)));
    let columns = [column("a", vec![&a]), column("b", vec![&b, &b])];
    let comparison = Comparison::of_traces(&columns);
    let stalls = comparison.blocks.iter().find(|b| b.id == "stalls");
    let p99 = stalls
        .and_then(|s| s.rows.iter().find(|r| r.name == "Direct reclaim p99 (us)"))
        .expect("a row");
    assert_eq!(p99.values, [Some(2000.0), Some(4000.0)]);
    assert_eq!(p99.percents, [Some(0.0), Some(-100.0)]);
    assert_eq!(comparison.columns[1].1, 2);
}

#[test]
fn json_has_its_keys() {
    let json = figures(&some(2.0)).json();
    let keys = [
        "lines",
        "understood",
        "not_understood",
        "lost",
        "span_s",
        "events",
        "totals",
        "stalls",
        "by_order",
        "by_process",
        "by_memcg",
        "timeline",
        "efficiency",
        "corrections",
        "congestion",
        "writepage",
    ];
    for key in keys {
        assert!(!json[key].is_null(), "{key}");
    }
    assert_eq!(json["lines"], 6);
    assert_eq!(json["events"]["mm_vmscan_lru_shrink_inactive"], 2);
    for actor in ["kswapd", "direct", "memcg", "other"] {
        for key in ["scanned", "reclaimed", "written"] {
            assert!(json["totals"][actor][key].is_u64(), "{actor} {key}");
        }
    }
    let stall = &json["stalls"]["direct"];
    for (key, value) in [
        ("count", 1),
        ("sum_us", 2000),
        ("p50_us", 2000),
        ("p99_us", 2000),
        ("max_us", 2000),
    ] {
        assert_eq!(stall[key], value, "{key}");
    }
    assert_eq!(json["stalls"]["memcg"]["count"], 0);
    assert_eq!(json["efficiency"]["overall"], 25.0);
}

#[test]
fn the_axis_of_a_narrow_time_line_has_both_ends_apart() {
    use crate::reclaim::timeline::axis;
    assert_eq!(axis(0, 0.001), "time           0 to 0.001 s");
    assert_eq!(axis(8, 0.001), "time           0 to 0.001 s");
    assert_eq!(axis(9, 0.001), "time           0 0.001 s");
    assert_eq!(axis(12, 0.001), "time           0    0.001 s");
}

#[test]
fn a_time_line() {
    let text = figures(&some(2.0)).timeline(60);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "scanned        ██                     max 32000 pages/s".replace("32000", "32.0k")
    );
    assert!(lines.iter().all(|l| l.chars().count() <= 60), "{text}");
    let awake = lines.iter().find(|l| l.starts_with("kswapd awake"));
    assert!(
        awake.is_some_and(|l| l.contains("████████████████████")),
        "{text}"
    );
    assert!(
        lines
            .last()
            .is_some_and(|l| l.starts_with("time           0")),
        "{text}"
    );
}

#[test]
fn counters_beside_the_trace() {
    let vmstat = VmstatChange::between(
        "pgscan_kswapd 0\npgsteal_kswapd 0\npgscan_direct 0\nallocstall 0\n",
        "pgscan_kswapd 32\npgsteal_kswapd 8\npgscan_direct 40\nallocstall 1\n",
    );
    let context = RunContext {
        vmstat: vmstat.ok(),
        elapsed_s: Some(2.0),
        user_s: None,
        system_s: None,
    };
    let figures = figures_with(&some(2.0), ReclaimOptions::default(), context);
    let direct = figures
        .checks()
        .into_iter()
        .find(|c| c.name == "Direct pages scanned");
    let expected = Check {
        name: "Direct pages scanned",
        trace: 32,
        vmstat: 40,
    };
    assert_eq!(direct, Some(expected));
    let text = section(&[column("a", vec![&figures])]).text(&PlainStyle, None);
    assert!(text.contains("MMTests Statistics: vmstat"), "{text}");
    assert!(
        text.contains("Kswapd velocity                               16.000\n"),
        "{text}"
    );
    assert!(
        text.contains("Percentage Time kswapd Awake                   1.00%\n"),
        "{text}"
    );
    assert!(text.contains("Percentage Time Spent Direct Reclaim: user and system time"));
}
