//! A tracepoint's text, taken apart: fixed pieces and fields between them.
//!
//! Reading goes two ways:
//! 1. Piece by piece, when the text is just what the template says. This is the fast way, and the usual
//!    one: a stream keeps to the texts of one kernel.
//! 2. By labels, when no template fits, as with vendor kernels that mix eras: each field is looked for
//!    behind the fixed text that stands before it in any template. Never by position.

use super::Event;
use super::field::{Field, ValueType};
use super::literal::Literal;
use super::memo::Memo;
use super::names::Names;
use super::value;
use crate::release::Release;

/// How a field's value is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// As its type says.
    Plain,
    /// Hexadecimal without prefix.
    Hex,
    /// Left-justified in so many characters.
    Padded(usize),
}

/// A field with the fixed text before it.
#[derive(Debug)]
struct Piece {
    before: Literal,
    field: Field,
    /// Where the event keeps it.
    slot: u8,
    spelling: Spelling,
    numeral: Numeral,
}

/// Which digits a value begins with, if it is read digit by digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numeral {
    Decimal,
    Hexadecimal,
    None,
}

/// A text, taken apart.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) since: Release,
    pieces: Vec<Piece>,
    after: Literal,
    repeats: bool,
}

impl Template {
    /// Takes a declared text apart. Panics on one that names no field: declarations are code, and a test
    /// takes all of them apart.
    pub(super) fn new(since: &str, text: &'static str) -> Template {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, tail)) = rest.split_once('{') {
            let (field, tail) = tail.split_once('}').expect("closed");
            let (name, spelling) = match field.split_once(':') {
                None => (field, Spelling::Plain),
                Some((name, "x")) => (name, Spelling::Hex),
                Some((name, width)) => (name, Spelling::Padded(width.parse().expect("a width"))),
            };
            let field = Field::named(name).unwrap_or_else(|| panic!("a declared field: {name}"));
            pieces.push(Piece {
                before: Literal::new(before),
                field,
                slot: 0,
                spelling,
                numeral: Numeral::of(field, spelling),
            });
            rest = tail;
        }
        let is_page = |piece: &Piece| {
            piece.field == Field::Pfn || piece.field.spec().value == ValueType::Pointer
        };
        Template {
            since: since.parse().expect("a release"),
            repeats: !pieces.iter().any(is_page),
            pieces,
            after: Literal::new(rest),
        }
    }

    /// Says where the event keeps the fields.
    pub(super) fn place(&mut self, slot_of: &[u8]) {
        for piece in &mut self.pieces {
            piece.slot = slot_of[piece.field as usize];
        }
    }

    /// Whether the same text may well come again: it names no page.
    pub(super) fn repeats(&self) -> bool {
        self.repeats
    }

    /// The fields in the order of the text.
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        self.pieces.iter().map(|p| p.field)
    }

    /// Each field with the fixed text before it.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&'static str, Field, Spelling)> {
        let pieces = self.pieces.iter();
        pieces.map(|piece| (piece.before.text(), piece.field, piece.spelling))
    }

    /// The fixed text behind the last field.
    pub(super) fn after(&self) -> &'static str {
        self.after.text()
    }

    /// Writes the text; fields that the event lacks are 0 or empty.
    pub(super) fn render(&self, event: &Event, names: &Names, release: Release, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            out.extend_from_slice(piece.before.bytes());
            let value = event.get(piece.field);
            let kind = piece.field.spec().value;
            match (value, piece.spelling) {
                (None, _) if kind == ValueType::Text => {}
                (value, Spelling::Plain) => kind.render(value.unwrap_or(0), names, release, out),
                (value, Spelling::Hex) => {
                    value::push_hexadecimal(out, value.unwrap_or(0), 0);
                }
                (value, Spelling::Padded(width)) => {
                    let start = out.len();
                    kind.render(value.unwrap_or(0), names, release, out);
                    out.resize(out.len().max(start + width), b' ');
                }
            }
        }
        out.extend_from_slice(self.after.bytes());
    }

    /// Reads a text that is just as the template says. If it is not, the event may be left half filled.
    #[inline]
    pub(super) fn parse(
        &self,
        text: &[u8],
        event: &mut Event,
        names: &mut Names,
        memo: &mut Memo,
    ) -> bool {
        let mut rest = text;
        for (index, piece) in self.pieces.iter().enumerate() {
            let Some(tail) = piece.before.strip(rest) else {
                return false;
            };
            let number = match piece.numeral {
                Numeral::Decimal => value::leading_number(tail),
                Numeral::Hexadecimal => value::leading_hexadecimal(tail),
                Numeral::None => None,
            };
            if let Some((value, length)) = number {
                // What follows must be what the template says, which the next piece finds out.
                event.set_slot(piece.slot, value);
                rest = &tail[length..];
                continue;
            }
            let next = self
                .pieces
                .get(index + 1)
                .map_or(&self.after, |p| &p.before);
            let next = next.bytes();
            let length = value_length(piece, tail, next);
            let (value, tail) = tail.split_at(length);
            let kind = piece.field.spec().value;
            if !(kind == ValueType::Text && value.is_empty()) {
                match piece.value(kind, value, names, memo) {
                    Some(value) => event.set_slot(piece.slot, value),
                    None => return false,
                }
            }
            rest = match piece.spelling {
                Spelling::Padded(_) if next.is_empty() => tail.trim_ascii_start(),
                Spelling::Padded(_) => {
                    // The blank that the next piece begins with is not padding.
                    let padding = tail.iter().take_while(|&&b| b == b' ').count();
                    &tail[padding.saturating_sub(1)..]
                }
                _ => tail,
            };
        }
        self.after
            .strip(rest)
            .is_some_and(|rest| rest.trim_ascii().is_empty())
    }

    /// Reads what fields can be found behind their labels, and how many there were.
    pub(super) fn parse_labels(
        &self,
        text: &[u8],
        event: &mut Event,
        names: &mut Names,
        memo: &mut Memo,
    ) -> usize {
        let mut found = 0;
        for piece in &self.pieces {
            // What ends the field before is no part of the label.
            let label = piece
                .before
                .text()
                .trim_start_matches([':', ',', ' '])
                .trim_ascii_end();
            if label.is_empty() || event.get(piece.field).is_some() {
                continue;
            }
            let Some(at) = find_label(text, label.as_bytes()) else {
                continue;
            };
            let tail = text[at..].trim_ascii_start();
            let end = tail
                .iter()
                .position(|b| b.is_ascii_whitespace())
                .unwrap_or(tail.len());
            let value = tail[..end].trim_suffix_of(b",)");
            let kind = piece.field.spec().value;
            if let Some(value) = piece.value(kind, value, names, memo) {
                event.set_slot(piece.slot, value);
                found += 1;
            }
        }
        found
    }
}

/// Without commas and brackets at the end.
trait TrimSuffix {
    fn trim_suffix_of(&self, bytes: &[u8]) -> &Self;
}

impl TrimSuffix for [u8] {
    fn trim_suffix_of(&self, bytes: &[u8]) -> &[u8] {
        let kept = self.iter().rposition(|b| !bytes.contains(b));
        &self[..kept.map_or(0, |last| last + 1)]
    }
}

/// Where the text behind a label begins; the label stands at the start or behind a blank or bracket.
fn find_label(text: &[u8], label: &[u8]) -> Option<usize> {
    let mut from = 0;
    // Of nearly all places the first byte tells.
    let begins = |window: &[u8]| window.first() == label.first() && window == label;
    while let Some(at) = text[from..].windows(label.len()).position(begins) {
        let at = from + at;
        if at == 0 || matches!(text[at - 1], b' ' | b'(' | b',' | b':') {
            return Some(at + label.len());
        }
        from = at + 1;
    }
    None
}

/// How many bytes belong to the value: up to the first byte of what follows, of text up to all of it.
#[inline]
fn value_length(piece: &Piece, tail: &[u8], next: &[u8]) -> usize {
    let first = match piece.spelling {
        Spelling::Padded(_) => b' ',
        _ => match next.first() {
            None => return tail.len(),
            Some(first) => *first,
        },
    };
    if piece.field.spec().value == ValueType::Text && next.len() > 1 {
        let found = tail.windows(next.len()).position(|w| w == next);
        return found.unwrap_or(tail.len());
    }
    tail.iter().position(|&b| b == first).unwrap_or(tail.len())
}

impl Numeral {
    fn of(field: Field, spelling: Spelling) -> Numeral {
        match (spelling, field.spec().value) {
            (Spelling::Hex, _) | (Spelling::Plain, ValueType::Pointer) => Numeral::Hexadecimal,
            (Spelling::Plain, value) if value.is_number() => Numeral::Decimal,
            _ => Numeral::None,
        }
    }
}

impl Piece {
    #[inline]
    fn value(
        &self,
        kind: ValueType,
        text: &[u8],
        names: &mut Names,
        memo: &mut Memo,
    ) -> Option<u64> {
        match self.spelling {
            Spelling::Hex => value::hexadecimal(text.strip_prefix(b"0x").unwrap_or(text)),
            _ if kind.is_number() || kind == ValueType::Pointer => kind.parse(text, names),
            _ => memo.parse(kind, text.trim_ascii_end(), names),
        }
    }
}
