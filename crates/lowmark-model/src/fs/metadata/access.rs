//! Tasks read metadata and change it, and may sleep for that.

use super::{Block, Change};
use crate::fs::{jbd, xfs};
use crate::ids::{InodeId, NameId};
use crate::mm::files::buffer::{bread, breada, getblk};
use crate::mm::io;
use crate::mm::types::{OutOfMemory, Pfn};
use crate::mm::writeback::fs_writeback::{Range, fsync_range};
use crate::world::{Sys, World};
use lowmark_spec::machine::Atime;

impl World {
    /// The block device of a file system whose metadata is part of the model.
    pub(crate) fn block_device(&mut self, fs: usize) -> Option<InodeId> {
        let metadata = self.mounts.get(fs).metadata.as_ref()?;
        Some(metadata.device)
    }

    /// The page cache of block devices as a run begins: as many blocks as the machine says (`buffers`) of those that making the
    /// existing files has changed, and blocks of journals if there are not enough of them.
    pub(crate) fn load_metadata(&mut self) {
        let mut frames = std::mem::take(&mut self.mm.boot_buffers).into_iter();
        for fs in self.mounts.with_xfs() {
            if let Some(xfs) = self.mounts.xfs(fs) {
                xfs.forget_made();
            }
        }
        for fs in self.mounts.with_journal() {
            let mount = self.mounts.get(fs);
            let Some(metadata) = mount.metadata.as_mut() else {
                continue;
            };
            let device = metadata.device;
            let (mut blocks, inodes) = metadata.take_made();
            let journal = metadata.layout.journal().into_iter().flatten();
            let of_inodes = inodes
                .into_iter()
                .filter_map(|inode| self.inode_blocks(inode));
            blocks.extend(of_inodes.map(|(block, _)| block));
            for (block, pfn) in blocks.into_iter().chain(journal).zip(&mut frames) {
                self.add_to_page_cache(device, block, pfn);
            }
        }
    }

    /// The changes of a file system that no transaction has yet.
    fn take_owed(&mut self, fs: usize) -> Vec<Change> {
        let metadata = &mut self.mounts.get(fs).metadata;
        let owed = metadata.as_mut().map(|metadata| &mut metadata.owed);
        owed.map(std::mem::take).unwrap_or_default()
    }

    /// The block device with a name's directory, and the blocks of it through which the name is found.
    fn entry_blocks(&mut self, name: NameId) -> Option<(InodeId, Vec<Block>)> {
        let (fs, directory) = self.mm.directory_of(name);
        let metadata = self.mounts.get(fs).metadata.as_ref()?;
        let blocks = metadata.entry_blocks(directory, usize::from(name) as u64);
        Some((metadata.device, blocks))
    }

    /// The block of an inode, and those of its table that are read with it.
    fn inode_blocks(&mut self, inode: InodeId) -> Option<(Block, std::ops::Range<Block>)> {
        let file = &self.mm.inodes[inode];
        let (fs, ino) = (file.fs, file.place.ino);
        let metadata = self.mounts.get(fs).metadata.as_ref().filter(|_| ino > 0)?;
        let block = metadata.inode_block(ino);
        let (group, _) = metadata.inode_at(ino);
        let table = metadata.layout.table(group);
        let first = block / metadata.readahead * metadata.readahead;
        let window = first.max(table.start)..(first + metadata.readahead).min(table.end);
        Some((block, window))
    }
}

/// `ext4_find_entry`: a name, which is not in memory, is looked for in its directory.
pub(crate) async fn read_entry(sys: &Sys, name: NameId) -> Result<(), OutOfMemory> {
    xfs::read_entry(sys, name).await?;
    let found = sys.world().entry_blocks(name);
    let Some((device, blocks)) = found else {
        return Ok(());
    };
    for block in blocks {
        bread(sys, device, block).await?;
    }
    Ok(())
}

/// `__ext4_get_inode_loc`: a task reads the block of an inode, on ext4 with those around it in the table.
pub(crate) async fn read_inode(sys: &Sys, inode: InodeId) -> Result<(), OutOfMemory> {
    xfs::read_inode(sys, inode).await?;
    let wanted = {
        let world = &mut *sys.world();
        let fs = world.mm.inodes[inode].fs;
        world.block_device(fs).zip(world.inode_blocks(inode))
    };
    if let Some((device, (block, window))) = wanted {
        breada(sys, device, block, window).await?;
        bread(sys, device, block).await?;
    }
    Ok(())
}

/// `touch_atime`: a file has been read.
pub(crate) async fn touch_atime(sys: &Sys, inode: InodeId) {
    let fs = {
        let world = &mut *sys.world();
        let file = &mut world.mm.inodes[inode];
        if !std::mem::take(&mut file.place.unread) {
            return;
        }
        let fs = file.fs;
        let mount = world.mounts.get(fs);
        if mount.atime == Atime::Noatime {
            return;
        }
        if let Some(metadata) = &mut mount.metadata {
            metadata.note_inode(inode);
        }
        world.note_xfs_inode(inode);
        fs
    };
    pay(sys, fs).await;
}

impl World {
    /// `file_update_time`: a file is written to. Nothing changes if its inode is part of the running transaction.
    pub(crate) fn update_mtime(&mut self, inode: InodeId) {
        let file = &mut self.mm.inodes[inode];
        file.place.unread = true;
        self.note_xfs_inode(inode);
        let file = &self.mm.inodes[inode];
        let (fs, changed_in) = (file.fs, file.place.changed_in);
        let mount = self.mounts.get(fs);
        if mount.running_transaction() == changed_in {
            return;
        }
        if let Some(metadata) = &mut mount.metadata {
            metadata.note_inode(inode);
        }
    }

    /// `ext4_unlink`: a file loses its name.
    pub(crate) fn note_unlinked(&mut self, inode: InodeId) {
        let file = &self.mm.inodes[inode];
        let (fs, directory) = (file.fs, file.place.directory);
        let name = file.name.map_or(0, |name| usize::from(name) as u64);
        if let Some(metadata) = &mut self.mounts.get(fs).metadata {
            metadata.note_entry(directory, name);
            metadata.note_orphan(inode);
        }
        let place = self.mm.inodes[inode].place;
        if let Some(xfs) = self.mounts.xfs(fs).filter(|_| place.ino > 0) {
            xfs.note_unlinked(place, name);
        }
    }

    /// The inode of a file on XFS has changed.
    pub(crate) fn note_xfs_inode(&mut self, inode: InodeId) {
        let file = &self.mm.inodes[inode];
        let (fs, ino) = (file.fs, file.place.ino);
        if let Some(xfs) = self.mounts.xfs(fs) {
            xfs.note_inode(ino);
        }
    }

    /// Whether a file system has changes that no transaction knows of.
    pub(crate) fn owes(&mut self, fs: usize) -> bool {
        let metadata = &self.mounts.get(fs).metadata;
        metadata
            .as_ref()
            .is_some_and(|metadata| !metadata.owed.is_empty())
    }
}

/// The current task makes all noted changes of a file system a part of the running transaction. A change for whose block there
/// is no memory stays noted, for the next task that pays.
pub(crate) async fn pay(sys: &Sys, fs: usize) {
    xfs::pay(sys, fs).await;
    let owes = sys.world().owes(fs);
    if !owes {
        return;
    }
    let mut owed = sys.world().take_owed(fs);
    owed.reverse();
    while let Some(change) = owed.pop() {
        if change_block(sys, fs, change).await.is_err() {
            let world = &mut *sys.world();
            if let Some(metadata) = &mut world.mounts.get(fs).metadata {
                owed.into_iter().for_each(|change| metadata.owe(change));
                metadata.owe(change);
            }
            return;
        }
    }
}

/// `ext4_journal_get_write_access`, `ext4_handle_dirty_metadata`
async fn change_block(sys: &Sys, fs: usize, change: Change) -> Result<(), OutOfMemory> {
    let found = {
        let world = &mut *sys.world();
        let block = match change {
            Change::Block(block) | Change::New(block) => Some(block),
            Change::Inode(inode) => world.inode_blocks(inode).map(|(block, _)| block),
        };
        world.block_device(fs).zip(block)
    };
    let Some((device, block)) = found else {
        return Ok(());
    };
    loop {
        let known = sys.world().mm.is_in_transaction(device, block);
        if !known {
            let pfn = match change {
                Change::New(_) => getblk(sys, device, block).await?,
                _ => bread(sys, device, block).await?,
            };
            let busy = under_way(sys, pfn);
            if let Some(flags) = busy {
                io::wait_on_page(sys, pfn, flags).await;
                continue;
            }
        }
        let world = &mut *sys.world();
        world.journal_dirty_metadata(fs, block);
        if let Change::Inode(inode) = change {
            world.mm.inodes[inode].place.changed_in = world.mounts.get(fs).running_transaction();
        }
        return Ok(());
    }
}

/// The flag of the write of a page that is under way.
fn under_way(sys: &Sys, pfn: Pfn) -> Option<u16> {
    sys.world().mm.pages[pfn].write_under_way()
}

/// `ext4_sync_fs` and `sync_blockdev` of all file systems, for sync(2): the running transactions are committed, and their blocks
/// are written to their places.
pub(crate) async fn sync_metadata(sys: &Sys) {
    xfs::sync_logs(sys).await;
    let mounted = sys.world().mounts.with_journal();
    for fs in mounted {
        let device = sys.world().block_device(fs);
        let Some(device) = device else {
            continue;
        };
        pay(sys, fs).await;
        jbd::force_commit(sys, fs).await;
        fsync_range(sys, device, Range::ALL).await;
    }
}
