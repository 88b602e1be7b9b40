//! Fixed text of a tracepoint, compared by words: most pieces of it are so short that calling memcmp takes longer
//! than comparing.

/// Bytes of a word.
const WORD: usize = 8;

/// A fixed text.
#[derive(Debug)]
pub(super) struct Literal {
    text: &'static str,
    /// Its first bytes, zeros behind them.
    head: u64,
    /// Ones where `head` has bytes of the text.
    mask: u64,
    /// Its last bytes, if it has more than one word.
    tail: u64,
}

impl Literal {
    pub(super) fn new(text: &'static str) -> Literal {
        let bytes = text.as_bytes();
        let first = &bytes[..bytes.len().min(WORD)];
        let mut head = [0; WORD];
        head[..first.len()].copy_from_slice(first);
        let mut mask = [0; WORD];
        mask[..first.len()].fill(0xff);
        Literal {
            text,
            head: u64::from_le_bytes(head),
            mask: u64::from_le_bytes(mask),
            tail: bytes
                .last_chunk()
                .map_or(0, |last| u64::from_le_bytes(*last)),
        }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn bytes(&self) -> &'static [u8] {
        self.text.as_bytes()
    }

    /// What follows the text, if `bytes` begin with it.
    #[inline]
    pub(super) fn strip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.text.len();
        if length == 0 {
            return Some(bytes);
        }
        let Some(first) = bytes.first_chunk::<WORD>() else {
            return bytes.strip_prefix(self.text.as_bytes());
        };
        if (u64::from_le_bytes(*first) ^ self.head) & self.mask != 0 {
            return None;
        }
        if length > WORD {
            let last = bytes.get(length - WORD..)?.first_chunk::<WORD>()?;
            // The two words may overlap, or leave bytes between them.
            if u64::from_le_bytes(*last) != self.tail
                || length > 2 * WORD && !bytes.starts_with(self.text.as_bytes())
            {
                return None;
            }
        }
        bytes.get(length..)
    }
}

#[cfg(test)]
mod tests {
    use super::Literal;

    #[test]
    fn strips_what_the_library_strips() {
        let text = " nr_skipped=abcdefghijklmnopqrstuvwxyz";
        for length in 0..text.len() {
            let literal = Literal::new(&text[..length]);
            for whole in [length, length + 1, text.len()] {
                for wrong in 0..=whole {
                    let mut bytes = text.as_bytes()[..whole].to_vec();
                    if let Some(byte) = bytes.get_mut(wrong) {
                        *byte ^= 0x80;
                    }
                    let plain = bytes.strip_prefix(literal.bytes());
                    assert_eq!(literal.strip(&bytes), plain, "{length} {whole} {wrong}");
                }
            }
        }
    }

    #[test]
    fn a_text_longer_than_what_is_there_is_not_found() {
        for length in 0..30 {
            let literal = Literal::new(&"pfn=0x0123456789abcdef nr_requested="[..length]);
            for there in 0..length {
                assert_eq!(literal.strip(&literal.bytes()[..there]), None);
            }
        }
    }
}
