//! `memory.reclaim` (94968384dde1, 5.19): memory of a group is reclaimed because somebody asks for it.

use super::MAX_RECLAIM_RETRIES;
use super::events::Reclaimer;
use crate::ids::{MemcgId, NodeId};
use crate::kernel::ProactiveBatch;
use crate::mm::types::{Gfp, SWAP_CLUSTER_MAX};
use crate::world::Sys;

/// `memory_reclaim`: reclaims so many pages of a group, or as many as can be had. What was reclaimed beyond that does not
/// count against it.
pub(crate) async fn memory_reclaim(sys: &Sys, memcg: MemcgId, nr_to_reclaim: u64) -> u64 {
    let rule = sys.world().mm.kernel.mechanisms.memcg.proactive_batch;
    let gfp = Gfp::kernel(NodeId::FIRST);
    let (mut retries, mut nr_reclaimed) = (MAX_RECLAIM_RETRIES, 0);
    while nr_reclaimed < nr_to_reclaim && !sys.world().sched.current_killed() {
        let rest = nr_to_reclaim - nr_reclaimed;
        let batch = match rule {
            ProactiveBatch::Rest => rest,
            ProactiveBatch::Cluster => rest.min(SWAP_CLUSTER_MAX),
            ProactiveBatch::Quarter => rest / 4,
        };
        let by = Reclaimer::Proactive;
        let reclaimed = sys
            .try_to_free_mem_cgroup_pages(gfp, memcg, batch, by)
            .await;
        if reclaimed == 0 && retries == 0 {
            break;
        }
        retries -= u32::from(reclaimed == 0);
        nr_reclaimed += reclaimed;
    }
    nr_reclaimed
}
