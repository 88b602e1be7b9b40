//! The TOML document as a tree in which every key and value knows its place.
//!
//! 1. The `toml` crate checks the syntax, refuses duplicate keys and bounds the nesting.
//! 2. [`read`] turns its tree into ours: keys in the order of the file (its maps are sorted by name),
//!    numbers exact, strings and keys bounded.

use toml::de::{DeTable, DeValue};

use super::error::{Problem, Result};
use super::exact::Ratio;
use super::source::Span;

/// Longest string, bytes. Together with the size of a file this bounds what a scenario can hold.
const TEXT_BYTES_MAX: usize = 4096;
/// Longest key, bytes.
const KEY_BYTES_MAX: usize = 100;

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The value, or the header of a table that has one.
    pub(crate) span: Span,
    /// Where the first character of a string stands, when it is written without escapes.
    pub(crate) content: Option<u32>,
    /// What it is.
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A string.
    Text(String),
    /// An integer or a decimal number, exact.
    Number(Ratio),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time of TOML, which the language has no use for.
    Date,
    /// An array.
    Array(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

impl Node {
    /// A string that stands in no file, such as a value given on the command line.
    pub(crate) fn text(span: Span, text: &str) -> Node {
        let value = match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Text(text.to_owned()),
        };
        Node {
            span,
            content: Some(span.start),
            value,
        }
    }

    /// Bytes `range` of a string; the whole value when its place in the file cannot be told.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Span {
        let Some(content) = self.content else {
            return self.span;
        };
        let start = content as usize;
        let part = Span::new(self.span.source, start + range.start..start + range.end);
        if self.span.contains(part) {
            part
        } else {
            self.span
        }
    }

    /// What the value is, with an article, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{}\"", shorten(text)),
            Value::Number(number) => format!("the number {number}"),
            Value::Boolean(value) => format!("`{value}`"),
            Value::Date => "a date".into(),
            Value::Array(_) => "an array".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// The value as it was written, for a message that says what it is itself.
    pub(crate) fn written(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("\"{}\"", shorten(text)),
            Value::Number(number) => number.to_string(),
            _ => self.describe(),
        }
    }

    /// The entries of a table.
    pub(crate) fn entries(&self, what: &str) -> Result<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(Problem::new(
                self.span,
                format!("expected a table with {what}, found {}", self.describe()),
                "write a section [name], or { key = value }",
            )),
        }
    }

    /// The elements of an array.
    pub(crate) fn elements(&self, what: &str) -> Result<&[Node]> {
        match &self.value {
            Value::Array(nodes) => Ok(nodes),
            _ => Err(Problem::new(
                self.span,
                format!("expected an array of {what}, found {}", self.describe()),
                "write the values between [ and ]",
            )),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.node),
            _ => None,
        }
    }

    /// Dotted name of the smallest key or value that holds `span`.
    pub(crate) fn path_of(&self, span: Span) -> String {
        let mut best = (usize::MAX, String::new());
        self.search(span, &mut Vec::new(), &mut best);
        best.1
    }

    fn search(&self, span: Span, path: &mut Vec<String>, best: &mut (usize, String)) {
        fn offer(at: Span, span: Span, path: &[String], best: &mut (usize, String)) {
            if at.contains(span) && at.len() < best.0 {
                *best = (at.len(), path.concat().trim_start_matches('.').to_owned());
            }
        }
        if !path.is_empty() {
            offer(self.span, span, path, best);
        }
        match &self.value {
            Value::Array(nodes) => {
                for (i, node) in nodes.iter().enumerate() {
                    path.push(format!("[{i}]"));
                    node.search(span, path, best);
                    path.pop();
                }
            }
            Value::Table(entries) => {
                for entry in entries {
                    path.push(format!(".{}", entry.key));
                    offer(entry.key_span, span, path, best);
                    entry.node.search(span, path, best);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}

/// A text short enough for a message.
pub(crate) fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut short: String = text
        .chars()
        .take(CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().count() > CHARS_MAX {
        short.push('…');
    }
    short
}

/// Parses a TOML text.
pub(crate) fn read(source: u32, text: &str) -> Result<Node> {
    let table = DeTable::parse(text).map_err(|error| {
        let range = error.span().unwrap_or(0..0);
        let found = text
            .get(range.clone())
            .map(str::trim)
            .filter(|found| !found.is_empty());
        let found = found.map_or(String::new(), |found| format!(" at `{}`", shorten(found)));
        Problem::new(
            Span::new(source, range),
            format!(
                "not valid TOML: {}{found}",
                error.message().replace('\n', ", ")
            ),
            "the file is TOML 1.1: see https://toml.io for its syntax",
        )
    })?;
    let reader = Reader { source, text };
    let span = Span::new(source, 0..0);
    Ok(Node {
        span,
        content: None,
        value: reader.table(table.get_ref())?,
    })
}

/// Turns the `toml` crate's tree into ours.
struct Reader<'t> {
    source: u32,
    text: &'t str,
}

impl Reader<'_> {
    fn table(&self, table: &DeTable<'_>) -> Result<Value> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let key_span = Span::new(self.source, key.span());
            let name = key.get_ref();
            if name.len() > KEY_BYTES_MAX {
                return Err(Problem::new(
                    key_span,
                    format!(
                        "found a key of {} bytes, expected at most {KEY_BYTES_MAX}",
                        name.len()
                    ),
                    "shorten the name",
                ));
            }
            let node = self.node(value.span(), value.get_ref())?;
            entries.push(Entry {
                key: name.to_string(),
                key_span,
                node,
            });
        }
        entries.sort_by_key(|entry| entry.key_span.start);
        Ok(Value::Table(entries))
    }

    fn node(&self, range: std::ops::Range<usize>, value: &DeValue<'_>) -> Result<Node> {
        let span = Span::new(self.source, range.clone());
        let mut content = None;
        let value = match value {
            DeValue::String(text) => {
                if text.len() > TEXT_BYTES_MAX {
                    return Err(Problem::new(
                        span,
                        format!(
                            "found a string of {} bytes, expected at most {TEXT_BYTES_MAX}",
                            text.len()
                        ),
                        "shorten the text",
                    ));
                }
                // Escapes and multi-line strings have other places than the text between the quotes.
                let inner = range.start + 1..range.end.saturating_sub(1);
                if self.text.get(inner) == Some(text) {
                    content = Some(span.start + 1);
                }
                Value::Text(text.to_string())
            }
            DeValue::Integer(number) => {
                let exact = i128::from_str_radix(number.as_str(), number.radix()).ok();
                Value::Number(Ratio::whole(exact.ok_or_else(|| out_of_range(span))?))
            }
            DeValue::Float(number) => Value::Number(self.decimal(span, number.as_str())?),
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(array) => {
                let node =
                    |item: &toml::Spanned<DeValue<'_>>| self.node(item.span(), item.get_ref());
                Value::Array(array.iter().map(node).collect::<Result<_>>()?)
            }
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node {
            span,
            content,
            value,
        })
    }

    fn decimal(&self, span: Span, text: &str) -> Result<Ratio> {
        let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_');
        if !text.chars().all(plain) {
            return Err(Problem::new(
                span,
                format!("expected a plain decimal number, found {}", shorten(text)),
                "write the number out, for example 0.64 or 1000000",
            ));
        }
        let digits = text.trim_start_matches(['+', '-']);
        let number = Ratio::decimal(digits).ok_or_else(|| out_of_range(span))?;
        if text.starts_with('-') {
            number.negate().ok_or_else(|| out_of_range(span))
        } else {
            Ok(number)
        }
    }
}

fn out_of_range(span: Span) -> Problem {
    Problem::new(
        span,
        "found a number with too many digits, expected at most 38",
        "numbers are exact in the language; round this one",
    )
}
