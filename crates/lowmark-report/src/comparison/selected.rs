//! Which rows of comparisons are shown: those that are asked for by name, and blocks in which anything happened.

use super::{ComparedRow, Comparison};

/// The rows that are asked for, by their names among all: case, `-` and `_` make no difference.
///
/// # Errors
///
/// The first name that no row has, and the names that there are.
pub(crate) fn asked(names: &[String], metrics: &[String]) -> Result<Vec<String>, String> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], " ");
    let find = |metric: &String| {
        let found = names.iter().find(|name| plain(name) == plain(metric));
        found.cloned().ok_or_else(|| {
            format!(
                "no figure is called {metric}; the runs have {}",
                names.join(", ")
            )
        })
    };
    metrics.iter().map(find).collect()
}

/// Comparisons with the rows of `metrics` alone; with all if none is named.
///
/// # Errors
///
/// The first of `metrics` that is a row of none of them.
pub fn only(comparisons: Vec<Comparison>, metrics: &[String]) -> Result<Vec<Comparison>, String> {
    if metrics.is_empty() {
        return Ok(comparisons);
    }
    let mut names: Vec<String> = Vec::new();
    for row in comparisons.iter().flat_map(Comparison::rows) {
        if !names.contains(&row.name) {
            names.push(row.name.clone());
        }
    }
    let asked = asked(&names, metrics)?;
    let with_rows = comparisons.into_iter().map(|mut comparison| {
        let blocks = &mut comparison.blocks;
        for block in blocks.iter_mut() {
            block.rows.retain(|row| asked.contains(&row.name));
        }
        blocks.retain(|block| !block.rows.is_empty());
        comparison
    });
    Ok(with_rows.collect())
}

/// Whether a row is 0 in every column that has it.
pub(super) fn is_zero(row: &ComparedRow) -> bool {
    row.values.iter().flatten().all(|value| *value == 0.0)
}

impl Comparison {
    fn rows(&self) -> impl Iterator<Item = &ComparedRow> {
        self.blocks.iter().flat_map(|block| &block.rows)
    }

    /// The same without blocks of which every row is 0 in every column, and the titles of these. If all are such, all stay.
    #[must_use]
    pub fn without_idle_blocks(mut self) -> (Comparison, Vec<&'static str>) {
        if self.rows().all(is_zero) {
            return (self, Vec::new());
        }
        let blocks = std::mem::take(&mut self.blocks).into_iter();
        let (idle, kept): (Vec<_>, Vec<_>) =
            blocks.partition(|block| block.rows.iter().all(is_zero));
        self.blocks = kept;
        (self, idle.into_iter().map(|block| block.title).collect())
    }
}
