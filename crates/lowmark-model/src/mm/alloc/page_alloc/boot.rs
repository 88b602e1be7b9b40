//! Memory as booting leaves it: what is free, and what is in use before the workload begins.

use crate::ids::{NodeId, ZoneId};
use crate::kernel::{AtomicReserve, DmaPool};
use crate::mm::Mm;
use crate::mm::types::{Mark, MigrateType, Pfn, ZoneType};
use lowmark_spec::machine::Fragments;
use typed_index_collections::TiSlice;

use super::RmqueueMode;

/// Of the pages that are in use before the workload, every so many-th is of a reclaimable or movable type; the
/// others cannot be moved. Of what Debian's 6.1 and 6.18 use in guests of 256 MB, 3.1 % are reclaimable slabs
/// and 2.1 % pages of processes.
const RECLAIMABLE_EVERY: u64 = 32;
const MOVABLE_EVERY: u64 = 48;

/// A pool in ZONE_DMA has a page for so many of the machine, and 32 at least: 128 KiB for each GiB
/// (`dma_atomic_pool_init`).
const DMA_POOL_SHARE: u64 = 8192;
const DMA_POOL_PAGES_MIN: u64 = 32;

/// The free blocks of a pageblock, by their places in it and their orders, and those that are left.
fn units_of_a_pageblock(mut left: Fragments, pages: Pfn) -> (Vec<(Pfn, usize)>, Fragments) {
    let mut blocks = Vec::new();
    let largest = left.iter().rposition(|&count| count > 0).unwrap_or(0);
    for unit in (0..pages).step_by(2 << largest) {
        for (order, count) in left.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            *count -= 1;
            blocks.push((unit + (1 << order), order));
        }
    }
    (blocks, left)
}

impl Mm {
    /// Gives all managed frames to the buddy lists.
    pub(in crate::mm) fn free_boot_memory(&mut self) {
        for index in self.zones.keys() {
            let zone = &self.zones[index];
            let (first, managed) = (zone.first_managed, zone.managed as Pfn);
            // Each pageblock is freed by itself, as its type may not be that of the next one.
            let largest = if zone.pageblocks.is_empty() {
                zone.blocks.largest
            } else {
                zone.blocks.pageblock
            };
            // High addresses are freed first, so that allocation begins low.
            let mut end = first + managed;
            while end > first {
                let order = (end.trailing_zeros() as usize)
                    .min(largest)
                    .min((end - first).ilog2() as usize);
                end -= 1 << order;
                self.free_block(end, order);
            }
        }
        if self.kernel.mechanisms.zones.atomic_reserve == AtomicReserve::AtBoot {
            for zone in &mut self.zones {
                zone.set_boot_reserve(&mut self.pages);
            }
        }
    }

    /// Puts `kept` free pages of each zone on the lists of the CPUs, evenly: processes that ran during boot freed them there.
    pub(in crate::mm) fn keep_for_cpus(&mut self, kept: &TiSlice<ZoneId, u64>) {
        for (zone, &count) in kept.iter_enumerated() {
            self.zones[zone].keep_in_pcp(&mut self.pages, count);
        }
    }

    /// Takes `count` pages out of reach for good: memory that the workload does not describe. Between them are the given
    /// free blocks of each zone. `buffers` of these pages are for the page cache of block devices: those between free blocks, where
    /// they were allocated in turn with data that is gone. What else is in use there could move in a kernel, as movable
    /// pageblocks have it; here it cannot, so it lies together.
    pub(in crate::mm) fn occupy(
        &mut self,
        count: u64,
        buffers: u64,
        fragments: &TiSlice<ZoneId, Fragments>,
    ) {
        let pool = match self.kernel.mechanisms.zones.dma_pool {
            DmaPool::One => 0,
            DmaPool::EachZone => self.take_dma_pool(count),
        };
        let mut left = count - pool;
        let mut between = Vec::new();
        let mut used = Vec::new();
        for (zone, fragments) in fragments.iter_enumerated() {
            let wanted = (left, buffers > 0);
            left -= self.take_fragmented(zone, *fragments, wanted, &mut between, &mut used);
        }
        let cached = buffers.min(used.len() as u64);
        used.truncate(cached as usize);
        self.boot_buffers = used;
        let mut apart = (buffers - cached).min(left);
        left -= apart;
        for zone in self.nodes[NodeId::FIRST].zonelist.clone() {
            // Where these are known, what processes have is there already.
            let known = fragments
                .get(zone)
                .is_some_and(|of| of.iter().any(|&count| count > 0));
            let zone = &mut self.zones[zone];
            while left > 0 && zone.free > zone.mark(Mark::High) {
                let list = match left {
                    left if left % RECLAIMABLE_EVERY == 0 => MigrateType::Reclaimable,
                    left if left % MOVABLE_EVERY == 1 && !known => MigrateType::Movable,
                    _ => MigrateType::Unmovable,
                };
                if zone.take(&mut self.pages, list).is_none() {
                    break;
                }
                left -= 1;
            }
            while apart > 0 && zone.free > zone.mark(Mark::High) {
                let Some(pfn) = zone.take(&mut self.pages, MigrateType::Movable) else {
                    break;
                };
                self.boot_buffers.push(pfn);
                apart -= 1;
            }
        }
        for (pfn, order) in between {
            self.free_block(pfn, order);
        }
        for zone in &mut self.zones {
            // kswapd has seen to what booting boosted.
            zone.watermark_boost = 0;
            zone.boosted_watermark = false;
        }
    }

    /// Takes pageblocks for free blocks between pages in use, as long as no more than `most` pages are in use with that;
    /// how many are. Where the free blocks lie is added to `between`, and where pages in use lie to `used` if that is wanted.
    ///
    /// A pageblock consists of *units* of twice the largest block that is left. In a unit there is one free block of each order,
    /// 2^order pages behind its beginning: its buddy lies before it, with the unit's first page, which is in use. What lies where
    /// blocks of an order would that are not there is in use.
    fn take_fragmented(
        &mut self,
        zone: ZoneId,
        mut fragments: Fragments,
        (most, tells): (u64, bool),
        between: &mut Vec<(Pfn, usize)>,
        used: &mut Vec<Pfn>,
    ) -> u64 {
        let mut in_use = 0;
        if self.zones[zone].pageblocks.is_empty() {
            // Pages of all types are side by side.
            return in_use;
        }
        // At the ends of a zone there are some already.
        let there = &self.zones[zone].free_area[MigrateType::Movable as usize];
        for (count, area) in fragments.iter_mut().zip(there) {
            *count = count.saturating_sub(area.len());
        }
        let pages = u64::from(self.zones[zone].pageblock_pages());
        while fragments.iter().any(|&count| count > 0) {
            let (blocks, left) = units_of_a_pageblock(fragments, pages as Pfn);
            let free: u64 = blocks.iter().map(|&(_, order)| 1 << order).sum();
            if in_use + pages - free > most {
                break;
            }
            let mut mode = RmqueueMode::Normal;
            let zone = &mut self.zones[zone];
            let order = zone.blocks.pageblock;
            let block = zone.rmqueue(&mut self.pages, order, MigrateType::Movable, &mut mode);
            let Some(block) = block else {
                break;
            };
            if tells {
                let free = |pfn: Pfn| {
                    blocks
                        .iter()
                        .any(|&(at, order)| pfn >> order == at >> order)
                };
                used.extend(
                    (0..pages as Pfn)
                        .filter(|&pfn| !free(pfn))
                        .map(|pfn| block + pfn),
                );
            }
            between.extend(blocks.into_iter().map(|(at, order)| (block + at, order)));
            fragments = left;
            in_use += pages - free;
        }
        in_use
    }

    /// The pool for devices that reach no further, in ZONE_DMA; its pages, at most `count`.
    fn take_dma_pool(&mut self, count: u64) -> u64 {
        let wanted = (self.totalram_pages() / DMA_POOL_SHARE).max(DMA_POOL_PAGES_MIN);
        let Some(zone) = self.zones.first_mut() else {
            return 0;
        };
        let order = (wanted.next_power_of_two().ilog2() as usize).min(zone.blocks.largest);
        if zone.kind != ZoneType::Dma || self.zones.len() == 1 || count < 1 << order {
            return 0;
        }
        let zone = &mut self.zones[ZoneId::FIRST];
        let mut mode = RmqueueMode::Normal;
        match zone.rmqueue(&mut self.pages, order, MigrateType::Unmovable, &mut mode) {
            Some(_) => 1 << order,
            None => 0,
        }
    }
}
