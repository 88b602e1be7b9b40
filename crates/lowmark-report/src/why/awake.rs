//! When a kswapd is awake, and how much is reclaimed until all of them sleep again.
//!
//! 1. kswapd wakes when free memory is below low and sleeps when it has been above high for 100 ms (`kswapd_try_to_sleep`).
//!    From one to the other is a *stretch*; what is reclaimed in it, by kswapd and by tasks, is about what was wanted.
//! 2. A stretch that ends after few pages is a *burst*: had as many pages been free, no task would have had to wait. What is few
//!    depends on the machine, which is known at the end only, so stretches are kept by their pages, with three digits in binary.
//! 3. Nothing is said of a stretch that began before the capture or was not over at its end.

use std::collections::{BTreeMap, BTreeSet};

/// Time for which any kswapd is awake.
#[derive(Debug, Clone, Default)]
pub(super) struct Awake {
    known: BTreeSet<usize>,
    awake: BTreeSet<usize>,
    since_ns: u64,
    total_ns: u64,
    /// Of the stretch that goes on: pages reclaimed, and time in direct reclaim, ns; none if its beginning was not seen.
    stretch: Option<(u64, u64)>,
    /// Time in direct reclaim, ns, by the pages of stretches, see [`few`].
    stretches: BTreeMap<u64, u64>,
}

/// The least number of three binary digits that is not below this one, so that there are few of them.
fn few(pages: u64) -> u64 {
    let digits = 64 - pages.leading_zeros();
    let unit = 1u64 << digits.saturating_sub(3);
    pages.div_ceil(unit).saturating_mul(unit)
}

impl Awake {
    /// Total up to a time, ns.
    pub(super) fn until(&self, time_ns: u64) -> u64 {
        if self.awake.is_empty() {
            self.total_ns
        } else {
            self.total_ns
                .saturating_add(time_ns.saturating_sub(self.since_ns))
        }
    }

    /// A kswapd wakes.
    pub(super) fn wake(&mut self, thread: usize, time_ns: u64) {
        self.known.insert(thread);
        if self.awake.is_empty() {
            self.since_ns = time_ns;
            self.stretch = Some((0, 0));
        }
        self.awake.insert(thread);
    }

    /// kswapd does something: if nothing was known of it, it has been awake since the beginning.
    pub(super) fn works(&mut self, thread: usize, first_ns: u64) {
        if self.known.insert(thread) {
            if self.awake.is_empty() && self.total_ns == 0 {
                self.since_ns = first_ns;
            }
            self.awake.insert(thread);
            self.stretch = None;
        }
    }

    /// A kswapd goes to sleep.
    pub(super) fn sleep(&mut self, thread: usize, time_ns: u64) {
        self.total_ns = self.until(time_ns);
        self.since_ns = time_ns;
        self.awake.remove(&thread);
        if !self.awake.is_empty() {
            return;
        }
        if let Some((pages, direct_ns)) = self.stretch.take().filter(|(_, ns)| *ns > 0) {
            let sum = self.stretches.entry(few(pages)).or_default();
            *sum = sum.saturating_add(direct_ns);
        }
    }

    /// Pages were reclaimed.
    pub(super) fn reclaimed(&mut self, pages: u64) {
        if let Some((sum, _)) = &mut self.stretch {
            *sum = sum.saturating_add(pages);
        }
    }

    /// A task reclaimed for itself, for so many ns of which a kswapd was awake.
    pub(super) fn waited(&mut self, awake_ns: u64) {
        if let Some((_, sum)) = &mut self.stretch {
            *sum = sum.saturating_add(awake_ns);
        }
    }

    /// Time in direct reclaim, ns, in stretches in which no more than so many pages were reclaimed.
    pub(super) fn burst_ns(&self, pages: u64) -> u64 {
        let bursts = self.stretches.range(..=pages).map(|(_, ns)| *ns);
        bursts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_three_digits_are_few_and_never_smaller() {
        assert_eq!([0, 1, 7, 8, 9, 4097].map(few), [0, 1, 7, 8, 10, 5120]);
        for pages in [5, 100, 12_345, u64::MAX] {
            let least = few(pages);
            assert!(least >= pages && (least - pages) <= pages / 4, "{pages}");
        }
    }

    #[test]
    fn stretches_are_told_by_their_pages() {
        let mut awake = Awake::default();
        let mut stretch = |pages, waited, at| {
            awake.wake(1, at);
            awake.reclaimed(pages);
            awake.waited(waited);
            awake.sleep(1, at + 50);
        };
        stretch(100, 7, 0);
        stretch(4000, 20, 100);
        // Nothing is known of what was reclaimed before the capture.
        awake.works(2, 0);
        awake.reclaimed(1);
        awake.waited(500);
        awake.sleep(2, 300);
        assert_eq!((awake.burst_ns(111), awake.burst_ns(112)), (0, 7));
        assert_eq!((awake.burst_ns(4095), awake.burst_ns(u64::MAX)), (7, 27));
    }
}
