//! `lowmark watch`: what memory management does, look by look.

use crate::cli::{Ask, Format, Printing, time};
use crate::engine::{self, quietly};
use crate::hosts::hostname;
use crate::output::{self, remark};
use crate::verb::compare::below;
use crate::watching::{self, System};
use crate::{interrupt, plan};
use lowmark_real::record::{Roots, Watcher, cgroup};
use lowmark_record::Recording;
use lowmark_report::recipe::Evidence;
use lowmark_watch::lines;
use lowmark_watch::look::Look;
use lowmark_watch::rates::Rates;
use lowmark_watch::timeline::Timeline;
use miette::{IntoDiagnostic, WrapErr, miette};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shows what memory management does: of this system as it goes on, of a recording, or of a workload on the model
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark watch\n  lowmark watch --cgroup /sys/fs/cgroup/system.slice\n  \
    lowmark watch swap-small --set order=random --kernel v6.12\n  lowmark watch host.rec\n  \
    lowmark watch --lines --for 10s\n\n\
    On a terminal it is a screen that goes on until q is pressed; elsewhere, and with --lines, a line for each look: \
    sizes in MiB, everything else a second. A system is only read, four times a second. Of a workload, \
    the run is over before it is shown."
)]
pub(crate) struct Args {
    /// A workload, built-in or a path; or a directory with a recording [default: this system]
    #[arg(value_name = "WORKLOAD|DIR")]
    target: Option<String>,
    /// A cgroup of this system that is shown as well: its directory below /sys/fs/cgroup; again for more
    #[arg(long = "cgroup", value_name = "PATH", conflicts_with = "target")]
    cgroups: Vec<PathBuf>,
    /// Prints lines on a terminal as well
    #[arg(long)]
    lines: bool,
    /// Time from one line to the next, for example 1s [default: 1s, or a sixtieth of a recording that is shorter than a minute]
    #[arg(long, value_name = "TIME", value_parser = time)]
    every: Option<Duration>,
    /// Ends after so long, for example 90s [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "target")]
    length: Option<Duration>,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    printing: Printing,
}

/// Longest recording of which a sixtieth is taken for a line.
const MINUTE: Duration = Duration::from_secs(60);
/// Time from one line to the next of everything longer.
const SECOND: Duration = Duration::from_secs(1);
/// Lines between two heads of a terminal.
const HEAD_EVERY: usize = 20;

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let stdout = std::io::stdout();
    let is_terminal = stdout.is_terminal() && std::io::stdin().is_terminal();
    let on_screen = is_terminal && !args.lines && args.printing.format == Format::Table;
    let Some(target) = &args.target else {
        return of_system(args, on_screen);
    };
    let recording = recording(target, &args.ask)?;
    let timeline = Timeline::of(&recording);
    let Some(span_ns) = timeline.span() else {
        return Err(miette!(
            help = "record it with `lowmark run WORKLOAD --events --out DIR`, or with `lowmark record`",
            "{target}: the recording does not say what memory was like over the run"
        ));
    };
    let title = title(&recording);
    if on_screen {
        watching::recording(&title, timeline)?;
        return Ok(0);
    }
    let length = Duration::from_nanos(span_ns.1 - span_ns.0);
    let every = args
        .every
        .unwrap_or(if length < MINUTE { length / 60 } else { SECOND });
    let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
    let mut printer = Printer::new(args.printing.format);
    for (look, rates) in lines::spaced(&timeline, every_ns) {
        if !printer.print(look, &rates)? {
            break;
        }
    }
    Ok(0)
}

/// This system, until the time is over or somebody ends it.
fn of_system(args: &Args, on_screen: bool) -> miette::Result<u8> {
    if let Some(flag) = args.ask.given().first() {
        return Err(miette!(
            help = "name a workload to run it, for example `lowmark watch swap-small`",
            "{flag} has no meaning where this system is watched"
        ));
    }
    let cgroups: Vec<String> = args.cgroups.iter().map(|path| cgroup(path)).collect();
    let mut remarks = Vec::new();
    let watcher = Watcher::open(&Roots::default(), &cgroups, &mut remarks).into_diagnostic()?;
    let mut system = System::new(watcher, args.length);
    if on_screen {
        watching::system(&hostname(), &mut system)?;
    }
    for text in remarks {
        remark(false, &format!("note: {text}"));
    }
    if on_screen {
        return Ok(0);
    }
    let every = args.every.unwrap_or(SECOND);
    let mut printer = Printer::new(args.printing.format);
    let mut timeline = Timeline::default();
    let mut before_ns = 0;
    while let Some(look) = system.wait_and_look(every) {
        let time_ns = look.time_ns;
        timeline.push(look);
        // The first look has nothing to be held against.
        if let Some(look) = timeline.at(time_ns).filter(|_| timeline.looks().len() > 1)
            && !printer.print(look, &timeline.rates(before_ns, time_ns))?
        {
            break;
        }
        before_ns = time_ns;
    }
    Ok(0)
}

/// The recording that a directory holds, or that of a workload's run.
fn recording(target: &str, ask: &Ask) -> miette::Result<Recording> {
    let directory = Path::new(target);
    if directory.is_dir() {
        if let Some(flag) = ask.given().first() {
            return Err(miette!(
                help = "the run is over; give a workload to run it",
                "{flag} has no meaning for a recording"
            ));
        }
        let found = below(directory)
            .into_diagnostic()
            .wrap_err_with(|| target.to_owned())?;
        return match found.as_slice() {
            [one] => Recording::read_without_events(one).into_diagnostic(),
            [] => Err(miette!(
                help = "`lowmark record` and `lowmark run WORKLOAD --events --out DIR` write recordings",
                "{target}: expected a directory with a recording, found none in it"
            )),
            several => Err(miette!(
                help = "name one of them",
                "{target}: {} recordings; one is watched",
                several.len()
            )),
        };
    }
    if directory.is_file() && directory.extension().is_none_or(|end| end != "toml") {
        return Err(miette!(
            help = "a trace says nothing of memory over time; `lowmark report` and `lowmark why` read traces",
            "{target}: expected a workload (.toml) or the directory of a recording, found another file"
        ));
    }
    let runs = plan::of_workload(target, ask)?;
    let [run] = runs.as_slice() else {
        let names: Vec<String> = runs.iter().map(|run| format!("  {}", run.name)).collect();
        return Err(miette!(
            help = "choose one with --set and --kernel",
            "{target}: {} runs, and one is watched:\n{}",
            runs.len(),
            names.join("\n")
        ));
    };
    let running = quietly(false);
    let make = |_, run: Evidence| run.into_recording();
    let recordings = engine::execute_and_make(
        std::slice::from_ref(run),
        &running,
        &[true],
        u64::MAX,
        &make,
    )?;
    interrupt::wait_if_ending();
    recordings
        .into_iter()
        .next()
        .ok_or_else(|| miette!("{target}: no run"))
}

/// What a recording is of.
fn title(recording: &Recording) -> String {
    let run = &recording.run;
    let params = run
        .params
        .iter()
        .map(|(name, value)| format!(" {name}={value}"));
    let params: String = params.collect();
    format!(
        "{}{params} on {}, {}",
        run.workload, run.machine, run.kernel
    )
}

/// Prints looks one after the other.
struct Printer {
    format: Format,
    printed: usize,
    /// Whether the head comes again and again.
    pages: bool,
}

impl Printer {
    fn new(format: Format) -> Printer {
        Printer {
            format,
            printed: 0,
            pages: std::io::stdout().is_terminal(),
        }
    }

    /// Prints a look; whether more are wanted.
    fn print(&mut self, look: &Look, rates: &Rates) -> miette::Result<bool> {
        let mut text = String::new();
        if self.format == Format::Json {
            text.push_str(&lines::json(look, rates));
        } else {
            let again = self.pages && self.printed.is_multiple_of(HEAD_EVERY);
            if self.printed == 0 || again {
                text = lines::head() + "\n";
            }
            text.push_str(&lines::line(look, rates));
        }
        self.printed += 1;
        text.push('\n');
        output::print_more(&text)
    }
}
