//! The records of a perf.data one after another: `u32` kind, `u16` flags, `u16` size with these eight
//! bytes, body. Compressed ones (`perf record -z`) hold parts of a zstd stream of such records.

use crate::record::{Accounting, Endian, Error};
use crate::trace_dat::reader::Reader;
use std::io::{Read, Seek};
use zstd::stream::raw::{Decoder, Operation};

/// `PERF_RECORD_*`.
pub(crate) mod kind {
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const HEADER_TRACING_DATA: u32 = 66;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;

    /// Name of a kind, as perf prints it without its prefix, in lower case.
    pub(crate) fn name(kind: u32) -> String {
        let name = match kind {
            1 => "mmap",
            LOST => "lost",
            COMM => "comm",
            4 => "exit",
            5 => "throttle",
            6 => "unthrottle",
            FORK => "fork",
            8 => "read",
            SAMPLE => "sample",
            10 => "mmap2",
            11 => "aux",
            12 => "itrace_start",
            LOST_SAMPLES => "lost_samples",
            14 => "switch",
            15 => "switch_cpu_wide",
            16 => "namespaces",
            17 => "ksymbol",
            18 => "bpf_event",
            19 => "cgroup",
            20 => "text_poke",
            HEADER_ATTR => "header_attr",
            HEADER_TRACING_DATA => "tracing_data",
            67 => "build_id",
            FINISHED_ROUND => "finished_round",
            69 => "id_index",
            70 => "auxtrace_info",
            AUXTRACE => "auxtrace",
            73 => "thread_map",
            74 => "cpu_map",
            78 => "event_update",
            79 => "time_conv",
            80 => "header_feature",
            COMPRESSED => "compressed",
            82 => "finished_init",
            COMPRESSED2 => "compressed2",
            other => return format!("kind {other}"),
        };
        name.to_owned()
    }
}

/// Bytes before the body of a record.
const HEADER_BYTES: usize = 8;
/// Bytes read at once, more than the largest record.
const BLOCK_BYTES: usize = 1 << 18;

/// A record in the buffer of a [`Feed`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) kind: u32,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    start: usize,
    end: usize,
}

/// What stands at the begin of `bytes`.
enum Next {
    /// Not all of a record, but so many bytes of it are known to be.
    Partial(usize),
    /// Kind and size of a whole one.
    Whole(u32, usize),
    /// A size that is less than that of the header.
    Broken(usize),
}

fn next(bytes: &[u8], endian: Endian) -> Next {
    let (Some(kind), Some(size)) = (endian.u32(bytes, 0), endian.u16(bytes, 6)) else {
        return Next::Partial(HEADER_BYTES);
    };
    match usize::from(size) {
        size if size < HEADER_BYTES => Next::Broken(size),
        size if size > bytes.len() => Next::Partial(size),
        size => Next::Whole(kind, size),
    }
}

/// The records of a part of the file.
pub(crate) struct Feed {
    buffer: Vec<u8>,
    /// The next record in `buffer`.
    at: usize,
    /// Where `buffer` ends in the file, and where the records do.
    read: u64,
    end: u64,
}

impl Feed {
    /// The records between two places of the file, which are in it.
    pub(crate) fn new((start, end): (u64, u64)) -> Self {
        Feed {
            buffer: Vec::new(),
            at: 0,
            read: start,
            end,
        }
    }

    /// Where the next record begins in the file.
    pub(crate) fn position(&self) -> u64 {
        self.read - (self.buffer.len() - self.at) as u64
    }

    /// The next record; its body stays until the next call. After a record whose size cannot be there are
    /// no more, for nothing tells where one begins.
    pub(crate) fn next<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        account: &mut Accounting,
    ) -> Result<Option<Record>, Error> {
        loop {
            let offset = self.position();
            match next(&self.buffer[self.at..], reader.endian) {
                Next::Whole(kind, size) => {
                    let start = self.at + HEADER_BYTES;
                    self.at += size;
                    let end = self.at;
                    return Ok(Some(Record {
                        kind,
                        offset,
                        start,
                        end,
                    }));
                }
                Next::Broken(size) => {
                    account.damage(offset, format!("a record of {size} bytes"));
                    (self.at, self.end) = (self.buffer.len(), self.read);
                    return Ok(None);
                }
                Next::Partial(size) => {
                    if self.fill(reader)? {
                        continue;
                    }
                    if self.at < self.buffer.len() {
                        let left = self.buffer.len() - self.at;
                        let what = format!("{left} bytes of a record of {size} or more");
                        account.truncate(offset, what);
                        self.at = self.buffer.len();
                    }
                    return Ok(None);
                }
            }
        }
    }

    pub(crate) fn body(&self, record: &Record) -> &[u8] {
        &self.buffer[record.start..record.end]
    }

    /// Bytes that follow a record without being counted in its size.
    pub(crate) fn trailing(&self, record: &Record, endian: Endian) -> u64 {
        let body = self.body(record);
        match record.kind {
            kind::HEADER_TRACING_DATA => endian.u32(body, 0).map_or(0, u64::from),
            kind::AUXTRACE => endian.u64(body, 0).unwrap_or(0),
            _ => 0,
        }
    }

    /// Passes bytes that are no record.
    pub(crate) fn skip(&mut self, size: u64) {
        let buffered = (self.buffer.len() - self.at) as u64;
        if size <= buffered {
            self.at += size as usize;
        } else {
            self.at = self.buffer.len();
            self.read = self.read.saturating_add(size - buffered).min(self.end);
        }
    }

    /// Reads more behind what is left; `false` at the end.
    fn fill<S: Read + Seek>(&mut self, reader: &mut Reader<S>) -> Result<bool, Error> {
        let left = self.end.saturating_sub(self.read);
        let size = left.min(BLOCK_BYTES as u64) as usize;
        if size == 0 {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let start = self.buffer.len();
        self.buffer.resize(start + size, 0);
        reader.read_at(self.read, &mut self.buffer[start..])?;
        self.read += size as u64;
        Ok(true)
    }
}

/// The records in a stream that comes in pieces.
pub(crate) struct Inflate {
    decoder: Decoder<'static>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Inflate {
    pub(crate) fn new() -> Result<Self, String> {
        let decoder = Decoder::new().map_err(|error| error.to_string())?;
        Ok(Inflate {
            decoder,
            buffer: vec![0; BLOCK_BYTES],
            filled: 0,
        })
    }

    /// Gives each record that is whole with the next `piece`: kind and body, until `take` says that it is
    /// enough, which is told by `false`. Whatever the piece holds, no more than a block is in memory.
    pub(crate) fn push(
        &mut self,
        mut piece: &[u8],
        endian: Endian,
        take: &mut dyn FnMut(u32, &[u8]) -> bool,
    ) -> Result<bool, String> {
        loop {
            let space = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let full = space.len();
            let status = self.decoder.run_on_buffers(piece, space);
            let status = status.map_err(|error| error.to_string())?;
            piece = piece.get(status.bytes_read..).unwrap_or_default();
            self.filled += status.bytes_written;
            if !self.take_whole(endian, take)? {
                return Ok(false);
            }
            if piece.is_empty() && status.bytes_written < full {
                return Ok(true);
            }
            if status.bytes_read == 0 && status.bytes_written == 0 {
                return Err("the compressed stream does not go on".to_owned());
            }
        }
    }

    fn take_whole(
        &mut self,
        endian: Endian,
        take: &mut dyn FnMut(u32, &[u8]) -> bool,
    ) -> Result<bool, String> {
        let mut at = 0;
        loop {
            let bytes = &self.buffer[at..self.filled];
            match next(bytes, endian) {
                Next::Whole(kind, size) => {
                    if !take(kind, &bytes[HEADER_BYTES..size]) {
                        return Ok(false);
                    }
                    at += size;
                }
                Next::Partial(_) => break,
                Next::Broken(size) => return Err(format!("a compressed record of {size} bytes")),
            }
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(true)
    }
}
