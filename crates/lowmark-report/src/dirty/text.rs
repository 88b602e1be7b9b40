//! Dirty throttling as a table and as lines of block characters.

use super::DirtyReport;
use super::rows::TITLE;
use super::slices::{Slice, joined};
use crate::document::Section;
use crate::plot::{Bar, Course, Panel};
use crate::reclaim::timeline::{LABEL, PLOTTED, SCALE, axis, bars, short};
use crate::table::{Align, Field, Style, TextTable, printable};

/// Writers that have a line of their own.
const LINES_MAX: usize = 8;
/// Fewest columns that are drawn, however narrow the terminal.
const COLUMNS_MIN: usize = 10;
/// Names of lines of time for which writers wait.
const PAUSE: &str = "pause";
const WAITING: &str = "waiting";
const MIB_PER_PAGE: f64 = 4096.0 / (1 << 20) as f64;

impl DirtyReport {
    /// A table of the figures and a time line, at most `width` characters wide; empty if there was nothing
    /// of dirty throttling.
    pub fn text(&self, style: &dyn Style, width: usize) -> String {
        self.section().text(style, Some(width))
    }

    /// The same, to be written.
    pub fn section(&self) -> Section<'_> {
        let mut section = Section::new();
        if !self.is_empty() {
            section.title(TITLE);
            section.narrow_table(self.table());
            section.blank();
            section.drawn(|width| self.timeline(width));
        }
        section
    }

    fn table(&self) -> TextTable {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("", Align::Right);
        for row in self.figures().rows() {
            let value = row.format.text(row.value);
            table.row([Field::from(row.name), Field::from(value)]);
        }
        table
    }

    /// Dirty pages between their thresholds, pauses, writers that wait, and what each writer dirties.
    pub fn timeline(&self, width: usize) -> String {
        let room = width.saturating_sub(LABEL + SCALE).max(COLUMNS_MIN);
        let columns = self.columns(room.min(self.slices.all().len()));
        let mut lines = String::new();
        for panel in self.panels(&columns) {
            let bars = bars(&panel.values, panel.full);
            let text = format!("{:<LABEL$}{bars}  {}", panel.name, panel.scale);
            lines += text.trim_end();
            lines.push('\n');
        }
        lines + &axis(columns.len(), self.span_s()) + "\n"
    }

    /// The same as a plot, with `waits` below; none where there was nothing of dirty throttling.
    pub fn course(&self, waits: Vec<Bar>) -> Option<Course> {
        let columns = self.columns(self.slices.all().len().min(PLOTTED));
        let mut panels = self.panels(&columns);
        panels.retain(|panel| panel.values.iter().any(|value| *value > 0.0));
        (!self.is_empty() && !panels.is_empty()).then(|| Course {
            title: "Dirty pages and writers over time".to_owned(),
            begin_s: self.slices.begin_s(),
            length_s: self.span_s(),
            panels,
            waits,
        })
    }

    fn span_s(&self) -> f64 {
        self.slices.all().len() as f64 * self.slices.length_ns() as f64 / 1e9
    }

    /// The lines of a time line, the first on top.
    fn panels(&self, columns: &[(Slice, f64)]) -> Vec<Panel> {
        let of = |f: &dyn Fn(&(Slice, f64)) -> f64| columns.iter().map(f).collect::<Vec<f64>>();
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let panel = |name: &str, values: Vec<f64>, full: f64, scale: String| Panel {
            name: name.to_owned(),
            waits: matches!(name, PAUSE | WAITING),
            values,
            full,
            scale,
        };
        let dirty = of(&|(slice, _)| slice.dirty as f64);
        let background = of(&|(slice, _)| slice.background as f64);
        let thresh = of(&|(slice, _)| slice.thresh as f64);
        let full = most(&thresh).max(most(&dirty));
        let levels = [
            ("dirty", dirty),
            ("background", background),
            ("threshold", thresh),
        ];
        let levels = levels.into_iter().map(|(name, values)| {
            let scale = format!("max {} pages", short(most(&values)));
            panel(name, values, full, scale)
        });
        let mut panels: Vec<Panel> = levels.collect();
        let pause = of(&|(slice, _)| {
            let pauses: u64 = slice.pauses.values().sum();
            slice.pauses_ms as f64 / pauses.max(1) as f64
        });
        let longest = most(&pause);
        if longest > 0.0 {
            panels.push(panel(PAUSE, pause, longest, format!("max {longest:.0} ms")));
        }
        let waiting = of(&|(slice, length)| slice.waited_ns as f64 / length);
        let number = most(&waiting);
        let scale = format!("max {} tasks", short(number));
        panels.push(panel(WAITING, waiting, number, scale));
        for (task, name) in self.busiest() {
            let rate = of(&|(slice, length)| {
                let pages = slice.pages.get(&task).copied().unwrap_or(0) as f64;
                pages * MIB_PER_PAGE / (length / 1e9)
            });
            let most = most(&rate);
            panels.push(panel(
                &name,
                rate,
                most,
                format!("max {} MiB/s", short(most)),
            ));
        }
        panels
    }

    /// Writers with the most pages, those with a smaller number first among equals.
    fn busiest(&self) -> Vec<(u32, String)> {
        let mut writers: Vec<(u64, u32)> = self
            .writers
            .iter()
            .filter(|(_, writer)| writer.pages > 0)
            .map(|(task, writer)| (writer.pages, *task))
            .collect();
        writers.sort_by_key(|&(pages, task)| (std::cmp::Reverse(pages), task));
        let name = |task: u32| {
            let name = self.names.get(&task).cloned().unwrap_or_default();
            printable(&name).chars().take(LABEL - 1).collect()
        };
        let tasks = writers.into_iter().take(LINES_MAX).map(|(_, task)| task);
        tasks.map(|task| (task, name(task))).collect()
    }

    /// Slices joined into so many columns, each with its length in ns. What was not told in one is as before.
    fn columns(&self, count: usize) -> Vec<(Slice, f64)> {
        let slices = self.slices.all();
        let bound = |column: usize| column * slices.len() / count.max(1);
        let mut before = Slice::default();
        let column = |at: usize| {
            let part = &slices[bound(at)..bound(at + 1)];
            let mut slice = joined(part);
            if slice.thresh == 0 {
                slice.dirty = before.dirty;
                (slice.background, slice.thresh) = (before.background, before.thresh);
            }
            before = slice.clone();
            (
                slice,
                part.len().max(1) as f64 * self.slices.length_ns() as f64,
            )
        };
        (0..count).map(column).collect()
    }
}
