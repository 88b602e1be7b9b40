//! When a device's bandwidth and base rate are measured.
//!
//! Up to 5.14, at most every 200 ms, by whoever comes first: a throttled writer, who moves the base rate
//! too, or the flusher after a round. A second without either is taken for idleness and left out.
//!
//! Since 5.15 (45a2966fd641, fee468fdf41c) a sample ends where pages do, so that a device that writes in bursts
//! is not taken for a slow one:
//!
//! 1. A writer or an inode's turn takes one when the last is older than 200 ms.
//! 2. When the last page of an inode is written, one is taken 200 ms later.
//! 3. A turn that finds nothing under writeback and the last sample older than a second begins anew.

use super::domains::Domains;
use super::estimate::Step;
use super::throttle::kilobytes;
use crate::ids::{MemcgId, WbId};
use crate::kernel::{BandwidthSampling, Throttle};
use crate::mm::Mm;
use crate::world::{Interrupt, World};
use lowmark_record::{Field, Kind};

impl Mm {
    fn by_completions(&self) -> bool {
        self.kernel.mechanisms.writeback.bandwidth_sampling == BandwidthSampling::Completions
    }
}

impl World {
    /// Jiffies between two samples (`BANDWIDTH_INTERVAL`).
    fn bandwidth_interval(&self) -> u64 {
        (self.hz() / 5).max(1)
    }

    /// Whether the last sample is old enough (`time_is_before_jiffies`).
    fn sample_is_due(&self, wb: WbId) -> bool {
        let stamp = self.mm.bdis[wb].estimate.stamp;
        self.jiffies_now() > stamp + self.bandwidth_interval()
    }

    /// A throttled writer's sample, if it is time; it has been held back since `start`, jiffies.
    pub(super) fn balance_update_bandwidth(&mut self, wb: WbId, at: &Domains, start: u64) {
        if !self.mm.by_completions() {
            self.bdi_update_bandwidth(wb, Some(at), start);
        } else if self.sample_is_due(wb) {
            self.take_sample(wb, Some(at));
        }
    }

    /// `__bdi_update_bandwidth`, at most every 200 ms for a device; positions are known to a throttled writer, and
    /// not to the flusher. `start` is when the caller began.
    fn bdi_update_bandwidth(&mut self, wb: WbId, writer: Option<&Domains>, start: u64) {
        // Up to 3.0 nobody asks.
        if self.mm.kernel.mechanisms.writeback.throttle == Throttle::Foreground {
            return;
        }
        let elapsed = self.jiffies_now() - self.mm.bdis[wb].estimate.stamp;
        if elapsed < self.bandwidth_interval() {
            return;
        }
        let idle = elapsed > self.hz() && self.mm.bdis[wb].estimate.stamp < start;
        if idle {
            self.begin_sample(wb)
        } else {
            self.take_sample(wb, writer)
        }
    }

    /// After a round of the flusher that began at `start`.
    pub(crate) fn round_update_bandwidth(&mut self, wb: WbId, start: u64) {
        if !self.mm.by_completions() {
            self.bdi_update_bandwidth(wb, None, start);
        }
    }

    /// `wb_bandwidth_estimate_start`, before an inode's turn.
    pub(crate) fn bandwidth_estimate_start(&mut self, wb: WbId) {
        let bdi = &self.mm.bdis[wb];
        let elapsed = self.jiffies_now() - bdi.estimate.stamp;
        if self.mm.by_completions() && elapsed > self.hz() && bdi.writeback_inodes == 0 {
            self.begin_sample(wb);
        }
    }

    /// After an inode's turn.
    pub(crate) fn turn_update_bandwidth(&mut self, wb: WbId) {
        if self.mm.by_completions() && self.sample_is_due(wb) {
            self.take_sample(wb, None);
        }
    }

    /// `wb_inode_writeback_end`: a device has one inode less under writeback.
    pub(crate) fn inode_writeback_end(&mut self, wb: WbId) {
        let interval = self.bandwidth_interval() * self.jiffy();
        let later = self.mm.by_completions();
        let bdi = &mut self.mm.bdis[wb];
        bdi.writeback_inodes -= 1;
        if later && !std::mem::replace(&mut bdi.sample_is_coming, true) {
            self.sched
                .interrupt_after(interval, Interrupt::SampleBandwidth { wb });
        }
    }

    /// `wb_update_bandwidth_workfn`
    pub(crate) fn late_sample(&mut self, wb: WbId) {
        self.mm.bdis[wb].sample_is_coming = false;
        self.take_sample(wb, None);
    }

    fn begin_sample(&mut self, wb: WbId) {
        let now = self.jiffies_now();
        let bdi = &mut self.mm.bdis[wb];
        bdi.estimate.stamp = now;
        bdi.estimate.dirtied = bdi.dirtied;
        bdi.estimate.written = bdi.written;
    }

    /// Moves the limit, the base rate and the bandwidth, the first two only for a throttled writer.
    fn take_sample(&mut self, wb: WbId, writer: Option<&Domains>) {
        let (now, hz) = (self.jiffies_now(), self.hz());
        let mechanisms = &self.mm.kernel.mechanisms;
        let (throttle, rule) = (
            mechanisms.writeback.throttle,
            mechanisms.writeback.balanced_rate,
        );
        let bdi = &self.mm.bdis[wb];
        let (dirtied, written) = (bdi.dirtied, bdi.written);
        let elapsed = (now - bdi.estimate.stamp).max(1);
        let (_, memcg) = self.mm.whose_wb(wb);
        for (domain, at) in [MemcgId::ROOT, memcg]
            .into_iter()
            .zip(writer.iter().flat_map(|at| at.iter()))
        {
            self.mm.limits[domain].update(at, now, hz);
            if !throttle.writers_write() {
                let ratio = self.mm.position_ratio(wb, at);
                let estimate = &mut self.mm.bdis[wb].estimate;
                let step = estimate.update_dirty_ratelimit(at, ratio, dirtied, elapsed, hz, rule);
                self.trace_ratelimit(wb, step);
            }
        }
        let estimate = &mut self.mm.bdis[wb].estimate;
        estimate.update_write_bandwidth(elapsed, written, hz);
        self.begin_sample(wb);
    }

    fn trace_ratelimit(&mut self, wb: WbId, step: Step) {
        self.trace_bdi(Kind::BdiDirtyRatelimit, wb, |world| {
            let estimate = &world.mm.bdis[wb].estimate;
            [
                (Field::WriteBw, estimate.write_bandwidth),
                (Field::AwriteBw, estimate.avg_write_bandwidth),
                (Field::DirtyRate, step.dirty_rate),
                (Field::DirtyRatelimit, estimate.dirty_ratelimit),
                (Field::TaskRatelimit, step.task_ratelimit),
                (
                    Field::BalancedDirtyRatelimit,
                    estimate.balanced_dirty_ratelimit,
                ),
            ]
            .map(|(field, pages)| (field, kilobytes(pages)))
            .to_vec()
        });
    }
}
