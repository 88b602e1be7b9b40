//! What goes to stdout: plain when it goes to a file or a pipe, with colour and fitted to the width on a
//! terminal.

use crate::cli::Color;
use lowmark_report::document::Document;
use lowmark_report::table::{PlainStyle, Role, Style, printable, printable_lines};
use miette::{IntoDiagnostic, WrapErr};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// Width of running text where there is no terminal to fit.
const TEXT_WIDTH: usize = 100;

/// Looks and width of the output.
pub(crate) struct Page {
    /// Looks.
    pub(crate) style: Box<dyn Style>,
    /// Width to which tables are divided; none if they go on as they are.
    pub(crate) width: Option<usize>,
}

impl Page {
    /// The page that stdout is.
    pub(crate) fn stdout() -> Page {
        let stdout = std::io::stdout();
        let style: Box<dyn Style> = if color(stdout.is_terminal()) {
            Box::new(Ansi)
        } else {
            Box::new(PlainStyle)
        };
        let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
        let width = (columns > 0).then_some(usize::from(columns));
        Page { style, width }
    }

    /// A heading.
    pub(crate) fn title(&self, text: &str) -> String {
        self.style.paint(Role::Title, &printable(text))
    }

    /// Running text as indented lines.
    pub(crate) fn paragraph(&self, text: &str, indent: usize) -> String {
        let width = self.width.unwrap_or(TEXT_WIDTH).min(TEXT_WIDTH);
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.last().map_or(0, |line| line.chars().count());
            if last > 0 && indent + last + 1 + word.chars().count() > width {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        let margin = " ".repeat(indent);
        lines
            .iter()
            .map(|line| format!("{margin}{line}\n"))
            .collect()
    }
}

/// Prints a report for people.
pub(crate) fn print_document(document: &Document<'_>) -> miette::Result<()> {
    let page = Page::stdout();
    print(&document.text(page.style.as_ref(), page.width))
}

/// What `--color` says.
static COLOR: OnceLock<Color> = OnceLock::new();

/// Keeps what `--color` says for all that is printed.
pub(crate) fn set_color(color: Color) {
    // Once, at the start of the program.
    let _ = COLOR.set(color);
}

/// Whether there is colour in what goes to a terminal, or elsewhere (<https://no-color.org>).
pub(crate) fn color(terminal: bool) -> bool {
    let refused = || {
        std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb")
    };
    match COLOR.get().copied().unwrap_or(Color::Auto) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && !refused(),
    }
}

/// Colours of a terminal.
struct Ansi;

impl Style for Ansi {
    fn paint(&self, role: Role, text: &str) -> String {
        let code = match role {
            Role::Title | Role::Heading => "1",
            Role::Good => "32",
            Role::Bad => "31",
            Role::Unknown => "2",
            Role::Plain => return text.to_owned(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Prints to stdout. A reader that has gone away has seen what it wanted: that is no error.
pub(crate) fn print(text: &str) -> miette::Result<()> {
    print_more(text).map(|_| ())
}

/// The same for what has no end: whether its reader is still there.
pub(crate) fn print_more(text: &str) -> miette::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(e).into_diagnostic().wrap_err("cannot write to stdout"),
    }
}

/// Prints a JSON document.
pub(crate) fn print_json(document: &impl Serialize) -> miette::Result<()> {
    let text = serde_json::to_string_pretty(document)
        .into_diagnostic()
        .wrap_err("cannot write the result as JSON")?;
    print(&(text + "\n"))
}

/// Says something on stderr, unless it is to be quiet. Control characters in it are shown as text.
pub(crate) fn remark(quiet: bool, text: &str) {
    if !quiet {
        // Where stderr is gone, there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "{}", printable_lines(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_indented() {
        let page = Page {
            style: Box::new(PlainStyle),
            width: Some(12),
        };
        assert_eq!(
            page.paragraph("one two three  four", 2),
            "  one two\n  three four\n"
        );
        assert_eq!(page.paragraph("", 2), "  \n");
    }
}
