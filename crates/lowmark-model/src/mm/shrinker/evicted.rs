//! Inodes that the kernel's cache has let go and XFS has in memory still (`pag_ici_root` with XFS_ICI_RECLAIM_TAG), by their
//! numbers. XFS frees them ([`fs::xfs`](crate::fs::xfs)), or an inode that is wanted again is taken from here.

use super::Shrinkers;
use crate::ids::InodeId;
use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::mm::alloc::xarray::Object;
use std::collections::BTreeMap;

/// The evicted inodes of a file system that keeps them; none of others.
pub(super) type Evicted = Option<BTreeMap<u64, Object>>;

impl Mm {
    /// From now on a file system keeps evicted inodes.
    pub(crate) fn keep_evicted(&mut self, fs: usize) {
        self.shrinkers.evicted[fs].get_or_insert_default();
    }

    /// An inode leaves the kernel's cache with this object: its file system keeps it, if it does that.
    pub(super) fn evict(&mut self, inode: InodeId, object: Object) {
        let file = &self.inodes[inode];
        let cache = self.shrinkers.inode_caches[file.fs];
        let before = match &mut self.shrinkers.evicted[file.fs] {
            Some(evicted) if file.place.ino > 0 => evicted.insert(file.place.ino, object),
            _ => Some(object),
        };
        if let Some(unneeded) = before {
            self.free_object(cache, unneeded);
        }
    }

    /// The object of an evicted inode that is wanted again (`xfs_iget_cache_hit`).
    pub(super) fn recycle(&mut self, inode: InodeId) -> Option<Object> {
        let file = &self.inodes[inode];
        let evicted = self.shrinkers.evicted[file.fs].as_mut()?;
        evicted.remove(&file.place.ino)
    }

    /// Whether the inode of this number is evicted, and in memory.
    pub(crate) fn is_evicted(&self, fs: usize, ino: u64) -> bool {
        let evicted = self.shrinkers.evicted[fs].as_ref();
        evicted.is_some_and(|evicted| evicted.contains_key(&ino))
    }

    /// The numbers of evicted inodes, from one on.
    pub(crate) fn evicted_from(&self, fs: usize, from: u64) -> impl Iterator<Item = u64> + '_ {
        let evicted = self.shrinkers.evicted[fs].iter();
        evicted.flat_map(move |evicted| evicted.range(from..).map(|(&ino, _)| ino))
    }

    /// Evicted inodes of a file system (`xfs_reclaim_inodes_count`).
    pub(super) fn count_evicted(&self, fs: usize) -> u64 {
        let evicted = self.shrinkers.evicted[fs].as_ref();
        evicted.map_or(0, |evicted| evicted.len() as u64)
    }

    /// `xfs_inode_free`
    pub(crate) fn free_evicted(&mut self, fs: usize, ino: u64) {
        let object = self.shrinkers.evicted[fs]
            .as_mut()
            .and_then(|evicted| evicted.remove(&ino));
        if let Some(object) = object {
            self.free_object(self.shrinkers.inode_caches[fs], object);
        }
    }
}

impl Shrinkers {
    /// The objects of all evicted inodes, each with the cache that it is of.
    pub(crate) fn evicted_objects(&self) -> impl Iterator<Item = (Cache, Object)> + '_ {
        let systems = self.evicted.iter().zip(&self.inode_caches);
        systems.flat_map(|(evicted, &cache)| {
            let objects = evicted.iter().flat_map(|evicted| evicted.values());
            objects.map(move |&object| (cache, object))
        })
    }
}
