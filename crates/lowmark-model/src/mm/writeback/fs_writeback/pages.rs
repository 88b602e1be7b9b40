//! Writing the pages of an inode (`write_cache_pages`, and the file system's part).
//!
//! 1. Dirty pages are taken in order of their offset, from where the last turn stopped, and once round.
//! 2. One that has no place yet gets it together with all dirty pages behind it that have none either.
//! 3. A page that is under writeback already, or that a journal is writing, is left alone, or with data integrity waited
//!    for. A page that a journal has written is clean at once, without I/O.

use crate::device::{Dir, Io};
use crate::fs::metadata::pay;
use crate::fs::{Request, jbd, xfs};
use crate::ids::InodeId;
use crate::mm::io;
use crate::mm::types::{Pfn, Tag, flag};
use crate::nfs::{How, nfs_commit_and_wait};
use crate::world::{Sys, World};

/// Pages of a file, the last one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Range {
    pub(crate) const ALL: Range = Range {
        first: 0,
        last: u32::MAX,
    };
}

/// Pages submitted before their CPU time is spent.
pub(crate) const BATCH: u64 = 64;

/// Where writing stops for a moment.
enum Stopped {
    /// Nothing (more) to write.
    Done,
    /// Enough for now.
    Batch,
    /// The current task waits for a free request for this page.
    Blocked(Io),
    /// With data integrity this page is waited for, while it has the flags.
    Wait(Pfn, u16),
}

/// `do_writepages`: up to `left` pages of the range. With `sync` those that are dirty now, however many
/// there are.
pub(crate) async fn writepages(
    sys: &Sys,
    inode: InodeId,
    range: Range,
    left: &mut u64,
    sync: bool,
) {
    let mut at = match (sync, range == Range::ALL) {
        (true, _) => {
            let file = &mut sys.world().mm.inodes[inode];
            file.pages.tag_for_writeback(range.first, range.last);
            range.first
        }
        (false, true) => sys.world().mm.inodes[inode].writeback.index,
        (false, false) => range.first,
    };
    let wb = {
        let world = &mut *sys.world();
        let wb = world.mm.inodes[inode].wb();
        world.bandwidth_estimate_start(wb);
        wb
    };
    // range_cyclic: once round.
    let mut wraps = !sync && range == Range::ALL && at > 0;
    let congested = sys.world().nfs_holds_flusher(inode, sync);
    if congested {
        return;
    }
    sys.start_plug();
    let how = if sync { How::Sync } else { How::Flush };
    sys.world().nfs_pageio_init(inode, how);
    while *left > 0 {
        let before = *left;
        let stopped = sys
            .world()
            .write_pages(inode, &mut at, range.last, left, sync);
        match stopped {
            Stopped::Done if wraps => {
                wraps = false;
                at = 0;
            }
            Stopped::Done => break,
            Stopped::Batch => {}
            Stopped::Blocked(io) => {
                sys.suspend().await;
                io::submit(sys, io).await;
            }
            Stopped::Wait(pfn, flags) => io::wait_on_page(sys, pfn, flags).await,
        }
        sys.charge_kernel((before - *left) * sys.costs.file_page_ns)
            .await;
    }
    sys.world().nfs_pageio_complete();
    sys.finish_plug();
    let fs = sys.world().mm.inodes[inode].fs;
    pay(sys, fs).await;
    let world = &mut *sys.world();
    world.turn_update_bandwidth(wb);
    if !sync && range == Range::ALL {
        world.mm.inodes[inode].writeback.index = at;
    }
}

impl World {
    /// Submits pages from `at` on.
    fn write_pages(
        &mut self,
        inode: InodeId,
        at: &mut u32,
        last: u32,
        left: &mut u64,
        sync: bool,
    ) -> Stopped {
        let tag = if sync { Tag::Towrite } else { Tag::Dirty };
        let mut batch = BATCH;
        let folios = self.mm.kernel.mechanisms.writeback.write_folios;
        let fs = self.mm.inodes[inode].fs;
        let large = self.mounts.get(fs).has_large_folios(folios);
        while *left > 0 {
            if batch == 0 {
                return Stopped::Batch;
            }
            let file = &self.mm.inodes[inode];
            let next = file
                .pages
                .next_tagged(*at, tag)
                .filter(|&next| next <= last);
            let Some((index, pfn)) = next.and_then(|next| Some((next, file.pages.page(next)?)))
            else {
                return Stopped::Done;
            };
            if let Some(flags) = self.mm.pages[pfn].write_under_way() {
                if sync {
                    *at = index;
                    return Stopped::Wait(pfn, flags);
                }
                *at = index + 1;
                continue;
            }
            if self.mm.is_written_by_journal(pfn) {
                self.write_nothing(pfn);
                *at = index + 1;
                *left -= 1;
                batch -= 1;
                continue;
            }
            let Some(position) = self.place_of(inode, index) else {
                debug_assert!(false, "room for a dirty page is kept");
                return Stopped::Done;
            };
            let device = self.mm.inodes[inode].device;
            self.mm.begin_page_writeback(pfn);
            *at = index + 1;
            *left -= 1;
            batch -= 1;
            let io = Io {
                device,
                dir: Dir::Write,
                sync,
                position,
                pfn,
                in_folio: large,
                own_bio: false,
                needs_bio: false,
            };
            if let Some(io) = self.try_submit(io) {
                return Stopped::Blocked(io);
            }
        }
        Stopped::Done
    }

    /// Where a dirty page lies on its device; it gets its place now if it has none.
    pub(crate) fn place_of(&mut self, inode: InodeId, page: u32) -> Option<u64> {
        let file = &self.mm.inodes[inode];
        if let Some(position) = file.extents.find(page) {
            return Some(position);
        }
        let hole = file.extents.hole(page);
        // The dirty pages in a row from here on.
        let dirty = |&at: &u32| file.pages.has_tag(at, Tag::Dirty);
        let need = (page..page.saturating_add(hole)).take_while(dirty).count() as u32;
        let request = Request {
            page,
            need,
            hole,
            // Nothing is allocated ahead of a file that nobody has open (xfs_free_eofblocks at its close,
            // i_writecount in ext4_mb_normalize_request).
            extends: file.users > 0 && u64::from(page) + u64::from(need) >= file.len(),
            goal: file.extents.goal(page).unwrap_or(file.home),
        };
        let fs = file.fs;
        let mount = self.mounts.get(fs);
        let extent = mount.allocate(&request)?;
        mount.unreserve(u64::from(extent.length.min(need)));
        self.mm.inodes[inode].extents.add(extent);
        self.map_blocks(inode);
        self.note_xfs_inode(inode);
        Some(extent.start)
    }
}

/// `filemap_fdatawait_range`: until nothing of the range is under writeback.
pub(crate) async fn wait_on_writeback(sys: &Sys, inode: InodeId, range: Range) {
    let mut from = range.first;
    loop {
        let busy = {
            let world = sys.world();
            let pages = &world.mm.inodes[inode].pages;
            let index = pages.next_tagged(from, Tag::Writeback);
            index
                .filter(|&index| index <= range.last)
                .and_then(|index| Some((index, pages.page(index)?)))
        };
        let Some((index, pfn)) = busy else {
            return;
        };
        from = index;
        io::wait_on_page(sys, pfn, flag::WRITEBACK).await;
    }
}

/// `vfs_fsync_range` of data: writes what is dirty in the range and waits until the device has it, in a server
/// its disk.
pub(crate) async fn fsync_range(sys: &Sys, inode: InodeId, range: Range) {
    writepages(sys, inode, range, &mut u64::MAX.clone(), true).await;
    wait_on_writeback(sys, inode, range).await;
    nfs_commit_and_wait(sys, inode).await;
    jbd::commit_and_wait(sys, inode).await;
    xfs::fsync(sys, inode).await;
    let world = &mut *sys.world();
    let file = &world.mm.inodes[inode];
    let clean = file.pages.tagged(Tag::Dirty) == 0 && file.commit_info.pages().len() == 0;
    if clean && !file.writeback.sync {
        world.mm.forget_dirty_inode(inode);
    }
}
