//! Kernel versions of the model and the changes that each brought.

use crate::output::Page;
use lowmark_model::kernel::versions::{Change, HISTORY};
use lowmark_model::kernel::{Version, versions};
use lowmark_report::table::{Align, TextTable};
use serde_json::{Value, json};

fn changes(version: Version) -> impl Iterator<Item = &'static Change> {
    HISTORY
        .iter()
        .filter(move |change| change.version == version)
}

pub(super) fn text(page: &Page) -> miette::Result<String> {
    let mut table = TextTable::new();
    for heading in ["version", "change", "commit", "what it changes"] {
        table = table.column(heading, Align::Left);
    }
    for version in versions() {
        let mut heading = version.to_string();
        for change in changes(*version) {
            let version = std::mem::take(&mut heading);
            table.row([version.as_str(), change.name, change.commit, change.summary]);
        }
        if !heading.is_empty() {
            table.row([heading.as_str()]);
        }
    }
    let note = "A change can be applied alone to an older kernel: --kernel v3.6+swapin_nr_pages";
    Ok(table.render(page.style.as_ref(), page.width) + "\n" + &page.paragraph(note, 0))
}

pub(super) fn json() -> miette::Result<Value> {
    let change = |change: &Change| {
        json!({
            "name": change.name,
            "commit": change.commit,
            "summary": change.summary,
        })
    };
    let version = |version: &Version| {
        json!({
            "version": version.to_string(),
            "changes": changes(*version).map(change).collect::<Vec<_>>(),
        })
    };
    Ok(versions().iter().map(version).collect())
}
