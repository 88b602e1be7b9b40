//! Counters of the shrinkers in `/proc/vmstat`.

use crate::kernel::{Version, v};

/// Events that the shrinkers count.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SlabStat {
    /// Objects that shrinkers were told to scan
    pub(crate) slabs_scanned: u64,
    /// Pages of files that went with their inodes in direct reclaim, and when caches were dropped
    pub(crate) pginodesteal: u64,
    /// The same by kswapd
    pub(crate) kswapd_inodesteal: u64,
    /// Nodes of trees with shadows alone that were freed
    pub(crate) workingset_nodereclaim: u64,
    /// Times that the page cache was dropped
    pub(crate) drop_pagecache: u64,
    /// Times that slabs were
    pub(crate) drop_slab: u64,
}

/// The first version that counts what is dropped, and nodes with shadows alone (449dd6984d0e, 5509a5d27b97).
const COUNTS_DROPS: Version = v(3, 15);

impl SlabStat {
    /// Every counter by the name that it has in a version.
    pub(crate) fn by_name(&self, version: Version) -> Vec<(&'static str, u64)> {
        let mut counters = vec![
            ("slabs_scanned", self.slabs_scanned),
            ("pginodesteal", self.pginodesteal),
            ("kswapd_inodesteal", self.kswapd_inodesteal),
        ];
        if version >= COUNTS_DROPS {
            counters.extend([
                ("workingset_nodereclaim", self.workingset_nodereclaim),
                ("drop_pagecache", self.drop_pagecache),
                ("drop_slab", self.drop_slab),
            ]);
        }
        counters
    }
}
