//! CSV after RFC 4180: a directory with one file for each tracepoint that occurs.
//!
//! Columns are `t_ns,cpu,pid,comm` and then every field that the tracepoint has in any era, so that files of
//! different kernels have the same columns; a value that an event does not have is empty. Values of counters
//! are in `counters.csv`: `t_ns,counter,value`. Lines end in CR LF, as the RFC says.

use super::output::DirectoryOutput;
use super::row::{COMMON_COLUMNS, actor, columns, number, render};
use super::{ExportError, Exported, Exporter, Format};
use lowmark_record::event::NO_CPU;
use lowmark_record::{Event, Kind, Sink, Tables};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Bytes that are collected for a table before they are written.
const BUFFER: usize = 64 << 10;

/// Name of the table of counters.
const COUNTERS: &str = "counters";

/// One file.
struct Table {
    name: &'static str,
    file: File,
    buffer: Vec<u8>,
}

/// The exporter.
pub(super) struct Csv {
    directory: DirectoryOutput,
    /// By tracepoint; the last is of counters.
    tables: Vec<Option<Table>>,
    scratch: Vec<u8>,
    last_ns: u64,
    exported: Exported,
    error: Option<ExportError>,
}

impl Csv {
    pub(super) fn create(path: &Path) -> Result<Csv, ExportError> {
        Ok(Csv {
            directory: DirectoryOutput::create(path, Format::Csv)?,
            tables: (0..=Kind::ALL.len()).map(|_| None).collect(),
            scratch: Vec::new(),
            last_ns: 0,
            exported: Exported::default(),
            error: None,
        })
    }

    /// Creates a table that does not exist yet.
    #[cold]
    fn open(&mut self, index: usize) {
        let kind = Kind::ALL.get(index);
        let name = kind.map_or(COUNTERS, |kind| kind.name());
        let own: Vec<&str> = match kind {
            Some(kind) => COMMON_COLUMNS
                .into_iter()
                .chain(columns(*kind).map(|(name, _)| name))
                .collect(),
            None => vec!["t_ns", "counter", "value"],
        };
        match self.directory.file(name) {
            Ok(file) => {
                self.tables[index] = Some(Table {
                    name,
                    file,
                    buffer: format!("{}\r\n", own.join(",")).into_bytes(),
                });
            }
            Err(error) => self.error = Some(self.directory.error(name, error)),
        }
    }

    /// The table of this index, opened if it is the first time; none after an error.
    fn table(&mut self, index: usize) -> Option<&mut Table> {
        if self.error.is_none() && self.tables[index].is_none() {
            self.open(index);
        }
        if self.error.is_some() {
            return None;
        }
        self.tables[index].as_mut()
    }

    fn flush(&mut self, index: usize, at_least: usize) {
        let Some(table) = &mut self.tables[index] else {
            return;
        };
        if table.buffer.len() >= at_least && self.error.is_none() {
            if let Err(error) = table.file.write_all(&table.buffer) {
                self.error = Some(self.directory.error(table.name, error));
            }
            table.buffer.clear();
        }
    }
}

/// A value, in quotes if it needs them.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    if !text
        .iter()
        .any(|b| matches!(b, b',' | b'"' | b'\r' | b'\n'))
    {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &b in text {
        if b == b'"' {
            out.push(b'"');
        }
        out.push(b);
    }
    out.push(b'"');
}

impl Sink for Csv {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let index = event.kind as usize;
        let Some(table) = self.table(index) else {
            return;
        };
        let out = &mut table.buffer;
        number(event.time_ns, out);
        out.push(b',');
        if event.cpu != NO_CPU {
            number(u64::from(event.cpu), out);
        }
        out.push(b',');
        let (comm, pid) = actor(tables, event.task);
        if let Some(pid) = pid {
            number(u64::from(pid.cast_unsigned()), out);
        }
        out.push(b',');
        quoted(comm.as_bytes(), out);
        for field in event.kind.fields() {
            out.push(b',');
            let Some(value) = event.get(*field) else {
                continue;
            };
            let kind = field.spec().value;
            if kind.is_number() {
                render(kind, value, &tables.names, out);
            } else {
                scratch.clear();
                render(kind, value, &tables.names, &mut scratch);
                quoted(&scratch, out);
            }
        }
        out.extend_from_slice(b"\r\n");
        self.flush(index, BUFFER);
        self.scratch = scratch;
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for Csv {
    fn counter(&mut self, time_ns: u64, name: &str, value: u64) {
        let index = Kind::ALL.len();
        let Some(table) = self.table(index) else {
            return;
        };
        let out = &mut table.buffer;
        number(time_ns, out);
        out.push(b',');
        quoted(name.as_bytes(), out);
        out.push(b',');
        number(value, out);
        out.extend_from_slice(b"\r\n");
        self.flush(index, BUFFER);
        self.exported.counters += 1;
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn finish(mut self: Box<Self>) -> Result<Exported, ExportError> {
        for index in 0..self.tables.len() {
            self.flush(index, 1);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        self.tables.clear();
        let (files, bytes) = self.directory.finish()?;
        Ok(Exported {
            files,
            bytes,
            ..self.exported
        })
    }
}
