//! The course of reclaim as lines of block characters.
//!
//! 1. The slices in use are joined into as many columns as fit, evenly.
//! 2. Each line is scaled to its own largest value, which stands behind it; shares of time and efficiency
//!    are scaled to 100 %, stalls to the number of tasks stalled at a time.
//! 3. Nothing is a blank, anything more than nothing at least the lowest block.

use super::figures::ReclaimFigures;
use super::slices::{Part, Slice};
use crate::plot::{Bar, Course, Panel};

/// Blocks from one eighth to full.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Room for the name of a line.
pub(crate) const LABEL: usize = 15;

/// Room for the scale behind it.
pub(crate) const SCALE: usize = 20;

/// Fewest columns that are drawn, however narrow the terminal.
const COLUMNS_MIN: usize = 10;

/// Parts of the time that a plot has at most.
pub(crate) const PLOTTED: usize = 190;

/// Name of the line of kswapd's time.
const KSWAPD: &str = "kswapd awake";

/// What of a slice a line shows.
type Sum<'s> = &'s dyn Fn(&Slice) -> u64;

/// A slice joined from others, and how many.
struct Column {
    slice: Slice,
    length_ns: f64,
}

/// The axis below a time line of `columns` columns: the times at which the time line starts and ends.
pub(crate) fn axis(columns: usize, span_s: f64) -> String {
    let end = format!("{span_s:.3} s");
    let between = match columns.checked_sub(end.len() + 1) {
        None | Some(0) => " to ".to_owned(),
        Some(blanks) => " ".repeat(blanks),
    };
    format!("{:<LABEL$}0{between}{end}", "time")
}

impl ReclaimFigures {
    /// The time line, at most `width` characters wide (and never less than 45); empty for a trace without
    /// events.
    pub fn timeline(&self, width: usize) -> String {
        let slices = self.slices.slices();
        if slices.is_empty() {
            return String::new();
        }
        let room = width.saturating_sub(LABEL + SCALE).max(COLUMNS_MIN);
        let columns = self.columns(room.min(slices.len()));
        let mut lines = String::new();
        let mut line = |label: &str, bars: String, scale: &str| {
            lines.push_str(format!("{label:<LABEL$}{bars}  {scale}").trim_end());
            lines.push('\n');
        };
        for panel in self.panels(&columns) {
            line(&panel.name, bars(&panel.values, panel.full), &panel.scale);
        }
        let span_s = self.span_s();
        let column_s = span_s / columns.len() as f64;
        let axis = axis(columns.len(), span_s);
        lines + &format!("{axis}  {} s each\n", short(column_s))
    }

    /// The same as a plot, with `waits` below; none where nothing was scanned, reclaimed or written and nobody waited.
    pub fn course(&self, waits: Vec<Bar>) -> Option<Course> {
        let slices = self.slices.slices();
        let columns = self.columns(slices.len().min(PLOTTED));
        let mut panels = self.panels(&columns);
        panels.retain(|panel| panel.values.iter().any(|value| *value > 0.0));
        (!panels.is_empty()).then(|| Course {
            title: "Reclaim over time".to_owned(),
            begin_s: self.slices.base_ns() as f64 / 1e9,
            length_s: self.span_s(),
            panels,
            waits,
        })
    }

    fn span_s(&self) -> f64 {
        self.slices.slices().len() as f64 * self.slices.length_ns() as f64 / 1e9
    }

    /// The lines of a time line, the first on top.
    fn panels(&self, columns: &[Column]) -> Vec<Panel> {
        let panel = |name: &str, values: Vec<f64>, full: f64, scale: String, waits: bool| Panel {
            name: name.to_owned(),
            values,
            full,
            scale,
            waits,
        };
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let scanned = |s: &Slice| sum(self.scanned(s));
        let rates: [(&str, Sum<'_>); 3] = [
            ("scanned", &scanned),
            ("reclaimed", &|s| sum(&s.reclaimed)),
            ("written", &|s| sum(&s.written)),
        ];
        let rates = rates.into_iter().map(|(name, pages)| {
            let values: Vec<f64> = columns.iter().map(|c| c.rate(pages(&c.slice))).collect();
            let most = most(&values);
            let scale = format!("max {} pages/s", short(most));
            panel(name, values, most, scale, false)
        });
        let mut panels: Vec<Panel> = rates.collect();
        if self.by_shrink_inactive {
            let efficiency = |c: &Column| percent(sum(&c.slice.reclaimed), scanned(&c.slice));
            let values = columns.iter().map(|c| efficiency(c).unwrap_or(0.0));
            let scale = "of 100%".to_owned();
            panels.push(panel("efficiency", values.collect(), 100.0, scale, false));
        }
        let kswapds = self.kswapds.max(1) as f64;
        let times: [(&str, f64, Sum<'_>); 4] = [
            ("direct stalls", 1.0, &|s| s.direct_ns),
            ("memcg stalls", 1.0, &|s| s.memcg_ns),
            ("throttled", 1.0, &|s| s.throttled_ns),
            (KSWAPD, kswapds, &|s| s.kswapd_ns),
        ];
        for (name, of, field) in times {
            let share = |c: &Column| field(&c.slice) as f64 / c.length_ns / of;
            let values: Vec<f64> = columns.iter().map(share).collect();
            let most = most(&values);
            if most == 0.0 {
                continue;
            }
            let (full, scale) = match name {
                KSWAPD => (1.0, "of 100%".to_owned()),
                _ => (most, format!("max {most:.2} tasks")),
            };
            panels.push(panel(name, values, full, scale, name != KSWAPD));
        }
        panels
    }

    /// Pages scanned by actor, by the events that the totals come from.
    fn scanned<'s>(&self, slice: &'s Slice) -> &'s [u64; 4] {
        if self.by_shrink_inactive {
            &slice.scanned
        } else {
            &slice.isolated
        }
    }

    /// Pages scanned in a slice.
    pub(super) fn slice_scanned(&self, slice: &Slice) -> u64 {
        sum(self.scanned(slice))
    }

    fn columns(&self, count: usize) -> Vec<Column> {
        let slices = self.slices.slices();
        let bound = |column: usize| column * slices.len() / count.max(1);
        let column = |index: usize| {
            let part = &slices[bound(index)..bound(index + 1)];
            let mut slice = Slice::default();
            part.iter().for_each(|s| slice.join(s));
            Column {
                slice,
                length_ns: part.len().max(1) as f64 * self.slices.length_ns() as f64,
            }
        };
        (0..count).map(column).collect()
    }
}

impl Column {
    fn rate(&self, pages: u64) -> f64 {
        pages as f64 / (self.length_ns / 1e9)
    }
}

pub(super) fn sum(by_actor: &[u64; 4]) -> u64 {
    by_actor.iter().copied().fold(0, u64::saturating_add)
}

/// 100·part/whole; none of nothing.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

pub(crate) fn bars(values: &[f64], full: f64) -> String {
    values.iter().map(|value| bar(*value, full)).collect()
}

fn bar(value: f64, full: f64) -> char {
    if value <= 0.0 || full <= 0.0 {
        return ' ';
    }
    let eighths = (value / full * BLOCKS.len() as f64).ceil() as usize;
    BLOCKS[eighths.clamp(1, BLOCKS.len()) - 1]
}

/// A number in four characters or so: `812`, `12.3k`, `4.56M`.
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = match scaled {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 4,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_by_eighths() {
        let drawn = bars(&[0.0, 0.001, 1.0, 4.0, 7.9, 8.0, 9.0], 8.0);
        assert_eq!(drawn, " ▁▁▄███");
        assert_eq!(bars(&[1.0, 2.0], 0.0), "  ");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.0421, 7.0, 42.0, 812.4, 9999.0, 12_345.0, 4.56e6, 7e9].map(short);
        let expected = [
            "0", "0.0421", "7.00", "42.0", "812", "9999", "12.3k", "4.56M", "7.00G",
        ];
        assert_eq!(shown, expected);
    }
}
