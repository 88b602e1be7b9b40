//! The pages of a file by their offset, with tags (`lib/radix-tree.c` as the page cache uses it).
//!
//! 1. A *leaf* has 64 slots, each a page, a shadow entry or nothing, and a word of bits for each tag.
//! 2. Eight leaves are a *group*, which has one block of owner numbers: from these a page leads back here.
//! 3. Groups stand in a table by offset, so a sparse file costs eight bytes for every 2 MiB of holes before
//!    its last page. Leaves without entries and groups without leaves are given back.

use crate::ids::InodeId;
use crate::mm::alloc::xarray::CHUNK_SHIFT;
use crate::mm::frames::mapping::{BLOCK, Mappings};
use crate::mm::frames::shadow::Shadow;
use crate::mm::types::{Pfn, Tag};

/// Slots of a leaf (`RADIX_TREE_MAP_SIZE`).
const LEAF: u32 = 1 << CHUNK_SHIFT;
const LEAVES: usize = (BLOCK / LEAF) as usize;

const TAGS: usize = 3;

/// What is at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing.
    Empty,
    /// A page.
    Page(Pfn),
    /// What reclaim has left in place of a page.
    Shadow(Shadow),
}

/// A slot: 0 for nothing, one more than its number for a page, the bits of a shadow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    fn get(self) -> Entry {
        match (Shadow::from_bits(self.0), self.0.checked_sub(1)) {
            (Some(shadow), _) => Entry::Shadow(shadow),
            (None, Some(pfn)) => Entry::Page(pfn),
            (None, None) => Entry::Empty,
        }
    }

    fn page(pfn: Pfn) -> Slot {
        Slot(pfn + 1)
    }

    fn is_page(self) -> bool {
        matches!(self.get(), Entry::Page(_))
    }
}

#[derive(Debug)]
struct Leaf {
    slots: [Slot; LEAF as usize],
    tags: [u64; TAGS],
    /// Slots that are not empty.
    used: u32,
    /// Slots with pages.
    pages: u32,
}

impl Leaf {
    fn new() -> Box<Leaf> {
        Box::new(Leaf {
            slots: [Slot::default(); LEAF as usize],
            tags: [0; TAGS],
            used: 0,
            pages: 0,
        })
    }
}

#[derive(Debug)]
struct Group {
    /// Owner number of its first page.
    first: u32,
    leaves: [Option<Box<Leaf>>; LEAVES],
}

/// The pages of a file (`struct address_space`).
#[derive(Debug, Default)]
pub(crate) struct PageTree {
    groups: Vec<Option<Box<Group>>>,
    tagged: [u64; TAGS],
    /// Pages, and pages and shadows together.
    pages: u64,
    entries: u64,
}

fn place(index: u32) -> (usize, usize, usize) {
    (
        (index / BLOCK) as usize,
        (index % BLOCK / LEAF) as usize,
        (index % LEAF) as usize,
    )
}

impl PageTree {
    /// Pages with this tag.
    pub(crate) fn tagged(&self, tag: Tag) -> u64 {
        self.tagged[tag as usize]
    }

    /// Pages of the file that are in memory (`nrpages`).
    pub(crate) fn len(&self) -> u64 {
        self.pages
    }

    /// Shadows.
    pub(crate) fn shadows(&self) -> u64 {
        self.entries - self.pages
    }

    /// Whether all that there is is the shadow of its first page, which the kernel keeps without a node
    /// (`xa_is_value(xa_head)`).
    pub(crate) fn is_single_shadow(&self) -> bool {
        (self.entries, self.pages) == (1, 0) && self.get(0) != Entry::Empty
    }

    fn leaf(&self, index: u32) -> Option<&Leaf> {
        let (group, leaf, _) = place(index);
        self.groups.get(group)?.as_ref()?.leaves[leaf].as_deref()
    }

    fn leaf_mut(&mut self, index: u32) -> Option<&mut Leaf> {
        let (group, leaf, _) = place(index);
        self.groups.get_mut(group)?.as_mut()?.leaves[leaf].as_deref_mut()
    }

    /// Whether there are pages or shadows in the leaf of this number.
    #[inline]
    pub(crate) fn has_leaf(&self, leaf: u32) -> bool {
        self.leaf(leaf << CHUNK_SHIFT).is_some()
    }

    /// Whether there is nothing but shadows in the leaf of this number.
    pub(crate) fn is_shadow_leaf(&self, leaf: u32) -> bool {
        let leaf = self.leaf(leaf << CHUNK_SHIFT);
        leaf.is_some_and(|leaf| leaf.pages == 0)
    }

    /// Forgets a leaf in which there are shadows alone.
    pub(crate) fn forget_leaf(&mut self, mappings: &mut Mappings, leaf: u32) {
        debug_assert!(self.is_shadow_leaf(leaf));
        self.drop_leaf(mappings, leaf << CHUNK_SHIFT);
    }

    /// What is at an offset.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Entry {
        self.leaf(index).map_or(Entry::Empty, |leaf| {
            leaf.slots[(index % LEAF) as usize].get()
        })
    }

    /// The page at an offset.
    #[inline]
    pub(crate) fn page(&self, index: u32) -> Option<Pfn> {
        match self.get(index) {
            Entry::Page(pfn) => Some(pfn),
            _ => None,
        }
    }

    /// Puts a page where none is: its owner number, and the shadow that was in its place. None if there are
    /// no more numbers.
    pub(crate) fn insert(
        &mut self,
        mappings: &mut Mappings,
        inode: InodeId,
        index: u32,
        pfn: Pfn,
    ) -> Option<(u32, Option<Shadow>)> {
        let (group, leaf, slot) = place(index);
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        let group = match &mut self.groups[group] {
            Some(group) => group,
            empty => empty.insert(Box::new(Group {
                first: mappings.add_block(inode, index / BLOCK * BLOCK)?,
                leaves: Default::default(),
            })),
        };
        let leaf = group.leaves[leaf].get_or_insert_with(Leaf::new);
        debug_assert!(!matches!(leaf.slots[slot].get(), Entry::Page(_)));
        let new = leaf.slots[slot] == Slot::default();
        leaf.used += u32::from(new);
        leaf.pages += 1;
        self.entries += u64::from(new);
        self.pages += 1;
        let before = std::mem::replace(&mut leaf.slots[slot], Slot::page(pfn));
        Some((group.first + index % BLOCK, Shadow::from_bits(before.0)))
    }

    /// The page at an offset is in another frame now.
    pub(crate) fn replace(&mut self, index: u32, pfn: Pfn) {
        if let Some(leaf) = self.leaf_mut(index) {
            let slot = &mut leaf.slots[(index % LEAF) as usize];
            debug_assert!(slot.is_page());
            *slot = Slot::page(pfn);
        }
    }

    /// Takes a page out, with its tags; a shadow takes its place if there is one.
    pub(crate) fn remove(&mut self, mappings: &mut Mappings, index: u32, shadow: Option<Shadow>) {
        for tag in [Tag::Dirty, Tag::Writeback, Tag::Towrite] {
            self.clear_tag(index, tag);
        }
        let (_, _, slot) = place(index);
        let Some(leaf) = self.leaf_mut(index) else {
            return;
        };
        let page = leaf.slots[slot].is_page();
        leaf.pages -= u32::from(page);
        leaf.slots[slot] = Slot(shadow.map_or(0, Shadow::bits));
        let gone = shadow.is_none();
        leaf.used -= u32::from(gone);
        let empty = leaf.used == 0;
        self.pages -= u64::from(page);
        self.entries -= u64::from(gone);
        if empty {
            self.drop_leaf(mappings, index);
        }
    }

    fn drop_leaf(&mut self, mappings: &mut Mappings, index: u32) {
        let (at, leaf, _) = place(index);
        let Some(group) = &mut self.groups[at] else {
            return;
        };
        if let Some(gone) = group.leaves[leaf].take() {
            self.pages -= u64::from(gone.pages);
            self.entries -= u64::from(gone.used);
        }
        if group.leaves.iter().all(Option::is_none) {
            mappings.remove(group.first, u64::from(BLOCK));
            self.groups[at] = None;
        }
    }

    /// Forgets all shadow entries from an offset on.
    pub(crate) fn forget_shadows(&mut self, mappings: &mut Mappings, from: u32) {
        let mut from = from;
        while let Some(index) = self.next(from, |leaf| {
            let shadow = |slot: usize| {
                let shadow = matches!(leaf.slots[slot].get(), Entry::Shadow(_));
                u64::from(shadow) << slot
            };
            (0..LEAF as usize).fold(0, |bits, slot| bits | shadow(slot))
        }) {
            self.remove(mappings, index, None);
            from = index;
        }
    }

    /// Whether a page has a tag.
    pub(crate) fn has_tag(&self, index: u32, tag: Tag) -> bool {
        self.leaf(index)
            .is_some_and(|leaf| leaf.tags[tag as usize] >> (index % LEAF) & 1 != 0)
    }

    /// Sets a tag; true if it was not set before.
    pub(crate) fn set_tag(&mut self, index: u32, tag: Tag) -> bool {
        let bit = 1 << (index % LEAF);
        let Some(leaf) = self.leaf_mut(index) else {
            return false;
        };
        let new = leaf.tags[tag as usize] & bit == 0;
        leaf.tags[tag as usize] |= bit;
        self.tagged[tag as usize] += u64::from(new);
        new
    }

    /// Clears a tag; true if it was set before.
    pub(crate) fn clear_tag(&mut self, index: u32, tag: Tag) -> bool {
        let bit = 1 << (index % LEAF);
        let Some(leaf) = self.leaf_mut(index) else {
            return false;
        };
        let was = leaf.tags[tag as usize] & bit != 0;
        leaf.tags[tag as usize] &= !bit;
        self.tagged[tag as usize] -= u64::from(was);
        was
    }

    /// `tag_pages_for_writeback`: what is dirty from `first` to `last` gets the tag of a data-integrity pass.
    pub(crate) fn tag_for_writeback(&mut self, first: u32, last: u32) {
        let mut from = first;
        while let Some(index) = self.next_tagged(from, Tag::Dirty).filter(|&at| at <= last) {
            self.set_tag(index, Tag::Towrite);
            let Some(next) = index.checked_add(1) else {
                return;
            };
            from = next;
        }
    }

    /// The first page at or after `from` that has a tag.
    pub(crate) fn next_tagged(&self, from: u32, tag: Tag) -> Option<u32> {
        match self.tagged[tag as usize] {
            0 => None,
            _ => self.next(from, |leaf| leaf.tags[tag as usize]),
        }
    }

    /// The first page at or after `from`.
    pub(crate) fn next_page(&self, from: u32) -> Option<u32> {
        self.next(from, |leaf| {
            let page = |slot: usize| u64::from(leaf.slots[slot].is_page()) << slot;
            (0..LEAF as usize).fold(0, |bits, slot| bits | page(slot))
        })
    }

    /// The first offset at or after `from` whose bit is set in what `bits` makes of its leaf.
    fn next(&self, from: u32, bits: impl Fn(&Leaf) -> u64) -> Option<u32> {
        let (first_group, mut first_leaf, slot) = place(from);
        let mut mask = !0 << slot;
        for (number, group) in self.groups.iter().enumerate().skip(first_group) {
            for (at, leaf) in group.iter().flat_map(|g| g.leaves.iter().enumerate()) {
                if at < first_leaf {
                    continue;
                }
                let found = leaf.as_ref().map_or(0, |leaf| bits(leaf)) & mask;
                if found != 0 {
                    let leaf = number as u32 * LEAVES as u32 + at as u32;
                    return Some(leaf * LEAF + found.trailing_zeros());
                }
                mask = !0;
            }
            (first_leaf, mask) = (0, !0);
        }
        None
    }

    /// `radix_tree_next_hole`: the first offset at or after `from` without a page, `max` offsets at most
    /// looked at.
    pub(crate) fn next_hole(&self, from: u32, max: u32) -> u32 {
        let end = from.saturating_add(max);
        (from..end)
            .find(|&index| self.page(index).is_none())
            .unwrap_or(end)
    }

    /// Pages without a gap that end just before `index`, at most `max` (`count_history_pages`).
    pub(crate) fn history(&self, index: u32, max: u32) -> u32 {
        let before = (0..index).rev().take(max as usize);
        before
            .take_while(|&index| self.page(index).is_some())
            .count() as u32
    }

    /// Every page that is neither dirty nor under writeback.
    pub(crate) fn clean(&self) -> impl Iterator<Item = Pfn> + '_ {
        let leaves = self.groups.iter().flatten();
        let leaves = leaves.flat_map(|group| group.leaves.iter().flatten());
        leaves.flat_map(|leaf| {
            let busy = leaf.tags[Tag::Dirty as usize] | leaf.tags[Tag::Writeback as usize];
            let mut left = !busy;
            let slots = std::iter::from_fn(move || {
                let slot = (left != 0).then(|| left.trailing_zeros());
                left &= left.wrapping_sub(1);
                slot
            });
            slots.filter_map(|slot| match leaf.slots[slot as usize].get() {
                Entry::Page(pfn) => Some(pfn),
                _ => None,
            })
        })
    }

    /// Every page with its offset.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Pfn)> + '_ {
        let first = self.next_page(0);
        let indices = std::iter::successors(first, |&at| {
            at.checked_add(1).and_then(|n| self.next_page(n))
        });
        indices.filter_map(|index| Some((index, self.page(index)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Random operations against a plain map.
    #[test]
    fn a_tree_is_a_map_with_tags() {
        let (mut tree, mut mappings) = (PageTree::default(), Mappings::default());
        let mut naive: BTreeMap<u32, (Pfn, [bool; TAGS])> = BTreeMap::new();
        let mut stream = lowmark_spec::random::Stream::new(0, "tree", 0);
        let file = InodeId::from(7);
        let tags = [Tag::Dirty, Tag::Writeback, Tag::Towrite];
        for step in 0..20_000u32 {
            let index = match stream.below(2) {
                0 => stream.below(300) as u32,
                _ => stream.below(1 << 22) as u32 & !0x3f1f,
            };
            let tag = tags[stream.below(3) as usize];
            match (stream.below(6), naive.contains_key(&index)) {
                (0..3, false) => {
                    let (owner, _) = tree.insert(&mut mappings, file, index, step).unwrap();
                    assert_eq!(mappings.file_of(owner), (file, index));
                    naive.insert(index, (step, [false; TAGS]));
                }
                (0, true) => {
                    tree.remove(&mut mappings, index, None);
                    naive.remove(&index);
                }
                (1..4, true) => {
                    let page = &mut naive.get_mut(&index).unwrap().1[tag as usize];
                    assert_eq!(tree.set_tag(index, tag), !*page);
                    *page = true;
                }
                (4, true) => {
                    let page = &mut naive.get_mut(&index).unwrap().1[tag as usize];
                    assert_eq!(tree.clear_tag(index, tag), *page);
                    *page = false;
                }
                _ => {
                    let next = naive.range(index..).find(|(_, page)| page.1[tag as usize]);
                    assert_eq!(tree.next_tagged(index, tag), next.map(|(&at, _)| at));
                    assert_eq!(
                        tree.next_page(index),
                        naive.range(index..).next().map(|(&at, _)| at)
                    );
                }
            }
            if step % 500 == 0 {
                let clean = naive.values().filter(|(_, tags)| !tags[0] && !tags[1]);
                assert!(tree.clean().eq(clean.map(|&(pfn, _)| pfn)));
            }
            let tagged = |tag: Tag| naive.values().filter(|page| page.1[tag as usize]).count();
            assert_eq!(tree.tagged(tag), tagged(tag) as u64);
        }
        let left: Vec<u32> = tree.iter().map(|(index, _)| index).collect();
        assert!(left.iter().eq(naive.keys()));
        for index in left {
            tree.remove(&mut mappings, index, None);
        }
        assert!(tree.groups.iter().all(Option::is_none));
        assert_eq!(tree.tagged, [0; TAGS]);
    }

    #[test]
    fn shadows_stand_where_pages_were() {
        let (mut tree, mut mappings) = (PageTree::default(), Mappings::default());
        let shadow = Shadow::from_bits(crate::mm::frames::shadow::SHADOW | 77);
        assert_eq!(
            tree.insert(&mut mappings, InodeId::from(0), 5, 9)
                .unwrap()
                .1,
            None
        );
        tree.remove(&mut mappings, 5, shadow);
        assert_eq!(Some(tree.get(5)), shadow.map(Entry::Shadow));
        assert_eq!((tree.page(5), tree.next_page(0)), (None, None));
        assert_eq!(
            tree.insert(&mut mappings, InodeId::from(0), 5, 10)
                .unwrap()
                .1,
            shadow
        );
        tree.remove(&mut mappings, 5, shadow);
        tree.forget_shadows(&mut mappings, 0);
        assert!(tree.groups.iter().all(Option::is_none));
    }

    #[test]
    fn a_leaf_of_shadows_can_be_forgotten() {
        let (mut tree, mut mappings) = (PageTree::default(), Mappings::default());
        let shadow = Shadow::from_bits(crate::mm::frames::shadow::SHADOW | 77);
        for index in [64, 65] {
            tree.insert(&mut mappings, InodeId::from(0), index, index)
                .unwrap();
        }
        assert_eq!([0, 1].map(|leaf| tree.has_leaf(leaf)), [false, true]);
        tree.remove(&mut mappings, 64, shadow);
        assert!(!tree.is_shadow_leaf(1));
        tree.remove(&mut mappings, 65, None);
        assert!(tree.is_shadow_leaf(1));
        tree.forget_leaf(&mut mappings, 1);
        assert_eq!(tree.get(64), Entry::Empty);
        assert!(tree.groups.iter().all(Option::is_none));
    }

    #[test]
    fn gaps_and_histories() {
        let (mut tree, mut mappings) = (PageTree::default(), Mappings::default());
        for index in (10..20).chain(22..30) {
            tree.insert(&mut mappings, InodeId::from(0), index, index)
                .unwrap();
        }
        assert_eq!(tree.next_hole(12, 32), 20);
        assert_eq!(tree.next_hole(12, 4), 16);
        assert_eq!(tree.history(26, 32), 4);
        assert_eq!(tree.history(20, 3), 3);
        assert_eq!(tree.history(0, 3), 0);
    }
}
