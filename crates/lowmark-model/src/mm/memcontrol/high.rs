//! `memory.high`: tasks beyond it reclaim before they go on, and are slowed down.

use super::events::{Event, Reclaimer};
use super::{MAX_RECLAIM_RETRIES, Memcontrol};
use crate::ids::{MemcgId, NodeId};
use crate::kernel::{HighDelay, HighRetries, LargeOvercharge};
use crate::mm::types::{Gfp, SWAP_CLUSTER_MAX};
use crate::time::SECOND;
use crate::world::{Sys, World};
use lowmark_record::event::gfp;

/// `MEMCG_DELAY_PRECISION_SHIFT`
const DELAY_PRECISION_SHIFT: u32 = 20;
/// `MEMCG_DELAY_SCALING_SHIFT`
const DELAY_SCALING_SHIFT: u32 = 14;

/// Pages that a task has charged beyond its group's `memory.high`.
#[derive(Debug)]
pub(crate) struct Over {
    memcg: MemcgId,
    pages: u64,
}

impl Memcontrol {
    /// Whether a group or one above it is beyond `memory.high`.
    pub(super) fn is_over_high(&self, memcg: MemcgId) -> bool {
        let mut groups = self.ancestors(memcg);
        groups.any(|at| self.groups[at].usage > self.groups[at].high)
    }

    /// Whether a group or one above it has a `memory.high` at all.
    pub(super) fn has_high(&self, memcg: MemcgId) -> bool {
        let mut groups = self.ancestors(memcg);
        groups.any(|at| self.groups[at].high != u64::MAX)
    }

    /// `mem_find_max_overage`, `calculate_high_delay`: jiffies that a task has to wait that has charged `pages` beyond
    /// `memory.high`.
    fn high_delay(&self, memcg: MemcgId, pages: u64, hz: u64) -> u64 {
        let groups = match self.rules.high_delay {
            HighDelay::None => 0,
            HighDelay::Own => 1,
            HighDelay::Ancestors => usize::MAX,
        };
        let beyond = self.ancestors(memcg).take(groups).map(|at| {
            let group = &self.groups[at];
            let high = group.high.max(1);
            let overage = u128::from(group.usage.saturating_sub(high)) << DELAY_PRECISION_SHIFT;
            overage / u128::from(high)
        });
        let overage = beyond.max().unwrap_or(0);
        let penalty = (overage * overage * u128::from(hz)) >> DELAY_PRECISION_SHIFT;
        let penalty = (penalty >> DELAY_SCALING_SHIFT) * u128::from(pages);
        let most = 2 * hz;
        u64::try_from(penalty / u128::from(self.batch())).map_or(most, |delay| delay.min(most))
    }
}

impl World {
    /// What the task that runs has charged beyond `memory.high` since it was last asked.
    #[inline]
    pub(crate) fn take_over_high(&mut self) -> Option<Over> {
        let task = self.sched.current();
        let pages = std::mem::take(self.mm.memcontrol.over_high.get_mut(task.index())?);
        let memcg = self.mm.memcontrol.of_task(task);
        (pages > 0).then_some(Over { memcg, pages })
    }

    /// The same where that is more than a batch, so that the task reclaims at once, if it may
    /// (c9afe31ec443, 5.18).
    pub(super) fn take_large_overcharge(&mut self, gfp: Gfp) -> Option<Over> {
        let memcontrol = &self.mm.memcontrol;
        let over = memcontrol.over_high.get(self.sched.current().index())?;
        let at_once = memcontrol.rules.large_overcharge == LargeOvercharge::AtOnce;
        let large = *over > memcontrol.batch();
        let waits = gfp.has(gfp::DIRECT_RECLAIM);
        (at_once && large && waits)
            .then(|| self.take_over_high())
            .flatten()
    }
}

/// `reclaim_high`: from a group and those above it, each that is beyond its `memory.high`.
async fn reclaim_high(sys: &Sys, memcg: MemcgId, pages: u64) -> u64 {
    let gfp = Gfp::user(NodeId::FIRST);
    let (mut at, mut reclaimed) = (memcg, 0);
    while at != MemcgId::ROOT {
        let beyond = {
            let memcontrol = &mut sys.world().mm.memcontrol;
            let group = &memcontrol.groups[at];
            let beyond = group.usage > group.high;
            if beyond {
                memcontrol.note(at, Event::High);
            }
            beyond
        };
        if beyond {
            let by = Reclaimer::Direct;
            reclaimed += sys.try_to_free_mem_cgroup_pages(gfp, at, pages, by).await;
        }
        at = sys.world().mm.memcontrol.groups[at].parent;
    }
    reclaimed
}

/// `mem_cgroup_handle_over_high`: on its way out of the kernel, a task that [has charged](Over) pages beyond
/// `memory.high` reclaims as many, and waits if that does not help.
pub(crate) async fn handle_over_high(sys: &Sys, over: Over) {
    let Over { memcg, pages } = over;
    let (mut retries, mut want) = (MAX_RECLAIM_RETRIES, pages);
    loop {
        let reclaimed = reclaim_high(sys, memcg, want).await;
        let (penalty, again) = {
            let world = sys.world();
            let again = world.mm.memcontrol.rules.high_retries == HighRetries::Progress;
            let hz = world.hz();
            let delay = world.mm.memcontrol.high_delay(memcg, pages, hz);
            // What hardly shows is not worth a sleep.
            if delay <= hz / 100 || world.sched.current_killed() {
                return;
            }
            (SECOND / hz * delay, again)
        };
        if !again || reclaimed == 0 && retries == 0 {
            sys.sleep(penalty).await;
            return;
        }
        retries -= u32::from(reclaimed == 0);
        want = SWAP_CLUSTER_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::workload::Cgroup;

    /// Jiffies that a task in the inner of two groups waits after a batch of 32 pages: the inner one is beyond its `memory.high` by
    /// `inner` percent, the outer one by twice as much. A jiffy is 4 ms.
    fn delay(version: &str, inner: u64) -> u64 {
        let high = 1000 * lowmark_spec::machine::PAGE_SIZE;
        let group = |parent| Cgroup {
            parent,
            high: Some(high),
            ..Cgroup::default()
        };
        let mut world = World::of_version(version);
        world
            .mm
            .make_cgroups(&[group(None), group(Some(0))], false, 1);
        let memcontrol = &mut world.mm.memcontrol;
        for (at, percent) in [(1usize, 2 * inner), (2, inner)] {
            memcontrol.groups[MemcgId::from(at)].usage = 1000 + 10 * percent;
        }
        memcontrol.high_delay(MemcgId::from(2usize), 32, 250)
    }

    /// `calculate_high_delay` worked by hand: the square of the overage, 2^20 being all of `memory.high`, times HZ, by 2^34.
    #[test]
    fn which_groups_make_a_task_wait_depends_on_the_kernel() {
        let by_hand = |percent: u64| {
            let overage = (percent << 20) / 100;
            ((overage * overage * 250) >> 34).min(500)
        };
        assert_eq!((by_hand(10), by_hand(20)), (159, 500));
        for (version, expected) in [("v5.3", 0), ("v5.4", 159), ("v5.7", 500), ("v6.0", 500)] {
            assert_eq!(delay(version, 10), expected, "{version}");
        }
        // Half a batch of 64 pages weighs half.
        assert_eq!((delay("v6.0", 5), delay("v6.1", 5)), (159, 79));
    }
}
