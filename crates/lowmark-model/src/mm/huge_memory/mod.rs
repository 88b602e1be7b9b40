//! Huge pages of private memory (`mm/huge_memory.c`): folios of 512 frames that one entry of the directory above page
//! tables maps.
//!
//! 1. A fault in 2 MiB in which nothing is mapped yet gets one where it may ([`fault`]).
//! 2. It is one entry of an LRU list. All of its frames are anonymous and have their own owner numbers and PTEs; its other flags
//!    are those of its head.
//! 3. Its entry is split when a part of it is to be mapped otherwise, and it is split itself when its parts go different
//!    ways ([`split`]). Until then it may wait on a list ([`deferred`]).
//! 4. Reclaim takes it as one (`reclaim/vmscan/huge_page.rs`).
//! 5. khugepaged makes one of single pages ([`khugepaged`]).
//!
//! What few frames need stands in a table beside them, one entry for each place of a huge page.

mod deferred;
mod events;
mod fault;
mod khugepaged;
mod split;

pub(crate) use khugepaged::khugepaged;
pub(crate) use split::SplitTime;

use crate::kernel::Kernel;
use crate::kernel::thp::{Enabled, InForce};
use crate::mm::types::{HPAGE_PMD_NR, HPAGE_PMD_ORDER, NONE, Pfn};
use khugepaged::Scanner;

/// What is remembered of a huge page.
#[derive(Debug, Clone, Copy)]
struct HugePage {
    /// Frames of it that are mapped.
    mapped: u16,
    /// Frames of it whose writes have not ended.
    writes: u16,
    /// It is on a list, and where: heads of those before and behind it.
    queued: bool,
    /// The list that it was last on.
    queue: u16,
    /// A part of it has been unmapped.
    partly_mapped: bool,
    before: Pfn,
    behind: Pfn,
}

const FRESH: HugePage = HugePage {
    mapped: 0,
    writes: 0,
    queued: false,
    queue: 0,
    partly_mapped: false,
    before: NONE,
    behind: NONE,
};

/// Huge pages that wait to be split (`deferred_split_queue`), oldest first.
#[derive(Debug, Clone, Copy)]
struct Queue {
    first: Pfn,
    last: Pfn,
    len: u64,
}

const EMPTY: Queue = Queue {
    first: NONE,
    last: NONE,
    len: 0,
};

/// All huge pages of private memory.
#[derive(Debug)]
pub(crate) struct HugeMemory {
    /// What is in force on this machine.
    settings: InForce,
    /// By place; empty if there are none.
    places: Vec<HugePage>,
    /// By node and memory cgroup, as [`Mm::cache_place`](crate::mm::Mm::cache_place) says.
    queues: Vec<Queue>,
    /// The huge page of zeroes has been allocated.
    zero: bool,
    /// What khugepaged scans.
    scanner: Scanner,
    /// Regions whose mappings are locked because a huge page of theirs is being split (`anon_vma_lock_write`).
    splitting: Vec<u32>,
}

impl HugeMemory {
    /// No huge pages yet; none ever if the machine or the kernel has none.
    pub(super) fn new(kernel: &Kernel, settings: InForce, frames: u32, nodes: usize) -> HugeMemory {
        let some = settings.enabled != Enabled::Never;
        let places = if some && kernel.coverage.huge_pages {
            frames.div_ceil(HPAGE_PMD_NR) as usize
        } else {
            0
        };
        HugeMemory {
            settings,
            places: vec![FRESH; places],
            queues: vec![EMPTY; nodes],
            zero: false,
            scanner: Scanner::default(),
            splitting: Vec::new(),
        }
    }

    /// Makes a list for each place.
    pub(in crate::mm) fn make_queues(&mut self, places: usize) {
        self.queues.resize(places, EMPTY);
    }

    /// Whether there are huge pages at all.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.places.is_empty()
    }

    fn of(&self, head: Pfn) -> &HugePage {
        &self.places[(head >> HPAGE_PMD_ORDER) as usize]
    }

    fn of_mut(&mut self, head: Pfn) -> &mut HugePage {
        &mut self.places[(head >> HPAGE_PMD_ORDER) as usize]
    }

    /// A huge page of a region is split, which takes a while.
    pub(crate) fn begin_split(&mut self, vma: u32) {
        self.splitting.push(vma);
    }

    /// That is done.
    pub(crate) fn end_split(&mut self, vma: u32) {
        if let Some(at) = self.splitting.iter().position(|&other| other == vma) {
            self.splitting.swap_remove(at);
        }
    }

    /// Frames that are mapped of a huge page.
    pub(crate) fn mapped(&self, head: Pfn) -> u16 {
        self.of(head).mapped
    }

    /// Writes of so many of its frames have begun.
    pub(crate) fn begin_writes(&mut self, head: Pfn, frames: u16) {
        self.of_mut(head).writes = frames;
    }

    /// Writes of a huge page that have not ended.
    pub(crate) fn writes(&self, head: Pfn) -> u16 {
        self.of(head).writes
    }

    /// A frame has been written; whether it was the last one.
    pub(crate) fn end_write(&mut self, head: Pfn) -> bool {
        let page = self.of_mut(head);
        page.writes -= 1;
        page.writes == 0
    }
}
