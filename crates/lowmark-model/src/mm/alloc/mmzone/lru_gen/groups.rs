//! In which order reclaim for want of memory goes through memory cgroups where pages stand in generations
//! (`struct lru_gen_memcg`, e4dde56cd208, 6.3).
//!
//! 1. Groups of a node stand in two generations of eight bins. Reclaim goes through the bins of the old one, from a random one
//!    on.
//! 2. A group is moved to a random bin: to the young generation when a new generation of its pages was made, when it is
//!    protected, or when it was too small for the second time; within its generation, for a second try, when `memory.low` protects
//!    it or it was too small for the first time.
//! 3. When the old generation is empty, the young one is the old one.
//!
//! Left out: groups that are removed, and those beyond their soft limit.

use crate::ids::MemcgId;
use lowmark_spec::random::Stream;
use std::collections::VecDeque;

/// Bins of a generation (`MEMCG_NR_BINS`).
const BINS: usize = 8;

/// Where a group is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// `MEMCG_LRU_TAIL`: for a second try.
    Tail,
    /// `MEMCG_LRU_YOUNG`: it is through.
    Young,
}

/// Where a group stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    young: usize,
    bin: usize,
    /// It was moved for a second try last (`seg`).
    tried: bool,
}

/// The groups of a node.
#[derive(Debug)]
pub(crate) struct GroupLru {
    /// The old generation is this one modulo 2 (`seq`).
    seq: usize,
    bins: [[VecDeque<MemcgId>; BINS]; 2],
    places: Vec<Place>,
    random: Stream,
}

/// A walk through the old generation.
#[derive(Debug)]
pub(crate) struct GroupWalk {
    generation: usize,
    first: usize,
    bin: usize,
    at: usize,
}

impl GroupLru {
    /// Groups of a node, numbered from the root on, which has come on line first. What is random is that of a boot.
    pub(crate) fn new(groups: usize, boot: u64, node: u64) -> GroupLru {
        let mut lru = GroupLru {
            seq: 0,
            bins: Default::default(),
            places: Vec::new(),
            random: Stream::new(boot, "bins of memory cgroups", node),
        };
        for memcg in (0..groups).map(MemcgId::from) {
            let bin = lru.random_bin();
            lru.places.push(Place {
                young: 0,
                bin,
                tried: false,
            });
            lru.bins[0][bin].push_back(memcg);
        }
        lru
    }

    fn random_bin(&mut self) -> usize {
        self.random.below(BINS as u64) as usize
    }

    /// Whether a group was moved for a second try last.
    pub(crate) fn was_tried(&self, memcg: MemcgId) -> bool {
        self.places[usize::from(memcg)].tried
    }

    /// `lru_gen_rotate_memcg`
    pub(crate) fn rotate(&mut self, memcg: MemcgId, to: Move) {
        let bin = self.random_bin();
        let old = self.places[usize::from(memcg)];
        let young = match to {
            Move::Tail => old.young,
            Move::Young => (self.seq + 1) % 2,
        };
        self.bins[old.young][old.bin].retain(|&other| other != memcg);
        self.bins[young][bin].push_back(memcg);
        self.places[usize::from(memcg)] = Place {
            young,
            bin,
            tried: to == Move::Tail,
        };
        let empty = self.bins[old.young].iter().all(VecDeque::is_empty);
        if empty && old.young == self.seq % 2 {
            self.seq += 1;
        }
    }

    /// A walk through the generation that is the old one now.
    pub(crate) fn walk(&mut self) -> GroupWalk {
        let bin = self.random_bin();
        GroupWalk {
            generation: self.seq % 2,
            first: bin,
            bin,
            at: 0,
        }
    }

    /// The next group of a walk (`shrink_many`); none: it has been through all bins.
    pub(crate) fn next(&self, walk: &mut GroupWalk) -> Option<MemcgId> {
        loop {
            let bin = &self.bins[walk.generation][walk.bin];
            if let Some(&memcg) = bin.get(walk.at) {
                return Some(memcg);
            }
            walk.bin = (walk.bin + 1) % BINS;
            walk.at = 0;
            if walk.bin == walk.first {
                return None;
            }
        }
    }

    /// The walk goes past a group that it has come to, and that is moved if so decided. Where another reclaimer has moved it,
    /// the walk begins its bin again.
    pub(crate) fn pass(&mut self, walk: &mut GroupWalk, memcg: MemcgId, to: Option<Move>) {
        let place = self.places[usize::from(memcg)];
        let here = (place.young, place.bin) == (walk.generation, walk.bin);
        let at = self.bins[walk.generation][walk.bin]
            .iter()
            .position(|&it| it == memcg);
        walk.at = match (here, at, to) {
            (true, Some(at), None) => at + 1,
            (true, Some(at), Some(_)) => at,
            _ => 0,
        };
        if let Some(to) = to {
            self.rotate(memcg, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups that a walk comes to, each moved as told.
    fn go(lru: &mut GroupLru, to: impl Fn(MemcgId) -> Option<Move>) -> Vec<usize> {
        let mut walk = lru.walk();
        let mut seen = Vec::new();
        while let Some(memcg) = lru.next(&mut walk) {
            seen.push(memcg.into());
            lru.pass(&mut walk, memcg, to(memcg));
        }
        seen
    }

    fn sorted(mut groups: Vec<usize>) -> Vec<usize> {
        groups.sort_unstable();
        groups
    }

    #[test]
    fn a_walk_comes_to_each_group_of_the_old_generation() {
        let mut lru = GroupLru::new(12, 1, 0);
        assert_eq!(sorted(go(&mut lru, |_| None)), Vec::from_iter(0..12));
        // Half of them become young, and the others are what the next walks come to.
        let odd = |memcg| (usize::from(memcg) % 2 == 1).then_some(Move::Young);
        assert_eq!(sorted(go(&mut lru, odd)), Vec::from_iter(0..12));
        assert_eq!(
            sorted(go(&mut lru, |_| None)),
            Vec::from_iter((0..12).step_by(2))
        );
        // When they have become young as well, all are old again.
        go(&mut lru, |_| Some(Move::Young));
        assert_eq!(sorted(go(&mut lru, |_| None)), Vec::from_iter(0..12));
    }

    #[test]
    fn a_second_try_is_remembered_until_the_group_is_through() {
        let mut lru = GroupLru::new(1, 3, 0);
        let memcg = MemcgId::ROOT;
        for (to, tried) in [(Move::Tail, true), (Move::Young, false), (Move::Tail, true)] {
            lru.rotate(memcg, to);
            assert_eq!(lru.was_tried(memcg), tried);
        }
    }

    #[test]
    fn boots_differ_in_the_order_alone() {
        let orders = [1, 2, 1].map(|boot| go(&mut GroupLru::new(12, boot, 0), |_| None));
        assert_ne!(orders[0], orders[1]);
        assert_eq!(orders[0], orders[2]);
    }
}
