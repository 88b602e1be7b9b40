//! What kswapd, kcompactd, throttled reclaimers, compaction and memory cgroups keep in a zone, a node or a set of LRU
//! lists (`struct zone`, `pg_data_t`, `struct lruvec`). The fields are declared here, as in the kernel's header, and used in
//! the rooms of those that keep them.

use crate::mm::types::{MigrateType, PAGEBLOCK_ORDER, Pfn};
use crate::time::{TaskId, WaitQueue};

/// State of a node's kswapd, with the requests that allocations have left for it (`pg_data_t`).
#[derive(Debug, Default)]
pub(crate) struct Kswapd {
    /// `kswapd_wait`: where it naps and sleeps.
    pub(in crate::mm) wait: WaitQueue,
    /// `kswapd_max_order`
    pub(in crate::mm) order: u32,
    /// `kswapd_classzone_idx`; none means that nobody asked.
    pub(in crate::mm) class: Option<usize>,
    /// Runs in a row that reclaimed nothing (`kswapd_failures`).
    pub(crate) failures: u32,
    /// Asleep for good, not only napping.
    pub(crate) asleep: bool,
    /// The task that runs this kswapd.
    pub(in crate::mm) task: Option<TaskId>,
}

/// Requests that allocations and kswapd have left for a node's kcompactd (`kcompactd_*` of `pg_data_t`).
#[derive(Debug, Default)]
pub(crate) struct Kcompactd {
    /// `kcompactd_wait`
    pub(in crate::mm) wait: WaitQueue,
    /// `kcompactd_max_order`
    pub(in crate::mm) max_order: u32,
    /// `kcompactd_highest_zoneidx`; none: all zones.
    pub(in crate::mm) highest: Option<usize>,
}

/// Reclaimers that wait on a node, and the pages written since the first of them began to wait (`pg_data_t`).
#[derive(Debug, Default)]
pub(crate) struct Throttled {
    /// `reclaim_wait` by the reason of the wait.
    pub(in crate::mm) waiting: [WaitQueue; 4],
    /// `nr_writeback_throttled`
    pub(in crate::mm) for_writeback: u64,
    /// Pages written since the first of them began to wait (`NR_THROTTLED_WRITTEN`).
    pub(in crate::mm) written: u64,
}

/// What compaction remembers of a zone (`compact_*` of `struct zone`).
#[derive(Debug, Default)]
pub(crate) struct ZoneCompaction {
    /// `compact_cached_migrate_pfn` for those that may not wait, and for those that may.
    pub(in crate::mm) cached_migrate_pfn: [Pfn; 2],
    /// `compact_cached_free_pfn`
    pub(in crate::mm) cached_free_pfn: Pfn,
    /// Where the free scanner begins after it was last forgotten what is known of pageblocks (`compact_init_free_pfn`).
    pub(in crate::mm) init_free_pfn: Pfn,
    /// Where the migrate scanner does (`compact_init_migrate_pfn`).
    pub(in crate::mm) init_migrate_pfn: Pfn,
    /// How often it has been asked for since it was last put off (`compact_considered`).
    pub(in crate::mm) considered: u32,
    /// `compact_defer_shift`
    pub(in crate::mm) defer_shift: u32,
    /// The smallest order that there was no block of (`compact_order_failed`).
    pub(in crate::mm) order_failed: usize,
    /// kswapd clears `skip` when it goes to sleep (`compact_blockskip_flush`).
    pub(in crate::mm) blockskip_flush: bool,
    /// Pageblocks in which there was nothing to isolate (`PB_migrate_skip`).
    pub(in crate::mm) skip: Vec<bool>,
    /// While a task that compacts frees pages: the block that is to go to it.
    pub(in crate::mm) capture: Option<Capture>,
}

/// A block that a task compacts for, and that goes to it as soon as it is free (`struct capture_control`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capture {
    /// Order of the block.
    pub(in crate::mm) order: usize,
    /// Type of the pageblocks that the allocation belongs in.
    pub(in crate::mm) list: MigrateType,
    /// Its first frame, once there is one.
    pub(in crate::mm) page: Option<Pfn>,
}

impl ZoneCompaction {
    /// `compaction_capture`: whether a block that has become free is taken off the allocator's hands. A small one is not taken from
    /// a movable pageblock for what cannot be moved.
    #[inline]
    pub(in crate::mm) fn captures(&mut self, pfn: Pfn, order: usize, list: MigrateType) -> bool {
        let Some(capture) = &mut self.capture else {
            return false;
        };
        let pollutes = order < PAGEBLOCK_ORDER
            && list == MigrateType::Movable
            && capture.list != MigrateType::Movable;
        let taken = capture.page.is_none() && order == capture.order && !pollutes;
        if taken {
            capture.page = Some(pfn);
        }
        taken
    }
}

/// Counters of LRU lists, those of the groups below included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LruvecCounts {
    /// Lengths, by list.
    pub(in crate::mm) len: [u64; 4],
    /// `WORKINGSET_ACTIVATE` of anon and file.
    pub(in crate::mm) activations: [u64; 2],
}
