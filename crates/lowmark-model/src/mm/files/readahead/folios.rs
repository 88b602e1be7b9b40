//! Reading ahead into large folios (`page_cache_ra_order` and its callers, 6.17 and later).
//!
//! 1. A miss has its window read page by page. Each window that follows at a mark is read into folios of four times as
//!    many pages as the last one, up to 2 MiB, and ends where such a folio would.
//! 2. Folios are aligned in the file: where a window begins within one, smaller ones lead up to it.
//! 3. Each is in the page cache, locked, as soon as it has been allocated; reads are submitted when all are.
//! 4. Where there is no block of the size any more, or a page is there already, the rest is read page by page, around
//!    what is there, as far as there is memory.

use super::{ReadaheadState, Window, initial_size, next_size};
use crate::ids::InodeId;
use crate::mm::files::filemap::OpenFile;
use crate::mm::files::page_tree::PageTree;
use crate::mm::frames::folio::MAX_PAGECACHE_ORDER;
use crate::mm::io;
use crate::mm::memcontrol::alloc_folio_charged;
use crate::mm::types::{Gfp, Pfn, flag};
use crate::world::{Sys, World};

impl ReadaheadState {
    /// `page_cache_sync_ra`: what to read for a miss, page by page.
    fn sync_window(&mut self, cached: &PageTree, (index, wanted): (u32, u32), max: u32) -> Window {
        // The position after the last byte, where others take its page.
        let ended = |(last, rest): (u32, u64)| last + u32::from(rest == 0);
        let next_to_last = self
            .prev_call
            .is_some_and(|last| index.wrapping_sub(ended(last)) <= 1);
        if index == 0 || wanted > max || next_to_last {
            self.start = index;
            self.size = initial_size(wanted, max);
            self.async_size = if self.size > wanted {
                self.size - wanted
            } else {
                self.size / 2
            };
        } else {
            let history = cached.history(index, max);
            if history <= wanted {
                return Window {
                    start: index,
                    pages: wanted,
                    ahead: 0,
                };
            }
            // All from the beginning on: a stream.
            let history = if history >= index {
                history * 2
            } else {
                history
            };
            self.start = index;
            self.size = (history + wanted).min(max);
            self.async_size = 1;
        }
        self.order = 0;
        self.window()
    }

    /// `page_cache_async_ra`: what to read next, when somebody has come to `index` of a folio of so many pages that had
    /// the mark.
    fn async_window(
        &mut self,
        cached: &PageTree,
        (index, wanted): (u32, u32),
        folio_pages: u32,
        max: u32,
    ) -> Option<Window> {
        if index == self.mark() & !(folio_pages - 1) {
            self.start = self.end();
            self.size = self.size.max(next_size(self.size, max));
        } else {
            // Another reader's: its window ends where the pages end.
            let start = cached.next_hole(index + 1, max);
            if start - index > max {
                return None;
            }
            self.start = start;
            self.size = next_size(start - index + wanted, max);
        }
        self.order += 2;
        let align = 1 << (self.order as u32).min(max.trailing_zeros());
        let aligned = self.end() & !(align - 1);
        if aligned > self.start {
            self.size = aligned - self.start;
        }
        self.async_size = self.size;
        self.order = self
            .order
            .min(MAX_PAGECACHE_ORDER)
            .min(self.size.max(1).ilog2() as usize);
        Some(self.window())
    }
}

/// The page at `index` is missing, and `wanted` pages from it on are wanted.
pub(super) async fn sync(sys: &Sys, file: &mut OpenFile, index: u32, wanted: u32, gfp: Gfp) {
    let window = {
        let world = sys.world();
        let cached = &world.mm.inodes[file.inode].pages;
        let max = world.read_pages_at_once(file.inode, wanted);
        file.readahead.sync_window(cached, (index, wanted), max)
    };
    read_window(sys, file.inode, window, 0, gfp).await;
}

/// The folio with the page at `index` had the mark.
pub(super) async fn marked(sys: &Sys, file: &mut OpenFile, index: u32, wanted: u32, gfp: Gfp) {
    let window = {
        let world = sys.world();
        let cached = &world.mm.inodes[file.inode].pages;
        let Some(pfn) = cached.page(index) else {
            return;
        };
        let folio_pages = world.mm.pages[pfn].folio_nr_pages() as u32;
        let max = world.read_pages_at_once(file.inode, wanted);
        let state = &mut file.readahead;
        state.async_window(cached, (index, wanted), folio_pages, max)
    };
    if let Some(window) = window {
        read_window(sys, file.inode, window, file.readahead.order, gfp).await;
    }
}

/// `page_cache_ra_order`: the pages of a window, none beyond the end of the file, in folios of an order.
pub(super) async fn read_window(sys: &Sys, inode: InodeId, window: Window, order: usize, gfp: Gfp) {
    let gfp = sys.world().mm.readahead_gfp(inode, gfp);
    let mut reader = Reader {
        sys,
        inode,
        gfp,
        end: {
            let world = sys.world();
            let len = world.mm.inodes[inode].len();
            (u64::from(window.start) + u64::from(window.pages)).min(len) as u32
        },
        mark: (window.ahead > 0)
            .then_some(window.start.saturating_add(window.pages) - window.ahead.min(window.pages)),
        batch: Vec::new(),
    };
    let mut index = window.start;
    while index < reader.end {
        let order = order_at(index, reader.end, order);
        if !reader.add(index, order).await {
            break;
        }
        index += 1 << order;
    }
    reader.read_pages().await;
    while index < reader.end {
        let there = reader.is_cached(index);
        if there {
            reader.read_pages().await;
        } else if !reader.add(index, 0).await {
            break;
        }
        index += 1;
    }
    reader.read_pages().await;
}

/// Order of the folio that begins with a page, up to the window's: it is aligned, and ends before the window does.
fn order_at(index: u32, end: u32, order: usize) -> usize {
    let aligned = order.min(index.trailing_zeros() as usize);
    aligned.min((end - index).ilog2() as usize)
}

/// Readahead under way (`struct readahead_control`).
struct Reader<'a> {
    sys: &'a Sys,
    inode: InodeId,
    gfp: Gfp,
    /// Page at which it ends.
    end: u32,
    /// Page whose folio gets the mark.
    mark: Option<u32>,
    /// Pages that wait to be read.
    batch: Vec<(u32, Pfn)>,
}

impl Reader<'_> {
    fn is_cached(&self, index: u32) -> bool {
        let world = self.sys.world();
        let pages = &world.mm.inodes[self.inode].pages;
        pages.page(index).is_some()
    }

    /// `ra_alloc_folio`: a new folio, locked, in the page cache. False: there is no memory, or a page is there already.
    async fn add(&mut self, index: u32, order: usize) -> bool {
        let memcg = self.sys.world().current_memcg();
        let Ok(head) = alloc_folio_charged(self.sys, self.gfp, order, memcg).await else {
            return false;
        };
        let added = self.sys.world().add_to_read(self.inode, index, head);
        let Some(reads) = added else {
            self.sys.world().mm.free_folio(head);
            return false;
        };
        let pages = self.sys.world().mm.pages.folio(head).len() as u64;
        if self.mark.map(|mark| mark >> order << order) == Some(index) {
            self.sys.world().mm.pages[head].set(flag::RECLAIM);
        }
        self.batch.extend(reads);
        let costs = &self.sys.costs;
        let cost = costs.file_page_ns + (pages - 1) * costs.folio_page_ns;
        self.sys.charge_kernel(cost).await;
        true
    }

    /// `read_pages`: submits the reads of what has been added.
    async fn read_pages(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.sys.start_plug();
        self.sys.world().map_blocks(self.inode);
        for (index, pfn) in self.batch.drain(..) {
            let io = self.sys.world().mm.read_of_page(self.inode, index, pfn);
            if let Some(io) = io {
                io::submit(self.sys, io).await;
            }
        }
        self.sys.finish_plug();
    }
}

impl World {
    /// A folio enters the page cache for reading: it is locked, if there is anything to read, and these are the pages to
    /// read. None: it cannot enter.
    fn add_to_read(&mut self, inode: InodeId, index: u32, head: Pfn) -> Option<Vec<(u32, Pfn)>> {
        let frames = self.mm.pages.folio(head);
        let file = &self.mm.inodes[inode];
        let end = index + frames.len() as u32;
        let taken = file.pages.next_page(index).is_some_and(|next| next < end);
        if taken || u64::from(index) >= file.len() {
            return None;
        }
        let on_disk = |&(index, _): &(u32, Pfn)| file.extents.find(index).is_some();
        let reads: Vec<(u32, Pfn)> = (index..end).zip(frames).filter(on_disk).collect();
        if !self.add_to_page_cache(inode, index, head) {
            return None;
        }
        if !reads.is_empty() {
            self.mm.pages.lock_for_reads(head, reads.len() as u32);
        }
        Some(reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::frames::mapping::Mappings;

    /// Largest window: two requests of 4 MiB.
    const MAX: u32 = 2048;

    /// Who goes through a file in order, so many pages at a time or by faults, and all of whose windows find memory:
    /// begin and order of each run of folios that are as large as each other, and how many.
    fn folios(call: Option<u32>, pages: u32) -> Vec<(u32, usize, u32)> {
        let wanted = call.unwrap_or(1);
        let (mut cached, mut mappings) = (PageTree::default(), Mappings::default());
        let mut state = ReadaheadState::default();
        let mut runs: Vec<(u32, usize, u32)> = Vec::new();
        let mut mark = None;
        for index in (0..pages).step_by(wanted as usize) {
            for at in index..index + wanted {
                let asked = (at, call.map_or(MAX, |_| index + wanted - at));
                let window = match mark {
                    _ if cached.page(at).is_none() => match call {
                        Some(_) => state.sync_window(&cached, asked, MAX),
                        None => state.around(at, MAX).expect("few have missed"),
                    },
                    Some((marked, folio)) if marked == at => {
                        let window = state.async_window(&cached, asked, folio, MAX);
                        window.expect("the reader's own mark")
                    }
                    _ => continue,
                };
                let marked = window.start + window.pages - window.ahead;
                let mut at = window.start;
                while at < window.start + window.pages {
                    let end = window.start + window.pages;
                    let order = order_at(at, end, state.order);
                    if marked >> order << order == at {
                        mark = Some((at, 1 << order));
                    }
                    for page in at..at + (1 << order) {
                        cached
                            .insert(&mut mappings, InodeId::from(0), page, page)
                            .expect("numbers");
                    }
                    match runs.last_mut() {
                        Some((_, of, count)) if *of == order => *count += 1,
                        _ => runs.push((at, order, 1)),
                    }
                    at += 1 << order;
                }
            }
            state.read_to(index + wanted - 1, 0);
            state.end_of_read();
        }
        runs
    }

    /// What guests of 6.18 added to the page cache, by `mm_filemap_add_to_page_cache`, while there were blocks of every
    /// size: read(2) of 128 KiB, and a file that was mapped.
    #[test]
    fn folios_grow_as_in_guests() {
        let read = [
            (0, 0, 128),
            (128, 2, 64),
            (384, 4, 32),
            (896, 6, 16),
            (1920, 7, 1),
            (2048, 8, 8),
            (4096, 9, 4),
        ];
        assert_eq!(folios(Some(32), 4096)[..7], read);
        let mapped = [
            (0, 0, 2048),
            (2048, 2, 512),
            (4096, 4, 128),
            (6144, 6, 32),
            (8192, 8, 8),
        ];
        assert_eq!(folios(None, 9000)[..5], mapped);
    }

    #[test]
    fn windows_that_miss_begin_anew() {
        let mut state = ReadaheadState::default();
        let mut cached = PageTree::default();
        let mut mappings = Mappings::default();
        let window = |start, pages, ahead| Window {
            start,
            pages,
            ahead,
        };
        // At random: what is wanted.
        assert_eq!(
            state.sync_window(&cached, (5000, 32), MAX),
            window(5000, 32, 0)
        );
        // Where the last call ended.
        state.read_to(4999, 0);
        state.end_of_read();
        assert_eq!(
            state.sync_window(&cached, (5000, 32), MAX),
            window(5000, 128, 96)
        );
        // Behind pages of another reader.
        for index in 900..1000 {
            cached
                .insert(&mut mappings, InodeId::from(0), index, index)
                .expect("numbers");
        }
        assert_eq!(
            state.sync_window(&cached, (1000, 32), MAX),
            window(1000, 132, 1)
        );
        // His mark: his pages and four times as many, in folios of four, from where his end.
        let marked = state.async_window(&cached, (950, 32), 1, MAX);
        assert_eq!(marked, Some(window(1000, 328, 328)));
        assert_eq!(state.order, 2);
    }
}
