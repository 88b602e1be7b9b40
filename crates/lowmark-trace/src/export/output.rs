//! Where exports go: a file or a directory that gets its name when it is whole.
//!
//! 1. A hidden sibling, `.NAME.new-PID`, is created and written.
//! 2. `finish` renames it; of a directory that is replaced, the old one steps aside first and is removed.
//! 3. If the output is dropped before, the sibling is removed.
//!
//! Standard output, pipes and devices are written as they are.

use super::{ExportError, Format};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

/// The hidden file or directory that this process writes before `path` has its name; none if that has no name of
/// its own. A program that is ended by a signal should remove it.
pub fn unfinished(path: &Path) -> Option<PathBuf> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name()?);
    hidden.push(format!(".new-{}", std::process::id()));
    Some(path.with_file_name(hidden))
}

/// A hidden sibling that is removed unless it was renamed.
#[derive(Debug)]
struct Sibling {
    path: PathBuf,
    directory: bool,
    renamed: bool,
}

impl Sibling {
    fn of(path: &Path, directory: bool) -> Result<Sibling, ExportError> {
        let refuse = || ExportError::NoName {
            path: path.to_owned(),
        };
        Ok(Sibling {
            path: unfinished(path).ok_or_else(refuse)?,
            directory,
            renamed: false,
        })
    }
}

impl Drop for Sibling {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        // It is a leftover of our own; if it can't be removed, what failed before matters more.
        let _ = if self.directory {
            fs::remove_dir_all(&self.path)
        } else {
            fs::remove_file(&self.path)
        };
    }
}

/// One file, buffered.
pub(super) struct FileOutput {
    path: PathBuf,
    sibling: Option<Sibling>,
    out: Box<dyn Write + Send>,
    /// What is to be written next. Exporters append to it and call [`FileOutput::flush_if_full`].
    pub(super) buffer: Vec<u8>,
    written: u64,
    error: Option<io::Error>,
}

impl FileOutput {
    pub(super) fn create(path: &Path, form: &'static str) -> Result<FileOutput, ExportError> {
        let fail = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(ExportError::Directory {
                path: path.to_owned(),
                form,
            });
        }
        let special = existing.is_some_and(|data| !data.is_file());
        let (sibling, out): (_, Box<dyn Write + Send>) = if path == Path::new("-") {
            (None, Box::new(io::stdout()))
        } else if special {
            let file = File::options().write(true).open(path).map_err(fail)?;
            (None, Box::new(file))
        } else {
            let sibling = Sibling::of(path, false)?;
            let file = File::create(&sibling.path).map_err(fail)?;
            (Some(sibling), Box::new(file))
        };
        Ok(FileOutput {
            path: path.to_owned(),
            sibling,
            out,
            buffer: Vec::with_capacity(BUFFER + (BUFFER >> 4)),
            written: 0,
            error: None,
        })
    }

    /// Writes the buffer out once it is long enough.
    #[inline]
    pub(super) fn flush_if_full(&mut self) {
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.buffer).err();
            self.written += self.buffer.len() as u64;
        }
        self.buffer.clear();
    }

    pub(super) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the rest and gives the file its name; the path and the length.
    pub(super) fn finish(mut self) -> Result<(PathBuf, u64), ExportError> {
        self.flush();
        let result = match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        };
        let renamed = result.and_then(|()| match &mut self.sibling {
            Some(sibling) => {
                fs::rename(&sibling.path, &self.path)?;
                sibling.renamed = true;
                Ok(())
            }
            None => Ok(()),
        });
        renamed.map_err(|source| ExportError::Write {
            path: self.path.clone(),
            source,
        })?;
        Ok((self.path.clone(), self.written))
    }
}

/// A text file that is open, and gets its name when it is written.
pub struct TextFile(FileOutput);

impl TextFile {
    /// Opens it, so that what can't be written is told before the long work. `form` is what it will be, for messages.
    ///
    /// # Errors
    ///
    /// If it can't be written, or is a directory.
    pub fn create(path: &Path, form: &'static str) -> Result<TextFile, ExportError> {
        FileOutput::create(path, form).map(TextFile)
    }

    /// Writes the text.
    ///
    /// # Errors
    ///
    /// If writing fails; nothing stays behind then.
    pub fn write(mut self, text: &str) -> Result<(), ExportError> {
        self.0.buffer.extend_from_slice(text.as_bytes());
        self.0.finish().map(|_| ())
    }
}

/// A directory of files with one extension.
#[derive(Debug)]
pub(super) struct DirectoryOutput {
    path: PathBuf,
    format: Format,
    sibling: Sibling,
}

impl DirectoryOutput {
    pub(super) fn create(path: &Path, format: Format) -> Result<DirectoryOutput, ExportError> {
        let fail = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        check_replaceable(path, format)?;
        let sibling = Sibling::of(path, true)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        // One of a process that had our number and died.
        let _ = fs::remove_dir_all(&sibling.path);
        fs::create_dir(&sibling.path).map_err(fail)?;
        Ok(DirectoryOutput {
            path: path.to_owned(),
            format,
            sibling,
        })
    }

    fn file_name(&self, table: &str) -> String {
        format!("{table}.{}", self.format.extension())
    }

    /// Creates the file of a table.
    pub(super) fn file(&self, table: &str) -> io::Result<File> {
        File::create(self.sibling.path.join(self.file_name(table)))
    }

    /// The error of a table's file.
    pub(super) fn error(&self, table: &str, source: io::Error) -> ExportError {
        ExportError::Write {
            path: self.path.join(self.file_name(table)),
            source,
        }
    }

    /// Gives the directory its name; the files in it and their length in all. The files are closed.
    pub(super) fn finish(mut self) -> Result<(Vec<PathBuf>, u64), ExportError> {
        // Somebody may have put something there meanwhile.
        check_replaceable(&self.path, self.format)?;
        self.rename().map_err(|source| ExportError::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn rename(&mut self) -> io::Result<(Vec<PathBuf>, u64)> {
        let (mut files, mut bytes) = (Vec::new(), 0);
        for entry in fs::read_dir(&self.sibling.path)? {
            let entry = entry?;
            bytes += entry.metadata()?.len();
            files.push(self.path.join(entry.file_name()));
        }
        files.sort();
        let mut old = self.sibling.path.clone().into_os_string();
        old.push(".old");
        let replaces = self.path.exists();
        if replaces {
            fs::rename(&self.path, &old)?;
        }
        fs::rename(&self.sibling.path, &self.path)?;
        self.sibling.renamed = true;
        if replaces {
            fs::remove_dir_all(&old)?;
        }
        Ok((files, bytes))
    }
}

/// Whether nothing that somebody wants is lost if `path` is replaced.
fn check_replaceable(path: &Path, format: Format) -> Result<(), ExportError> {
    let fail = |source| ExportError::Create {
        path: path.to_owned(),
        source,
    };
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path != Path::new("-") => {
            return Ok(());
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        Err(_) => {
            return Err(ExportError::NotADirectory {
                path: path.to_owned(),
                format,
            });
        }
    };
    if !data.is_dir() {
        return Err(ExportError::NotADirectory {
            path: path.to_owned(),
            format,
        });
    }
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let ours = Path::new(&name)
            .extension()
            .is_some_and(|e| e == format.extension());
        if !ours || entry.file_type().map_err(fail)?.is_dir() {
            return Err(ExportError::Occupied {
                path: path.to_owned(),
                format,
                found: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}
