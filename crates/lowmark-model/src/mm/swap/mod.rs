//! Swap areas, slots and clusters, the swap cache, and reading ahead from swap.

pub(crate) mod page_io;
pub(crate) mod swap_cache;
mod swap_cgroup;
mod swap_cluster;
mod swap_map;
pub(crate) mod swap_state;
pub(crate) mod swapfile;
