//! trace.dat, the files of trace-cmd, versions 6 and 7.
//!
//! ```text
//!   6: start, metadata, CPUs, options, table of CPU data, pages         one after another
//!   7: start, chain of option sections ──> sections, BUFFER options ──> pages or compressed chunks
//! ```
//!
//! 1. `open` reads all that is not records: `metadata` (formats, layout of pages, names of tasks),
//!    `options` and where each CPU's data of each buffer stand (`sections` for version 7).
//! 2. `for_each` reads each CPU as a `stream` and takes the earliest record of all, of two at one time
//!    that of the lower CPU. It holds a block of each CPU in memory, nothing else.
//!
//! `head` writes the description of version 6.
//!
//! Formats: `trace-cmd.dat.v6(5)`, `trace-cmd.dat.v7(5)`. No size in a file is believed: what does not
//! fit the file is an error or, where records can be delivered all the same, noted in the account.

mod codec;
mod head;
pub(crate) mod metadata;
mod options;
pub(crate) mod reader;
mod sections;
mod stream;

pub use head::Head;
pub use options::Options;

use crate::format::Formats;
use crate::record::{Accounting, Endian, Error, Flaw, RawRecord};
use crate::ring_buffer::Layout;
use codec::Codec;
use metadata::{Comms, Metadata, Start};
use options::id;
use reader::Reader;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;
use stream::{Extent, Held, Stream};

/// Most CPUs of one buffer; the largest kernels have `NR_CPUS` 8192.
const CPUS_MAX: u32 = 8192;
/// Most CPUs of all buffers together.
const STREAMS_MAX: usize = 1 << 16;
/// Longest option, bytes: a BUFFER of the most CPUs.
const OPTION_BYTES_MAX: u64 = 1 << 20;

/// A buffer of the recording: the main one or that of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the instance, empty for the main buffer.
    pub name: String,
    /// Its clock, empty if the file does not say.
    pub clock: String,
    /// Size of its pages, bytes.
    pub page_size: u32,
    /// Place of the section before its data, 0 in version 6.
    section: u64,
    compressed: bool,
    extents: Vec<Extent>,
}

impl Buffer {
    /// Whether it has no data for any CPU.
    pub fn is_empty(&self) -> bool {
        self.extents.iter().all(|extent| extent.size == 0)
    }
}

/// A trace.dat.
pub struct TraceDat<S> {
    reader: Reader<S>,
    version: u8,
    formats: Arc<Formats>,
    comms: Comms,
    layout: Layout,
    codec: Codec,
    options: Options,
    buffers: Vec<Buffer>,
    /// Where the description ends early.
    truncated: Option<Flaw>,
}

impl<S: Read + Seek> TraceDat<S> {
    /// Reads the description at the begin of `source`. The whole of it must be there; a file that is cut
    /// off later is read as far as it goes.
    ///
    /// # Errors
    /// What is no trace.dat, another version, an unknown compression, a latency trace, or sizes that no
    /// recorder writes.
    pub fn open(source: S) -> Result<Self, Error> {
        let mut reader = Reader::new(source)?;
        let start = metadata::start(&mut reader)?;
        let mut trace = TraceDat {
            layout: Layout::of_long(start.endian, start.long_size),
            reader,
            version: 0,
            formats: Arc::default(),
            comms: Comms::default(),
            codec: Codec::None,
            options: Options::default(),
            buffers: Vec::new(),
            truncated: None,
        };
        let metadata = match start.version.as_str() {
            "6" => trace.open_6(&start)?,
            "7" => trace.open_7()?,
            other => {
                return Err(Error::Unsupported {
                    offset: metadata::MAGIC.len() as u64,
                    what: format!("the version of the file is {other:?}, read are 6 and 7"),
                    hint: "convert it with `trace-cmd convert`".to_owned(),
                });
            }
        };
        if let Some(layout) = metadata.layout {
            trace.layout = layout;
        }
        trace.formats = Arc::new(metadata.formats);
        trace.comms = metadata.comms;
        trace.check_buffers()?;
        Ok(trace)
    }

    /// Version of the file: 6 or 7.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Byte order of the file and its records.
    pub fn endian(&self) -> Endian {
        self.layout.endian
    }

    /// Formats of the events; shared, so that they can be used while records are delivered.
    pub fn formats(&self) -> &Arc<Formats> {
        &self.formats
    }

    /// Name of a task when the recording ended, if the kernel had kept it.
    pub fn comm(&self, pid: i32) -> Option<&str> {
        self.comms.get(pid)
    }

    /// What the options say.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The buffers, the main one first.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Gives every record of all CPUs of all buffers in order of time, of two at one time that of the
    /// lower CPU first, until `deliver` breaks. It can be called again.
    ///
    /// # Errors
    /// Failures of reading, and chunks too large to be held. Damaged pages and an early end are in the
    /// account instead.
    pub fn for_each(
        &mut self,
        deliver: &mut dyn FnMut(RawRecord<'_>) -> ControlFlow<()>,
    ) -> Result<Accounting, Error> {
        let mut account = Accounting {
            overwritten: self.options.overwritten,
            truncated: self.truncated.clone(),
            ..Accounting::default()
        };
        let count = self.buffers.iter().map(|buffer| buffer.extents.len()).sum();
        let mut held = Held::new(count);
        let mut streams = Vec::with_capacity(count);
        let mut queue = BinaryHeap::with_capacity(count);
        for buffer in &self.buffers {
            let codec = buffer.compressed.then_some(self.codec);
            for extent in buffer.extents.iter().filter(|extent| extent.size > 0) {
                let (layout, page) = (self.layout, buffer.page_size);
                let reader = &mut self.reader;
                let opened = Stream::open(reader, *extent, layout, page, codec, &mut account)?;
                streams.push(opened);
            }
        }
        for (index, stream) in streams.iter_mut().enumerate() {
            stream.advance(&mut self.reader, &mut held, &mut account)?;
            if let Some((time, _)) = stream.head() {
                queue.push(Reverse((time, stream.cpu, index)));
            }
        }
        let common_pid = self.common_pid_at();
        let endian = self.layout.endian;
        let mut latest = 0;
        // The task of the record before: one runs for many records.
        let (mut last_pid, mut last_comm) = (0, self.comms.get(0));
        while let Some(Reverse((_, cpu, index))) = queue.pop() {
            let stream = &mut streams[index];
            while let Some((time, data)) = stream.head() {
                let key = Reverse((time, cpu, index));
                if queue.peek().is_some_and(|other| *other > key) {
                    queue.push(key);
                    break;
                }
                // Records are at least a word long, but the id may lie behind a cut.
                if let Some(event) = endian.u16(data, 0) {
                    let pid = common_pid.and_then(|at| endian.u32(data, at));
                    if let Some(pid) = pid.map(|pid| pid as i32).filter(|pid| *pid != last_pid) {
                        (last_pid, last_comm) = (pid, self.comms.get(pid));
                    }
                    let comm = if pid.is_some() { last_comm } else { None };
                    let time_ns = self.options.time_ns(time);
                    account.records += 1;
                    account.unsorted += u64::from(time < latest);
                    latest = latest.max(time);
                    let record = RawRecord {
                        time_ns,
                        cpu,
                        event,
                        data,
                        comm,
                    };
                    if deliver(record).is_break() {
                        return Ok(account);
                    }
                } else {
                    account.damage(self.reader.offset(), "a record without an id");
                }
                stream.advance(&mut self.reader, &mut held, &mut account)?;
            }
        }
        Ok(account)
    }

    /// Where every record has its pid, if the formats agree with those of all kernels.
    fn common_pid_at(&self) -> Option<usize> {
        let pid = self.formats.iter().next()?.field("common_pid")?;
        (pid.size == 4).then_some(pid.offset as usize)
    }

    /// The rest of version 6, all of it one after another.
    fn open_6(&mut self, start: &Start) -> Result<Metadata, Error> {
        let mut metadata = Metadata::default();
        metadata.read_all(&mut self.reader, true)?;
        let mut cpus = self.reader.u32("the number of CPUs")?;
        let cpus_at = self.reader.offset();
        let mut instances = Vec::new();
        let mut tag = self.read_tag()?;
        if tag == TAG_OPTIONS {
            self.read_options_6(&mut instances)?;
            tag = self.read_tag()?;
        }
        check_tag(&tag, self.reader.offset())?;
        // Where more CPUs have data than the file was begun for, the option says so.
        if let Some(count) = self.options.cpu_count.filter(|count| *count > 0) {
            cpus = count;
        }
        check_cpus(cpus, cpus_at)?;
        self.version = 6;
        self.read_buffer_6(String::new(), cpus, start.page_size)?;
        for (name, offset) in instances {
            self.reader.seek(offset, "the data of an instance")?;
            let tag = self.read_tag()?;
            check_tag(&tag, self.reader.offset())?;
            self.read_buffer_6(name, cpus, start.page_size)?;
        }
        Ok(metadata)
    }

    fn read_tag(&mut self) -> Result<[u8; TAG_BYTES], Error> {
        let bytes = self
            .reader
            .bytes(TAG_BYTES as u64, u64::MAX, "the kind of what follows")?;
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&bytes);
        Ok(tag)
    }

    /// Options up to the closing id 0; the names and places of instances go to `instances`.
    fn read_options_6(&mut self, instances: &mut Vec<(String, u64)>) -> Result<(), Error> {
        let endian = self.reader.endian;
        loop {
            let option = self.reader.u16("an option")?;
            if option == id::DONE {
                return Ok(());
            }
            let size = self.reader.u32("the size of an option")?;
            let offset = self.reader.offset();
            let data = self
                .reader
                .bytes(size.into(), OPTION_BYTES_MAX, "an option")?;
            match (option, endian.u64(&data, 0)) {
                (id::BUFFER, Some(place)) => {
                    let name = options::text(data.get(8..).unwrap_or_default());
                    instances.push((name, place));
                    check_streams(instances.len(), offset)?;
                }
                _ => self.options.read(option, &data, endian),
            }
        }
    }

    /// The table of a buffer's CPUs: `u64` offset, `u64` size for each.
    fn read_buffer_6(&mut self, name: String, cpus: u32, page_size: u32) -> Result<(), Error> {
        let total: usize = self.buffers.iter().map(|buffer| buffer.extents.len()).sum();
        check_streams(total + cpus as usize, self.reader.offset())?;
        let mut extents = Vec::new();
        for cpu in 0..cpus {
            let offset = self.reader.u64("the place of a CPU's data")?;
            let size = self.reader.u64("the size of a CPU's data")?;
            extents.push(Extent { cpu, offset, size });
        }
        let clock = self.options.clock.clone();
        self.buffers.push(Buffer {
            name,
            clock,
            page_size,
            section: 0,
            compressed: false,
            extents,
        });
        Ok(())
    }

    /// Data of two CPUs cannot share bytes of the file. Without this a small file could ask for much
    /// memory: one block for each of many CPUs.
    fn check_buffers(&self) -> Result<(), Error> {
        let len = self.reader.len();
        let in_file = |extent: &Extent| {
            let end = extent.offset.saturating_add(extent.size).min(len);
            end.saturating_sub(extent.offset)
        };
        let extents = || self.buffers.iter().flat_map(|buffer| &buffer.extents);
        if extents().next().is_none() && self.truncated.is_none() {
            let offset = self.reader.offset();
            let latency_only = self.options.skipped.contains_key(&id::BUFFER_TEXT);
            return Err(if latency_only {
                latency(offset)
            } else {
                no_cpus(offset)
            });
        }
        let size = extents().map(in_file).fold(0, u64::saturating_add);
        if size <= len {
            return Ok(());
        }
        let what = "the data of all CPUs together in bytes".to_owned();
        Err(Error::TooLarge {
            offset: self.reader.offset(),
            what,
            size,
            limit: len,
        })
    }
}

const TAG_BYTES: usize = 10;
const TAG_OPTIONS: [u8; TAG_BYTES] = *b"options  \0";
const TAG_FLYRECORD: [u8; TAG_BYTES] = *b"flyrecord\0";
const TAG_LATENCY: [u8; TAG_BYTES] = *b"latency  \0";

/// Whether records follow a tag that ends at `end`.
fn check_tag(tag: &[u8; TAG_BYTES], end: u64) -> Result<(), Error> {
    let offset = end.saturating_sub(TAG_BYTES as u64);
    match *tag {
        TAG_FLYRECORD => Ok(()),
        TAG_LATENCY => Err(latency(offset)),
        other => Err(Error::Unexpected {
            offset,
            expected: "\"flyrecord\"".to_owned(),
            found: format!("{:?}", String::from_utf8_lossy(&other)),
        }),
    }
}

fn latency(offset: u64) -> Error {
    Error::Unsupported {
        offset,
        what: "the file holds the text of a latency tracer and no records".to_owned(),
        hint: "print it with `trace-cmd report` and read the text".to_owned(),
    }
}

/// Whether a buffer can have so many CPUs.
fn check_cpus(cpus: u32, offset: u64) -> Result<(), Error> {
    match cpus {
        0 => Err(no_cpus(offset)),
        1..=CPUS_MAX => Ok(()),
        _ => Err(Error::TooLarge {
            offset,
            what: "the number of CPUs".to_owned(),
            size: cpus.into(),
            limit: CPUS_MAX.into(),
        }),
    }
}

fn no_cpus(offset: u64) -> Error {
    Error::Unexpected {
        offset,
        expected: "data of at least one CPU".to_owned(),
        found: "none".to_owned(),
    }
}

fn check_streams(count: usize, offset: u64) -> Result<(), Error> {
    if count <= STREAMS_MAX {
        return Ok(());
    }
    Err(Error::TooLarge {
        offset,
        what: "the number of CPUs of all buffers".to_owned(),
        size: count as u64,
        limit: STREAMS_MAX as u64,
    })
}
