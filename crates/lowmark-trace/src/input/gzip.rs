//! The members of a gzip file (RFC 1952) around their deflate streams.
//!
//! A member is a header of ten bytes, its optional parts, deflate data, checksum and length. The next one
//! follows at once; zeros after the last one are padding (tapes, block devices).

use super::compression::{Step, step_inflate};
use flate2::{Crc, Decompress};

const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;
const HEADER: usize = 10;
const TRAILER: usize = 8;

/// Which part of a member the next byte belongs to.
enum Part {
    /// The fixed header; before its first byte the file may end.
    Header,
    ExtraLength,
    /// Bytes left.
    Extra(u16),
    Name,
    Comment,
    HeaderCrc,
    Data,
    Trailer,
    Padding,
}

/// Undoes gzip, fed with pieces of any size.
pub(super) struct Gunzip {
    part: Part,
    /// Bytes of the current part that came so far, where it is a few of fixed number.
    held: [u8; HEADER],
    held_count: usize,
    /// Optional parts still to come in this header.
    flags: u8,
    inflate: Decompress,
    crc: Crc,
    /// Whether a member came before: only then may padding follow.
    again: bool,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Gunzip {
            part: Part::Header,
            held: [0; HEADER],
            held_count: 0,
            flags: 0,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            again: false,
        }
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let between = matches!(self.part, Part::Header) && self.held_count == 0;
        if input.is_empty() && self.again && (between || matches!(self.part, Part::Padding)) {
            return Step {
                consumed: 0,
                produced: 0,
                ended: Ok(true),
            };
        }
        let mut consumed = 0;
        while !matches!(self.part, Part::Data) {
            let Some(&byte) = input.get(consumed) else {
                break;
            };
            if let Err(what) = self.frame(byte) {
                return Step {
                    consumed,
                    produced: 0,
                    ended: Err(what.to_owned()),
                };
            }
            consumed += 1;
        }
        if !matches!(self.part, Part::Data) {
            return Step {
                consumed,
                produced: 0,
                ended: Ok(false),
            };
        }
        let mut step = step_inflate(&mut self.inflate, &input[consumed..], output);
        step.consumed += consumed;
        self.crc.update(&output[..step.produced]);
        if matches!(step.ended, Ok(true)) {
            self.part = Part::Trailer;
            step.ended = Ok(false);
        }
        step
    }

    /// One byte outside the data.
    fn frame(&mut self, byte: u8) -> Result<(), &'static str> {
        match self.part {
            Part::Header => {
                if self.again && self.held_count == 0 && byte == 0 {
                    self.part = Part::Padding;
                } else if self.hold(byte, HEADER) {
                    self.begin()?;
                } else if self.held_count == 1 && byte != 0x1f {
                    return Err("what follows the last member is not gzip");
                }
            }
            Part::ExtraLength => {
                if self.hold(byte, 2) {
                    let length = u16::from_le_bytes([self.held[0], self.held[1]]);
                    self.part = Part::Extra(length);
                    if length == 0 {
                        self.next_part();
                    }
                }
            }
            Part::Extra(left) if left > 1 => self.part = Part::Extra(left - 1),
            Part::Extra(_) => self.next_part(),
            Part::Name | Part::Comment => {
                if byte == 0 {
                    self.next_part();
                }
            }
            Part::HeaderCrc => {
                if self.hold(byte, 2) {
                    self.next_part();
                }
            }
            Part::Trailer => {
                if self.hold(byte, TRAILER) {
                    self.finish()?;
                }
            }
            Part::Padding if byte != 0 => return Err("what follows the padding is not gzip"),
            Part::Padding | Part::Data => {}
        }
        Ok(())
    }

    /// Whether `byte` completes a part of `count` bytes; those are then in `held`.
    fn hold(&mut self, byte: u8, count: usize) -> bool {
        self.held[self.held_count] = byte;
        self.held_count = (self.held_count + 1) % count;
        self.held_count == 0
    }

    fn begin(&mut self) -> Result<(), &'static str> {
        if !self.held.starts_with(b"\x1f\x8b\x08") {
            return Err("no gzip header");
        }
        self.flags = self.held[3];
        self.inflate.reset(false);
        self.crc.reset();
        self.next_part();
        Ok(())
    }

    /// The optional parts come in this order (RFC 1952, 2.3).
    fn next_part(&mut self) {
        for (flag, part) in [
            (FLAG_EXTRA, Part::ExtraLength),
            (FLAG_NAME, Part::Name),
            (FLAG_COMMENT, Part::Comment),
            (FLAG_HEADER_CRC, Part::HeaderCrc),
        ] {
            if self.flags & flag != 0 {
                self.flags &= !flag;
                self.part = part;
                return;
            }
        }
        self.part = Part::Data;
    }

    fn finish(&mut self) -> Result<(), &'static str> {
        let word = |at: usize| {
            let held = &self.held;
            u32::from_le_bytes([held[at], held[at + 1], held[at + 2], held[at + 3]])
        };
        if word(0) != self.crc.sum() {
            return Err("wrong checksum");
        }
        if word(4) != self.crc.amount() {
            return Err("wrong length");
        }
        self.part = Part::Header;
        self.again = true;
        Ok(())
    }
}
