//! Pages of the documentation: one for each evaluation with a recipe, and the table over all of them.
//!
//! 1. Every page begins with [`MARK`], by which a page that this program wrote is known.
//! 2. All pages together are written when all evaluations have been run; a page with the mark that was not among them
//!    is one of an evaluation that has gone, and is removed. Other files stay as they are.

use lowmark_report::Reproduction;
use lowmark_report::evaluation::IndexEntry;
use lowmark_report::reproduction::Overview;
use miette::{IntoDiagnostic, WrapErr, miette};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// First line of every page.
pub(super) const MARK: &str = "<!-- Written by `lowmark reproduce --all --write`. -->";

/// The page over all evaluations.
pub(super) const INDEX: &str = "README.md";

const ABOUT: &str = "\
Every published evaluation that lowmark carries ([figures and claims](../../evaluations/published/README.md)), and how
far the model bears out what was claimed of it. Those with a recipe (`evaluations/NAME.toml`) are run by
`lowmark reproduce NAME`; `make reproduce` runs all of them and writes this page and those that it leads to.
";

const COLUMNS: &str = "\
- **state**: *run*; *no recipe*: nobody has said yet how it is run on the model; *not modelled*: none of its claims is
  about what a model can show.
- **figures**: printed figures, percentages apart. **modelled**: those in tables for which the model has one.
- **count**: claims that judge a model; the others are noise, not reclaim, or the source against its own figures.
- **judged**: those of them for which the model has figures: *borne out*; *contradicted*; or *vacuous*, which is met,
  but by kernels that do not differ where they must.
";

/// The page over all evaluations; `index` has their titles.
pub(super) fn overview(overview: &Overview, index: &[IndexEntry]) -> String {
    let mut text = format!("{MARK}\n# Published evaluations\n\n{ABOUT}\n");
    text += &format!("{}\n{COLUMNS}", overview.markdown());
    let without = |entry: &&IndexEntry| {
        let mut rows = overview.rows.iter();
        rows.any(|row| row.evaluation == entry.id && !row.recipe)
    };
    text += "\n## Without a recipe\n\n";
    for entry in index.iter().filter(without) {
        text += &format!("- {}: {}\n", entry.id, entry.title);
    }
    text
}

/// Name and text of the page of an evaluation.
pub(super) fn of_evaluation(result: &Reproduction) -> (String, String) {
    (format!("{}.md", result.evaluation.id), result.page(MARK))
}

/// Makes the directory, before anything is run that is to be written there.
pub(super) fn prepare(dir: &Path) -> miette::Result<()> {
    std::fs::create_dir_all(dir)
        .into_diagnostic()
        .wrap_err_with(|| format!("{}: cannot make the directory", dir.display()))
}

/// Writes a page.
pub(super) fn write(dir: &Path, name: &str, text: &str) -> miette::Result<()> {
    let path = dir.join(name);
    std::fs::write(&path, text)
        .into_diagnostic()
        .wrap_err_with(|| format!("{}: cannot write the page", path.display()))
}

/// Writes all pages and removes those that were written for evaluations which are no more; gives their paths.
pub(super) fn write_all(
    dir: &Path,
    pages: &BTreeMap<String, String>,
) -> miette::Result<Vec<PathBuf>> {
    for (name, text) in pages {
        write(dir, name, text)?;
    }
    let mut removed = Vec::new();
    let entries = std::fs::read_dir(dir).into_diagnostic();
    let entries = entries.wrap_err_with(|| format!("{}: cannot list it", dir.display()))?;
    for entry in entries {
        let path = entry.into_diagnostic()?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if pages.contains_key(name.as_ref()) || !name.ends_with(".md") {
            continue;
        }
        let own = std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with(MARK));
        if own {
            std::fs::remove_file(&path)
                .map_err(|e| miette!("{}: cannot remove the page: {e}", path.display()))?;
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_report::reproduction::Row;
    use lowmark_report::{CellValues, evaluation};

    /// All evaluations, of which one was run and came out as in print.
    fn pages() -> BTreeMap<String, String> {
        let index = evaluation::index().expect("the index is valid");
        let mut pages = BTreeMap::new();
        let mut rows = Vec::new();
        for entry in &index {
            let evaluation = evaluation::get(&entry.id).expect("it is embedded");
            let run = entry.id == "swap-readahead";
            let model = if run {
                evaluation.cell_values()
            } else {
                CellValues::new()
            };
            let result = Reproduction::new(&evaluation, None, &model);
            rows.push(Row::new(entry, &result, run));
            if run {
                pages.extend([of_evaluation(&result)]);
            }
        }
        let page = overview(&Overview::new(rows), &index);
        pages.insert(INDEX.to_owned(), page);
        pages
    }

    fn files(dir: &Path) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(dir).expect("a directory");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let file = |path: PathBuf| {
            let name = path.file_name().expect("named").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("text");
            (name.into_owned(), text)
        };
        paths.map(file).collect()
    }

    #[test]
    fn pages_that_nobody_writes_any_more_go_and_other_files_stay() {
        let place = tempfile::TempDir::new().expect("a directory");
        let dir = place.path().join("docs/evaluations");
        prepare(&dir).expect("made");
        let old = format!("{MARK}\n# of an evaluation that has gone\n");
        write(&dir, "gone.md", &old).expect("written");
        write(&dir, "by-hand.md", "# Remarks\n").expect("written");
        write(&dir, "swap-readahead.md", &old).expect("written");
        let pages = pages();
        let removed = write_all(&dir, &pages).expect("written");
        assert_eq!(removed, [dir.join("gone.md")]);
        let mut expected = pages.clone();
        expected.insert("by-hand.md".to_owned(), "# Remarks\n".to_owned());
        assert_eq!(files(&dir), expected);
        assert_eq!(
            write_all(&dir, &pages).expect("written"),
            [""; 0].map(PathBuf::from)
        );
        assert_eq!(files(&dir), expected);
    }

    #[test]
    fn the_index_leads_to_pages_that_there_are() {
        let pages = pages();
        let index = &pages[INDEX];
        assert!(index.contains("| [swap-readahead](swap-readahead.md) | run |"));
        assert!(pages.contains_key("swap-readahead.md"));
        let line = "\n- thp-defrag-2016-usemem: ";
        assert!(index.contains(line), "{index}");
        assert!(!index.contains("\n- swap-readahead: "));
        assert_eq!(pages.len(), 2);
    }
}
