//! What the recording of a host says without its events: who waited, what memory management did, which disks and tasks
//! were busy, and what it cost to record that.

use crate::document::Section;
use crate::table::{Align, Field, Role, Style, TextTable};
use lowmark_record::{CounterLog, Recording, System};
use serde::Serialize;

/// Most tasks that are shown, the busiest first.
const TASKS_SHOWN: usize = 10;

/// Counters of `/proc/vmstat` that say what memory management did, with what they count. Where several names follow,
/// kernels of different eras have one or the other.
const COUNTERS: [(&str, &[&str]); 22] = [
    ("pages swapped in", &["pswpin"]),
    ("pages swapped out", &["pswpout"]),
    ("major faults", &["pgmajfault"]),
    (
        "anonymous pages read again after reclaim",
        &["workingset_refault_anon"],
    ),
    (
        "file pages read again after reclaim",
        &["workingset_refault_file", "workingset_refault"],
    ),
    ("pages scanned by kswapd", &["pgscan_kswapd"]),
    ("pages scanned by tasks", &["pgscan_direct"]),
    ("pages reclaimed by kswapd", &["pgsteal_kswapd"]),
    ("pages reclaimed by tasks", &["pgsteal_direct"]),
    ("tasks that had to reclaim, DMA zone", &["allocstall_dma"]),
    (
        "tasks that had to reclaim, DMA32 zone",
        &["allocstall_dma32"],
    ),
    (
        "tasks that had to reclaim, Normal zone",
        &["allocstall_normal", "allocstall"],
    ),
    (
        "tasks that had to reclaim, Movable zone",
        &["allocstall_movable"],
    ),
    ("runs of kswapd", &["pageoutrun"]),
    ("tasks that had to compact memory", &["compact_stall"]),
    ("compactions that succeeded", &["compact_success"]),
    ("huge pages at a fault", &["thp_fault_alloc"]),
    (
        "huge pages that could not be had at a fault",
        &["thp_fault_fallback"],
    ),
    ("pages dirtied", &["nr_dirtied"]),
    ("pages written", &["nr_written"]),
    ("pages written by reclaim", &["nr_vmscan_write"]),
    ("processes killed for want of memory", &["oom_kill"]),
];

/// What a host was waiting for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pressure {
    /// `memory`, `io` or `cpu`.
    pub resource: &'static str,
    /// Time in which some task waited, s.
    pub some_s: f64,
    /// Time in which all tasks that could have run waited, s; none where the kernel does not count it.
    pub full_s: Option<f64>,
}

/// What a disk did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Bytes read, MiB.
    pub read_mib: f64,
    /// Bytes written, MiB.
    pub written_mib: f64,
    /// Average time of a read, ms; none if there was none.
    pub read_ms: Option<f64>,
    /// Average time of a write, ms; none if there was none.
    pub write_ms: Option<f64>,
    /// Part of the time in which it was at work.
    pub busy: f64,
}

/// What a task did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// CPU time, s.
    pub cpu_s: f64,
    /// Major faults.
    pub major_faults: u64,
    /// Pages that it had in memory, at most.
    pub rss_pages_max: u64,
    /// Part of the looks at which it waited for something that cannot be interrupted, mostly a disk.
    pub waiting: f64,
}

/// A setting that is not what it was at the begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its file.
    pub file: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostReport {
    /// Name of the host.
    pub host: String,
    /// `uname -r`.
    pub kernel: String,
    /// Length, s.
    pub elapsed_s: f64,
    /// What tasks waited for.
    pub pressure: Vec<Pressure>,
    /// What memory management did, and how often; what did not happen is left out.
    pub counters: Vec<(&'static str, u64)>,
    /// Disks that did something.
    pub disks: Vec<Disk>,
    /// The busiest tasks.
    pub tasks: Vec<Task>,
    /// Settings that changed meanwhile: figures from before and after are of two systems.
    pub changed: Vec<Changed>,
    /// Looks at counters.
    pub looks: u64,
    /// Looks that did not take place in time.
    pub missed_looks: u64,
    /// CPU time of the recorder, s.
    pub recorder_cpu_s: f64,
    /// The same, of one CPU, %.
    pub recorder_percent: f64,
    /// What was recorded otherwise than asked for.
    pub notes: Vec<String>,
}

impl HostReport {
    /// The report on a recording; none if it is not one of a host that was in use.
    pub fn new(recording: &Recording) -> Option<HostReport> {
        let system = recording.system.as_ref()?;
        let recorder = system.recorder.as_ref()?;
        let elapsed_s = seconds(recording.elapsed_ns);
        let counters = COUNTERS.iter().filter_map(|(what, names)| {
            let value = names.iter().find_map(|name| recording.counters.get(*name));
            value
                .filter(|value| **value > 0)
                .map(|value| (*what, *value))
        });
        Some(HostReport {
            host: recording.run.machine.clone(),
            kernel: system.release.clone(),
            elapsed_s,
            pressure: pressure(system),
            counters: counters.collect(),
            disks: disks(system, elapsed_s),
            tasks: tasks(recording, system),
            changed: changed(system),
            looks: recorder.looks,
            missed_looks: recorder.missed_looks,
            recorder_cpu_s: seconds(recorder.cpu_ns),
            recorder_percent: 100.0 * recorder.cpu_ns as f64 / recorder.wall_ns.max(1) as f64,
            notes: system.notes.clone(),
        })
    }

    /// As text for people.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// For people, to be written.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::titled(format!(
            "{}, Linux {}, {:.1} s",
            self.host, self.kernel, self.elapsed_s
        ));
        section.line(format!(
            "lowmark took {} looks and missed {}; it used {:.3} s of CPU time, {:.2} % of one CPU.",
            self.looks, self.missed_looks, self.recorder_cpu_s, self.recorder_percent
        ));
        for note in &self.notes {
            section.line(format!("note: {note}"));
        }
        let blocks = [
            ("Waiting", self.pressure_table()),
            ("Memory", self.counter_table()),
            ("Disks", self.disk_table()),
            ("Busiest tasks", self.task_table()),
            ("Settings that changed meanwhile", self.changed_table()),
        ];
        for (title, table) in blocks {
            let mut body = Section::new();
            table.into_iter().for_each(|table| body.table(table));
            section.part(title, body);
        }
        section
    }

    fn pressure_table(&self) -> Option<TextTable> {
        let mut table = TextTable::new()
            .column("for", Align::Left)
            .column("some task, s", Align::Right)
            .column("all tasks, s", Align::Right);
        let share = |s: f64| {
            let percent = 100.0 * s / self.elapsed_s.max(1e-9);
            Field::with_percent(format!("{s:.3}"), percent, Role::Plain)
        };
        for pressure in &self.pressure {
            let full = pressure.full_s.map_or_else(|| Field::from("-"), share);
            table.row([Field::from(pressure.resource), share(pressure.some_s), full]);
        }
        (!self.pressure.is_empty()).then_some(table)
    }

    fn counter_table(&self) -> Option<TextTable> {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("number", Align::Right)
            .column("each second", Align::Right);
        for (what, value) in &self.counters {
            let rate = *value as f64 / self.elapsed_s.max(1e-9);
            table.row([(*what).to_owned(), value.to_string(), format!("{rate:.1}")]);
        }
        (!self.counters.is_empty()).then_some(table)
    }

    fn disk_table(&self) -> Option<TextTable> {
        let mut table = TextTable::new().column("", Align::Left);
        for heading in [
            "read MiB",
            "ms a read",
            "written MiB",
            "ms a write",
            "busy %",
        ] {
            table = table.column(heading, Align::Right);
        }
        let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
        for disk in &self.disks {
            table.row([
                disk.name.clone(),
                format!("{:.1}", disk.read_mib),
                time(disk.read_ms),
                format!("{:.1}", disk.written_mib),
                time(disk.write_ms),
                format!("{:.1}", 100.0 * disk.busy),
            ]);
        }
        (!self.disks.is_empty()).then_some(table)
    }

    fn task_table(&self) -> Option<TextTable> {
        let mut table = TextTable::new().column("", Align::Left);
        for heading in [
            "process",
            "CPU s",
            "major faults",
            "most pages",
            "waiting %",
        ] {
            table = table.column(heading, Align::Right);
        }
        for task in &self.tasks {
            table.row([
                task.name.clone(),
                task.pid.to_string(),
                format!("{:.2}", task.cpu_s),
                task.major_faults.to_string(),
                task.rss_pages_max.to_string(),
                format!("{:.0}", 100.0 * task.waiting),
            ]);
        }
        (!self.tasks.is_empty()).then_some(table)
    }

    fn changed_table(&self) -> Option<TextTable> {
        let mut table = TextTable::new();
        for heading in ["", "before", "after"] {
            table = table.column(heading, Align::Left);
        }
        for changed in &self.changed {
            table.row([&changed.file, &changed.before, &changed.after].map(String::as_str));
        }
        (!self.changed.is_empty()).then_some(table)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// By how much a counter of a log has grown; none if it was never there.
fn grown(log: &CounterLog, name: &str) -> Option<u64> {
    let values = log.values(name);
    let (first, last) = (values.first()?.1, values.last()?.1);
    Some(last.saturating_sub(first))
}

fn pressure(system: &System) -> Vec<Pressure> {
    let resources = ["memory", "io", "cpu"].into_iter();
    let pressure = resources.filter_map(|resource| {
        let log = system.history_of(&format!("proc/pressure/{resource}"))?;
        let time = |name: &str| grown(log, name).map(|us| us as f64 / 1e6);
        Some(Pressure {
            resource,
            some_s: time("some")?,
            full_s: time("full"),
        })
    });
    pressure.collect()
}

fn disks(system: &System, elapsed_s: f64) -> Vec<Disk> {
    const SECTORS_PER_MIB: f64 = 2048.0;
    let Some(log) = system.history_of("proc/diskstats") else {
        return Vec::new();
    };
    let names = log
        .names()
        .iter()
        .filter_map(|name| name.strip_suffix("/reads"));
    let disks = names.map(|name| {
        let number = |field: &str| grown(log, &format!("{name}/{field}")).unwrap_or(0) as f64;
        let average = |ms: f64, requests: f64| (requests > 0.0).then(|| ms / requests);
        Disk {
            name: name.to_owned(),
            read_mib: number("sectors_read") / SECTORS_PER_MIB,
            written_mib: number("sectors_written") / SECTORS_PER_MIB,
            read_ms: average(number("read_ms"), number("reads")),
            write_ms: average(number("write_ms"), number("writes")),
            busy: number("io_ms") / 1e3 / elapsed_s.max(1e-9),
        }
    });
    let used = |disk: &Disk| disk.read_ms.is_some() || disk.write_ms.is_some();
    disks.filter(used).collect()
}

fn tasks(recording: &Recording, system: &System) -> Vec<Task> {
    const WAITING: u64 = b'D' as u64;
    let logs = system.history.iter();
    let tasks = logs.filter_map(|log| {
        let times = recording.tasks.get(log.task? as usize)?;
        let states = log.values("state");
        let waiting = states.iter().filter(|(_, state)| *state == WAITING).count();
        let rss = log.values("rss").into_iter().map(|(_, pages)| pages).max();
        Some(Task {
            name: times.name.clone(),
            pid: times.pid,
            cpu_s: seconds(times.user_ns + times.system_ns),
            major_faults: grown(log, "majflt").unwrap_or(0),
            rss_pages_max: rss.unwrap_or(0),
            waiting: waiting as f64 / states.len().max(1) as f64,
        })
    });
    let mut tasks: Vec<Task> = tasks.collect();
    tasks.sort_by(|a, b| {
        let order = b.cpu_s.total_cmp(&a.cpu_s);
        order
            .then(b.major_faults.cmp(&a.major_faults))
            .then(a.pid.cmp(&b.pid))
    });
    tasks.truncate(TASKS_SHOWN);
    tasks
}

/// Settings are the files of which a value is expected to stay.
fn changed(system: &System) -> Vec<Changed> {
    let settings = |file: &str| {
        [
            "proc/sys/vm/",
            "proc/swaps",
            "sys/kernel/mm/",
            "sys/block/",
            "sys/module/",
        ]
        .iter()
        .any(|prefix| file.starts_with(prefix))
    };
    // Counters among them, and of swap areas what is in use.
    let counts = |file: &str| file.ends_with("/pages_collapsed") || file.ends_with("/full_scans");
    let areas = |text: &str| {
        let lines = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next());
        lines.collect::<Vec<_>>().join(" ")
    };
    let files = system
        .before
        .iter()
        .filter(|(file, _)| settings(file) && !counts(file));
    let changed = files.filter_map(|(file, before)| {
        let after = system.after.get(file)?;
        let value = |text: &str| match file.as_str() {
            "proc/swaps" => areas(text),
            _ => text.trim().to_owned(),
        };
        let (before, after) = (value(before), value(after));
        (before != after).then(|| Changed {
            file: file.clone(),
            before,
            after,
        })
    });
    changed.collect()
}

#[cfg(test)]
mod tests;
