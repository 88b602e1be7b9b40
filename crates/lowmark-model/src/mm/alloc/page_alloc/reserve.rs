//! Pageblocks that are kept for allocations of several pages that cannot wait.
//!
//! 1. Up to 4.3 two pageblocks of each zone are kept from booting on (`MIGRATE_RESERVE`). Their pages count as free for
//!    everybody's watermarks, and any allocation gets them when nothing else is free.
//! 2. From 4.4 on the pageblock from which such an allocation got its block is kept, up to a hundredth of the zone
//!    (`MIGRATE_HIGHATOMIC`, 0aaa29a56e4f). Its pages do not count as free for other allocations.
//! 3. An allocation that reclaimed and still found nothing gives one of them back, the last one only when the allocation
//!    would be out of memory otherwise (29fac03bef72, 4.10).
//!
//! From 6.13 on those of the pages that are free are out of reach, not the whole pageblocks (c928807f6f6b); here it is the
//! whole pageblocks.

use crate::ids::ZoneId;
use crate::kernel::AtomicReserve;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Gfp, Mark, MigrateType, Pfn};

/// Pageblocks of a zone that are kept from booting on, at most.
const BOOT_BLOCKS_MAX: u64 = 2;

impl Zone {
    /// `setup_zone_migrate_reserve`: as many pageblocks as hold the min watermark, the first ones that are free as a whole.
    pub(super) fn set_boot_reserve(&mut self, pages: &mut Pages) {
        let wanted = self
            .mark(Mark::Min)
            .div_ceil(u64::from(self.pageblock_pages()));
        let blocks = (0..self.pageblocks.len() as Pfn)
            .map(|block| self.start + block * self.pageblock_pages());
        let (first, end) = (self.first_managed, self.first_managed + self.managed as Pfn);
        let suitable = |&start: &Pfn| {
            start >= first
                && start + self.pageblock_pages() <= end
                && self.pageblock_type(start) == MigrateType::Movable
        };
        let kept: Vec<Pfn> = blocks
            .filter(suitable)
            .take(wanted.min(BOOT_BLOCKS_MAX) as usize)
            .collect();
        for start in kept {
            self.set_pageblock(pages, start, MigrateType::HighAtomic);
        }
    }

    /// What is free for allocations that may not take from the reserve.
    #[inline]
    pub(crate) fn free_without_reserve(&self) -> u64 {
        self.free.saturating_sub(self.reserved_highatomic)
    }

    /// `reserve_highatomic_pageblock`: the pageblock of a block that was allocated is kept. True: it is now.
    fn reserve_highatomic(&mut self, pages: &mut Pages, pfn: Pfn) -> bool {
        let (share, block) = (self.managed / 100, u64::from(self.pageblock_pages()));
        let most = match self.rules.atomic_reserve {
            AtomicReserve::AtBoot => 0,
            AtomicReserve::OnDemand => share + block,
            AtomicReserve::LargeZones if share < block => 0,
            AtomicReserve::LargeZones => share.next_multiple_of(block),
        };
        let kept = self.pageblocks.is_empty()
            || self.pageblock_type(pfn) == MigrateType::HighAtomic
            || self.reserved_highatomic >= most;
        if kept {
            return false;
        }
        self.reserved_highatomic += block;
        let start = self.pageblock_start(pfn);
        self.set_pageblock(pages, start, MigrateType::HighAtomic);
        true
    }

    /// `unreserve_highatomic_pageblock`: a pageblock of the reserve that has something free becomes the type's. True: a
    /// pageblock did.
    fn unreserve_highatomic(&mut self, pages: &mut Pages, list: MigrateType, force: bool) -> bool {
        let block = u64::from(self.pageblock_pages());
        let kept = if force { 0 } else { block };
        if self.reserved_highatomic <= kept {
            return false;
        }
        let areas = &self.free_area[MigrateType::HighAtomic as usize];
        let Some(pfn) = areas.iter().find_map(|area| area.first()) else {
            return false;
        };
        self.reserved_highatomic -= block;
        let start = self.pageblock_start(pfn);
        self.set_pageblock(pages, start, list);
        true
    }

    /// A pageblock, with what is free in it, becomes a type's.
    fn set_pageblock(&mut self, pages: &mut Pages, start: Pfn, list: MigrateType) {
        self.move_freepages(pages, start, list);
        let block = ((start - self.start) / self.pageblock_pages()) as usize;
        if let Some(of_block) = self.pageblocks.get_mut(block) {
            *of_block = list;
        }
    }
}

impl Mm {
    /// A block was allocated that could not be waited for: its pageblock is kept for the next one.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_for_atomic(&mut self, zone: ZoneId, pfn: Pfn) {
        if self.zones[zone].reserve_highatomic(&mut self.pages, pfn) {
            self.update_fallbacks(zone);
        }
    }

    /// One pageblock of the reserve is given back, from the first zone of the allocation that has any. True: it was.
    #[cold]
    #[inline(never)]
    pub(super) fn unreserve_highatomic_pageblock(&mut self, gfp: Gfp, force: bool) -> bool {
        let usable = |zone: &Zone| zone.kind <= gfp.highest();
        for at in 0..self.zonelist(gfp).len() {
            let number = self.zonelist(gfp)[at];
            let zone = &mut self.zones[number];
            if usable(zone) && zone.unreserve_highatomic(&mut self.pages, gfp.migrate_type(), force)
            {
                self.update_fallbacks(number);
                return true;
            }
        }
        false
    }
}
