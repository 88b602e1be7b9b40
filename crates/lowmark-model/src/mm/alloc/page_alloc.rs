//! The page allocator: buddy lists, zone fallback, the slow path.
//!
//! The first zone of the zonelist that keeps its low watermark gives the block ([`freelist`]); where none does, it is
//! reclaimed, compacted or done without ([`slow_path`]).
//!
//! Each CPU keeps free pages to itself ([`crate::mm::alloc::pcp`]). Counters are exact.

mod blocks;
mod boost;
mod boot;
mod fallback;
mod freelist;
mod reserve;
mod slow_path;

use crate::ids::ZoneId;
pub(super) use fallback::RmqueueMode;
pub(crate) use slow_path::{alloc_page, alloc_pages};

use crate::kernel::WatermarkOrder;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Gfp, MigrateType, Pfn, ZoneType, flag};
use lowmark_record::event::gfp;

impl Zone {
    /// `zone_watermark_ok`: would the zone keep `mark` and its reserve against `class` after giving
    /// 2^order pages?
    #[inline]
    pub(crate) fn watermark_ok(&self, order: usize, mark: u64, class: ZoneType) -> bool {
        self.watermark_ok_with(self.free_without_reserve(), order, mark, class)
    }

    /// [`watermark_ok`](Self::watermark_ok) as if `free` pages were free.
    #[inline]
    pub(in crate::mm) fn watermark_ok_with(
        &self,
        free: u64,
        order: usize,
        mark: u64,
        class: ZoneType,
    ) -> bool {
        let after = (free + 1).saturating_sub(1 << order);
        if after <= mark + self.lowmem_reserve[class as usize] {
            return false;
        }
        order == 0 || self.order_ok(order, mark, after, MigrateType::PCPTYPES)
    }

    /// The same for an allocation that may take from what is kept for those that cannot wait.
    pub(super) fn watermark_ok_atomic(&self, order: usize, mark: u64, class: ZoneType) -> bool {
        let after = (self.free + 1).saturating_sub(1 << order);
        let enough = after > mark + self.lowmem_reserve[class as usize];
        enough && (order == 0 || self.order_ok(order, mark, after, MigrateType::COUNT))
    }

    /// One page that is to be of a type, if need be of another.
    #[inline]
    pub(crate) fn take(&mut self, pages: &mut Pages, list: MigrateType) -> Option<Pfn> {
        match self.rmqueue_smallest(pages, 0, list) {
            Some(pfn) => Some(pfn),
            None => self.rmqueue_fallback(pages, 0, list, &mut RmqueueMode::Normal),
        }
    }

    /// Whether there is a block for the order; those on the lists of the first `types` types count.
    fn order_ok(&self, order: usize, mark: u64, after: u64, types: usize) -> bool {
        match self.rules.watermark_order {
            WatermarkOrder::FreeBlock => {
                let lists = self.free_area[..types].iter();
                let mut large = lists.flat_map(|areas| &areas[order..]);
                large.any(|area| area.len() > 0)
            }
            WatermarkOrder::Decay => {
                let (mut free, mut mark) = (after, mark);
                (0..order).all(|o| {
                    let blocks: u64 = self.free_area.iter().map(|areas| areas[o].len()).sum();
                    free = free.saturating_sub(blocks << o);
                    mark >>= 1;
                    free > mark
                })
            }
        }
    }
}

impl Mm {
    /// Frees a block to the lists of its pageblock's type.
    #[inline]
    pub(crate) fn free_block(&mut self, pfn: Pfn, order: usize) {
        let zone = self.pages.zone(pfn);
        let list = self.zones[zone].pageblock_type(pfn);
        self.free_block_to(zone, pfn, order, list);
    }

    /// `__free_one_page`: merges with free buddies, and puts the block on a list of the type.
    #[inline]
    pub(super) fn free_block_to(
        &mut self,
        zone: ZoneId,
        pfn: Pfn,
        order: usize,
        list: MigrateType,
    ) {
        debug_assert_eq!(self.pages.zone(pfn), zone, "a block of another zone");
        debug_assert!(
            !self.pages[pfn].has(flag::LRU) && !self.pages[pfn].has(flag::BUDDY),
            "a block that is on a list is freed"
        );
        let zone = &mut self.zones[zone];
        zone.pages_scanned = 0;
        zone.all_unreclaimable = false;
        zone.free += 1 << order;
        let largest = zone.blocks.largest;
        let first = zone.first_managed;
        let managed_end = first + zone.managed as Pfn;
        let (mut pfn, mut order) = (pfn, order);
        while order < largest {
            if zone.compaction.captures(pfn, order, list) {
                zone.free -= 1 << order;
                return;
            }
            let buddy = pfn ^ (1 << order);
            if buddy < first || buddy + (1 << order) > managed_end {
                break;
            }
            let page = &self.pages[buddy];
            if !page.is_free_block(order) {
                break;
            }
            if page.is_on_list_of(list) {
                zone.free_area[list as usize][order].remove(&mut self.pages, buddy)
            } else {
                zone.take_buddy(&mut self.pages, buddy, order, list)
            }
            pfn &= buddy;
            order += 1;
        }
        zone.free_area[list as usize][order].push(&mut self.pages, pfn, order, list);
    }

    /// Frees one page that nobody uses (`free_hot_cold_page`).
    #[inline]
    pub(crate) fn free_page(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        debug_assert!(!page.has(flag::LRU) && !page.is_mapped());
        page.reset();
        self.pages.forget_generation(pfn);
        self.uncharge(pfn);
        self.stat.pgfree += 1;
        self.free_to_pcp(pfn, 0);
    }

    /// The zones that a request may try, in order: those of its node come first, and are all if it keeps to the node
    /// (`__GFP_THISNODE`).
    pub(crate) fn zonelist(&self, gfp: Gfp) -> &[ZoneId] {
        let node = &self.nodes[gfp.node];
        if gfp.has(gfp::THISNODE) {
            &node.zonelist[..node.zones.len()]
        } else {
            &node.zonelist
        }
    }

    /// The first zone of the zonelist that the request could use.
    pub(crate) fn preferred_zone(&self, gfp: Gfp) -> ZoneId {
        let mut usable = self.zonelist(gfp).iter().copied();
        usable
            .find(|&zone| self.zones[zone].kind <= gfp.highest())
            .unwrap_or(ZoneId::FIRST)
    }
}

#[cfg(test)]
mod tests;
