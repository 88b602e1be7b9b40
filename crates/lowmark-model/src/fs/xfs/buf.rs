//! Metadata in memory (`fs/xfs/xfs_buf.c`): blocks, and clusters of inodes, in pages that are on no LRU list. A shrinker frees
//! those that nobody has used for a while and that need not be written.
//!
//! A buffer is *held* as long as a change of it is not at its place on the device, and while a task reads it, writes it or waits for it.
//! The shrinker takes a held buffer off its list as it does others. When the last holder lets go of such a buffer, the buffer goes
//! back to the list if the shrinker is to spare it at least once more, and is freed otherwise.
//!
//! While a buffer is being written it is locked: a task that wants to change it waits. These writes are not marked as waited for,
//! so that a scheduler like CFQ serves reads first.

use super::log::{For, metadata_io, metadata_page, submit_metadata, wait_for_metadata};
use super::{Item, Xfs};
use crate::device::{Dir, Io};
use crate::fs::metadata::Block;
use crate::kernel::XfsIsolate;
use crate::mm::Mm;
use crate::mm::shrinker::ListLru;
use crate::mm::types::{OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::{BTreeMap, BTreeSet};

/// A buffer (`struct xfs_buf`).
#[derive(Debug)]
struct Buf {
    pages: Vec<Pfn>,
    /// Pages of it that are being written.
    writing: usize,
    /// What the write has, as it is in the log up to there.
    flushing: Vec<(Item, u64)>,
    /// How often the shrinker spares it (`b_lru_ref`).
    spared: u8,
    /// Its place on the list; none if the shrinker has taken the buffer off while it was held.
    age: Option<u64>,
}

impl Buf {
    /// A page of it that is being read or written.
    fn busy_page(&self, mm: &Mm) -> Option<Pfn> {
        let busy = |&&pfn: &&Pfn| mm.pages[pfn].has_any(flag::LOCKED | flag::BUFFERS_LOCKED);
        self.pages.iter().find(busy).copied()
    }

    /// Whether a task reads or writes the buffer, or waits for that.
    fn is_in_use(&self, mm: &Mm) -> bool {
        let waits = |&pfn: &Pfn| mm.pages[pfn].has(flag::WAITERS);
        self.busy_page(mm).is_some() || self.pages.iter().any(waits)
    }
}

/// The buffers of a file system.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    map: BTreeMap<Block, Buf>,
    /// The buffer that a page belongs to.
    of_page: BTreeMap<Pfn, Block>,
    /// Those that the shrinker has to look at (`bt_lru`).
    list: ListLru<Block>,
}

/// Whether a buffer is in memory.
enum Found {
    /// It is, and nobody reads or writes it.
    Ready,
    /// This page of it is being read or written.
    Busy(Pfn),
    /// It is not in memory. This is the number of its pages.
    Missing(usize),
}

impl Buffers {
    /// How many the shrinker could look at.
    pub(super) fn listed(&self) -> u64 {
        self.list.len()
    }

    /// Whether a buffer is in memory.
    pub(super) fn has(&self, block: Block) -> bool {
        self.map.contains_key(&block)
    }

    /// Whether a page belongs to a buffer.
    pub(super) fn has_page(&self, pfn: Pfn) -> bool {
        self.of_page.contains_key(&pfn)
    }

    /// Whether an item is being written with a buffer.
    pub(super) fn is_flushing(&self, block: Block, item: Item) -> bool {
        let buffer = self.map.get(&block);
        buffer.is_some_and(|buffer| buffer.flushing.iter().any(|&(other, _)| other == item))
    }

    /// A page of a buffer has been written. With the last page that was being written: the buffer, and the items that the write had.
    fn end_page(&mut self, pfn: Pfn) -> Option<(Block, Vec<(Item, u64)>)> {
        let &block = self.of_page.get(&pfn)?;
        let buffer = self.map.get_mut(&block)?;
        buffer.writing = buffer.writing.saturating_sub(1);
        (buffer.writing == 0).then(|| (block, std::mem::take(&mut buffer.flushing)))
    }

    fn busy_page(&self, block: Block, mm: &Mm) -> Option<Pfn> {
        self.map.get(&block)?.busy_page(mm)
    }

    /// `xfs_buftarg_isolate`: the shrinker spares a buffer of its list, which it then looks at again after all others, or takes it
    /// off the list: true.
    fn isolate(&mut self, block: Block, rule: XfsIsolate) -> bool {
        let Some(buffer) = self.map.get_mut(&block) else {
            return false;
        };
        if let Some(age) = buffer.age.take() {
            self.list.remove(age);
        }
        let takes = match rule {
            XfsIsolate::Spared => buffer.spared > 0,
            XfsIsolate::Unspared => buffer.spared == 0,
        };
        buffer.spared = buffer.spared.saturating_sub(1);
        if !takes {
            buffer.age = Some(self.list.push(block));
        }
        takes
    }

    fn put_on_list(&mut self, block: Block) {
        if let Some(buffer) = self.map.get_mut(&block) {
            buffer.age = Some(self.list.push(block));
        }
    }

    /// Pages of a buffer that is in memory from now on. Those that are not needed, as somebody else was faster.
    fn insert(&mut self, block: Block, pages: Vec<Pfn>, spared: u8) -> Vec<Pfn> {
        if self.map.contains_key(&block) {
            return pages;
        }
        self.of_page.extend(pages.iter().map(|&pfn| (pfn, block)));
        let age = Some(self.list.push(block));
        self.map.insert(
            block,
            Buf {
                pages,
                writing: 0,
                flushing: Vec::new(),
                spared,
                age,
            },
        );
        Vec::new()
    }

    fn remove(&mut self, block: Block) -> Vec<Pfn> {
        let Some(buffer) = self.map.remove(&block) else {
            return Vec::new();
        };
        if let Some(age) = buffer.age {
            self.list.remove(age);
        }
        for pfn in &buffer.pages {
            self.of_page.remove(pfn);
        }
        buffer.pages
    }
}

impl Xfs {
    /// How often the shrinker spares a buffer (`XFS_AGF_REF` and its like).
    fn spared(&self, block: Block) -> u8 {
        let group = self.geometry.group_of(block.into());
        if block == self.geometry.headers(group) {
            4
        } else if self.geometry.inode_trees(group).any(|tree| tree == block) {
            3
        } else {
            2
        }
    }

    /// `xfs_buf_rele`: a holder lets go of a buffer. If no other holds it, and the buffer is off the list, it goes back there as long as
    /// the shrinker is to spare it, and is freed otherwise.
    fn release_buffer(&mut self, block: Block, mm: &mut Mm) {
        let Some(buffer) = self.buffers.map.get(&block) else {
            return;
        };
        if buffer.age.is_some() || buffer.is_in_use(mm) || self.is_held(block) {
            return;
        }
        if buffer.spared == 0 {
            mm.let_all_go(self.buffers.remove(block));
        } else {
            self.buffers.put_on_list(block);
        }
    }

    /// What of a buffer is in the log, not pinned, and not at its place.
    fn to_be_flushed(&self, block: Block) -> Vec<(Item, u64)> {
        let items = self.items_of(block);
        let free = items.filter(|&item| !self.log.is_pinned(item));
        free.filter_map(|item| Some((item, self.ail.lsn(item)?)))
            .collect()
    }
}

impl World {
    /// `xfs_buf_find`: looks a buffer up. A task that looks it up uses it, so that the shrinker is to spare it again
    /// (`xfs_buf_set_ref`); reclaim, which looks it up to write it, does not.
    fn find_buffer(&mut self, fs: usize, block: Block, whom: For) -> Found {
        let Some(xfs) = self.mounts.xfs(fs) else {
            return Found::Ready;
        };
        let spared = xfs.spared(block);
        let length = xfs.length_of(block);
        match xfs.buffers.map.get_mut(&block) {
            None => Found::Missing(length),
            Some(buffer) => {
                if whom == For::Task {
                    buffer.spared = spared;
                }
                if let Some(pfn) = buffer.busy_page(&self.mm) {
                    return Found::Busy(pfn);
                }
                if whom == For::Task {
                    xfs.release_buffer(block, &mut self.mm);
                }
                Found::Ready
            }
        }
    }

    /// A buffer is in memory from now on, if it was not. The reads of its pages, if it is to be read.
    fn add_buffer(&mut self, fs: usize, block: Block, pages: Vec<Pfn>, read: bool) -> Vec<Io> {
        let mount = self.mounts.get(fs);
        let device = mount.device;
        let Some(xfs) = mount.xfs.as_mut() else {
            return Vec::new();
        };
        let spared = xfs.spared(block);
        let unneeded = xfs.buffers.insert(block, pages.clone(), spared);
        let is_new = unneeded.is_empty();
        self.mm.let_all_go(unneeded);
        if !is_new || !read {
            return Vec::new();
        }
        self.mm.stat.pgpgin += pages.len() as u64 * (PAGE_SIZE / 1024);
        let places = (u64::from(block)..).zip(pages);
        let reads = places.map(|(position, pfn)| {
            self.mm.pages[pfn].set(flag::LOCKED);
            metadata_io(device, Dir::Read, true, position, pfn)
        });
        reads.collect()
    }

    /// The writes of a buffer's pages, with all that can be written of it; none if there is nothing, or it is being written.
    fn begin_buffer_write(&mut self, fs: usize, block: Block) -> Vec<Io> {
        let mount = self.mounts.get(fs);
        let device = mount.device;
        let Some(xfs) = mount.xfs.as_mut() else {
            return Vec::new();
        };
        let items = xfs.to_be_flushed(block);
        let is_pinned = xfs.log.is_pinned(Item::Buffer(block));
        let is_busy = xfs.buffers.busy_page(block, &self.mm).is_some();
        let Some(buffer) = xfs.buffers.map.get_mut(&block) else {
            return Vec::new();
        };
        if items.is_empty() || is_pinned || is_busy {
            return Vec::new();
        }
        (buffer.writing, buffer.flushing) = (buffer.pages.len(), items);
        let places = (u64::from(block)..).zip(buffer.pages.clone());
        self.mm.stat.pgpgout += buffer.pages.len() as u64 * (PAGE_SIZE / 1024);
        let writes = places.map(|(position, pfn)| {
            self.mm.pages[pfn].set(flag::BUFFERS_LOCKED);
            metadata_io(device, Dir::Write, false, position, pfn)
        });
        writes.collect()
    }

    /// `xfs_buf_ioend`: a page of metadata of XFS has been written. False: it is none.
    ///
    /// Simplified: what a device refuses counts as written.
    pub(crate) fn end_metadata_write(&mut self, pfn: Pfn) -> bool {
        let Some(xfs) = self.mounts.xfs_with_page(pfn) else {
            return false;
        };
        self.mm.pages[pfn].clear(flag::BUFFERS_LOCKED);
        if let Some((block, written)) = xfs.buffers.end_page(pfn) {
            for (item, lsn) in written {
                xfs.ail.remove(item, lsn);
            }
            xfs.release_buffer(block, &mut self.mm);
        }
        true
    }

    /// The current task lets go of a buffer.
    fn release_buffer(&mut self, fs: usize, block: Block) {
        if let Some(xfs) = self.mounts.xfs(fs) {
            xfs.release_buffer(block, &mut self.mm);
        }
    }

    /// Buffers of a file system that the shrinker could look at.
    pub(crate) fn count_buffers(&mut self, fs: usize) -> u64 {
        self.mounts.xfs(fs).map_or(0, |xfs| xfs.buffers.listed())
    }

    /// `xfs_buftarg_shrink_scan`: the oldest buffers. How many it has taken off the list, and looked at.
    pub(crate) fn scan_buffers(&mut self, fs: usize, nr: u64) -> (u64, u64) {
        let rule = self.mm.kernel.mechanisms.shrinker.xfs_isolate;
        let Some(xfs) = self.mounts.xfs(fs) else {
            return (0, 0);
        };
        let end = xfs.buffers.list.end();
        let (mut taken, mut looked) = (0, 0);
        while looked < nr
            && let Some((_, block)) = xfs.buffers.list.oldest_before(end)
        {
            looked += 1;
            if xfs.buffers.isolate(block, rule) {
                taken += 1;
                xfs.release_buffer(block, &mut self.mm);
            }
        }
        (taken, looked)
    }
}

/// `xfs_buf_read`: a buffer in memory that nobody reads or writes, with what the device has, or with nothing in it (`read`).
///
/// # Errors
///
/// When there is no memory for it, and nothing left to reclaim.
pub(super) async fn get(sys: &Sys, fs: usize, block: Block, read: bool) -> Result<(), OutOfMemory> {
    get_for(sys, fs, block, read, For::Task).await
}

async fn get_for(
    sys: &Sys,
    fs: usize,
    block: Block,
    read: bool,
    whom: For,
) -> Result<(), OutOfMemory> {
    loop {
        let found = sys.world().find_buffer(fs, block, whom);
        match found {
            Found::Ready => return Ok(()),
            Found::Busy(pfn) => wait_for_metadata(sys, pfn).await,
            Found::Missing(length) => {
                let mut pages = Vec::new();
                for _ in 0..length {
                    match metadata_page(sys, whom).await {
                        Ok(pfn) => pages.push(pfn),
                        Err(none) => {
                            sys.world().mm.let_all_go(pages);
                            return Err(none);
                        }
                    }
                }
                let reads = sys.world().add_buffer(fs, block, pages, read);
                submit_all(sys, reads).await;
            }
        }
    }
}

async fn submit_all(sys: &Sys, pages: Vec<Io>) {
    sys.start_plug();
    for io in pages {
        submit_metadata(sys, io).await;
    }
    sys.finish_plug();
}

/// `xfs_buf_delwri_submit_nowait`: buffers are written, in the order of their places. One that is not in memory is read first;
/// one that is being written is left alone.
pub(super) async fn write_all(
    sys: &Sys,
    fs: usize,
    buffers: BTreeSet<Block>,
) -> Result<(), OutOfMemory> {
    for &block in &buffers {
        let missing = |xfs: &mut Xfs| !xfs.buffers.has(block);
        if sys.world().mounts.xfs(fs).is_some_and(missing) {
            get(sys, fs, block, true).await?;
        }
    }
    sys.start_plug();
    for block in buffers {
        let writes = sys.world().begin_buffer_write(fs, block);
        for io in writes {
            submit_metadata(sys, io).await;
        }
    }
    sys.finish_plug();
    Ok(())
}

/// `xfs_bwrite`: a buffer is written, and the current task, which reclaims, waits for that.
pub(super) async fn write_and_wait(sys: &Sys, fs: usize, block: Block) -> Result<(), OutOfMemory> {
    get_for(sys, fs, block, true, For::Reclaim).await?;
    let writes = sys.world().begin_buffer_write(fs, block);
    let pages: Vec<Pfn> = writes.iter().map(|io| io.pfn).collect();
    submit_all(sys, writes).await;
    for pfn in pages {
        wait_for_metadata(sys, pfn).await;
    }
    sys.world().release_buffer(fs, block);
    Ok(())
}
