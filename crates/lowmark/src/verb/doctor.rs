//! `lowmark doctor`: what of this machine guests and runs on it can use, and what is missing.

use crate::cli::{Format, Printing};
use crate::output::{self, Page};
use lowmark_real::doctor::{self, Check, State};
use lowmark_report::table::Role;
use serde::Serialize;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Says what runs on real kernels need, what of it is here, and what to do about the rest
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  lowmark doctor\n\n\
    The first lines are about guests, the last ones about runs on this system (--on host). Exit status 1 if something \
    is missing without which no guest runs. The model needs nothing.")]
pub(crate) struct Args {
    #[command(flatten)]
    printing: Printing,
}

/// The JSON form.
#[derive(Serialize)]
struct Document {
    version: u32,
    checks: Vec<Entry>,
}

/// A check.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    state: &'static str,
    detail: String,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let guests = doctor::guests();
    let missing = guests.iter().any(|check| check.state == State::Missing);
    let checks: Vec<Check> = guests.into_iter().chain(doctor::host()).collect();
    match args.printing.format {
        Format::Json => output::print_json(&Document {
            version: JSON_VERSION,
            checks: checks.iter().map(entry).collect(),
        })?,
        Format::Table => output::print(&text(&checks, &Page::stdout()))?,
    }
    Ok(u8::from(missing))
}

fn word(state: State) -> (&'static str, Role) {
    match state {
        State::Good => ("good", Role::Good),
        State::Lacking => ("lacking", Role::Unknown),
        State::Missing => ("missing", Role::Bad),
    }
}

fn entry(check: &Check) -> Entry {
    Entry {
        name: check.name,
        state: word(check.state).0,
        detail: check.detail.clone(),
    }
}

fn text(checks: &[Check], page: &Page) -> String {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let lines = checks.iter().map(|check| {
        let (word, role) = word(check.state);
        let word = page.style.paint(role, &format!("{word:<7}"));
        format!("{:<width$}  {word}  {}\n", check.name, check.detail)
    });
    lines.collect()
}
