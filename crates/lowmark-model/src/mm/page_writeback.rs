//! What reclaim has to do with dirty limits (`mm/page-writeback.c`).

use super::Mm;
use super::mmzone::{Lru, Mark};
use crate::kernel::{Dirtyable, Kernel};
use crate::time::SECOND;
use crate::world::Sys;

impl Mm {
    /// Pages that writers may make dirty (`global_dirtyable_memory`).
    fn dirtyable(&self, kernel: &Kernel) -> u64 {
        let free: u64 = self.zones.iter().map(|zone| zone.free).sum();
        let with_anon =
            kernel.mechanisms.dirtyable == Dirtyable::AnonToo && self.swap.free_slots() > 0;
        let lists: &[Lru] = match with_anon {
            true => &Lru::EVICTABLE,
            false => &[Lru::InactiveFile, Lru::ActiveFile],
        };
        let cached: u64 = self
            .lruvecs
            .iter()
            .flat_map(|lruvec| lists.iter().map(|&lru| lruvec.len(lru)))
            .sum();
        // dirty_balance_reserve: what the allocator keeps back anyway.
        let reserve: u64 = self
            .zones
            .iter()
            .map(|zone| {
                let reserve = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
                (reserve + zone.mark(Mark::High)).min(zone.present)
            })
            .sum();
        (free + cached).saturating_sub(reserve)
    }

    /// The hard dirty limit in pages (`global_dirty_limits`).
    fn dirty_threshold(&self, kernel: &Kernel) -> u64 {
        self.dirtyable(kernel) * kernel.sysctl.dirty_ratio / 100
    }
}

/// `throttle_vm_writeout`: a reclaimer pauses while more is being written than a tenth above the dirty
/// limit.
pub(crate) async fn throttle_vm_writeout(sys: &Sys) {
    loop {
        let too_much = {
            let world = sys.world();
            let threshold = world.mm.dirty_threshold(&world.kernel);
            world.mm.nr_writeback > threshold + threshold / 10
        };
        if !too_much {
            return;
        }
        sys.congestion_wait(SECOND / 10).await;
    }
}
