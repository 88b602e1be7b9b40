//! What can be wrong with an input, each with its place, what was expected and what to do.

use super::Compression;
use lowmark_record::Flaw;
use std::io;

/// What is wrong with compressed data that end before they should.
pub(super) const CUT_OFF: &str = "are cut off";

/// An input that cannot be read, or not to its end. Offsets are in bytes from 0.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system refused.
    #[error("{name}: cannot open: {source}")]
    Open {
        /// Path, or what the input is called.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A directory.
    #[error("{name}: a directory; expected a trace file: name one of the files in it")]
    Directory {
        /// Path.
        name: String,
    },
    /// Not one byte, after decompression if it is compressed.
    #[error(
        "{name}: empty{}; expected a trace: was tracing on when it was taken?",
        inside(*compression)
    )]
    Empty {
        /// Path, or what the input is called.
        name: String,
        /// What it is wrapped in.
        compression: Option<Compression>,
    },
    /// None of the kinds of trace.
    #[error(
        "{name}: not a trace{}: the bytes at offset {offset} are neither text nor the beginning of a \
         trace.dat or perf.data; expected ftrace text, trace-cmd report, perf script, trace.dat or \
         perf.data, plain or compressed with gzip, xz or zstd",
        guess(*looks_like)
    )]
    NotATrace {
        /// Path, or what the input is called.
        name: String,
        /// First byte that does not fit, in the uncompressed input.
        offset: u64,
        /// What it seems to be.
        looks_like: Option<&'static str>,
    },
    /// Compressed data inside compressed data.
    #[error(
        "{name}: {inner} inside {outer}; expected a trace in one compression: undo the outer one first"
    )]
    CompressedTwice {
        /// Path, or what the input is called.
        name: String,
        /// Compression that was undone.
        outer: Compression,
        /// Compression found inside.
        inner: Compression,
    },
    /// Compressed data that are cut off or damaged. What comes before `offset` has been delivered.
    #[error(
        "{name}: {compression} data {what} at offset {compressed_offset}; read up to there: {offset} bytes \
         of the trace; take the file again from where it came, or go on with what was read"
    )]
    Broken {
        /// Path, or what the input is called.
        name: String,
        /// How it is compressed.
        compression: Compression,
        /// What is wrong: "are cut off", "are damaged (…)".
        what: String,
        /// Bytes of the input that were used.
        compressed_offset: u64,
        /// Bytes that came out.
        offset: u64,
    },
    /// The system failed while reading.
    #[error("{name}: cannot read on at offset {offset}: {source}")]
    Read {
        /// Path, or what the input is called.
        name: String,
        /// Bytes that were read before, uncompressed.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// No temporary file for a binary trace that comes compressed or from a pipe.
    #[error(
        "{name}: cannot keep it in a temporary file: {source}; set TMPDIR to where there is room, or uncompress it first"
    )]
    Spool {
        /// Path, or what the input is called.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A binary trace that comes compressed or from a pipe and is too long to be kept.
    #[error(
        "{name}: more than {spool_max} bytes when uncompressed; uncompress it into a file and name that"
    )]
    TooLarge {
        /// Path, or what the input is called.
        name: String,
        /// What the caller allows, bytes.
        spool_max: u64,
    },
}

impl InputError {
    /// What it makes of the trace: compressed data that cannot be undone are damaged, all else ends too early.
    pub fn flaw(&self) -> Flaw {
        match self {
            InputError::Broken { what, .. } if what != CUT_OFF => Flaw::Damaged,
            _ => Flaw::Truncated,
        }
    }

    /// The error that a [`super::Reader`] wrapped up, or a failed read of another reader at `offset`.
    pub(super) fn from_read(name: &str, offset: u64, error: io::Error) -> InputError {
        error.downcast().unwrap_or_else(|source| InputError::Read {
            name: name.to_owned(),
            offset,
            source,
        })
    }
}

impl From<InputError> for io::Error {
    /// So that [`super::Reader`] can be a [`io::Read`]; `downcast` gives the error back.
    fn from(error: InputError) -> io::Error {
        let kind = match &error {
            InputError::Open { source, .. }
            | InputError::Read { source, .. }
            | InputError::Spool { source, .. } => source.kind(),
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

fn inside(compression: Option<Compression>) -> String {
    compression.map_or_else(String::new, |compression| {
        format!(" inside its {compression}")
    })
}

fn guess(looks_like: Option<&str>) -> String {
    looks_like.map_or_else(String::new, |what| format!(" (it looks like {what})"))
}
