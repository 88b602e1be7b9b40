//! Why an export can't be written, each with the path and what to do.

use super::Format;
use std::io;
use std::path::PathBuf;

/// An export that can't be written, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The system refused before anything was written.
    #[error("{}: cannot create: {source}; choose a place where you may write", path.display())]
    Create {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed on the way. What was written is removed.
    #[error("{}: cannot write: {source}; nothing is kept of it: make room and export again", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file was asked for where a directory is.
    #[error("{}: a directory; {form} is one file: name a file, in it or elsewhere", path.display())]
    Directory {
        /// Path.
        path: PathBuf,
        /// What was to be written.
        form: &'static str,
    },
    /// A directory was asked for where a file is, or standard output.
    #[error("{}: not a directory; {format} is a directory of files: name one that does not exist", path.display())]
    NotADirectory {
        /// Path.
        path: PathBuf,
        /// What was to be written.
        format: Format,
    },
    /// The destination holds something else.
    #[error(
        "{}: will not be overwritten: expected nothing, an empty directory or one of .{} files alone, found \
         `{found}`; choose another directory or remove it",
        path.display(),
        format.extension()
    )]
    Occupied {
        /// Destination.
        path: PathBuf,
        /// What was to be written.
        format: Format,
        /// Name of what is in it.
        found: String,
    },
    /// The destination has no name of its own.
    #[error("{}: expected the name of something to create", path.display())]
    NoName {
        /// Destination.
        path: PathBuf,
    },
    /// This program was built without it.
    #[error(
        "{}: this lowmark was built without {format}; build it with the feature `{format}`, or export csv",
        path.display()
    )]
    NotBuilt {
        /// Destination.
        path: PathBuf,
        /// What was to be written.
        format: Format,
    },
}
