//! Which inodes of a file system are in use (`fs/xfs/libxfs/xfs_ialloc.c`): they are allocated in chunks, wherever their group
//! has room.

use super::geometry::{CHUNK, CLUSTER, Geometry};
use crate::fs::metadata::Block;
use crate::fs::space::Space;
use std::collections::{BTreeMap, BTreeSet};

/// The chunks of a file system.
#[derive(Debug, Default)]
pub(super) struct Inodes {
    /// The first block of each.
    chunks: BTreeSet<u64>,
    /// Of each group, the inodes of its chunks that are free.
    free: BTreeMap<u64, BTreeSet<u64>>,
}

/// An inode that has been allocated.
#[derive(Debug)]
pub(super) struct Allocated {
    pub(super) ino: u64,
    /// It is the first of a chunk, which has this place and length.
    pub(super) chunk: Option<(u64, u64)>,
}

impl Inodes {
    /// `xfs_dialloc`: a free inode of a group behind another one of it, or the first of a new chunk. None: the device is full.
    pub(super) fn allocate(
        &mut self,
        geometry: &Geometry,
        space: &mut Space,
        near: u64,
        group: u64,
    ) -> Option<Allocated> {
        let free = self.free.entry(group).or_default();
        let found = free.range(near..).next().or(free.first()).copied();
        if let Some(ino) = found {
            free.remove(&ino);
            return Some(Allocated { ino, chunk: None });
        }
        let blocks = geometry.chunk_blocks();
        let (start, length) = space.allocate(geometry.start(group), blocks)?;
        if length < blocks {
            space.release(start, length);
            return None;
        }
        self.chunks.insert(start);
        let first = start * geometry.per_block();
        // It may lie in another group than was asked for.
        let group = geometry.group_of(start);
        let free = self.free.entry(group).or_default();
        free.extend(first + 1..first + CHUNK);
        Some(Allocated {
            ino: first,
            chunk: Some((start, length)),
        })
    }

    /// `xfs_difree`
    pub(super) fn release(&mut self, geometry: &Geometry, ino: u64) {
        let free = self.free.entry(geometry.group_of_inode(ino)).or_default();
        free.insert(ino);
    }

    /// The first block of the chunk that a block belongs to.
    fn chunk_of(&self, geometry: &Geometry, block: u64) -> Option<u64> {
        let chunk = self.chunks.range(..=block).next_back().copied()?;
        (block < chunk + geometry.chunk_blocks()).then_some(chunk)
    }

    /// The first block of the cluster of an inode.
    pub(super) fn cluster_of(&self, geometry: &Geometry, ino: u64) -> Option<Block> {
        let chunk = self.chunk_of(geometry, ino / geometry.per_block())?;
        let number = (ino - chunk * geometry.per_block()) / CLUSTER;
        Some((chunk + number * geometry.cluster_blocks()) as Block)
    }

    /// The inodes of the cluster that begins with a block; none if no cluster does.
    pub(super) fn of_cluster(
        &self,
        geometry: &Geometry,
        block: Block,
    ) -> Option<std::ops::Range<u64>> {
        self.chunk_of(geometry, block.into())?;
        let first = u64::from(block) * geometry.per_block();
        Some(first..first + CLUSTER)
    }
}
