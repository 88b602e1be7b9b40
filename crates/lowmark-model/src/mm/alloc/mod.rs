//! Nodes and zones, and what hands out their frames: the page allocator with its per-CPU lists, slabs, and the nodes of
//! the kernel's trees.

pub(crate) mod held;
pub mod mmzone;
pub(crate) mod page_alloc;
pub(crate) mod pcp;
pub(crate) mod slub;
pub(crate) mod xarray;
