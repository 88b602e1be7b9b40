//! The page cache (`mm/filemap.c`): pages of files, and reading through them.
//!
//! A buffered read goes page by page (`do_generic_file_read`):
//!
//! 1. No page: synchronous readahead; if that brought none either, the page alone.
//! 2. A page with the readahead mark: the next window is read before this one is used up.
//! 3. A page that is being read: wait.
//! 4. The page is marked as accessed, once for each time that the reader comes to it, and copied.
//!
//! Pages that are there are read in one loop up to the next event, as touches are.

use crate::device::{Dir, Io};
use crate::fs::metadata::touch_atime;
use crate::ids::InodeId;
use crate::kernel::PageCacheGfp;
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, preload_file_nodes};
use crate::mm::alloc::xarray::CHUNK_SHIFT;
use crate::mm::files::readahead::{self, ReadaheadState};
use crate::mm::frames::shadow::Shadow;
use crate::mm::io;
use crate::mm::memcontrol::{self, alloc_charged};
use crate::mm::types::{Gfp, OutOfMemory, Pfn, UNMAPPED, flag};
use crate::time::Mode;
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_spec::machine::PAGE_SIZE;

/// An open file (`struct file`).
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    /// Which.
    pub(crate) inode: InodeId,
    /// `f_ra`
    pub(crate) readahead: ReadaheadState,
    /// Errors that it has been told of (`f_wb_err`).
    pub(crate) told: u64,
}

impl OpenFile {
    pub(crate) fn new(world: &mut World, inode: InodeId) -> OpenFile {
        OpenFile {
            inode,
            readahead: ReadaheadState::default(),
            told: world.mm.sample_errors(inode),
        }
    }
}

impl Mm {
    /// `mark_page_accessed`: a second access of an inactive folio makes it active; where pages stand in generations,
    /// accesses are counted.
    #[inline]
    pub(crate) fn mark_page_accessed(&mut self, pfn: Pfn) {
        let pfn = self.pages.head(pfn);
        if self.lru_gen {
            self.pages
                .inc_refs(pfn, self.kernel.mechanisms.lru_gen.gen_refault);
            return;
        }
        let page = &mut self.pages[pfn];
        if !page.has(flag::REFERENCED) {
            page.set(flag::REFERENCED);
        } else if page.has(flag::LRU) && !page.has(flag::ACTIVE) {
            page.clear(flag::REFERENCED);
            self.activate_page(pfn);
            self.workingset_activation(pfn);
        }
    }
}

impl World {
    /// `add_to_page_cache_lru`: a folio of a file, at the inactive head, or active if it was evicted too
    /// early, as its last page tells. False: there are no owner numbers left for it.
    pub(crate) fn add_to_page_cache(&mut self, inode: InodeId, index: u32, head: Pfn) -> bool {
        let mut shadow = None;
        for (index, pfn) in (index..).zip(self.mm.pages.folio(head)) {
            let leaf = index >> CHUNK_SHIFT;
            if self.mm.slub.is_on() {
                self.add_file_nodes(inode, leaf, pfn);
            }
            let mm = &mut self.mm;
            if mm.inodes[inode].pages.is_shadow_leaf(leaf) {
                mm.remove_shadow_node(inode, leaf);
            }
            let file = &mut mm.inodes[inode];
            // A folio lies within a block of numbers.
            let Some((owner, left)) = file.pages.insert(&mut mm.mappings, inode, index, pfn) else {
                return false;
            };
            mm.pages[pfn].owner = owner;
            mm.nr_file_pages += 1;
            shadow = left.or(shadow);
        }
        if let Some(shadow) = shadow {
            self.refault(head, shadow);
        }
        self.folio_add_lru(head);
        true
    }

    /// The nodes that lead to a page which is about to enter the tree of its file.
    fn add_file_nodes(&mut self, inode: InodeId, leaf: u32, pfn: Pfn) {
        let file = &mut self.mm.inodes[inode];
        if file.pages.has_leaf(leaf) {
            return;
        }
        let mut nodes = std::mem::take(&mut file.nodes);
        let node = self.mm.node_of(pfn);
        let cpu = self.mm.cpu;
        nodes.add(leaf, || match self.mm.slub.take_preloaded(cpu) {
            Some(node) => node,
            None => self.alloc_charged_object(Cache::RadixTreeNode, node),
        });
        self.mm.inodes[inode].nodes = nodes;
    }
}

impl Mm {
    /// What pages of a file are allocated with (`mapping_gfp_mask`).
    pub(super) fn mapping_gfp(&self, inode: InodeId, gfp: Gfp) -> Gfp {
        let fs = self.inodes[inode].fs;
        let xfs = self.shrinkers.inode_cache(fs) == Cache::XfsInode;
        match self.kernel.mechanisms.files.page_cache_gfp {
            PageCacheGfp::XfsNoFs | PageCacheGfp::ReadaheadNoFs if xfs => gfp.without(gfp::FS),
            _ => gfp,
        }
    }

    /// What they are read ahead with (`readahead_gfp_mask`): the task that needs a page reads it by itself if there is no memory for a
    /// window.
    pub(super) fn readahead_gfp(&self, inode: InodeId, gfp: Gfp) -> Gfp {
        let gfp = self.mapping_gfp(inode, gfp).noretry();
        match self.kernel.mechanisms.files.page_cache_gfp {
            PageCacheGfp::ReadaheadNoFs => gfp.without(gfp::FS),
            PageCacheGfp::Mapping | PageCacheGfp::XfsNoFs => gfp,
        }
    }

    /// `__delete_from_page_cache` of a folio that is neither dirty nor mapped nor under I/O.
    pub(crate) fn delete_from_page_cache(&mut self, head: Pfn, shadow: Option<Shadow>) {
        let (inode, _) = self.file_of(&self.pages[head]);
        for pfn in self.pages.folio(head) {
            let (_, index) = self.file_of(&self.pages[pfn]);
            let file = &mut self.inodes[inode];
            file.pages.remove(&mut self.mappings, index, shadow);
            self.leaf_lost_a_page(inode, index >> CHUNK_SHIFT, head);
            self.pages[pfn].owner = UNMAPPED;
            self.nr_file_pages -= 1;
            self.free_buffers(pfn);
        }
        self.mapping_lost_pages(inode);
    }

    /// What led to a page that has left the tree of its file: a leaf stays while there are shadows in it.
    fn leaf_lost_a_page(&mut self, inode: InodeId, leaf: u32, head: Pfn) {
        let file = &mut self.inodes[inode];
        if file.pages.is_shadow_leaf(leaf) {
            self.add_shadow_node(inode, leaf, head);
        } else if self.slub.is_on() && !file.pages.has_leaf(leaf) {
            for object in file.nodes.remove(leaf) {
                self.free_object(Cache::RadixTreeNode, object);
            }
        }
    }

    /// `readpage` of a page that has just entered the page cache: the read that it needs, for which it is
    /// locked now. None: it is a hole, and zero already.
    pub(crate) fn read_page(&mut self, inode: InodeId, index: u32, pfn: Pfn) -> Option<Io> {
        let io = self.read_of_page(inode, index, pfn)?;
        self.pages[pfn].set(flag::LOCKED);
        Some(io)
    }

    /// The read of a page of a locked folio, unless it is a hole.
    pub(super) fn read_of_page(&mut self, inode: InodeId, index: u32, pfn: Pfn) -> Option<Io> {
        let file = &self.inodes[inode];
        let position = file.extents.find(index)?;
        self.stat.pgpgin += PAGE_SIZE / 1024;
        Some(Io {
            device: file.device,
            dir: Dir::Read,
            sync: true,
            position,
            pfn,
            in_folio: self.pages[pfn].order() > 0,
            own_bio: false,
            needs_bio: false,
        })
    }
}

/// `page_cache_read`: one page, unless somebody else has brought it meanwhile.
pub(crate) async fn page_cache_read(
    sys: &Sys,
    inode: InodeId,
    index: u32,
    gfp: Gfp,
) -> Result<(), OutOfMemory> {
    let gfp = {
        let world = &mut *sys.world();
        world.map_blocks(inode);
        world.mm.mapping_gfp(inode, gfp)
    };
    page_cache_add(sys, inode, index, gfp, true).await
}

/// A page enters the page cache, unless it is there by then, and is read if that is asked for.
pub(super) async fn page_cache_add(
    sys: &Sys,
    inode: InodeId,
    index: u32,
    gfp: Gfp,
    read: bool,
) -> Result<(), OutOfMemory> {
    let memcg = sys.world().current_memcg();
    let pfn = alloc_charged(sys, gfp, memcg).await?;
    if let Err(error) = preload_file_nodes(sys, gfp).await {
        sys.world().mm.free_page(pfn);
        return Err(error);
    }
    let blocked = {
        let world = &mut *sys.world();
        let there = world.mm.inodes[inode].pages.page(index).is_some();
        if there || !world.add_to_page_cache(inode, index, pfn) {
            world.mm.free_page(pfn);
            return if there { Ok(()) } else { Err(OutOfMemory) };
        }
        let io = read
            .then(|| world.mm.read_page(inode, index, pfn))
            .flatten();
        io.and_then(|io| world.try_submit(io))
    };
    if let Some(io) = blocked {
        sys.suspend().await;
        io::submit(sys, io).await;
    }
    sys.charge_kernel(sys.costs.file_page_ns).await;
    Ok(())
}

/// Where a read has to stop.
enum Stopped {
    /// At its end.
    Done,
    /// Something else happens first.
    Time,
    /// No page here.
    Missing(u32),
    /// The first page of a folio with the readahead mark, which it has no longer.
    Marked(u32),
    /// A folio that is being read.
    Locked(Pfn),
}

/// `generic_file_aio_read` of the bytes from `pos` to `end`, or to the end of the file. The bytes read.
pub(crate) async fn read(
    sys: &Sys,
    file: &mut OpenFile,
    pos: u64,
    end: u64,
    gfp: Gfp,
) -> Result<u64, OutOfMemory> {
    let end = end.min(sys.world().mm.inodes[file.inode].size);
    let mut at = pos;
    sys.return_to_user().await;
    sys.charge_kernel(sys.costs.syscall_ns).await;
    while at < end {
        // Pages that are still wanted, as readahead is told.
        let wanted = |index: u32| (end.div_ceil(PAGE_SIZE) - u64::from(index)) as u32;
        let stopped = sys.world().read_cached(file, &mut at, end);
        match stopped {
            Stopped::Done => break,
            Stopped::Time => sys.suspend().await,
            Stopped::Missing(index) => {
                readahead::sync(sys, file, index, wanted(index), gfp).await;
                let missing = {
                    let world = sys.world();
                    world.mm.inodes[file.inode].pages.page(index).is_none()
                };
                if missing {
                    page_cache_read(sys, file.inode, index, gfp).await?;
                }
            }
            Stopped::Marked(index) => {
                readahead::marked(sys, file, index, wanted(index), gfp).await;
            }
            Stopped::Locked(pfn) => io::wait_on_page(sys, pfn, flag::LOCKED).await,
        }
        if sys.world().sched.current_killed() {
            break;
        }
    }
    file.readahead.end_of_read();
    if at > pos {
        touch_atime(sys, file.inode).await;
    }
    let over = sys.world().take_over_high();
    if let Some(over) = over {
        memcontrol::handle_over_high(sys, over).await;
    }
    Ok(at.saturating_sub(pos))
}

impl Mm {
    fn mark_again(&mut self, inode: InodeId, index: u32) {
        if let Some(pfn) = self.inodes[inode].pages.page(index) {
            let head = self.pages.head(pfn);
            self.pages[head].set(flag::RECLAIM);
        }
    }
}

impl World {
    /// Reads from pages that are there.
    fn read_cached(&mut self, file: &mut OpenFile, at: &mut u64, end: u64) -> Stopped {
        let undisturbed = self.sched.undisturbed();
        let (mut spent, mut stopped) = (0, Stopped::Done);
        while *at < end && spent <= undisturbed {
            let index = (*at / PAGE_SIZE) as u32;
            let inode = &self.mm.inodes[file.inode];
            let Some(pfn) = inode.pages.page(index) else {
                stopped = Stopped::Missing(index);
                break;
            };
            let head = self.mm.pages.head(pfn);
            let page = &mut self.mm.pages[head];
            if page.has(flag::RECLAIM) && !page.has(flag::WRITEBACK) {
                page.clear(flag::RECLAIM);
                stopped = Stopped::Marked(index - (pfn - head));
                break;
            }
            if page.has(flag::LOCKED) {
                stopped = Stopped::Locked(head);
                break;
            }
            if file.readahead.comes_to(*at, page.order()) {
                self.mm.mark_page_accessed(head);
            }
            let bytes = (PAGE_SIZE - *at % PAGE_SIZE).min(end - *at);
            *at += bytes;
            file.readahead.read_to(index, *at);
            spent += self.memory_time((self.costs.copy_page_ns * bytes).div_ceil(PAGE_SIZE));
        }
        // A step without cost must not yield: two tasks could go on yielding to each other for ever.
        let passed = spent == 0 || self.sched.spend(Mode::System, spent);
        match (passed, stopped) {
            (true, stopped) => stopped,
            // The page is looked at again when the time has passed.
            (false, Stopped::Marked(index)) => {
                self.mm.mark_again(file.inode, index);
                Stopped::Time
            }
            (false, _) => Stopped::Time,
        }
    }
}
