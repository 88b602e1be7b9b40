//! Constant expressions of C as they stand in a `print fmt`, such as
//! `( unsigned long)((( gfp_t)((((1UL))) << (10))))`.
//!
//! 1. Operands are integers, casts and parentheses; operators `| ^ & << >> + - * / %` and unary `~ - + !`,
//!    with C's precedence.
//! 2. Values are 64 bits and wrap. A cast to a narrower type cuts, one to a signed type extends.
//! 3. A name that is not a cast has no value here: enums exist in the kernel's source only, unless it
//!    replaces them (`TRACE_DEFINE_ENUM`). Then, and for anything else, there is no result.
//!
//! Nesting is bounded by [`DEPTH_MAX`], time by the length of the text.

/// Deepest nesting followed. The masks of Linux 7.2 nest 20 deep.
const DEPTH_MAX: u32 = 200;

/// The value of an expression, `None` if it has none.
pub(super) fn evaluate(text: &str) -> Option<u64> {
    let mut parser = Parser {
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
    };
    let value = parser.binary(0)?;
    parser.skip_blanks();
    (parser.at == parser.bytes.len()).then_some(value)
}

/// Binary operators with their precedence; of two that begin alike the longer comes first.
const OPERATORS: [(&[u8], u8, Operator); 10] = [
    (b"<<", 3, |a, b| a.checked_shl(u32::try_from(b).ok()?)),
    (b">>", 3, |a, b| a.checked_shr(u32::try_from(b).ok()?)),
    (b"|", 0, |a, b| Some(a | b)),
    (b"^", 1, |a, b| Some(a ^ b)),
    (b"&", 2, |a, b| Some(a & b)),
    (b"+", 4, |a, b| Some(a.wrapping_add(b))),
    (b"-", 4, |a, b| Some(a.wrapping_sub(b))),
    (b"*", 5, |a, b| Some(a.wrapping_mul(b))),
    (b"/", 5, |a, b| a.checked_div(b)),
    (b"%", 5, |a, b| a.checked_rem(b)),
];

type Operator = fn(u64, u64) -> Option<u64>;

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    /// Operands joined by operators of at least the precedence `lowest`.
    fn binary(&mut self, lowest: u8) -> Option<u64> {
        let mut left = self.unary()?;
        while let Some((text, precedence, apply)) = self.operator() {
            if precedence < lowest {
                break;
            }
            self.at += text.len();
            let right = self.binary(precedence + 1)?;
            left = apply(left, right)?;
        }
        Some(left)
    }

    fn operator(&mut self) -> Option<(&'static [u8], u8, Operator)> {
        self.skip_blanks();
        let rest = &self.bytes[self.at..];
        let found = OPERATORS.iter().find(|(text, ..)| rest.starts_with(text))?;
        // `||` and `&&` are other operators, which have no place in a mask.
        let doubled = matches!(rest, [b'|', b'|', ..] | [b'&', b'&', ..]);
        (!doubled).then_some(*found)
    }

    fn unary(&mut self) -> Option<u64> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        let first = *self.bytes.get(self.at)?;
        let value = match first {
            b'~' | b'-' | b'+' | b'!' => {
                self.at += 1;
                let value = self.unary()?;
                match first {
                    b'~' => !value,
                    b'-' => value.wrapping_neg(),
                    b'!' => u64::from(value == 0),
                    _ => value,
                }
            }
            b'(' => {
                self.at += 1;
                match self.cast() {
                    Some(cast) => cast.apply(self.unary()?),
                    None => {
                        let value = self.binary(0)?;
                        self.skip_blanks();
                        if self.bytes.get(self.at) != Some(&b')') {
                            return None;
                        }
                        self.at += 1;
                        value
                    }
                }
            }
            b'0'..=b'9' => self.number()?,
            _ => return None,
        };
        self.depth -= 1;
        Some(value)
    }

    /// The cast whose opening parenthesis was just passed; if it is none, nothing is passed.
    fn cast(&mut self) -> Option<Cast> {
        let start = self.at;
        let cast = self.type_name();
        if cast.is_none() {
            self.at = start;
        }
        cast
    }

    /// Words of a type up to and with `)`.
    fn type_name(&mut self) -> Option<Cast> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            let word = self.word();
            if word.is_empty() {
                break;
            }
            words.push(word);
        }
        let mut pointer = false;
        while self.bytes.get(self.at) == Some(&b'*') {
            pointer = true;
            self.at += 1;
            self.skip_blanks();
        }
        if words.is_empty() || self.bytes.get(self.at) != Some(&b')') {
            return None;
        }
        self.at += 1;
        if pointer {
            return Some(Cast {
                bits: 64,
                signed: false,
            });
        }
        // `(NAME)` before an operand can only be a cast, but `(NAME) - 1` need not be one.
        Cast::of(&words).or_else(|| {
            self.skip_blanks();
            let next = self.bytes.get(self.at).copied();
            let operand = matches!(next, Some(b'0'..=b'9' | b'(' | b'~'));
            operand.then_some(Cast {
                bits: 64,
                signed: false,
            })
        })
    }

    /// An identifier, empty if there is none.
    fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self
            .bytes
            .get(start)
            .is_some_and(|byte| !byte.is_ascii_digit())
        {
            while self.bytes.get(self.at).copied().is_some_and(inside) {
                self.at += 1;
            }
        }
        let bytes: &'a [u8] = self.bytes;
        &bytes[start..self.at]
    }

    /// Decimal, octal or hexadecimal digits with a suffix such as `UL`.
    fn number(&mut self) -> Option<u64> {
        let start = self.at;
        while self
            .bytes
            .get(self.at)
            .is_some_and(u8::is_ascii_alphanumeric)
        {
            self.at += 1;
        }
        parse_number(&self.bytes[start..self.at])
    }

    fn skip_blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}

fn parse_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let hexadecimal = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// What a cast does to a value.
#[derive(Clone, Copy)]
struct Cast {
    bits: u32,
    signed: bool,
}

impl Cast {
    /// The cast to a type of these words, `None` for a name that need not be a type.
    fn of(words: &[&[u8]]) -> Option<Cast> {
        let has = |word: &str| words.contains(&word.as_bytes());
        let last = *words.last()?;
        let sized = |prefix: &str, bits: &str| {
            let name = last.strip_prefix(b"__").unwrap_or(last);
            name.strip_prefix(prefix.as_bytes()) == Some(bits.as_bytes())
        };
        for (bits, text) in [(8, "8"), (16, "16"), (32, "32"), (64, "64")] {
            if sized("u", text) || sized("s", text) {
                return Some(Cast {
                    bits,
                    signed: sized("s", text),
                });
            }
        }
        let signed = !has("unsigned");
        let bits = if has("char") || has("bool") || has("_Bool") {
            8
        } else if has("short") {
            16
        } else if has("long") {
            64
        } else if has("int") || has("unsigned") || has("signed") || has("enum") {
            32
        } else if last == b"gfp_t" {
            return Some(Cast {
                bits: 32,
                signed: false,
            });
        } else if last.ends_with(b"_t") || has("struct") || has("union") {
            return Some(Cast {
                bits: 64,
                signed: false,
            });
        } else {
            return None;
        };
        Some(Cast { bits, signed })
    }

    fn apply(self, value: u64) -> u64 {
        let unused = 64 - self.bits;
        if self.signed {
            ((value << unused) as i64 >> unused) as u64
        } else {
            value << unused >> unused
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_the_value_they_have_in_c() {
        let cases = [
            ("0x1f", Some(31)),
            ("010", Some(8)),
            (" 12UL ", Some(12)),
            ("1 << 4 | 1", Some(17)),
            ("1 + 2 * 3 - 4", Some(3)),
            ("10 - 4 - 3", Some(3)),
            ("0xff & ~0xf", Some(0xf0)),
            ("6 ^ 3 & 1", Some(7)),
            ("-1", Some(u64::MAX)),
            ("!0 + !5", Some(1)),
            ("(u8)0x1ff", Some(0xff)),
            ("(s8)0xff", Some(u64::MAX)),
            ("( gfp_t)((((1UL))) << (10))", Some(1024)),
            ("( unsigned long)(~(( gfp_t)1) & 7)", Some(6)),
            ("(enum zone_type)3", Some(3)),
            ("(void *)16", Some(16)),
            ("(some_type)(3)", Some(3)),
            ("(1UL << 63) >> 63", Some(1)),
            ("1 << 64", None),
            ("1 / 0", None),
            ("1 << VMSCAN_THROTTLE_WRITEBACK", None),
            ("(NAME) - 1", None),
            ("NAME", None),
            ("1 || 1", None),
            ("08", None),
            ("1x", None),
            ("(1", None),
            ("1)", None),
            ("", None),
            ("99999999999999999999", None),
        ];
        for (text, value) in cases {
            assert_eq!(evaluate(text), value, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(evaluate(&nested(100)), Some(1));
        assert_eq!(evaluate(&nested(100_000)), None);
        assert_eq!(evaluate(&"~".repeat(100_000)), None);
        assert_eq!(
            evaluate(&format!("1{}", "+1".repeat(100_000))),
            Some(100_001)
        );
    }
}
