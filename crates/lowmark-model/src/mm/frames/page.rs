//! `struct page`, 16 bytes, and doubly linked lists of free blocks.

use crate::ids::ZoneId;
use crate::mm::frames::generation::Generation;
use crate::mm::frames::pte::MAX_PAYLOAD;
use crate::mm::types::{GATHERED, Lru, MigrateType, NONE, Pfn, UNMAPPED, flag};
use std::ops::{Index, IndexMut};

/// Bits of `private` below the order: a swap slot, or the list of a free block. PTEs name no more slots either.
const ORDER_SHIFT: u32 = 28;
const SLOT_MASK: u32 = (1 << ORDER_SHIFT) - 1;
const _: () = assert!(
    MAX_PAYLOAD <= SLOT_MASK,
    "a slot of a PTE fits beside the order"
);

/// A page frame. The first page of a free block has the links of its list in `owner` and `position`. The zone of a frame
/// follows from its number ([`Pages::zone`]), and what few frames need is in tables beside this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    /// Region or shared object and page offset in it: see [`Mappings`](crate::mm::frames::mapping::Mappings).
    pub(crate) owner: u32,
    /// Order of the folio or free block that it belongs to; below it the swap slot of a swap cache page, or whose list
    /// a free block is on.
    private: u32,
    /// Place on its LRU list.
    pub(crate) position: u32,
    flags: u16,
    /// PTEs that map it.
    pub(crate) mapcount: u16,
}

impl Page {
    /// Whether all of `flags` are set.
    #[inline]
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(crate) fn has_any(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Whether another page has the same of these flags.
    #[inline]
    pub(crate) fn is_like(&self, other: &Page, flags: u16) -> bool {
        (self.flags ^ other.flags) & flags == 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flags: u16) {
        self.flags |= flags;
    }

    #[inline]
    pub(crate) fn clear(&mut self, flags: u16) {
        self.flags &= !flags;
    }

    /// Clears the flags and says whether they were set.
    #[inline]
    pub(crate) fn test_and_clear(&mut self, flags: u16) -> bool {
        let set = self.has(flags);
        self.clear(flags);
        set
    }

    /// Swap slot of a swap cache page (`page_swap_entry`).
    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.private & SLOT_MASK
    }

    /// The page is the swap cache's for a slot.
    #[inline]
    pub(crate) fn set_slot(&mut self, slot: u32) {
        debug_assert!(slot <= SLOT_MASK);
        self.private = self.private & !SLOT_MASK | slot;
    }

    /// Order of the folio that it belongs to, 0 for a page of its own (`folio_order`); that of a free block.
    #[inline]
    pub(crate) fn order(&self) -> usize {
        (self.private >> ORDER_SHIFT) as usize
    }

    /// It belongs to a folio of this order, and to no slot or list.
    #[inline]
    pub(in crate::mm) fn set_order(&mut self, order: usize) {
        self.private = (order as u32) << ORDER_SHIFT;
    }

    /// It is a page of its own from now on, and keeps its slot.
    pub(in crate::mm) fn leave_folio(&mut self) {
        self.private &= SLOT_MASK;
    }

    /// List on which the page is or belongs.
    #[inline]
    pub(crate) fn lru(&self) -> Lru {
        Lru::new(!self.has(flag::SWAPBACKED), self.has(flag::ACTIVE))
    }

    /// PageAnon
    #[inline]
    pub(crate) fn is_anon(&self) -> bool {
        self.has(flag::ANON)
    }

    /// Whether something in the page has yet to be given to the device (BH_Dirty).
    #[inline]
    pub(crate) fn has_dirty_buffers(&self) -> bool {
        self.has(flag::DIRTY) && !self.has(flag::BUFFERS_CLEAN)
    }

    /// The flag of a write of the page that is under way, by writeback or by a journal.
    #[inline]
    pub(crate) fn write_under_way(&self) -> Option<u16> {
        let flags = [flag::WRITEBACK, flag::BUFFERS_LOCKED];
        flags.into_iter().find(|&flags| self.has(flags))
    }

    /// `page_mapped`
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapcount != 0
    }

    /// Whether it belongs to a region, an object or a file.
    #[inline]
    pub(crate) fn has_owner(&self) -> bool {
        self.owner < GATHERED
    }

    /// Whether a task holds the page that it has unmapped, and nothing maps it any more.
    #[inline]
    pub(crate) fn is_gathered(&self) -> bool {
        self.owner == GATHERED
    }

    /// PageBuddy: whether it is the first of a free block of this order.
    #[inline]
    pub(crate) fn is_free_block(&self, order: usize) -> bool {
        self.has(flag::BUDDY) && self.order() == order
    }

    /// Whether the free block that it is the first page of is on a list of this type.
    #[inline]
    pub(crate) fn is_on_list_of(&self, list: MigrateType) -> bool {
        self.buddy_list() == list as usize
    }

    /// Number of the type whose list the free block is on that it is the first page of.
    #[inline]
    pub(crate) fn buddy_list(&self) -> usize {
        self.slot() as usize
    }

    /// `PageUnevictable`: the page is locked in memory.
    #[inline]
    pub(crate) fn is_unevictable(&self) -> bool {
        self.has(flag::UNEVICTABLE) && !self.has(flag::PCP)
    }

    /// `PageLRU`, which unevictable pages have as well: they have a list of their own in the kernel.
    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        self.has(flag::LRU) || self.is_unevictable()
    }

    /// What another frame was used for, this one is used for now; it is on no list yet (`folio_migrate_flags`).
    pub(in crate::mm) fn take_over(&mut self, other: &Page) {
        *self = *other;
        self.clear(flag::LRU | flag::WAITERS);
    }

    /// Forgets everything but its place on lists: the page is about to be free or has just been allocated.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.flags = 0;
        self.owner = UNMAPPED;
        self.private = 0;
        self.mapcount = 0;
    }
}

/// `private` of a free block.
#[inline]
fn of_free_block(order: usize, list: MigrateType) -> u32 {
    (order as u32) << ORDER_SHIFT | list as u32
}

/// Every frame of the machine.
#[derive(Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// The zone of each run of frames, all of which lie in one: runs are as long as zones allow that begin with one.
    zones: Vec<ZoneId>,
    /// Binary logarithm of the length of a run.
    zone_shift: u32,
    /// Of each frame what generations know of it; empty where they are off.
    generations: Vec<Generation>,
}

impl Pages {
    /// `zone_starts`: the first frame of each zone but the lowest, in their order.
    pub(crate) fn new(count: u32, zone_starts: &[Pfn]) -> Pages {
        let page = Page {
            owner: UNMAPPED,
            private: 0,
            position: 0,
            flags: 0,
            mapcount: 0,
        };
        let runs = zone_starts.iter().map(|start| start.trailing_zeros());
        let zone_shift = runs.fold(u32::BITS - 1, u32::min);
        let zone = |run: Pfn| {
            let begun = |&&start: &&Pfn| start >> zone_shift <= run;
            ZoneId::from(zone_starts.iter().filter(begun).count())
        };
        Pages {
            pages: vec![page; count as usize],
            zones: (0..=count >> zone_shift).map(zone).collect(),
            zone_shift,
            generations: Vec::new(),
        }
    }

    /// Pages stand in generations from now on; none is on a list yet.
    pub(in crate::mm) fn make_generations(&mut self) {
        self.generations = vec![Generation::default(); self.pages.len()];
    }

    /// Where a page stands among the generations, which are on.
    #[inline]
    pub(crate) fn generation(&self, pfn: Pfn) -> Generation {
        self.generations[pfn as usize]
    }

    #[inline]
    pub(crate) fn generation_mut(&mut self, pfn: Pfn) -> &mut Generation {
        &mut self.generations[pfn as usize]
    }

    /// Nobody uses a frame any more: what generations knew of it is forgotten.
    #[inline]
    pub(in crate::mm) fn forget_generation(&mut self, pfn: Pfn) {
        if let Some(generation) = self.generations.get_mut(pfn as usize) {
            *generation = Generation::default();
        }
    }

    /// A frame, if there is such.
    #[inline]
    pub(crate) fn get(&self, pfn: Pfn) -> Option<&Page> {
        self.pages.get(pfn as usize)
    }

    /// Number of frames.
    pub(crate) fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    /// The zone that a frame lies in (`page_zone`).
    #[inline]
    pub(crate) fn zone(&self, pfn: Pfn) -> ZoneId {
        self.zones[(pfn >> self.zone_shift) as usize]
    }
}

impl Index<Pfn> for Pages {
    type Output = Page;

    #[inline]
    fn index(&self, pfn: Pfn) -> &Page {
        &self.pages[pfn as usize]
    }
}

impl IndexMut<Pfn> for Pages {
    #[inline]
    fn index_mut(&mut self, pfn: Pfn) -> &mut Page {
        &mut self.pages[pfn as usize]
    }
}

/// A list of free blocks through the links of their first pages (`struct list_head`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeList {
    head: Pfn,
    len: u32,
}

impl Default for FreeList {
    fn default() -> Self {
        FreeList { head: NONE, len: 0 }
    }
}

impl FreeList {
    /// Blocks on the list.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.len)
    }

    /// The block at the head.
    pub(crate) fn first(&self) -> Option<Pfn> {
        (self.head != NONE).then_some(self.head)
    }

    /// `list_add` of a block of this order to a list of this type: marks it as free.
    #[inline]
    pub(crate) fn push(&mut self, pages: &mut Pages, pfn: Pfn, order: usize, list: MigrateType) {
        let next = std::mem::replace(&mut self.head, pfn);
        let page = &mut pages[pfn];
        page.set(flag::BUDDY);
        page.private = of_free_block(order, list);
        (page.owner, page.position) = (next, NONE);
        if next != NONE {
            pages[next].position = pfn;
        }
        self.len += 1;
    }

    /// `list_del` of a block, which is no longer marked as free.
    #[inline]
    pub(crate) fn remove(&mut self, pages: &mut Pages, pfn: Pfn) {
        let page = &mut pages[pfn];
        page.clear(flag::BUDDY);
        page.set_order(0);
        let (next, prev) = (page.owner, page.position);
        match prev {
            NONE => self.head = next,
            _ => pages[prev].owner = next,
        }
        if next != NONE {
            pages[next].position = prev;
        }
        self.len -= 1;
    }

    /// Takes the block at the head.
    #[inline]
    pub(crate) fn pop(&mut self, pages: &mut Pages) -> Option<Pfn> {
        let pfn = self.head;
        if pfn == NONE {
            return None;
        }
        let page = &mut pages[pfn];
        page.clear(flag::BUDDY);
        self.head = page.owner;
        if self.head != NONE {
            pages[self.head].position = NONE;
        }
        self.len -= 1;
        Some(pfn)
    }

    /// `move_freelist_head`: a block becomes the first one; those before it go to the tail.
    pub(crate) fn rotate_to_head(&mut self, pages: &mut Pages, pfn: Pfn) {
        let last = pages[pfn].position;
        if last == NONE {
            return;
        }
        let tail = self.iter(pages).last().unwrap_or(pfn);
        (pages[tail].owner, pages[self.head].position) = (self.head, tail);
        (pages[last].owner, pages[pfn].position) = (NONE, NONE);
        self.head = pfn;
    }

    /// `move_freelist_tail`: a block becomes the last one, with those before it.
    pub(crate) fn rotate_to_tail(&mut self, pages: &mut Pages, pfn: Pfn) {
        let next = pages[pfn].owner;
        if next != NONE {
            self.rotate_to_head(pages, next);
        }
    }

    /// The blocks from head to tail.
    pub(crate) fn iter<'a>(&self, pages: &'a Pages) -> impl Iterator<Item = Pfn> + use<'a> {
        let some = |pfn: Pfn| (pfn != NONE).then_some(pfn);
        std::iter::successors(some(self.head), move |&pfn| some(pages[pfn].owner))
    }
}
