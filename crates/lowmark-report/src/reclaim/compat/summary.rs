//! What the kernel's script prints: its totals, its summary, its tables by process.

use super::{CompatReport, ORDERS, Process};
use crate::reclaim::pages::count;
use crate::stats;
use crate::table::{Align, PlainStyle, TextTable};
use lowmark_record::{Event, Field};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

/// Mode of an isolation that the script leaves out.
const ACTIVE: i64 = 2;

/// What a process is called when its name is empty and names are what counts.
const NO_NAME: &str = "NO_PROCESS_NAME";

/// Pages, by what happened to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CompatCounts {
    /// Pages scanned.
    pub scanned: u64,
    /// Of these, file pages.
    pub file_scanned: u64,
    /// Of these, anonymous pages.
    pub anon_scanned: u64,
    /// Pages reclaimed.
    pub reclaimed: u64,
    /// Of these, file pages.
    pub file_reclaimed: u64,
    /// Of these, anonymous pages.
    pub anon_reclaimed: u64,
    /// File pages written synchronously.
    pub write_file_sync: u64,
    /// Anonymous pages written synchronously.
    pub write_anon_sync: u64,
    /// File pages written asynchronously.
    pub write_file_async: u64,
    /// Anonymous pages written asynchronously.
    pub write_anon_async: u64,
}

impl CompatCounts {
    pub(super) fn isolate(&mut self, event: &Event, file: bool) {
        if event.signed(Field::IsolateMode) == Some(ACTIVE) {
            return;
        }
        let scanned = count(event, Field::NrScanned);
        self.scanned = self.scanned.saturating_add(scanned);
        let part = if file {
            &mut self.file_scanned
        } else {
            &mut self.anon_scanned
        };
        *part = part.saturating_add(scanned);
    }

    pub(super) fn reclaim(&mut self, reclaimed: u64, file: bool) {
        self.reclaimed = self.reclaimed.saturating_add(reclaimed);
        let part = if file {
            &mut self.file_reclaimed
        } else {
            &mut self.anon_reclaimed
        };
        *part = part.saturating_add(reclaimed);
    }

    pub(super) fn write(&mut self, file: bool, sync: bool) {
        *match (file, sync) {
            (true, true) => &mut self.write_file_sync,
            (false, true) => &mut self.write_anon_sync,
            (true, false) => &mut self.write_file_async,
            (false, false) => &mut self.write_anon_async,
        } += 1;
    }

    fn join(&mut self, other: &CompatCounts) {
        let sums = [
            (&mut self.scanned, other.scanned),
            (&mut self.file_scanned, other.file_scanned),
            (&mut self.anon_scanned, other.anon_scanned),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.file_reclaimed, other.file_reclaimed),
            (&mut self.anon_reclaimed, other.anon_reclaimed),
            (&mut self.write_file_sync, other.write_file_sync),
            (&mut self.write_anon_sync, other.write_anon_sync),
            (&mut self.write_file_async, other.write_file_async),
            (&mut self.write_anon_async, other.write_anon_async),
        ];
        for (sum, part) in sums {
            *sum = sum.saturating_add(part);
        }
    }

    /// In the order of the summary.
    fn in_order(&self) -> [u64; 10] {
        [
            self.scanned,
            self.file_scanned,
            self.anon_scanned,
            self.reclaimed,
            self.file_reclaimed,
            self.anon_reclaimed,
            self.write_file_sync,
            self.write_anon_sync,
            self.write_file_async,
            self.write_anon_async,
        ]
    }
}

/// What the script says of one process, or of all of one name.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CompatProcess {
    /// Name and process id, or the name.
    pub name: String,
    /// Direct reclaims begun; a process without any is not in the table of direct reclaim.
    pub direct_reclaims: u64,
    /// The same by order.
    pub direct_by_order: [u64; ORDERS],
    /// Wakes of kswapd asked for.
    pub requests: u64,
    /// The same by order.
    pub requests_by_order: [u64; ORDERS],
    /// Times that it woke; a process without any is not in the table of kswapd.
    pub wakes: u64,
    /// The same by order.
    pub wakes_by_order: [u64; ORDERS],
    /// Times that it was woken while awake.
    pub rewakes: u64,
    /// The same by order; with `--ignore-pid` the script leaves them out.
    pub rewakes_by_order: [u64; ORDERS],
    /// Pages.
    pub pages: CompatCounts,
    /// `Time Stalled` of its table, s.
    pub stalled_s: f64,
    /// Its part of `Time stalled direct reclaim` of the summary, s.
    pub stalled_in_total_s: f64,
    /// Its part of `Time kswapd awake` of the summary, s.
    pub awake_in_total_s: f64,
}

/// What the script says of a trace.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CompatSummary {
    /// Processes in the order of their first event. (The script's own order is that of a hash.)
    pub processes: Vec<CompatProcess>,
    /// `Direct reclaims`; none, printed as nothing, if no process has any.
    pub direct_reclaims: Option<u64>,
    /// Pages of direct reclaim.
    pub direct: CompatCounts,
    /// `Wake kswapd requests` of processes that reclaim directly.
    pub requests: u64,
    /// `Time stalled direct reclaim`, s.
    pub stalled_s: f64,
    /// `Kswapd wakeups`; none, printed as nothing, if none ever woke.
    pub wakes: Option<u64>,
    /// Pages of kswapd.
    pub kswapd: CompatCounts,
    /// `Time kswapd awake`, s.
    pub awake_s: f64,
}

/// The lists of times of a process, or of a name; NaN for a hole among stalls.
#[derive(Default)]
struct Times {
    holes: u64,
    stalls_ms: Vec<f64>,
    awake_ms: Vec<f64>,
    /// Where stalls go on.
    next: usize,
}

impl Times {
    fn stall(&self, index: usize) -> Option<f64> {
        let index = index.checked_sub(usize::try_from(self.holes).ok()?)?;
        self.stalls_ms.get(index).copied().filter(|ms| !ms.is_nan())
    }

    /// Stalls and times awake as the summary adds them: place by place, until there is neither.
    fn in_total_ms(&self) -> (f64, f64) {
        let (mut stalled, mut awake) = (0.0, 0.0);
        for index in 0.. {
            match (self.stall(index), self.awake_ms.get(index)) {
                (Some(ms), _) => stalled += ms,
                (None, Some(ms)) => awake += ms,
                (None, None) => break,
            }
        }
        (stalled, awake)
    }

    /// Stalls as the table by process adds them.
    fn stalled_ms(&self) -> f64 {
        stats::sum((0..).map_while(|index| self.stall(index)))
    }

    /// Takes the lists of a process as `--ignore-pid` does.
    fn take(&mut self, process: &Process) {
        if process.holes == 0 {
            for ms in &process.stalls_ms {
                if self.stalls_ms.len() <= self.next {
                    self.stalls_ms.resize(self.next + 1, f64::NAN);
                }
                self.stalls_ms[self.next] = *ms;
                self.next += 1;
            }
        }
        for (index, ms) in process.awake_ms.iter().enumerate() {
            match self.awake_ms.get_mut(index) {
                Some(place) => *place = *ms,
                None => self.awake_ms.push(*ms),
            }
        }
        // Meant for the list of times awake, kept for that of stalls.
        self.next = process.awake_ms.len();
    }
}

fn join(sums: &mut [u64; ORDERS], parts: &[u64; ORDERS]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += part;
    }
}

impl CompatProcess {
    fn take(&mut self, process: &Process) {
        self.direct_reclaims += process.begins;
        join(&mut self.direct_by_order, &process.begins_by_order);
        self.requests += process.requests;
        join(&mut self.requests_by_order, &process.requests_by_order);
        self.wakes += process.wakes;
        join(&mut self.wakes_by_order, &process.wakes_by_order);
        self.rewakes += process.rewakes;
        self.pages.join(&process.pages);
    }

    fn time(&mut self, times: &Times) {
        let (stalled, awake) = times.in_total_ms();
        self.stalled_s = times.stalled_ms() / 1000.0;
        self.stalled_in_total_s = stalled / 1000.0;
        self.awake_in_total_s = awake / 1000.0;
    }
}

impl CompatReport {
    /// What the script prints. With `ignore_pid` as with `--ignore-pid`, which folds processes of one name;
    /// the script does that in the order of a hash, which changes from run to run and with it the time
    /// stalled: here it is the order of first events.
    pub fn summary(&self, ignore_pid: bool) -> CompatSummary {
        if ignore_pid {
            return self.summary_in_order(&[]);
        }
        CompatSummary::of(self.processes.iter().map(by_process).collect())
    }

    /// The same with `--ignore-pid`, processes being folded in the order of these keys (name, `-`, process
    /// id) and then in that of first events.
    pub fn summary_in_order(&self, keys: &[&str]) -> CompatSummary {
        let place = |p: &&Process| keys.iter().position(|key| *key == p.key);
        let mut processes: Vec<&Process> = self.processes.iter().collect();
        if !keys.is_empty() {
            processes.sort_by_cached_key(|p| place(p).unwrap_or(usize::MAX));
        }
        CompatSummary::of(by_name(&processes))
    }
}

impl CompatSummary {
    fn of(processes: Vec<CompatProcess>) -> CompatSummary {
        let mut summary = CompatSummary {
            processes,
            ..CompatSummary::default()
        };
        for process in &summary.processes {
            summary.stalled_s += process.stalled_in_total_s;
            summary.awake_s += process.awake_in_total_s;
            if process.direct_reclaims > 0 {
                *summary.direct_reclaims.get_or_insert_default() += process.direct_reclaims;
                summary.direct.join(&process.pages);
                summary.requests += process.requests;
            }
            if process.wakes > 0 {
                *summary.wakes.get_or_insert_default() += process.wakes;
                summary.kswapd.join(&process.pages);
            }
        }
        summary
    }
}

fn by_name(processes: &[&Process]) -> Vec<CompatProcess> {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<(CompatProcess, Times)> = Vec::new();
    for process in processes {
        let name = process.key.rsplit_once('-').map_or("", |(name, _)| name);
        let name = if name.is_empty() { NO_NAME } else { name };
        let index = *indices.entry(name).or_insert(names.len());
        if index == names.len() {
            let named = CompatProcess {
                name: name.to_owned(),
                ..CompatProcess::default()
            };
            names.push((named, Times::default()));
        }
        let (named, times) = &mut names[index];
        named.take(process);
        times.take(process);
    }
    let timed = names.into_iter().map(|(mut named, times)| {
        named.time(&times);
        named
    });
    timed.collect()
}

fn by_process(process: &Process) -> CompatProcess {
    let mut alone = CompatProcess {
        name: process.key.clone(),
        rewakes_by_order: process.rewakes_by_order,
        ..CompatProcess::default()
    };
    alone.take(process);
    alone.time(&Times {
        holes: process.holes,
        stalls_ms: process.stalls_ms.clone(),
        awake_ms: process.awake_ms.clone(),
        next: 0,
    });
    alone
}

/// Heads of the lines about pages; in the script's text each is followed by `\t` until its value.
const DIRECT_PAGES: [&str; 10] = [
    "Direct reclaim pages scanned:\t\t",
    "Direct reclaim file pages scanned:\t",
    "Direct reclaim anon pages scanned:\t",
    "Direct reclaim pages reclaimed:\t\t",
    "Direct reclaim file pages reclaimed:\t",
    "Direct reclaim anon pages reclaimed:\t",
    "Direct reclaim write file sync I/O:\t",
    "Direct reclaim write anon sync I/O:\t",
    "Direct reclaim write file async I/O:\t",
    "Direct reclaim write anon async I/O:\t",
];

const KSWAPD_PAGES: [&str; 10] = [
    "Kswapd pages scanned:\t\t\t",
    "Kswapd file pages scanned:\t\t",
    "Kswapd anon pages scanned:\t\t",
    "Kswapd pages reclaimed:\t\t\t",
    "Kswapd file pages reclaimed:\t\t",
    "Kswapd anon pages reclaimed:\t\t",
    "Kswapd reclaim write file sync I/O:\t",
    "Kswapd reclaim write anon sync I/O:\t",
    "Kswapd reclaim write file async I/O:\t",
    "Kswapd reclaim write anon async I/O:\t",
];

impl CompatSummary {
    /// The block `Summary` to the letter, so that it can be compared with the script's own.
    pub fn summary_text(&self) -> String {
        let mut text = "Summary\n".to_owned();
        let value = |known: bool, value: u64| {
            if known {
                value.to_string()
            } else {
                String::new()
            }
        };
        let mut line = |head: &str, value: String| {
            text.push_str(head);
            text.push_str(&value);
            text.push('\n');
        };
        let direct = self.direct_reclaims.is_some();
        let reclaims = self.direct_reclaims.unwrap_or(0);
        line("Direct reclaims:     \t\t\t", value(direct, reclaims));
        for (head, count) in DIRECT_PAGES.iter().zip(self.direct.in_order()) {
            line(head, value(direct, count));
        }
        line("Wake kswapd requests:\t\t\t", value(direct, self.requests));
        line(
            "Time stalled direct reclaim: \t\t",
            format!("{:.2} seconds", self.stalled_s),
        );
        line("", String::new());
        let kswapd = self.wakes.is_some();
        let wakes = self.wakes.unwrap_or(0);
        line("Kswapd wakeups:\t\t\t\t", value(kswapd, wakes));
        for (head, count) in KSWAPD_PAGES.iter().zip(self.kswapd.in_order()) {
            line(head, value(kswapd, count));
        }
        line(
            "Time kswapd awake:\t\t\t",
            format!("{:.2} seconds", self.awake_s),
        );
        text
    }

    /// The script's report: its tables by process and its summary. Its tables print values under the wrong
    /// heads since it has values by file and anon; here each stands under its own.
    pub fn text(&self) -> String {
        let mut text = self.direct_table();
        text.push('\n');
        text.push_str(&self.kswapd_table());
        text.push('\n');
        text.push_str(&self.summary_text());
        text
    }

    fn direct_table(&self) -> String {
        let mut table = TextTable::new().column("Process details", Align::Left);
        for head in [
            "Direct Rclms",
            "Wokeup Kswapd",
            "Pages Scanned",
            "Pages Rclmed",
            "Pages Sync-IO",
            "Pages ASync-IO",
            "Time Stalled",
        ] {
            table = table.column(head, Align::Right);
        }
        table = table.column("", Align::Left);
        for process in self.processes.iter().filter(|p| p.direct_reclaims > 0) {
            let pages = &process.pages;
            let orders = [
                orders("direct", &process.direct_by_order),
                orders("wakeup", &process.requests_by_order),
            ];
            table.row([
                process.name.clone(),
                process.direct_reclaims.to_string(),
                process.requests.to_string(),
                pages.scanned.to_string(),
                pages.reclaimed.to_string(),
                format!("{:>13}", pages.write_file_sync + pages.write_anon_sync),
                format!("{:>14}", pages.write_file_async + pages.write_anon_async),
                format!("{:.3}", process.stalled_s),
                orders.concat(),
            ]);
        }
        table.render(&PlainStyle, None)
    }

    fn kswapd_table(&self) -> String {
        let mut table = TextTable::new().column("Kswapd Instance", Align::Left);
        for head in [
            "Kswapd Wakeups",
            "Order Re-wakeup",
            "Pages Scanned",
            "Pages Rclmed",
            "Pages Sync-IO",
            "Pages ASync-IO",
        ] {
            table = table.column(head, Align::Right);
        }
        table = table.column("", Align::Left);
        for process in self.processes.iter().filter(|p| p.wakes > 0) {
            let pages = &process.pages;
            let orders = [
                orders("wake", &process.wakes_by_order),
                orders("rewake", &process.rewakes_by_order),
            ];
            table.row([
                process.name.clone(),
                process.wakes.to_string(),
                process.rewakes.to_string(),
                pages.scanned.to_string(),
                pages.reclaimed.to_string(),
                format!("{:>13}", pages.write_file_sync + pages.write_anon_sync),
                format!("{:>14}", pages.write_file_async + pages.write_anon_async),
                orders.concat(),
            ]);
        }
        table.render(&PlainStyle, None)
    }
}

/// `wake-0=2 wake-3=1 `, of orders that happened.
fn orders(head: &str, counts: &[u64; ORDERS]) -> String {
    let mut text = String::new();
    for (order, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{head}-{order}={count} ");
    }
    text
}
