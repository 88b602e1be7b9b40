//! LRU lists: page numbers side by side in chunks, the oldest first.
//!
//! Reclaim takes pages off the tail in batches. On a list that leads from page to page it would have to
//! wait for each before it knows the next; here their numbers stand next to each other, so that what is
//! needed of them is fetched all at once.
//!
//! 1. A page added at the head gets the place behind the newest, one added at the tail the place before
//!    the oldest. Where the chunk at that end has no room there is one more. The page keeps its place.
//! 2. A page that leaves the middle leaves a hole. A chunk of nothing but holes is unused again at once.
//! 3. When a list has clearly more holes than pages, its pages move together.

use crate::mm::frames::page::Pages;
use crate::mm::types::{NONE, Pfn};

/// Places in a chunk.
const CHUNK: u32 = 256;

/// A chunk of a list; places without a page hold [`NONE`].
#[derive(Debug, Clone, Copy)]
struct Chunk {
    newer: u32,
    older: u32,
    /// Places before this one are not in use.
    low: u16,
    /// Places that hold a page.
    live: u16,
}

/// The chunks of all lists.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    places: Vec<Pfn>,
    chunks: Vec<Chunk>,
    unused: Vec<u32>,
}

impl Chunks {
    /// A chunk without pages.
    fn acquire(&mut self, newer: u32, older: u32, low: u32) -> u32 {
        let chunk = Chunk {
            newer,
            older,
            low: low as u16,
            live: 0,
        };
        if let Some(id) = self.unused.pop() {
            self.chunks[id as usize] = chunk;
            self.places_of(id).fill(NONE);
            return id;
        }
        self.chunks.push(chunk);
        self.places.resize(self.places.len() + CHUNK as usize, NONE);
        self.chunks.len() as u32 - 1
    }

    fn places_of(&mut self, id: u32) -> &mut [Pfn] {
        let start = (id * CHUNK) as usize;
        &mut self.places[start..start + CHUNK as usize]
    }
}

/// A list of pages. A page is on one list at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LruList {
    /// Chunk with the newest page.
    head: u32,
    /// Place of the next page at the head; the first of a chunk: there is none yet.
    next: u32,
    /// Chunk with the oldest page.
    tail: u32,
    len: u32,
    chunks: u32,
}

impl Default for LruList {
    fn default() -> Self {
        LruList {
            head: NONE,
            next: 0,
            tail: NONE,
            len: 0,
            chunks: 0,
        }
    }
}

impl LruList {
    /// Pages on the list.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.len)
    }

    /// `list_add`: the page's place.
    #[inline]
    pub(crate) fn push_head(&mut self, chunks: &mut Chunks, pfn: Pfn) -> u32 {
        if self.next.is_multiple_of(CHUNK) {
            self.grow_head(chunks);
        }
        let place = self.next;
        self.next += 1;
        self.len += 1;
        chunks.chunks[(place / CHUNK) as usize].live += 1;
        chunks.places[place as usize] = pfn;
        place
    }

    /// `list_add_tail`: the page's place.
    #[inline]
    pub(crate) fn push_tail(&mut self, chunks: &mut Chunks, pfn: Pfn) -> u32 {
        let full = |chunk: &Chunk| chunk.low == 0;
        if chunks.chunks.get(self.tail as usize).is_none_or(full) {
            self.grow_tail(chunks);
        }
        let chunk = &mut chunks.chunks[self.tail as usize];
        chunk.low -= 1;
        chunk.live += 1;
        let place = self.tail * CHUNK + u32::from(chunk.low);
        self.len += 1;
        chunks.places[place as usize] = pfn;
        place
    }

    /// `list_del` of the page at a place. The caller looks whether the list [is
    /// sparse](Self::is_sparse) then.
    #[inline]
    pub(crate) fn remove(&mut self, chunks: &mut Chunks, place: u32) {
        chunks.places[place as usize] = NONE;
        self.len -= 1;
        let id = place / CHUNK;
        let chunk = &mut chunks.chunks[id as usize];
        chunk.live -= 1;
        if chunk.live == 0 {
            self.release(chunks, id);
        }
    }

    /// Holes outnumber the pages, with some room for the chunks at both ends: the list is to be
    /// [packed](Self::pack).
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.chunks > self.len / (CHUNK / 2) + 8
    }

    /// Moves up to `want` pages from the tail to `batch`, the last one first.
    pub(crate) fn cut_tail(&mut self, chunks: &mut Chunks, want: u64, batch: &mut Vec<Pfn>) {
        let mut want = want.min(self.len()) as usize;
        self.len -= want as u32;
        while want > 0 {
            let id = self.tail;
            let chunk = &mut chunks.chunks[id as usize];
            let start = (id * CHUNK) as usize + usize::from(chunk.low);
            let take = want.min(usize::from(chunk.live));
            let mut looked = take;
            let first = &chunks.places[start..start + take];
            if first.contains(&NONE) {
                let found = batch.len() + take;
                looked = 0;
                while batch.len() < found {
                    let pfn = chunks.places[start + looked];
                    looked += 1;
                    if pfn != NONE {
                        batch.push(pfn);
                    }
                }
            } else {
                batch.extend_from_slice(first);
            }
            chunk.low += looked as u16;
            chunk.live -= take as u16;
            want -= take;
            if chunk.live == 0 {
                self.release(chunks, id);
            }
        }
    }

    /// Places of the next pages at the tail, up to `want`, as far as they stand side by side; of holes [`NONE`].
    pub(crate) fn tail_places<'a>(&self, chunks: &'a Chunks, want: usize) -> &'a [Pfn] {
        let Some(chunk) = chunks.chunks.get(self.tail as usize) else {
            return &[];
        };
        let start = (self.tail * CHUNK) as usize + usize::from(chunk.low);
        let end = ((self.tail + 1) * CHUNK) as usize;
        &chunks.places[start..end.min(start + want)]
    }

    /// The pages from the tail to the head.
    pub(crate) fn iter<'a>(&self, chunks: &'a Chunks) -> impl Iterator<Item = Pfn> + use<'a> {
        let newer = |&id: &u32| Some(chunks.chunks[id as usize].newer).filter(|&id| id != NONE);
        let ids = std::iter::successors(Some(self.tail).filter(|&id| id != NONE), newer);
        ids.flat_map(|id| {
            let chunk = &chunks.chunks[id as usize];
            let base = (id * CHUNK) as usize;
            let used = base + usize::from(chunk.low)..base + CHUNK as usize;
            chunks.places[used].iter().copied()
        })
        .filter(|&pfn| pfn != NONE)
    }

    #[cold]
    fn grow_head(&mut self, chunks: &mut Chunks) {
        let old = self.head;
        self.head = chunks.acquire(NONE, old, 0);
        self.next = self.head * CHUNK;
        self.chunks += 1;
        match old {
            NONE => self.tail = self.head,
            _ => chunks.chunks[old as usize].newer = self.head,
        }
    }

    #[cold]
    fn grow_tail(&mut self, chunks: &mut Chunks) {
        let old = self.tail;
        self.tail = chunks.acquire(old, NONE, CHUNK);
        self.chunks += 1;
        match old {
            NONE => self.head = self.tail,
            _ => chunks.chunks[old as usize].older = self.tail,
        }
    }

    /// A chunk of the list is no longer needed.
    #[cold]
    fn release(&mut self, chunks: &mut Chunks, id: u32) {
        let Chunk { newer, older, .. } = chunks.chunks[id as usize];
        match newer {
            NONE => {
                self.head = older;
                // Every chunk but the newest is full at its upper end.
                self.next = 0;
            }
            _ => chunks.chunks[newer as usize].older = older,
        }
        match older {
            NONE => self.tail = newer,
            _ => chunks.chunks[older as usize].newer = newer,
        }
        self.chunks -= 1;
        chunks.unused.push(id);
    }

    /// Moves the pages together, from the tail on.
    #[cold]
    pub(crate) fn pack(&mut self, chunks: &mut Chunks, pages: &mut Pages) {
        let (mut from, mut to, mut filled) = (self.tail, self.tail, 0);
        while from != NONE {
            let Chunk { low, newer, .. } = chunks.chunks[from as usize];
            for at in u32::from(low)..CHUNK {
                let pfn = chunks.places[(from * CHUNK + at) as usize];
                if pfn == NONE {
                    continue;
                }
                if filled == CHUNK {
                    chunks.set_filled(to, filled);
                    (to, filled) = (chunks.chunks[to as usize].newer, 0);
                }
                // Never ahead of what is still to be read.
                let place = to * CHUNK + filled;
                chunks.places[place as usize] = pfn;
                pages[pfn].position = place;
                filled += 1;
            }
            from = newer;
        }
        if to == NONE {
            return;
        }
        chunks.set_filled(to, filled);
        while self.head != to {
            self.release(chunks, self.head);
        }
        self.next = to * CHUNK + filled;
    }
}

impl Chunks {
    /// The chunk holds `filled` pages from its first place on.
    fn set_filled(&mut self, id: u32, filled: u32) {
        let chunk = &mut self.chunks[id as usize];
        (chunk.low, chunk.live) = (0, filled as u16);
        self.places_of(id)[filled as usize..].fill(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::random::Stream;
    use std::collections::VecDeque;

    /// A list beside a plain deque, its front being the head.
    struct Twins {
        list: LruList,
        plain: VecDeque<Pfn>,
        chunks: Chunks,
        pages: Pages,
    }

    impl Twins {
        fn same(&self) {
            let list: Vec<Pfn> = self.list.iter(&self.chunks).collect();
            let plain: Vec<Pfn> = self.plain.iter().rev().copied().collect();
            assert_eq!(list, plain);
            assert_eq!(self.list.len(), plain.len() as u64);
        }
    }

    #[test]
    fn a_list_is_a_deque_that_forgets_from_the_middle() {
        const PAGES: u32 = 5000;
        let mut twins = Twins {
            list: LruList::default(),
            plain: VecDeque::new(),
            chunks: Chunks::default(),
            pages: Pages::new(PAGES, &[]),
        };
        let mut stream = Stream::new(0, "lists", 0);
        let mut off: Vec<Pfn> = (0..PAGES).collect();
        let mut batch = Vec::new();
        for round in 0..40_000 {
            // Phases that fill it and phases that empty it.
            let add = stream.below(10) < if round / 8000 % 2 == 0 { 7 } else { 2 };
            let Twins {
                list,
                plain,
                chunks,
                pages,
            } = &mut twins;
            if add && let Some(pfn) = off.pop() {
                if stream.below(4) > 0 {
                    pages[pfn].position = list.push_head(chunks, pfn);
                    plain.push_front(pfn);
                } else {
                    pages[pfn].position = list.push_tail(chunks, pfn);
                    plain.push_back(pfn);
                }
            } else if !add && !plain.is_empty() {
                let at = stream.below(plain.len() as u64) as usize;
                let pfn = plain.remove(at).expect("it is there");
                list.remove(chunks, pages[pfn].position);
                if list.is_sparse() {
                    list.pack(chunks, pages);
                }
                off.push(pfn);
            }
            if stream.below(100) == 0 {
                let want = stream.below(40);
                list.cut_tail(chunks, want, &mut batch);
                let rest = plain.len() - batch.len();
                assert!(batch.len() as u64 == want || rest == 0);
                assert!(plain.drain(rest..).rev().eq(batch.iter().copied()));
                off.append(&mut batch);
            }
            if round % 500 == 0 {
                twins.same();
            }
        }
        twins.same();
        let places = twins.chunks.places.len() as u32;
        assert!(places <= 3 * PAGES, "{places} places for {PAGES} pages");
    }
}
