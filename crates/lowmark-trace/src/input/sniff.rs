//! The kind of an input, told by its first bytes.
//!
//! 1. The magics of the binary kinds.
//! 2. Line by line: the first one that says what the text is decides.
//! 3. Bytes that no text has: not a trace, at the first of them.

use crate::text::{self, Header, Line};

/// Bytes looked at, at most: headers, greetings and HTML come before the first line of a trace.
pub(super) const WINDOW: usize = 256 << 10;

/// What an input is, uncompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines, for [`crate::text`].
    Text(TextKind),
    /// `trace.dat`, of any version.
    TraceDat,
    /// `perf.data`, of a file or of a pipe.
    PerfData {
        /// Whether it was written by a machine of the other byte order than little endian.
        big_endian: bool,
    },
    /// Something else: see [`super::Input::unrecognised`].
    Unknown(Unknown),
}

/// Who wrote a text. The grammar is the same for all: this is for messages and for finding the trace inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// `trace` or `trace_pipe`; also `trace-cmd report` from which the first line is gone.
    Ftrace,
    /// `trace-cmd report`.
    TraceCmd,
    /// `perf script`.
    Perf,
    /// A systrace page: ftrace text inside HTML.
    Systrace,
    /// No line of a trace among the first ones.
    Plain,
}

/// Why an input is none of the kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// First byte that does not fit.
    pub offset: u64,
    /// What it seems to be.
    pub looks_like: Option<&'static str>,
}

const MAGICS: [(&[u8], Kind); 5] = [
    (b"\x17\x08\x44tracing", Kind::TraceDat),
    (b"PERFILE2", Kind::PerfData { big_endian: false }),
    (b"2ELIFREP", Kind::PerfData { big_endian: true }),
    // linux 2.6.31 to 3.4 wrote this one; whoever reads perf.data says whether it can.
    (b"PERFFILE", Kind::PerfData { big_endian: false }),
    (b"ELIFFREP", Kind::PerfData { big_endian: true }),
];

/// What is no trace but met where one is expected.
const OTHERS: [(&[u8], &str); 7] = [
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
    // Trace.packet, field 1 of a message: every Perfetto trace begins with it.
    (b"\x0a", "Perfetto or another binary format"),
];

/// The kind of what begins with `window`; `None`: more is needed, or with `whole` that there is nothing.
/// The answer does not depend on how much more than needed there is.
pub(super) fn kind(window: &[u8], whole: bool) -> Option<Kind> {
    let magics = || MAGICS.iter();
    if let Some((_, kind)) = magics().find(|(magic, _)| window.starts_with(magic)) {
        return Some(*kind);
    }
    if !whole && magics().any(|(magic, _)| magic.starts_with(window)) {
        return None;
    }
    if window.is_empty() {
        return None;
    }
    if is_page(window) {
        return Some(Kind::Text(TextKind::Systrace));
    }
    let end = match memchr::memrchr(b'\n', window) {
        _ if whole => window.len(),
        Some(newline) => newline,
        None => return None,
    };
    let lines = window[..end].split(|&byte| byte == b'\n');
    if let Some(kind) = lines.clone().find_map(writer) {
        return Some(Kind::Text(kind));
    }
    if !whole {
        return None;
    }
    let Some(offset) = window.iter().position(|&byte| is_binary(byte)) else {
        return Some(Kind::Text(TextKind::Plain));
    };
    let other = OTHERS.iter().find(|(magic, _)| window.starts_with(magic));
    Some(Kind::Unknown(Unknown {
        offset: offset as u64,
        looks_like: other.map(|(_, name)| *name),
    }))
}

/// Whether it is HTML. In a page of systrace megabytes of its viewer come before the trace.
fn is_page(window: &[u8]) -> bool {
    let begins = |with: &[u8]| {
        let beginning = window.get(..with.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

/// Who wrote this line, if it tells.
fn writer(line: &[u8]) -> Option<TextKind> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match text::parse(line) {
        Line::Header(Header::Cpus(_)) => Some(TextKind::TraceCmd),
        Line::Header(Header::Tracer(_) | Header::Entries { .. }) => Some(TextKind::Ftrace),
        Line::Event(event) if event.system.is_some() => Some(TextKind::Perf),
        Line::Event(_) | Line::Lost { .. } | Line::BufferStarted { .. } => Some(TextKind::Ftrace),
        Line::Header(_) | Line::Blank | Line::StackEntry | Line::Other(_) => None,
    }
}

/// Control characters that text does not have: all but tab, newline, form feed, return and escape. 0xff and
/// 0xfe are in no UTF-8.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f | 0xfe | 0xff)
}
