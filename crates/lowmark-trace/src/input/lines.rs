//! Lines of a reader, without a copy: slices of one buffer that is filled a chunk at a time.
//!
//! 1. A newline is sought in what is buffered and was not searched before.
//! 2. Without one, more is read behind it; at the end of the buffer the beginning of the line is moved to its
//!    start, and the buffer grows while the line may still be one.
//! 3. A line longer than that is counted and dropped.

use super::InputError;
use crate::text;
use memchr::memchr;
use std::io::{self, Read};

/// Longest line that is kept, bytes. The longest of a trace is a page: `trace_seq` holds no more.
pub const LINE_MAX: usize = 1 << 20;
/// Bytes read at a time: the buffer stays in the second cache.
const CHUNK: usize = 256 << 10;

/// One line, without its newline and without a return before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLine<'a> {
    /// Its bytes, of any value but newline. Empty if it is too long.
    pub bytes: &'a [u8],
    /// Where it begins, bytes from the start of the uncompressed input.
    pub offset: u64,
    /// From 1.
    pub number: u64,
    /// How it ends.
    pub end: LineEnd,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// With a newline.
    Newline,
    /// With the input. The writers of traces end each line, so this one may lack something: a number at its
    /// end may lack digits.
    Input,
    /// Where the input broke off by an error, which comes next.
    Broken,
    /// It is longer than the limit.
    TooLong {
        /// Bytes up to its newline.
        length: u64,
    },
}

/// The lines of `R`.
#[derive(Debug)]
pub struct Lines<R> {
    name: String,
    reader: R,
    /// `buffer[start..end]` has been read and not given.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// First byte that may be a newline.
    search: usize,
    /// Offset of `start` in the input.
    offset: u64,
    number: u64,
    line_max: usize,
    state: State,
    scope: Scope,
}

#[derive(Debug)]
enum State {
    Reading,
    Ended,
    /// The error is given after the last line.
    Broken(Option<InputError>),
}

/// Which lines are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Those of the trace in a systrace page, in which there may be several parts.
    TraceData {
        inside: bool,
    },
}

/// Place of a line in the buffer.
struct Found {
    from: usize,
    to: usize,
    offset: u64,
    end: LineEnd,
}

impl<R: Read> Lines<R> {
    /// Lines of at most [`LINE_MAX`]; `name` is what messages call the input.
    pub fn new(name: &str, reader: R) -> Self {
        Lines::with_limits(name, reader, CHUNK, LINE_MAX)
    }

    /// `chunk`: bytes read at a time, `line_max`: longest line that is kept, bytes; both at least 1. The
    /// buffer takes at most twice their sum.
    pub fn with_limits(name: &str, reader: R, chunk: usize, line_max: usize) -> Self {
        Lines {
            name: name.to_owned(),
            reader,
            buffer: vec![0; chunk.max(1)],
            start: 0,
            end: 0,
            search: 0,
            offset: 0,
            number: 0,
            line_max: line_max.max(1),
            state: State::Reading,
            scope: Scope::All,
        }
    }

    /// Only the lines between `<script class="trace-data"…>` and `</script>`. Numbers and offsets are those
    /// of the whole.
    #[must_use]
    pub fn of_trace_data(mut self) -> Self {
        self.scope = Scope::TraceData { inside: false };
        self
    }

    /// What messages call the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// The reader failed, or its compressed data are damaged: every line before has been given, the last one
    /// with [`LineEnd::Broken`] if it is not whole. After an error nothing comes.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<RawLine<'_>>, InputError> {
        let found = loop {
            let newline = memchr(b'\n', &self.buffer[self.search..self.end]);
            let found = match newline {
                Some(distance) => self.take(self.search + distance),
                None => match self.without_newline()? {
                    Next::Line(found) => found,
                    Next::Search => continue,
                    Next::End => return Ok(None),
                },
            };
            if self.scope == Scope::All || self.is_trace_data(&found) {
                break found;
            }
        };
        Ok(Some(RawLine {
            bytes: &self.buffer[found.from..found.to],
            offset: found.offset,
            number: self.number,
            end: found.end,
        }))
    }

    /// The line that ends before the newline at `newline`.
    #[inline]
    fn take(&mut self, newline: usize) -> Found {
        let (from, offset) = (self.start, self.offset);
        self.start = newline + 1;
        self.search = self.start;
        self.offset += (self.start - from) as u64;
        if newline - from > self.line_max {
            // The buffer is larger than the limit.
            let length = (newline - from) as u64;
            return self.line(from, from, offset, LineEnd::TooLong { length });
        }
        let bytes = &self.buffer[from..newline];
        let to = newline - usize::from(bytes.last() == Some(&b'\r'));
        self.line(from, to, offset, LineEnd::Newline)
    }

    #[inline]
    fn line(&mut self, from: usize, to: usize, offset: u64, end: LineEnd) -> Found {
        self.number += 1;
        Found {
            from,
            to,
            offset,
            end,
        }
    }

    #[cold]
    fn without_newline(&mut self) -> Result<Next, InputError> {
        self.search = self.end;
        if self.end - self.start > self.line_max {
            return Ok(Next::Line(self.skip_line()));
        }
        if self.fill() {
            return Ok(Next::Search);
        }
        if self.start < self.end {
            return Ok(Next::Line(self.last_line()));
        }
        match &mut self.state {
            State::Broken(error) => error.take().map_or(Ok(Next::End), Err),
            State::Reading | State::Ended => Ok(Next::End),
        }
    }

    /// What the input ends with.
    fn last_line(&mut self) -> Found {
        let end = match self.state {
            State::Broken(_) => LineEnd::Broken,
            State::Reading | State::Ended => LineEnd::Input,
        };
        let (from, to, offset) = (self.start, self.end, self.offset);
        self.offset += (to - from) as u64;
        self.start = to;
        let returned = end == LineEnd::Input && self.buffer[from..to].last() == Some(&b'\r');
        self.line(from, to - usize::from(returned), offset, end)
    }

    /// Counts the line that has begun, to its newline or to the end, in constant memory.
    fn skip_line(&mut self) -> Found {
        let offset = self.offset;
        let mut length = 0;
        loop {
            length += (self.end - self.start) as u64;
            self.offset += (self.end - self.start) as u64;
            (self.start, self.end, self.search) = (0, 0, 0);
            if !self.fill() {
                break;
            }
            if let Some(newline) = memchr(b'\n', &self.buffer[..self.end]) {
                length += newline as u64;
                self.start = newline + 1;
                self.search = self.start;
                self.offset += self.start as u64;
                break;
            }
        }
        self.line(0, 0, offset, LineEnd::TooLong { length })
    }

    /// Reads more behind what is there; false: there is no more.
    fn fill(&mut self) -> bool {
        if !matches!(self.state, State::Reading) {
            return false;
        }
        self.make_room();
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.state = State::Ended;
                    return false;
                }
                Ok(count) => {
                    // A reader that claims more than it was asked for is wrong: its bytes are not there.
                    self.end = (self.end + count).min(self.buffer.len());
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let read = self.offset + (self.end - self.start) as u64;
                    let error = InputError::from_read(&self.name, read, error);
                    self.state = State::Broken(Some(error));
                    return false;
                }
            }
        }
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end, self.search) = (0, 0, 0);
        }
        if self.end < self.buffer.len() {
            return;
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.search -= self.start;
            self.start = 0;
        } else {
            // One line fills it; beyond the limit `skip_line` has emptied it.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    /// Whether the line belongs to a trace in a page; tags open and close the parts.
    #[cold]
    fn is_trace_data(&mut self, found: &Found) -> bool {
        let line = &self.buffer[found.from..found.to];
        let Scope::TraceData { inside } = &mut self.scope else {
            return true;
        };
        if *inside {
            *inside = !text::is_end_of_script(line);
            *inside
        } else {
            *inside = text::is_trace_data_tag(line);
            false
        }
    }
}

enum Next {
    Line(Found),
    Search,
    End,
}
