//! How many pages may be dirty (`global_dirty_limits`), and which share of them belongs to a device.

use super::position::Position;
use super::proportions::PropDescriptor;
use super::thresholds::{Memory, domain_dirty_limits, global_dirtyable_memory};
use crate::ids::{MemcgId, WbId, ZoneId};
use crate::kernel::{
    BdiBackground, DirtyLimitStart, DirtyReserve, DirtySpread, IdleDevices, Proportions, VmWriteout,
};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::{Lruvec, Zone};
use crate::mm::types::{Lru, Mark};
use crate::mm::writeback::backing_dev::{Bdi, Ratios};
use crate::time::{Nanos, SECOND};
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};
use lowmark_spec::machine::PAGE_SIZE;
use typed_index_collections::TiSlice;

/// A ratio of 1 (`BDI_RATIO_SCALE` of a percent).
const RATIO_SCALE: u64 = 1_000_000;

/// Everybody's completions are halved so often (`VM_COMPLETIONS_PERIOD_LEN`).
const COMPLETIONS_PERIOD: Nanos = 3 * SECOND;

/// What is remembered of the limits of a domain (`struct wb_domain`).
#[derive(Debug, Default)]
pub(crate) struct DirtyLimits {
    /// `global_dirty_limit`, and when it was last looked at, jiffies.
    pub(super) limit: u64,
    stamp: u64,
    /// Pages that all devices have written for it of late, from 3.6 on; before, of all memory, ever.
    pub(crate) completions: u64,
    period: Nanos,
    vm_completions: PropDescriptor,
}

impl DirtyLimits {
    /// The threshold smoothed; 0 before a writer was first held back (`global_dirty_limit`).
    pub(crate) fn hard_limit(&self) -> u64 {
        self.limit
    }

    /// Halves what its devices have written once in a while.
    fn age(
        &mut self,
        now: Nanos,
        bdis: &mut TiSlice<WbId, Bdi>,
        written: impl Fn(&mut Bdi) -> &mut u64,
    ) {
        while now >= self.period + COMPLETIONS_PERIOD {
            self.period += COMPLETIONS_PERIOD;
            self.completions = 0;
            for bdi in bdis.iter_mut() {
                *written(bdi) /= 2;
                self.completions += *written(bdi);
            }
            if self.completions == 0 {
                self.period = now;
            }
        }
    }

    /// `domain_update_dirty_limit`, at `now` jiffies: up at once, down slowly.
    pub(super) fn update(&mut self, at: &Position, now: u64, hz: u64) {
        if now < self.stamp + (hz / 5).max(1) {
            return;
        }
        self.stamp = now;
        if self.limit < at.thresh {
            self.limit = at.thresh;
        } else {
            let target = at.thresh.max(at.dirty);
            self.limit -= self.limit.saturating_sub(target) >> 5;
        }
    }
}

impl Mm {
    /// `zone_dirty_ok`, `node_dirty_ok`: whether a page of a zone may be given to a task that is about to write to it.
    pub(in crate::mm) fn dirty_ok(&self, zone: ZoneId) -> bool {
        let zone = &self.zones[zone];
        let zones = match self.kernel.mechanisms.writeback.dirty_spread {
            DirtySpread::Anywhere => return true,
            DirtySpread::Zone => std::slice::from_ref(zone),
            DirtySpread::Node => {
                let node = &self.nodes[zone.node].zones;
                match (node.first(), node.last()) {
                    (Some(&first), Some(&last)) => self.zones[first..=last].as_ref(),
                    _ => return true,
                }
            }
        };
        let dirty = zones.iter().map(|zone| zone.dirty).sum();
        self.surely_allows(zone, dirty) || dirty <= self.dirty_limit_of(zones)
    }

    /// Whether as many dirty pages are within the limit of a zone, or of its node, for its file pages alone that belong to no
    /// group. They are most of what the limit follows from, and two numbers; the limit itself is a sum over zones, lists
    /// and groups, which is much for every page that is written to.
    #[inline]
    fn surely_allows(&self, zone: &Zone, dirty: u64) -> bool {
        let lruvec = &self.lruvecs[zone.lruvec];
        let file = lruvec.len(Lru::InactiveFile) + lruvec.len(Lru::ActiveFile);
        let (sysctl, mechanisms) = (&self.kernel.sysctl, &self.kernel.mechanisms.writeback);
        mechanisms.dirty_reserve != DirtyReserve::Balance
            && sysctl.dirty_bytes == 0
            && dirty <= sysctl.dirty_ratio * file / 100
    }

    /// `zone_dirty_limit`, `node_dirty_limit`: how many pages of the zones may be dirty.
    fn dirty_limit_of(&self, zones: &[Zone]) -> u64 {
        let memory = zones.iter().fold(Memory::default(), |sum, zone| {
            let on_lists = |lists: [Lru; 2]| self.pages_of_zone(zone, lists);
            Memory {
                free: sum.free + zone.free,
                file: sum.file + on_lists([Lru::InactiveFile, Lru::ActiveFile]),
                anon: match self.swap.free_slots() {
                    0 => 0,
                    _ => sum.anon + on_lists([Lru::InactiveAnon, Lru::ActiveAnon]),
                },
                reserve: sum.reserve + kept_back(zone),
            }
        });
        let (sysctl, mechanisms) = (&self.kernel.sysctl, &self.kernel.mechanisms);
        let available = global_dirtyable_memory(&memory, mechanisms) - 1;
        match sysctl.dirty_bytes {
            0 => sysctl.dirty_ratio * available / 100,
            bytes => bytes.div_ceil(PAGE_SIZE) * available / self.dirtyable_memory(),
        }
    }

    /// Pages of a zone on lists, those of all groups.
    fn pages_of_zone(&self, zone: &Zone, lists: [Lru; 2]) -> u64 {
        let sets = self.lruvec_tree(zone.lruvec);
        let pages = sets.map(|set| lists.map(|lru| self.lruvecs[set].zone_len(zone.kind, lru)));
        pages.flatten().sum()
    }

    /// What dirty limits follow from.
    fn dirtyable(&self) -> Memory {
        let on_lists = |lists: &[Lru]| -> u64 {
            let pages = |lruvec: &Lruvec| lists.iter().map(|&lru| lruvec.len(lru)).sum::<u64>();
            self.lruvecs.iter().map(pages).sum()
        };
        Memory {
            free: self.zones.iter().map(|zone| zone.free).sum(),
            file: on_lists(&[Lru::InactiveFile, Lru::ActiveFile]),
            anon: match self.swap.free_slots() {
                0 => 0,
                _ => on_lists(&[Lru::InactiveAnon, Lru::ActiveAnon]),
            },
            reserve: self.totalreserve_pages(),
        }
    }

    /// `totalreserve_pages` (`dirty_balance_reserve` before 4.5): what the allocator keeps back.
    pub(in crate::mm) fn totalreserve_pages(&self) -> u64 {
        self.zones.iter().map(kept_back).sum()
    }

    /// Pages that may become dirty.
    pub(super) fn dirtyable_memory(&self) -> u64 {
        global_dirtyable_memory(&self.dirtyable(), &self.kernel.mechanisms)
    }

    /// Background and dirty threshold in pages (`global_dirty_limits`).
    pub(crate) fn dirty_thresholds(&self) -> (u64, u64) {
        let available = self.dirtyable_memory();
        let (sysctl, mechanisms) = (&self.kernel.sysctl, &self.kernel.mechanisms);
        let limits = domain_dirty_limits(available, None, sysctl, mechanisms);
        (limits.background, limits.dirty)
    }

    /// What a wb may and must have of its device's ratios, in parts of [`RATIO_SCALE`]: by its part of the bandwidth,
    /// where groups share the device (`wb_min_max_ratio`).
    fn ratios_of(&self, wb: WbId) -> Ratios {
        let Ratios { min, max } = self.bdis[wb].ratios;
        let scaled = |percent: u64| percent * RATIO_SCALE / 100;
        Ratios {
            min: self.part_of_bandwidth(wb, scaled(min)),
            max: match max {
                100 => scaled(100),
                max => self.part_of_bandwidth(wb, scaled(max)),
            },
        }
    }

    /// `bdi_dirty_limit`, `__wb_calc_thresh`: the share of a device, or of a group's part of it, in `thresh` of a
    /// domain, by what it has written of late, within its `min_ratio` and `max_ratio`; `dirty` is what is dirty of all
    /// of the domain. Before anything has been written that is nothing.
    pub(super) fn wb_share(&mut self, wb: WbId, memcg: MemcgId, thresh: u64, dirty: u64) -> u64 {
        let all = match (memcg, self.kernel.mechanisms.writeback.proportions) {
            (MemcgId::ROOT, Proportions::Prop) => self.limits[MemcgId::ROOT].vm_completions.all(),
            // Groups are of later kernels.
            _ => self.limits[memcg].completions,
        };
        let (bdi, mechanisms) = (&self.bdis[wb], &self.kernel.mechanisms);
        let written = match memcg {
            MemcgId::ROOT => bdi.completions,
            _ => bdi.memcg_completions,
        };
        let devices = self.bdis.iter().take(self.devices);
        let reserved: u64 = devices.map(|bdi| bdi.ratios.min).sum();
        let common = thresh * 100u64.saturating_sub(reserved) / 100;
        let fraction = (common * written).checked_div(all).unwrap_or(0);
        let ratios = self.ratios_of(wb);
        let mut share = fraction + thresh * ratios.min / RATIO_SCALE;
        if mechanisms.writeback.idle_devices == IdleDevices::Threshold {
            let part = if bdi.strict { 100 } else { 8 };
            share = share.max(thresh.saturating_sub(dirty) / part);
        }
        share.min(thresh * ratios.max / RATIO_SCALE)
    }

    /// A device has written a page (`wb_domain_writeout_add`): it counts for its share in memory, and in the group for
    /// which it was, up to its `max_ratio`.
    pub(super) fn count_completion(&mut self, wb: WbId, shares: Proportions) {
        let (_, memcg) = self.whose_wb(wb);
        let by_number = shares == Proportions::Prop;
        let all = if by_number {
            self.limits[MemcgId::ROOT].vm_completions.all()
        } else {
            self.limits[MemcgId::ROOT].completions
        };
        let bdi = &mut self.bdis[wb];
        let max = bdi.ratios.max;
        // __prop_inc_percpu_max, __fprop_add_percpu_max
        let counts = |own: u64, all: u64| max == 100 || own * 100 <= all * max;
        if counts(bdi.completions, all) {
            bdi.completions += 1;
            self.limits[MemcgId::ROOT].completions += 1;
            if by_number && self.limits[MemcgId::ROOT].vm_completions.count() {
                for bdi in &mut self.bdis {
                    bdi.completions /= 2;
                }
            }
        }
        if memcg != MemcgId::ROOT {
            let bdi = &mut self.bdis[wb];
            let all = &mut self.limits[memcg].completions;
            if counts(bdi.memcg_completions, *all) {
                bdi.memcg_completions += 1;
                *all += 1;
            }
        }
    }
}

impl World {
    /// What a writer to a device or its flusher sees; the tracepoint says it too.
    pub(crate) fn dirty_position(&mut self, wb: WbId) -> Position {
        self.age_completions();
        let (bg_thresh, thresh) = self.mm.dirty_thresholds();
        self.trace(Kind::GlobalDirtyState, |world| {
            vec![
                (Field::Dirty, world.mm.nr_dirty),
                (Field::Writeback, world.mm.nr_writeback),
                (Field::Unstable, world.mm.nr_unstable),
                (Field::BgThresh, bg_thresh),
                (Field::Thresh, thresh),
                (Field::Limit, world.mm.limits[MemcgId::ROOT].limit),
                (Field::Dirtied, world.mm.stat.nr_dirtied),
                (Field::Written, world.mm.stat.nr_written),
            ]
        });
        let dirty = self.mm.nr_reclaimable() + self.mm.nr_writeback;
        let bdi_thresh = self.mm.wb_share(wb, MemcgId::ROOT, thresh, dirty);
        let bdi = &self.mm.bdis[wb];
        Position {
            thresh,
            bg_thresh,
            dirty,
            limit: thresh.max(self.mm.limits[MemcgId::ROOT].limit),
            bdi_thresh,
            bdi_dirty: bdi.dirty(),
            strict: bdi.strict,
        }
    }

    /// `over_bground_thresh`: the flusher has something to do. Pages that are being written do not count.
    pub(crate) fn over_bground_thresh(&mut self, wb: WbId) -> bool {
        let at = self.dirty_position(wb);
        if self.mm.nr_reclaimable() > at.bg_thresh {
            return true;
        }
        let share = self.mm.wb_share(wb, MemcgId::ROOT, at.bg_thresh, at.dirty);
        let own = self.mm.kernel.mechanisms.writeback.bdi_background == BdiBackground::On;
        (own && self.mm.bdis[wb].reclaimable > share) || self.mm.memcg_over_bground_thresh(wb)
    }

    /// Everybody's completions fade with time, from 3.6 on: what was written long ago says nothing of shares.
    fn age_completions(&mut self) {
        let (now, mm) = (self.sched.now(), &mut self.mm);
        if mm.kernel.mechanisms.writeback.proportions == Proportions::Flex {
            mm.limits[MemcgId::ROOT].age(now, &mut mm.bdis, |bdi| &mut bdi.completions);
        }
        for (memcg, limits) in mm.limits.iter_mut_enumerated().skip(1) {
            let own = mm.bdis.chunks_mut(mm.devices).nth(usize::from(memcg));
            limits.age(now, own.unwrap_or_default(), |bdi| {
                &mut bdi.memcg_completions
            });
        }
    }

    /// `writeback_set_ratelimit`: after boot.
    pub(crate) fn set_dirty_ratelimit(&mut self, cpus: u32) {
        let (_, thresh) = self.mm.dirty_thresholds();
        let total = self.mm.totalram_pages();
        let shares = 32 * u64::from(cpus);
        let throttle = self.mm.kernel.mechanisms.writeback.throttle;
        self.mm.limits[MemcgId::ROOT].vm_completions = PropDescriptor::new(thresh);
        self.dirtying.recent = PropDescriptor::new(thresh);
        if self.mm.kernel.mechanisms.writeback.proportions == Proportions::Prop {
            for bdi in &mut self.mm.bdis {
                bdi.completions =
                    bdi.written_share * self.mm.limits[MemcgId::ROOT].vm_completions.all() / 100;
            }
        }
        if self.mm.kernel.mechanisms.writeback.dirty_limit_start == DirtyLimitStart::Threshold {
            self.mm.limits[MemcgId::ROOT].limit = thresh;
        }
        self.dirtying.ratelimit_pages = if throttle.writers_write() {
            (total / shares).clamp(16, 1024)
        } else {
            (thresh / shares).max(16)
        };
    }
}

/// What the allocator keeps back of a zone, pages.
fn kept_back(zone: &Zone) -> u64 {
    let reserve = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
    (reserve + zone.unboosted(Mark::High)).min(zone.size())
}

/// `throttle_vm_writeout`: a reclaimer waits while more pages are being written than pages may be dirty, and a tenth.
pub(crate) async fn throttle_vm_writeout(sys: &Sys) {
    loop {
        let too_much = {
            let world = sys.world();
            let limit = match world.mm.kernel.mechanisms.reclaim.vm_writeout {
                VmWriteout::Free => return,
                VmWriteout::Threshold => 0,
                VmWriteout::Limit => world.mm.limits[MemcgId::ROOT].hard_limit(),
            };
            let (_, threshold) = world.mm.dirty_thresholds();
            let allowed = threshold.max(limit);
            world.mm.nr_writeback > allowed + allowed / 10
        };
        if !too_much {
            return;
        }
        sys.congestion_wait(SECOND / 10).await;
    }
}
