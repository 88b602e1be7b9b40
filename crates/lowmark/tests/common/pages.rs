//! A page of every verb that writes some, with the text that the same run prints.

use super::kept_runs::with_runs;
use super::{Done, Place};
use std::path::Path;

/// A page with its text.
pub(crate) struct Made {
    /// Its verb, and what is special about it.
    pub(crate) name: &'static str,
    /// What was printed.
    pub(crate) text: String,
    /// The page.
    pub(crate) html: String,
}

/// What pages are made of, each as `lowmark` is called; captures are those of the project.
const CALLS: [(&str, &[&str]); 12] = [
    (
        "why",
        &["why", "@vm-6.18-swap-rand-520m-classic.trace.txt.xz"],
    ),
    (
        "why-dirty",
        &["why", "@host-writers-4x100m-db16m.trace.txt.xz"],
    ),
    (
        "why-counters",
        &["why", "--vmstat", "@vm-6.18-thp-defer-frag380m.vmstat.txt"],
    ),
    (
        "report",
        &["report", "@vm-6.12-simoop-3r-2a-mglru.trace.txt.xz"],
    ),
    (
        "report-several",
        &[
            "report",
            "@host-writers-4x100m-db16m.trace.txt.xz",
            "@vm-6.18-thp-defer-frag380m.trace.txt.xz",
        ],
    ),
    ("run", &["run", "small.toml", "--repeat", "2"]),
    (
        "compare",
        &[
            "compare",
            "swap-small",
            "--set",
            "order=random",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.14",
        ],
    ),
    (
        "compare-traces",
        &[
            "compare",
            "@vm-6.18-thp-defer-frag380m.trace.txt.xz",
            "@vm-7.2-thp-always-frag380m.trace.txt.xz",
        ],
    ),
    (
        "sweep",
        &[
            "compare",
            "swap-small",
            "--set",
            "order=random",
            "--set",
            "page_cluster=0..5",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.14",
            "--repeat",
            "5",
        ],
    ),
    (
        "sweep-run",
        &[
            "run",
            "small.toml",
            "--set",
            "page_cluster=0..3",
            "--repeat",
            "2",
            "--metric",
            "Elapsed",
        ],
    ),
    (
        "bisect",
        &[
            "bisect",
            "swap-small",
            "--from",
            "v3.6",
            "--to",
            "v3.14",
            "--set",
            "order=random",
            "--metric",
            "Elapsed",
            "--metric",
            "pswpin",
        ],
    ),
    ("reproduce", &["reproduce", "swap-readahead-shaohua-2014"]),
];

/// All pages.
pub(crate) fn all() -> Vec<Made> {
    let place = Place::new();
    let mut pages: Vec<Made> = CALLS
        .iter()
        .map(|(name, call)| made(&place, name, call))
        .collect();
    let place = with_runs();
    let twin = [
        "twin",
        "small.toml",
        "--set",
        "order=seq",
        "--kernel",
        "6.18",
        "--kernel-runs",
        "runs",
    ];
    pages.push(made(&place, "twin", &twin));
    let random = [
        "run",
        "small.toml",
        "--kernel",
        "v6.18",
        "--events",
        "--out",
        "runs",
        "--set",
        "order=random",
    ];
    let place = Place::new();
    let done = place.lowmark(&random);
    assert_eq!(done.status, 0, "{}", done.stderr);
    pages.push(made(&place, "report-recording", &["report", "runs"]));
    pages
}

/// What a call prints and writes.
pub(crate) fn made(place: &Place, name: &'static str, call: &[&str]) -> Made {
    // Pages name what they are of, and are to name no place of this machine.
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let capture = |argument: &&str| match argument.strip_prefix('@') {
        Some(name) => {
            std::fs::copy(captures.join(name), place.path(name)).expect("a capture");
            name.to_owned()
        }
        None => (*argument).to_owned(),
    };
    let mut call: Vec<String> = call.iter().map(capture).collect();
    let file = format!("{name}.html");
    call.extend(["--html".to_owned(), file.clone()]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let Done {
        status,
        stdout,
        stderr,
    } = place.lowmark(&call);
    assert!(status < 2, "{name}: {stderr}");
    let html = std::fs::read_to_string(place.path(&file)).expect("the page");
    Made {
        name,
        text: stdout,
        html,
    }
}
