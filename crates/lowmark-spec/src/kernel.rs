//! Kernels by name: a version, mechanisms changed by hand, sysctls.
//!
//! The syntax is `VERSION[+MECHANISM[=VARIANT]]…`, for example `v3.6`, `v3.6+swapin_readahead=hugh-new`
//! or `v3.13+swapin_nr_pages`. Which versions and mechanisms exist is the backend's to say: this crate
//! knows only the form.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One mechanism set by hand on top of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toggle {
    /// Mechanism or commit name.
    pub mechanism: String,
    /// Variant; absent when the name alone says it (`+swapin_nr_pages`).
    pub variant: Option<String>,
}

/// A kernel as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The text as written, also the heading of its column.
    pub text: String,
    /// Version with its leading `v`, for example `v3.6`.
    pub version: String,
    /// Mechanisms set by hand, in the order written.
    pub toggles: Vec<Toggle>,
    /// `vm.*` and block settings by their sysctl name without prefix, for example `page_cluster`.
    pub sysctl: BTreeMap<String, String>,
}

/// Settings that can be changed by their name alone, as in `--set page_cluster=4`. The list only tells
/// settings from other names: a kernel may know more, and knows which of them it has.
pub const SYSCTLS: [&str; 27] = [
    "admin_reserve_kbytes",
    "compaction_proactiveness",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
    "extfrag_threshold",
    "lowmem_reserve_ratio",
    "lru_gen.enabled",
    "max_map_count",
    "min_free_kbytes",
    "min_slab_ratio",
    "min_unmapped_ratio",
    "nr_hugepages",
    "overcommit_memory",
    "overcommit_ratio",
    "page_cluster",
    "swappiness",
    "thp.defrag",
    "thp.enabled",
    "thp.shmem_enabled",
    "vfs_cache_pressure",
    "watermark_boost_factor",
    "watermark_scale_factor",
    "zone_reclaim_mode",
];

/// Whether a text has the form of the name of a setting or counter: `page_cluster`, `thp.defrag`.
pub fn is_setting(name: &str) -> bool {
    const BYTES_MAX: usize = 64;
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
    (1..=BYTES_MAX).contains(&name.len())
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.bytes().all(plain)
}
