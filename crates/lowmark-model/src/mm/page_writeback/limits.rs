//! How many pages may be dirty (`global_dirty_limits`), and which share of them belongs to a device.

use super::position::Position;
use super::thresholds::{Memory, domain_dirty_limits, global_dirtyable_memory};
use crate::kernel::{BdiBackground, DirtyLimitStart, IdleDevices, Kernel, Proportions, Throttle};
use crate::mm::Mm;
use crate::mm::mmzone::{Lru, Lruvec, Mark, Zone};
use crate::time::{Nanos, SECOND};
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};

/// Everybody's completions are halved so often (`VM_COMPLETIONS_PERIOD_LEN`).
const COMPLETIONS_PERIOD: Nanos = 3 * SECOND;

/// What is remembered of the limits.
#[derive(Debug, Default)]
pub(crate) struct DirtyLimits {
    /// `global_dirty_limit`, and when it was last looked at, jiffies.
    pub(super) limit: u64,
    stamp: u64,
    /// Pages that all devices have written of late.
    pub(crate) completions: u64,
    period: Nanos,
    /// Dirty threshold after boot.
    at_boot: u64,
}

impl DirtyLimits {
    /// The threshold smoothed; 0 before a writer was first held back (`global_dirty_limit`).
    pub(crate) fn hard_limit(&self) -> u64 {
        self.limit
    }

    /// Pages after which the tasks' shares of dirtying are halved (`calc_period_shift`).
    pub(super) fn completion_half(&self) -> u64 {
        2 * self.at_boot.max(2).next_power_of_two()
    }
}

impl Mm {
    /// What dirty limits follow from.
    fn dirtyable(&self, kernel: &Kernel) -> Memory {
        let on_lists = |lists: &[Lru]| -> u64 {
            let pages = |lruvec: &Lruvec| lists.iter().map(|&lru| lruvec.len(lru)).sum::<u64>();
            self.lruvecs.iter().map(pages).sum()
        };
        let kept_back = |zone: &Zone| {
            let reserve = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
            (reserve + zone.mark(Mark::High)).min(zone.size(kernel))
        };
        Memory {
            free: self.zones.iter().map(|zone| zone.free).sum(),
            file: on_lists(&[Lru::InactiveFile, Lru::ActiveFile]),
            anon: match self.swap.free_slots() {
                0 => 0,
                _ => on_lists(&[Lru::InactiveAnon, Lru::ActiveAnon]),
            },
            reserve: self.zones.iter().map(kept_back).sum(),
        }
    }

    /// Background and dirty threshold in pages (`global_dirty_limits`).
    pub(crate) fn dirty_thresholds(&self, kernel: &Kernel) -> (u64, u64) {
        let available = global_dirtyable_memory(&self.dirtyable(kernel), &kernel.mechanisms);
        let limits = domain_dirty_limits(available, None, &kernel.sysctl, &kernel.mechanisms);
        (limits.background, limits.dirty)
    }

    /// `bdi_dirty_limit`, `__wb_calc_thresh`: the share of a device in `thresh`, by what it has written of late,
    /// within its `min_ratio` and `max_ratio`; `dirty` is what is dirty of all memory. Before anything has been
    /// written: all of it in kernels whose shares move slowly, else nothing.
    fn bdi_dirty_limit(&self, device: usize, thresh: u64, dirty: u64, kernel: &Kernel) -> u64 {
        let (bdi, mechanisms) = (&self.bdis[device], &kernel.mechanisms);
        let reserved: u64 = self.bdis.iter().map(|bdi| bdi.ratios.min).sum();
        let common = thresh * 100u64.saturating_sub(reserved) / 100;
        let fraction = match (self.limits.completions, mechanisms.proportions) {
            (0, Proportions::Prop) => common,
            (0, Proportions::Flex) => 0,
            (all, _) => common * bdi.completions / all,
        };
        let mut share = fraction + thresh * bdi.ratios.min / 100;
        if mechanisms.idle_devices == IdleDevices::Threshold {
            let part = match bdi.strict {
                true => 100,
                false => 8,
            };
            share = share.max(thresh.saturating_sub(dirty) / part);
        }
        share.min(thresh * bdi.ratios.max / 100)
    }

    /// A device has written a page (`bdi_writeout_inc`): it counts for its share, up to its `max_ratio`.
    pub(super) fn count_completion(&mut self, device: usize) {
        let bdi = &mut self.bdis[device];
        let all = self.limits.completions;
        // __prop_inc_percpu_max, __fprop_add_percpu_max
        if bdi.ratios.max < 100 && bdi.completions * 100 > all * bdi.ratios.max {
            return;
        }
        bdi.completions += 1;
        self.limits.completions += 1;
    }
}

impl World {
    /// What a writer to a device or its flusher sees; the tracepoint says it too.
    pub(crate) fn dirty_position(&mut self, device: usize) -> Position {
        self.age_completions();
        let (bg_thresh, thresh) = self.mm.dirty_thresholds(&self.kernel);
        self.trace(Kind::GlobalDirtyState, |world| {
            vec![
                (Field::Dirty, world.mm.nr_dirty),
                (Field::Writeback, world.mm.nr_writeback),
                (Field::Unstable, 0),
                (Field::BgThresh, bg_thresh),
                (Field::Thresh, thresh),
                (Field::Limit, world.mm.limits.limit),
                (Field::Dirtied, world.mm.stat.nr_dirtied),
                (Field::Written, world.mm.stat.nr_written),
            ]
        });
        let dirty = self.mm.nr_dirty + self.mm.nr_writeback;
        let bdi = &self.mm.bdis[device];
        Position {
            thresh,
            bg_thresh,
            dirty,
            limit: thresh.max(self.mm.limits.limit),
            bdi_thresh: self.mm.bdi_dirty_limit(device, thresh, dirty, &self.kernel),
            bdi_dirty: bdi.dirty(),
            strict: bdi.strict,
        }
    }

    /// `over_bground_thresh`: the flusher has something to do. Pages that are being written do not count.
    pub(crate) fn over_bground_thresh(&mut self, device: usize) -> bool {
        let at = self.dirty_position(device);
        if self.mm.nr_dirty > at.bg_thresh {
            return true;
        }
        let share = self
            .mm
            .bdi_dirty_limit(device, at.bg_thresh, at.dirty, &self.kernel);
        self.kernel.mechanisms.bdi_background == BdiBackground::On
            && self.mm.bdis[device].reclaimable > share
    }

    /// Everybody's completions fade: what was written long ago says nothing of shares.
    fn age_completions(&mut self) {
        let now = self.sched.now();
        while now >= self.mm.limits.period + COMPLETIONS_PERIOD {
            self.mm.limits.period += COMPLETIONS_PERIOD;
            self.mm.limits.completions = 0;
            for bdi in &mut self.mm.bdis {
                bdi.completions /= 2;
                self.mm.limits.completions += bdi.completions;
            }
            if self.mm.limits.completions == 0 {
                self.mm.limits.period = now;
            }
        }
    }

    /// `update_dirty_limit`: up at once, down slowly.
    pub(super) fn update_dirty_limit(&mut self, at: &Position) {
        let now = self.jiffies_now();
        let hz = self.hz();
        let limits = &mut self.mm.limits;
        if now < limits.stamp + (hz / 5).max(1) {
            return;
        }
        limits.stamp = now;
        if limits.limit < at.thresh {
            limits.limit = at.thresh;
        } else {
            let target = at.thresh.max(at.dirty);
            limits.limit -= limits.limit.saturating_sub(target) >> 5;
        }
    }

    /// `writeback_set_ratelimit`: after boot.
    pub(crate) fn set_dirty_ratelimit(&mut self, cpus: u32) {
        let (_, thresh) = self.mm.dirty_thresholds(&self.kernel);
        let total: u64 = self.mm.zones.iter().map(|zone| zone.managed).sum();
        let shares = 32 * u64::from(cpus);
        let by_memory = matches!(
            self.kernel.mechanisms.throttle,
            Throttle::Foreground | Throttle::ForegroundBounded
        );
        self.mm.limits.at_boot = thresh;
        if self.kernel.mechanisms.dirty_limit_start == DirtyLimitStart::Threshold {
            self.mm.limits.limit = thresh;
        }
        self.dirtying.ratelimit_pages = match by_memory {
            true => (total / shares).clamp(16, 1024),
            false => (thresh / shares).max(16),
        };
    }
}

/// `throttle_vm_writeout`: a reclaimer pauses while more is being written than a tenth above the dirty
/// limit.
pub(crate) async fn throttle_vm_writeout(sys: &Sys) {
    loop {
        let too_much = {
            let world = sys.world();
            let (_, threshold) = world.mm.dirty_thresholds(&world.kernel);
            world.mm.nr_writeback > threshold + threshold / 10
        };
        if !too_much {
            return;
        }
        sys.congestion_wait(SECOND / 10).await;
    }
}
