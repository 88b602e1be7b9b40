//! How `recording.json` is laid out: one line for each counter, task and series, nothing finer.
//!
//! Compact JSON is unreadable, indented JSON spends four lines on every sample. Here containers are
//! broken over lines down to [`BROKEN_DEPTH`] and compact below it, so that two recordings can be
//! compared line by line and a million samples are still one line.

use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Containers up to this depth put each element on a line of its own.
const BROKEN_DEPTH: usize = 2;

/// A [`Formatter`] that breaks lines only near the top of the document.
#[derive(Debug, Default)]
pub(crate) struct ShallowFormatter {
    depth: usize,
    /// Whether the container that was closed or is being filled has an element.
    filled: bool,
}

impl ShallowFormatter {
    fn broken(&self) -> bool {
        self.depth <= BROKEN_DEPTH
    }

    fn line<W: ?Sized + Write>(&self, writer: &mut W, depth: usize) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..depth).try_for_each(|_| writer.write_all(b"  "))
    }

    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.broken() && self.filled {
            self.line(writer, self.depth.saturating_sub(1))?;
        }
        self.depth = self.depth.saturating_sub(1);
        self.filled = true;
        writer.write_all(bracket)
    }

    fn element<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.broken() {
            self.line(writer, self.depth)?;
        }
        Ok(())
    }
}

impl Formatter for ShallowFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.broken() { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ShallowFormatter;
    use serde::Serialize;
    use serde_json::{Serializer, Value, json};

    fn laid_out(value: &Value) -> String {
        let mut bytes = Vec::new();
        let formatter = ShallowFormatter::default();
        value
            .serialize(&mut Serializer::with_formatter(&mut bytes, formatter))
            .expect("memory");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn breaks_lines_near_the_top_only() {
        let value = json!({"a": 1, "b": [{"c": [1, 2]}, {}], "e": [], "f": {}});
        let expected = "{\n  \"a\": 1,\n  \"b\": [\n    {\"c\":[1,2]},\n    {}\n  ],\n  \
                        \"e\": [],\n  \"f\": {}\n}";
        assert_eq!(laid_out(&value), expected);
        assert_eq!(
            serde_json::from_str::<Value>(expected).expect("valid"),
            value
        );
    }
}
