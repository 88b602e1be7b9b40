//! Published evaluations, and whether there is a recipe to run them.

use crate::cli::Format;
use crate::output::{self, Page};
use lowmark_report::table::counted;
use lowmark_report::{evaluation, recipe};
use miette::IntoDiagnostic;
use serde::Serialize;
use serde_json::{Value, json};

/// What is said of an evaluation.
#[derive(Serialize)]
struct Entry {
    id: String,
    title: String,
    mechanism: String,
    cells: usize,
    claims: usize,
    /// Variants of its recipe; empty if there is none.
    variants: Vec<Variant>,
}

/// A way to run it.
#[derive(Serialize)]
struct Variant {
    name: String,
    title: String,
}

fn all() -> miette::Result<Vec<Entry>> {
    let index = evaluation::index().into_diagnostic()?;
    index.into_iter().map(entry).collect()
}

fn entry(entry: evaluation::IndexEntry) -> miette::Result<Entry> {
    let runnable = recipe::ids().any(|id| id == entry.id);
    let variants = if runnable {
        let recipe = recipe::get(&entry.id).into_diagnostic()?;
        let variant = |v: recipe::Variant| Variant {
            name: v.name,
            title: v.title,
        };
        recipe.variants.into_iter().map(variant).collect()
    } else {
        Vec::new()
    };
    Ok(Entry {
        claims: entry.claims.len(),
        id: entry.id,
        title: entry.title,
        mechanism: entry.mechanism,
        cells: entry.cells,
        variants,
    })
}

/// Prints the evaluations that can be run.
pub(in crate::verb) fn print_runnable(format: Format) -> miette::Result<()> {
    let mut entries = all()?;
    entries.retain(|entry| !entry.variants.is_empty());
    match format {
        Format::Json => output::print_json(&json!({ "version": 1, "evaluations": entries })),
        Format::Table => {
            let page = Page::stdout();
            let mut text = String::new();
            for entry in &entries {
                text += &paragraphs(entry, &page);
                for variant in &entry.variants {
                    let line = format!("--variant {}: {}", variant.name, variant.title);
                    text += &page.paragraph(&line, 2);
                }
            }
            output::print(&text)
        }
    }
}

/// Name, title, and how much there is to an evaluation. Titles and names are too long for columns.
fn paragraphs(entry: &Entry, page: &Page) -> String {
    let recipe = if entry.variants.is_empty() {
        "no recipe"
    } else {
        "with a recipe"
    };
    let size = format!(
        "{}, {}, {recipe}",
        counted(entry.cells as u64, "cell"),
        counted(entry.claims as u64, "claim")
    );
    let name = page.title(&entry.id);
    let text = [&entry.title, &size].map(|line| page.paragraph(line, 2));
    format!("{name}\n{}", text.concat())
}

pub(super) fn text(page: &Page) -> miette::Result<String> {
    let all = all()?;
    let entries = all.iter().map(|entry| paragraphs(entry, page));
    let note = "Those with a recipe can be run: lowmark reproduce NAME";
    Ok(entries.collect::<String>() + "\n" + &page.paragraph(note, 0))
}

pub(super) fn json() -> miette::Result<Value> {
    Ok(json!(all()?))
}
