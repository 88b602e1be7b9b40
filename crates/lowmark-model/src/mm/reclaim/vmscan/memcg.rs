//! How a pass over a node goes through memory cgroups (`shrink_node_memcgs`).
//!
//! 1. A reclaimer goes through the group for whose sake it reclaims, and through all inside it.
//! 2. It passes over a group that `memory.min` protects as a whole, and over one that `memory.low` does. If nothing
//!    else could be reclaimed, it comes back for the second kind.
//! 3. Of a group that is partly protected it scans the less, the more of it is.
//! 4. From 6.11 on, and up to 5.3, a direct reclaimer that has enough leaves the other groups to the next one. From 6.11 on it goes
//!    through all of them once before it gives up. Up to 5.0 only one for a group that is at its limit does.

use super::{ScanControl, Target, shrink_lruvec, slab};
use crate::ids::MemcgId;
use crate::kernel::{FruitlessRound, Mechanisms, MemcgWalk, PartlyProtected, ScanControlTime};
use crate::mm::Mm;
use crate::mm::memcontrol::{Event, Protected, Reclaimer, Walk, unprotected_part};
use crate::world::{Sys, World};

/// What a reclaimer knows of memory cgroups (part of `struct scan_control`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Groups {
    /// It was asked to by `memory.reclaim`.
    pub(super) proactive: bool,
    /// It does not spare what `memory.low` protects.
    low_reclaim: bool,
    /// It spared some of that.
    low_skipped: bool,
    /// It goes through all groups.
    full_walk: bool,
}

/// What to do about a round that freed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Another round through all groups.
    FullWalk,
    /// Another round that takes active pages, too.
    Deactivate,
    /// Another round that does not spare what `memory.low` protects; from 4.0 to 4.11 there is one if nothing is, too.
    Low,
    /// Nothing.
    No,
}

impl ScanControl {
    /// Who reclaims, for the counters of groups.
    pub(super) fn reclaimer(&self) -> Reclaimer {
        match (self.kswapd, self.groups.proactive) {
            (true, _) => Reclaimer::Kswapd,
            (false, true) => Reclaimer::Proactive,
            (false, false) => Reclaimer::Direct,
        }
    }

    /// Whether a reclaimer that has enough leaves the groups alone that it has not come to yet.
    fn stops_between_groups(&self, rule: MemcgWalk, walk: &Walk) -> bool {
        match rule {
            MemcgWalk::LimitStops => self.cgroup_reclaim(),
            MemcgWalk::DirectStops => !self.kswapd,
            MemcgWalk::Whole => false,
            MemcgWalk::Shared => walk.is_shared(),
        }
    }

    /// Why there is another round after one that freed nothing, in the kernel's order (`do_try_to_free_pages`).
    pub(super) fn again(&mut self, rules: &Mechanisms) -> Again {
        if rules.memcg.memcg_walk == MemcgWalk::Shared && !self.groups.full_walk {
            self.groups.full_walk = true;
            return Again::FullWalk;
        }
        // Before 5.5 active pages are not spared for a round.
        let spares = rules.reclaim.scan_control == ScanControlTime::Node;
        if spares && self.plan.force_deactivation() {
            return Again::Deactivate;
        }
        let for_low = match rules.reclaim.fruitless_round {
            FruitlessRound::GivesUp => false,
            FruitlessRound::Repeats => !self.groups.low_reclaim,
            FruitlessRound::RepeatsForLow => self.groups.low_skipped,
        };
        if for_low {
            self.plan.forget_force();
            self.groups.low_reclaim = true;
            self.groups.low_skipped = false;
            return Again::Low;
        }
        Again::No
    }
}

/// A pass over the lists and the caches of a group and of all inside it; `whole` are the lists of the group itself.
pub(super) async fn shrink_node_memcgs(sys: &Sys, whole: Target, sc: &mut ScanControl) {
    let mut walk = sys.world().mm.memcg_walk(whole, sc);
    let rule = sys.world().mm.kernel.mechanisms.memcg.memcg_walk;
    let mut freed = 0;
    loop {
        let Some(target) = sys.world().next_memcg(&mut walk, whole, sc) else {
            break;
        };
        let scanned = sc.nr_scanned;
        shrink_lruvec(sys, target, sc).await;
        let memcg = sys.world().mm.lruvec_memcg(target.lruvec);
        freed += slab::in_pass(sys, target, memcg, sc.nr_scanned - scanned, sc).await;
        if sc.stops_between_groups(rule, &walk) && sc.nr_reclaimed >= sc.nr_to_reclaim {
            break;
        }
    }
    slab::flush_reclaim_state(sys, freed, sc);
}

impl Mm {
    fn memcg_walk(&self, whole: Target, sc: &ScanControl) -> Walk {
        let shared = match self.kernel.mechanisms.memcg.memcg_walk {
            MemcgWalk::LimitStops | MemcgWalk::DirectStops => Some(sc.priority as usize),
            MemcgWalk::Shared if !sc.kswapd && !sc.groups.full_walk => Some(0),
            MemcgWalk::Whole | MemcgWalk::Shared => None,
        };
        self.memcontrol.walk(sc.memcg, whole.lruvec, shared)
    }

    /// Pages of a list of a group that count for how much of it is scanned (`get_scan_count`).
    pub(super) fn unprotected(&self, memcg: MemcgId, size: u64, sc: &mut ScanControl) -> u64 {
        let (min, low) = self.memcontrol.protection(sc.memcg, memcg);
        if (min, low) == (0, 0) {
            return size;
        }
        let spares_low = !sc.groups.low_reclaim && low > min;
        let comes_back =
            self.kernel.mechanisms.memcg.partly_protected == PartlyProtected::SecondRound;
        sc.groups.low_skipped |= spares_low && comes_back;
        let protection = if spares_low { low } else { min };
        unprotected_part(size, protection, self.memcontrol.usage(memcg))
    }
}

impl World {
    /// The lists of the next group of a walk that are to be scanned.
    fn next_memcg(
        &mut self,
        walk: &mut Walk,
        whole: Target,
        sc: &mut ScanControl,
    ) -> Option<Target> {
        let mm = &mut self.mm;
        while let Some(memcg) = mm.memcontrol.next_of(walk) {
            mm.memcontrol.calculate_protection(sc.memcg, memcg);
            match mm.protected(sc.memcg, memcg) {
                Protected::Min => continue,
                Protected::Low if !sc.groups.low_reclaim => {
                    sc.groups.low_skipped = true;
                    continue;
                }
                Protected::Low => mm.memcontrol.note(memcg, Event::Low),
                Protected::No => {}
            }
            let lruvec = mm.memcg_lruvec(whole.lruvec, memcg);
            return Some(Target { lruvec, ..whole });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::NodeId;
    use crate::mm::reclaim::vmscan::{ScanControl, do_try_to_free_pages};
    use crate::mm::types::{Gfp, ZoneType};
    use crate::time::run_until_idle;
    use crate::world::{Sys, World};
    use std::rc::Rc;

    /// Nothing can be reclaimed and no group is protected: from 4.0 to 4.11 a direct reclaimer goes through all priorities twice,
    /// and counts as two stalls.
    #[test]
    fn from_4_0_to_4_11_reclaim_that_frees_nothing_repeats() {
        for (version, rounds) in [("v3.19", 1), ("v4.0", 2), ("v4.11", 2), ("v4.12", 1)] {
            let sys = Sys::new(World::of_version(version));
            let task = Rc::clone(&sys);
            let body = Box::pin(async move {
                let mut sc = ScanControl::new(false, 32, 0, ZoneType::High);
                do_try_to_free_pages(&task, Gfp::user(NodeId::FIRST), &mut sc).await;
            });
            sys.world().spawn("reclaimer".into(), false, body);
            run_until_idle(&sys, &mut |_| {});
            let stalls = sys.world().mm.stat.allocstall.iter().sum::<u64>();
            assert_eq!(stalls, rounds, "{version}");
        }
    }
}
