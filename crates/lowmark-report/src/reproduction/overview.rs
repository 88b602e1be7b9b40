//! All published evaluations in one table: how many of their claims count, are judged, and come out.

use super::{ClaimSummary, Reproduction};
use crate::document::Section;
use crate::evaluation::IndexEntry;
use crate::table::{Align, Field, Role, TextTable};
use serde::Serialize;

/// One evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub evaluation: String,
    /// Whether it has a recipe, so that it is run.
    pub recipe: bool,
    /// Its figures, percentages not counted.
    pub cells: usize,
    /// Those that stand in tables and that the model has a figure for.
    pub modelled: usize,
    /// Its claims.
    pub claims: ClaimSummary,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// In the order of the index.
    pub rows: Vec<Row>,
    /// Their sums.
    pub total: ClaimSummary,
}

impl Row {
    /// The row of an evaluation; `recipe` says whether it was run by one.
    pub fn new(entry: &IndexEntry, result: &Reproduction, recipe: bool) -> Row {
        Row {
            evaluation: entry.id.clone(),
            recipe,
            cells: entry.cells,
            modelled: result.summary.modelled,
            claims: result.summary.claims,
        }
    }

    /// How it stands: run, without a recipe, or of no model at all because none of its claims counts.
    pub fn state(&self) -> &'static str {
        if self.recipe {
            "run"
        } else if self.claims.count == 0 {
            "not modelled"
        } else {
            "no recipe"
        }
    }
}

const HEADINGS: [&str; 10] = [
    "evaluation",
    "state",
    "figures",
    "modelled",
    "claims",
    "count",
    "judged",
    "borne out",
    "contradicted",
    "vacuous",
];

impl Overview {
    /// The table of these rows.
    pub fn new(rows: Vec<Row>) -> Overview {
        let total = rows.iter().fold(ClaimSummary::default(), |sum, row| {
            let claims = row.claims;
            ClaimSummary {
                total: sum.total + claims.total,
                count: sum.count + claims.count,
                judged: sum.judged + claims.judged,
                borne_out: sum.borne_out + claims.borne_out,
                contradicted: sum.contradicted + claims.contradicted,
                vacuous: sum.vacuous + claims.vacuous,
                not_modelled: sum.not_modelled + claims.not_modelled,
            }
        });
        Overview { rows, total }
    }

    /// For people.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::titled("All published evaluations");
        section.table(self.table());
        section
    }

    fn table(&self) -> TextTable {
        let mut table = TextTable::new();
        for (at, heading) in HEADINGS.into_iter().enumerate() {
            let align = if at < 2 { Align::Left } else { Align::Right };
            table = table.column(heading, align);
        }
        for line in self.lines() {
            let role = |at: usize, field: &str| match (at, field) {
                (1, "run") => Role::Plain,
                (1, _) => Role::Unknown,
                _ => Role::Plain,
            };
            let fields = line.iter().enumerate();
            table.row(fields.map(|(at, field)| Field::with_role(field.as_str(), role(at, field))));
        }
        table
    }

    /// For a page of the documentation; names of what was run lead to pages beside it.
    pub fn markdown(&self) -> String {
        let mut text = format!("| {} |\n", HEADINGS.join(" | "));
        text += "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for mut line in self.lines() {
            let run = |row: &Row| row.recipe && row.evaluation == line[0];
            if self.rows.iter().any(run) {
                line[0] = format!("[{0}]({0}.md)", line[0]);
            }
            text += &format!("| {} |\n", line.join(" | "));
        }
        text
    }

    /// The fields of each row, and of all together.
    fn lines(&self) -> Vec<[String; 10]> {
        let counts = |cells: usize, modelled: usize, claims: ClaimSummary| {
            [
                cells,
                modelled,
                claims.total,
                claims.count,
                claims.judged,
                claims.borne_out,
                claims.contradicted,
                claims.vacuous,
            ]
            .map(|count| count.to_string())
        };
        let line = |name: &str, state: &str, counts: [String; 8]| {
            let [a, b, c, d, e, f, g, h] = counts;
            [name.to_owned(), state.to_owned(), a, b, c, d, e, f, g, h]
        };
        let row = |row: &Row| {
            let counts = counts(row.cells, row.modelled, row.claims);
            line(&row.evaluation, row.state(), counts)
        };
        let sum = |value: fn(&Row) -> usize| self.rows.iter().map(value).sum();
        let cells = sum(|row| row.cells);
        let all = counts(cells, sum(|row| row.modelled), self.total);
        let rows = self.rows.iter().map(row);
        rows.chain([line("all", "", all)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PlainStyle;
    use crate::{CellValues, evaluation};

    #[test]
    fn evaluations_without_a_model_are_told_from_those_without_a_recipe() {
        let index = evaluation::index().expect("the index is valid");
        let row = |entry: &IndexEntry| {
            let evaluation = evaluation::get(&entry.id).expect("it is embedded");
            let perfect = evaluation.cell_values();
            let run = entry.id == "swap-readahead";
            let model = if run { perfect } else { CellValues::new() };
            Row::new(entry, &Reproduction::new(&evaluation, None, &model), run)
        };
        let overview = Overview::new(index.iter().map(row).collect());
        assert_eq!((overview.total.total, overview.total.count), (74, 66));
        assert_eq!((overview.total.judged, overview.total.borne_out), (5, 5));
        let text = overview.table().render(&PlainStyle, None);
        let state = |id: &str| {
            let found = overview.rows.iter().find(|row| row.evaluation == id);
            found.map(Row::state)
        };
        assert_eq!(state("swap-readahead"), Some("run"));
        assert_eq!(state("lumpy-removal-2012-text-size"), Some("not modelled"));
        assert_eq!(state("thp-defrag-2016-usemem"), Some("no recipe"));
        assert_eq!(text.lines().count(), 17 + 2, "{text}");
        let page = overview.markdown();
        let line =
            "| [swap-readahead](swap-readahead.md) | run | 48 | 48 | 5 | 5 | 5 | 5 | 0 | 0 |\n";
        assert!(page.contains(line), "{page}");
        assert!(
            page.contains("| thp-defrag-2016-usemem | no recipe |"),
            "{page}"
        );
        assert!(
            page.ends_with("| all |  | 1743 | 48 | 74 | 66 | 5 | 5 | 0 | 0 |\n"),
            "{page}"
        );
    }
}
