//! The list of items that the log has and that are not at their places yet (`fs/xfs/xfs_trans_ail.c`), the oldest first, and
//! xfsaild, which writes them there.
//!
//! 1. xfsaild writes all items up to a target: those that were on the list when a worker or a reclaimer last asked for that
//!    (`xfs_ail_push_all`), or as many as must go so that a quarter of the log is free.
//! 2. xfsaild writes buffers in the order of their places. An inode is written with all changed inodes of its cluster. For a pinned
//!    item xfsaild forces the log first; an item that is being written is left alone.
//! 3. These writes are not marked as waited for (no REQ_SYNC), though tasks may wait for them.

use super::log::log_force;
use super::{Item, buf};
use crate::fs::metadata::Block;
use crate::time::{Nanos, SECOND, Sched, WaitQueue};
use crate::world::{SysRef, World};
use std::collections::{BTreeMap, BTreeSet};

/// How long xfsaild sleeps after it has written something; items that were being written are then looked at again.
const AFTER_ALL: Nanos = SECOND / 20;
/// How long xfsaild sleeps when all items up to the target were pinned or being written.
const WHEN_STUCK: Nanos = SECOND / 50;

/// The list (`struct xfs_ail`).
#[derive(Debug, Default)]
pub(super) struct Ail {
    /// The place in the log of each item on the list.
    lsn: BTreeMap<Item, u64>,
    order: BTreeSet<(u64, Item)>,
    /// xfsaild is to write all items whose place in the log is up to here (`ail_target`).
    target: u64,
    /// xfsaild.
    thread: WaitQueue,
}

/// What xfsaild has to do.
struct Pass {
    /// Buffers to be written, in the order of their places.
    buffers: BTreeSet<Block>,
    /// One of the items is pinned.
    pinned: bool,
}

impl Ail {
    /// From now on the log has an item at the place `lsn`.
    pub(super) fn insert(&mut self, item: Item, lsn: u64) {
        if let Some(before) = self.lsn.insert(item, lsn) {
            self.order.remove(&(before, item));
        }
        self.order.insert((lsn, item));
    }

    /// An item is at its place as it was when the log had it at `lsn`. If it has changed since, it stays on the list.
    pub(super) fn remove(&mut self, item: Item, lsn: u64) {
        if self.lsn.get(&item) == Some(&lsn) {
            self.lsn.remove(&item);
            self.order.remove(&(lsn, item));
        }
    }

    /// The place in the log of an item that is on the list.
    pub(super) fn lsn(&self, item: Item) -> Option<u64> {
        self.lsn.get(&item).copied()
    }

    /// Everything on it.
    pub(super) fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.order.iter().map(|&(_, item)| item)
    }

    /// The oldest place of the log that is still needed.
    pub(super) fn tail(&self) -> Option<u64> {
        self.order.first().map(|&(lsn, _)| lsn)
    }

    /// xfsaild is to write all items up to a place in the log (`xfs_ail_push`).
    pub(super) fn push(&mut self, target: u64) {
        self.target = self.target.max(target);
    }

    fn is_due(&self) -> bool {
        self.tail().is_some_and(|lsn| lsn <= self.target)
    }

    /// Wakes xfsaild if there is anything for it to write.
    pub(super) fn wake_if_due(&mut self, sched: &mut Sched) {
        if self.is_due() {
            self.thread.wake_all(sched);
        }
    }
}

impl World {
    /// `xfs_ail_push_all`: xfsaild is to write all items that are on the list now.
    pub(super) fn push_all(&mut self, fs: usize) {
        if let Some(xfs) = self.mounts.xfs(fs) {
            let newest = xfs.ail.order.last().map_or(0, |&(lsn, _)| lsn);
            xfs.ail.push(newest);
            xfs.ail.wake_if_due(&mut self.sched);
        }
    }

    /// `xfsaild_push`: what xfsaild has to do now. None: nothing, and it sleeps until it is woken.
    fn ail_pass(&mut self, fs: usize) -> Option<Pass> {
        let xfs = self.mounts.xfs(fs)?;
        if !xfs.ail.is_due() {
            xfs.ail.thread.block(&mut self.sched, "what is in the log");
            return None;
        }
        let mut pass = Pass {
            buffers: BTreeSet::new(),
            pinned: false,
        };
        for &(lsn, item) in &xfs.ail.order {
            if lsn > xfs.ail.target {
                break;
            }
            if xfs.log.is_pinned(item) {
                pass.pinned = true;
            } else if !xfs.is_flushing(item) {
                pass.buffers.extend(xfs.buffer_of(item));
            }
        }
        Some(pass)
    }
}

/// xfsaild. Never returns.
pub(crate) async fn xfsaild(sys: SysRef, fs: usize) {
    loop {
        let pass = sys.world().ail_pass(fs);
        let Some(pass) = pass else {
            sys.suspend().await;
            continue;
        };
        if pass.pinned {
            log_force(&sys, fs).await;
        }
        let stuck = pass.buffers.is_empty();
        if buf::write_all(&sys, fs, pass.buffers).await.is_err() {
            return;
        }
        sys.sleep(if stuck { WHEN_STUCK } else { AFTER_ALL }).await;
    }
}
