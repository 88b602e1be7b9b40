//! trace.dat, version 6, for `trace-cmd report` and KernelShark.
//!
//! 1. Events go to their CPU's stream of ring-buffer pages (`pages.rs`), which wait in a temporary file: the
//!    pages of one CPU stand together in a trace.dat, and how many there are is known at the end.
//! 2. `finish` writes what stands before them: how pages look, the formats of the tracepoints that the era
//!    has (`formats.rs`), names of tasks; then the pages.
//!
//! A record has a member for each field of the text of its era, and the format says how the text is made of
//! them, so that trace-cmd writes what the kernel would. Numbers of events and bits of allocation flags are our
//! own, which the formats say too. Flag columns are left out. A process id has one name in the file, the last.

mod formats;
mod pages;

use super::output::FileOutput;
use super::row::actor;
use super::{ExportError, Exported, Exporter, Format, Options, count};
use crate::record::Endian;
use crate::trace_dat::Head;
use formats::Layout;
use lowmark_record::event::NO_CPU;
use lowmark_record::{Event, Kind, Sink, Tables};
use pages::{PAGE_BYTES, Pages};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Most CPUs that are told apart; events of others go to the first.
const CPUS_MAX: u32 = 4096;

/// The `header_page` file of a kernel with eight bytes a long.
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

/// The `header_event` file.
const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

/// The exporter.
pub(super) struct TraceDat {
    out: FileOutput,
    /// By tracepoint, if the era has it.
    layouts: Vec<Option<Layout>>,
    pages: Pages,
    /// Names of tasks by process id.
    comms: BTreeMap<i32, String>,
    record: Vec<u8>,
    last_ns: u64,
    /// Of the temporary file.
    error: Option<io::Error>,
    exported: Exported,
}

impl TraceDat {
    pub(super) fn create(path: &Path, options: &Options) -> Result<TraceDat, ExportError> {
        let out = FileOutput::create(path, Format::TraceDat.name())?;
        let spool = tempfile::tempfile().map_err(|source| ExportError::Create {
            path: std::env::temp_dir(),
            source,
        })?;
        let layout = |kind: &Kind| {
            let exists = kind.exists_in(options.release);
            exists.then(|| Layout::new(*kind, options.release))
        };
        Ok(TraceDat {
            out,
            layouts: Kind::ALL.iter().map(layout).collect(),
            pages: Pages::new(spool),
            comms: BTreeMap::new(),
            record: Vec::new(),
            last_ns: 0,
            error: None,
            exported: Exported::default(),
        })
    }

    /// Process id of an event's task; its name is kept.
    fn pid(&mut self, event: &Event, tables: &Tables) -> i32 {
        let (comm, pid) = actor(tables, event.task);
        // The kernel always knows a process id; 0 is nobody's.
        let pid = pid.unwrap_or(0);
        match self.comms.get_mut(&pid) {
            Some(known) if known == comm => {}
            Some(known) => {
                let before = std::mem::replace(known, comm.to_owned());
                self.exported.renamed.insert(before, comm.to_owned());
            }
            None => {
                self.comms.insert(pid, comm.to_owned());
            }
        }
        pid
    }

    /// Everything before the pages.
    fn head(&self) -> Head {
        let mut formats: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for layout in self.layouts.iter().flatten() {
            let group = formats.entry(layout.system().to_owned()).or_default();
            group.push(layout.text());
        }
        let comm = |(pid, comm): (&i32, &String)| format!("{pid} {}\n", comm.replace('\n', " "));
        let streams = self.pages.streams().iter();
        Head {
            endian: Endian::Little,
            long_size: 8,
            page_size: PAGE_BYTES as u32,
            header_page: HEADER_PAGE.to_owned(),
            header_event: HEADER_EVENT.to_owned(),
            formats,
            comms: self.comms.iter().map(comm).collect(),
            pages: streams.map(|pages| pages.len() as u64).collect(),
        }
    }

    /// Closes the streams and writes everything.
    fn write(&mut self) -> io::Result<()> {
        self.pages.close()?;
        let head = self.head().bytes();
        self.out.buffer.extend_from_slice(&head);
        let out = &mut self.out;
        self.pages.for_each(|page| {
            out.buffer.extend_from_slice(page);
            out.flush_if_full();
        })
    }
}

impl Sink for TraceDat {
    fn event(&mut self, event: &Event, tables: &Tables) {
        if self.failed() {
            return;
        }
        let pid = self.pid(event, tables);
        let Some(layout) = &self.layouts[event.kind as usize] else {
            count(&mut self.exported.not_in_era, event.kind);
            return;
        };
        self.record.clear();
        layout.record(event, pid, &tables.names, &mut self.record);
        let cpu = match event.cpu {
            NO_CPU | CPUS_MAX.. => 0,
            cpu => cpu,
        };
        self.error = self.pages.add(cpu, event.time_ns, &self.record).err();
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for TraceDat {
    fn failed(&self) -> bool {
        self.error.is_some() || self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> Result<Exported, ExportError> {
        let spooled = match self.error.take() {
            Some(error) => Err(error),
            None => self.write(),
        };
        spooled.map_err(|source| ExportError::Write {
            path: std::env::temp_dir(),
            source,
        })?;
        let (path, bytes) = self.out.finish()?;
        Ok(Exported {
            files: vec![path],
            bytes,
            ..self.exported
        })
    }
}
