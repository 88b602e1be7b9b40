//! Runs of a kernel as an earlier twin keeps them: the model's, told to be those of a guest.

use super::Place;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name under which a twin keeps the first run of the kernel.
pub(crate) const RUN: &str = "small_order=seq_small-512m-ssd_v6.18_guest_seed0_run1";

/// A place with a recording that a guest might have left. What it showed is what the model shows, but for twice the
/// pages written.
pub(crate) fn with_runs() -> Place {
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

/// The file of that recording.
pub(crate) fn path(place: &Place) -> PathBuf {
    place.path("runs").join(RUN).join("recording.json")
}

/// Changes that recording.
pub(crate) fn edit(place: &Place, change: impl FnOnce(&mut Value)) {
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
