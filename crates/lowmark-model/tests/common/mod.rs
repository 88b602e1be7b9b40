//! Workloads written as users write them, for tests that look at the model from outside.

use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};
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
#[allow(dead_code)] // Not every test checks invariants.
pub(crate) fn checked(scenario: &Scenario, check_every: u64) -> Recording {
    let options = Options {
        events: false,
        check_every,
    };
    let recording = run(scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}
