//! Workloads written as users write them, for tests that look at the model from outside.

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
