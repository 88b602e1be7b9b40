//! Tokens of a claim.

use super::{ArithOp, ClaimError, CmpOp};
use crate::cell::CellId;
use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Cell(CellId),
    Word(String),
    Compare(CmpOp),
    Arith(ArithOp),
    Open,
    Close,
    Comma,
}

impl Token {
    /// The token in an error message.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Number(n) => format!("the number {n}"),
            Token::Cell(cell) => format!("the cell {cell}"),
            Token::Word(word) => format!("`{word}`"),
            Token::Compare(op) => format!("`{}`", op.symbol()),
            Token::Arith(ArithOp::Add) => "`+`".to_owned(),
            Token::Arith(ArithOp::Subtract) => "`-`".to_owned(),
            Token::Arith(ArithOp::Multiply) => "`*`".to_owned(),
            Token::Arith(ArithOp::Divide) => "`/`".to_owned(),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)`".to_owned(),
            Token::Comma => "`,`".to_owned(),
        }
    }
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) span: Range<usize>,
}

/// Tokens of two characters come first, so that `<=` is not read as `<`.
const SYMBOLS: [(&str, Token); 13] = [
    ("<=", Token::Compare(CmpOp::LessEqual)),
    (">=", Token::Compare(CmpOp::GreaterEqual)),
    ("==", Token::Compare(CmpOp::Equal)),
    ("!=", Token::Compare(CmpOp::NotEqual)),
    ("<", Token::Compare(CmpOp::Less)),
    (">", Token::Compare(CmpOp::Greater)),
    ("+", Token::Arith(ArithOp::Add)),
    ("-", Token::Arith(ArithOp::Subtract)),
    ("*", Token::Arith(ArithOp::Multiply)),
    ("/", Token::Arith(ArithOp::Divide)),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// Cuts a text into tokens.
pub(super) fn lex(text: &str) -> Result<Vec<Spanned>, ClaimError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = next(text, at, rest, first)?;
        tokens.push(Spanned {
            token,
            span: at..at + length,
        });
        at += length;
    }
    Ok(tokens)
}

/// The token at the start of `rest` and its length in bytes.
fn next(text: &str, at: usize, rest: &str, first: char) -> Result<(Token, usize), ClaimError> {
    if first == '[' {
        return cell(text, at, rest);
    }
    if first.is_ascii_digit() || first == '.' {
        return number(text, at, rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let word = prefix(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Token::Word(word.to_owned()), word.len()));
    }
    SYMBOLS
        .iter()
        .find(|(symbol, _)| rest.starts_with(symbol))
        .map(|(symbol, token)| (token.clone(), symbol.len()))
        .ok_or_else(|| {
            let span = at..at + first.len_utf8();
            ClaimError::new(text, span, format!("unexpected character `{first}`"))
        })
}

fn cell(text: &str, at: usize, rest: &str) -> Result<(Token, usize), ClaimError> {
    let Some(end) = rest.find(']') else {
        return Err(ClaimError::new(text, at..text.len(), "`[` without `]`"));
    };
    match CellId::parse(&rest[1..end]) {
        Some(cell) => Ok((Token::Cell(cell), end + 1)),
        None => Err(ClaimError::new(
            text,
            at..at + end + 1,
            "expected `[table::row::column]`",
        )),
    }
}

fn number(text: &str, at: usize, rest: &str) -> Result<(Token, usize), ClaimError> {
    let mantissa = prefix(rest, |c| c.is_ascii_digit() || c == '.').len();
    let length = mantissa + exponent(&rest[mantissa..]);
    match rest[..length].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), length)),
        _ => Err(ClaimError::new(text, at..at + length, "expected a number")),
    }
}

/// Length of `e5`, `E-3`, …, or 0.
fn exponent(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
    let digits = prefix(unsigned, |c| c.is_ascii_digit()).len();
    if digits == 0 {
        0
    } else {
        rest.len() - unsigned.len() + digits
    }
}

fn prefix(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !belongs(c)).unwrap_or(text.len())]
}
