//! Words in tables: what of a text may go to a terminal, and where lines break.

use super::WIDTH_MIN;
use std::borrow::Cow;

/// Smallest width to which a column of text is folded.
pub(super) const FOLDED_MIN: usize = 16;
/// A line of a heading is broken at this length even where no part ends.
const HEADING_MAX: usize = 32;

/// A text as it may stand on a terminal: control characters become what Rust calls them (`\u{1b}`). Any process
/// can give itself a name with escape sequences in it, and so can who names a file.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// The same for a text of several lines, whose line breaks and tabulators stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && c != '\n' && c != '\t')
}

/// A number with its noun, which gets an `s` unless there is one of it: `1 pause`, `3 pauses`.
pub fn counted(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {one}{s}")
}

pub(super) fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Lines of at most `width`, broken at blanks, and within words that are longer. One at least.
pub(super) fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest = length(word);
        if used > 0 && used + 1 + rest > width {
            lines.push(String::new());
            used = 0;
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
            used += 1;
        }
        for c in word.chars() {
            if used == width && rest > 0 {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().into_iter().for_each(|line| line.push(c));
            used += 1;
            rest -= 1;
        }
    }
    lines
}

/// Text of which each line is folded at blanks, what goes on below indented; as it is without a width.
pub(crate) fn hanging(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let room = width.saturating_sub(indent).max(FOLDED_MIN);
    let mut all = String::new();
    for line in text.lines() {
        if length(line) <= width {
            all += &format!("{line}\n");
            continue;
        }
        // A number at the start keeps its place.
        let head: String = line.chars().take(indent).collect();
        let head = if head.ends_with("  ") {
            head
        } else {
            String::new()
        };
        let mut margin = head.clone();
        for part in folded(&line[head.len()..], room) {
            all += &format!("{margin}{part}\n");
            margin = " ".repeat(indent);
        }
    }
    all
}

pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// A heading as lines: mmtests' split at the first `-` for plain names, at the ends of parts for
/// kernels with mechanisms or settings, so that lines stay within `width` where possible.
pub fn heading_lines(heading: &str, width: usize) -> Vec<String> {
    if heading.contains(['+', ',', '=', ' ']) {
        return wrapped(heading, width.clamp(WIDTH_MIN, HEADING_MAX));
    }
    match release_end(heading) {
        Some(at) => vec![heading[..at].to_owned(), heading[at + 1..].to_owned()],
        None => vec![heading.to_owned()],
    }
}

/// Position of the `-` at which mmtests splits a name: the first, or the one after `-rcN`.
pub(super) fn release_end(name: &str) -> Option<usize> {
    let first = name.find('-')?;
    let candidate = name[first + 1..].strip_prefix("rc").map(|rest| {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        (digits, rest)
    });
    match candidate {
        Some((digits, rest)) if digits > 0 => rest[digits..]
            .starts_with('-')
            .then_some(name.len() - rest.len() + digits),
        _ => Some(first),
    }
    .filter(|&at| at > 0 && at + 1 < name.len())
}

/// Lines of at most `width`, broken before `+`, after `,`, `=`, `-` and at blanks.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in pieces(text) {
        let line = lines.last().map_or(0, |l| length(l));
        if line > 0 && line + length(piece.trim_end()) > width {
            lines.push(String::new());
        }
        for c in piece.chars() {
            if lines.last().is_some_and(|l| length(l) >= HEADING_MAX) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
        .iter()
        .map(|l| l.trim().to_owned())
        .filter(|l| !l.is_empty())
        .collect()
}

/// The parts between which a line may end.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let end = match c {
            '+' => at,
            ',' | '=' | '-' | ' ' => at + c.len_utf8(),
            _ => continue,
        };
        if end > start {
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    pieces.push(&text[start..]);
    pieces
}
