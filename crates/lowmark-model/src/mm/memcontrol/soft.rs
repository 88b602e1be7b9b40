//! Soft limits of memory cgroups of version 1 (`memory.soft_limit_in_bytes`).
//!
//! 1. Each group counts, for each CPU, the pages that are charged to it or uncharged from it. It compares the count with a
//!    threshold every 128 pages, and with a second one every 1024: then the group and all groups above it are entered in
//!    the tree of the page's node. The key is the group's excess, its usage beyond its soft limit, at that moment
//!    (`memcg_check_events`, `mem_cgroup_update_tree`).
//! 2. A reclaimer for the whole node takes the group with the largest excess out of the node's tree, and enters the group
//!    again with its excess after reclaim (`mem_cgroup_soft_limit_reclaim`). How it reclaims is `reclaim/vmscan/soft_limit.rs`.

use super::Memcontrol;
use crate::ids::{MemcgId, NodeId};
use crate::mm::Mm;
use crate::mm::types::Pfn;
use typed_index_collections::TiVec;

/// Pages charged or given back on a CPU between two looks (`THRESHOLDS_EVENTS_TARGET`).
const THRESHOLDS_EVENTS_TARGET: u64 = 128;
/// And between two that enter the group in the tree (`SOFTLIMIT_EVENTS_TARGET`).
const SOFTLIMIT_EVENTS_TARGET: u64 = 1024;

/// Pages charged or given back of a group on a CPU (`nr_page_events`, `targets`).
#[derive(Debug, Clone, Copy, Default)]
struct Events {
    pages: u64,
    next_look: u64,
    next_entry: u64,
}

impl Events {
    /// So many pages more. Whether the tree is due (`mem_cgroup_event_ratelimit`).
    fn count(&mut self, pages: u64) -> bool {
        self.pages += pages;
        let due = |next: &mut u64, every: u64| {
            let due = *next < self.pages;
            if due {
                *next = self.pages + every;
            }
            due
        };
        due(&mut self.next_look, THRESHOLDS_EVENTS_TARGET)
            && due(&mut self.next_entry, SOFTLIMIT_EVENTS_TARGET)
    }
}

/// Event counts and trees of soft limits; empty where no group has one.
#[derive(Debug, Default)]
pub(super) struct SoftLimits {
    /// By group, then by CPU.
    events: Vec<Events>,
    /// By node: groups beyond their soft limits with the pages that they were, the least first; of equals the one that was
    /// entered first.
    trees: TiVec<NodeId, Vec<(u64, MemcgId)>>,
}

impl SoftLimits {
    pub(super) fn new(groups: usize, nodes: usize, cpus: u32) -> SoftLimits {
        SoftLimits {
            events: vec![Events::default(); groups * cpus as usize],
            trees: vec![Vec::new(); nodes].into(),
        }
    }
}

impl Memcontrol {
    /// Whether the groups are of version 1.
    pub(crate) fn is_legacy(&self) -> bool {
        !self.soft.trees.is_empty()
    }

    /// Pages that a group has beyond its soft limit (`soft_limit_excess`).
    pub(crate) fn soft_limit_excess(&self, memcg: MemcgId) -> u64 {
        let group = &self.groups[memcg];
        group.usage.saturating_sub(group.soft)
    }

    /// `memcg_check_events`: pages of a group on a node were charged or given back on a CPU.
    fn check_events(&mut self, memcg: MemcgId, node: NodeId, cpu: usize, pages: u64) {
        let cpus = self.soft.events.len() / self.groups.len();
        if !self.soft.events[usize::from(memcg) * cpus + cpu].count(pages) {
            return;
        }
        let above: Vec<MemcgId> = self.ancestors(memcg).collect();
        for at in above {
            let excess = self.soft_limit_excess(at);
            let listed = self.soft.trees[node].iter().any(|&(_, other)| other == at);
            if excess > 0 || listed {
                self.enter(at, node, excess);
            }
        }
    }

    /// Enters a group in the tree of a node, if it is beyond its soft limit (`__mem_cgroup_insert_exceeded`).
    fn enter(&mut self, memcg: MemcgId, node: NodeId, excess: u64) {
        let tree = &mut self.soft.trees[node];
        tree.retain(|&(_, other)| other != memcg);
        if excess > 0 {
            let place = tree.partition_point(|&(other, _)| other <= excess);
            tree.insert(place, (excess, memcg));
        }
    }

    /// Whether the tree of a node is empty.
    pub(crate) fn has_no_soft_excess(&self, node: NodeId) -> bool {
        let tree = self.soft.trees.get(node);
        tree.is_none_or(|tree| tree.is_empty())
    }

    /// Takes the group with the most beyond its soft limit out of the tree of a node
    /// (`mem_cgroup_largest_soft_limit_node`).
    pub(crate) fn take_largest_excess(&mut self, node: NodeId) -> Option<MemcgId> {
        while let Some((_, memcg)) = self.soft.trees[node].pop() {
            if self.soft_limit_excess(memcg) > 0 {
                return Some(memcg);
            }
        }
        None
    }

    /// Enters a group in the tree again, by its excess now.
    pub(crate) fn enter_again(&mut self, memcg: MemcgId, node: NodeId) {
        let excess = self.soft_limit_excess(memcg);
        self.enter(memcg, node, excess);
    }
}

impl Mm {
    /// Pages of a group, beginning with this frame, were charged or given back.
    #[inline]
    pub(super) fn check_soft_limits(&mut self, pfn: Pfn, memcg: MemcgId, pages: u64) {
        if self.memcontrol.is_legacy() && memcg != MemcgId::ROOT {
            let node = self.node_of(pfn);
            let cpu = self.cpu;
            self.memcontrol.check_events(memcg, node, cpu, pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use lowmark_spec::workload::Cgroup;

    /// Two groups of 100 pages each with these soft limits in pages, and a third group of 100 pages inside the second.
    fn memcontrol(soft: [u64; 2]) -> Memcontrol {
        let group = |parent, soft: Option<u64>| Cgroup {
            parent,
            soft: soft.map(|pages| pages * 4096),
            ..Cgroup::default()
        };
        let specs = [
            group(None, Some(soft[0])),
            group(None, Some(soft[1])),
            group(Some(1), None),
        ];
        let mut world = World::of_version("v6.1");
        world.mm.make_cgroups(&specs, false, 2);
        let mut memcontrol = world.mm.memcontrol;
        for at in 1..4 {
            memcontrol.groups[MemcgId::from(at)].usage = 100;
        }
        memcontrol
    }

    /// The first page is looked at, and the next one that is entered is the first to be looked at after 1024 more: looks
    /// are at 1, 130, 259, and so on, each the first behind 128.
    #[test]
    fn the_tree_is_due_with_the_first_look_after_1024_pages() {
        let mut events = Events::default();
        let due: Vec<u64> = (1..3000).filter(|_| events.count(1)).collect();
        // 1 + 129 * 8 = 1033 is the first look behind 1025.
        assert_eq!(due, [1, 1033, 2065]);
    }

    #[test]
    fn the_group_with_the_most_beyond_its_limit_is_taken_first() {
        let node = NodeId::FIRST;
        let mut memcontrol = memcontrol([40, 70]);
        assert!(memcontrol.has_no_soft_excess(node));
        memcontrol.check_events(MemcgId::from(1), node, 0, 1);
        // A page of the group inside counts for the one that it is in; it has no soft limit itself.
        memcontrol.check_events(MemcgId::from(3), node, 1, 1);
        assert_eq!(
            memcontrol.soft.trees[node],
            [(30, MemcgId::from(2)), (60, MemcgId::from(1))]
        );
        assert_eq!(memcontrol.take_largest_excess(node), Some(MemcgId::from(1)));
        memcontrol.groups[MemcgId::from(1)].usage = 55;
        memcontrol.enter_again(MemcgId::from(1), node);
        assert_eq!(memcontrol.take_largest_excess(node), Some(MemcgId::from(2)));
        assert_eq!(memcontrol.take_largest_excess(node), Some(MemcgId::from(1)));
        assert_eq!(memcontrol.take_largest_excess(node), None);
    }

    /// A group that has come below its limit since it was entered is passed over.
    #[test]
    fn who_is_below_its_limit_again_is_not_taken() {
        let node = NodeId::FIRST;
        let mut memcontrol = memcontrol([40, 70]);
        memcontrol.check_events(MemcgId::from(1), node, 0, 1);
        memcontrol.groups[MemcgId::from(1)].usage = 40;
        assert_eq!(memcontrol.take_largest_excess(node), None);
        assert!(memcontrol.has_no_soft_excess(node));
    }
}
