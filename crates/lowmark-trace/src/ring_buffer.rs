//! Pages of the kernel's ring buffer, as `trace_pipe_raw` gives them and trace.dat stores them.
//!
//! A page is a header (time of the page, a long with the count of bytes used and two flags) and events
//! one after another (`kernel/trace/ring_buffer.c`, `struct buffer_data_page`):
//!
//! 1. The page's time starts the sum of time deltas.
//! 2. A word has a type or length in 5 bits and a delta in 27. On big-endian machines the bit fields
//!    begin at the other end of the word.
//! 3. Types 1 to 28 are data of four times as many bytes; 0 has its length in the next word; 29 is
//!    padding, which ends the page if its delta is 0; 30 extends the delta; 31 sets the time.
//! 4. Behind the data of a page before which events were lost may stand their count.

use crate::format::parse_fields;
use crate::record::Endian;

/// Low bits of the commit word that hold the bytes used (`RB_WRITE_MASK`).
const COMMIT_BYTES: u64 = (1 << 20) - 1;
/// Events were lost before this page (`RB_MISSED_EVENTS`).
const MISSED_EVENTS: u64 = 1 << 31;
/// Their count stands behind the data (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a time delta in the event's word.
const DELTA_BITS: u32 = 27;
/// Bits of time that an absolute time sets; the rest stays (`TS_MSB`).
const ABSOLUTE_BITS: u32 = 59;

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;

/// Where the parts of a page's header stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Byte order of the machine that wrote the pages.
    pub endian: Endian,
    /// Place of the page's time, a `u64`.
    pub time_at: usize,
    /// Place of the commit word.
    pub commit_at: usize,
    /// Size of the commit word, the kernel's long: 4 or 8 bytes.
    pub commit_size: usize,
    /// Place of the first event.
    pub data_at: usize,
}

impl Layout {
    /// The layout of a kernel with longs of `long_size` bytes (8, else 4 is taken).
    pub fn of_long(endian: Endian, long_size: usize) -> Self {
        let commit_size = if long_size == 8 { 8 } else { 4 };
        Layout {
            endian,
            time_at: 0,
            commit_at: 8,
            commit_size,
            data_at: 8 + commit_size,
        }
    }

    /// The layout that the text of `events/header_page` describes; `None` where it lacks a part or
    /// describes one that cannot be.
    pub fn parse(endian: Endian, header_page: &str) -> Option<Self> {
        const HEADER_MAX: u32 = 64;
        let fields = parse_fields(header_page).ok()?;
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let commit_size = match commit.size {
            4 | 8 => commit.size as usize,
            _ => return None,
        };
        let small = [time, commit, data].iter().all(|f| f.offset <= HEADER_MAX);
        (small && time.size == 8).then_some(Layout {
            endian,
            time_at: time.offset as usize,
            commit_at: commit.offset as usize,
            commit_size,
            data_at: data.offset as usize,
        })
    }

    fn long(&self, bytes: &[u8], at: usize) -> Option<u64> {
        match self.commit_size {
            8 => self.endian.u64(bytes, at),
            _ => self.endian.u32(bytes, at).map(u64::from),
        }
    }
}

/// Whether events were lost between the page before and this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// None.
    No,
    /// Some, the kernel does not say how many.
    Uncounted,
    /// So many.
    Counted(u64),
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    /// It ends inside its header.
    #[error("a page of {len} bytes, too short for its header")]
    NoHeader {
        /// Bytes there are.
        len: usize,
    },
    /// An event is longer than the rest of the page.
    #[error("an event at byte {at} of the page reaches beyond its {end} bytes of data")]
    Overrun {
        /// Place of the event in the page.
        at: usize,
        /// Where the data of the page end.
        end: usize,
    },
    /// An event says that it is shorter than its own length word.
    #[error("an event at byte {at} of the page has the length {length}")]
    Undersized {
        /// Place of the event in the page.
        at: usize,
        /// Length given, bytes.
        length: u32,
    },
}

/// Where an event's data stand in their page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time by the buffer's clock.
    pub time: u64,
    /// First byte of the data.
    pub start: usize,
    /// Byte after the data.
    pub end: usize,
}

/// A place in a page. It does not hold the page, so that both can be kept in one place; the same page
/// must be given to each call.
#[derive(Debug, Clone)]
pub struct Cursor {
    endian: Endian,
    at: usize,
    end: usize,
    time: u64,
    /// Padding events passed so far.
    pub padding: u64,
    /// Time extends and absolute times passed so far.
    pub time_markers: u64,
    /// Whether events were lost before this page.
    pub lost: Lost,
    /// Whether the page claims more data than it has: then those that are there are given.
    pub short: bool,
}

impl Cursor {
    /// The begin of a page.
    pub fn open(layout: &Layout, page: &[u8]) -> Result<Self, BadPage> {
        let no_header = BadPage::NoHeader { len: page.len() };
        let time = layout.endian.u64(page, layout.time_at).ok_or(no_header)?;
        let commit = layout.long(page, layout.commit_at).ok_or(no_header)?;
        if page.len() < layout.data_at {
            return Err(no_header);
        }
        let claimed = layout.data_at + (commit & COMMIT_BYTES) as usize;
        let lost = match (commit & MISSED_EVENTS, commit & MISSED_STORED) {
            (0, _) => Lost::No,
            (_, 0) => Lost::Uncounted,
            _ => match layout.long(page, claimed) {
                Some(count) => Lost::Counted(count),
                None => Lost::Uncounted,
            },
        };
        Ok(Cursor {
            endian: layout.endian,
            at: layout.data_at,
            end: claimed.min(page.len()),
            time,
            padding: 0,
            time_markers: 0,
            lost,
            short: claimed > page.len(),
        })
    }

    /// The next event, `None` at the end of the page. After an error the page is at its end.
    #[inline]
    pub fn next(&mut self, page: &[u8]) -> Option<Result<Event, BadPage>> {
        while self.at < self.end {
            match self.step(page) {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(bad) => {
                    self.at = self.end;
                    return Some(Err(bad));
                }
            }
        }
        None
    }

    /// Passes one event word and what belongs to it; gives it if it carries data.
    #[inline]
    fn step(&mut self, page: &[u8]) -> Result<Option<Event>, BadPage> {
        let at = self.at;
        let overrun = BadPage::Overrun { at, end: self.end };
        let page = page.get(..self.end).ok_or(overrun)?;
        let word = self.endian.u32(page, at).ok_or(overrun)?;
        let (kind, delta) = match self.endian {
            Endian::Little => (word & 31, word >> 5),
            Endian::Big => (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1)),
        };
        let delta = u64::from(delta);
        let body = at + 4;
        if (1..TYPE_PADDING).contains(&kind) {
            let end = body + 4 * kind as usize;
            return self.data(delta, body, end, end).ok_or(overrun).map(Some);
        }
        if kind == TYPE_PADDING && delta == 0 {
            self.padding += 1;
            self.at = self.end;
            return Ok(None);
        }
        let second = self.endian.u32(page, body).ok_or(overrun)?;
        match kind {
            0 => {
                // The length includes its own word (`rb_event_data_length()`).
                let length = second;
                if length < 4 {
                    return Err(BadPage::Undersized { at, length });
                }
                let end = body.saturating_add(length as usize);
                let next = end.saturating_add(3) & !3;
                return self
                    .data(delta, body + 4, end, next.min(self.end))
                    .ok_or(overrun)
                    .map(Some);
            }
            TYPE_PADDING => {
                // A discarded event: later deltas count from it all the same.
                self.padding += 1;
                self.time = self.time.wrapping_add(delta);
                let skip = (second as usize).max(4);
                self.at = body
                    .checked_add(skip)
                    .filter(|at| *at <= self.end)
                    .ok_or(overrun)?;
            }
            TYPE_TIME_EXTEND => {
                self.time_markers += 1;
                let extend = (u64::from(second) << DELTA_BITS).wrapping_add(delta);
                self.time = self.time.wrapping_add(extend);
                self.at = body + 4;
            }
            _ => {
                debug_assert_eq!(kind, TYPE_TIME_STAMP);
                self.time_markers += 1;
                let stamp = (u64::from(second) << DELTA_BITS) | delta;
                self.time = absolute_time(stamp, self.time);
                self.at = body + 4;
            }
        }
        Ok(None)
    }

    #[inline]
    fn data(&mut self, delta: u64, start: usize, end: usize, next: usize) -> Option<Event> {
        if end > self.end {
            return None;
        }
        self.time = self.time.wrapping_add(delta);
        self.at = next;
        let time = self.time;
        Some(Event { time, start, end })
    }
}

/// The time that an absolute stamp of 59 bits means near `before`: its high bits come from there, and a
/// stamp that would go back has overflowed (`rb_fix_abs_ts()`).
fn absolute_time(stamp: u64, before: u64) -> u64 {
    let low = (1 << ABSOLUTE_BITS) - 1;
    let time = (stamp & low) | (before & !low);
    if time < before {
        time.wrapping_add(1 << ABSOLUTE_BITS)
    } else {
        time
    }
}

/// The events of one page with their data.
pub fn events<'a>(layout: &Layout, page: &'a [u8]) -> Result<Events<'a>, BadPage> {
    let cursor = Cursor::open(layout, page)?;
    Ok(Events { cursor, page })
}

/// Iterator over a page: time by the buffer's clock, and data.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    cursor: Cursor,
    page: &'a [u8],
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<(u64, &'a [u8]), BadPage>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let event = match self.cursor.next(self.page)? {
            Ok(event) => event,
            Err(bad) => return Some(Err(bad)),
        };
        let data = self.page.get(event.start..event.end)?;
        Some(Ok((event.time, data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        page.extend(commit.to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page
    }

    const LAYOUT: Layout = Layout {
        endian: Endian::Little,
        time_at: 0,
        commit_at: 8,
        commit_size: 8,
        data_at: 16,
    };

    fn times(page: &[u8]) -> Vec<Result<u64, BadPage>> {
        let events = events(&LAYOUT, page).expect("a header");
        events.map(|event| event.map(|(time, _)| time)).collect()
    }

    #[test]
    fn deltas_extends_stamps_and_padding_add_up() {
        let words = [
            1 | 5 << 5, // one word of data, 5 later
            0xaaaa,
            30 | 3 << 5, // 2 * 2^27 + 3 later
            2,
            2 | 1 << 5, // two words of data, 1 later
            1,
            2,
            29 | 7 << 5, // discarded, 8 bytes, 7 later
            8,
            0,
            31 | 9 << 5, // at 2^59 - low bits 9
            4,
            9 << 5, // length word: 6 bytes of data, padded to 8
            10,
            3,
            4,
            29, // the rest is unused
            0xffff_ffff,
        ];
        let page = page(1000, 4 * words.len() as u64, &words);
        let second = 1005 + (2 << 27) + 3 + 1;
        let stamp = (4 << 27) + 9;
        assert_eq!(times(&page), [Ok(1005), Ok(second), Ok(stamp + 9)]);
        let lengths: Vec<_> = events(&LAYOUT, &page)
            .unwrap()
            .map(|e| e.unwrap().1.len())
            .collect();
        assert_eq!(lengths, [4, 8, 6]);
    }

    #[test]
    fn an_absolute_time_keeps_the_high_bits_and_overflows_forward() {
        let high = 3 << ABSOLUTE_BITS;
        assert_eq!(absolute_time(500, high | 400), high | 500);
        assert_eq!(absolute_time(300, high | 400), (4 << ABSOLUTE_BITS) | 300);
    }

    #[test]
    fn lost_events_are_told_with_their_count_where_it_stands() {
        let lost = |commit, words: &[u32]| {
            Cursor::open(&LAYOUT, &page(0, commit, words))
                .expect("a header")
                .lost
        };
        assert_eq!(lost(8, &[1, 2]), Lost::No);
        assert_eq!(lost(MISSED_EVENTS | 8, &[1, 2]), Lost::Uncounted);
        // The kernel adds an int with the sign bit set: the high half of the long is all ones.
        let commit = 0xffff_ffff_0000_0000 | MISSED_EVENTS | MISSED_STORED | 8;
        assert_eq!(lost(commit, &[1, 2, 77, 0]), Lost::Counted(77));
        assert_eq!(lost(commit, &[1, 2]), Lost::Uncounted);
    }

    #[test]
    fn a_bad_length_ends_the_page() {
        let overrun = page(0, 8, &[3, 0]);
        assert_eq!(times(&overrun), [Err(BadPage::Overrun { at: 16, end: 24 })]);
        let undersized = page(0, 8, &[0, 3]);
        assert_eq!(
            times(&undersized),
            [Err(BadPage::Undersized { at: 16, length: 3 })]
        );
        assert!(events(&LAYOUT, &overrun[..15]).is_err());
        assert!(
            Cursor::open(&LAYOUT, &page(0, 100, &[1, 2]))
                .expect("a header")
                .short
        );
    }

    #[test]
    fn the_header_is_taken_from_the_kernels_text() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                    \tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
        let layout = Layout::parse(Endian::Big, text).expect("whole");
        assert_eq!(layout, Layout::of_long(Endian::Big, 4));
        assert_eq!(Layout::parse(Endian::Big, "nothing"), None);
    }
}
