//! The kernel's texts of event formats (`events/<system>/<event>/format` in tracefs).
//!
//! ```text
//! name: mm_vmscan_kswapd_sleep
//! ID: 600
//! format:
//!  field:unsigned short common_type; offset:0; size:2; signed:0;
//!  field:int nid; offset:8; size:4; signed:1;
//!
//! print fmt: "nid=%d", REC->nid
//! ```
//!
//! The kernel writes them from its own tables (`kernel/trace/trace_events.c`, `f_show()`), so a record is
//! read by them and never by the version of a kernel. Here are one format and its fields; `expression`
//! evaluates the constants of a `print fmt`, `tables` finds its tables of names, `formats` holds the
//! formats of a file.

mod expression;
mod formats;
mod tables;

pub use formats::{Formats, Rejected};
pub use tables::{Entry, NameTable, TableKind, Value};

use crate::record::Endian;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Longest text that is parsed, bytes. The longest of Linux 7.2 have some 20 KiB.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why a text is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It is longer than [`TEXT_BYTES_MAX`].
    #[error("the text has {len} bytes, more than the {TEXT_BYTES_MAX} that are parsed")]
    TooLong {
        /// Its length, bytes.
        len: usize,
    },
    /// A line is not as the kernel writes it.
    #[error("line {line}: expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A part is not there at all.
    #[error("there is no line `{0}`")]
    Missing(&'static str),
}

/// How the value of a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// In place, one value.
    Scalar,
    /// In place, a fixed number of elements.
    Array,
    /// A word in place: length in the high 16 bits, offset from the record's start in the low ones.
    DataLoc,
    /// The same with the offset from the end of the word.
    RelLoc,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Type as the kernel spells it, with `[n]` or `[]` of an array.
    pub ctype: String,
    /// Name.
    pub name: String,
    /// Place in the record, bytes.
    pub offset: u32,
    /// Bytes it takes in place.
    pub size: u32,
    /// Whether its integers have a sign.
    pub signed: bool,
    /// How it is stored.
    pub shape: Shape,
}

impl Field {
    /// The integer of a scalar of 1, 2, 4 or 8 bytes, extended by its sign if it has one. Unsigned values
    /// above `i64::MAX` wrap; [`read_u64`](Self::read_u64) gives them. `None` for other fields, and where
    /// `data` ends before.
    #[inline]
    pub fn read(&self, data: &[u8], endian: Endian) -> Option<i64> {
        let value = self.read_bits(data, endian)?;
        if !self.signed {
            return Some(value as i64);
        }
        let unused = 64 - 8 * self.size;
        Some((value << unused) as i64 >> unused)
    }

    /// As [`read`](Self::read), the two's complement of negative values.
    #[inline]
    pub fn read_u64(&self, data: &[u8], endian: Endian) -> Option<u64> {
        self.read(data, endian).map(|value| value as u64)
    }

    fn read_bits(&self, data: &[u8], endian: Endian) -> Option<u64> {
        if self.shape != Shape::Scalar {
            return None;
        }
        let at = self.offset as usize;
        match self.size {
            1 => data.get(at).map(|byte| u64::from(*byte)),
            2 => endian.u16(data, at).map(u64::from),
            4 => endian.u32(data, at).map(u64::from),
            8 => endian.u64(data, at),
            _ => None,
        }
    }

    /// The bytes of an array, in place or elsewhere in the record. `None` for scalars, and where the
    /// record ends before.
    pub fn read_bytes<'a>(&self, data: &'a [u8], endian: Endian) -> Option<&'a [u8]> {
        let at = self.offset as usize;
        let (start, len) = match self.shape {
            Shape::Scalar => return None,
            Shape::Array => (at, self.size as usize),
            Shape::DataLoc | Shape::RelLoc => {
                let word = endian.u32(data, at)?;
                let base = match self.shape {
                    Shape::RelLoc => at.checked_add(4)?,
                    _ => 0,
                };
                (
                    base.checked_add((word & 0xffff) as usize)?,
                    (word >> 16) as usize,
                )
            }
        };
        data.get(start..start.checked_add(len)?)
    }

    /// An array of characters up to its first NUL; what is no UTF-8 is replaced. `None` as for
    /// [`read_bytes`](Self::read_bytes).
    pub fn read_str<'a>(&self, data: &'a [u8], endian: Endian) -> Option<Cow<'a, str>> {
        let bytes = self.read_bytes(data, endian)?;
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]))
    }
}

/// The format of one event.
#[derive(Debug)]
pub struct Format {
    /// Group of the event, such as `vmscan`.
    pub system: String,
    /// Name of the event.
    pub name: String,
    /// Its id in the records (`common_type`), valid for one boot of one machine.
    pub id: u16,
    /// The fields that every event of the machine has, in order.
    pub common: Vec<Field>,
    /// Its own fields, in order.
    pub fields: Vec<Field>,
    /// What stands behind `print fmt:`, the format and its arguments as text.
    pub print: String,
    tables: OnceLock<Vec<(String, NameTable)>>,
}

impl Format {
    /// Parses the text of an event of the group `system`. Time and memory are bounded by its length.
    pub fn parse(system: &str, text: &str) -> Result<Self, FormatError> {
        check_length(text)?;
        let name = line_value(text, "name:").ok_or(FormatError::Missing("name:"))?;
        let id = line_value(text, "ID:").ok_or(FormatError::Missing("ID:"))?;
        let id = id.parse().map_err(|_| FormatError::Line {
            line: line_of(text, id),
            expected: "a number up to 65535 after `ID:`",
        })?;
        // Common fields stand before the first empty line behind a field (`f_next()`).
        let (common, fields) = parse_fields(text)?
            .into_iter()
            .partition(|field| field.name.starts_with("common_"));
        let print = text
            .find("print fmt:")
            .map_or("", |at| &text[at + "print fmt:".len()..]);
        Ok(Format {
            system: system.to_owned(),
            name: name.to_owned(),
            id,
            common,
            fields,
            print: print.trim().to_owned(),
            tables: OnceLock::new(),
        })
    }

    /// The field of that name, its own or a common one.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let mut fields = self.fields.iter().chain(&self.common);
        fields.find(|field| field.name == name)
    }

    /// The table of flags or symbols by which the kernel prints a field; the first if there are many.
    pub fn flags(&self, field: &str) -> Option<&NameTable> {
        let mut tables = self.tables();
        tables.find_map(|(name, table)| (name == field).then_some(table))
    }

    /// All tables, each with the field whose value it names. They are looked for at the first call.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &NameTable)> {
        let tables = self.tables.get_or_init(|| tables::find(&self.print));
        tables.iter().map(|(field, table)| (field.as_str(), table))
    }
}

/// The fields that a text describes, in order: lines `field:<declaration>; offset:<n>; size:<n>;` and,
/// since 2.6.33, `signed:<0 or 1>;`. Other lines are skipped. Also for `header_page` and `header_event`.
pub fn parse_fields(text: &str) -> Result<Vec<Field>, FormatError> {
    check_length(text)?;
    let mut fields = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("print fmt:") {
            break;
        }
        if let Some(line) = line.strip_prefix("field:") {
            let error = |expected| FormatError::Line {
                line: index + 1,
                expected,
            };
            fields.push(parse_field(line).map_err(error)?);
        }
    }
    Ok(fields)
}

fn parse_field(line: &str) -> Result<Field, &'static str> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next().unwrap_or_default();
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            Some(("signed", value)) => signed = Some(value.trim() == "1"),
            _ => {}
        }
    }
    let (ctype, name) = split_declaration(declaration).ok_or("`field:` with a type and a name")?;
    let shape = if ctype.starts_with("__data_loc") {
        Shape::DataLoc
    } else if ctype.starts_with("__rel_loc") {
        Shape::RelLoc
    } else if ctype.ends_with(']') {
        Shape::Array
    } else {
        Shape::Scalar
    };
    Ok(Field {
        signed: signed.unwrap_or_else(|| is_signed(&ctype)),
        ctype,
        name: name.to_owned(),
        offset: offset.ok_or("`offset:` with a number")?,
        size: size.ok_or("`size:` with a number")?,
        shape,
    })
}

/// Type and name of `unsigned long x`, `char comm[16]` or `__data_loc char[] name`.
fn split_declaration(declaration: &str) -> Option<(String, &str)> {
    let (head, array) = match declaration.strip_suffix(']') {
        Some(_) => declaration.split_at(declaration.find('[')?),
        None => (declaration, ""),
    };
    let head = head.trim_end();
    let start = head
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map_or(0, |at| at + 1);
    let (ctype, name) = head.split_at_checked(start)?;
    let array = array.trim();
    (!name.is_empty()).then(|| (format!("{}{array}", ctype.trim()), name))
}

/// What kernels before 2.6.33 do not say.
fn is_signed(ctype: &str) -> bool {
    let unsigned = [
        "unsigned", "u8", "u16", "u32", "u64", "bool", "size_t", "*", "gfp_t",
    ];
    !unsigned.iter().any(|part| ctype.contains(part))
}

fn check_length(text: &str) -> Result<(), FormatError> {
    let len = text.len();
    if len > TEXT_BYTES_MAX {
        Err(FormatError::TooLong { len })
    } else {
        Ok(())
    }
}

/// What follows `key` on the first line that begins with it.
fn line_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .map(str::trim)
}

/// Number of the line in which `part` of `text` stands.
fn line_of(text: &str, part: &str) -> usize {
    let at = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
