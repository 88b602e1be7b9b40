//! What is known besides the events: counters, series of them, pressure, zones, disks, settings.
//!
//! 1. Of a recording all that it has is taken; beside a trace, texts of `/proc/vmstat` and `/proc/pressure` can be
//!    given.
//! 2. What cannot be read is as if it were not there: a kernel need not have any of these files.

use super::series::CounterSeries;
use crate::reclaim::VmstatChange;
use lowmark_record::{CounterLog, Outcome, Recording, Release};
use std::collections::BTreeMap;

/// Sectors of `/proc/diskstats` in a page.
const SECTORS_PER_PAGE: u64 = 8;

/// A text that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurroundingsError {
    /// Not `/proc/pressure/memory`.
    #[error("no line `some ... total=N`; expected the content of /proc/pressure/memory")]
    Pressure,
    /// Pressure went back.
    #[error(
        "pressure stall time goes back from {0} to {1} us; expected the text before, then that after"
    )]
    Back(u64, u64),
}

/// Pressure stall time over the capture (`/proc/pressure`), ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some_ns: u64,
}

impl Pressure {
    /// What passed between two texts of a file below `/proc/pressure`.
    ///
    /// # Errors
    ///
    /// One of them has no line of `some`, or they are in the wrong order.
    pub fn between(before: &str, after: &str) -> Result<Pressure, SurroundingsError> {
        let total = |text: &str| total_us(text).ok_or(SurroundingsError::Pressure);
        let (before, after) = (total(before)?, total(after)?);
        let passed = after.checked_sub(before);
        let passed = passed.ok_or(SurroundingsError::Back(before, after))?;
        Ok(Pressure {
            some_ns: passed.saturating_mul(1000),
        })
    }
}

fn total_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

/// What a device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// Whether there is swap on it.
    pub swap: bool,
    /// Time of its reads, ms.
    pub read_ms: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Time for which it was busy, ms.
    pub busy_ms: u64,
}

/// What is known besides the events.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What is said of the machine in the heading, such as the kernel.
    pub heading: Vec<String>,
    /// Change of `/proc/vmstat` and of other counters; none if it is not known.
    pub counters: Option<BTreeMap<String, u64>>,
    /// Counters and levels over time.
    pub series: CounterSeries,
    /// Pressure of memory.
    pub memory_pressure: Option<Pressure>,
    /// Pressure of I/O.
    pub io_pressure: Option<Pressure>,
    /// Kernel as it names itself.
    pub kernel: Option<String>,
    /// Devices, by name.
    pub disks: BTreeMap<String, Disk>,
    /// By device the times of looks, ns, and for how long it had been busy then, ms; empty if nobody looked again and again.
    pub busy: BTreeMap<String, Vec<(u64, u64)>>,
    /// Sizes in `/proc/meminfo` at the end, pages; of free swap the least, as far as somebody looked.
    pub meminfo: BTreeMap<String, u64>,
    /// Watermarks min, low and high of all zones together, pages.
    pub watermarks: Option<[u64; 3]>,
    /// Pages that the kernel manages in all zones (`managed` of `/proc/zoneinfo`).
    pub managed: Option<u64>,
    /// Watermark boost (`boost` of `/proc/zoneinfo`) at its highest, as far as somebody looked, pages of all zones.
    pub boost: Option<u64>,
    /// Time that the capture covers, ns, if it is known apart from the events.
    pub elapsed_ns: Option<u64>,
    /// Whether `memory.events` of every memory cgroup is known, and none was at `memory.max` or above `memory.high`.
    pub no_group_at_limit: bool,
    /// Whether the run ended out of memory.
    pub out_of_memory: bool,
}

impl Surroundings {
    /// What a trace is told with: the change of counters.
    pub fn of_vmstat(change: &VmstatChange) -> Surroundings {
        Surroundings {
            counters: Some(change.counters.clone()),
            ..Surroundings::default()
        }
    }

    /// What a recording says.
    pub fn of_recording(recording: &Recording) -> Surroundings {
        let mut all = Surroundings {
            heading: vec![
                format!("{} on {}", recording.run.workload, recording.run.machine),
                format!("kernel {}", recording.run.kernel),
            ],
            counters: Some(recording.counters.clone()),
            series: CounterSeries::of(&recording.gauges),
            kernel: Some(recording.run.kernel.clone()),
            elapsed_ns: Some(recording.elapsed_ns),
            out_of_memory: matches!(recording.outcome, Outcome::OutOfMemory { .. }),
            ..Surroundings::default()
        };
        all.model_disks();
        let Some(system) = &recording.system else {
            return all;
        };
        if !system.release.is_empty() {
            all.kernel = Some(system.release.clone());
        }
        // The recorder of a host looks at some groups, that of a guest at all.
        all.no_group_at_limit = system.recorder.is_none() && no_group_at_limit(&recording.counters);
        if !system.vmstat.is_empty() {
            all.series = CounterSeries::of(&system.vmstat);
        }
        let text = |files: &BTreeMap<String, String>, path: &str| files.get(path).cloned();
        let pressure = |what: &str| {
            let path = format!("proc/pressure/{what}");
            let (before, after) = (text(&system.before, &path)?, text(&system.after, &path)?);
            Pressure::between(&before, &after).ok()
        };
        all.memory_pressure = pressure("memory");
        all.io_pressure = pressure("io");
        if let Some(text) = text(&system.after, "proc/meminfo") {
            all.meminfo = meminfo(&text);
        }
        // What tasks had in swap is free again when they have ended: the least counts.
        let free = system
            .history_of("proc/meminfo")
            .map(|log| log.values("SwapFree"));
        if let Some(least) = free.iter().flatten().map(|(_, kb)| kb / 4).min() {
            let free = all.meminfo.entry("SwapFree".to_owned()).or_insert(least);
            *free = least.min(*free);
        }
        if let Some(text) = text(&system.before, "proc/zoneinfo") {
            all.watermarks = Some(["min", "low", "high"].map(|name| zones(&text, name)));
            all.managed = Some(zones(&text, "managed")).filter(|pages| *pages > 0);
        }
        let at_the_end = text(&system.after, "proc/zoneinfo").map(|text| zones(&text, "boost"));
        let over_time = system.history_of("proc/zoneinfo").and_then(most_boost);
        all.boost = at_the_end.max(over_time);
        let swaps = text(&system.before, "proc/swaps").unwrap_or_default();
        if let (Some(before), Some(after)) = (
            text(&system.before, "proc/diskstats"),
            text(&system.after, "proc/diskstats"),
        ) {
            all.disks = disks(&before, &after, &swaps);
            if let Some(log) = system.history_of("proc/diskstats") {
                let times = |name: &String| (name.clone(), log.values(&format!("{name}/io_ms")));
                all.busy = all.disks.keys().map(times).collect();
            }
        }
        all
    }

    /// The model counts what its devices did as `DEVICE/name`.
    fn model_disks(&mut self) {
        let counters = self.counters.iter().flatten();
        for (name, value) in counters {
            let Some((device, field)) = name.split_once('/') else {
                continue;
            };
            match field {
                "io_ticks_ms" => self.disks.entry(device.to_owned()).or_default().busy_ms = *value,
                "sectors_written" => {
                    self.disks
                        .entry(device.to_owned())
                        .or_default()
                        .pages_written = *value / SECTORS_PER_PAGE;
                }
                _ => {}
            }
        }
    }

    /// Whether anything but events is known: counters, pressure or what disks did.
    pub(super) fn has_counts(&self) -> bool {
        let pressure = self.memory_pressure.is_some() || self.io_pressure.is_some();
        pressure || self.counters.is_some() || !self.disks.is_empty()
    }

    /// The release of the kernel, if it names one.
    pub fn release(&self) -> Option<Release> {
        self.kernel.as_ref()?.parse().ok()
    }
}

/// Sum of a line of `/proc/zoneinfo` over all zones.
fn zones(text: &str, name: &str) -> u64 {
    let values = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    });
    values.fold(0, u64::saturating_add)
}

/// The highest sum of all zones' boosts of one look.
fn most_boost(zoneinfo: &CounterLog) -> Option<u64> {
    let is_boost = |name: &String| name.ends_with("/boost");
    let zones = zoneinfo.names().iter().filter(|name| is_boost(name));
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (time_ns, boost) in zones.flat_map(|name| zoneinfo.values(name)) {
        let sum = sums.entry(time_ns).or_default();
        *sum = sum.saturating_add(boost);
    }
    sums.into_values().max()
}

/// Whether there are memory cgroups, and none of them was at a limit.
fn no_group_at_limit(counters: &BTreeMap<String, u64>) -> bool {
    let of_events = |name: &str| name.starts_with("cgroup/") && name.contains("memory.events.");
    let at_limit = |name: &str| {
        [".max", ".high", ".oom"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let events = counters.iter().filter(|(name, _)| of_events(name));
    let limits: Vec<u64> = events
        .filter(|(name, _)| at_limit(name))
        .map(|(_, n)| *n)
        .collect();
    !limits.is_empty() && limits.iter().all(|times| *times == 0)
}

/// Sizes, pages.
fn meminfo(text: &str) -> BTreeMap<String, u64> {
    let sizes = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let kb: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some((name.to_owned(), kb / 4))
    });
    sizes.collect()
}

/// What devices did between two texts of `/proc/diskstats`.
fn disks(before: &str, after: &str, swaps: &str) -> BTreeMap<String, Disk> {
    let read = |text: &str| -> BTreeMap<String, [u64; 3]> {
        let lines = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let number = |at: usize| words.get(at)?.parse().ok();
            // Behind major, minor and name: 11 fields; the 4th, 7th and 10th are these.
            let fields = [number(6)?, number(9)?, number(12)?];
            Some(((*words.get(2)?).to_owned(), fields))
        });
        lines.collect()
    };
    let before = read(before);
    let changes = read(after).into_iter().map(|(name, after)| {
        let before = before.get(&name).copied().unwrap_or_default();
        let change = |at: usize| u64::saturating_sub(after[at], before[at]);
        let on_it = |line: &str| {
            let path = line.split_ascii_whitespace().next().unwrap_or("");
            path.strip_prefix("/dev/").is_some_and(|p| p == name)
        };
        let disk = Disk {
            swap: swaps.lines().any(on_it),
            read_ms: change(0),
            pages_written: change(1) / SECTORS_PER_PAGE,
            busy_ms: change(2),
        };
        (name, disk)
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_what_passed() {
        let text = |total: u64| {
            format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0.00 total=1\n"
            )
        };
        let passed = Pressure::between(&text(500), &text(2000)).expect("valid");
        assert_eq!(passed.some_ns, 1_500_000);
        assert_eq!(
            Pressure::between(&text(2), &text(1)),
            Err(SurroundingsError::Back(2, 1))
        );
        assert_eq!(
            Pressure::between("", &text(1)),
            Err(SurroundingsError::Pressure)
        );
    }

    #[test]
    fn disks_and_zones() {
        let before = " 254 0 vda 1 0 8 10 2 0 16 5 0 7 15\n";
        let after = " 254 0 vda 9 0 88 60 4 0 96 9 0 27 69\n";
        let swaps = "Filename Type Size Used Priority\n/dev/vda partition 1 0 -2\n";
        let disk = disks(before, after, swaps)["vda"];
        let expected = Disk {
            swap: true,
            read_ms: 50,
            pages_written: 10,
            busy_ms: 20,
        };
        assert_eq!(disk, expected);
        let zoneinfo = "Node 0, zone DMA\n  pages free 3\n        boost    2\n        min      5\nNode 0, zone DMA32\n        min 7\n";
        assert_eq!((zones(zoneinfo, "min"), zones(zoneinfo, "boost")), (12, 2));
        let counters = |max: u64| {
            let names = ["max", "high", "oom"].map(|end| format!("cgroup/box/memory.events.{end}"));
            names.into_iter().zip([max, 0, 0]).collect()
        };
        assert!(no_group_at_limit(&counters(0)) && !no_group_at_limit(&counters(1)));
        assert!(!no_group_at_limit(&BTreeMap::new()));
        let mut log = CounterLog::new("proc/zoneinfo");
        log.add_names(["0/DMA/boost", "0/DMA32/boost", "0/DMA/min"]);
        log.push(1, &[3, 4, 90]);
        log.push(2, &[0, 5, 90]);
        assert_eq!(most_boost(&log), Some(7));
        assert_eq!(meminfo("SwapFree:  400 kB\nx\n")["SwapFree"], 100);
    }
}
