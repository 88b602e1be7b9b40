//! Judges `whatif` by guests that ran the same load with another setting: `judge_whatif LOWMARK PAIRS.toml RUNS` prints a table of
//! pairs, and how many of the answers are right.
//!
//! 1. Of each pair `LOWMARK whatif` is asked from the first recording of one side, and never sees the other.
//! 2. A counter has *changed* if the ranges of both sides do not meet and their medians differ by more than 15 %.
//! 3. Of counters that changed and are answered, the direction is right or not, and where a number is given it is within a factor of
//!    1.5 or not. Of those that have not changed, saying that they would by a factor of 1.3 is a false change.
//!
//! Exit status: 0 if all is as good as is asked for, 1 if not, 2 if something cannot be read.

use lowmark_record::Recording;
use lowmark_whatif::{COUNTERS, Figures};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The least shares, in percent: of pairs that are answered, and of answered counters with the right direction, with the right
/// size, and of unchanged ones that were said to change.
const BARS: [(&str, u64); 4] = [
    ("pairs answered", 60),
    ("direction right", 90),
    ("size within 1.5", 70),
    ("unchanged ones left alone", 90),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    pair: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    was: String,
    would_be: String,
    ask: Vec<String>,
    kernels: Vec<String>,
}

/// An answer or a refusal, as `lowmark whatif --format json` writes it.
#[derive(Debug, Deserialize)]
struct Answer {
    refused: Option<String>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    was: u64,
    would_be: u64,
    verdict: Verdict,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    is: String,
}

/// How many of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Share(u64, u64);

impl Share {
    fn note(&mut self, right: bool) {
        self.0 += u64::from(right);
        self.1 += 1;
    }

    fn add(&mut self, other: Share) {
        self.0 += other.0;
        self.1 += other.1;
    }

    fn percent(self) -> u64 {
        self.0 * 100 / self.1.max(1)
    }

    fn text(self) -> String {
        format!("{} of {}", self.0, self.1)
    }
}

fn main() -> ExitCode {
    match judge() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("judge_whatif: {error}");
            ExitCode::from(2)
        }
    }
}

fn judge() -> Result<bool, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [lowmark, pairs, runs] = args.as_slice() else {
        return Err("expected LOWMARK PAIRS.toml RUNS".into());
    };
    let pairs: Pairs = toml::from_str(&std::fs::read_to_string(pairs)?)?;
    let mut all = [Share::default(); BARS.len()];
    println!(
        "| from | asked | answer | direction | size | unchanged left alone |\n|---|---|---|---|---|---|"
    );
    for pair in &pairs.pair {
        for kernel in &pair.kernels {
            let side = |name: &str| Path::new(runs).join(name.replace("{kernel}", kernel));
            let (was, would_be) = (repeats(&side(&pair.was)), repeats(&side(&pair.would_be)));
            if was.is_empty() || would_be.is_empty() {
                continue;
            }
            let answer = asked(lowmark, &was[0], &pair.ask)?;
            let shares = shares(&answer, &figures(&was)?, &figures(&would_be)?);
            let name = was[0]
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let [_, direction, size, unchanged] = shares;
            println!(
                "| {} | {} | {} | {} | {} | {} |",
                named(&name.unwrap_or_default()),
                pair.ask.join(" "),
                answer.refused.as_deref().map_or("answered", |_| "refused"),
                direction.text(),
                size.text(),
                unchanged.text()
            );
            all.iter_mut()
                .zip(shares)
                .for_each(|(all, one)| all.add(one));
        }
    }
    println!("\n| | asked for | found |\n|---|---|---|");
    for ((name, bar), share) in BARS.iter().zip(all) {
        println!(
            "| {name} | {bar} % | {}, {} % |",
            share.text(),
            share.percent()
        );
    }
    Ok(BARS
        .iter()
        .zip(all)
        .all(|((_, bar), share)| share.percent() >= *bar))
}

/// The runs of a side, in order: by their numbers from 1 on, or by their seeds from 0 on.
fn repeats(side: &Path) -> Vec<PathBuf> {
    let run = |number: &u32| PathBuf::from(format!("{}{number}", side.display()));
    let numbers = (0..).skip_while(|number| *number == 0 && !run(number).is_dir());
    numbers
        .map(|number| run(&number))
        .take_while(|path| path.is_dir())
        .collect()
}

/// The name of a recording without the number of its run.
fn named(directory: &str) -> &str {
    directory.split("_guest_seed").next().unwrap_or(directory)
}

fn asked(lowmark: &str, recording: &Path, ask: &[String]) -> Result<Answer, Box<dyn Error>> {
    let output = Command::new(lowmark)
        .arg("whatif")
        .arg(recording)
        .args(ask)
        .args(["--format", "json", "--quiet"])
        .output()?;
    if output.status.code() == Some(2) || output.stdout.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn figures(runs: &[PathBuf]) -> Result<Vec<Figures>, Box<dyn Error>> {
    let read = |path: &PathBuf| Recording::read_without_events(path).map(|it| Figures::of(&it));
    Ok(runs.iter().map(read).collect::<Result<_, _>>()?)
}

/// How much of an answer is right beside the counters of the guests.
fn shares(answer: &Answer, was: &[Figures], would_be: &[Figures]) -> [Share; BARS.len()] {
    let mut shares = [Share::default(); BARS.len()];
    shares[0].note(answer.refused.is_none());
    let rows: BTreeMap<&str, &Row> = answer
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row))
        .collect();
    for (at, counter) in COUNTERS.iter().enumerate() {
        let values = |runs: &[Figures]| {
            let mut values: Vec<u64> = runs.iter().filter_map(|run| run.0[at]).collect();
            values.sort_unstable();
            values
        };
        let (was, would_be) = (values(was), values(would_be));
        let (Some(row), false) = (
            rows.get(counter.name),
            was.is_empty() || would_be.is_empty(),
        ) else {
            continue;
        };
        let (before, after) = (was[was.len() / 2], would_be[would_be.len() / 2]);
        let apart = was[was.len() - 1] < would_be[0] || would_be[would_be.len() - 1] < was[0];
        let differ =
            before.abs_diff(after) * 100 > before.max(1) * 15 && before.max(after) > counter.floor;
        let answered = ["no-change", "number", "range", "direction", "begins"];
        if !answered.contains(&row.verdict.is.as_str()) {
            continue;
        }
        let moves = row.verdict.is != "no-change";
        if apart && differ {
            shares[1].note(moves && (row.would_be > row.was) == (after > before));
            if row.verdict.is == "number" {
                let (less, more) = (row.would_be.min(after), row.would_be.max(after));
                shares[2].note((more + counter.floor) * 2 <= (less + counter.floor) * 3);
            }
        } else {
            let (less, more) = (row.would_be.min(row.was), row.would_be.max(row.was));
            let far = (more + counter.floor) * 10 > (less + counter.floor) * 13;
            shares[3].note(!(moves && far));
        }
    }
    shares
}
