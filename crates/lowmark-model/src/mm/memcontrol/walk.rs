//! Going through a group and all inside it (`mem_cgroup_iter`).
//!
//! 1. A group comes before those inside it, siblings in the order in which they were made.
//! 2. From 6.11 on (6be5e186fd65) direct reclaimers share a walk: one goes on where the last one stopped, and stops when it
//!    has enough. Up to 5.3 (1ba6fc9af35b) all reclaimers of the same priority do. kswapd never stops on the way.
//! 3. A shared walk that comes to the end begins a new round. Whoever was on the way in the old one is through.

use super::Memcontrol;
use crate::ids::{LruvecId, MemcgId};
use crate::kernel::MemcgWalk;
use crate::mm::types::DEF_PRIORITY;

/// Where the reclaimers of a group are on a node (`struct mem_cgroup_reclaim_iter`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReclaimIter {
    position: Option<MemcgId>,
    generation: u64,
}

/// Those of all priorities; reclaimers that share one whatever their priority have the first.
pub(super) type ReclaimIters = [ReclaimIter; DEF_PRIORITY as usize + 1];

/// Where a shared walk is kept.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The lists of the group for whose reclaimers a walk is shared.
    lruvec: LruvecId,
    /// Which of their walks.
    walk: usize,
}

/// A walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// The group that all is inside.
    root: MemcgId,
    /// The last group that it came to.
    prev: Option<MemcgId>,
    /// Where it is shared, and the round that this one is of.
    shared: Option<(Place, u64)>,
}

impl Walk {
    /// Whether others go on where it stops.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

impl Memcontrol {
    /// A walk through a group, which has these lists. Others go on where it stops, if it is `shared` with those of so high a
    /// priority, or with all by 0.
    pub(crate) fn walk(&self, root: MemcgId, lruvec: LruvecId, shared: Option<usize>) -> Walk {
        let iters = self.iters.get(lruvec);
        let shared = iters.zip(shared).map(|(iters, walk)| {
            let place = Place { lruvec, walk };
            (place, iters[walk].generation)
        });
        Walk {
            root,
            prev: None,
            shared,
        }
    }

    /// `css_next_descendant_pre`
    fn next_inside(&self, root: MemcgId, after: Option<MemcgId>) -> Option<MemcgId> {
        let Some(after) = after else {
            return Some(root);
        };
        let next = usize::from(after) + 1;
        self.subtree(root).contains(&next).then(|| next.into())
    }

    /// `mem_cgroup_iter`: the next group of a walk.
    pub(crate) fn next_of(&mut self, walk: &mut Walk) -> Option<MemcgId> {
        let Some((place, generation)) = walk.shared else {
            walk.prev = self.next_inside(walk.root, walk.prev);
            return walk.prev;
        };
        let Place { lruvec, walk: at } = place;
        let iter = self.iters[lruvec][at];
        if walk.prev.is_some() && iter.generation != generation {
            return None;
        }
        let mut next = self.next_inside(walk.root, iter.position);
        // Everybody sees one group at least.
        let again = next.is_none() && walk.prev.is_none();
        let new_round = match self.rules.memcg_walk {
            MemcgWalk::LimitStops | MemcgWalk::DirectStops => next.is_none() && !again,
            MemcgWalk::Whole | MemcgWalk::Shared => next.is_none(),
        };
        if again {
            next = Some(walk.root);
        }
        let iter = &mut self.iters[lruvec][at];
        iter.generation += u64::from(new_round);
        iter.position = next;
        if walk.prev.is_none() {
            walk.shared = Some((place, iter.generation));
        }
        walk.prev = next;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use lowmark_spec::workload::Cgroup;

    /// Two groups, the first with two inside it.
    fn memcontrol() -> Memcontrol {
        memcontrol_of("v6.18")
    }

    fn memcontrol_of(version: &str) -> Memcontrol {
        let spec = |parent| Cgroup {
            parent,
            ..Cgroup::default()
        };
        let specs = [spec(None), spec(Some(0)), spec(Some(0)), spec(None)];
        let mut world = World::of_version(version);
        world.mm.make_cgroups(&specs, false, 1);
        world.mm.memcontrol
    }

    const LISTS: usize = 0;

    /// The next groups of a walk, until it ends or has come to so many.
    fn go(memcontrol: &mut Memcontrol, walk: &mut Walk, most: usize) -> Vec<usize> {
        let next = std::iter::from_fn(|| memcontrol.next_of(walk));
        next.take(most).map(usize::from).collect()
    }

    #[test]
    fn a_walk_of_ones_own_goes_through_all_inside() {
        let mut memcontrol = memcontrol();
        for (root, expected) in [(0, vec![0, 1, 2, 3, 4]), (1, vec![1, 2, 3]), (3, vec![3])] {
            let mut walk = memcontrol.walk(MemcgId::from(root), LruvecId::from(LISTS), None);
            assert_eq!(go(&mut memcontrol, &mut walk, 9), expected);
        }
    }

    #[test]
    fn a_shared_walk_goes_on_where_the_last_one_stopped() {
        let mut memcontrol = memcontrol();
        let shared = |memcontrol: &Memcontrol| {
            memcontrol.walk(MemcgId::ROOT, LruvecId::from(LISTS), Some(0))
        };
        let mut first = shared(&memcontrol);
        assert_eq!(go(&mut memcontrol, &mut first, 2), [0, 1]);
        let mut second = shared(&memcontrol);
        assert_eq!(go(&mut memcontrol, &mut second, 2), [2, 3]);
        // Both work on the same round, and together come to each group once.
        assert_eq!(go(&mut memcontrol, &mut first, 9), [4]);
        assert_eq!(go(&mut memcontrol, &mut second, 9), [0usize; 0]);
        let mut third = shared(&memcontrol);
        assert_eq!(go(&mut memcontrol, &mut third, 9), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_walk_that_begins_at_the_end_of_a_round_begins_the_next() {
        let mut memcontrol = memcontrol();
        let begin = |memcontrol: &Memcontrol| {
            memcontrol.walk(MemcgId::from(1), LruvecId::from(LISTS), Some(0))
        };
        let mut first = begin(&memcontrol);
        assert_eq!(go(&mut memcontrol, &mut first, 3), [1, 2, 3]);
        let mut second = begin(&memcontrol);
        assert_eq!(go(&mut memcontrol, &mut second, 1), [1]);
    }

    /// Up to 5.3 reclaimers of one priority share a walk, and those of another have their own. One that begins at the end of a
    /// round does not end that of others.
    #[test]
    fn up_to_5_3_walks_are_shared_by_priority() {
        let mut memcontrol = memcontrol_of("v5.3");
        let begin = |memcontrol: &Memcontrol, priority| {
            memcontrol.walk(MemcgId::from(1), LruvecId::from(LISTS), Some(priority))
        };
        let mut first = begin(&memcontrol, 12);
        assert_eq!(go(&mut memcontrol, &mut first, 2), [1, 2]);
        let mut other = begin(&memcontrol, 11);
        assert_eq!(go(&mut memcontrol, &mut other, 1), [1]);
        let mut second = begin(&memcontrol, 12);
        assert_eq!(go(&mut memcontrol, &mut second, 1), [3]);
        let mut third = begin(&memcontrol, 12);
        assert_eq!(go(&mut memcontrol, &mut third, 1), [1]);
        // The round that the first and the second are in goes on.
        assert_eq!(go(&mut memcontrol, &mut first, 1), [2]);
        assert_eq!(go(&mut memcontrol, &mut other, 9), [2, 3]);
    }
}
