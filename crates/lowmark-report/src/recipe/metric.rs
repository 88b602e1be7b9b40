//! Which figure of a recording is a cell.

use crate::vmstat;
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
}

impl Measure {
    fn is_time(self) -> bool {
        matches!(self, Measure::Elapsed | Measure::User | Measure::System)
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
}

/// A metric as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMetric {
    value: Measure,
    name: Option<String>,
    unit: Option<String>,
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
        match (self.value.is_time(), unit, &self.name) {
            (true, None, _) => Err("a time needs a unit".to_owned()),
            (true, _, Some(_)) => Err("a time has no name".to_owned()),
            (false, Some(_), _) => Err("only a time has a unit".to_owned()),
            _ => Ok(Metric {
                value: self.value,
                name: self.name,
                unit,
            }),
        }
    }
}

impl Metric {
    /// The figure of a recording; none if the run did not complete or has no such figure.
    ///
    /// `row` is the name of the cell's row, which names the counter where the metric does not.
    pub fn measure(&self, recording: &Recording, row: &str) -> Option<f64> {
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
