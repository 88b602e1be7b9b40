//! Which node a task is on, and so whose memory it gets first.

use super::{Sched, Task};
use crate::ids::NodeId;

impl Sched {
    /// The same on a machine of several nodes, over which tasks are spread.
    pub(crate) fn with_nodes(self, nodes: usize) -> Sched {
        Sched { nodes, ..self }
    }

    /// The node on which a new task starts (`find_idlest_group`): the one with the fewest tasks, the first one of those. The
    /// task stays there: neither load nor memory is balanced between nodes later.
    pub(super) fn idlest_node(&self) -> NodeId {
        let on = |node: &NodeId| {
            let tasks = self.tasks.iter();
            let there = |task: &&Task| task.node == *node && !task.kthread && task.end.is_none();
            tasks.filter(there).count()
        };
        let nodes = (0..self.nodes).map(NodeId::from);
        match self.nodes {
            1 => NodeId::FIRST,
            _ => nodes.min_by_key(on).unwrap_or(NodeId::FIRST),
        }
    }

    /// Node whose memory the current task's allocations prefer.
    #[inline]
    pub(crate) fn current_node(&self) -> NodeId {
        self.tasks
            .get(self.current.index())
            .map_or(NodeId::FIRST, |task| task.node)
    }

    /// The current task's allocations prefer another node (`set_mempolicy`, MPOL_PREFERRED).
    pub(crate) fn prefer_node(&mut self, node: NodeId) {
        let current = self.current.index();
        if let Some(task) = self.tasks.get_mut(current) {
            task.node = node;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::kernel::Version;
    use crate::time::SwitchCosts;

    /// Tasks go to both nodes in turn; who ends makes room; kernel threads do not count.
    #[test]
    fn tasks_are_spread_over_nodes() {
        let kernel = Kernel::released(Version::known("v6.1").expect("a version"));
        let rules = kernel.mechanisms.sched;
        let mut sched = Sched::new(2, 250, SwitchCosts::default(), rules).with_nodes(2);
        sched.add("kswapd".into(), true);
        let tasks: Vec<_> = (0..4).map(|_| sched.add("task".into(), false)).collect();
        let node = |sched: &Sched, at: usize| usize::from(sched.task(tasks[at]).node);
        assert_eq!([0, 1, 2, 3].map(|at| node(&sched, at)), [0, 1, 0, 1]);
        sched.tasks[tasks[1].index()].end = Some(0);
        let next = sched.add("task".into(), false);
        assert_eq!(sched.task(next).node, NodeId::from(1));
        let alone = Sched::new(2, 250, SwitchCosts::default(), rules);
        assert_eq!(alone.idlest_node(), NodeId::FIRST);
    }
}
