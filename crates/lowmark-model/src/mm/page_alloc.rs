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
//! Up to 5.13 per-CPU lists of free pages ([`super::pcp`]) are left out. Counters are exact.

use super::Mm;
use super::mmzone::{MAX_ORDER, Mark, Zone, ZoneType};
use super::page::{Pages, Pfn, flag};
use super::vmscan;
use crate::kernel::{AllocRetry, FairZones, Kernel, LruUnit, WatermarkOrder};
use crate::time::SECOND;
use crate::world::{Sys, World};

/// What an allocation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gfp {
    /// Highest zone type (`gfp_zone`).
    pub(crate) highest: ZoneType,
    /// Node whose zonelist is used.
    pub(crate) node: usize,
}

impl Gfp {
    /// GFP_HIGHUSER_MOVABLE on a node: what user pages are allocated with.
    pub(crate) fn user(node: usize) -> Gfp {
        Gfp {
            highest: ZoneType::High,
            node,
        }
    }

    /// The allocation flags, as events hold them.
    pub(crate) fn flags(self) -> u64 {
        lowmark_record::event::gfp::HIGHUSER_MOVABLE
    }
}

/// There was nothing left to reclaim; the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// Reclaim rounds without progress before giving up (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Rounds without a single page after which even a kernel that retries for ever is taken to have run out:
/// it would spin.
const HOPELESS_ROUNDS: u32 = 1000;

impl Zone {
    /// `zone_watermark_ok`: would the zone keep `mark` and its reserve against `class` after giving
    /// 2^order pages?
    #[inline]
    pub(crate) fn watermark_ok(
        &self,
        order: usize,
        mark: u64,
        class: ZoneType,
        rule: WatermarkOrder,
    ) -> bool {
        let after = (self.free + 1).saturating_sub(1 << order);
        if after <= mark + self.lowmem_reserve[class as usize] {
            return false;
        }
        order == 0 || self.order_ok(order, mark, after, rule)
    }

    /// `__rmqueue_smallest` for one page: split off the smallest block there is.
    #[inline]
    pub(super) fn take(&mut self, pages: &mut Pages) -> Option<Pfn> {
        let mut order = self.free_area.iter().position(|area| area.len() > 0)?;
        let pfn = self.free_area[order].pop(pages)?;
        while order > 0 {
            order -= 1;
            self.free_area[order].push(pages, pfn + (1 << order), order);
        }
        pages[pfn].reset();
        self.free -= 1;
        Some(pfn)
    }

    fn order_ok(&self, order: usize, mark: u64, after: u64, rule: WatermarkOrder) -> bool {
        match rule {
            WatermarkOrder::FreeBlock => self.free_area[order..].iter().any(|area| area.len() > 0),
            WatermarkOrder::Decay => {
                let (mut free, mut mark) = (after, mark);
                self.free_area[..order].iter().enumerate().all(|(o, area)| {
                    free = free.saturating_sub(area.len() << o);
                    mark >>= 1;
                    free > mark
                })
            }
        }
    }
}

impl Mm {
    /// Gives all managed frames to the buddy lists.
    pub(super) fn free_boot_memory(&mut self) {
        for index in 0..self.zones.len() {
            let zone = &self.zones[index];
            let (start, present, managed) = (zone.start, zone.present as Pfn, zone.managed as Pfn);
            self.pages.set_zone(start, start + present, index);
            // Reserved frames are the last ones of the zone. High addresses are freed first, so that
            // allocation begins low.
            let mut end = start + managed;
            while end > start {
                let order = (end.trailing_zeros() as usize)
                    .min(MAX_ORDER - 1)
                    .min((end - start).ilog2() as usize);
                end -= 1 << order;
                self.free_block(end, order);
            }
        }
    }

    /// Takes `count` pages out of reach for good: memory that the workload does not describe.
    pub(super) fn occupy(&mut self, count: u64) {
        let mut left = count;
        for zone in self.nodes[0].zonelist.clone() {
            while left > 0 && self.zones[zone].free > self.zones[zone].mark(Mark::High) {
                if self.zones[zone].take(&mut self.pages).is_none() {
                    break;
                }
                left -= 1;
            }
        }
    }

    /// `__free_one_page`: merges with free buddies.
    #[inline]
    pub(crate) fn free_block(&mut self, pfn: Pfn, order: usize) {
        let index = self.pages[pfn].zone();
        let zone = &mut self.zones[index];
        zone.free += 1 << order;
        let (first, managed_end) = (zone.start, zone.start + zone.managed as Pfn);
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_ORDER - 1 {
            let buddy = pfn ^ (1 << order);
            if buddy < first || buddy + (1 << order) > managed_end {
                break;
            }
            let page = &self.pages[buddy];
            if !page.has(flag::BUDDY) || page.private != order as u32 {
                break;
            }
            zone.free_area[order].remove(&mut self.pages, buddy);
            pfn &= buddy;
            order += 1;
        }
        zone.free_area[order].push(&mut self.pages, pfn, order);
    }

    /// Frees one page that nobody uses (`free_hot_cold_page`).
    #[inline]
    pub(crate) fn free_page(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        debug_assert!(!page.has(flag::LRU) && !page.is_mapped());
        page.reset();
        self.memcontrol.uncharge(pfn);
        let zone = &mut self.zones[self.pages[pfn].zone()];
        zone.pages_scanned = 0;
        zone.all_unreclaimable = false;
        self.stat.pgfree += 1;
        if !self.free_to_pcp(pfn) {
            self.free_block(pfn, 0);
        }
    }

    /// `get_page_from_freelist` for one page.
    #[inline]
    pub(crate) fn get_page_from_freelist(
        &mut self,
        kernel: &Kernel,
        gfp: Gfp,
        mark: Mark,
    ) -> Option<Pfn> {
        if kernel.mechanisms.fair_zones == FairZones::On && mark == Mark::Low {
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
        debug_assert_eq!(
            gfp.highest,
            ZoneType::High,
            "user pages may lie in any zone"
        );
        for fallback in &self.nodes[gfp.node].fallbacks {
            let zone = &mut self.zones[fallback.zone];
            if fair && (!fallback.local || zone.alloc_batch <= 0) {
                continue;
            }
            let enough = zone.free > fallback.keeps[mark as usize];
            let page = match &mut zone.pcp {
                None if enough => zone.take(&mut self.pages),
                None => None,
                Some(pcp) => {
                    if zone.free <= fallback.keeps[Mark::High as usize] {
                        pcp.note_below_high();
                    }
                    match enough {
                        true => zone.take_from_pcp(self.cpu, &mut self.pages),
                        false => None,
                    }
                }
            };
            if let Some(pfn) = page {
                zone.alloc_batch -= 1;
                self.stat.pgalloc[zone.kind as usize] += 1;
                return Some(pfn);
            }
        }
        None
    }

    /// `reset_alloc_batches`: every zone of the node gets its share again.
    fn reset_alloc_batches(&mut self, node: usize) {
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
        self.mm.get_page_from_freelist(&self.kernel, gfp, Mark::Low)
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
    let mut no_progress = 0;
    let mut without_a_page = 0;
    loop {
        {
            let world = &mut *sys.world();
            world.wake_all_kswapds(gfp, 0);
            let page = world
                .mm
                .get_page_from_freelist(&world.kernel, gfp, Mark::Min);
            if let Some(pfn) = page {
                return Ok(pfn);
            }
        }
        let progress = vmscan::try_to_free_pages(sys, gfp, 0).await;
        let zone = {
            let world = &mut *sys.world();
            if world.sched.current_killed() {
                return Err(OutOfMemory);
            }
            let mut page = world
                .mm
                .get_page_from_freelist(&world.kernel, gfp, Mark::Min);
            if page.is_none() && progress > 0 {
                // What was reclaimed may be on the lists of CPUs.
                world.mm.drain_all_pages();
                page = world
                    .mm
                    .get_page_from_freelist(&world.kernel, gfp, Mark::Min);
            }
            if let Some(pfn) = page {
                return Ok(pfn);
            }
            no_progress = if progress > 0 { 0 } else { no_progress + 1 };
            // One page may be no page at all, only the hope that a zone is not exhausted yet.
            without_a_page = if progress > 1 { 0 } else { without_a_page + 1 };
            if !world.may_retry(gfp, no_progress, without_a_page) {
                world.out_of_memory(0);
                return Err(OutOfMemory);
            }
            world.mm.preferred_zone(gfp)
        };
        // Node kernels go round again at once.
        let waits = sys.world().kernel.mechanisms.lru_unit == LruUnit::Zone;
        if waits {
            sys.wait_iff_congested(zone, SECOND / 50).await;
        }
    }
}

impl World {
    /// Whether an allocation that found nothing after reclaim tries again; `no_progress` rounds have
    /// freed nothing, and the last `without_a_page` not a page.
    fn may_retry(&self, gfp: Gfp, no_progress: u32, without_a_page: u32) -> bool {
        let progress = no_progress == 0;
        match self.kernel.mechanisms.alloc_retry {
            AllocRetry::Always => progress && without_a_page < HOPELESS_ROUNDS,
            AllocRetry::Bounded => {
                no_progress <= MAX_RECLAIM_RETRIES && self.mm.reclaim_could_help(gfp)
            }
        }
    }
}

impl Mm {
    /// The first zone of the zonelist that the request could use.
    pub(crate) fn preferred_zone(&self, gfp: Gfp) -> usize {
        let mut usable = self.nodes[gfp.node].zonelist.iter().copied();
        usable
            .find(|&zone| self.zones[zone].kind <= gfp.highest)
            .unwrap_or(0)
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
