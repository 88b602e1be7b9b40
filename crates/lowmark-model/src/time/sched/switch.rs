//! What it costs to give a CPU to another task.

use super::{Sched, TaskId};
use crate::time::Nanos;

/// CPU time of giving a CPU to another task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SwitchCosts {
    /// Any other one.
    pub(crate) context: Nanos,
    /// One of another process than the last, on top (`switch_mm`).
    pub(crate) mm: Nanos,
}

impl Sched {
    /// A task has come to be one of the process with this memory.
    pub(crate) fn set_mm(&mut self, id: TaskId, mm: usize) {
        self.tasks[id.index()].mm = Some(mm as u32);
    }

    /// A CPU goes to a task: what that costs.
    pub(super) fn switch_to(&mut self, cpu: usize, id: TaskId) -> Nanos {
        let last = self.last_on_cpu[cpu].replace(id);
        if last == Some(id) {
            return 0;
        }
        let mm = self.tasks[id.index()].mm;
        let other = mm.is_some() && self.mm_on_cpu[cpu] != mm;
        if !other {
            return self.switch.context;
        }
        // The first process of a CPU has nobody to take its place.
        match std::mem::replace(&mut self.mm_on_cpu[cpu], mm) {
            None => self.switch.context,
            Some(_) => self.switch.context + self.switch.mm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    /// A process that comes back finds nothing in the TLB; a thread does, and so does a process after a kernel thread.
    #[test]
    fn processes_pay_for_each_other() {
        let kernel = Kernel::named("v6.18");
        let switch = SwitchCosts { context: 2, mm: 10 };
        let mut sched = Sched::new(2, 250, switch, kernel.mechanisms.sched);
        let mut process = |mm: Option<usize>| {
            let id = sched.add("task".into(), mm.is_none());
            mm.into_iter().for_each(|mm| sched.set_mm(id, mm));
            id
        };
        let (thread, sibling) = (process(Some(0)), process(Some(0)));
        let (other, kthread) = (process(Some(1)), process(None));
        // They have had CPUs as they came.
        sched.last_on_cpu.fill(None);
        sched.mm_on_cpu.fill(None);
        let turns = [
            (thread, 2),
            (thread, 0),
            (sibling, 2),
            (other, 12),
            (kthread, 2),
            (other, 2),
            (kthread, 2),
            (sibling, 12),
        ];
        for (id, cost) in turns {
            assert_eq!(sched.switch_to(0, id), cost, "{id:?}");
        }
        // Another CPU has seen nobody's memory yet.
        assert_eq!(sched.switch_to(1, other), 2);
    }
}
