//! XFS frees the inodes that the kernel's cache has let go (`fs/xfs/xfs_icache.c`).
//!
//! 1. An inode that is *evicted* stays in memory, under its number (`mm/shrinker/evicted.rs`); one that is wanted again meanwhile is taken
//!    from there. Every 5 s a worker frees those that are clean.
//! 2. The shrinker of the file system calls with a part of what it has to scan. XFS goes through every group with such inodes,
//!    32 at a time and at least 32, in the order of their numbers and from where it stopped last.
//! 3. From 2.6.39 to 5.8 it waits there for each that has changed: until the log has it, and then until the device has its cluster,
//!    which is no request of the kind that schedulers prefer. So kswapd, and tasks that reclaim, stand still as long as the
//!    disk has others first. Before and after, XFS has such inodes written and leaves them.
//!
//! Simplified: an unlinked inode is freed on the device by the task that unlinks it, in all versions; the worker does not begin
//! writes, as it did to 3.4.

use super::log::log_force_item;
use super::{Item, Xfs, buf};
use crate::fs::metadata::Block;
use crate::kernel::XfsInodes;
use crate::time::{Nanos, SECOND, WaitQueue};
use crate::world::{Sys, SysRef, World};
use std::collections::{BTreeMap, BTreeSet};

/// How often the worker frees clean inodes (`xfs_syncd_centisecs` / 6).
const WORK_EVERY: Nanos = 5 * SECOND;
/// Inodes that are looked up together (`XFS_LOOKUP_BATCH`).
const BATCH: usize = 32;

/// Who goes through the inodes of a group.
#[derive(Debug, Default)]
struct Group {
    /// Somebody does (`pag_ici_reclaim_lock`).
    locked: bool,
    waiting: WaitQueue,
    /// Where the next walk begins (`pag_ici_reclaim_cursor`).
    cursor: u64,
}

/// The groups of a file system.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<u64, Group>);

/// What keeps an inode from being freed.
enum State {
    /// It is in use again, or freed.
    Gone,
    /// Its cluster is being written with it.
    Flushing,
    /// The log does not have this yet: the inode, or the buffer of its cluster.
    Pinned(Item),
    /// It is not at its place; this is its cluster.
    Dirty(Block),
    /// Nothing does.
    Clean,
}

impl Xfs {
    fn state_of(&self, ino: u64) -> State {
        let item = Item::Inode(ino);
        if self.is_flushing(item) {
            State::Flushing
        } else if self.log.is_pinned(item) {
            State::Pinned(item)
        } else if self.ail.lsn(item).is_some()
            && let Some(block) = self.buffer_of(item)
        {
            let buffer = Item::Buffer(block);
            if self.log.is_pinned(buffer) {
                State::Pinned(buffer)
            } else {
                State::Dirty(block)
            }
        } else {
            State::Clean
        }
    }
}

impl World {
    fn state_of_evicted(&mut self, fs: usize, ino: u64) -> State {
        if !self.mm.is_evicted(fs, ino) {
            return State::Gone;
        }
        self.mounts
            .xfs(fs)
            .map_or(State::Clean, |xfs| xfs.state_of(ino))
    }

    /// The groups with evicted inodes.
    fn groups_with_evicted(&mut self, fs: usize) -> Vec<u64> {
        let Some(xfs) = self.mounts.xfs(fs) else {
            return Vec::new();
        };
        let numbers = self.mm.evicted_from(fs, 0);
        let groups: BTreeSet<u64> = numbers
            .map(|ino| xfs.geometry.group_of_inode(ino))
            .collect();
        groups.into_iter().collect()
    }

    /// Begins a walk through a group: where. None: somebody else walks there.
    fn lock_group(&mut self, fs: usize, number: u64) -> Option<u64> {
        let group = self.mounts.xfs(fs)?.groups.0.entry(number).or_default();
        if std::mem::replace(&mut group.locked, true) {
            return None;
        }
        Some(group.cursor)
    }

    /// Blocks the current task until the walk through a group is over, if somebody walks there.
    fn wait_for_group(&mut self, fs: usize, number: u64) {
        if let Some(xfs) = self.mounts.xfs(fs)
            && let Some(group) = xfs.groups.0.get_mut(&number)
        {
            group.waiting.block(&mut self.sched, "inodes of a group");
        }
    }

    fn unlock_group(&mut self, fs: usize, number: u64, cursor: u64) {
        if let Some(xfs) = self.mounts.xfs(fs)
            && let Some(group) = xfs.groups.0.get_mut(&number)
        {
            (group.locked, group.cursor) = (false, cursor);
            group.waiting.wake_all(&mut self.sched);
        }
    }

    /// The next inodes of a group, from a number on (`radix_tree_gang_lookup_tag`).
    fn next_batch(&mut self, fs: usize, group: u64, from: u64) -> Vec<u64> {
        let Some(xfs) = self.mounts.xfs(fs) else {
            return Vec::new();
        };
        let start = xfs.geometry.start(group) * xfs.geometry.per_block();
        let numbers = self.mm.evicted_from(fs, from.max(start));
        let numbers = numbers.take_while(|&ino| xfs.geometry.group_of_inode(ino) == group);
        numbers.take(BATCH).collect()
    }
}

/// `xfs_reclaim_inode`: frees an evicted inode. One that has changed is left, or with `waits` written first.
async fn reclaim_inode(sys: &Sys, fs: usize, ino: u64, waits: bool) {
    // With the lock of its group taken nobody else frees it; it may be in use again.
    loop {
        let state = sys.world().state_of_evicted(fs, ino);
        match state {
            State::Gone | State::Flushing => return,
            State::Clean => {
                sys.world().mm.free_evicted(fs, ino);
                return;
            }
            State::Pinned(_) | State::Dirty(_) if !waits => return,
            State::Pinned(item) => log_force_item(sys, fs, item).await,
            State::Dirty(block) => {
                if buf::write_and_wait(sys, fs, block).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The inodes of a group, from a number on, until `left` is used up. Where the next walk begins: at 0 if it came to the end.
async fn walk_group(
    sys: &Sys,
    fs: usize,
    group: u64,
    from: u64,
    left: &mut i64,
    waits: bool,
) -> u64 {
    let mut at = from;
    loop {
        let batch = sys.world().next_batch(fs, group, at);
        let Some(&last) = batch.last() else {
            return 0;
        };
        at = last + 1;
        let each = sys.costs.scan_object_ns + sys.costs.free_object_ns;
        sys.charge_kernel(batch.len() as u64 * each).await;
        for ino in batch {
            reclaim_inode(sys, fs, ino, waits).await;
        }
        *left -= BATCH as i64;
        if *left <= 0 {
            return at;
        }
    }
}

/// `xfs_reclaim_inodes_ag`
async fn reclaim_inodes_ag(sys: &Sys, fs: usize, nr: i64, waits: bool) {
    let mut left = nr;
    let mut skipped = false;
    let groups = sys.world().groups_with_evicted(fs);
    for &group in &groups {
        let from = sys.world().lock_group(fs, group);
        let Some(from) = from else {
            skipped = true;
            continue;
        };
        let cursor = walk_group(sys, fs, group, from, &mut left, waits).await;
        sys.world().unlock_group(fs, group, cursor);
    }
    if !skipped || !waits {
        return;
    }
    for group in groups {
        if left <= 0 {
            return;
        }
        loop {
            let locked = sys.world().lock_group(fs, group);
            if locked.is_some() {
                break;
            }
            sys.world().wait_for_group(fs, group);
            sys.suspend().await;
        }
        walk_group(sys, fs, group, 0, &mut left, waits).await;
        sys.world().unlock_group(fs, group, 0);
    }
}

/// `xfs_reclaim_inodes_nr`: the shrinker of a file system calls XFS to scan `nr` evicted inodes.
pub(crate) async fn reclaim_inodes_nr(sys: &Sys, fs: usize, nr: u64) {
    let rules = sys.world().mm.kernel.mechanisms.shrinker.xfs_inodes;
    sys.world().push_all(fs);
    reclaim_inodes_ag(sys, fs, nr as i64, rules == XfsInodes::Awaited).await;
}

/// `xfs_reclaim_worker`: frees clean inodes every 5 s. Never returns.
pub(crate) async fn xfs_reclaim_worker(sys: SysRef, fs: usize) {
    loop {
        sys.sleep(WORK_EVERY).await;
        reclaim_inodes_ag(&sys, fs, i64::MAX, false).await;
    }
}
