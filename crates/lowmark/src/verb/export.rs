//! `lowmark export`: events in the forms of other tools.

use crate::{interrupt, output, traces};
use lowmark_record::{Event, NoRelease, Recording, Release, Sink, Tables};
use lowmark_report::table::counted;
use lowmark_trace::export::{
    self, Entries, EraFinder, ExportError, Exported, Exporter, Format, Options,
};
use miette::{IntoDiagnostic, miette};
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

/// Writes the events of a recording or trace in the form of another tool
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark export runs/a --format ftrace -o a.trace.txt\n  \
    lowmark export trace.dat --format parquet -o tables\n  \
    lowmark export runs/a --format perfetto -o a.pftrace\n\n\
    ftrace text and trace.dat are those of the recording's own kernel, and of a trace those of a kernel \
    that has all of its events, unless --era says another."
)]
pub(crate) struct Args {
    /// A recording with events, a trace file, or `-` for standard input
    #[arg(value_name = "REC|TRACE")]
    source: String,
    /// Form: ftrace, trace.dat, perfetto, json, csv or parquet
    #[arg(long, value_name = "FORMAT")]
    format: export::Format,
    /// File to write, `-` for standard output; of csv and parquet a directory
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Kernel whose text ftrace text and trace.dat have, for example 3.6 or 6.18
    #[arg(long, value_name = "RELEASE", value_parser = era)]
    era: Option<Release>,
    /// No remarks on stderr, only errors
    #[arg(long, short)]
    quiet: bool,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let path = match &args.output {
        Some(path) => path.clone(),
        None if args.format.is_directory() => {
            return Err(miette!(
                help = "say which one with --output DIR",
                "--format {} writes a directory",
                args.format
            ));
        }
        None => PathBuf::from(traces::STDIN),
    };
    let binary = matches!(
        args.format,
        export::Format::Perfetto | export::Format::TraceDat
    );
    if binary && path == Path::new(traces::STDIN) && std::io::stdout().is_terminal() {
        return Err(miette!(
            help = "name a file with --output FILE, or lead it into another program",
            "--format {} is no text, and stdout is a terminal",
            args.format
        ));
    }
    let source = Path::new(&args.source);
    let recording = if source.is_dir() {
        Some(Recording::read(source).into_diagnostic()?)
    } else {
        None
    };
    let mut options = Options::new(env!("CARGO_PKG_VERSION"));
    options.any_comm = recording.is_none();
    options.release = match (args.era, &recording) {
        (Some(era), _) => era,
        (None, Some(recording)) => own_era(recording),
        (None, None) => era_of_trace(args)?,
    };
    options.entries = recording.as_ref().map(|r| entries(r, options.release));
    let mut exporter = export::create(args.format, &path, &options).into_diagnostic()?;
    if let Some(unfinished) = export::unfinished(&path) {
        interrupt::before_end(move || {
            // There is nobody left to tell.
            let _ = if unfinished.is_dir() {
                fs::remove_dir_all(&unfinished)
            } else {
                fs::remove_file(&unfinished)
            };
        });
    }
    let account = match &recording {
        Some(recording) => with_gauges(recording, exporter.as_mut()),
        None => {
            let (source, _) = traces::read(&args.source, &mut Forward(exporter.as_mut()))?;
            source.account
        }
    };
    let exported = match exporter.finish() {
        // A reader that has gone away has seen what it wanted.
        Err(ExportError::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            return Ok(0);
        }
        exported => exported.into_diagnostic()?,
    };
    interrupt::wait_if_ending();
    for doubt in traces::doubts(&args.source, &account, 0) {
        output::remark(args.quiet, &format!("warning: {doubt}"));
    }
    let assumed = args.era.is_none() && recording.is_none() && options.release != Release::NEWEST;
    output::remark(args.quiet, &summary(&exported, options.release, assumed));
    Ok(if traces::is_broken(&account) {
        crate::error::EXIT_STATUS
    } else {
        0
    })
}

/// What has been written, in a line; the release is named if it was `assumed`.
fn summary(exported: &Exported, release: Release, assumed: bool) -> String {
    let mut text = counted(exported.events, "event");
    if assumed {
        text += &format!(" in the form of Linux {release}");
    }
    for (kind, count) in &exported.not_in_era {
        let (events, were) = match count {
            1 => ("event", "was"),
            _ => ("events", "were"),
        };
        text += &format!("; {count} {kind} {events} {were} left out, as Linux {release} has none");
    }
    for (from, to) in &exported.renamed {
        text += &format!("; task {from:?} is now {to:?}");
    }
    text
}

/// A release whose texts are known.
fn era(text: &str) -> Result<Release, String> {
    let release: Release = text.parse().map_err(|e: NoRelease| e.to_string())?;
    let (oldest, newest) = (Release::OLDEST_TEXT, Release::NEWEST_TEXT);
    if (oldest..=newest).contains(&release) {
        Ok(release)
    } else {
        Err(format!(
            "expected a release from {oldest} to {newest}: lowmark does not know what others print"
        ))
    }
}

/// Passes events on to an exporter behind a reference.
struct Forward<'a>(&'a mut dyn Exporter);

impl Sink for Forward<'_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.0.event(event, tables);
    }
}

/// The kernel that a recording is of; the newest where that says nothing.
fn own_era(recording: &Recording) -> Release {
    recording.run.kernel.parse().unwrap_or(Release::NEWEST)
}

/// The kernel in whose text nothing of a trace is lost, found by reading it once; the newest where that cannot
/// be done, because the trace comes through a pipe, or matters to no format.
fn era_of_trace(args: &Args) -> miette::Result<Release> {
    let has_era = matches!(args.format, Format::Ftrace | Format::TraceDat);
    if !has_era || !Path::new(&args.source).is_file() {
        return Ok(Release::NEWEST);
    }
    let mut finder = EraFinder::default();
    traces::read(&args.source, &mut finder)?;
    Ok(finder.release())
}

/// What the header of ftrace text says.
fn entries(recording: &Recording, release: Release) -> Entries {
    let cpus: BTreeSet<u32> = recording.events.iter().map(|event| event.cpu).collect();
    let events = recording
        .events
        .iter()
        .filter(|event| event.kind.exists_in(release));
    Entries {
        events: events.count() as u64,
        cpus: cpus.len() as u32,
    }
}

/// Events and gauges of a recording in order of time.
fn with_gauges(recording: &Recording, exporter: &mut dyn Exporter) -> lowmark_record::Account {
    let mut merge = Merge {
        gauges: recording.gauges.samples.as_slice(),
        names: &recording.gauges.names,
        exporter,
    };
    let source = recording.replay(&mut merge);
    merge.counters_until(u64::MAX);
    source.account
}

/// Puts the samples of gauges between events.
struct Merge<'a> {
    gauges: &'a [(u64, Vec<u64>)],
    names: &'a [String],
    exporter: &'a mut dyn Exporter,
}

impl Merge<'_> {
    fn counters_until(&mut self, time_ns: u64) {
        while let Some(((sampled_ns, values), rest)) = self.gauges.split_first()
            && *sampled_ns <= time_ns
        {
            for (name, value) in self.names.iter().zip(values) {
                self.exporter.counter(*sampled_ns, name, *value);
            }
            self.gauges = rest;
        }
    }
}

impl Sink for Merge<'_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.counters_until(event.time_ns);
        self.exporter.event(event, tables);
    }
}
