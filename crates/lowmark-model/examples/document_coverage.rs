//! Prints `docs/coverage.md`: parts of the kernel by era, and which of them the model has.

use lowmark_model::kernel::coverage::{ABSENT, PREFIX, SWITCHED, Subject};
use lowmark_model::kernel::{Coverage, Version};

/// A kernel of each era.
const ERAS: [&str; 9] = [
    "v2.6.37", "v3.2", "v3.10", "v4.4", "v4.19", "v5.10", "v6.1", "v6.12", "v6.18",
];

const ABOUT: &str = "\
# Coverage

What of the kernel the model carries out, by version. `make docs` writes this page from
`crates/lowmark-model/src/kernel/coverage.rs`; `lowmark list coverage v5.10` says the same of one version. Mechanisms, which
are changes that can be switched one by one, are listed by `lowmark list mechanisms`. How what the model has is
simplified is in [modelled.md](modelled.md).
";

/// The page.
pub(crate) fn page() -> String {
    let eras = ERAS.map(|text| Version::known(text).expect("a version of the model"));
    let mut text = ABOUT.to_owned();
    text += "\n## By era\n\n";
    text += "*yes*: the model has it. *no*: the kernel has it and the model does not. *on request*: the model leaves it\n";
    text += &format!(
        "out unless `--kernel VERSION,{PREFIX}NAME=on` asks for it. Empty: the kernel does not have it.\n\n"
    );
    text += &format!("| | {} |\n", ERAS.join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(ERAS.len()));
    for subject in SWITCHED.iter().chain(ABSENT) {
        let fields = eras.map(|version| state(subject, version));
        text += &format!("| `{}` | {} |\n", subject.name, fields.join(" | "));
    }
    let title = "In the model for some versions";
    text += &section(title, SWITCHED);
    text + &section("Absent from the model", ABSENT)
}

/// Whether the model has a part of a version.
fn state(subject: &Subject, version: Version) -> &'static str {
    let possible = subject.possible_since.is_some_and(|since| version >= since);
    match Coverage::of(version).get(subject.name) {
        _ if !subject.is_in(version) => "",
        Some(true) => "yes",
        _ if possible => "on request",
        _ => "no",
    }
}

fn section(title: &str, subjects: &[Subject]) -> String {
    let mut text = format!("\n## {title}\n");
    for subject in subjects {
        text += &format!("\n**`{}`**, kernels {}", subject.name, kernels(subject));
        if let Some(since) = subject.modelled_since {
            text += &format!("; in the model from {since} on");
        }
        if let Some(since) = subject
            .possible_since
            .filter(|v| Some(*v) != subject.modelled_since)
        {
            text += &format!("; on request from {since} on");
        }
        text += &format!(".\n{}\n", subject.doc.trim());
    }
    text
}

/// Which kernels have a part.
fn kernels(subject: &Subject) -> String {
    match subject.until {
        Some(until) => format!("from {} on, before {until}", subject.since),
        None => format!("from {} on", subject.since),
    }
}

#[allow(dead_code, reason = "the test of the page has this file as a module")]
fn main() {
    print!("{}", page());
}
