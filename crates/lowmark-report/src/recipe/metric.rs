//! Which figure of a recording is a cell.

use super::Evidence;
use crate::dirty::DirtyFigures;
use crate::{stats, vmstat};
use lowmark_record::{Outcome, Recording, Unit};
use serde::{Deserialize, Serialize};

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Time from start to end.
    Elapsed,
    /// User time of the workload's tasks.
    User,
    /// System time of the workload's tasks.
    System,
    /// Change of a `/proc/vmstat` field.
    Counter,
    /// A row of "MMTests Statistics: vmstat".
    Vmstat,
    /// System time of all tasks and kernel threads, in percent of one CPU.
    Cpu,
    /// What all devices together have written, see [`DEVICE`].
    Device,
    /// The lock over the lists of dirty inodes, see [`LIST_LOCK`].
    Lock,
    /// A series of samples.
    Series,
    /// A figure of dirty throttling, by its name in JSON ([`DirtyFigures`]).
    Dirty,
}

/// Which figure of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Largest sample.
    Max,
    /// Number of samples.
    Count,
}

/// Figures of devices with their units: data rate, repositionings and requests by data.
pub const DEVICE: [(&str, &str); 3] = [
    ("write-rate", "MB/s"),
    ("write-seeks", "per GB"),
    ("write-requests", "per GB"),
];

/// Figures of the lock over the lists of dirty inodes with their units: how often it was taken and found taken, the
/// share of the latter, CPUs that spin and that hold it, and how long it is held in the mean.
pub const LIST_LOCK: [(&str, &str); 6] = [
    ("acquisitions", ""),
    ("contentions", ""),
    ("contended", "%"),
    ("spinning", "% of a CPU"),
    ("holding", "% of a CPU"),
    ("hold", "ns"),
];

const BYTES_PER_SECTOR: f64 = 512.0;

impl Measure {
    fn is_time(self) -> bool {
        matches!(self, Measure::Elapsed | Measure::User | Measure::System)
    }
}

/// A figure of what all devices together have written; none if that is nothing.
fn device(recording: &Recording, name: &str) -> Option<f64> {
    let sum = |what: &str| {
        let counters = recording.counters.iter();
        let of_devices =
            counters.filter(|(key, _)| key.rsplit_once('/').is_some_and(|k| k.1 == what));
        of_devices.map(|(_, count)| *count as f64).sum::<f64>()
    };
    let gigabytes = sum("sectors_written") * BYTES_PER_SECTOR / 1e9;
    let figure = match name {
        "write-rate" => 1000.0 * gigabytes / (recording.elapsed_ns as f64 / NANOSECONDS_PER_SECOND),
        "write-seeks" => sum("write_seeks") / gigabytes,
        "write-requests" => sum("writes") / gigabytes,
        _ => return None,
    };
    Some(figure).filter(|figure| figure.is_finite())
}

/// A figure of the lock over the lists of dirty inodes; none if nobody took it.
fn list_lock(recording: &Recording, name: &str) -> Option<f64> {
    let field = |name: &str| {
        let count = recording.counters.get(&format!("list_lock/{name}"));
        count.map(|&count| count as f64)
    };
    let of_a_cpu = |ns: f64| 100.0 * ns / recording.elapsed_ns as f64;
    let acquisitions = field("acquisitions")?;
    match name {
        "acquisitions" => Some(acquisitions),
        "contentions" => field("contentions"),
        "contended" => Some(100.0 * field("contentions")? / acquisitions),
        "spinning" => field("waittime_ns").map(of_a_cpu),
        "holding" => field("holdtime_ns").map(of_a_cpu),
        "hold" => Some(field("holdtime_ns")? / acquisitions),
        _ => None,
    }
}

/// A figure of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// What it is.
    pub value: Measure,
    /// Field of `/proc/vmstat` or name of a vmstat row; the row's own name if absent.
    pub name: Option<String>,
    /// Unit of a time.
    pub unit: Option<Unit>,
    /// Which figure of a series.
    pub of: Of,
}

/// A metric as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMetric {
    value: Measure,
    name: Option<String>,
    unit: Option<String>,
    #[serde(default)]
    of: Of,
}

const UNITS: [Unit; 5] = [
    Unit::Nanoseconds,
    Unit::Microseconds,
    Unit::Milliseconds,
    Unit::Centiseconds,
    Unit::Seconds,
];

/// Names that published tables use for a unit.
fn published_names(unit: Unit) -> &'static [&'static str] {
    match unit {
        Unit::Nanoseconds => &["ns", "nanoseconds"],
        Unit::Microseconds => &["us", "microseconds"],
        Unit::Milliseconds => &["ms", "milliseconds"],
        Unit::Centiseconds => &["cs", "centiseconds"],
        Unit::Seconds => &["s", "seconds"],
    }
}

impl RawMetric {
    /// The metric, or what is wrong with it.
    pub(super) fn check(self) -> Result<Metric, String> {
        let unit = match &self.unit {
            None => None,
            Some(symbol) => {
                Some(*UNITS.iter().find(|u| u.symbol() == symbol).ok_or_else(|| {
                    let known: Vec<&str> = UNITS.iter().map(|u| u.symbol()).collect();
                    format!(
                        "unit: expected one of {}, found `{symbol}`",
                        known.join(", ")
                    )
                })?)
            }
        };
        let named = matches!(
            self.value,
            Measure::Device | Measure::Lock | Measure::Series | Measure::Dirty
        );
        let counts = self.of == Of::Count;
        match (self.value, unit, &self.name) {
            (value, None, _) if value.is_time() => Err("a time needs a unit".to_owned()),
            (value, _, Some(_)) if value.is_time() => Err("a time has no name".to_owned()),
            (Measure::Series, None, _) if !counts => Err("a series needs a unit".to_owned()),
            (value, Some(_), _) if !value.is_time() && (value != Measure::Series || counts) => {
                Err("only a time has a unit".to_owned())
            }
            (_, _, None) if named => Err("name: which figure is it?".to_owned()),
            (value, ..) if value != Measure::Series && self.of != Of::Mean => {
                Err("of: only a series has several figures".to_owned())
            }
            (value, _, Some(name)) => match known(value) {
                Some(known) if !known.contains(&name.as_str()) => Err(format!(
                    "name: expected one of {}, found `{name}`",
                    known.join(", ")
                )),
                _ => Ok(self.metric(unit)),
            },
            _ => Ok(self.metric(unit)),
        }
    }

    fn metric(self, unit: Option<Unit>) -> Metric {
        Metric {
            value: self.value,
            name: self.name,
            unit,
            of: self.of,
        }
    }
}

/// Names of the figures of a kind; none if any may be meant.
fn known(value: Measure) -> Option<Vec<&'static str>> {
    match value {
        Measure::Device => Some(DEVICE.map(|(name, _)| name).to_vec()),
        Measure::Lock => Some(LIST_LOCK.map(|(name, _)| name).to_vec()),
        Measure::Dirty => Some(DirtyFigures::NAMES.map(|(name, _)| name).to_vec()),
        Measure::Cpu => Some(Vec::new()),
        _ => None,
    }
}

impl Metric {
    /// The figure of a run; none if the run did not complete or has no such figure.
    ///
    /// `row` is the name of the cell's row, which names the counter where the metric does not.
    pub fn measure(&self, run: &Evidence, row: &str) -> Option<f64> {
        let recording = run.recording();
        if recording.outcome != Outcome::Completed {
            return None;
        }
        let name = self.name.as_deref().unwrap_or(row);
        let tasks = || recording.tasks.iter().filter(|t| !t.kthread);
        match self.value {
            Measure::Elapsed => self.in_unit(recording.elapsed_ns as f64),
            Measure::User => self.in_unit(tasks().map(|t| t.user_ns as f64).sum()),
            Measure::System => self.in_unit(tasks().map(|t| t.system_ns as f64).sum()),
            Measure::Counter => recording.counters.get(name).map(|&count| count as f64),
            Measure::Vmstat => {
                let elapsed_s = recording.elapsed_ns as f64 / NANOSECONDS_PER_SECOND;
                let rows = vmstat::rows(&recording.counters, elapsed_s);
                rows.into_iter().find(|r| r.name == name).map(|r| r.value)
            }
            Measure::Cpu => {
                let system: u64 = recording.tasks.iter().map(|t| t.system_ns).sum();
                Some(100.0 * system as f64 / recording.elapsed_ns as f64)
            }
            Measure::Device => device(recording, name),
            Measure::Lock => list_lock(recording, name),
            Measure::Series => self.series(recording, name),
            Measure::Dirty => run.dirty()?.get(name),
        }
    }

    fn series(&self, recording: &Recording, name: &str) -> Option<f64> {
        let series = recording.series.iter().find(|s| s.name == name)?;
        let values: Vec<f64> = series.samples.iter().map(|(_, v)| *v as f64).collect();
        match self.of {
            Of::Count => Some(values.len() as f64),
            Of::Mean => self.in_unit(stats::amean(&values)?),
            Of::Max => self.in_unit(stats::max(&values)?),
        }
    }

    /// Whether it comes from the events of a run.
    pub fn needs_events(&self) -> bool {
        self.value == Measure::Dirty
    }

    /// Its unit, for the reader.
    pub fn unit_text(&self) -> &'static str {
        let named = |names: &[(&'static str, &'static str)]| {
            let found = names.iter().find(|(n, _)| Some(*n) == self.name.as_deref());
            found.map_or("", |(_, unit)| *unit)
        };
        match (self.value, self.unit) {
            (_, Some(unit)) => unit.symbol(),
            (Measure::Cpu, _) => "% of a CPU",
            (Measure::Device, _) => named(&DEVICE),
            (Measure::Lock, _) => named(&LIST_LOCK),
            (Measure::Dirty, _) => named(&DirtyFigures::NAMES),
            _ => "",
        }
    }

    fn in_unit(&self, ns: f64) -> Option<f64> {
        self.unit.map(|unit| ns / unit.nanoseconds() as f64)
    }

    /// What is wrong if the published unit is another one.
    pub(super) fn contradicts(&self, published: &str) -> Option<String> {
        let unit = self.unit?;
        let other = UNITS
            .iter()
            .find(|u| published_names(**u).contains(&published))?;
        (*other != unit).then(|| {
            format!(
                "unit: the published figures are {published}, the metric is {}",
                unit.symbol()
            )
        })
    }
}
