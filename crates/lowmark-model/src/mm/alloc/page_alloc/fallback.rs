//! Free blocks of other types: what an allocation takes when there are none of its own (`__rmqueue_fallback`,
//! `__rmqueue_claim`, `__rmqueue_steal`).
//!
//! 1. The largest free block of another type is looked for. If it is a pageblock or more, it changes its type.
//! 2. A smaller one boosts the zone's watermarks. If enough of its pageblock is free or of the same kind, the
//!    whole pageblock changes its type, with all that is free in it.
//! 3. Else a page is taken from it and the type stays. For movable pages, which can be moved away again, the
//!    smallest free block is good enough from 4.13 on.
//!
//! How much of a pageblock comes along with the block has changed often: `impl MigrateTypes` says what of it each era has.

use crate::kernel::{AtomicReserve, MigrateTypes};
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{MAX_ORDER, MigrateType, Pfn, flag};

/// What was found out while pages are taken in a row (`enum rmqueue_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmqueueMode {
    /// Nothing: all ways are tried.
    Normal,
    /// There is no block of the type left and none to claim.
    Steal,
}

impl MigrateTypes {
    /// Whether a block of this order is reason enough to take what is free in its pageblock (`can_steal_fallback`,
    /// `should_try_claim_block`).
    pub(in crate::mm) fn may_claim(
        self,
        order: usize,
        pageblock: usize,
        list: MigrateType,
    ) -> bool {
        let small_too = match list {
            MigrateType::Reclaimable => true,
            MigrateType::Unmovable => !matches!(
                self,
                MigrateTypes::Moved | MigrateTypes::RestTaken | MigrateTypes::RestLeft
            ),
            MigrateType::Movable | MigrateType::HighAtomic => false,
        };
        order >= pageblock / 2 || small_too
    }

    /// Whether pages in use that are like those of the allocation count for it when half a pageblock is asked for, and
    /// whether the smallest of the blocks that changed their type is split then (02aa0cdd7248, 3bc48f96cf11, 4.12).
    fn counts_alike(self) -> bool {
        let before = matches!(
            self,
            MigrateTypes::Moved
                | MigrateTypes::RestTaken
                | MigrateTypes::RestLeft
                | MigrateTypes::UnmovableToo
        );
        !before
    }

    /// Whether free blocks change their type although their pageblock does not.
    fn moves_unclaimed(self) -> bool {
        !matches!(self, MigrateTypes::Claimed | MigrateTypes::ClaimedFirst)
    }

    /// Whether movable pages that cannot take a pageblock come from the smallest block (7a8f58f39188, 4.13).
    fn prefers_smallest(self) -> bool {
        matches!(self, MigrateTypes::Stolen | MigrateTypes::Claimed)
    }
}

/// What is in a pageblock (`prep_move_freepages_block`).
struct Census {
    free: u32,
    /// In use, and on an LRU list.
    movable: u32,
}

impl Zone {
    /// `__rmqueue`: a block of an order, if need be of another type.
    #[inline]
    pub(in crate::mm) fn rmqueue(
        &mut self,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
        mode: &mut RmqueueMode,
    ) -> Option<Pfn> {
        if *mode == RmqueueMode::Normal
            && let Some(pfn) = self.rmqueue_smallest(pages, order, list)
        {
            return Some(pfn);
        }
        self.rmqueue_fallback(pages, order, list, mode)
    }

    /// `__rmqueue_smallest`: split off the smallest block there is.
    #[inline(always)]
    pub(super) fn rmqueue_smallest(
        &mut self,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
    ) -> Option<Pfn> {
        let areas = &mut self.free_area[list as usize];
        let high = order + areas[order..].iter().position(|area| area.len() > 0)?;
        let pfn = areas[high].pop(pages)?;
        self.expand(pages, pfn, order, high, list);
        Some(pfn)
    }

    /// The upper halves of a block go back to the lists of a type.
    #[inline(always)]
    fn expand(&mut self, pages: &mut Pages, pfn: Pfn, low: usize, high: usize, list: MigrateType) {
        let areas = &mut self.free_area[list as usize];
        let mut order = high;
        while order > low {
            order -= 1;
            areas[order].push(pages, pfn + (1 << order), order, list);
        }
        pages[pfn].reset();
        self.free -= 1 << low;
    }

    #[cold]
    #[inline(never)]
    pub(super) fn rmqueue_fallback(
        &mut self,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
        mode: &mut RmqueueMode,
    ) -> Option<Pfn> {
        if self.pageblocks.is_empty() {
            // All blocks are of one type.
            return match list {
                MigrateType::Movable => None,
                _ => self.rmqueue_smallest(pages, order, MigrateType::Movable),
            };
        }
        let found = match self.rules.migrate_types {
            MigrateTypes::ClaimedFirst if *mode == RmqueueMode::Normal => {
                let claimed = self.rmqueue_claim(pages, order, list);
                claimed.or_else(|| {
                    *mode = RmqueueMode::Steal;
                    self.rmqueue_steal(pages, order, list)
                })
            }
            MigrateTypes::ClaimedFirst => self.rmqueue_steal(pages, order, list),
            _ => self.rmqueue_largest(pages, order, list),
        };
        match self.rules.atomic_reserve {
            // Rather than fail.
            AtomicReserve::AtBoot => {
                found.or_else(|| self.rmqueue_smallest(pages, order, MigrateType::HighAtomic))
            }
            _ => found,
        }
    }

    /// `__rmqueue_fallback`: up to 6.14 the first block that is found decides.
    fn rmqueue_largest(
        &mut self,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
    ) -> Option<Pfn> {
        let mut orders = (order..MAX_ORDER).rev();
        let largest = orders.find(|&high| self.find_suitable_fallback(high, list).is_some())?;
        let rules = self.rules.migrate_types;
        let smallest = rules.prefers_smallest()
            && !rules.may_claim(largest, self.blocks.pageblock, list)
            && list == MigrateType::Movable;
        let high = if smallest {
            (order..MAX_ORDER).find(|&high| self.find_suitable_fallback(high, list).is_some())?
        } else {
            largest
        };
        let from = self.find_suitable_fallback(high, list)?;
        self.steal_suitable_fallback(pages, order, high, from, list)
    }

    /// Takes the first block of this order and type, or all of its pageblock.
    fn steal_suitable_fallback(
        &mut self,
        pages: &mut Pages,
        order: usize,
        high: usize,
        from: MigrateType,
        list: MigrateType,
    ) -> Option<Pfn> {
        let pfn = self.free_area[from as usize][high].first()?;
        if high >= self.blocks.pageblock {
            return self.take_ownership(pages, order, high, from, list);
        }
        self.boost_watermark();
        let rules = self.rules.migrate_types;
        let (mut claimed, mut moved) = (false, false);
        if rules.may_claim(high, self.blocks.pageblock, list) {
            claimed = self.claim(pages, pfn, list);
            moved = claimed || rules.moves_unclaimed();
            if moved && rules.counts_alike() {
                return self.rmqueue_smallest(pages, order, list);
            }
        }
        let on = if moved { list } else { from };
        self.free_area[on as usize][high].remove(pages, pfn);
        let rest = match rules {
            MigrateTypes::Moved => on,
            MigrateTypes::RestLeft if claimed => list,
            MigrateTypes::RestLeft | MigrateTypes::Claimed | MigrateTypes::ClaimedFirst => from,
            _ => list,
        };
        self.expand(pages, pfn, order, high, rest);
        Some(pfn)
    }

    /// `__rmqueue_claim`
    fn rmqueue_claim(&mut self, pages: &mut Pages, order: usize, list: MigrateType) -> Option<Pfn> {
        for high in (order..MAX_ORDER).rev() {
            if !self
                .rules
                .migrate_types
                .may_claim(high, self.blocks.pageblock, list)
            {
                break;
            }
            let Some(from) = self.find_suitable_fallback(high, list) else {
                continue;
            };
            if high >= self.blocks.pageblock {
                return self.take_ownership(pages, order, high, from, list);
            }
            self.boost_watermark();
            let first = self.free_area[from as usize][high].first()?;
            if self.claim(pages, first, list) {
                return self.rmqueue_smallest(pages, order, list);
            }
        }
        None
    }

    /// `__rmqueue_steal`: from the smallest block there is, whose pageblock keeps its type.
    fn rmqueue_steal(&mut self, pages: &mut Pages, order: usize, list: MigrateType) -> Option<Pfn> {
        let (high, from) = (order..MAX_ORDER)
            .find_map(|high| Some((high, self.find_suitable_fallback(high, list)?)))?;
        let pfn = self.free_area[from as usize][high].pop(pages)?;
        self.expand(pages, pfn, order, high, from);
        Some(pfn)
    }

    /// The type that has a free block of this order, the preferred one first.
    fn find_suitable_fallback(&self, order: usize, list: MigrateType) -> Option<MigrateType> {
        let mut fallbacks = list.fallbacks().iter().copied();
        fallbacks.find(|&from| self.free_area[from as usize][order].len() > 0)
    }

    /// The first free block of this order and type, pageblocks in whole, becomes another type's.
    fn take_ownership(
        &mut self,
        pages: &mut Pages,
        order: usize,
        high: usize,
        from: MigrateType,
        list: MigrateType,
    ) -> Option<Pfn> {
        let pfn = self.free_area[from as usize][high].pop(pages)?;
        self.change_pageblock_range(pfn, high, list);
        self.expand(pages, pfn, order, high, list);
        Some(pfn)
    }

    /// The pageblock around a frame becomes this type's if half of it is free or in use by pages that are like
    /// it. What is free in it goes to the type's lists with it; up to 6.9 in any case.
    fn claim(&mut self, pages: &mut Pages, pfn: Pfn, list: MigrateType) -> bool {
        let (start, whole) = (self.pageblock_start(pfn), self.pageblock_pages());
        let rules = self.rules.migrate_types;
        let Census { free, movable } = census(pages, start..start + whole);
        let alike = match list {
            _ if !rules.counts_alike() => 0,
            MigrateType::Movable => movable,
            // What is in use and cannot be moved may be of either type.
            _ if self.pageblock_type(pfn) == MigrateType::Movable => whole - free - movable,
            _ => 0,
        };
        let claimed = free + alike >= whole / 2;
        if claimed || rules.moves_unclaimed() {
            self.move_freepages(pages, start, list);
        }
        if claimed {
            self.change_pageblock_range(start, self.blocks.pageblock, list);
        }
        claimed
    }

    /// `__move_freepages_block`
    pub(super) fn move_freepages(&mut self, pages: &mut Pages, start: Pfn, list: MigrateType) {
        let mut pfn = start;
        while pfn < start + self.pageblock_pages() {
            if !pages[pfn].has(flag::BUDDY) {
                pfn += 1;
                continue;
            }
            let (order, from) = (pages[pfn].order(), pages[pfn].buddy_list());
            self.free_area[from][order].remove(pages, pfn);
            self.free_area[list as usize][order].push(pages, pfn, order, list);
            pfn += 1 << order;
        }
    }

    /// Takes a free block of another type off its list, because it merges with one of this type. From 6.10 on
    /// its pageblocks are of this type then.
    #[cold]
    #[inline(never)]
    pub(super) fn take_buddy(
        &mut self,
        pages: &mut Pages,
        buddy: Pfn,
        order: usize,
        list: MigrateType,
    ) {
        let from = pages[buddy].buddy_list();
        self.free_area[from][order].remove(pages, buddy);
        if order >= self.blocks.pageblock && !self.rules.migrate_types.moves_unclaimed() {
            self.change_pageblock_range(buddy, order, list);
        }
    }

    /// `change_pageblock_range`: the pageblocks of a block of this order get a type.
    fn change_pageblock_range(&mut self, pfn: Pfn, order: usize, list: MigrateType) {
        let first = ((pfn - self.start) / self.pageblock_pages()) as usize;
        for block in 0..1 << (order - self.blocks.pageblock) {
            if let Some(of_block) = self.pageblocks.get_mut(first + block) {
                *of_block = list;
            }
        }
    }
}

fn census(pages: &Pages, pageblock: std::ops::Range<Pfn>) -> Census {
    let mut census = Census {
        free: 0,
        movable: 0,
    };
    let mut pfn = pageblock.start;
    while pfn < pageblock.end {
        let page = &pages[pfn];
        let step = if page.has(flag::BUDDY) {
            1 << page.order()
        } else {
            1
        };
        if page.has(flag::BUDDY) {
            census.free += step
        } else {
            let folio = &pages[pages.head(pfn)];
            census.movable += u32::from(folio.is_listed());
        }
        pfn += step;
    }
    census
}
