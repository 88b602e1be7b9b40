//! What a trace or a recording says of dirty throttling: where dirty pages were held, and how long writers
//! waited for it.
//!
//! 1. [`DirtyReport`] is a [`Sink`] of bounded memory: time goes into slices (`slices.rs`) that begin with the
//!    first event and get twice as long when there are too many, writers beyond [`WRITERS_MAX`] are counted
//!    together.
//! 2. Dirty pages and thresholds come from `global_dirty_state` (3.1), else from `balance_dirty_pages`.
//! 3. A writer waits for the `pause` of `balance_dirty_pages` (3.2); before that from `balance_dirty_start`
//!    to `balance_dirty_wait`, under these names or with `wbc_` before them.
//! 4. An event with values that no kernel has is left out as a whole, and counted.
//! 5. [`DirtyReport::text`] is a table and a time line.

mod rows;
mod slices;
mod text;

use crate::reclaim::namesakes::Namesakes;
use crate::stats;
use lowmark_record::{Event, Field, Kind, Recording, Sink, Tables};
use serde::Serialize;
use slices::{Slice, Slices, joined};
use std::collections::BTreeMap;

/// Most writers that are told apart.
pub const WRITERS_MAX: usize = 1 << 12;
/// All writers beyond these.
const OTHERS: u32 = u32::MAX;
/// Longest pause that can be one, ms. The kernel's `MAX_PAUSE` is 200 ms.
const PAUSE_MAX: u64 = 1000;
/// Most pages that can be some: more than addresses of 64 bits reach.
pub(crate) const PAGES_MAX: u64 = 1 << 52;
const NS_PER_MS: u64 = 1_000_000;

/// A task that was asked to wait, or looked whether it had to.
#[derive(Debug, Clone, Default)]
struct Writer {
    /// Pages dirtied as far as the events say.
    pages: u64,
    waited_ns: u64,
    /// Since when it waits, in a kernel that tells both ends.
    since: Option<u64>,
    /// Pages that it was to write itself.
    to_write: u64,
}

impl Writer {
    /// Adds what was known of it while the trace had no name for it.
    fn adopt(&mut self, other: &Writer) {
        self.pages = self.pages.saturating_add(other.pages);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.since = self.since.or(other.since);
        self.to_write = self.to_write.max(other.to_write);
    }
}

/// Events on their way to figures.
#[derive(Debug, Default)]
pub struct DirtyReport {
    slices: Slices,
    /// First and last event of dirty throttling.
    span: Option<(u64, u64)>,
    namesakes: Namesakes,
    writers: BTreeMap<u32, Writer>,
    names: BTreeMap<u32, String>,
    /// When somebody was first throttled, and dirty pages and threshold as told just before.
    first: Option<(u64, Option<(u64, u64)>)>,
    told: Option<(u64, u64)>,
    /// Most pages that one call wrote itself.
    written: u64,
    looks: u64,
    /// Events that were left out for their values.
    impossible: u64,
    states: bool,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DirtyFigures {
    /// Tasks that were asked to wait or looked.
    pub writers: u64,
    /// Times that a writer had to look at the limits closely (3.2), or was over its own (before).
    pub looks: u64,
    /// From the first event to the first of these, ms.
    pub first_ms: Option<f64>,
    /// Dirty pages then, in percent of the dirty threshold.
    pub first_share: Option<f64>,
    /// The same in the mean over the second half.
    pub mean_share: Option<f64>,
    /// Shortest pause that was one, ms; kernels before 3.2 do not tell.
    pub pause_min_ms: Option<f64>,
    /// Median pause in the second half.
    pub pause_median_ms: Option<f64>,
    /// Longest pause.
    pub pause_max_ms: Option<f64>,
    /// Time that writers waited, s, all together.
    pub waited_s: f64,
    /// Standard deviation of the writers' rates over their mean in the second half, %; none for one writer.
    pub rate_spread: Option<f64>,
    /// Most pages that a call of `balance_dirty_pages` wrote itself (before 3.2).
    pub written_max: Option<f64>,
    /// Events that were left out: no kernel has such values, so the trace is damaged there.
    pub impossible: u64,
}

impl DirtyFigures {
    /// Names of the figures that [`Self::get`] gives, with their units.
    pub const NAMES: [(&'static str, &'static str); 10] = [
        ("looks", ""),
        ("first_ms", "ms"),
        ("first_share", "% of the threshold"),
        ("mean_share", "% of the threshold"),
        ("pause_min_ms", "ms"),
        ("pause_median_ms", "ms"),
        ("pause_max_ms", "ms"),
        ("waited_s", "s"),
        ("rate_spread", "%"),
        ("written_max", "pages"),
    ];

    /// A figure by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "looks" => Some(self.looks as f64),
            "first_ms" => self.first_ms,
            "first_share" => self.first_share,
            "mean_share" => self.mean_share,
            "pause_min_ms" => self.pause_min_ms,
            "pause_median_ms" => self.pause_median_ms,
            "pause_max_ms" => self.pause_max_ms,
            "waited_s" => Some(self.waited_s),
            "rate_spread" => self.rate_spread,
            "written_max" => self.written_max,
            _ => None,
        }
    }
}

impl Sink for DirtyReport {
    // Inlined, for most events of most traces are none of these.
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.slices.begin(event.time_ns);
        if is_throttling(event.kind) {
            self.see(event, tables);
        }
    }
}

fn is_throttling(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::GlobalDirtyState
            | Kind::BalanceDirtyPages
            | Kind::BalanceDirtyStart
            | Kind::WbcBalanceDirtyStart
            | Kind::BalanceDirtyWait
            | Kind::WbcBalanceDirtyWait
            | Kind::BalanceDirtyWritten
            | Kind::WbcBalanceDirtyWritten
    )
}

/// Whether an event of dirty throttling has values that no kernel has had. Every report leaves it out.
#[inline]
pub fn is_impossible(event: &Event) -> bool {
    is_throttling(event.kind) && !is_possible(event)
}

/// Whether a kernel can have had the values of an event that are counted here.
fn is_possible(event: &Event) -> bool {
    let pages = match event.kind {
        Kind::GlobalDirtyState => &[
            Field::Dirty,
            Field::Writeback,
            Field::Unstable,
            Field::BgThresh,
            Field::Thresh,
        ][..],
        Kind::BalanceDirtyPages => &[Field::Dirtied],
        Kind::BalanceDirtyWritten => &[Field::Written],
        // `to_write` may be a number that stands for all.
        _ => &[],
    };
    let fits = |field: &Field| event.get(*field).unwrap_or(0) <= PAGES_MAX;
    pages.iter().all(fits) && pause_ms(event) <= PAUSE_MAX
}

/// The pause of a look, ms; 0 if it was none or less than none.
pub(crate) fn pause_ms(event: &Event) -> u64 {
    let pause = event.signed(Field::Pause).unwrap_or(0);
    u64::try_from(pause).unwrap_or(0)
}

impl DirtyReport {
    /// Events, and samples of gauges, that were left out: no kernel has such values.
    pub fn impossible(&self) -> u64 {
        self.impossible
    }

    /// Whether there was nothing of dirty throttling.
    pub fn is_empty(&self) -> bool {
        self.looks == 0 && self.impossible == 0
    }

    /// Dirty pages as the gauges of a recording have them, for kernels that had no event for that.
    pub fn gauges(&mut self, recording: &Recording) {
        let gauges = &recording.gauges;
        let at = |name: &str| gauges.names.iter().position(|known| known == name);
        let columns = [
            "nr_dirty",
            "nr_writeback",
            "nr_dirty_background_threshold",
            "nr_dirty_threshold",
        ]
        .map(at);
        let [Some(dirty), Some(writeback), Some(background), Some(thresh)] = columns else {
            return;
        };
        if self.states {
            return;
        }
        if let Some((time, _)) = gauges.samples.first() {
            self.slices.reach_back(*time);
        }
        for (time, values) in &gauges.samples {
            let value = |at: usize| values.get(at).copied().filter(|pages| *pages <= PAGES_MAX);
            let values = [dirty, writeback, background, thresh].map(value);
            match values {
                [Some(dirty), Some(writeback), Some(background), Some(thresh)] => {
                    self.state(*time, dirty + writeback, background, thresh);
                }
                _ => self.impossible += 1,
            }
        }
    }

    fn see(&mut self, event: &Event, tables: &Tables) {
        if !is_possible(event) {
            self.impossible += 1;
            return;
        }
        let time = event.time_ns;
        match event.kind {
            Kind::GlobalDirtyState => {
                let get = |field| event.get(field).unwrap_or(0);
                let pages = get(Field::Dirty) + get(Field::Writeback) + get(Field::Unstable);
                self.states = true;
                self.told = Some((pages, get(Field::Thresh)));
                self.state(time, pages, get(Field::BgThresh), get(Field::Thresh));
            }
            Kind::BalanceDirtyPages => self.look(event, tables),
            Kind::BalanceDirtyStart | Kind::WbcBalanceDirtyStart => {
                self.begin(time);
                let to_write = event.get(Field::ToWrite).unwrap_or(0);
                let task = self.task(event, tables);
                let writer = self.writers.entry(task).or_default();
                writer.since.get_or_insert(time);
                writer.to_write = to_write;
            }
            Kind::BalanceDirtyWait | Kind::WbcBalanceDirtyWait => {
                let task = self.task(event, tables);
                let writer = self.writers.entry(task).or_default();
                if let Some(since) = writer.since.take() {
                    self.wait(task, since, time);
                }
            }
            Kind::BalanceDirtyWritten => {
                let pages = event.get(Field::Written).unwrap_or(0);
                self.written = self.written.max(pages);
            }
            _ => {
                let left = event.get(Field::ToWrite).unwrap_or(0);
                let task = self.task(event, tables);
                let to_write = self.writers.entry(task).or_default().to_write;
                self.written = self.written.max(to_write.saturating_sub(left));
            }
        }
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// A writer is throttled, or asked whether it has to be.
    fn begin(&mut self, time: u64) {
        self.looks += 1;
        self.first.get_or_insert((time, self.told));
    }

    fn look(&mut self, event: &Event, tables: &Tables) {
        let time = event.time_ns;
        self.begin(time);
        let pages = event.get(Field::Dirtied).unwrap_or(0);
        let task = self.task(event, tables);
        let writer = self.writers.entry(task).or_default();
        writer.pages = writer.pages.saturating_add(pages);
        let slice = self.slices.at(time);
        let sum = slice.pages.entry(task).or_default();
        *sum = sum.saturating_add(pages);
        let pause = pause_ms(event);
        if pause == 0 {
            return;
        }
        slice.pauses_ms = slice.pauses_ms.saturating_add(pause);
        *slice.pauses.entry(pause).or_default() += 1;
        self.wait(task, time, time.saturating_add(pause * NS_PER_MS));
    }

    /// The writer of an event: a task by name and process id, see [`Namesakes`].
    fn task(&mut self, event: &Event, tables: &Tables) -> u32 {
        let owner = self.namesakes.owner(event.task, tables);
        if let Some(waiting) = owner.adopts
            && let Some(before) = self.writers.remove(&waiting)
        {
            self.names.remove(&waiting);
            self.slices.rename(waiting, owner.task);
            self.writers.entry(owner.task).or_default().adopt(&before);
            self.name(owner.task, tables);
        }
        if self.writers.contains_key(&owner.task) {
            return owner.task;
        }
        if self.writers.len() >= WRITERS_MAX {
            self.names.insert(OTHERS, "others".to_owned());
            return OTHERS;
        }
        self.name(owner.task, tables);
        owner.task
    }

    fn name(&mut self, task: u32, tables: &Tables) {
        if let Some(actor) = tables.actor(task) {
            let name = format!("{}-{}", actor.name, actor.pid);
            self.names.insert(task, name);
        }
    }

    /// A writer waited from one time to another.
    fn wait(&mut self, task: u32, from: u64, to: u64) {
        let writer = self.writers.entry(task).or_default();
        writer.waited_ns = writer.waited_ns.saturating_add(to.saturating_sub(from));
        self.slices.wait(from, to);
    }

    fn state(&mut self, time: u64, dirty: u64, background: u64, thresh: u64) {
        let slice = self.slices.at(time);
        slice.dirty = slice.dirty.max(dirty);
        (slice.background, slice.thresh) = (background, thresh);
    }

    /// The figures.
    pub fn figures(&self) -> DirtyFigures {
        let slices = self.slices.all();
        let share = |slice: &Slice| 100.0 * slice.dirty as f64 / slice.thresh as f64;
        let known = |slice: &&Slice| slice.thresh > 0;
        let first_share = self.first.and_then(|(time, told)| {
            if let Some((dirty, thresh)) = told {
                return (thresh > 0).then(|| 100.0 * dirty as f64 / thresh as f64);
            }
            let upto = self.slices.number(time).saturating_add(1);
            let before = &slices[..slices.len().min(upto as usize)];
            before.iter().rev().find(known).map(share)
        });
        let half = slices.len() / 2;
        let later: Vec<f64> = slices[half..].iter().filter(known).map(share).collect();
        let all = joined(slices);
        let settled = joined(&slices[half..]);
        // A writer that dirtied nothing then counts as well.
        let pages = |task: &u32| settled.pages.get(task).copied().unwrap_or(0) as f64;
        let told_apart = self.writers.keys().filter(|task| **task != OTHERS);
        let rates: Vec<f64> = told_apart.map(pages).collect();
        let pause = |pause: Option<&u64>| pause.map(|pause| *pause as f64);
        let start = self.span.map(|(first, _)| first);
        DirtyFigures {
            writers: self.writers.len() as u64,
            looks: self.looks,
            first_ms: self
                .first
                .zip(start)
                .map(|((first, _), start)| first.saturating_sub(start) as f64 / NS_PER_MS as f64),
            first_share,
            mean_share: stats::amean(&later),
            pause_min_ms: pause(all.pauses.keys().next()),
            pause_median_ms: median(&settled.pauses),
            pause_max_ms: pause(all.pauses.keys().next_back()),
            waited_s: stats::sum(self.writers.values().map(|w| w.waited_ns as f64 / 1e9)),
            rate_spread: spread(&rates),
            written_max: (self.written > 0).then_some(self.written as f64),
            impossible: self.impossible,
        }
    }
}

/// Median of values that occur so many times.
fn median(counts: &BTreeMap<u64, u64>) -> Option<f64> {
    let all: u64 = counts.values().sum();
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += *count;
        seen * 2 >= all
    });
    found.map(|(value, _)| *value as f64)
}

/// Standard deviation over the mean, %.
fn spread(rates: &[f64]) -> Option<f64> {
    let mean = stats::amean(rates).filter(|mean| *mean > 0.0)?;
    let deviation = stats::stddev_population(rates)?;
    (rates.len() > 1).then_some(100.0 * deviation / mean)
}

#[cfg(test)]
mod tests;
