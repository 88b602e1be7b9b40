//! Events from wherever they are: a recording's directory, a trace file, standard input.

use crate::endless::Endless;
use crate::library::refuse_empty;
use crate::output;
use crate::verb::compare::below as recordings_below;
use lowmark_record::store::RECORDING_FILE;
use lowmark_record::{Account, Flaw, Recording, Sink, Source};
use lowmark_report::table::counted;
use lowmark_trace::input::Input;
use miette::{IntoDiagnostic, WrapErr, miette};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of standard input.
pub(crate) const STDIN: &str = "-";

/// Lets the events of a recording or trace go by, and gives the recording without them
/// if it was one. Only the recording of a host may have none: it has counters.
pub(crate) fn read(
    target: &str,
    sink: &mut dyn Sink,
) -> miette::Result<(Source, Option<Recording>)> {
    let (source, recording) = read_any(target, sink)?;
    let without = |recording: &Recording| {
        let system = recording.system.as_ref();
        let of_host = system.is_some_and(|system| system.recorder.is_some());
        source.account.understood == 0 && !of_host
    };
    match &recording {
        Some(recording) if without(recording) => Err(no_events(target)),
        _ => Ok((source, recording)),
    }
}

/// The same, also of a recording without events.
pub(crate) fn read_any(
    target: &str,
    sink: &mut dyn Sink,
) -> miette::Result<(Source, Option<Recording>)> {
    let path = Path::new(target);
    if path.is_dir() && !path.join(RECORDING_FILE).is_file() {
        if path.join(RECORDING_FILE).exists() {
            return Err(no_regular_file(path));
        }
        return Err(miette!(
            help =
                "a recording is a directory that `lowmark run --out` wrote; each run has its own",
            "{target}: a directory without {RECORDING_FILE}: expected a recording or a trace file"
        ));
    }
    if path.is_dir() {
        let (recording, source) = Recording::stream(path, sink).into_diagnostic()?;
        return Ok((source, Some(recording)));
    }
    let (input, interrupted) = open(target)?;
    let mut source = lowmark_trace::read(input, sink).into_diagnostic()?;
    if interrupted.load(Ordering::SeqCst) {
        // Its end is where somebody wanted it.
        source.account.flaws.remove(&Flaw::Truncated);
        output::remark(
            false,
            &format!(
                "{}: SIGINT ended the reading; the events read before it count",
                called(target)
            ),
        );
    }
    nothing_understood(target, &source.account)?;
    Ok((source, None))
}

/// What should be the file of a recording is a directory, a device or the like.
pub(crate) fn no_regular_file(directory: &Path) -> miette::Report {
    miette!(
        help =
            "a recording is a directory that `lowmark run --out` wrote; this one was changed since",
        "{}: expected a regular file, found something else",
        directory.join(RECORDING_FILE).display()
    )
}

/// A recording is asked for events that it does not hold.
pub(crate) fn no_events(target: &str) -> miette::Report {
    miette!(
        help = "`lowmark run --events --out DIR` and `lowmark record --level events` record them",
        "{target}: this recording holds no events"
    )
}

/// What is to be read: of a directory that is no recording itself the recordings in it, by name.
pub(crate) fn targets(given: &[String]) -> miette::Result<Vec<String>> {
    let mut targets = Vec::new();
    for target in given {
        refuse_empty(target)?;
        let path = Path::new(target);
        let recordings = if path.is_dir() {
            recordings_below(path)
                .into_diagnostic()
                .wrap_err_with(|| format!("{target}: cannot list"))?
        } else {
            Vec::new()
        };
        if recordings.is_empty() {
            targets.push(target.clone());
        }
        let names = recordings.into_iter();
        targets.extend(names.map(|path| path.to_string_lossy().into_owned()));
    }
    Ok(targets)
}

/// Opens a trace, and says whether reading it was interrupted, which is only known afterwards.
fn open(target: &str) -> miette::Result<(Input, Arc<AtomicBool>)> {
    let never = || Arc::new(AtomicBool::new(false));
    if target == STDIN {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned().into_diagnostic()?);
        if ends(&stdin) {
            return Ok((Input::stdin().into_diagnostic()?, never()));
        }
        let (endless, interrupted) = Endless::new(stdin);
        let input = Input::from_reader("standard input", endless).into_diagnostic()?;
        return Ok((input, interrupted));
    }
    let path = Path::new(target);
    if let Ok(file) = File::open(path)
        && !ends(&file)
    {
        let (endless, interrupted) = Endless::new(file);
        let input = Input::from_reader(target, endless).into_diagnostic()?;
        return Ok((input, interrupted));
    }
    // What cannot be opened is told by what reads traces.
    Ok((Input::open(path).into_diagnostic()?, never()))
}

/// Whether a file has an end of its own: pipes need not have one, and `trace_pipe` is a file of no length.
fn ends(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_dir() || data.is_file() && data.len() > 0)
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
    let found = if kinds.is_empty() {
        "no line of events".to_owned()
    } else {
        kinds.join(", ")
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

/// What a target is called in sentences.
fn called(target: &str) -> &str {
    match target {
        STDIN => "standard input",
        path => path,
    }
}

/// `1 place is damaged`, `2 places are damaged`.
fn are(count: u64, one: &str, what: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb} {what}", counted(count, one))
}

/// The same of what is over.
fn were(count: u64, one: &str, what: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb} {what}", counted(count, one))
}

/// What makes the figures of a trace uncertain, one line each.
/// `impossible` is how many events of dirty throttling were left out because no kernel has their values.
pub(crate) fn doubts(target: &str, account: &Account, impossible: u64) -> Vec<String> {
    let target = called(target);
    let mut doubts: Vec<String> = account
        .flaws
        .iter()
        .map(|(flaw, place)| {
            let what = match flaw {
                Flaw::Truncated => "it was cut short".to_owned(),
                Flaw::Damaged => are(account.damaged.max(1), "place", "damaged"),
                Flaw::Unsorted => are(account.unsorted, "event", "earlier than the one before"),
                Flaw::Lost if account.lost > 0 => were(account.lost, "event", "lost"),
                Flaw::Lost => format!("events were lost in {}", counted(account.gaps, "place")),
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
            "{target}: of {}, {} not understood: {}",
            counted(account.lines, "line"),
            match missed {
                1 => "1 was".to_owned(),
                missed => format!("{missed} were"),
            },
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
            "{target}: no known kernel writes these events in this form, so their fields were read by their labels: {}",
            kinds.join(", ")
        ));
    }
    if impossible > 0 {
        let events = were(impossible, "event", "left out");
        doubts.push(format!(
            "{target}: {events} of the figures on dirty throttling, as no kernel has such values"
        ));
    }
    doubts
}

/// Whether the file is not what its writer meant it to be: it was cut or damaged.
pub(crate) fn is_broken(account: &Account) -> bool {
    account.flaws.contains_key(&Flaw::Truncated) || account.flaws.contains_key(&Flaw::Damaged)
}
