//! All that causes are judged by: sums of what was traced, counters, and how the time of waits is shared out.

use super::causes::CAUSES;
use super::dirty::DirtyState;
use super::episodes::Episode;
use super::inflow::Inflow;
use super::residual::Residual;
use super::sink::{Moment, Sums, WhyReport};
use super::split::{Demand, Split};
use super::surroundings::Surroundings;
use super::wait::{Limit, Request};
use std::collections::BTreeMap;

/// Names of series that inflow is made of.
const INFLOW: [&str; 12] = [
    "pswpin",
    "pswpout",
    "pgpgin",
    "nr_dirtied",
    "pgsteal_anon",
    "pgsteal_file",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgsteal_khugepaged",
    "pgsteal_proactive",
    "workingset_refault_anon",
    "workingset_refault_file",
];

/// A burst is one that the largest distance of watermarks would have held: a tenth of memory, `watermark_scale_factor` of 1000
/// (795ae7a0de6b; 3000 since 39c65a94cd96, 5.18).
const BURST_PARTS: u64 = 10;

/// What a capture says, all in integers.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub(super) sums: Sums,
    pub(super) dirty: DirtyState,
    pub(super) surroundings: Surroundings,
    /// What came in over the whole capture; none without counters.
    pub(super) inflow: Option<Inflow>,
    pub(super) split: Split,
    pub(super) residual: Option<Residual>,
    /// Length of the capture, ns.
    pub(super) span_ns: u64,
    pub(super) kswapd_awake_ns: u64,
    /// Of the time in direct reclaim with a kswapd awake, that in bursts, ns: see [`BURST_PARTS`].
    pub(super) burst_ns: u64,
    /// Tasks that waited; 64 may be more.
    pub(super) waiters: usize,
    /// Wakeups of kswapd for costly orders.
    pub(super) high_wakeups: u64,
    /// Whether the capture has events at all.
    pub(super) has_events: bool,
    /// Whether only a part of it was asked for.
    pub(super) is_part: bool,
}

impl Evidence {
    pub(super) fn new(report: &WhyReport, surroundings: &Surroundings) -> Evidence {
        let options = &report.options;
        let is_window = options.from_ns.is_some() || options.to_ns.is_some();
        let mut surroundings = surroundings.clone();
        if is_window {
            // What was counted over the whole capture says nothing of a part of it.
            surroundings.counters = window(&surroundings, report);
            (surroundings.memory_pressure, surroundings.io_pressure) = (None, None);
            surroundings.disks.clear();
        }
        if options.task.is_some() {
            surroundings.memory_pressure = None;
        }
        let counters = surroundings.counters.clone();
        let counter = |name: &str| counters.as_ref()?.get(name).copied();
        let inflow = Inflow::of(&counter);
        let split = split(report, &surroundings, inflow.as_ref());
        let traced = split
            .total_ns()
            .saturating_add(huge_ns(&report.sums.moment))
            .saturating_add(block_ns(&report.sums.moment));
        let residual = Residual::of(&surroundings, traced, inflow.as_ref());
        let span = report.span_ns.map_or(0, |(first, last)| last - first);
        let high_wakeups = report.askers.values();
        Evidence {
            sums: report.sums.clone(),
            dirty: report.dirty.clone(),
            inflow,
            split,
            residual,
            span_ns: if is_window {
                span
            } else {
                surroundings.elapsed_ns.unwrap_or(span)
            },
            kswapd_awake_ns: report.kswapd_awake_ns,
            burst_ns: surroundings.managed.map_or(0, |pages| {
                let burst_ns = report.awake.burst_ns(pages / BURST_PARTS);
                burst_ns.min(report.sums.direct_awake_ns)
            }),
            waiters: report.waiters.len(),
            high_wakeups: high_wakeups.fold(0, |sum, n| sum.saturating_add(*n)),
            has_events: report.span_ns.is_some(),
            is_part: is_window || options.task.is_some(),
            surroundings,
        }
    }

    /// Change of a counter.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.surroundings.counters.as_ref()?.get(name).copied()
    }

    /// What counters say of pages that came in; without counters, that there are none.
    pub(super) fn by_counters(&self, says: impl FnOnce(&Inflow) -> String) -> String {
        match &self.inflow {
            Some(inflow) => says(inflow),
            None => "by allocation flags alone, pages are not counted".to_owned(),
        }
    }

    /// Change of a counter, 0 if it is not known.
    pub fn count(&self, name: &str) -> u64 {
        self.counter(name).unwrap_or(0)
    }

    /// Sum of the counters whose names begin and end so.
    pub fn count_all(&self, begin: &str, end: &str) -> u64 {
        let counters = self.surroundings.counters.iter().flatten();
        let some = counters.filter(|(name, _)| name.starts_with(begin) && name.ends_with(end));
        some.fold(0, |sum, (_, value)| sum.saturating_add(*value))
    }

    /// Time of waits under a limit as traced, ns.
    pub fn limit_ns(&self, limit: Limit) -> u64 {
        let times = &self.sums.moment.time_ns[limit as usize];
        times.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Whether tasks reclaimed for the machine, by events or by counters: reclaim for cgroups is in no `allocstall`.
    pub fn tasks_reclaim(&self) -> bool {
        self.limit_ns(Limit::Global) > 0 || self.count_all("allocstall", "") > 0
    }

    /// Time of all waits as traced, ns.
    pub fn traced_ns(&self) -> u64 {
        let limits = Limit::ALL.map(|limit| self.limit_ns(limit));
        limits.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Time of waits for reclaim, ns: under every limit but that of writers, compaction among them.
    pub fn room_ns(&self) -> u64 {
        self.traced_ns().saturating_sub(self.limit_ns(Limit::Dirty))
    }

    /// Time of waits for huge pages for which blocks had to be made, ns.
    pub fn huge_ns(&self) -> u64 {
        huge_ns(&self.sums.moment)
    }

    /// Time of waits for other blocks that nothing smaller can stand for, ns.
    pub fn block_ns(&self) -> u64 {
        block_ns(&self.sums.moment)
    }

    pub(super) fn demand_ns(&self, demand: Demand) -> u64 {
        self.split.known_ns[demand as usize]
    }

    /// Time of waits for room of which it is known what needed it, ns.
    pub(super) fn demand_known_ns(&self) -> u64 {
        let known = self.split.known_ns.iter();
        known.fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// What needed most of the room in an episode, by the id of its cause; none if it cannot be told.
    pub(super) fn demand_of(&self, episode: &Episode) -> Option<&'static str> {
        let moment = Moment {
            time_ns: episode.time_ns,
        };
        let inflow = inflow_of(&self.surroundings, episode.begin_ns, episode.end_ns);
        let mut split = Split::default();
        let left = split.add(&moment, inflow.as_ref().or(self.inflow.as_ref()), true);
        split.add_left(left);
        let [anon_back, anon_new, file_back, file_new] = split.known_ns;
        let dirty = episode.limits_ns[Limit::Dirty as usize];
        let writers = CAUSES.iter().filter(|c| c.limits == [Limit::Dirty]);
        let writers = writers.filter_map(|c| Some((c.id, (c.arithmetic)(self)?.total_ns())));
        let writers = writers
            .max_by_key(|(_, time)| *time)
            .map_or("D1", |(id, _)| id);
        let demands = [
            ("G1", anon_back),
            ("G2", anon_new),
            ("G3", file_back),
            ("G4", file_new),
            ("F1", huge_ns(&moment)),
            ("F5", block_ns(&moment)),
            (writers, dirty),
        ];
        let most = demands.iter().max_by_key(|(_, time)| *time)?;
        (most.1 > 0).then_some(most.0)
    }

    /// What came in; nothing without counters.
    pub fn inflow(&self) -> Inflow {
        self.inflow.unwrap_or_default()
    }

    /// How many hundredths of `whole` `part` is; 0 of nothing.
    pub fn percent(part: u64, whole: u64) -> u64 {
        match whole {
            0 => 0,
            whole => u64::try_from(u128::from(part) * 100 / u128::from(whole)).unwrap_or(u64::MAX),
        }
    }

    /// Bandwidth of the device that is written to, KiB/s: as the kernel estimates it, else what was written over the
    /// capture.
    pub fn write_bandwidth(&self) -> u64 {
        let (sum, number) = self.dirty.bandwidth;
        match number {
            0 => {
                let kb = self.count("pgpgout");
                let per_second = u128::from(kb) * 1_000_000_000 / u128::from(self.span_ns.max(1));
                u64::try_from(per_second).unwrap_or(u64::MAX)
            }
            number => u64::try_from(sum / u128::from(number)).unwrap_or(u64::MAX),
        }
    }

    /// Share of the time in which writers paused that the busiest device that was written to was busy, in hundredths; of the
    /// whole capture where nobody looked in between; none without disks.
    pub fn busy_percent(&self) -> Option<u64> {
        let written =
            |(_, d): &(&String, &super::surroundings::Disk)| d.pages_written > 0 && !d.swap;
        let disks = self.surroundings.disks.iter().filter(written);
        let (name, busiest) = disks.max_by_key(|(_, disk)| disk.busy_ms)?;
        let looks = self.surroundings.busy.get(name);
        let within = looks.and_then(|looks| busy_within(looks, self.dirty.paused?));
        let span_ms = self.span_ns / 1_000_000;
        Some(within.unwrap_or_else(|| Evidence::percent(busiest.busy_ms, span_ms)))
    }
}

/// Share of the time between the looks around two times in which a device was busy, in hundredths; none if there are no two.
fn busy_within(looks: &[(u64, u64)], (from_ns, to_ns): (u64, u64)) -> Option<u64> {
    let begin = looks.iter().rev().find(|(time, _)| *time <= from_ns);
    let begin = begin.or(looks.first())?;
    let end = looks.iter().find(|(time, _)| *time >= to_ns);
    let end = end.or(looks.last())?;
    let span_ms = end.0.saturating_sub(begin.0) / 1_000_000;
    let percent = Evidence::percent(end.1.saturating_sub(begin.1), span_ms);
    (span_ms > 0).then_some(percent.min(100))
}

/// What was counted in the window, if there is a series.
fn window(surroundings: &Surroundings, report: &WhyReport) -> Option<BTreeMap<String, u64>> {
    let series = &surroundings.series;
    if !series.has("pswpin") {
        return None;
    }
    let from = report.options.from_ns.unwrap_or(0);
    let to = report.options.to_ns.unwrap_or(u64::MAX);
    let changes = series
        .names()
        .filter_map(|name| Some((name.to_owned(), series.change(name, from, to)?)));
    Some(changes.collect())
}

fn huge_ns(moment: &Moment) -> u64 {
    moment.time_ns[Limit::Fragmentation as usize][Request::Huge as usize]
}

fn block_ns(moment: &Moment) -> u64 {
    let blocks = moment.time_ns.iter().map(|t| t[Request::Block as usize]);
    blocks.fold(0, u64::saturating_add)
}

/// Shares out the time of all slices.
fn split(report: &WhyReport, surroundings: &Surroundings, whole: Option<&Inflow>) -> Split {
    let all = &report.sums.moment;
    let files = [Request::FileRead, Request::FileWrite];
    let has_files = |times: &[u64; Request::COUNT]| files.iter().any(|f| times[*f as usize] > 0);
    let files_told = all.time_ns[..Limit::Dirty as usize].iter().any(has_files);
    let mut split = Split::default();
    let mut left = 0u64;
    let mut rest = *all;
    let course = &report.course;
    for (at, slice) in course.slices().iter().enumerate() {
        let from = (at as u64).saturating_mul(course.length_ns());
        let from = course.base_ns().saturating_add(from);
        let inflow = inflow_of(surroundings, from, from.saturating_add(course.length_ns()));
        let inflow = inflow.map(|inflow| inflow.within(whole));
        left = left.saturating_add(split.add(slice, inflow.as_ref().or(whole), files_told));
        let rests = rest.time_ns.as_flattened_mut().iter_mut();
        rests
            .zip(slice.time_ns.as_flattened())
            .for_each(|(rest, part)| *rest = rest.saturating_sub(*part));
    }
    // Waits that lie outside of every slice.
    left = left.saturating_add(split.add(&rest, whole, files_told));
    split.add_left(left);
    split
}

/// What came in between two times, if a series says it and there was anything.
fn inflow_of(surroundings: &Surroundings, from_ns: u64, to_ns: u64) -> Option<Inflow> {
    let series = &surroundings.series;
    if !series.has("pswpin") {
        return None;
    }
    let counter = |name: &str| {
        INFLOW
            .contains(&name)
            .then(|| series.change(name, from_ns, to_ns))?
    };
    let inflow = Inflow::of(&counter)?;
    (inflow.parts() != [0; 4]).then_some(inflow)
}
