//! Events out, in the forms of other tools.
//!
//! ```text
//!            ┌─> ftrace.rs     ftrace text of one era                    a file
//!            ├─> trace_dat/    trace.dat of trace-cmd                    a file
//!   events ──┼─> perfetto/     Perfetto's protobuf: bundles and tracks   a file
//!   one by   ├─> json.rs       JSON lines                                a file
//!   one      ├─> csv.rs        CSV, a table for each tracepoint          a directory
//!            └─> parquet.rs    Parquet, a table for each tracepoint      a directory
//! ```
//!
//! 1. [`create`] opens the output, so that what can't be written is told before the long work.
//! 2. The source gives events and counters to the [`Exporter`]. None keeps more than the last few of them
//!    (Parquet: one row group of each table, packed), however long the source.
//! 3. [`Exporter::finish`] gives the output its name. Before that a hidden sibling is written, which goes
//!    away if the work fails: nobody reads half an export.
//!
//! Besides, [`table`] writes any table as one Parquet file, and a [`TextFile`] is any text that gets its name when it is
//! whole.
//!
//! The same events give the same bytes.

mod csv;
mod era;
mod error;
mod ftrace;
mod json;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
pub mod perfetto;
mod row;
pub mod table;
mod trace_dat;

pub use era::EraFinder;
pub use error::ExportError;
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind, Release, Sink};
pub use output::{TextFile, unfinished};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Era whose names of allocation flags the formats without an era have, as recordings do.
const NAMES_ERA: Release = Release::new(6, 12);

/// A form of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// The text of ftrace's `trace` file.
    Ftrace,
    /// The file of trace-cmd, version 6.
    TraceDat,
    /// Perfetto's native protobuf.
    Perfetto,
    /// One flat JSON object a line.
    Json,
    /// A directory of CSV files, one for each tracepoint.
    Csv,
    /// A directory of Parquet files, one for each tracepoint.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Ftrace,
        Format::TraceDat,
        Format::Perfetto,
        Format::Json,
        Format::Csv,
        Format::Parquet,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ftrace => "ftrace",
            Format::TraceDat => "trace.dat",
            Format::Perfetto => "perfetto",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// Whether it is a directory of files and not one file.
    pub fn is_directory(self) -> bool {
        matches!(self, Format::Csv | Format::Parquet)
    }

    /// What its file, or the files in its directory, are usually called behind the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Ftrace => "trace.txt",
            Format::TraceDat => "dat",
            Format::Perfetto => "pftrace",
            Format::Json => "jsonl",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown export format `{0}`; expected ftrace, trace.dat, perfetto, json, csv or parquet")]
pub struct NoFormat(String);

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(text: &str) -> Result<Format, NoFormat> {
        let found = Format::ALL.iter().find(|format| format.name() == text);
        found.copied().ok_or_else(|| NoFormat(text.to_owned()))
    }
}

/// What an export is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Kernel whose text ftrace text and the formats in a trace.dat are. The other formats have no era.
    pub release: Release,
    /// Version of lowmark, kept in the metadata of Parquet files and Perfetto traces.
    pub lowmark: String,
    /// For the header of ftrace text from 3.3 on; without it the header lacks that line.
    pub entries: Option<Entries>,
    /// Leave task names as they are in ftrace text, though the kernel's own scripts take letters, digits and
    /// `-` alone. For traces of real kernels, whose names are what they are.
    pub any_comm: bool,
}

impl Options {
    /// The usual: text of the newest kernel, names that every script reads.
    pub fn new(lowmark: impl Into<String>) -> Options {
        Options {
            release: Release::NEWEST,
            lowmark: lowmark.into(),
            entries: None,
            any_comm: false,
        }
    }
}

/// What the header of ftrace text says of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    /// Events that will be in the text: those that the era has, see [`Kind::exists_in`].
    pub events: u64,
    /// CPUs.
    pub cpus: u32,
}

/// Takes events in order of time, and writes them.
///
/// One exporter takes the events of one source: the numbers of tasks and texts must mean the same from the
/// first event to the last.
pub trait Exporter: Sink + Send {
    /// A gauge's value, `nr_free_pages` or the size of an LRU list. Formats of events alone leave it out.
    fn counter(&mut self, time_ns: u64, name: &str, value: u64) {
        let _ = (time_ns, name, value);
    }

    /// Whether writing has failed. Events are then let go, and [`Exporter::finish`] says why; a source may
    /// stop early.
    fn failed(&self) -> bool;

    /// Writes what is left and gives the output its name.
    ///
    /// # Errors
    ///
    /// The first that occurred, at whatever event. Nothing stays behind then.
    fn finish(self: Box<Self>) -> Result<Exported, ExportError>;
}

/// What was written, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events written.
    pub events: u64,
    /// Values of counters written.
    pub counters: u64,
    /// Events left out because kernels of the era do not have them, by tracepoint.
    pub not_in_era: BTreeMap<&'static str, u64>,
    /// Events earlier than the one before; they were written where they came.
    pub unsorted: u64,
    /// Task names that had to be changed, and what they are now.
    pub renamed: BTreeMap<String, String>,
    /// Files written, in order of name.
    pub files: Vec<PathBuf>,
    /// Their length in all, bytes.
    pub bytes: u64,
}

/// Opens the output at `path`: a file, a device or pipe, or `-` for standard output; of formats that are
/// directories a directory that does not exist, is empty or is an export of the same format, which is
/// replaced.
///
/// # Errors
///
/// If it can't be written, or holds something else.
pub fn create(
    format: Format,
    path: &Path,
    options: &Options,
) -> Result<Box<dyn Exporter>, ExportError> {
    Ok(match format {
        Format::Ftrace => Box::new(ftrace::Ftrace::create(path, options)?),
        Format::TraceDat => Box::new(trace_dat::TraceDat::create(path, options)?),
        Format::Perfetto => Box::new(perfetto::Perfetto::create(path, options)?),
        Format::Json => Box::new(json::Json::create(path)?),
        Format::Csv => Box::new(csv::Csv::create(path)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::Parquet::create(path, options)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            return Err(ExportError::NotBuilt {
                path: path.to_owned(),
                format,
            });
        }
    })
}

/// Name of a field as column and key. Two fields are called like what every event has, its task: `pid`, which
/// is the reclaimer's or the victim's, and `comm`, the victim's.
fn column_name(field: Field) -> &'static str {
    match field {
        Field::Pid => "event_pid",
        Field::Comm => "event_comm",
        field => field.name(),
    }
}

/// Counts an event that its era does not have.
fn count(counts: &mut BTreeMap<&'static str, u64>, kind: Kind) {
    *counts.entry(kind.name()).or_default() += 1;
}

/// A set of allocation flags in the bits of 6.18, which are ours but for flags that were gone by then.
fn gfp_bits(set: u64) -> u64 {
    set & ((gfp::NO_OBJ_EXT << 1) - 1) & !gfp::ATOMIC
}
