//! Kernels by name: a version, mechanisms changed by hand, sysctls.
//!
//! The syntax is `VERSION[-CHANGE][+MECHANISM=VARIANT | +CHANGE]…[,SYSCTL=VALUE | ,-CHANGE]…`, for example
//! `v3.6`, `6.18`, `v3.6+swapin_readahead=hugh-new`, `v3.13+swapin_nr_pages` or `v6.18-eevdf`. Which versions,
//! mechanisms and changes exist is the backend's to say: this crate knows only the form.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One difference between a kernel and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Toggle {
    /// `+MECHANISM=VARIANT`: a mechanism gets this variant.
    Set {
        /// Name of the mechanism.
        mechanism: String,
        /// Name of its variant.
        variant: String,
    },
    /// `+CHANGE`: the version as if it had this change, too.
    Apply(String),
    /// `-CHANGE`: the version as if it did not have this change.
    Remove(String),
}

impl Toggle {
    /// Name of the mechanism or change.
    pub fn name(&self) -> &str {
        match self {
            Toggle::Set {
                mechanism: name, ..
            }
            | Toggle::Apply(name)
            | Toggle::Remove(name) => name,
        }
    }
}

impl fmt::Display for Toggle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Toggle::Set { mechanism, variant } => write!(f, "+{mechanism}={variant}"),
            Toggle::Apply(change) => write!(f, "+{change}"),
            Toggle::Remove(change) => write!(f, "-{change}"),
        }
    }
}

/// A kernel as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The text as written, also the heading of its column.
    pub text: String,
    /// Version with its leading `v`, whether or not it was written with one, for example `v3.6`.
    pub version: String,
    /// What differs from the version, in the order written; the backend carries it out in this order.
    pub toggles: Vec<Toggle>,
    /// `vm.*` and block settings by their sysctl name without prefix and with underscores, for example
    /// `page_cluster`.
    pub sysctl: BTreeMap<String, String>,
}

/// A part of a [`KernelSpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelPart {
    /// All of it together.
    Whole,
    /// Its version.
    Version,
    /// One of its toggles, by number.
    Toggle(usize),
    /// A setting, by name.
    Setting(String),
}

/// Why a backend cannot run a kernel as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The part that it is about.
    pub part: KernelPart,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A backend's judgement of a kernel: everything that is wrong with it.
pub type KernelJudge = fn(&KernelSpec) -> Vec<Objection>;

/// Settings that can be changed by their name alone, as in `--set page_cluster=4`. The list only tells
/// settings from other names: a kernel may know more, and knows which of them it has.
pub const SYSCTLS: [&str; 35] = [
    "admin_reserve_kbytes",
    "compaction_proactiveness",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
    "extfrag_threshold",
    "khugepaged.alloc_sleep_millisecs",
    "khugepaged.defrag",
    "khugepaged.max_ptes_none",
    "khugepaged.max_ptes_shared",
    "khugepaged.max_ptes_swap",
    "khugepaged.pages_to_scan",
    "khugepaged.scan_sleep_millisecs",
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
    "thp.use_zero_page",
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

/// The name by which a setting is known here: underscores for dashes, as the kernel's one name
/// with a dash, `/proc/sys/vm/page-cluster`, is written in both ways, and without `vm.` before it. Nothing if
/// the text is not the name of a setting.
pub fn setting_name(text: &str) -> Option<String> {
    let name = text.strip_prefix("vm.").unwrap_or(text).replace('-', "_");
    is_setting(&name).then_some(name)
}

/// A version as [`KernelSpec::version`] has it, with its leading `v`; `3.6` and `v3.6` are the same one.
/// Nothing if the text is not a version: two to four numbers, and perhaps a release candidate, as in
/// `v2.6.36-rc4`.
pub fn version_name(text: &str) -> Option<String> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let number =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let (release, candidate) = match bare.split_once("-rc") {
        Some((release, candidate)) => (release, Some(candidate)),
        None => (bare, None),
    };
    let valid = (2..=4).contains(&release.split('.').count())
        && release.split('.').all(number)
        && candidate.is_none_or(number);
    valid.then(|| format!("v{bare}"))
}
