//! Judges `why` by loads with known causes: `judge_why EXPECTED.toml RUNS` prints `docs/why.md`.
//!
//! 1. `RUNS` has a directory for each load, with the recordings of guests in it; `workloads/why/expected.toml` says what has
//!    to be named.
//! 2. Of each recording is asked: is the limit right, is the demand, are all causes named, and is a demand or a limit named for
//!    more than a tenth of the time that was not put in.
//! 3. Recordings in view of which rules were mended are counted apart from those that nobody had looked at.
//!
//! Exit status: 0 if all is as good as is asked for, 1 if not, 2 if something cannot be read.

use lowmark_record::Recording;
use lowmark_report::why::{Answer, Role, Surroundings, WhyOptions, WhyReport};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was put into a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Injected {
    One,
    Mixture,
    Nothing,
}

/// Ids of which one has to be named, or lists of them of which each has to give one.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Demands {
    One(Vec<String>),
    Each(Vec<Vec<String>>),
}

impl Demands {
    fn lists(&self) -> Vec<&[String]> {
        match self {
            Demands::One(ids) => vec![ids],
            Demands::Each(lists) => lists.iter().map(Vec::as_slice).collect(),
        }
    }
}

/// A load, and what has to be said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    workload: String,
    injected: Injected,
    #[serde(default)]
    cases: Vec<u8>,
    #[serde(default)]
    limit: Vec<String>,
    demand: Option<Demands>,
    #[serde(default)]
    along: Vec<String>,
    #[serde(default)]
    named: Vec<String>,
    #[serde(default)]
    seen: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    load: Vec<Load>,
}

/// What is asked for, in the order of the table: what, and at least how many hundredths.
const ASKED: [(&str, usize); 7] = [
    ("the limit is right", 95),
    ("the demand that comes first is right", 85),
    ("of a mixture both are among the first two", 80),
    ("no demand and no limit is named that was not put in", 95),
    ("every other cause that was put in is named", 85),
    ("nothing wrong is named as such", 100),
    ("the account is pressure to a tenth, with one waiter", 100),
];

/// How a recording was answered: for each of [`ASKED`] whether it is right, if it was asked of this one.
struct Judged<'a> {
    load: &'a Load,
    kernel: String,
    answers: [Option<bool>; ASKED.len()],
    said: String,
}

impl Judged<'_> {
    fn is_seen(&self) -> bool {
        self.load.seen.contains(&self.kernel)
    }
}

/// The answer to a recording.
fn answer(directory: &Path) -> Result<(Recording, Answer), Box<dyn Error>> {
    let mut report = WhyReport::new(WhyOptions::default());
    let (recording, source) = Recording::stream(directory, &mut report)?;
    let surroundings = Surroundings::of_recording(&recording);
    let answer = report.finish(&source.tables, &source.account, &surroundings);
    Ok((recording, answer))
}

/// Ids of demands and limits that are named for more than a tenth of the time and were not put in.
fn false_causes(load: &Load, answer: &Answer) -> Vec<&'static str> {
    let demands = load.demand.iter().flat_map(Demands::lists).flatten();
    let known: BTreeSet<&str> = demands
        .chain(&load.along)
        .chain(&load.named)
        .map(String::as_str)
        .collect();
    let total = answer.account.total_ns();
    let rows = answer.account.rows.iter();
    let rows = rows.filter(|row| matches!(row.cause.role, Role::Demand | Role::Limit));
    let long = rows.filter(|row| row.finding.total_ns().saturating_mul(10) > total);
    let ids = long.map(|row| row.cause.id);
    ids.filter(|id| !known.contains(id)).collect()
}

fn judge<'a>(load: &'a Load, recording: &Recording, answer: &Answer) -> Judged<'a> {
    let account = &answer.account;
    let ids = |role: Role| account.of_role(role).map(|row| row.cause.id);
    let first: Vec<&str> = ids(Role::Demand).take(2).collect();
    let limit = answer.limit().map_or("none", |limit| limit.name());
    let all: BTreeSet<&str> = account.rows.iter().map(|row| row.cause.id).collect();
    let has = |ids: &[String], id: &str| ids.iter().any(|known| known == id);
    let wrong = false_causes(load, answer);
    let is = |injected: Injected| load.injected == injected;
    let demands = load.demand.as_ref().map(Demands::lists);
    let top = demands.as_ref().filter(|_| is(Injected::One));
    let both = demands.as_ref().filter(|_| is(Injected::Mixture));
    let nothing = !answer.found || account.total_ns() == 0 && all.contains("X1");
    let answers = [
        (!load.limit.is_empty()).then(|| has(&load.limit, limit)),
        top.map(|lists| first.first().is_some_and(|id| has(lists[0], id))),
        both.map(|lists| {
            let one_of = |ids: &&[String]| first.iter().any(|id| has(ids, id));
            lists.iter().all(one_of)
        }),
        Some(wrong.is_empty()),
        (!load.named.is_empty()).then(|| load.named.iter().all(|id| all.contains(id.as_str()))),
        is(Injected::Nothing).then_some(nothing),
        adds_up(answer),
    ];
    let mut said = format!("{limit}: {}", first.join(", "));
    if !wrong.is_empty() {
        let _ = write!(said, "; not put in: {}", wrong.join(", "));
    }
    let missing = load.named.iter().filter(|id| !all.contains(id.as_str()));
    for id in missing {
        let _ = write!(said, "; {id} is not named");
    }
    Judged {
        load,
        kernel: recording.run.kernel.trim_start_matches('v').to_owned(),
        answers,
        said,
    }
}

/// Whether traced and estimated waits, and work of kernel threads, are pressure to a tenth, but for waits that are said to be
/// beside it; of one waiter, and where reclaim is what it waited for: pauses of writers are not in pressure.
fn adds_up(answer: &Answer) -> Option<bool> {
    let account = &answer.account;
    let pressure = account.pressure_ns.filter(|ns| *ns > 0)?;
    let dirty = account.limits.iter().any(|row| row.limit.name() == "dirty");
    let inside = account.total_ns().saturating_sub(account.beside_ns);
    let all = inside.saturating_add(account.threads_ns);
    let within = all.abs_diff(pressure).saturating_mul(10) <= pressure;
    (answer.waiters == 1 && !dirty).then_some(within)
}

/// Recordings below a directory, by name.
fn recordings(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.join("recording.json").is_file() {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

fn tally(judged: &[Judged], at: usize, of: impl Fn(&Judged) -> bool) -> (usize, usize) {
    let asked = judged.iter().filter(|one| of(one));
    let answers: Vec<bool> = asked.filter_map(|one| one.answers[at]).collect();
    (
        answers.iter().filter(|right| **right).count(),
        answers.len(),
    )
}

fn of((right, asked): (usize, usize)) -> String {
    match asked {
        0 => "-".to_owned(),
        asked => format!("{right} of {asked}, {} %", right * 100 / asked),
    }
}

/// The page; whether all is as good as is asked for.
fn page(judged: &[Judged]) -> (String, bool) {
    let mut text = String::new();
    let mut good = true;
    let _ = writeln!(text, "{}", include_str!("judge_why.md"));
    let _ = writeln!(text, "## How well\n");
    let _ = writeln!(
        text,
        "| {} recordings: | asked | all | in view | not in view |",
        judged.len()
    );
    let _ = writeln!(text, "|---|---|---|---|---|");
    for (at, (what, least)) in ASKED.iter().enumerate() {
        let all = tally(judged, at, |_| true);
        let [seen, unseen] = [true, false].map(|seen| tally(judged, at, |j| j.is_seen() == seen));
        good &= all.0 * 100 >= all.1 * least;
        let _ = writeln!(
            text,
            "| {what} | {least} % | {} | {} | {} |",
            of(all),
            of(seen),
            of(unseen)
        );
    }
    let cases: BTreeMap<u8, bool> = judged.iter().fold(BTreeMap::new(), |mut cases, one| {
        let right = one.answers.iter().all(|answer| *answer != Some(false));
        for case in &one.load.cases {
            cases
                .entry(*case)
                .and_modify(|all| *all &= right)
                .or_insert(right);
        }
        cases
    });
    let list = |right: bool| {
        let of = cases.iter().filter(|(_, is)| **is == right);
        let of: Vec<String> = of.map(|(case, _)| case.to_string()).collect();
        if of.is_empty() {
            "none".to_owned()
        } else {
            of.join(", ")
        }
    };
    let _ = writeln!(
        text,
        "\nCases that were rebuilt and answered rightly in every recording: {}. In some recording not: {}.\n",
        list(true),
        list(false)
    );
    let _ = writeln!(text, "## Every recording\n");
    let _ = writeln!(
        text,
        "| load | kernel | put in | said first | right | in view |"
    );
    let _ = writeln!(text, "|---|---|---|---|---|---|");
    for one in judged {
        let right = one.answers.iter().all(|answer| *answer != Some(false));
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            one.load.workload,
            one.kernel,
            put_in(one.load),
            one.said,
            if right { "yes" } else { "**no**" },
            if one.is_seen() { "yes" } else { "" },
        );
    }
    (text, good)
}

/// What was put in, in a cell.
fn put_in(load: &Load) -> String {
    if load.injected == Injected::Nothing {
        return "nothing".to_owned();
    }
    let demands = load.demand.iter().flat_map(Demands::lists);
    let demands: Vec<String> = demands.map(|ids| ids.join(" or ")).collect();
    let mut text = if load.limit.is_empty() {
        String::new()
    } else {
        format!("{}: ", load.limit.join(" or "))
    };
    text += &demands.join(" and ");
    if !load.named.is_empty() {
        let also = if demands.is_empty() { "" } else { ", " };
        let _ = write!(text, "{also}{}", load.named.join(", "));
    }
    text
}

fn run(expected: &Path, runs: &Path) -> Result<bool, Box<dyn Error>> {
    let text = std::fs::read_to_string(expected)?;
    let expected: Expected = toml::from_str(&text)?;
    let mut judged = Vec::new();
    for load in &expected.load {
        let directory = runs.join(&load.workload);
        if !directory.is_dir() {
            continue;
        }
        for path in recordings(&directory)? {
            let (recording, answer) = answer(&path)?;
            judged.push(judge(load, &recording, &answer));
        }
    }
    if judged.is_empty() {
        return Err(format!("{}: no recording of a load", runs.display()).into());
    }
    let (text, good) = page(&judged);
    print!("{text}");
    Ok(good)
}

fn main() -> ExitCode {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [expected, runs] = args.as_slice() else {
        eprintln!("usage: judge_why EXPECTED.toml RUNS");
        return ExitCode::from(2);
    };
    match run(expected, runs) {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(error) => {
            eprintln!("judge_why: {error}");
            ExitCode::from(2)
        }
    }
}
