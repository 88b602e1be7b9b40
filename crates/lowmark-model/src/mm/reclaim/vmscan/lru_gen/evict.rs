//! A batch from the oldest generation (`evict_folios`).
//!
//! 1. Pages are looked at from the tail of the list, zone by zone (`scan_folios`). A page that has become younger goes where it
//!    belongs; one that was read often, that lies in a zone that does not help, or that has to be written first goes to the next
//!    generation (`sort_folio`). The others are isolated, up to 64.
//! 2. Generations that are empty then are given up.
//! 3. What is isolated is reclaimed as from an inactive list ([`page_list`]). A page that is left over and would come back to
//!    the oldest generation goes to a young one.
//! 4. Pages that are left over and are clean and not mapped are tried once more: their writeback may have ended meanwhile.
//!
//! Left out: to 6.5 reclaim passes over the lists of zones that do not help as a whole.

use super::{MAX_LRU_BATCH, MIN_LRU_BATCH, Pass, ScanControl, Target};
use crate::ids::LruvecId;
use crate::kernel::{
    GenBatch, GenDirty, GenEvents, GenFlusher, GenMinSeq, GenPass, GenRefault, GenRefaultCount,
};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::lru_gen::{End, Generations, MIN_NR_GENS, Tiers};
use crate::mm::reclaim::vmscan::account::trace_shrink_inactive;
use crate::mm::reclaim::vmscan::{Batch, page_list};
use crate::mm::types::{Lru, MAX_NR_ZONES, Pfn, ZoneType, flag};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};

/// What looking at pages of one kind came to.
#[derive(Debug, Clone, Copy, Default)]
struct Looked {
    /// Pages looked at.
    scanned: u64,
    /// Those moved to other generations.
    sorted: u64,
    /// Those left where they are, as this reclaimer cannot take them.
    skipped: u64,
    /// Those isolated.
    isolated: u64,
    /// No more may be looked at in one go.
    at_limit: bool,
}

/// Which pages may be taken.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Pages of files, by the index of their kind.
    kind: usize,
    /// The highest tier.
    tier: usize,
    /// Pages to look at, at most.
    most: u64,
}

/// What becomes of a page that reclaim looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sorted {
    /// It goes to another list.
    To(End),
    /// It stays on this one, as the reclaimer cannot take it.
    Stays,
    /// It is isolated.
    Isolated,
}

/// Isolates a batch and reclaims it. `whole` is the number of pages that the pass may look at. Returns the pages looked at; 0 ends
/// the pass.
pub(super) async fn evict_folios(
    sys: &Sys,
    target: Target,
    (whole, swappiness): (u64, u64),
    pass: &mut Pass,
    sc: &mut ScanControl,
) -> u64 {
    let mut batch;
    let (scanned, kind, sort_cost);
    {
        let world = &mut *sys.world();
        batch = world.batches.pop().unwrap_or_default();
        let looked = world.isolate_folios(target, (whole, swappiness), sc, &mut batch);
        kind = looked.0;
        sort_cost = world.skip_cost(looked.2);
        scanned = world
            .mm
            .after_isolation(target.lruvec, looked.1, swappiness > 0);
    }
    if sort_cost > 0 {
        sys.charge_locked(sort_cost).await;
    }
    pass.swapped |= kind == 0;
    if batch.is_empty() {
        sys.world().recycle(batch);
        return scanned;
    }
    let lru = Lru::new(kind == 1, false);
    sc.nr_scanned += sys.world().mm.pages.count_pages(&batch);
    let mut last = false;
    loop {
        let outcome = page_list::shrink_page_list(sys, &mut batch, sc).await;
        sc.nr_reclaimed += outcome.reclaimed;
        let again = {
            let world = &mut *sys.world();
            if world.mm.kernel.mechanisms.lru_gen.gen_flusher == GenFlusher::Summed {
                sc.found.unqueued += outcome.unqueued;
            }
            let again = world.mm.put_back_survivors(target, kind, &mut batch, last);
            world.mm.count_reclaimed(target, lru, outcome.reclaimed, sc);
            again
        };
        if sys.world().mm.kernel.mechanisms.lru_gen.gen_events == GenEvents::Batches {
            trace_shrink_inactive(sys, target, lru, scanned, &outcome, sc);
        }
        batch.clear();
        if again.is_empty() {
            break;
        }
        batch.extend(again);
        last = true;
    }
    sys.world().recycle(batch);
    scanned
}

impl World {
    /// `isolate_folios`: isolates pages of one kind, or of the other if there are none. Returns the kind, the pages looked at, and
    /// how many of them were moved or left.
    fn isolate_folios(
        &mut self,
        target: Target,
        (whole, swappiness): (u64, u64),
        sc: &mut ScanControl,
        batch: &mut Batch,
    ) -> (usize, u64, u64) {
        let rules = self.mm.kernel.mechanisms.lru_gen;
        let most = match rules.gen_batch {
            GenBatch::Fixed => MAX_LRU_BATCH,
            GenBatch::Asked => whole.min(MAX_LRU_BATCH),
        };
        let io = sc.gfp.has(gfp::IO);
        let Some(gens) = self.mm.lruvecs[target.lruvec].generations() else {
            return (0, 0, 0);
        };
        let (file, mut limit) = match rules.gen_min_seq {
            _ if swappiness == 0 => (true, None),
            GenMinSeq::Lockstep if gens.min_seq[0] < gens.min_seq[1] => (false, None),
            _ if swappiness == 1 => (true, None),
            _ if swappiness >= 200 => (false, None),
            GenMinSeq::Lockstep if !io => (true, None),
            _ => Tiers::file_first(&gens.tiers, swappiness, rules.gen_type),
        };
        let mut kind = usize::from(file);
        let mut moved = 0;
        for _ in usize::from(swappiness == 0)..2 {
            let tier = limit
                .take()
                .unwrap_or_else(|| self.mm.tier_limit(target.lruvec, kind));
            let wanted = Wanted { kind, tier, most };
            let looked = self.scan_folios(target, wanted, sc, batch);
            moved += looked.sorted + looked.skipped;
            if looked.isolated > 0 || looked.at_limit {
                return (kind, looked.scanned, moved);
            }
            kind = 1 - kind;
        }
        (1 - kind, 0, moved)
    }

    /// `scan_folios`: isolates pages of a kind.
    fn scan_folios(
        &mut self,
        target: Target,
        wanted: Wanted,
        sc: &mut ScanControl,
        batch: &mut Batch,
    ) -> Looked {
        let Wanted { kind, most, .. } = wanted;
        let mut looked = Looked::default();
        let gens = self.mm.lruvecs[target.lruvec].generations();
        if gens.is_none_or(|gens| gens.count(kind) == MIN_NR_GENS) {
            return looked;
        }
        let mut left = most;
        for step in (1..=MAX_NR_ZONES).rev() {
            let zone = ZoneType::ALL[(sc.reclaim_idx as usize + step) % MAX_NR_ZONES];
            let skipped =
                self.mm
                    .scan_zone((target, zone), wanted, &mut left, &mut looked, sc, batch);
            looked.skipped += skipped;
            self.mm.stat.pgskip[zone as usize] += skipped;
            if left == 0 || looked.isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        looked.at_limit = left == 0;
        let lru = Lru::new(kind == 1, false);
        self.mm.count_scanned(target, lru, looked.isolated, sc);
        if !sc.cgroup_reclaim() {
            let zone = self.mm.zones[target.zone].kind as usize;
            self.mm.stat.pgrefill[zone] += looked.sorted;
        }
        if let Some(counts) = self.mm.memcg_counts(target.lruvec) {
            counts.pgrefill += looked.sorted;
        }
        if kind == 1 && self.mm.kernel.mechanisms.lru_gen.gen_flusher == GenFlusher::Summed {
            sc.found.file_taken += looked.isolated;
        }
        if self.mm.kernel.mechanisms.lru_gen.gen_events == GenEvents::Batches {
            self.trace(Kind::LruIsolate, |_| {
                vec![
                    (Field::IsolateMode, 0),
                    (Field::Classzone, sc.reclaim_idx as u64),
                    (Field::Order, u64::from(sc.order)),
                    (Field::NrRequested, MAX_LRU_BATCH),
                    (Field::NrScanned, looked.scanned),
                    (Field::NrSkipped, looked.skipped),
                    (Field::NrTaken, looked.isolated),
                    (Field::File, kind as u64),
                    (Field::Lru, lru as u64),
                ]
            });
        }
        looked
    }
}

impl Mm {
    fn tier_limit(&self, lruvec: LruvecId, kind: usize) -> usize {
        let rule = self.kernel.mechanisms.lru_gen.gen_type;
        let gens = self.lruvecs[lruvec].generations();
        gens.map_or(0, |gens| gens.tiers[kind].tier_limit(rule))
    }

    /// Looks at up to `left` pages of a zone. Returns the pages that this reclaimer cannot take and leaves where they are.
    fn scan_zone(
        &mut self,
        (target, zone): (Target, ZoneType),
        wanted: Wanted,
        left: &mut u64,
        looked: &mut Looked,
        sc: &mut ScanControl,
        batch: &mut Batch,
    ) -> u64 {
        let (mut next, mut stay) = (Vec::new(), Vec::new());
        let mut skipped = 0;
        let mut through = false;
        while !through {
            next.clear();
            let lists = &mut self.lruvecs[target.lruvec];
            let oldest = (wanted.kind, zone);
            lists.cut_oldest(&mut self.chunks, oldest, MIN_LRU_BATCH, &mut next);
            if next.is_empty() {
                break;
            }
            let mut done = 0;
            while done < next.len() && !through {
                let page = (next[done], zone);
                done += 1;
                let pages = self.pages[page.0].folio_nr_pages();
                looked.scanned += pages;
                let sorted = self.sort_folio(target.lruvec, page, wanted.tier, sc);
                let lists = &mut self.lruvecs[target.lruvec];
                match sorted {
                    Sorted::To(end) => {
                        lists.sort(&mut self.chunks, &mut self.pages, page, end);
                        looked.sorted += pages;
                    }
                    Sorted::Stays => {
                        stay.push(page);
                        skipped += pages;
                    }
                    Sorted::Isolated => {
                        lists.isolate_cut(&mut self.pages, page);
                        batch.push(page.0);
                        looked.isolated += pages;
                    }
                }
                *left -= 1;
                through = *left == 0 || looked.isolated.max(skipped) >= MIN_LRU_BATCH;
            }
            let lists = &mut self.lruvecs[target.lruvec];
            for &pfn in next[done..].iter().rev() {
                lists.uncut(&mut self.chunks, &mut self.pages, (pfn, zone), End::Tail);
            }
        }
        for page in stay {
            let lists = &mut self.lruvecs[target.lruvec];
            lists.uncut(&mut self.chunks, &mut self.pages, page, End::Head);
        }
        skipped
    }

    /// What becomes of a page at the tail of the oldest generation (`sort_folio`, `isolate_folio`), in the kernel's order of
    /// decisions.
    fn sort_folio(
        &mut self,
        lruvec: LruvecId,
        page: (Pfn, ZoneType),
        highest_tier: usize,
        sc: &mut ScanControl,
    ) -> Sorted {
        let (pfn, zone) = page;
        let rules = self.kernel.mechanisms.lru_gen;
        let old_rules = rules.gen_refault == GenRefault::Oldest;
        let lists = &mut self.lruvecs[lruvec];
        if lists.is_promoted(&self.pages, pfn) {
            return Sorted::To(End::Head);
        }
        let flags = self.pages[pfn];
        let pages = flags.folio_nr_pages();
        let always = lists
            .generations()
            .is_some_and(|gens| gens.is_always_kept(&self.pages, pfn));
        if always || self.pages.lru_tier(pfn, rules.gen_refault) > highest_tier {
            if let Some(gens) = lists.generations_mut().filter(|_| old_rules || !always) {
                gens.protect(&self.pages, pfn);
            }
            lists.make_younger(&mut self.pages, page, false);
            if rules.gen_refault_count == GenRefaultCount::Recent {
                let kind = usize::from(!flags.has(flag::SWAPBACKED));
                self.stat.workingset_activate[kind] += pages;
            }
            return Sorted::To(if old_rules { End::Tail } else { End::Head });
        }
        if zone > sc.reclaim_idx {
            lists.make_younger(&mut self.pages, page, false);
            return Sorted::To(End::Tail);
        }
        let writeback = flags.has(flag::WRITEBACK);
        let dirty_file = flags.has(flag::DIRTY) && !flags.has(flag::SWAPBACKED);
        let waits = writeback || dirty_file || old_rules && flags.has(flag::LOCKED);
        if waits && rules.gen_dirty == GenDirty::Sorted {
            lists.make_younger(&mut self.pages, page, true);
            if dirty_file && rules.gen_flusher == GenFlusher::Summed {
                sc.found.file_taken += pages;
                sc.found.unqueued += if writeback { 0 } else { pages };
            }
            return Sorted::To(End::Head);
        }
        let may_write = rules.gen_pass != GenPass::Fair || sc.may_writepage;
        let needs_io =
            flags.has(flag::DIRTY) || flags.has(flag::SWAPBACKED) && !flags.has(flag::SWAPCACHE);
        if needs_io && !(may_write && sc.gfp.has(gfp::IO)) {
            return Sorted::Stays;
        }
        self.prepare_for_reclaim(pfn);
        Sorted::Isolated
    }

    /// What an isolated page forgets of its accesses.
    fn prepare_for_reclaim(&mut self, pfn: Pfn) {
        let rules = self.kernel.mechanisms.lru_gen;
        let old_rules = rules.gen_refault == GenRefault::Oldest;
        if !self.pages[pfn].has(flag::REFERENCED) {
            self.pages.generation_mut(pfn).set_refs(0);
            if old_rules {
                self.pages[pfn].clear(flag::WORKINGSET);
            }
        }
        if old_rules {
            self.pages[pfn].clear(flag::REFERENCED);
        }
        // What is under writeback is to be known again.
        if rules.gen_dirty == GenDirty::Sorted {
            self.pages[pfn].clear(flag::RECLAIM);
        }
    }

    /// Gives up generations that isolation has emptied. Returns the pages looked at as the pass counts them; 0 if reclaim needs a new
    /// generation first.
    fn after_isolation(&mut self, lruvec: LruvecId, scanned: u64, swap: bool) -> u64 {
        let given_up = self.lruvecs[lruvec].give_up_empty(swap);
        if self.ages(lruvec, swap).stuck {
            0
        } else {
            scanned + u64::from(given_up)
        }
    }

    /// Survivors of a batch go back to their lists, but those that may be free now, which are to be tried once more unless they
    /// have been.
    fn put_back_survivors(
        &mut self,
        target: Target,
        kind: usize,
        batch: &mut Batch,
        tried_again: bool,
    ) -> Batch {
        let rule = self.kernel.mechanisms.lru_gen.gen_refault;
        let mut again = Batch::new();
        for pfn in batch.drain(..) {
            let page = self.pages[pfn];
            let busy = page.has_any(flag::ACTIVE | flag::DIRTY | flag::WRITEBACK)
                || self.is_folio_mapped(pfn);
            let waits = page.has(flag::RECLAIM) && page.has_any(flag::DIRTY | flag::WRITEBACK);
            let gens = self.lruvecs[target.lruvec].generations();
            let oldest = |gens: &Generations| gens.seq_of(&page, false) == gens.min_seq[kind];
            let young = match rule {
                GenRefault::Oldest if waits => {
                    if page.has(flag::WORKINGSET) {
                        self.pages[pfn].set(flag::REFERENCED);
                    }
                    false
                }
                GenRefault::Oldest => {
                    if !tried_again && !busy && !page.has_any(flag::REFERENCED | flag::LOCKED) {
                        again.push(pfn);
                        continue;
                    }
                    true
                }
                GenRefault::Window if !tried_again && !busy => {
                    again.push(pfn);
                    continue;
                }
                GenRefault::Window => gens.is_some_and(oldest),
            };
            if young {
                self.pages.forget_refs(pfn, rule);
                self.pages[pfn].set(flag::ACTIVE);
            }
            self.lru_add(pfn);
        }
        again
    }
}
