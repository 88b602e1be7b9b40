//! Cells of published tables and the figures found in them.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One cell of an evaluation, written `[table::row::column]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CellId {
    /// Id of the table.
    pub table: String,
    /// Name of the row.
    pub row: String,
    /// Id of the column.
    pub column: String,
}

impl CellId {
    /// The cell of these three names.
    pub fn new(
        table: impl Into<String>,
        row: impl Into<String>,
        column: impl Into<String>,
    ) -> CellId {
        CellId {
            table: table.into(),
            row: row.into(),
            column: column.into(),
        }
    }

    /// Reads `table::row::column`: the first `::` ends the table, the last begins the column, so that
    /// a row may contain anything.
    pub fn parse(text: &str) -> Option<CellId> {
        let (table, rest) = text.split_once("::")?;
        let (row, column) = rest.rsplit_once("::")?;
        let complete = !table.is_empty() && !row.is_empty() && !column.is_empty();
        complete.then(|| CellId::new(table, row, column))
    }

    /// The cell of the same table and row in another column.
    pub fn in_column(&self, column: &str) -> CellId {
        CellId {
            column: column.to_owned(),
            ..self.clone()
        }
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}::{}::{}]", self.table, self.row, self.column)
    }
}

/// Figures by cell; a cell that is absent, `None` or not a number has no figure.
pub type CellValues = BTreeMap<CellId, Option<f64>>;

/// The figure of a cell, if there is one.
pub fn figure(values: &CellValues, cell: &CellId) -> Option<f64> {
    values.get(cell).copied().flatten().filter(|v| !v.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_separator_count() {
        let cell = CellId::parse("vmstat::a::b (seconds)::v3.6").expect("three parts");
        assert_eq!(cell, CellId::new("vmstat", "a::b (seconds)", "v3.6"));
        assert_eq!(cell.to_string(), "[vmstat::a::b (seconds)::v3.6]");
    }

    #[test]
    fn three_parts_are_needed() {
        for text in ["", "a", "a::b", "::b::c", "a::b::", "a::::c"] {
            assert_eq!(CellId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn absent_and_undefined_figures() {
        let cell = CellId::new("t", "r", "c");
        let mut values = CellValues::new();
        assert_eq!(figure(&values, &cell), None);
        values.insert(cell.clone(), Some(f64::NAN));
        assert_eq!(figure(&values, &cell), None);
        values.insert(cell.clone(), Some(2.0));
        assert_eq!(figure(&values, &cell), Some(2.0));
    }
}
