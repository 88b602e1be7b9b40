//! Page frames, and the lists, owners and entries that name them: `struct page`, folios, LRU lists as sequences of
//! frames, page table entries.

pub(crate) mod folio;
pub(crate) mod generation;
pub(crate) mod lru_list;
pub(crate) mod mapping;
pub(crate) mod page;
pub(crate) mod pte;
pub(crate) mod shadow;
