//! What is wrong with a specification, told so that it can be put right.
//!
//! Inside the parser a [`Problem`] is a place, a message ("expected …, found …") and a help line.
//! [`SpecError`] is what callers get: the first problem, with its source text for miette, and the others
//! as related diagnostics.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use serde::Serialize;

use super::source::{Sources, Span};

/// Result of everything inside the parser.
pub(crate) type Result<T> = std::result::Result<T, Problem>;

/// Problems that are reported at most; the rest of a badly broken file would only be noise.
const PROBLEMS_MAX: usize = 20;

/// One thing that is wrong. What the fields hold is in a box because every result carries one.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<ProblemParts>);

#[derive(Debug, Clone)]
struct ProblemParts {
    span: Span,
    message: String,
    help: String,
    notes: Vec<(Span, String)>,
}

impl Problem {
    /// A problem at `span`; `help` says what to do about it.
    pub(crate) fn new(span: Span, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let (message, help) = (message.into(), help.into());
        Problem(Box::new(ProblemParts {
            span,
            message,
            help,
            notes: Vec::new(),
        }))
    }

    /// Adds a second place, such as an earlier definition.
    pub(crate) fn note(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.0.notes.push((span, label.into()));
        self
    }

    /// Adds a sentence to the help.
    pub(crate) fn more_help(mut self, help: &str) -> Problem {
        self.0.help = format!("{}; {help}", self.0.help);
        self
    }
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    raised: usize,
}

impl Problems {
    /// Adds a problem unless it has been said already.
    pub(crate) fn push(&mut self, problem: Problem) {
        self.raised += 1;
        let said = |p: &Problem| p.0.span == problem.0.span && p.0.message == problem.0.message;
        if self.kept.len() < PROBLEMS_MAX && !self.kept.iter().any(said) {
            self.kept.push(problem);
        }
    }

    /// The value of a good result; a bad one is added.
    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|problem| self.push(problem)).ok()
    }

    /// How many were found, repetitions counted: to see whether something went wrong meanwhile.
    pub(crate) fn raised(&self) -> usize {
        self.raised
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.raised == 0
    }

    /// Adds a sentence to the help of every problem.
    pub(crate) fn more_help(&mut self, help: &str) {
        self.kept = std::mem::take(&mut self.kept)
            .into_iter()
            .map(|p| p.more_help(help))
            .collect();
    }

    /// The public error: problems in the order of the text, the first in front.
    pub(crate) fn into_error(mut self, sources: &Sources) -> SpecError {
        self.kept.sort_by_key(|p| (p.0.span.source, p.0.span.start));
        let mut errors = self
            .kept
            .into_iter()
            .map(|problem| SpecError::new(problem, sources));
        let nothing = || {
            let nowhere = Span {
                source: u32::MAX,
                start: 0,
                end: 0,
            };
            SpecError::new(
                Problem::new(nowhere, "no scenario came out", "please report this"),
                sources,
            )
        };
        let mut first = errors.next().unwrap_or_else(nothing);
        first.inner.related = errors.collect();
        first
    }
}

/// Where and what: one problem in plain words, for machine formats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// File, or `--set`, `--kernel`, `--machine` for what came from there.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Dotted name of the field, such as `task.main.run[2].size`; empty for the whole file.
    pub field: String,
    /// What was found and what was expected.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// A specification that cannot be carried out, and why.
///
/// Its `Display` is one line, `file:line:column: field: message`. As a [`miette::Diagnostic`] it shows
/// the place in the text; further problems of the same file are its related diagnostics.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", inner.detail)]
pub struct SpecError {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    text: NamedSource<Arc<str>>,
    detail: Detail,
    labels: Vec<LabeledSpan>,
    related: Vec<SpecError>,
}

impl SpecError {
    fn new(problem: Problem, sources: &Sources) -> SpecError {
        let ProblemParts {
            span,
            message,
            help,
            notes,
        } = *problem.0;
        let place = |span: Span| SourceSpan::new((span.start as usize).into(), span.len());
        let (name, text, (line, column), field) = match sources.of(span) {
            Some(at) => (
                at.name.clone(),
                Arc::clone(&at.text),
                at.position(span),
                at.field(span),
            ),
            None => (String::new(), "".into(), (0, 0), String::new()),
        };
        let mut labels = vec![LabeledSpan::new_primary_with_span(
            Some("here".into()),
            place(span),
        )];
        // Labels share one text; a note elsewhere is a sentence instead.
        let mut help = help;
        for (at, label) in notes {
            if at.source == span.source {
                labels.push(LabeledSpan::new_with_span(Some(label), place(at)));
            } else if let Some(other) = sources.of(at) {
                help = format!(
                    "{help}; {label}: {} line {}",
                    other.name,
                    other.position(at).0
                );
            }
        }
        let detail = Detail {
            file: name.clone(),
            line,
            column,
            field,
            message,
            help,
        };
        let text = NamedSource::new(name, text);
        SpecError {
            inner: Box::new(Inner {
                text,
                detail,
                labels,
                related: Vec::new(),
            }),
        }
    }

    /// Every problem in plain words, the most telling first.
    pub fn details(&self) -> Vec<&Detail> {
        std::iter::once(&self.inner.detail)
            .chain(self.inner.related.iter().map(|error| &error.inner.detail))
            .collect()
    }

    /// Every problem as stable text without colour: `file:line:column: field: message`, then a line of
    /// help.
    pub fn render_plain(&self) -> String {
        let line = |d: &Detail| format!("{d}\n  help: {}\n", d.help);
        self.details().into_iter().map(line).collect()
    }
}

impl Diagnostic for SpecError {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new("lowmark::spec"))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.inner.detail.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.inner.text)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.inner.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.inner.related.is_empty() {
            return None;
        }
        Some(Box::new(
            self.inner
                .related
                .iter()
                .map(|error| error as &dyn Diagnostic),
        ))
    }
}
