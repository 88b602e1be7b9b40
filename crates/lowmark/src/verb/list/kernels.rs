//! Kernel versions of the model and the changes that each brought.

use crate::output::Page;
use lowmark_model::kernel::versions::{Change, HISTORY};
use lowmark_model::kernel::{Version, versions};
use lowmark_report::table::{Align, TextTable};
use miette::miette;
use serde_json::{Value, json};

fn changes(version: Version) -> impl Iterator<Item = &'static Change> {
    HISTORY
        .iter()
        .filter(move |change| change.version == version)
}

/// The versions asked for: all, one, or from one to another.
fn asked(which: super::Which<'_>) -> miette::Result<Vec<Version>> {
    let known = |text: &str| {
        Version::known(text.trim()).map_err(|error| {
            miette!(
                help = "write for example 6.1..6.18, v5.10 or ..v3.6",
                "{error}"
            )
        })
    };
    let Some(which) = which else {
        return Ok(versions().to_vec());
    };
    let (first, last) = match which.split_once("..") {
        None => (known(which)?, known(which)?),
        Some((first, last)) => {
            let end = |text: &str, default: Option<&Version>| match (text.is_empty(), default) {
                (true, Some(version)) => Ok(*version),
                _ => known(text),
            };
            (
                end(first, versions().first())?,
                end(last, versions().last())?,
            )
        }
    };
    if first > last {
        return Err(miette!(
            help = format!("write {last}..{first}"),
            "{which}: {last} is older than {first}; the older kernel comes first"
        ));
    }
    let found = versions()
        .iter()
        .filter(|version| (first..=last).contains(*version));
    Ok(found.copied().collect())
}

/// Releases that differ, for the model, from the one before; and those asked for by name.
fn listed(which: super::Which<'_>) -> miette::Result<Vec<Version>> {
    let mut found = asked(which)?;
    if found.len() > 1 {
        found.retain(|version| changes(*version).next().is_some());
    }
    Ok(found)
}

pub(super) fn text(page: &Page, which: super::Which<'_>) -> miette::Result<String> {
    let mut table = TextTable::new();
    for heading in ["version", "change", "commit", "what it changes"] {
        table = table.column(heading, Align::Left);
    }
    for version in listed(which)? {
        let mut heading = version.to_string();
        for change in changes(version) {
            let version = std::mem::take(&mut heading);
            table.row([version.as_str(), change.name, change.commit, change.summary]);
        }
        if !heading.is_empty() {
            table.row([heading.as_str()]);
        }
    }
    let note = "Every release from v2.6.36 to v6.18 is a kernel of the model; one that is not listed is, for the model, \
        the one before it. A change can be applied alone to an older kernel (--kernel v3.6+swapin_nr_pages) or taken \
        out of a newer one (--kernel v3.14-swapin_nr_pages).";
    Ok(table.render(page.style.as_ref(), page.width) + "\n" + &page.paragraph(note, 0))
}

pub(super) fn json(which: super::Which<'_>) -> miette::Result<Value> {
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
    Ok(asked(which)?.iter().map(version).collect())
}
