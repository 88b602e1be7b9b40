//! The lines of trace texts: ftrace (`trace`, `trace_pipe`) of all kernels, `trace-cmd report`, `perf script`,
//! systrace.
//!
//! ```text
//!   COMM-PID    [CPU]       SEC.USEC: EVENT: TEXT         ftrace to 3.2, trace-cmd report
//!   COMM-PID    [CPU] dNs1  SEC.USEC: EVENT: TEXT         ftrace 3.3 to 5.14
//!   COMM-PID    [CPU] dNs1. SEC.USEC: EVENT: TEXT         ftrace from 5.15
//!   COMM-PID (TGID) [CPU] … SEC.USEC: EVENT: TEXT         option record-tgid, 4.13; systrace
//!   COMM-PID     CPUdNs1.   SEC.USEC: EVENT: TEXT         trace-cmd report -l
//!   COMM PID    [CPU]       SEC.USEC: SYSTEM:EVENT: TEXT  perf script; PID/TID; without [CPU]; without COMM
//! ```
//!
//! The forms are told apart line by line, never by columns. A name of a task may hold anything, `[123]`, `-7`
//! and colons included, and so may the text. What decides: a name has at most 15 bytes (`TASK_COMM_LEN` with
//! its NUL).
//!
//! 1. A candidate is an ` [ddd] ` with a pid before it and a time and an event after it.
//! 2. A candidate inside the name leaves a shorter name than the true one; one inside the text has the
//!    whole true prefix, more than 15 bytes, in its name. So the last candidate with a name of at most 15
//!    bytes is the true one, and as soon as a prefix is longer no other is sought.
//! 3. Only if every name is longer (perf takes names of workers from /proc, up to 63 bytes) the first one is.
//! 4. A line without a candidate, or with a longer name only, is tried by its times in the same way: forms
//!    without `[CPU]`.

mod common;
mod event;
mod header;
mod loose;
mod prefix;
mod scan;

use crate::input::{LineEnd, RawLine};

pub(crate) use header::{is_end_of_script, is_trace_data_tag};

/// One line of a trace text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// An event.
    Event(EventLine<'a>),
    /// A comment or a line about the file.
    Header(Header<'a>),
    /// Events that the writer of the trace had to drop at this place.
    Lost {
        /// CPU whose events they were, if told.
        cpu: Option<u32>,
        /// How many, if told.
        events: Option<u64>,
    },
    /// `##### CPU n buffer started ####`: before this line events of that CPU may be missing, since its ring
    /// buffer begins here.
    BufferStarted {
        /// Its CPU.
        cpu: u32,
    },
    /// Nothing but blanks.
    Blank,
    /// A line of a stack trace: ` => symbol`, `<stack trace>`, an address of `perf script`.
    StackEntry,
    /// Not understood.
    Other(Why),
}

/// The parts of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLine<'a> {
    /// Name of the task, without the blanks before it: at most 15 bytes if the kernel wrote it, of any value.
    /// `<...>` if unknown, empty if the line has none.
    pub comm: &'a [u8],
    /// Thread id, what the kernel calls pid: 0 for idle tasks, -1 if perf does not know it.
    pub pid: i32,
    /// Process id, what users call pid, if the line has it and it is known.
    pub tgid: Option<i32>,
    /// CPU, if the line has it.
    pub cpu: Option<u32>,
    /// Flag columns as they stand, such as `d..1.`, if the line has them.
    pub flags: Option<&'a [u8]>,
    /// When.
    pub time: Time,
    /// Group of the event, where the line has it (perf script).
    pub system: Option<&'a [u8]>,
    /// Name of the event, not empty.
    pub event: &'a [u8],
    /// What follows the name, without the blanks before it.
    pub text: &'a [u8],
    /// Whether it is known that name, pid, CPU and flags are those of the event that the same [`Parser`]
    /// gave before.
    pub again: bool,
    /// The same of the name of the event.
    pub named_again: bool,
}

/// A time stamp of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Nanoseconds of the clock of the trace; most texts have rounded them to microseconds.
    Ns(u64),
    /// A number without a point: the clocks `counter` and `x86-tsc`, in units of their own.
    Counter(u64),
}

/// A line about the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header<'a> {
    /// `# tracer: nop`, with the name.
    Tracer(&'a [u8]),
    /// `# entries-in-buffer/entries-written: 10/12   #P:2`, from 3.3 on.
    Entries {
        /// Events in the file.
        in_buffer: u64,
        /// Events since the buffer was cleared: those above `in_buffer` were overwritten.
        written: u64,
        /// CPUs that were online.
        cpus: Option<u32>,
    },
    /// `cpus=2` of trace-cmd report.
    Cpus(u32),
    /// `CPU 1 is empty` of trace-cmd report.
    CpuEmpty(u32),
    /// Another line that begins with `#`, with that.
    Comment(&'a [u8]),
}

/// Why a line was not understood: the first part that is missing, from the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// No task and no pid; also what the option `nocontext-info` writes.
    NoPid,
    /// No CPU behind the pid, and none of the forms without.
    NoCpu,
    /// No time stamp, or one that does not fit 64 bits of nanoseconds.
    NoTime,
    /// No name and colon behind the time: function tracers, a cut line.
    NoEvent,
    /// Control characters: not a line of text.
    NotText,
    /// Longer than the limit of [`crate::input::Lines`].
    TooLong,
    /// The end of the input cut it.
    Cut,
}

impl Why {
    /// All of them, in order.
    pub const ALL: [Why; 7] = [
        Why::NoPid,
        Why::NoCpu,
        Why::NoTime,
        Why::NoEvent,
        Why::NotText,
        Why::TooLong,
        Why::Cut,
    ];

    /// For tables of what was not read.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::NoPid => "no task and pid",
            Why::NoCpu => "no CPU",
            Why::NoTime => "no time stamp",
            Why::NoEvent => "no event name",
            Why::NotText => "not text",
            Why::TooLong => "too long",
            Why::Cut => "cut off",
        }
    }
}

/// Reads lines one after the other. What it gives does not depend on the lines before, but for
/// [`EventLine::again`] and [`EventLine::named_again`].
#[derive(Debug, Default)]
pub struct Parser {
    last: common::Last,
    /// Whether `last` is of the last event.
    fresh: bool,
}

impl Parser {
    /// As [`parse_raw`].
    #[inline]
    pub fn parse_raw<'a>(&mut self, line: &RawLine<'a>) -> Line<'a> {
        match self.common(line) {
            Some(event) => Line::Event(event),
            None => self.uncommon(line),
        }
    }

    /// The event of a line in which everything stands in its columns; none: [`Parser::uncommon`] tells what
    /// the line is. The two are apart because an event is large, and nearly every line is one.
    #[inline(always)]
    pub(crate) fn common<'a>(&mut self, line: &RawLine<'a>) -> Option<EventLine<'a>> {
        if line.end != LineEnd::Newline || line.bytes.first() == Some(&b'#') {
            return None;
        }
        let mut event = self.last.parse(line.bytes)?;
        event.again &= self.fresh;
        event.named_again &= self.fresh;
        self.fresh = true;
        Some(event)
    }

    /// What a line is that is not [`common`](Parser::common).
    #[inline(never)]
    pub(crate) fn uncommon<'a>(&mut self, line: &RawLine<'a>) -> Line<'a> {
        if line.end != LineEnd::Newline || line.bytes.first() == Some(&b'#') {
            return parse_raw(line);
        }
        self.fresh = false;
        parse_any(line.bytes)
    }
}

/// What a line is, without its newline.
#[inline]
pub fn parse(line: &[u8]) -> Line<'_> {
    // Names are set to the right in 16 columns: a `#` in the first one is no name.
    if line.first() == Some(&b'#') {
        return header::comment(line);
    }
    match common::parse(line) {
        Some(event) => Line::Event(event),
        None => parse_any(line),
    }
}

/// Without the short way.
#[inline(never)]
fn parse_any(line: &[u8]) -> Line<'_> {
    match event::parse(line) {
        Ok(candidate) if candidate.has_comm() => Line::Event(candidate.event),
        // The bracket may be one in the text of a form without `[CPU]`.
        Ok(candidate) => match loose::parse(line) {
            Some(other) if other.has_comm() => Line::Event(other.event),
            _ => Line::Event(candidate.event),
        },
        Err(why) => parse_other(line, why),
    }
}

/// What a line of [`crate::input::Lines`] is. What an error cut is [`Why::Cut`] even if it looks like an event,
/// whose last number may lack digits. The last line of an input that ends without a newline is an event if it
/// looks like one; see [`RawLine::end`].
#[inline]
pub fn parse_raw<'a>(line: &RawLine<'a>) -> Line<'a> {
    match line.end {
        LineEnd::Newline => parse(line.bytes),
        LineEnd::TooLong { .. } => Line::Other(Why::TooLong),
        LineEnd::Broken => Line::Other(Why::Cut),
        LineEnd::Input => match parse(line.bytes) {
            Line::Other(why) if why != Why::NotText => Line::Other(Why::Cut),
            line => line,
        },
    }
}

/// `why`: what the forms with `[CPU]` miss.
#[cold]
fn parse_other(line: &[u8], why: Why) -> Line<'_> {
    if let Some(line) = header::parse(line) {
        return line;
    }
    match loose::parse(line) {
        Some(candidate) => Line::Event(candidate.event),
        None => loose::other(line, why),
    }
}

#[cfg(test)]
mod tests;
