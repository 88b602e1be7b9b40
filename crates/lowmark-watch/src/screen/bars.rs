//! Bars: parts of a whole, and watermarks.

use super::{LABEL, View};
use crate::look::{Look, Zone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// MiB of a page.
const PAGES_IN_MIB: u64 = 256;

/// What the part of a bar that is free is made of.
const FREE: &str = " ";

/// A part of a bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// What it is, with how much.
    text: String,
    size: u64,
    symbol: &'static str,
    colour: Color,
}

/// A bar with what stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bar {
    label: String,
    parts: Vec<Part>,
    /// The size of the whole bar.
    whole: u64,
    /// Sizes with a mark.
    marks: Vec<u64>,
}

/// The bars of a look, the most important first.
pub(super) fn of(look: &Look) -> Vec<Bar> {
    let mut bars = vec![memory(look)];
    bars.extend(swap(look));
    bars.extend(dirty(look));
    bars.extend(look.groups.iter().map(|group| {
        let whole = group.max.unwrap_or(group.current).max(1);
        let text = match group.max {
            Some(max) => format!("{} of {} MiB", group.current >> 20, max >> 20),
            None => format!("{} MiB, no limit", group.current >> 20),
        };
        let used = part(text, group.current.min(whole), "█", Color::Magenta);
        bar(format!("cgroup {}", group.short()), vec![used], whole)
    }));
    bars.extend(look.zones.iter().map(zone));
    bars
}

fn bar(label: String, parts: Vec<Part>, whole: u64) -> Bar {
    Bar {
        label,
        parts,
        whole,
        marks: Vec::new(),
    }
}

fn part(text: String, size: u64, symbol: &'static str, colour: Color) -> Part {
    Part {
        text,
        size,
        symbol,
        colour,
    }
}

/// A number of pages in words.
fn size(pages: u64) -> String {
    match pages / PAGES_IN_MIB {
        0 => format!("{} kB", pages * 4),
        mib => format!("{mib} MiB"),
    }
}

fn memory(look: &Look) -> Bar {
    let levels = look.levels;
    let used = [levels.free, levels.anon, levels.file, levels.slab];
    let known = used.into_iter().fold(0, u64::saturating_add);
    let whole = levels.total.max(known);
    let parts = [
        ("anon", levels.anon, "█", Color::Blue),
        ("file", levels.file, "▓", Color::Green),
        ("slab", levels.slab, "▒", Color::Yellow),
        ("other", whole - known, "░", Color::DarkGray),
        ("free", levels.free, FREE, Color::Reset),
    ];
    let parts = parts.map(|(name, pages, symbol, colour)| {
        let text = format!("{symbol} {name} {}", pages / PAGES_IN_MIB);
        part(text.trim_start().to_owned(), pages, symbol, colour)
    });
    bar(format!("memory, {}", size(whole)), parts.into(), whole)
}

fn swap(look: &Look) -> Option<Bar> {
    let (whole, used) = (look.levels.swap, look.levels.swapped);
    let text = format!("used {}", used / PAGES_IN_MIB);
    let parts = vec![part(text, used, "█", Color::Magenta)];
    let label = format!("swap, {}", size(whole));
    (whole > 0).then(|| bar(label, parts, whole))
}

/// Dirty pages and pages under writeback up to half more than where writers are throttled, and both thresholds.
fn dirty(look: &Look) -> Option<Bar> {
    let levels = look.levels;
    let [background, limit] = levels.dirty_thresholds;
    let whole = limit.saturating_add(limit / 2);
    let parts = [
        ("dirty", levels.dirty, "█", Color::Yellow),
        ("writeback", levels.writeback, "▒", Color::Cyan),
    ];
    let parts = parts.map(|(name, pages, symbol, colour)| {
        let text = format!("{symbol} {name} {}", pages / PAGES_IN_MIB);
        part(text, pages, symbol, colour)
    });
    let bar = bar(format!("dirty limit, {}", size(limit)), parts.into(), whole);
    let marks = vec![background, limit];
    (limit > 0).then_some(Bar { marks, ..bar })
}

/// Free pages of a zone up to twice its high watermark, and its watermarks.
fn zone(zone: &Zone) -> Bar {
    let [min, low, high] = zone.marks;
    let colour = match zone.free {
        free if free < min => Color::Red,
        free if free < low => Color::Yellow,
        _ => Color::Green,
    };
    let whole = high.saturating_mul(2).max(1);
    let text = format!("{} free; min {min}, low {low}, high {high}", zone.free);
    let parts = vec![part(text, zone.free.min(whole), "█", colour)];
    Bar {
        marks: zone.marks.into(),
        ..bar(format!("zone {}", zone.name), parts, whole)
    }
}

/// Draws a bar: its label, the bar, and what its parts are.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>, bar: &Bar, row: Rect) {
    // What is free comes last in the bar, and is what one looks for first.
    let (free, used): (Vec<&Part>, Vec<&Part>) =
        bar.parts.iter().partition(|part| part.symbol == FREE);
    let texts = free.into_iter().chain(used).map(|part| part.text.as_str());
    let legend = texts.collect::<Vec<&str>>().join("  ");
    let [label, line, text] = Layout::horizontal([
        Constraint::Length(LABEL),
        Constraint::Fill(2),
        Constraint::Fill(3),
    ])
    .spacing(1)
    .areas(row);
    let cells = cells(bar, usize::from(line.width));
    let spans = cells.into_iter().map(|(symbol, colour)| {
        let style = match colour {
            Color::Reset => Style::new(),
            colour => view.style(colour),
        };
        Span::styled(symbol, style)
    });
    frame.render_widget(Paragraph::new(bar.label.as_str()), label);
    frame.render_widget(Paragraph::new(Line::from_iter(spans)), line);
    frame.render_widget(Paragraph::new(legend), text);
}

/// The characters of a bar of some width, with their colours.
fn cells(bar: &Bar, width: usize) -> Vec<(&'static str, Color)> {
    let place = |size: u64| {
        let place = u128::from(size) * width as u128 / u128::from(bar.whole.max(1));
        usize::try_from(place).unwrap_or(width).min(width)
    };
    let mut cells = vec![("·", Color::Reset); width];
    let mut size = 0;
    for part in &bar.parts {
        let from = place(size);
        size = size.saturating_add(part.size);
        cells[from..place(size)].fill((part.symbol, part.colour));
    }
    for mark in &bar.marks {
        if let Some((symbol, _)) = cells.get_mut(place(*mark)) {
            *symbol = "|";
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_a_bar_and_marks_stand_in_it() {
        let mut bar = bar(
            "x".into(),
            vec![
                part("a".into(), 25, "a", Color::Red),
                part("b".into(), 50, "b", Color::Red),
            ],
            100,
        );
        let text = |bar: &Bar, width| {
            cells(bar, width)
                .into_iter()
                .map(|(symbol, _)| symbol)
                .collect::<String>()
        };
        assert_eq!(text(&bar, 8), "aabbbb··");
        bar.marks = vec![0, 50, 100, u64::MAX];
        assert_eq!(text(&bar, 8), "|abb|b··");
        assert_eq!(text(&bar, 0), "");
    }
}
