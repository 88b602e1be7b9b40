//! Counters of LRU lists as reclaim and refaults read them (`lruvec_page_state`), and of dirty pages of groups.
//!
//! 1. Each CPU counts for itself. What it has counted is added to the counters of the group and of the root
//!    when these are *flushed*, and only then can it be read: that of the root, too.
//! 2. A worker flushes everything every two seconds (`flush_memcg_stats_dwork`).
//! 3. Up to 6.8 dirty throttling flushes before it asks what a group has; from then on it takes what is there.
//! 4. Up to 6.11 reclaim flushes before it decides, if enough has changed; a refault takes what is there.
//!
//! What counts for a node as a whole (`node_page_state`) and how much of a list can be scanned
//! (`lruvec_lru_size`) are never old. The worker is always on time, so that nobody has to flush in its stead.

use crate::ids::{LruvecId, MemcgId};
use crate::kernel::{GroupDirtyStats, LruvecStats};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::LruvecCounts;
use crate::mm::types::Lru;
use crate::time::{Nanos, SECOND};
use crate::world::{Interrupt, World};

/// `FLUSH_TIME`
const FLUSH_TIME: Nanos = 2 * SECOND;
/// The golden section of it, whose multiples are spread evenly.
const FLUSH_STEP: Nanos = FLUSH_TIME / 1_000_000 * 618_034;

/// Time to the worker's first run.
fn until_flush(phase: u64) -> Nanos {
    let later = u128::from(phase) * u128::from(FLUSH_STEP) % u128::from(FLUSH_TIME);
    (FLUSH_TIME / 2 + later as Nanos) % FLUSH_TIME
}

impl Mm {
    /// The counters as they would be if they were flushed now.
    fn current_counts(&self, lruvec: LruvecId) -> LruvecCounts {
        let mut counts = LruvecCounts {
            len: Lru::EVICTABLE.map(|lru| self.tree_len(lruvec, lru)),
            ..Default::default()
        };
        for lruvec in self.lruvec_tree(lruvec) {
            let of_group = self.lruvecs[lruvec].activations;
            counts.activations = [0, 1].map(|kind| counts.activations[kind] + of_group[kind]);
        }
        counts
    }

    /// Flushes the counters of all groups.
    fn flush_stats(&mut self) {
        for lruvec in self.lruvecs.keys() {
            self.lruvecs[lruvec].flushed = self.current_counts(lruvec);
        }
        for group in &mut self.memcontrol.groups {
            group.flushed = (group.dirty, group.writeback);
        }
        self.memcontrol.updates_flushed = self.stat.memcg_updates();
    }

    /// Pages of a group in files, those that are dirty and those under writeback, as far as it is known
    /// (`mem_cgroup_wb_stats`).
    pub(crate) fn memcg_wb_stats(&self, memcg: MemcgId) -> (u64, (u64, u64)) {
        let mm = self;
        let current =
            self.kernel.mechanisms.writeback.group_dirty_stats == GroupDirtyStats::Current;
        let root = mm.lruvecs.keys().take(mm.sets);
        let files = root.map(|set| {
            let lruvec = &mm.lruvecs[mm.memcg_lruvec(set, memcg)];
            let lists = [Lru::InactiveFile, Lru::ActiveFile];
            lists.map(|lru| {
                if current {
                    lruvec.len(lru)
                } else {
                    lruvec.flushed.len[lru as usize]
                }
            })
        });
        let dirty = if current {
            mm.memcontrol.dirty_and_writeback(memcg)
        } else {
            mm.memcontrol.flushed_dirty_and_writeback(memcg)
        };
        (files.flatten().sum(), dirty)
    }

    /// Length of a list, those of the groups below included, as far as it is known (`lruvec_page_state`).
    #[inline]
    pub(crate) fn lruvec_page_state(&self, lruvec: LruvecId, lru: Lru) -> u64 {
        match self.kernel.mechanisms.reclaim.lruvec_stats {
            LruvecStats::Current => self.tree_len(lruvec, lru),
            LruvecStats::BeforeReclaim | LruvecStats::Periodic => {
                self.lruvecs[lruvec].flushed.len[lru as usize]
            }
        }
    }

    /// Anon and file pages activated as they came back, those of the groups below included, as far as it is
    /// known (`lruvec_page_state`).
    pub(crate) fn workingset_activations(&self, lruvec: LruvecId) -> [u64; 2] {
        match self.kernel.mechanisms.reclaim.lruvec_stats {
            LruvecStats::Current => self.current_counts(lruvec).activations,
            LruvecStats::BeforeReclaim | LruvecStats::Periodic => {
                self.lruvecs[lruvec].flushed.activations
            }
        }
    }
}

impl World {
    /// What a reclaimer does about old counters before it decides by them (`prepare_scan_control`). Up to 6.7
    /// changes of all groups together have to be more than a batch of charges for each CPU and one more.
    pub(crate) fn flush_before_reclaim(&mut self) {
        let changed = self.mm.stat.memcg_updates() - self.mm.memcontrol.updates_flushed;
        match self.mm.kernel.mechanisms.reclaim.lruvec_stats {
            LruvecStats::Current | LruvecStats::Periodic => {}
            LruvecStats::BeforeReclaim
                if changed / self.mm.memcontrol.batch() <= self.sched.cpus() => {}
            LruvecStats::BeforeReclaim => self.mm.flush_stats(),
        }
    }

    /// The worker runs since boot. Where between two of its runs a workload begins is chance
    /// ([`lowmark_spec::Scenario::phase`]).
    pub(crate) fn start_flushing_stats(&mut self, phase: u64) {
        if self.mm.kernel.mechanisms.reclaim.lruvec_stats != LruvecStats::Current {
            self.mm.flush_stats();
            let next = Interrupt::FlushMemcgStats;
            self.sched.interrupt_in_background(until_flush(phase), next);
        }
    }

    /// `flush_memcg_stats_dwork`
    pub(crate) fn flush_stats_periodically(&mut self) {
        self.mm.flush_stats();
        let next = Interrupt::FlushMemcgStats;
        self.sched.interrupt_in_background(FLUSH_TIME, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::mm::types::Gfp;
    use crate::mm::types::flag;
    use crate::world::{Sys, Verdict};

    #[test]
    fn five_phases_are_spread_over_the_time_between_two_runs() {
        assert_eq!(until_flush(0), SECOND);
        let mut times: Vec<Nanos> = (0..5).map(until_flush).collect();
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            gaps.into_iter()
                .all(|gap| gap > FLUSH_TIME / 10 && gap < FLUSH_TIME / 3)
        );
        assert!(until_flush(u64::MAX) < FLUSH_TIME);
    }

    /// So many more pages on the inactive anon list, none of which came by a fault.
    fn add_pages(world: &mut World, pages: u64) {
        for _ in 0..pages {
            let pfn = world.alloc_page_fast(Gfp::user(NodeId::FIRST)).unwrap();
            world.mm.pages[pfn].set(flag::SWAPBACKED);
            world.mm.lru_add(pfn);
        }
    }

    fn known(world: &World) -> u64 {
        world
            .mm
            .lruvec_page_state(LruvecId::from(0), Lru::InactiveAnon)
    }

    #[test]
    fn how_old_counters_are_depends_on_the_kernel() {
        // What is read after ten pages, after a reclaimer's flush, and after that of the worker.
        for (version, expected) in [
            ("v5.16", [10, 10, 10]),
            ("v6.1", [0, 10, 10]),
            ("v6.18", [0, 0, 10]),
        ] {
            let mut world = World::of_version(version);
            world.start_flushing_stats(0);
            add_pages(&mut world, 10);
            let at_once = known(&world);
            world.mm.stat.pgfault += 1000;
            world.flush_before_reclaim();
            let flushed = known(&world);
            world.flush_stats_periodically();
            assert_eq!([at_once, flushed, known(&world)], expected, "{version}");
        }
    }

    #[test]
    fn reclaim_flushes_only_what_has_changed_enough() {
        let mut world = World::of_version("v6.1");
        let enough = world.mm.memcontrol.batch() * (world.sched.cpus() + 1);
        let per_fault = {
            world.mm.stat.pgfault += 1;
            world.mm.stat.memcg_updates()
        };
        world.start_flushing_stats(0);
        add_pages(&mut world, 10);
        world.mm.stat.pgfault += enough / per_fault - 1;
        world.flush_before_reclaim();
        assert_eq!(known(&world), 0);
        world.mm.stat.pgfault += 1;
        world.flush_before_reclaim();
        assert_eq!(known(&world), 10);
    }

    #[test]
    fn the_worker_alone_keeps_no_run_going() {
        let mut world = World::of_version("v6.18");
        world.start_flushing_stats(0);
        let sys = Sys::new(world);
        let body = {
            let sys = sys.clone();
            async move {
                sys.world().sched.block("nothing");
                sys.suspend().await;
            }
        };
        sys.world().spawn("stuck".into(), false, Box::pin(body));
        let verdict = crate::time::run_until_idle(&sys, &mut |_| {});
        assert!(matches!(verdict, Verdict::Deadlock { .. }), "{verdict:?}");
    }

    #[test]
    fn refaults_that_nobody_has_counted_yet_do_not_count() {
        let mut world = World::of_version("v6.18");
        world.start_flushing_stats(0);
        world.mm.lruvecs[LruvecId::from(0)].activations = [3, 4];
        assert_eq!(world.mm.workingset_activations(LruvecId::from(0)), [0, 0]);
        world.flush_stats_periodically();
        assert_eq!(world.mm.workingset_activations(LruvecId::from(0)), [3, 4]);
    }
}
