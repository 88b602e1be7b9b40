//! Swap areas and their slots (`mm/swapfile.c`).
//!
//! A slot number is global: the areas lie one behind the other. Slot 0 of each area is its header.
//!
//! How a slot is found decides where pages land, hence how the device is read later:
//!
//! 1. Slots are taken upward in clusters of 256.
//! 2. When a cluster is used up, a run of 256 free slots is searched: on a rotating device from the
//!    lowest free slot (which keeps the used part compact and low), on a solid-state one from where the
//!    last cluster ended (which sweeps the area).
//! 3. Without such a run: first fit from the lowest free slot (rotating), next fit (solid state).
//! 4. From 3.12 on, a solid-state area is cut into aligned clusters, from 6.14 on every area
//!    ([`crate::mm::swap::swap_cluster`]).
//! 5. From 4.11 to 6.14 each CPU takes 64 slots at a time, so that its pages lie together.

use crate::ids::{DeviceId, MemcgId};
use crate::kernel::{Kernel, SwapSlots, SwapTurns, ThpSwapArea, Workingset};
use crate::mm::frames::shadow::Shadow;
use crate::mm::swap::swap_cache::SwapCacheMemory;
use crate::mm::swap::swap_cgroup::SwapCgroups;
use crate::mm::swap::swap_cluster::Clusters;
use crate::mm::swap::swap_map::{CLUSTER, free_run, next_free};
use crate::mm::types::Pfn;
use lowmark_spec::machine::{Machine, PAGE_SIZE};
use lowmark_spec::random::Stream;

/// Slots that a CPU takes at once (`SWAP_SLOTS_CACHE_SIZE`).
const SLOTS_AHEAD: u64 = 64;

/// Users and cached page of a slot, packed like the kernel's `swap_map` plus its swap cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Slot(u32);

const PAGE_BITS: u32 = 26;
const PAGE_MASK: u32 = (1 << PAGE_BITS) - 1;
/// Most references that the model counts (`SWAP_MAP_MAX`; continuation pages are left out).
const COUNT_MAX: u32 = 61;
/// Owned by a shared object (`SWAP_MAP_SHMEM`).
const COUNT_SHMEM: u32 = 62;
/// Never to be used (`SWAP_MAP_BAD`).
const COUNT_BAD: u32 = 63;
/// Frames that fit beside the count: 256 GiB.
pub(crate) const MAX_FRAMES: u32 = PAGE_MASK;

impl Slot {
    fn count(self) -> u32 {
        self.0 >> PAGE_BITS
    }

    fn page(self) -> Option<Pfn> {
        (self.0 & PAGE_MASK).checked_sub(1)
    }

    fn set_count(&mut self, count: u32) {
        self.0 = self.0 & PAGE_MASK | count << PAGE_BITS;
    }

    fn set_page(&mut self, page: Option<Pfn>) {
        self.0 = self.0 & !PAGE_MASK | page.map_or(0, |pfn| pfn + 1);
    }

    fn is_free(self) -> bool {
        self.0 == 0
    }
}

/// A swap area (`struct swap_info_struct`). Offsets are relative to its first slot.
#[derive(Debug)]
struct Area {
    base: u32,
    slots: u32,
    device: DeviceId,
    /// First page of the area on the device.
    device_page: u64,
    priority: i32,
    solid_state: bool,
    /// Whether a huge page gets slots of it as a whole, if there is a free cluster of them.
    takes_huge_pages: bool,
    lowest_bit: u32,
    highest_bit: u32,
    cluster_next: u32,
    cluster_nr: u32,
    in_use: u32,
    /// One bit per slot: in use.
    used: Vec<u64>,
    clusters: Option<Clusters>,
}

/// All swap areas.
#[derive(Debug)]
pub(crate) struct Swap {
    slots: Vec<Slot>,
    /// Shadow of the page that each slot holds, 0 if it has none; empty if the kernel remembers nothing.
    shadows: Vec<u32>,
    areas: Vec<Area>,
    /// Area indices by falling priority; equal ones take turns.
    order: Vec<usize>,
    free: u64,
    total: u64,
    /// Slots that each CPU has taken ahead, the next one last (`swp_slots`); no lists if it takes none.
    taken_ahead: Vec<Vec<u32>>,
    /// Whether it does at present (`swap_slot_cache_active`).
    takes_ahead: bool,
    /// The area in which each CPU fills a cluster (`percpu_swap_cluster`); no entries where there is no choice.
    filled: Vec<Option<usize>>,
    /// Whose pages the slots hold.
    pub(super) cgroups: SwapCgroups,
    /// What the swap cache itself needs.
    pub(crate) memory: SwapCacheMemory,
    /// What the read-ahead variants remember.
    pub(crate) readahead: crate::mm::swap::swap_state::Readahead,
}

impl Swap {
    /// `swapon` of every area of the machine.
    pub(crate) fn new(machine: &Machine, kernel: &Kernel, high: bool) -> Swap {
        let mut slots = Vec::new();
        let mut areas = Vec::new();
        for (index, spec) in machine.swap.iter().enumerate() {
            let device = &machine.devices[spec.device];
            let count = (spec.size / PAGE_SIZE) as u32;
            let base = slots.len() as u32;
            slots.resize(slots.len() + count as usize, Slot::default());
            slots[base as usize].set_count(COUNT_BAD);
            areas.push(Area::new(
                base,
                count,
                device.rotational,
                kernel,
                machine.cpus,
                index,
            ));
            if let Some(area) = areas.last_mut() {
                area.device = DeviceId::from(spec.device);
                area.device_page = spec.start / PAGE_SIZE;
                area.priority = spec.priority;
                area.takes_huge_pages = match kernel.mechanisms.huge.thp_swap_area {
                    ThpSwapArea::Any => true,
                    ThpSwapArea::Partition => !spec.file,
                };
            }
        }
        let mut order: Vec<usize> = (0..areas.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(areas[index].priority));
        let total = areas
            .iter()
            .map(|area| u64::from(area.slots.saturating_sub(1)))
            .sum();
        let remembered = match kernel.mechanisms.reclaim.workingset {
            Workingset::All => slots.len(),
            _ => 0,
        };
        let memory = if high {
            SwapCacheMemory::default()
        } else {
            SwapCacheMemory::new(slots.len(), kernel)
        };
        Swap {
            slots,
            shadows: vec![0; remembered],
            areas,
            order,
            free: total,
            total,
            taken_ahead: match kernel.mechanisms.swap.swap_slots {
                SwapSlots::Single => Vec::new(),
                SwapSlots::Cache => vec![Vec::new(); machine.cpus as usize],
            },
            takes_ahead: false,
            filled: match kernel.mechanisms.swap.swap_turns {
                SwapTurns::Cluster if machine.swap.len() > 1 => vec![None; machine.cpus as usize],
                SwapTurns::Allocation | SwapTurns::Cluster => Vec::new(),
            },
            cgroups: Default::default(),
            memory,
            readahead: Default::default(),
        }
    }

    /// There are so many memory cgroups, the root included.
    pub(crate) fn make_cgroups(&mut self, groups: usize) {
        self.cgroups = SwapCgroups::new(self.slots.len(), groups);
    }

    /// Whether what is counted of each memory cgroup's slots is what it has, and only slots in use are anybody's: for
    /// tests of the model itself.
    pub(crate) fn groups_have_their_slots(&self) -> bool {
        let all_counted = self
            .cgroups
            .counted()
            .all(|(counted, held)| counted == held);
        let free = |slot: &u32| self.slots[*slot as usize].is_free();
        let mut free = (0..self.slots.len() as u32).filter(free);
        all_counted && free.all(|slot| self.cgroups.of_slot(slot) == MemcgId::ROOT)
    }

    /// `nr_swap_pages`
    pub(crate) fn free_slots(&self) -> u64 {
        self.free
    }

    /// `total_swap_pages`
    pub(crate) fn total_slots(&self) -> u64 {
        self.total
    }

    /// `vm_swap_full`: more than half used.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free * 2 < self.total
    }

    /// `get_swap_page`: a slot for a page that enters the swap cache. `cpu` is where the caller runs.
    #[inline]
    pub(crate) fn allocate(&mut self, pfn: Pfn, cpu: u32) -> Option<u32> {
        let slot = if self.taken_ahead.is_empty() {
            self.take_slot(cpu)
        } else {
            self.take_cached_slot(cpu)
        }?;
        self.slots[slot as usize].set_page(Some(pfn));
        self.memory.entry_added(slot);
        Some(slot)
    }

    /// `folio_alloc_swap` of the kernels with slot caches: 64 slots are taken at once while there are plenty
    /// for all CPUs (`check_cache_active`).
    fn take_cached_slot(&mut self, cpu: u32) -> Option<u32> {
        let cpus = self.taken_ahead.len() as u64;
        self.takes_ahead = if self.takes_ahead {
            self.free >= 2 * SLOTS_AHEAD * cpus
        } else {
            self.free > 5 * SLOTS_AHEAD * cpus
        };
        if let Some(slot) = self.taken_ahead[cpu as usize].pop() {
            return Some(slot);
        }
        if !self.takes_ahead {
            return self.take_slot(cpu);
        }
        // All of them from one area (get_swap_pages).
        let (area, first) = self.take_from_next(cpu)?;
        let more = (1..SLOTS_AHEAD).map_while(|_| self.take_from(area, cpu));
        let mut ahead: Vec<u32> = more.collect();
        ahead.reverse();
        self.taken_ahead[cpu as usize] = ahead;
        Some(first)
    }

    /// One slot: of the cluster that the CPU fills (`swap_alloc_fast`), else of the next area.
    #[inline]
    fn take_slot(&mut self, cpu: u32) -> Option<u32> {
        let filled = self.filled.get(cpu as usize).copied().flatten();
        if let Some(area) = filled.filter(|&area| self.areas[area].cluster_goes_on(cpu)) {
            return self.take_from(area, cpu);
        }
        let (area, slot) = self.take_from_next(cpu)?;
        if let Some(filled) = self.filled.get_mut(cpu as usize) {
            *filled = self.areas[area].solid_state.then_some(area);
        }
        Some(slot)
    }

    /// A slot of the first area that has one, which goes behind the others of its priority.
    #[inline]
    fn take_from_next(&mut self, cpu: u32) -> Option<(usize, u32)> {
        if self.free == 0 {
            return None;
        }
        for at in 0..self.order.len() {
            let area = self.order[at];
            if let Some(slot) = self.take_from(area, cpu) {
                self.take_turns(at);
                return Some((area, slot));
            }
        }
        None
    }

    #[inline]
    fn take_from(&mut self, area: usize, cpu: u32) -> Option<u32> {
        let area = &mut self.areas[area];
        let slot = area.base + area.take(cpu)?;
        self.memory.slot_taken(slot);
        self.free -= 1;
        Some(slot)
    }

    /// The area just used goes behind the others of its priority.
    #[inline]
    fn take_turns(&mut self, at: usize) {
        if self.order.len() == 1 {
            return;
        }
        let priority = self.areas[self.order[at]].priority;
        let equals = self.order[at..]
            .iter()
            .take_while(|&&index| self.areas[index].priority == priority)
            .count();
        self.order[at..at + equals].rotate_left(1);
    }

    /// One more PTE refers to the slot (`swap_duplicate`).
    #[inline]
    pub(crate) fn add_reference(&mut self, slot: u32) {
        let count = self.slots[slot as usize].count();
        debug_assert!(count < COUNT_MAX, "swap count continuation is not modelled");
        self.slots[slot as usize].set_count(count + 1);
    }

    /// A shared object owns the slot (`swap_shmem_alloc`).
    pub(crate) fn set_shmem(&mut self, slot: u32) {
        self.slots[slot as usize].set_count(COUNT_SHMEM);
    }

    /// A PTE or a shared object gives up the slot (`swap_free`).
    #[inline]
    pub(crate) fn drop_reference(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let count = match entry.count() {
            COUNT_SHMEM => 0,
            count => count - 1,
        };
        entry.set_count(count);
        if entry.is_free() {
            self.free_slot(slot);
        }
    }

    /// PTEs that refer to the slot; a shared object counts as one.
    #[inline]
    pub(crate) fn references(&self, slot: u32) -> u32 {
        match self.slots[slot as usize].count() {
            COUNT_SHMEM => 1,
            count => count,
        }
    }

    /// The slot's page in the swap cache.
    #[inline]
    pub(crate) fn cached(&self, slot: u32) -> Option<Pfn> {
        self.slots.get(slot as usize).and_then(|slot| slot.page())
    }

    /// A page for the slot enters the swap cache.
    #[inline]
    pub(crate) fn set_cached(&mut self, slot: u32, pfn: Pfn) {
        self.slots[slot as usize].set_page(Some(pfn));
        self.memory.entry_added(slot);
    }

    /// The slot's page is in another frame now.
    pub(crate) fn replace_cached(&mut self, slot: u32, pfn: Pfn) {
        self.slots[slot as usize].set_page(Some(pfn));
    }

    /// The slot's page leaves the swap cache.
    #[inline]
    pub(crate) fn clear_cached(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.set_page(None);
        self.memory.entry_removed(slot);
        if entry.is_free() {
            self.free_slot(slot);
        }
    }

    /// Remembers the page that was evicted from the swap cache; a slot that is free remembers nothing
    /// (`clear_shadow_from_swap_cache`).
    #[inline]
    pub(crate) fn set_shadow(&mut self, slot: u32, shadow: Option<Shadow>) {
        let used = !self.slots[slot as usize].is_free();
        if let Some(place) = self.shadows.get_mut(slot as usize) {
            let shadow = shadow.filter(|_| used).map_or(0, Shadow::bits);
            match (std::mem::replace(place, shadow), shadow) {
                (0, 0) => {}
                (0, _) => self.memory.entry_added(slot),
                (_, 0) => self.memory.entry_removed(slot),
                _ => {}
            }
        }
    }

    /// What was remembered of the slot's page, which enters the swap cache again.
    #[inline]
    pub(crate) fn take_shadow(&mut self, slot: u32) -> Option<Shadow> {
        let shadow = std::mem::take(self.shadows.get_mut(slot as usize)?);
        if shadow != 0 {
            self.memory.entry_removed(slot);
        }
        Shadow::from_bits(shadow)
    }

    /// Whether anybody's data is in the slot.
    #[inline]
    pub(crate) fn has_data(&self, slot: u32) -> bool {
        let count = self.slots[slot as usize].count();
        count != 0 && count != COUNT_BAD
    }

    /// Device and page of the device where a slot lies.
    #[inline]
    pub(crate) fn location(&self, slot: u32) -> (DeviceId, u64) {
        let area = &self.areas[self.area_of(slot)];
        (area.device, area.device_page + u64::from(slot - area.base))
    }

    /// The aligned block of `window` slots around `slot` (`swapin_readahead`), without the header and
    /// within the area.
    pub(crate) fn window(&self, slot: u32, window: u32) -> std::ops::Range<u32> {
        let area = &self.areas[self.area_of(slot)];
        let offset = slot - area.base;
        let start = offset & !(window - 1);
        let end = (start + window).min(area.slots);
        area.base + start.max(1)..area.base + end
    }

    /// Whether some area rotates (`nr_rotate_swap`).
    pub(crate) fn rotates(&self) -> bool {
        self.areas.iter().any(|area| !area.solid_state)
    }

    /// Slots in use, over all areas; those only taken ahead are not.
    pub(crate) fn in_use(&self) -> u64 {
        let ahead: usize = self.taken_ahead.iter().map(Vec::len).sum();
        let taken: u64 = self.areas.iter().map(|area| u64::from(area.in_use)).sum();
        taken - ahead as u64
    }

    /// Pages in the swap cache.
    pub(crate) fn cached_pages(&self) -> u64 {
        self.slots
            .iter()
            .filter(|slot| slot.page().is_some())
            .count() as u64
    }

    /// Slots with a page or a shadow.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = u32> + '_ {
        let shadow = |slot: usize| self.shadows.get(slot).is_some_and(|&bits| bits != 0);
        let slots = self.slots.iter().enumerate();
        let with_entry = slots.filter(move |(slot, entry)| entry.page().is_some() || shadow(*slot));
        with_entry.map(|(slot, _)| slot as u32)
    }

    /// Every slot with its references and cached page, headers left out.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, Option<Pfn>)> + '_ {
        let entry = |(slot, entry): (usize, &Slot)| (slot as u32, entry.count(), entry.page());
        self.slots
            .iter()
            .enumerate()
            .map(entry)
            .filter(|&(_, count, _)| count != COUNT_BAD)
    }

    #[inline]
    fn area_of(&self, slot: u32) -> usize {
        if self.areas.len() == 1 {
            return 0;
        }
        self.areas.partition_point(|area| area.base <= slot) - 1
    }

    fn free_slot(&mut self, slot: u32) {
        self.set_shadow(slot, None);
        self.cgroups.record(slot, MemcgId::ROOT);
        let index = self.area_of(slot);
        let area = &mut self.areas[index];
        area.free(slot - area.base);
        self.memory.slot_freed(slot);
        self.free += 1;
    }
}

impl Area {
    fn new(
        base: u32,
        slots: u32,
        rotational: bool,
        kernel: &Kernel,
        cpus: u32,
        index: usize,
    ) -> Area {
        let highest_bit = slots.saturating_sub(1);
        let solid_state = !rotational;
        let mut used = vec![0; slots.div_ceil(64) as usize];
        if let Some(first) = used.first_mut() {
            *first = 1;
        }
        let clusters = Clusters::new(slots, rotational, cpus, kernel);
        // SYSCALL_DEFINE2(swapon): 1 + random % highest_bit on solid state.
        let start = if solid_state && highest_bit > 0 {
            1 + Stream::new(0, "swapon", index as u64).below(u64::from(highest_bit)) as u32
        } else {
            1
        };
        Area {
            base,
            slots,
            device: DeviceId::FIRST,
            device_page: 0,
            priority: 0,
            solid_state,
            takes_huge_pages: true,
            lowest_bit: 1,
            highest_bit,
            cluster_next: start,
            cluster_nr: 0,
            in_use: 0,
            used,
            clusters,
        }
    }

    /// `scan_swap_map`: takes a free slot.
    #[inline]
    fn take(&mut self, cpu: u32) -> Option<u32> {
        if self.in_use + 1 >= self.slots {
            return None;
        }
        let offset = match &mut self.clusters {
            Some(clusters) if clusters.are_all() => clusters.take(&self.used, cpu)?,
            Some(clusters) => match clusters.take(&self.used, cpu) {
                Some(offset) => offset,
                None => self.scan()?,
            },
            None => self.scan()?,
        };
        self.used[offset as usize / 64] |= 1 << (offset % 64);
        self.in_use += 1;
        if offset == self.lowest_bit {
            self.lowest_bit += 1;
        }
        if offset == self.highest_bit {
            self.highest_bit -= 1;
        }
        self.cluster_next = offset + 1;
        if let Some(clusters) = &mut self.clusters {
            clusters.count_taken(offset);
        }
        Some(offset)
    }

    /// Whether the CPU's cluster has a slot left.
    fn cluster_goes_on(&self, cpu: u32) -> bool {
        let clusters = self.clusters.as_ref();
        clusters.is_some_and(|clusters| clusters.goes_on(&self.used, cpu))
    }

    fn free(&mut self, offset: u32) {
        self.used[offset as usize / 64] &= !(1 << (offset % 64));
        self.in_use -= 1;
        self.lowest_bit = self.lowest_bit.min(offset);
        self.highest_bit = self.highest_bit.max(offset);
        if let Some(clusters) = &mut self.clusters {
            clusters.count_freed(offset);
        }
    }

    fn scan(&mut self) -> Option<u32> {
        let mut from = self.cluster_next;
        if self.cluster_nr == 0 {
            self.cluster_nr = CLUSTER - 1;
            if self.clusters.is_none() && self.slots - 1 - self.in_use >= CLUSTER {
                if !self.solid_state {
                    from = self.lowest_bit;
                }
                let end = self.highest_bit + 1;
                let run = free_run(&self.used, from, end)
                    .or_else(|| free_run(&self.used, self.lowest_bit, from.min(end)));
                from = run.unwrap_or(from);
            }
        } else {
            self.cluster_nr -= 1;
        }
        if from > self.highest_bit {
            from = self.lowest_bit;
        }
        next_free(&self.used, from, self.highest_bit + 1)
            .or_else(|| next_free(&self.used, self.lowest_bit, from))
    }
}

mod huge;
#[cfg(test)]
mod tests;
