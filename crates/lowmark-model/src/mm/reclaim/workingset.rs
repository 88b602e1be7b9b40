//! Telling pages that were evicted too early from those that are used once (`mm/workingset.c`).
//!
//! 1. The clock of a set of lists goes on by one with every eviction and every activation.
//! 2. An evicted page leaves a [`Shadow`] in its place: the time on that clock.
//! 3. When the page comes back, what the clock has moved since is its *refault distance*: how much longer
//!    the inactive list would have had to be. If the lists that it competes with are as long as that, the
//!    page starts active.
//!
//! A file page leaves its shadow in the page cache, an anonymous or shmem one in its swap slot.
//!
//! Where pages stand in generations, the time is the number of the generation that a page was taken from, and what comes back
//! is counted by tier.

use crate::ids::{LruvecId, MemcgId};
use crate::kernel::{GenEntry, GenRefault, GenRefaultCount, Workingset};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::lru_gen::MAX_NR_GENS;
use crate::mm::frames::generation::{REFS_MAX, tier_of};
use crate::mm::frames::shadow::{AGE_MASK, Shadow};
use crate::mm::types::{Lru, Pfn, flag};
use crate::world::World;

/// Bits of a shadow's time that say how often its page had been accessed (`LRU_REFS_WIDTH`).
const REFS_WIDTH: u32 = 2;
const REFS_MASK: u32 = (1 << REFS_WIDTH) - 1;

impl Mm {
    /// `workingset_age_nonresident`
    fn age_nonresident(&mut self, lruvec: LruvecId, pages: u64) {
        let mut next = Some(lruvec);
        while let Some(lruvec) = next {
            let age = &mut self.lruvecs[lruvec].nonresident_age;
            *age = age.wrapping_add(pages as u32) & AGE_MASK;
            next = self.parent_lruvec(lruvec);
        }
    }

    /// `workingset_eviction`: what to leave in the place of a page that reclaim evicts for a group; nothing
    /// if the kernel does not remember its kind.
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, memcg: MemcgId) -> Option<Shadow> {
        if self.lru_gen {
            return Some(self.lru_gen_eviction(pfn));
        }
        let page = self.pages[pfn];
        let remembered = match self.kernel.mechanisms.reclaim.workingset {
            Workingset::Off => false,
            Workingset::File => !page.has(flag::SWAPBACKED),
            Workingset::All => true,
        };
        if !remembered {
            return None;
        }
        let lruvec = self.zones[self.pages.zone(pfn)].lruvec;
        let lruvec = self.memcg_lruvec(lruvec, memcg);
        let before = self.lruvecs[lruvec].nonresident_age;
        self.age_nonresident(lruvec, page.folio_nr_pages());
        // 31d8fcac00fc (5.8): the eviction itself counts as a step.
        let age = match self.kernel.mechanisms.reclaim.workingset {
            Workingset::All => before,
            _ => self.lruvecs[lruvec].nonresident_age,
        };
        Some(Shadow::pack(lruvec, age, page.has(flag::WORKINGSET)))
    }

    /// `workingset_refault`: a page comes back into the place of its shadow. It is about to be put on a
    /// list; whether that is the active one is decided here.
    pub(crate) fn workingset_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        let page = self.pages[pfn];
        let kind = usize::from(!page.has(flag::SWAPBACKED));
        let pages = page.folio_nr_pages();
        self.stat.workingset_refault[kind] += pages;
        let lruvec = self.lruvec_of(pfn);
        if let Some(counts) = self.memcg_counts(lruvec) {
            counts.refault[kind] += pages;
        }
        let then = shadow.lruvec();
        let distance = self.lruvecs[then]
            .nonresident_age
            .wrapping_sub(shadow.age())
            & AGE_MASK;
        if u64::from(distance) > self.competing_pages(then, kind == 1) {
            return;
        }
        self.pages[pfn].set(flag::ACTIVE);
        if self.kernel.mechanisms.reclaim.workingset == Workingset::All {
            self.age_nonresident(lruvec, pages);
        }
        self.lruvecs[lruvec].activations[kind] += pages;
        self.stat.workingset_activate[kind] += pages;
        let restored = shadow.was_active();
        if let Some(counts) = self.memcg_counts(lruvec) {
            counts.activate[kind] += pages;
            counts.restore[kind] += if restored { pages } else { 0 };
        }
        if restored {
            self.pages[pfn].set(flag::WORKINGSET);
            self.stat.workingset_restore[kind] += pages;
            self.note_cost(lruvec, kind == 1, pages, 0);
        }
    }

    /// `lru_gen_eviction`: the generation that the page was taken from, and how often it had been accessed.
    fn lru_gen_eviction(&mut self, pfn: Pfn) -> Shadow {
        let rule = self.kernel.mechanisms.lru_gen.gen_refault;
        let page = self.pages[pfn];
        let kind = usize::from(!page.has(flag::SWAPBACKED));
        let (refs, tier) = (
            self.pages.lru_refs(pfn, rule),
            self.pages.lru_tier(pfn, rule),
        );
        let lruvec = self.lruvec_of(pfn);
        let mut token = refs.saturating_sub(1);
        if let Some(gens) = self.lruvecs[lruvec].generations_mut() {
            token |= gens.min_seq[kind] << REFS_WIDTH;
            gens.tiers[kind].evicted[tier] += page.folio_nr_pages();
        }
        let workingset = match rule {
            GenRefault::Oldest => refs > 0,
            GenRefault::Window => page.has(flag::WORKINGSET),
        };
        Shadow::pack(lruvec, token as u32 & AGE_MASK, workingset)
    }

    /// `lru_gen_refault`: a page comes back; if it was taken too early, that counts in its tier. It is about to be put on a
    /// list, by a fault or not.
    fn lru_gen_refault(&mut self, pfn: Pfn, shadow: Shadow, in_fault: bool) {
        let rules = self.kernel.mechanisms.lru_gen;
        let page = self.pages[pfn];
        let kind = usize::from(!page.has(flag::SWAPBACKED));
        let pages = page.folio_nr_pages();
        let lruvec = self.lruvec_of(pfn);
        let Some(gens) = self.lruvecs[lruvec].generations_mut() else {
            return;
        };
        if lruvec != shadow.lruvec() {
            return;
        }
        let (seq, low) = (shadow.age() >> REFS_WIDTH, shadow.age() & REFS_MASK);
        let since = |seq_now: u64| (seq_now as u32).wrapping_sub(seq) & AGE_MASK >> REFS_WIDTH;
        let recent = match rules.gen_refault {
            GenRefault::Oldest => since(gens.min_seq[kind]) == 0,
            GenRefault::Window => since(gens.max_seq) < MAX_NR_GENS as u32,
        };
        let workingset = shadow.was_active();
        let refs = match rules.gen_refault {
            GenRefault::Oldest => u64::from(low) + u64::from(workingset),
            GenRefault::Window => u64::from(low) + 1,
        };
        if recent {
            gens.tiers[kind].refaulted[tier_of(refs, workingset, rules.gen_refault)] += pages;
        }
        let often = match rules.gen_entry {
            GenEntry::Oldest => u64::from(REFS_MAX) + 1,
            _ => u64::from(REFS_MAX),
        };
        let restored = recent
            && match rules.gen_refault {
                GenRefault::Oldest => in_fault || refs >= often,
                GenRefault::Window => workingset,
            };
        if restored {
            self.pages[pfn].set(flag::WORKINGSET);
        }
        let bits = match (rules.gen_refault, rules.gen_entry) {
            (GenRefault::Oldest, GenEntry::Oldest) => None,
            (GenRefault::Oldest, _) => restored.then_some(REFS_MAX),
            (GenRefault::Window, _) => (recent && !restored).then_some(low as u8),
        };
        if let Some(bits) = bits {
            self.pages.generation_mut(pfn).set_refs(bits);
        }
        let counts_all = rules.gen_refault_count == GenRefaultCount::All;
        let activated = match rules.gen_refault {
            GenRefault::Oldest => recent && counts_all,
            GenRefault::Window => recent && in_fault,
        };
        let counted =
            [recent || counts_all, activated, restored].map(|on| if on { pages } else { 0 });
        self.stat.workingset_refault[kind] += counted[0];
        self.stat.workingset_activate[kind] += counted[1];
        self.stat.workingset_restore[kind] += counted[2];
        if let Some(counts) = self.memcg_counts(lruvec) {
            counts.refault[kind] += counted[0];
            counts.activate[kind] += counted[1];
            counts.restore[kind] += counted[2];
        }
    }

    /// Pages that one coming back would have to displace: there is no point in activating what could not
    /// stay even if they all went.
    fn competing_pages(&self, lruvec: LruvecId, file: bool) -> u64 {
        let len = |lru| self.lruvec_page_state(lruvec, lru);
        let active_file = len(Lru::ActiveFile);
        if self.kernel.mechanisms.reclaim.workingset != Workingset::All {
            return active_file;
        }
        let swap = self.nr_swap_pages(self.lruvec_memcg(lruvec)) > 0;
        let anon = match (swap, file) {
            (false, _) => 0,
            (true, true) => len(Lru::ActiveAnon) + len(Lru::InactiveAnon),
            (true, false) => len(Lru::ActiveAnon),
        };
        let inactive_file = if file { 0 } else { len(Lru::InactiveFile) };
        active_file + inactive_file + anon
    }

    /// `workingset_activation`: a file page that was referenced twice becomes active.
    pub(crate) fn workingset_activation(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        if self.kernel.mechanisms.reclaim.workingset != Workingset::Off {
            self.age_nonresident(lruvec, self.pages[pfn].folio_nr_pages());
        }
    }

    /// Reclaim puts `active` pages on the active list (`move_pages_to_lru`).
    pub(crate) fn age_by_put_back(&mut self, lruvec: LruvecId, active: u64) {
        if self.kernel.mechanisms.reclaim.workingset == Workingset::All {
            self.age_nonresident(lruvec, active);
        }
    }
}

impl World {
    /// A page comes back into the place of its shadow ([`Mm::workingset_refault`]).
    #[inline]
    pub(in crate::mm) fn refault(&mut self, pfn: Pfn, shadow: Shadow) {
        if self.mm.lru_gen {
            let in_fault = self.in_lru_fault();
            self.mm.lru_gen_refault(pfn, shadow, in_fault);
        } else {
            self.mm.workingset_refault(pfn, shadow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MemcgId;
    use crate::ids::NodeId;
    use crate::world::World;

    /// A page on its list.
    fn page(world: &mut World, flags: u16) -> Pfn {
        let gfp = crate::mm::types::Gfp::user(NodeId::FIRST);
        let pfn = world.alloc_page_fast(gfp).unwrap();
        world.mm.pages[pfn].set(flags);
        world.mm.lru_add(pfn);
        pfn
    }

    /// Evicts a page, then `later` others, and lets the first come back: whether it starts active.
    fn comes_back_active(world: &mut World, kind: u16, later: u32) -> bool {
        let gone = page(world, kind);
        let shadow = world
            .mm
            .workingset_eviction(gone, MemcgId::ROOT)
            .expect("it is remembered");
        for _ in 0..later {
            let other = page(world, kind);
            world.mm.workingset_eviction(other, MemcgId::ROOT);
            world.mm.release_page(other);
        }
        world.mm.release_page(gone);
        let gfp = crate::mm::types::Gfp::user(NodeId::FIRST);
        let back = world.alloc_page_fast(gfp).unwrap();
        world.mm.pages[back].set(kind);
        world.mm.workingset_refault(back, shadow);
        let active = world.mm.pages[back].has(flag::ACTIVE);
        world.mm.lru_add(back);
        active
    }

    #[test]
    fn a_shadow_keeps_what_it_was_given() {
        for (lruvec, age, workingset) in [(0, 0, false), (15, AGE_MASK, true), (3, 77, true)] {
            let shadow = Shadow::pack(LruvecId::from(lruvec), age, workingset);
            assert_eq!(
                (shadow.lruvec(), shadow.age(), shadow.was_active()),
                (LruvecId::from(lruvec), age, workingset)
            );
            assert_eq!(Shadow::from_bits(shadow.bits()), Some(shadow));
        }
        assert_eq!(Shadow::from_bits(AGE_MASK), None);
    }

    #[test]
    fn a_file_page_competes_with_the_active_ones() {
        let mut world = World::of_version("v3.15");
        for _ in 0..10 {
            page(&mut world, flag::ACTIVE);
        }
        assert!(comes_back_active(&mut world, 0, 10));
        // It is the eleventh active page now.
        assert!(!comes_back_active(&mut world, 0, 12));
        assert_eq!(world.mm.stat.workingset_refault, [0, 2]);
        assert_eq!(world.mm.stat.workingset_activate, [0, 1]);
    }

    #[test]
    fn an_anonymous_page_competes_with_files_and_active_anon_only() {
        let mut world = World::of_version("v5.9");
        for _ in 0..10 {
            page(&mut world, flag::SWAPBACKED);
        }
        assert!(!comes_back_active(&mut world, flag::SWAPBACKED, 0));
        for _ in 0..5 {
            page(&mut world, 0);
            page(&mut world, flag::SWAPBACKED | flag::ACTIVE);
        }
        // The clock moves by its own eviction and by each later one.
        assert!(comes_back_active(&mut world, flag::SWAPBACKED, 9));
        assert!(!comes_back_active(&mut world, flag::SWAPBACKED, 11));
        assert_eq!(world.mm.stat.workingset_activate, [1, 0]);
    }

    #[test]
    fn older_kernels_remember_less() {
        let mut old = World::of_version("v3.14");
        let file = page(&mut old, 0);
        assert_eq!(old.mm.workingset_eviction(file, MemcgId::ROOT), None);
        let mut files_only = World::of_version("v4.12");
        let anon = page(&mut files_only, flag::SWAPBACKED);
        assert_eq!(files_only.mm.workingset_eviction(anon, MemcgId::ROOT), None);
        assert_eq!(files_only.mm.lruvecs[LruvecId::from(0)].nonresident_age, 0);
    }

    #[test]
    fn the_clock_may_go_round() {
        let mut world = World::of_version("v5.9");
        for _ in 0..10 {
            page(&mut world, flag::SWAPBACKED | flag::ACTIVE);
        }
        world.mm.lruvecs[LruvecId::from(0)].nonresident_age = AGE_MASK - 2;
        assert!(comes_back_active(&mut world, flag::SWAPBACKED, 5));
    }
}
