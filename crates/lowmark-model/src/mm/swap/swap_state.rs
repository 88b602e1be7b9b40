//! The swap cache and swap-in readahead (`mm/swap_state.c`).
//!
//! A fault on a swapped-out page that is not in the swap cache reads the aligned block of slots around
//! its own. How large the block is, is what the variants of
//! [`SwapinReadahead`] decide, from what became of
//! the pages read before: a page read for its neighbour's sake is *marked*, and a later look-up that
//! finds the mark is a *hit*. The mark shares its bit with PG_reclaim, so a fault on a page that is just
//! being written out counts as a hit too, as it did in the kernel.

use crate::device::Io;
use crate::ids::MemcgId;
use crate::kernel::{SwapinPlug, SwapinReadahead};
use crate::mm::Mm;
use crate::mm::io;
use crate::mm::memcontrol::alloc_charged;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};

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
    fn window(&mut self, page: u32, max: u32, region: u32) -> std::ops::Range<u32> {
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
        let right = match previous == page + 1 {
            true => page + 1,
            false if page == previous + 1 => page + pages,
            false => page + pages - (pages - 1) / 2,
        };
        let table = page / PAGES_PER_PMD * PAGES_PER_PMD;
        left.max(table)..right.min(region).min(table + PAGES_PER_PMD)
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
    #[inline]
    fn readahead_event(&mut self, konstantin: i32) {
        if self.kernel.mechanisms.swap.swapin_readahead == SwapinReadahead::Konstantin {
            self.swap
                .readahead
                .move_score(konstantin, self.kernel.sysctl.page_cluster);
        }
    }

    /// `delete_from_swap_cache`: the slot keeps its references.
    #[inline]
    pub(crate) fn delete_from_swap_cache(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        let slot = page.slot();
        page.clear(flag::SWAPCACHE);
        let unread = page.has(flag::RECLAIM) && !page.has(flag::WRITEBACK);
        self.swap.clear_cached(slot);
        if unread {
            self.readahead_event(-1);
        }
    }

    /// `try_to_free_swap`: drops the slot of a page that nobody needs there; the page is then dirty.
    #[inline]
    pub(crate) fn try_to_free_swap(&mut self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        let droppable = page.has(flag::SWAPCACHE)
            && !page.has(flag::WRITEBACK)
            && self.swap.references(page.slot()) == 0;
        if droppable {
            self.delete_from_swap_cache(pfn);
            self.pages[pfn].set(flag::DIRTY);
        }
        droppable
    }

    /// `lookup_swap_cache` by a fault on a page of a region (none for shmem). `replay` is the second attempt of a
    /// fault that waited for its read.
    #[inline]
    pub(crate) fn lookup_swap_cache(
        &mut self,
        slot: u32,
        at: Option<(u32, u32)>,
        replay: bool,
    ) -> Option<Pfn> {
        let pfn = self.swap.cached(slot)?;
        match self.kernel.mechanisms.swap.swapin_readahead {
            SwapinReadahead::Vanilla => {}
            SwapinReadahead::Shaohua => {
                if let Some((vma, _)) = at.filter(|_| !replay) {
                    let misses = &mut self.vmas[vma as usize].swapra_miss;
                    *misses = misses.saturating_sub(1);
                }
            }
            _ => {
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
        Some(pfn)
    }

    /// `swap_use_vma_readahead`
    fn reads_ahead_by_vma(&self) -> bool {
        self.kernel.mechanisms.swap.swapin_readahead == SwapinReadahead::Vma && !self.swap.rotates()
    }

    /// The slots to read when one is missing.
    fn swapin_window(&mut self, slot: u32, at: Option<(u32, u32)>) -> Window {
        if let Some((vma, page)) = at.filter(|_| self.reads_ahead_by_vma()) {
            let max = 1 << self.kernel.sysctl.page_cluster;
            let region = &mut self.vmas[vma as usize];
            let pages = region.readahead.window(page, max, region.ptes.len() as u32);
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

    fn marks_neighbours(&self) -> Marks {
        use SwapinReadahead as R;
        match self.kernel.mechanisms.swap.swapin_readahead {
            R::Vanilla | R::Shaohua => Marks::None,
            R::Konstantin | R::HughOld | R::HughNew | R::SwapinNrPages => Marks::All,
            R::Vma => Marks::New,
        }
    }
}

impl World {
    /// `add_to_swap`, `shmem_writepage`: gives a page on its way out a slot and enters it in the swap
    /// cache, dirty. False: swap is full.
    pub(crate) fn add_to_swap(&mut self, pfn: Pfn) -> bool {
        let cpu = self.sched.current_cpu();
        let Some(slot) = self.mm.swap.allocate(pfn, cpu) else {
            return false;
        };
        self.mm.readahead_event(-10);
        let page = &mut self.mm.pages[pfn];
        page.set(flag::SWAPCACHE | flag::DIRTY);
        page.set_slot(slot);
        self.mm.memcontrol.record_slot(slot, pfn);
        self.settle_swap_cache(pfn);
        true
    }
}

/// Which neighbours of a missing slot are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    /// Those that are read now.
    New,
    /// Those that were cached before, too.
    All,
}

/// Most slots in a window: page_cluster is 5 at most.
const WINDOW_MAX: usize = 32;

/// Slots that are looked at together.
#[derive(Debug)]
struct Window {
    slots: [u32; WINDOW_MAX],
    len: usize,
    /// Those before it have been looked at.
    next: usize,
}

impl Window {
    fn new(slots: impl Iterator<Item = u32>) -> Window {
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

    fn peek(&self) -> Option<u32> {
        self.slots[..self.len].get(self.next).copied()
    }
}

/// `swapin_readahead`: reads the window around `slot`. The target's page is then in the swap cache,
/// locked until it has been read, unless the slot was freed meanwhile.
pub(crate) async fn swapin_readahead(
    sys: &Sys,
    slot: u32,
    at: Option<(u32, u32)>,
    gfp: Gfp,
) -> Result<(), OutOfMemory> {
    let (window, marks) = {
        let world = &mut *sys.world();
        (
            world.mm.swapin_window(slot, at),
            world.mm.marks_neighbours(),
        )
    };
    let plug =
        window.len > 1 && sys.world().mm.kernel.mechanisms.swap.swapin_plug == SwapinPlug::On;
    if plug {
        sys.start_plug();
    }
    let mut reading = Reading {
        window,
        target: slot,
        marks,
        page: None,
        read: 0,
    };
    let mut result = Ok(());
    loop {
        let step = sys.world().read_slots(&mut reading, gfp);
        match step {
            Reads::Done => break,
            Reads::Allocate(memcg) => match alloc_charged(sys, gfp, memcg).await {
                Ok(pfn) => reading.page = Some(pfn),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            },
            Reads::Blocked(io) => {
                sys.suspend().await;
                io::submit(sys, io).await;
                reading.read += 1;
            }
        }
    }
    sys.charge_kernel(reading.read * sys.costs.swap_in_ns).await;
    if plug {
        sys.finish_plug();
    }
    result
}

/// A window that is being read.
struct Reading {
    window: Window,
    /// The slot that faulted.
    target: u32,
    /// Which others are marked.
    marks: Marks,
    /// A page for the next slot.
    page: Option<Pfn>,
    /// Reads begun.
    read: u64,
}

/// Why reading a window stopped.
enum Reads {
    /// It is through.
    Done,
    /// The next slot needs a page charged to this group, which the fast path has not.
    Allocate(MemcgId),
    /// The current task waits for memory or for a free request for this read.
    Blocked(Io),
}

impl World {
    /// `read_swap_cache_async` of slot after slot, as far as it goes without sleeping: each is read into
    /// a new page of the swap cache, unless it is cached or free. A hole costs nothing.
    fn read_slots(&mut self, reading: &mut Reading, gfp: Gfp) -> Reads {
        while let Some(slot) = reading.window.peek() {
            let neighbour = slot != reading.target;
            let cached = self.mm.swap.cached(slot);
            if cached.is_some() || !self.mm.swap.has_data(slot) {
                if let Some(unneeded) = reading.page.take() {
                    self.mm.free_page(unneeded);
                }
                if let Some(pfn) = cached.filter(|_| neighbour && reading.marks == Marks::All) {
                    self.mm.pages[pfn].set(flag::RECLAIM);
                }
                reading.window.next += 1;
                continue;
            }
            // The slow path may sleep, so everything has to be looked at again after it.
            let memcg = self.mm.memcontrol.of_slot(slot);
            let page = reading.page.take();
            let Some(pfn) = page.or_else(|| self.alloc_charged_fast(gfp, memcg)) else {
                return Reads::Allocate(memcg);
            };
            reading.window.next += 1;
            self.add_read_page(pfn, slot, neighbour && reading.marks != Marks::None);
            let io = self.swap_read(pfn, slot);
            if let Some(io) = self.try_submit(io) {
                return Reads::Blocked(io);
            }
            reading.read += 1;
        }
        Reads::Done
    }
}

impl World {
    /// A page that is going to be read: in the swap cache, locked, at the inactive head.
    fn add_read_page(&mut self, pfn: Pfn, slot: u32, marked: bool) {
        let page = &mut self.mm.pages[pfn];
        page.set(flag::SWAPCACHE | flag::SWAPBACKED | flag::LOCKED);
        if marked {
            page.set(flag::RECLAIM);
            self.mm.stat.swap_ra += 1;
        }
        page.set_slot(slot);
        let shadow = self.mm.swap.take_shadow(slot);
        self.mm.swap.set_cached(slot, pfn);
        if let Some(shadow) = shadow {
            self.mm.workingset_refault(pfn, shadow);
        }
        self.settle_swap_cache(pfn);
        self.mm.lru_add(pfn);
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
