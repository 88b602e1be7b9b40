//! The course of reclaim as lines of block characters.
//!
//! 1. The slices in use are joined into as many columns as fit, evenly.
//! 2. Each line is scaled to its own largest value, which stands behind it; shares of time and efficiency
//!    are scaled to 100 %, stalls to the number of tasks stalled at a time.
//! 3. Nothing is a blank, anything more than nothing at least the lowest block.

use super::figures::ReclaimFigures;
use super::slices::{Part, Slice};

/// Blocks from one eighth to full.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Room for the name of a line.
pub(crate) const LABEL: usize = 15;

/// Room for the scale behind it.
pub(crate) const SCALE: usize = 20;

/// Fewest columns that are drawn, however narrow the terminal.
const COLUMNS_MIN: usize = 10;

/// A slice joined from others, and how many.
struct Column {
    slice: Slice,
    length_ns: f64,
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
        let mut line = |label: &str, bars: String, scale: String| {
            lines.push_str(format!("{label:<LABEL$}{bars}  {scale}").trim_end());
            lines.push('\n');
        };
        let scanned = |s: &Slice| sum(self.scanned(s));
        let rates = [
            (
                "scanned",
                columns.iter().map(|c| c.rate(scanned(&c.slice))).collect(),
            ),
            (
                "reclaimed",
                columns
                    .iter()
                    .map(|c| c.rate(sum(&c.slice.reclaimed)))
                    .collect(),
            ),
            (
                "written",
                columns
                    .iter()
                    .map(|c| c.rate(sum(&c.slice.written)))
                    .collect::<Vec<f64>>(),
            ),
        ];
        for (label, values) in rates {
            let most = values.iter().copied().fold(0.0, f64::max);
            line(
                label,
                bars(&values, most),
                format!("max {} pages/s", short(most)),
            );
        }
        if self.by_shrink_inactive {
            let efficiency = |c: &Column| percent(sum(&c.slice.reclaimed), scanned(&c.slice));
            let values: Vec<f64> = columns
                .iter()
                .map(|c| efficiency(c).unwrap_or(0.0))
                .collect();
            line("efficiency", bars(&values, 100.0), "of 100%".to_owned());
        }
        let kswapds = self.kswapds.max(1) as f64;
        let times = [
            ("direct stalls", 1.0, Slice::direct as fn(&Slice) -> u64),
            ("memcg stalls", 1.0, Slice::memcg),
            ("throttled", 1.0, Slice::throttled),
            ("kswapd awake", kswapds, Slice::kswapd),
        ];
        for (label, of, field) in times {
            let share = |c: &Column| field(&c.slice) as f64 / c.length_ns / of;
            let values: Vec<f64> = columns.iter().map(share).collect();
            let most = values.iter().copied().fold(0.0, f64::max);
            if most == 0.0 {
                continue;
            }
            let scale = if label == "kswapd awake" {
                "of 100%".to_owned()
            } else {
                format!("max {most:.2} tasks")
            };
            let full = if label == "kswapd awake" { 1.0 } else { most };
            line(label, bars(&values, full), scale);
        }
        let span_s = slices.len() as f64 * self.slices.length_ns() as f64 / 1e9;
        let column_s = span_s / columns.len() as f64;
        let end = format!("{span_s:.3} s");
        let middle = columns.len().saturating_sub(end.len() + 1);
        let axis = format!("0{}{end}", " ".repeat(middle));
        line("time", axis, format!("{} s each", short(column_s)));
        lines
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

impl Slice {
    fn direct(&self) -> u64 {
        self.direct_ns
    }

    fn memcg(&self) -> u64 {
        self.memcg_ns
    }

    fn throttled(&self) -> u64 {
        self.throttled_ns
    }

    fn kswapd(&self) -> u64 {
        self.kswapd_ns
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
