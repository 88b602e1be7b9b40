//! LRU lists in use: adding and rotating, scanning and reclaiming, kswapd, and refaults.

pub(crate) mod kswapd;
pub(crate) mod lru;
pub(crate) mod madvise;
pub(crate) mod vmscan;
pub(crate) mod workingset;
