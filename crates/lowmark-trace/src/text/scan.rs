//! Blanks, digits and what came before, eight bytes at a time: what is sought in a prefix is so near that calling
//! memchr or memcmp takes longer.

/// Eight blanks.
pub(super) const BLANKS: u64 = u64::from_ne_bytes([b' '; 8]);
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);

/// Eight bytes from `from` on, the first one in the lowest place.
#[inline(always)]
fn word(bytes: &[u8], from: usize) -> Option<u64> {
    let word = bytes.get(from..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// Eight bytes before `end`, the last one in the highest place.
#[inline(always)]
fn word_before(bytes: &[u8], end: usize) -> Option<u64> {
    let word = bytes.get(..end)?.last_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// The high bit of each byte that is above 9.
#[inline(always)]
fn above_nine(values: u64) -> u64 {
    let low = values & 0x7f7f_7f7f_7f7f_7f7f;
    ((low + 0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080
}

/// The number of eight digits, the first one in the lowest byte.
#[inline(always)]
fn decimal(values: u64) -> u64 {
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// The first byte at or after `from` that is no blank; the end if there is none.
#[inline(always)]
pub(super) fn skip_blanks(bytes: &[u8], mut from: usize) -> usize {
    while let Some(word) = word(bytes, from) {
        let other = word ^ BLANKS;
        if other != 0 {
            return from + other.trailing_zeros() as usize / 8;
        }
        from += 8;
    }
    while bytes.get(from) == Some(&b' ') {
        from += 1;
    }
    from
}

/// Where the blanks that end before `end` begin.
pub(super) fn blanks_before(bytes: &[u8], mut end: usize) -> usize {
    while let Some(word) = word_before(bytes, end) {
        let other = word ^ BLANKS;
        if other != 0 {
            return end - other.leading_zeros() as usize / 8;
        }
        end -= 8;
    }
    while end > 0 && bytes[end - 1] == b' ' {
        end -= 1;
    }
    end
}

/// The high bit of the first byte that is `byte`; bits above that one mean nothing.
#[inline(always)]
fn first(word: u64, byte: u8) -> u64 {
    let other = word ^ u64::from_ne_bytes([byte; 8]);
    other.wrapping_sub(0x0101_0101_0101_0101) & !other & 0x8080_8080_8080_8080
}

/// Place of the first `byte` at or after `from`.
pub(super) fn find(bytes: &[u8], mut from: usize, byte: u8) -> Option<usize> {
    while let Some(word) = word(bytes, from) {
        let found = first(word, byte);
        if found != 0 {
            return Some(from + found.trailing_zeros() as usize / 8);
        }
        from += 8;
    }
    let distance = bytes.get(from..)?.iter().position(|&other| other == byte)?;
    Some(from + distance)
}

/// Place of the first colon or blank at or after `from`.
#[inline(always)]
pub(super) fn find_colon_or_blank(bytes: &[u8], mut from: usize) -> Option<usize> {
    let (words, rest) = bytes.get(from..)?.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let found = first(word, b':') | first(word, b' ');
        if found != 0 {
            return Some(from + found.trailing_zeros() as usize / 8);
        }
        from += 8;
    }
    let distance = rest.iter().position(|byte| matches!(byte, b':' | b' '))?;
    Some(from + distance)
}

/// How many bytes of a word come before its first blank; 8 if it has none.
#[inline(always)]
pub(super) fn short_length(word: u64) -> usize {
    first(word, b' ').trailing_zeros() as usize / 8
}

/// How many bytes from `from` on are no blanks: at most 8, `None` if more.
pub(super) fn short_word(bytes: &[u8], from: usize) -> Option<usize> {
    let Some(word) = word(bytes, from) else {
        return bytes.get(from..)?.iter().position(|&byte| byte == b' ');
    };
    match short_length(word) {
        8 if bytes.get(from + 8) != Some(&b' ') => None,
        length => Some(length),
    }
}

/// The number that a word begins with and how many digits it has; nothing is said about what follows.
#[inline(always)]
pub(super) fn first_number(word: u64) -> (u64, usize) {
    let values = word ^ ZEROS;
    match above_nine(values).trailing_zeros() as usize / 8 {
        0 => (0, 0),
        count => (decimal(values << (64 - 8 * count)), count),
    }
}

/// The number at `from` and the place behind it; `None`: no digit, or more than 64 bits.
#[inline(always)]
pub(super) fn number(bytes: &[u8], from: usize) -> Option<(u64, usize)> {
    let Some(word) = word(bytes, from) else {
        return digits(bytes, from, from, 0);
    };
    match first_number(word) {
        (_, 0) => None,
        (value, 8) => digits(bytes, from, from + 8, value),
        (value, count) => Some((value, from + count)),
    }
}

/// The number that ends before `end` and where it begins; `None`: no digit, or more than 64 bits.
pub(super) fn number_before(bytes: &[u8], end: usize) -> Option<(u64, usize)> {
    if let Some(word) = word_before(bytes, end) {
        let values = word ^ ZEROS;
        match above_nine(values).leading_zeros() as usize / 8 {
            0 => return None,
            8 => {}
            count => return Some((decimal(values & u64::MAX << (64 - 8 * count)), end - count)),
        }
    }
    let from = digits_before(bytes, end);
    let (number, _) = digits(&bytes[..end], from, from, 0)?;
    Some((number, from))
}

/// Goes on at `at` with a number that begins at `from`.
#[cold]
fn digits(bytes: &[u8], from: usize, mut at: usize, mut value: u64) -> Option<(u64, usize)> {
    while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    (at > from).then_some((value, at))
}

/// Where the digits that end before `end` begin.
pub(super) fn digits_before(bytes: &[u8], end: usize) -> usize {
    let mut from = end;
    while from > 0 && bytes[from - 1].is_ascii_digit() {
        from -= 1;
    }
    from
}

/// A number that is the whole of `bytes`.
pub(super) fn whole_number(bytes: &[u8]) -> Option<u64> {
    let (value, end) = number(bytes, 0)?;
    (end == bytes.len()).then_some(value)
}

/// Bytes that lines begin with again and again, compared by words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<const WORDS: usize> {
    words: [u64; WORDS],
    /// Ones where the words have bytes of it.
    masks: [u64; WORDS],
    length: usize,
}

impl<const WORDS: usize> Known<WORDS> {
    /// The first `length` of the bytes; none if the words hold fewer, or if the bytes do not fill the words.
    #[inline]
    pub(super) fn new(bytes: &[u8], length: usize) -> Option<Self> {
        let words = bytes.as_chunks::<8>().0.first_chunk::<WORDS>()?;
        let mut known = Known {
            words: [0; WORDS],
            masks: [0; WORDS],
            length,
        };
        for (at, word) in words.iter().enumerate() {
            known.words[at] = u64::from_le_bytes(*word);
            known.masks[at] = match length.saturating_sub(8 * at) {
                bytes @ 0..8 => !(u64::MAX << (8 * bytes)),
                _ => u64::MAX,
            };
        }
        (length <= 8 * WORDS).then_some(known)
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether `bytes` begin with it; never if they are fewer than the words hold.
    #[inline(always)]
    pub(super) fn begins(&self, bytes: &[u8]) -> bool {
        let Some(words) = bytes.as_chunks::<8>().0.first_chunk::<WORDS>() else {
            return false;
        };
        let known = self.words.iter().zip(&self.masks);
        let other = words
            .iter()
            .zip(known)
            .fold(0, |other, (word, (known, mask))| {
                other | (u64::from_le_bytes(*word) ^ known) & mask
            });
        other == 0
    }
}
