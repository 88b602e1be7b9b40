//! The course of reclaim over time, in a bounded number of slices.
//!
//! 1. A slice is [`FIRST_NS`] long at first, and begins with the first event.
//! 2. When an event lies behind the last of [`SLICES_MAX`] slices, neighbours are joined and slices become
//!    twice as long, until it has a place. So there are never more than that, and at least half of them are
//!    in use once any were joined.
//! 3. Time spent is spread over the slices that it covers when its end is known.

use super::pages::Actor;

/// What is kept of one slice, and can be joined with that of its neighbour.
pub trait Part: Copy + Default {
    /// Adds what happened in another.
    fn join(&mut self, other: &Self);
}

/// Length of a slice at first, ns.
const FIRST_NS: u64 = 1_000_000;

/// Most slices.
const SLICES_MAX: usize = 256;

/// What happened in one slice; arrays go by [`Actor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slice {
    /// Events of any kind.
    pub events: u64,
    /// Pages scanned, by `mm_vmscan_lru_shrink_inactive`.
    pub scanned: [u64; 4],
    /// Pages scanned, by isolations of lists that may be inactive.
    pub isolated: [u64; 4],
    /// Pages reclaimed, by `mm_vmscan_lru_shrink_inactive`.
    pub reclaimed: [u64; 4],
    /// Pages written.
    pub written: [u64; 4],
    /// Time of all tasks in direct reclaim, ns.
    pub direct_ns: u64,
    /// Time of all tasks in reclaim for the limit of a memory cgroup, ns.
    pub memcg_ns: u64,
    /// Time for which reclaimers were throttled or waited for congestion, ns.
    pub throttled_ns: u64,
    /// Time for which kswapd was awake, ns, over all nodes.
    pub kswapd_ns: u64,
}

impl Part for Slice {
    fn join(&mut self, other: &Slice) {
        self.events += other.events;
        for actor in 0..Actor::ALL.len() {
            let sums = [
                (&mut self.scanned, other.scanned),
                (&mut self.isolated, other.isolated),
                (&mut self.reclaimed, other.reclaimed),
                (&mut self.written, other.written),
            ];
            for (sum, part) in sums {
                sum[actor] = sum[actor].saturating_add(part[actor]);
            }
        }
        self.direct_ns = self.direct_ns.saturating_add(other.direct_ns);
        self.memcg_ns = self.memcg_ns.saturating_add(other.memcg_ns);
        self.throttled_ns = self.throttled_ns.saturating_add(other.throttled_ns);
        self.kswapd_ns = self.kswapd_ns.saturating_add(other.kswapd_ns);
    }
}

/// Slices of time.
#[derive(Debug, Clone)]
pub struct Slices<P = Slice> {
    base_ns: Option<u64>,
    length_ns: u64,
    slices: Vec<P>,
    /// The slice of the last event and its limits, which most often is that of the next.
    current: usize,
    from_ns: u64,
    until_ns: u64,
}

impl<P> Default for Slices<P> {
    fn default() -> Self {
        Slices {
            base_ns: None,
            length_ns: FIRST_NS,
            slices: Vec::new(),
            current: 0,
            from_ns: 0,
            until_ns: 0,
        }
    }
}

impl<P: Part> Slices<P> {
    /// When the first slice begins, ns.
    pub fn base_ns(&self) -> u64 {
        self.base_ns.unwrap_or(0)
    }

    /// Length of each, ns.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// The slices in use.
    pub fn slices(&self) -> &[P] {
        &self.slices
    }

    /// The same, to be changed.
    pub(crate) fn slices_mut(&mut self) -> &mut [P] {
        &mut self.slices
    }

    /// The slice of a time. What is earlier than the first event belongs to the first slice.
    #[inline]
    pub(crate) fn at(&mut self, time_ns: u64) -> &mut P {
        if !(self.from_ns..self.until_ns).contains(&time_ns) {
            self.seek(time_ns);
        }
        &mut self.slices[self.current]
    }

    fn seek(&mut self, time_ns: u64) {
        let base = *self.base_ns.get_or_insert(time_ns);
        let since = time_ns.saturating_sub(base);
        while since / self.length_ns >= SLICES_MAX as u64 {
            self.double();
        }
        self.current = (since / self.length_ns) as usize;
        if self.slices.len() <= self.current {
            self.slices.resize(self.current + 1, P::default());
        }
        let from = self.current as u64 * self.length_ns;
        self.from_ns = base.saturating_add(from);
        self.until_ns = self.from_ns.saturating_add(self.length_ns);
    }

    fn double(&mut self) {
        let joined = self.slices.chunks(2).map(|pair| {
            let mut slice = pair[0];
            if let Some(second) = pair.get(1) {
                slice.join(second);
            }
            slice
        });
        self.slices = joined.collect();
        // 256 slices of 2^56 ns cover all of u64, so it is never doubled beyond that.
        self.length_ns = self.length_ns.saturating_mul(2);
        (self.from_ns, self.until_ns) = (0, 0);
    }

    /// Spreads a stretch of time over the slices: `field` says where it is summed.
    pub(crate) fn spread(
        &mut self,
        begin_ns: u64,
        end_ns: u64,
        field: impl Fn(&mut P) -> &mut u64,
    ) {
        self.at(end_ns);
        let (base, length) = (self.base_ns(), self.length_ns);
        let begin = begin_ns.saturating_sub(base);
        let end = end_ns.saturating_sub(base);
        let mut at = begin.min(end);
        while at < end {
            let index = (at / length) as usize;
            let limit = (at - at % length).saturating_add(length).min(end);
            if let Some(slice) = self.slices.get_mut(index) {
                let sum = field(slice);
                *sum = sum.saturating_add(limit - at);
            }
            at = limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_double_and_lose_nothing() {
        let mut slices = Slices::<Slice>::default();
        for ms in 0..1000u64 {
            let slice = slices.at(5_000_000 + ms * 1_000_000);
            slice.events += 1;
            slice.scanned[1] += 3;
        }
        assert_eq!(slices.length_ns(), 4 * FIRST_NS);
        assert_eq!(slices.slices().len(), 250);
        assert!(
            slices
                .slices()
                .iter()
                .all(|s| s.events == 4 && s.scanned[1] == 12)
        );
        // Earlier than the first: the first slice.
        slices.at(0).events += 1;
        assert_eq!(slices.slices()[0].events, 5);
    }

    #[test]
    fn time_is_spread_over_what_it_covers() {
        let mut slices = Slices::<Slice>::default();
        slices.at(0);
        slices.spread(500_000, 2_250_000, |s| &mut s.direct_ns);
        let spent: Vec<u64> = slices.slices().iter().map(|s| s.direct_ns).collect();
        assert_eq!(spent, [500_000, 1_000_000, 250_000]);
        slices.spread(3_000_000, 2_000_000, |s| &mut s.direct_ns);
        assert_eq!(slices.slices()[2].direct_ns, 250_000);
    }

    #[test]
    fn times_of_any_size() {
        let mut slices = Slices::<Slice>::default();
        slices.at(0).events += 1;
        slices.at(u64::MAX).events += 1;
        slices.spread(0, u64::MAX, |s| &mut s.kswapd_ns);
        assert!(slices.slices().len() <= SLICES_MAX);
        let (events, spent) = slices.slices().iter().fold((0, 0u64), |(e, t), s| {
            (e + s.events, t.saturating_add(s.kswapd_ns))
        });
        assert_eq!((events, spent), (2, u64::MAX));
    }
}
