//! Processes that another one waits for.

use super::{Sched, TaskId};

impl Sched {
    /// wait4(2): the times of a process that has ended are from now on those of the current task, as those of its children.
    pub(crate) fn reap(&mut self, child: TaskId) {
        let child = &mut self.tasks[child.index()];
        debug_assert!(child.end.is_some(), "a process that runs is waited for");
        child.reaped = true;
        let (user, system) = (child.user, child.system);
        let parent = self.current();
        let parent = &mut self.tasks[parent.index()];
        parent.user += user;
        parent.system += system;
    }
}
