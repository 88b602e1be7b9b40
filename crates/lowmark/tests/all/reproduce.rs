//! `lowmark reproduce` with the smallest evaluation that there is.

use crate::common::Place;
use serde_json::Value;

#[test]
fn an_evaluation_is_run_and_judged() {
    let place = Place::new();
    let name = "swap-readahead-shaohua-2014";
    let done = place.lowmark(&["reproduce", name, "--format", "json", "--out", "out"]);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(done.stderr, "6 recordings written to out\n");
    assert_eq!(document["evaluation"], name);
    assert_eq!(document["variant"], "default");
    let cells = document["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    assert!(
        cells.iter().all(|cell| cell["model"].as_f64() > Some(0.0)),
        "{cells:?}"
    );
    let claims = document["claims"].as_array().expect("claims");
    assert_eq!(claims.len(), 3);
    assert!(
        claims
            .iter()
            .all(|claim| claim["verdict"] != "not-modelled")
    );
    // Not every claim needs to hold for this test, but the status must say whether they do.
    let kept = claims
        .iter()
        .all(|claim| claim["published_holds"] == false || claim["holds"] == true);
    assert_eq!(done.status, i32::from(!kept));
    assert_eq!(document["summary"]["exit_status"], done.status);
    // The recordings are those of the cells.
    let recorded = place
        .lowmark(&["compare", "out", "--format", "json"])
        .json();
    let columns = &recorded["comparisons"][0]["columns"];
    assert_eq!(columns.as_array().map(Vec::len), Some(3));
    let directory = "kind=anon-private_order=seq_touches=5000000_desktop-900m-ssd_v3.13_seed0";
    assert!(
        place
            .path(&format!("out/swap-seq-rand_{directory}"))
            .is_dir()
    );
}
