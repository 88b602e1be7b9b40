//! `lowmark why`: why tasks waited for memory, and what would help.

use super::report::{heading, vmstat};
use crate::cli::{Format, Paging, Printing};
use crate::error;
use crate::output;
use crate::page::PageFile;
use crate::traces;
use lowmark_record::{Account, Event, Recording, Sink, Source, Tables};
use lowmark_report::dirty::DirtyReport;
use lowmark_report::document::Document;
use lowmark_report::reclaim::{ReclaimReport, RunContext};
use lowmark_report::why::{Answer, Pressure, Surroundings, TOP_MAX, WhyOptions, WhyReport};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::path::PathBuf;

/// Exit status where nothing was found.
const NOTHING_FOUND: u8 = 1;

/// Why tasks waited for memory: what made them wait, what needed the room, what would help
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark why trace.dat --vmstat before.txt after.txt\n  \
    lowmark why runs/a --from 12.5 --to 14\n  \
    lowmark why trace.txt.xz --task postgres --top 20\n  \
    lowmark why --vmstat before.txt after.txt\n  \
    lowmark why trace.dat --html why.html\n\n\
    Reads what `lowmark report` reads; recordings without events and counters alone say what needed room, but not for \
    how long tasks waited. Causes, with the evidence and arithmetic of each: docs/causes.md.\n\n\
    Exit status: 0 answered; 1 nothing found; 2 an error, also if the file is cut or damaged: what could be read is \
    answered all the same."
)]
pub(crate) struct Args {
    /// Trace file, recording, or `-` for standard input; none where counters are all there is
    #[arg(value_name = "CAPTURE", required_unless_present = "vmstat")]
    capture: Option<String>,
    /// /proc/vmstat before and after; or one file with the columns counter, before, after
    #[arg(long, num_args = 1..=2, value_names = ["BEFORE", "AFTER"])]
    vmstat: Vec<PathBuf>,
    /// /proc/pressure/memory before and after
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    pressure: Vec<PathBuf>,
    /// Kernel that the trace is of, as `uname -r` has it; recordings say it themselves
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Only from this time on, s by the clock of the trace
    #[arg(long, value_name = "T", value_parser = nanoseconds)]
    from: Option<u64>,
    /// Only until this time, s by the clock of the trace
    #[arg(long, value_name = "T", value_parser = nanoseconds)]
    to: Option<u64>,
    /// Only waits of tasks of this name, or of this name and process id (cc1, cc1-4242)
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// How many of the longest waits to print
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=TOP_MAX as i64))]
    top: u16,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// Events for the answer, and for the plots of a page if there is to be one.
struct Seen {
    why: WhyReport,
    plotted: Option<(ReclaimReport, DirtyReport)>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.why.event(event, tables);
        if let Some((reclaim, dirty)) = &mut self.plotted {
            reclaim.event(event, tables);
            dirty.event(event, tables);
        }
    }
}

/// Demands of a load that `whatif` can reconstruct: memory of its own.
const OF_MEMORY: [&str; 2] = ["G1", "G2"];

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        return Err(miette!(
            help = "give the earlier time to --from",
            "--from is not before --to: there is nothing between them"
        ));
    }
    let page = PageFile::create(&args.paging)?;
    let mut seen = Seen {
        why: WhyReport::new(WhyOptions {
            from_ns: args.from,
            to_ns: args.to,
            task: args.task.clone(),
            top: usize::from(args.top),
        }),
        plotted: page
            .is_asked()
            .then(|| (ReclaimReport::default(), DirtyReport::default())),
    };
    let (source, recording) = match &args.capture {
        Some(capture) => traces::read_any(&one(capture)?, &mut seen)?,
        None => (Source::default(), None),
    };
    let surroundings = surroundings(args, recording.as_ref())?;
    let impossible = seen.why.impossible();
    let answer = (seen.why).finish(&source.tables, &source.account, &surroundings);
    let is_broken = doubts(args, &source.account, impossible);
    let mut section = answer.section();
    if let Some((reclaim, mut dirty)) = seen.plotted {
        recording.iter().for_each(|it| dirty.gauges(it));
        let figures = reclaim.finish(&source.tables, source.account, RunContext::default());
        for plot in answer.plots(&figures, &dirty) {
            section.plot(plot);
        }
    }
    if let Some(capture) = args.capture.as_deref().filter(|_| recording.is_some())
        && answer.demand().is_some_and(|id| OF_MEMORY.contains(&id))
    {
        section.blank();
        section.line(format!(
            "`lowmark whatif {capture}` asks the model which setting would have helped, if it can reconstruct the load."
        ));
    }
    let document = Document {
        name: format!(
            "lowmark why {}",
            args.capture.as_deref().unwrap_or("counters")
        ),
        sections: vec![section],
    };
    match args.printing.format {
        Format::Json => output::print_json(&answer.json())?,
        Format::Table => output::print_document(&document)?,
    }
    page.write(&document, false)?;
    Ok(status(&answer, is_broken))
}

/// The recording that a directory holds, if that is one below it; else what was given.
fn one(capture: &str) -> miette::Result<String> {
    let targets = traces::targets(&[capture.to_owned()])?;
    match targets.as_slice() {
        [target] => Ok(target.clone()),
        several => Err(miette!(
            help = "name one of them",
            "{capture}: {} recordings; lowmark why answers for one",
            several.len()
        )),
    }
}

fn status(answer: &Answer, is_broken: bool) -> u8 {
    match (is_broken, answer.found) {
        (true, _) => error::EXIT_STATUS,
        (false, true) => 0,
        (false, false) => NOTHING_FOUND,
    }
}

/// Says what makes the answer uncertain; whether the file is broken.
fn doubts(args: &Args, account: &Account, impossible: u64) -> bool {
    let capture = args.capture.as_deref().unwrap_or_default();
    for doubt in traces::doubts(capture, account, impossible) {
        output::remark(false, &format!("warning: {doubt}"));
    }
    traces::is_broken(account)
}

/// What is known besides the events. What is given on the command line comes before what a recording says.
fn surroundings(args: &Args, recording: Option<&Recording>) -> miette::Result<Surroundings> {
    let mut known = recording.map_or_else(Surroundings::default, Surroundings::of_recording);
    if known.heading.is_empty()
        && let Some(capture) = &args.capture
    {
        known.heading.push(heading(capture));
    }
    if let Some(change) = vmstat(&args.vmstat)? {
        known.counters = Some(change.counters);
    }
    if let [before, after] = args.pressure.as_slice() {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path)
                .into_diagnostic()
                .wrap_err_with(|| format!("{}: cannot read", path.display()))
        };
        let pressure = Pressure::between(&read(before)?, &read(after)?)
            .into_diagnostic()
            .wrap_err_with(|| format!("{}, {}", before.display(), after.display()))?;
        known.memory_pressure = Some(pressure);
    }
    if let Some(kernel) = &args.kernel {
        kernel
            .parse::<lowmark_record::Release>()
            .into_diagnostic()
            .wrap_err("--kernel")?;
        known.kernel = Some(kernel.clone());
    }
    Ok(known)
}

/// Seconds of a trace's clock, in ns: digits behind the point count as they are.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || "expected seconds, for example 4057.015".to_owned();
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 || seconds.is_empty() {
        return Err(wrong());
    }
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    let ns = seconds.checked_mul(1_000_000_000);
    ns.and_then(|ns| ns.checked_add(fraction)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times_are_exact() {
        assert_eq!(nanoseconds("4057.015"), Ok(4_057_015_000_000));
        assert_eq!(nanoseconds("0.000000001"), Ok(1));
        assert_eq!(nanoseconds("12"), Ok(12_000_000_000));
        for wrong in ["", "x", "1.0000000001", "-1", "1e3", ".5", "99999999999999"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
