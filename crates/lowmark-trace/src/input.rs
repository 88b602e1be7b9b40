//! What a trace is read from: a file, a pipe or any reader, compressed or not.
//!
//! 1. [`compression`](Compression) is told by the first bytes and undone while reading, one layer of it.
//! 2. The kind of trace is told by the first bytes of what is inside ([`Kind`]).
//! 3. Text is read by [`Lines`]: a bounded buffer, no copy per line.
//! 4. trace.dat and perf.data need to seek: [`Input::into_seekable`] gives the file itself, or a temporary
//!    one without a name.
//!
//! Memory does not depend on the size of the input, compressed or not.

mod compression;
mod error;
mod gzip;
mod lines;
mod reader;
mod sniff;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

pub use compression::Compression;
pub use error::InputError;
pub use lines::{LINE_MAX, LineEnd, Lines, RawLine};
pub use reader::Reader;
pub use sniff::{Kind, TextKind, Unknown};

use reader::Source;

/// Bytes copied at a time into a temporary file.
const COPY: usize = 256 << 10;

/// An opened trace of a known [`Kind`], of which nothing has been consumed yet.
#[derive(Debug)]
pub struct Input {
    reader: Reader,
    kind: Kind,
    compression: Option<Compression>,
}

/// What [`Input::into_seekable`] gives: the whole trace, uncompressed, in a file.
#[derive(Debug)]
pub struct Seekable {
    /// Stands at its beginning. The file of the user if that is a plain one: do not write to it.
    pub file: File,
    /// Length of the trace, bytes.
    pub length: u64,
    /// Why the trace ends before its end, if it does: what came before is in `file`.
    pub broken: Option<InputError>,
}

impl Input {
    /// Opens a file or a named pipe.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, is a directory, has nothing in it, is compressed twice, or is
    /// compressed and damaged before its first byte.
    pub fn open(path: &Path) -> Result<Input, InputError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| InputError::Open {
            name: name.clone(),
            source,
        })?;
        Input::from_file(name, file)
    }

    /// Standard input. Called once: what it has read ahead no second caller sees.
    ///
    /// # Errors
    ///
    /// As [`Input::open`].
    pub fn stdin() -> Result<Input, InputError> {
        let name = String::from("standard input");
        // The file itself: the library's standard input locks and copies at each read.
        #[cfg(unix)]
        return match std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned() {
            Ok(file) => Input::from_file(name, File::from(file)),
            Err(source) => Err(InputError::Open { name, source }),
        };
        #[cfg(not(unix))]
        Input::from_source(name, Source::Stream(Box::new(io::stdin())))
    }

    /// Any reader; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// As [`Input::open`], once it is open.
    pub fn from_reader(
        name: &str,
        reader: impl Read + Send + 'static,
    ) -> Result<Input, InputError> {
        Input::from_source(name.to_owned(), Source::Stream(Box::new(reader)))
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How it was compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        self.reader.name()
    }

    /// The error to report if the caller cannot read this kind.
    pub fn unrecognised(&self) -> InputError {
        let (offset, looks_like) = match self.kind {
            Kind::Unknown(Unknown { offset, looks_like }) => (offset, looks_like),
            Kind::Text(_) => (0, Some("text")),
            Kind::TraceDat => (0, Some("a trace.dat")),
            Kind::PerfData { .. } => (0, Some("a perf.data")),
        };
        InputError::NotATrace {
            name: self.name().to_owned(),
            offset,
            looks_like,
        }
    }

    /// The uncompressed bytes, from the first one on.
    pub fn into_reader(self) -> Reader {
        self.reader
    }

    /// The lines of a text; of a systrace page those of its trace only.
    pub fn into_lines(self) -> Lines<Reader> {
        let name = self.name().to_owned();
        let lines = Lines::new(&name, self.reader);
        match self.kind {
            Kind::Text(TextKind::Systrace) => lines.of_trace_data(),
            _ => lines,
        }
    }

    /// The uncompressed trace in a file: the one that was opened if it is plain, otherwise a temporary one
    /// that has no name and is gone when it is closed. It takes at most `spool_max` bytes; a plain file may
    /// be longer.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be written, or would take more than `spool_max`. A damaged input is no
    /// error: see [`Seekable::broken`].
    pub fn into_seekable(mut self, spool_max: u64) -> Result<Seekable, InputError> {
        let name = self.name().to_owned();
        let spool = |source| InputError::Spool {
            name: name.clone(),
            source,
        };
        if let Some(mut file) = self.reader.take_plain_file() {
            let length = file.metadata().map_err(spool)?.len();
            file.rewind().map_err(spool)?;
            return Ok(Seekable {
                file,
                length,
                broken: None,
            });
        }
        let mut file = tempfile::tempfile().map_err(spool)?;
        let mut buffer = vec![0; COPY];
        let mut length = 0;
        let broken = loop {
            let count = match self.reader.read(&mut buffer) {
                Ok(0) => break None,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Some(InputError::from_read(&name, length, error)),
            };
            length += count as u64;
            if length > spool_max {
                return Err(InputError::TooLarge { name, spool_max });
            }
            file.write_all(&buffer[..count]).map_err(spool)?;
        };
        file.rewind().map_err(spool)?;
        Ok(Seekable {
            file,
            length,
            broken,
        })
    }

    /// Sorts out what a file may be besides a plain one.
    fn from_file(name: String, mut file: File) -> Result<Input, InputError> {
        let kind = file.metadata().map_err(|source| InputError::Open {
            name: name.clone(),
            source,
        })?;
        if kind.is_dir() {
            return Err(InputError::Directory { name });
        }
        // Standard input may be a file of which a program before has read a part.
        let whole = kind.is_file() && file.stream_position().is_ok_and(|position| position == 0);
        let source = if whole {
            Source::PlainFile(file)
        } else {
            Source::Stream(Box::new(file))
        };
        Input::from_source(name, source)
    }

    fn from_source(name: String, source: Source) -> Result<Input, InputError> {
        let mut reader = Reader::new(name, source)?;
        let compression = reader.compression();
        let kind = reader.sniff()?;
        Ok(Input {
            reader,
            kind,
            compression,
        })
    }
}
