//! Every byte written is at the end on its device, dirty in memory, given up with its file, or counted as lost: for
//! each built-in workload that writes files and can be made small, on a kernel of each era, with all invariants
//! checked after every event; and again with a device that fails.

use lowmark_model::{Options, run};
use lowmark_record::Outcome;
use lowmark_spec::machine::WriteErrors;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::path::Path;

/// One of each era: throttling by writing, bounded, IO-less, with think time; rules for errors; groups; folios.
const KERNELS: [&str; 7] = ["v2.6.37", "v3.1", "v3.2", "v3.4", "v4.13", "v6.1", "v6.18"];

/// A workload, how it is made small, how much slower its disks are, so that there are fewer events in its time, and
/// kernels that it is run on.
type Writer = (
    &'static str,
    &'static [(&'static str, &'static str)],
    u64,
    &'static [&'static str],
);

/// Those that write files.
const WRITERS: [Writer; 4] = [
    ("dd-n", &[("n", "4"), ("length", "1s")], 10, &KERNELS),
    ("dd-rsync", &[("n", "3"), ("length", "1s")], 10, &KERNELS),
    (
        "fs-mark",
        &[("file", "200K"), ("rounds", "1"), ("each", "1")],
        10,
        &KERNELS,
    ),
    (
        "dd-kill",
        &[("n", "2"), ("times", "1"), ("length", "23200ms")],
        200,
        &["v2.6.37", "v3.2"],
    ),
];

/// Those that write none, those that the model refuses, and three (postmark, simoop, stutter) with mappings of 128 MB
/// and more whatever memory there is, which take too long between checks.
const OTHERS: [&str; 9] = [
    "mapped-file-stream",
    "postmark",
    "simoop",
    "stress-highalloc",
    "stutter",
    "swap-seq-rand",
    "swap-small",
    "thpscale",
    "usemem",
];

fn source(name: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../workloads/{name}.toml"));
    Source {
        name: format!("{name}.toml"),
        text: std::fs::read_to_string(path).expect("a workload"),
    }
}

/// The workload on 12 MB with disks that are as large as they are.
fn small(name: &str, kernel: &str, set: &[(&str, &str)]) -> Scenario {
    let machine = [("ram", "12M"), ("reserved", "0B"), ("occupied", "1M")];
    let set = set.iter().chain(&machine);
    let overrides = Overrides {
        kernels: vec![kernel.to_owned()],
        set: set
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        ..Overrides::default()
    };
    match parse(&source(name), &BuiltIn, &overrides) {
        Ok(mut scenarios) => scenarios.remove(0),
        Err(error) => panic!("{name}: {}", error.render_plain()),
    }
}

#[test]
fn every_built_in_workload_is_in_one_of_the_lists() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let entries = std::fs::read_dir(directory).expect("the workloads");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut found: Vec<String> = files
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    found.sort();
    let writers = WRITERS.iter().map(|&(name, ..)| name);
    let mut listed: Vec<&str> = writers.chain(OTHERS).collect();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

fn nothing_is_lost(errors: Option<WriteErrors>) {
    for (name, set, slower, kernels) in WRITERS {
        for kernel in kernels {
            let mut scenario = small(name, kernel, set);
            for area in &mut scenario.machine.swap {
                area.size = 32 << 20;
            }
            for device in &mut scenario.machine.devices {
                device.write_errors = errors;
                device.page_write_ns *= slower;
            }
            let options = Options {
                events: false,
                check: true,
            };
            let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
            assert_eq!(recording.outcome, Outcome::Completed, "{name} on {kernel}");
            let counter = |name: &str| recording.counters.get(name).copied().unwrap_or(0);
            assert!(
                counter("nr_written") > 0,
                "{name} on {kernel} writes nothing"
            );
            let lost = counter("pages_lost") > 0;
            assert_eq!(lost, errors.is_some(), "{name} on {kernel}");
        }
    }
}

#[test]
fn nothing_is_lost_on_devices_that_are_well() {
    nothing_is_lost(None);
}

/// After the first quarter of a megabyte every third write fails.
#[test]
fn what_devices_do_not_take_is_counted() {
    nothing_is_lost(Some(WriteErrors {
        start: 0,
        size: u64::MAX,
        after: 256 << 10,
        every: 3,
        count: u64::MAX,
    }));
}
