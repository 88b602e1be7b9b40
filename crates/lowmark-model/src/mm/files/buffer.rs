//! Blocks of a device in the page cache of the device (`fs/buffer.c`). A block is as large as a page.

use crate::ids::InodeId;
use crate::mm::Mm;
use crate::mm::files::buffer_head::create_buffers;
use crate::mm::files::filemap::page_cache_add;
use crate::mm::io;
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a journal holds of a block device: blocks that have changed and are not written to the journal yet. Their pages cannot
/// be freed and do not move.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    /// Those that the running transaction has (`t_buffers`).
    pub(crate) running: BTreeSet<u32>,
    /// Those that are being committed.
    pub(crate) committing: BTreeSet<u32>,
}

impl Buffers {
    fn are_held(&self, block: u32) -> bool {
        self.running.contains(&block) || self.committing.contains(&block)
    }
}

impl Mm {
    /// Whether a block of a device is part of the running transaction.
    pub(crate) fn is_in_transaction(&self, device: InodeId, block: u32) -> bool {
        let buffers = self.inodes[device].buffers.as_ref();
        buffers.is_some_and(|buffers| buffers.running.contains(&block))
    }

    /// Whether the buffers of a page of a file cannot be taken off it (`try_to_free_buffers`): a journal holds them, or
    /// writes them.
    pub(crate) fn has_busy_buffers(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        if page.has(flag::BUFFERS_LOCKED) {
            return true;
        }
        let (inode, index) = self.file_of(page);
        let buffers = self.inodes[inode].buffers.as_ref();
        buffers.is_some_and(|buffers| buffers.are_held(index))
    }
}

impl World {
    /// What the current task allocates pages of a block device with (`grow_dev_page`).
    fn block_gfp(&self) -> Gfp {
        Gfp::user(self.sched.current_node()).without(gfp::HIGHMEM | gfp::FS)
    }

    /// Whether a block that is in memory lacks its buffer head.
    fn block_lacks_buffers(&self, device: InodeId, block: u32) -> bool {
        let page = self.mm.inodes[device].pages.page(block);
        page.is_some_and(|pfn| self.lacks_buffers(device, pfn))
    }

    /// A block in memory, which counts as an access (`__find_get_block`).
    fn find_block(&mut self, device: InodeId, block: u32) -> Option<Pfn> {
        let pfn = self.mm.inodes[device].pages.page(block)?;
        self.mm.mark_page_accessed(pfn);
        Some(pfn)
    }
}

/// A block in memory, with what the device has or with nothing in it.
async fn get(sys: &Sys, device: InodeId, block: u32, read: bool) -> Result<Pfn, OutOfMemory> {
    loop {
        let found = sys.world().find_block(device, block);
        let Some(pfn) = found else {
            let gfp = sys.world().block_gfp();
            page_cache_add(sys, device, block, gfp, read).await?;
            continue;
        };
        if sys.world().lacks_buffers(device, pfn) {
            create_buffers(sys, device, block).await?;
            continue;
        }
        let locked = sys.world().mm.pages[pfn].has(flag::LOCKED);
        if !locked {
            return Ok(pfn);
        }
        io::wait_on_page(sys, pfn, flag::LOCKED).await;
    }
}

/// `__getblk` of a block that has nothing in it yet.
pub(crate) async fn getblk(sys: &Sys, device: InodeId, block: u32) -> Result<Pfn, OutOfMemory> {
    get(sys, device, block, false).await
}

/// `__bread`: the block has been read.
///
/// # Errors
///
/// When there is no memory for it, and nothing left to reclaim.
pub(crate) async fn bread(sys: &Sys, device: InodeId, block: u32) -> Result<Pfn, OutOfMemory> {
    get(sys, device, block, true).await
}

/// `__breadahead`: reads the blocks of a window that are missing, if the block that a task needs is one of them.
pub(crate) async fn breada(
    sys: &Sys,
    device: InodeId,
    needed: u32,
    window: Range<u32>,
) -> Result<(), OutOfMemory> {
    let missing = |block| sys.world().mm.inodes[device].pages.page(block).is_none();
    if !missing(needed) {
        return Ok(());
    }
    sys.start_plug();
    let mut result = Ok(());
    for block in window {
        if missing(block) {
            let gfp = sys.world().block_gfp();
            result = page_cache_add(sys, device, block, gfp, true).await;
            if result.is_ok() && sys.world().block_lacks_buffers(device, block) {
                result = create_buffers(sys, device, block).await;
            }
            if result.is_err() {
                break;
            }
        }
    }
    sys.finish_plug();
    result
}
