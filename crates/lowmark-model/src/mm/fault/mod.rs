//! Mapped memory: regions, faults of every kind, shared objects, and the way from a page to the entries that map it.

pub(crate) mod fetch;
pub(crate) mod filemap_fault;
pub(crate) mod memory;
mod mlock;
pub(in crate::mm) mod mmu_gather;
mod overcommit;
pub(crate) mod parts;
pub(in crate::mm) mod pgtable;
pub(crate) mod rmap;
pub(crate) mod shmem;
mod zap;
