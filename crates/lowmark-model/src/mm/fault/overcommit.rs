//! Which maps the kernel grants (`mm/util.c`, up to 3.11 `mm/mmap.c`).
//!
//! Simplified: whoever maps is root, for whom nothing is kept back. What could be freed of slabs is left out, and up to 3.0
//! pages of shared memory, which those kernels count as if they could be freed.

use crate::kernel::Overcommit;
use crate::mm::Mm;

impl Mm {
    /// `__vm_enough_memory` of a map that may be written to and is not a shared one of a file: whether it may have so many
    /// pages.
    pub(crate) fn vm_enough_memory(&self, pages: u64) -> bool {
        if self.kernel.sysctl.overcommit_memory == 1 {
            return true;
        }
        match self.kernel.mechanisms.zones.overcommit {
            Overcommit::Total => pages <= self.totalram_pages() + self.swap.total_slots(),
            Overcommit::Available => {
                let free: u64 = self.zones.iter().map(|zone| zone.free).sum();
                let available = free + self.nr_file_pages + self.swap.free_slots();
                let kept = self.totalreserve_pages();
                // Counting the swap cache takes a while, and most maps are granted without it.
                let more_than = |available: u64| available.saturating_sub(kept) > pages;
                more_than(available) || more_than(available + self.swap.cached_pages())
            }
        }
    }
}
