//! Taking pages out of the page cache because the file ends before them (`mm/truncate.c`), and the end of
//! files.
//!
//! A page that is being read or written has to be waited for; then it loses its PTEs, what is dirty in it
//! is given up, and it is free.

use crate::fs::metadata::pay;
use crate::ids::InodeId;
use crate::kernel::InodeShadows;
use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::mm::alloc::xarray::CHUNK_SHIFT;
use crate::mm::frames::pte::Pte;
use crate::mm::io;
use crate::mm::types::{Pfn, flag};
use crate::mm::writeback::fs_writeback::{Range, fsync_range};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

impl Mm {
    /// `unmap_mapping_range` of one page.
    fn unmap_page(&mut self, pfn: Pfn) {
        let page = self.pages[pfn];
        let mut unmapped = 0;
        self.for_each_file_pte(pfn, page, |pte| {
            unmapped += 1;
            *pte = Pte::default();
        });
        let page = &mut self.pages[pfn];
        page.mapcount -= unmapped;
        debug_assert!(!page.is_mapped());
    }

    /// Forgets the shadows of a file from an offset on, and frees what led to them.
    pub(in crate::mm) fn forget_shadows(&mut self, inode: InodeId, start: u32) {
        let file = &mut self.inodes[inode];
        if file.pages.shadows() > 0 {
            file.pages.forget_shadows(&mut self.mappings, start);
            self.remove_shadow_nodes(inode, start >> CHUNK_SHIFT);
        }
        let file = &mut self.inodes[inode];
        let pages = &file.pages;
        for object in file.nodes.retain(|leaf| pages.has_leaf(leaf)) {
            self.free_object(Cache::RadixTreeNode, object);
        }
    }
}

impl World {
    /// Takes out what is under no I/O, from `from` on; a page that is, is where it stopped.
    fn truncate_ready_pages(&mut self, inode: InodeId, from: &mut u32) -> Option<Pfn> {
        while let Some(index) = self.mm.inodes[inode].pages.next_page(*from) {
            let pfn = self.mm.inodes[inode].pages.page(index)?;
            *from = index;
            let head = self.mm.pages.head(pfn);
            let page = &self.mm.pages[head];
            if page.has(flag::LOCKED) || page.write_under_way().is_some() {
                return Some(head);
            }
            self.mm.split_folio(head);
            self.mm.rescue_page(pfn);
            if self.mm.pages[pfn].is_mapped() {
                self.mm.unmap_page(pfn);
            }
            self.cancel_dirty_page(pfn);
            self.mm.nfs_clear_commit(inode, index);
            self.mm.delete_from_page_cache(pfn, None);
            // Isolated by reclaim: it frees what belongs to nobody.
            if self.mm.pages[pfn].has(flag::LRU) {
                self.mm.release_page(pfn);
            }
        }
        None
    }

    /// `invalidate_mapping_pages`: clean pages that nobody maps go, and all shadows. How many there were of both.
    pub(in crate::mm) fn invalidate_mapping_pages(&mut self, inode: InodeId) -> u64 {
        let pages = &self.mm.inodes[inode].pages;
        let before = pages.len() + pages.shadows();
        let clean: Vec<Pfn> = self.mm.inodes[inode].pages.clean().collect();
        for pfn in clean {
            // Tails are on no list: a folio goes with its head.
            let page = &self.mm.pages[pfn];
            let busy = page.has_any(flag::LOCKED | flag::WRITEBACK | flag::DIRTY);
            let busy = busy || !page.has(flag::LRU) || self.is_unstable(pfn);
            let busy = busy || self.mm.has_busy_buffers(pfn);
            if !busy && !self.mm.is_folio_mapped(pfn) {
                self.mm.delete_from_page_cache(pfn, None);
                self.mm.lru_del(pfn);
                self.mm.free_folio(pfn);
            }
        }
        self.mm.forget_shadows(inode, 0);
        self.mm.mapping_lost_pages(inode);
        before - self.mm.inodes[inode].pages.len()
    }

    /// A file got shorter, or is gone: what lay behind its end is free.
    fn free_places(&mut self, inode: InodeId, page: u32) {
        let file = &mut self.mm.inodes[inode];
        let runs = file.extents.cut(page);
        let left = file.extents.iter().count();
        self.mounts.get(file.fs).release(&runs);
        self.mm.forget_extents(inode, left);
        self.nfs_truncate(inode, page);
    }
}

/// `truncate_inode_pages`: all pages from `start` on.
async fn truncate_inode_pages(sys: &Sys, inode: InodeId, start: u32) {
    let mut from = start;
    loop {
        let busy = sys.world().truncate_ready_pages(inode, &mut from);
        let Some(pfn) = busy else {
            break;
        };
        let flags = {
            let page = sys.world().mm.pages[pfn];
            page.write_under_way().unwrap_or(flag::LOCKED)
        };
        io::wait_on_page(sys, pfn, flags).await;
    }
    sys.world().mm.forget_shadows(inode, start);
}

/// `drop_caches`: clean pages of all files that nobody maps. Up to 5.14 files with shadows alone keep these.
pub(crate) async fn drop_pagecache(sys: &Sys) {
    let inodes = {
        let mm = &mut sys.world().mm;
        mm.shrinkers.stat.drop_pagecache += 1;
        mm.inodes.keys()
    };
    for inode in inodes {
        let nothing = {
            let mm = &sys.world().mm;
            let ignores = mm.kernel.mechanisms.shrinker.inode_shadows == InodeShadows::Ignored;
            let pages = &mm.inodes[inode].pages;
            pages.len() == 0 && (ignores || pages.shadows() == 0)
        };
        if nothing {
            continue;
        }
        let cost = {
            let world = &mut *sys.world();
            let before = world.mm.nr_file_pages;
            world.invalidate_mapping_pages(inode);
            (before - world.mm.nr_file_pages) * world.costs.drop_page_ns()
        };
        sys.charge_kernel(cost).await;
    }
}

/// `truncate_setsize`, and the file system's part: sets the size of a file.
pub(crate) async fn truncate(sys: &Sys, inode: InodeId, size: u64) {
    sys.world().mm.inodes[inode].size = size;
    let Ok(pages) = u32::try_from(size.div_ceil(PAGE_SIZE)) else {
        return;
    };
    truncate_inode_pages(sys, inode, pages).await;
    // Somebody may have made it longer again while this waited.
    let fs = {
        let world = &mut *sys.world();
        if world.mm.inodes[inode].size <= size {
            world.free_places(inode, pages);
        }
        world.update_mtime(inode);
        world.mm.inodes[inode].fs
    };
    pay(sys, fs).await;
}

/// `unlink(2)`: the name is gone, and the file with its last user.
pub(crate) async fn unlink(sys: &Sys, inode: InodeId) {
    let fs = {
        let world = &mut *sys.world();
        world.note_unlinked(inode);
        world.mm.inodes[inode].linked = false;
        world.mm.d_delete(inode);
        world.mm.inodes[inode].fs
    };
    pay(sys, fs).await;
    evict_unused(sys, inode).await;
}

/// `fput`: a user less. What was written to a file on a server goes there first (`nfs_file_flush`).
pub(crate) async fn close(sys: &Sys, inode: InodeId) {
    let flushes = {
        let world = sys.world();
        let device = world.mm.inodes[inode].device;
        world.nfs.is_remote(device) && !world.sched.current_killed()
    };
    if flushes {
        fsync_range(sys, inode, Range::ALL).await;
    }
    {
        let world = &mut *sys.world();
        let file = &mut world.mm.inodes[inode];
        file.users -= 1;
        // xfs_release: what was allocated ahead goes back, unless somebody is just cutting the file short.
        if file.users == 0
            && let Ok(pages) = u32::try_from(file.len())
            && file.pages.next_page(pages).is_none()
        {
            world.free_places(inode, pages);
        }
        if let Some(name) = world.mm.inodes[inode].name {
            world.mm.dput(name);
        }
    }
    evict_unused(sys, inode).await;
}

/// `iput`, `evict_inode` of a file that has neither a name nor users.
async fn evict_unused(sys: &Sys, inode: InodeId) {
    let unused = {
        let world = sys.world();
        let file = &world.mm.inodes[inode];
        !file.linked && file.users == 0
    };
    if unused {
        truncate(sys, inode, 0).await;
        let listed = sys.world().mm.forget_dirty_inode(inode);
        if listed {
            let wb = sys.world().mm.inodes[inode].wb();
            sys.hold_list_lock(wb, 0).await;
        }
        let fs = {
            let world = &mut *sys.world();
            world.mm.destroy_inode(inode);
            let file = &mut world.mm.inodes[inode];
            let (fs, place) = (file.fs, std::mem::take(&mut file.place));
            world.mounts.get(fs).free_inode(place);
            fs
        };
        pay(sys, fs).await;
    }
}
