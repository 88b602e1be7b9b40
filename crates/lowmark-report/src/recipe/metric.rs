//! Which figure of a run is a cell.

mod raw;
mod series;

use super::Evidence;
use crate::dirty::DirtyFigures;
use crate::stats;
use crate::vmstat;
use lowmark_record::{Outcome, Recording, Unit};
use serde::{Deserialize, Serialize};

pub(super) use raw::RawMetric;
pub use series::Grouped;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Time from start to end, of the run or of a phase.
    Elapsed,
    /// User time of the workload's tasks.
    User,
    /// System time of the workload's tasks.
    System,
    /// Both together.
    UserSystem,
    /// Change of a `/proc/vmstat` field.
    Counter,
    /// A row of "MMTests Statistics: vmstat".
    Vmstat,
    /// A row of "FTrace Reclaim Statistics: vmscan".
    Vmscan,
    /// A row of "FTrace Reclaim Statistics: congestion_wait".
    Congestion,
    /// A row of "FTrace Reclaim Statistics: mm_vmscan_writepage".
    Writepage,
    /// System time of all tasks and kernel threads, in percent of one CPU.
    Cpu,
    /// What all devices together have written, see [`DEVICE`].
    Device,
    /// What tasks have read and written, see [`IO`].
    Io,
    /// The lock over the lists of dirty inodes, see [`LIST_LOCK`].
    Lock,
    /// A series of samples.
    Series,
    /// How many samples of a series there are in a second.
    Rate,
    /// Percent of attempts that succeeded, without its fraction as mmtests prints it: samples of a series, of those and the
    /// samples of the series with `-failed` behind its name.
    Success,
    /// A figure of dirty throttling, by its name in JSON ([`DirtyFigures`]).
    Dirty,
}

/// Which figure of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Harmonic mean.
    Hmean,
    /// Standard deviation, as mmtests computes it since 2017.
    Stddev,
    /// Standard deviation of the samples as all that there is, as mmtests computed it before.
    StddevOfAll,
    /// Smallest sample.
    Min,
    /// A quarter of the samples is below it, by the rule of the tables of 2016.
    #[serde(rename = "1st-qrtle")]
    FirstQuartile,
    /// Half of the samples.
    #[serde(rename = "2nd-qrtle")]
    SecondQuartile,
    /// Three quarters of them.
    #[serde(rename = "3rd-qrtle")]
    ThirdQuartile,
    /// 90 % of them.
    #[serde(rename = "max-90")]
    Max90,
    /// 93 % of them.
    #[serde(rename = "max-93")]
    Max93,
    /// 95 % of them.
    #[serde(rename = "max-95")]
    Max95,
    /// 99 % of them.
    #[serde(rename = "max-99")]
    Max99,
    /// Largest sample.
    Max,
    /// Half of the samples is up to it, by the rule of mmtests today.
    P50,
    /// 95 % of them.
    P95,
    /// 99 % of them.
    P99,
    /// Number of samples.
    Count,
    /// Samples with the answer of a probe that the series is named after, percent of all samples with an answer.
    Share,
}

/// Figures of devices with their units: data rate, repositionings and requests by data.
pub const DEVICE: [(&str, &str); 3] = [
    ("write-rate", "MB/s"),
    ("write-seeks", "per GB"),
    ("write-requests", "per GB"),
];

/// Figures of what tasks have read and written by system calls, from the page cache or not, with their units.
pub const IO: [(&str, &str); 2] = [("read-rate", "MB/s"), ("write-rate", "MB/s")];

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

/// A figure of what all devices together have written; none if that is nothing.
fn device(recording: &Recording, name: &str) -> Option<f64> {
    let sum = |what: &str| {
        let counters = recording.counters.iter();
        let of_devices =
            counters.filter(|(key, _)| key.rsplit_once('/').is_some_and(|k| k.1 == what));
        stats::sum(of_devices.map(|(_, count)| *count as f64))
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

/// A figure of what tasks have read and written (`rchar` and `wchar` of `/proc/PID/io`); none if that is not known.
fn io(recording: &Recording, name: &str) -> Option<f64> {
    let field = match name {
        "read-rate" => "io/rchar",
        "write-rate" => "io/wchar",
        _ => return None,
    };
    let bytes = *recording.counters.get(field)? as f64;
    let seconds = recording.elapsed_ns as f64 / NANOSECONDS_PER_SECOND;
    Some(bytes / 1e6 / seconds).filter(|rate| rate.is_finite())
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
    /// Field of `/proc/vmstat`, name of a row or of a series; the row's own name if absent.
    pub name: Option<String>,
    /// Unit of a time.
    pub unit: Option<Unit>,
    /// Which figure of a series or of rates.
    pub of: Of,
    /// Part of the run, from the mark of this label to the next one; all of it if absent.
    pub phase: Option<String>,
    /// Length of the windows that a series is reported by, ns.
    pub window_ns: Option<u64>,
    /// How a series was printed.
    pub group: Option<Grouped>,
    /// Series whose samples are the times of which rates, or sums of samples, are.
    pub each: Option<String>,
}

impl Metric {
    /// A figure of all of a run, without a name.
    pub fn of_run(value: Measure, unit: Option<Unit>) -> Metric {
        Metric {
            value,
            name: None,
            unit,
            of: Of::Mean,
            phase: None,
            window_ns: None,
            group: None,
            each: None,
        }
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
            Measure::Elapsed => {
                let (from, to) = series::stretch(recording, self.phase.as_deref())?;
                self.in_unit((to - from) as f64)
            }
            Measure::User => self.in_unit(stats::sum(tasks().map(|t| t.user_ns as f64))),
            Measure::System => self.in_unit(stats::sum(tasks().map(|t| t.system_ns as f64))),
            Measure::UserSystem => {
                let both = tasks().map(|t| (t.user_ns + t.system_ns) as f64);
                self.in_unit(stats::sum(both))
            }
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
            Measure::Io => io(recording, name),
            Measure::Lock => list_lock(recording, name),
            Measure::Series => self.series(recording, name),
            Measure::Rate => self.rate(recording, name),
            Measure::Success => self.success(recording, name),
            Measure::Vmscan => run.reclaim()?.vmscan_row(name),
            Measure::Congestion => run.reclaim()?.congestion_row(name),
            Measure::Writepage => run.reclaim()?.writepage_row(name),
            Measure::Dirty => run.dirty()?.get(name),
        }
    }

    /// Whether it comes from the events of a run.
    pub fn needs_events(&self) -> bool {
        matches!(
            self.value,
            Measure::Vmscan | Measure::Congestion | Measure::Writepage | Measure::Dirty
        )
    }

    /// Its unit, for the reader.
    pub fn unit_text(&self) -> &'static str {
        let named = |names: &[(&'static str, &'static str)]| {
            let found = names.iter().find(|(n, _)| Some(*n) == self.name.as_deref());
            found.map_or("", |(_, unit)| *unit)
        };
        match (self.value, self.unit) {
            (_, Some(unit)) => unit.symbol(),
            (Measure::Series, _) if self.of == Of::Share => "%",
            (Measure::Cpu, _) => "% of a CPU",
            (Measure::Rate, _) => "/s",
            (Measure::Success, _) => "%",
            (Measure::Device, _) => named(&DEVICE),
            (Measure::Io, _) => named(&IO),
            (Measure::Lock, _) => named(&LIST_LOCK),
            (Measure::Dirty, _) => named(&DirtyFigures::NAMES),
            _ => "",
        }
    }

    fn in_unit(&self, ns: f64) -> Option<f64> {
        self.unit.map(|unit| ns / unit.nanoseconds() as f64)
    }
}
