//! Reading ahead of who reads a file (`mm/readahead.c`, on-demand readahead of 2.6.23 and later).
//!
//! 1. A window has a part that is wanted now and a part ahead of that, whose first page gets the mark
//!    PG_readahead. Who comes to the mark starts the next window, twice as long or four times, up to
//!    `ra_pages`.
//! 2. A miss where the last window ended, or at the mark, goes on sequentially; a miss at the file's
//!    beginning or next to the last read starts anew; pages that happen to lie before it (another reader
//!    of the same file) are taken for a stream too; what is left is a random read of just what is wanted.
//! 3. A page of a window that was reclaimed before its time is a miss within the window, and starts anew
//!    with a small one.
//!
//! A fault on a mapped file reads around the page instead, as long as such faults do not mostly miss.
//!
//! Where files are read into large folios, windows are those of [`folios`].

mod folios;

use crate::device::Io;
use crate::ids::InodeId;
use crate::kernel::mechanisms::Files;
use crate::kernel::{ContextReadahead, ForcedReadahead, LongReads, OwnMark};
use crate::mm::alloc::mmzone::Zone;
use crate::mm::alloc::slub::preload_file_nodes;
use crate::mm::files::filemap::OpenFile;
use crate::mm::files::page_tree::PageTree;
use crate::mm::io;
use crate::mm::memcontrol::alloc_charged;
use crate::mm::types::{Gfp, Lru, Pfn, flag};
use crate::nfs::How;
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

/// Misses of faults above which reading around is not worth it (`MMAP_LOTSAMISS`).
const MMAP_LOTSAMISS: u32 = 100;

/// What is remembered of the reads of an open file (`struct file_ra_state`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadaheadState {
    /// First page of the window.
    start: u32,
    /// Its pages.
    size: u32,
    /// Pages from the mark to its end.
    async_size: u32,
    /// Page read last, and where in a page the next byte is.
    prev: Option<(u32, u64)>,
    /// The same of the last call of read(2) (`prev_pos`); none before the first one has ended.
    prev_call: Option<(u32, u64)>,
    /// Faults that missed, less those that hit.
    mmap_miss: u32,
    /// Order of the folios of the window.
    order: usize,
}

/// Pages to read: `pages` from `start` on, the mark on the one `ahead` pages before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u32,
    pub(crate) pages: u32,
    pub(crate) ahead: u32,
}

/// Why readahead is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Miss,
    Mark,
}

/// `get_init_ra_size`
fn initial_size(wanted: u32, max: u32) -> u32 {
    let size = wanted.max(1).next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// `get_next_ra_size`
fn next_size(size: u32, max: u32) -> u32 {
    let factor = if size < max / 16 { 4 } else { 2 };
    (size * factor).min(max)
}

impl ReadaheadState {
    /// Whether a read that is at this byte comes to a folio anew. One that goes on where it stopped in a page does not,
    /// nor does one that reads the same whole page again; of a large folio (`pos_same_folio`) every read that goes on
    /// in it.
    pub(super) fn comes_to(&self, at: u64, order: usize) -> bool {
        let index = (at / PAGE_SIZE) as u32;
        match order {
            0 => self.prev != Some((index, at % PAGE_SIZE)),
            _ => self
                .prev
                .is_none_or(|(last, _)| last >> order != index >> order),
        }
    }

    /// A read has taken what it wants of a page and is here now.
    pub(super) fn read_to(&mut self, index: u32, at: u64) {
        self.prev = Some((index, at % PAGE_SIZE));
    }

    /// A call of read(2) is over.
    pub(super) fn end_of_read(&mut self) {
        self.prev_call = self.prev;
    }

    /// `ondemand_readahead`: what to read for a reader that wants `wanted` pages from `offset` on, in windows of up to
    /// `max` pages.
    fn ondemand(
        &mut self,
        cached: &PageTree,
        (offset, wanted): (u32, u32),
        why: Why,
        rules: Files,
        max: u32,
    ) -> Window {
        let expected = offset == self.mark() || offset == self.end();
        let next_to_last = self
            .prev_call
            .is_some_and(|(last, _)| offset.wrapping_sub(last) <= 1);
        if offset == 0 {
            self.begin(offset, wanted, max);
        } else if expected {
            self.start = self.end();
            self.size = next_size(self.size, max);
            self.async_size = self.size;
        } else if why == Why::Mark {
            // The mark of another reader's window: it ends where the pages end.
            let start = cached.next_hole(offset + 1, max);
            if start - offset > max {
                return Window {
                    start,
                    pages: 0,
                    ahead: 0,
                };
            }
            self.start = start;
            self.size = next_size(start - offset + wanted, max);
            self.async_size = self.size;
        } else if wanted > max || next_to_last {
            self.begin(offset, wanted, max);
        } else if !self.context(cached, offset, wanted, max, rules.context_readahead) {
            return Window {
                start: offset,
                pages: wanted,
                ahead: 0,
            };
        }
        if offset == self.start && self.size == self.async_size {
            self.reach_own_mark(rules.own_mark, max);
        }
        self.window()
    }

    /// A reader that would come to the mark at once gets the next window with this one.
    fn reach_own_mark(&mut self, rule: OwnMark, max: u32) {
        let next = next_size(self.size, max);
        if rule == OwnMark::WithinWindow && self.size + next > max {
            (self.size, self.async_size) = (max, max / 2);
        } else {
            (self.size, self.async_size) = (self.size + next, next);
        }
    }

    /// Where the window ends.
    fn end(&self) -> u32 {
        self.start.saturating_add(self.size)
    }

    /// The page with the mark.
    fn mark(&self) -> u32 {
        self.end() - self.async_size
    }

    fn begin(&mut self, offset: u32, wanted: u32, max: u32) {
        self.start = offset;
        self.size = initial_size(wanted, max);
        self.async_size = if self.size > wanted {
            self.size - wanted
        } else {
            self.size
        };
    }

    /// `try_context_readahead`: pages before the one wanted are in memory, so somebody reads in order.
    fn context(
        &mut self,
        cached: &PageTree,
        offset: u32,
        wanted: u32,
        max: u32,
        rule: ContextReadahead,
    ) -> bool {
        let history = cached.history(offset, max);
        let needed = match rule {
            ContextReadahead::AnyPage => 0,
            ContextReadahead::MoreThanWanted => wanted,
        };
        if history <= needed {
            return false;
        }
        // Everything from the beginning on: a stream.
        let history = if history >= offset {
            history * 2
        } else {
            history
        };
        self.start = offset;
        (self.size, self.async_size) = match rule {
            ContextReadahead::AnyPage => {
                let size = initial_size(history + wanted, max);
                (size, size)
            }
            ContextReadahead::MoreThanWanted => ((history + wanted).min(max), 1),
        };
        true
    }

    fn window(&self) -> Window {
        Window {
            start: self.start,
            pages: self.size,
            ahead: self.async_size,
        }
    }

    /// A fault found its page (`do_async_mmap_readahead`).
    pub(in crate::mm) fn fault_hit(&mut self) {
        self.mmap_miss = self.mmap_miss.saturating_sub(1);
    }

    /// `do_sync_mmap_readahead` of a mapping without advice: the pages around a fault that missed, unless
    /// such faults mostly miss.
    pub(in crate::mm) fn around(&mut self, offset: u32, max: u32) -> Option<Window> {
        if self.mmap_miss < MMAP_LOTSAMISS * 10 {
            self.mmap_miss += 1;
        }
        if self.mmap_miss > MMAP_LOTSAMISS {
            return None;
        }
        self.start = offset.saturating_sub(max / 2);
        self.size = max;
        self.async_size = max / 4;
        self.order = 0;
        Some(self.window())
    }
}

/// `page_cache_sync_readahead`: the page at `index` is missing, and `wanted` pages from it on are wanted.
pub(crate) async fn sync(sys: &Sys, file: &mut OpenFile, index: u32, wanted: u32, gfp: Gfp) {
    let large = sys.world().reads_large_folios(file.inode);
    if large {
        folios::sync(sys, file, index, wanted, gfp).await
    } else {
        ondemand(sys, file, index, wanted, Why::Miss, gfp).await
    }
}

/// `page_cache_async_readahead`: the page at `index` had the mark.
pub(crate) async fn marked(sys: &Sys, file: &mut OpenFile, index: u32, wanted: u32, gfp: Gfp) {
    let large = sys.world().reads_large_folios(file.inode);
    if large {
        return folios::marked(sys, file, index, wanted, gfp).await;
    }
    // Reading ahead has to wait while the device is congested (inode_read_congested).
    let congested = {
        let world = sys.world();
        let device = world.mm.inodes[file.inode].device;
        world.block.is_congested(device, true)
    };
    if !congested {
        ondemand(sys, file, index, wanted, Why::Mark, gfp).await;
    }
}

async fn ondemand(sys: &Sys, file: &mut OpenFile, index: u32, wanted: u32, why: Why, gfp: Gfp) {
    let window = {
        let world = sys.world();
        let inode = &world.mm.inodes[file.inode];
        let max = world.read_pages_at_once(file.inode, wanted);
        let rules = world.mm.kernel.mechanisms.files;
        file.readahead
            .ondemand(&inode.pages, (index, wanted), why, rules, max)
    };
    read_window(sys, file.inode, window, gfp).await;
}

/// `force_page_cache_readahead`: a range of pages of a file that somebody will need, as many as one call reads, in pieces of
/// 2 MiB.
pub(crate) async fn force(sys: &Sys, inode: InodeId, range: std::ops::Range<u32>, gfp: Gfp) {
    const PIECE: u32 = (2 << 20) / PAGE_SIZE as u32;
    let most = sys.world().forced_readahead(inode);
    let mut start = range.start;
    let end = range.end.min(start.saturating_add(most));
    while start < end {
        let pages = PIECE.min(end - start);
        let window = Window {
            start,
            pages,
            ahead: 0,
        };
        read_window(sys, inode, window, gfp).await;
        start += pages;
    }
}

/// `__do_page_cache_readahead`: the pages of a window that are not in memory, none beyond the end of the
/// file. All are allocated first, as far as there is memory, then their reads are submitted together.
pub(crate) async fn read_window(sys: &Sys, inode: InodeId, window: Window, gfp: Gfp) {
    let large = sys.world().reads_large_folios(inode);
    if large {
        return folios::read_window(sys, inode, window, 0, gfp).await;
    }
    let missing: Vec<u32> = {
        let world = sys.world();
        let file = &world.mm.inodes[inode];
        let end = (u64::from(window.start) + u64::from(window.pages)).min(file.len()) as u32;
        let all = window.start..end.max(window.start);
        all.filter(|&index| file.pages.page(index).is_none())
            .collect()
    };
    if missing.is_empty() {
        return;
    }
    let memcg = sys.world().current_memcg();
    let mut pages = Vec::with_capacity(missing.len());
    let nodes_gfp = sys.world().mm.mapping_gfp(inode, gfp);
    let gfp = sys.world().mm.readahead_gfp(inode, gfp);
    for index in missing {
        let Ok(pfn) = alloc_charged(sys, gfp, memcg).await else {
            break;
        };
        pages.push((index, pfn));
        sys.charge_kernel(sys.costs.file_page_ns).await;
    }
    // add_to_page_cache_lru does it for each page, with what a window needs at most in the store.
    if preload_file_nodes(sys, nodes_gfp).await.is_err() {
        let world = &mut *sys.world();
        pages.drain(..).for_each(|(_, pfn)| world.mm.free_page(pfn));
    }
    let mark = u64::from(window.start) + u64::from(window.pages - window.ahead.min(window.pages));
    let mark = (window.ahead > 0).then_some(mark);
    sys.start_plug();
    sys.world().map_blocks(inode);
    sys.world().nfs_pageio_init(inode, How::Read);
    let mut pages = pages.into_iter();
    loop {
        let blocked = sys.world().submit_reads(inode, &mut pages, mark);
        let Some(io) = blocked else {
            break;
        };
        sys.suspend().await;
        io::submit(sys, io).await;
    }
    sys.world().nfs_pageio_complete();
    sys.finish_plug();
}

impl World {
    /// Most pages that one call reads ahead (`max_sane_readahead`; since 600e19afc5f8 `force_page_cache_ra`).
    fn forced_readahead(&self, inode: InodeId) -> u32 {
        const MAX_READAHEAD: u32 = (2 << 20) / PAGE_SIZE as u32;
        let ahead = self.ra_pages(inode);
        match self.mm.kernel.mechanisms.files.forced_readahead {
            ForcedReadahead::HalfOfNode => {
                let node = self.sched.current_node();
                let zones = self.mm.zones.iter().filter(|zone| zone.node == node);
                let of_zone = |zone: &Zone| {
                    let inactive = self.mm.lruvecs[zone.lruvec].len(Lru::InactiveFile);
                    zone.free + inactive
                };
                let pages: u64 = zones.map(of_zone).sum();
                u32::try_from(pages / 2).unwrap_or(u32::MAX)
            }
            ForcedReadahead::TwoMiB => MAX_READAHEAD,
            ForcedReadahead::ReadaheadSize => ahead,
            ForcedReadahead::RequestSize => {
                ahead.max(self.block.io_pages(self.mm.inodes[inode].device))
            }
        }
    }

    /// Pages of a file that are read ahead at most.
    pub(in crate::mm) fn ra_pages(&self, inode: InodeId) -> u32 {
        self.block.ra_pages(self.mm.inodes[inode].device)
    }

    /// The longest window, in pages, for a read(2) that still wants `wanted` pages of a file (`ractl_max_pages`).
    fn read_pages_at_once(&self, inode: InodeId, wanted: u32) -> u32 {
        let ahead = self.ra_pages(inode);
        match self.mm.kernel.mechanisms.files.long_reads {
            LongReads::ReadaheadSize => ahead,
            LongReads::RequestSize => {
                let request = self.block.io_pages(self.mm.inodes[inode].device);
                ahead.max(wanted.min(request))
            }
        }
    }

    /// Whether a file is read into large folios.
    fn reads_large_folios(&mut self, inode: InodeId) -> bool {
        let mechanisms = &self.mm.kernel.mechanisms;
        let fs = self.mm.inodes[inode].fs;
        self.mm.kernel.coverage.read_folios
            && self
                .mounts
                .get(fs)
                .has_large_folios(mechanisms.writeback.write_folios)
    }

    /// Adds pages to the page cache and submits their reads, until one finds no free request.
    fn submit_reads(
        &mut self,
        inode: InodeId,
        pages: &mut impl Iterator<Item = (u32, Pfn)>,
        mark: Option<u64>,
    ) -> Option<Io> {
        for (index, pfn) in pages {
            // Somebody else may have brought it while these were allocated, or the file got shorter.
            let file = &self.mm.inodes[inode];
            let unwanted = file.pages.page(index).is_some() || u64::from(index) >= file.len();
            if unwanted || !self.add_to_page_cache(inode, index, pfn) {
                self.mm.free_page(pfn);
                continue;
            }
            if mark == Some(u64::from(index)) {
                self.mm.pages[pfn].set(flag::RECLAIM);
            }
            let io = self.mm.read_page(inode, index, pfn);
            if let Some(io) = io.and_then(|io| self.try_submit(io)) {
                return Some(io);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Version, versions};
    use crate::mm::frames::mapping::Mappings;

    /// Of the kernel of a version.
    fn rules(version: &str) -> Files {
        versions::at(Version::known(version).expect("known")).files
    }

    const MAX: u32 = 32;

    fn window(start: u32, pages: u32, ahead: u32) -> Window {
        Window {
            start,
            pages,
            ahead,
        }
    }

    /// Windows of a reader of a whole file in requests of `wanted` pages.
    fn sequential(version: &str, wanted: u32, pages: u32) -> Vec<Window> {
        let (mut cached, mut mappings) = (PageTree::default(), Mappings::default());
        let mut state = ReadaheadState::default();
        let mut windows = Vec::new();
        let mut mark = None;
        let mut at = 0;
        while at < pages {
            for index in at..at + wanted {
                let why = match cached.page(index) {
                    None => Why::Miss,
                    Some(_) if mark == Some(index) => Why::Mark,
                    Some(_) => {
                        state.read_to(index, 0);
                        continue;
                    }
                };
                let wanted = (index, at + wanted - index);
                let found = state.ondemand(&cached, wanted, why, rules(version), MAX);
                mark = Some(found.start + found.pages - found.ahead);
                for page in found.start..found.start + found.pages {
                    cached
                        .insert(&mut mappings, InodeId::from(0), page, page)
                        .unwrap();
                }
                windows.push(found);
                state.read_to(index, 0);
            }
            state.end_of_read();
            at += wanted;
        }
        windows
    }

    #[test]
    fn windows_of_a_sequential_reader() {
        // read(2) of 4 KiB: 4 pages at first, then 8, 16, 32, each asked for at the mark of the last one.
        assert_eq!(
            sequential("v6.1", 1, 80)[..5],
            [
                window(0, 4, 3),
                window(4, 8, 8),
                window(12, 16, 16),
                window(28, 32, 32),
                window(60, 32, 32)
            ]
        );
        // 128 KiB at a time: all at once, up to 4.17 with the next window behind it.
        assert_eq!(
            sequential("v4.17", 32, 96)[..2],
            [window(0, 64, 32), window(64, 32, 32)]
        );
        assert_eq!(
            sequential("v4.18", 32, 96)[..3],
            [window(0, 32, 16), window(32, 32, 32), window(64, 32, 32)]
        );
    }

    #[test]
    fn a_random_read_brings_what_is_wanted() {
        let cached = PageTree::default();
        let mut state = ReadaheadState::default();
        state.read_to(7, 0);
        state.end_of_read();
        assert_eq!(
            state.ondemand(&cached, (5000, 3), Why::Miss, rules("v6.1"), MAX),
            window(5000, 3, 0)
        );
    }

    #[test]
    fn pages_before_a_miss_are_a_stream() {
        let (mut cached, mut mappings) = (PageTree::default(), Mappings::default());
        for index in 100..108 {
            cached
                .insert(&mut mappings, InodeId::from(0), index, index)
                .unwrap();
        }
        let decide = |wanted, version| {
            let mut state = ReadaheadState::default();
            state.read_to(900, 0);
            state.end_of_read();
            state.ondemand(&cached, (108, wanted), Why::Miss, rules(version), MAX)
        };
        assert_eq!(decide(2, "v6.1"), window(108, 10, 1));
        assert_eq!(decide(8, "v6.1"), window(108, 8, 0));
        // Up to 3.11 any page before it was enough; a whole window then has the next one behind it.
        assert_eq!(decide(8, "v3.11"), window(108, 64, 32));
    }

    #[test]
    fn faults_that_miss_too_often_read_one_page() {
        let mut state = ReadaheadState::default();
        assert_eq!(state.around(100, MAX), Some(window(84, 32, 8)));
        for _ in 0..200 {
            state.around(100_000, MAX);
        }
        assert_eq!(state.around(5, MAX), None);
        for _ in 0..103 {
            state.fault_hit();
        }
        assert_eq!(state.around(5, MAX), Some(window(0, 32, 8)));
    }
}
