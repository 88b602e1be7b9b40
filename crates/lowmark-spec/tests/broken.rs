//! Broken files and what is said about them. `tests/broken/NAME.txt` holds the exact text for
//! `NAME.toml`; `LOWMARK_BLESS=1 cargo test -p lowmark-spec --test broken` writes it anew, to be read
//! as a user would.

use std::path::Path;

use lowmark_spec::{BuiltIn, Overrides, Source, parse, parse_machine};

/// The error text of a file; machine files are those named `machine-*`.
fn error_of(name: &str, text: String) -> String {
    let source = Source {
        name: name.to_owned(),
        text,
    };
    let error = if name.starts_with("machine-") {
        parse_machine(&source).err()
    } else {
        parse(&source, &BuiltIn, &Overrides::default()).err()
    };
    error.map_or_else(|| "no error\n".to_owned(), |error| error.render_plain())
}

#[test]
fn every_broken_file_is_told_as_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let bless = std::env::var_os("LOWMARK_BLESS").is_some();
    let (mut seen, mut wrong) = (0, Vec::new());
    let entries = std::fs::read_dir(&directory).expect("tests/broken exists");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
    {
        let name = path.file_name().expect("a file").to_string_lossy();
        let found = error_of(&name, std::fs::read_to_string(path).expect("readable"));
        let expected = path.with_extension("txt");
        if bless {
            std::fs::write(&expected, &found).expect("writable");
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        if found != expected || found == "no error\n" {
            wrong.push(format!("{name}:\nexpected {expected}found {found}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 45, "only {seen} broken files");
}
