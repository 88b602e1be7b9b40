//! Texts of values that were read before: names and sets of flags repeat, and looking them up costs more than
//! comparing them.

use super::field::ValueType;
use super::names::Names;

/// Longest text that is remembered, bytes.
const TEXT_MAX: usize = 128;
/// Texts that are remembered.
const ENTRIES: usize = 128;

/// What was read last, by a cheap key.
#[derive(Debug, Clone)]
pub(super) struct Memo {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    kind: ValueType,
    text: Vec<u8>,
    value: u64,
}

impl Default for Memo {
    fn default() -> Self {
        let empty = Entry {
            kind: ValueType::Signed,
            text: Vec::new(),
            value: 0,
        };
        Memo {
            entries: vec![empty; ENTRIES],
        }
    }
}

impl Memo {
    /// As [`ValueType::parse`].
    #[inline]
    pub(super) fn parse(&mut self, kind: ValueType, text: &[u8], names: &mut Names) -> Option<u64> {
        let (Some(first), Some(last)) = (text.first(), text.last()) else {
            return kind.parse(text, names);
        };
        let middle = text[text.len() / 2];
        let key = usize::from(*first) + 3 * usize::from(*last) + 5 * usize::from(middle);
        let entry = &mut self.entries[(key + 7 * text.len()) % ENTRIES];
        if entry.kind == kind && entry.text == text {
            return Some(entry.value);
        }
        let value = kind.parse(text, names)?;
        if text.len() <= TEXT_MAX {
            entry.kind = kind;
            entry.value = value;
            entry.text.clear();
            entry.text.extend_from_slice(text);
        }
        Some(value)
    }
}
