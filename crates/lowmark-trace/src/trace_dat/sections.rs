//! Version 7: sections anywhere in the file, found by a chain of option sections.
//!
//! 1. Compression's name and version and the place of the first option section follow the start.
//! 2. An option section ends with the place of the next, 0 for none. A file that is cut off may lack
//!    the last: then there is no telling where the records stand.
//! 3. Options of sections give their places; a section has a header (`u16` id, `u16` flags, `u32` name,
//!    `u64` size) and may be compressed as a whole.
//! 4. A BUFFER option says where the data of its CPUs stand.

use super::codec::Codec;
use super::metadata::{Metadata, check_page_size};
use super::options::{Options, id};
use super::reader::Reader;
use super::stream::Extent;
use super::{Buffer, OPTION_BYTES_MAX, TraceDat, check_cpus, check_streams};
use crate::record::{Endian, Error, Flaw};
use std::collections::HashSet;
use std::io::{Cursor, Read, Seek};

/// Flag of a compressed section.
const COMPRESSED: u16 = 1;
/// Largest section decompressed, bytes.
const SECTION_BYTES_MAX: u64 = 32 << 20;
/// Bytes of all option sections together, decompressed.
const OPTIONS_BYTES_MAX: u64 = 64 << 20;
/// Most option sections followed; trace-cmd writes one, and one per buffer.
const OPTION_SECTIONS_MAX: u32 = 1 << 16;

impl<S: Read + Seek> TraceDat<S> {
    /// The rest of version 7.
    pub(super) fn open_7(&mut self) -> Result<Metadata, Error> {
        self.version = 7;
        let offset = self.reader.offset();
        let name = self.reader.string("the name of the compression")?;
        self.reader.string("the version of the compression")?;
        self.codec = Codec::named(&name).ok_or_else(|| Error::Unsupported {
            offset,
            what: format!("the file is compressed by {name:?}; read are zstd, zlib and none"),
            hint: "convert it with `trace-cmd convert --compression zstd`".to_owned(),
        })?;
        let mut next = self.reader.u64("the place of the first options")?;
        let mut found = Found::default();
        let mut passed = HashSet::new();
        for number in 0..OPTION_SECTIONS_MAX {
            if !passed.insert(next) {
                return Err(Error::Unexpected {
                    offset: next,
                    expected: "an end of the option sections".to_owned(),
                    found: "a ring: the last one leads back here".to_owned(),
                });
            }
            match self.read_option_section(next, &mut found) {
                Ok(0) => return self.take(found),
                Ok(following) => next = following,
                Err(Error::Truncated { end, what, .. }) if number > 0 => {
                    let what = format!("{what} are missing, the place of some records with them");
                    self.truncated = Some(Flaw { offset: end, what });
                    return self.take(found);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Unexpected {
            offset: next,
            expected: "an end of the option sections".to_owned(),
            found: format!("more than {OPTION_SECTIONS_MAX}"),
        })
    }

    /// Reads the options at `place`; gives the place of the next ones.
    fn read_option_section(&mut self, place: u64, found: &mut Found) -> Result<u64, Error> {
        match self.section(place, id::DONE, "the options")? {
            Some(body) => {
                found.count(body.len() as u64, place)?;
                let mut part = Reader::of_part(Cursor::new(body), place, self.reader.endian)?;
                found.read(&mut part)
            }
            None => found.read(&mut self.reader),
        }
    }

    /// Goes to the body of a section, or gives it if it was compressed.
    fn section(&mut self, place: u64, id: u16, what: &str) -> Result<Option<Vec<u8>>, Error> {
        self.reader.seek(place, what)?;
        let found = self.reader.u16(what)?;
        if found != id {
            return Err(Error::Unexpected {
                offset: place,
                expected: format!("{what}, a section of id {id}"),
                found: format!("id {found}"),
            });
        }
        let flags = self.reader.u16(what)?;
        self.reader.skip(4 + 8, what)?;
        if flags & COMPRESSED == 0 {
            return Ok(None);
        }
        let packed = self.reader.u32(what)?;
        let offset = self.reader.offset();
        let size = u64::from(self.reader.u32(what)?);
        if size > SECTION_BYTES_MAX {
            let what = format!("the size of {what} in bytes");
            return Err(Error::TooLarge {
                offset,
                what,
                size,
                limit: SECTION_BYTES_MAX,
            });
        }
        let data = self.reader.bytes(packed.into(), SECTION_BYTES_MAX, what)?;
        let body = self.codec.decompress(&data, size as usize);
        body.map(Some).map_err(|error| Error::Unexpected {
            offset: place,
            expected: format!("{what}, compressed"),
            found: error,
        })
    }

    /// Reads the sections that were found, and takes over the options and buffers.
    fn take(&mut self, found: Found) -> Result<Metadata, Error> {
        let mut metadata = Metadata::default();
        for &(id, place) in &found.sections {
            match self.section(place, id, section_name(id))? {
                Some(body) => {
                    let endian = self.reader.endian;
                    let mut part = Reader::of_part(Cursor::new(body), place, endian)?;
                    read_section(&mut metadata, id, &mut part)?;
                }
                None => read_section(&mut metadata, id, &mut self.reader)?,
            }
        }
        self.options = found.options;
        self.buffers = found.buffers;
        for index in 0..self.buffers.len() {
            self.read_buffer_header(index)?;
        }
        self.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
        Ok(metadata)
    }

    /// Whether the data of a buffer are compressed, which the header before them says.
    fn read_buffer_header(&mut self, index: usize) -> Result<(), Error> {
        let buffer = &mut self.buffers[index];
        let flags = self
            .reader
            .seek(buffer.section, "the data of a buffer")
            .and_then(|()| {
                self.reader.u16("the data of a buffer")?;
                self.reader.u16("the data of a buffer")
            });
        match flags {
            Ok(flags) => {
                buffer.compressed = flags & COMPRESSED != 0;
                if buffer.name.is_empty() && self.options.clock.is_empty() {
                    self.options.clock = buffer.clock.clone();
                }
                Ok(())
            }
            // Its data are missing too, which is noted when they are read.
            Err(Error::Truncated { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// What the options tell.
#[derive(Default)]
struct Found {
    options: Options,
    buffers: Vec<Buffer>,
    /// CPUs of all buffers, at least one each.
    streams: usize,
    /// Bytes of options, those that had to be decompressed twice.
    bytes: u64,
    /// Id and place of the sections that are read.
    sections: Vec<(u16, u64)>,
}

impl Found {
    /// Counts bytes of options at `offset`.
    fn count(&mut self, bytes: u64, offset: u64) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= OPTIONS_BYTES_MAX {
            return Ok(());
        }
        Err(Error::TooLarge {
            offset,
            what: "the size of all options in bytes".to_owned(),
            size: self.bytes,
            limit: OPTIONS_BYTES_MAX,
        })
    }

    /// Options up to DONE, whose place of the next section is given.
    fn read<R: Read + Seek>(&mut self, reader: &mut Reader<R>) -> Result<u64, Error> {
        let endian = reader.endian;
        loop {
            let option = reader.u16("the options")?;
            let size = reader.u32("the options")?;
            let offset = reader.offset();
            self.count(2 + 4 + u64::from(size), offset)?;
            let data = reader.bytes(size.into(), OPTION_BYTES_MAX, "the options")?;
            let place = || {
                endian.u64(&data, 0).ok_or_else(|| Error::Unexpected {
                    offset,
                    expected: format!("the option {option} with a place in the file"),
                    found: format!("{size} bytes"),
                })
            };
            match option {
                id::DONE => return place(),
                id::HEADER_INFO | id::FTRACE_EVENTS | id::EVENT_FORMATS | id::CMDLINES => {
                    // Each once: a forged file could name the largest section many times.
                    if !self.sections.iter().any(|(known, _)| *known == option) {
                        self.sections.push((option, place()?));
                    }
                }
                id::BUFFER => {
                    let buffer = read_buffer(&data, offset, endian)?;
                    self.streams += buffer.extents.len().max(1);
                    check_streams(self.streams, offset)?;
                    self.buffers.push(buffer);
                }
                _ => self.options.read(option, &data, endian),
            }
        }
    }
}

fn section_name(id: u16) -> &'static str {
    match id {
        id::HEADER_INFO => "the header section",
        id::FTRACE_EVENTS => "the ftrace formats",
        id::EVENT_FORMATS => "the event formats",
        _ => "the names of tasks",
    }
}

fn read_section<R: Read + Seek>(
    metadata: &mut Metadata,
    id: u16,
    reader: &mut Reader<R>,
) -> Result<(), Error> {
    match id {
        id::HEADER_INFO => metadata.read_header_info(reader),
        id::FTRACE_EVENTS => metadata.read_ftrace_formats(reader),
        id::EVENT_FORMATS => metadata.read_event_formats(reader),
        _ => metadata.read_comms(reader),
    }
}

/// `u64` place, name, clock, `u32` page size, `u32` CPUs, and for each `u32` CPU, `u64` place, `u64` size.
fn read_buffer(data: &[u8], offset: u64, endian: Endian) -> Result<Buffer, Error> {
    let mut reader = Reader::of_part(Cursor::new(data), offset, endian)?;
    read_buffer_parts(&mut reader).map_err(|error| match error {
        // Not the file ends early, the option does.
        Error::Truncated { what, .. } => Error::Unexpected {
            offset,
            expected: format!("a BUFFER option with {what}"),
            found: format!("only {} bytes", data.len()),
        },
        error => error,
    })
}

fn read_buffer_parts<R: Read + Seek>(reader: &mut Reader<R>) -> Result<Buffer, Error> {
    let section = reader.u64("the place of its data")?;
    let name = reader.string("its name")?;
    let clock = reader.string("the name of its clock")?;
    let at = reader.offset();
    let page_size = check_page_size(reader.u32("its page size")?, at)?;
    let at = reader.offset();
    let cpus = reader.u32("its number of CPUs")?;
    // An instance may have recorded nothing at all.
    if cpus > 0 {
        check_cpus(cpus, at)?;
    }
    let mut extents = Vec::new();
    for _ in 0..cpus {
        let cpu = reader.u32("all its CPUs")?;
        let offset = reader.u64("all its CPUs")?;
        let size = reader.u64("all its CPUs")?;
        extents.push(Extent { cpu, offset, size });
    }
    extents.sort_by_key(|extent| extent.cpu);
    Ok(Buffer {
        name,
        clock,
        page_size,
        compressed: false,
        section,
        extents,
    })
}
