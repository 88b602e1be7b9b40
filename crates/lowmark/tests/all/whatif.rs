//! `lowmark whatif` on runs of the model, whose load is known.

use crate::common::Place;

/// What the recording of `small.toml` does not say of its machine.
const WAS: [&str; 6] = [
    "--was",
    "ram=32M",
    "--was",
    "occupied=1M",
    "--was",
    "reserved=1M",
];

/// A place with a recording of `small.toml` in `runs`.
fn recorded(order: &str) -> Place {
    let place = Place::new();
    let set = format!("order={order}");
    place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            &set,
            "--out",
            "runs",
            "--quiet",
        ])
        .good();
    place
}

/// A figure of a row.
fn number(document: &serde_json::Value, row: &str, field: &str) -> u64 {
    let rows = document["rows"].as_array().expect("rows");
    let row = rows.iter().find(|it| it["name"] == row).expect("a row");
    row[field].as_u64().expect("a number")
}

/// The load is found, and without readahead it would have what the workload itself has without it, or what is said has that
/// in its range.
#[test]
fn another_setting_does_what_it_does_to_the_load() {
    let place = recorded("seq");
    let ask = [
        "whatif",
        "runs",
        "--set",
        "page_cluster=0",
        "--quiet",
        "--format",
        "json",
    ];
    let answer = place.lowmark(&[&ask[..], &WAS].concat()).json();
    let pages = answer["reconstructions"][0]["pages"]
        .as_u64()
        .expect("pages");
    assert!((10_240 - 300..10_240 + 300).contains(&pages), "{pages}");
    let truth = place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--set",
            "page_cluster=0",
            "--quiet",
            "--format",
            "json",
        ])
        .json();
    let counters = &truth["runs"][0]["counters"];
    for (row, counter) in [("pgmajfault", "pgmajfault"), ("pswpin", "pswpin")] {
        let truth = counters[counter].as_u64().expect("a counter");
        // Loads of so few pages that fit about as well do not agree on how far it goes.
        let [least, most] = ["least", "most"].map(|end| number(&answer, row, end));
        let inside = least <= truth + truth / 10 && truth - truth / 10 <= most;
        assert!(inside, "{row}: {least} to {most}, and it is {truth}");
    }
}

/// Loads are written as workloads that run on the machine beside them, and come to what was recorded.
#[test]
fn loads_that_fit_are_workloads() {
    let place = recorded("seq");
    let ask = [
        "whatif",
        "runs",
        "--set",
        "page_cluster=1",
        "--quiet",
        "--out",
        "loads",
    ];
    let text = place.lowmark(&[&ask[..], &WAS].concat()).good();
    assert!(text.contains("With page_cluster = 1"), "{text}");
    let run = place
        .lowmark(&["run", "loads/load-1.toml", "--quiet", "--format", "json"])
        .json();
    let before = place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--quiet",
            "--format",
            "json",
        ])
        .json();
    let swapped = |document: &serde_json::Value| {
        let counters = &document["runs"][0]["counters"];
        counters["pswpin"].as_u64().expect("swap-ins")
    };
    let (load, recorded) = (swapped(&run), swapped(&before));
    assert!(
        load.abs_diff(recorded) * 20 <= recorded,
        "{load} for {recorded}"
    );
}

#[test]
fn the_answer_does_not_hang_on_the_number_of_threads() {
    let place = recorded("random");
    let with = |jobs| {
        let ask = [
            "whatif", "runs", "--set", "ram=40M", "--quiet", "--jobs", jobs,
        ];
        place.lowmark(&[&ask[..], &WAS].concat()).good()
    };
    assert_eq!(with("1"), with("3"));
}

/// What is not answered is said in words, with a status of its own, and in JSON.
#[test]
fn refusals_say_why() {
    let place = recorded("random");
    for (ask, word) in [
        (&["--set", "dirty_bytes=16M"][..], "writers"),
        (&["--set", "ram=28M"], "at random"),
        (
            &["--set", "page_cluster=1", "--was", "ram=500M"],
            "no load was found",
        ),
    ] {
        let mut line = vec!["whatif", "runs", "--quiet"];
        line.extend(ask);
        if !ask.contains(&"--was") {
            line.extend(WAS);
        }
        let output = place.lowmark(&line);
        assert_eq!(output.status, 1, "{ask:?}: {output:?}");
        let said: Vec<&str> = output.stdout.split_whitespace().collect();
        assert!(said.join(" ").contains(word), "{ask:?}: {output:?}");
        line.extend(["--format", "json"]);
        let document: serde_json::Value =
            serde_json::from_str(&place.lowmark(&line).stdout).expect("JSON");
        assert!(
            document["refused"]
                .as_str()
                .is_some_and(|it| it.contains(word))
        );
    }
}

#[test]
fn wrong_questions_are_errors() {
    let place = recorded("seq");
    for (line, word) in [
        (&["whatif", "runs"][..], "--set or --kernel"),
        (
            &["whatif", "runs", "--set", "page_clutter=1"],
            "page_cluster",
        ),
        (&["whatif", "runs", "--kernel", "v9.9"], "v9.9"),
        (&["whatif", "nowhere", "--set", "page_cluster=1"], "nowhere"),
        (
            &["whatif", "small.toml", "--set", "page_cluster=1"],
            "recording",
        ),
    ] {
        let output = place.lowmark(line);
        assert_eq!(output.status, 2, "{line:?}: {output:?}");
        assert!(output.stderr.contains(word), "{line:?}: {output:?}");
    }
}
