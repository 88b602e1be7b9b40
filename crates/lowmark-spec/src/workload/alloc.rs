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
    /// An attempt that gets a block and takes longer than this is the last one, ns.
    pub give_up_success_ns: Option<u64>,
    /// An attempt that gets none and takes longer than this is the last one, ns.
    pub give_up_fail_ns: Option<u64>,
    /// Where attempts are recorded. Those that are given up count as failed, and take no time.
    pub series: Option<AllocSeries>,
}

impl Alloc {
    /// Whether the attempts end with one that took so long.
    pub fn gives_up(&self, success: bool, took_ns: u64) -> bool {
        let limit = if success {
            self.give_up_success_ns
        } else {
            self.give_up_fail_ns
        };
        limit.is_some_and(|limit| took_ns > limit)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each outcome has its own limit, and an attempt without one is never the last for its length.
    #[test]
    fn one_attempt_beyond_the_limit_of_its_outcome_is_the_last() {
        let alloc = |give_up_success_ns, give_up_fail_ns| Alloc {
            pool: 0,
            order: 9,
            flags: AllocFlags::Movable,
            count: 2,
            pace_ns: 0,
            busy: false,
            give_up_success_ns,
            give_up_fail_ns,
            series: None,
        };
        let both = alloc(Some(600), Some(1200));
        let ends = [(true, 600), (true, 601), (false, 1200), (false, 1201)];
        assert_eq!(
            ends.map(|(success, took)| both.gives_up(success, took)),
            [false, true, false, true]
        );
        let neither = alloc(None, None);
        assert!(!neither.gives_up(true, u64::MAX) && !neither.gives_up(false, u64::MAX));
    }
}
