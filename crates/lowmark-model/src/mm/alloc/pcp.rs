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
    Mark, MigrateType, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, Pfn, ZoneType, flag,
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
    /// CPUs that share what the zone allows.
    local: u32,
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
            local: local as u32,
            pages_alone: matches!(variant, PcpLists::SixBatches | PcpLists::LargeBatches),
            batch: batch as u32,
            high_min,
            high_max,
            below_high: false,
            reclaim_active: false,
        }
    }

    /// The lists of a zone whose watermarks have changed: how long they may be follows (`zone_pcp_update`). What is on
    /// them stays for now.
    pub(super) fn follow_watermarks(zone: &mut Zone) {
        let lists = zone.pcp.lists.len() as u32;
        let fresh = Pcp::new(zone, lists, zone.pcp.local);
        let pcp = &mut zone.pcp;
        (pcp.high_min, pcp.high_max) = (fresh.high_min, fresh.high_max);
        for list in &mut pcp.lists {
            list.high = list.high.clamp(pcp.high_min, pcp.high_max);
        }
    }

    /// `pcp_allowed_order`: whether blocks of an order are on the lists.
    #[inline]
    pub(super) fn has_list(&self, order: usize) -> bool {
        if self.pages_alone {
            order == 0
        } else {
            LIST_ORDERS.contains(&order)
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
        let pages = if self.tuned() {
            self.pages_to_fill(cpu, order)
        } else {
            self.batch
        };
        if order > 0 && pages > 1 {
            (pages >> order).max(2)
        } else {
            pages
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
        let in_a_row = if tuned {
            list.freed_high && list.freed >= batch + self.high_min / 2
        } else {
            list.freed > 0
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
            return if self.reclaim_active {
                list.high.min(batch << 2)
            } else {
                list.high
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
                pages[pfn].clear(flag::PCP);
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
            pages[pfn].set(flag::PCP);
            blocks.push_front(pfn);
        }
        let block = blocks.pop_back();
        if let Some(pfn) = block {
            pages[pfn].clear(flag::PCP);
        }
        let list = &mut self.pcp.lists[cpu];
        list.count += (blocks.len() as u32) << order;
        list.blocks[index] = blocks;
        block
    }

    /// Each CPU gets an equal part of `count` movable pages on its list, as far as the list may be long, and the list of a CPU of 6.7
    /// and later has become as long as that.
    pub(super) fn keep_in_pcp(&mut self, pages: &mut Pages, count: u64) {
        let cpus = self.pcp.lists.len();
        let each = (count / cpus as u64).min(self.pcp.high_max.into()) as u32;
        let index = list_index(0, MigrateType::Movable);
        for cpu in 0..cpus {
            let mut mode = RmqueueMode::Normal;
            for _ in 0..each {
                let Some(pfn) = self.rmqueue(pages, 0, MigrateType::Movable, &mut mode) else {
                    break;
                };
                pages[pfn].set(flag::PCP);
                let list = &mut self.pcp.lists[cpu];
                list.blocks[index].push_back(pfn);
                list.count += 1;
                list.high = list.high.max(list.count);
            }
        }
    }

    /// kswapd begins or ends to reclaim for the zone (`set_reclaim_active`).
    pub(crate) fn set_reclaim_active(&mut self, active: bool) {
        self.pcp.reclaim_active = active;
    }
}

impl Mm {
    /// Puts a free block on the list of the current CPU (`free_frozen_page_commit`).
    #[inline(always)]
    pub(super) fn free_to_pcp(&mut self, pfn: Pfn, order: usize) {
        let (zone, cpu) = (self.pages.zone(pfn), self.cpu);
        let state = &mut self.zones[zone];
        let migrate_type = state.pageblock_type(pfn);
        self.pages[pfn].set(flag::PCP);
        let count = state.pcp.push(cpu, pfn, order, migrate_type);
        if count > 0 {
            self.give_back(zone, count, list_index(order, migrate_type));
        }
    }

    /// A list is too long.
    fn give_back(&mut self, zone: ZoneId, count: u32, first: usize) {
        if self.zones[zone].pcp.pages_alone {
            self.free_pages_in_turn(zone, count)
        } else {
            self.free_pcppages_bulk(zone, self.cpu, count, first)
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
        self.pages[pfn].clear(flag::PCP);
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
mod tests;
