//! Events from wherever they are: a recording's directory, a trace file, standard input.

use lowmark_record::store::RECORDING_FILE;
use lowmark_record::{Account, Flaw, Recording, Sink, Source};
use lowmark_trace::input::Input;
use miette::{IntoDiagnostic, miette};
use std::path::Path;

/// Name of standard input.
pub(crate) const STDIN: &str = "-";

/// Lets the events of a recording or trace go by, and gives the recording without them
/// if it was one.
pub(crate) fn read(
    target: &str,
    sink: &mut dyn Sink,
) -> miette::Result<(Source, Option<Recording>)> {
    let path = Path::new(target);
    if path.is_dir() && !path.join(RECORDING_FILE).is_file() {
        return Err(miette!(
            help =
                "a recording is a directory that `lowmark run --out` wrote; each run has its own",
            "{target}: a directory without {RECORDING_FILE}: expected a recording or a trace file"
        ));
    }
    if path.is_dir() {
        let (recording, source) = Recording::stream(path, sink).into_diagnostic()?;
        if source.account.understood == 0 {
            return Err(miette!(
                help = "`lowmark run --events --out DIR` records them",
                "{target}: this recording holds no events"
            ));
        }
        return Ok((source, Some(recording)));
    }
    let input = match target {
        STDIN => Input::stdin(),
        _ => Input::open(path),
    };
    let source = lowmark_trace::read(input.into_diagnostic()?, sink).into_diagnostic()?;
    nothing_understood(target, &source.account)?;
    Ok((source, None))
}

/// A trace of which nothing was understood is an error, and says what there was instead.
fn nothing_understood(target: &str, account: &Account) -> miette::Result<()> {
    if account.understood > 0 {
        return Ok(());
    }
    let mut kinds: Vec<(&String, &u64)> = account.not_understood.iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1));
    let kinds: Vec<String> = kinds
        .iter()
        .take(5)
        .map(|(kind, count)| format!("{kind} ({count})"))
        .collect();
    let found = match kinds.is_empty() {
        true => "no line of events".to_owned(),
        false => kinds.join(", "),
    };
    let place = account.flaws.values().next();
    let place = place.map_or(String::new(), |place| format!("; {place}"));
    Err(miette!(
        help = "lowmark reads vmscan, writeback, compaction, kmem, oom, huge_memory and their \
                neighbours: see docs/events.md",
        "{target}: none of its {} lines is an event that lowmark knows: {found}{place}",
        account.lines
    ))
}

/// What makes the figures of a trace uncertain, one line each.
pub(crate) fn doubts(target: &str, account: &Account) -> Vec<String> {
    let mut doubts: Vec<String> = account
        .flaws
        .iter()
        .map(|(flaw, place)| {
            let what = match flaw {
                Flaw::Truncated => "it was cut short".to_owned(),
                Flaw::Damaged => format!("{} places are damaged", account.damaged.max(1)),
                Flaw::Unsorted => format!(
                    "{} events are earlier than the one before",
                    account.unsorted
                ),
                Flaw::Lost if account.lost > 0 => format!("{} events were lost", account.lost),
                Flaw::Lost => format!("events were lost in {} places", account.gaps),
            };
            format!("{target}: {what}: {place}")
        })
        .collect();
    let missed = account.missed();
    if missed > 0 {
        let kinds: Vec<String> = account
            .not_understood
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        doubts.push(format!(
            "{target}: {missed} of {} lines were not understood: {}",
            account.lines,
            kinds.join(", ")
        ));
    }
    if !account.by_labels.is_empty() {
        let kinds: Vec<String> = account
            .by_labels
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        doubts.push(format!(
            "{target}: of no known kernel to the letter, read field by field: {}",
            kinds.join(", ")
        ));
    }
    doubts
}

/// Whether the file is not what its writer meant it to be: it was cut or damaged.
pub(crate) fn is_broken(account: &Account) -> bool {
    account.flaws.contains_key(&Flaw::Truncated) || account.flaws.contains_key(&Flaw::Damaged)
}
