//! What a file system has in the caches, and its shrinker (`fs/super.c`).

use super::list_lru::ListLru;
use super::{Scanned, Shrinkers};
use crate::ids::{InodeId, NameId};
use crate::kernel::{SuperScan, VfsShrinkers};
use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::world::World;

/// Dentries and inodes that nobody uses (`struct super_block`), by the nodes that they lie on and the memory cgroups that are
/// charged for them ([`Mm::cache_place`]); to 3.11 all at the first place.
#[derive(Debug)]
pub(super) struct SuperBlock {
    pub(super) dentries: Vec<ListLru<NameId>>,
    pub(super) inodes: Vec<ListLru<InodeId>>,
}

impl SuperBlock {
    /// Nothing is in memory yet.
    pub(super) fn new(places: usize) -> SuperBlock {
        SuperBlock {
            dentries: (0..places).map(|_| ListLru::default()).collect(),
            inodes: (0..places).map(|_| ListLru::default()).collect(),
        }
    }

    /// The same with lists for so many places.
    pub(super) fn make_lists(&mut self, places: usize) {
        self.dentries.resize_with(places, ListLru::default);
        self.inodes.resize_with(places, ListLru::default);
    }
}

impl Shrinkers {
    /// Every dentry on a list, with its age.
    pub(crate) fn listed_dentries(&self) -> impl Iterator<Item = (u64, NameId)> + '_ {
        let lists = self.supers.iter().flat_map(|lists| &lists.dentries);
        lists.flat_map(ListLru::iter)
    }

    /// Every inode on a list, with its age.
    pub(crate) fn listed_inodes(&self) -> impl Iterator<Item = (u64, InodeId)> + '_ {
        let lists = self.supers.iter().flat_map(|lists| &lists.inodes);
        lists.flat_map(ListLru::iter)
    }

    /// Every file of which extents are remembered, with its age.
    pub(crate) fn listed_extents(&self) -> impl Iterator<Item = (u64, InodeId)> + '_ {
        self.extents.iter().flat_map(|list| list.files.iter())
    }

    /// What the inodes of a file system are.
    pub(crate) fn inode_cache(&self, fs: usize) -> Cache {
        self.inode_caches[fs]
    }

    /// Unused dentries and inodes of a file system at a place.
    fn unused(&self, number: usize, place: usize) -> (u64, u64) {
        let lists = &self.supers[number];
        (lists.dentries[place].len(), lists.inodes[place].len())
    }
}

impl Mm {
    /// Number of the lists that a file system's objects are on.
    pub(super) fn lists_of(&self, fs: usize) -> usize {
        match self.kernel.mechanisms.shrinker.vfs_shrinkers {
            VfsShrinkers::Global => 0,
            VfsShrinkers::SuperBlock | VfsShrinkers::Node => fs,
        }
    }

    /// What of so many objects counts, by `vfs_cache_pressure`: to 3.11 in hundreds.
    fn vfs_pressure(&self, objects: u64) -> u64 {
        let pressure = self.kernel.sysctl.vfs_cache_pressure;
        match self.kernel.mechanisms.shrinker.vfs_shrinkers {
            VfsShrinkers::Node => (u128::from(objects) * u128::from(pressure) / 100) as u64,
            VfsShrinkers::Global | VfsShrinkers::SuperBlock => (objects / 100) * pressure,
        }
    }

    /// Dentries that the shrinker of all of them could free.
    pub(super) fn count_dentries(&self) -> u64 {
        self.vfs_pressure(self.shrinkers.unused(0, 0).0)
    }

    /// The same of inodes.
    pub(super) fn count_inodes(&self) -> u64 {
        self.vfs_pressure(self.shrinkers.unused(0, 0).1)
    }

    /// `super_cache_count`, to 3.11 `prune_super`
    pub(super) fn super_cache_count(&self, number: usize, place: usize) -> u64 {
        let (dentries, inodes) = self.shrinkers.unused(number, place);
        let evicted = self.count_evicted(number);
        let more = match self.kernel.mechanisms.shrinker.vfs_shrinkers {
            VfsShrinkers::SuperBlock => 1,
            VfsShrinkers::Global | VfsShrinkers::Node => 0,
        };
        self.vfs_pressure(dentries + inodes + evicted + more)
    }
}

impl World {
    /// `super_cache_scan`: dentries first, as they hold inodes, then inodes, each its part of `nr`. XFS, which frees evicted inodes
    /// last, may sleep for them: its part is told.
    pub(super) fn super_cache_scan(
        &mut self,
        number: usize,
        place: usize,
        nr: u64,
        kswapd: bool,
    ) -> Scanned {
        let (dentries, inodes) = self.mm.shrinkers.unused(number, place);
        let evicted = self.mm.count_evicted(number);
        let all = dentries + inodes + evicted + 1;
        let more = match self.mm.kernel.mechanisms.shrinker.super_scan {
            SuperScan::Share => 0,
            SuperScan::OneMore => 1,
        };
        let first = self
            .mm
            .prune_dcache(number, place, nr * dentries / all + more);
        let second = self.prune_icache(number, place, nr * inodes / all + more, kswapd);
        Scanned {
            freed: first.freed + second.freed,
            looked: first.looked + second.looked,
            rotated: first.rotated + second.rotated,
            of_evicted: match nr * evicted / all {
                0 => 0,
                part => part + more,
            },
            ..second
        }
    }
}
