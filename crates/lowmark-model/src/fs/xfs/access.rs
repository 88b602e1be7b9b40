//! Tasks read metadata and change it, and may sleep for that.

use super::log::{log_force, log_force_item};
use super::{Change, Item, buf};
use crate::fs::metadata::Block;
use crate::ids::{InodeId, NameId};
use crate::kernel::XfsInodes;
use crate::mm::types::OutOfMemory;
use crate::world::{Sys, World};

impl World {
    /// The number of a file's inode, if XFS has it.
    fn xfs_inode(&mut self, inode: InodeId) -> Option<(usize, u64)> {
        let file = &self.mm.inodes[inode];
        let (fs, ino) = (file.fs, file.place.ino);
        (ino > 0 && self.mounts.xfs(fs).is_some()).then_some((fs, ino))
    }

    /// The next change of the current task that no checkpoint has, or with `all` of any task, and the buffer that it needs,
    /// with whether that must be read.
    fn next_owed(&mut self, fs: usize, all: bool) -> Option<(Change, Option<(Block, bool)>)> {
        let xfs = self.mounts.xfs(fs)?;
        let task = xfs.task;
        let mut owed = xfs.owed.iter();
        let next = owed.position(|&(by, _)| all || by == task)?;
        let (_, change) = xfs.owed.remove(next);
        let buffer = match change {
            Change::New(block) => Some((block, false)),
            Change::Old(Item::Buffer(block)) => Some((block, true)),
            // 298f7bec503f: an inode that changes has its buffer from then on.
            Change::Old(item) if xfs.rules == XfsInodes::Pushed && !xfs.is_dirty(item) => {
                xfs.buffer_of(item).map(|block| (block, true))
            }
            Change::Old(_) => None,
        };
        Some((change, buffer))
    }

    /// `xfs_log_commit_cil`: a change is part of the running checkpoint.
    fn log_change(&mut self, fs: usize, change: Change) {
        let Some(xfs) = self.mounts.xfs(fs) else {
            return;
        };
        let item = match change {
            Change::Old(item) => item,
            Change::New(block) => Item::Buffer(block),
        };
        let bytes = xfs.bytes_of(change);
        if xfs.log.add(item, bytes) {
            self.wake_log(fs);
        }
    }

    /// A change for whose buffer there was no memory stays noted.
    fn owe_again(&mut self, fs: usize, change: Change) {
        if let Some(xfs) = self.mounts.xfs(fs) {
            xfs.owed.insert(0, (xfs.task, change));
        }
    }
}

/// The current task makes its noted changes of a file system a part of the running checkpoint. It waits for buffers that are
/// being written.
pub(crate) async fn pay(sys: &Sys, fs: usize) {
    pay_for(sys, fs, false).await;
}

/// The same with the changes of all tasks. A task that reclaims notes what its writes of pages change, and does not pay for it.
pub(super) async fn pay_all(sys: &Sys, fs: usize) {
    pay_for(sys, fs, true).await;
}

async fn pay_for(sys: &Sys, fs: usize, all: bool) {
    loop {
        let next = sys.world().next_owed(fs, all);
        let Some((change, buffer)) = next else {
            return;
        };
        if let Some((block, read)) = buffer
            && buf::get(sys, fs, block, read).await.is_err()
        {
            sys.world().owe_again(fs, change);
            return;
        }
        sys.world().log_change(fs, change);
    }
}

/// `xfs_lookup`: a name, which is not in memory, is looked for in its directory.
pub(crate) async fn read_entry(sys: &Sys, name: NameId) -> Result<(), OutOfMemory> {
    let (fs, blocks) = {
        let world = &mut *sys.world();
        let (fs, directory) = world.mm.directory_of(name);
        let xfs = world.mounts.xfs(fs);
        let blocks = xfs.map(|xfs| xfs.entry_blocks(directory, usize::from(name) as u64));
        (fs, blocks.unwrap_or_default())
    };
    for block in blocks {
        buf::get(sys, fs, block, true).await?;
    }
    Ok(())
}

/// `xfs_iread`: the inode of a file is read with its cluster, unless XFS has it in memory still (`xfs_iget_cache_hit`) or has just
/// made it.
pub(crate) async fn read_inode(sys: &Sys, inode: InodeId) -> Result<(), OutOfMemory> {
    let wanted = {
        let world = &mut *sys.world();
        world.xfs_inode(inode).and_then(|(fs, ino)| {
            let in_memory = world.mm.is_evicted(fs, ino);
            let xfs = world.mounts.xfs(fs)?;
            let is_new = xfs.log.is_running(Item::Inode(ino));
            let cluster = xfs.buffer_of(Item::Inode(ino))?;
            (!in_memory && !is_new).then_some((fs, cluster))
        })
    };
    match wanted {
        Some((fs, cluster)) => buf::get(sys, fs, cluster, true).await,
        None => Ok(()),
    }
}

/// `xfs_file_fsync` after the data of the file: the current task waits until the log has the changes of the file's inode.
pub(crate) async fn fsync(sys: &Sys, inode: InodeId) {
    let found = sys.world().xfs_inode(inode);
    if let Some((fs, ino)) = found {
        pay(sys, fs).await;
        log_force_item(sys, fs, Item::Inode(ino)).await;
    }
}

/// `xfs_fs_sync_fs` of all file systems, for sync(2): all that has changed is in their logs.
pub(crate) async fn sync_logs(sys: &Sys) {
    let mounted = sys.world().mounts.with_xfs();
    for fs in mounted {
        pay_all(sys, fs).await;
        log_force(sys, fs).await;
    }
}
