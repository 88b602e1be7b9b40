//! Reading a file whose sizes cannot be trusted: nothing is allocated before it is known to be there,
//! and every error says where.

use crate::record::{Endian, Error};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};

/// Longest string with a NUL at its end that is read, bytes.
const STRING_BYTES_MAX: usize = 4096;

/// A file, or a part of one that was decompressed.
pub(crate) struct Reader<S> {
    inner: BufReader<S>,
    /// Place of the next byte in `inner`.
    position: u64,
    /// Length of `inner`.
    len: u64,
    /// Added to places in errors: where a decompressed part begins in its file.
    base: u64,
    /// Byte order of numbers.
    pub(crate) endian: Endian,
}

impl<S: Read + Seek> Reader<S> {
    /// Reads `inner` from its begin. Numbers are little-endian until [`endian`](Self::endian) is set.
    pub(crate) fn new(mut inner: S) -> Result<Self, Error> {
        let at = |offset| move |source| Error::Io { offset, source };
        let len = inner.seek(SeekFrom::End(0)).map_err(at(0))?;
        inner.seek(SeekFrom::Start(0)).map_err(at(0))?;
        Ok(Reader {
            inner: BufReader::with_capacity(1 << 16, inner),
            position: 0,
            len,
            base: 0,
            endian: Endian::Little,
        })
    }

    /// The same for a part that was decompressed from the file's offset `base`.
    pub(crate) fn of_part(inner: S, base: u64, endian: Endian) -> Result<Self, Error> {
        let reader = Reader::new(inner)?;
        Ok(Reader {
            base,
            endian,
            ..reader
        })
    }

    /// Where the next byte stands, for errors.
    pub(crate) fn offset(&self) -> u64 {
        self.base.saturating_add(self.position)
    }

    /// Length, bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes from here to the end.
    pub(crate) fn left(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// Goes to a place in the file, which must not be behind its end; `what` is to be read there.
    pub(crate) fn seek(&mut self, position: u64, what: &str) -> Result<(), Error> {
        if position > self.len {
            return Err(self.truncated(position, what));
        }
        self.inner
            .seek(SeekFrom::Start(position))
            .map_err(|e| self.io(e))?;
        self.position = position;
        Ok(())
    }

    /// Passes `size` bytes of `what`.
    pub(crate) fn skip(&mut self, size: u64, what: &str) -> Result<(), Error> {
        match self.position.checked_add(size) {
            Some(position) if position <= self.len => self.seek(position, what),
            _ => Err(self.truncated(self.position, what)),
        }
    }

    /// Reads `size` bytes of `what`, at most `limit`.
    pub(crate) fn bytes(&mut self, size: u64, limit: u64, what: &str) -> Result<Vec<u8>, Error> {
        if size > self.left() {
            return Err(self.truncated(self.position, what));
        }
        if size > limit {
            let (offset, what) = (self.offset(), format!("the size of {what} in bytes"));
            return Err(Error::TooLarge {
                offset,
                what,
                size,
                limit,
            });
        }
        let mut bytes = vec![0; size as usize];
        self.exact(&mut bytes, what)?;
        Ok(bytes)
    }

    /// Reads `size` bytes of text, at most `limit`; what is no UTF-8 is replaced.
    pub(crate) fn text(&mut self, size: u64, limit: u64, what: &str) -> Result<String, Error> {
        let bytes = self.bytes(size, limit, what)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Reads a string up to its NUL.
    pub(crate) fn string(&mut self, what: &str) -> Result<String, Error> {
        let start = self.offset();
        let mut bytes = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
            if bytes.len() > STRING_BYTES_MAX {
                return Err(Error::Unexpected {
                    offset: start,
                    expected: format!("{what}, a string of at most {STRING_BYTES_MAX} bytes"),
                    found: "no NUL".to_owned(),
                });
            }
        }
    }

    /// Reads the string `text`, given with its NUL if it has one.
    pub(crate) fn expect(&mut self, text: &[u8]) -> Result<(), Error> {
        let offset = self.offset();
        let what = format!("{:?}", String::from_utf8_lossy(text));
        let mut found = vec![0; text.len()];
        self.exact(&mut found, &what)?;
        if found == text {
            return Ok(());
        }
        let found = format!("{:?}", String::from_utf8_lossy(&found));
        Err(Error::Unexpected {
            offset,
            expected: what,
            found,
        })
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Error> {
        self.array(what).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Error> {
        let bytes = self.array(what)?;
        Ok(match self.endian {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Error> {
        let bytes = self.array(what)?;
        Ok(match self.endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Error> {
        let bytes = self.array(what)?;
        Ok(match self.endian {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        })
    }

    /// Fills `buffer` with what stands at `position`; the caller has seen to it that it is there.
    pub(crate) fn read_at(&mut self, position: u64, buffer: &mut [u8]) -> Result<(), Error> {
        if position != self.position {
            self.seek(position, "data")?;
        }
        self.exact(buffer, "data")
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.exact(&mut bytes, what)?;
        Ok(bytes)
    }

    fn exact(&mut self, buffer: &mut [u8], what: &str) -> Result<(), Error> {
        match self.inner.read_exact(buffer) {
            Ok(()) => {
                self.position += buffer.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.truncated(self.position, what))
            }
            Err(error) => Err(self.io(error)),
        }
    }

    fn io(&self, source: std::io::Error) -> Error {
        let offset = self.offset();
        Error::Io { offset, source }
    }

    fn truncated(&self, position: u64, what: &str) -> Error {
        Error::Truncated {
            offset: self.base.saturating_add(position),
            end: self.base.saturating_add(self.len),
            what: what.to_owned(),
        }
    }
}
