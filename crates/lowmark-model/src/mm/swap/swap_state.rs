//! The swap cache and swap-in readahead (`mm/swap_state.c`).
//!
//! A fault on a swapped-out page that is not in the swap cache reads the aligned block of slots around
//! its own. How large the block is, is what the variants of
//! [`SwapinReadahead`](crate::kernel::SwapinReadahead) decide ([`readahead`]), from what became of
//! the pages read before: a page read for its neighbour's sake is *marked*, and a later look-up that
//! finds the mark is a *hit*. The mark shares its bit with PG_reclaim, so a fault on a page that is just
//! being written out counts as a hit too, as it did in the kernel.

mod readahead;

use crate::device::Io;
use crate::ids::MemcgId;
use crate::kernel::SwapinPlug;
use crate::mm::Mm;
use crate::mm::io;
use crate::mm::memcontrol::{Event, alloc_charged};
use crate::mm::types::{Gfp, OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};
use readahead::{Marks, WINDOW_MAX, Window};
pub(crate) use readahead::{Readahead, VmaReadahead};

impl Mm {
    /// `delete_from_swap_cache`: the slot keeps its references.
    #[inline]
    pub(crate) fn delete_from_swap_cache(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        page.clear(flag::SWAPCACHE);
        let unread = page.has(flag::RECLAIM) && !page.has(flag::WRITEBACK);
        let slot = page.slot();
        // Slots of a huge page lie side by side.
        for slot in slot..slot + page.folio_nr_pages() as u32 {
            self.swap.clear_cached(slot);
        }
        if unread {
            self.readahead_event(-1);
        }
    }

    /// `folio_swapped`: somebody refers to a slot of a page of the swap cache.
    pub(crate) fn is_swapped(&self, head: Pfn) -> bool {
        let (slot, pages) = (self.pages[head].slot(), self.pages[head].folio_nr_pages());
        let mut slots = slot..slot + pages as u32;
        slots.any(|slot| self.swap.references(slot) > 0)
    }

    /// `try_to_free_swap`: drops the slot of a page that nobody needs there; the page is then dirty.
    #[inline]
    pub(crate) fn try_to_free_swap(&mut self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        let droppable =
            page.has(flag::SWAPCACHE) && !page.has(flag::WRITEBACK) && !self.is_swapped(pfn);
        if droppable {
            self.delete_from_swap_cache(pfn);
            self.pages[pfn].set(flag::DIRTY);
        }
        droppable
    }

    /// `lookup_swap_cache` by a fault on a page of a region (none for shmem). `replay` is the second attempt of a
    /// fault that waited for its read.
    #[inline]
    pub(crate) fn lookup_swap_cache(
        &mut self,
        slot: u32,
        at: Option<(u32, u32)>,
        replay: bool,
    ) -> Option<Pfn> {
        let pfn = self.swap.cached(slot)?;
        self.note_hit(self.pages.head(pfn), at, replay);
        Some(pfn)
    }
}

impl World {
    /// `add_to_swap`, `shmem_writepage`: gives a page on its way out a slot and enters it in the swap
    /// cache, dirty. False: swap is full.
    pub(crate) fn add_to_swap(&mut self, pfn: Pfn) -> bool {
        if !self.mm.may_swap_page(pfn) {
            return false;
        }
        let cpu = self.sched.current_cpu();
        let memcg = self.mm.memcontrol.of_page(pfn);
        let Some(slot) = self.mm.swap.allocate(pfn, cpu) else {
            self.mm.memcontrol.note(memcg, Event::SwapFail);
            return false;
        };
        self.mm.readahead_event(-10);
        self.enter_swap_cache(pfn, slot, 1);
        true
    }

    /// `add_to_swap` of a huge page: a cluster of slots of its own. False: there is none.
    pub(crate) fn add_huge_to_swap(&mut self, head: Pfn) -> bool {
        if !self.mm.may_swap_page(head) {
            return false;
        }
        let Some(first) = self.mm.swap.allocate_cluster(head) else {
            self.mm.note_no_cluster(head);
            return false;
        };
        self.mm.readahead_event(-10);
        let pages = self.mm.pages[head].folio_nr_pages() as u32;
        self.enter_swap_cache(head, first, pages);
        true
    }

    /// Adds a page, or the `pages` of a huge page, to the swap cache, in slots that begin with `first`.
    #[inline(always)]
    fn enter_swap_cache(&mut self, head: Pfn, first: u32, pages: u32) {
        self.mm.pages[head].set(flag::SWAPCACHE | flag::DIRTY);
        let memcg = self.mm.memcontrol.of_page(head);
        for (pfn, slot) in (head..head + pages).zip(first..) {
            self.mm.pages[pfn].set_slot(slot);
            self.mm.swap.cgroups.record(slot, memcg);
        }
        self.settle_swap_cache(head);
    }
}

/// `swapin_readahead`: reads the window around `slot`, and says how many slots it has. The target's page is then in the swap
/// cache, locked until it has been read, unless the slot was freed meanwhile.
pub(crate) async fn swapin_readahead(
    sys: &Sys,
    slot: u32,
    at: Option<(u32, u32)>,
    gfp: Gfp,
) -> Result<usize, OutOfMemory> {
    let (window, marks) = {
        let world = &mut *sys.world();
        (
            world.mm.swapin_window(slot, at),
            world.mm.marks_neighbours(),
        )
    };
    let plug =
        window.len > 1 && sys.world().mm.kernel.mechanisms.swap.swapin_plug == SwapinPlug::On;
    if plug {
        sys.start_plug();
    }
    let slots = window.len;
    let result = read_window(sys, window, slot, marks, gfp).await;
    if plug {
        sys.finish_plug();
    }
    result.map(|()| slots)
}

/// `read_swap_cache_async` of slots that will be needed, without marks.
pub(crate) async fn read_ahead(sys: &Sys, slots: &[u32], gfp: Gfp) -> Result<(), OutOfMemory> {
    for slots in slots.chunks(WINDOW_MAX) {
        let window = Window::new(slots.iter().copied());
        read_window(sys, window, slots[0], Marks::None, gfp).await?;
    }
    Ok(())
}

/// Reads the slots of a window; others than `target` are marked.
async fn read_window(
    sys: &Sys,
    window: Window,
    target: u32,
    marks: Marks,
    gfp: Gfp,
) -> Result<(), OutOfMemory> {
    let mut reading = Reading {
        window,
        target,
        marks,
        page: None,
        read: 0,
    };
    let mut result = Ok(());
    loop {
        let step = sys.world().read_slots(&mut reading, gfp);
        match step {
            Reads::Done => break,
            Reads::Allocate(memcg) => match alloc_charged(sys, gfp, memcg).await {
                Ok(pfn) => reading.page = Some(pfn),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            },
            Reads::Blocked(io) => {
                sys.suspend().await;
                io::submit(sys, io).await;
                reading.read += 1;
            }
        }
    }
    sys.charge_kernel(reading.read * sys.costs.swap_in_ns).await;
    result
}

/// A window that is being read.
struct Reading {
    window: Window,
    /// The slot that faulted.
    target: u32,
    /// Which others are marked.
    marks: Marks,
    /// A page for the next slot.
    page: Option<Pfn>,
    /// Reads begun.
    read: u64,
}

/// Why reading a window stopped.
enum Reads {
    /// It is through.
    Done,
    /// The next slot needs a page charged to this group, which the fast path has not.
    Allocate(MemcgId),
    /// The current task waits for memory or for a free request for this read.
    Blocked(Io),
}

impl World {
    /// `read_swap_cache_async` of slot after slot, as far as it goes without sleeping: each is read into
    /// a new page of the swap cache, unless it is cached or free. A hole costs nothing.
    fn read_slots(&mut self, reading: &mut Reading, gfp: Gfp) -> Reads {
        while let Some(slot) = reading.window.peek() {
            let neighbour = slot != reading.target;
            let cached = self.mm.swap.cached(slot);
            if cached.is_some() || !self.mm.swap.has_data(slot) {
                if let Some(unneeded) = reading.page.take() {
                    self.mm.free_page(unneeded);
                }
                if let Some(pfn) = cached.filter(|_| neighbour && reading.marks == Marks::All) {
                    let head = self.mm.pages.head(pfn);
                    self.mm.pages[head].set(flag::RECLAIM);
                }
                reading.window.next += 1;
                continue;
            }
            // The slow path may sleep, so everything has to be looked at again after it.
            let memcg = self.mm.group_of_read(slot);
            let page = reading.page.take();
            let Some(pfn) = page.or_else(|| self.alloc_charged_fast(gfp, memcg)) else {
                return Reads::Allocate(memcg);
            };
            reading.window.next += 1;
            self.add_read_page(pfn, slot, neighbour && reading.marks != Marks::None);
            let io = self.swap_read(pfn, slot);
            if let Some(io) = self.try_submit(io) {
                return Reads::Blocked(io);
            }
            reading.read += 1;
        }
        Reads::Done
    }
}

impl World {
    /// A page that is going to be read: in the swap cache, locked, at the inactive head.
    fn add_read_page(&mut self, pfn: Pfn, slot: u32, marked: bool) {
        let page = &mut self.mm.pages[pfn];
        page.set(flag::SWAPCACHE | flag::SWAPBACKED | flag::LOCKED);
        if marked {
            page.set(flag::RECLAIM);
            self.mm.stat.swap_ra += 1;
        }
        page.set_slot(slot);
        let shadow = self.mm.swap.take_shadow(slot);
        self.mm.swap.set_cached(slot, pfn);
        if let Some(shadow) = shadow {
            self.refault(pfn, shadow);
        }
        self.settle_swap_cache(pfn);
        self.folio_add_lru(pfn);
    }
}
