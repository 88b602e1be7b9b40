//! The busiest tasks.

use super::View;
use crate::timeline::Busy;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

/// MiB of a page.
const PAGES_IN_MIB: u64 = 256;
/// A task that waits for a disk or for memory, and that no signal wakes.
const WAITS: char = 'D';

/// Draws the tasks that were busy in the last column of the charts.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let at_ns = view.player.at_ns();
    let begin_ns = at_ns.saturating_sub(view.column_ns());
    let busy = view.timeline.tasks(begin_ns, at_ns);
    if busy.is_empty() {
        let text = "No task is known: recordings of hosts have them, and so has this system.";
        frame.render_widget(Paragraph::new(text).style(Modifier::DIM), area);
        return;
    }
    let heads = [
        "task",
        "pid",
        "state",
        "major faults/s",
        "CPU %",
        "in memory, MiB",
    ];
    let widths = [20, 8, 5, 14, 7, 14].map(Constraint::Length);
    let rows = busy.iter().map(|busy| row(view, busy));
    let table = Table::new(rows, widths)
        .header(cells(heads.map(str::to_owned)).style(Modifier::DIM))
        .column_spacing(2);
    frame.render_widget(table, area);
}

fn row(view: &View<'_>, busy: &Busy<'_>) -> Row<'static> {
    let task = busy.task;
    let style = if task.state == WAITS {
        view.style(Color::Red)
    } else {
        Style::new()
    };
    cells([
        task.name.to_string(),
        task.pid.to_string(),
        task.state.to_string(),
        format!("{:.0}", busy.major_faults),
        format!("{:.0}", busy.cpu_percent),
        (task.rss / PAGES_IN_MIB).to_string(),
    ])
    .style(style)
}

/// A row whose name is to the left, and whose figures are to the right.
fn cells(texts: [String; 6]) -> Row<'static> {
    let cells = texts.into_iter().enumerate().map(|(at, text)| {
        let text = Text::raw(text);
        Cell::new(if at == 0 { text } else { text.right_aligned() })
    });
    Row::new(cells)
}
