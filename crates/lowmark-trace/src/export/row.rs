//! Pieces of text that several formats share.

use super::{NAMES_ERA, column_name};
use lowmark_record::event::ValueType;
use lowmark_record::{Actor, Field, Kind, Names, Tables};

/// Name of a task that the tables do not have.
pub(super) const NO_NAME: &str = "<...>";

/// Columns of every table, before the tracepoint's own.
pub(super) const COMMON_COLUMNS: [&str; 4] = ["t_ns", "cpu", "pid", "comm"];

/// Name and process id of a task; no id where it is not known.
pub(super) fn actor(tables: &Tables, task: u32) -> (&str, Option<i32>) {
    match tables.actor(task) {
        Some(Actor { name, pid }) => (name, Some(*pid).filter(|pid| *pid >= 0)),
        None => (NO_NAME, None),
    }
}

/// The tracepoint's own columns.
pub(super) fn columns(kind: Kind) -> impl Iterator<Item = (&'static str, Field)> {
    kind.fields()
        .iter()
        .map(|field| (column_name(*field), *field))
}

/// A value as JSON and CSV have it.
pub(super) fn render(value: ValueType, bits: u64, names: &Names, out: &mut Vec<u8>) {
    value.render(bits, names, NAMES_ERA, out);
}

/// A whole number.
#[inline]
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    out.extend_from_slice(decimal(value, &mut digits));
}

/// The digits of a number, at the end of `digits`.
#[inline]
pub(super) fn decimal(mut value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[at..];
        }
    }
}

/// A number right-justified in `width` columns.
#[inline]
pub(super) fn padded(value: u64, width: usize, fill: u8, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let digits = decimal(value, &mut digits);
    out.resize(out.len() + width.saturating_sub(digits.len()), fill);
    out.extend_from_slice(digits);
}
