//! `docs/coverage.md` is what its generator prints.

#[path = "../../examples/document_coverage.rs"]
mod document_coverage;

use lowmark_model::kernel::coverage::{ABSENT, SWITCHED};
use std::path::Path;

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage.md");
    let page = std::fs::read_to_string(path).expect("docs/coverage.md");
    assert_eq!(page, document_coverage::page(), "make docs writes it");
}

#[test]
fn every_subject_is_told_once() {
    let page = document_coverage::page();
    for subject in SWITCHED.iter().chain(ABSENT) {
        let name = subject.name;
        assert_eq!(page.matches(&format!("| `{name}` |")).count(), 1, "{name}");
        assert_eq!(page.matches(&format!("**`{name}`**")).count(), 1, "{name}");
        assert!(page.contains(subject.doc.trim()), "{name}");
    }
    // The model has them from 5.0 on, and kernels always.
    assert!(page.contains("| `swap_bios` | no | no | no | no | no | yes | yes | yes | yes |"));
    // Generations came with 6.1: only the last columns.
    let line = "| `lru_gen_min_ttl` |  |  |  |  |  |  | no | no | no |";
    assert!(page.contains(line), "{page}");
}
