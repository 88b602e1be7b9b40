//! Buffer heads: the kernel's objects for the blocks of a page in the page cache (`fs/buffer.c`).
//!
//! 1. A page of a file gets its own when somebody writes to it (`create_page_buffers`), a page of a block device when it is
//!    made (`grow_dev_page`). A block is as large as a page, so there is one of them. Pages that are read have none, as they are
//!    read by the mapping of their blocks alone (`mpage_readpages`).
//! 2. Slabs of buffer heads lie in reclaimable pageblocks. A buffer head is freed when its page leaves the page cache
//!    (`try_to_free_buffers`), not before. A page that moves keeps its buffer head (`buffer_migrate_page`).

use crate::ids::InodeId;
use crate::kernel::{Kernel, XfsBuffers};
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, NO_OBJECT, alloc_object_waiting};
use crate::mm::alloc::xarray::Object;
use crate::mm::types::{OutOfMemory, Pfn};
use crate::world::{Sys, World};

/// The buffer heads of all pages.
#[derive(Debug, Default)]
pub(crate) struct BufferHeads {
    /// That of each frame, `NO_OBJECT` if it has none; of no frame where buffer heads take no memory.
    of_page: Vec<Object>,
}

impl BufferHeads {
    /// None yet.
    pub(in crate::mm) fn new(kernel: &Kernel, frames: u32, slabs: bool) -> BufferHeads {
        let taken = kernel.coverage.buffer_heads && slabs;
        BufferHeads {
            of_page: vec![NO_OBJECT; if taken { frames as usize } else { 0 }],
        }
    }

    /// Every page that has one, with it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, Object)> + '_ {
        let all = (0..).zip(&self.of_page);
        all.filter_map(|(pfn, &object)| (object != NO_OBJECT).then_some((pfn, object)))
    }
}

impl World {
    /// Whether a page of a file lacks the buffer head that a write to it needs.
    #[inline]
    pub(in crate::mm) fn lacks_buffers(&self, inode: InodeId, pfn: Pfn) -> bool {
        let of_page = self.mm.buffer_heads.of_page.get(pfn as usize);
        of_page.is_some_and(|&object| object == NO_OBJECT) && self.has_buffers(inode)
    }

    /// Whether the file system of a file works with buffer heads; block devices always do.
    fn has_buffers(&self, inode: InodeId) -> bool {
        let file = &self.mm.inodes[inode];
        let xfs = self.mm.shrinkers.inode_cache(file.fs) == Cache::XfsInode;
        let rule = self.mm.kernel.mechanisms.files.xfs_buffers;
        file.is_device() || !self.nfs.is_remote(file.device) && (!xfs || rule == XfsBuffers::Heads)
    }

    /// Gives a page that lacks one a buffer head of the slabs that there are, if they have one left.
    #[inline]
    pub(in crate::mm) fn create_buffers_at_once(&mut self, pfn: Pfn) -> bool {
        let object = self.mm.take_object(Cache::BufferHead);
        if let Some(object) = object {
            self.mm.attach_buffers(pfn, object);
        }
        object.is_some()
    }
}

impl Mm {
    fn attach_buffers(&mut self, pfn: Pfn, object: Object) {
        let object = self.charge_object_of_page(pfn, Cache::BufferHead, object);
        self.buffer_heads.of_page[pfn as usize] = object;
    }

    /// A page has left the page cache.
    #[inline]
    pub(in crate::mm) fn free_buffers(&mut self, pfn: Pfn) {
        if let Some(object) = self.buffer_heads.of_page.get_mut(pfn as usize) {
            let object = std::mem::replace(object, NO_OBJECT);
            self.free_object(Cache::BufferHead, object);
        }
    }

    /// A page is in another frame now.
    pub(in crate::mm) fn move_buffers(&mut self, from: Pfn, to: Pfn) {
        if let Some(object) = self.buffer_heads.of_page.get_mut(from as usize) {
            self.buffer_heads.of_page[to as usize] = std::mem::replace(object, NO_OBJECT);
        }
    }
}

/// `create_page_buffers` of a page of a file, which may wait for memory, and by then be gone.
///
/// # Errors
///
/// When there is nothing left to reclaim.
pub(in crate::mm) async fn create_buffers(
    sys: &Sys,
    inode: InodeId,
    index: u32,
) -> Result<(), OutOfMemory> {
    let node = sys.world().sched.current_node();
    let object = alloc_object_waiting(sys, Cache::BufferHead, node).await?;
    let world = &mut *sys.world();
    let page = world.mm.inodes[inode].pages.page(index);
    match page.filter(|&pfn| world.lacks_buffers(inode, pfn)) {
        Some(pfn) => world.mm.attach_buffers(pfn, object),
        None => world.mm.free_object(Cache::BufferHead, object),
    }
    Ok(())
}
