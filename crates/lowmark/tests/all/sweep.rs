//! Sweeps: a parameter, a setting or a field of the machine as the axis of a table.

use crate::common::Place;
use serde_json::Value;

/// Lines of CSV as cells; none of these tests has a quoted one.
fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

/// Each value of a swept setting gives what a run with this value alone gives.
#[test]
fn every_value_is_a_run_of_its_own() {
    let place = Place::new();
    let common = ["run", "small.toml", "--set", "order=random", "--quiet"];
    let with = |more: &[&str]| place.lowmark(&[&common, more].concat());
    let swept = with(&["--set", "page_cluster=0..4/2", "--format", "csv"]).good();
    let swept = cells(&swept);
    let at = swept[0].iter().position(|name| *name == "Swap Ins");
    let at = at.expect("a figure");
    let mut found = Vec::new();
    for (row, value) in swept[1..].iter().zip(["0", "2", "4"]) {
        assert_eq!(row[0], value);
        let setting = format!("page_cluster={value}");
        let alone = with(&["--set", &setting, "--format", "json"]).json();
        let expected = alone["runs"][0]["counters"]["pswpin"].as_u64();
        assert_eq!(row[at].parse().ok(), expected, "page_cluster {value}");
        found.push(expected);
    }
    assert_eq!(swept.len(), 4);
    assert!(found[0] < found[1] && found[1] < found[2], "{found:?}");
}

#[test]
fn axes_are_what_is_set_and_what_the_workload_varies() {
    let place = Place::new();
    let text = place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "ram=[32M,48M]",
            "--metric",
            "swap-outs",
            "--format",
            "markdown",
            "--quiet",
        ])
        .good();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "| ram | order | Swap Outs (pages) |");
    let axes: Vec<&str> = lines[2..]
        .iter()
        .map(|line| &line[..line.len().min(14)])
        .collect();
    assert_eq!(
        axes,
        [
            "| 32M | seq | ",
            "| 32M | random",
            "| 48M | seq | ",
            "| 48M | random"
        ]
    );
    // All of it fits into 48 MB.
    assert!(
        lines[4].ends_with("| 0 |") && !lines[2].ends_with("| 0 |"),
        "{text}"
    );
}

#[test]
fn kernels_are_columns_of_a_comparison() {
    let place = Place::new();
    let compare = |format: &str| {
        place.lowmark(&[
            "compare",
            "small.toml",
            "--set",
            "order=random",
            "--set",
            "page_cluster=[0,3]",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.6+swapin_readahead=hugh-new",
            "--metric",
            "swap-ins",
            "--format",
            format,
            "--quiet",
        ])
    };
    let document = compare("json").json();
    assert_eq!(
        document["sweep"]["axes"],
        serde_json::json!(["page_cluster"])
    );
    let points = document["sweep"]["points"].as_array().expect("points");
    let percent = |point: &Value| {
        let blocks = point["blocks"].as_array().expect("blocks").iter();
        let mut rows = blocks.flat_map(|block| block["rows"].as_array().expect("rows"));
        let row = rows.find(|row| row["name"] == "Swap Ins").expect("a row");
        row["percents"][1].as_f64().expect("a number")
    };
    // Without readahead there is hardly a difference between two kinds of it.
    assert!(percent(&points[0]).abs() < 5.0, "{document}");
    assert!(percent(&points[1]) > 50.0, "{document}");
    let table = compare("table").good();
    let head = "small order=random on small-512m-ssd\neach figure the mean of 10 runs, with the seeds 0 to 9\n\n";
    assert!(
        table.starts_with(&format!("{head}Swap Ins (pages)\npage_cluster ")),
        "{table}"
    );
    let alone = [
        "run",
        "small.toml",
        "--set",
        "order=seq",
        "--set",
        "ram=[32M,48M]",
    ];
    let table = place.lowmark(&alone).good();
    let head = "small order=seq on small-512m-ssd, v3.6\nseed 0\n\nram ";
    assert!(
        table.starts_with(head) && table.contains("Elapsed (s)"),
        "{table}"
    );
    assert!(!table.contains("efficiency (%)"), "{table}");
    assert_eq!(document["comparisons"].as_array().map(Vec::len), Some(2));
}

/// Settings and variants of a kernel are swept by the same ranges and lists.
#[test]
fn values_of_a_kernel_are_swept() {
    let place = Place::new();
    let text = place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--kernel",
            "v3.6+swapin_readahead=[vanilla,hugh-new],page_cluster=1..2",
            "--metric",
            "elapsed",
            "--quiet",
        ])
        .good();
    for kernel in [
        "vanilla,page_cluster=1",
        "vanilla,page_cluster=2",
        "hugh-new,page_cluster=2",
    ] {
        let name = format!("v3.6+swapin_readahead={kernel} ");
        assert!(text.contains(&name), "{text}");
    }
    assert_eq!(text.lines().count(), 8, "{text}");
}

#[test]
fn bad_ranges_are_refused_with_their_place() {
    let place = Place::new();
    for (flags, said) in [
        (
            ["--set", "page_cluster=5..0"],
            "--set:1:17: page_cluster: expected an end above",
        ),
        (
            ["--set", "page_cluster=0..x"],
            "--set:1:17: page_cluster: expected a number",
        ),
        (
            ["--set", "ram=[1M,,2M]"],
            "--set:1:5: ram: expected a value between the commas",
        ),
        (
            ["--kernel", "v3.6,swappiness=0..9/0"],
            "--kernel:1:22: kernel.use: expected a step",
        ),
        (
            ["--set", "page_cluster=0..9"],
            "page_cluster = 6: expected a number from 0 to 5",
        ),
    ] {
        let done = place.lowmark(&["run", "small.toml", flags[0], flags[1]]);
        assert_eq!(done.status, 2, "{flags:?}");
        assert!(done.stderr.contains(said), "{flags:?}: {}", done.stderr);
    }
    let done = place.lowmark(&[
        "run",
        "small.toml",
        "--set",
        "page_cluster=0..1",
        "--metric",
        "x",
    ]);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr
            .contains("no figure is called x; the runs have User"),
        "{}",
        done.stderr
    );
}

#[cfg(feature = "parquet")]
#[test]
fn a_row_for_each_run_is_written() {
    let place = Place::new();
    place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "page_cluster=0..2",
            "--repeat",
            "2",
            "--quiet",
            "--runs",
            "runs.parquet",
        ])
        .good();
    let bytes = std::fs::read(place.path("runs.parquet")).expect("written");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    for name in ["page_cluster", "seed", "Swap Outs", "kernel", "verdict"] {
        assert!(
            bytes
                .windows(name.len())
                .any(|part| part == name.as_bytes()),
            "{name}"
        );
    }
    let nowhere = place.lowmark(&["run", "small.toml", "--runs", "no/runs.parquet"]);
    assert_eq!(nowhere.status, 2);
    assert!(
        nowhere.stderr.contains("no/runs.parquet: cannot create"),
        "{}",
        nowhere.stderr
    );
}
