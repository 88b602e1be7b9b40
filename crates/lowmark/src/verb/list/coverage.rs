//! What of the kernel the model leaves out, of one version or of all.

use super::Which;
use crate::output::Page;
use lowmark_model::kernel::coverage::{ABSENT, PREFIX, SWITCHED, Subject};
use lowmark_model::kernel::{Coverage, Version};
use lowmark_report::table::{Align, TextTable};
use miette::miette;
use serde_json::{Value, json};

fn version(which: Which<'_>) -> miette::Result<Option<Version>> {
    let known = which.map(Version::known).transpose();
    known.map_err(|error| miette!("{error}"))
}

/// The subjects that a version has, or all.
fn subjects(version: Option<Version>) -> impl Iterator<Item = &'static Subject> {
    let has = move |subject: &&Subject| version.is_none_or(|version| subject.is_in(version));
    SWITCHED.iter().chain(ABSENT).filter(has)
}

/// Which kernels the model has a subject for, in words.
fn modelled(subject: &Subject, version: Option<Version>) -> String {
    if let Some(version) = version {
        let has = Coverage::of(version).get(subject.name) == Some(true);
        return if has { "yes" } else { "no" }.to_owned();
    }
    match subject.modelled_since {
        Some(since) => format!("from {since} on"),
        None if subject.possible_since.is_some() => "if asked for".to_owned(),
        None => "never".to_owned(),
    }
}

fn kernels(subject: &Subject) -> String {
    let until = subject
        .until
        .map_or(String::new(), |until| format!(" to {until}"));
    format!("{}{until}", subject.since)
}

pub(super) fn text(page: &Page, which: Which<'_>) -> miette::Result<String> {
    let version = version(which)?;
    let mut table = TextTable::new();
    for heading in [
        "part of the kernel",
        "kernels since",
        "in the model",
        "what it is",
    ] {
        table = table.column(heading, Align::Left);
    }
    for subject in subjects(version) {
        let doc = subject.doc.trim();
        let doc = doc.split_once(". ").map_or(doc, |(first, _)| first);
        table.row([
            subject.name,
            &kernels(subject),
            &modelled(subject, version),
            doc,
        ]);
    }
    let note = format!(
        "What the model has of a kernel is no mechanism: --kernel v6.1,{PREFIX}slab_pages=on switches one part for a run. \
        `lowmark compare` leaves out of every column what it leaves out of one, and says so. --format json has the whole texts."
    );
    Ok(table.render(page.style.as_ref(), page.width) + "\n" + &page.paragraph(&note, 0))
}

pub(super) fn json(which: Which<'_>) -> miette::Result<Value> {
    let version = version(which)?;
    let text = |version: Option<Version>| version.map(|version| version.to_string());
    let entry = |subject: &Subject| {
        json!({
            "name": subject.name,
            "text": subject.doc.trim(),
            "since": subject.since.to_string(),
            "until": text(subject.until),
            "modelled_since": text(subject.modelled_since),
            "possible_since": text(subject.possible_since),
            "modelled": version.map(|version| Coverage::of(version).get(subject.name) == Some(true)),
        })
    };
    Ok(subjects(version).map(entry).collect())
}
