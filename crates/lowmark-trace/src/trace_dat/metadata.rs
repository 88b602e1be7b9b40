//! The description at the begin of a trace.dat, which perf.data carries too.
//!
//! 1. magic, `tracing`, version, byte order, size of a long, page size
//! 2. `header_page`, `header_event`: the layout of ring-buffer pages as the kernel tells it
//! 3. formats of ftrace's own events, formats of all groups
//! 4. kallsyms and printk formats (not needed here), names of tasks
//!
//! Version 6 has them one after another, version 7 each in a section.

use super::reader::Reader;
use crate::format::{Formats, TEXT_BYTES_MAX};
use crate::record::{Endian, Error};
use crate::ring_buffer::Layout;
use std::collections::HashMap;
use std::io::{Read, Seek};

/// First bytes of a file.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// Text of all formats and names that is kept, bytes. All of a distribution's kernel have some 6 MB.
const TEXTS_BYTES_MAX: u64 = 24 << 20;
/// Longest description of a page that is read, bytes.
const HEADER_BYTES_MAX: u64 = 1 << 16;
/// Largest page of a ring buffer, bytes. The kernel takes pages together since 6.8
/// (`buffer_subbuf_size_kb`).
const PAGE_BYTES_MAX: u32 = 4 << 20;
const PAGE_BYTES_MIN: u32 = 64;

/// How the file begins.
pub(crate) struct Start {
    /// `6`, `7`; in perf.data `0.5` or `0.6`.
    pub(crate) version: String,
    pub(crate) endian: Endian,
    /// Size of a long where it was recorded, bytes.
    pub(crate) long_size: usize,
    /// Size of a ring buffer's page, bytes.
    pub(crate) page_size: u32,
}

/// What all carriers describe.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) formats: Formats,
    pub(crate) comms: Comms,
    /// What the file says of pages; `None` if it says nothing that can be read.
    pub(crate) layout: Option<Layout>,
    /// Bytes of text taken so far.
    text_bytes: u64,
}

/// Names of tasks by pid.
#[derive(Debug, Default)]
pub(crate) struct Comms(HashMap<i32, Box<str>>);

impl Comms {
    pub(crate) fn get(&self, pid: i32) -> Option<&str> {
        match self.0.get(&pid) {
            Some(comm) => Some(comm),
            // The idle tasks of all CPUs have one pid and no line in `saved_cmdlines`.
            None if pid == 0 => Some("<idle>"),
            None => None,
        }
    }
}

/// Reads 1.
pub(crate) fn start<S: Read + Seek>(reader: &mut Reader<S>) -> Result<Start, Error> {
    reader.expect(MAGIC)?;
    let version = reader.string("the version")?;
    let offset = reader.offset();
    reader.endian = match reader.u8("the byte order")? {
        0 => Endian::Little,
        1 => Endian::Big,
        other => {
            return Err(Error::Unexpected {
                offset,
                expected: "the byte order, 0 (little) or 1 (big)".to_owned(),
                found: other.to_string(),
            });
        }
    };
    let offset = reader.offset();
    let long_size = match reader.u8("the size of a long")? {
        size @ (4 | 8) => usize::from(size),
        other => {
            return Err(Error::Unexpected {
                offset,
                expected: "the size of a long, 4 or 8".to_owned(),
                found: other.to_string(),
            });
        }
    };
    let offset = reader.offset();
    let page_size = check_page_size(reader.u32("the page size")?, offset)?;
    Ok(Start {
        version,
        endian: reader.endian,
        long_size,
        page_size,
    })
}

/// A page size of the file, if it can be one.
pub(crate) fn check_page_size(size: u32, offset: u64) -> Result<u32, Error> {
    let range = PAGE_BYTES_MIN..=PAGE_BYTES_MAX;
    if range.contains(&size) && size.is_multiple_of(8) {
        return Ok(size);
    }
    Err(Error::Unexpected {
        offset,
        expected: format!("a page size from {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX} bytes"),
        found: size.to_string(),
    })
}

impl Metadata {
    /// Reads 2 to 4 in the order of version 6. perf's versions before 0.6 have no names of tasks.
    pub(crate) fn read_all<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        with_comms: bool,
    ) -> Result<(), Error> {
        self.read_header_info(reader)?;
        self.read_ftrace_formats(reader)?;
        self.read_event_formats(reader)?;
        let size = reader.u32("the size of kallsyms")?;
        reader.skip(size.into(), "kallsyms")?;
        let size = reader.u32("the size of the printk formats")?;
        reader.skip(size.into(), "the printk formats")?;
        if with_comms {
            self.read_comms(reader)?;
        }
        Ok(())
    }

    /// `header_page` and `header_event`.
    pub(crate) fn read_header_info<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
    ) -> Result<(), Error> {
        reader.expect(b"header_page\0")?;
        let size = reader.u64("the size of header_page")?;
        let text = reader.text(size, HEADER_BYTES_MAX, "header_page")?;
        self.layout = Layout::parse(reader.endian, &text);
        reader.expect(b"header_event\0")?;
        let size = reader.u64("the size of header_event")?;
        // The bits of an event's word have been the same since 2.6.30; the text is only for readers.
        reader.skip(size, "header_event")
    }

    /// Formats of ftrace's own events.
    pub(crate) fn read_ftrace_formats<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
    ) -> Result<(), Error> {
        let count = reader.u32("the number of ftrace formats")?;
        for _ in 0..count {
            self.read_format(reader, "ftrace")?;
        }
        Ok(())
    }

    /// Formats of all groups.
    pub(crate) fn read_event_formats<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
    ) -> Result<(), Error> {
        let systems = reader.u32("the number of groups of events")?;
        for _ in 0..systems {
            let system = reader.string("the name of a group of events")?;
            let count = reader.u32("the number of formats of a group")?;
            for _ in 0..count {
                self.read_format(reader, &system)?;
            }
        }
        Ok(())
    }

    fn read_format<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        system: &str,
    ) -> Result<(), Error> {
        let size = reader.u64("the size of a format")?;
        let text = self.text(reader, size, TEXT_BYTES_MAX as u64, "the text of a format")?;
        self.formats.add(system, &text);
        Ok(())
    }

    /// Lines `pid comm` of `saved_cmdlines`.
    pub(crate) fn read_comms<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
    ) -> Result<(), Error> {
        let size = reader.u64("the size of the names of tasks")?;
        let text = self.text(reader, size, TEXTS_BYTES_MAX, "the names of tasks")?;
        for line in text.lines() {
            if let Some((pid, comm)) = line.trim_start().split_once(' ')
                && let Ok(pid) = pid.parse()
            {
                self.comms.0.insert(pid, comm.into());
            }
        }
        Ok(())
    }

    /// A text that counts towards what is kept in all.
    fn text<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        size: u64,
        limit: u64,
        what: &str,
    ) -> Result<String, Error> {
        let left = TEXTS_BYTES_MAX.saturating_sub(self.text_bytes);
        let text = reader.text(size, limit.min(left), what)?;
        self.text_bytes += size;
        Ok(text)
    }
}
