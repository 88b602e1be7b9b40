//! The slow path (`__alloc_pages_slowpath`), for blocks of every order and with all flags.
//!
//! 1. The kswapds of the zonelist are woken if the flags say so, and zones give down to the floor that the flags allow.
//! 2. An allocation without `__GFP_DIRECT_RECLAIM` ends here.
//! 3. Compaction comes first for a block, as there may be memory enough in pieces: to 4.7 for any, from 4.8 on for a costly one
//!    (above `PAGE_ALLOC_COSTLY_ORDER`) or what cannot be moved. If compaction has nothing to work with, or has failed lately, an
//!    allocation that gives up soon may be at its end ([`blocks`](super::blocks)).
//! 4. Reclaim, and another attempt; what was reclaimed may be on the lists of CPUs, which are drained for a last one.
//! 5. From 4.8 on, if there is still no block of the order, zones are compacted, synchronously unless the allocation is to give
//!    up soon.
//! 6. `__GFP_NORETRY` ends here, and so does a costly block without `__GFP_RETRY_MAYFAIL`; from 2.6.38 to 4.7 it compacts once
//!    more at its end. All others begin again at 1 as long as there is hope; up to 4.6 they wait first.

use super::blocks::BlockAttempt;
use super::freelist::Floor;
use crate::kernel::{AllocRetry, NodeBound};
use crate::mm::Mm;
use crate::mm::types::{Gfp, Mark, OutOfMemory, PAGE_ALLOC_COSTLY_ORDER, Pfn, Reserves};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;

/// Reclaim rounds without progress before giving up (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Rounds without a single page after which even a kernel that retries for ever is taken to have run out:
/// it would spin.
const HOPELESS_ROUNDS: u32 = 1000;

/// Allocates a page, reclaiming if necessary.
#[inline]
pub(crate) async fn alloc_page(sys: &Sys, gfp: Gfp) -> Result<Pfn, OutOfMemory> {
    let fast = sys.world().alloc_page_fast(gfp);
    match fast {
        Some(pfn) => Ok(pfn),
        None => alloc_pages_slow(sys, gfp, 0).await,
    }
}

/// Allocates a block of 2^order pages, reclaiming and compacting if necessary (`__alloc_pages`).
pub(crate) async fn alloc_pages(sys: &Sys, gfp: Gfp, order: usize) -> Result<Pfn, OutOfMemory> {
    let fast = sys.world().take_pages(gfp, order, Floor::Low);
    match fast {
        Some(pfn) => Ok(pfn),
        None => Box::pin(alloc_pages_slow(sys, gfp, order)).await,
    }
}

/// What the rounds of an allocation have come to.
#[derive(Debug, Default)]
struct Rounds {
    /// Rounds since one freed anything; of costly blocks, all rounds (`no_progress_loops`).
    no_progress: u32,
    /// Rounds since one freed more than a page: one may be no page at all, only the hope that a zone is not exhausted yet.
    without_a_page: u32,
    /// Pages reclaimed so far.
    reclaimed: u64,
    /// Pages reclaimed in the last round.
    last: u64,
}

impl Rounds {
    /// Counts a round that freed `progress` pages. Freed pages do not mean that a costly block will be free, so that every round
    /// for such a block counts as one without progress (`should_reclaim_retry`; 0a0337e0d1d1, 4.7).
    fn note(&mut self, progress: u64, order: usize) {
        self.no_progress = if progress > 0 && order <= PAGE_ALLOC_COSTLY_ORDER {
            0
        } else {
            self.no_progress + 1
        };
        self.without_a_page = if progress > 1 {
            0
        } else {
            self.without_a_page + 1
        };
        self.reclaimed += progress;
        self.last = progress;
    }
}

async fn alloc_pages_slow(sys: &Sys, gfp: Gfp, order: usize) -> Result<Pfn, OutOfMemory> {
    // `might_alloc` comes before the fast path: a kswapd that was woken for the page before goes first, if that
    // displaces the task.
    if sys.cond_resched().await {
        let now_there = sys.world().take_pages(gfp, order, Floor::Low);
        if let Some(pfn) = now_there {
            return Ok(pfn);
        }
    }
    if sys.world().mm.leaves_node_alone(gfp) {
        return Err(OutOfMemory);
    }
    let found = sys.world().wake_and_take(gfp, order);
    if let Some(pfn) = found {
        return Ok(pfn);
    }
    if !gfp.has(gfp::DIRECT_RECLAIM) {
        return Err(OutOfMemory);
    }
    let mut block = BlockAttempt::new(gfp, order);
    if order > 0 {
        let found = Box::pin(block.compact_first(sys)).await?;
        if let Some(pfn) = found {
            return Ok(pfn);
        }
    }
    let mut rounds = Rounds::default();
    loop {
        // `__perform_reclaim` lets the kswapd that was woken go first, if that displaces the task.
        sys.cond_resched().await;
        let progress = sys.try_to_free_pages(gfp, order as u32).await;
        rounds.note(progress, order);
        let found = sys.world().take_reclaimed(gfp, order, progress)?;
        if let Some(pfn) = found {
            return Ok(pfn);
        }
        if order > 0 {
            let found = Box::pin(block.compact_after_reclaim(sys)).await;
            if let Some(pfn) = found {
                return Ok(pfn);
            }
        }
        let costly = order > PAGE_ALLOC_COSTLY_ORDER;
        if gfp.has(gfp::NORETRY) || costly && !gfp.has(gfp::RETRY_MAYFAIL) {
            return Box::pin(block.compact_last(sys)).await;
        }
        let retries = {
            let world = &mut *sys.world();
            world.mm.may_retry(gfp, order, &rounds)
                || progress > 0 && world.mm.compaction_may_help(&mut block)
        };
        if !retries {
            // The OOM killer frees no costly blocks (`__alloc_pages_may_oom`).
            if costly {
                return Box::pin(block.compact_last(sys)).await;
            }
            return sys.world().alloc_pages_may_oom(gfp, order);
        }
        sys.wait_before_retry(gfp).await;
        let found = sys.world().wake_and_take(gfp, order);
        if let Some(pfn) = found {
            return Ok(pfn);
        }
        if order > 0 {
            let found = Box::pin(block.compact_again(sys)).await?;
            if let Some(pfn) = found {
                return Ok(pfn);
            }
        }
    }
}

impl World {
    /// Allocates a block without waiting for anything: all of the slow path that an allocation without
    /// `__GFP_DIRECT_RECLAIM` goes, and one by a task that reclaims itself (`PF_MEMALLOC`).
    #[inline(never)]
    pub(crate) fn alloc_pages_nowait(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.take_pages(gfp, order, Floor::Low)
            .or_else(|| self.wake_and_take(gfp, order))
    }

    /// `__alloc_pages_may_oom`: where others have freed so much meanwhile that a zone is above its high watermark no task is killed.
    ///
    /// # Errors
    ///
    /// Otherwise: memory has run out, and the run is over.
    fn alloc_pages_may_oom(&mut self, gfp: Gfp, order: usize) -> Result<Pfn, OutOfMemory> {
        self.take_pages(gfp, order, Floor::High).ok_or_else(|| {
            self.out_of_memory(order as u32);
            OutOfMemory
        })
    }

    /// Wakes the kswapds of the zonelist, unless the flags say otherwise, and takes a block down to the floor that they allow;
    /// the last pages only when there is nothing above the min watermark.
    pub(super) fn wake_and_take(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        if gfp.has(gfp::KSWAPD_RECLAIM) {
            self.wake_all_kswapds(gfp, order as u32);
        }
        match gfp.reserves() {
            Reserves::All => self.take_down_to_min(gfp, order).or_else(|| {
                let last = Floor::Min(Reserves::All);
                self.take_pages(gfp, order, last)
            }),
            reserves => self.take_pages(gfp, order, Floor::Min(reserves)),
        }
    }

    pub(super) fn take_down_to_min(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.take_pages(gfp, order, Floor::Min(Reserves::None))
    }

    /// `__alloc_pages_direct_reclaim`, the second half; an error if the task was killed meanwhile.
    fn take_reclaimed(
        &mut self,
        gfp: Gfp,
        order: usize,
        progress: u64,
    ) -> Result<Option<Pfn>, OutOfMemory> {
        if self.sched.current_killed() {
            return Err(OutOfMemory);
        }
        if progress == 0 {
            return Ok(None);
        }
        let found = self.take_down_to_min(gfp, order);
        Ok(found.or_else(|| {
            // What was reclaimed may be on the lists of CPUs, or in what is kept for those that cannot wait.
            self.mm.unreserve_highatomic_pageblock(gfp, false);
            self.mm.drain_all_pages();
            self.take_down_to_min(gfp, order)
        }))
    }
}

impl Mm {
    /// An allocation from one node alone that is at its end, as nothing was free there above the low watermark.
    fn leaves_node_alone(&self, gfp: Gfp) -> bool {
        gfp.has(gfp::THISNODE)
            && match self.kernel.mechanisms.blocks.node_bound {
                NodeBound::GivesUp => gfp.has(gfp::NORETRY | gfp::NOWARN),
                NodeBound::CannotWait => !gfp.has(gfp::DIRECT_RECLAIM),
                NodeBound::Ordinary => false,
            }
    }

    /// Whether an allocation that found nothing in its rounds so far tries again.
    fn may_retry(&mut self, gfp: Gfp, order: usize, rounds: &Rounds) -> bool {
        match self.kernel.mechanisms.zones.alloc_retry {
            // A round without progress is the last one, as the OOM killer frees no costly blocks (to 4.1). Kernels from 4.2 to
            // 4.6 do not ask that, and the allocation would spin there.
            AllocRetry::Always if order > PAGE_ALLOC_COSTLY_ORDER => {
                rounds.last > 0 && rounds.reclaimed < 1 << order
            }
            AllocRetry::Always => {
                rounds.no_progress == 0 && rounds.without_a_page < HOPELESS_ROUNDS
            }
            AllocRetry::Bounded => {
                let hope = rounds.no_progress <= MAX_RECLAIM_RETRIES
                    && self.reclaim_could_help(gfp, order);
                hope || self.unreserve_highatomic_pageblock(gfp, true)
            }
        }
    }

    /// `should_reclaim_retry`: would some zone keep its min watermark if everything reclaimable in it
    /// were free?
    fn reclaim_could_help(&self, gfp: Gfp, order: usize) -> bool {
        let swap = self.swap.free_slots() > 0;
        let class = self.zones[self.preferred_zone(gfp)].kind;
        let zonelist = self.zonelist(gfp).iter();
        let mut zones = zonelist.map(|&zone| &self.zones[zone]);
        zones.any(|zone| {
            let available = zone.free_without_reserve() + self.zone_reclaimable_pages(zone, swap);
            zone.kind <= gfp.highest()
                && zone.watermark_ok_with(available, order, zone.mark(Mark::Min), class)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::mm::types::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, ZoneType};

    /// Rounds of a costly block count whatever they free; those of others begin anew with each page.
    #[test]
    fn pages_are_no_progress_of_a_costly_block() {
        let after = |order: usize, freed: &[u64]| {
            let mut rounds = Rounds::default();
            freed.iter().for_each(|&pages| rounds.note(pages, order));
            (rounds.no_progress, rounds.reclaimed)
        };
        assert_eq!(after(PAGE_ALLOC_COSTLY_ORDER, &[0, 32, 32]), (0, 64));
        assert_eq!(after(PAGE_ALLOC_COSTLY_ORDER, &[32, 0, 0]), (2, 32));
        assert_eq!(after(PAGE_ALLOC_COSTLY_ORDER + 1, &[0, 32, 32]), (3, 64));
    }

    /// The reserve of ZONE_DMA keeps its free pageblock from allocations of user pages. Such an allocation has no hope of it if
    /// the reclaimable pages lie in the zone above, and has if they lie in ZONE_DMA; from 6.13 to 6.17 it also has if ZONE_DMA
    /// has nothing on its lists, as its pageblock counts twice then.
    #[test]
    fn what_can_be_reclaimed_counts_in_its_own_zone() {
        let gfp = Gfp::user(NodeId::FIRST);
        for (version, twice) in [
            ("v4.8", false),
            ("v6.1", false),
            ("v6.17", true),
            ("v6.18", false),
        ] {
            for (reclaimable, hope) in [(ZoneType::Dma32, twice), (ZoneType::Dma, true)] {
                let mut world = World::of_version(version);
                let mm = &mut world.mm;
                mm.drain_all_pages();
                let mut block = None;
                for zone in mm.zones.keys() {
                    let kind = mm.zones[zone].kind;
                    let mut used = Vec::new();
                    while let Some(pfn) = mm.zones[zone].take(&mut mm.pages, gfp.migrate_type()) {
                        used.push(pfn);
                    }
                    used.sort_unstable();
                    let is_kept = |pfn: Pfn| {
                        pfn >> PAGEBLOCK_ORDER == used[used.len() / 2] >> PAGEBLOCK_ORDER
                    };
                    for &pfn in &used {
                        match (kind, is_kept(pfn)) {
                            (ZoneType::Dma, true) => block = Some(pfn & !(PAGEBLOCK_PAGES - 1)),
                            (kind, _) if kind == reclaimable => mm.lru_add(pfn),
                            _ => {}
                        }
                    }
                }
                let block = block.expect("a pageblock of ZONE_DMA");
                (block..block + PAGEBLOCK_PAGES).for_each(|pfn| mm.free_block(pfn, 0));
                assert_eq!(
                    mm.reclaim_could_help(gfp, PAGEBLOCK_ORDER),
                    hope,
                    "{version}, {reclaimable:?}"
                );
            }
        }
    }
}
