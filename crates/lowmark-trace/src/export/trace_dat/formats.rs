//! What the `format` files of tracepoints say, and records that are so.

use super::pages::RECORD_BYTES_MAX;
use lowmark_record::event::gfp::Recorded;
use lowmark_record::event::{EventText, Spelling, ValueNames, ValueType};
use lowmark_record::{Event, Field, Kind, Names, Release};
use std::fmt::Write;

/// Number of the first tracepoint; the kernel's own types are below.
const FIRST_ID: u16 = 32;
/// Bytes of [`COMMON`].
const COMMON_BYTES: usize = 8;
/// Bytes that all texts of a record have together at most.
const TEXT_BYTES_MAX: usize = RECORD_BYTES_MAX / 2;

/// What all records begin with.
const COMMON: [(&str, usize, usize, bool); 4] = [
    ("unsigned short common_type", 0, 2, false),
    ("unsigned char common_flags", 2, 1, false),
    ("unsigned char common_preempt_count", 3, 1, false),
    ("int common_pid", 4, 4, true),
];

/// The line of a member.
fn declare(out: &mut String, declared: &str, offset: usize, size: usize, signed: bool) {
    let signed = u8::from(signed);
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
    );
}

/// How the records of a tracepoint look.
#[derive(Debug)]
pub(super) struct Layout {
    kind: Kind,
    text: EventText,
    release: Release,
    gfp: Recorded,
    members: Vec<Member>,
}

/// A field in a record.
#[derive(Debug, Clone, Copy)]
struct Member {
    field: Field,
    offset: usize,
}

/// Bytes of a value in a record: of a text, where it stands.
fn size(value: ValueType) -> usize {
    match value {
        ValueType::Text | ValueType::Device => 4,
        _ => 8,
    }
}

/// The C type of a value.
fn c_type(value: ValueType) -> &'static str {
    match value {
        ValueType::Signed => "s64",
        ValueType::Unsigned | ValueType::Lru => "u64",
        ValueType::Gfp | ValueType::ReclaimFlags | ValueType::Throttle => "unsigned long",
        ValueType::Pointer => "void *",
        ValueType::Text => "__data_loc char[]",
        ValueType::Device => "dev_t",
    }
}

impl Layout {
    pub(super) fn new(kind: Kind, release: Release) -> Layout {
        let text = kind.text_in(release);
        let mut offset = COMMON_BYTES;
        let mut members: Vec<Member> = Vec::new();
        for (_, field, _) in &text.pieces {
            if members.iter().any(|member| member.field == *field) {
                continue;
            }
            let size = size(field.spec().value);
            offset = offset.next_multiple_of(size);
            members.push(Member {
                field: *field,
                offset,
            });
            offset += size;
        }
        Layout {
            kind,
            text,
            release,
            gfp: Recorded::new(release),
            members,
        }
    }

    /// Group of the tracepoint.
    pub(super) fn system(&self) -> &'static str {
        self.kind.spec().group
    }

    fn id(&self) -> u16 {
        FIRST_ID + self.kind as u16
    }

    /// The text of the `format` file.
    pub(super) fn text(&self) -> String {
        let mut out = format!("name: {}\nID: {}\nformat:\n", self.kind.name(), self.id());
        for (declared, offset, size, signed) in COMMON {
            declare(&mut out, declared, offset, size, signed);
        }
        // An empty line ends what all events have.
        out.push('\n');
        for Member { field, offset } in &self.members {
            let value = field.spec().value;
            let declared = format!("{} {}", c_type(value), field.name());
            let signed = value == ValueType::Signed;
            declare(&mut out, &declared, *offset, size(value), signed);
        }
        let (mut pattern, mut arguments) = (String::new(), String::new());
        for (before, field, spelling) in &self.text.pieces {
            pattern += &escaped(before);
            let (conversion, argument) = self.print(*field, *spelling);
            pattern += &conversion;
            arguments += ", ";
            arguments += &argument;
        }
        pattern += &escaped(self.text.after);
        let _ = writeln!(out, "\nprint fmt: \"{pattern}\"{arguments}");
        out
    }

    /// The conversion of a field, and what is converted.
    fn print(&self, field: Field, spelling: Spelling) -> (String, String) {
        let member = format!("REC->{}", field.name());
        let value = field.spec().value;
        let (letters, argument) = match (value, value.names(self.release)) {
            (ValueType::Signed, _) => ("lld", member),
            (ValueType::Unsigned, _) => ("llu", member),
            (ValueType::Pointer, _) => return ("%016llx".into(), format!("(u64){member}")),
            (ValueType::Text, _) => ("s", format!("__get_str({})", field.name())),
            (ValueType::Device, _) => {
                let both = format!(
                    "((unsigned int) (({member}) >> 20)), ((unsigned int) (({member}) & ((1U << 20) - 1)))"
                );
                return ("%d:%d".into(), both);
            }
            (_, Some(ValueNames::Flags(names, none))) => {
                let names = table(&names);
                let printed = format!("__print_flags({member}, \"|\", {names})");
                ("s", format!("({member}) ? {printed} : \"{none}\""))
            }
            (_, Some(ValueNames::Symbols(names))) => (
                "s",
                format!("__print_symbolic({member}, {})", table(&names)),
            ),
            (_, None) => ("llu", member),
        };
        match spelling {
            Spelling::Plain => (format!("%{letters}"), argument),
            Spelling::Hex => ("%llx".into(), argument),
            Spelling::Padded(width) => (format!("%-{width}{letters}"), argument),
        }
    }

    /// Writes the record of an event; its length is a multiple of four. Texts that are too long are cut.
    pub(super) fn record(&self, event: &Event, pid: i32, names: &Names, out: &mut Vec<u8>) {
        out.extend(self.id().to_le_bytes());
        out.extend([0, 0]);
        out.extend(pid.to_le_bytes());
        let last = self.members.last();
        let end = last.map_or(COMMON_BYTES, |m| m.offset + size(m.field.spec().value));
        out.resize(end, 0);
        for Member { field, offset } in &self.members {
            let value = event.get(*field).unwrap_or(0);
            match field.spec().value {
                ValueType::Text => {
                    let text = event.get(*field).map_or("", |name| names.text(name));
                    let used = out.len() - end;
                    let mut cut = text.len().min(TEXT_BYTES_MAX.saturating_sub(used));
                    while !text.is_char_boundary(cut) {
                        cut -= 1;
                    }
                    let place = (cut as u32 + 1) << 16 | out.len() as u32;
                    out[*offset..offset + 4].copy_from_slice(&place.to_le_bytes());
                    out.extend_from_slice(&text.as_bytes()[..cut]);
                    out.push(0);
                }
                ValueType::Device => {
                    out[*offset..offset + 4].copy_from_slice(&(value as u32).to_le_bytes());
                }
                ValueType::Gfp => {
                    let number = self.gfp.number(value);
                    out[*offset..offset + 8].copy_from_slice(&number.to_le_bytes());
                }
                _ => out[*offset..offset + 8].copy_from_slice(&value.to_le_bytes()),
            }
        }
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// A fixed text in a pattern.
fn escaped(text: &str) -> String {
    let text = text.replace('%', "%%");
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The table of `__print_flags` and `__print_symbolic`.
fn table(names: &[(u64, String)]) -> String {
    let entries = names.iter();
    let entries = entries.map(|(value, name)| format!("{{ 0x{value:x}, \"{name}\" }}"));
    entries.collect::<Vec<_>>().join(", ")
}
