//! A trace buffer that is the recorder's own: an instance of tracefs.
//!
//! 1. The journal is written, then the instance made, its clock and size set, its events switched on, and last the
//!    recording of events. The buffer that all others share is never touched.
//! 2. Pages of events are read as the kernel has them, CPU by CPU, without waiting.
//! 3. Removing the instance ends all of it. That is done when it is dropped, too.

use super::Level;
use crate::guest;
use crate::tracefs::{Tracefs, lost};
use crate::undo::{Changes, Journal, Places, Process, instance_of};
use lowmark_record::Kind;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The clock of the counters, CLOCK_MONOTONIC.
const CLOCK: &str = "mono";
/// Memory of all CPUs' buffers together, KiB.
const BUFFERS_KB: usize = 64 << 10;
/// That of one CPU at least and at most, KiB.
const BUFFER_KB: (usize, usize) = (256, 4 << 10);

/// Most pages of a CPU that are read at once: several times its buffer.
const PAGES_AT_ONCE: usize = 4 << 10;

/// Groups of events of which all are recorded that lowmark knows.
const GROUPS: [&str; 3] = ["vmscan", "compaction", "oom"];
/// Of these groups, what a recorder of a host leaves out: one a page, more than all others together, and nothing that
/// `nr_vmscan_write` does not say.
const LEFT_OUT: [Kind; 2] = [Kind::WriteFolio, Kind::Writepage];
/// What is recorded beside.
const SINGLE: [Kind; 5] = [
    Kind::BalanceDirtyPages,
    Kind::GlobalDirtyState,
    Kind::ProcessFork,
    Kind::ProcessExec,
    Kind::ProcessExit,
];

/// The events to record at a level.
pub(super) fn wanted(level: Level) -> Vec<Kind> {
    let is_wanted = |kind: &Kind| {
        let (group, name) = (kind.spec().group, kind.name());
        let of_host = GROUPS.contains(&group) && !LEFT_OUT.contains(kind) || SINGLE.contains(kind);
        let of_run = guest::EVENTS
            .iter()
            .any(|event| match event.split_once(':') {
                Some(event) => event == (group, name),
                None => *event == group,
            });
        match level {
            Level::Counters => false,
            Level::Events => of_host,
            Level::AllEvents => of_host || of_run,
        }
    };
    Kind::ALL.iter().copied().filter(is_wanted).collect()
}

/// Those of them that a kernel has.
pub(super) fn events_of(tracefs: &Tracefs, level: Level) -> Vec<Kind> {
    let here = |kind: &Kind| tracefs.root().join(event_directory(*kind)).is_dir();
    wanted(level).into_iter().filter(here).collect()
}

fn event_directory(kind: Kind) -> String {
    format!("events/{}/{}", kind.spec().group, kind.name())
}

/// How the pages of a kernel are read.
#[derive(Debug, Clone, Default)]
pub(super) struct Formats {
    pub(super) header_page: String,
    pub(super) header_event: String,
    /// By group, the formats of the events.
    pub(super) events: BTreeMap<String, Vec<String>>,
}

/// An instance that records.
#[derive(Debug)]
pub(super) struct Instance {
    tracefs: Tracefs,
    changes: Box<dyn Changes>,
    /// Whether it is there, or may be.
    made: bool,
    /// None if another journal names it.
    journal: Option<Journal>,
    path: PathBuf,
    pub(super) formats: Formats,
    /// The raw pages of each CPU.
    pipes: Vec<(u32, File)>,
    page: Vec<u8>,
    /// Events that are recorded.
    pub(super) events: usize,
}

impl Instance {
    /// Makes one, in which nothing is recorded yet but everything is set. Its journal is written into one of the places; without
    /// any there is a journal that names it.
    pub(super) fn make(
        tracefs: Tracefs,
        mut changes: Box<dyn Changes>,
        places: Option<&Places>,
        level: Level,
    ) -> io::Result<Instance> {
        let process = Process::own()?;
        let journal = places.map(|places| Journal::write(changes.as_mut(), places, &process));
        let journal = journal.transpose()?;
        let path = tracefs.instance(&instance_of(process.pid));
        let mut instance = Instance {
            tracefs,
            changes,
            made: true,
            journal,
            path,
            formats: Formats::default(),
            pipes: Vec::new(),
            page: Vec::new(),
            events: 0,
        };
        // From here on dropping it undoes what was done.
        instance
            .changes
            .make_instance(&instance.path)
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot make a trace instance: {error}"),
                )
            })?;
        instance.set_up(level)?;
        Ok(instance)
    }

    fn set_up(&mut self, level: Level) -> io::Result<()> {
        self.set("tracing_on", "0")?;
        self.set("trace_clock", CLOCK)?;
        let cpus = self.cpus()?;
        let size = (BUFFERS_KB / cpus.len().max(1)).clamp(BUFFER_KB.0, BUFFER_KB.1);
        self.set("buffer_size_kb", &size.to_string())?;
        let events = events_of(&self.tracefs, level);
        for kind in &events {
            let directory = event_directory(*kind);
            let format = fs::read_to_string(self.path.join(&directory).join("format"))?;
            let group = kind.spec().group.to_owned();
            self.formats.events.entry(group).or_default().push(format);
            self.set(&format!("{directory}/enable"), "1")?;
        }
        self.events = events.len();
        let header = |name: &str| fs::read_to_string(self.tracefs.root().join("events").join(name));
        self.formats.header_page = header("header_page")?;
        self.formats.header_event = header("header_event")?;
        self.page = vec![0; page_size(&self.formats.header_page)];
        for cpu in cpus {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            let pipe = options.open(self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")))?;
            self.pipes.push((cpu, pipe));
        }
        self.set("tracing_on", "1")
    }

    /// The CPUs that have a buffer.
    fn cpus(&self) -> io::Result<Vec<u32>> {
        let mut cpus = Vec::new();
        for entry in fs::read_dir(self.path.join("per_cpu"))? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            cpus.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    fn set(&mut self, file: &str, value: &str) -> io::Result<()> {
        self.changes
            .set(&self.path.join(file), value)
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot write {value} to {file} of a trace instance: {error}"),
                )
            })
    }

    /// Nothing more is recorded; what was can still be read.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.set("tracing_on", "0")
    }

    /// Bytes of a page.
    pub(super) fn page_size(&self) -> usize {
        self.page.len()
    }

    /// Gives every page that has events, with its CPU. So many pages of a CPU are read that its buffer is empty,
    /// unless events come faster than they are read.
    pub(super) fn read(&mut self, take: &mut dyn FnMut(u32, &[u8])) -> io::Result<()> {
        for (cpu, pipe) in &mut self.pipes {
            for _ in 0..PAGES_AT_ONCE {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => take(*cpu, &self.page[..length]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Events that the buffers lost.
    pub(super) fn lost(&self) -> io::Result<u64> {
        lost(&self.path)
    }

    /// Names of tasks by process, as far as the kernel has kept them.
    pub(super) fn comms_into(&self, comms: &mut BTreeMap<u32, String>) {
        // A kernel without it knows the names of those that were looked at all the same.
        let text =
            fs::read_to_string(self.tracefs.root().join("saved_cmdlines")).unwrap_or_default();
        for line in text.lines() {
            if let Some((pid, comm)) = line.trim_start().split_once(' ')
                && let Ok(pid) = pid.parse()
            {
                comms.insert(pid, comm.to_owned());
            }
        }
    }

    /// Removes it: tracing is as it was.
    pub(super) fn remove(mut self) -> io::Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.made) {
            return Ok(());
        }
        // An instance that is being read cannot be removed.
        self.pipes.clear();
        match self.changes.remove_instance(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let text = format!(
                    "cannot remove the trace instance {}: {error}",
                    self.path.display()
                );
                Err(io::Error::new(error.kind(), text))
            }
            _ => match self.journal.take() {
                Some(journal) => journal.remove(self.changes.as_mut()),
                None => Ok(()),
            },
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If it fails, the journal is still there, and the next run or `lowmark recover` tries again.
        let _ = self.undo();
    }
}

/// Bytes of a page of the ring buffer, of the text of `header_page`: where the data begin and how long they are.
fn page_size(header_page: &str) -> usize {
    const USUAL: usize = 4096;
    let data = header_page.lines().find(|line| line.contains(" data;"));
    let number = |label: &str| {
        let (_, rest) = data?.split_once(label)?;
        rest.split(';').next()?.trim().parse::<usize>().ok()
    };
    let size = number("offset:")
        .zip(number("size:"))
        .map(|(offset, size)| offset + size);
    size.filter(|size| (64..=4 << 20).contains(size))
        .unwrap_or(USUAL)
}

#[cfg(test)]
mod tests;
