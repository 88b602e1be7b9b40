//! Writing through the page cache (`generic_file_buffered_write`, `generic_perform_write`).
//!
//! Page by page: a page is found or made (and read first if only part of it is written and the file has
//! data there), it gets its bytes and becomes dirty. At the end of each folio, which is a page or, by kernel and
//! file system, as many as the write fills, the writer looks whether it has to wait.

use crate::fs::metadata::pay;
use crate::kernel::{DirtySpread, StablePages, WriteAccess};
use crate::mm::alloc::slub::preload_file_nodes;
use crate::mm::files::buffer_head::create_buffers;
use crate::mm::files::filemap::{OpenFile, page_cache_read};
use crate::mm::frames::folio::MAX_PAGECACHE_ORDER;
use crate::mm::io;
use crate::mm::memcontrol::{self, alloc_charged};
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::mm::writeback::page_writeback::{Due, balance_dirty_pages};
use crate::time::Mode;
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_spec::machine::PAGE_SIZE;

/// Where the folio ends that a write from `at` to `end` begins with (`fgf_set_order`, `__filemap_get_folio`): as large
/// as what is left to write, and aligned.
fn folio_end(at: u64, end: u64, large: bool) -> u64 {
    let (first, bytes) = (at / PAGE_SIZE, end - at);
    let order = match (bytes / PAGE_SIZE).checked_ilog2() {
        Some(order) if large => order
            .min(MAX_PAGECACHE_ORDER as u32)
            .min(first.trailing_zeros()),
        _ => 0,
    };
    end.min((first + (1 << order)) * PAGE_SIZE)
}

/// Why a write cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteError {
    OutOfMemory,
    /// ENOSPC
    NoSpace,
}

impl From<OutOfMemory> for WriteError {
    fn from(_: OutOfMemory) -> WriteError {
        WriteError::OutOfMemory
    }
}

/// Where a write has to stop.
enum Stopped {
    /// At its end.
    Done,
    /// Something else happens first.
    Time,
    /// The writer has to look how many pages are dirty, once the time before has passed.
    Look(Due, bool),
    /// It needs a page.
    Allocate,
    /// The CPU needs nodes for the tree of the file.
    Preload,
    /// The page there lacks its buffer head.
    Buffers(u32),
    /// It needs what the file has here.
    Read(u32),
    Wait(Pfn, u16),
    NoSpace,
}

/// Writes the bytes from `pos` to `end`, and makes the file longer if that is behind its end. The bytes
/// written: fewer if the task was killed.
pub(crate) async fn write(
    sys: &Sys,
    file: &OpenFile,
    pos: u64,
    end: u64,
    gfp: Gfp,
) -> Result<u64, WriteError> {
    let memcg = sys.world().current_memcg();
    // grab_cache_page_write_begin, since 0faa70cb0f6b (3.3)
    let gfp = sys.world().mm.mapping_gfp(file.inode, gfp);
    let gfp = match sys.world().mm.kernel.mechanisms.writeback.dirty_spread {
        DirtySpread::Anywhere => gfp,
        DirtySpread::Zone | DirtySpread::Node => gfp.with(gfp::WRITE),
    };
    let (mut at, mut folio, mut page) = (pos, pos, None);
    sys.return_to_user().await;
    sys.charge_kernel(sys.costs.syscall_ns).await;
    let fs = {
        let world = &mut *sys.world();
        world.update_mtime(file.inode);
        world.mm.inodes[file.inode].fs
    };
    pay(sys, fs).await;
    let result = loop {
        let stopped = sys
            .world()
            .write_cached(file, (&mut at, &mut folio), end, gfp, &mut page);
        match stopped {
            Stopped::Done => break Ok(at - pos),
            Stopped::Time => sys.suspend().await,
            Stopped::Look(due, passed) => {
                if !passed {
                    sys.suspend().await;
                }
                balance_dirty_pages(sys, due).await;
            }
            Stopped::Allocate => match alloc_charged(sys, gfp, memcg).await {
                Ok(pfn) => page = Some(pfn),
                Err(error) => break Err(error.into()),
            },
            Stopped::Preload => {
                if let Err(error) = preload_file_nodes(sys, gfp).await {
                    break Err(error.into());
                }
            }
            Stopped::Buffers(index) => {
                if let Err(error) = create_buffers(sys, file.inode, index).await {
                    break Err(error.into());
                }
            }
            Stopped::Read(index) => {
                if let Err(error) = page_cache_read(sys, file.inode, index, gfp).await {
                    break Err(error.into());
                }
            }
            Stopped::Wait(pfn, flags) => io::wait_on_page(sys, pfn, flags).await,
            Stopped::NoSpace => break Err(WriteError::NoSpace),
        }
        if sys.world().sched.current_killed() {
            break Ok(at - pos);
        }
    };
    // Blocks that the file has got.
    pay(sys, fs).await;
    if let Some(unneeded) = page {
        sys.world().mm.free_page(unneeded);
    }
    let over = sys.world().take_over_high();
    if let Some(over) = over {
        memcontrol::handle_over_high(sys, over).await;
    }
    result
}

impl World {
    /// Writes as far as it goes without sleeping: `at` is how far it is, `folio` where the current folio ends.
    fn write_cached(
        &mut self,
        file: &OpenFile,
        (at, folio): (&mut u64, &mut u64),
        end: u64,
        gfp: Gfp,
        spare: &mut Option<Pfn>,
    ) -> Stopped {
        let undisturbed = self.sched.undisturbed();
        let (mut spent, mut stopped) = (0, Stopped::Done);
        let fs = self.mm.inodes[file.inode].fs;
        let folios = self.mm.kernel.mechanisms.writeback.write_folios;
        let large = self.mounts.get(fs).has_large_folios(folios);
        while *at < end && spent <= undisturbed {
            if *at >= *folio {
                *folio = folio_end(*at, end, large);
            }
            let index = (*at / PAGE_SIZE) as u32;
            let bytes = (PAGE_SIZE - *at % PAGE_SIZE).min(end - *at);
            let pfn = match self.page_to_write(file, index, bytes, gfp, spare) {
                Ok(pfn) => pfn,
                Err(stop) => {
                    stopped = stop;
                    break;
                }
            };
            if self.lacks_buffers(file.inode, pfn) && !self.create_buffers_at_once(pfn) {
                stopped = Stopped::Buffers(index);
                break;
            }
            let joins = !self.mm.pages[pfn].has_dirty_buffers();
            let Some(locked) = self.set_page_dirty(pfn) else {
                stopped = Stopped::NoSpace;
                break;
            };
            if joins {
                self.journal_dirty_data(file.inode, index);
            }
            spent += locked;
            if self.mm.kernel.mechanisms.reclaim.write_access == WriteAccess::Counts {
                self.mm.mark_page_accessed(pfn);
            }
            *at += bytes;
            let inode = &mut self.mm.inodes[file.inode];
            inode.size = inode.size.max(*at);
            let copied = (self.costs.copy_page_ns * bytes).div_ceil(PAGE_SIZE);
            spent += self.memory_time(copied) + self.costs.file_page_ns + self.costs.dirty_page_ns;
            if *at >= *folio
                && let Some(due) = self.dirty_check()
            {
                stopped = Stopped::Look(due, true);
                break;
            }
        }
        // A step without cost must not yield: two tasks could go on yielding to each other for ever.
        let passed = spent == 0 || self.sched.spend(Mode::System, spent);
        match (passed, stopped) {
            (true, stopped) => stopped,
            (false, Stopped::Look(due, _)) => Stopped::Look(due, false),
            // Whatever stopped it is looked at again when the time has passed.
            (false, _) => Stopped::Time,
        }
    }

    /// `write_begin`: the page that gets the bytes.
    fn page_to_write(
        &mut self,
        file: &OpenFile,
        index: u32,
        bytes: u64,
        gfp: Gfp,
        spare: &mut Option<Pfn>,
    ) -> Result<Pfn, Stopped> {
        let inode = &self.mm.inodes[file.inode];
        if let Some(pfn) = inode.pages.page(index) {
            let head = self.mm.pages.head(pfn);
            let page = &self.mm.pages[head];
            let stable = self.mm.kernel.mechanisms.writeback.stable_pages == StablePages::Always;
            // A page on its way to a server waits for the answer (nfs_lock_request).
            let waits = page.has(flag::WRITEBACK) && (stable || self.nfs.is_remote(inode.device));
            return match (page.has(flag::LOCKED), waits) {
                (true, _) => Err(Stopped::Wait(head, flag::LOCKED)),
                (_, true) => Err(Stopped::Wait(head, flag::WRITEBACK)),
                _ => Ok(pfn),
            };
        }
        // What of the page is not written, and lies within the file, is read.
        let within = u64::from(index) * PAGE_SIZE < inode.size;
        if bytes < PAGE_SIZE && within && inode.extents.find(index).is_some() {
            return Err(Stopped::Read(index));
        }
        if self.mm.slub.needs_preload(self.mm.cpu) {
            return Err(Stopped::Preload);
        }
        let Some(pfn) = spare
            .take()
            .or_else(|| self.alloc_charged_fast(gfp, self.current_memcg()))
        else {
            return Err(Stopped::Allocate);
        };
        if !self.add_to_page_cache(file.inode, index, pfn) {
            *spare = Some(pfn);
            return Err(Stopped::NoSpace);
        }
        Ok(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::folio_end;

    /// Bytes from and to, in pages; where the folios of the write end.
    #[test]
    fn folios_are_as_large_as_what_is_written_and_aligned() {
        let folios = |from: u64, to: u64, large| {
            let (mut at, mut ends) = (from, Vec::new());
            while at < to {
                at = folio_end(at, to, large);
                ends.push(at);
            }
            ends
        };
        const PAGE: u64 = 4096;
        assert_eq!(folios(0, 16 * PAGE, true), [16 * PAGE]);
        assert_eq!(folios(0, 3 * PAGE, false), [PAGE, 2 * PAGE, 3 * PAGE]);
        // Not aligned: one page, two, and so on; what is left over likewise.
        assert_eq!(
            folios(PAGE, 16 * PAGE, true),
            [2, 4, 8, 16].map(|page| page * PAGE)
        );
        assert_eq!(
            folios(16 * PAGE, 23 * PAGE + 5, true),
            [20, 22, 23, 24].map(|page| (page * PAGE).min(23 * PAGE + 5))
        );
        // Within a page up to its end.
        assert_eq!(folios(100, 3 * PAGE, true), [2 * PAGE, 3 * PAGE]);
        assert_eq!(folios(0, 1 << 22, true), [1 << 21, 1 << 22]);
    }
}
