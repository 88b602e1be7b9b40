//! Generations of pages (`struct lru_gen_folio`, ac35a4902374, 6.1), as a policy of a set of LRU lists.
//!
//! 1. Pages stand in two to four generations, numbered from `min_seq` to `max_seq`. Anonymous pages and pages of files share
//!    `max_seq`; each kind has an oldest generation of its own.
//! 2. A generation has a list for each kind and zone. Reclaim takes pages from the tail of the oldest.
//! 3. A page that is used joins the youngest generation. Where page tables tell that it is used the page stays on its old list
//!    until reclaim comes to it and moves it.
//! 4. The two youngest generations count as active.
//!
//! What each page knows is in `frames/generation.rs`.

mod groups;
mod tiers;

use super::lruvec::Lruvec;
use crate::kernel::{GenActiveRefs, GenEntry, GenMinSeq, GenRefault, LruGen};
use crate::mm::frames::generation::{MAX_NR_TIERS, tier_of};
use crate::mm::frames::lru_list::{Chunks, LruList};
use crate::mm::frames::page::{Page, Pages};
use crate::mm::types::{Lru, MAX_NR_ZONES, Pfn, ZoneType, flag};
pub(crate) use groups::{GroupLru, Move};
use std::collections::BTreeSet;
pub(crate) use tiers::Tiers;

/// The fewest generations (`MIN_NR_GENS`).
pub(crate) const MIN_NR_GENS: u64 = 2;
/// The most (`MAX_NR_GENS`).
pub(crate) const MAX_NR_GENS: usize = 4;

/// Something for each generation, kind and type of zone.
type ByPlace<T> = [[[T; MAX_NR_ZONES]; 2]; MAX_NR_GENS];

/// Tables of page tables in which many pages were found used: a region and an extent of 2 MiB of it each. Kernels have a Bloom
/// filter, which says yes to a few others as well.
pub(crate) type Filter = BTreeSet<(u32, u32)>;

/// Pages by generation.
#[derive(Debug)]
pub(crate) struct Generations {
    rules: LruGen,
    /// The youngest generation.
    pub(crate) max_seq: u64,
    /// The oldest of anonymous pages and of those of files.
    pub(crate) min_seq: [u64; 2],
    /// `folios`
    lists: ByPlace<LruList>,
    /// `nr_pages`: pages that belong to each generation, whatever list they are on.
    pages: ByPlace<u64>,
    /// What came back, of anonymous pages and of those of files.
    pub(crate) tiers: [Tiers; 2],
    /// Which tables the walks of even and of odd generations look at; none: all (`mm_state.filters`).
    pub(crate) filters: [Option<Filter>; 2],
    /// Processes below this number have been seen by a walk.
    pub(crate) spaces_seen: usize,
}

/// Slot of a generation (`lru_gen_from_seq`).
fn slot(seq: u64) -> usize {
    seq as usize % MAX_NR_GENS
}

/// Whether pages are those of files, by the index of their kind.
fn kind_of(page: &Page) -> usize {
    usize::from(!page.has(flag::SWAPBACKED))
}

impl Generations {
    /// `lru_gen_init_lruvec`
    pub(crate) fn new(rules: LruGen) -> Generations {
        Generations {
            rules,
            max_seq: MIN_NR_GENS + 1,
            min_seq: [0, 0],
            lists: Default::default(),
            pages: Default::default(),
            tiers: Default::default(),
            filters: [None, None],
            spaces_seen: 0,
        }
    }

    /// Generations that have been made since there were the first four.
    pub(crate) fn made(&self) -> u64 {
        self.max_seq - (MIN_NR_GENS + 1)
    }

    /// Generations of anonymous pages or of those of files (`get_nr_gens`).
    pub(crate) fn count(&self, kind: usize) -> u64 {
        self.max_seq - self.min_seq[kind] + 1
    }

    /// Whether the pages of a slot count as active (`lru_gen_is_active`).
    fn is_active(&self, gen_slot: usize) -> bool {
        gen_slot == slot(self.max_seq) || gen_slot == slot(self.max_seq - 1)
    }

    fn lru(&self, kind: usize, gen_slot: usize) -> Lru {
        Lru::new(kind == 1, self.is_active(gen_slot))
    }

    /// Pages of a kind in a generation (`nr_pages` of all zones).
    pub(crate) fn size(&self, kind: usize, seq: u64) -> u64 {
        self.pages[slot(seq)][kind].iter().sum()
    }

    /// Pages of a kind in all generations.
    pub(crate) fn total(&self, kind: usize) -> u64 {
        (self.min_seq[kind]..=self.max_seq)
            .map(|seq| self.size(kind, seq))
            .sum()
    }

    /// Whether the list that a page is on belongs to one of the generations; the invariants ask.
    pub(crate) fn is_on_its_list(&self, pages: &Pages, pfn: Pfn) -> bool {
        let (kind, list) = (kind_of(&pages[pfn]), pages.generation(pfn).list());
        (self.min_seq[kind]..=self.max_seq).any(|seq| slot(seq) == list)
    }

    /// Whether a page belongs to the youngest generation.
    pub(crate) fn is_youngest(&self, pages: &Pages, pfn: Pfn) -> bool {
        pages.generation(pfn).slot() == slot(self.max_seq)
    }

    /// Whether nothing is on the lists of the oldest generation of a kind.
    fn is_oldest_empty(&self, kind: usize, seq: u64) -> bool {
        self.lists[slot(seq)][kind]
            .iter()
            .all(|list| list.len() == 0)
    }

    /// The generation that a page is added to; `reclaiming`: it is to be found first (`lru_gen_add_folio`,
    /// `lru_gen_folio_seq`).
    pub(crate) fn seq_of(&self, page: &Page, reclaiming: bool) -> u64 {
        let kind = kind_of(page);
        let min_seq = self.min_seq[kind];
        let workingset = u64::from(page.has(flag::WORKINGSET));
        let active = page.has(flag::ACTIVE);
        let last = MAX_NR_GENS as u64 - 1;
        match self.rules.gen_entry {
            GenEntry::Workingset if active => self.max_seq - 1 + workingset,
            GenEntry::Workingset if reclaiming => self.max_seq.saturating_sub(last).max(min_seq),
            GenEntry::Workingset if page.is_to_be_written() => self.max_seq - 1,
            GenEntry::Workingset => (self.max_seq + workingset)
                .saturating_sub(last)
                .max(min_seq),
            _ if active => self.max_seq,
            _ if page.is_to_be_written() => self.max_seq - 1,
            GenEntry::SecondOldest if !reclaiming && self.count(kind) == MAX_NR_GENS as u64 => {
                min_seq + 1
            }
            _ => min_seq,
        }
    }

    /// `lru_gen_add_folio`: to the head of the list of the generation that the flags of a page say, to the tail if it is
    /// to be found first. Which list of the classic ones that is.
    pub(super) fn add(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        (pfn, zone): (Pfn, ZoneType),
        reclaiming: bool,
    ) -> Lru {
        let seq = self.seq_of(&pages[pfn], reclaiming);
        let page = &mut pages[pfn];
        let active = page.test_and_clear(flag::ACTIVE);
        if active && self.rules.gen_active_refs == GenActiveRefs::Cleared {
            page.clear(flag::REFERENCED);
            pages.generation_mut(pfn).set_refs(0);
        }
        let page = &pages[pfn];
        let (kind, count) = (kind_of(page), page.folio_nr_pages());
        pages.generation_mut(pfn).set_slot(slot(seq));
        self.pages[slot(seq)][kind][zone as usize] += count;
        let end = if reclaiming { End::Tail } else { End::Head };
        self.push(chunks, pages, (pfn, zone), (slot(seq), end));
        self.lru(kind, slot(seq))
    }

    /// `lru_gen_del_folio`. A page of the two youngest generations is marked as active, unless it is taken to be reclaimed.
    pub(super) fn delete(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        (pfn, zone): (Pfn, ZoneType),
    ) -> Lru {
        let generation = pages.generation(pfn);
        let place = pages[pfn].position;
        let kind = kind_of(&pages[pfn]);
        let list = &mut self.lists[generation.list()][kind][zone as usize];
        list.remove(chunks, place);
        if list.is_sparse() {
            list.pack(chunks, pages);
        }
        let lru = self.leave(pages, (pfn, zone));
        if lru.is_active() {
            pages[pfn].set(flag::ACTIVE);
        }
        lru
    }

    /// A page that is on no list any more belongs to no generation any more.
    fn leave(&mut self, pages: &Pages, (pfn, zone): (Pfn, ZoneType)) -> Lru {
        let gen_slot = pages.generation(pfn).slot();
        let kind = kind_of(&pages[pfn]);
        self.pages[gen_slot][kind][zone as usize] -= pages[pfn].folio_nr_pages();
        self.lru(kind, gen_slot)
    }

    /// Puts a page on the list of a slot.
    fn push(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        (pfn, zone): (Pfn, ZoneType),
        (gen_slot, end): (usize, End),
    ) {
        let kind = kind_of(&pages[pfn]);
        let list = &mut self.lists[gen_slot][kind][zone as usize];
        let position = match end {
            End::Head => list.push_head(chunks, pfn),
            End::Tail => list.push_tail(chunks, pfn),
        };
        pages[pfn].position = position;
        pages.generation_mut(pfn).set_list(gen_slot);
    }

    /// What is on the lists that count as one of the classic ones.
    pub(super) fn iter<'a>(
        &self,
        chunks: &'a Chunks,
        pages: &'a Pages,
        lru: Lru,
    ) -> impl Iterator<Item = Pfn> + use<'a> {
        let active = [0, 1, 2, 3].map(|gen_slot| self.is_active(gen_slot));
        let lists = self.lists;
        let lists = lists
            .into_iter()
            .flat_map(move |kinds| kinds[usize::from(lru.is_file())]);
        lists
            .flat_map(|list| list.iter(chunks))
            .filter(move |&pfn| active[pages.generation(pfn).slot()] == lru.is_active())
    }
}

/// Where a page goes that reclaim has met and does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Head,
    Tail,
}

impl Lruvec {
    /// Takes up to `want` pages or heads of folios off the tail of the list of the oldest generation, the oldest page first.
    /// They still belong to it.
    pub(crate) fn cut_oldest(
        &mut self,
        chunks: &mut Chunks,
        (kind, zone): (usize, ZoneType),
        want: u64,
        batch: &mut Vec<Pfn>,
    ) {
        let Some(gens) = self.generations_mut() else {
            return;
        };
        let list = &mut gens.lists[slot(gens.min_seq[kind])][kind][zone as usize];
        list.cut_tail(chunks, want, batch);
    }

    /// A page that was cut goes back where it was, to the tail or to the head of the list.
    pub(crate) fn uncut(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        (pfn, zone): (Pfn, ZoneType),
        end: End,
    ) {
        if let Some(gens) = self.generations_mut() {
            let oldest = slot(gens.min_seq[kind_of(&pages[pfn])]);
            gens.push(chunks, pages, (pfn, zone), (oldest, end));
        }
    }

    /// A page that was cut goes to the list of its generation, which is another one by now.
    pub(crate) fn sort(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        page: (Pfn, ZoneType),
        end: End,
    ) {
        if let Some(gens) = self.generations_mut() {
            let its_own = pages.generation(page.0).slot();
            gens.push(chunks, pages, page, (its_own, end));
        }
    }

    /// A page that was cut is isolated: it is on no list and belongs to no generation (`isolate_folio`).
    pub(crate) fn isolate_cut(&mut self, pages: &mut Pages, (pfn, zone): (Pfn, ZoneType)) {
        let Some(gens) = self.generations_mut() else {
            return;
        };
        let lru = gens.leave(pages, (pfn, zone));
        let count = pages[pfn].folio_nr_pages();
        pages[pfn].clear(flag::LRU);
        self.count(zone, lru, |pages| *pages -= count);
    }

    /// A page belongs to another generation (`lru_gen_update_size`).
    fn change_generation(&mut self, pages: &mut Pages, (pfn, zone): (Pfn, ZoneType), to: usize) {
        let Some(gens) = self.generations_mut() else {
            return;
        };
        let from = pages.generation(pfn).slot();
        let (kind, count) = (kind_of(&pages[pfn]), pages[pfn].folio_nr_pages());
        gens.pages[from][kind][zone as usize] -= count;
        gens.pages[to][kind][zone as usize] += count;
        let (before, after) = (gens.lru(kind, from), gens.lru(kind, to));
        pages.generation_mut(pfn).set_slot(to);
        self.count(zone, before, |pages| *pages -= count);
        self.count(zone, after, |pages| *pages += count);
    }

    /// A walk of page tables has found a page of these lists used: it belongs to the youngest generation from now on
    /// (`folio_update_gen`), from 6.14 on when that was found before.
    pub(crate) fn promote(&mut self, pages: &mut Pages, page: (Pfn, ZoneType)) {
        let Some(gens) = self.generations() else {
            return;
        };
        let (rule, youngest) = (gens.rules.gen_refault, slot(gens.max_seq));
        if pages.note_used(page.0, rule) {
            self.change_generation(pages, page, youngest);
        }
    }

    /// `folio_inc_gen` of a page that belongs to the oldest generation of its kind, whatever list it is on. The page is marked as one
    /// that reclaim waits for if it has to be written first.
    pub(crate) fn make_younger(
        &mut self,
        pages: &mut Pages,
        page: (Pfn, ZoneType),
        reclaiming: bool,
    ) {
        let Some(gens) = self.generations() else {
            return;
        };
        let next = slot(gens.min_seq[kind_of(&pages[page.0])] + 1);
        pages.forget_refs(page.0, gens.rules.gen_refault);
        if reclaiming {
            pages[page.0].set(flag::RECLAIM);
        }
        self.change_generation(pages, page, next);
    }

    /// Whether a page that was cut belongs to a younger generation by now.
    pub(crate) fn is_promoted(&self, pages: &Pages, pfn: Pfn) -> bool {
        self.generations().is_some_and(|gens| {
            pages.generation(pfn).slot() != slot(gens.min_seq[kind_of(&pages[pfn])])
        })
    }

    /// `inc_max_seq`: a new generation, with room for it made first. Kinds that cannot be reclaimed keep their pages: what was
    /// their oldest generation is their youngest then.
    pub(crate) fn age(&mut self, chunks: &mut Chunks, pages: &mut Pages, swap: bool) {
        for kind in [1, 0] {
            let full = |gens: &Generations| gens.count(kind) == MAX_NR_GENS as u64;
            if self.generations().is_some_and(full) {
                if kind == 1 || swap {
                    self.empty_oldest(chunks, pages, kind);
                }
                if let Some(gens) = self.generations_mut() {
                    gens.tiers[kind].close();
                    gens.min_seq[kind] += 1;
                }
            }
        }
        let Some(gens) = self.generations_mut() else {
            return;
        };
        // Of the two youngest generations one becomes inactive, and the new one active.
        let (previous, next) = (slot(gens.max_seq - 1), slot(gens.max_seq + 1));
        let (old, new) = (gens.pages[previous], gens.pages[next]);
        gens.max_seq += 1;
        for zone in ZoneType::ALL {
            for kind in [0, 1] {
                let (old, new) = (old[kind][zone as usize], new[kind][zone as usize]);
                let [inactive, active] = Lru::of_type(kind == 1);
                self.count(zone, inactive, |pages| *pages = *pages + old - new);
                self.count(zone, active, |pages| *pages = *pages + new - old);
            }
        }
    }

    /// `inc_min_seq`: all pages of the oldest generation go to the tail of the next one.
    fn empty_oldest(&mut self, chunks: &mut Chunks, pages: &mut Pages, kind: usize) {
        let mut batch = Vec::new();
        for zone in ZoneType::ALL {
            self.cut_oldest(chunks, (kind, zone), u64::MAX, &mut batch);
            for pfn in batch.drain(..) {
                if !self.is_promoted(pages, pfn) {
                    self.note_protected(pages, pfn);
                    self.make_younger(pages, (pfn, zone), false);
                }
                self.sort(chunks, pages, (pfn, zone), End::Tail);
            }
        }
    }

    /// A page that is kept although it is in the oldest generation counts in its tier, from 6.14 on, unless it was accessed so
    /// often that it is always kept.
    fn note_protected(&mut self, pages: &Pages, pfn: Pfn) {
        let Some(gens) = self.generations_mut() else {
            return;
        };
        if gens.rules.gen_refault == GenRefault::Window && !gens.is_always_kept(pages, pfn) {
            gens.protect(pages, pfn);
        }
    }

    /// `try_to_inc_min_seq`: the oldest generations that are empty are given up, as long as two are left. True: one was.
    pub(crate) fn give_up_empty(&mut self, swap: bool) -> bool {
        let Some(gens) = self.generations_mut() else {
            return false;
        };
        let mut min_seq = gens.min_seq;
        let kinds = if swap { 0..2 } else { 1..2 };
        for kind in kinds.clone() {
            while min_seq[kind] + MIN_NR_GENS <= gens.max_seq
                && gens.is_oldest_empty(kind, min_seq[kind])
            {
                min_seq[kind] += 1;
            }
        }
        if swap {
            match gens.rules.gen_min_seq {
                GenMinSeq::Lockstep => {
                    min_seq[0] = min_seq[0].min(min_seq[1]);
                    min_seq[1] = min_seq[0].max(gens.min_seq[1]);
                }
                // The one that is ahead does not leave the other one alone with what is left.
                GenMinSeq::Free => {
                    let most = gens.max_seq - MIN_NR_GENS;
                    if min_seq[0] > most && min_seq[1] < most {
                        min_seq[0] = most;
                    } else if min_seq[1] > most && min_seq[0] < most {
                        min_seq[1] = most;
                    }
                }
            }
        }
        let mut given_up = false;
        for kind in kinds {
            if min_seq[kind] > gens.min_seq[kind] {
                gens.tiers[kind].close();
                gens.min_seq[kind] = min_seq[kind];
                given_up = true;
            }
        }
        given_up
    }
}

impl Generations {
    /// Whether a page was accessed so often that it is kept whatever its tier ("lazily promoted").
    pub(crate) fn is_always_kept(&self, pages: &Pages, pfn: Pfn) -> bool {
        let refs = pages.lru_refs(pfn, self.rules.gen_refault);
        match (self.rules.gen_refault, self.rules.gen_entry) {
            (GenRefault::Window, _) => {
                refs == MAX_NR_TIERS as u64 && pages[pfn].has(flag::WORKINGSET)
            }
            (GenRefault::Oldest, GenEntry::Oldest) => false,
            (GenRefault::Oldest, _) => refs == MAX_NR_TIERS as u64,
        }
    }

    /// A page is kept although it is in the oldest generation.
    pub(crate) fn protect(&mut self, pages: &Pages, pfn: Pfn) {
        let page = &pages[pfn];
        let rule = self.rules.gen_refault;
        let tier = tier_of(pages.lru_refs(pfn, rule), page.has(flag::WORKINGSET), rule);
        self.tiers[kind_of(page)].protected[tier] += page.folio_nr_pages();
    }
}

#[cfg(test)]
impl Generations {
    /// Generations for tests: `sizes` are the anonymous pages of each, the oldest first. Files have as many, all of them empty.
    pub(crate) fn of_sizes(rules: LruGen, sizes: &[u64]) -> Generations {
        let mut gens = Generations::new(rules);
        gens.max_seq = 7;
        gens.min_seq = [gens.max_seq + 1 - sizes.len() as u64; 2];
        for (seq, &size) in (gens.min_seq[0]..).zip(sizes) {
            gens.pages[slot(seq)][0][0] = size;
        }
        gens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    /// Sets of lists of a version, with `max_seq` 7 and both kinds' oldest generation 4.
    fn lists(version: &str) -> (Lruvec, Chunks, Pages) {
        let rules = Kernel::named(version).mechanisms.lru_gen;
        let mut lists = Lruvec::default();
        lists.switch_to_generations(rules);
        let gens = lists.generations_mut().expect("they are on");
        (gens.max_seq, gens.min_seq) = (7, [4, 4]);
        let mut pages = Pages::new(16, &[]);
        pages.make_generations();
        (lists, Chunks::default(), pages)
    }

    /// By the rules of 6.12 and of 6.18: what a fault brings, what read(2) brings, the same back from where it had been taken
    /// too early, an anonymous page that reclaim writes, and that page when it is written.
    #[test]
    fn pages_enter_the_generation_that_fits_them() {
        let anon = flag::SWAPBACKED;
        let written = anon | flag::SWAPCACHE | flag::RECLAIM;
        for (version, expected) in [
            ("v6.6", [7, 4, 4, 6, 4]),
            ("v6.12", [7, 5, 5, 6, 4]),
            ("v6.18", [6, 4, 5, 6, 4]),
        ] {
            let (lists, _, mut pages) = lists(version);
            let gens = lists.generations().expect("they are on");
            let cases = [
                (anon | flag::ACTIVE, false),
                (0, false),
                (flag::WORKINGSET, false),
                (written | flag::WRITEBACK, false),
                (anon | flag::SWAPCACHE, true),
            ];
            let seqs = cases.map(|(flags, reclaiming)| {
                pages[0].reset();
                pages[0].set(flags);
                gens.seq_of(&pages[0], reclaiming)
            });
            assert_eq!(seqs, expected, "{version}");
        }
    }

    /// Lengths by list of 6 pages, of which 2 are used, as generations come and go.
    #[test]
    fn a_new_generation_makes_the_third_youngest_inactive() {
        let (mut lists, mut chunks, mut pages) = lists("v6.12");
        let zone = ZoneType::Normal;
        for pfn in 0..6 {
            pages[pfn].set(flag::SWAPBACKED | flag::ACTIVE);
            lists.add(&mut chunks, &mut pages, pfn, zone);
        }
        let mut lengths = Vec::new();
        for step in 0..4 {
            if step == 2 {
                lists.promote(&mut pages, (1, zone));
                lists.promote(&mut pages, (4, zone));
            }
            lists.age(&mut chunks, &mut pages, true);
            lengths.push([Lru::InactiveAnon, Lru::ActiveAnon].map(|lru| lists.len(lru)));
        }
        assert_eq!(lengths, [[0, 6], [6, 0], [4, 2], [6, 0]]);
        let gens = lists.generations().expect("they are on");
        assert_eq!((gens.max_seq, gens.min_seq), (11, [8, 8]));
        // Those that nobody used are in the oldest one, turned round as each was put behind the one before it.
        let mut batch = Vec::new();
        lists.cut_oldest(&mut chunks, (0, zone), 16, &mut batch);
        assert_eq!(batch, [5, 3, 2, 0]);
    }

    /// A page in the oldest generation of its kind, and none of the other kind.
    #[test]
    fn empty_generations_are_given_up_together_or_apart() {
        for (version, expected) in [("v6.6", [4, 4]), ("v6.18", [4, 5])] {
            let (mut lists, mut chunks, mut pages) = lists(version);
            let zone = ZoneType::Normal;
            pages[0].set(flag::SWAPBACKED | flag::SWAPCACHE);
            lists.add(&mut chunks, &mut pages, 0, zone);
            lists.give_up_empty(true);
            let oldest = |lists: &Lruvec| lists.generations().map(|gens| gens.min_seq);
            assert_eq!(oldest(&lists), Some(expected), "{version}");
            lists.delete(&mut chunks, &mut pages, 0, zone);
            lists.give_up_empty(true);
            assert_eq!(oldest(&lists), Some([6, 6]), "{version}");
        }
    }
}
