//! Parquet: a directory with one file for each tracepoint that occurs, and one of counters.
//!
//! | column | type |
//! |---|---|
//! | `t_ns` | `INT64`, never null |
//! | `cpu` | `INT32` (`UINT_32`), null where it is not known |
//! | `pid` | `INT32`, null where it is not known |
//! | `comm` | `BYTE_ARRAY` (`STRING`), never null |
//! | a number | `INT64` (`INT_64` or `UINT_64`), null where the event has none |
//! | an address | `INT64` (`UINT_64`), likewise |
//! | a text, a set of flags | `BYTE_ARRAY` (`STRING`), likewise |
//!
//! Rows are in the order of the events. Each table waits for a whole row group, packed as
//! [`column::Packed`], so memory does not depend on the number of events.

mod column;

use super::output::DirectoryOutput;
use super::row::{COMMON_COLUMNS, actor, columns, render};
use super::{ExportError, Exported, Exporter, Format, Options};
use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};
use column::Packed;
use lowmark_record::event::{NO_CPU, ValueType};
use lowmark_record::{Event, Kind, Names, Sink, Tables};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group; the last of a table may have fewer.
const GROUP_ROWS: usize = 1 << 17;

/// Name of the table of counters.
const COUNTERS: &str = "counters";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Times, packed as differences.
    Time,
    /// CPUs.
    Cpu,
    /// The tasks' process ids.
    Pid,
    /// The tasks' names; packed is the task's place in [`Texts::tasks`].
    Comm,
    /// Names of counters, packed is the place in [`Texts::counters`].
    Counter,
    /// A field.
    Value(ValueType),
}

impl Content {
    fn schema(self, name: &str) -> Result<Type, ParquetError> {
        let integer = LogicalType::integer;
        let (physical, logical) = match self {
            Content::Time => (Physical::INT64, None),
            Content::Cpu => (Physical::INT32, Some(integer(32, false))),
            Content::Pid => (Physical::INT32, None),
            Content::Value(ValueType::Signed) => (Physical::INT64, Some(integer(64, true))),
            Content::Value(ValueType::Unsigned | ValueType::Pointer) => {
                (Physical::INT64, Some(integer(64, false)))
            }
            _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.is_required() {
            Repetition::REQUIRED
        } else {
            Repetition::OPTIONAL
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    fn is_required(self) -> bool {
        matches!(self, Content::Time | Content::Comm | Content::Counter)
    }
}

/// The texts behind the numbers in columns: at the end the source's own tables are out of reach.
#[derive(Debug, Default)]
struct Texts {
    /// Tasks by index, one place up; the first is that of unknown tasks.
    tasks: Vec<Option<(ByteArray, Option<i32>)>>,
    /// Texts of events by number.
    names: Vec<Option<ByteArray>>,
    counters: Vec<ByteArray>,
    counter_places: HashMap<String, usize>,
    /// None of its texts is used: what does not name a text is rendered with it.
    nothing: Names,
}

impl Texts {
    fn task(&mut self, tables: &Tables, task: u32) -> (usize, Option<i32>) {
        let place = tables.actor(task).map_or(0, |_| task as usize + 1);
        if self.tasks.len() <= place {
            self.tasks.resize(place + 1, None);
        }
        let (_, pid) = self.tasks[place].get_or_insert_with(|| {
            let (name, pid) = actor(tables, task);
            (ByteArray::from(name), pid)
        });
        (place, *pid)
    }

    fn name(&mut self, names: &Names, id: u64) {
        let Ok(place) = usize::try_from(id) else {
            return;
        };
        // Numbers are given one after the other; one beyond all is not a text's.
        if self.names.len() <= place {
            if names.text(id) == Names::OVERFLOW {
                return;
            }
            self.names.resize(place + 1, None);
        }
        self.names[place].get_or_insert_with(|| ByteArray::from(names.text(id)));
    }

    fn counter(&mut self, name: &str) -> usize {
        if let Some(place) = self.counter_places.get(name) {
            return *place;
        }
        let place = self.counters.len();
        self.counters.push(ByteArray::from(name));
        self.counter_places.insert(name.to_owned(), place);
        place
    }

    /// The text of a packed value.
    fn text(&self, content: Content, packed: i64) -> ByteArray {
        let place = usize::try_from(packed).ok();
        let known = match content {
            Content::Comm => place
                .and_then(|place| self.tasks.get(place)?.as_ref())
                .map(|(name, _)| name.clone()),
            Content::Counter => place.and_then(|place| self.counters.get(place).cloned()),
            Content::Value(ValueType::Text) => {
                place.and_then(|place| self.names.get(place)?.clone())
            }
            Content::Value(value) => {
                let mut text = Vec::new();
                render(value, packed.cast_unsigned(), &self.nothing, &mut text);
                Some(ByteArray::from(text))
            }
            Content::Time | Content::Cpu | Content::Pid => None,
        };
        known.unwrap_or_else(|| ByteArray::from(Names::OVERFLOW))
    }
}

/// Room in which columns are unpacked, one at a time.
#[derive(Debug, Default)]
struct Scratch {
    levels: Vec<i16>,
    wide: Vec<i64>,
    narrow: Vec<i32>,
    texts: Vec<ByteArray>,
    known: HashMap<i64, ByteArray>,
}

/// One file.
struct Table {
    name: &'static str,
    writer: SerializedFileWriter<File>,
    columns: Vec<(Content, Packed)>,
    rows: usize,
    last_ns: i64,
}

impl Table {
    fn new(
        name: &'static str,
        file: File,
        contents: &[(&str, Content)],
        lowmark: &str,
    ) -> Result<Table, ParquetError> {
        let fields: Result<Vec<_>, _> = contents
            .iter()
            .map(|(column, content)| content.schema(column).map(Arc::new))
            .collect();
        let schema = Type::group_type_builder(name)
            .with_fields(fields?)
            .build()?;
        let entry = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let time = ColumnPath::from("t_ns");
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_column_dictionary_enabled(time.clone(), false)
            .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
            .set_key_value_metadata(Some(vec![
                entry("lowmark.version", lowmark),
                entry("lowmark.table", name),
            ]))
            .build();
        Ok(Table {
            name,
            writer: SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?,
            columns: contents
                .iter()
                .map(|(_, content)| (*content, Packed::default()))
                .collect(),
            rows: 0,
            last_ns: 0,
        })
    }

    /// What is packed of a time.
    fn time(&mut self, time_ns: u64) -> i64 {
        let time_ns = time_ns.cast_signed();
        let delta = time_ns.wrapping_sub(self.last_ns);
        self.last_ns = time_ns;
        delta
    }

    /// Writes the row group, if there is one.
    fn flush(&mut self, texts: &Texts, scratch: &mut Scratch) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (content, packed) in &mut self.columns {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            packed.levels(&mut scratch.levels);
            let levels = (!content.is_required()).then_some(scratch.levels.as_slice());
            match content {
                Content::Cpu | Content::Pid => {
                    scratch.narrow.clear();
                    // They were 32 bits wide when they were packed.
                    scratch
                        .narrow
                        .extend(packed.values().map(|value| value as i32));
                    let typed = column.typed::<Int32Type>();
                    typed.write_batch(&scratch.narrow, levels, None)?;
                }
                Content::Time => {
                    scratch.wide.clear();
                    let mut time = 0i64;
                    scratch.wide.extend(packed.values().map(|delta| {
                        time = time.wrapping_add(delta);
                        time
                    }));
                    let typed = column.typed::<Int64Type>();
                    typed.write_batch(&scratch.wide, levels, None)?;
                }
                Content::Value(ValueType::Signed | ValueType::Unsigned | ValueType::Pointer) => {
                    scratch.wide.clear();
                    scratch.wide.extend(packed.values());
                    let typed = column.typed::<Int64Type>();
                    typed.write_batch(&scratch.wide, levels, None)?;
                }
                _ => {
                    scratch.known.clear();
                    scratch.texts.clear();
                    for value in packed.values() {
                        let known = scratch.known.entry(value);
                        let text = known.or_insert_with(|| texts.text(*content, value));
                        scratch.texts.push(text.clone());
                    }
                    let typed = column.typed::<ByteArrayType>();
                    typed.write_batch(&scratch.texts, levels, None)?;
                }
            }
            column.close()?;
            packed.clear();
        }
        group.close()?;
        self.rows = 0;
        // The next group's first time is packed whole.
        self.last_ns = 0;
        Ok(())
    }
}

/// The exporter.
pub(super) struct Parquet {
    directory: DirectoryOutput,
    lowmark: String,
    /// By tracepoint; the last is of counters.
    tables: Vec<Option<Table>>,
    texts: Texts,
    scratch: Scratch,
    last_ns: u64,
    exported: Exported,
    error: Option<ExportError>,
}

impl Parquet {
    pub(super) fn create(path: &Path, options: &Options) -> Result<Parquet, ExportError> {
        Ok(Parquet {
            directory: DirectoryOutput::create(path, Format::Parquet)?,
            lowmark: options.lowmark.clone(),
            tables: (0..=Kind::ALL.len()).map(|_| None).collect(),
            texts: Texts::default(),
            scratch: Scratch::default(),
            last_ns: 0,
            exported: Exported::default(),
            error: None,
        })
    }

    /// Creates a table that does not exist yet.
    #[cold]
    fn open(&mut self, index: usize) {
        let (name, contents) = match Kind::ALL.get(index) {
            Some(kind) => {
                let common = [Content::Time, Content::Cpu, Content::Pid, Content::Comm];
                let own = columns(*kind).map(|(name, f)| (name, Content::Value(f.spec().value)));
                let contents = COMMON_COLUMNS.into_iter().zip(common).chain(own);
                (kind.name(), contents.collect())
            }
            None => {
                let value = Content::Value(ValueType::Unsigned);
                let contents: Vec<(&str, Content)> = vec![
                    ("t_ns", Content::Time),
                    ("counter", Content::Counter),
                    ("value", value),
                ];
                (COUNTERS, contents)
            }
        };
        let table = self
            .directory
            .file(name)
            .and_then(|file| Table::new(name, file, &contents, &self.lowmark).map_err(into_io));
        match table {
            Ok(table) => self.tables[index] = Some(table),
            Err(error) => self.error = Some(self.directory.error(name, error)),
        }
    }

    /// Opens a table if it is the first time; whether it can be written.
    fn ready(&mut self, index: usize) -> bool {
        if self.error.is_none() && self.tables[index].is_none() {
            self.open(index);
        }
        self.error.is_none()
    }

    /// Counts a row, and writes the row group if it is full.
    fn row(&mut self, index: usize) {
        let Some(table) = &mut self.tables[index] else {
            return;
        };
        table.rows += 1;
        if table.rows == GROUP_ROWS
            && let Err(error) = table.flush(&self.texts, &mut self.scratch)
        {
            self.error = Some(self.directory.error(table.name, into_io(error)));
        }
    }
}

pub(super) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

impl Sink for Parquet {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let index = event.kind as usize;
        if !self.ready(index) {
            return;
        }
        let (task, pid) = self.texts.task(tables, event.task);
        if let Some(table) = &mut self.tables[index] {
            let time = table.time(event.time_ns);
            let cpu = (event.cpu != NO_CPU).then(|| i64::from(event.cpu.cast_signed()));
            let common = [
                Some(time),
                cpu,
                pid.map(i64::from),
                // A task's index has 32 bits.
                Some(task as i64),
            ];
            let (first, own) = table.columns.split_at_mut(common.len());
            for ((_, column), value) in first.iter_mut().zip(common) {
                column.push(value);
            }
            for ((content, column), field) in own.iter_mut().zip(event.kind.fields()) {
                let value = event.get(*field);
                if let (Content::Value(ValueType::Text), Some(id)) = (*content, value) {
                    self.texts.name(&tables.names, id);
                }
                column.push(value.map(u64::cast_signed));
            }
        }
        self.row(index);
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for Parquet {
    fn counter(&mut self, time_ns: u64, name: &str, value: u64) {
        let index = Kind::ALL.len();
        if !self.ready(index) {
            return;
        }
        let counter = self.texts.counter(name);
        if let Some(table) = &mut self.tables[index] {
            let time = table.time(time_ns);
            let row = [time, counter as i64, value.cast_signed()];
            for ((_, column), value) in table.columns.iter_mut().zip(row) {
                column.push(Some(value));
            }
        }
        self.row(index);
        self.exported.counters += 1;
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn finish(mut self: Box<Self>) -> Result<Exported, ExportError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for mut table in self.tables.into_iter().flatten() {
            let flushed = table.flush(&self.texts, &mut self.scratch);
            let name = table.name;
            let closed = flushed.and_then(|()| table.writer.close());
            closed.map_err(|error| self.directory.error(name, into_io(error)))?;
        }
        let (files, bytes) = self.directory.finish()?;
        Ok(Exported {
            files,
            bytes,
            ..self.exported
        })
    }
}
