//! Domains of dirty pages (`struct wb_domain`): all of memory, and since 4.2 each memory cgroup.
//!
//! 1. A group has a flusher of its own for each device, with lists and estimates of their own
//!    (`struct bdi_writeback`); in [`Mm::bdis`] those of the root come first.
//! 2. An inode belongs to that of the group whose page was its first dirty one.
//! 3. A group's limits are parts of what it has in files and may still get. A device's share of them is by what
//!    it has written for the group.
//! 4. A writer is held back by its own group's flusher: below both ceilings it runs free, else the domain with the
//!    lower position ratio counts.

use super::position::Position;
use super::thresholds::{Domain, domain_dirty_limits, memcg_dirtyable_memory};
use crate::ids::{DeviceId, InodeId, MemcgId, WbId};
use crate::kernel::CgroupWriteback;
use crate::mm::Mm;
use crate::mm::types::Pfn;
use crate::mm::writeback::backing_dev::Bdi;
use crate::world::World;
use lowmark_spec::machine::Device;

/// Where dirty pages stand in the domains that a writer belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Domains {
    /// All of memory (`gdtc`).
    pub(super) global: Position,
    /// Its memory cgroup (`mdtc`).
    pub(super) memcg: Option<Position>,
}

impl Domains {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Position> {
        std::iter::once(&self.global).chain(&self.memcg)
    }
}

impl Mm {
    /// Gives each group its part of every device, if the kernel does.
    pub(crate) fn make_group_wbs(&mut self, devices: &[Device]) {
        // Groups of version 1 have none (`inode_cgwb_enabled`).
        let off = self.kernel.mechanisms.writeback.cgroup_writeback == CgroupWriteback::Off;
        if off || self.memcontrol.is_legacy() {
            return;
        }
        let strictlimit = self.kernel.mechanisms.writeback.strictlimit;
        for _ in 1..self.memcontrol.len() {
            let new = |device| Bdi::new(device, strictlimit);
            self.bdis.extend(devices.iter().map(new));
        }
    }

    /// The number of a group's part of a device (`wb_get_lookup`).
    pub(crate) fn wb_of(&self, device: DeviceId, memcg: MemcgId) -> WbId {
        let wb = WbId::from(usize::from(device) + self.devices * usize::from(memcg));
        if wb < self.bdis.next_key() {
            wb
        } else {
            WbId::of_root(device)
        }
    }

    /// Whose part that is: device and group.
    pub(crate) fn whose_wb(&self, wb: WbId) -> (DeviceId, MemcgId) {
        let number = usize::from(wb);
        let device = DeviceId::from(number % self.devices);
        (device, MemcgId::from(number / self.devices))
    }

    /// `inode_attach_wb`: a page of the inode becomes dirty; with the first one it is decided where it belongs.
    pub(super) fn attach_wb(&mut self, inode: InodeId, pfn: Pfn) -> WbId {
        let wb = self.wb_of(self.inodes[inode].device, self.memcontrol.of_page(pfn));
        *self.inodes[inode].writeback.wb.get_or_insert(wb)
    }

    /// The part of something that a wb has by its bandwidth, among those of its device that have dirty inodes
    /// (`wb_split_bdi_pages`): all if it is the only one.
    pub(crate) fn part_of_bandwidth(&self, wb: WbId, whole: u64) -> u64 {
        let (device, _) = self.whose_wb(wb);
        let bandwidth = |bdi: &Bdi| bdi.estimate.avg_write_bandwidth;
        let parts = self.bdis[WbId::of_root(device)..].iter();
        let busy = parts.step_by(self.devices).filter(|bdi| bdi.has_dirty_io());
        let all = busy.map(bandwidth).sum();
        match bandwidth(&self.bdis[wb]) {
            mine if mine < all => {
                (u128::from(whole) * u128::from(mine)).div_ceil(u128::from(all)) as u64
            }
            _ => whole,
        }
    }

    /// Where the dirty pages of a wb's group stand, those under writeback included or not; none for the root,
    /// which has all of memory.
    fn memcg_position_with(&mut self, wb: WbId, writeback: bool) -> Option<Position> {
        let memcg = match self.whose_wb(wb) {
            (_, MemcgId::ROOT) => return None,
            (_, memcg) => memcg,
        };
        let counted = |(dirty, on_the_way)| dirty + if writeback { on_the_way } else { 0 };
        let global = Domain {
            available: self.dirtyable_memory(),
            dirty: counted((self.nr_reclaimable(), self.nr_writeback)),
        };
        let (files, dirty) = self.memcg_wb_stats(memcg);
        let own = Domain {
            available: files,
            dirty: counted(dirty),
        };
        let headroom = self.memcontrol.headroom(memcg);
        let available = memcg_dirtyable_memory(&own, headroom, &global);
        let (sysctl, mechanisms) = (&self.kernel.sysctl, &self.kernel.mechanisms);
        let limits = domain_dirty_limits(available, Some(global.available), sysctl, mechanisms);
        let limit = self.limits[memcg].limit;
        let share = self.wb_share(wb, memcg, limits.dirty, own.dirty);
        let bdi = &self.bdis[wb];
        Some(Position {
            thresh: limits.dirty,
            bg_thresh: limits.background,
            dirty: own.dirty,
            limit: limits.dirty.max(limit),
            bdi_thresh: share,
            bdi_dirty: bdi.dirty(),
            strict: bdi.strict,
        })
    }

    /// Whether a group's flusher has something to do on behalf of the group (`wb_over_bg_thresh`).
    pub(super) fn memcg_over_bground_thresh(&mut self, wb: WbId) -> bool {
        let Some(at) = self.memcg_position_with(wb, false) else {
            return false;
        };
        let (_, memcg) = self.whose_wb(wb);
        let share = self.wb_share(wb, memcg, at.bg_thresh, at.dirty);
        at.dirty > at.bg_thresh || self.bdis[wb].reclaimable > share
    }
}

impl World {
    /// What a writer sees.
    pub(super) fn domains(&mut self, wb: WbId) -> Domains {
        Domains {
            global: self.dirty_position(wb),
            memcg: self.mm.memcg_position_with(wb, true),
        }
    }
}
