//! Parts of a region: where munmap(2) or madvise(2) was about a range of it, and the kernel has several VMAs.
//!
//! A region keeps its page table, its number and its owner numbers as a whole. What differs from page to page is here. The
//! kernel's limits of a VMA are those of a part: readahead and faults that map several pages stay within it.

use crate::mm::fault::filemap_fault::ReadAdvice;
use std::ops::Range;

/// What madvise(2) said of huge pages (`VM_HUGEPAGE`, `VM_NOHUGEPAGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HugeAdvice {
    /// Nothing: the setting of the machine counts.
    #[default]
    None,
    /// MADV_HUGEPAGE
    Huge,
    /// MADV_NOHUGEPAGE
    NoHuge,
}

/// What all pages of a part have in common (`vm_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Mapped; a range that was unmapped is a hole.
    pub(crate) mapped: bool,
    /// Whether faults may map huge pages.
    pub(crate) huge: HugeAdvice,
    /// Its pages are locked in memory (`VM_LOCKED`).
    pub(crate) locked: bool,
    /// How a file is read ahead (`VM_RAND_READ`, `VM_SEQ_READ`).
    pub(crate) reads: ReadAdvice,
    /// It is mapped to be executed (`VM_EXEC`).
    pub(crate) executable: bool,
    /// References count when reclaim asks who uses a page (`vma_has_recency`).
    pub(crate) recency: bool,
}

impl Default for Part {
    /// What mmap(2) makes.
    fn default() -> Part {
        Part {
            mapped: true,
            huge: HugeAdvice::None,
            locked: false,
            reads: ReadAdvice::Normal,
            executable: false,
            recency: true,
        }
    }
}

/// The parts of a region in order. No two neighbours are alike; most regions have one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    first: Part,
    /// The others, each with the page at which it begins.
    later: Vec<(u32, Part)>,
}

impl Parts {
    /// Of a region that mmap(2) makes, with `PROT_EXEC` or without.
    pub(crate) fn new(executable: bool) -> Parts {
        Parts {
            first: Part {
                executable,
                ..Part::default()
            },
            later: Vec::new(),
        }
    }

    /// The part that a page is in.
    #[inline]
    pub(crate) fn at(&self, page: u32) -> Part {
        if self.later.is_empty() {
            self.first
        } else {
            self.number(self.after(page))
        }
    }

    /// The part that a page is in, and its pages; the region has `pages`.
    pub(crate) fn around(&self, page: u32, pages: u32) -> (Range<u32>, Part) {
        let after = self.after(page);
        let begin = after.checked_sub(1).map_or(0, |last| self.later[last].0);
        let end = self.later.get(after).map_or(pages, |&(begin, _)| begin);
        (begin..end, self.number(after))
    }

    /// The parts that have pages of a range, and which pages of it.
    pub(crate) fn of(&self, range: Range<u32>) -> impl Iterator<Item = (Range<u32>, Part)> + '_ {
        let mut next = range.start;
        std::iter::from_fn(move || {
            if next >= range.end {
                return None;
            }
            let (pages, part) = self.around(next, range.end);
            let begin = std::mem::replace(&mut next, pages.end.min(range.end));
            Some((begin..next, part))
        })
    }

    /// Whether any page of a range is mapped.
    pub(crate) fn any_mapped(&self, range: Range<u32>) -> bool {
        self.of(range).any(|(_, part)| part.mapped)
    }

    /// Whether any page of a range is locked.
    pub(crate) fn any_locked(&self, range: Range<u32>) -> bool {
        self.of(range).any(|(_, part)| part.mapped && part.locked)
    }

    /// Changes what a range of a region of `pages` is, its holes left out.
    pub(crate) fn change(&mut self, range: Range<u32>, pages: u32, change: impl Fn(&mut Part)) {
        if range.is_empty() {
            return;
        }
        let begin = self.split(range.start);
        let end = if range.end < pages {
            self.split(range.end)
        } else {
            self.later.len() + 1
        };
        for number in begin..end {
            let part = match number.checked_sub(1) {
                None => &mut self.first,
                Some(later) => &mut self.later[later].1,
            };
            if part.mapped {
                change(part);
            }
        }
        // Parts that became like the one before them, the one behind the range included.
        for number in (begin.max(1)..=end.min(self.later.len())).rev() {
            if self.number(number) == self.number(number - 1) {
                self.later.remove(number - 1);
            }
        }
    }

    /// How many later parts begin at a page or before it: the number of the part that the page is in.
    fn after(&self, page: u32) -> usize {
        self.later.partition_point(|&(begin, _)| begin <= page)
    }

    fn number(&self, number: usize) -> Part {
        let later = number.checked_sub(1).and_then(|at| self.later.get(at));
        later.map_or(self.first, |&(_, part)| part)
    }

    /// A part begins at a page (`split_vma`); its number.
    fn split(&mut self, page: u32) -> usize {
        let number = self.after(page);
        let begin = number.checked_sub(1).map_or(0, |at| self.later[at].0);
        if begin == page {
            return number;
        }
        let part = self.number(number);
        self.later.insert(number, (page, part));
        number + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 40;

    /// A change, by its number, as it is done to the part of a page.
    fn apply(part: &mut Part, number: u32) {
        match number {
            0 => part.mapped = false,
            1 => part.huge = HugeAdvice::Huge,
            2 => part.huge = HugeAdvice::NoHuge,
            3 => (part.reads, part.recency) = (ReadAdvice::Sequential, false),
            _ => (part.reads, part.recency) = (ReadAdvice::Normal, true),
        }
    }

    proptest! {
        /// Page by page, a table says the same.
        #[test]
        fn parts_are_what_was_done_to_their_pages(
            changes in proptest::collection::vec((0..PAGES, 1..=PAGES, 0u32..8), 0..12)
        ) {
            let mut parts = Parts::default();
            let mut table = vec![Part::default(); PAGES as usize];
            for (begin, length, number) in changes {
                let range = begin..(begin + length).min(PAGES);
                parts.change(range.clone(), PAGES, |part| apply(part, number));
                for page in &mut table[range.start as usize..range.end as usize] {
                    if page.mapped {
                        apply(page, number);
                    }
                }
            }
            for page in 0..PAGES {
                let part = table[page as usize];
                prop_assert_eq!(parts.at(page), part);
                let alike = |&page: &u32| table[page as usize] == part;
                let begin = page - (0..page).rev().take_while(alike).count() as u32;
                let end = page + (page..PAGES).take_while(alike).count() as u32;
                prop_assert_eq!(parts.around(page, PAGES), (begin..end, part));
            }
            let pages: u32 = parts.of(3..PAGES).map(|(range, _)| range.len() as u32).sum();
            prop_assert_eq!(pages, PAGES - 3);
            prop_assert_eq!(parts.any_mapped(0..PAGES), table.iter().any(|part| part.mapped));
        }
    }
}
