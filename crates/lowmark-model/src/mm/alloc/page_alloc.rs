//! The page allocator: buddy lists, zone fallback, the slow path.
//!
//! Fast path: the first zone of the zonelist that keeps its low watermark gives the page. Slow path, for
//! order 0 (`__alloc_pages_slowpath`):
//!
//! 1. wake kswapd on every node of the zonelist;
//! 2. try again down to the min watermark; a reclaimer itself may go below it;
//! 3. reclaim directly, try again;
//! 4. nothing reclaimed: out of memory; otherwise wait if writing is congested and start again.
//!
//! Up to 5.13 per-CPU lists of free pages ([`crate::mm::alloc::pcp`]) are left out. Counters are exact.

mod boost;
mod boot;
mod fallback;
mod nowait;
mod order;

use crate::ids::{NodeId, ZoneId};
pub(super) use fallback::RmqueueMode;
pub(crate) use order::alloc_pages;

use crate::kernel::{AllocRetry, FairZones, WatermarkOrder};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Gfp, MAX_ORDER, Mark, MigrateType, OutOfMemory, Pfn, ZoneType, flag};
use crate::time::SECOND;
use crate::world::{Sys, World};

/// Reclaim rounds without progress before giving up (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Rounds without a single page after which even a kernel that retries for ever is taken to have run out:
/// it would spin.
const HOPELESS_ROUNDS: u32 = 1000;

impl Zone {
    /// `zone_watermark_ok`: would the zone keep `mark` and its reserve against `class` after giving
    /// 2^order pages?
    #[inline]
    pub(crate) fn watermark_ok(&self, order: usize, mark: u64, class: ZoneType) -> bool {
        let after = (self.free + 1).saturating_sub(1 << order);
        if after <= mark + self.lowmem_reserve[class as usize] {
            return false;
        }
        order == 0 || self.order_ok(order, mark, after)
    }

    /// One page that is to be of a type, if need be of another.
    #[inline]
    pub(crate) fn take(&mut self, pages: &mut Pages, list: MigrateType) -> Option<Pfn> {
        match self.rmqueue_smallest(pages, 0, list) {
            Some(pfn) => Some(pfn),
            None => self.rmqueue_fallback(pages, 0, list, &mut RmqueueMode::Normal),
        }
    }

    fn order_ok(&self, order: usize, mark: u64, after: u64) -> bool {
        match self.rules.watermark_order {
            WatermarkOrder::FreeBlock => {
                let large = self.free_area.iter().flat_map(|areas| &areas[order..]);
                large.into_iter().any(|area| area.len() > 0)
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
        let zone = &mut self.zones[zone];
        zone.free += 1 << order;
        let first = zone.first_managed;
        let managed_end = first + zone.managed as Pfn;
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_ORDER - 1 {
            let buddy = pfn ^ (1 << order);
            if buddy < first || buddy + (1 << order) > managed_end {
                break;
            }
            let page = &self.pages[buddy];
            if !page.is_free_block(order) {
                break;
            }
            match page.is_on_list_of(list) {
                true => zone.free_area[list as usize][order].remove(&mut self.pages, buddy),
                false => zone.take_buddy(&mut self.pages, buddy, order, list),
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
        self.memcontrol.uncharge(pfn);
        let zone = &mut self.zones[self.pages.zone(pfn)];
        zone.pages_scanned = 0;
        zone.all_unreclaimable = false;
        self.stat.pgfree += 1;
        if !self.free_to_pcp(pfn, 0) {
            self.free_block(pfn, 0);
        }
    }

    /// `get_page_from_freelist` for one page.
    #[inline]
    pub(crate) fn get_page_from_freelist(&mut self, gfp: Gfp, mark: Mark) -> Option<Pfn> {
        if self.kernel.mechanisms.zones.fair_zones == FairZones::On && mark == Mark::Low {
            return self.share_fairly(gfp, mark);
        }
        self.walk_zonelist(gfp, mark, false)
    }

    /// Zones of the node that have had their share are passed over once (3.12 to 4.7).
    #[inline(never)]
    fn share_fairly(&mut self, gfp: Gfp, mark: Mark) -> Option<Pfn> {
        let page = self.walk_zonelist(gfp, mark, true);
        page.or_else(|| {
            self.reset_alloc_batches(gfp.node);
            self.walk_zonelist(gfp, mark, false)
        })
    }

    #[inline(always)]
    fn walk_zonelist(&mut self, gfp: Gfp, mark: Mark, fair: bool) -> Option<Pfn> {
        debug_assert!(
            gfp.highest as usize >= self.nodes[gfp.node].class,
            "the page may lie in any zone"
        );
        for fallback in &self.nodes[gfp.node].fallbacks {
            let zone = &mut self.zones[fallback.zone];
            if fair && (!fallback.local || zone.alloc_batch <= 0) {
                continue;
            }
            let enough = zone.free > fallback.keeps[mark as usize];
            let page = match &mut zone.pcp {
                None if enough => zone.take(&mut self.pages, gfp.migrate_type),
                None => None,
                Some(pcp) => {
                    if zone.free <= fallback.keeps[Mark::High as usize] {
                        pcp.note_below_high();
                    }
                    match enough {
                        true => zone.take_from_pcp(self.cpu, &mut self.pages, 0, gfp.migrate_type),
                        false => None,
                    }
                }
            };
            if let Some(pfn) = page {
                zone.alloc_batch -= 1;
                self.stat.pgalloc[zone.kind as usize] += 1;
                if zone.boosted_watermark {
                    let zone = fallback.zone;
                    self.note_boost(zone);
                }
                return Some(pfn);
            }
        }
        None
    }

    /// `reset_alloc_batches`: every zone of the node gets its share again.
    fn reset_alloc_batches(&mut self, node: NodeId) {
        for &zone in &self.nodes[node].zones {
            let zone = &mut self.zones[zone];
            zone.alloc_batch = (zone.mark(Mark::High) - zone.mark(Mark::Low)) as i64;
        }
    }
}

impl World {
    /// The fast path.
    #[inline]
    pub(crate) fn alloc_page_fast(&mut self, gfp: Gfp) -> Option<Pfn> {
        self.get_page(gfp, Mark::Low)
    }

    /// The same down to another mark; its callers are slow anyway.
    #[inline(never)]
    fn alloc_page_down_to(&mut self, gfp: Gfp, mark: Mark) -> Option<Pfn> {
        self.get_page(gfp, mark)
    }

    /// A page from a zone that keeps a mark; kswapd hears of it if that boosted the zone.
    #[inline(always)]
    fn get_page(&mut self, gfp: Gfp, mark: Mark) -> Option<Pfn> {
        let page = self.mm.get_page_from_freelist(gfp, mark);
        if self.mm.boosted_zone.is_some() {
            self.wake_kswapd_for_boost();
        }
        page
    }
}

/// Allocates a page, reclaiming if necessary (`__alloc_pages`).
#[inline]
pub(crate) async fn alloc_page(sys: &Sys, gfp: Gfp) -> Result<Pfn, OutOfMemory> {
    let fast = sys.world().alloc_page_fast(gfp);
    match fast {
        Some(pfn) => Ok(pfn),
        None => alloc_page_slow(sys, gfp).await,
    }
}

async fn alloc_page_slow(sys: &Sys, gfp: Gfp) -> Result<Pfn, OutOfMemory> {
    // `might_alloc` comes before the fast path: a kswapd that was woken for the page before goes first, if that
    // displaces the task.
    if sys.cond_resched().await {
        let now_there = sys.world().alloc_page_fast(gfp);
        if let Some(pfn) = now_there {
            return Ok(pfn);
        }
    }
    let mut no_progress = 0;
    let mut without_a_page = 0;
    loop {
        {
            let world = &mut *sys.world();
            world.wake_all_kswapds(gfp, gfp.flags(), 0);
            if let Some(pfn) = world.alloc_page_down_to(gfp, Mark::Min) {
                return Ok(pfn);
            }
        }
        // `__perform_reclaim` lets the kswapd that was woken go first, if that displaces the task.
        sys.cond_resched().await;
        let progress = sys.try_to_free_pages(gfp, 0).await;
        let zone = {
            let world = &mut *sys.world();
            if world.sched.current_killed() {
                return Err(OutOfMemory);
            }
            let mut page = world.alloc_page_down_to(gfp, Mark::Min);
            if page.is_none() && progress > 0 {
                // What was reclaimed may be on the lists of CPUs.
                world.mm.drain_all_pages();
                page = world.alloc_page_down_to(gfp, Mark::Min);
            }
            if let Some(pfn) = page {
                return Ok(pfn);
            }
            if gfp.noretry {
                return Err(OutOfMemory);
            }
            no_progress = if progress > 0 { 0 } else { no_progress + 1 };
            // One page may be no page at all, only the hope that a zone is not exhausted yet.
            without_a_page = if progress > 1 { 0 } else { without_a_page + 1 };
            if !world.mm.may_retry(gfp, no_progress, without_a_page) {
                world.out_of_memory(0);
                return Err(OutOfMemory);
            }
            world.mm.preferred_zone(gfp)
        };
        // should_reclaim_retry() lets the allocation try again at once.
        let waits = sys.world().mm.kernel.mechanisms.zones.alloc_retry == AllocRetry::Always;
        if waits {
            sys.wait_iff_congested(zone, SECOND / 50).await;
        }
    }
}

impl Mm {
    /// Whether an allocation that found nothing after reclaim tries again; `no_progress` rounds have
    /// freed nothing, and the last `without_a_page` not a page.
    fn may_retry(&self, gfp: Gfp, no_progress: u32, without_a_page: u32) -> bool {
        let progress = no_progress == 0;
        match self.kernel.mechanisms.zones.alloc_retry {
            AllocRetry::Always => progress && without_a_page < HOPELESS_ROUNDS,
            AllocRetry::Bounded => {
                no_progress <= MAX_RECLAIM_RETRIES && self.reclaim_could_help(gfp)
            }
        }
    }

    /// The first zone of the zonelist that the request could use.
    pub(crate) fn preferred_zone(&self, gfp: Gfp) -> ZoneId {
        let mut usable = self.nodes[gfp.node].zonelist.iter().copied();
        usable
            .find(|&zone| self.zones[zone].kind <= gfp.highest)
            .unwrap_or(ZoneId::FIRST)
    }

    /// `should_reclaim_retry`: would some zone keep its min watermark if everything reclaimable in it
    /// were free?
    fn reclaim_could_help(&self, gfp: Gfp) -> bool {
        let swap = self.swap.free_slots() > 0;
        let class = self.zones[self.preferred_zone(gfp)].kind;
        self.nodes[gfp.node]
            .zonelist
            .iter()
            .map(|&zone| &self.zones[zone])
            .any(|zone| {
                let available = zone.free + self.tree_reclaimable(zone.lruvec, swap);
                zone.kind <= gfp.highest
                    && available > zone.mark(Mark::Min) + zone.lowmem_reserve[class as usize]
            })
    }
}

#[cfg(test)]
mod tests;
