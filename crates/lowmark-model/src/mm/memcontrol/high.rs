//! `memory.high`: tasks beyond it reclaim before they go on, and are slowed down.

use super::counter::CHARGE_BATCH;
use super::events::{Event, Reclaimer};
use super::{MAX_RECLAIM_RETRIES, Memcontrol};
use crate::ids::{MemcgId, NodeId};
use crate::mm::types::{Gfp, SWAP_CLUSTER_MAX};
use crate::time::SECOND;
use crate::world::{Sys, World};

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
        let beyond = self.ancestors(memcg).map(|at| {
            let group = &self.groups[at];
            let high = group.high.max(1);
            let overage = u128::from(group.usage.saturating_sub(high)) << DELAY_PRECISION_SHIFT;
            overage / u128::from(high)
        });
        let overage = beyond.max().unwrap_or(0);
        let penalty = (overage * overage * u128::from(hz)) >> DELAY_PRECISION_SHIFT;
        let penalty = (penalty >> DELAY_SCALING_SHIFT) * u128::from(pages);
        let most = 2 * hz;
        u64::try_from(penalty / u128::from(CHARGE_BATCH)).map_or(most, |delay| delay.min(most))
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
        let penalty = {
            let world = sys.world();
            let hz = world.hz();
            let delay = world.mm.memcontrol.high_delay(memcg, pages, hz);
            // What hardly shows is not worth a sleep.
            if delay <= hz / 100 || world.sched.current_killed() {
                return;
            }
            SECOND / hz * delay
        };
        if reclaimed == 0 && retries == 0 {
            sys.sleep(penalty).await;
            return;
        }
        retries -= u32::from(reclaimed == 0);
        want = SWAP_CLUSTER_MAX;
    }
}
