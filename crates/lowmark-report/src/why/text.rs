//! The answer as text.
//!
//! 1. The sentence first, then each cut through the time as a table: limit, what needed room, what waits went into.
//! 2. The figures behind each cause, one line each.
//! 3. Episodes, the longest waits, settings, known faults, what cannot be said.

use super::account::Row;
use super::answer::{Answer, Stall};
use super::cause::Role;
use super::wait::Limit;
use super::words::{moment, percent, seconds, time};
use crate::table::{Align, Role as Looks, Style, TextTable, hanging, printable};
use std::fmt::Write;

/// Width of lines where that of the terminal is not known.
const WIDTH: usize = 100;

/// Indent of lines that go on.
const INDENT: usize = 5;

/// Demands that the short form has.
const SHORT_ROWS: usize = 3;

impl Answer {
    /// The answer as text, tables divided and lines folded at `width`.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        let mut text = self.head();
        text += &paragraph(&self.sentence, width);
        let sections = [
            ("Limit", self.limits(style, width)),
            (
                Role::Demand.label(),
                self.causes(Role::Demand, style, width),
            ),
            (Role::Limit.label(), self.causes(Role::Limit, style, width)),
            (
                Role::Inside.label(),
                self.causes(Role::Inside, style, width),
            ),
            (Role::Note.label(), self.causes(Role::Note, style, width)),
            (
                Role::Answer.label(),
                self.causes(Role::Answer, style, width),
            ),
            ("Known faults", self.fault_lines(width)),
            ("Settings that act", self.acting(width)),
            ("Settings that do not", self.not_acting(width)),
            ("Episodes", self.episode_table(style, width)),
            ("Longest waits", self.stall_table(style, width)),
            ("Who woke kswapd for large blocks", self.asker_lines(width)),
            ("Cannot be said", self.gap_lines(width)),
        ];
        for (title, body) in sections {
            if !body.is_empty() {
                let _ = write!(text, "\n{}\n{body}", style.paint(Looks::Title, title));
            }
        }
        text
    }

    /// The short form: the sentence, and what needed room.
    pub fn short(&self, width: Option<usize>) -> String {
        let mut text = paragraph(&self.sentence, width);
        let total = self.account.total_ns();
        let demands = self.account.of_role(Role::Demand).take(SHORT_ROWS);
        for row in demands.filter(|row| row.finding.total_ns() > 0) {
            let (time_ns, name) = (row.finding.total_ns(), row.cause.name);
            let line = format!(
                "{:<4} {:>6}  {}: {}",
                row.cause.id,
                percent(time_ns, total),
                name,
                row.finding.evidence
            );
            text += &hanging(&line, 13, Some(width.unwrap_or(WIDTH)));
        }
        for (fault, _) in &self.faults {
            text += &folded(fault.summary, width);
        }
        text
    }

    fn head(&self) -> String {
        let mut parts: Vec<String> = self
            .heading
            .iter()
            .map(|part| printable(part).into_owned())
            .collect();
        if let Some((first, last)) = self.span_ns {
            parts.push(format!(
                "{} of events, {} to {}",
                time(last - first),
                moment(first),
                moment(last)
            ));
        }
        if self.lost > 0 {
            parts.push(format!("{} events were lost", self.lost));
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("{}\n\n", parts.join(", ")),
        }
    }

    fn limits(&self, style: &dyn Style, width: Option<usize>) -> String {
        if self.account.limits.is_empty() {
            return String::new();
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
        table.render(style, width)
    }

    fn causes(&self, role: Role, style: &dyn Style, width: Option<usize>) -> String {
        let total = self.account.total_ns();
        // What waits went into by less than a hundredth is not worth a line.
        let is_told = |row: &&Row| {
            role != Role::Inside || row.finding.total_ns().saturating_mul(100) >= total
        };
        let rows: Vec<&Row> = self.account.of_role(role).filter(is_told).collect();
        if rows.is_empty() {
            return String::new();
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
                row.cause.confidence.label().to_owned(),
            ]);
        }
        let mut text = table.render(style, width);
        for row in &rows {
            let line = format!("{:<INDENT$}{}", row.cause.id, row.finding.evidence);
            text += &hanging(&line, INDENT, Some(width.unwrap_or(WIDTH)));
        }
        text
    }

    fn fault_lines(&self, width: Option<usize>) -> String {
        let lines = self.faults.iter().map(|(fault, known)| {
            let whose = match known {
                true => "this kernel has it",
                false => "the kernel's version is not known",
            };
            folded(
                &format!(
                    "{}: {} Kernels {} to before {}; {whose}. What helps: {}.",
                    fault.name, fault.summary, fault.since, fault.until, fault.remedy
                ),
                width,
            )
        });
        lines.collect()
    }

    fn acting(&self, width: Option<usize>) -> String {
        let lines = self.acts.iter().map(|knob| {
            let change = match knob.change {
                "" => String::new(),
                change => format!(" {change}"),
            };
            folded(
                &format!("{:<INDENT$}{}{change}: {}", knob.cause, knob.name, knob.why),
                width,
            )
        });
        lines.collect()
    }

    fn not_acting(&self, width: Option<usize>) -> String {
        let lines = self.useless.iter().map(|knob| {
            folded(
                &format!("{:<INDENT$}{}: {}", knob.cause, knob.name, knob.why),
                width,
            )
        });
        lines.collect()
    }

    fn episode_table(&self, style: &dyn Style, width: Option<usize>) -> String {
        if self.episodes.is_empty() {
            return String::new();
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
        let mut text = table.render(style, width);
        if self.episode_count > self.episodes.len() {
            let more = self.episode_count - self.episodes.len();
            let _ = writeln!(text, "and {more} more");
        }
        if let Some([min, low, high]) = self.watermarks {
            let _ = writeln!(
                text,
                "watermarks of all zones: min {min}, low {low}, high {high} pages"
            );
        }
        text
    }

    fn stall_table(&self, style: &dyn Style, width: Option<usize>) -> String {
        if self.stalls.is_empty() {
            return String::new();
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
        table.render(style, width)
    }

    fn asker_lines(&self, width: Option<usize>) -> String {
        let lines = self.askers.iter().map(|(task, order, gfp, times)| {
            folded(
                &format!("{}: order {order}, {times} times {gfp}", printable(task)),
                width,
            )
        });
        lines.collect()
    }

    fn gap_lines(&self, width: Option<usize>) -> String {
        let lines = self.account.gaps.iter().map(|gap| {
            let time = match gap.time_ns {
                0 => String::new(),
                ns => format!("of {}, ", time(ns)),
            };
            folded(
                &format!("{time}{}: {} would have told", gap.what, gap.told_by),
                width,
            )
        });
        lines.collect()
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

/// A sentence folded at the width.
fn paragraph(line: &str, width: Option<usize>) -> String {
    hanging(&format!("{line}\n"), 0, Some(width.unwrap_or(WIDTH)))
}

/// A line folded at the width, what goes on indented.
fn folded(line: &str, width: Option<usize>) -> String {
    hanging(&format!("{line}\n"), INDENT, Some(width.unwrap_or(WIDTH)))
}
