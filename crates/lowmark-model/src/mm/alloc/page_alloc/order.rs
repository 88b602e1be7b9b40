//! Blocks of several pages for who can wait but gives up soon (`__GFP_NORETRY`).
//!
//! 1. A zone that keeps its low watermark gives the block; else, when kswapd is woken, one that keeps its min watermark.
//! 2. Who wants a large one (above `PAGE_ALLOC_COSTLY_ORDER`) compacts first, as there may be memory enough in pieces. If
//!    that has nothing to work with, or has failed lately, that is the end of it.
//! 3. Reclaim, and another attempt; then compaction, and a last one.

use super::alloc_page;
use super::nowait::Floor;
use crate::mm::types::{CompactPriority, Gfp, OutOfMemory, PAGE_ALLOC_COSTLY_ORDER, Pfn, Reserves};
use crate::world::{Sys, World};

/// A block of 2^order pages (`__alloc_pages`); above order 0 for callers alone that do without if there is none soon.
pub(crate) async fn alloc_pages(sys: &Sys, gfp: Gfp, order: usize) -> Result<Pfn, OutOfMemory> {
    if order == 0 {
        return alloc_page(sys, gfp).await;
    }
    debug_assert!(gfp.noretry);
    let fast = sys.world().take_pages(gfp, order, Floor::Low);
    match fast {
        Some(pfn) => Ok(pfn),
        None => Box::pin(alloc_pages_slow(sys, gfp, order)).await,
    }
}

async fn alloc_pages_slow(sys: &Sys, gfp: Gfp, order: usize) -> Result<Pfn, OutOfMemory> {
    sys.cond_resched().await;
    let found = sys.world().wake_and_take(gfp, order);
    if let Some(pfn) = found {
        return Ok(pfn);
    }
    let costly = order > PAGE_ALLOC_COSTLY_ORDER;
    if costly {
        let result = sys
            .try_to_compact_pages(gfp, order, CompactPriority::Async)
            .await;
        let found = sys.world().take_compacted(gfp, order, result.is_skipped());
        if let Some(pfn) = found {
            return Ok(pfn);
        }
        if result.is_hopeless() {
            return Err(OutOfMemory);
        }
    }
    let found = sys.world().wake_and_take(gfp, order);
    if let Some(pfn) = found {
        return Ok(pfn);
    }
    sys.cond_resched().await;
    let progress = sys.try_to_free_pages(gfp, order as u32).await;
    {
        let world = &mut *sys.world();
        if world.sched.current_killed() {
            return Err(OutOfMemory);
        }
        let mut found = None;
        if progress > 0 {
            found = world.take_down_to_min(gfp, order);
            if found.is_none() {
                // What was reclaimed may be on the lists of CPUs.
                world.mm.drain_all_pages();
                found = world.take_down_to_min(gfp, order);
            }
        }
        if let Some(pfn) = found {
            return Ok(pfn);
        }
    }
    let priority = match costly {
        true => CompactPriority::Async,
        false => CompactPriority::SyncLight,
    };
    let result = sys.try_to_compact_pages(gfp, order, priority).await;
    let found = sys.world().take_compacted(gfp, order, result.is_skipped());
    found.ok_or(OutOfMemory)
}

impl World {
    fn wake_and_take(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.wake_all_kswapds(gfp, gfp.flags(), order as u32);
        self.take_down_to_min(gfp, order)
    }

    fn take_down_to_min(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.take_pages(gfp, order, Floor::Min(Reserves::None))
    }

    /// `__alloc_pages_direct_compact`, the second half: a block that compaction may have made. If it had nothing to work
    /// with there is no need to look.
    fn take_compacted(&mut self, gfp: Gfp, order: usize, skipped: bool) -> Option<Pfn> {
        if skipped {
            return None;
        }
        self.mm.stat.compact_stall += 1;
        let found = self.take_down_to_min(gfp, order);
        match found {
            Some(pfn) => {
                self.mm.stat.compact_success += 1;
                let zone = self.mm.pages.zone(pfn);
                self.mm.zones[zone].compaction_succeeded(order);
            }
            None => self.mm.stat.compact_fail += 1,
        }
        found
    }
}
