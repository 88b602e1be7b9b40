//! JSON lines for other tools: one flat object a line, the task by name and process id.
//!
//! ```json
//! {"t_ns":81250,"cpu":0,"pid":29,"comm":"kswapd0","event":"mm_vmscan_kswapd_wake","nid":0,"order":0}
//! ```
//!
//! `cpu` and `pid` are absent where they are not known. The fields are those of `docs/events.md`, absent where
//! the event has none; `pid` and `comm` of a tracepoint are called `event_pid` and `event_comm`. Values of
//! counters are lines of their own: `{"t_ns":0,"counter":"nr_free_pages","value":51213}`.

use super::output::FileOutput;
use super::row::{actor, number, render};
use super::{ExportError, Exported, Exporter, Format, column_name};
use lowmark_record::event::NO_CPU;
use lowmark_record::{Event, Sink, Tables};
use std::path::Path;

/// The exporter.
pub(super) struct Json {
    out: FileOutput,
    scratch: Vec<u8>,
    last_ns: u64,
    exported: Exported,
}

impl Json {
    pub(super) fn create(path: &Path) -> Result<Json, ExportError> {
        Ok(Json {
            out: FileOutput::create(path, Format::Json.name())?,
            scratch: Vec::new(),
            last_ns: 0,
            exported: Exported::default(),
        })
    }
}

/// A text in quotes.
fn string(text: &[u8], out: &mut Vec<u8>) {
    // A string always serializes, and writing to a vector cannot fail.
    let _ = serde_json::to_writer(out, &String::from_utf8_lossy(text));
}

impl Sink for Json {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let out = &mut self.out.buffer;
        out.extend_from_slice(b"{\"t_ns\":");
        number(event.time_ns, out);
        if event.cpu != NO_CPU {
            out.extend_from_slice(b",\"cpu\":");
            number(u64::from(event.cpu), out);
        }
        let (comm, pid) = actor(tables, event.task);
        if let Some(pid) = pid {
            out.extend_from_slice(b",\"pid\":");
            number(u64::from(pid.cast_unsigned()), out);
        }
        out.extend_from_slice(b",\"comm\":");
        string(comm.as_bytes(), out);
        out.extend_from_slice(b",\"event\":\"");
        out.extend_from_slice(event.kind.name().as_bytes());
        out.push(b'"');
        for (field, value) in event.fields() {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(column_name(field).as_bytes());
            out.extend_from_slice(b"\":");
            let kind = field.spec().value;
            if kind.is_number() {
                render(kind, value, &tables.names, out);
            } else {
                self.scratch.clear();
                render(kind, value, &tables.names, &mut self.scratch);
                string(&self.scratch, out);
            }
        }
        out.extend_from_slice(b"}\n");
        self.out.flush_if_full();
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for Json {
    fn counter(&mut self, time_ns: u64, name: &str, value: u64) {
        let out = &mut self.out.buffer;
        out.extend_from_slice(b"{\"t_ns\":");
        number(time_ns, out);
        out.extend_from_slice(b",\"counter\":");
        string(name.as_bytes(), out);
        out.extend_from_slice(b",\"value\":");
        number(value, out);
        out.extend_from_slice(b"}\n");
        self.out.flush_if_full();
        self.exported.counters += 1;
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(self: Box<Self>) -> Result<Exported, ExportError> {
        let (path, bytes) = self.out.finish()?;
        Ok(Exported {
            files: vec![path],
            bytes,
            ..self.exported
        })
    }
}
