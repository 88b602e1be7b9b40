//! `lowmark run` and `lowmark compare` from outside.

use crate::common;
use crate::common::{Place, tree};
use serde_json::Value;

#[test]
fn run_prints_what_happened() {
    let text = Place::new().lowmark(&["run", "small.toml"]).good();
    for part in [
        "small order=seq on small-512m-ssd, v3.6\nseed 0, ",
        "small order=random on small-512m-ssd, v3.6\nseed 0, ",
        "s: completed\n",
        "Elapsed  s",
        "1st-qrtle again  ms",
        "Swap Outs  ",
        "Kswapd pages scanned  ",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn repeats_have_seeds_and_columns_of_their_own() {
    let place = Place::new();
    let args = [
        "run",
        "small.toml",
        "--set",
        "order=random",
        "--seed",
        "5",
        "--repeat",
        "2",
    ];
    let text = place.lowmark(&args).good();
    assert_eq!(text.matches("small order=random").count(), 1);
    assert!(
        text.contains("\nseed 5, ") && text.contains("\nseed 6, "),
        "{text}"
    );
    let document = place
        .lowmark(&[&args[..], &["--format", "json"]].concat())
        .json();
    let seeds: Vec<&Value> = document["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|r| &r["run"]["seed"])
        .collect();
    assert_eq!(seeds, [5, 6]);
}

#[test]
fn run_as_json_is_what_recordings_are() {
    let place = Place::new();
    let document = place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "size=36M",
            "--format",
            "json",
            "--out",
            "out",
        ])
        .json();
    assert_eq!(document["version"], 1);
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    for (run, order) in runs.iter().zip(["seq", "random"]) {
        assert_eq!(run["run"]["workload"], "small");
        assert_eq!(run["run"]["kernel"], "v3.6");
        assert_eq!(
            run["run"]["params"],
            serde_json::json!([["order", order], ["size", "36M"]])
        );
        assert_eq!(run["outcome"], "completed");
        assert!(run["elapsed_ns"].as_u64() > Some(0));
        assert!(run["counters"]["pswpout"].as_u64() > Some(0));
        assert_eq!(run["series"][0]["name"], "again");
        assert!(
            run["tasks"]
                .as_array()
                .is_some_and(|tasks| tasks.len() >= 2)
        );
        let name =
            format!("out/small_order={order}_size=36M_small-512m-ssd_v3.6_seed0/recording.json");
        let text = std::fs::read_to_string(place.path(&name)).expect("a recording");
        let stored: Value = serde_json::from_str(&text).expect("JSON");
        for (key, value) in run.as_object().expect("an object") {
            assert_eq!(stored[key], *value, "{key}");
        }
    }
}

#[test]
fn built_in_workloads_and_machines() {
    let place = Place::new();
    let args = [
        "run",
        "swap-small",
        "--set",
        "order=seq",
        "--set",
        "ram=64M",
        "--set",
        "size=70M",
    ];
    let text = place.lowmark(&args).good();
    assert!(
        text.starts_with("swap-small order=seq ram=64M size=70M on small-512m-ssd, v3.6\n"),
        "{text}"
    );
    let machine = r#"
lowmark = 1
[machine]
description = "tiny"
ram = "32M"
cpus = 1
[device.sda]
kind = "ssd"
size = "1G"
position_read = "100us"
position_write = "0ns"
command_read = "20us"
command_write = "20us"
rate = "500MB/s"
[[swap]]
device = "sda"
size = "256M"
[sources]
device.sda = "made up"
"#;
    place.write("tiny.toml", machine);
    let text = place
        .lowmark(&["run", "small.toml", "--machine", "tiny.toml"])
        .good();
    assert!(
        text.starts_with("small order=seq on tiny, v3.6\n"),
        "{text}"
    );
}

#[test]
fn same_seed_same_bytes_whatever_the_jobs() {
    let place = Place::new();
    let run = |out: &str, jobs: &str, seed: &str| {
        let args = [
            "run",
            "small.toml",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.14",
            "--events",
            "--out",
            out,
            "--jobs",
            jobs,
            "--seed",
            seed,
        ];
        (place.lowmark(&args).good(), tree(&place.path(out)))
    };
    let first = run("a", "1", "1");
    assert_eq!(first.1.len(), 8);
    assert!(first == run("b", "2", "1"));
    assert!(first == run("c", "4", "1"));
    // Over an older run of the same name.
    assert!(first == run("a", "2", "1"));
    let other = run("d", "2", "2");
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1);
}

#[test]
fn events_are_kept_only_when_asked_for() {
    let place = Place::new();
    let args = ["run", "small.toml", "--set", "order=seq", "--out", "out"];
    let done = place.lowmark(&args);
    assert_eq!(done.stderr, "1 recording written to out\n");
    let directory = place.path("out/small_order=seq_small-512m-ssd_v3.6_seed0");
    assert!(!directory.join("events.jsonl").exists());
    let done = place.lowmark(&[&args[..], &["--events", "--quiet"]].concat());
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    assert!(directory.join("events.jsonl").exists());
}

/// Cumulative patches make names longer than a directory's can be.
#[test]
fn runs_with_long_names_are_kept_apart() {
    let place = Place::new();
    let base = "v6.1+scan-balance-counts-work+one-counter-of-tags+nearly-free-blocks-first\
        +large-folios-in-writes+eevdf+pcp-high-auto-tuning+writers-read-old-counters+pageblocks-by-type";
    let kernels =
        ["swap-clusters-free-first", "reclaim-reads-old-counters"].map(|c| format!("{base}+{c}"));
    let [a, b] = kernels.each_ref().map(String::as_str);
    let args = [
        "compare",
        "small.toml",
        "--set",
        "order=seq",
        "--kernel",
        a,
        "--kernel",
        b,
        "--out",
        "out",
    ];
    place.lowmark(&args).good();
    let directories = std::fs::read_dir(place.path("out")).expect("made");
    let mut kept: Vec<String> = directories
        .map(|entry| {
            let path = entry.expect("readable").path().join("recording.json");
            let text = std::fs::read_to_string(path).expect("a recording");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            recording["run"]["kernel"]
                .as_str()
                .expect("text")
                .to_owned()
        })
        .collect();
    kept.sort();
    // Each is repeated.
    kept.dedup();
    let mut expected = kernels.to_vec();
    expected.sort();
    assert_eq!(kept, expected);
}

#[test]
fn compare_puts_kernels_in_columns() {
    let place = Place::new();
    let args = [
        "compare",
        "small.toml",
        "--kernel",
        "v3.6",
        "--kernel",
        "v3.6,page_cluster=0",
        "--repeat",
        "1",
    ];
    let text = place.lowmark(&args).good();
    assert_eq!(text.matches("on small-512m-ssd order=").count(), 2);
    assert_eq!(text.matches("VM statistics").count(), 2);
    let elapsed = text
        .lines()
        .find(|line| line.starts_with("Elapsed"))
        .expect("a row");
    assert_eq!(elapsed.matches('%').count(), 2, "{elapsed}");
    assert!(elapsed.contains("(   0.00%)"), "{elapsed}");

    let document = place
        .lowmark(&[&args[..], &["--format", "json"]].concat())
        .json();
    assert_eq!(document["version"], 1);
    let comparisons = document["comparisons"].as_array().expect("comparisons");
    assert_eq!(comparisons.len(), 2);
    for comparison in comparisons {
        assert_eq!(comparison["columns"][1]["name"], "v3.6,page_cluster=0");
        assert_eq!(comparison["blocks"][0]["id"], "duration");
        assert_eq!(comparison["blocks"][0]["rows"][2]["name"], "Elapsed");
        assert_eq!(comparison["blocks"][0]["rows"][2]["percents"][0], 0.0);
        assert_eq!(comparison["incomplete"], serde_json::json!([]));
    }
}

#[test]
fn figures_are_asked_for_by_name() {
    let place = Place::new();
    let verb = |verb: &str, more: &[&str]| {
        let common = [verb, "small.toml", "--set", "order=seq", "--repeat", "2"];
        place.lowmark(&[&common[..], more].concat())
    };
    for name in ["run", "compare"] {
        let text = verb(name, &["--metric", "swap-outs", "--metric", "elapsed"]).good();
        assert!(
            text.contains("Swap Outs") && text.contains("Elapsed"),
            "{text}"
        );
        assert!(
            !text.contains("System") && !text.contains("Swap Ins"),
            "{text}"
        );
        for format in ["table", "json"] {
            verb(name, &["--metric", "nix", "--format", format])
                .error(&["--metric: no figure is called nix; the runs have User, System"]);
        }
    }
    // How many rows were tested is not how many are shown.
    let both = ["--kernel", "v3.6", "--kernel", "v3.6,page_cluster=0"];
    let tested = |more: &[&str]| {
        let text = verb("compare", &[&both[..], more].concat()).good();
        let said = text
            .lines()
            .find(|line| line.contains("Holm's correction for"));
        said.map(str::to_owned).expect("said")
    };
    assert_eq!(tested(&["--metric", "elapsed"]), tested(&[]));
}

#[test]
fn recordings_compare_like_the_runs_that_made_them() {
    let place = Place::new();
    let flags = ["--kernel", "v3.6", "--kernel", "v3.14", "--repeat", "2"];
    let runs = |more: &[&str]| {
        let args = [&["compare", "small.toml"], &flags[..], more].concat();
        place.lowmark(&args).good()
    };
    let live = runs(&["--out", "out"]);
    assert!(
        live.contains("v3.6 (mean of 2)") || live.contains("(mean of 2)"),
        "{live}"
    );
    assert_eq!(live, runs(&[]));
    let mut directories = Vec::new();
    for order in ["seq", "random"] {
        for kernel in ["v3.6", "v3.14"] {
            for seed in [0, 1] {
                directories.push(format!(
                    "out/small_order={order}_small-512m-ssd_{kernel}_seed{seed}"
                ));
            }
        }
    }
    let compare =
        |directories: &[&str]| place.lowmark(&[&["compare"], directories].concat()).good();
    let names: Vec<&str> = directories.iter().map(String::as_str).collect();
    assert_eq!(compare(&names), live);
    // The directory above stands for all of them, in the order of their names.
    let whole = compare(&["out"]);
    let (seq, random) = live.split_at(
        live.find("\nsmall on small-512m-ssd order=random")
            .expect("second"),
    );
    assert_eq!(whole, format!("{}\n{}", &random[1..], seq));
    // Where kernels are the same, what differs is compared.
    let text = compare(&[names[0], names[4]]);
    assert!(text.starts_with("small on small-512m-ssd\n"), "{text}");
    assert!(
        text.contains("order=seq") && text.contains("order=random"),
        "{text}"
    );
}

#[test]
fn a_run_that_does_not_complete_is_told_and_counts() {
    let place = Place::new();
    // More than RAM and swap together.
    let swap = place.path("small.toml");
    let text = std::fs::read_to_string(&swap).expect("the workload");
    let text = text.replace(
        "occupied",
        "swap = { device = \"sda\", size = \"1M\" }\noccupied",
    );
    place.write("oom.toml", &text);
    let done = place.lowmark(&["run", "oom.toml"]);
    assert_eq!(done.status, 1, "{done:?}");
    assert!(
        done.stdout
            .contains(", task main: map: mmap failed (ENOMEM): larger than RAM"),
        "{done:?}"
    );
    let always = ["--set", "overcommit_memory=1"];
    let done = place.lowmark(&[&["run", "oom.toml"], &always[..]].concat());
    assert_eq!(done.status, 1, "{done:?}");
    assert!(
        done.stdout
            .contains("s: out of memory: an allocation of order 0 by main failed; "),
        "{done:?}"
    );
    let compare = [
        "compare", "oom.toml", "--kernel", "v3.6", "--kernel", "v3.14",
    ];
    let done = place.lowmark(&[&compare, &always[..]].concat());
    assert_eq!(done.status, 1, "{done:?}");
    assert!(
        done.stdout.contains("v3.14, seed 0: out of memory: "),
        "{done:?}"
    );

    let crossed = r#"
lowmark = 1
[workload]
name = "stuck"
[machine]
use = "small-512m-ssd"
[kernel]
use = "v3.6"
[barrier.x]
[barrier.y]
[task.a]
run = [{ barrier = "x" }, { barrier = "y" }]
[task.b]
run = [{ barrier = "y" }, { barrier = "x" }]
"#;
    place.write("stuck.toml", crossed);
    let done = place.lowmark(&["run", "stuck.toml", "--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(
        (done.status, &document["runs"][0]["outcome"]),
        (1, &"deadlock".into())
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::{Command, Stdio};
    let place = Place::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .args(["list", "all"])
        .current_dir(place.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// What the model's trace adds up to is what it counted, on kernels of every era.
#[test]
fn traces_add_up_to_the_counters() {
    let place = Place::new();
    // Nobody has a batch in hand when the run ends.
    let text = common::SMALL.replacen("[workload]\n", "[workload]\nend = \"kswapd-idle\"\n", 1);
    place.write("idle.toml", &text);
    for kernel in ["v3.2", "v3.14", "v4.8", "v4.12", "v6.1", "v6.18"] {
        let args = [
            "run",
            "idle.toml",
            "--kernel",
            kernel,
            "--out",
            "out",
            "--events",
        ];
        let done = place.lowmark(&args);
        assert!(!done.stderr.contains("adds up"), "{}", done.stderr);
        assert_eq!(done.status, 0, "{}", done.stderr);
    }
}

/// What the model leaves out is named with its line, once, under the heading and in the recording.
#[test]
fn what_is_left_out_is_named() {
    let place = Place::new();
    let text = common::SMALL
        .replace("occupied", "thp = true\noccupied")
        .replace("\"v3.6\"", "\"v3.6,model.shrinkers=off,model.huge_pages=off\"")
        .replace(
            "  { touch = \"m\", access = \"write\" },\n",
            "  { touch = \"m\", access = \"write\" },\n  { repeat = 2, do = [{ drop_caches = 3 }] },\n",
        );
    let line = 1 + text
        .lines()
        .position(|line| line.contains("drop_caches"))
        .expect("a line");
    place.write("left-out.toml", &text);
    let slab = format!("note: line {line}: shrinkers are left out: `drop_caches = 3` shrinks none");
    let thp =
        "note: huge pages are left out: `thp = true` of the machine only raises the watermarks";
    let args = ["left-out.toml", "--set", "order=seq", "--repeat", "2"];
    for verb in ["run", "compare"] {
        let shown = place.lowmark(&[&[verb], &args[..]].concat()).good();
        for note in [slab.as_str(), thp] {
            assert_eq!(shown.matches(note).count(), 1, "{note:?} in {shown}");
        }
    }
    let expected = serde_json::json!([
        { "text": "huge pages are left out: `thp = true` of the machine only raises the watermarks" },
        { "line": line, "text": "shrinkers are left out: `drop_caches = 3` shrinks none" },
    ]);
    let json = ["--format", "json"];
    let run = place.lowmark(&[&["run"], &args[..], &json, &["--events", "--out", "out"]].concat());
    assert_eq!(run.json()["runs"][1]["not_modelled"], expected);
    let compared = place
        .lowmark(&[&["compare"], &args[..], &json].concat())
        .json();
    assert_eq!(compared["comparisons"][0]["not_modelled"], expected);
    let recorded = std::fs::read_dir(place.path("out")).expect("recordings");
    let recorded = recorded.map(|entry| entry.expect("an entry").path());
    let first = recorded.min().expect("a recording");
    let first = first.to_str().expect("text");
    let report = place.lowmark(&["report", first, "--format", "json"]).json();
    assert_eq!(report["not_modelled"], expected);
    let shown = place.lowmark(&["report", first]).good();
    let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("huge pages are left out"), "{shown}");

    // Nothing is said where nothing is left out, and recordings of earlier versions read.
    let plain = place
        .lowmark(&["run", "small.toml", "--format", "json"])
        .json();
    assert!(plain["runs"][0].get("not_modelled").is_none());
}

/// Advice that a version does not take is refused where a map is made, as it is where it is given later.
#[test]
fn advice_of_a_map_is_refused() {
    let place = Place::new();
    let text = common::SMALL.replace("size = \"size\"", "size = \"size\", advice = \"hugepage\"");
    place.write("huge.toml", &text);
    let refused = place.lowmark(&["run", "huge.toml", "--kernel", "v2.6.37"]);
    refused.error(&["advice hugepage` (task main, line 25)", "v2.6.38"]);
}
