//! A set of LRU lists (`struct lruvec`): a policy, which says where pages stand and which comes next, and beside it what is
//! the same for every policy.
//!
//! What adds a page, deletes it or moves it calls [`Lruvec`], and does not know the policy. Reclaim goes through the lists of
//! a policy in its own way, in a file of the policy's name under `reclaim/vmscan/`.

use super::LruvecCounts;
use super::lru_gen::Generations;
use crate::kernel::LruGen;
use crate::mm::frames::lru_list::{Chunks, LruList};
use crate::mm::frames::page::{Page, Pages};
use crate::mm::types::{ByZone, Lru, MAX_NR_ZONES, Pfn, ZoneType, flag};

/// The LRU lists of a zone or node, with what reclaim remembers about them.
#[derive(Debug, Default)]
pub(crate) struct Lruvec {
    /// Where the pages stand.
    policy: Policy,
    /// Pages of large folios on the lists beside their heads, indexed by [`Lru`].
    tails: [u64; 4],
    /// Pages by zone type, indexed by [`Lru`] then (`lru_zone_size`).
    zone_pages: [[u64; 4]; MAX_NR_ZONES],
    /// `NR_ISOLATED_ANON`, `NR_ISOLATED_FILE`; those of the root count for all groups.
    pub(crate) isolated: [u64; 2],
    /// Evictions and activations so far, modulo 2^26 (`nonresident_age`, `inactive_age`).
    pub(crate) nonresident_age: u32,
    /// `WORKINGSET_ACTIVATE` of anon and file.
    pub(crate) activations: [u64; 2],
    /// The same when reclaim last ended, as far as it was known (`refaults`).
    pub(crate) refaults: [u64; 2],
    /// Counters when they were last flushed (`lruvec_stats`).
    pub(crate) flushed: LruvecCounts,
    /// ZONE_WRITEBACK, PGDAT_WRITEBACK: a whole batch was under writeback (3.11 and later).
    pub(crate) all_writeback: bool,
    /// ZONE_TAIL_LRU_DIRTY, PGDAT_DIRTY: a whole batch was dirty and nobody writes it (3.11 and later).
    pub(crate) tail_dirty: bool,
    /// LRUVEC_CONGESTED: all dirty pages of a pass were under writeback and had come round again (5.16 and
    /// later).
    pub(crate) congested: bool,
}

/// How pages are ordered.
#[derive(Debug)]
enum Policy {
    /// An active and an inactive list, of anonymous pages and of those of files.
    Classic(Classic),
    /// Generations of both kinds (`lru_gen`).
    Generations(Box<Generations>),
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::Classic(Classic::default())
    }
}

/// Two lists each of anonymous pages and of those of files, and how scanning was shared between both kinds.
#[derive(Debug, Default)]
pub(crate) struct Classic {
    /// Lists, indexed by [`Lru`].
    lists: [LruList; 4],
    /// `recent_scanned` of anon and file.
    pub(crate) recent_scanned: [u64; 2],
    /// `recent_rotated` of anon and file.
    pub(crate) recent_rotated: [u64; 2],
    /// Shares below a batch, by list (to 2.6.39).
    pub(crate) nr_saved_scan: [u64; 4],
    /// `anon_cost`, `file_cost`.
    pub(crate) cost: [u64; 2],
}

/// Of lists of these lengths, the pages that reclaim may find.
fn reclaimable(swap: bool, len: impl Fn(Lru) -> u64) -> u64 {
    let file = len(Lru::InactiveFile) + len(Lru::ActiveFile);
    let anon = len(Lru::InactiveAnon) + len(Lru::ActiveAnon);
    file + if swap { anon } else { 0 }
}

impl Classic {
    fn note_activation(&mut self, file: bool, pages: u64) {
        self.recent_scanned[usize::from(file)] += pages;
        self.recent_rotated[usize::from(file)] += pages;
    }
}

impl Lruvec {
    /// The pages stand in generations from now on; there are none yet.
    pub(in crate::mm) fn switch_to_generations(&mut self, rules: LruGen) {
        self.policy = Policy::Generations(Box::new(Generations::new(rules)));
    }

    /// The pages as generations, where they stand in such.
    #[inline]
    pub(crate) fn generations(&self) -> Option<&Generations> {
        match &self.policy {
            Policy::Classic(_) => None,
            Policy::Generations(generations) => Some(generations),
        }
    }

    #[inline]
    pub(crate) fn generations_mut(&mut self) -> Option<&mut Generations> {
        match &mut self.policy {
            Policy::Classic(_) => None,
            Policy::Generations(generations) => Some(generations),
        }
    }

    /// The lists as active and inactive ones, which reclaim goes through that does not know of generations.
    #[inline]
    pub(crate) fn classic(&mut self) -> &mut Classic {
        match &mut self.policy {
            Policy::Classic(classic) => classic,
            Policy::Generations(_) => unreachable!("generations have a reclaim of their own"),
        }
    }

    /// Pages of a kind, anon or file, were activated outside of reclaim (`update_page_reclaim_stat`).
    pub(crate) fn note_activation(&mut self, file: bool, pages: u64) {
        match &mut self.policy {
            Policy::Classic(classic) => classic.note_activation(file, pages),
            // What comes back alone says how the kinds share reclaim.
            Policy::Generations(_) => {}
        }
    }

    #[inline]
    fn list_mut(&mut self, lru: Lru) -> &mut LruList {
        &mut self.classic().lists[lru as usize]
    }

    /// Pages on a list; of generations, those that count as on it.
    #[inline]
    pub(crate) fn len(&self, lru: Lru) -> u64 {
        match &self.policy {
            Policy::Classic(classic) => {
                classic.lists[lru as usize].len() + self.tails[lru as usize]
            }
            Policy::Generations(_) => self.len_up_to(ZoneType::High, lru),
        }
    }

    /// Whether any large folio is on a list.
    #[inline]
    pub(crate) fn has_folios(&self, lru: Lru) -> bool {
        self.tails[lru as usize] > 0
    }

    /// Pages on a list whose zone is of a type.
    #[inline]
    pub(crate) fn zone_len(&self, kind: ZoneType, lru: Lru) -> u64 {
        self.zone_pages[kind as usize][lru as usize]
    }

    /// Pages on a list whose zone is of a type up to `highest` (`lruvec_lru_size`).
    pub(crate) fn len_up_to(&self, highest: ZoneType, lru: Lru) -> u64 {
        let zones = &self.zone_pages[..=highest as usize];
        zones.iter().map(|pages| pages[lru as usize]).sum()
    }

    /// Pages that reclaim may find: file, and anon while there is swap
    /// (`zone_reclaimable_pages`).
    pub(crate) fn reclaimable(&self, swap: bool) -> u64 {
        reclaimable(swap, |lru| self.len(lru))
    }

    /// The same of zones of a type alone.
    pub(crate) fn zone_reclaimable(&self, kind: ZoneType, swap: bool) -> u64 {
        reclaimable(swap, |lru| self.zone_len(kind, lru))
    }

    /// What is on a list: pages and heads of folios, the oldest first; of generations, what counts as on it.
    pub(crate) fn iter<'a>(
        &self,
        chunks: &'a Chunks,
        pages: &'a Pages,
        lru: Lru,
    ) -> impl Iterator<Item = Pfn> + use<'a> {
        let (classic, generations) = match &self.policy {
            Policy::Classic(classic) => (Some(classic.lists[lru as usize].iter(chunks)), None),
            Policy::Generations(gens) => (None, Some(gens.iter(chunks, pages, lru))),
        };
        let classic = classic.into_iter().flatten();
        classic.chain(generations.into_iter().flatten())
    }

    /// What [`take_tail`](Self::take_tail) will take next, as far as it is known at once.
    pub(crate) fn next_at_tail<'a>(&self, chunks: &'a Chunks, lru: Lru, want: u64) -> &'a [Pfn] {
        match &self.policy {
            Policy::Classic(classic) => {
                classic.lists[lru as usize].tail_places(chunks, want as usize)
            }
            Policy::Generations(_) => &[],
        }
    }

    /// A page goes to the head of the list that its flags say, or with it the folio that it is the head of
    /// (`lruvec_add_folio`); `kind` is the type of its zone.
    #[inline(always)]
    pub(crate) fn add(&mut self, chunks: &mut Chunks, pages: &mut Pages, pfn: Pfn, kind: ZoneType) {
        let page = &mut pages[pfn];
        debug_assert!(!page.has_any(flag::LRU) && !page.has(flag::BUDDY));
        page.set(flag::LRU);
        if let Policy::Classic(classic) = &mut self.policy {
            let lru = page.lru();
            page.position = classic.lists[lru as usize].push_head(chunks, pfn);
            let page = *page;
            self.count_in(&page, kind, lru);
        } else {
            self.add_to_generation(chunks, pages, (pfn, kind), false);
        }
    }

    #[cold]
    fn add_to_generation(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        page: (Pfn, ZoneType),
        reclaiming: bool,
    ) {
        if let Some(gens) = self.generations_mut() {
            let lru = gens.add(chunks, pages, page, reclaiming);
            let count = pages[page.0].folio_nr_pages();
            self.count(page.1, lru, |pages| *pages += count);
        }
    }

    /// A page leaves its list (`lruvec_del_folio`).
    #[inline]
    pub(crate) fn delete(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        pfn: Pfn,
        kind: ZoneType,
    ) {
        let page = &mut pages[pfn];
        debug_assert!(page.has(flag::LRU), "a page that is on no list leaves it");
        page.clear(flag::LRU);
        if matches!(self.policy, Policy::Classic(_)) {
            let lru = page.lru();
            let page = *page;
            self.count_out(&page, kind, lru);
            self.remove(chunks, pages, pfn, lru);
        } else {
            self.delete_from_generation(chunks, pages, (pfn, kind));
        }
    }

    #[cold]
    fn delete_from_generation(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        page: (Pfn, ZoneType),
    ) {
        if let Some(gens) = self.generations_mut() {
            let lru = gens.delete(chunks, pages, page);
            let count = pages[page.0].folio_nr_pages();
            self.count(page.1, lru, |pages| *pages -= count);
        }
    }

    /// A page goes to the tail of the inactive list, or of the oldest generation, where reclaim finds it first
    /// (`lruvec_add_folio_tail`).
    #[inline(always)]
    pub(crate) fn rotate(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        pfn: Pfn,
        kind: ZoneType,
    ) {
        if matches!(self.policy, Policy::Generations(_)) {
            self.delete_from_generation(chunks, pages, (pfn, kind));
            pages[pfn].clear(flag::ACTIVE);
            self.add_to_generation(chunks, pages, (pfn, kind), true);
            return;
        }
        let page = &mut pages[pfn];
        let from = page.lru();
        page.clear(flag::ACTIVE);
        let to = page.lru();
        let (place, pages_of_it) = (page.position, page.folio_nr_pages());
        if from != to {
            let by_zone = &mut self.zone_pages[kind as usize];
            by_zone[from as usize] -= pages_of_it;
            by_zone[to as usize] += pages_of_it;
            self.tails[from as usize] -= pages_of_it - 1;
            self.tails[to as usize] += pages_of_it - 1;
        }
        self.list_mut(from).remove(chunks, place);
        pages[pfn].position = self.list_mut(to).push_tail(chunks, pfn);
        self.pack(chunks, pages, from);
    }

    /// Takes up to `want` pages or heads of folios off the tail of a list at once, the oldest first, and adds them to
    /// `batch`. They are still counted on it.
    pub(crate) fn take_tail(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        (lru, want): (Lru, u64),
        batch: &mut Vec<Pfn>,
    ) {
        let first = batch.len();
        self.list_mut(lru).cut_tail(chunks, want, batch);
        for &pfn in &batch[first..] {
            pages[pfn].clear(flag::LRU);
        }
    }

    /// Gives back the last of what [`take_tail`](Self::take_tail) took.
    pub(crate) fn give_back_tail(
        &mut self,
        chunks: &mut Chunks,
        pages: &mut Pages,
        lru: Lru,
        last: &[Pfn],
    ) {
        for &pfn in last.iter().rev() {
            let page = &mut pages[pfn];
            page.set(flag::LRU);
            page.position = self.list_mut(lru).push_tail(chunks, pfn);
        }
    }

    /// Pages that were taken and not given back are no longer counted on the list: `by_zone` pages by type of their zone,
    /// `tails` of which are tails of folios.
    pub(crate) fn count_taken(&mut self, lru: Lru, by_zone: &ByZone, tails: u64) {
        for (on_list, taken) in self.zone_pages.iter_mut().zip(by_zone) {
            on_list[lru as usize] -= taken;
        }
        self.tails[lru as usize] -= tails;
    }

    /// Changes how many pages count as on a list.
    pub(super) fn count(&mut self, zone: ZoneType, lru: Lru, change: impl FnOnce(&mut u64)) {
        change(&mut self.zone_pages[zone as usize][lru as usize]);
    }

    #[inline]
    fn remove(&mut self, chunks: &mut Chunks, pages: &mut Pages, pfn: Pfn, lru: Lru) {
        let place = pages[pfn].position;
        self.list_mut(lru).remove(chunks, place);
        self.pack(chunks, pages, lru);
    }

    #[inline]
    fn pack(&mut self, chunks: &mut Chunks, pages: &mut Pages, lru: Lru) {
        let list = self.list_mut(lru);
        if list.is_sparse() {
            list.pack(chunks, pages);
        }
    }

    /// A page, or all of the folio that it is the head of, is on a list now (`update_lru_size`).
    #[inline]
    fn count_in(&mut self, page: &Page, kind: ZoneType, lru: Lru) {
        let (kind, lru) = (kind as usize, lru as usize);
        self.zone_pages[kind][lru] += 1;
        if page.order() > 0 {
            let tails = page.folio_nr_pages() - 1;
            self.zone_pages[kind][lru] += tails;
            self.tails[lru] += tails;
        }
    }

    /// The page, with its folio, has left the list.
    #[inline]
    fn count_out(&mut self, page: &Page, kind: ZoneType, lru: Lru) {
        let (kind, lru) = (kind as usize, lru as usize);
        self.zone_pages[kind][lru] -= 1;
        if page.order() > 0 {
            let tails = page.folio_nr_pages() - 1;
            self.zone_pages[kind][lru] -= tails;
            self.tails[lru] -= tails;
        }
    }
}
