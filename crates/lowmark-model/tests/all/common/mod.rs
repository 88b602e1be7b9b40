//! Workloads written as users write them, for tests that look at the model from outside.

pub(crate) mod guest;

use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};
use lowmark_spec::machine::WriteErrors;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};

/// The runs that a workload file describes; a bad one is a panic with what the user would read.
pub(crate) fn scenarios(text: String) -> Vec<Scenario> {
    let source = Source {
        name: "test.toml".into(),
        text,
    };
    match parse(&source, &BuiltIn, &Overrides::default()) {
        Ok(scenarios) => scenarios,
        Err(error) => panic!("{}", error.render_plain()),
    }
}

/// A run without events in which all invariants are checked after every `check_every` events.
pub(crate) fn checked(scenario: &Scenario, check_every: u64) -> Recording {
    let options = Options {
        events: false,
        check_every,
    };
    let recording = run(scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// From the beginning of the run on the first device of a machine refuses every fifth write.
pub(crate) fn refuse_writes(scenario: &mut Scenario) {
    scenario.machine.devices[0].write_errors = Some(WriteErrors {
        start: 0,
        size: u64::MAX,
        after: 0,
        every: 5,
        count: u64::MAX,
    });
}

/// A workload with metadata on a small machine ([`small`]).
pub(crate) fn with_metadata(kernel: &str, ram: &str, fields: &str, body: &str) -> Scenario {
    small(&format!("{kernel},model.metadata=on"), ram, fields, body)
}

/// A workload on a small machine with an SSD; `fields` are those of its file system, and `ram` is its memory. The device has
/// written before, so that a flusher waits until pages are old.
pub(crate) fn small(kernel: &str, ram: &str, fields: &str, body: &str) -> Scenario {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "metadata"
[machine]
ram = "{ram}"
cpus = 2
description = "small"
{disk}written_share = 100
[machine.filesystem.data]
device = "sda"
{fields}
[kernel]
use = "{kernel}"
{body}
"#,
        disk = include_str!("small-ssd.toml"),
    );
    scenarios(text).remove(0)
}
