//! Twins against recordings that were kept: no guest is needed, and what does not fit is said.

use crate::common::kept_runs::{RUN, edit, with_runs};
use crate::common::{Place, SMALL};
use serde_json::json;

/// The arguments of a twin of `small.toml` that takes what was kept in `runs`.
fn twin(more: &[&'static str]) -> Vec<&'static str> {
    let args = [
        "twin",
        "small.toml",
        "--set",
        "order=seq",
        "--kernel",
        "6.18",
        "--kernel-runs",
        "runs",
    ];
    [&args[..], more].concat()
}

#[test]
fn the_model_is_judged_again_without_a_guest() {
    let place = with_runs();
    let twin = place.lowmark(&twin(&["--format", "json"])).json();
    let metrics = twin["metrics"].as_array().expect("metrics");
    let error = |name: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == name);
        metric.expect("it is a metric")["error"].clone()
    };
    assert_eq!(error("pswpout"), json!(-0.5));
    assert_eq!(error("pgscan"), json!(0.0));
}

#[test]
fn recordings_that_are_missing_or_of_something_else_are_named() {
    let place = with_runs();
    place
        .lowmark(&twin(&["--repeat", "2"]))
        .error(&["_run2: no such recording", "--repeat"]);
    place
        .lowmark(&twin(&["--seed", "3"]))
        .error(&["_seed3_run1: no such recording"]);
    place
        .lowmark(&twin(&["--timeout", "9"]))
        .error(&["--timeout"]);
    for (key, value, said) in [
        ("seed", json!(7), "seed 7, expected 0"),
        (
            "machine",
            json!("other"),
            "machine other, expected small-512m-ssd",
        ),
        (
            "params",
            json!([["order", "random"]]),
            "parameters order=random, expected order=seq",
        ),
        ("backend", json!("model"), "backend model, expected guest"),
    ] {
        let place = with_runs();
        edit(&place, |recording| recording["run"][key] = value);
        place.lowmark(&twin(&[])).error(&["recording.json", said]);
    }
    edit(&place, |recording| {
        recording["system"]["release"] = json!("6.12.9-amd64");
    });
    place
        .lowmark(&twin(&[]))
        .error(&["release v6.12, expected v6.18"]);
}

#[test]
fn what_is_said_of_a_twin_is_in_its_json() {
    let place = with_runs();
    let twin = place.lowmark(&twin(&["--format", "json"])).json();
    assert_eq!(twin["release"], "6.18.15+deb13-cloud-amd64");
    assert_eq!((&twin["runs"], &twin["model_runs"]), (&json!(1), &json!(1)));
    assert_eq!(twin["elapsed"]["error"], json!(0.0));
    assert!(twin["elapsed"]["kernel_s"]["median"].as_f64() > Some(0.0));
    assert!(twin["one_sided"].is_array());
}

/// What was kept of a workload among several: in the directory of its name.
fn among_several(place: &Place) {
    std::fs::create_dir_all(place.path("kept/small")).expect("made");
    std::fs::rename(
        place.path("runs").join(RUN),
        place.path("kept/small").join(RUN),
    )
    .expect("moved");
    place.write("kept/small.toml", SMALL);
    // Of this one nothing was kept.
    place.write("other.toml", &SMALL.replace("\"small\"", "\"other\""));
}

#[test]
fn several_workloads_are_judged_together() {
    let place = with_runs();
    among_several(&place);
    let args = [
        "twin",
        "small.toml",
        "other.toml",
        "--kept",
        "kept",
        "--kernel",
        "6.18",
    ];
    let set = ["--set", "order=seq"];
    let text = place.lowmark(&[&args[..], &set].concat()).good();
    for said in [
        "== small ==",
        "no run of the kernel was kept: other order=seq",
        "error by counter",
        "error by class",
        "== Over all loads ==",
        "lowmark twin small.toml --kernel-runs kept/small",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json = ["--format", "json"];
    let all = place.lowmark(&[&args[..], &set, &json].concat()).json();
    let counters = all["distribution"]["by_counter"]
        .as_array()
        .expect("a list");
    let written = counters
        .iter()
        .find(|it| it["of"] == "pswpout")
        .expect("it moved");
    assert_eq!(
        (&written["near"], &written["worst"]),
        (&json!(0), &json!(0.5))
    );
    assert_eq!(
        all["loads"][1]["not_kept"].as_array().map(Vec::len),
        Some(1)
    );
    // A workload that cannot be read does not keep the others from being judged.
    let broken = place.lowmark(&[&args[..2], &["nowhere.toml"], &args[3..], &set].concat());
    assert!(broken.stdout.contains("== small =="), "{broken:?}");
    assert!(
        broken.stderr.contains("nowhere.toml: no such file"),
        "{broken:?}"
    );
    assert_eq!(broken.status, 2);
    // Where nothing was kept at all.
    place
        .lowmark(&["twin", "other.toml", "--kept", "kept", "--kernel", "6.18"])
        .error(&["kept: no run of a kernel was kept there"]);
}

#[test]
fn what_random_loads_kept_is_found_by_its_directory() {
    let place = with_runs();
    among_several(&place);
    // The workload has two orders, of which one was kept.
    let args = ["twin", "--kept", "kept", "--kernel", "6.18"];
    let text = place.lowmark(&args).good();
    for said in [
        "== Loads ==",
        "no run of the kernel was kept: small order=random",
        "pswpout",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    place
        .lowmark(&["twin", "--kept", "runs"])
        .error(&["--kept runs: there is no .toml file"]);
    place
        .lowmark(&["twin", "--kept", "nowhere"])
        .error(&["--kept nowhere: cannot read the directory"]);
    place
        .lowmark(&["twin", "small.toml", "other.toml", "--kernel-runs", "runs"])
        .error(&["its recordings are of one workload, found 2"]);
    place.lowmark(&["twin", "--random", "2"]).error(&["--seed"]);
    place
        .lowmark(&["twin", "small.toml", "--random", "2", "--seed", "1"])
        .error(&["--random"]);
}

#[test]
fn what_was_kept_before_names_had_hashes_is_found() {
    let place = with_runs();
    edit(&place, |recording| {
        recording["run"]["params"] = json!([["order", "zipf(0.5)"]]);
    });
    let name = "small_order=zipf-0.5-_small-512m-ssd_v6.18_guest_seed0_run1";
    std::fs::rename(place.path("runs").join(RUN), place.path("runs").join(name)).expect("renamed");
    let set = ["--set", "order=zipf(0.5)", "--kernel", "6.18"];
    place
        .lowmark(&[&["twin", "small.toml", "--kernel-runs", "runs"], &set[..]].concat())
        .good();
    // What it says of itself has to be what is asked for.
    std::fs::rename(
        place.path("runs").join(name),
        place
            .path("runs")
            .join("small_order=zipf-0-5-_small-512m-ssd_v6.18_guest_seed0_run1"),
    )
    .expect("renamed");
    place
        .lowmark(&[&["twin", "small.toml", "--kernel-runs", "runs"], &set[..]].concat())
        .error(&["no such recording of a run of the kernel"]);
}
