//! Reclaim from a memory cgroup that somebody asked for, by writing to `memory.reclaim`: no wait for a limit.
//!
//! Its events are those of a charge beyond `memory.max`, flags included. What tells them apart is `memory.events`: where no
//! group was at a limit or above `memory.high`, all of it was asked for.

use super::sink::WhyReport;
use super::wait::{Limit, Request};

impl WhyReport {
    /// Takes waits for limits of memory cgroups for what they are when no group was at one: work that was asked for.
    pub(super) fn disown_memcg(&mut self) {
        let at = Limit::Memcg as usize;
        let none = [0; Request::COUNT];
        let times = std::mem::replace(&mut self.sums.moment.time_ns[at], none);
        self.sums.asked_ns = times.iter().fold(0, |sum, part| sum.saturating_add(*part));
        self.sums.waits[at] = 0;
        for slice in self.course.slices_mut() {
            slice.time_ns[at] = none;
        }
        self.episodes.disown(Limit::Memcg);
        self.longest.retain(|wait| wait.limit != Limit::Memcg);
        let left = self.sums.moment.time_ns.as_flattened().iter();
        let left = left.fold(0u64, |sum, part| sum.saturating_add(*part));
        self.sums.inside.fit(left);
        self.sums.used_ns = self.sums.used_ns.min(left);
    }
}
