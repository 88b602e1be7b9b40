//! Free pages that each CPU keeps to itself (`struct per_cpu_pages`).
//!
//! 1. A page is allocated from the list of the CPU; an empty list is filled with a batch from the zone.
//! 2. A freed page goes on the list. Above `high` a batch goes back to the zone, the oldest ones first.
//! 3. What is on the lists is not free as far as watermarks go. While kswapd is at work the lists are kept
//!    short, but it still has to reclaim as much more as fills them; and a batch taken for one CPU can bring
//!    the zone below its marks at once.
//!
//! Up to 5.13 the lists hold single pages, six batches at most. From 5.14 on they hold small blocks, too, and are as long as
//! a share of the low watermark; from 6.7 on they and the batches grow with what is allocated and freed in a row.
//!
//! Up to 4.14 pages that reclaim frees are the last ones of the list to be allocated (`cold`); here they are the first.

use crate::ids::ZoneId;
use crate::kernel::{MigrateTypes, PcpLists};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::alloc::page_alloc::RmqueueMode;
use crate::mm::frames::page::Pages;
use crate::mm::types::{
    Mark, MigrateType, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, Pfn, ZoneType,
};
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::VecDeque;

/// `CONFIG_PCP_BATCH_SCALE_MAX`
const SCALE_MAX: u32 = 5;
/// `MIN_PERCPU_PAGELIST_HIGH_FRACTION`: the lists of all CPUs hold an eighth of the zone at most.
const HIGH_FRACTION: u64 = 8;
/// Orders of the blocks on the lists: small ones, and huge pages (`NR_PCP_THP`).
const LIST_ORDERS: [usize; PAGE_ALLOC_COSTLY_ORDER + 2] = [0, 1, 2, 3, PAGEBLOCK_ORDER];
/// Lists of a CPU, one for each order and type.
const LISTS: usize = LIST_ORDERS.len() * MigrateType::PCPTYPES;

/// The lists of a CPU.
#[derive(Debug, Clone, Default)]
struct List {
    /// Its blocks by order and type; the next to be allocated is the last.
    blocks: [VecDeque<Pfn>; LISTS],
    /// Pages of all blocks.
    count: u32,
    /// Pages above which some are given back.
    high: u32,
    /// How often the batch has been doubled, by allocations in a row.
    alloc_factor: u32,
    /// Frees in a row: how often the batch has been doubled, or from 6.7 on how many pages.
    freed: u32,
    /// The last block that was freed was no single page (`PCPF_PREV_FREE_HIGH_ORDER`).
    freed_high: bool,
}

/// `order_to_pindex`. Blocks that are kept for allocations that cannot wait are on the lists of movable ones.
fn list_index(order: usize, migrate_type: MigrateType) -> usize {
    let list = match migrate_type {
        MigrateType::HighAtomic => MigrateType::Movable,
        list => list,
    };
    order.min(PAGE_ALLOC_COSTLY_ORDER + 1) * MigrateType::PCPTYPES + list as usize
}

impl List {
    fn pop_oldest(&mut self, index: usize) -> Option<Pfn> {
        let oldest = self.blocks[index].pop_front()?;
        self.count -= 1 << LIST_ORDERS[index / MigrateType::PCPTYPES];
        Some(oldest)
    }
}

/// The lists of a zone.
#[derive(Debug, Default)]
pub(crate) struct Pcp {
    lists: Vec<List>,
    /// Single pages are on the lists and no blocks.
    pages_alone: bool,
    batch: u32,
    high_min: u32,
    /// Equal to `high_min` where lists do not grow.
    high_max: u32,
    /// `ZONE_BELOW_HIGH`: an allocation found the zone below its high watermark.
    below_high: bool,
    /// `ZONE_RECLAIM_ACTIVE`: kswapd is at work.
    reclaim_active: bool,
}

impl Pcp {
    /// The lists of `cpus` CPUs, of which `local` share what the zone allows
    /// (`zone_batchsize`, `zone_set_pageset_high_and_batch`).
    pub(super) fn new(zone: &Zone, cpus: u32, local: u32) -> Pcp {
        let variant = zone.rules.pcp_lists;
        let bytes_max = match variant {
            PcpLists::SixBatches => 512 << 10,
            _ => 1 << 20,
        };
        let share = (zone.size() >> 10).min(bytes_max / PAGE_SIZE) / 4;
        let share = share.max(1);
        let wanted: u64 = (1 << (share + share / 2).ilog2()) - 1;
        let batch = wanted.max(1);
        let local = u64::from(local.max(1));
        let share_of = |pages: u64| (pages / local).max(batch << 2) as u32;
        let high_min = match variant {
            PcpLists::SixBatches | PcpLists::LargeBatches => 6 * wanted as u32,
            PcpLists::Fixed | PcpLists::Tuned => share_of(zone.mark(Mark::Low)),
        };
        let high_max = match variant {
            PcpLists::Tuned => share_of(zone.managed / HIGH_FRACTION).max(high_min),
            _ => high_min,
        };
        let list = List {
            high: high_min,
            ..List::default()
        };
        Pcp {
            lists: vec![list; cpus.max(1) as usize],
            pages_alone: matches!(variant, PcpLists::SixBatches | PcpLists::LargeBatches),
            batch: batch as u32,
            high_min,
            high_max,
            below_high: false,
            reclaim_active: false,
        }
    }

    /// `pcp_allowed_order`: whether blocks of an order are on the lists.
    #[inline]
    pub(super) fn has_list(&self, order: usize) -> bool {
        match self.pages_alone {
            true => order == 0,
            false => LIST_ORDERS.contains(&order),
        }
    }

    fn tuned(&self) -> bool {
        self.high_min != self.high_max
    }

    /// Pages on the lists of all CPUs.
    #[cfg(test)]
    fn len(&self) -> u64 {
        self.lists.iter().map(|list| u64::from(list.count)).sum()
    }

    /// From now on what is freed goes to the zone at once, as it does on lists of small zones of old kernels.
    #[cfg(test)]
    pub(crate) fn keep_nothing(&mut self) {
        (self.pages_alone, self.batch) = (true, 1);
        self.lists.iter_mut().for_each(|list| list.high = 0);
    }

    /// An allocation finds the zone below its high watermark.
    #[inline]
    pub(super) fn note_below_high(&mut self) {
        self.below_high = true;
    }

    /// `nr_pcp_alloc`: blocks to fill the list with.
    fn blocks_to_fill(&mut self, cpu: usize, order: usize) -> u32 {
        let pages = match self.tuned() {
            true => self.pages_to_fill(cpu, order),
            false => self.batch,
        };
        match order > 0 && pages > 1 {
            true => (pages >> order).max(2),
            false => pages,
        }
    }

    fn pages_to_fill(&mut self, cpu: usize, order: usize) -> u32 {
        let list = &mut self.lists[cpu];
        let doubled = if order == 0 { list.alloc_factor } else { 0 };
        let wanted = self.batch << doubled;
        if !self.below_high {
            list.high = (list.high + wanted).min(self.high_max);
        }
        if order > 0 {
            return wanted;
        }
        let held = list.count + self.batch;
        let most = list.high.saturating_sub(held).max(self.batch);
        if wanted <= most && list.alloc_factor < SCALE_MAX {
            list.alloc_factor += 1;
        }
        wanted.min(most)
    }

    /// A block is freed on the CPU (`free_frozen_page_commit`): how many pages to give back to the zone.
    fn push(&mut self, cpu: usize, pfn: Pfn, order: usize, migrate_type: MigrateType) -> u32 {
        let (batch, tuned) = (self.batch, self.tuned());
        let pages_alone = self.pages_alone;
        let list = &mut self.lists[cpu];
        list.blocks[list_index(order, migrate_type)].push_back(pfn);
        list.count += 1 << order;
        if pages_alone {
            return if list.count >= list.high { batch } else { 0 };
        }
        list.alloc_factor >>= 1;
        let in_a_row = match tuned {
            true => list.freed_high && list.freed >= batch + self.high_min / 2,
            false => list.freed > 0,
        };
        let small = (1..=PAGE_ALLOC_COSTLY_ORDER).contains(&order);
        list.freed_high = small;
        if tuned && list.freed < batch << SCALE_MAX {
            list.freed += 1 << order;
        }
        if small && in_a_row {
            return self.all_blocks(cpu);
        }
        let high = self.high_now(cpu);
        let list = &mut self.lists[cpu];
        if list.count < high {
            return 0;
        }
        let most = high.saturating_sub(batch).max(batch);
        if tuned {
            return list.freed.clamp(batch, most);
        }
        let wanted = batch << list.freed.min(u32::BITS - 8);
        if wanted < most {
            list.freed += 1;
        }
        wanted.clamp(batch, most)
    }

    /// Blocks that are freed in a row do not stay on the lists (`free_high`): pages to give back.
    #[cold]
    fn all_blocks(&mut self, cpu: usize) -> u32 {
        let (batch, low, tuned) = (self.batch, self.high_min, self.tuned());
        let list = &mut self.lists[cpu];
        if !tuned {
            return list.count;
        }
        list.high = list.high.saturating_sub(batch << SCALE_MAX).max(low);
        list.count.min(batch << SCALE_MAX)
    }

    /// `nr_pcp_high`
    fn high_now(&mut self, cpu: usize) -> u32 {
        let (batch, low, most) = (self.batch, self.high_min, self.high_max);
        let list = &mut self.lists[cpu];
        let freed = list.freed.max(batch);
        if low == most {
            return match self.reclaim_active {
                true => list.high.min(batch << 2),
                false => list.high,
            };
        }
        let high = list.high;
        let shrunk = high.saturating_sub(freed).max(low);
        if self.reclaim_active {
            list.high = shrunk;
            return shrunk.min(batch << 2);
        }
        let held = list.count;
        if self.below_high {
            list.high = shrunk;
            return held.max(low);
        }
        // Long enough for what is freed in a row.
        if held >= high && high < list.freed + batch {
            list.high = (list.freed + batch).clamp(low, most);
        }
        high
    }
}

impl Zone {
    /// `rmqueue_pcplist`: a block from the CPU's list.
    #[inline]
    pub(super) fn take_from_pcp(
        &mut self,
        cpu: usize,
        pages: &mut Pages,
        order: usize,
        migrate_type: MigrateType,
    ) -> Option<Pfn> {
        let list = &mut self.pcp.lists[cpu];
        list.freed >>= 1;
        match list.blocks[list_index(order, migrate_type)].pop_back() {
            Some(pfn) => {
                list.count -= 1 << order;
                Some(pfn)
            }
            None => self.fill_pcp(cpu, pages, order, migrate_type),
        }
    }

    /// `rmqueue_bulk`: fills the CPU's empty list and takes the first block.
    fn fill_pcp(
        &mut self,
        cpu: usize,
        pages: &mut Pages,
        order: usize,
        migrate_type: MigrateType,
    ) -> Option<Pfn> {
        let wanted = self.pcp.blocks_to_fill(cpu, order);
        let index = list_index(order, migrate_type);
        let mut blocks = std::mem::take(&mut self.pcp.lists[cpu].blocks[index]);
        let mut mode = RmqueueMode::Normal;
        for _ in 0..wanted {
            let Some(pfn) = self.rmqueue(pages, order, migrate_type, &mut mode) else {
                break;
            };
            blocks.push_front(pfn);
        }
        let block = blocks.pop_back();
        let list = &mut self.pcp.lists[cpu];
        list.count += (blocks.len() as u32) << order;
        list.blocks[index] = blocks;
        block
    }

    /// kswapd begins or ends to reclaim for the zone (`set_reclaim_active`).
    pub(crate) fn set_reclaim_active(&mut self, active: bool) {
        self.pcp.reclaim_active = active;
    }
}

impl Mm {
    /// Puts a free block on the list of the current CPU (`free_frozen_page_commit`).
    #[inline]
    pub(super) fn free_to_pcp(&mut self, pfn: Pfn, order: usize) {
        let (zone, cpu) = (self.pages.zone(pfn), self.cpu);
        let state = &mut self.zones[zone];
        let migrate_type = state.pageblock_type(pfn);
        let count = state.pcp.push(cpu, pfn, order, migrate_type);
        if count > 0 {
            self.give_back(zone, count, list_index(order, migrate_type));
        }
    }

    /// A list is too long.
    fn give_back(&mut self, zone: ZoneId, count: u32, first: usize) {
        match self.zones[zone].pcp.pages_alone {
            true => self.free_pages_in_turn(zone, count),
            false => self.free_pcppages_bulk(zone, self.cpu, count, first),
        }
        let zone = &mut self.zones[zone];
        let enough = zone.mark(Mark::High) + zone.lowmem_reserve[ZoneType::High as usize];
        if zone.free > enough {
            zone.pcp.below_high = false;
        }
    }

    /// `free_pcppages_bulk` up to 5.17: the oldest pages of the lists of each type in turn, one more from each the longer
    /// it takes, and all that is left from the only list that has any.
    fn free_pages_in_turn(&mut self, zone: ZoneId, count: u32) {
        let cpu = self.cpu;
        let mut left = count.min(self.zones[zone].pcp.lists[cpu].count);
        let (mut index, mut in_a_row) = (0, 0);
        while left > 0 {
            in_a_row += 1;
            index = (index + 1) % MigrateType::PCPTYPES;
            for _ in 0..in_a_row {
                if left == 0 || !self.free_oldest(zone, cpu, index) {
                    break;
                }
                left -= 1;
            }
        }
    }

    /// `free_pcppages_bulk`: the oldest blocks of a CPU go back to the zone, those of one list first.
    fn free_pcppages_bulk(&mut self, zone: ZoneId, cpu: usize, count: u32, first: usize) {
        let mut left = count;
        for index in (0..LISTS).cycle().skip(first).take(LISTS) {
            let pages = 1 << LIST_ORDERS[index / MigrateType::PCPTYPES];
            while left > 0 && self.free_oldest(zone, cpu, index) {
                left = left.saturating_sub(pages);
            }
        }
    }

    /// The oldest block of a list goes back to the zone. False: the list is empty.
    fn free_oldest(&mut self, zone: ZoneId, cpu: usize, index: usize) -> bool {
        let state = &mut self.zones[zone];
        let Some(pfn) = state.pcp.lists[cpu].pop_oldest(index) else {
            return false;
        };
        let order = LIST_ORDERS[index / MigrateType::PCPTYPES];
        let now = state.pageblock_type(pfn);
        // Up to 6.9 a block keeps the type that its pageblock had when it was freed.
        let list = match state.rules.migrate_types {
            MigrateTypes::Claimed | MigrateTypes::ClaimedFirst => now,
            _ if now == MigrateType::HighAtomic => now,
            _ => MigrateType::ALL[index % MigrateType::PCPTYPES],
        };
        self.free_block_to(zone, pfn, order, list);
        true
    }

    /// `drain_all_pages`: everything goes back to the zones.
    pub(crate) fn drain_all_pages(&mut self) {
        for zone in self.zones.keys() {
            self.drain_zone(zone);
        }
    }

    /// The same of one zone.
    pub(in crate::mm) fn drain_zone(&mut self, zone: ZoneId) {
        for cpu in 0..self.zones[zone].pcp.lists.len() {
            self.free_pcppages_bulk(zone, cpu, u32::MAX, 0);
        }
    }

    /// `drain_local_pages`: what this CPU has of a zone.
    pub(in crate::mm) fn drain_local_pages(&mut self, zone: ZoneId) {
        self.free_pcppages_bulk(zone, self.cpu, u32::MAX, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::mmzone::{Built, Layout};
    use crate::ids::{NodeId, ZoneId};
    use crate::kernel::{Kernel, PcpLists};
    use crate::mm::Mm;
    use crate::mm::alloc::page_alloc::RmqueueMode;
    use crate::mm::types::Gfp;
    use crate::mm::types::{Mark, MigrateType, flag};
    use lowmark_spec::{KernelSpec, Machine};

    fn machine(cpus: u32) -> Machine {
        Machine {
            cpus,
            ..Machine::small(512 << 20, 0)
        }
    }

    fn kernel(version: &str) -> Kernel {
        let spec = KernelSpec {
            text: version.into(),
            version: version.into(),
            toggles: Vec::new(),
            sysctl: Default::default(),
        };
        Kernel::resolve(&spec).unwrap()
    }

    #[test]
    fn sizes_are_those_of_zoneinfo() {
        // /proc/zoneinfo of 6.1.192 and 6.18.15 on 2 CPUs with 512 MB: batch 31, high 13 and 408; high_min 13
        // and 410, high_max 240.
        for (version, low) in [("v6.1", 408), ("v6.18", 410)] {
            let kernel = kernel(version);
            let layout = Layout::of(&machine(2), &kernel);
            let Built { mut zones, .. } = layout.build(&kernel);
            zones[ZoneId::FIRST].managed = 3840;
            zones[ZoneId::FIRST].watermark = [22, 27, 32];
            zones[ZoneId::from(1)].managed = 114_592;
            zones[ZoneId::from(1)].watermark[Mark::Low as usize] = 2 * low;
            let dma = super::Pcp::new(&zones[ZoneId::FIRST], 2, 2);
            let dma32 = super::Pcp::new(&zones[ZoneId::from(1)], 2, 2);
            assert_eq!((dma.batch, dma.high_min), (1, 13));
            assert_eq!((dma32.batch, dma32.high_min), (31, low as u32));
            let tuned = kernel.mechanisms.zones.pcp_lists == PcpLists::Tuned;
            assert_eq!(dma.high_max, if tuned { 240 } else { 13 });
        }
    }

    /// `/proc/zoneinfo` of a 3.x kernel, of a zone of 2 GB: batch 31, high 186; of ZONE_DMA batch 1, high 0. Batches of 63
    /// since 4.19.
    #[test]
    fn old_lists_hold_six_batches_of_single_pages() {
        for (version, batch) in [("v2.6.37", 31), ("v4.18", 31), ("v4.19", 63), ("v5.13", 63)] {
            let kernel = kernel(version);
            let layout = Layout::of(&machine(2), &kernel);
            let Built { mut zones, .. } = layout.build(&kernel);
            for (zone, pages) in zones.iter_mut().zip([3976, 2 << 18]) {
                (zone.present, zone.managed) = (pages, pages);
            }
            let dma = super::Pcp::new(&zones[ZoneId::FIRST], 2, 2);
            let dma32 = super::Pcp::new(&zones[ZoneId::from(1)], 2, 2);
            assert_eq!((dma.batch, dma.high_min), (1, 0), "{version}");
            assert_eq!(
                (dma32.batch, dma32.high_min),
                (batch, 6 * batch),
                "{version}"
            );
            assert_eq!(
                [0, 1, 9].map(|order| dma32.has_list(order)),
                [true, false, false]
            );
        }
    }

    /// A list that is full gives a batch back, of each type in turn, the oldest first.
    #[test]
    fn old_lists_give_back_a_batch_of_all_types() {
        let mut mm = Mm::new(&machine(1), kernel("v3.6"));
        let zone = mm.nodes[NodeId::FIRST].zonelist[0];
        let take = |mm: &mut Mm, list| {
            let mut mode = RmqueueMode::Normal;
            mm.zones[zone]
                .rmqueue(&mut mm.pages, 0, list, &mut mode)
                .unwrap()
        };
        let of_types = [MigrateType::Movable, MigrateType::Unmovable];
        let used: Vec<u32> = (0..186).map(|at| take(&mut mm, of_types[at % 2])).collect();
        let free = mm.zones[zone].free;
        for &pfn in &used[..185] {
            mm.free_page(pfn);
        }
        assert_eq!((mm.zones[zone].pcp.len(), mm.zones[zone].free), (185, free));
        mm.free_page(used[185]);
        assert_eq!(
            (mm.zones[zone].pcp.len(), mm.zones[zone].free),
            (155, free + 31)
        );
        let left = used
            .iter()
            .filter(|&&pfn| mm.pages[pfn].has(flag::BUDDY))
            .count();
        assert!(left > 0, "the first page of a free block is marked");
    }

    /// Pages are neither lost nor made, and each CPU gets its own back first.
    #[test]
    fn what_a_cpu_frees_it_allocates_next() {
        for version in ["v6.1", "v6.18"] {
            let kernel = kernel(version);
            let mut mm = Mm::new(&machine(2), kernel);
            let in_zones = |mm: &Mm| {
                let held = |z: &super::Zone| z.free + z.pcp.len();
                mm.zones.iter().map(held).sum::<u64>()
            };
            let all = in_zones(&mm);
            let take = |mm: &mut Mm| mm.get_page_fast(Gfp::user(NodeId::FIRST)).unwrap();
            let pages: Vec<u32> = (0..500).map(|_| take(&mut mm)).collect();
            assert_eq!(in_zones(&mm), all - 500, "{version}");
            mm.cpu = 1;
            mm.free_page(pages[7]);
            assert_eq!(take(&mut mm), pages[7]);
            mm.cpu = 0;
            assert_ne!(take(&mut mm), pages[7]);
            for &pfn in &pages[8..] {
                mm.free_page(pfn);
            }
            mm.drain_all_pages();
            assert_eq!(in_zones(&mm), all - 9);
            assert_eq!(mm.zones.iter().map(|zone| zone.free).sum::<u64>(), all - 9);
        }
    }

    /// Blocks of each order come from lists of their own, and none is lost.
    #[test]
    fn blocks_of_several_pages_are_kept_too() {
        for version in ["v6.1", "v6.18"] {
            let kernel = kernel(version);
            let mut mm = Mm::new(&machine(1), kernel);
            mm.drain_all_pages();
            let free = |mm: &Mm| mm.zones.iter().map(|zone| zone.free).sum::<u64>();
            let all = free(&mm);
            let mut blocks = Vec::new();
            for order in [0, 1, 3, 1, 4] {
                let at = mm.nodes[NodeId::FIRST].zonelist[0];
                let zone = &mut mm.zones[at];
                let block = match order {
                    4 => zone.rmqueue(
                        &mut mm.pages,
                        order,
                        MigrateType::Reclaimable,
                        &mut RmqueueMode::Normal,
                    ),
                    _ => zone.take_from_pcp(0, &mut mm.pages, order, MigrateType::Reclaimable),
                };
                blocks.push((block.unwrap(), order));
            }
            assert!(blocks.iter().all(|&(pfn, order)| pfn % (1 << order) == 0));
            assert!(free(&mm) <= all - 29, "{version}");
            for (pfn, order) in blocks {
                mm.free_pages(pfn, order);
            }
            mm.drain_all_pages();
            assert_eq!(free(&mm), all, "{version}");
        }
    }

    #[test]
    fn lists_are_short_while_kswapd_works() {
        for version in ["v6.1", "v6.18"] {
            let kernel = kernel(version);
            let mut mm = Mm::new(&machine(1), kernel);
            let pages: Vec<u32> = (0..4000)
                .map(|_| mm.get_page_fast(Gfp::user(NodeId::FIRST)).unwrap())
                .collect();
            for zone in &mut mm.zones {
                zone.set_reclaim_active(true);
            }
            for pfn in pages {
                mm.free_page(pfn);
                let longest = mm.zones.iter().map(|z| z.pcp.len()).max().unwrap();
                assert!(longest <= 4096, "{version}: {longest}");
            }
            let left: Vec<u64> = mm.zones.iter().map(|zone| zone.pcp.len()).collect();
            assert!(left.iter().all(|&len| len <= 4 * 31), "{version}: {left:?}");
        }
    }

    #[test]
    fn batches_grow_with_allocations_in_a_row() {
        let kernel = kernel("v6.18");
        let mut mm = Mm::new(&machine(1), kernel);
        let zone = mm.nodes[NodeId::FIRST].zonelist[0];
        let mut drops = Vec::new();
        for _ in 0..4000 {
            let before = mm.zones[zone].free;
            mm.get_page_fast(Gfp::user(NodeId::FIRST));
            let drop = before - mm.zones[zone].free;
            if drop > 0 {
                drops.push(drop);
            }
        }
        assert_eq!(drops[..6], [31, 62, 124, 248, 496, 992]);
    }
}
