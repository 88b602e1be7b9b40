//! `lowmark record`: what happens on this host, as a recording.

mod ending;

use crate::cli::time;
use crate::hosts::hostname;
use crate::output::{self, Page, remark};
use crate::{interrupt, recovering, unfinished};
use ending::{Ending, Program};
use lowmark_real::record::{Capture, Level, Options, Order, Roots, Session, cgroup, without_hurry};
use lowmark_real::undo::Places;
use lowmark_record::{Recording, check_writable};
use lowmark_report::host::HostReport;
use lowmark_report::table::counted;
use miette::{IntoDiagnostic, miette};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shortest ring, and longest.
const RING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// Records what happens on this host: counters ten times a second, and trace events if asked for
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark record --for 60s\n  lowmark record -o build.rec -- make -j8\n  \
    lowmark record --level events --ring 5m -o stall.rec\n\n\
    The recorder only reads: counters from /proc and from cgroups, and with --level events a trace buffer of its own, \
    which is removed at the end. That takes root; without it perf(1) records the events, if it is there and may. Ctrl-C ends the recording and reports what there is. With --ring, \
    `kill -USR1` writes the last minutes as DIR.1, DIR.2, ... and goes on. `lowmark report DIR` reports on it again.\n\n\
    Exit status: that of the command, if there is one; otherwise 0, or 2 for an error."
)]
pub(crate) struct Args {
    /// Directory to write [default: HOST.rec, or HOST-2.rec, ... if that is there]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Records for so long, for example 90s, 5m or 1h [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "command")]
    length: Option<Duration>,
    /// What to record
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = What::Counters)]
    level: What,
    /// Keeps only the last minutes, for example 5m
    #[arg(long, value_name = "TIME", value_parser = ring)]
    ring: Option<Duration>,
    /// A cgroup of version 2 whose counters are recorded as well: its directory below /sys/fs/cgroup; again for more
    #[arg(long = "cgroup", value_name = "PATH")]
    cgroups: Vec<PathBuf>,
    /// No remarks on stderr and no report at the end, only errors
    #[arg(long, short)]
    quiet: bool,
    /// Records until this command ends
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Counters of /proc and of cgroups, and the busiest tasks
    Counters,
    /// Trace events of reclaim, compaction, throttled writers, the OOM killer and processes, too
    Events,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let dir = match &args.output {
        Some(dir) => dir.clone(),
        None => free_name(&hostname()),
    };
    check_writable(&dir).into_diagnostic()?;
    let (sender, orders) = channel();
    let ending = Ending::new(sender, args.ring.is_some());
    let hearing = ending.clone();
    interrupt::hear(move |signal| hearing.hear(signal));
    let parent = parent(&dir);
    unfinished::clear(&parent, args.quiet);
    unfinished::clear_at_end(&parent);
    for one in recovering::all() {
        remark(args.quiet, &recovering::sentence(&one));
    }
    let session = Session::begin(options(args, &parent)).into_diagnostic()?;
    let program = match args.command.split_first() {
        Some((name, arguments)) => Some(Program::start(name, arguments, &ending)?),
        None => None,
    };
    say_begin(args, &session, &dir);
    let said = session.remarks().to_vec();
    let writing = record(args, session, &orders, &dir)?;
    let recording = writing.recording().into_diagnostic()?;
    recording.write(&dir).into_diagnostic()?;
    interrupt::wait_if_ending();
    say_end(args, &recording, &said, &dir)?;
    Ok(program.map_or(0, |program| program.status()))
}

/// Records, and writes what is wanted meanwhile; what there is at the end.
fn record(
    args: &Args,
    mut session: Session,
    orders: &Receiver<Order>,
    dir: &Path,
) -> miette::Result<Capture> {
    let mut writers: Vec<JoinHandle<miette::Result<()>>> = Vec::new();
    let ran = session.run(args.length, orders, &mut |capture| {
        // One after the other: their numbers follow from what is there.
        let before = writers.pop();
        let (dir, quiet) = (dir.to_owned(), args.quiet);
        writers.push(std::thread::spawn(move || {
            without_hurry();
            before.map_or(Ok(()), joined)?;
            write_numbered(capture, &dir, quiet)
        }));
    });
    let finished = session.finish();
    without_hurry();
    for writer in writers {
        joined(writer)?;
    }
    ran.into_diagnostic()?;
    finished.into_diagnostic()
}

fn joined(writer: JoinHandle<miette::Result<()>>) -> miette::Result<()> {
    let panicked = |_| Err(miette!("a thread that writes a recording panicked"));
    writer.join().unwrap_or_else(panicked)
}

/// Writes a capture beside the destination of the last one, under the first number that is free.
fn write_numbered(capture: Capture, dir: &Path, quiet: bool) -> miette::Result<()> {
    let numbered = |number: u32| {
        let mut name = dir.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let free = (1..)
        .map(numbered)
        .find(|path| path.symlink_metadata().is_err());
    let path = free.unwrap_or_else(|| dir.to_owned());
    let recording = capture.recording().into_diagnostic()?;
    recording.write(&path).into_diagnostic()?;
    let seconds = recording.elapsed_ns as f64 / 1e9;
    remark(
        quiet,
        &format!("{}: the last {seconds:.1} s", path.display()),
    );
    Ok(())
}

fn options(args: &Args, parent: &Path) -> Options {
    let words = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    Options {
        level: match args.level {
            What::Counters => Level::Counters,
            What::Events => Level::Events,
        },
        ring: args.ring,
        cgroups: args.cgroups.iter().map(|path| cgroup(path)).collect(),
        command: words.collect(),
        spool: if parent.is_dir() {
            parent.to_owned()
        } else {
            std::env::temp_dir()
        },
        places: Some(Places::of_system()),
        roots: Roots::default(),
    }
}

fn say_begin(args: &Args, session: &Session, dir: &Path) {
    for text in session.remarks() {
        remark(args.quiet, &format!("note: {text}"));
    }
    let what = match session.events() {
        0 => "counters".to_owned(),
        kinds => {
            let by = session.events_by();
            format!("counters and {kinds} kinds of trace events (by {by})")
        }
    };
    let end = match (args.length, args.command.is_empty()) {
        (Some(length), _) => format!("for {} s, or until Ctrl-C", length.as_secs_f64()),
        (None, true) => "until Ctrl-C".to_owned(),
        (None, false) => "until the command ends".to_owned(),
    };
    let pid = std::process::id();
    let ring = match args.ring {
        Some(ring) => format!(
            "; the last {} s are kept, `kill -USR1 {pid}` writes them",
            ring.as_secs_f64()
        ),
        None => String::new(),
    };
    remark(
        args.quiet,
        &format!("Recording {what} {end}, into {}{ring}.", dir.display()),
    );
}

/// The report, without the notes that were `said` at the begin.
fn say_end(args: &Args, recording: &Recording, said: &[String], dir: &Path) -> miette::Result<()> {
    if args.quiet {
        return Ok(());
    }
    let page = Page::stdout();
    if let Some(mut report) = HostReport::new(recording) {
        report.notes.retain(|note| !said.contains(note));
        output::print(&report.text(page.style.as_ref(), page.width))?;
    }
    let lost = recording
        .system
        .as_ref()
        .and_then(|system| system.lost_events);
    let events = match lost {
        Some(lost) => format!(
            " with {}, {lost} lost",
            counted(recording.events.len() as u64, "event")
        ),
        None => String::new(),
    };
    remark(false, &format!("{} written{events}.", dir.display()));
    Ok(())
}

/// The directory in which something is.
fn parent(path: &Path) -> PathBuf {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// A name that nothing has yet.
fn free_name(host: &str) -> PathBuf {
    let first = PathBuf::from(format!("{host}.rec"));
    let later = (2..u32::MAX).map(|number| PathBuf::from(format!("{host}-{number}.rec")));
    let mut names = std::iter::once(first.clone()).chain(later);
    names
        .find(|path| path.symlink_metadata().is_err())
        .unwrap_or(first)
}

/// The time that a ring keeps.
fn ring(text: &str) -> Result<Duration, String> {
    let (least, most) = RING;
    let in_range = |time: &Duration| (least..=most).contains(time);
    Some(time(text)?)
        .filter(in_range)
        .ok_or_else(|| "expected a time from 1s to 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_a_second_at_least() {
        assert_eq!(ring("1s"), Ok(Duration::from_secs(1)));
        assert!(ring("999ms").is_err() && ring("25h").is_err());
    }
}
