//! Shares in a number of events, of which the older count less (`lib/proportions.c`, to 3.5): of devices in what all
//! have written, and up to 3.1 of tasks in what all have dirtied.
//!
//! 1. Whoever does something counts it, and so does everybody together.
//! 2. At the end of each period, so many events of all, what each has counted is halved.
//! 3. A share is what one has counted over a period and what has passed of the present one. Who is alone comes to
//!    three quarters after two periods, seven eighths after three, and in the end to all.

/// What all have done (`struct prop_descriptor`).
#[derive(Debug)]
pub(crate) struct PropDescriptor {
    events: u64,
    period: u64,
}

impl Default for PropDescriptor {
    fn default() -> Self {
        PropDescriptor::new(0)
    }
}

impl PropDescriptor {
    /// With periods for this dirty threshold (`calc_period_shift`).
    pub(super) fn new(thresh: u64) -> PropDescriptor {
        PropDescriptor {
            events: 0,
            period: thresh.max(2).next_power_of_two(),
        }
    }

    /// An event. True: the period is over, and everybody's count is to be halved.
    pub(super) fn count(&mut self) -> bool {
        self.events += 1;
        self.events.is_multiple_of(self.period)
    }

    /// What counts are parts of (`prop_fraction_percpu`).
    pub(super) fn all(&self) -> u64 {
        self.period + self.events % self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 157286 pages are 1 GiB a period.
    #[test]
    fn who_is_alone_comes_to_all_of_it_slowly() {
        let mut all = PropDescriptor::new(157_286);
        let mut own = 0;
        let mut share = |pages: u64| {
            for _ in 0..pages {
                own += 1;
                if all.count() {
                    own /= 2;
                }
            }
            own * 1000 / all.all()
        };
        assert_eq!(share(131_072), 333);
        assert_eq!([share(131_072), share(262_144)], [500, 750]);
        assert_eq!([share(262_144), share(262_144 - 1)], [875, 937]);
        assert_eq!(share(20 * 262_144), 999);
    }
}
