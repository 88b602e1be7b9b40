//! What a trace or a recording says of dirty throttling: where dirty pages were held, and how long writers
//! waited for it.
//!
//! 1. [`DirtyReport`] is a [`Sink`] of bounded memory: time goes into slices that get twice as long when
//!    there are too many, writers beyond [`WRITERS_MAX`] are counted together.
//! 2. Dirty pages and thresholds come from `global_dirty_state` (3.1), else from `balance_dirty_pages`.
//! 3. A writer waits for the `pause` of `balance_dirty_pages` (3.2); before that from `balance_dirty_start`
//!    to `balance_dirty_wait`, under these names or with `wbc_` before them.
//! 4. [`DirtyReport::text`] is a table and a time line.

mod text;

use lowmark_record::{Event, Field, Kind, Recording, Sink, Tables};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most slices of time; half as many at least once there were so many.
const SLICES_MAX: usize = 512;
/// Length of the first slices, ns.
const SLICE_NS: u64 = 1_000_000;
/// Most writers that are told apart.
pub const WRITERS_MAX: usize = 1 << 12;
/// Pauses of this and more are counted alike, ms: longer than any kernel makes them.
const PAUSE_MAX: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// A stretch of time.
#[derive(Debug, Clone, Default)]
struct Slice {
    /// Dirty pages and those under writeback, at most.
    dirty: u64,
    background: u64,
    thresh: u64,
    /// Pauses of all writers together.
    pauses_ms: u64,
    /// Pauses by their length in ms.
    pauses: BTreeMap<u64, u64>,
    /// Time that writers waited, of all together.
    waited_ns: u64,
    /// Pages dirtied, by writer.
    pages: BTreeMap<u32, u64>,
}

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

/// Events on their way to figures.
#[derive(Debug)]
pub struct DirtyReport {
    slices: Vec<Slice>,
    slice_ns: u64,
    /// First and last event.
    span: Option<(u64, u64)>,
    writers: BTreeMap<u32, Writer>,
    names: BTreeMap<u32, String>,
    /// When somebody was first throttled, and dirty pages and threshold as told just before.
    first: Option<(u64, Option<(u64, u64)>)>,
    told: Option<(u64, u64)>,
    /// Most pages that one call wrote itself.
    written: u64,
    looks: u64,
    states: bool,
}

impl Default for DirtyReport {
    fn default() -> Self {
        DirtyReport {
            slices: Vec::new(),
            slice_ns: SLICE_NS,
            span: None,
            writers: BTreeMap::new(),
            names: BTreeMap::new(),
            first: None,
            told: None,
            written: 0,
            looks: 0,
            states: false,
        }
    }
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
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        let known = self.writers.len();
        self.see(event);
        if self.writers.len() > known {
            self.name(event.task, tables);
        }
    }
}

impl DirtyReport {
    /// Figures of a recording with events; what its events do not say, its gauges do.
    pub fn of(recording: &Recording) -> DirtyFigures {
        let mut report = DirtyReport::default();
        recording.events.iter().for_each(|event| report.see(&event));
        report.gauges(recording);
        report.figures()
    }

    #[cold]
    fn name(&mut self, task: u32, tables: &Tables) {
        if let Some(actor) = tables.actor(task) {
            let name = format!("{}-{}", actor.name, actor.pid);
            self.names.insert(task, name);
        }
    }

    /// Whether there was anything of dirty throttling.
    pub fn is_empty(&self) -> bool {
        self.looks == 0
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
        for (time, values) in &gauges.samples {
            let pages = values[dirty] + values[writeback];
            self.state(*time, pages, values[background], values[thresh]);
        }
    }

    // Inlined, for most events of most traces are none of these.
    #[inline]
    fn see(&mut self, event: &Event) {
        let time = event.time_ns;
        match event.kind {
            Kind::GlobalDirtyState => {
                let get = |field| event.get(field).unwrap_or(0);
                let pages = get(Field::Dirty) + get(Field::Writeback) + get(Field::Unstable);
                self.states = true;
                self.told = Some((pages, get(Field::Thresh)));
                self.state(time, pages, get(Field::BgThresh), get(Field::Thresh));
            }
            Kind::BalanceDirtyPages => self.look(event),
            Kind::BalanceDirtyStart | Kind::WbcBalanceDirtyStart => {
                self.begin(time);
                let to_write = event.get(Field::ToWrite).unwrap_or(0);
                if let Some(writer) = self.writer(event.task) {
                    writer.since.get_or_insert(time);
                    writer.to_write = to_write;
                }
            }
            Kind::BalanceDirtyWait | Kind::WbcBalanceDirtyWait => {
                let since = self.writer(event.task).and_then(|w| w.since.take());
                if let Some(since) = since {
                    self.wait(event.task, since, time);
                }
            }
            Kind::BalanceDirtyWritten => {
                let pages = event.get(Field::Written).unwrap_or(0);
                self.written = self.written.max(pages);
            }
            Kind::WbcBalanceDirtyWritten => {
                let left = event.get(Field::ToWrite).unwrap_or(0);
                let to_write = self.writer(event.task).map_or(0, |w| w.to_write);
                self.written = self.written.max(to_write.saturating_sub(left));
            }
            _ => return,
        }
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// A writer is throttled, or asked whether it has to be.
    fn begin(&mut self, time: u64) {
        self.looks += 1;
        self.first.get_or_insert((time, self.told));
    }

    fn look(&mut self, event: &Event) {
        let time = event.time_ns;
        self.begin(time);
        let pages = event.get(Field::Dirtied).unwrap_or(0);
        if let Some(writer) = self.writer(event.task) {
            writer.pages += pages;
        }
        let slice = self.slice(time);
        *slice.pages.entry(event.task).or_default() += pages;
        let pause = event.signed(Field::Pause).unwrap_or(0).max(0) as u64;
        if pause == 0 {
            return;
        }
        let slice = self.slice(time);
        slice.pauses_ms += pause;
        *slice.pauses.entry(pause.min(PAUSE_MAX)).or_default() += 1;
        self.wait(event.task, time, time.saturating_add(pause * NS_PER_MS));
    }

    fn writer(&mut self, task: u32) -> Option<&mut Writer> {
        if self.writers.len() >= WRITERS_MAX && !self.writers.contains_key(&task) {
            return None;
        }
        Some(self.writers.entry(task).or_default())
    }

    /// A writer waited from one time to another.
    fn wait(&mut self, task: u32, from: u64, to: u64) {
        if let Some(writer) = self.writer(task) {
            writer.waited_ns += to.saturating_sub(from);
        }
        let mut at = from;
        while at < to {
            let end = (at / self.slice_ns + 1) * self.slice_ns;
            let part = end.min(to) - at;
            self.slice(at).waited_ns += part;
            // A slice may have become longer meanwhile.
            at += part;
        }
    }

    fn state(&mut self, time: u64, dirty: u64, background: u64, thresh: u64) {
        let slice = self.slice(time);
        slice.dirty = slice.dirty.max(dirty);
        (slice.background, slice.thresh) = (background, thresh);
    }

    /// The slice of a time; when there are too many, two become one.
    fn slice(&mut self, time: u64) -> &mut Slice {
        while time / self.slice_ns >= SLICES_MAX as u64 {
            let pairs = self.slices.chunks(2);
            self.slices = pairs.map(joined).collect();
            self.slice_ns *= 2;
        }
        let at = (time / self.slice_ns) as usize;
        if self.slices.len() <= at {
            self.slices.resize_with(at + 1, Slice::default);
        }
        &mut self.slices[at]
    }

    /// The figures.
    pub fn figures(&self) -> DirtyFigures {
        let share = |slice: &Slice| 100.0 * slice.dirty as f64 / slice.thresh as f64;
        let known = |slice: &&Slice| slice.thresh > 0;
        let first_share = self.first.and_then(|(time, told)| {
            if let Some((dirty, thresh)) = told {
                return Some(100.0 * dirty as f64 / thresh as f64);
            }
            let upto = (time / self.slice_ns) as usize + 1;
            let before = self.slices.get(..upto.min(self.slices.len()))?;
            before.iter().rev().find(known).map(share)
        });
        let half = self.slices.len() / 2;
        let later: Vec<f64> = self.slices[half..]
            .iter()
            .filter(known)
            .map(share)
            .collect();
        let all = joined(&self.slices);
        let settled = joined(&self.slices[half..]);
        // A writer that dirtied nothing then counts as well.
        let pages = |task: &u32| settled.pages.get(task).copied().unwrap_or(0) as f64;
        let rates: Vec<f64> = self.writers.keys().map(pages).collect();
        let pause = |pause: Option<&u64>| pause.map(|pause| *pause as f64);
        let start = self.span.map(|(first, _)| first);
        DirtyFigures {
            writers: self.writers.len() as u64,
            looks: self.looks,
            first_ms: self
                .first
                .zip(start)
                .map(|((first, _), start)| (first - start) as f64 / NS_PER_MS as f64),
            first_share,
            mean_share: crate::stats::amean(&later),
            pause_min_ms: pause(all.pauses.keys().next()),
            pause_median_ms: median(&settled.pauses),
            pause_max_ms: pause(all.pauses.keys().next_back()),
            waited_s: self
                .writers
                .values()
                .map(|w| w.waited_ns as f64 / 1e9)
                .sum(),
            rate_spread: spread(&rates),
            written_max: (self.written > 0).then_some(self.written as f64),
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
    let mean = crate::stats::amean(rates).filter(|mean| *mean > 0.0)?;
    let deviation = crate::stats::stddev_population(rates)?;
    (rates.len() > 1).then_some(100.0 * deviation / mean)
}

fn joined(slices: &[Slice]) -> Slice {
    let mut all = Slice::default();
    for slice in slices {
        all.dirty = all.dirty.max(slice.dirty);
        if slice.thresh > 0 {
            (all.background, all.thresh) = (slice.background, slice.thresh);
        }
        all.pauses_ms += slice.pauses_ms;
        for (pause, count) in &slice.pauses {
            *all.pauses.entry(*pause).or_default() += count;
        }
        all.waited_ns += slice.waited_ns;
        for (task, pages) in &slice.pages {
            *all.pages.entry(*task).or_default() += pages;
        }
    }
    all
}

#[cfg(test)]
mod tests;
