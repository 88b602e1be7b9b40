//! Texts being read, and places in them.
//!
//! A [`Span`] carries the number of its text, so that a value keeps its place whether it came from the
//! workload file, from a machine file that it uses, or from an override on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use super::error::{Problem, Result};
use super::tree::{self, Node};

/// Longest text that is read, bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// A text to parse and the name under which errors speak of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// File name, or another short name of the origin.
    pub name: String,
    /// The whole text. Where [`char::REPLACEMENT_CHARACTER`] stands it is taken to be none.
    pub text: String,
}

impl Source {
    /// Reads a file. Bytes that are no text become [`char::REPLACEMENT_CHARACTER`], and of a file that is too long
    /// only as much is read as the parser needs to refuse it: it says both with the name of the file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read.
    pub fn read(path: &Path) -> io::Result<Source> {
        let mut bytes = Vec::new();
        let length_max = SOURCE_BYTES_MAX as u64 + 1;
        File::open(path)?.take(length_max).read_to_end(&mut bytes)?;
        Ok(Source {
            name: path.display().to_string(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

/// Bytes `start..end` of one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of the text in [`Sources`].
    pub(crate) source: u32,
    /// First byte.
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
}

impl Span {
    /// Texts are at most [`SOURCE_BYTES_MAX`] long, so offsets fit.
    pub(crate) fn new(source: u32, range: std::ops::Range<usize>) -> Span {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            source,
            start: offset(range.start),
            end: offset(range.end),
        }
    }

    /// Length in bytes.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether `other` lies inside.
    pub(crate) fn contains(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }
}

/// A text with what is needed to speak about places in it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    line_starts: Vec<usize>,
    origin: Origin,
}

/// What a text is.
#[derive(Debug)]
enum Origin {
    /// A TOML file, once it is parsed.
    File(Option<Rc<Node>>),
    /// The value of one field.
    Field(String),
}

/// All texts of one call of the parser, numbered in the order they were read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    loaded: Vec<Loaded>,
}

impl Sources {
    /// Adds the value of one field, such as an override, and gives the span of its text.
    pub(crate) fn add(&mut self, name: &str, field: &str, text: &str) -> Span {
        let source = self.push(name, text, Origin::Field(field.to_owned()));
        Span::new(source, 0..text.len())
    }

    fn push(&mut self, name: &str, text: &str, origin: Origin) -> u32 {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        self.loaded.push(Loaded {
            name: name.to_owned(),
            text: text.into(),
            line_starts: std::iter::once(0).chain(starts).collect(),
            origin,
        });
        Span::new(0, self.loaded.len() - 1..0).start
    }

    /// Adds a TOML file and gives its root table.
    pub(crate) fn load(&mut self, source: &Source) -> Result<Rc<Node>> {
        let bytes = source.text.len();
        if bytes > SOURCE_BYTES_MAX {
            let id = self.push(&source.name, "", Origin::File(None));
            return Err(Problem::new(
                Span::new(id, 0..0),
                format!("the file is too long, expected at most {SOURCE_BYTES_MAX} bytes (1 MiB)"),
                "a workload is a few hundred lines; check that this is the file you meant",
            ));
        }
        if source.text.contains(char::REPLACEMENT_CHARACTER) {
            // Such a file may have anything in it, which no terminal is to get.
            let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
            let text = source.text.replace(odd, "\u{fffd}");
            let id = self.push(&source.name, &text, Origin::File(None));
            let at = text.find(char::REPLACEMENT_CHARACTER).unwrap_or(0);
            return Err(Problem::new(
                Span::new(id, at..at + char::REPLACEMENT_CHARACTER.len_utf8()),
                "expected text in UTF-8, found bytes that are none",
                "check that this is the file you meant, or save it in UTF-8",
            ));
        }
        let id = self.push(&source.name, &source.text, Origin::File(None));
        let root = Rc::new(tree::read(id, &source.text)?);
        if let Some(loaded) = self.loaded.get_mut(id as usize) {
            loaded.origin = Origin::File(Some(Rc::clone(&root)));
        }
        Ok(root)
    }

    /// The text of a span.
    pub(crate) fn of(&self, span: Span) -> Option<&Loaded> {
        self.loaded.get(span.source as usize)
    }

    /// Line of the start of a span, from 1.
    pub(crate) fn line(&self, span: Span) -> u32 {
        self.of(span).map_or(0, |loaded| loaded.position(span).0)
    }
}

impl Loaded {
    /// Line and column (in characters) of the start of a span, both from 1.
    pub(crate) fn position(&self, span: Span) -> (u32, u32) {
        let start = span.start as usize;
        let line = self.line_starts.partition_point(|&at| at <= start);
        let line_start = line
            .checked_sub(1)
            .and_then(|i| self.line_starts.get(i))
            .copied();
        let before = self.text.get(line_start.unwrap_or(0)..start).unwrap_or("");
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (count(line), count(before.chars().count() + 1))
    }

    /// Dotted name of the field at a span, empty at the root of a file.
    pub(crate) fn field(&self, span: Span) -> String {
        match &self.origin {
            // The root stands at the very beginning, where the first key does too.
            Origin::File(Some(root)) if span != root.span => root.path_of(span),
            Origin::File(_) => String::new(),
            Origin::Field(name) => name.clone(),
        }
    }
}
