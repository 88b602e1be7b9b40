//! perf.data, the files of `perf record`, and what it writes to a pipe.
//!
//! ```text
//!   header ──> attrs, ids, formats
//!   feed ──> (inflate ──>) record ──> sample ──> order ──> RawRecord
//! ```
//!
//! 1. `header` tells which events were recorded, what their samples consist of, and the kernel's formats
//!    (`TRACING_DATA`, which is the metadata of a trace.dat).
//! 2. `feed` gives the records one after another, `sample` finds time, CPU, task and the tracepoint's
//!    record in them, `order` sorts by time as perf does, within bounded memory.
//! 3. Names of tasks come from COMM and FORK records, which are sorted along.
//!
//! Format: `tools/perf/Documentation/perf.data-file-format.txt`. The reader is lowmark's own: the crate
//! linux-perf-data 0.13 panics on forged sizes, allocates what a file claims, and loses its place in a
//! pipe at the formats, whose bytes are not counted in their record.

mod feed;
mod header;
mod order;
mod sample;

use crate::format::Formats;
use crate::record::{Accounting, Endian, Error, RawRecord};
use crate::trace_dat::reader::Reader;
use feed::{Feed, Inflate, kind};
use header::Header;
use order::{Entry, Kind, Order};
use sample::SampleLayout;
use std::collections::HashMap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most tasks whose names are kept.
const COMMS_MAX: usize = 1 << 20;
/// Bytes of a name that are kept. The kernel gives 16, what perf finds in /proc has at most 64; a forged
/// record has room for 65,519, of which each fork would make a copy.
const COMM_BYTES_MAX: usize = 64;

/// A perf.data.
pub struct PerfData<S> {
    reader: Reader<S>,
    header: Header,
    formats: Arc<Formats>,
    comms: HashMap<u32, Box<str>>,
}

impl<S: Read + Seek> PerfData<S> {
    /// Reads what the file says of itself. A file that is cut off has no formats, for they stand at its
    /// end; its records are delivered without.
    ///
    /// # Errors
    /// What is no perf.data, sizes that no recorder writes, and events whose samples cannot be told
    /// apart.
    pub fn open(source: S) -> Result<Self, Error> {
        let mut reader = Reader::new(source)?;
        let mut header = header::read(&mut reader)?;
        let layouts = header.attrs.iter().map(|attr| attr.layout);
        if !uniform(&header) && !layouts.clone().all(|layout| layout.begins_with_id()) {
            return Err(Error::Unsupported {
                offset: 0,
                what: "events with samples of different layouts, not all with an identifier".into(),
                hint: "print it with `perf script` and read the text".to_owned(),
            });
        }
        let formats = Arc::new(std::mem::take(&mut header.metadata.formats));
        Ok(PerfData {
            reader,
            header,
            formats,
            comms: HashMap::new(),
        })
    }

    /// Byte order of the file and its records.
    pub fn endian(&self) -> Endian {
        self.reader.endian
    }

    /// Formats of the events; shared, so that they can be used while records are delivered. Empty where
    /// the file is cut off.
    pub fn formats(&self) -> &Arc<Formats> {
        &self.formats
    }

    /// Name of a task as far as the records were read: after [`for_each`](Self::for_each) its last one,
    /// before it what the kernel had kept. During a reading each record has the name of its time.
    pub fn comm(&self, tid: i32) -> Option<&str> {
        let known = self.comms.get(&(tid as u32)).map(|comm| &**comm);
        known.or_else(|| self.header.metadata.comms.get(tid))
    }

    /// Gives every record of a tracepoint in order of time until `deliver` breaks. It can be called
    /// again. Records of other kinds are counted by kind.
    ///
    /// # Errors
    /// Failures of reading. Damaged records and an early end are in the account instead.
    pub fn for_each(
        &mut self,
        deliver: &mut dyn FnMut(RawRecord<'_>) -> ControlFlow<()>,
    ) -> Result<Accounting, Error> {
        self.comms.clear();
        self.comms.insert(0, "swapper".into());
        let account = Accounting {
            truncated: self.header.truncated.clone(),
            ..Accounting::default()
        };
        let endian = self.reader.endian;
        let mut session = Session {
            header: &self.header,
            endian,
            uniform: uniform(&self.header),
            tracepoints_only: self.header.attrs.iter().all(|attr| attr.is_tracepoint()),
            order: Order::new(),
            sink: Sink {
                endian,
                comms: &mut self.comms,
                account,
                latest: 0,
                deliver,
            },
            lost: 0,
            lost_samples: 0,
        };
        let mut feed = Feed::new(self.header.data);
        let mut inflate = None;
        loop {
            let Some(record) = feed.next(&mut self.reader, &mut session.sink.account)? else {
                // Whether that was enough does not matter at the end.
                let _ = session.finish();
                break;
            };
            let body = feed.body(&record);
            let flow = match record.kind {
                kind::COMPRESSED | kind::COMPRESSED2 => {
                    let piece = compressed_piece(record.kind, body, session.endian);
                    session
                        .inflate(&mut inflate, piece, record.offset)
                        .unwrap_or_else(|error| {
                            session.sink.account.damage(record.offset, error);
                            // What follows is of the same stream: nothing more can be read.
                            let _ = session.finish();
                            ControlFlow::Break(())
                        })
                }
                _ => session.take(record.kind, body, record.offset),
            };
            if flow.is_break() {
                break;
            }
            let trailing = feed.trailing(&record, session.endian);
            feed.skip(trailing);
        }
        let mut account = session.sink.account;
        // Since Linux 6.1 one loss may be told twice: by the kernel in its buffer, and by perf from the
        // counts of the events (`PERF_FORMAT_LOST`).
        account.lost_events = session.lost.max(session.lost_samples);
        Ok(account)
    }
}

/// Whether the samples of all events consist of the same parts.
fn uniform(header: &Header) -> bool {
    let mut layouts = header.attrs.iter().map(|attr| attr.layout);
    let first = layouts.next();
    layouts.all(|layout| Some(layout) == first)
}

/// The piece of the stream in a compressed record. The newer kind says its length, for it is padded.
fn compressed_piece(kind: u32, body: &[u8], endian: Endian) -> Option<&[u8]> {
    if kind == kind::COMPRESSED {
        return Some(body);
    }
    let size = usize::try_from(endian.u64(body, 0)?).ok()?;
    body.get(8..)?.get(..size)
}

/// One reading.
struct Session<'a> {
    header: &'a Header,
    endian: Endian,
    uniform: bool,
    tracepoints_only: bool,
    order: Order,
    sink: Sink<'a>,
    lost: u64,
    lost_samples: u64,
}

/// Where the records go in order of time.
struct Sink<'a> {
    endian: Endian,
    comms: &'a mut HashMap<u32, Box<str>>,
    account: Accounting,
    latest: u64,
    deliver: &'a mut dyn FnMut(RawRecord<'_>) -> ControlFlow<()>,
}

impl Session<'_> {
    /// Takes in one record.
    #[inline]
    fn take(&mut self, kind: u32, body: &[u8], offset: u64) -> ControlFlow<()> {
        let endian = self.endian;
        if kind == kind::SAMPLE {
            return self.take_sample(body, offset);
        }
        self.sink.account.count_other(&kind::name(kind));
        let order = &mut self.order;
        match kind {
            kind::LOST => self.lost = self.lost.saturating_add(endian.u64(body, 8).unwrap_or(0)),
            kind::LOST_SAMPLES => {
                let lost = endian.u64(body, 0).unwrap_or(0);
                self.lost_samples = self.lost_samples.saturating_add(lost);
            }
            kind::COMM => {
                if let (Some(tid), Some(name)) = (endian.u32(body, 4), body.get(8..)) {
                    let name = &name[..name.len().min(COMM_BYTES_MAX)];
                    let name = &name[..memchr::memchr(0, name).unwrap_or(name.len())];
                    let key = (Kind::Comm, self.layout().trailing_time(body, endian));
                    return self
                        .order
                        .push(key, (tid, 0), name, &mut |e, d| self.sink.give(e, d));
                }
            }
            kind::FORK => {
                let (tid, parent) = (endian.u32(body, 8), endian.u32(body, 12));
                if let (Some(tid), Some(parent), Some(time)) = (tid, parent, endian.u64(body, 16)) {
                    let key = (Kind::Fork, time);
                    return order.push(key, (tid, parent), &[], &mut |e, d| self.sink.give(e, d));
                }
            }
            kind::FINISHED_ROUND => {
                return order.end_round(&mut |entry, data| self.sink.give(entry, data));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn take_sample(&mut self, body: &[u8], offset: u64) -> ControlFlow<()> {
        let attrs = &self.header.attrs;
        let attr_of = |id: u64| attrs.get(*self.header.ids.get(&id)? as usize);
        let layout = if self.uniform {
            Some(self.layout())
        } else {
            // The id comes first then.
            self.endian
                .u64(body, 0)
                .and_then(attr_of)
                .map(|attr| attr.layout)
        };
        let Some(sample) = layout.and_then(|layout| layout.parse(body, self.endian)) else {
            self.sink
                .account
                .damage(offset, "a sample that does not have the parts it should");
            return ControlFlow::Continue(());
        };
        if !self.tracepoints_only {
            let attr = sample.id.and_then(attr_of).or(attrs.first());
            if let Some(attr) = attr.filter(|attr| !attr.is_tracepoint()) {
                let kind = format!("sample of an event of type {}", attr.kind);
                self.sink.account.count_other(&kind);
                return ControlFlow::Continue(());
            }
        }
        match sample.raw {
            Some(raw) if raw.len() >= 2 => {
                let key = (Kind::Sample, sample.time);
                let task = (sample.tid, sample.cpu.unwrap_or(RawRecord::CPU_UNKNOWN));
                self.order.push(key, task, raw, &mut |entry, data| {
                    self.sink.give(entry, data)
                })
            }
            _ => {
                self.sink.account.count_other("sample without a record");
                ControlFlow::Continue(())
            }
        }
    }

    /// Takes in the records of a piece of the compressed stream.
    fn inflate(
        &mut self,
        inflate: &mut Option<Inflate>,
        piece: Option<&[u8]>,
        offset: u64,
    ) -> Result<ControlFlow<()>, String> {
        let piece = piece.ok_or("a compressed record shorter than it says")?;
        let inflate = match inflate {
            Some(inflate) => inflate,
            none => none.insert(Inflate::new()?),
        };
        let endian = self.endian;
        let take = &mut |kind, body: &[u8]| self.take(kind, body, offset).is_continue();
        Ok(if inflate.push(piece, endian, take)? {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    }

    fn finish(&mut self) -> ControlFlow<()> {
        self.order
            .finish(&mut |entry, data| self.sink.give(entry, data))
    }

    /// The layout of all, or where they differ that of the first: they agree in what ends other records.
    fn layout(&self) -> SampleLayout {
        // There is at least one, which the header has seen to.
        self.header.attrs[0].layout
    }
}

impl Sink<'_> {
    /// Delivers what is due.
    #[inline]
    fn give(&mut self, entry: &Entry, data: &[u8]) -> ControlFlow<()> {
        match entry.kind {
            Kind::Sample => return self.give_sample(entry, data),
            Kind::Comm => self.name(entry.tid, String::from_utf8_lossy(data).into()),
            Kind::Fork => {
                // A process begins with its maker's name (`thread__fork()`).
                if let Some(name) = self.comms.get(&entry.other).cloned() {
                    self.name(entry.tid, name);
                }
            }
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn give_sample(&mut self, entry: &Entry, data: &[u8]) -> ControlFlow<()> {
        let Some(event) = self.endian.u16(data, 0) else {
            return ControlFlow::Continue(());
        };
        self.account.records += 1;
        self.account.unsorted += u64::from(entry.time < self.latest);
        self.latest = self.latest.max(entry.time);
        (self.deliver)(RawRecord {
            time_ns: entry.time,
            cpu: entry.other,
            event,
            data,
            comm: self.comms.get(&entry.tid).map(|comm| &**comm),
        })
    }

    fn name(&mut self, tid: u32, name: Box<str>) {
        if self.comms.len() < COMMS_MAX || self.comms.contains_key(&tid) {
            self.comms.insert(tid, name);
        }
    }
}
