//! Figures of series of samples: statistics as mmtests has them, of all samples, of groups or of report windows, and
//! how often something happened.

use super::{Metric, Of};
use crate::stats;
use lowmark_record::{Recording, Series};

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Samples that a benchmark printed in groups: those below a limit are put together, and count as the mean of
/// their group (the probe of mmtests' stutter prints every thousand below 5 ms as one line).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped {
    /// Samples of a group.
    pub count: usize,
    /// Only samples below this are grouped, ns.
    pub below_ns: u64,
}

impl Of {
    /// The statistic of samples, if there are enough for it.
    fn statistic(self, samples: &[f64]) -> Option<f64> {
        let sorted = stats::sorted(samples);
        let quantile = |percent| stats::quartile_2016(&sorted, percent);
        match self {
            // A share is of several series.
            Of::Share => None,
            Of::Count => Some(samples.len() as f64),
            Of::Mean => stats::amean(samples),
            Of::Hmean => stats::hmean(samples),
            Of::Stddev => stats::stddev(samples),
            Of::StddevOfAll => stats::stddev_population(samples),
            Of::Min => sorted.first().copied(),
            Of::FirstQuartile => quantile(25.0),
            Of::SecondQuartile => quantile(50.0),
            Of::ThirdQuartile => quantile(75.0),
            Of::Max90 => quantile(90.0),
            Of::Max93 => quantile(93.0),
            Of::Max95 => quantile(95.0),
            Of::Max99 => quantile(99.0),
            Of::Max => sorted.last().copied(),
            Of::P50 => stats::percentile(&sorted, 50.0).filter(|_| !sorted.is_empty()),
            Of::P95 => stats::percentile(&sorted, 95.0).filter(|_| !sorted.is_empty()),
            Of::P99 => stats::percentile(&sorted, 99.0).filter(|_| !sorted.is_empty()),
        }
    }
}

impl Grouped {
    /// The samples as they were printed; a last group that is not full was not.
    fn printed(self, samples: &[(u64, u64)]) -> Vec<(u64, f64)> {
        let mut printed = Vec::new();
        let (mut sum, mut small) = (0.0, 0);
        for &(at, value) in samples {
            if value >= self.below_ns {
                printed.push((at, value as f64));
                continue;
            }
            sum += value as f64;
            small += 1;
            if small == self.count {
                printed.extend(std::iter::repeat_n((at, sum / small as f64), small));
                (sum, small) = (0.0, 0);
            }
        }
        printed
    }
}

/// The stretch of a run that a figure is of: from and to, ns.
pub(super) fn stretch(recording: &Recording, phase: Option<&str>) -> Option<(u64, u64)> {
    let Some(label) = phase else {
        return Some((0, recording.elapsed_ns));
    };
    let begin = recording.phases.iter().position(|p| p.label == label)?;
    let from = recording.phases[begin].time_ns;
    // Marks of the same label, by other tasks or in a loop, are one phase.
    let next = recording.phases[begin..].iter().find(|p| p.label != label);
    Some((from, next.map_or(recording.elapsed_ns, |p| p.time_ns)))
}

fn series<'r>(recording: &'r Recording, name: &str) -> Option<&'r Series> {
    recording.series.iter().find(|s| s.name == name)
}

/// How many of the samples of a stretch with an answer of a probe have this one, percent; none if there are no such.
fn share(recording: &Recording, name: &str, (from, to): (u64, u64)) -> Option<f64> {
    let (stem, _) = name.rsplit_once('-')?;
    let count = |series: &Series| {
        let inside = |(at, _): &&(u64, u64)| (from < *at) && (*at <= to);
        series.samples.iter().filter(inside).count() as f64
    };
    let answered = |series: &&Series| {
        let rest = series.name.strip_prefix(stem);
        rest.and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|answer| !answer.contains('-'))
    };
    let all = stats::sum(recording.series.iter().filter(answered).map(count));
    let these = series(recording, name).map_or(0.0, count);
    (all > 0.0).then(|| 100.0 * these / all)
}

impl Metric {
    /// A statistic of a series.
    pub(super) fn series(&self, recording: &Recording, name: &str) -> Option<f64> {
        let (from, to) = stretch(recording, self.phase.as_deref())?;
        if self.of == Of::Share {
            return share(recording, name, (from, to));
        }
        let mut samples = series(recording, name)?.samples.clone();
        samples.retain(|(at, _)| (from < *at) && (*at <= to));
        let samples: Vec<(u64, f64)> = match (self.group, &self.each) {
            (Some(group), _) => group.printed(&samples),
            (None, None) => samples.iter().map(|&(at, ns)| (at, ns as f64)).collect(),
            (None, Some(each)) => {
                let sum = |&(at, length): &(u64, u64)| {
                    let inside = |s: &&(u64, u64)| at.saturating_sub(length) < s.0 && s.0 <= at;
                    let inside = samples.iter().filter(inside);
                    (at, stats::sum(inside.map(|s| s.1 as f64)))
                };
                series(recording, each)?.samples.iter().map(sum).collect()
            }
        };
        let values = |samples: &[(u64, f64)]| samples.iter().map(|s| s.1).collect::<Vec<f64>>();
        let figure = match self.window_ns {
            None => self.of.statistic(&values(&samples))?,
            // The mean over the reports that a benchmark gave at fixed intervals; one without samples gave none.
            Some(window) => {
                let of_window = |part: &[(u64, f64)]| self.of.statistic(&values(part));
                let windows =
                    samples.chunk_by(|a, b| (a.0 - from) / window == (b.0 - from) / window);
                let reports: Vec<f64> = windows.filter_map(of_window).collect();
                stats::amean(&reports)?
            }
        };
        match self.of {
            Of::Count => Some(figure),
            _ => self.in_unit(figure),
        }
    }

    /// Percent of attempts that succeeded; none if there was none.
    pub(super) fn success(&self, recording: &Recording, name: &str) -> Option<f64> {
        let (from, to) = stretch(recording, self.phase.as_deref())?;
        let count = |name: &str| {
            let samples = series(recording, name).map_or(&[][..], |series| &series.samples);
            let inside = samples.iter().filter(|(at, _)| from < *at && *at <= to);
            inside.count()
        };
        let got = count(name);
        let attempts = got + count(&format!("{name}-failed"));
        (attempts > 0).then(|| (100 * got / attempts) as f64)
    }

    /// How often a second something was done: samples of a series over the time of the run or the phase, or a
    /// statistic over the samples of another series, each of which is a time in which it was done.
    pub(super) fn rate(&self, recording: &Recording, name: &str) -> Option<f64> {
        let done = series(recording, name)?;
        let stretch = stretch(recording, self.phase.as_deref())?;
        let in_stretch = |at: u64| stretch.0 < at && at <= stretch.1;
        let rate = |(from, to): (u64, u64)| {
            let seconds = (to - from) as f64 / NANOSECONDS_PER_SECOND;
            let count = done
                .samples
                .iter()
                .filter(|(at, _)| from < *at && *at <= to);
            (seconds > 0.0).then(|| count.count() as f64 / seconds)
        };
        let Some(each) = &self.each else {
            return rate(stretch);
        };
        let intervals = series(recording, each)?.samples.iter();
        let intervals = intervals.filter(|(at, _)| in_stretch(*at));
        let rates = intervals.filter_map(|&(at, length)| rate((at.saturating_sub(length), at)));
        self.of.statistic(&rates.collect::<Vec<f64>>())
    }
}
