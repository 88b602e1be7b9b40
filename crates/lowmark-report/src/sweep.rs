//! A parameter as the axis of a table: a row for each of its values.
//!
//! * With one column at each point, as of `lowmark run`, figures are the columns of one table.
//! * With several, as of `lowmark compare`, there is a table for each figure, with the kernels as its columns.
//!
//! Tables for people show figures with good and bad values that are not the same at all points, or those that are asked
//! for; CSV and JSON have all.

mod plots;

use crate::comparison::selected::asked;
use crate::comparison::{ComparedRow, Comparison, field};
use crate::document::Section;
use crate::stats::Preference;
use crate::table::{Align, Field, PlainStyle, Role, Style, TextTable};
use crate::vmstat::ValueFormat;
use serde::Serialize;

/// One combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The value on each axis.
    pub values: Vec<String>,
    /// What was measured there.
    pub comparison: Comparison,
}

/// Points along one axis or several.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Names of the axes.
    pub axes: Vec<String>,
    /// The points, in the order in which they were run.
    pub points: Vec<Point>,
}

/// A table before it is laid out.
struct Grid {
    title: String,
    /// Headings of the columns; the axes come first.
    headings: Vec<String>,
    rows: Vec<Vec<Field>>,
}

/// The JSON form.
#[derive(Serialize)]
struct Document<'s> {
    axes: &'s [String],
    points: Vec<PointJson<'s>>,
}

#[derive(Serialize)]
struct PointJson<'s> {
    values: &'s [String],
    #[serde(flatten)]
    comparison: serde_json::Value,
}

impl Sweep {
    /// Tables as text.
    ///
    /// # Errors
    ///
    /// The first of `metrics` that is no row.
    pub fn text(
        &self,
        metrics: &[String],
        style: &dyn Style,
        width: Option<usize>,
    ) -> Result<String, String> {
        Ok(self.section(metrics)?.text(style, width))
    }

    /// The tables, to be written, with the plots of their figures.
    ///
    /// # Errors
    ///
    /// The first of `metrics` that is no row.
    pub fn section(&self, metrics: &[String]) -> Result<Section<'static>, String> {
        let mut section = Section::new();
        section.answers.extend(self.answer(&self.shown(metrics)?));
        section.plots = self.plots(&self.shown(metrics)?);
        for (at, grid) in self.grids(metrics)?.into_iter().enumerate() {
            if at > 0 {
                section.blank();
            }
            if !grid.title.is_empty() {
                section.title(&grid.title);
            }
            let mut table = TextTable::new();
            for (at, heading) in grid.headings.iter().enumerate() {
                let align = if at < self.axes.len() {
                    Align::Left
                } else {
                    Align::Right
                };
                table = table.column(heading.as_str(), align);
            }
            grid.rows.into_iter().for_each(|row| table.row(row));
            section.table(table);
        }
        Ok(section)
    }

    /// The same tables as Markdown.
    ///
    /// # Errors
    ///
    /// The first of `metrics` that is no row.
    pub fn markdown(&self, metrics: &[String]) -> Result<String, String> {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let cell = |text: &str| text.trim().replace('|', "\\|");
        let text = |grid: &Grid| {
            let mut text = match grid.title.as_str() {
                "" => String::new(),
                title => format!("**{}**\n\n", cell(title)),
            };
            text += &line(grid.headings.iter().map(|it| cell(it)).collect());
            let rule = |at| if at < self.axes.len() { "---" } else { "---:" };
            text += &line(
                (0..grid.headings.len())
                    .map(|at| rule(at).to_owned())
                    .collect(),
            );
            for row in &grid.rows {
                let fields = row.iter();
                text += &line(
                    fields
                        .map(|field| {
                            let note = field.note.split_whitespace().collect::<String>();
                            cell(&format!("{} {note}", field.value.trim()))
                        })
                        .collect(),
                );
            }
            text
        };
        let grids = self.grids(metrics)?;
        Ok(grids.iter().map(text).collect::<Vec<_>>().join("\n"))
    }

    /// Every figure as CSV (RFC 4180 but for line ends): means, whole as they are.
    pub fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let names = self.names();
        let mut header: Vec<String> = self.axes.iter().map(|it| quoted(it)).collect();
        let value = |row: Option<&ComparedRow>, column: usize| {
            let value = row.and_then(|row| row.exact_values.get(column).copied().flatten());
            value.map_or(String::new(), |value| value.to_string())
        };
        if let Some(columns) = self.columns() {
            header.push("figure".to_owned());
            header.extend(columns.iter().map(|it| quoted(it)));
            let mut text = line(header);
            for name in &names {
                for point in &self.points {
                    let mut cells: Vec<String> = point.values.iter().map(|it| quoted(it)).collect();
                    cells.push(quoted(name));
                    let row = point.row(name);
                    cells.extend((0..columns.len()).map(|column| value(row, column)));
                    text += &line(cells);
                }
            }
            return text;
        }
        header.extend(names.iter().map(|it| quoted(it)));
        let mut text = line(header);
        for point in &self.points {
            let mut cells: Vec<String> = point.values.iter().map(|it| quoted(it)).collect();
            cells.extend(names.iter().map(|name| value(point.row(name), 0)));
            text += &line(cells);
        }
        text
    }

    /// Every figure as JSON, each point as a comparison is written.
    pub fn json(&self) -> serde_json::Value {
        let point = |point: &'_ Point| -> serde_json::Value { point.comparison.json() };
        let points = self.points.iter().map(|it| PointJson {
            values: &it.values,
            comparison: point(it),
        });
        let document = Document {
            axes: &self.axes,
            points: points.collect(),
        };
        serde_json::to_value(document).unwrap_or_default()
    }

    /// Headings of the columns that are compared; none where there is one at each point.
    fn columns(&self) -> Option<Vec<String>> {
        let most = self
            .points
            .iter()
            .max_by_key(|it| it.comparison.columns.len())?;
        let columns = &most.comparison.columns;
        (columns.len() > 1).then(|| columns.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Names of all rows, in the order in which they first appear.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.points.iter().flat_map(Point::rows) {
            if !names.contains(&row.name) {
                names.push(row.name.clone());
            }
        }
        names
    }

    /// The rows that tables show.
    fn shown(&self, metrics: &[String]) -> Result<Vec<String>, String> {
        let names = self.names();
        if !metrics.is_empty() {
            return asked(&names, metrics);
        }
        let is_one = self.points.len() == 1 && self.columns().is_none();
        let varies = |name: &String| {
            let rows = self.points.iter().filter_map(|point| point.row(name));
            let mut values = rows
                .clone()
                .flat_map(|row| row.exact_values.iter().flatten());
            let judged = rows.clone().any(|row| row.better != Preference::None);
            let first = values.next();
            judged && (is_one || values.any(|value| Some(value) != first))
        };
        Ok(names.into_iter().filter(varies).collect())
    }

    /// A row's name with its unit, unless each value has that behind it.
    fn heading(&self, name: &str) -> String {
        let row = self.points.iter().find_map(|point| point.row(name));
        let unit =
            row.filter(|row| matches!(row.format, ValueFormat::Count | ValueFormat::Decimals(_)));
        match unit.map_or("", |row| row.unit.as_str()) {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        }
    }

    fn grids(&self, metrics: &[String]) -> Result<Vec<Grid>, String> {
        let names = self.shown(metrics)?;
        let missing = || Field::with_role("-", Role::Unknown);
        let values = |point: &Point| -> Vec<Field> {
            point
                .values
                .iter()
                .map(|it| Field::from(it.as_str()))
                .collect()
        };
        let Some(columns) = self.columns() else {
            let rows = self.points.iter().map(|point| {
                let figures = names.iter().map(|name| match point.row(name) {
                    Some(row) => field(row, 0),
                    None => missing(),
                });
                // There is nothing to be compared with.
                let plain = figures.map(|field| Field::with_role(field.value, Role::Plain));
                values(point).into_iter().chain(plain).collect()
            });
            return Ok(vec![Grid {
                title: String::new(),
                headings: (self.axes.iter().cloned())
                    .chain(names.iter().map(|name| self.heading(name)))
                    .collect(),
                rows: rows.collect(),
            }]);
        };
        let grid = |name: &String| {
            let rows = self.points.iter().map(|point| {
                let figures = (0..columns.len()).map(|column| match point.row(name) {
                    Some(row) if column < row.values.len() => field(row, column),
                    _ => missing(),
                });
                values(point).into_iter().chain(figures).collect()
            });
            Grid {
                title: self.heading(name),
                headings: self.axes.iter().chain(&columns).cloned().collect(),
                rows: rows.collect(),
            }
        };
        Ok(names.iter().map(grid).collect())
    }
}

impl Point {
    fn rows(&self) -> impl Iterator<Item = &ComparedRow> {
        self.comparison.blocks.iter().flat_map(|block| &block.rows)
    }

    fn row(&self, name: &str) -> Option<&ComparedRow> {
        self.rows().find(|row| row.name == name)
    }
}

/// A cell of CSV.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Names and values of every figure of a run: what a row of a table of runs holds.
pub fn figures(recording: &lowmark_record::Recording) -> Vec<(String, f64)> {
    let rows = crate::comparison::rows(recording, crate::SeriesRows::default());
    rows.into_iter().map(|row| (row.name, row.exact)).collect()
}

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(&[], &PlainStyle, None).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
