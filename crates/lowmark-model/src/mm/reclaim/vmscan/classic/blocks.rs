//! Pages off the tail of a list, each with what is to be had of its block (`isolate_lru_pages` for orders above 0, to 3.4).
//!
//! 1. A page is taken off the tail. Its block is the 2^order pages, aligned to as many, in which it lies.
//! 2. The block is gone through from its first page. What is on the list that is scanned is taken; in lumpy reclaim, what is
//!    on any list. Every page that is taken counts as scanned.
//! 3. A page that is not to be had ends the walk from 2.6.37 on, unless it is free already.

use crate::kernel::{BlockWalk, LruUnit};
use crate::mm::Mm;
use crate::mm::reclaim::vmscan::{Batch, ScanControl, Target};
use crate::mm::types::{ByZone, Lru, Pfn, flag};

/// What walks through blocks came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contig {
    /// Pages taken beside those of the tail.
    pub(super) taken: u64,
    /// Dirty ones among them.
    pub(super) dirty: u64,
    /// To 2.6.36 pages in use that were not to be had in lumpy reclaim, later walks that ended early.
    pub(super) failed: u64,
    /// Frames looked at; no tracepoint has them.
    pub(super) looked_at: u64,
}

/// What a walk makes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    /// It is taken.
    Taken,
    /// So many pages from here on are free.
    Free(Pfn),
    /// Others have it, or it is of another kind.
    NotToBeHad,
    /// It lies in another zone, or there is no swap for it.
    Pointless,
}

impl Mm {
    /// Whether a reclaimer walks through blocks.
    pub(super) fn walks_blocks(&self, sc: &ScanControl) -> bool {
        let zones = self.kernel.mechanisms.reclaim.lru_unit == LruUnit::Zone;
        let walks = match self.kernel.mechanisms.reclaim.block_walk {
            BlockWalk::PastOthers | BlockWalk::ToFirstOther => true,
            BlockWalk::LumpyAlone => sc.mode.is_lumpy(),
            BlockWalk::Never => false,
        };
        walks && zones && sc.order > 0
    }

    /// Takes pages off the tail of a zone's list, and their blocks with them, until `want` have been scanned, a huge page
    /// as one; how many pages were taken.
    pub(super) fn isolate_blocks(
        &mut self,
        target: Target,
        (lru, want): (Lru, u64),
        sc: &ScanControl,
        batch: &mut Batch,
    ) -> (u64, Contig) {
        let mut contig = Contig::default();
        let (mut scanned, mut pages) = (0, 0);
        while scanned < want {
            let lists = &mut self.lruvecs[target.lruvec];
            let before = batch.len();
            lists.take_tail(&mut self.chunks, &mut self.pages, (lru, 1), batch);
            let Some(&pfn) = batch.get(before) else {
                break;
            };
            let own = self.pages[pfn].folio_nr_pages();
            let mut by_zone = ByZone::default();
            by_zone[self.zones[target.zone].kind as usize] = own;
            lists.count_taken(lru, &by_zone, own - 1);
            let others = self.walk_block(target, pfn, lru, sc, batch, &mut contig);
            pages += own + others;
            scanned += (batch.len() - before) as u64;
        }
        (pages, contig)
    }

    /// Goes through the block of a page; how many other pages were taken.
    fn walk_block(
        &mut self,
        target: Target,
        pfn: Pfn,
        lru: Lru,
        sc: &ScanControl,
        batch: &mut Batch,
        contig: &mut Contig,
    ) -> u64 {
        let goes_past = self.kernel.mechanisms.reclaim.block_walk == BlockWalk::PastOthers;
        // ISOLATE_BOTH
        let any_list = sc.mode.is_lumpy() && !lru.is_active();
        let first = pfn & !((1 << sc.order) - 1);
        let end = first + (1 << sc.order);
        let (mut at, mut taken) = (first, 0);
        while at < end {
            if at == pfn {
                at += 1;
                continue;
            }
            match self.neighbour(target, at, lru, any_list) {
                Neighbour::Taken => {
                    let pages = self.pages[at].folio_nr_pages();
                    if self.pages[at].has(flag::DIRTY) {
                        contig.dirty += pages;
                    }
                    self.lru_del(at);
                    batch.push(at);
                    taken += pages;
                    at += pages as Pfn;
                }
                Neighbour::Free(pages) => at += pages,
                Neighbour::NotToBeHad if goes_past => {
                    contig.failed += u64::from(any_list);
                    at += 1;
                }
                Neighbour::Pointless if goes_past => at += 1,
                Neighbour::NotToBeHad | Neighbour::Pointless => {
                    contig.failed += 1;
                    break;
                }
            }
        }
        contig.taken += taken;
        contig.looked_at += u64::from(at - first);
        taken
    }

    fn neighbour(&self, target: Target, at: Pfn, lru: Lru, any_list: bool) -> Neighbour {
        let Some(page) = self.pages.get(at) else {
            return Neighbour::Pointless;
        };
        if self.pages.zone(at) != target.zone {
            return Neighbour::Pointless;
        }
        if page.has(flag::BUDDY) {
            return Neighbour::Free(1 << page.order());
        }
        if page.has(flag::PCP) {
            return Neighbour::Free(1);
        }
        let no_swap = self.swap.free_slots() == 0;
        if no_swap && page.is_anon() && !page.has(flag::SWAPCACHE) {
            return Neighbour::Pointless;
        }
        if page.has(flag::LRU) && (any_list || page.lru() == lru) {
            Neighbour::Taken
        } else {
            Neighbour::NotToBeHad
        }
    }
}

#[cfg(test)]
mod tests;
