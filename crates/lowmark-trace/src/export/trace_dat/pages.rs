//! Ring-buffer pages: a time, how much is used, and events with the time since the one before.
//!
//! An event is a word with its type in the lower 5 bits and the time in the upper 27, and data. Types 1 to 28
//! are the length of the data in words; with 0 the length, itself included, stands in the next word. A time that
//! does not fit has a word more before the event (type 30).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = 4096;
/// Bytes of a page's head.
const HEAD_BYTES: usize = 16;
/// Longest record that fits a page behind its head and its own two words.
pub(super) const RECORD_BYTES_MAX: usize = PAGE_BYTES - HEAD_BYTES - 8;
/// Bits of the time that an event's word holds.
const DELTA_BITS: u32 = 27;
/// Longest data of which the type tells the length, words.
const SHORT_WORDS: usize = 28;
const TYPE_TIME_EXTEND: u32 = 30;

/// The page that a CPU is filling.
#[derive(Debug, Default)]
struct Open {
    /// Empty before the first event.
    bytes: Vec<u8>,
    last_ns: u64,
}

/// The pages of all CPUs, those that are full in a file.
#[derive(Debug)]
pub(super) struct Pages {
    spool: File,
    spooled: u32,
    open: Vec<Open>,
    /// By CPU, the numbers of its pages in the file.
    streams: Vec<Vec<u32>>,
}

impl Pages {
    pub(super) fn new(spool: File) -> Pages {
        Pages {
            spool,
            spooled: 0,
            // There is a CPU even where there is no event.
            open: vec![Open::default()],
            streams: vec![Vec::new()],
        }
    }

    /// By CPU, numbers of pages.
    pub(super) fn streams(&self) -> &[Vec<u32>] {
        &self.streams
    }

    /// Adds a record, whose length is a multiple of four, to the stream of a CPU.
    pub(super) fn add(&mut self, cpu: u32, time_ns: u64, record: &[u8]) -> io::Result<()> {
        let cpu = cpu as usize;
        if self.open.len() <= cpu {
            self.open.resize_with(cpu + 1, Open::default);
            self.streams.resize_with(cpu + 1, Vec::new);
        }
        let open = &self.open[cpu];
        let delta = time_ns.checked_sub(open.last_ns);
        let long = record.len() > 4 * SHORT_WORDS;
        let extended = delta.is_some_and(|delta| delta >> DELTA_BITS != 0);
        let length = record.len() + 4 + 4 * usize::from(long) + 8 * usize::from(extended);
        // Within a page time does not go back, and an extension has 59 bits.
        let fits = open.bytes.len() + length <= PAGE_BYTES
            && delta.is_some_and(|delta| delta >> (DELTA_BITS + 32) == 0);
        if open.bytes.is_empty() || !fits {
            self.turn(cpu)?;
            let open = &mut self.open[cpu];
            open.bytes.extend(time_ns.to_le_bytes());
            open.bytes.extend(0u64.to_le_bytes());
            open.last_ns = time_ns;
        }
        let open = &mut self.open[cpu];
        let mut delta = time_ns - open.last_ns;
        open.last_ns = time_ns;
        if delta >> DELTA_BITS != 0 {
            let low = (delta & ((1 << DELTA_BITS) - 1)) as u32;
            open.word(low << 5 | TYPE_TIME_EXTEND);
            open.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        let delta = (delta as u32) << 5;
        if long {
            open.word(delta);
            open.word(record.len() as u32 + 4);
        } else {
            open.word(delta | (record.len() / 4) as u32);
        }
        open.bytes.extend_from_slice(record);
        Ok(())
    }

    /// Puts the page of a CPU into the file.
    fn turn(&mut self, cpu: usize) -> io::Result<()> {
        let page = &mut self.open[cpu].bytes;
        if page.is_empty() {
            return Ok(());
        }
        let used = (page.len() - HEAD_BYTES) as u64;
        page[8..HEAD_BYTES].copy_from_slice(&used.to_le_bytes());
        page.resize(PAGE_BYTES, 0);
        self.spool.write_all(page)?;
        page.clear();
        self.streams[cpu].push(self.spooled);
        self.spooled += 1;
        Ok(())
    }

    /// Puts all pages into the file.
    pub(super) fn close(&mut self) -> io::Result<()> {
        (0..self.open.len()).try_for_each(|cpu| self.turn(cpu))
    }

    /// Every page, CPU by CPU.
    pub(super) fn for_each(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut page = [0; PAGE_BYTES];
        for number in self.streams.iter().flatten() {
            let place = u64::from(*number) * PAGE_BYTES as u64;
            self.spool.seek(SeekFrom::Start(place))?;
            self.spool.read_exact(&mut page)?;
            take(&page);
        }
        Ok(())
    }
}

impl Open {
    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_le_bytes());
    }
}
