//! Tasks that only touch pages which are there do not disturb each other: all that they do is to set bits that nobody
//! takes away before a page fault, an interrupt or a wake-up. So each may run past the moments at which the others go on,
//! up to the first at which one of them may do anything else. That makes long stretches of several tasks loops as tight
//! as those of one, which would otherwise take turns at every touch.
//!
//! 1. A task that suspends between two touches *promises* how long it will find its pages there ([`Sched::promise`]).
//! 2. A turn of a task that only touches is *quiet*; any other turn, and whatever else happens, may unmap pages or bring
//!    another task onto a CPU, and makes every promise void.
//! 3. In a quiet turn a task may run as long as all others that spend time have promised to
//!    ([`Sched::undisturbed_by_touches`]).
//!
//! Times are the same as without. Of two tasks that go on at the same nanosecond that one comes first which asked for it
//! first, and a task that runs ahead has asked earlier than it would have.

use super::{Armed, RUN_AHEAD, Sched, TaskId, Timer};
use crate::time::Nanos;

/// What a task has said of its next touches.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    /// It finds all pages there that it touches before this time.
    until: Nanos,
    /// As long as there have been no more disturbances than these.
    disturbances: u64,
}

/// Promises of tasks.
#[derive(Debug)]
pub(super) struct Touching {
    /// What has happened but quiet turns.
    disturbances: u64,
    /// The turn under way has turned out to be a quiet one.
    quiet: bool,
    /// By task.
    promises: Vec<Promise>,
}

impl Touching {
    pub(super) fn new() -> Touching {
        Touching {
            // A promise that was never given is void.
            disturbances: 1,
            quiet: false,
            promises: Vec::new(),
        }
    }

    /// Something happens that is no touch.
    pub(super) fn disturb(&mut self) {
        self.disturbances += 1;
    }
}

impl Sched {
    /// How long the current task, which has only touched pages since it went on, may go on touching pages that are there.
    pub(crate) fn undisturbed_by_touches(&self) -> Nanos {
        let next = self.timers.peek();
        let others_touch = next.is_some_and(|next| self.touches_until(next) > next.time);
        let resched_at = self.fair.may_resched_at(self.current_cpu() as usize);
        if !others_touch || !self.ready.is_empty() || resched_at <= self.now {
            return self.undisturbed();
        }
        let others = self.timers.iter().map(|armed| self.touches_until(armed));
        let end = others.fold(resched_at, Nanos::min);
        end.min(self.now + RUN_AHEAD) - self.now
    }

    /// The current task, which is about to suspend between two touches, will find its pages there for so long once it goes
    /// on. In a `quiet` turn it has done nothing else since it went on.
    pub(crate) fn promise(&mut self, ahead: Nanos, quiet: bool) {
        let Touching {
            disturbances,
            promises,
            ..
        } = &mut self.touching;
        let at = self.current.index();
        if promises.len() <= at {
            promises.resize(at + 1, Promise::default());
        }
        promises[at] = Promise {
            until: self.tasks[at].goes_on + ahead,
            // The end of a turn that is not quiet is one more.
            disturbances: *disturbances + u64::from(!quiet),
        };
        self.touching.quiet = quiet;
    }

    /// The current task's turn is over.
    pub(in crate::time) fn end_turn(&mut self) {
        if !std::mem::take(&mut self.touching.quiet) {
            self.touching.disturb();
        }
    }

    /// When the timer may lead to anything but touches of pages that are there: its task may have to make room as well.
    fn touches_until(&self, armed: &Armed) -> Nanos {
        let Timer::Spent(id) = armed.timer else {
            return armed.time;
        };
        let Some(promised) = self.promised(id) else {
            return armed.time;
        };
        let resched_at = self
            .fair
            .may_resched_at(self.tasks[id.index()].cpu as usize);
        promised.min(resched_at).max(armed.time)
    }

    /// How long the task will find its pages there, if it has said so and nothing has happened since.
    fn promised(&self, id: TaskId) -> Option<Nanos> {
        let promise = self.touching.promises.get(id.index())?;
        (promise.disturbances == self.touching.disturbances).then_some(promise.until)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, example_scenario, started, time};
    use lowmark_spec::workload::{Amount, Op};

    /// The times at which the tasks end, the pages that they read from swap, and the turns that they took. RAM is 16 MiB: the
    /// first task touches `mib` MiB in 20 passes, each other one 256 KiB in some 3000. With `one_by_one` a task ends its turn
    /// at every touch.
    fn ends(mib: u64, tasks: usize, cpus: u32, one_by_one: bool) -> (Vec<Option<u64>>, u64, u64) {
        let mut scenario = example_scenario();
        scenario.machine.cpus = cpus;
        let task = scenario.workload.tasks.remove(0);
        for number in 0..tasks {
            let mut task = task.clone();
            task.name = format!("toucher{number}");
            for stmt in task.instances.iter_mut().flatten() {
                match &mut stmt.op {
                    Op::Map { length, .. } if number == 0 => *length = mib << 20,
                    Op::Map { length, .. } => *length = 256 << 10,
                    Op::Touch { what, .. } if number == 0 => what.amount = Amount::Passes(20),
                    Op::Touch { what, .. } => what.amount = Amount::Passes(3000 + number as u64),
                    _ => {}
                }
            }
            scenario.workload.tasks.push(task);
        }
        let sys = started(&scenario, &Options::default()).expect("the model can run it");
        sys.world().workload.touched = one_by_one.then(Vec::new);
        let mut turns = 0;
        time::run_until_idle(&sys, &mut |_| turns += 1);
        let world = &*sys.world();
        let ends = world.sched.tasks().iter().map(|task| task.end);
        (ends.collect(), world.mm.stat.pswpin, turns)
    }

    #[test]
    fn tasks_that_run_ahead_end_when_they_would_have() {
        for (tasks, cpus) in [(2, 2), (3, 4), (5, 2)] {
            for mib in [12, 17] {
                let (touches, read, turns) = ends(mib, tasks, cpus, false);
                let (one_by_one, read_one_by_one, many) = ends(mib, tasks, cpus, true);
                assert_eq!(
                    touches, one_by_one,
                    "{tasks} tasks on {cpus} CPUs, {mib} MiB"
                );
                assert_eq!(read, read_one_by_one);
                // What fits is all there but for the first time.
                assert!(mib > 16 || 4 * turns < many, "{turns} of {many} turns");
            }
        }
    }
}
