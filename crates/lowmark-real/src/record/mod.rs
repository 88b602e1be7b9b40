//! Records the system that this runs on, whatever happens on it.
//!
//! ```text
//!   counters   files under /proc and cgroups, ten times a second ──┐
//!     proc_file, row, parse, pace; tasks: the busiest processes    ├── capture ──> Recording
//!   instance   trace events, in a buffer of their own ── pages ────┤     events
//!   perf       trace events by perf(1), where tracefs gives none ──┤
//!   snapshot   settings and states, before and after ──────────────┘
//! ```
//!
//! 1. [`Session::begin`] undoes what recorders left that were killed, opens everything, takes a snapshot and looks at
//!    all counters once.
//! 2. [`Session::run`] looks again and again, until it is told to stop. With a ring, only the last minutes are kept.
//! 3. [`Session::capture`] is what was seen so far; [`Session::finish`] the same at the end, when tracing is as it was.
//!
//! Nothing is written to the system but the trace buffer of the recorder's own: without root, or where there is no
//! tracefs, perf(1) records the events if it is there and may; otherwise counters are recorded alone. A sentence says why.

mod capture;
mod counters;
mod events;
mod instance;
mod pace;
mod pages;
mod parse;
mod perf;
mod proc_file;
mod row;
mod snapshot;
mod tasks;

pub use capture::Capture;
pub(crate) use counters::Files;
pub use counters::{TICK_NS, TaskNow, Watcher};
pub(crate) use parse::stat as parse_stat;

use crate::runner::now_ns;
use crate::tracefs::{self, Tracefs};
use crate::undo::{Places, Real};
use counters::Counters;
use events::Captured;
use instance::Instance;
use lowmark_record::Recorder;
use pages::Pages;
use perf::Perf;
use rustix::mm::MlockAllFlags;
use rustix::time::ClockId;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Ticks between two times that what is too old is forgotten, and that names of tasks are asked for.
const HOUSEKEEPING_TICKS: u64 = 10;

/// What is added to the nice value of the thread that looks.
const PRIORITY: i32 = -15;

/// Where `/proc` and `/sys` are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots {
            proc: "/proc".into(),
            sys: "/sys".into(),
        }
    }
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Counters.
    Counters,
    /// Counters, and trace events of reclaim, compaction, throttled writers, the OOM killer and processes.
    Events,
    /// The same with all that the run of a guest records: huge pages, migration, and what each page has one of.
    AllEvents,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Counters => "counters",
            Level::Events => "events",
            Level::AllEvents => "all-events",
        }
    }
}

/// How to record.
#[derive(Debug)]
pub struct Options {
    /// What is recorded.
    pub level: Level,
    /// Only the last so much time is kept; all of it without.
    pub ring: Option<Duration>,
    /// Directories of cgroups that count memory, without the leading slash.
    pub cgroups: Vec<String>,
    /// What it is recorded for.
    pub command: Vec<String>,
    /// Where events wait, if all of them are kept: a directory on a disk.
    pub spool: PathBuf,
    /// Where journals are; none if a journal of this process names its trace instance already.
    pub places: Option<Places>,
    /// Where `/proc` and `/sys` are.
    pub roots: Roots,
}

/// What a session is told while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// What was seen so far is wanted.
    Capture,
    /// It is to end.
    Stop,
}

/// A recorder at work.
#[derive(Debug)]
pub struct Session {
    options: Options,
    host: String,
    release: String,
    began_ns: u64,
    began_cpu_ns: u64,
    boot_offset_ns: u64,
    before: BTreeMap<String, String>,
    counters: Counters,
    trace: Option<Trace>,
    /// The recorder of events where there is no trace buffer.
    perf: Option<Perf>,
    looks: u64,
    missed_looks: u64,
    remarks: Vec<String>,
}

/// Trace events of a session.
#[derive(Debug)]
struct Trace {
    instance: Instance,
    pages: Pages,
    /// Names of tasks by process: the kernel keeps a few at a time.
    comms: BTreeMap<u32, String>,
}

impl Session {
    /// Begins to record.
    ///
    /// # Errors
    ///
    /// `/proc/vmstat` or a cgroup that was named cannot be read. That there are no trace events is no error, but one
    /// of the [`Session::remarks`].
    pub fn begin(options: Options) -> io::Result<Session> {
        let mut remarks = Vec::new();
        let boot_offset_ns = pace::ns(ClockId::Boottime).saturating_sub(now_ns());
        let ticks = pace::ns(ClockId::Boottime) / capture::NS_PER_TICK;
        let mut counters = Counters::open(&options.roots, &options.cgroups, ticks, &mut remarks)?;
        let mut before = snapshot::files(&options.roots, &options.cgroups);
        snapshot::kernel_log_into(&mut before);
        let (trace, perf) = match options.level {
            Level::Counters => (None, None),
            Level::Events | Level::AllEvents => begin_events(&options, &mut remarks),
        };
        if before
            .get("proc/sys/kernel/task_delayacct")
            .is_some_and(|on| on.trim() == "0")
        {
            remarks.push(
                "tasks' waits for block devices are not counted by this kernel: sysctl kernel.task_delayacct is 0"
                    .to_owned(),
            );
        }
        let uname = rustix::system::uname();
        let began_ns = now_ns();
        let began_cpu_ns = pace::process_cpu_ns();
        counters.look_at_all(began_ns);
        Ok(Session {
            options,
            host: uname.nodename().to_string_lossy().into_owned(),
            release: uname.release().to_string_lossy().into_owned(),
            began_ns,
            began_cpu_ns,
            boot_offset_ns,
            before,
            counters,
            trace,
            perf,
            looks: 1,
            missed_looks: 0,
            remarks,
        })
    }

    /// What is not recorded, and why.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Number of kinds of events that are recorded; 0 if there are none.
    pub fn events(&self) -> usize {
        let by_perf = self.perf.as_ref().map_or(0, |perf| perf.events);
        let trace = self.trace.as_ref();
        trace.map_or(by_perf, |trace| trace.instance.events)
    }

    /// What events are recorded by.
    pub fn events_by(&self) -> &'static str {
        match self.perf {
            Some(_) => "perf",
            None => "tracefs",
        }
    }

    /// Looks until it is told to stop, or for so long; whenever it is told to, it gives what it has seen to `captured`.
    /// The calling thread gets a high priority, if it may; programs that it starts afterwards would have it too.
    ///
    /// # Errors
    ///
    /// Events cannot be read or kept any more.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        orders: &Receiver<Order>,
        captured: &mut dyn FnMut(Capture),
    ) -> io::Result<()> {
        // A recorder that waits for a CPU, or for its own memory to come back, misses what it is there for. Not to be
        // allowed to is no reason not to record.
        let _ = rustix::process::nice(PRIORITY);
        let _ = rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT);
        let end_ns = length.map(|length| self.began_ns.saturating_add(ns(length)));
        let mut due_ns = self.began_ns + TICK_NS;
        loop {
            let until_ns = end_ns.map_or(due_ns, |end_ns| end_ns.min(due_ns));
            let wait = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            match orders.recv_timeout(wait) {
                Ok(Order::Capture) => {
                    captured(self.capture()?);
                    continue;
                }
                Ok(Order::Stop) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody can tell it anything any more.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
            let time_ns = now_ns();
            if end_ns.is_some_and(|end_ns| time_ns >= end_ns) {
                return Ok(());
            }
            self.look(time_ns)?;
            let missed = (now_ns().saturating_sub(due_ns)) / TICK_NS;
            self.missed_looks += missed;
            due_ns += (missed + 1) * TICK_NS;
        }
    }

    /// One look at everything that is due.
    fn look(&mut self, time_ns: u64) -> io::Result<()> {
        self.counters.look(time_ns);
        let keeping_house = self.looks.is_multiple_of(HOUSEKEEPING_TICKS);
        self.looks += 1;
        if let Some(trace) = &mut self.trace {
            trace.read(time_ns, keeping_house)?;
        }
        if keeping_house && let Some(ring) = self.options.ring {
            let from_ns = time_ns.saturating_sub(ns(ring));
            self.counters.forget_before(from_ns);
            if let Some(trace) = &mut self.trace {
                trace.pages.forget_before(from_ns);
            }
        }
        Ok(())
    }

    /// What was seen so far: all of it, or what the ring holds.
    ///
    /// # Errors
    ///
    /// Events cannot be read.
    pub fn capture(&mut self) -> io::Result<Capture> {
        let until_ns = now_ns();
        self.counters.look_at_all(until_ns);
        self.looks += 1;
        let cpu_ns = pace::process_cpu_ns() - self.began_cpu_ns;
        let from_ns = match self.options.ring {
            Some(ring) => until_ns.saturating_sub(ns(ring)).max(self.began_ns),
            None => self.began_ns,
        };
        let mut notes = self.remarks.clone();
        if self.counters.tasks.overflowed {
            notes.push(
                "there were more busy tasks than are kept: later ones are missing".to_owned(),
            );
        }
        let events = match &mut self.trace {
            Some(trace) => Some(trace.captured(until_ns, &mut notes)?),
            None => None,
        };
        Ok(Capture {
            host: self.host.clone(),
            release: self.release.clone(),
            command: self.options.command.clone(),
            from_ns,
            until_ns,
            cut: from_ns > self.began_ns,
            before: self.before.clone(),
            after: snapshot::files(&self.options.roots, &self.options.cgroups),
            logs: self.counters.logs().cloned().collect(),
            tasks: self.counters.tasks.logs().cloned().collect(),
            boot_offset_ns: self.boot_offset_ns,
            events,
            perf: None,
            notes,
            recorder: Recorder {
                level: self.options.level.name().to_owned(),
                began_unix_ns: pace::ns(ClockId::Realtime).saturating_sub(until_ns - from_ns),
                wall_ns: until_ns - self.began_ns,
                cpu_ns,
                looks: self.looks,
                missed_looks: self.missed_looks,
            },
        })
    }

    /// Ends: what was seen, when tracing is as it was.
    ///
    /// # Errors
    ///
    /// Events cannot be read, or the trace buffer cannot be removed; its journal is then still there.
    pub fn finish(mut self) -> io::Result<Capture> {
        if let Some(trace) = &mut self.trace {
            trace.instance.stop()?;
        }
        let mut capture = self.capture()?;
        if let Some(trace) = self.trace {
            trace.instance.remove()?;
        }
        if let Some(perf) = self.perf {
            capture.perf = Some(perf.finish()?);
        }
        Ok(capture)
    }
}

/// Begins to record events, by tracefs or else by perf; a sentence says which if it is not tracefs, and why.
fn begin_events(options: &Options, remarks: &mut Vec<String>) -> (Option<Trace>, Option<Perf>) {
    let why = match Trace::begin(options) {
        Ok(trace) => return (Some(trace), None),
        Err(why) => why,
    };
    if options.ring.is_some() {
        remarks.push(format!(
            "counters are recorded and trace events are not: {why}; perf keeps no ring"
        ));
        return (None, None);
    }
    // Where tracefs may not be looked into, perf says whether this kernel has the events.
    let level = options.level;
    let kinds = Tracefs::find().map_or_else(
        |_| instance::wanted(level),
        |tracefs| instance::events_of(&tracefs, level),
    );
    match Perf::begin(OsStr::new("perf"), &kinds, &options.spool) {
        Ok(perf) => {
            remarks.push(format!(
                "perf records trace events, until the end only, and its CPU time is not in the recorder's: {why}"
            ));
            (None, Some(perf))
        }
        Err(error) => {
            remarks.push(format!(
                "counters are recorded and trace events are not: {why}; {error}"
            ));
            (None, None)
        }
    }
}

impl Trace {
    /// Begins to record events; why not, where they cannot be had.
    fn begin(options: &Options) -> Result<Trace, String> {
        let pages = match options.ring {
            Some(_) => Ok(Pages::ring()),
            None => tempfile::tempfile_in(&options.spool).map(Pages::in_file),
        };
        let instance = Tracefs::find().and_then(|tracefs| {
            Instance::make(
                tracefs,
                Box::new(Real),
                options.places.as_ref(),
                options.level,
            )
        });
        match instance.and_then(|instance| Ok((instance, pages?))) {
            Ok((instance, pages)) => Ok(Trace {
                instance,
                pages,
                comms: BTreeMap::new(),
            }),
            Err(error) => Err(match tracefs::locked_down() {
                Some(why) if error.kind() == io::ErrorKind::PermissionDenied => why.to_owned(),
                _ => error.to_string(),
            }),
        }
    }

    /// Reads what has come.
    fn read(&mut self, time_ns: u64, with_names: bool) -> io::Result<()> {
        let pages = &mut self.pages;
        let mut kept = Ok(());
        self.instance.read(&mut |cpu, page| {
            if kept.is_ok() {
                kept = pages.add(cpu, time_ns, page);
            }
        })?;
        if with_names {
            self.instance.comms_into(&mut self.comms);
        }
        kept
    }

    /// Everything that is kept.
    fn captured(&mut self, time_ns: u64, notes: &mut Vec<String>) -> io::Result<Captured> {
        self.read(time_ns, true)?;
        if self.pages.full {
            notes.push("there were more events than are kept".to_owned());
        }
        Ok(Captured {
            pages: self.pages.duplicate()?,
            formats: self.instance.formats.clone(),
            page_size: self.instance.page_size(),
            comms: self.comms.clone(),
            lost: self.instance.lost()?,
        })
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Takes back the priority of [`Session::run`] for the calling thread: one that writes what was captured is in no hurry.
pub fn without_hurry() {
    let raised = rustix::process::getpriority_process(None).is_ok_and(|nice| nice < 0);
    if raised {
        // Lowering it is always allowed.
        let _ = rustix::process::nice(-PRIORITY);
    }
}

/// The cgroup of a path as [`Options::cgroups`] has it: below `/sys/fs/cgroup` if it is not absolute.
pub fn cgroup(path: &Path) -> String {
    let path = Path::new("/sys/fs/cgroup").join(path);
    let text = path.to_string_lossy();
    text.trim_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
