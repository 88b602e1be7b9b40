//! The uncompressed bytes of an input, of which the first ones have been looked at.

use super::InputError;
use super::compression::{self, Compression, Decoder, ReadFailure};
use super::sniff::{self, Kind, WINDOW};
use std::fmt;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};

/// Bytes read at a time while the kind is sought.
const SNIFF_STEP: usize = 4 << 10;

/// Where bytes come from.
pub(super) enum Source {
    /// A file on a disk that stands at its beginning.
    PlainFile(File),
    Stream(Box<dyn Read + Send>),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::PlainFile(file) => file.read(buffer),
            Source::Stream(stream) => stream.read(buffer),
        }
    }
}

enum Body {
    Plain(Source),
    Compressed(Compression, Box<Decoder<Chain<Cursor<Vec<u8>>, Source>>>),
}

/// The uncompressed bytes of an [`super::Input`], in order. Its errors hold an [`InputError`], which
/// [`io::Error::downcast`] gives; after one of them nothing more comes.
pub struct Reader {
    name: String,
    /// Bytes read ahead.
    window: Vec<u8>,
    /// How many of them have been given.
    given: usize,
    /// What was met while reading ahead, given after the window.
    failure: Option<InputError>,
    body: Body,
    /// Bytes that came out of `body`.
    offset: u64,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Reader");
        out.field("name", &self.name);
        out.field("compression", &self.compression());
        out.finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads the first bytes of `source` to tell its compression.
    pub(super) fn new(name: String, mut source: Source) -> Result<Reader, InputError> {
        let mut head = Vec::new();
        // A pipe may give a greeting alone at first; what is a trace already needs no more.
        while head.len() < compression::DETECT
            || head.len() < compression::DETECT_ATRACE && sniff::kind(&head, false).is_none()
        {
            match read_more(&mut source, &mut head) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(InputError::from_read(&name, 0, error)),
            }
        }
        let (body, window) = match compression::detect(&head) {
            None => (Body::Plain(source), head),
            Some((compression, before)) => {
                let input = Cursor::new(head).chain(source);
                let decoder = Decoder::new(compression, before, input)
                    .map_err(|error| InputError::from_read(&name, 0, error))?;
                (Body::Compressed(compression, Box::new(decoder)), Vec::new())
            }
        };
        Ok(Reader {
            name,
            offset: window.len() as u64,
            window,
            given: 0,
            failure: None,
            body,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        match self.body {
            Body::Plain(_) => None,
            Body::Compressed(compression, _) => Some(compression),
        }
    }

    /// Reads ahead until the kind is certain; what is read is kept.
    pub(super) fn sniff(&mut self) -> Result<Kind, InputError> {
        let mut ended = false;
        loop {
            let whole = ended || self.window.len() >= WINDOW;
            if let Some(kind) = sniff::kind(&self.window, whole) {
                return self.checked(kind);
            }
            if whole {
                return match self.failure.take() {
                    Some(failure) => Err(failure),
                    None => Err(InputError::Empty {
                        name: self.name.clone(),
                        compression: self.compression(),
                    }),
                };
            }
            let old = self.window.len();
            let mut step = vec![0; SNIFF_STEP];
            match self.read_body(&mut step) {
                Ok(0) => ended = true,
                Ok(count) => self.window.extend_from_slice(&step[..count]),
                Err(failure) => self.failure = Some(failure),
            }
            ended |= self.window.len() == old;
        }
    }

    fn checked(&self, kind: Kind) -> Result<Kind, InputError> {
        let inner = compression::detect(&self.window);
        match (self.compression(), inner) {
            (Some(outer), Some((inner, _))) => Err(InputError::CompressedTwice {
                name: self.name.clone(),
                outer,
                inner,
            }),
            _ => Ok(kind),
        }
    }

    /// The file, if the trace is one as it stands.
    pub(super) fn take_plain_file(&mut self) -> Option<File> {
        let nothing = Body::Plain(Source::Stream(Box::new(io::empty())));
        match std::mem::replace(&mut self.body, nothing) {
            Body::Plain(Source::PlainFile(file)) => Some(file),
            body => {
                self.body = body;
                None
            }
        }
    }

    fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        let count = match &mut self.body {
            Body::Plain(source) => loop {
                match source.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result.map_err(ReadFailure::Io),
                }
            },
            Body::Compressed(_, decoder) => decoder.read(buffer),
        };
        let name = || self.name.clone();
        match count {
            Ok(count) => {
                self.offset += count as u64;
                Ok(count)
            }
            Err(ReadFailure::Io(source)) => Err(InputError::Read {
                name: name(),
                offset: self.offset,
                source,
            }),
            Err(ReadFailure::Broken(failure)) => Err(InputError::Broken {
                name: name(),
                // Only a compressed body breaks.
                compression: self.compression().unwrap_or(Compression::Gzip),
                what: failure.what,
                compressed_offset: failure.compressed_offset,
                offset: failure.offset,
            }),
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ahead = &self.window[self.given..];
        if !ahead.is_empty() {
            let count = ahead.len().min(buffer.len());
            buffer[..count].copy_from_slice(&ahead[..count]);
            self.given += count;
            return Ok(count);
        }
        match self.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok(self.read_body(buffer)?),
        }
    }
}

/// Appends what one read gives.
fn read_more(source: &mut Source, head: &mut Vec<u8>) -> io::Result<usize> {
    let mut step = [0; SNIFF_STEP];
    loop {
        match source.read(&mut step) {
            Ok(count) => {
                head.extend_from_slice(&step[..count]);
                return Ok(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
