//! The page that `--html` asks for: the same document as the text, written by another writer.

use crate::cli::Paging;
use crate::interrupt;
use crate::output::remark;
use lowmark_report::document::Document;
use lowmark_trace::export::{self, TextFile};
use miette::{IntoDiagnostic, miette};
use std::path::{Path, PathBuf};

/// A page that is open, and gets its name when it is written; or none.
pub(crate) struct PageFile(Option<(TextFile, PathBuf)>);

impl PageFile {
    /// Opens what `--html` names, so that what can't be written is told before the long work.
    pub(crate) fn create(paging: &Paging) -> miette::Result<PageFile> {
        let Some(path) = &paging.html else {
            return Ok(PageFile(None));
        };
        if path == Path::new("-") {
            return Err(miette!(
                help = "name a file: the text goes to stdout",
                "--html -: a page is a file of its own"
            ));
        }
        let file = TextFile::create(path, "a page").into_diagnostic()?;
        if let Some(unfinished) = export::unfinished(path) {
            interrupt::before_end(move || {
                // There is nobody left to tell.
                let _ = std::fs::remove_file(&unfinished);
            });
        }
        Ok(PageFile(Some((file, path.clone()))))
    }

    /// Whether there is to be a page.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.is_some()
    }

    /// Writes the page, and says so.
    pub(crate) fn write(self, document: &Document<'_>, quiet: bool) -> miette::Result<()> {
        let Some((file, path)) = self.0 else {
            return Ok(());
        };
        file.write(&document.html()).into_diagnostic()?;
        interrupt::wait_if_ending();
        remark(quiet, &format!("{} written", path.display()));
        Ok(())
    }
}
