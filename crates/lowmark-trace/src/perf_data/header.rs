//! What a perf.data says of itself: events recorded, where the records stand, the kernel's formats.
//!
//! 1. A file has a header of 104 bytes with the places of its parts; the features, of which the formats
//!    are one (`TRACING_DATA`), stand behind the records (`struct perf_file_header`).
//! 2. What `perf record -o -` writes has a header of 16 bytes; all else comes as records of perf's own,
//!    before the first sample.

use super::feed::{Feed, kind};
use super::sample::SampleLayout;
use crate::record::{Accounting, Endian, Error, Flaw};
use crate::trace_dat::metadata::{self, Metadata};
use crate::trace_dat::reader::Reader;
use std::collections::HashMap;
use std::io::{Read, Seek};

/// Size of the header of what perf writes to a pipe.
const PIPE_HEADER_BYTES: u64 = 16;
/// Smallest `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`).
const ATTR_BYTES_MIN: u64 = 64;
const ATTR_BYTES_MAX: u64 = 4096;
/// Most events recorded at once.
const ATTRS_MAX: u64 = 1 << 16;
/// Most ids of events: one for each event and CPU.
const IDS_MAX: u64 = 1 << 20;
/// Feature bit of the formats (`HEADER_TRACING_DATA`).
const TRACING_DATA: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;
/// Bit of `sample_id_all` in the flags of an attr.
const SAMPLE_ID_ALL: u32 = 18;

/// One event that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attr {
    /// `PERF_TYPE_*`.
    pub(crate) kind: u32,
    pub(crate) layout: SampleLayout,
}

impl Attr {
    pub(crate) fn is_tracepoint(&self) -> bool {
        self.kind == TYPE_TRACEPOINT
    }

    fn parse(bytes: &[u8], endian: Endian) -> Option<Self> {
        let flags = endian.u64(bytes, 40)?;
        // Bit fields begin at the other end on big-endian machines.
        let flag = match endian {
            Endian::Little => SAMPLE_ID_ALL,
            Endian::Big => 63 - SAMPLE_ID_ALL,
        };
        Some(Attr {
            kind: endian.u32(bytes, 0)?,
            layout: SampleLayout {
                sample_type: endian.u64(bytes, 24)?,
                read_format: endian.u64(bytes, 32)?,
                sample_id_all: flags >> flag & 1 == 1,
            },
        })
    }
}

/// All that precedes or follows the records.
#[derive(Default)]
pub(crate) struct Header {
    /// Where the records begin and end in the file.
    pub(crate) data: (u64, u64),
    pub(crate) attrs: Vec<Attr>,
    /// Index of the attr by id of an event.
    pub(crate) ids: HashMap<u64, u32>,
    /// Ids read, each as often as it stands there: attrs of a forged file could share one long list.
    ids_read: u64,
    pub(crate) metadata: Metadata,
    /// Where the file ends early.
    pub(crate) truncated: Option<Flaw>,
}

/// Reads the header of a file or a pipe, and sets the reader's byte order.
pub(crate) fn read<S: Read + Seek>(reader: &mut Reader<S>) -> Result<Header, Error> {
    let magic = reader.bytes(8, 8, "the magic of a perf.data")?;
    reader.endian = match magic.as_slice() {
        b"PERFILE2" => Endian::Little,
        b"2ELIFREP" => Endian::Big,
        b"PERFFILE" => {
            return Err(Error::Unsupported {
                offset: 0,
                what: "a perf.data of before Linux 2.6.32".to_owned(),
                hint: "print it with the `perf script` of its time and read the text".to_owned(),
            });
        }
        other => {
            return Err(Error::Unexpected {
                offset: 0,
                expected: "the magic of a perf.data, \"PERFILE2\"".to_owned(),
                found: format!("{:?}", String::from_utf8_lossy(other)),
            });
        }
    };
    let mut header = Header::default();
    if reader.u64("the size of the header")? == PIPE_HEADER_BYTES {
        header.read_pipe(reader)?;
    } else {
        header.read_file(reader)?;
    }
    if header.attrs.is_empty() {
        return Err(Error::Unexpected {
            offset: reader.offset(),
            expected: "at least one event that was recorded".to_owned(),
            found: "none".to_owned(),
        });
    }
    Ok(header)
}

impl Header {
    fn read_file<S: Read + Seek>(&mut self, reader: &mut Reader<S>) -> Result<(), Error> {
        let offset = reader.offset();
        let attr_size = reader.u64("the size of an attr")?;
        if !(ATTR_BYTES_MIN + 16..=ATTR_BYTES_MAX).contains(&attr_size) {
            return Err(Error::Unexpected {
                offset,
                expected: "the size of an attr with the place of its ids, some 100 bytes"
                    .to_owned(),
                found: attr_size.to_string(),
            });
        }
        let attrs = read_section(reader, "the attrs")?;
        let data = read_section(reader, "the records")?;
        read_section(reader, "the types of events")?;
        let features = reader.u64("the features")?;
        self.read_attrs(reader, attrs, attr_size)?;
        let end = data.0.saturating_add(data.1);
        self.data = (data.0, end.min(reader.len()));
        if data.1 == 0 {
            self.data.1 = reader.len();
            let what = "the size of the records was never written: perf record was interrupted, and \
                        the formats that follow the records are missing";
            self.truncate(data.0, what);
        } else if end > reader.len() {
            let what = format!(
                "{} bytes are missing, the formats among them",
                end - reader.len()
            );
            self.truncate(reader.len(), &what);
        } else if features >> TRACING_DATA & 1 == 1 {
            let before = (features & ((1 << TRACING_DATA) - 1)).count_ones();
            match self.read_tracing_data(reader, end + 16 * u64::from(before)) {
                Err(Error::Truncated { end, what, .. }) => {
                    self.truncate(end, &format!("{what} is missing"));
                }
                other => return other,
            }
        }
        Ok(())
    }

    fn truncate(&mut self, offset: u64, what: &str) {
        let what = what.to_owned();
        self.truncated.get_or_insert(Flaw { offset, what });
    }

    fn read_attrs<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        (place, size): (u64, u64),
        attr_size: u64,
    ) -> Result<(), Error> {
        let count = size / attr_size;
        check(count, ATTRS_MAX, "the number of attrs", place)?;
        for index in 0..count {
            reader.seek(place.saturating_add(index * attr_size), "an attr")?;
            let bytes = reader.bytes(attr_size - 16, ATTR_BYTES_MAX, "an attr")?;
            let ids = read_section(reader, "the ids of an attr")?;
            let attr = Attr::parse(&bytes, reader.endian);
            self.add_attr(attr, reader.offset())?;
            reader.seek(ids.0, "the ids of an attr")?;
            check(ids.1 / 8, IDS_MAX, "the number of ids", ids.0)?;
            for _ in 0..ids.1 / 8 {
                let id = reader.u64("the ids of an attr")?;
                self.add_id(id, reader.offset())?;
            }
        }
        Ok(())
    }

    fn add_attr(&mut self, attr: Option<Attr>, offset: u64) -> Result<(), Error> {
        check(
            self.attrs.len() as u64 + 1,
            ATTRS_MAX,
            "the number of attrs",
            offset,
        )?;
        let attr = attr.ok_or_else(|| Error::Unexpected {
            offset,
            expected: format!("an attr of at least {ATTR_BYTES_MIN} bytes"),
            found: "fewer".to_owned(),
        })?;
        self.attrs.push(attr);
        Ok(())
    }

    /// Takes in an id of the last attr.
    fn add_id(&mut self, id: u64, offset: u64) -> Result<(), Error> {
        self.ids_read += 1;
        check(self.ids_read, IDS_MAX, "the number of ids", offset)?;
        self.ids
            .insert(id, self.attrs.len().saturating_sub(1) as u32);
        Ok(())
    }

    /// The formats, whose place stands at `place`.
    fn read_tracing_data<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        place: u64,
    ) -> Result<(), Error> {
        reader.seek(place, "the place of the formats")?;
        let (place, _) = read_section(reader, "the place of the formats")?;
        reader.seek(place, "the formats")?;
        self.read_formats(reader)
    }

    fn read_formats<S: Read + Seek>(&mut self, reader: &mut Reader<S>) -> Result<(), Error> {
        let endian = reader.endian;
        let start = metadata::start(reader)?;
        // perf writes the names of tasks since its version 0.6.
        let with_comms = start
            .version
            .parse::<f64>()
            .is_ok_and(|version| version >= 0.6);
        let result = self.metadata.read_all(reader, with_comms);
        reader.endian = endian;
        result
    }

    /// Passes the records before the first sample.
    fn read_pipe<S: Read + Seek>(&mut self, reader: &mut Reader<S>) -> Result<(), Error> {
        self.data = (PIPE_HEADER_BYTES, reader.len());
        let mut feed = Feed::new(self.data);
        // What is damaged before the first sample is found again by whoever reads the records.
        let mut ignored = Accounting::default();
        while let Some(record) = feed.next(reader, &mut ignored)? {
            let body = feed.body(&record);
            match record.kind {
                kind::HEADER_ATTR => {
                    let attr = Attr::parse(body, reader.endian);
                    self.add_attr(attr, record.offset)?;
                    let size = reader.endian.u32(body, 4).unwrap_or(0) as usize;
                    let ids = body.get(size..).unwrap_or_default();
                    for at in (0..ids.len()).step_by(8) {
                        if let Some(id) = reader.endian.u64(ids, at) {
                            self.add_id(id, record.offset)?;
                        }
                    }
                }
                kind::HEADER_TRACING_DATA => {
                    let size = feed.trailing(&record, reader.endian);
                    reader.seek(feed.position(), "the formats")?;
                    self.read_formats(reader)?;
                    feed.skip(size);
                }
                kind::SAMPLE | kind::COMPRESSED | kind::COMPRESSED2 => break,
                _ => {
                    let size = feed.trailing(&record, reader.endian);
                    feed.skip(size);
                }
            }
        }
        Ok(())
    }
}

/// `u64` place, `u64` size.
fn read_section<S: Read + Seek>(reader: &mut Reader<S>, what: &str) -> Result<(u64, u64), Error> {
    Ok((reader.u64(what)?, reader.u64(what)?))
}

fn check(size: u64, limit: u64, what: &str, offset: u64) -> Result<(), Error> {
    if size <= limit {
        return Ok(());
    }
    let what = what.to_owned();
    Err(Error::TooLarge {
        offset,
        what,
        size,
        limit,
    })
}
