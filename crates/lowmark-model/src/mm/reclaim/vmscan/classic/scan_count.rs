//! How much of each list to scan (`get_scan_count`), and when the active list is too long
//! (`inactive_list_is_low`).

use crate::ids::LruvecId;
use crate::kernel::{
    EnoughInactiveFile, InactiveRatio, LruUnit, ScanBalance, ScanControlTime, SmallScan,
    SwappinessWeight,
};
use crate::mm::Mm;
use crate::mm::reclaim::vmscan::{ScanControl, Target};
use crate::mm::types::{Lru, Mark, SWAP_CLUSTER_MAX};
use lowmark_spec::machine::PAGE_SIZE;

const PAGES_PER_GIB: u64 = (1 << 30) / PAGE_SIZE;

/// How anon and file share the scanning (`enum scan_balance`).
enum Balance {
    /// Everything, whatever the shares.
    Equal,
    /// Numerators of anon and file, denominator.
    Fraction([u64; 2], u64),
}

/// Small shares wait until there is a batch of them.
fn nr_scan_try_batch(scan: u64, saved: &mut u64) -> u64 {
    *saved += scan;
    if *saved >= SWAP_CLUSTER_MAX {
        std::mem::take(saved)
    } else {
        0
    }
}

impl Mm {
    /// `inactive_anon_is_low`, `inactive_file_is_low`: the active list is to be shrunk. To 5.4 that is about the lists of one group,
    /// from 5.5 on about those of all groups inside it as well.
    pub(crate) fn inactive_is_low(&self, target: Target, file: bool, sc: &ScanControl) -> bool {
        if !file && self.swap.total_slots() == 0 {
            return false;
        }
        let size = |lru| match self.kernel.mechanisms.reclaim.scan_control {
            ScanControlTime::Node => self.lruvec_page_state(target.lruvec, lru),
            ScanControlTime::Batch => self.lru_size(target, lru, sc),
        };
        let inactive = size(Lru::new(file, false));
        let active = size(Lru::new(file, true));
        let gib = match self.kernel.mechanisms.reclaim.inactive_ratio {
            InactiveRatio::ZoneSize if file => return active > inactive,
            InactiveRatio::ZoneSize => {
                let zone = &self.zones[target.zone];
                zone.size() / PAGES_PER_GIB
            }
            InactiveRatio::ListSize => (inactive + active) / PAGES_PER_GIB,
        };
        let ratio = (10 * gib).isqrt().max(1);
        inactive * ratio < active
    }

    /// Whether active anonymous pages of a group, from 5.5 on of all groups inside it as well, are too many, and there are any.
    pub(super) fn has_too_many_active_anon(&self, target: Target, sc: &ScanControl) -> bool {
        self.inactive_is_low(target, false, sc) && self.tree_len(target.lruvec, Lru::ActiveAnon) > 0
    }

    /// Pages to scan of each list in this pass, indexed by [`Lru`]; and into `sc` how many pages the lists have that are
    /// considered.
    pub(super) fn get_scan_count(&mut self, target: Target, sc: &mut ScanControl) -> [u64; 4] {
        let sizes = Lru::EVICTABLE.map(|lru| self.lru_size(target, lru, sc));
        let memcg = self.lruvec_memcg(target.lruvec);
        let swap = sc.may_swap && self.nr_swap_pages(memcg) > 0;
        // kswapd looks at least at a batch where it had given up before.
        let force = sc.kswapd && self.zones[target.zone].all_unreclaimable;
        let balance = self.scan_balance(target, sc, &sizes, swap);
        sc.lru_pages += match &balance {
            Balance::Equal => sizes.iter().sum::<u64>(),
            Balance::Fraction(share, _) => {
                let by_type = share.iter().zip(Lru::by_type(&sizes));
                let considered = by_type.filter(|&(&share, _)| share > 0);
                considered.map(|(_, size)| size).sum::<u64>()
            }
        };
        let counted = sizes.map(|size| self.unprotected(memcg, size, sc));
        let saves = self.kernel.mechanisms.reclaim.small_scan == SmallScan::Saved;
        let saved = &mut self.lruvecs[target.lruvec].classic().nr_saved_scan;
        Lru::EVICTABLE.map(|lru| {
            let list = lru as usize;
            let mut scan = counted[list];
            let shifted = sc.priority > 0 || !swap;
            if shifted {
                scan >>= sc.priority;
                if scan == 0 && force && !saves {
                    scan = sizes[list].min(SWAP_CLUSTER_MAX);
                }
            }
            let scan = match &balance {
                Balance::Equal => scan,
                Balance::Fraction(share, denominator) => {
                    scan * share[usize::from(lru.is_file())] / denominator
                }
            };
            if saves {
                nr_scan_try_batch(scan, &mut saved[list])
            } else {
                scan
            }
        })
    }

    fn scan_balance(
        &mut self,
        target: Target,
        sc: &ScanControl,
        sizes: &[u64; 4],
        swap: bool,
    ) -> Balance {
        const ANON_ONLY: Balance = Balance::Fraction([1, 0], 1);
        const FILE_ONLY: Balance = Balance::Fraction([0, 1], 1);
        let swappiness = u64::from(self.kernel.sysctl.swappiness);
        if !swap {
            return FILE_ONLY;
        }
        let exact = self.kernel.mechanisms.reclaim.swappiness_weight == SwappinessWeight::Exact;
        if sc.priority == 0 && (swappiness > 0 || !exact) {
            return Balance::Equal;
        }
        if self.kernel.mechanisms.reclaim.scan_control == ScanControlTime::Node {
            if sc.plan.file_is_tiny {
                return ANON_ONLY;
            }
            if sc.plan.cache_trim {
                return FILE_ONLY;
            }
            return self.fractions(target, sc, sizes);
        }
        let [_, file] = Lru::by_type(sizes);
        let (free, high) = self.free_and_high(target);
        if file + free <= high {
            return ANON_ONLY;
        }
        let enough = self.kernel.mechanisms.reclaim.enough_inactive_file
            == EnoughInactiveFile::FileOnly
            && !self.inactive_is_low(target, true, sc)
            && (self.kernel.mechanisms.reclaim.lru_unit == LruUnit::Zone
                || sizes[Lru::InactiveFile as usize] >> sc.priority > 0);
        if enough {
            return FILE_ONLY;
        }
        self.fractions(target, sc, sizes)
    }

    /// Anon and file in proportion, `calculate_pressure_balance`.
    fn fractions(&mut self, target: Target, sc: &ScanControl, sizes: &[u64; 4]) -> Balance {
        let swappiness = u64::from(self.kernel.sysctl.swappiness);
        if self.kernel.mechanisms.reclaim.scan_balance != ScanBalance::Rotated {
            // What counts is the group for which memory is reclaimed; each type weighs at least a third of
            // all cost (d483a5dd009a).
            let whole = self.memcg_lruvec(target.lruvec, sc.memcg);
            let cost = self.lruvecs[whole].classic().cost;
            let total: u64 = cost.iter().sum();
            let cost = cost.map(|cost| total + cost);
            let pressure = |kind: usize, weight: u64| {
                weight * (cost.iter().sum::<u64>() + 1) / (cost[kind] + 1)
            };
            let (anon, file) = (pressure(0, swappiness), pressure(1, 200 - swappiness));
            return Balance::Fraction([anon, file], anon + file);
        }
        let lruvec = self.lruvecs[target.lruvec].classic();
        for (kind, size) in Lru::by_type(sizes).into_iter().enumerate() {
            if lruvec.recent_scanned[kind] > size / 4 {
                lruvec.recent_scanned[kind] /= 2;
                lruvec.recent_rotated[kind] /= 2;
            }
        }
        let pressure = |kind: usize, weight: u64| {
            weight * (lruvec.recent_scanned[kind] + 1) / (lruvec.recent_rotated[kind] + 1)
        };
        let more = u64::from(
            self.kernel.mechanisms.reclaim.swappiness_weight == SwappinessWeight::PlusOne,
        );
        let anon = pressure(0, swappiness + more);
        let file = pressure(1, 200 - swappiness + more);
        Balance::Fraction([anon, file], anon + file + 1)
    }

    /// `lru_note_cost`: what reclaim of one type has cost, in pages written or read back, and in pages
    /// scanned in vain.
    pub(crate) fn note_cost(&mut self, lruvec: LruvecId, file: bool, io: u64, rotated: u64) {
        let cost = match self.kernel.mechanisms.reclaim.scan_balance {
            ScanBalance::Rotated => return,
            ScanBalance::IoCost => io,
            ScanBalance::WorkCost => io * SWAP_CLUSTER_MAX + rotated,
        };
        let mut next = Some(lruvec);
        while let Some(lruvec) = next {
            let len = |&lru: &Lru| self.lruvec_page_state(lruvec, lru);
            let size: u64 = Lru::EVICTABLE.iter().map(len).sum();
            let lists = self.lruvecs[lruvec].classic();
            lists.cost[usize::from(file)] += cost;
            if lists.cost.iter().sum::<u64>() > size / 4 {
                lists.cost = lists.cost.map(|cost| cost / 2);
            }
            next = self.parent_lruvec(lruvec);
        }
    }

    /// Free pages and the high watermark of the zone, or of the whole node.
    pub(in crate::mm::reclaim::vmscan) fn free_and_high(&self, target: Target) -> (u64, u64) {
        let zones = self
            .zones
            .iter()
            .filter(|zone| zone.lruvec == self.root_lruvec(target.lruvec));
        zones.fold((0, 0), |(free, high), zone| {
            (free + zone.free, high + zone.mark(Mark::High))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ZoneId;
    use crate::kernel::Kernel;
    use crate::mm::types::ZoneType;
    use crate::trace::Trace;
    use crate::world::World;
    use lowmark_spec::Machine;

    #[test]
    fn small_shares_are_scanned_when_they_make_a_batch() {
        let mut saved = 0;
        let scanned = [10, 20, 5, 40, 31].map(|share| nr_scan_try_batch(share, &mut saved));
        assert_eq!(scanned, [0, 0, 35, 40, 0]);
        assert_eq!(saved, 31);
    }

    /// Numerators of anon and file and the denominator, at a priority and a swappiness, where nothing has been scanned
    /// yet; none where everything is scanned.
    fn shares(version: &str, swappiness: u32, priority: u32) -> Option<([u64; 2], u64)> {
        let text = format!("{version},swappiness={swappiness}");
        let kernel = Kernel::named(&text);
        let machine = Machine::small(64 << 20, 64 << 20);
        let mut world = World::new(&machine, kernel, Trace::new(None));
        let mut sc = ScanControl::new(false, SWAP_CLUSTER_MAX, 0, ZoneType::High);
        sc.priority = priority;
        let target = Target {
            lruvec: LruvecId::from(0),
            zone: ZoneId::FIRST,
        };
        match world.mm.scan_balance(target, &sc, &[4000; 4], true) {
            Balance::Equal => None,
            Balance::Fraction(shares, denominator) => Some((shares, denominator)),
        }
    }

    /// fe35004fbf9e (3.5)
    #[test]
    fn swappiness_weighs_one_more_before_3_5() {
        assert_eq!(shares("v2.6.37", 60, 12), Some(([61, 141], 203)));
        assert_eq!(shares("v3.4", 60, 12), Some(([61, 141], 203)));
        assert_eq!(shares("v3.5", 60, 12), Some(([60, 140], 201)));
        // With 0 they swap, in the end as much as there is.
        assert_eq!(shares("v3.4", 0, 12), Some(([1, 201], 203)));
        assert_eq!(shares("v3.4", 0, 0), None);
        assert_eq!(shares("v3.5", 0, 12), Some(([0, 200], 201)));
        assert_eq!(shares("v3.5", 0, 0), Some(([0, 200], 201)));
        assert_eq!(shares("v3.5", 1, 0), None);
    }
}
