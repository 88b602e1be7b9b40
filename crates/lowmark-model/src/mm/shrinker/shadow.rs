//! Leaves of files with shadows alone, and their shrinker (the lists of `mm/workingset.c`).
//!
//! 1. When the last page of a leaf is evicted, the leaf is put on the list of the page's node; a page that enters the
//!    leaf takes it off again.
//! 2. Some of them are kept for every page that there is, as more could not say anything that matters; the oldest of
//!    what is above that are forgotten, and what led to them with them.
//!
//! The shadow of a file that has nothing else, and of its first page, lies in no leaf (3.15 and later).

use super::Scanned;
use super::list_lru::ListLru;
use crate::ids::{InodeId, LruvecId, MemcgId, NodeId};
use crate::kernel::{ShadowNodes, ShadowSeeks, v};
use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::mm::types::{Lru, MigrateType, Pfn};
use std::collections::BTreeMap;

/// A leaf of a file.
type Leaf = (InodeId, u32);

/// The leaves on the lists (`shadow_nodes`).
#[derive(Debug, Default)]
pub(super) struct ShadowLists {
    /// Of each node and memory cgroup ([`Mm::cache_place`]).
    by_place: Vec<ListLru<Leaf>>,
    /// Where each leaf is: place and age.
    places: BTreeMap<Leaf, (usize, u64)>,
}

impl ShadowLists {
    pub(super) fn new(places: usize) -> ShadowLists {
        ShadowLists {
            by_place: (0..places).map(|_| ListLru::default()).collect(),
            places: BTreeMap::new(),
        }
    }

    /// Makes a list for each place.
    pub(super) fn make_lists(&mut self, places: usize) {
        self.by_place.resize_with(places, ListLru::default);
    }

    fn remove(&mut self, leaf: Leaf) {
        if let Some((place, age)) = self.places.remove(&leaf) {
            self.by_place[place].remove(age);
        }
    }
}

impl Mm {
    /// A leaf has shadows alone since its last page, `head` or one of that folio, was evicted. The kernel's list is that of the
    /// node and the group of the leaf itself, here those of the page count.
    pub(in crate::mm) fn add_shadow_node(&mut self, inode: InodeId, leaf: u32, head: Pfn) {
        let lists = self.shrinkers.is_on()
            && self.kernel.mechanisms.shrinker.shadow_nodes != ShadowNodes::All;
        if !lists || self.inodes[inode].pages.is_single_shadow() {
            return;
        }
        let memcg = if self.kernel.coverage.cgroup_slab {
            self.memcontrol.of_page(head)
        } else {
            MemcgId::ROOT
        };
        let place = self.cache_place(self.node_of(head), memcg);
        let shadows = &mut self.shrinkers.shadows;
        let leaf = (inode, leaf);
        shadows.remove(leaf);
        let age = shadows.by_place[place].push(leaf);
        shadows.places.insert(leaf, (place, age));
    }

    /// A page enters a leaf, or the leaf is gone.
    pub(in crate::mm) fn remove_shadow_node(&mut self, inode: InodeId, leaf: u32) {
        self.shrinkers.shadows.remove((inode, leaf));
    }

    /// Shadows of a file are gone from a leaf on: those leaves that are gone are on no list.
    pub(in crate::mm) fn remove_shadow_nodes(&mut self, inode: InodeId, from: u32) {
        let places = &self.shrinkers.shadows.places;
        let listed = places.range((inode, from)..=(inode, u32::MAX));
        let pages = &self.inodes[inode].pages;
        let gone = listed.filter(|&(&(_, leaf), _)| !pages.is_shadow_leaf(leaf));
        let gone: Vec<Leaf> = gone.map(|(&leaf, _)| leaf).collect();
        for leaf in gone {
            self.shrinkers.shadows.remove(leaf);
        }
    }

    /// Leaves with shadows alone on all lists (`workingset_nodes`).
    pub(crate) fn shadow_nodes(&self) -> u64 {
        self.shrinkers.shadows.places.len() as u64
    }

    /// Whether the kernel counts them (68d48e6a2df5, 4.20).
    pub(crate) fn counts_shadow_nodes(&self) -> bool {
        self.kernel.version >= v(4, 20)
    }

    /// Every leaf on the lists.
    pub(crate) fn listed_shadow_nodes(&self) -> impl Iterator<Item = (InodeId, u32)> + '_ {
        let lists = self.shrinkers.shadows.by_place.iter();
        lists.flat_map(|list| list.iter().map(|(_, leaf)| leaf))
    }

    /// `count_shadow_nodes`: those above what is kept. What counts for that are pages of the group alone.
    pub(super) fn count_shadow_nodes(&self, node: NodeId, memcg: MemcgId) -> u64 {
        let zones = || self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let mut lists: Vec<LruvecId> = zones().map(|zone| zone.lruvec).collect();
        lists.dedup();
        let groups = if self.kernel.coverage.cgroup_slab {
            1
        } else {
            self.memcontrol.len()
        };
        let of_node = |lru: Lru| {
            let of_groups = |root: &LruvecId| {
                let groups = (usize::from(memcg)..).take(groups).map(MemcgId::from);
                let own = groups.map(|memcg| self.memcg_lruvec(*root, memcg));
                own.map(|lists| self.lruvecs[lists].len(lru)).sum::<u64>()
            };
            lists.iter().map(of_groups).sum::<u64>()
        };
        let file = || of_node(Lru::InactiveFile) + of_node(Lru::ActiveFile);
        let anon = || of_node(Lru::InactiveAnon) + of_node(Lru::ActiveAnon);
        let kept = match self.kernel.mechanisms.shrinker.shadow_nodes {
            ShadowNodes::All => return 0,
            ShadowNodes::NodePages => zones().map(|zone| zone.present).sum::<u64>() / 16,
            ShadowNodes::FilePages => file() / 8,
            ShadowNodes::LruPages => {
                let slabs = self.slab_pages_of(memcg) / self.nodes.len() as u64;
                (file() + anon() + slabs) / 8
            }
        };
        let place = self.cache_place(node, memcg);
        let listed = self.shrinkers.shadows.by_place[place].len();
        listed.saturating_sub(kept)
    }

    /// Pages of slabs of a group; of the root those for which no group is charged.
    fn slab_pages_of(&self, memcg: MemcgId) -> u64 {
        if memcg != MemcgId::ROOT {
            return self.memcontrol.kmem_pages(memcg);
        }
        let all =
            self.slub.pages(MigrateType::Reclaimable) + self.slub.pages(MigrateType::Unmovable);
        let groups = (1..self.memcontrol.len()).map(MemcgId::from);
        let charged: u64 = groups.map(|memcg| self.memcontrol.kmem_pages(memcg)).sum();
        all.saturating_sub(charged)
    }

    /// What a leaf costs to make again.
    pub(super) fn shadow_seeks(&self) -> u64 {
        match self.kernel.mechanisms.shrinker.shadow_seeks {
            ShadowSeeks::Default => super::DEFAULT_SEEKS,
            ShadowSeeks::Zero => 0,
        }
    }

    /// `scan_shadow_nodes`: the oldest leaves are forgotten.
    pub(super) fn scan_shadow_nodes(&mut self, place: usize, nr: u64) -> Scanned {
        let mut scanned = Scanned::default();
        while scanned.looked < nr {
            let list = &self.shrinkers.shadows.by_place[place];
            let Some((_, (inode, leaf))) = list.oldest_before(list.end()) else {
                break;
            };
            scanned.looked += 1;
            self.shrinkers.shadows.remove((inode, leaf));
            let file = &mut self.inodes[inode];
            file.pages.forget_leaf(&mut self.mappings, leaf);
            for object in file.nodes.remove(leaf) {
                self.free_object(Cache::RadixTreeNode, object);
            }
            self.shrinkers.stat.workingset_nodereclaim += 1;
            scanned.freed += 1;
            self.mapping_lost_pages(inode);
        }
        scanned
    }
}
