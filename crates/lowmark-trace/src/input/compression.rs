//! Compressions told by their first bytes and undone while reading.
//!
//! The libraries are driven step by step, not through their readers: those drop what a call had decoded when
//! it runs into damage, and do not say where in the file that was.

use super::error::CUT_OFF;
use super::gzip::Gunzip;
use super::sniff;
use flate2::{Decompress, FlushDecompress, Status};
use liblzma::stream::{Action, CONCATENATED, Status as XzStatus, Stream};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use zstd::stream::raw::{Decoder as RawZstd, InBuffer, Operation, OutBuffer};

/// Memory that an xz file may demand for its dictionary, bytes: `xz -9` takes 65 MiB. zstd has a limit of its
/// own, 128 MiB.
const XZ_MEMORY_MAX: u64 = 256 << 20;
/// Compressed bytes read at a time.
const BUFFER: usize = 64 << 10;
/// Bytes asked of zstd at a time: what a call has decoded before it meets damage is lost.
const ZSTD_STEP: usize = 4 << 10;
/// How far into the input the mark of a compressed atrace is looked for: a line of greeting comes before.
const ATRACE_MARK_WITHIN: usize = 256;
const ATRACE_MARK: &[u8] = b"TRACE:\n";

/// How an input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, of one or more members.
    Gzip,
    /// xz, of one or more streams.
    Xz,
    /// Zstandard, of one or more frames.
    Zstd,
    /// zlib after the line `TRACE:`, as `atrace -z` writes it.
    Atrace,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Atrace => "atrace zlib",
        })
    }
}

/// Bytes that [`detect`] wants to see, if there are as many.
pub(super) const DETECT: usize = 6;
/// The same where a greeting may come before a compressed atrace.
pub(super) const DETECT_ATRACE: usize = ATRACE_MARK_WITHIN + 2;

/// The compression that begins with `head`, and how many bytes come before the compressed ones.
pub(super) fn detect(head: &[u8]) -> Option<(Compression, usize)> {
    const MAGICS: [(&[u8], Compression); 3] = [
        (b"\x1f\x8b\x08", Compression::Gzip),
        (b"\xfd7zXZ\0", Compression::Xz),
        (b"\x28\xb5\x2f\xfd", Compression::Zstd),
    ];
    let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, compression)) = magic {
        return Some((*compression, 0));
    }
    let beginning = &head[..head.len().min(ATRACE_MARK_WITHIN)];
    let start = memchr::memmem::find(beginning, ATRACE_MARK)? + ATRACE_MARK.len();
    // What is a trace up to there is one, whatever it holds behind.
    if sniff::kind(&head[..start], false).is_some() {
        return None;
    }
    // RFC 1950: method 8 and a header divisible by 31. Text after the mark is an atrace without `-z`.
    match head.get(start..start + 2)? {
        [first, second] if first & 0x0f == 8 => {
            let header = u32::from(*first) << 8 | u32::from(*second);
            (header % 31 == 0).then_some((Compression::Atrace, start))
        }
        _ => None,
    }
}

/// One call of a decoder.
pub(super) struct Step {
    /// Bytes taken from the input.
    pub(super) consumed: usize,
    /// Bytes put into the output, valid even if it failed.
    pub(super) produced: usize,
    /// Whether the end was reached, or what is wrong.
    pub(super) ended: Result<bool, String>,
}

enum Codec {
    Gzip(Gunzip),
    Xz(Box<Stream>),
    /// With whether the last frame is complete.
    Zstd(RawZstd<'static>, bool),
    Zlib(Decompress),
}

/// Where a decoder stopped and why.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// Bytes of the compressed input that were used.
    pub(super) compressed_offset: u64,
    /// Bytes that came out.
    pub(super) offset: u64,
    /// As [`super::InputError::Broken`] has it.
    pub(super) what: String,
}

#[derive(Clone)]
enum State {
    Running,
    Ended,
    Failed(Failure),
}

/// Uncompressed bytes of `R`.
pub(super) struct Decoder<R> {
    input: BufReader<R>,
    codec: Codec,
    consumed: u64,
    produced: u64,
    state: State,
}

/// Why [`Decoder::read`] gave nothing.
pub(super) enum ReadFailure {
    /// The input could not be read.
    Io(io::Error),
    /// It is damaged or cut off.
    Broken(Failure),
}

impl<R: Read> Decoder<R> {
    /// `before`: bytes of `input` that come before the compressed ones.
    pub(super) fn new(compression: Compression, before: usize, mut input: R) -> io::Result<Self> {
        let skipped = io::copy(&mut (&mut input).take(before as u64), &mut io::sink())?;
        let codec = match compression {
            Compression::Gzip => Codec::Gzip(Gunzip::new()),
            Compression::Xz => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY_MAX, CONCATENATED);
                Codec::Xz(Box::new(stream.map_err(io::Error::from)?))
            }
            Compression::Zstd => Codec::Zstd(RawZstd::new()?, false),
            Compression::Atrace => Codec::Zlib(Decompress::new(true)),
        };
        Ok(Decoder {
            input: BufReader::with_capacity(BUFFER, input),
            codec,
            consumed: skipped,
            produced: 0,
            state: State::Running,
        })
    }

    /// As [`Read::read`]. What was decoded before damage is given first; the failure then at each call.
    pub(super) fn read(&mut self, output: &mut [u8]) -> Result<usize, ReadFailure> {
        if output.is_empty() {
            return Ok(0);
        }
        loop {
            match &self.state {
                State::Running => {}
                State::Ended => return Ok(0),
                State::Failed(failure) => return Err(ReadFailure::Broken(failure.clone())),
            }
            let input = match self.input.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ReadFailure::Io(error)),
            };
            let at_end = input.is_empty();
            let step = self.codec.step(input, output);
            self.input.consume(step.consumed);
            self.consumed += step.consumed as u64;
            self.produced += step.produced as u64;
            let stuck = step.consumed == 0 && step.produced == 0;
            match step.ended {
                Ok(true) => self.state = State::Ended,
                Ok(false) if stuck && at_end => self.fail(CUT_OFF.to_owned()),
                Ok(false) if stuck => self.fail("are damaged (no progress)".to_owned()),
                Ok(false) => {}
                Err(what) => self.fail(format!("are damaged ({what})")),
            }
            if step.produced > 0 {
                return Ok(step.produced);
            }
        }
    }

    fn fail(&mut self, what: String) {
        self.state = State::Failed(Failure {
            compressed_offset: self.consumed,
            offset: self.produced,
            what,
        });
    }
}

impl Codec {
    /// No input: its end.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self {
            Codec::Gzip(gunzip) => gunzip.step(input, output),
            Codec::Xz(stream) => step_xz(stream, input, output),
            Codec::Zstd(decoder, complete) => step_zstd(decoder, complete, input, output),
            Codec::Zlib(inflate) => step_inflate(inflate, input, output),
        }
    }
}

fn step_xz(stream: &mut Stream, input: &[u8], output: &mut [u8]) -> Step {
    let before = (stream.total_in(), stream.total_out());
    // Only at the end does the library know that no further stream follows.
    let action = if input.is_empty() {
        Action::Finish
    } else {
        Action::Run
    };
    let status = stream.process(input, output, action);
    Step {
        consumed: (stream.total_in() - before.0) as usize,
        produced: (stream.total_out() - before.1) as usize,
        ended: match status {
            Ok(status) => Ok(status == XzStatus::StreamEnd),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn step_zstd(
    decoder: &mut RawZstd<'static>,
    complete: &mut bool,
    input: &[u8],
    output: &mut [u8],
) -> Step {
    if input.is_empty() && *complete {
        return Step {
            consumed: 0,
            produced: 0,
            ended: Ok(true),
        };
    }
    let room = output.len().min(ZSTD_STEP);
    let mut from = InBuffer::around(input);
    let mut to = OutBuffer::around(&mut output[..room]);
    let hint = decoder.run(&mut from, &mut to);
    let (consumed, produced) = (from.pos(), to.pos());
    // 0: a frame is complete and flushed. The next call begins another one.
    *complete = matches!(hint, Ok(0));
    Step {
        consumed,
        produced,
        ended: hint.map(|_| false).map_err(|error| error.to_string()),
    }
}

/// Deflate with or without the frame of zlib, as `inflate` was made.
pub(super) fn step_inflate(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> Step {
    let before = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, FlushDecompress::None);
    Step {
        consumed: (inflate.total_in() - before.0) as usize,
        produced: (inflate.total_out() - before.1) as usize,
        ended: match status {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(error.to_string()),
        },
    }
}
