//! `drop_caches` of 2: all shrinkers are called until they free little (`mm/vmscan.c`, `drop_slab`).

use super::{Caller, Pressure, shrink_slab};
use crate::ids::{MemcgId, NodeId};
use crate::kernel::DropRounds;
use crate::mm::types::Gfp;
use crate::world::Sys;

/// Whether `drop_slab` makes another round after round `round`, counted from 0, which freed `freed` objects.
fn drops_more(rounds: DropRounds, round: u32, freed: u64) -> bool {
    match rounds {
        DropRounds::Ten => freed > 10,
        DropRounds::Doubling => freed.checked_shr(round).unwrap_or(0) > 1,
    }
}

/// `drop_slab`: what `drop_caches` of 2 does.
pub(crate) async fn drop_slab(sys: &Sys) {
    let nodes: Vec<NodeId> = sys.world().mm.nodes.keys().collect();
    let caller = Caller {
        pressure: Pressure {
            scanned: 1000,
            eligible: 1000,
            priority: 0,
        },
        gfp: Gfp::kernel(NodeId::FIRST),
        kswapd: false,
    };
    let rounds = sys.world().mm.kernel.mechanisms.shrinker.drop_rounds;
    let mut round = 0;
    loop {
        let groups = sys.world().mm.memcontrol.len();
        let mut freed = 0;
        for memcg in (0..groups).map(MemcgId::from) {
            freed += shrink_slab(sys, &nodes, memcg, &caller).await.objects;
        }
        if !drops_more(rounds, round, freed) {
            break;
        }
        round += 1;
    }
    sys.world().mm.shrinkers.stat.drop_slab += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_ends() {
        let rounds = |rounds, freed: &[u64]| {
            let more = (0..)
                .zip(freed)
                .map(|(at, &freed)| drops_more(rounds, at, freed));
            more.take_while(|&more| more).count()
        };
        assert_eq!(rounds(DropRounds::Ten, &[5_000, 11, 10]), 2);
        // 12 of the third round are three times four, of the fourth no twice eight.
        assert_eq!(rounds(DropRounds::Doubling, &[2, 4, 12, 12]), 3);
        assert_eq!(rounds(DropRounds::Doubling, &[u64::MAX; 70]), 63);
    }
}
