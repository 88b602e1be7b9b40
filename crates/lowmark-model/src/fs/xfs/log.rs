//! The log (`fs/xfs/xfs_log.c`, `xfs_log_cil.c`): what operations change is gathered in memory, and written together.
//!
//! 1. A transaction adds what it has changed to the running checkpoint (`xfs_log_commit_cil`); what is there already is not
//!    added again. It is *pinned* until the checkpoint is on the device.
//! 2. A checkpoint is written when somebody waits for something in it (`xfs_log_force`), every 30 s, or when it has an eighth
//!    of the log.
//! 3. From then on the items of the checkpoint are on the list of those that must be written to their places ([`ail`](super::ail)).

use super::access::pay_all;
use super::{Item, Xfs};
use crate::device::{Dir, Io};
use crate::ids::DeviceId;
use crate::kernel::{Version, v};
use crate::mm::alloc::page_alloc::alloc_page;
use crate::mm::io;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, Reserves, flag};
use crate::time::{Nanos, SECOND, WaitQueue};
use crate::world::{Sys, SysRef, World};
use lowmark_record::event::gfp;
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::BTreeSet;
use std::ops::Range;

/// How often what has changed is written (`xfs_syncd_centisecs`).
const SYNC_EVERY: Nanos = 30 * SECOND;
/// Pages of the buffers of the log: 8 of 32 KiB (`XLOG_MAX_ICLOGS`, `XLOG_BIG_RECORD_BSIZE`).
const BUFFER_PAGES: usize = 8 * 8;
/// Bytes of a checkpoint's own: the headers of a record, of the transaction and of its commit.
const OVERHEAD: u64 = 512 + 128;
/// Most bytes of a checkpoint that is not written yet, from [`CHECKPOINT_LIMITED`] on (`XLOG_CIL_SPACE_LIMIT`).
const CHECKPOINT_MAX: u64 = 32 << 20;
/// Before, an eighth of the log is the only limit. 4.19 is without the other one and 5.10 has it; that it came with 5.7 is not
/// verified.
const CHECKPOINT_LIMITED: Version = v(5, 7);

/// The log of a file system.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it lies; may be empty.
    blocks: Range<u64>,
    /// Blocks that have been written, from the first.
    written: u64,
    /// The items of the running checkpoint (`xc_cil`), and their bytes.
    running: BTreeSet<Item>,
    bytes: u64,
    /// Bytes with which the worker writes the running checkpoint without being asked.
    bytes_max: u64,
    /// The items of the checkpoint that is being written (`xc_committing`).
    committing: BTreeSet<Item>,
    /// Checkpoints that have been begun to be written, and that are on the device.
    begun: u64,
    committed: u64,
    /// Checkpoints that a task has asked to have on the device, from the first on.
    wanted: u64,
    /// The pages of the log's buffers (`l_iclog`).
    frames: Vec<Pfn>,
    /// The worker that writes checkpoints (`xlog_cil_push_work`).
    worker: WaitQueue,
    /// Tasks that wait for a checkpoint.
    waiting: WaitQueue,
}

impl Log {
    pub(super) fn new(blocks: Range<u64>, version: Version) -> Log {
        let eighth = (blocks.end - blocks.start) * PAGE_SIZE / 8;
        Log {
            blocks,
            written: 0,
            running: BTreeSet::new(),
            bytes: 0,
            bytes_max: if version >= CHECKPOINT_LIMITED {
                eighth.min(CHECKPOINT_MAX)
            } else {
                eighth
            },
            committing: BTreeSet::new(),
            begun: 0,
            committed: 0,
            wanted: 0,
            frames: Vec::new(),
            worker: WaitQueue::default(),
            waiting: WaitQueue::default(),
        }
    }

    fn len(&self) -> u64 {
        self.blocks.end - self.blocks.start
    }

    /// Whether something is pinned: part of a checkpoint that is not on the device.
    pub(super) fn is_pinned(&self, item: Item) -> bool {
        self.running.contains(&item) || self.committing.contains(&item)
    }

    /// Whether the running checkpoint has an item.
    pub(super) fn is_running(&self, item: Item) -> bool {
        self.running.contains(&item)
    }

    /// Everything that is pinned.
    pub(super) fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.running.iter().chain(&self.committing).copied()
    }

    /// Whether a page is one that it is written from.
    pub(super) fn has_page(&self, pfn: Pfn) -> bool {
        self.frames.contains(&pfn)
    }

    /// How many checkpoints must be on the device until something is not pinned any more; none if it is not.
    fn needs(&self, item: Item) -> Option<u64> {
        if self.running.contains(&item) {
            Some(self.begun + 1)
        } else {
            self.committing.contains(&item).then_some(self.begun)
        }
    }

    /// The checkpoint with all that has changed.
    fn newest(&self) -> u64 {
        self.begun + u64::from(!self.running.is_empty())
    }

    /// Adds an item to the running checkpoint. True: the checkpoint should be written now.
    pub(super) fn add(&mut self, item: Item, bytes: u64) -> bool {
        if self.running.insert(item) {
            self.bytes += bytes;
        }
        let full = self.bytes > self.bytes_max;
        if full {
            self.wanted = self.begun + 1;
        }
        full
    }

    /// The place of what is committed now (`lsn`): blocks that had been written up to there.
    pub(super) fn head(&self) -> u64 {
        self.written
    }

    /// What must be written to its place, so that a quarter of the log is free: all that was committed before this place
    /// (`xlog_grant_push_ail`). `tail` is the oldest place that is still needed.
    pub(super) fn push_target(&self, tail: u64) -> Option<u64> {
        let used = self.written - tail;
        let quarter = self.len() / 4;
        (used > self.len() - quarter).then_some(tail + quarter)
    }
}

impl Xfs {
    /// The bytes of the checkpoint that is to be written now: none, and the worker sleeps.
    fn begin_checkpoint(&mut self) -> Option<u64> {
        let log = &mut self.log;
        if log.wanted <= log.begun || log.running.is_empty() {
            return None;
        }
        log.begun += 1;
        log.committing = std::mem::take(&mut log.running);
        Some(std::mem::take(&mut log.bytes) + OVERHEAD)
    }

    /// A checkpoint is on the device (`xlog_cil_committed`).
    fn end_checkpoint(&mut self) {
        let lsn = self.log.head();
        self.log.committed = self.log.begun;
        for item in std::mem::take(&mut self.log.committing) {
            self.ail.insert(item, lsn);
        }
        if let Some(tail) = self.ail.tail()
            && let Some(target) = self.log.push_target(tail)
        {
            self.ail.push(target);
        }
    }

    /// The next block of the log; none if it has none.
    fn next_log_block(&mut self) -> Option<u64> {
        let log = &mut self.log;
        let at = log.written.checked_rem(log.len())?;
        log.written += 1;
        Some(log.blocks.start + at)
    }
}

impl World {
    fn next_checkpoint(&mut self, fs: usize) -> Option<u64> {
        let xfs = self.mounts.xfs(fs)?;
        let bytes = xfs.begin_checkpoint();
        if bytes.is_none() {
            xfs.log.worker.block(&mut self.sched, "a checkpoint");
        }
        bytes
    }

    /// Asks the worker to write checkpoints until `wanted` of them, from the first on, are on the device. True: they are.
    fn want_checkpoints(&mut self, fs: usize, wanted: u64) -> bool {
        let Some(xfs) = self.mounts.xfs(fs) else {
            return true;
        };
        let log = &mut xfs.log;
        if log.wanted < wanted {
            log.wanted = wanted;
            log.worker.wake_all(&mut self.sched);
        }
        log.committed >= wanted
    }

    /// Wakes the worker that writes checkpoints.
    pub(super) fn wake_log(&mut self, fs: usize) {
        if let Some(xfs) = self.mounts.xfs(fs) {
            xfs.log.worker.wake_all(&mut self.sched);
        }
    }

    /// The next page of the log, as I/O from one of its buffers.
    fn next_log_page(&mut self, fs: usize, number: usize) -> Option<Io> {
        let mount = self.mounts.get(fs);
        let device = mount.device;
        let xfs = mount.xfs.as_mut()?;
        let position = xfs.next_log_block()?;
        let pfn = xfs.log.frames[number];
        self.mm.pages[pfn].set(flag::BUFFERS_LOCKED);
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        Some(metadata_io(device, Dir::Write, true, position, pfn))
    }
}

/// I/O of a page of metadata.
pub(super) fn metadata_io(device: DeviceId, dir: Dir, sync: bool, position: u64, pfn: Pfn) -> Io {
    Io {
        device,
        dir,
        sync,
        position,
        pfn,
        in_folio: false,
        own_bio: false,
        needs_bio: false,
    }
}

/// Submits a page of metadata, which takes the time that a page of a file takes.
pub(super) async fn submit_metadata(sys: &Sys, io: Io) {
    io::submit(sys, io).await;
    sys.charge_kernel(sys.costs.file_page_ns).await;
}

/// For what a page of metadata is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// A task, or a thread of XFS's own.
    Task,
    /// A task that reclaims: it takes what there is (`PF_MEMALLOC`).
    Reclaim,
}

/// Allocates a page for metadata (`GFP_NOFS`), on the node of the current task.
///
/// # Errors
///
/// There is none; for a task that does not reclaim the run is over then.
pub(super) async fn metadata_page(sys: &Sys, whom: For) -> Result<Pfn, OutOfMemory> {
    let node = sys.world().sched.current_node();
    let gfp = Gfp::kernel(node).without(gfp::FS);
    let pfn = match whom {
        For::Task => alloc_page(sys, gfp).await?,
        For::Reclaim => {
            let gfp = gfp.nowait(Reserves::All);
            let pfn = sys.world().alloc_pages_nowait(gfp, 0);
            pfn.ok_or(OutOfMemory)?
        }
    };
    sys.world().mm.hold(pfn, 0, false);
    Ok(pfn)
}

/// The worker that writes checkpoints. Never returns.
pub(crate) async fn xlog_cil_push_work(sys: SysRef, fs: usize) {
    loop {
        let due = sys.world().next_checkpoint(fs);
        match due {
            Some(bytes) => {
                if write_checkpoint(&sys, fs, bytes.div_ceil(PAGE_SIZE))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            None => sys.suspend().await,
        }
    }
}

/// Writes a checkpoint, which takes `pages` of the log.
async fn write_checkpoint(sys: &Sys, fs: usize, pages: u64) -> Result<(), OutOfMemory> {
    let mut left = pages as usize;
    while left > 0 {
        let count = left.min(BUFFER_PAGES);
        left -= count;
        let frames = write_log_pages(sys, fs, count).await?;
        for pfn in frames {
            wait_for_metadata(sys, pfn).await;
        }
    }
    let world = &mut *sys.world();
    if let Some(xfs) = world.mounts.xfs(fs) {
        xfs.end_checkpoint();
        xfs.log.waiting.wake_all(&mut world.sched);
        xfs.ail.wake_if_due(&mut world.sched);
    }
    Ok(())
}

/// Submits pages of the log from its buffers, of which it gets more if it has too few: their frames.
async fn write_log_pages(sys: &Sys, fs: usize, count: usize) -> Result<Vec<Pfn>, OutOfMemory> {
    loop {
        let missing = {
            let world = &mut *sys.world();
            let xfs = world.mounts.xfs(fs);
            xfs.is_some_and(|xfs| xfs.log.frames.len() < count)
        };
        if !missing {
            break;
        }
        let pfn = metadata_page(sys, For::Task).await?;
        if let Some(xfs) = sys.world().mounts.xfs(fs) {
            xfs.log.frames.push(pfn);
        }
    }
    let mut frames = Vec::new();
    sys.start_plug();
    for number in 0..count {
        let io = sys.world().next_log_page(fs, number);
        if let Some(io) = io {
            frames.push(io.pfn);
            submit_metadata(sys, io).await;
        }
    }
    sys.finish_plug();
    Ok(frames)
}

/// Waits until nothing reads or writes a page of metadata.
pub(super) async fn wait_for_metadata(sys: &Sys, pfn: Pfn) {
    loop {
        let busy = {
            let world = sys.world();
            let flags = [flag::BUFFERS_LOCKED, flag::LOCKED];
            flags
                .into_iter()
                .find(|&flags| world.mm.pages[pfn].has(flags))
        };
        match busy {
            Some(flags) => io::wait_on_page(sys, pfn, flags).await,
            None => return,
        }
    }
}

/// `xfs_log_force`: the current task waits until `wanted` checkpoints, from the first on, are on the device.
async fn force_to(sys: &Sys, fs: usize, wanted: u64) {
    loop {
        {
            let world = &mut *sys.world();
            if world.want_checkpoints(fs, wanted) {
                return;
            }
            if let Some(xfs) = world.mounts.xfs(fs) {
                xfs.log.waiting.block(&mut world.sched, "the log");
            }
        }
        sys.suspend().await;
    }
}

/// `xfs_log_force` with all that has changed.
pub(crate) async fn log_force(sys: &Sys, fs: usize) {
    let newest = sys.world().mounts.xfs(fs).map(|xfs| xfs.log.newest());
    if let Some(newest) = newest {
        force_to(sys, fs, newest).await;
    }
}

/// `xfs_log_force_seq`: the current task waits until the log has all changes of an item that were made so far.
pub(super) async fn log_force_item(sys: &Sys, fs: usize, item: Item) {
    let needs = sys
        .world()
        .mounts
        .xfs(fs)
        .and_then(|xfs| xfs.log.needs(item));
    if let Some(wanted) = needs {
        force_to(sys, fs, wanted).await;
    }
}

/// `xfs_log_worker`: every 30 s it begins a checkpoint, and has xfsaild write all committed items to their places. Never returns.
pub(crate) async fn xfs_log_worker(sys: SysRef, fs: usize) {
    loop {
        sys.sleep(SYNC_EVERY).await;
        {
            let world = &mut *sys.world();
            let newest = world.mounts.xfs(fs).map(|xfs| xfs.log.newest());
            world.want_checkpoints(fs, newest.unwrap_or(0));
            world.push_all(fs);
        }
        pay_all(&sys, fs).await;
    }
}
