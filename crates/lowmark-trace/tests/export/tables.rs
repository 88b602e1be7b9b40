//! JSON lines, CSV and Parquet: the same rows in each, read by Python.

use crate::support::{Source, options, python, release};
use lowmark_record::{Field, Kind};
use lowmark_trace::export::{Format, create};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Rows of a full row group: more than any reader asks for.
const GROUP_ROWS_MIN: u64 = 1 << 16;

#[test]
fn no_column_stands_twice() {
    for kind in Kind::ALL {
        let mut source = Source::every_kind(release("7.1"), 1);
        source.events.retain(|event| event.kind == *kind);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tables");
        let exported = source.export(Format::Csv, &path, &options("7.1"));
        for file in exported.files {
            let text = fs::read_to_string(file).expect("UTF-8");
            let columns: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
            assert_eq!(columns[..4], ["t_ns", "cpu", "pid", "comm"]);
            let different: BTreeSet<&&str> = columns.iter().collect();
            assert_eq!(different.len(), columns.len(), "{columns:?}");
        }
    }
}

#[test]
fn every_line_is_an_object_with_the_events_values() {
    let source = Source::every_kind(release("7.1"), 3);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("events.jsonl");
    let mut exporter = create(Format::Json, &path, &options("7.1")).expect("created");
    source.feed(exporter.as_mut());
    exporter.counter(9, "nr_free_pages", 51_213);
    assert_eq!(exporter.finish().expect("written").counters, 1);
    let text = fs::read_to_string(path).expect("UTF-8");
    let mut lines = text.lines();
    for (event, line) in source.events.iter().zip(&mut lines) {
        let Value::Object(object) = serde_json::from_str(line).expect("JSON") else {
            panic!("not an object: {line}");
        };
        let actor = source.tables.actor(event.task).expect("a task");
        assert_eq!(object["t_ns"], event.time_ns);
        assert_eq!(object["cpu"], event.cpu);
        assert_eq!(object["pid"], actor.pid);
        assert_eq!(object["comm"], actor.name.as_str());
        assert_eq!(object["event"], event.kind.name());
        assert_eq!(object.len(), 5 + event.fields().count(), "{line}");
    }
    let counter = r#"{"t_ns":9,"counter":"nr_free_pages","value":51213}"#;
    assert_eq!(lines.collect::<Vec<_>>(), [counter]);
}

/// Every tracepoint of an era, and one with more rows than two row groups hold.
fn large() -> Source {
    let mut source = Source::every_kind(release("6.18"), 9);
    let isolated = source
        .events
        .iter()
        .find(|event| event.kind == Kind::LruIsolate);
    let mut event = *isolated.expect("it exists");
    for row in 0..300_000 {
        event.time_ns += 1_000;
        event.cpu = row as u32 % 2;
        event.set(Field::NrScanned, row % 33);
        event.set(Field::NrTaken, row % 32);
        event.set(Field::Lru, row % 4);
        source.events.push(event);
    }
    source
}

/// What the rows of a source come to, as the script prints it.
fn figures(source: &Source, group_rows: Option<u64>) -> String {
    let mut figures = String::new();
    let mut kinds: Vec<&Kind> = Kind::ALL
        .iter()
        .filter(|kind| source.count(**kind) > 0)
        .collect();
    kinds.sort_by_key(|kind| kind.name());
    for kind in kinds {
        let rows = source.count(*kind);
        let scanned = source.sum(*kind, Field::NrScanned);
        let times = source.events.iter().filter(|event| event.kind == *kind);
        let last = times.map(|event| event.time_ns).max().unwrap_or(0);
        let name = kind.name();
        figures += &format!("{name} rows {rows} nr_scanned {scanned} last {last}");
        if let Some(group_rows) = group_rows {
            figures += &format!(" groups {}", rows.div_ceil(group_rows).max(1));
        }
        figures.push('\n');
    }
    figures
}

#[test]
fn parquet_is_read_by_pyarrow() {
    let source = large();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tables");
    let mut exporter = create(Format::Parquet, &path, &options("6.18")).expect("created");
    source.feed(exporter.as_mut());
    for value in 0..3 {
        exporter.counter(value, "nr_free_pages", 100 + value);
    }
    let exported = exporter.finish().expect("written");
    assert_eq!(
        (exported.events, exported.counters),
        (source.events.len() as u64, 3)
    );
    let Some(told) = python("read_parquet.py", &[&path]) else {
        return;
    };
    // The script has checked types, nulls and that row groups are full.
    let expected = figures(&source, Some(2 * GROUP_ROWS_MIN)) + "counters 3 sum 303\n";
    assert_eq!(told, expected);
    compare_with_csv(&source, &path);
}

/// The same values in Parquet and in CSV, row by row.
fn compare_with_csv(source: &Source, parquet: &Path) {
    let csv = parquet.with_file_name("csv");
    source.export(Format::Csv, &csv, &options("6.18"));
    let told = python("read_csv.py", &[&csv, parquet]);
    assert_eq!(told, Some(figures(source, None)));
}
