//! The declarations of causes as a page of documentation.

use super::cause::{Cause, Knob, Role};
use super::causes::CAUSES;
use super::faults::KNOWN_FAULTS;
use super::wait::Limit;
use std::fmt::Write;

/// The page `docs/causes.md`: every cause with its evidence, arithmetic and knobs.
pub fn documentation() -> String {
    let mut page = String::from(
        "# Causes\n\n\
         What `lowmark why` can answer, made from the declarations in `crates/lowmark-report/src/why/causes/`. The\n\
         *limit* is what made tasks wait, the *demand* what needed the room for which they waited; each is a cut\n\
         through the same time. *By* is what a cause goes by: events are exact, counters have the error that sharing out\n\
         has, a hint is no more than that.\n\n\
         | limit | |\n|---|---|\n",
    );
    for limit in Limit::ALL {
        let _ = writeln!(page, "| `{}` | {} |", limit.name(), limit.label());
    }
    for role in Role::ALL {
        let _ = writeln!(page, "\n## {}", role.label());
        for cause in CAUSES.iter().filter(|cause| cause.role == role) {
            describe(cause, &mut page);
        }
    }
    page +=
        "\n## Known faults\n\n| fault | kernels | what happens | what helps |\n|---|---|---|---|\n";
    for fault in KNOWN_FAULTS {
        let _ = writeln!(
            page,
            "| `{}` | {} to before {} | {} | {} |",
            fault.name, fault.since, fault.until, fault.summary, fault.remedy
        );
    }
    page
}

fn describe(cause: &Cause, page: &mut String) {
    let limits: Vec<&str> = cause.limits.iter().map(|limit| limit.name()).collect();
    let limits = match limits.len() {
        0 => "any".to_owned(),
        _ => limits.join(", "),
    };
    let rows = [
        ("limit", limits),
        ("evidence", cause.needs.to_owned()),
        ("arithmetic", cause.formula.to_owned()),
        ("by", cause.confidence.label().to_owned()),
        ("kernels", cause.kernels.to_owned()),
        ("confused with", cause.confused.to_owned()),
    ];
    let (id, name, summary) = (cause.id, cause.name, cause.summary);
    let _ = write!(
        page,
        "\n### {id}: {name}\n\n{summary}\n\n| | |\n|---|---|\n"
    );
    for (what, text) in rows {
        let _ = writeln!(page, "| {what} | {text} |");
    }
    page.push('\n');
    cause.knobs.iter().for_each(|knob| tell(knob, page));
}

fn tell(knob: &Knob, page: &mut String) {
    let why_not = knob.useless.map(|(_, why)| why);
    let change = match knob.change {
        "" => String::new(),
        change => format!(" {change}"),
    };
    let line = match (knob.expect, why_not) {
        ("", Some(why)) => format!("not {}: {why}", knob.name),
        (expect, Some(why)) => format!("{}{change}: {expect}; not where {why}", knob.name),
        (expect, None) => format!("{}{change}: {expect}", knob.name),
    };
    let _ = writeln!(page, "- {line}");
}
