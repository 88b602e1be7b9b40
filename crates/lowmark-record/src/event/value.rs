//! Values of fields as text: written as the kernel writes them, read in every spelling it ever had.

use super::field::ValueType;
use super::gfp;
use super::names::Names;
use crate::release::Release;
use std::io::Write;

/// `RECLAIM_WB_*` in the order in which they are printed (`show_reclaim_flags`).
const RECLAIM_FLAGS: [(u64, &str); 5] = [
    (0x01, "RECLAIM_WB_ANON"),
    (0x02, "RECLAIM_WB_FILE"),
    (0x10, "RECLAIM_WB_MIXED"),
    (0x04, "RECLAIM_WB_SYNC"),
    (0x08, "RECLAIM_WB_ASYNC"),
];

/// Bit of `RECLAIM_WB_ANON`.
pub const RECLAIM_WB_ANON: u64 = 0x01;
/// Bit of `RECLAIM_WB_FILE`.
pub const RECLAIM_WB_FILE: u64 = 0x02;
/// Bit of `RECLAIM_WB_MIXED`.
pub const RECLAIM_WB_MIXED: u64 = 0x10;
/// Bit of `RECLAIM_WB_SYNC`.
pub const RECLAIM_WB_SYNC: u64 = 0x04;
/// Bit of `RECLAIM_WB_ASYNC`.
pub const RECLAIM_WB_ASYNC: u64 = 0x08;

/// `enum lru_list` by name.
const LRU: [&str; 5] = [
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
];

/// `enum vmscan_throttle_state` by name, one bit each in the event.
const THROTTLE: [(u64, &str); 4] = [
    (1, "VMSCAN_THROTTLE_WRITEBACK"),
    (2, "VMSCAN_THROTTLE_ISOLATED"),
    (4, "VMSCAN_THROTTLE_NOPROGRESS"),
    (8, "VMSCAN_THROTTLE_CONGESTED"),
];

/// A set of flags by name, as `__print_flags` prints it; the unknown rest is hexadecimal.
fn push_flags(out: &mut Vec<u8>, mut value: u64, table: &[(u64, &str)], none: &str) {
    if value == 0 {
        out.extend_from_slice(none.as_bytes());
        return;
    }
    let start = out.len();
    for &(bits, name) in table {
        if value & bits == bits {
            value &= !bits;
            if out.len() > start {
                out.push(b'|');
            }
            out.extend_from_slice(name.as_bytes());
        }
    }
    if value != 0 {
        let bar = if out.len() > start { "|" } else { "" };
        push(out, format_args!("{bar}0x{value:x}"));
    }
}

fn parse_flags(text: &[u8], table: &[(u64, &str)], none: &str) -> Option<u64> {
    if text == none.as_bytes() {
        return Some(0);
    }
    let mut value = 0;
    for part in text.split(|&b| b == b'|') {
        let known = table.iter().find(|(_, name)| name.as_bytes() == part);
        value |= match known {
            Some((bits, _)) => *bits,
            None => number(part)?,
        };
    }
    Some(value)
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

/// Hexadecimal digits of a value, at least `width`.
pub(super) fn push_hexadecimal(out: &mut Vec<u8>, value: u64, width: usize) {
    let digits = (16 - value.leading_zeros() as usize / 4).max(width).max(1);
    let nibble = |at: usize| b"0123456789abcdef"[(value >> (4 * at)) as usize & 0xf];
    out.extend((0..digits).rev().map(nibble));
}

fn push_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A number: decimal with or without sign, or hexadecimal after `0x`. Signed values keep their bits.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    match text {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits),
        [b'-', digits @ ..] => {
            let value = decimal(digits)?;
            (value <= 1 << 63).then(|| value.wrapping_neg())
        }
        digits => decimal(digits),
    }
}

/// The decimal number at the start of a text, and its length. None if there is none, or if it goes on in a
/// way that a number does not.
#[inline]
pub(super) fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    let negative = text.first() == Some(&b'-');
    let digits = &text[usize::from(negative)..];
    let mut value = 0u64;
    let mut length = 0;
    for &b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    // Nineteen digits cannot overflow; longer ones take the careful way.
    if length == 0 || length > 19 || digits.get(length) == Some(&b'x') {
        return None;
    }
    if negative {
        (value <= 1 << 63).then(|| (value.wrapping_neg(), length + 1))
    } else {
        Some((value, length))
    }
}

#[inline]
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    // Nineteen digits cannot overflow; a twentieth is checked.
    let (head, tail) = digits.split_at(digits.len().min(19));
    for &b in head {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    for &b in tail {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Value of each hexadecimal digit, `0xff` for other bytes.
const HEX_DIGITS: [u8; 256] = {
    let mut digits = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

#[inline]
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value = 0u64;
    let mut wrong = 0;
    for &b in digits {
        let digit = HEX_DIGITS[usize::from(b)];
        wrong |= digit & 0xf0;
        value = value << 4 | u64::from(digit & 0xf);
    }
    (wrong == 0).then_some(value)
}

/// The hexadecimal number at the start of a text, after `0x` or bare, and its length.
#[inline]
pub(super) fn leading_hexadecimal(text: &[u8]) -> Option<(u64, usize)> {
    if let Some(digits) = text.strip_prefix(b"0x") {
        return leading_digits(digits).map(|(value, length)| (value, length + 2));
    }
    leading_digits(text)
}

#[inline(always)]
fn leading_digits(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut length = 0;
    while length < 16
        && let Some(eight) = text[length..].first_chunk().and_then(eight_digits)
    {
        value = value << 32 | eight;
        length += 8;
    }
    for &b in &text[length..] {
        let digit = HEX_DIGITS[usize::from(b)];
        if digit > 0xf {
            break;
        }
        value = value << 4 | u64::from(digit);
        length += 1;
    }
    (1..=16).contains(&length).then_some((value, length))
}

/// Eight hexadecimal digits, as of addresses, at once; none if one of the bytes is no digit.
#[inline]
fn eight_digits(bytes: &[u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let word = u64::from_le_bytes(*bytes);
    if word & HIGH != 0 {
        return None;
    }
    // The high bit of each byte that is larger; none is carried over, as all bytes are below 0x80.
    let larger = |word: u64, than: u8| word + u64::from(0x7f - than) * EACH;
    let numeral = larger(word, b'0' - 1) & !larger(word, b'9');
    let lower = word | (0x20 * EACH);
    let letter = larger(lower, b'a' - 1) & !larger(lower, b'f');
    if (numeral | letter) & HIGH != HIGH {
        return None;
    }
    // The first digit is in the lowest byte and counts most.
    let digits = (word & (0x0f * EACH)) + 9 * (word >> 6 & EACH);
    let pairs = (digits << 4 | digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some((fours << 16 | fours >> 32) & 0xffff_ffff)
}

/// Pointers that `%p` prints in words.
fn pointer(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    hexadecimal(digits).or_else(|| {
        let words: [&[u8]; 4] = [b"(null)", b"(____ptrval____)", b"(ptrval)", b"(efault)"];
        words.contains(&text).then_some(0)
    })
}

fn device(text: &[u8]) -> Option<u64> {
    let at = text.iter().position(|&b| b == b':' || b == b',')?;
    let (major, minor) = (decimal(&text[..at])?, decimal(&text[at + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// What the values of a type are called in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueNames {
    /// Names of flags, tried in this order, and the name of an empty set.
    Flags(Vec<(u64, String)>, &'static str),
    /// Names of values.
    Symbols(Vec<(u64, String)>),
}

impl ValueNames {
    fn flags(table: &[(u64, &str)], none: &'static str) -> ValueNames {
        let named = table.iter().map(|&(bits, name)| (bits, name.to_owned()));
        ValueNames::Flags(named.collect(), none)
    }
}

impl ValueType {
    /// What the values are called, as binary records have them ([`gfp::Recorded`] for allocation flags); none
    /// of types that are numbers or texts.
    pub fn names(self, release: Release) -> Option<ValueNames> {
        Some(match self {
            ValueType::Gfp => {
                let gfp::Recorded { names, none, .. } = gfp::Recorded::new(release);
                ValueNames::Flags(names, none)
            }
            ValueType::ReclaimFlags => ValueNames::flags(&RECLAIM_FLAGS, "RECLAIM_WB_NONE"),
            ValueType::Throttle => ValueNames::flags(&THROTTLE, "VMSCAN_THROTTLE_NONE"),
            ValueType::Lru => {
                let named = LRU.iter().enumerate();
                ValueNames::Symbols(named.map(|(n, name)| (n as u64, (*name).into())).collect())
            }
            _ => return None,
        })
    }

    /// Reads a value; none if the text is not one of this type.
    pub fn parse(self, text: &[u8], names: &mut Names) -> Option<u64> {
        match self {
            ValueType::Signed | ValueType::Unsigned => number(text),
            ValueType::Pointer => pointer(text),
            ValueType::Text => Some(names.intern(text)),
            ValueType::Gfp => gfp::parse(text),
            ValueType::ReclaimFlags => parse_flags(text, &RECLAIM_FLAGS, "RECLAIM_WB_NONE"),
            ValueType::Lru => match LRU.iter().position(|name| name.as_bytes() == text) {
                Some(index) => Some(index as u64),
                None => number(text),
            },
            ValueType::Throttle => parse_flags(text, &THROTTLE, "VMSCAN_THROTTLE_NONE"),
            ValueType::Device => device(text),
        }
    }

    /// Writes a value as a kernel of `release` prints it.
    pub fn render(self, value: u64, names: &Names, release: Release, out: &mut Vec<u8>) {
        match self {
            ValueType::Signed => {
                let signed = value.cast_signed();
                if signed < 0 {
                    out.push(b'-');
                }
                push_decimal(out, signed.unsigned_abs());
            }
            ValueType::Unsigned => push_decimal(out, value),
            ValueType::Pointer => push_hexadecimal(out, value, 16),
            ValueType::Text => out.extend_from_slice(names.text(value).as_bytes()),
            ValueType::Gfp => gfp::render(value, release, out),
            ValueType::ReclaimFlags => push_flags(out, value, &RECLAIM_FLAGS, "RECLAIM_WB_NONE"),
            ValueType::Lru => match usize::try_from(value).ok().and_then(|i| LRU.get(i)) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => push_decimal(out, value),
            },
            ValueType::Throttle => push_flags(out, value, &THROTTLE, "VMSCAN_THROTTLE_NONE"),
            ValueType::Device => push(
                out,
                format_args!("{}:{}", value >> 20, value & ((1 << 20) - 1)),
            ),
        }
    }

    /// Whether JSON shows it as a number rather than as text.
    pub fn is_number(self) -> bool {
        matches!(self, ValueType::Signed | ValueType::Unsigned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_what_the_library_reads() {
        let plain = |bytes: &[u8; 8]| {
            let text = std::str::from_utf8(bytes).ok()?;
            let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                let mut bytes = *b"0a9FfA5c";
                bytes[place] = byte;
                assert_eq!(eight_digits(&bytes), plain(&bytes), "{bytes:?}");
            }
        }
    }

    #[test]
    fn leading_digits_of_any_length() {
        for (text, read) in [
            ("", None),
            ("x", None),
            ("7", Some((0x7, 1))),
            ("deadbeef pfn", Some((0xdead_beef, 8))),
            ("deadbeef7 pfn", Some((0xd_eadb_eef7, 9))),
            ("00000000eb2a8566", Some((0xeb2a_8566, 16))),
            ("ffffffffffffffff,", Some((u64::MAX, 16))),
            ("1ffffffffffffffff", None),
            ("000000000000000000000001", None),
        ] {
            assert_eq!(leading_digits(text.as_bytes()), read, "{text}");
        }
    }
}
