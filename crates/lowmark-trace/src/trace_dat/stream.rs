//! The records of one CPU of one buffer, a block of pages at a time.
//!
//! 1. A block is some pages of the file, or one chunk decompressed.
//! 2. Its pages are passed one after another by a cursor of the ring buffer.
//! 3. What is damaged, a page or a chunk, is left out and counted; what the file's end cuts off too.

use super::codec::Codec;
use super::reader::Reader;
use crate::record::{Accounting, Error};
use crate::ring_buffer::{Cursor, Event, Layout, Lost};
use std::io::{Read, Seek};

/// Bytes of pages read at once where they are not compressed, unless one page is larger.
const BLOCK_BYTES: u64 = 1 << 16;
/// Largest chunk decompressed, bytes; trace-cmd writes ten pages.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Bytes of the number of chunks before them.
const CHUNK_COUNT_BYTES: u64 = 4;
/// Decompressed bytes of all CPUs together that are held: so much, and so much per CPU, and no more than
/// the last whatever their number.
const HELD_BYTES: u64 = 64 << 20;
const HELD_BYTES_PER_CPU: u64 = 1 << 20;
const HELD_BYTES_MAX: u64 = 512 << 20;

/// Where a CPU's data stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) cpu: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Decompressed bytes held by all streams together.
pub(crate) struct Held {
    bytes: u64,
    limit: u64,
}

impl Held {
    pub(crate) fn new(streams: usize) -> Self {
        let limit = HELD_BYTES.saturating_add(HELD_BYTES_PER_CPU.saturating_mul(streams as u64));
        Held {
            bytes: 0,
            limit: limit.min(HELD_BYTES_MAX),
        }
    }

    /// Replaces `old` bytes by `new` ones in the count.
    fn replace(&mut self, old: usize, new: u64, offset: u64) -> Result<(), Error> {
        let size = self.bytes.saturating_sub(old as u64).saturating_add(new);
        if size > self.limit {
            let what = "the decompressed data of all CPUs in bytes".to_owned();
            let limit = self.limit;
            return Err(Error::TooLarge {
                offset,
                what,
                size,
                limit,
            });
        }
        self.bytes = size;
        Ok(())
    }
}

/// The records of one CPU, in order.
pub(crate) struct Stream {
    pub(crate) cpu: u32,
    layout: Layout,
    page_size: usize,
    codec: Option<Codec>,
    /// What is left of the CPU's data in the file.
    position: u64,
    end: u64,
    /// Chunks left, if it is compressed.
    chunks: u32,
    block: Vec<u8>,
    /// Where the block begins in the file.
    block_offset: u64,
    /// The page at hand in `block`.
    page_start: usize,
    page_end: usize,
    cursor: Option<Cursor>,
    /// The next record: its time by the buffer's clock, and its place in the page.
    head: Option<Event>,
}

impl Stream {
    /// The data at `extent`, compressed if there is a codec. Data behind the end of the file are noted as
    /// truncated.
    pub(crate) fn open<S: Read + Seek>(
        reader: &mut Reader<S>,
        extent: Extent,
        layout: Layout,
        page_size: u32,
        codec: Option<Codec>,
        account: &mut Accounting,
    ) -> Result<Self, Error> {
        // What trace-cmd 3.1 gives as the size of compressed data is that without their count of chunks.
        let count_size = if codec.is_some() {
            CHUNK_COUNT_BYTES
        } else {
            0
        };
        let claimed = extent
            .offset
            .saturating_add(extent.size)
            .saturating_add(count_size);
        let end = claimed.min(reader.len());
        if end < claimed && extent.size > 0 {
            let missing = claimed - end.max(extent.offset);
            let what = format!(
                "{missing} bytes of the data of CPU {} are missing",
                extent.cpu
            );
            account.truncate(reader.len(), what);
        }
        let mut stream = Stream {
            cpu: extent.cpu,
            layout,
            page_size: page_size as usize,
            codec,
            position: extent.offset,
            end,
            chunks: 0,
            block: Vec::new(),
            block_offset: extent.offset,
            page_start: 0,
            page_end: 0,
            cursor: None,
            head: None,
        };
        if codec.is_some() && stream.left() >= CHUNK_COUNT_BYTES {
            reader.seek(stream.position, "the chunks of a CPU")?;
            stream.chunks = reader.u32("the number of chunks of a CPU")?;
            stream.position += CHUNK_COUNT_BYTES;
        }
        Ok(stream)
    }

    /// Time of the next record by the buffer's clock, and its bytes.
    #[inline]
    pub(crate) fn head(&self) -> Option<(u64, &[u8])> {
        let event = self.head.as_ref()?;
        let page = self.block.get(self.page_start..self.page_end)?;
        Some((event.time, page.get(event.start..event.end)?))
    }

    /// Goes to the next record; there is none if [`head`](Self::head) is `None` afterwards.
    #[inline]
    pub(crate) fn advance<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        held: &mut Held,
        account: &mut Accounting,
    ) -> Result<(), Error> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                let page = self
                    .block
                    .get(self.page_start..self.page_end)
                    .unwrap_or_default();
                let whole = page.len() == self.page_size;
                let bad = match cursor.next(page) {
                    Some(Ok(event)) => {
                        self.head = Some(event);
                        return Ok(());
                    }
                    Some(Err(bad)) => Some(bad),
                    None => None,
                };
                account.padding += cursor.padding;
                account.time_markers += cursor.time_markers;
                self.cursor = None;
                // The event that the file's end cuts off is part of what is said of the end.
                if let Some(bad) = bad.filter(|_| whole) {
                    account.damage(self.page_offset(), bad.to_string());
                }
            }
            if !self.next_page(reader, held, account)? {
                self.head = None;
                return Ok(());
            }
        }
    }

    /// Opens the next page; `false` at the end.
    fn next_page<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        held: &mut Held,
        account: &mut Accounting,
    ) -> Result<bool, Error> {
        self.page_start = self.page_end;
        while self.page_start >= self.block.len() {
            if !self.next_block(reader, held, account)? {
                return Ok(false);
            }
        }
        let end = self.page_start.saturating_add(self.page_size);
        self.page_end = end.min(self.block.len());
        let page = &self.block[self.page_start..self.page_end];
        match Cursor::open(&self.layout, page) {
            Ok(cursor) => {
                match cursor.lost {
                    Lost::No => {}
                    Lost::Uncounted => account.gaps_uncounted += 1,
                    Lost::Counted(count) => {
                        account.lost_events = account.lost_events.saturating_add(count);
                    }
                }
                // A page that the file's end cuts off is short too; that is said already.
                if cursor.short && page.len() == self.page_size {
                    account.damage(
                        self.page_offset(),
                        "a page says it holds more than its size",
                    );
                }
                self.cursor = Some(cursor);
            }
            Err(bad) => account.damage(self.page_offset(), bad.to_string()),
        }
        Ok(true)
    }

    /// Reads the next block; `false` at the end. A block may be empty if it is damaged.
    fn next_block<S: Read + Seek>(
        &mut self,
        reader: &mut Reader<S>,
        held: &mut Held,
        account: &mut Accounting,
    ) -> Result<bool, Error> {
        self.page_start = 0;
        self.page_end = 0;
        if let Some(codec) = self.codec {
            return self.next_chunk(codec, reader, held, account);
        }
        let size = self.left().min(self.whole_pages());
        // The buffer goes with the last block: a CPU that is through costs nothing any more.
        self.block.resize(size as usize, 0);
        if size == 0 {
            self.block = Vec::new();
            return Ok(false);
        }
        reader.read_at(self.position, &mut self.block)?;
        self.block_offset = self.position;
        self.position += size;
        Ok(true)
    }

    /// `u32` size in the file, `u32` size of the pages, and so many bytes.
    fn next_chunk<S: Read + Seek>(
        &mut self,
        codec: Codec,
        reader: &mut Reader<S>,
        held: &mut Held,
        account: &mut Accounting,
    ) -> Result<bool, Error> {
        let old = std::mem::take(&mut self.block).len();
        held.replace(old, 0, self.position)?;
        if self.chunks == 0 {
            return Ok(false);
        }
        self.chunks -= 1;
        self.block_offset = self.position;
        if self.left() < 8 {
            return Ok(self.give_up(account, "a chunk is missing"));
        }
        reader.seek(self.position, "a chunk")?;
        let packed = reader.u32("the size of a chunk in the file")?;
        let size = reader.u32("the size of a chunk")?;
        self.position += 8;
        if u64::from(packed) > self.left() {
            return Ok(self.give_up(account, "a chunk reaches beyond the CPU's data"));
        }
        self.position += u64::from(packed);
        if size.max(packed) > CHUNK_BYTES_MAX {
            let what = format!("a chunk of {packed} bytes for {size} is more than is read");
            account.damage(self.block_offset, what);
            return Ok(true);
        }
        held.replace(0, size.into(), self.block_offset)?;
        let data = reader.bytes(packed.into(), CHUNK_BYTES_MAX.into(), "a chunk")?;
        match codec.decompress(&data, size as usize) {
            Ok(block) => self.block = block,
            Err(error) => {
                account.damage(self.block_offset, format!("a chunk: {error}"));
                held.replace(size as usize, 0, self.block_offset)?;
            }
        }
        Ok(true)
    }

    /// The CPU's data end here, before they should.
    fn give_up(&mut self, account: &mut Accounting, what: &str) -> bool {
        if account.truncated.is_none() {
            account.damage(self.block_offset, what);
        }
        self.chunks = 0;
        false
    }

    fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    fn whole_pages(&self) -> u64 {
        let page = self.page_size as u64;
        (BLOCK_BYTES / page).max(1) * page
    }

    /// Where the page at hand is in the file; in a compressed one, where its chunk is.
    fn page_offset(&self) -> u64 {
        match self.codec {
            Some(_) => self.block_offset,
            None => self.block_offset + self.page_start as u64,
        }
    }
}
