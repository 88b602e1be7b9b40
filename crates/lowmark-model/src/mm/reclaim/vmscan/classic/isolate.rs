//! A batch off the tail of a list (`isolate_lru_pages`), and what is left of it back on (`move_pages_to_lru`).

use super::blocks::Contig;
use crate::kernel::{IsolatedLimit, LruUnit, SkippedPages, ThpScan};
use crate::mm::Mm;
use crate::mm::reclaim::vmscan::{Batch, ScanControl, Target};
use crate::mm::types::{ByZone, Lru, Pfn, SWAP_CLUSTER_MAX, flag};
use crate::world::World;
use lowmark_record::{Field, Kind, Release};

/// Pages that isolation passes by in one go, at most (6.14).
const SWAP_CLUSTER_MAX_SKIPPED: usize = (SWAP_CLUSTER_MAX as usize) << 10;

/// What isolation came to.
pub(super) struct Isolated {
    /// Pages looked at, as they are counted.
    pub(super) scanned: u64,
    /// Pages gone past, as their zone does not help.
    pub(super) skipped: u64,
    /// Frames looked at in blocks of pages that were taken.
    pub(super) looked_at: u64,
    /// Pages taken off the list, and off others that have pages of the same blocks.
    pub(super) taken: u64,
    /// Those that are anonymous, and those of files.
    pub(super) by_kind: [u64; 2],
}

impl Mm {
    /// Takes pages off the tail of a zone's list; how many. A huge page counts for all of its pages.
    fn isolate_from_zone(&mut self, target: Target, lru: Lru, want: u64, batch: &mut Batch) -> u64 {
        let lists = &mut self.lruvecs[target.lruvec];
        lists.take_tail(&mut self.chunks, &mut self.pages, (lru, want), batch);
        let mut taken = batch.len() as u64;
        if lists.has_folios(lru) {
            let mut entries = 0;
            taken = 0;
            while taken < want && entries < batch.len() {
                taken += self.pages[batch[entries]].folio_nr_pages();
                entries += 1;
            }
            let more = &batch[entries..];
            lists.give_back_tail(&mut self.chunks, &mut self.pages, lru, more);
            batch.truncate(entries);
        }
        let mut by_zone = ByZone::default();
        by_zone[self.zones[target.zone].kind as usize] = taken;
        lists.count_taken(lru, &by_zone, taken - batch.len() as u64);
        taken
    }

    /// Takes pages of helpful zones off the tail of a node's list, and moves the others that it meets to
    /// the head; how many of both.
    fn isolate_from_zones(
        &mut self,
        target: Target,
        lru: Lru,
        want: u64,
        sc: &ScanControl,
        batch: &mut Batch,
    ) -> (u64, u64) {
        let most = match self.kernel.mechanisms.zones.skipped_pages {
            SkippedPages::Quarter | SkippedPages::Counted => usize::MAX,
            SkippedPages::Bounded => SWAP_CLUSTER_MAX_SKIPPED,
        };
        let mut skipped = Batch::new();
        let (mut by_zone, mut passed_by_zone) = (ByZone::default(), ByZone::default());
        let (mut taken, mut tails) = (0, 0);
        while taken < want {
            let (mut kept, mut looked) = (batch.len(), batch.len());
            let lists = &mut self.lruvecs[target.lruvec];
            let next = (lru, want - taken);
            lists.take_tail(&mut self.chunks, &mut self.pages, next, batch);
            if batch.len() == looked {
                break;
            }
            while looked < batch.len() && taken < want {
                let pfn = batch[looked];
                looked += 1;
                let (kind, pages) = (self.zone_type(pfn), self.pages[pfn].folio_nr_pages());
                by_zone[kind as usize] += pages;
                tails += pages - 1;
                if kind > sc.reclaim_idx && skipped.len() < most {
                    passed_by_zone[kind as usize] += pages;
                    skipped.push(pfn);
                } else {
                    taken += pages;
                    batch[kept] = pfn;
                    kept += 1;
                }
            }
            // A large folio was as much as several pages.
            let lists = &mut self.lruvecs[target.lruvec];
            lists.give_back_tail(&mut self.chunks, &mut self.pages, lru, &batch[looked..]);
            batch.truncate(kept);
        }
        self.lruvecs[target.lruvec].count_taken(lru, &by_zone, tails);
        for &pfn in &skipped {
            self.lru_add(pfn);
        }
        for (counter, count) in self.stat.pgskip.iter_mut().zip(passed_by_zone) {
            *counter += count;
        }
        (taken, passed_by_zone.iter().sum())
    }

    /// Survivors of a batch go back: activated ones to the active head, the rest to the inactive head.
    pub(super) fn put_back(&mut self, target: Target, survivors: &[Pfn], taken: [u64; 2]) {
        let mut active = [0; 2];
        for &pfn in survivors {
            let page = &self.pages[pfn];
            if page.has(flag::ACTIVE) {
                active[usize::from(page.lru().is_file())] += page.folio_nr_pages();
            }
        }
        self.lru_add_all(target.lruvec, survivors);
        for (kind, (active, taken)) in active.into_iter().zip(taken).enumerate() {
            self.lruvecs[target.lruvec].classic().recent_rotated[kind] += active;
            self.isolated(target.lruvec)[kind] -= taken;
        }
        self.age_by_put_back(target.lruvec, active.iter().sum());
    }

    /// Anonymous pages of a batch, and those of files.
    fn count_by_kind(&self, batch: &[Pfn]) -> [u64; 2] {
        let mut by_kind = [0; 2];
        for &pfn in batch {
            let page = &self.pages[pfn];
            by_kind[usize::from(page.lru().is_file())] += page.folio_nr_pages();
        }
        by_kind
    }

    /// `too_many_isolated`: other reclaimers have isolated more pages than are left on the list, or an eighth of that, so that
    /// this reclaimer waits.
    pub(in crate::mm::reclaim::vmscan) fn too_many_isolated(
        &self,
        target: Target,
        lru: Lru,
        sc: &ScanControl,
    ) -> bool {
        // What counts is the whole node.
        let root = self.root_lruvec(target.lruvec);
        let inactive = self.tree_len(root, lru);
        let bearable = match self.kernel.mechanisms.reclaim.isolated_limit {
            IsolatedLimit::Eighth => inactive / 8,
            IsolatedLimit::All => inactive,
        };
        !sc.kswapd && self.lruvecs[root].isolated[usize::from(lru.is_file())] > bearable
    }
}

impl World {
    /// `isolate_lru_pages`: takes `want` pages off the tail into `batch`, or as many more as the last folio has;
    /// pages of zones that do not help are set aside at the head.
    pub(super) fn isolate(
        &mut self,
        target: Target,
        lru: Lru,
        want: u64,
        sc: &ScanControl,
        batch: &mut Batch,
    ) -> Isolated {
        self.mm.fetch_tail(target.lruvec, lru, want);
        let mut contig = Contig::default();
        let (taken, skipped) = match self.mm.kernel.mechanisms.reclaim.lru_unit {
            _ if self.mm.walks_blocks(sc) => {
                let taken;
                (taken, contig) = self.mm.isolate_blocks(target, (lru, want), sc, batch);
                (taken, 0)
            }
            LruUnit::Zone => (self.mm.isolate_from_zone(target, lru, want, batch), 0),
            LruUnit::Node => self.mm.isolate_from_zones(target, lru, want, sc, batch),
        };
        self.mm.fetch_pages(batch, !lru.is_active());
        let looked_at = match self.mm.kernel.mechanisms.huge.thp_scan {
            ThpScan::One => batch.len() as u64,
            ThpScan::Pages => taken,
        };
        let scanned = match self.mm.kernel.mechanisms.zones.skipped_pages {
            SkippedPages::Quarter if taken > 0 => looked_at + skipped / 4,
            _ => looked_at + skipped,
        };
        let file = usize::from(lru.is_file());
        let by_kind = match contig.taken {
            0 => [taken * (1 - file as u64), taken * file as u64],
            _ => self.mm.count_by_kind(batch),
        };
        for (kind, taken) in by_kind.into_iter().enumerate() {
            self.mm.isolated(target.lruvec)[kind] += taken;
            self.mm.lruvecs[target.lruvec].classic().recent_scanned[kind] += taken;
        }
        let lumpy = sc.mode.is_lumpy() && !lru.is_active();
        self.trace(Kind::LruIsolate, |world| {
            vec![
                (
                    Field::IsolateMode,
                    isolate_mode(world.mm.kernel.version.release(), lru, lumpy),
                ),
                (Field::Classzone, sc.reclaim_idx as u64),
                (Field::Order, u64::from(sc.order)),
                (Field::NrRequested, want),
                (Field::NrScanned, scanned),
                (Field::NrSkipped, skipped),
                (Field::NrTaken, taken),
                (Field::ContigTaken, contig.taken),
                (Field::ContigDirty, contig.dirty),
                (Field::ContigFailed, contig.failed),
                (Field::File, file as u64),
                (Field::Lru, lru as u64),
            ]
        });
        Isolated {
            scanned,
            skipped,
            looked_at: contig.looked_at,
            taken,
            by_kind,
        }
    }

    /// CPU time that isolation takes with the lock of the lists held, ns: going past pages of other zones, and through blocks.
    pub(super) fn isolation_cost(&self, isolated: &Isolated) -> u64 {
        self.skip_cost(isolated.skipped) + self.costs.frames_ns(isolated.looked_at)
    }
}

/// `isolate_mode_t` as the era numbers it: 0 and 1 for inactive and active and 2 for both, bits 1 and 2 from 3.2 on, and
/// neither since f3fd4a61928a (3.5), which took them for granted.
fn isolate_mode(release: Release, lru: Lru, both: bool) -> u64 {
    let active = u64::from(lru.is_active());
    match release {
        r if both && r < Release::new(3, 2) => 2,
        r if both && r < Release::new(3, 5) => 3,
        r if r < Release::new(3, 2) => active,
        r if r < Release::new(3, 5) => 1 << active,
        _ => 0,
    }
}
