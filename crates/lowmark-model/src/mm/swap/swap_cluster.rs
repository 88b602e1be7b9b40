//! Clusters of swap slots on solid-state areas (`struct swap_cluster_info`).
//!
//! An area is cut into aligned clusters. Each CPU fills one from its current place upward and then takes
//! another:
//!
//! 1. 3.12: the first of the list of free clusters; without one, slots are searched as if there were no
//!    clusters. A cluster that is free again goes to the end of that list.
//! 2. 6.12: without a free one, a cluster of which slots have been given up (`nonfull`), else one that was
//!    taken from that list before (`frag`). There is no other search.
//! 3. 6.14: the same on rotating areas, where all CPUs share one cluster.
//! 4. 6.18: `nonfull` clusters come before free ones. Every cluster that a slot was taken from is on `frag`.

use crate::kernel::{Kernel, RotatingSwap, SwapAllocator, ThpSwap};
use crate::mm::swap::swap_map::next_free;
use std::collections::BTreeMap;

/// Where a cluster stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On no list: it is a CPU's (3.12), full, or not whole.
    Off,
    Free,
    Nonfull,
    Frag,
}

/// The clusters of an area.
#[derive(Debug)]
pub(super) struct Clusters {
    /// Slots of a cluster.
    size: u32,
    /// Slots of the area.
    slots: u32,
    allocator: SwapAllocator,
    /// Slots in use per cluster, those that do not exist included.
    counts: Vec<u16>,
    /// Where each stands, and its turn there.
    places: Vec<(Place, u64)>,
    /// Clusters by their turn: free, nonfull, frag.
    lists: [BTreeMap<u64, u32>; 3],
    turn: u64,
    /// Each CPU's cluster, or that of all: the next offset to try in it, and its end; 0 if there is none.
    current: Vec<(u32, u32)>,
}

/// `SWAPFILE_CLUSTER` up to 4.12.
const SMALL: u32 = 256;
/// `SWAPFILE_CLUSTER` with `CONFIG_THP_SWAP`: a huge page.
const HUGE: u32 = 512;

impl Clusters {
    /// Clusters of an area; none where slots are searched one by one.
    pub(super) fn new(slots: u32, rotating: bool, cpus: u32, kernel: &Kernel) -> Option<Clusters> {
        let fillers = match (rotating, kernel.mechanisms.swap.rotating_swap) {
            (false, _) => cpus,
            (true, RotatingSwap::Clusters) => 1,
            (true, RotatingSwap::LowestFree) => return None,
        };
        let allocator = kernel.mechanisms.swap.swap_allocator;
        let size = match allocator {
            SwapAllocator::ScanSwapMap => return None,
            SwapAllocator::ClusterList if kernel.mechanisms.huge.thp_swap == ThpSwap::Split => {
                SMALL
            }
            SwapAllocator::ClusterList => HUGE,
            SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst => HUGE,
        };
        let count = slots.div_ceil(size);
        let mut clusters = Clusters {
            size,
            slots,
            allocator,
            counts: vec![0; count as usize],
            places: vec![(Place::Off, 0); count as usize],
            lists: Default::default(),
            turn: 0,
            current: vec![(0, 0); fillers as usize],
        };
        // The header's cluster is never wholly free, nor is one that the area ends in.
        let missing = count * size - slots;
        for (cluster, used) in [(0, 1), (count.saturating_sub(1), missing as u16)] {
            if let Some(slot_count) = clusters.counts.get_mut(cluster as usize) {
                *slot_count += used;
            }
        }
        for cluster in 0..count {
            match clusters.counts[cluster as usize] {
                0 => clusters.put(cluster, Place::Free),
                _ if clusters.are_all() => clusters.put(cluster, Place::Nonfull),
                _ => {}
            }
        }
        Some(clusters)
    }

    /// Whether there is no other way to a slot: partly used clusters are on lists, too.
    pub(super) fn are_all(&self) -> bool {
        self.allocator != SwapAllocator::ClusterList
    }

    /// Moves a cluster to the end of a list.
    fn put(&mut self, cluster: u32, place: Place) {
        let (old, turn) = self.places[cluster as usize];
        if old != Place::Off {
            self.lists[old as usize - 1].remove(&turn);
        }
        self.turn += 1;
        if place != Place::Off {
            self.lists[place as usize - 1].insert(self.turn, cluster);
        }
        self.places[cluster as usize] = (place, self.turn);
    }

    fn first(&self, place: Place) -> Option<u32> {
        self.lists[place as usize - 1].values().next().copied()
    }

    /// The next slot for a CPU (`scan_swap_map_try_ssd_cluster`, `cluster_alloc_swap_entry`).
    #[inline]
    pub(super) fn take(&mut self, used: &[u64], cpu: u32) -> Option<u32> {
        let filler = cpu as usize % self.current.len();
        self.begin_anew(filler);
        loop {
            let current = &mut self.current[filler];
            if let Some(offset) = next_free(used, current.0, current.1) {
                current.0 = offset + 1;
                return Some(offset);
            }
            *current = (0, 0);
            let first = self.next_cluster()? * self.size;
            self.current[filler] = (first, (first + self.size).min(self.slots));
        }
    }

    /// A free cluster as a whole, for a huge page: its first slot. Where clusters are smaller there is none.
    pub(super) fn take_whole(&mut self) -> Option<u32> {
        if self.size != HUGE {
            return None;
        }
        let cluster = self.first(Place::Free)?;
        self.put(cluster, Place::Off);
        self.counts[cluster as usize] = HUGE as u16;
        Some(cluster * HUGE)
    }

    /// Whether the cluster that a CPU fills has a slot left.
    pub(super) fn goes_on(&self, used: &[u64], cpu: u32) -> bool {
        let (next, end) = self.current[cpu as usize % self.current.len()];
        next_free(used, next, end).is_some()
    }

    /// From 6.18 on a cluster that has become empty while it was filled is filled from its beginning.
    #[inline]
    fn begin_anew(&mut self, filler: usize) {
        let (next, end) = self.current[filler];
        if self.allocator != SwapAllocator::NonfullFirst || end == 0 {
            return;
        }
        let cluster = (end - 1) / self.size;
        if self.counts[cluster as usize] == 0 && next < end {
            self.current[filler].0 = cluster * self.size;
        }
    }

    /// The cluster that a CPU goes on with. A cluster with a free slot is on one of the lists.
    #[cold]
    fn next_cluster(&mut self) -> Option<u32> {
        use Place::{Frag, Free, Nonfull, Off};
        // What is looked at, and where it goes from there.
        let lists: &[(Place, Place)] = match self.allocator {
            SwapAllocator::ScanSwapMap | SwapAllocator::ClusterList => &[(Free, Off)],
            SwapAllocator::FreeFirst => &[(Free, Nonfull), (Nonfull, Frag), (Frag, Frag)],
            SwapAllocator::NonfullFirst => &[(Nonfull, Frag), (Free, Frag), (Frag, Frag)],
        };
        let found = |&(from, to): &(Place, Place)| Some((self.first(from)?, to));
        let (cluster, to) = lists.iter().find_map(found)?;
        self.put(cluster, to);
        Some(cluster)
    }

    /// A slot has been taken, by whatever way.
    #[inline]
    pub(super) fn count_taken(&mut self, offset: u32) {
        let cluster = offset / self.size;
        self.counts[cluster as usize] += 1;
        if !self.are_all() {
            return;
        }
        let frag = self.places[cluster as usize].0 == Place::Frag;
        if u32::from(self.counts[cluster as usize]) == self.size {
            self.put(cluster, Place::Off);
        } else if self.allocator == SwapAllocator::NonfullFirst && !frag {
            // relocate_cluster: slots of it were given up while a CPU was filling it.
            self.put(cluster, Place::Frag);
        }
    }

    /// A slot is free again.
    pub(super) fn count_freed(&mut self, offset: u32) {
        let cluster = offset / self.size;
        let count = &mut self.counts[cluster as usize];
        *count -= 1;
        let empty = *count == 0;
        if self.are_all() {
            match (empty, self.places[cluster as usize].0) {
                (true, _) => self.put(cluster, Place::Free),
                (false, Place::Nonfull) => {}
                (false, _) => self.put(cluster, Place::Nonfull),
            }
            return;
        }
        let mut current = self.current.iter();
        if empty && !current.any(|&(_, end)| end.div_ceil(self.size) == cluster + 1) {
            self.put(cluster, Place::Free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    fn clusters(version: &str, slots: u32) -> Clusters {
        Clusters::new(slots, false, 2, &Kernel::named(version)).unwrap()
    }

    /// Takes and frees slots beside a plain map.
    struct Area {
        clusters: Clusters,
        used: Vec<u64>,
    }

    impl Area {
        fn new(version: &str, slots: u32) -> Area {
            let mut used = vec![0; slots.div_ceil(64) as usize];
            used[0] = 1;
            let clusters = clusters(version, slots);
            Area { clusters, used }
        }

        fn take(&mut self, cpu: u32) -> Option<u32> {
            let offset = self.clusters.take(&self.used, cpu)?;
            assert_eq!(self.used[offset as usize / 64] >> (offset % 64) & 1, 0);
            self.used[offset as usize / 64] |= 1 << (offset % 64);
            self.clusters.count_taken(offset);
            Some(offset)
        }

        fn free(&mut self, offset: u32) {
            self.used[offset as usize / 64] &= !(1 << (offset % 64));
            self.clusters.count_freed(offset);
        }
    }

    #[test]
    fn each_cpu_fills_a_cluster_of_its_own() {
        for (version, size) in [("v3.12", 256), ("v6.12", 512)] {
            let mut area = Area::new(version, 8 * size);
            assert_eq!(area.take(0), Some(size));
            assert_eq!(area.take(1), Some(2 * size));
            assert_eq!(area.take(0), Some(size + 1), "{version}");
        }
    }

    #[test]
    fn free_clusters_come_before_partly_used_ones() {
        let mut area = Area::new("v6.12", 4 * 512);
        let taken: Vec<u32> = (0..3 * 512).map(|_| area.take(0).unwrap()).collect();
        assert_eq!((taken[0], taken[1535]), (512, 2047));
        // A hole in one, another wholly free.
        area.free(700);
        for offset in 1024..1536 {
            area.free(offset);
        }
        assert_eq!(area.take(0), Some(1024));
        for _ in 1025..1536 {
            area.take(0);
        }
        // The header's cluster has been waiting for longer than that with the hole.
        assert_eq!(area.take(0), Some(1));
    }

    #[test]
    fn partly_used_clusters_come_before_free_ones() {
        let mut area = Area::new("v6.18", 4 * 512);
        // The header's cluster is partly used from the beginning.
        let taken: Vec<u32> = (0..511 + 512).map(|_| area.take(0).unwrap()).collect();
        assert_eq!((taken[0], taken[511]), (1, 512));
        // A hole in one, two in the other, which has had its first for longer.
        for offset in [700, 5, 600] {
            area.free(offset);
        }
        let next: Vec<u32> = (0..4).map(|_| area.take(0).unwrap()).collect();
        assert_eq!(next, [600, 700, 5, 1024]);
        // Given up altogether, it is filled from its beginning.
        area.free(1024);
        assert_eq!(area.take(0), Some(1024));
    }

    #[test]
    fn all_cpus_share_the_cluster_of_a_rotating_area() {
        assert!(Clusters::new(2048, true, 2, &Kernel::named("v6.13")).is_none());
        let mut clusters = Clusters::new(2048, true, 2, &Kernel::named("v6.14")).unwrap();
        let used = [0; 32];
        assert_eq!(
            [0, 1, 0].map(|cpu| clusters.take(&used, cpu)),
            [Some(512), Some(513), Some(514)]
        );
    }

    #[test]
    fn every_slot_is_found() {
        for version in ["v6.12", "v6.18"] {
            finds_every_slot(version);
        }
    }

    fn finds_every_slot(version: &str) {
        let slots = 5 * 512 - 100;
        let mut area = Area::new(version, slots);
        let mut stream = lowmark_spec::random::Stream::new(0, "slots", 0);
        let mut held = Vec::new();
        for round in 0..20_000 {
            let take = stream.below(10) < if round / 4000 % 2 == 0 { 7 } else { 3 };
            if take {
                match area.take(stream.below(2) as u32) {
                    Some(offset) => held.push(offset),
                    None => assert_eq!(held.len() as u32, slots - 1, "round {round}"),
                }
            } else if !held.is_empty() {
                let at = stream.below(held.len() as u64) as usize;
                area.free(held.swap_remove(at));
            }
        }
    }
}
