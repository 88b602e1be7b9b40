//! Twins against recordings that were kept: no guest is needed, and what does not fit is said.

mod common;

use common::Place;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name under which a twin keeps the first run of the kernel.
const RUN: &str = "small_order=seq_small-512m-ssd_v6.18_guest_seed0_run1";

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

/// A place with a recording that a guest might have left. What it showed is what the model shows, but for twice the
/// pages written.
fn with_runs() -> Place {
    let place = Place::new();
    let run = ["run", "small.toml", "--set", "order=seq", "--kernel"];
    place
        .lowmark(&[&run[..], &["v6.18", "--out", "model"]].concat())
        .good();
    std::fs::create_dir(place.path("runs")).expect("made");
    std::fs::rename(
        place.path("model/small_order=seq_small-512m-ssd_v6.18_seed0"),
        place.path("runs").join(RUN),
    )
    .expect("the recording");
    edit(&place, |recording| {
        recording["run"]["backend"] = json!("guest");
        recording["system"] = json!({
            "release": "6.18.15+deb13-cloud-amd64", "executed_by": "tcg", "lost_events": null, "notes": [],
            "before": {}, "after": {}, "vmstat": { "names": [], "samples": [] },
        });
        let written = recording["counters"]["pswpout"]
            .as_u64()
            .expect("a counter");
        assert!(written > 0);
        recording["counters"]["pswpout"] = json!(2 * written);
    });
    place
}

fn path(place: &Place) -> PathBuf {
    place.path("runs").join(RUN).join("recording.json")
}

fn edit(place: &Place, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(path(place)).expect("a recording");
    let mut recording = serde_json::from_str(&text).expect("JSON");
    change(&mut recording);
    let mut text = serde_json::to_string_pretty(&recording).expect("JSON");
    // `format` stands first, by which a recording is known.
    let format = "\"format\": \"lowmark-recording\",";
    text = text
        .replacen(format, "", 1)
        .replacen('{', &format!("{{{format}"), 1);
    std::fs::write(path(place), text).expect("written");
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
