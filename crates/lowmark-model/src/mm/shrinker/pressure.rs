//! How many objects of a cache a call of its shrinker scans (`do_shrink_slab`): arithmetic alone.
//!
//! 1. The call's own part of the cache, *delta*, follows from the LRU pages that were scanned, or from the priority.
//! 2. What earlier calls put off comes on top, within bounds.
//! 3. That is scanned in batches; what is left in the end is put off to the next call.

use crate::kernel::{Shrinkers, SlabBatch, SlabDeferred, SlabLeast, SlabPressure};
use crate::mm::types::SWAP_CLUSTER_MAX;

/// What a reclaimer knows of its pass (`struct shrink_control`, to 4.15 beside it what was scanned).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pressure {
    /// LRU pages scanned.
    pub(crate) scanned: u64,
    /// LRU pages that could have been.
    pub(crate) eligible: u64,
    /// Priority of the pass.
    pub(crate) priority: u32,
}

/// A cache as its shrinker describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cache {
    /// Objects that could be freed (`count_objects`).
    pub(super) freeable: u64,
    /// Cost of making an object again (`seeks`); 0: none.
    pub(super) seeks: u64,
    /// Objects in a batch.
    pub(super) batch: u64,
}

/// What a call sets out to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quota {
    /// Its own part.
    pub(super) delta: u64,
    /// Objects to scan.
    pub(super) total: u64,
    /// Objects put off before.
    pub(super) deferred: u64,
}

/// `scanned`, of which none counts as a batch, against `eligible` LRU pages.
fn share_of_scanned(cache: &Cache, pressure: &Pressure) -> u64 {
    let scanned = match pressure.scanned {
        0 => SWAP_CLUSTER_MAX,
        scanned => scanned,
    };
    let delta = u128::from(4 * scanned / cache.seeks.max(1)) * u128::from(cache.freeable);
    u64::try_from(delta / u128::from(pressure.eligible + 1)).unwrap_or(u64::MAX)
}

fn share_of_priority(cache: &Cache, pressure: &Pressure) -> u64 {
    match cache.seeks {
        0 => cache.freeable / 2,
        seeks => (cache.freeable >> pressure.priority) * 4 / seeks,
    }
}

impl Quota {
    /// What a call does under the rules of a kernel, after `deferred` objects were put off.
    pub(super) fn new(
        rules: &Shrinkers,
        cache: &Cache,
        pressure: &Pressure,
        deferred: u64,
    ) -> Quota {
        let freeable = cache.freeable;
        let share = match rules.slab_pressure {
            SlabPressure::Scanned => share_of_scanned(cache, pressure),
            SlabPressure::Priority => share_of_priority(cache, pressure),
        };
        let delta = match rules.slab_least {
            SlabLeast::None => share,
            SlabLeast::Batch => share.max(freeable.min(cache.batch)),
        };
        let due = match rules.slab_deferred {
            SlabDeferred::Priority => deferred >> pressure.priority,
            _ => deferred,
        };
        let wanted = due.saturating_add(delta);
        let bounded = match rules.slab_deferred {
            SlabDeferred::Half | SlabDeferred::Kept if delta < freeable / 4 => {
                wanted.min(freeable / 2)
            }
            _ => wanted,
        };
        Quota {
            delta,
            total: bounded.min(2 * freeable),
            deferred,
        }
    }

    /// Objects of the next batch when `left` are to be scanned still; none: the call is over.
    pub(super) fn next_batch(rules: &Shrinkers, cache: &Cache, left: u64) -> Option<u64> {
        let goes_on = match rules.slab_batch {
            SlabBatch::Whole => left >= cache.batch,
            SlabBatch::Rest => left >= cache.batch || left >= cache.freeable,
        };
        (goes_on && left > 0).then_some(left.min(cache.batch))
    }

    /// What is put off after a call that has scanned so many.
    pub(super) fn put_off(&self, rules: &Shrinkers, cache: &Cache, scanned: u64) -> u64 {
        let all = self.deferred.saturating_add(self.delta);
        match rules.slab_deferred {
            SlabDeferred::All | SlabDeferred::Half => self.total - scanned,
            SlabDeferred::Kept => all.saturating_sub(scanned),
            SlabDeferred::Priority => all.saturating_sub(scanned).min(2 * cache.freeable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use lowmark_spec::random::Stream;

    fn rules(version: &str) -> Shrinkers {
        Kernel::named(version).mechanisms.shrinker
    }

    const VFS: Cache = Cache {
        freeable: 10_000,
        seeks: 2,
        batch: 1024,
    };

    fn by_pages(scanned: u64, eligible: u64) -> Pressure {
        Pressure {
            scanned,
            eligible,
            priority: 12,
        }
    }

    /// Worked by hand: 10,000 objects of two seeks.
    #[test]
    fn a_call_does_its_part() {
        let quota = |version: &str, pressure, deferred| {
            let quota = Quota::new(&rules(version), &VFS, &pressure, deferred);
            (quota.delta, quota.total)
        };
        // 64 of 9,999 pages scanned: 4 · 64 / 2 · 10,000 / 10,000.
        for version in ["v2.6.37", "v3.6", "v3.14", "v4.9"] {
            assert_eq!(
                quota(version, by_pages(64, 9_999), 0),
                (128, 128),
                "{version}"
            );
        }
        // 8,000 that were put off: all of them are due, or half of the cache.
        assert_eq!(quota("v2.6.37", by_pages(64, 9_999), 8_000), (128, 8_128));
        assert_eq!(quota("v3.6", by_pages(64, 9_999), 8_000), (128, 5_000));
        // A call whose own part is a quarter of the cache may do all, twice the cache at most.
        assert_eq!(
            quota("v3.6", by_pages(1_250, 9_999), 8_000),
            (2_500, 10_500)
        );
        assert_eq!(
            quota("v4.9", by_pages(1_250, 9_999), 80_000),
            (2_500, 20_000)
        );
        // Priority 12 is 1/4096 of the cache, two thirds of which ... 10,000 >> 12 = 2, times 4 / 2.
        let at = |priority| Pressure {
            scanned: 5,
            eligible: 0,
            priority,
        };
        assert_eq!(quota("v4.16", at(12), 0), (4, 4));
        assert_eq!(quota("v4.16", at(12), 8_000), (4, 5_000));
        assert_eq!(quota("v6.1", at(12), 8_000), (4, 5));
        assert_eq!(quota("v6.1", at(4), 8_000), (1_250, 1_750));
        assert_eq!(quota("v6.18", at(0), 8_000), (20_000, 20_000));
        assert_eq!(quota("v4.19", at(12), 0), (1_024, 1_024));
    }

    /// A pass that scanned nothing and had nothing to scan asks for 64 times the cache (spec of 4.11's `clear`).
    #[test]
    fn without_lru_pages_all_is_scanned_twice() {
        for version in ["v2.6.37", "v3.6", "v4.11"] {
            let quota = Quota::new(&rules(version), &VFS, &by_pages(0, 0), 0);
            assert_eq!((quota.delta, quota.total), (640_000, 20_000), "{version}");
        }
    }

    /// Shadows cost nothing from 4.20 on: half of them.
    #[test]
    fn what_costs_nothing_goes_in_halves() {
        let free = Cache {
            seeks: 0,
            batch: 128,
            ..VFS
        };
        let pressure = by_pages(0, 1);
        let quota = Quota::new(&rules("v6.1"), &free, &pressure, 0);
        assert_eq!((quota.delta, quota.total), (5_000, 5_000));
    }

    #[test]
    fn less_than_a_batch_waits_unless_it_is_all() {
        let (old, new) = (rules("v3.14"), rules("v3.15"));
        let small = Cache {
            freeable: 100,
            ..VFS
        };
        assert_eq!(Quota::next_batch(&old, &small, 200), None);
        assert_eq!(Quota::next_batch(&new, &small, 200), Some(200));
        assert_eq!(Quota::next_batch(&new, &small, 99), None);
        assert_eq!(Quota::next_batch(&old, &VFS, 1_500), Some(1_024));
        assert_eq!(Quota::next_batch(&new, &VFS, 476), None);
        assert_eq!(Quota::next_batch(&new, &VFS, 0), None);
    }

    /// What calls of one cache scan, put off and forget, against a computation in signed numbers that follows the
    /// eras' own steps.
    #[test]
    fn eras_put_off_what_their_steps_say() {
        let mut stream = Stream::new(0, "slab", 0);
        for version in [
            "v2.6.37", "v3.1", "v3.15", "v4.9", "v4.10", "v4.16", "v5.13", "v6.18",
        ] {
            let rules = rules(version);
            let (mut ours, mut theirs) = (0, 0i128);
            for _ in 0..2_000 {
                let cache = Cache {
                    freeable: stream.below(5_000) + 1,
                    ..VFS
                };
                let pressure = Pressure {
                    scanned: stream.below(400),
                    eligible: stream.below(20_000),
                    priority: stream.below(13) as u32,
                };
                let quota = Quota::new(&rules, &cache, &pressure, ours);
                let mut left = quota.total;
                while let Some(batch) = Quota::next_batch(&rules, &cache, left) {
                    left -= batch;
                }
                ours = quota.put_off(&rules, &cache, quota.total - left);
                let (scanned, put_off) = naive(version, &cache, &pressure, theirs);
                theirs = put_off;
                assert_eq!(i128::from(quota.total - left), scanned, "{version}");
                assert_eq!(i128::from(ours), theirs, "{version}");
            }
        }
    }

    /// Scanned, and put off.
    fn naive(version: &str, cache: &Cache, pressure: &Pressure, before: i128) -> (i128, i128) {
        let [major, minor] = match version {
            "v2.6.37" => [2, 6],
            version => {
                let mut parts = version[1..].split('.').map(|part| part.parse().unwrap());
                [parts.next().unwrap(), parts.next().unwrap()]
            }
        };
        let since = |a: i32, b: i32| (major, minor) >= (a, b);
        let items = i128::from(cache.freeable);
        let delta = if since(4, 16) {
            (items / 2i128.pow(pressure.priority)) * 4 / i128::from(cache.seeks)
        } else {
            let scanned = i128::from(pressure.scanned.max(1));
            let scanned = if pressure.scanned == 0 { 32 } else { scanned };
            4 * scanned / i128::from(cache.seeks) * items / (i128::from(pressure.eligible) + 1)
        };
        let mut total = before + delta;
        if since(5, 13) {
            total = before / 2i128.pow(pressure.priority) + delta;
        } else if since(3, 1) && delta < items / 4 && total > items / 2 {
            total = items / 2;
        }
        total = total.min(2 * items);
        let mut left = total;
        while left >= 1024 || since(3, 15) && left >= items {
            left -= left.min(1024);
        }
        let scanned = total - left;
        let put_off = if since(5, 13) {
            (before + delta - scanned).clamp(0, 2 * items)
        } else if since(4, 10) {
            (before + delta - scanned).max(0)
        } else {
            left
        };
        (scanned, put_off)
    }
}
