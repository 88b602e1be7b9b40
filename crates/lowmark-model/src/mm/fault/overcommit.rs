//! Which maps the kernel grants (`mm/util.c`, up to 3.11 `mm/mmap.c`).
//!
//! Simplified: whoever maps is root, for whom nothing is kept back. What could be freed of slabs is left out, and up to 3.0
//! pages of shared memory, which those kernels count as if they could be freed.

use crate::kernel::Overcommit;
use crate::world::World;

impl World {
    /// `__vm_enough_memory` of a map that may be written to and is not a shared one of a file: whether it may have so many
    /// pages.
    pub(crate) fn vm_enough_memory(&self, pages: u64) -> bool {
        if self.mm.kernel.sysctl.overcommit_memory == 1 {
            return true;
        }
        match self.mm.kernel.mechanisms.zones.overcommit {
            Overcommit::Total => pages <= self.mm.totalram_pages() + self.mm.swap.total_slots(),
            Overcommit::Available => {
                let free: u64 = self.mm.zones.iter().map(|zone| zone.free).sum();
                let available = free + self.mm.nr_file_pages + self.mm.swap.free_slots();
                let kept = self.mm.totalreserve_pages();
                // Counting the swap cache takes a while, and most maps are granted without it.
                let more_than = |available: u64| available.saturating_sub(kept) > pages;
                more_than(available) || more_than(available + self.mm.swap.cached_pages())
            }
        }
    }
}
