//! Metrics as they are written, and what is wrong with them.

use super::{DEVICE, Grouped, IO, LIST_LOCK, Measure, Metric, Of};
use crate::dirty::DirtyFigures;
use crate::reclaim::ReclaimFigures;
use crate::vmstat;
use lowmark_record::Unit;
use serde::Deserialize;

/// A metric as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::recipe) struct RawMetric {
    value: Measure,
    name: Option<String>,
    unit: Option<String>,
    of: Option<Of>,
    phase: Option<String>,
    window: Option<String>,
    group: Option<RawGroup>,
    each: Option<String>,
}

/// A rule by which samples were printed in groups, as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    count: usize,
    below: String,
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

/// A unit by its symbol.
fn unit(symbol: &str) -> Result<Unit, String> {
    let known = UNITS.iter().find(|u| u.symbol() == symbol);
    known.copied().ok_or_else(|| {
        let known: Vec<&str> = UNITS.iter().map(|u| u.symbol()).collect();
        let known = known.join(", ");
        format!("unit: expected one of {known}, found `{symbol}`")
    })
}

/// A time such as `60s`, more than none, in ns.
fn duration(field: &str, text: &str) -> Result<u64, String> {
    let wrong = || format!("{field}: expected a time like 60s or 5ms, found `{text}`");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, symbol) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit(symbol).map_err(|_| wrong())?;
    let ns = number.checked_mul(unit.nanoseconds());
    ns.filter(|ns| *ns > 0).ok_or_else(wrong)
}

/// What figures of a kind have and need beside their names.
impl Measure {
    fn is_time(self) -> bool {
        use Measure::{Elapsed, System, User, UserSystem};
        matches!(self, Elapsed | User | System | UserSystem)
    }

    /// Several figures, of which a name says which.
    fn needs_name(self) -> bool {
        use Measure::{Device, Dirty, Io, Lock, Rate, Series, Success};
        matches!(self, Device | Io | Lock | Series | Rate | Success | Dirty)
    }

    /// Figures of a kind that are known for a part of a run.
    fn is_by_phase(self) -> bool {
        use Measure::{Elapsed, Rate, Series, Success};
        matches!(self, Elapsed | Series | Rate | Success)
    }

    /// Names of the figures; none if any may be meant.
    fn names(self) -> Option<Vec<String>> {
        let owned = |names: &[(&str, &str)]| names.iter().map(|(n, _)| (*n).to_owned()).collect();
        match self {
            Measure::Device => Some(owned(&DEVICE)),
            Measure::Io => Some(owned(&IO)),
            Measure::Lock => Some(owned(&LIST_LOCK)),
            Measure::Dirty => Some(owned(&DirtyFigures::NAMES)),
            Measure::Vmstat => Some(vmstat::names().map(str::to_owned).collect()),
            Measure::Vmscan => Some(ReclaimFigures::vmscan_names()),
            Measure::Congestion => Some(ReclaimFigures::congestion_names()),
            Measure::Writepage => Some(ReclaimFigures::writepage_names()),
            Measure::Cpu => Some(Vec::new()),
            _ => None,
        }
    }
}

impl RawMetric {
    /// The metric, or what is wrong with it.
    pub(in crate::recipe) fn check(self) -> Result<Metric, String> {
        let unit = self.unit.as_deref().map(unit).transpose()?;
        self.check_name()?;
        self.check_unit(unit)?;
        self.check_parts()?;
        let group = self.group.map(|group| {
            let below_ns = duration("group: below", &group.below)?;
            match group.count {
                0 => Err("group: count: expected a number above 0".to_owned()),
                count => Ok(Grouped { count, below_ns }),
            }
        });
        let window = self.window.as_deref().map(|text| duration("window", text));
        Ok(Metric {
            value: self.value,
            unit,
            of: self.of.unwrap_or_default(),
            group: group.transpose()?,
            window_ns: window.transpose()?,
            name: self.name,
            phase: self.phase,
            each: self.each,
        })
    }

    fn check_name(&self) -> Result<(), String> {
        let value = self.value;
        match &self.name {
            Some(_) if value.is_time() => Err("a time has no name".to_owned()),
            None if value.needs_name() => Err("name: which figure is it?".to_owned()),
            Some(name) => check_known(value, "name", name),
            None => Ok(()),
        }
    }

    fn check_unit(&self, unit: Option<Unit>) -> Result<(), String> {
        let counts = matches!(self.of, Some(Of::Count | Of::Share));
        let has_one = self.value.is_time() || self.value == Measure::Series && !counts;
        match (unit, has_one) {
            (None, true) if self.value.is_time() => Err("a time needs a unit".to_owned()),
            (None, true) => Err("a series needs a unit".to_owned()),
            (Some(_), false) => Err("only a time has a unit".to_owned()),
            _ => Ok(()),
        }
    }

    fn check_parts(&self) -> Result<(), String> {
        let (series, rate) = (self.value == Measure::Series, self.value == Measure::Rate);
        let several = series || rate && self.each.is_some();
        let only = |wrong: bool, problem: &str| {
            if wrong {
                Err(problem.to_owned())
            } else {
                Ok(())
            }
        };
        only(
            self.of.is_some() && !several,
            "of: only a series, and a rate with `each`, have several figures",
        )?;
        only(
            self.of == Some(Of::Share)
                && (self.each.is_some() || self.window.is_some() || self.group.is_some()),
            "of: a share is of all samples",
        )?;
        only(
            self.each.is_some() && !several && !rate,
            "each: only a rate or a series is one of times",
        )?;
        only(
            self.window.is_some() && !series,
            "window: only a series is reported by windows",
        )?;
        only(
            self.group.is_some() && !series,
            "group: only a series is printed in groups",
        )?;
        only(
            self.phase.is_some() && !self.value.is_by_phase(),
            "phase: only elapsed, series, rate and success are known by phase",
        )
    }
}

/// Whether there is a figure of this name.
fn check_known(value: Measure, field: &str, name: &str) -> Result<(), String> {
    match value.names() {
        Some(known) if !known.iter().any(|known| known == name) => Err(format!(
            "{field}: expected one of {}, found `{name}`",
            known.join(", ")
        )),
        _ => Ok(()),
    }
}

impl Metric {
    /// What is wrong for a row of this name and published unit: a figure that there is not, or one in another unit.
    pub(in crate::recipe) fn contradicts(&self, row: &str, published: &str) -> Option<String> {
        if self.name.is_none() && self.value != Measure::Cpu {
            let known = check_known(self.value, "metric: the row's name", row);
            if let Err(problem) = known {
                return Some(problem);
            }
        }
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
