//! `struct page`, 24 bytes, and doubly linked lists of pages.

use std::ops::{Index, IndexMut};

/// Page frame number.
pub(crate) type Pfn = u32;

/// No page: end of a list.
pub(crate) const NONE: Pfn = Pfn::MAX;

/// Page flags (`enum pageflags`), one bit each.
pub(crate) mod flag {
    /// PG_referenced
    pub(crate) const REFERENCED: u16 = 1 << 0;
    /// PG_active
    pub(crate) const ACTIVE: u16 = 1 << 1;
    /// PG_lru: on an LRU list
    pub(crate) const LRU: u16 = 1 << 2;
    /// PG_dirty
    pub(crate) const DIRTY: u16 = 1 << 3;
    /// PG_writeback
    pub(crate) const WRITEBACK: u16 = 1 << 4;
    /// PG_swapbacked: anonymous or shmem
    pub(crate) const SWAPBACKED: u16 = 1 << 5;
    /// PG_swapcache: `private` is its slot
    pub(crate) const SWAPCACHE: u16 = 1 << 6;
    /// PG_reclaim while under writeback, PG_readahead otherwise
    pub(crate) const RECLAIM: u16 = 1 << 7;
    /// PG_locked: a read into it is under way
    pub(crate) const LOCKED: u16 = 1 << 8;
    /// PG_waiters: somebody waits for the lock or for writeback
    pub(crate) const WAITERS: u16 = 1 << 9;
    /// PageBuddy: first page of a free block of order `private`
    pub(crate) const BUDDY: u16 = 1 << 10;
    /// The bits above this one hold the zone.
    pub(super) const ZONE_SHIFT: u32 = 12;
}

/// `mapping` of a page that belongs to nobody.
pub(crate) const UNMAPPED: u32 = u32::MAX;
/// Bit of `mapping` that says anonymous (`PAGE_MAPPING_ANON`); the rest is the index of the VMA, without
/// it that of the shmem object.
pub(crate) const MAPPING_ANON: u32 = 1 << 31;

/// A page frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    next: Pfn,
    prev: Pfn,
    /// Owner: see [`MAPPING_ANON`].
    pub(crate) mapping: u32,
    /// Page offset within the owner.
    pub(crate) index: u32,
    /// Swap slot of a swap cache page, order of a free block.
    pub(crate) private: u32,
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

    /// Index of its zone.
    #[inline]
    pub(crate) fn zone(&self) -> usize {
        (self.flags >> flag::ZONE_SHIFT) as usize
    }

    /// PageAnon
    #[inline]
    pub(crate) fn is_anon(&self) -> bool {
        self.mapping != UNMAPPED && self.mapping & MAPPING_ANON != 0
    }

    /// `page_mapped`
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapcount != 0
    }

    /// Forgets everything but the zone: the page is about to be free or has just been allocated.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.flags &= !0 << flag::ZONE_SHIFT;
        self.mapping = UNMAPPED;
        self.mapcount = 0;
    }
}

/// Every frame of the machine.
#[derive(Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
}

impl Pages {
    pub(crate) fn new(count: u32) -> Pages {
        let page = Page {
            next: NONE,
            prev: NONE,
            mapping: UNMAPPED,
            index: 0,
            private: 0,
            flags: 0,
            mapcount: 0,
        };
        Pages {
            pages: vec![page; count as usize],
        }
    }

    /// Number of frames.
    pub(crate) fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Says to which zone the frames from `start` to `end` belong.
    pub(crate) fn set_zone(&mut self, start: Pfn, end: Pfn, zone: usize) {
        for page in &mut self.pages[start as usize..end as usize] {
            page.flags = (zone as u16) << flag::ZONE_SHIFT;
        }
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

/// A list of pages through their own links (`struct list_head`). A page is on one list at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    head: Pfn,
    tail: Pfn,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List {
            head: NONE,
            tail: NONE,
            len: 0,
        }
    }
}

impl List {
    /// Pages on the list.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.len)
    }

    /// The page at the head.
    #[inline]
    pub(crate) fn first(&self) -> Option<Pfn> {
        (self.head != NONE).then_some(self.head)
    }

    /// The page at the tail.
    #[inline]
    pub(crate) fn last(&self) -> Option<Pfn> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// `list_add`
    #[inline]
    pub(crate) fn push_head(&mut self, pages: &mut Pages, pfn: Pfn) {
        let next = std::mem::replace(&mut self.head, pfn);
        pages[pfn].next = next;
        pages[pfn].prev = NONE;
        match next {
            NONE => self.tail = pfn,
            _ => pages[next].prev = pfn,
        }
        self.len += 1;
    }

    /// `list_add_tail`
    #[inline]
    pub(crate) fn push_tail(&mut self, pages: &mut Pages, pfn: Pfn) {
        let prev = std::mem::replace(&mut self.tail, pfn);
        pages[pfn].prev = prev;
        pages[pfn].next = NONE;
        match prev {
            NONE => self.head = pfn,
            _ => pages[prev].next = pfn,
        }
        self.len += 1;
    }

    /// `list_del`
    #[inline]
    pub(crate) fn remove(&mut self, pages: &mut Pages, pfn: Pfn) {
        let (prev, next) = (pages[pfn].prev, pages[pfn].next);
        match prev {
            NONE => self.head = next,
            _ => pages[prev].next = next,
        }
        match next {
            NONE => self.tail = prev,
            _ => pages[next].prev = prev,
        }
        self.len -= 1;
    }

    /// Moves up to `want` pages from the tail to `batch`, the last one first.
    pub(crate) fn cut_tail(&mut self, pages: &mut Pages, want: u64, batch: &mut Vec<Pfn>) {
        let mut taken = 0;
        let mut last = self.tail;
        while taken < want && last != NONE {
            batch.push(last);
            last = pages[last].prev;
            taken += 1;
        }
        self.tail = last;
        self.len -= taken as u32;
        match last {
            NONE => self.head = NONE,
            _ => pages[last].next = NONE,
        }
    }

    /// The pages from head to tail.
    pub(crate) fn iter<'a>(&self, pages: &'a Pages) -> impl Iterator<Item = Pfn> + use<'a> {
        std::iter::successors(self.first(), |&pfn| {
            let next = pages[pfn].next;
            (next != NONE).then_some(next)
        })
    }
}
