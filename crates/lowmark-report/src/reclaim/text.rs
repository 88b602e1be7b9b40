//! The report as a section of blocks.
//!
//! 1. The blocks of all traces side by side, names 40 characters wide, values in ten, two blanks between
//!    columns at least; what happened comes before what did not.
//! 2. For each trace by itself: who reclaimed, kswapd, how long stalls were by process, order and memory
//!    cgroup, the time line, what was corrected, and what is missing.

use super::distribution::Quantiles;
use super::figures::{ProcessFigures, ReclaimFigures};
use super::rows::ReportColumn;
use super::tasks::Span;
use crate::comparison::Comparison;
use crate::document::{Lines, Room, Section};
use crate::table::{Align, TextTable};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Width of the names of rows.
const LABELS: usize = 40;

/// Why a trace may have more pages scanned than the counters.
const MORE_SCANNED: &str = "Under the multi-generational LRU (lru_gen) a trace has more pages scanned than /proc/vmstat: \
    the kernel reports a batch again when it tries the batch again. Such a difference is no sign of lost events.";

/// Most processes of a table; the others are counted.
const PROCESSES_MAX: usize = 30;

/// The report on one trace or on several, the first being the baseline of none: these blocks have no
/// percentages (see [`Comparison::of_traces`] for those).
pub fn section<'f>(columns: &[ReportColumn<'f>]) -> Section<'f> {
    let mut section = Comparison::of_traces(columns)
        .without_percents()
        .what_happened_first()
        .section_with_labels(LABELS);
    let reports = columns.iter().flat_map(|column| {
        let several = column.reports.len() > 1;
        let name = move |index: usize| {
            if several {
                format!("{} ({})", column.name, index + 1)
            } else {
                column.name.clone()
            }
        };
        let numbered = column.reports.iter().enumerate();
        numbered.map(move |(index, report)| (name(index), *report))
    });
    let alone = columns.iter().map(|c| c.reports.len()).sum::<usize>() == 1;
    for (name, report) in reports {
        for (title, body) in report.parts() {
            let title = if alone {
                title.to_owned()
            } else {
                format!("{title}: {name}")
            };
            section.part(title, body);
        }
    }
    section
}

impl ReclaimFigures {
    fn parts(&self) -> [(&'static str, Section<'_>); 9] {
        [
            ("Direct reclaim by process", self.direct_table()),
            ("Kswapd", self.kswapd_table()),
            ("Stalls by process", self.stalls_by_process()),
            ("Stalls by order", self.stalls_by_order()),
            ("Stalls by memory cgroup", self.stalls_by_memcg()),
            ("Time line", self.drawn()),
            ("Trace and /proc/vmstat", self.check_table()),
            ("Corrected", listed(&self.corrected(), 12)),
            ("Not computed", listed(&self.not_computed(), 2)),
        ]
    }

    fn drawn(&self) -> Section<'_> {
        let mut section = Section::new();
        if !self.slices.slices().is_empty() {
            section.drawn(|width| self.timeline(width));
        }
        section
    }

    fn direct_table(&self) -> Section<'static> {
        let mut table = TextTable::new().column("Process details", Align::Left);
        let heads = [
            "Direct Rclms",
            "Wokeup Kswapd",
            "Pages Scanned",
            "Pages Rclmed",
            "Pages Sync-IO",
            "Pages ASync-IO",
            "Time Stalled",
        ];
        for head in heads {
            table = table.column(head, Align::Right);
        }
        table = table.column("", Align::Left);
        let direct = |p: &&ProcessFigures| p.direct_reclaims > 0;
        self.table_of(table, direct, |p| {
            let stalled = p.stalls.get(Span::Direct.name()).map_or(0, |q| q.sum_us);
            let orders = [
                orders("direct", &p.direct_by_order),
                orders("wakeup", &p.requests_by_order),
            ];
            vec![
                p.direct_reclaims.to_string(),
                p.requests.to_string(),
                p.scanned.to_string(),
                p.reclaimed.to_string(),
                format!("{:>13}", p.writes.sync()),
                format!("{:>14}", p.writes.total() - p.writes.sync()),
                format!("{:.3}", stalled as f64 / 1e6),
                orders.concat(),
            ]
        })
    }

    /// A table of processes: those that `shown` takes, up to a limit.
    fn table_of(
        &self,
        mut table: TextTable,
        shown: impl Fn(&&ProcessFigures) -> bool,
        fields: impl Fn(&ProcessFigures) -> Vec<String>,
    ) -> Section<'static> {
        let mut section = Section::new();
        let all: Vec<&ProcessFigures> = self.processes.iter().filter(shown).collect();
        if all.is_empty() {
            return section;
        }
        for process in all.iter().take(PROCESSES_MAX) {
            table.row(std::iter::once(process.key()).chain(fields(process)));
        }
        section.table(table);
        if all.len() > PROCESSES_MAX {
            let more = all.len() - PROCESSES_MAX;
            section.line(format!("and {more} more, whose stalls are shorter"));
        }
        section
    }

    fn kswapd_table(&self) -> Section<'static> {
        let mut table = TextTable::new().column("Kswapd Instance", Align::Left);
        let heads = [
            "Kswapd Wakeups",
            "Order Re-wakeup",
            "Pages Scanned",
            "Pages Rclmed",
            "Pages Sync-IO",
            "Pages ASync-IO",
            "Time Awake",
        ];
        for head in heads {
            table = table.column(head, Align::Right);
        }
        table = table.column("", Align::Left);
        self.table_of(
            table,
            |p| p.kswapd.is_some(),
            |p| {
                let kswapd = p.kswapd.clone().unwrap_or_default();
                let orders = [
                    orders("wake", &kswapd.wakeups_by_order),
                    orders("rewake", &kswapd.rewakeups_by_order),
                ];
                vec![
                    kswapd.wakeups.to_string(),
                    kswapd.rewakeups.to_string(),
                    p.scanned.to_string(),
                    p.reclaimed.to_string(),
                    format!("{:>13}", p.writes.sync()),
                    format!("{:>14}", p.writes.total() - p.writes.sync()),
                    format!("{:.3}", kswapd.awake_ns as f64 / 1e9),
                    orders.concat(),
                ]
            },
        )
    }

    fn stalls_by_process(&self) -> Section<'static> {
        let mut table = stall_columns(
            TextTable::new()
                .column("Process", Align::Left)
                .column("", Align::Left),
        );
        let mut rows = 0;
        for process in &self.processes {
            for span in Span::ALL {
                // Of shrinkers and compaction the sum over all processes, above, is enough.
                let Some(q) = process.stalls.get(span.name()).filter(|_| span.stalls()) else {
                    continue;
                };
                rows += 1;
                if rows <= PROCESSES_MAX {
                    let head = [process.key(), span.label().to_owned()];
                    table.row(head.into_iter().chain(stall_fields(q)));
                }
            }
        }
        let mut section = with_rows(table, rows);
        if rows > PROCESSES_MAX {
            section.line(format!("and {} more", rows - PROCESSES_MAX));
        }
        if self.distributions_short {
            section.line("There are more processes with stalls than are told apart.");
        }
        section
    }

    fn stalls_by_order(&self) -> Section<'static> {
        let groups = self
            .orders
            .iter()
            .map(|o| (o.order.to_string(), &o.direct, &o.memcg));
        stalls_by("Order", groups)
    }

    fn stalls_by_memcg(&self) -> Section<'static> {
        let name = |id: Option<u64>| id.map_or("others".to_owned(), |id| id.to_string());
        let groups = self
            .memcgs
            .iter()
            .map(|m| (name(m.id), &m.direct, &m.memcg));
        stalls_by("Memory cgroup", groups)
    }

    fn check_table(&self) -> Section<'static> {
        let checks = self.checks();
        let mut table = TextTable::new().column(format!("{:<LABELS$}", ""), Align::Left);
        for head in ["Trace", "/proc/vmstat", "Difference"] {
            table = table.column(head, Align::Right);
        }
        for check in &checks {
            let difference = i128::from(check.trace) - i128::from(check.vmstat);
            table.row([
                check.name.to_owned(),
                check.trace.to_string(),
                check.vmstat.to_string(),
                difference.to_string(),
            ]);
        }
        let mut section = with_rows(table, checks.len());
        let scanned = checks
            .iter()
            .filter(|check| check.name.ends_with("scanned"));
        if scanned.clone().any(|check| check.trace > check.vmstat) {
            section.paragraph(MORE_SCANNED, 0);
        }
        section
    }

    fn corrected(&self) -> String {
        let mut text = String::new();
        for correction in self.corrections() {
            let _ = write!(text, "{:>10}  {}", correction.count, correction.text);
            if let (Some(script), Some(here)) = (correction.script, correction.here) {
                let unit = correction.unit;
                let digits = if unit == "s" { 6 } else { 0 };
                let _ = write!(
                    text,
                    ": {script:.digits$} {unit} there, {here:.digits$} {unit} here"
                );
            }
            text.push('\n');
        }
        text
    }

    fn not_computed(&self) -> String {
        let missing = self.missing().into_iter();
        missing
            .map(|(row, why)| format!("{row}: {why}\n"))
            .collect()
    }
}

/// A table, or nothing if it has no rows.
fn with_rows(table: TextTable, rows: usize) -> Section<'static> {
    let mut section = Section::new();
    if rows > 0 {
        section.table(table);
    }
    section
}

/// Lines, what goes on below indented.
fn listed(text: &str, indent: usize) -> Section<'static> {
    let mut section = Section::new();
    if !text.is_empty() {
        section.lines(Lines {
            head: String::new(),
            text: text.to_owned(),
            indent,
            room: Room::Terminal,
            leads: false,
        });
    }
    section
}

fn stalls_by<'q>(
    what: &str,
    groups: impl Iterator<Item = (String, &'q Quantiles, &'q Quantiles)>,
) -> Section<'static> {
    let mut table = stall_columns(
        TextTable::new()
            .column(what, Align::Left)
            .column("", Align::Left),
    );
    let mut rows = 0;
    for (name, direct, memcg) in groups {
        for (span, q) in [(Span::Direct, direct), (Span::Memcg, memcg)] {
            if q.count > 0 {
                rows += 1;
                let head = [name.clone(), span.label().to_owned()];
                table.row(head.into_iter().chain(stall_fields(q)));
            }
        }
    }
    with_rows(table, rows)
}

fn stall_columns(table: TextTable) -> TextTable {
    ["Number", "Sum s", "p50 us", "p95 us", "p99 us", "max us"]
        .into_iter()
        .fold(table, |table, head| table.column(head, Align::Right))
}

fn stall_fields(q: &Quantiles) -> [String; 6] {
    let us = |value: Option<u64>| value.map_or("-".to_owned(), |us| us.to_string());
    [
        q.count.to_string(),
        format!("{:.3}", q.sum_us as f64 / 1e6),
        us(q.p50_us),
        us(q.p95_us),
        us(q.p99_us),
        us(q.max_us),
    ]
}

/// `wake-0=2 wake-3=1 `.
fn orders(head: &str, counts: &BTreeMap<usize, u64>) -> String {
    let parts = counts
        .iter()
        .map(|(order, count)| format!("{head}-{order}={count} "));
    parts.collect()
}

impl Span {
    /// Whether it is time for which somebody waits for memory.
    fn stalls(self) -> bool {
        !matches!(
            self,
            Span::ShrinkSlab | Span::Compaction | Span::BalancePgdat
        )
    }
}

impl ProcessFigures {
    /// Name and process id as traces have them.
    pub fn key(&self) -> String {
        if self.pid < 0 {
            self.name.clone()
        } else {
            format!("{}-{}", self.name, self.pid)
        }
    }
}
