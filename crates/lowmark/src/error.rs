//! How errors are told: with the place in the text on a terminal, one line each otherwise.

use lowmark_real::guest::GuestError;
use lowmark_real::host::HostError;
use lowmark_report::table::printable_lines;
use lowmark_spec::SpecError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, Report};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::io::{IsTerminal, Write as _};

/// Exit status of every error but those of a real kernel on which the workload had started.
pub(crate) const EXIT_STATUS: u8 = 2;
/// Exit status when a guest, or a workload on this system, started and failed.
const STARTED_STATUS: u8 = 3;

/// The error of a guest, as one that verbs return.
#[derive(Debug)]
pub(crate) struct Guest(pub(crate) GuestError);

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Guest {}

impl Diagnostic for Guest {}

/// The error of a run on this system, as one that verbs return.
#[derive(Debug)]
pub(crate) struct Host(pub(crate) HostError);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Host {}

impl Diagnostic for Host {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = match &self.0 {
            HostError::MachineWide { .. } => {
                "add --machine-wide: lowmark then changes that while the run lasts, and undoes it; or run it with --on guest"
            }
            HostError::Unsupported { .. } => "a guest has a machine of its own: --on guest",
            _ => return None,
        };
        Some(Box::new(help))
    }
}

/// Exit status of an error.
pub(crate) fn status(report: &Report) -> u8 {
    let guest = report.downcast_ref::<Guest>();
    let host = report.downcast_ref::<Host>();
    let started = guest.is_some_and(|Guest(error)| error.started())
        || host.is_some_and(|Host(error)| error.started());
    if started { STARTED_STATUS } else { EXIT_STATUS }
}

/// Prints an error to stderr.
pub(crate) fn print(report: &Report) {
    let mut stderr = std::io::stderr().lock();
    let text = if stderr.is_terminal() {
        graphical(report)
    } else {
        printable_lines(&plain(report)).into_owned()
    };
    // Where stderr is gone, there is nobody left to tell.
    let _ = stderr.write_all(text.as_bytes());
}

fn graphical(report: &Report) -> String {
    let render = |theme| {
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme);
        let rendered = handler.render_report(&mut text, report.as_ref());
        rendered.is_ok().then_some(text)
    };
    let Some(text) = render(GraphicalTheme::unicode_nocolor()) else {
        return printable_lines(&plain(report)).into_owned();
    };
    match printable_lines(&text) {
        // Without colours nothing but the message can have control characters: those of a file's name or text.
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) if !crate::output::color(true) => text,
        Cow::Borrowed(_) => render(GraphicalTheme::unicode()).unwrap_or(text),
    }
}

/// `error: MESSAGE: CAUSE`, then a line of help.
fn plain(report: &Report) -> String {
    if let Some(error) = report.downcast_ref::<SpecError>() {
        return format!("error: {}", error.render_plain());
    }
    let mut causes: Vec<String> = Vec::new();
    for cause in report.chain().map(ToString::to_string) {
        // Some errors repeat their cause in their own message.
        if !causes.iter().any(|said| said.contains(&cause)) {
            causes.push(cause);
        }
    }
    let mut text = format!("error: {}\n", causes.join(": "));
    if let Some(help) = report.help() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  help: {help}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::{IntoDiagnostic, WrapErr, miette};

    #[test]
    fn plain_errors_have_causes_and_help() {
        let cause = std::io::Error::other("disk on fire");
        let report = Err::<(), _>(cause)
            .into_diagnostic()
            .wrap_err("cannot write")
            .expect_err("an error");
        assert_eq!(plain(&report), "error: cannot write: disk on fire\n");
        let report = miette!(help = "do that", "not so");
        assert_eq!(plain(&report), "error: not so\n  help: do that\n");
    }

    #[test]
    fn escape_sequences_in_names_do_not_reach_the_terminal() {
        let report = miette!(help = "see \u{9b}1m", "\x1b[31mred.txt: no such file");
        let text = graphical(&report);
        assert!(text.contains("\\u{1b}[31mred.txt"), "{text}");
        assert!(text.contains("\\u{9b}1m"), "{text}");
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }

    #[test]
    fn guests_that_started_have_a_status_of_their_own() {
        let status = |error| {
            let report = Err::<(), _>(Guest(error)).wrap_err("run 1");
            status(&report.expect_err("an error"))
        };
        let console = String::new;
        assert_eq!(status(GuestError::NoRunner), EXIT_STATUS);
        assert_eq!(
            status(GuestError::OutOfMemory { console: console() }),
            STARTED_STATUS
        );
        assert_eq!(super::status(&miette!("no")), EXIT_STATUS);
    }
}
