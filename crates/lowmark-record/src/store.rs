//! Recordings on disk.
//!
//! A recording is a directory: `recording.json` holds everything but the events, `events.jsonl` holds
//! one event a line and exists only if there are any. The format is described for other programs in
//! `docs/recording.md`; [`VERSION`] names it.
//!
//! Writing:
//! 1. The destination is checked: absent, empty, or a recording that may be replaced. Anything else is
//!    somebody's work and is refused.
//! 2. Both files are written to a hidden sibling directory, `recording.json` last: what lacks it is no recording.
//! 3. An old recording steps aside, the sibling takes its name, the old one is removed. A reader sees
//!    the old recording or the new one, never half of either.
//!
//! Reading checks the header first, so that a file of another version is called that and not "missing
//! field", and then everything that other code relies on: each event names a task that exists, times
//! do not go back, as many events are there as were written.

mod events;
mod leftovers;

pub use events::EventReader;
pub use leftovers::{Cleared, Leftover, leftovers};

use crate::layout::ShallowFormatter;
use crate::recording::Recording;
use crate::stream::{Passing, Sink, Source};
use events::{Events, check_events};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Version of the format that this crate writes, and the only one it reads.
pub const VERSION: u64 = 1;

/// Value of `format` in `recording.json`: by it a recording is told from other directories.
pub const FORMAT: &str = "lowmark-recording";

/// Name of the file that holds everything but the events.
pub const RECORDING_FILE: &str = "recording.json";

/// Name of the file that holds the events.
pub const EVENTS_FILE: &str = "events.jsonl";

/// How often a recording is put in the place of one that somebody else has just put there.
const REPLACED_MAX: usize = 100;

/// Bytes at the start of `recording.json` in which [`FORMAT`] must appear.
const MARKER_WINDOW: usize = 256;

/// Longest `recording.json` that is read, bytes: samples of every millisecond fill a third of it in an hour.
pub const DOCUMENT_MAX: u64 = 1 << 30;

/// Longest line of `events.jsonl` that is read, bytes. Texts in events have 4096 at most.
pub const LINE_MAX: u64 = 1 << 20;

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What was tried, as a verb.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file that belongs to a recording is not there.
    #[error("{}: no such file; expected {expected}", path.display())]
    Missing {
        /// File that was looked for.
        path: PathBuf,
        /// What it would have been.
        expected: &'static str,
    },
    /// The file is of another kind.
    #[error("{}: not a recording: expected \"format\": \"{FORMAT}\", found \"{found}\"", path.display())]
    Format {
        /// `recording.json`.
        path: PathBuf,
        /// Its `format`.
        found: String,
    },
    /// The file is of another version.
    #[error(
        "{}: recording of format version {found}; this lowmark reads version {VERSION}",
        path.display()
    )]
    Version {
        /// `recording.json`.
        path: PathBuf,
        /// Its `version`.
        found: u64,
    },
    /// The text is not what the format says.
    #[error("{}:{line}:{column}: expected {expected}: {problem}", path.display())]
    Syntax {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1 (0 where the parser names none).
        column: usize,
        /// What should be there.
        expected: &'static str,
        /// What the parser found.
        problem: String,
    },
    /// The bytes are not text.
    #[error("{}:{line}: expected UTF-8 text, found other bytes", path.display())]
    NotUtf8 {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// There is no end to it, as in a link to a device or a file full of zeros.
    #[error(
        "{}:{line}: longer than {limit} bytes; expected {expected}: the file is damaged or no part of a \
         recording",
        path.display()
    )]
    TooLong {
        /// File.
        path: PathBuf,
        /// Line that is too long, or the last one of what was read; from 1.
        line: usize,
        /// Most bytes that are read of it.
        limit: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// Fewer or more events than `recording.json` announces.
    #[error("{}: expected {expected} events, found {found}: the file was cut or changed", path.display())]
    EventCount {
        /// `events.jsonl`.
        path: PathBuf,
        /// `event_count` of `recording.json`.
        expected: u64,
        /// Events in the file.
        found: u64,
    },
    /// The parts contradict each other.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Inconsistent {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the rest of the recording asks for.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The destination holds something else.
    #[error(
        "{}: will not be overwritten: expected nothing, an empty directory or a recording, found \
         {found}; choose another directory or remove it",
        path.display()
    )]
    Occupied {
        /// Destination.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// The destination has no name of its own.
    #[error("{}: expected the name of a directory to create", path.display())]
    NoName {
        /// Destination.
        path: PathBuf,
    },
}

impl StoreError {
    fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io {
            path,
            doing,
            source,
        }
    }

    fn syntax(path: &Path, expected: &'static str, line: usize, e: &serde_json::Error) -> Self {
        let text = e.to_string();
        let problem = text
            .rfind(" at line ")
            .map_or(text.as_str(), |end| &text[..end])
            .to_owned();
        StoreError::Syntax {
            path: path.to_owned(),
            line,
            column: e.column(),
            expected,
            problem,
        }
    }
}

/// The first keys of `recording.json`.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
    #[serde(default)]
    event_count: u64,
}

/// `recording.json` as written.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u64,
    event_count: u64,
    #[serde(flatten)]
    recording: &'a Recording,
}

impl Recording {
    /// Writes the recording as directory `dir`, which is created, parents included.
    ///
    /// # Errors
    ///
    /// [`StoreError::Occupied`] if `dir` exists and is neither empty nor a recording;
    /// [`StoreError::Inconsistent`] if the events name no task or run backwards;
    /// [`StoreError::Io`] otherwise. After an error `dir` is what it was, unless the error is that the
    /// old recording, already replaced, could not be removed.
    pub fn write(&self, dir: &Path) -> Result<(), StoreError> {
        check_events(&dir.join(EVENTS_FILE), &self.events, self.tasks.len())?;
        let target = Target::of(dir)?;
        fs::create_dir_all(&target.parent)
            .map_err(StoreError::io(&target.parent, "create the directory"))?;
        let new = target.sibling("new");
        let written = self
            .write_files(&new)
            .and_then(|()| target.replace_by(&new));
        if written.is_err() {
            // Best effort: the error that matters is the first one.
            let _ = fs::remove_dir_all(&new);
        }
        written
    }

    /// Reads a recording, events included.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] that names the file, the line and what was expected there.
    pub fn read(dir: &Path) -> Result<Recording, StoreError> {
        let (mut recording, count) = read_document(dir)?;
        let mut events = Events::of(dir, (count, recording.tasks.len()));
        while let Some(event) = events.next(&mut recording.events.names)? {
            recording.events.push(&event);
        }
        Ok(recording)
    }

    /// Reads a recording and lets its events go by, in memory of one of them: [`Recording::events`] is empty.
    ///
    /// # Errors
    ///
    /// As for [`Recording::read`]. Events before the place of the error have gone by.
    pub fn stream(dir: &Path, sink: &mut dyn Sink) -> Result<(Recording, Source), StoreError> {
        let (recording, count) = read_document(dir)?;
        let mut events = Events::of(dir, (count, recording.tasks.len()));
        let mut passing = Passing::of(&recording);
        while let Some(event) = events.next(&mut passing.tables.names)? {
            passing.pass(event, sink);
        }
        Ok((recording, passing.done()))
    }

    /// Reads a recording without opening its events: [`Recording::events`] is empty.
    ///
    /// # Errors
    ///
    /// As for [`Recording::read`], of `recording.json` alone.
    pub fn read_without_events(dir: &Path) -> Result<Recording, StoreError> {
        Ok(read_document(dir)?.0)
    }

    fn write_files(&self, dir: &Path) -> Result<(), StoreError> {
        fs::create_dir(dir).map_err(StoreError::io(dir, "create the directory"))?;
        if !self.events.is_empty() {
            write_file(&dir.join(EVENTS_FILE), |out| {
                let mut line = Vec::new();
                self.events.iter().try_for_each(|event| {
                    line.clear();
                    event.to_json(&self.events.names, &mut line);
                    line.push(b'\n');
                    out.write_all(&line)
                })
            })?;
        }
        write_file(&dir.join(RECORDING_FILE), |out| {
            let document = Document {
                format: FORMAT,
                version: VERSION,
                event_count: self.events.len() as u64,
                recording: self,
            };
            let formatter = ShallowFormatter::default();
            document.serialize(&mut serde_json::Serializer::with_formatter(
                &mut *out, formatter,
            ))?;
            out.write_all(b"\n")
        })
    }
}

/// Whether a recording can be written as `dir`, to be asked before a long run.
///
/// Nothing is left behind: a directory is created beside the destination (or in its nearest parent
/// that exists) and removed again.
///
/// # Errors
///
/// What [`Recording::write`] would fail with.
pub fn check_writable(dir: &Path) -> Result<(), StoreError> {
    let target = Target::of(dir)?;
    let ground = target
        .parent
        .ancestors()
        .map(|p| {
            if p.as_os_str().is_empty() {
                Path::new(".")
            } else {
                p
            }
        })
        .find(|p| p.symlink_metadata().is_ok())
        .unwrap_or(Path::new("."));
    let trial = ground.join(hidden(&target.name, "try"));
    fs::create_dir(&trial).map_err(StoreError::io(ground, "create a directory here"))?;
    fs::remove_dir(&trial).map_err(StoreError::io(&trial, "remove the trial directory"))
}

/// Where a recording goes.
struct Target {
    /// Directory that holds it.
    parent: PathBuf,
    /// Its own name.
    name: OsString,
}

impl Target {
    fn of(dir: &Path) -> Result<Target, StoreError> {
        let exists = match dir.symlink_metadata() {
            Ok(_) => true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(StoreError::io(dir, "look at the destination")(e)),
        };
        let path = if exists {
            may_replace(dir)?;
            // `.`, `..` and links get the name of the directory that they stand for.
            fs::canonicalize(dir).map_err(StoreError::io(dir, "look at the destination"))?
        } else {
            dir.to_owned()
        };
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                let parent = if parent.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    parent
                };
                Ok(Target {
                    parent: parent.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(StoreError::NoName {
                path: dir.to_owned(),
            }),
        }
    }

    fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    fn sibling(&self, role: &str) -> PathBuf {
        self.parent.join(hidden(&self.name, role))
    }

    /// Puts the finished directory `new` in place. Another process may do the same at the same time: the last one's
    /// recording stays.
    fn replace_by(&self, new: &Path) -> Result<(), StoreError> {
        let path = self.path();
        let old = self.sibling("old");
        for _ in 0..REPLACED_MAX {
            match fs::rename(new, &path) {
                Ok(()) => return Ok(()),
                Err(e) if is_occupied(&e) => may_replace(&path)?,
                Err(e) => return Err(StoreError::io(&path, "create the directory")(e)),
            }
            match exchange(new, &path) {
                Ok(()) => {
                    return fs::remove_dir_all(new)
                        .map_err(StoreError::io(new, "remove the old recording"));
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) if cannot_exchange(&e) => {}
                Err(e) => return Err(StoreError::io(&path, "replace the old recording")(e)),
            }
            match fs::rename(&path, &old) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(StoreError::io(&path, "move the old recording aside")(e)),
            }
            let replaced = fs::rename(new, &path);
            if replaced.as_ref().is_err_and(|e| !is_occupied(e)) {
                // Best effort: put back what was there.
                let _ = fs::rename(&old, &path);
                return replaced.map_err(StoreError::io(&path, "replace the old recording"));
            }
            fs::remove_dir_all(&old).map_err(StoreError::io(&old, "remove the old recording"))?;
            if replaced.is_ok() {
                return Ok(());
            }
        }
        Err(StoreError::Occupied {
            path,
            found: "recordings that others keep writing there".to_owned(),
        })
    }
}

/// Lets two directories swap names at once, so that there is a whole recording of the name at any time.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE)?)
}

/// Whether the file system or the kernel does not know how to exchange names: network file systems, kernels before
/// 3.15.
fn cannot_exchange(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

/// Whether a directory could not take a name because one with something in it has it.
fn is_occupied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
    )
}

/// Name of a hidden directory beside `name`; the process id keeps two runs apart.
fn hidden(name: &OsString, role: &str) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{role}-{}", std::process::id()));
    hidden
}

/// Whether `dir` is empty or a recording and nothing else.
fn may_replace(dir: &Path) -> Result<(), StoreError> {
    let occupied = |found: String| StoreError::Occupied {
        path: dir.to_owned(),
        found,
    };
    if !dir.is_dir() {
        return Err(occupied("a file".to_owned()));
    }
    let mut empty = true;
    for entry in fs::read_dir(dir).map_err(StoreError::io(dir, "list the destination"))? {
        let entry = entry.map_err(StoreError::io(dir, "list the destination"))?;
        empty = false;
        let name = entry.file_name();
        if name != RECORDING_FILE && name != EVENTS_FILE {
            return Err(occupied(format!(
                "a directory with `{}` in it",
                name.display()
            )));
        }
    }
    if empty || has_marker(&dir.join(RECORDING_FILE)) {
        Ok(())
    } else {
        Err(occupied(format!(
            "a directory whose {RECORDING_FILE} is no recording"
        )))
    }
}

/// Whether the file begins like a recording. Its end may be missing: a damaged recording may be
/// replaced too.
fn has_marker(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| {
        io::Read::read_to_end(&mut io::Read::take(file, MARKER_WINDOW as u64), &mut start)
    });
    read.is_ok() && begins_like_a_recording(&start)
}

fn begins_like_a_recording(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(MARKER_WINDOW)];
    start.windows(FORMAT.len()).any(|w| w == FORMAT.as_bytes())
}

fn open(path: &Path, expected: &'static str) -> Result<File, StoreError> {
    File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => StoreError::Missing {
            path: path.to_owned(),
            expected,
        },
        _ => StoreError::io(path, "open")(e),
    })
}

fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let file = File::create(path).map_err(StoreError::io(path, "create"))?;
    let mut out = BufWriter::new(file);
    fill(&mut out)
        .and_then(|()| out.flush())
        .map_err(StoreError::io(path, "write"))
}

/// The text of `recording.json`.
fn read_text(path: &Path) -> Result<String, StoreError> {
    let mut file = open(path, "a recording: a directory with recording.json in it")?;
    let mut bytes = Vec::new();
    let mut read_up_to = |limit: u64, bytes: &mut Vec<u8>| {
        let more = limit.saturating_sub(bytes.len() as u64);
        io::Read::read_to_end(&mut io::Read::take(&mut file, more), bytes)
            .map_err(StoreError::io(path, "read"))
    };
    // What does not begin like a recording is not read on for long: its end may be far away.
    let some = (MARKER_WINDOW as u64) << 8;
    read_up_to(some, &mut bytes)?;
    let limit = if begins_like_a_recording(&bytes) {
        DOCUMENT_MAX
    } else {
        some
    };
    read_up_to(limit + 1, &mut bytes)?;
    let line = |bytes: &[u8]| 1 + bytes.iter().filter(|&&b| b == b'\n').count();
    if bytes.len() as u64 > limit {
        return Err(StoreError::TooLong {
            path: path.to_owned(),
            line: line(&bytes[..limit as usize]),
            limit,
            expected: if limit == DOCUMENT_MAX {
                "the end of a recording"
            } else {
                "\"format\": \"lowmark-recording\" within the first 256 bytes"
            },
        });
    }
    String::from_utf8(bytes).map_err(|e| StoreError::NotUtf8 {
        path: path.to_owned(),
        line: line(&e.as_bytes()[..e.utf8_error().valid_up_to()]),
    })
}

/// Everything but the events, and how many events there are.
fn read_document(dir: &Path) -> Result<(Recording, u64), StoreError> {
    let path = dir.join(RECORDING_FILE);
    let text = read_text(&path)?;
    let text = text.as_str();
    let header: Header = serde_json::from_str(text)
        .map_err(|e| StoreError::syntax(&path, "the head of a recording", e.line(), &e))?;
    if header.format != FORMAT {
        return Err(StoreError::Format {
            path,
            found: header.format,
        });
    }
    if header.version != VERSION {
        return Err(StoreError::Version {
            path,
            found: header.version,
        });
    }
    let mut recording: Recording = serde_json::from_str(text)
        .map_err(|e| StoreError::syntax(&path, "a recording of version 1", e.line(), &e))?;
    recording.unfold();
    Ok((recording, header.event_count))
}

#[cfg(test)]
mod tests;
