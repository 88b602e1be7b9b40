//! How reclaim goes through generations of pages (`lru_gen_shrink_node`, `lru_gen_shrink_lruvec`), the policy of
//! `alloc/mmzone/lru_gen.rs`.
//!
//! 1. A reclaimer takes batches from the tail of the oldest generation ([`evict`]) until it has looked at the share of all
//!    pages that its priority says, or has freed what it is for.
//! 2. When there are two generations left of a kind, or three and it is not at the first priority, it makes a new one
//!    ([`ageing`]), for which page tables are walked ([`walk`]), and leaves the lists.
//! 3. Which kind is taken from, and which pages are kept because they were read often, follows from how many pages of each
//!    kind and tier have come back (`alloc/mmzone/lru_gen/tiers.rs`).
//!
//! Left out: `min_ttl_ms`, with which kswapd kills processes rather than take young pages.

mod ageing;
mod evict;
mod groups;
#[cfg(test)]
mod tests;
mod walk;

use super::{ScanControl, Target};
use crate::kernel::{GenFlusher, GenLooks, GenPass, GenPriority, ReclaimPlug};
use crate::mm::Mm;
use crate::mm::compaction::compact_gap;
use crate::mm::types::{DEF_PRIORITY, Lru, Mark, Pfn, flag};
use crate::world::Sys;

/// Pages that are isolated together (`MIN_LRU_BATCH`).
const MIN_LRU_BATCH: u64 = 64;
/// Pages that are looked at together, at most (`MAX_LRU_BATCH`).
const MAX_LRU_BATCH: u64 = 4096;

/// What a reclaimer knows of generations (part of `struct scan_control` and of `struct reclaim_state`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// It has memory to note what walks of page tables find (`mm_walk`): kswapd, and direct reclaimers that have made a new
    /// generation.
    walks: bool,
    /// Pages that had been reclaimed when the round of kswapd began (`last_reclaimed`).
    last_reclaimed: u64,
    /// The last round of kswapd found old pages enough, so that this one makes no new generation (`memcgs_need_aging`).
    enough_old: bool,
}

impl State {
    /// Whether the reclaimer has memory to note what walks of page tables find.
    pub(super) fn walks(self) -> bool {
        self.walks
    }
}

impl Mm {
    /// Whether a pass over a node for want of memory is one over generations alone; up to 6.2 it goes by way of that over active and
    /// inactive lists.
    pub(super) fn passes_alone(&self, sc: &ScanControl) -> bool {
        self.lru_gen
            && !sc.cgroup_reclaim()
            && self.kernel.mechanisms.lru_gen.gen_pass != GenPass::Fair
    }

    /// Whether a page is young when it is found used for the second time, and marks of accesses by read(2) do not count as that.
    pub(super) fn counts_looks(&self) -> bool {
        self.lru_gen && self.kernel.mechanisms.lru_gen.gen_looks == GenLooks::Two
    }

    /// Whether a page has been found used since it was isolated, by a look around an entry beside its own. To 6.13 it is kept
    /// then, and nothing counts that (`shrink_folio_list`); from 6.14 on such entries are left alone.
    #[inline]
    pub(super) fn was_found_used(&self, pfn: Pfn, sc: &ScanControl) -> bool {
        self.lru_gen
            && !self.counts_looks()
            && !sc.ignore_references
            && self.pages[pfn].has(flag::REFERENCED)
            && !self.pages[pfn].has(flag::LOCKED)
            && self.is_folio_mapped(pfn)
    }

    /// Weight of anonymous pages against pages of files; 0 if they cannot be taken (`get_swappiness`).
    fn gen_swappiness(&self, target: Target, sc: &ScanControl) -> u64 {
        let slots = self.nr_swap_pages(self.lruvec_memcg(target.lruvec));
        let fair = self.kernel.mechanisms.lru_gen.gen_pass == GenPass::Fair;
        let swappiness = u64::from(self.kernel.sysctl.swappiness);
        match (sc.may_swap, slots < MIN_LRU_BATCH) {
            (_, true) => 0,
            (true, false) => swappiness,
            // Of the same age pages of files come first.
            (false, false) if fair && !sc.cgroup_reclaim() => swappiness.min(1),
            (false, false) => 0,
        }
    }

    /// The priority at which kswapd begins a round: that at which its target would be reached if inactive pages alone went
    /// (`set_initial_priority`).
    fn set_initial_priority(&self, target: Target, sc: &mut ScanControl) {
        let deepest = match self.kernel.mechanisms.lru_gen.gen_priority {
            GenPriority::Default => return,
            GenPriority::Estimated => 0,
            GenPriority::Capped => DEF_PRIORITY / 2,
        };
        if sc.priority != DEF_PRIORITY || sc.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let swap = self.swap.free_slots() > 0;
        let anon = if swap {
            self.tree_len(target.lruvec, Lru::InactiveAnon)
        } else {
            0
        };
        let inactive = self.tree_len(target.lruvec, Lru::InactiveFile) + anon;
        let bits = |pages: u64| u64::BITS - pages.leading_zeros();
        let priority = bits(inactive).saturating_sub(1 + bits(sc.nr_to_reclaim - 1));
        sc.priority = priority.clamp(deepest, DEF_PRIORITY);
    }

    /// Whether a pass over lists ends as enough has been freed (`should_abort_scan`).
    fn gen_pass_ends(&self, target: Target, pass: &Pass, sc: &mut ScanControl) -> bool {
        let rule = self.kernel.mechanisms.lru_gen.gen_pass;
        if rule == GenPass::Fair {
            return self.fair_pass_ends(target, pass, sc);
        }
        if sc.cgroup_reclaim() {
            return false;
        }
        if sc.nr_reclaimed >= sc.nr_to_reclaim.max(compact_gap(sc.order as usize)) {
            return true;
        }
        let checks = rule == GenPass::TargetOrHigh && sc.kswapd && sc.order == 0;
        let node = self.zones[target.zone].node;
        let mut zones = self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        checks
            && zones.all(|zone| {
                let mark = zone.mark(Mark::High) + MIN_LRU_BATCH;
                zone.kind > sc.reclaim_idx || zone.watermark_ok(0, mark, sc.reclaim_idx)
            })
    }

    /// The same up to 6.2, where groups are to share a pass.
    fn fair_pass_ends(&self, target: Target, pass: &Pass, sc: &mut ScanControl) -> bool {
        if sc.kswapd {
            if sc.nr_reclaimed - sc.gens.last_reclaimed < sc.nr_to_reclaim {
                return false;
            }
        } else {
            let enough = sc.nr_reclaimed >= sc.nr_to_reclaim;
            if pass.generations > 1 || enough && pass.swapped {
                return true;
            }
            if sc.cgroup_reclaim() {
                return false;
            }
        }
        if sc.priority > DEF_PRIORITY - 2 {
            return false;
        }
        let mark = if sc.kswapd { Mark::High } else { Mark::Low };
        let node = self.zones[target.zone].node;
        let zones = self.nodes[node].zones.iter().map(|&zone| &self.zones[zone]);
        let mut eligible = zones.filter(|zone| zone.kind <= sc.reclaim_idx);
        let ends = eligible.all(|zone| zone.mark(mark) <= zone.free);
        // Zones above their marks are enough, whether more was freed than the target or less.
        sc.nr_reclaimed += if ends { MIN_LRU_BATCH } else { 0 };
        ends
    }
}

/// A pass over lists.
#[derive(Debug, Default)]
struct Pass {
    /// Pages looked at.
    scanned: u64,
    /// Generations made since it began.
    generations: u64,
    /// Anonymous pages were taken.
    swapped: bool,
    /// The last look found that a new generation is needed.
    short_of_old: bool,
}

/// What to do about lists next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Look at pages, so many in the whole pass.
    Scan(u64),
    /// Leave them, as there is nothing to take now.
    Nothing,
    /// Leave them, as a new generation has been made.
    Aged,
}

/// `lru_gen_shrink_node`: a pass over a node for want of memory (6.3 and later).
pub(super) async fn shrink_node(sys: &Sys, target: Target, sc: &mut ScanControl) {
    sc.found = Default::default();
    // Pages of files that need not be written go first anyway; to look for more of them takes long.
    if !sc.may_writepage {
        return;
    }
    let before = sc.nr_reclaimed;
    sc.gens.walks = sc.kswapd;
    {
        let mm = &sys.world().mm;
        mm.set_initial_priority(target, sc);
    }
    if sc.kswapd {
        sc.nr_reclaimed = 0;
    }
    let plug = starts_plug(sys);
    groups::shrink_many(sys, target, sc).await;
    if plug {
        sys.finish_plug();
    }
    sc.gens.walks = false;
    if sc.kswapd {
        sc.nr_reclaimed += before;
    }
    if sc.nr_reclaimed > before {
        sys.world().mm.node_made_progress(target);
    }
}

fn starts_plug(sys: &Sys) -> bool {
    let plug = sys.world().mm.kernel.mechanisms.reclaim.reclaim_plug == ReclaimPlug::On;
    if plug {
        sys.start_plug();
    }
    plug
}

/// `lru_gen_shrink_lruvec`, `try_to_shrink_lruvec`: takes batches from lists.
pub(super) async fn shrink_lruvec(sys: &Sys, target: Target, sc: &mut ScanControl) {
    let alone = sys.world().mm.passes_alone(sc);
    if !alone {
        sc.gens.walks = sc.kswapd;
    }
    let plug = !alone && starts_plug(sys);
    let aged = try_to_shrink_lruvec(sys, target, sc).await;
    if aged {
        sys.world().mm.group_has_aged(target);
    }
    if plug {
        sys.finish_plug();
    }
}

/// True: the lists were left as a new generation was made.
async fn try_to_shrink_lruvec(sys: &Sys, target: Target, sc: &mut ScanControl) -> bool {
    let before = sc.nr_reclaimed;
    let mut pass = Pass::default();
    let (mut nothing_left, mut aged) = (false, false);
    loop {
        let swappiness = sys.world().mm.gen_swappiness(target, sc);
        let next = ageing::next(sys, target, swappiness, &mut pass, sc).await;
        let Next::Scan(whole) = next else {
            (nothing_left, aged) = (true, next == Next::Aged);
            break;
        };
        let scanned = evict::evict_folios(sys, target, (whole, swappiness), &mut pass, sc).await;
        if scanned == 0 {
            nothing_left = true;
            break;
        }
        pass.scanned += scanned;
        if pass.scanned >= whole || sys.world().mm.gen_pass_ends(target, &pass, sc) {
            break;
        }
    }
    if pass.scanned == 0 {
        // Finding that there is nothing to scan takes time, too, and others go on meanwhile.
        sys.charge_kernel(sys.costs.scan_page_ns).await;
    }
    if !nothing_left && sc.nr_reclaimed - before >= MIN_LRU_BATCH && !pass.short_of_old {
        sc.gens.enough_old = true;
    }
    let world = &mut *sys.world();
    let wakes = world.mm.kernel.mechanisms.lru_gen.gen_flusher == GenFlusher::Summed;
    if wakes && sc.found.unqueued > 0 && sc.found.unqueued == sc.found.file_taken {
        world.wakeup_flusher_threads(None);
    }
    aged
}

/// `lru_gen_age_node`: what kswapd does before each of its passes over a node.
pub(crate) async fn age_node(sys: &Sys, target: Target, sc: &mut ScanControl) {
    sc.gens.last_reclaimed = sc.nr_reclaimed;
    if sys.world().mm.kernel.mechanisms.lru_gen.gen_pass != GenPass::Fair {
        return;
    }
    if std::mem::take(&mut sc.gens.enough_old) {
        return;
    }
    sc.gens.walks = true;
    let lists: Vec<_> = sys.world().mm.lruvec_tree(target.lruvec).collect();
    for lruvec in lists {
        let target = Target { lruvec, ..target };
        ageing::age_if_due(sys, target, sc).await;
    }
    sc.gens.walks = false;
}
