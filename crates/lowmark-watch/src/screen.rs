//! A screen of a terminal: what memory is used for, how near zones are to their watermarks, what is counted, and what
//! goes on.
//!
//! 1. One line says what is watched, when, and how fast it goes; for recordings one more says how far it is.
//! 2. A bar each for memory, swap, zones and cgroups. Bars differ by their characters, so that they can be read without
//!    colour.
//! 3. A line for each thing that is counted: how fast now, at most, and a chart whose last column is now.
//!    In their place the busiest tasks, if these are asked for.
//! 4. At the bottom what goes on, and the keys. What does not fit is left out from the end of 3, then of 2.

mod bars;
mod tasks;

use crate::player::Player;
use crate::rates::{Rate, Rates};
use crate::story::{State, Story, story};
use crate::timeline::Timeline;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph, Sparkline, Wrap};

/// Time of a column of a chart, at most, ns.
const COLUMN_NS_MAX: u64 = 1_000_000_000;
/// Columns that a whole recording takes, unless it is so long that columns would be of more than that time.
const COLUMNS: u64 = 60;
/// Time of a column at least, ns.
const COLUMN_NS_MIN: u64 = 1_000_000;
/// Width of the words and figures before a chart, or a bar.
const LABEL: u16 = 28;
const FIGURE: u16 = 11;
/// Lines for what goes on.
const STORY_LINES: u16 = 3;

/// What is drawn.
#[derive(Debug)]
pub struct View<'a> {
    /// What is watched.
    pub title: &'a str,
    /// Its looks.
    pub timeline: &'a Timeline,
    /// Where in them.
    pub player: &'a Player,
    /// Tasks are shown in place of what is counted.
    pub tasks: bool,
    /// Whether there may be colour.
    pub colour: bool,
}

impl View<'_> {
    fn style(&self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Time of a column of the charts, ns.
    fn column_ns(&self) -> u64 {
        let (first, last) = self.timeline.span().unwrap_or_default();
        if self.player.is_live() {
            COLUMN_NS_MAX
        } else {
            ((last - first) / COLUMNS).clamp(COLUMN_NS_MIN, COLUMN_NS_MAX)
        }
    }

    /// How fast things are counted in a column that ends at a time.
    fn column(&self, end_ns: u64) -> Rates {
        let (first, _) = self.timeline.span().unwrap_or_default();
        let begin_ns = end_ns.saturating_sub(self.column_ns()).max(first);
        self.timeline.rates(begin_ns, end_ns)
    }
}

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let at_ns = view.player.at_ns();
    let Some(look) = view.timeline.at(at_ns) else {
        frame.render_widget(
            Paragraph::new("Nothing has been looked at yet."),
            frame.area(),
        );
        return;
    };
    let now = view.column(at_ns);
    let bars = bars::of(look);
    let progress = u16::from(!view.player.is_live());
    let [title, passed, top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(progress),
        Constraint::Length(u16::try_from(bars.len()).unwrap_or(u16::MAX)),
        Constraint::Fill(1),
        Constraint::Length(STORY_LINES),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(view)), title);
    if progress > 0 {
        let ratio = view.player.progress().clamp(0.0, 1.0);
        let gauge = LineGauge::default().ratio(ratio).filled_symbol("━");
        frame.render_widget(gauge.filled_style(view.style(Color::Cyan)), passed);
    }
    for (bar, row) in bars.iter().zip(top.rows()) {
        bars::draw(frame, view, bar, row);
    }
    if view.tasks {
        tasks::draw(frame, view, middle);
    } else {
        draw_rates(frame, view, &now, middle);
    }
    let Story { state, text } = story(look, &now);
    let style = match state {
        State::Rest => view.style(Color::Green),
        State::Background => view.style(Color::Yellow),
        State::Stalls => view.style(Color::Red),
    };
    let text = Paragraph::new(text).wrap(Wrap { trim: true });
    frame.render_widget(text.style(style), bottom);
    let text = if view.player.is_live() {
        "space stops or goes on   left, right go back and forward   end now   t tasks   q quits"
    } else {
        "space stops or goes on   left, right back and forward   up, down speed   home, end   t tasks   q quits"
    };
    frame.render_widget(Paragraph::new(text).style(Modifier::DIM), keys);
}

/// Everything that is counted, a line each.
fn draw_rates(frame: &mut Frame<'_>, view: &View<'_>, now: &Rates, middle: Rect) {
    let rates = Rate::ALL
        .into_iter()
        .filter(|rate| view.timeline.has(*rate));
    let mut rows = middle.rows();
    if let Some(row) = rows.next() {
        draw_head(frame, view, row);
    }
    for (rate, row) in rates.zip(rows) {
        draw_rate(frame, view, rate, now, row);
    }
}

/// What is watched, when, and how fast it goes.
fn heading(view: &View<'_>) -> Line<'static> {
    let player = view.player;
    let (first, last) = view.timeline.span().unwrap_or_default();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut text = match player.is_live() {
        true if player.is_playing() => "now".to_owned(),
        true => format!("{:.1} s ago", seconds(last - player.at_ns())),
        false => format!(
            "{:.3} s of {:.3} s, speed {}",
            seconds(player.at_ns() - first),
            seconds(last - first),
            player.speed()
        ),
    };
    if !player.is_playing() {
        text.push_str(", stopped");
    }
    if let Some(phase) = view.timeline.phase(player.at_ns()) {
        text.push_str(&format!(", phase {phase}"));
    }
    let title = Span::styled(view.title.to_owned(), Modifier::BOLD);
    Line::from(vec![title, Span::raw("   "), Span::raw(text)])
}

/// The places of a thing that is counted: its label, how fast now, at most, and the chart.
fn places(row: Rect) -> [Rect; 4] {
    let widths = [
        Constraint::Length(LABEL),
        Constraint::Length(FIGURE),
        Constraint::Length(FIGURE),
        Constraint::Fill(1),
    ];
    Layout::horizontal(widths).spacing(1).areas(row)
}

/// What stands above the things that are counted.
fn draw_head(frame: &mut Frame<'_>, view: &View<'_>, row: Rect) {
    let [label, figure, most, chart] = places(row);
    let ms = view.column_ns() / COLUMN_NS_MIN;
    let columns = format!("a column is {ms} ms");
    for (text, place, right) in [
        ("in a second", label, false),
        ("now", figure, true),
        ("at most", most, true),
        (columns.as_str(), chart, true),
    ] {
        let text = Paragraph::new(text).style(Modifier::DIM);
        let text = if right { text.right_aligned() } else { text };
        frame.render_widget(text, place);
    }
}

/// A thing that is counted: how fast now, at most in the chart, and the chart.
fn draw_rate(frame: &mut Frame<'_>, view: &View<'_>, rate: Rate, now: &Rates, row: Rect) {
    let [label, figure, most, chart] = places(row);
    let (first, _) = view.timeline.span().unwrap_or_default();
    let columns = (0..u64::from(chart.width)).rev().map(|back| {
        let end_ns = view.player.at_ns().checked_sub(back * view.column_ns());
        let end_ns = end_ns.filter(|&end_ns| end_ns > first);
        end_ns.map(|end_ns| view.column(end_ns).of(rate).round() as u64)
    });
    let columns: Vec<Option<u64>> = columns.collect();
    let highest = columns.iter().flatten().max().copied().unwrap_or(0);
    let value = now.of(rate);
    let style = match rate {
        Rate::DirectScan
        | Rate::DirectSteal
        | Rate::DirectStall
        | Rate::CompactStall
        | Rate::SomeWait
        | Rate::FullWait
            if value > 0.0 =>
        {
            view.style(Color::Red)
        }
        _ => Style::new(),
    };
    let text = |value: u64| Paragraph::new(value.to_string()).right_aligned();
    frame.render_widget(Paragraph::new(rate.label()).style(style), label);
    frame.render_widget(text(value.round() as u64).style(style), figure);
    frame.render_widget(text(highest).style(Modifier::DIM), most);
    let bars = Sparkline::default().data(columns).max(highest.max(1));
    frame.render_widget(bars.style(view.style(Color::Cyan)), chart);
}
