//! The answer as a section of a report.
//!
//! 1. The sentence first, then each cut through the time as a table: limit, what needed room, what waits went into.
//! 2. The figures behind each cause, one line each.
//! 3. Episodes, the longest waits, settings, known faults, what cannot be said.

use super::account::Row;
use super::answer::{Answer, Stall};
use super::cause::Role;
use super::wait::Limit;
use super::words::{moment, percent, seconds, time};
use crate::document::{Lines, Room, Section};
use crate::table::{Align, Style, TextTable, counted};

/// Indent of lines that go on.
const INDENT: usize = 5;

/// Demands that the short form has.
const SHORT_ROWS: usize = 3;

impl Answer {
    /// The answer as text, tables divided and lines folded at `width`.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// The answer, to be written.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::new();
        let head = self.head();
        if !head.is_empty() {
            section.line(head);
            section.blank();
        }
        section.lines(leading(&self.sentence));
        let parts = [
            ("Limit", self.limits()),
            (Role::Demand.label(), self.causes(Role::Demand)),
            (Role::Limit.label(), self.causes(Role::Limit)),
            (Role::Inside.label(), self.causes(Role::Inside)),
            (Role::Note.label(), self.causes(Role::Note)),
            (Role::Answer.label(), self.causes(Role::Answer)),
            ("Known faults", self.fault_lines()),
            ("Settings that act", self.acting()),
            ("Settings that do not", self.not_acting()),
            ("Episodes", self.episode_table()),
            ("Longest waits", self.stall_table()),
            ("Who woke kswapd for large blocks", self.asker_lines()),
            ("Cannot be said", self.gap_lines()),
        ];
        for (title, body) in parts {
            section.part(title, body);
        }
        section
    }

    /// The short form: the sentence, and what needed room.
    pub fn short(&self) -> Section<'static> {
        let mut section = Section::new();
        section.lines(leading(&self.sentence));
        let total = self.account.total_ns();
        let demands = self.account.of_role(Role::Demand).take(SHORT_ROWS);
        for row in demands.filter(|row| row.finding.total_ns() > 0) {
            let (time_ns, name) = (row.finding.total_ns(), row.cause.name);
            section.lines(Lines {
                head: format!("{:<4} {:>6}", row.cause.id, percent(time_ns, total)),
                text: format!("{name}: {}", row.finding.evidence),
                indent: 13,
                room: Room::Running,
                leads: false,
            });
        }
        for (fault, _) in &self.faults {
            section.lines(folded("", fault.summary));
        }
        section
    }

    fn head(&self) -> String {
        let mut parts = self.heading.clone();
        if let Some((first, last)) = self.span_ns {
            parts.push(format!(
                "{} of events, {} to {}",
                time(last - first),
                moment(first),
                moment(last)
            ));
        }
        if self.lost > 0 {
            parts.push(match self.lost {
                1 => "1 event was lost".to_owned(),
                lost => format!("{lost} events were lost"),
            });
        }
        parts.join(", ")
    }

    fn limits(&self) -> Section<'static> {
        let mut section = Section::new();
        if self.account.limits.is_empty() {
            return section;
        }
        let mut table = TextTable::new().column("", Align::Left);
        for head in ["Waits", "Traced s", "Estimated s", "Of all"] {
            table = table.column(head, Align::Right);
        }
        for row in &self.account.limits {
            table.row([
                row.limit.label().to_owned(),
                row.waits.to_string(),
                seconds(row.traced_ns),
                seconds(row.estimated_ns),
                percent(row.total_ns(), self.account.total_ns()),
            ]);
        }
        section.table(table);
        section
    }

    fn causes(&self, role: Role) -> Section<'static> {
        let mut section = Section::new();
        let total = self.account.total_ns();
        // What waits went into by less than a hundredth is not worth a line.
        let is_told = |row: &&Row| {
            role != Role::Inside || row.finding.total_ns().saturating_mul(100) >= total
        };
        let rows: Vec<&Row> = self.account.of_role(role).filter(is_told).collect();
        if rows.is_empty() {
            return section;
        }
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("", Align::Left);
        for head in ["Traced s", "Estimated s", "Of all"] {
            table = table.column(head, Align::Right);
        }
        table = table.column("By", Align::Left);
        for row in &rows {
            let finding = &row.finding;
            let time = |text: String| match finding.total_ns() {
                0 => "-".to_owned(),
                _ => text,
            };
            table.row([
                row.cause.id.to_owned(),
                row.cause.name.to_owned(),
                time(seconds(finding.traced_ns)),
                time(seconds(finding.estimated_ns)),
                time(percent(finding.total_ns(), total)),
                row.confidence.label().to_owned(),
            ]);
        }
        section.table(table);
        for row in &rows {
            section.lines(folded(row.cause.id, &row.finding.evidence));
        }
        section
    }

    fn fault_lines(&self) -> Section<'static> {
        let lines = self.faults.iter().map(|(fault, known)| {
            let whose = if *known {
                "this kernel has it"
            } else {
                "the kernel's version is not known"
            };
            let text = format!(
                "{}: {} Kernels {} to before {}; {whose}. What helps: {}.",
                fault.name, fault.summary, fault.since, fault.until, fault.remedy
            );
            folded("", &text)
        });
        section_of(lines)
    }

    fn acting(&self) -> Section<'static> {
        section_of(self.acts.iter().map(|knob| {
            let change = match knob.change {
                "" => String::new(),
                change => format!(" {change}"),
            };
            folded(knob.cause, &format!("{}{change}: {}", knob.name, knob.why))
        }))
    }

    fn not_acting(&self) -> Section<'static> {
        let knobs = self.useless.iter();
        section_of(knobs.map(|knob| folded(knob.cause, &format!("{}: {}", knob.name, knob.why))))
    }

    fn episode_table(&self) -> Section<'static> {
        let mut section = Section::new();
        if self.episodes.is_empty() {
            return section;
        }
        let mut table = TextTable::new();
        for head in ["Begins s", "Length", "Waits", "Tasks", "Waited"] {
            table = table.column(head, Align::Right);
        }
        table = table
            .column("Limit", Align::Left)
            .column("Demand", Align::Left)
            .column("Free pages", Align::Right);
        for row in &self.episodes {
            let episode = &row.episode;
            table.row([
                moment(episode.begin_ns),
                time(episode.end_ns.saturating_sub(episode.begin_ns)),
                episode.waits.to_string(),
                episode.tasks().to_string(),
                time(episode.waited_ns()),
                episode.limit().label().to_owned(),
                row.demand.unwrap_or("?").to_owned(),
                row.free_pages.map_or("-".to_owned(), |n| n.to_string()),
            ]);
        }
        section.table(table);
        if self.episode_count > self.episodes.len() {
            let more = self.episode_count - self.episodes.len();
            section.line(format!("and {more} more"));
        }
        if let Some([min, low, high]) = self.watermarks {
            section.line(format!(
                "watermarks of all zones: min {min}, low {low}, high {high} pages"
            ));
        }
        section
    }

    fn stall_table(&self) -> Section<'static> {
        let mut section = Section::new();
        if self.stalls.is_empty() {
            return section;
        }
        let has_groups = self.stalls.iter().any(|stall| stall.wait.memcg.is_some());
        let mut table = TextTable::new()
            .column("Begins s", Align::Right)
            .column("Length", Align::Right)
            .column("Task", Align::Left)
            .column("Limit", Align::Left)
            .column("Order", Align::Right);
        if has_groups {
            table = table.column("Group", Align::Right);
        }
        table = table
            .column("Asked for", Align::Left)
            .column("Inside", Align::Left)
            .column("Flags", Align::Left);
        for stall in &self.stalls {
            let wait = &stall.wait;
            let mut fields = vec![
                moment(wait.begin_ns),
                time(wait.length_ns()),
                stall.task.clone(),
                wait.limit.label().to_owned(),
                wait.order.to_string(),
            ];
            if has_groups {
                fields.push(wait.memcg.map_or("-".to_owned(), |id| id.to_string()));
            }
            fields.extend([
                wait.request.label().to_owned(),
                stall.inside(),
                stall.gfp.clone(),
            ]);
            table.row(fields);
        }
        section.table(table);
        section
    }

    fn asker_lines(&self) -> Section<'static> {
        section_of(self.askers.iter().map(|(task, order, gfp, times)| {
            folded(
                "",
                &format!("{task}: order {order}, {} {gfp}", counted(*times, "time")),
            )
        }))
    }

    fn gap_lines(&self) -> Section<'static> {
        section_of(self.account.gaps.iter().map(|gap| {
            let time = match gap.time_ns {
                0 => String::new(),
                ns => format!("of {}, ", time(ns)),
            };
            let text = format!("{time}{}: {} would have told", gap.what, gap.told_by);
            folded("", &text)
        }))
    }
}

impl Stall {
    /// What happened inside, in words.
    fn inside(&self) -> String {
        let wait = &self.wait;
        let inside = &wait.inside;
        let parts = [
            ("writeback", inside.writeback_ns),
            ("isolated", inside.isolated_ns),
            ("no progress", inside.noprogress_ns),
            ("throttled", inside.throttled_ns),
            ("congestion", inside.congestion_ns),
            ("shrinkers", inside.slab_ns),
            ("compaction", inside.compaction_ns),
        ];
        let parts = parts.into_iter().filter(|(_, ns)| *ns >= 1000);
        let mut said: Vec<String> = parts
            .map(|(what, ns)| format!("{what} {}", time(ns)))
            .collect();
        if wait.scanned > 0 {
            said.push(format!(
                "{} of {} pages reclaimed",
                wait.reclaimed, wait.scanned
            ));
        }
        if wait.limit == Limit::Global && wait.kswapd_ns == 0 {
            said.push("kswapd asleep".to_owned());
        }
        said.join(", ")
    }
}

/// The sentence that a reader looks for first.
fn leading(sentence: &str) -> Lines {
    Lines {
        head: String::new(),
        text: sentence.to_owned(),
        indent: 0,
        room: Room::Running,
        leads: true,
    }
}

/// A line folded at the width, what goes on indented; `head` says what it is of.
fn folded(head: &str, text: &str) -> Lines {
    Lines {
        head: head.to_owned(),
        text: text.to_owned(),
        indent: INDENT,
        room: Room::Running,
        leads: false,
    }
}

fn section_of(lines: impl Iterator<Item = Lines>) -> Section<'static> {
    let mut section = Section::new();
    lines.for_each(|line| section.lines(line));
    section
}
