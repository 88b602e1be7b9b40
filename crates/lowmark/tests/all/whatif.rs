//! `lowmark whatif` on runs of the model, whose load is known.

use crate::common::{Place, SMALL};
use lowmark_real::host::{Around, inside};
use lowmark_record::{Recording, System};
use lowmark_spec::{BuiltIn, Overrides, Source, parse};

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

/// Without a question all settings are asked about that users turn; each has the answer that it has by itself.
#[test]
fn settings_side_by_side_have_the_answers_of_each() {
    let place = recorded("seq");
    let ask = ["whatif", "runs", "--quiet", "--format", "json"];
    let all = place.lowmark(&[&ask[..], &WAS].concat()).json();
    let questions = all["questions"].as_array().expect("questions");
    let texts: Vec<&str> = questions
        .iter()
        .map(|it| it["question"].as_str().expect("a text"))
        .collect();
    assert_eq!(
        texts,
        [
            "ram = 36M",
            "ram = 40M",
            "ram = 48M",
            "page_cluster = 0",
            "page_cluster = 5",
        ]
    );
    for question in &questions[1..] {
        let set = question["question"]
            .as_str()
            .expect("a text")
            .replace(' ', "");
        let one = [&ask[..], &["--set", &set], &WAS].concat();
        let one = place.lowmark(&one).json();
        assert_eq!(question["rows"], one["rows"], "{set}");
        assert_eq!(all["reconstructions"], one["reconstructions"]);
    }
    let text = place
        .lowmark(&[&["whatif", "runs", "--quiet"], &WAS[..]].concat())
        .good();
    let sentence = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let halves = "ram = 40M halves the number of pages swapped in.";
    assert!(sentence.contains(halves), "{text}");
    for name in ["as it was", "ram = 36M", "page_cluster = 0"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
}

/// A recording of the model says with which settings it was made: what was so already is not asked about.
#[test]
fn settings_that_were_so_are_not_asked_about() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--quiet", "--out", "runs"];
    let set = ["--set", "order=seq", "--set", "page_cluster=0"];
    place.lowmark(&[&run[..], &set].concat()).good();
    let text = place
        .lowmark(&[&["whatif", "runs", "--quiet"], &WAS[..]].concat())
        .good();
    assert!(
        text.contains("page_cluster = 5") && !text.contains("page_cluster = 0"),
        "{text}"
    );
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
        (
            &["whatif", "runs", "--set", "page_clutter=1"][..],
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

/// A recording as one of a run on a system in a memory cgroup would be: a load of the model inside a cgroup that may have so much.
fn in_a_group(place: &Place, name: &str, megabytes: u64) -> Recording {
    let text = SMALL
        .replace("order = [\"seq\", \"random\"]", "order = [\"seq\"]")
        .replace("use = \"v3.6\"", "use = \"v6.18\"")
        .replace("ram = \"32M\"", "ram = \"1G\"");
    let source = Source {
        name: "small.toml".into(),
        text,
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default()).expect("a workload");
    let around = Around {
        version: 2,
        memory: megabytes << 20,
        swap: 1 << 30,
    };
    let scenario = inside(&scenarios[0], around);
    let options = lowmark_model::Options::default();
    let mut recording = lowmark_model::run(&scenario, &options, &mut |_| {}).expect("it runs");
    recording.run.backend = "host".into();
    let limit = |file: &str, bytes: u64| {
        let path = format!("sys/fs/cgroup/lowmark-7/{file}");
        (path, format!("{bytes}\n"))
    };
    recording.system = Some(Box::new(System {
        release: "6.18.0".into(),
        executed_by: "host".into(),
        after: [
            limit("memory.max", around.memory),
            limit("memory.swap.max", around.swap),
        ]
        .into(),
        ..System::default()
    }));
    recording.write(&place.path(name)).expect("written");
    recording
}

/// What another limit of a cgroup would have done is what it does.
#[test]
fn another_limit_of_a_memory_cgroup_does_what_it_does_to_the_load() {
    let place = Place::new();
    in_a_group(&place, "runs", 32);
    let truth = in_a_group(&place, "truth", 37);
    let ask = |limit: &str| {
        let question = ["--set", limit, "--quiet", "--format", "json"];
        place.lowmark(&[&["whatif", "runs"], &question[..]].concat())
    };
    let answer = ask("memory.max=37M").json();
    for (row, name) in [("pswpin", "pswpin"), ("pgsteal", "pgsteal_anon")] {
        let (low, high) = (number(&answer, row, "least"), number(&answer, row, "most"));
        let truth = truth.counters[name];
        let near = low * 2 / 3..=high * 3 / 2 + 100;
        assert!(
            near.contains(&truth),
            "{row}: {truth}, answered {low} to {high}"
        );
        assert!(number(&answer, row, "was") > truth, "less of everything");
    }
    // All of it fits.
    assert_eq!(number(&ask("memory.max=64M").json(), "pswpin", "most"), 0);
    ask("memory.max=much").error(&["memory.max: expected a size, found much"]);
    let elsewhere = recorded("seq");
    elsewhere
        .lowmark(&["whatif", "runs", "--set", "memory.max=1G"])
        .error(&["is not of a load in one memory cgroup", "--on host"]);
}

#[test]
fn a_load_with_cgroups_of_its_own_is_refused() {
    let place = Place::new();
    let mut recording = in_a_group(&place, "first", 32);
    recording
        .counters
        .insert("cgroup/box/memory.events.max".into(), 1);
    recording.write(&place.path("runs")).expect("written");
    let done = place.lowmark(&["whatif", "runs", "--set", "page_cluster=0"]);
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert!(
        done.stdout.contains("cgroups of its own"),
        "{}",
        done.stdout
    );
}
