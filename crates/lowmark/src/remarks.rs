//! What runs asked for and their backend left out, as it stands under the heading of a table.

use lowmark_record::{Recording, Remark};
use lowmark_report::document::Section;

/// The remarks of some recordings, each once.
pub(crate) fn of<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> Vec<&'a Remark> {
    let mut found: Vec<&Remark> = Vec::new();
    for remark in recordings.into_iter().flat_map(|r| &r.not_modelled) {
        if !found.contains(&remark) {
            found.push(remark);
        }
    }
    found
}

/// The same for people: a paragraph for each.
pub(crate) fn write<'a>(
    recordings: impl IntoIterator<Item = &'a Recording>,
    section: &mut Section<'_>,
) {
    for remark in of(recordings) {
        section.paragraph(format!("note: {remark}"), 0);
    }
}
