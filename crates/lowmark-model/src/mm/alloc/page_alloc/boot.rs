//! Memory as booting leaves it: what is free, and what is in use before the workload begins.

use crate::ids::{NodeId, ZoneId};
use crate::kernel::{AtomicReserve, DmaPool};
use crate::mm::Mm;
use crate::mm::types::{Mark, MigrateType, Pfn, ZoneType};
use lowmark_spec::machine::{PAGEBLOCK_ORDERS, Pageblocks};
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

/// Free blocks by order.
type FreeBlocks = [u64; PAGEBLOCK_ORDERS];

/// The pageblocks of a zone that have pages in use, by type.
type ZonePageblocks = [(MigrateType, Pageblocks); 2];

/// Pages that are in use before the workload, as they are taken.
#[derive(Default)]
struct Occupied {
    /// Pages that are still to be taken.
    left: u64,
    /// Free blocks between pages in use, with their orders; to be freed when all is taken.
    between: Vec<(Pfn, usize)>,
    /// Movable pages in use between them.
    movable: Vec<Pfn>,
}

/// The free blocks of a pageblock, by their places in it and their orders, and those that are left.
fn units_of_a_pageblock(mut left: FreeBlocks, pages: Pfn) -> (Vec<(Pfn, usize)>, FreeBlocks) {
    let mut blocks = Vec::new();
    let largest = left.iter().rposition(|&count| count > 0).unwrap_or(0);
    if 1 << largest == pages {
        left[largest] -= 1;
        return (vec![(0, largest)], left);
    }
    for unit in (0..pages).step_by(2 << largest) {
        for (order, count) in left.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            *count -= 1;
            blocks.push((unit + (1 << order), order));
        }
    }
    (blocks, left)
}

/// The free blocks of the `at`-th pageblock, if `pageblocks` of them share all free blocks evenly.
fn part(free: &FreeBlocks, at: u64, pageblocks: u64) -> FreeBlocks {
    free.map(|count| count * (at + 1) / pageblocks - count * at / pageblocks)
}

/// Migrate type of the next page in use when `left` are still to be taken. The flags say whether the machine gives the reclaimable and
/// the movable pageblocks of the zone: the pages of slabs and of processes are in those already.
fn type_of_rest(left: u64, [reclaimable, movable]: [bool; 2]) -> MigrateType {
    match left {
        left if left.is_multiple_of(RECLAIMABLE_EVERY) && !reclaimable => MigrateType::Reclaimable,
        left if left % MOVABLE_EVERY == 1 && !movable => MigrateType::Movable,
        _ => MigrateType::Unmovable,
    }
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

    /// Takes `count` pages out of reach for good: memory that the workload does not describe. Between them are the
    /// free blocks of the given pageblocks of each zone. `buffers` of these pages are for the page cache of block devices: those between
    /// movable free blocks, where they were allocated in turn with data that is gone. What else is in use there could move in a kernel, as
    /// movable pageblocks have it; here it cannot, so it lies together.
    pub(in crate::mm) fn occupy(
        &mut self,
        count: u64,
        buffers: u64,
        pageblocks: &TiSlice<ZoneId, ZonePageblocks>,
    ) {
        let pool = match self.kernel.mechanisms.zones.dma_pool {
            DmaPool::One => 0,
            DmaPool::EachZone => self.take_dma_pool(count),
        };
        let mut occupied = Occupied {
            left: count - pool,
            ..Occupied::default()
        };
        for (zone, types) in pageblocks.iter_enumerated() {
            for (list, pageblocks) in types {
                self.take_pageblocks(zone, *list, pageblocks, &mut occupied);
            }
        }
        let Occupied {
            mut left,
            between,
            movable,
        } = occupied;
        self.boot_buffers = movable;
        self.boot_buffers.truncate(buffers as usize);
        let mut apart = (buffers - self.boot_buffers.len() as u64).min(left);
        left -= apart;
        for zone in self.nodes[NodeId::FIRST].zonelist.clone() {
            let known = |list| {
                let types = pageblocks.get(zone).into_iter().flatten();
                let mut of_list = types.filter(|(of, _)| *of == list);
                of_list.any(|(_, pageblocks)| *pageblocks != Pageblocks::default())
            };
            let known = [MigrateType::Reclaimable, MigrateType::Movable].map(known);
            let zone = &mut self.zones[zone];
            while left > 0 && zone.free > zone.mark(Mark::High) {
                if zone
                    .take(&mut self.pages, type_of_rest(left, known))
                    .is_none()
                {
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

    /// Takes pageblocks of a type with free blocks between pages in use, as long as there are as many pages to be taken.
    ///
    /// A pageblock consists of *units* of twice the largest block that is left. In a unit there is one free block of each order,
    /// 2^order pages behind its beginning: its buddy lies before it, with the unit's first page, which is in use. What lies where
    /// blocks of an order would that are not there is in use.
    fn take_pageblocks(
        &mut self,
        zone: ZoneId,
        list: MigrateType,
        wanted: &Pageblocks,
        occupied: &mut Occupied,
    ) {
        if self.zones[zone].pageblocks.is_empty() {
            // Pages of all types are side by side.
            return;
        }
        // Some are there already: at the ends of a zone, and for a pool.
        let mut free = wanted.free;
        let there = &self.zones[zone].free_area[list as usize];
        for (count, area) in free.iter_mut().zip(there) {
            *count = count.saturating_sub(area.len());
        }
        let types = self.zones[zone].pageblocks.iter();
        let there = types.filter(|&&of| of == list).count() as u64;
        let at_least = match list {
            MigrateType::Movable => 0,
            _ => wanted.count.saturating_sub(there),
        };
        let pages = u64::from(self.zones[zone].pageblock_pages());
        let parts = at_least.max(1);
        let mut left = FreeBlocks::default();
        for at in 0.. {
            if at < parts {
                let part = part(&free, at, parts);
                left.iter_mut()
                    .zip(part)
                    .for_each(|(left, part)| *left += part);
            }
            if at >= at_least && left.iter().all(|&count| count == 0) {
                break;
            }
            let (blocks, rest) = units_of_a_pageblock(left, pages as Pfn);
            let in_use = pages - blocks.iter().map(|&(_, order)| 1 << order).sum::<u64>();
            if in_use > occupied.left {
                break;
            }
            let mut mode = RmqueueMode::Normal;
            let zone = &mut self.zones[zone];
            let order = zone.blocks.pageblock;
            let Some(block) = zone.rmqueue(&mut self.pages, order, list, &mut mode) else {
                break;
            };
            if list == MigrateType::Movable {
                let is_free = |pfn: &Pfn| {
                    let mut blocks = blocks.iter();
                    blocks.any(|&(at, order)| pfn >> order == at >> order)
                };
                let in_use = (0..pages as Pfn).filter(|pfn| !is_free(pfn));
                occupied.movable.extend(in_use.map(|pfn| block + pfn));
            }
            let blocks = blocks.into_iter();
            occupied
                .between
                .extend(blocks.map(|(at, order)| (block + at, order)));
            left = rest;
            occupied.left -= in_use;
        }
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
