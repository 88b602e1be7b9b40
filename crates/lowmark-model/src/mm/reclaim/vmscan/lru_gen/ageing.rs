//! When a new generation is made, and by whom (`get_nr_to_scan`, `should_run_aging`, `try_to_inc_max_seq`).
//!
//! | generations | at the first priority | later |
//! |---|---|---|
//! | four | the share of the priority is scanned | the same |
//! | three | the same | a new one is made; to 6.13 if pages are spread unevenly |
//! | two | nothing is scanned | a new one is made |
//!
//! The reclaimer that makes a new generation leaves the lists. Up to 6.2 kswapd makes it at the beginning of its round, and a
//! direct reclaimer goes on after it.

use super::{Next, Pass, ScanControl, Target};
use crate::ids::LruvecId;
use crate::kernel::{GenAgeing, GenBatch, GenPass};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::lru_gen::{Generations, MIN_NR_GENS};
use crate::mm::types::DEF_PRIORITY;
use crate::world::Sys;

/// How old pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ages {
    /// A new generation is wanted.
    pub(super) due: bool,
    /// There are two generations left of a kind that could be taken: nothing can be until there is a new one.
    pub(super) stuck: bool,
    /// Pages that could be taken, whatever their age.
    pub(super) all: u64,
}

/// `should_run_aging`
pub(super) fn ages(gens: &Generations, swap: bool, rule: GenAgeing) -> Ages {
    let kinds = if swap { 0..2 } else { 1..2 };
    let oldest = kinds.clone().map(|kind| gens.min_seq[kind]).min();
    let oldest = oldest.unwrap_or(gens.min_seq[1]);
    let of = |seq: u64| -> u64 {
        let has = |&kind: &usize| gens.min_seq[kind] <= seq;
        kinds
            .clone()
            .filter(has)
            .map(|kind| gens.size(kind, seq))
            .sum()
    };
    let pages: u64 = kinds.clone().map(|kind| gens.total(kind)).sum();
    let stuck = oldest + MIN_NR_GENS > gens.max_seq;
    let three = oldest + MIN_NR_GENS == gens.max_seq;
    let uneven = || {
        let (young, old) = (of(gens.max_seq), of(gens.max_seq - MIN_NR_GENS));
        young * MIN_NR_GENS > pages || old * (MIN_NR_GENS + 2) < pages
    };
    let due = stuck
        || three
            && match rule {
                GenAgeing::Spread => uneven(),
                GenAgeing::Count => true,
            };
    Ages {
        due,
        stuck,
        all: pages,
    }
}

impl Mm {
    /// Generations of the root's pages that have been made, of all nodes together.
    pub(crate) fn generations_made(&self) -> u64 {
        let root = self.lruvecs.iter().take(self.sets);
        let made = root.filter_map(|lists| Some(lists.generations()?.made()));
        made.sum()
    }

    pub(super) fn ages(&self, lruvec: LruvecId, swap: bool) -> Ages {
        let none = Ages {
            due: false,
            stuck: false,
            all: 0,
        };
        let rule = self.kernel.mechanisms.lru_gen.gen_ageing;
        let gens = self.lruvecs[lruvec].generations();
        gens.map_or(none, |gens| ages(gens, swap, rule))
    }
}

/// What to do about lists of which a pass has scanned some pages; a new generation is made if that is what is to be done
/// (`get_nr_to_scan`).
pub(super) async fn next(
    sys: &Sys,
    target: Target,
    swappiness: u64,
    pass: &mut Pass,
    sc: &mut ScanControl,
) -> Next {
    let (ages, pages, fair) = {
        let mm = &sys.world().mm;
        let ages = mm.ages(target.lruvec, swappiness > 0);
        let rules = mm.kernel.mechanisms.lru_gen;
        let memcg = mm.lruvec_memcg(target.lruvec);
        let pages = match rules.gen_batch {
            GenBatch::Fixed => ages.all,
            GenBatch::Asked => mm.unprotected(memcg, ages.all, sc),
        };
        (ages, pages, rules.gen_pass == GenPass::Fair)
    };
    pass.short_of_old = ages.due;
    let share = pages >> sc.priority;
    let first = sc.priority == DEF_PRIORITY;
    if !ages.due || first {
        return match share {
            0 => Next::Nothing,
            _ if ages.stuck => Next::Nothing,
            share => Next::Scan(share),
        };
    }
    if fair && sc.kswapd {
        return Next::Nothing;
    }
    make_generation(sys, target, swappiness > 0, sc).await;
    pass.generations += 1;
    match share {
        0 => Next::Aged,
        share if fair => Next::Scan(share),
        _ => Next::Aged,
    }
}

/// Makes a new generation if one is wanted (`age_lruvec`).
pub(super) async fn age_if_due(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let (due, swap) = {
        let mm = &sys.world().mm;
        let swap = mm.gen_swappiness(target, sc) > 0;
        (mm.ages(target.lruvec, swap).due, swap)
    };
    if due {
        make_generation(sys, target, swap, sc).await;
    }
}

/// `try_to_inc_max_seq`: page tables are walked, then there is a new generation.
async fn make_generation(sys: &Sys, target: Target, swap: bool, sc: &mut ScanControl) {
    let cost = {
        let world = &mut *sys.world();
        let looked_at = world.mm.walk_page_tables(target.lruvec, swap);
        sc.gens.walks |= looked_at.is_some();
        let mm = &mut world.mm;
        mm.lruvecs[target.lruvec].age(&mut mm.chunks, &mut mm.pages, swap);
        world.walk_cost(looked_at.unwrap_or(0))
    };
    sys.charge_kernel(cost).await;
}
