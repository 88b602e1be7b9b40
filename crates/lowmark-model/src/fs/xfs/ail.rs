//! What is in the log and not at its place yet (`fs/xfs/xfs_trans_ail.c`), oldest first, and xfsaild, which writes it there.
//!
//! 1. xfsaild writes all up to a target: what was there when somebody last asked for that (`xfs_ail_push_all`), or as much
//!    as must go so that a quarter of the log is free.
//! 2. It writes buffers in the order of their places; of inodes those with all others of their cluster that have changed.
//!    What is pinned has to be in the log first; what is being written is left alone.
//! 3. These writes are no requests that somebody waits for (no REQ_SYNC), though tasks may.

use super::log::log_force;
use super::{Item, buf};
use crate::fs::metadata::Block;
use crate::time::{Nanos, SECOND, Sched, WaitQueue};
use crate::world::{SysRef, World};
use std::collections::{BTreeMap, BTreeSet};

/// How long xfsaild sleeps when it has come to its target, and has to come back for what was being written.
const AFTER_ALL: Nanos = SECOND / 20;
/// The same when it got no further.
const WHEN_STUCK: Nanos = SECOND / 50;

/// The list (`struct xfs_ail`).
#[derive(Debug, Default)]
pub(super) struct Ail {
    /// Where the log has what is on it.
    lsn: BTreeMap<Item, u64>,
    order: BTreeSet<(u64, Item)>,
    /// All up to here is to be written (`ail_target`).
    target: u64,
    /// xfsaild.
    thread: WaitQueue,
}

/// What xfsaild has to do.
struct Pass {
    /// Buffers to be written, in the order of their places.
    buffers: BTreeSet<Block>,
    /// Something is pinned.
    pinned: bool,
}

impl Ail {
    /// Something is in the log up to here from now on.
    pub(super) fn insert(&mut self, item: Item, lsn: u64) {
        if let Some(before) = self.lsn.insert(item, lsn) {
            self.order.remove(&(before, item));
        }
        self.order.insert((lsn, item));
    }

    /// Something is at its place, as it was in the log up to here. If it has changed since it stays.
    pub(super) fn remove(&mut self, item: Item, lsn: u64) {
        if self.lsn.get(&item) == Some(&lsn) {
            self.lsn.remove(&item);
            self.order.remove(&(lsn, item));
        }
    }

    /// Where the log has something that is not at its place yet.
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

    /// All up to a place is to be written (`xfs_ail_push`).
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
    /// `xfs_ail_push_all`: all that is in the log now is to be written to its place.
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
