//! Where exports go: nothing is overwritten that is somebody's, nothing half written stays behind.

use crate::support::{Source, options, release};
use lowmark_record::{Event, Kind};
use lowmark_trace::export::{ExportError, Format, create};
use std::fs;
use std::path::Path;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|e| {
        e.expect("readable")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn error(format: Format, path: &Path) -> ExportError {
    match create(format, path, &options("6.18")) {
        Ok(_) => panic!("{format} at {}", path.display()),
        Err(error) => error,
    }
}

#[test]
fn the_same_events_give_the_same_bytes() {
    let source = Source::every_kind(release("6.18"), 30);
    let directory = tempfile::tempdir().expect("a directory");
    for format in Format::ALL {
        let bytes = |name: &str| {
            let path = directory.path().join(format!("{name}-{format}"));
            let exported = source.export(format, &path, &options("6.18"));
            let read = |path: &std::path::PathBuf| fs::read(path).expect("a file");
            let files: Vec<Vec<u8>> = exported.files.iter().map(read).collect();
            assert_eq!(exported.events, source.events.len() as u64);
            assert_eq!(
                exported.bytes,
                files.iter().map(|file| file.len() as u64).sum::<u64>()
            );
            files
        };
        assert_eq!(bytes("one"), bytes("two"), "{format}");
    }
    let left = names(directory.path());
    assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
}

#[test]
fn an_export_has_its_name_only_when_it_is_whole() {
    let source = Source::every_kind(release("6.18"), 2);
    let directory = tempfile::tempdir().expect("a directory");
    for format in Format::ALL {
        let path = directory.path().join(format.name());
        let mut exporter = create(format, &path, &options("6.18")).expect("created");
        source.feed(exporter.as_mut());
        assert!(!path.exists(), "{format}");
        assert!(!exporter.failed());
        drop(exporter);
        assert_eq!(names(directory.path()), Vec::<String>::new(), "{format}");
    }
}

#[test]
fn an_old_export_is_replaced_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tables");
    let mut source = Source::every_kind(release("6.18"), 1);
    source.export(Format::Csv, &path, &options("6.18"));
    let before = names(&path).len();
    source.events.truncate(2);
    source.export(Format::Csv, &path, &options("6.18"));
    assert_eq!((names(&path).len(), before > 2), (2, true));
    assert_eq!(names(directory.path()), ["tables"]);
    // CSV is not Parquet's to replace, nor is anything else.
    assert!(matches!(
        error(Format::Parquet, &path),
        ExportError::Occupied { .. }
    ));
    fs::write(path.join("notes.txt"), "mine").expect("written");
    let occupied = error(Format::Csv, &path);
    let told = occupied.to_string();
    assert!(
        told.contains("notes.txt") && told.contains("choose another"),
        "{told}"
    );
    assert!(path.join("notes.txt").exists());
}

#[test]
fn what_cannot_be_written_is_told_before_the_work() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "mine").expect("written");
    assert!(matches!(
        error(Format::Csv, &file),
        ExportError::NotADirectory { .. }
    ));
    assert!(matches!(
        error(Format::Csv, Path::new("-")),
        ExportError::NotADirectory { .. }
    ));
    assert!(matches!(
        error(Format::Ftrace, directory.path()),
        ExportError::Directory { .. }
    ));
    assert!(matches!(
        error(Format::Json, Path::new("..")),
        ExportError::Directory { .. }
    ));
    let below = directory.path().join("absent/file");
    let told = error(Format::Perfetto, &below).to_string();
    assert!(
        told.contains("absent") && told.contains("choose a place"),
        "{told}"
    );
    assert_eq!(fs::read(&file).expect("still there"), b"mine");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_at_the_end_and_can_be_seen_before() {
    let full = Path::new("/dev/full");
    let source = Source::every_kind(release("6.18"), 200);
    for format in [Format::Ftrace, Format::Json, Format::Perfetto] {
        let mut exporter = create(format, full, &options("6.18")).expect("created");
        source.feed(exporter.as_mut());
        assert!(exporter.failed(), "{format}");
        let told = exporter.finish().expect_err("full").to_string();
        assert!(
            told.starts_with("/dev/full: ") && told.contains("make room"),
            "{told}"
        );
    }
}

#[test]
fn events_whose_task_and_cpu_are_unknown_are_written() {
    let source = Source {
        events: vec![Event::new(Kind::KswapdSleep, 5, u32::MAX, u32::MAX)],
        ..Source::default()
    };
    let directory = tempfile::tempdir().expect("a directory");
    for format in Format::ALL {
        let path = directory.path().join(format.name());
        let exported = source.export(format, &path, &options("6.18"));
        assert_eq!((exported.events, exported.files.len()), (1, 1), "{format}");
    }
    let text = |name: &str| fs::read_to_string(directory.path().join(name)).expect("UTF-8");
    let line = "           <...>-0       [000] .....     0.000000: mm_vmscan_kswapd_sleep: nid=0\n";
    assert!(text("ftrace").ends_with(line), "{}", text("ftrace"));
    let line = "{\"t_ns\":5,\"comm\":\"<...>\",\"event\":\"mm_vmscan_kswapd_sleep\"}\n";
    assert_eq!(text("json"), line);
    assert_eq!(
        text("csv/mm_vmscan_kswapd_sleep.csv"),
        "t_ns,cpu,pid,comm,nid\r\n5,,,<...>,\r\n"
    );
}
