//! Any table as one Parquet file: a row for each run, for example.

use super::output::FileOutput;
use super::{ExportError, Format};
use std::path::Path;

/// The values of a column, one for each row.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Texts, as `BYTE_ARRAY` (`STRING`).
    Text(Vec<Option<String>>),
    /// Whole numbers, as `INT64` (`UINT_64`).
    Whole(Vec<Option<u64>>),
    /// Other numbers, as `DOUBLE`.
    Number(Vec<Option<f64>>),
}

/// A Parquet file that is open, and gets its name when it is written.
pub struct ParquetTable {
    output: FileOutput,
    path: std::path::PathBuf,
}

impl ParquetTable {
    /// Opens it, so that what can't be written is told before the long work.
    ///
    /// # Errors
    ///
    /// If it can't be written, is a directory, or Parquet was not built in.
    pub fn create(path: &Path) -> Result<ParquetTable, ExportError> {
        if !cfg!(feature = "parquet") {
            return Err(ExportError::NotBuilt {
                path: path.to_owned(),
                format: Format::Parquet,
            });
        }
        Ok(ParquetTable {
            output: FileOutput::create(path, Format::Parquet.name())?,
            path: path.to_owned(),
        })
    }

    /// Writes columns of the same length, in this order; `lowmark` is the version that is kept in its metadata.
    ///
    /// # Errors
    ///
    /// If writing fails; nothing stays behind then.
    pub fn write(mut self, lowmark: &str, columns: &[(String, Column)]) -> Result<(), ExportError> {
        let bytes = encode(lowmark, columns).map_err(|source| ExportError::Write {
            path: self.path.clone(),
            source,
        })?;
        self.output.buffer.extend(bytes);
        self.output.finish().map(|_| ())
    }
}

#[cfg(not(feature = "parquet"))]
fn encode(_lowmark: &str, _columns: &[(String, Column)]) -> std::io::Result<Vec<u8>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(feature = "parquet")]
fn encode(lowmark: &str, columns: &[(String, Column)]) -> std::io::Result<Vec<u8>> {
    encoded(lowmark, columns).map_err(super::parquet::into_io)
}

#[cfg(feature = "parquet")]
fn encoded(
    lowmark: &str,
    columns: &[(String, Column)],
) -> Result<Vec<u8>, ::parquet::errors::ParquetError> {
    use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
    use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use ::parquet::file::metadata::KeyValue;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::types::Type;
    use std::sync::Arc;

    let field = |(name, column): &(String, Column)| {
        let (physical, logical) = match column {
            Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Whole(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Column::Number(_) => (Physical::DOUBLE, None),
        };
        let built = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build();
        built.map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("runs")
        .with_fields(fields)
        .build()?;
    let version = KeyValue::new("lowmark.version".to_owned(), lowmark.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![version]))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in columns {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        match values {
            Column::Text(texts) => {
                let own = texts.iter().flatten();
                let own: Vec<ByteArray> = own.map(|text| ByteArray::from(text.as_str())).collect();
                let typed = column.typed::<ByteArrayType>();
                typed.write_batch(&own, Some(&levels(texts)), None)?;
            }
            Column::Whole(numbers) => {
                let own: Vec<i64> = numbers
                    .iter()
                    .flatten()
                    .map(|it| it.cast_signed())
                    .collect();
                let typed = column.typed::<Int64Type>();
                typed.write_batch(&own, Some(&levels(numbers)), None)?;
            }
            Column::Number(numbers) => {
                let own: Vec<f64> = numbers.iter().flatten().copied().collect();
                let typed = column.typed::<DoubleType>();
                typed.write_batch(&own, Some(&levels(numbers)), None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// Which rows have a value.
#[cfg(feature = "parquet")]
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|it| i16::from(it.is_some())).collect()
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn rows_are_read_back() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join("runs.parquet");
        let table = ParquetTable::create(&path).expect("opened");
        assert!(!path.exists(), "it has its name when it is whole");
        let columns = [
            ("kernel", Column::Text(vec![Some("v3.6".into()), None])),
            ("seed", Column::Whole(vec![Some(u64::MAX), Some(1)])),
            ("Elapsed", Column::Number(vec![None, Some(0.25)])),
        ];
        let columns = columns.map(|(name, column)| (name.to_owned(), column));
        table.write("0.1.0", &columns).expect("written");
        let file = std::fs::File::open(&path).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let rows = reader.get_row_iter(None).expect("rows");
        let rows: Vec<String> = rows.map(|row| row.expect("a row").to_string()).collect();
        assert_eq!(
            rows,
            [
                "{kernel: \"v3.6\", seed: 18446744073709551615, Elapsed: null}",
                "{kernel: null, seed: 1, Elapsed: 0.25}"
            ]
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_at_once() {
        let directory = tempfile::TempDir::new().expect("a directory");
        for path in [
            directory.path().to_owned(),
            directory.path().join("no/runs.parquet"),
        ] {
            assert!(ParquetTable::create(&path).is_err(), "{}", path.display());
        }
    }
}
