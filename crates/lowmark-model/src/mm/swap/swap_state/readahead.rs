//! How much is read with a swapped-out page, and what is remembered for that: all that the variants of
//! [`SwapinReadahead`] differ in.

use crate::kernel::SwapinReadahead;
use crate::mm::Mm;
use crate::mm::types::{Pfn, flag};
use std::ops::Range;

/// What the variants remember between faults, each its own part.
#[derive(Debug)]
pub(crate) struct Readahead {
    /// `swapin_readahead_hits` (and `swapra_hits` of hugh-old).
    hits: u32,
    /// `prev_offset`
    previous: u32,
    /// `last_readahead_pages`
    last_pages: u32,
    /// `swapin_pages` of hugh-old.
    pages: u32,
    /// konstantin's score, 0 to 1024, and the window's log2 that follows from it.
    score: u32,
    cluster: u32,
}

impl Default for Readahead {
    fn default() -> Self {
        Readahead {
            hits: 4,
            previous: 0,
            last_pages: 0,
            pages: 8,
            score: 1023,
            cluster: 1,
        }
    }
}

/// What a region remembers of its swap-ins (`swap_readahead_info`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct VmaReadahead {
    /// Page that last faulted on swap, whether it was cached or not.
    previous: u32,
    /// Size of the last window.
    window: u32,
    /// Hits since.
    hits: u32,
}

impl Default for VmaReadahead {
    fn default() -> Self {
        VmaReadahead {
            previous: NOWHERE,
            window: 0,
            hits: 4,
        }
    }
}

/// Next to no page.
const NOWHERE: u32 = u32::MAX >> 1;
/// `SWAP_RA_HITS_MAX`
const VMA_HITS_MAX: u32 = 63;
/// Pages that a page table of the last level maps.
const PAGES_PER_PMD: u32 = 512;

impl VmaReadahead {
    /// `swap_vma_ra_win`: the pages of the region to read for one that faults, from a window of at most
    /// `max`. Regions begin where a page table does.
    fn window(&mut self, page: u32, max: u32, vma: Range<u32>) -> Range<u32> {
        if max == 1 {
            return page..page + 1;
        }
        let pages = nr_pages(self.previous, page, self.hits, max, self.window);
        let previous = std::mem::replace(&mut self.previous, page);
        (self.window, self.hits) = (pages, 0);
        let left = if page == previous + 1 {
            page
        } else if previous == page + 1 {
            (page + 1).saturating_sub(pages)
        } else {
            page.saturating_sub((pages - 1) / 2)
        };
        // A window that would begin before the region is cut, not moved.
        let right = if previous == page + 1 {
            page + 1
        } else if page == previous + 1 {
            page + pages
        } else {
            page + pages - (pages - 1) / 2
        };
        let table = page / PAGES_PER_PMD * PAGES_PER_PMD;
        left.max(table).max(vma.start)..right.min(vma.end).min(table + PAGES_PER_PMD)
    }
}

/// `__swapin_nr_pages`
fn nr_pages(previous: u32, at: u32, hits: u32, max: u32, last: u32) -> u32 {
    let pages = match hits {
        0 => 1 + u32::from(at.abs_diff(previous) == 1),
        _ => (hits + 2).max(4).next_power_of_two(),
    };
    pages.min(max).max(last / 2)
}

/// Largest count of Shaohua's patch (`SWAPRA_MAX_MISS`).
const SWAPRA_MAX_MISS: u32 = 1000;
/// Above this many misses it reads one page (`SWAPRA_MISS_THRESHOLD`).
const SWAPRA_MISS_THRESHOLD: u32 = 100;

impl Readahead {
    /// `swapin_nr_pages`; `slow_shrink` is what the merged form added.
    fn nr_pages(&mut self, slot: u32, max: u32, slow_shrink: bool) -> u32 {
        if max <= 1 {
            return 1;
        }
        let hits = std::mem::take(&mut self.hits);
        let last = if slow_shrink { self.last_pages } else { 0 };
        let pages = nr_pages(self.previous, slot, hits, max, last);
        if hits == 0 {
            self.previous = slot;
        }
        self.last_pages = pages;
        pages
    }

    /// The window of hugh-old. The target counts as a hit, so at two pages there is always as much used
    /// as half the window: it never falls to one.
    fn nr_pages_old(&mut self, slot: u32, max: u32) -> u32 {
        let used = std::mem::take(&mut self.hits) + 1;
        let half = self.pages / 2;
        let pages = if half == 0 {
            let adjacent = slot.abs_diff(self.previous) == 1;
            self.previous = slot;
            1 + u32::from(adjacent)
        } else if used < half {
            half
        } else if used > half {
            self.pages * 2
        } else {
            self.pages
        };
        self.pages = pages.min(max);
        self.pages
    }

    fn move_score(&mut self, by: i32, page_cluster: u32) {
        let score = (self.score as i32 + by).clamp(0, 1024) as u32;
        if score != self.score {
            self.score = score;
            self.cluster = (page_cluster * score) >> 10;
        }
    }
}

impl Mm {
    /// Something happened that moves the score of Konstantin Khlebnikov's variant.
    #[inline]
    pub(super) fn readahead_event(&mut self, konstantin: i32) {
        if self.kernel.mechanisms.swap.swapin_readahead == SwapinReadahead::Konstantin {
            self.swap
                .readahead
                .move_score(konstantin, self.kernel.sysctl.page_cluster);
        }
    }

    /// A fault finds a page of the swap cache: the page may have been read for a neighbour's sake. `replay` is the second
    /// attempt of a fault that waited for its read.
    #[inline]
    pub(super) fn note_hit(&mut self, pfn: Pfn, at: Option<(u32, u32)>, replay: bool) {
        match self.kernel.mechanisms.swap.swapin_readahead {
            SwapinReadahead::Vanilla => {}
            SwapinReadahead::Shaohua => {
                if let Some((vma, _)) = at.filter(|_| !replay) {
                    let misses = &mut self.vmas[vma as usize].swapra_miss;
                    *misses = misses.saturating_sub(1);
                }
            }
            SwapinReadahead::Konstantin
            | SwapinReadahead::HughOld
            | SwapinReadahead::HughNew
            | SwapinReadahead::SwapinNrPages
            | SwapinReadahead::Vma => {
                let marked = self.pages[pfn].test_and_clear(flag::RECLAIM);
                self.stat.swap_ra_hit += u64::from(marked);
                match at.filter(|_| self.reads_ahead_by_vma()) {
                    Some((vma, page)) => {
                        let readahead = &mut self.vmas[vma as usize].readahead;
                        readahead.previous = page;
                        readahead.hits = (readahead.hits + u32::from(marked)).min(VMA_HITS_MAX);
                    }
                    None if marked => {
                        self.swap.readahead.hits += 1;
                        self.readahead_event(10);
                    }
                    None => {}
                }
            }
        }
    }

    /// `swap_use_vma_readahead`
    fn reads_ahead_by_vma(&self) -> bool {
        self.kernel.mechanisms.swap.swapin_readahead == SwapinReadahead::Vma && !self.swap.rotates()
    }

    /// The slots to read when one is missing.
    pub(super) fn swapin_window(&mut self, slot: u32, at: Option<(u32, u32)>) -> Window {
        if let Some((vma, page)) = at.filter(|_| self.reads_ahead_by_vma()) {
            let max = 1 << self.kernel.sysctl.page_cluster;
            let region = &mut self.vmas[vma as usize];
            let pages = region.readahead.window(page, max, region.vma_around(page));
            let ptes = &region.ptes[pages.start as usize..pages.end as usize];
            return Window::new(ptes.iter().filter_map(|pte| pte.swap_entry()));
        }
        match self.swapin_nr_slots(slot, at.map(|(vma, _)| vma)) {
            1 => Window::new(std::iter::once(slot)),
            slots => Window::new(self.swap.window(slot, slots)),
        }
    }

    /// How many slots to read around `slot`.
    fn swapin_nr_slots(&mut self, slot: u32, vma: Option<u32>) -> u32 {
        let max = 1 << self.kernel.sysctl.page_cluster;
        let readahead = &mut self.swap.readahead;
        match self.kernel.mechanisms.swap.swapin_readahead {
            SwapinReadahead::Vanilla => max,
            SwapinReadahead::Konstantin => {
                readahead.move_score(1, self.kernel.sysctl.page_cluster);
                1 << readahead.cluster
            }
            SwapinReadahead::Shaohua => {
                // Shared memory has no anon_vma to count in.
                let Some(vma) = vma else { return max };
                let misses = &mut self.vmas[vma as usize].swapra_miss;
                *misses = (*misses + 1).min(SWAPRA_MAX_MISS);
                if *misses > SWAPRA_MISS_THRESHOLD {
                    1
                } else {
                    max
                }
            }
            SwapinReadahead::HughOld => readahead.nr_pages_old(slot, max),
            SwapinReadahead::HughNew => readahead.nr_pages(slot, max, false),
            SwapinReadahead::SwapinNrPages | SwapinReadahead::Vma => {
                readahead.nr_pages(slot, max, true)
            }
        }
    }

    pub(super) fn marks_neighbours(&self) -> Marks {
        use SwapinReadahead as R;
        match self.kernel.mechanisms.swap.swapin_readahead {
            R::Vanilla | R::Shaohua => Marks::None,
            R::Konstantin | R::HughOld | R::HughNew | R::SwapinNrPages => Marks::All,
            R::Vma => Marks::New,
        }
    }
}

/// Which neighbours of a missing slot are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    None,
    /// Those that are read now.
    New,
    /// Those that were cached before, too.
    All,
}

/// Most slots in a window: page_cluster is 5 at most.
pub(super) const WINDOW_MAX: usize = 32;

/// Slots that are looked at together.
#[derive(Debug)]
pub(super) struct Window {
    slots: [u32; WINDOW_MAX],
    pub(super) len: usize,
    /// Those before it have been looked at.
    pub(super) next: usize,
}

impl Window {
    pub(super) fn new(slots: impl Iterator<Item = u32>) -> Window {
        let mut window = Window {
            slots: [0; WINDOW_MAX],
            len: 0,
            next: 0,
        };
        for (place, slot) in window.slots.iter_mut().zip(slots) {
            *place = slot;
            window.len += 1;
        }
        window
    }

    pub(super) fn peek(&self) -> Option<u32> {
        self.slots[..self.len].get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows for faults on slots far apart, with these hits between them.
    fn windows(hits: &[u32], slow_shrink: bool) -> Vec<u32> {
        let mut readahead = Readahead::default();
        let mut slot = 1000;
        let window = |&hits: &u32| {
            readahead.hits += hits;
            slot += 100;
            readahead.nr_pages(slot, 8, slow_shrink)
        };
        hits.iter().map(window).collect()
    }

    #[test]
    fn random_faults_narrow_the_window() {
        // The first call finds the four hits that it starts with.
        assert_eq!(windows(&[0, 0, 0, 0, 0], false), [8, 1, 1, 1, 1]);
        assert_eq!(windows(&[0, 0, 0, 0, 0], true), [8, 4, 2, 1, 1]);
    }

    #[test]
    fn hits_widen_the_window() {
        assert_eq!(windows(&[0, 1, 2, 3, 7], false), [8, 4, 4, 8, 8]);
        let mut readahead = Readahead {
            hits: 15,
            ..Readahead::default()
        };
        assert_eq!(readahead.nr_pages(5, 16, false), 16);
    }

    #[test]
    fn neighbours_of_the_last_miss_are_read_in_pairs() {
        let mut readahead = Readahead {
            hits: 0,
            ..Readahead::default()
        };
        assert_eq!(readahead.nr_pages(500, 8, false), 1);
        assert_eq!(readahead.nr_pages(501, 8, false), 2);
        assert_eq!(readahead.nr_pages(500, 8, false), 2);
        assert_eq!(readahead.nr_pages(502, 8, false), 1);
    }

    #[test]
    fn one_page_windows_remember_nothing() {
        let mut readahead = Readahead::default();
        assert_eq!(readahead.nr_pages(7, 1, true), 1);
        assert_eq!((readahead.hits, readahead.previous), (4, 0));
    }

    #[test]
    fn hugh_old_never_falls_below_two() {
        let mut readahead = Readahead {
            hits: 0,
            ..Readahead::default()
        };
        let windows: Vec<u32> = (0..6)
            .map(|n| readahead.nr_pages_old(1000 + 100 * n, 8))
            .collect();
        assert_eq!(windows, [4, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn konstantins_score_sinks_with_every_sequential_window() {
        // A window of 2^k: one fault, 2^k - 1 hits, 2^k pages swapped out for it.
        for cluster in 0..=3 {
            let mut readahead = Readahead::default();
            let before = readahead.score as i32;
            readahead.move_score(1, 3);
            for _ in 0..(1 << cluster) - 1 {
                readahead.move_score(-10, 3);
                readahead.move_score(10, 3);
            }
            readahead.move_score(-10, 3);
            assert_eq!(readahead.score as i32, before - 9);
        }
    }
}
