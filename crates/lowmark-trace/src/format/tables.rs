//! Tables of names in a `print fmt`.
//!
//! ```text
//! (REC->flags) ? __print_flags(REC->flags, "|", {0x01, "ANON"}, {0x02, "FILE"}) : "NONE"
//! __print_symbolic(REC->lru, {0, "inactive_anon"}, {1, "active_anon"})
//! ```
//!
//! The text is passed once from its begin to its end: string literals are skipped, a call of one of the
//! macros is parsed, and what is no table is passed by where it stopped to be one. Entries whose value
//! cannot be known here are kept with their text.

use super::expression::evaluate;

/// Bytes of a rendered value behind which nothing is added: the kernel's own texts end within two pages
/// (`TRACE_SEQ_BUFFER_SIZE`).
const RENDERED_MAX: usize = 8 << 10;
/// Most names of a table; the longest of reclaim's events, in Linux 7.2, has 38. It is passed through for
/// each value.
const ENTRIES_MAX: usize = 1 << 10;

/// What a value means in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableKind {
    /// Masks, any number of which may be set (`__print_flags`).
    Flags {
        /// What stands between two names.
        separator: String,
    },
    /// Values, one of which is meant (`__print_symbolic`).
    Symbolic,
}

/// Mask or value of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The number.
    Known(u64),
    /// Its text, which contains a name that only the kernel's source knows.
    Unresolved(String),
}

/// A name of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is the name of.
    pub value: Value,
    /// The name as printed.
    pub name: String,
}

/// The names by which the kernel prints the value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTable {
    /// Flags or values.
    pub kind: TableKind,
    /// What is looked up, as text: `REC->flags`, or something computed from it.
    pub argument: String,
    /// The names in the kernel's order, which matters: flags are taken away as they are named.
    pub entries: Vec<Entry>,
    /// What is printed for 0 if the kernel tests for that before it looks up.
    pub zero: Option<String>,
}

impl NameTable {
    /// The entries whose value is known, in order.
    pub fn known(&self) -> impl Iterator<Item = (u64, &str)> {
        self.entries.iter().filter_map(|entry| match entry.value {
            Value::Known(value) => Some((value, entry.name.as_str())),
            Value::Unresolved(_) => None,
        })
    }

    /// The entries whose value is not known, with its text.
    pub fn unresolved(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().filter_map(|entry| match &entry.value {
            Value::Known(_) => None,
            Value::Unresolved(text) => Some((text.as_str(), entry.name.as_str())),
        })
    }

    /// The mask or value of that name, if the name is in the table and its value known.
    pub fn value_of(&self, name: &str) -> Option<u64> {
        self.known()
            .find_map(|(value, known)| (known == name).then_some(value))
    }

    /// A value as the kernel prints it (`trace_print_flags_seq()`, `trace_print_symbols_seq()`); what
    /// has no name in hexadecimal.
    pub fn render(&self, value: u64) -> String {
        if let (0, Some(zero)) = (value, &self.zero) {
            return zero.clone();
        }
        let TableKind::Flags { separator } = &self.kind else {
            let name = self
                .known()
                .find_map(|(known, name)| (known == value).then_some(name));
            return name.map_or_else(|| format!("{value:#x}"), str::to_owned);
        };
        let mut rest = value;
        let mut text = String::new();
        let mut append = |part: &str| {
            if text.len() > RENDERED_MAX {
                return;
            }
            if !text.is_empty() {
                text.push_str(separator);
            }
            text.push_str(part);
        };
        for (mask, name) in self.known() {
            if rest == 0 {
                break;
            }
            if rest & mask == mask {
                append(name);
                rest &= !mask;
            }
        }
        if rest != 0 {
            append(&format!("{rest:#x}"));
        }
        text
    }
}

/// All tables of a `print fmt`, each with the field that its argument names first.
pub(super) fn find(print: &str) -> Vec<(String, NameTable)> {
    let mut scanner = Scanner { text: print, at: 0 };
    let mut tables = Vec::new();
    while let Some(byte) = scanner.peek() {
        if byte == b'"' {
            // A literal that does not end goes to the end of the text.
            let _ = scanner.literal();
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let flags = match scanner.word() {
                "__print_flags" | "__print_flags_u64" => true,
                "__print_symbolic" | "__print_symbolic_u64" => false,
                _ => continue,
            };
            tables.extend(scanner.table(flags));
        } else {
            scanner.at += 1;
        }
    }
    tables
}

struct Scanner<'a> {
    text: &'a str,
    /// Place of the next byte; always at a character's begin, for only ASCII is passed bytewise but in
    /// literals and arguments, which end at ASCII characters.
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        while self.peek().is_some_and(inside) {
            self.at += 1;
        }
        self.slice(start, self.at)
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Passes `byte` behind blanks.
    fn pass(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// Passes a string literal behind blanks, or several that the compiler would join.
    fn literals(&mut self) -> Option<String> {
        let mut text = self.literal()?;
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'"') => text.push_str(&self.literal()?),
                _ => return Some(text),
            }
        }
    }

    fn literal(&mut self) -> Option<String> {
        self.pass(b'"')?;
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(String::from_utf8_lossy(&bytes).into_owned()),
                b'\\' => {
                    let escaped = self.peek()?;
                    self.at += 1;
                    bytes.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        other => other,
                    });
                }
                other => bytes.push(other),
            }
        }
    }

    /// Passes an argument up to a comma or a closing bracket outside all brackets, which stays.
    fn argument(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let start = self.at;
        let mut depth = 0u32;
        loop {
            match self.peek()? {
                b'"' => {
                    self.literal()?;
                    continue;
                }
                b'(' | b'{' | b'[' => depth += 1,
                b',' | b')' | b'}' | b']' if depth == 0 => break,
                b')' | b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Some(self.slice(start, self.at).trim_end())
    }

    /// The table whose macro's name was just passed.
    fn table(&mut self, flags: bool) -> Option<(String, NameTable)> {
        self.pass(b'(')?;
        let argument = self.argument()?;
        let field = first_field(argument)?;
        self.pass(b',')?;
        let kind = if flags {
            let separator = self.literals()?;
            self.pass(b',')?;
            TableKind::Flags { separator }
        } else {
            TableKind::Symbolic
        };
        let mut entries = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some(b'{') {
                self.at += 1;
                entries.extend(self.entry()?);
                if entries.len() > ENTRIES_MAX {
                    return None;
                }
            }
            self.skip_blanks();
            match self.peek()? {
                b',' => self.at += 1,
                b')' => break,
                _ => return None,
            }
        }
        self.at += 1;
        let zero = self.zero();
        let table = NameTable {
            kind,
            argument: argument.to_owned(),
            entries,
            zero,
        };
        Some((field.to_owned(), table))
    }

    /// The rest of `{value, "name"}`. Some tables of 6.18 end with `{ 0, ((void *)0) }`, as 6.12's do not:
    /// that is no entry, the inner option is empty.
    fn entry(&mut self) -> Option<Option<Entry>> {
        let text = self.argument()?;
        self.pass(b',')?;
        self.skip_blanks();
        if self.peek() != Some(b'"') {
            let name = self.argument()?;
            self.pass(b'}')?;
            let is_null = name == "NULL" || evaluate(name) == Some(0);
            return is_null.then_some(None);
        }
        let name = self.literals()?;
        self.pass(b'}')?;
        let value = match evaluate(text) {
            Some(value) => Value::Known(value),
            None => Value::Unresolved(text.to_owned()),
        };
        Some(Some(Entry { value, name }))
    }

    /// The literal of `: "none"` behind a table, the other branch of a test for 0. Nothing is passed if
    /// there is none.
    fn zero(&mut self) -> Option<String> {
        let start = self.at;
        let zero = self.pass(b':').and_then(|()| self.literals());
        if zero.is_none() {
            self.at = start;
        }
        zero
    }
}

/// The first `REC->field` of an expression.
fn first_field(argument: &str) -> Option<&str> {
    let at = argument.find("REC->")?;
    let rest = argument.get(at + "REC->".len()..)?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let field = &rest[..end.unwrap_or(rest.len())];
    (!field.is_empty()).then_some(field)
}
