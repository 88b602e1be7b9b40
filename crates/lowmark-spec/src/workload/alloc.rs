//! Blocks of pages: the statement `alloc`.

use serde::{Deserialize, Serialize};

use super::PoolId;

/// Blocks of pages that are asked for one after the other, and held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alloc {
    /// Where they are held until a `free` names it.
    pub pool: PoolId,
    /// Each block is 2^order pages.
    pub order: u32,
    /// What the allocator may do for a block.
    pub flags: AllocFlags,
    /// Attempts; one that fails is not repeated.
    pub count: u64,
    /// Time from the beginning of one attempt to that of the next, ns; an attempt that takes longer delays the next.
    pub pace_ns: u64,
    /// The task runs until the next attempt is due (`schedule` in a loop), and does not sleep.
    #[serde(default)]
    pub busy: bool,
    /// The attempts end when none has succeeded for this long, ns.
    pub give_up_success_ns: Option<u64>,
    /// The attempts end when failed ones have taken this long together, ns.
    pub give_up_fail_ns: Option<u64>,
    /// Where attempts are recorded.
    pub series: Option<AllocSeries>,
}

/// The series of an `alloc`: how long each attempt took, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocSeries {
    /// Attempts that got a block.
    pub success: usize,
    /// Attempts that did not: the series `NAME-failed`.
    pub failed: usize,
}

/// Who asks for a block, and thereby the flags of the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocFlags {
    /// `GFP_KERNEL`: memory of the kernel's own, which cannot be moved.
    Kernel,
    /// `GFP_HIGHUSER_MOVABLE | __GFP_NOWARN`: memory that can be moved, as mmtests' stress-highalloc asks.
    Movable,
    /// The same with `__GFP_RETRY_MAYFAIL | __GFP_THISNODE | __GFP_COMP`, from one node after the other: the pool of hugetlbfs.
    Hugetlb,
    /// `GFP_TRANSHUGE` with direct reclaim: a transparent huge page, for which nothing is tried twice.
    Thp,
}
