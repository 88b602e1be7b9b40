//! The rules of the house, for the whole workspace: short files, nothing left over, no paths of anybody's
//! machine, a history with its sources, and crates and rooms that depend in one direction only.

use lowmark_model::kernel::versions::{HISTORY, at};
use lowmark_model::kernel::{DESCRIPTIONS, versions};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest source file, lines.
const LINES_MAX: usize = 600;
/// Longest file of tests, lines.
const TEST_LINES_MAX: usize = 900;
/// Digits of a commit at least.
const COMMIT_DIGITS_MIN: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file of the project, with its path from the root; build directories and hidden ones apart,
/// except for `.ci`.
fn files() -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let mut open = vec![(String::new(), root())];
    while let Some((prefix, directory)) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("readable").path();
            let name = path
                .file_name()
                .expect("named")
                .to_string_lossy()
                .into_owned();
            let skipped = name == "target" || (name.starts_with('.') && name != ".ci");
            if skipped {
                continue;
            }
            let name = format!("{prefix}{name}");
            if path.is_dir() {
                open.push((format!("{name}/"), path));
            } else {
                files.push((name, path));
            }
        }
    }
    files.sort();
    assert!(files.len() > 100, "the project was not found");
    files
}

/// The files of the project that are text, with their content.
fn texts() -> Vec<(String, String)> {
    let files = files().into_iter();
    let texts = files.filter_map(|(name, path)| Some((name, std::fs::read_to_string(path).ok()?)));
    texts.collect()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs") || name.contains("/benches/")
}

#[test]
fn files_are_short() {
    let sources = texts()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"));
    let too_long = sources.filter_map(|(name, text)| {
        let lines = text.lines().count();
        let max = if is_test(&name) {
            TEST_LINES_MAX
        } else {
            LINES_MAX
        };
        (lines > max).then(|| format!("{name}: {lines} lines, at most {max}"))
    });
    assert_eq!(too_long.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn nothing_is_left_over() {
    // Written apart, so that this file is not found itself.
    let markers = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
        concat!("dbg", "!("),
        concat!("#[ig", "nore"),
    ];
    let sources = texts()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"));
    assert_eq!(places(sources, &markers), Vec::<String>::new());
}

#[test]
fn no_paths_of_a_machine() {
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
    ];
    assert_eq!(places(texts(), &paths), Vec::<String>::new());
}

/// Where one of `parts` stands: `file:line: part`.
fn places(texts: impl IntoIterator<Item = (String, String)>, parts: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for (name, text) in texts {
        for (number, line) in text.lines().enumerate() {
            let found = parts.iter().filter(|part| line.contains(*part));
            places.extend(found.map(|part| format!("{name}:{}: {part}", number + 1)));
        }
    }
    places
}

fn is_commit(text: &str) -> bool {
    text.len() >= COMMIT_DIGITS_MIN && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[test]
fn every_change_has_its_source() {
    let mut names = BTreeSet::new();
    for change in HISTORY {
        let name = change.name;
        assert!(is_commit(change.commit), "{name}: commit {}", change.commit);
        assert!(!change.summary.trim().is_empty(), "{name} has no summary");
        assert!(
            versions().contains(&change.version),
            "{name}: {}",
            change.version
        );
        assert!(names.insert(name), "{name} stands there twice");
    }
    let versions: Vec<_> = HISTORY.iter().map(|change| change.version).collect();
    assert!(
        versions.is_sorted(),
        "the history is not in the order of versions"
    );
}

/// A variant that no kernel of the model has says in its text where it comes from: where it was posted,
/// or the commit by which kernels before or after those of the model have it.
#[test]
fn every_variant_is_explained() {
    let mut merged: BTreeSet<(&str, &str)> = BTreeSet::new();
    for version in versions() {
        merged.extend(at(*version).settings());
    }
    // Changes of one version that undo each other leave no trace in it.
    let mut mechanisms = at(versions()[0]);
    for change in HISTORY {
        change.apply(&mut mechanisms);
        merged.extend(mechanisms.settings());
    }
    let mut unexplained = Vec::new();
    for mechanism in DESCRIPTIONS {
        assert!(
            !mechanism.doc.trim().is_empty(),
            "{} has no text",
            mechanism.name
        );
        for (variant, text) in mechanism.variants {
            let words = || text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let sourced = words().any(|word| word == "linux-mm" || is_commit(word));
            let merged = merged.contains(&(mechanism.name, *variant));
            if text.trim().is_empty() || !(merged || sourced) {
                unexplained.push(format!("{}={variant}", mechanism.name));
            }
        }
    }
    assert_eq!(
        unexplained,
        Vec::<String>::new(),
        "say where these come from: linux-mm or a commit"
    );
}

/// What each crate may depend on among those of the workspace.
const ARROWS: [(&str, &[&str]); 9] = [
    ("lowmark-spec", &[]),
    ("lowmark-record", &[]),
    ("lowmark-model", &["lowmark-spec", "lowmark-record"]),
    (
        "lowmark-real",
        &["lowmark-spec", "lowmark-record", "lowmark-trace"],
    ),
    ("lowmark-trace", &["lowmark-record"]),
    ("lowmark-report", &["lowmark-record"]),
    (
        "lowmark-whatif",
        &[
            "lowmark-spec",
            "lowmark-record",
            "lowmark-report",
            // For its tests alone: a run of the model is reconstructed by the model.
            "lowmark-model",
        ],
    ),
    ("lowmark-watch", &["lowmark-record", "lowmark-report"]),
    (
        "lowmark",
        &[
            "lowmark-spec",
            "lowmark-record",
            "lowmark-model",
            "lowmark-real",
            "lowmark-trace",
            "lowmark-report",
            "lowmark-watch",
            "lowmark-whatif",
        ],
    ),
];

#[test]
fn crates_depend_in_one_direction() {
    let manifests = files().into_iter().filter_map(|(name, path)| {
        let name = name.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        (!name.contains('/')).then(|| (name.to_owned(), path))
    });
    let mut found = 0;
    for (name, path) in manifests {
        let arrows = ARROWS.iter().find(|(known, _)| *known == name);
        let (_, allowed) =
            arrows.unwrap_or_else(|| panic!("{name}: say in ARROWS what it may depend on"));
        let text = std::fs::read_to_string(path).expect("readable");
        let dependencies = text
            .lines()
            .filter_map(|line| line.split(['=', '.', ' ']).next());
        for dependency in dependencies.filter(|word| word.starts_with("lowmark")) {
            assert!(
                allowed.contains(&dependency),
                "{name} must not depend on {dependency}"
            );
        }
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{name} does not take the lints of the workspace"
        );
        found += 1;
    }
    assert_eq!(found, ARROWS.len());
}

/// The rooms of memory management, the ground floor first: each may import from those before it.
const ROOMS: [&str; 14] = [
    "types",
    "vmstat",
    "frames",
    "alloc",
    "memcontrol",
    "io",
    "swap",
    "writeback",
    "files",
    "shrinker",
    "fault",
    "huge_memory",
    "compaction",
    "reclaim",
];
/// Where they are.
const MM: &str = "crates/lowmark-model/src/mm/";

/// What a line of the file `name` below [`MM`] imports from a room that comes after the file's own, or past the rooms.
fn wrong_way(name: &str, line: &str) -> Option<String> {
    let rank = |room: &str| ROOMS.iter().position(|known| *known == room);
    let parts: Vec<&str> = name.trim_end_matches(".rs").split('/').collect();
    let own =
        rank(parts[0]).unwrap_or_else(|| panic!("{name}: say in ROOMS where the room stands"));
    let depth = parts.iter().filter(|part| **part != "mod").count();
    if line.contains(&"super::".repeat(depth)) {
        return Some(format!("{name} leaves its room by `super`: {line}"));
    }
    let mut imported = line.split("crate::mm::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    let after = imported.find(|room| room.is_empty() || rank(room).is_some_and(|rank| rank > own));
    after.map(|_| format!("{name} imports from a room after its own: {line}"))
}

#[test]
fn rooms_of_memory_import_in_one_order() {
    let sources = texts().into_iter().filter_map(|(name, text)| {
        let name = name.strip_prefix(MM)?.to_owned();
        (name.ends_with(".rs") && name != "mod.rs" && !is_test(&format!("/{name}")))
            .then_some((name, text))
    });
    let mut rooms = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, text) in sources {
        rooms.insert(name.split(['/', '.']).next().unwrap_or("").to_owned());
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let lines = code.lines().map(str::trim);
        let lines = lines.filter(|line| !line.starts_with("//"));
        wrong.extend(lines.filter_map(|line| wrong_way(&name, line)));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(rooms, ROOMS.iter().map(|room| (*room).to_owned()).collect());

    assert!(wrong_way("alloc/slub.rs", "use crate::mm::io::bio::POOL_SIZE;").is_some());
    assert!(
        wrong_way(
            "alloc/page_alloc/order.rs",
            "use super::super::super::swap;"
        )
        .is_some()
    );
    assert!(wrong_way("io/bio.rs", "use crate::mm::alloc::slub::POOL_SIZE;").is_none());

    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("a page");
    let (_, table) = page
        .split_once("| room of `mm/` |")
        .expect("a table of rooms");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let listed = listed.map(|room| room.trim_end_matches('/').trim_end_matches(".rs"));
    assert_eq!(listed.collect::<Vec<_>>(), ROOMS);
}

/// Whoever follows the walks of the page on architecture finds every item where it says.
#[test]
fn walks_lead_to_what_is_there() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("a page");
    let (_, walks) = page
        .split_once("### Three walks")
        .expect("the page has walks");
    let (walks, _) = walks.split_once("\n### ").expect("the page goes on");
    let rows = walks.lines().filter(|line| line.starts_with("| `"));
    let mut steps = 0;
    let mut missing = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let file = cells[1].trim_matches('`');
        let source = root().join("crates/lowmark-model/src").join(file);
        let source = std::fs::read_to_string(source).unwrap_or_default();
        for item in cells[2].split(", ").map(|item| item.trim_matches('`')) {
            steps += 1;
            if !declares(&source, item) {
                missing.push(format!("{file}: {item}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(steps > 40, "{steps} steps");
    assert!(!declares("fn shrink_node_once(", "shrink_node"));
}

/// Whether a source has a function, type or enum of this name.
fn declares(source: &str, item: &str) -> bool {
    ["fn", "struct", "enum"].iter().any(|keyword| {
        let found = format!("{keyword} {item}");
        let mut found = source.match_indices(&found);
        found.any(|(at, text)| {
            let next = source[at + text.len()..].chars().next();
            next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 80;

/// Functions that are longer, each a list of cases that are nothing but calls: it is read by looking one up.
const LONG: [&str; 2] = ["handle_mm_fault", "run_stmt"];

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for (name, text) in texts().into_iter().filter(|(name, _)| !is_test(name)) {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let found = functions(code).filter(|(function, lines)| {
            *lines > FUNCTION_LINES_MAX && !LONG.contains(&function.as_str())
        });
        long.extend(found.map(|(function, lines)| format!("{name}: {function}, {lines} lines")));
    }
    assert_eq!(long, Vec::<String>::new());
    let one = "fn f() {\n    a();\n}\n\npub(crate) async fn g(\n    x: u8,\n) {\n}\n";
    let found: Vec<_> = functions(one).collect();
    assert_eq!(found, [("f".to_owned(), 3), ("g".to_owned(), 4)]);
}

/// Functions of a source as `rustfmt` leaves it, with their lengths.
fn functions(code: &str) -> impl Iterator<Item = (String, usize)> + '_ {
    let lines: Vec<&str> = code.lines().collect();
    (0..lines.len()).filter_map(move |first| {
        let line = lines[first];
        let indent = &line[..line.len() - line.trim_start().len()];
        let (before, after) = line.split_once("fn ")?;
        let words = ["", "pub", "const", "async", "unsafe"];
        let is_declared = before
            .split_whitespace()
            .all(|word| words.contains(&word) || word.starts_with("pub(") || word.ends_with(')'));
        let name: String = (after.chars())
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if !is_declared || name.is_empty() || line.ends_with(['}', ';']) {
            return None;
        }
        let end = format!("{indent}}}");
        let length = lines[first..].iter().position(|line| *line == end)? + 1;
        Some((name, length))
    })
}
