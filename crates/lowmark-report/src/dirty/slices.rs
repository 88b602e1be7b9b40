//! The course of dirty throttling in a bounded number of slices of time.
//!
//! 1. Slices begin at the first event of the trace, whatever its clock says then: a host that has been up for
//!    days gives the figures of one that has just booted. What is earlier than the first event belongs to the
//!    first slice.
//! 2. When a time lies behind the last of [`SLICES_MAX`] slices, neighbours are joined and slices become twice
//!    as long, until it has a place.
//! 3. Gauges of a recording may begin before its events: [`Slices::reach_back`] puts slices in front.

use std::collections::BTreeMap;

/// Most slices of time; half as many at least once there were so many.
pub(super) const SLICES_MAX: usize = 512;
/// Length of the first slices, ns.
const SLICE_NS: u64 = 1_000_000;

/// A stretch of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Slice {
    /// Dirty pages and those under writeback, at most.
    pub(super) dirty: u64,
    pub(super) background: u64,
    pub(super) thresh: u64,
    /// Pauses of all writers together.
    pub(super) pauses_ms: u64,
    /// Pauses by their length in ms.
    pub(super) pauses: BTreeMap<u64, u64>,
    /// Time that writers waited, of all together.
    pub(super) waited_ns: u64,
    /// Pages dirtied, by writer.
    pub(super) pages: BTreeMap<u32, u64>,
}

/// Slices of time.
#[derive(Debug)]
pub(super) struct Slices {
    /// When the first slice begins, ns; below 0 where slices were put in front.
    base_ns: Option<i128>,
    length_ns: u64,
    slices: Vec<Slice>,
}

impl Default for Slices {
    fn default() -> Self {
        Slices {
            base_ns: None,
            length_ns: SLICE_NS,
            slices: Vec::new(),
        }
    }
}

impl Slices {
    /// The slices in use.
    pub(super) fn all(&self) -> &[Slice] {
        &self.slices
    }

    /// When the first one begins, s by the clock of the trace.
    pub(super) fn begin_s(&self) -> f64 {
        self.base_ns.unwrap_or(0) as f64 / 1e9
    }

    /// Length of each, ns.
    pub(super) fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// The first event of the trace: where slices begin, unless they did already.
    #[inline]
    pub(super) fn begin(&mut self, time_ns: u64) {
        if self.base_ns.is_none() {
            self.base_ns = Some(i128::from(time_ns));
        }
    }

    /// Number of the slice of a time, with slices as long as they are now.
    pub(super) fn number(&self, time_ns: u64) -> u64 {
        self.since(time_ns) / self.length_ns
    }

    /// Time since the first slice began.
    fn since(&self, time_ns: u64) -> u64 {
        let time = i128::from(time_ns);
        let since = time - self.base_ns.unwrap_or(time);
        u64::try_from(since.max(0)).unwrap_or(u64::MAX)
    }

    /// The slice of a time.
    pub(super) fn at(&mut self, time_ns: u64) -> &mut Slice {
        self.begin(time_ns);
        while self.number(time_ns) >= SLICES_MAX as u64 {
            self.double();
        }
        let at = self.number(time_ns) as usize;
        if self.slices.len() <= at {
            self.slices.resize_with(at + 1, Slice::default);
        }
        &mut self.slices[at]
    }

    /// Spreads a wait over the slices that it covers.
    pub(super) fn wait(&mut self, from_ns: u64, to_ns: u64) {
        if from_ns >= to_ns {
            return;
        }
        // All slices up to the end are there, and as long as they will be, before any gets its part.
        self.at(from_ns);
        self.at(to_ns - 1);
        let (end, length) = (self.since(to_ns), self.length_ns);
        let mut at = self.since(from_ns);
        while at < end {
            let limit = (at - at % length).saturating_add(length).min(end);
            if let Some(slice) = self.slices.get_mut((at / length) as usize) {
                slice.waited_ns = slice.waited_ns.saturating_add(limit - at);
            }
            at = limit;
        }
    }

    /// Makes room in front for a time before the first slice.
    pub(super) fn reach_back(&mut self, time_ns: u64) {
        self.begin(time_ns);
        loop {
            let base = self.base_ns.unwrap_or(0);
            let length = i128::from(self.length_ns);
            let missing = (base - i128::from(time_ns)).max(0);
            let front = missing / length + i128::from(missing % length > 0);
            let room = SLICES_MAX - self.slices.len();
            match usize::try_from(front) {
                Ok(front) if front <= room => {
                    let added = std::iter::repeat_with(Slice::default).take(front);
                    self.slices.splice(..0, added);
                    self.base_ns = Some(base - front as i128 * length);
                    return;
                }
                _ => self.double(),
            }
        }
    }

    /// What was known of one writer becomes another's.
    pub(super) fn rename(&mut self, from: u32, to: u32) {
        for slice in &mut self.slices {
            if let Some(pages) = slice.pages.remove(&from) {
                let sum = slice.pages.entry(to).or_default();
                *sum = sum.saturating_add(pages);
            }
        }
    }

    fn double(&mut self) {
        self.slices = self.slices.chunks(2).map(joined).collect();
        // 512 slices of 2^55 ns cover all of u64, so it is never doubled beyond that.
        self.length_ns = self.length_ns.saturating_mul(2);
    }
}

/// Slices joined into one.
pub(super) fn joined(slices: &[Slice]) -> Slice {
    let mut all = Slice::default();
    for slice in slices {
        all.dirty = all.dirty.max(slice.dirty);
        if slice.thresh > 0 {
            (all.background, all.thresh) = (slice.background, slice.thresh);
        }
        all.pauses_ms = all.pauses_ms.saturating_add(slice.pauses_ms);
        for (pause, count) in &slice.pauses {
            *all.pauses.entry(*pause).or_default() += count;
        }
        all.waited_ns = all.waited_ns.saturating_add(slice.waited_ns);
        for (task, pages) in &slice.pages {
            let sum = all.pages.entry(*task).or_default();
            *sum = sum.saturating_add(*pages);
        }
    }
    all
}
