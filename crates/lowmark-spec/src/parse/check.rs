//! What can only be told when all tasks have been read: who spawns, kills and waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::workload::{Barrier, End, Start, TaskId};

use super::error::{Problem, Problems};
use super::objects::BarrierDef;
use super::source::Span;
use super::task::TaskHead;

/// Collected while statements are read.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Spawner and spawned: how many instances over all spawners, and the first statement.
    spawns: BTreeMap<(TaskId, TaskId), (u64, Span)>,
    /// Barrier and task, and whether the arrival is inside a `parallel`.
    arrivals: BTreeSet<(usize, TaskId, bool)>,
    killed: BTreeSet<TaskId>,
    resumed: BTreeSet<TaskId>,
    endless: BTreeMap<TaskId, Span>,
    stopped: BTreeMap<TaskId, Span>,
}

impl Facts {
    pub(crate) fn spawns(&mut self, by: TaskId, task: TaskId, count: u64, span: Span) {
        let (total, _) = self.spawns.entry((by, task)).or_insert((0, span));
        *total = total.saturating_add(count);
    }

    pub(crate) fn arrives(&mut self, barrier: usize, task: TaskId, parallel: bool) {
        self.arrivals.insert((barrier, task, parallel));
    }

    pub(crate) fn kills(&mut self, task: TaskId) {
        self.killed.insert(task);
    }

    pub(crate) fn resumes(&mut self, task: TaskId) {
        self.resumed.insert(task);
    }

    pub(crate) fn never_ends(&mut self, task: TaskId, span: Span) {
        self.endless.entry(task).or_insert(span);
    }

    pub(crate) fn stops(&mut self, task: TaskId, span: Span) {
        self.stopped.entry(task).or_insert(span);
    }

    /// Checks everything; the barriers with their parties counted.
    pub(crate) fn check(
        &self,
        tasks: &[TaskHead],
        barriers: &[BarrierDef],
        end: End,
        problems: &mut Problems,
    ) -> Vec<Barrier> {
        self.check_spawns(tasks, problems);
        self.check_ends(tasks, end, problems);
        let count = |(index, barrier)| self.check_barrier(index, barrier, tasks, problems);
        barriers.iter().enumerate().map(count).collect()
    }

    fn check_spawns(&self, tasks: &[TaskHead], problems: &mut Problems) {
        if let Some((path, span)) = self.spawn_cycle(tasks.len()) {
            let names: Vec<&str> = path
                .iter()
                .filter_map(|&task| tasks.get(task))
                .map(|task| &*task.name)
                .collect();
            problems.push(Problem::new(
                span,
                format!("found tasks that spawn each other: {}", names.join(" → ")),
                "a task can be spawned only by tasks that do not come from it",
            ));
            return;
        }
        for (id, task) in tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.start == Start::Spawned)
        {
            let spawns = || {
                self.spawns
                    .iter()
                    .filter(|((_, spawned), _)| *spawned == id)
            };
            let total = spawns().fold(0_u64, |sum, (_, (count, _))| sum.saturating_add(*count));
            match spawns().next() {
                None => problems.push(Problem::new(
                    task.span,
                    format!(
                        "the task `{}` has start = \"spawned\", but nothing spawns it",
                        task.name
                    ),
                    format!(
                        "add {{ spawn = \"{}\" }} to another task, or remove `start`",
                        task.name
                    ),
                )),
                Some((_, (_, span))) if total > task.instances => problems.push(
                    Problem::new(
                        *span,
                        format!(
                            "expected at most the {} instances of `{}`, found spawns of {total}",
                            task.instances, task.name
                        ),
                        format!(
                            "raise `processes` or `threads` of `{}`, or spawn fewer",
                            task.name
                        ),
                    )
                    .note(task.span, "its instances"),
                ),
                _ => {}
            }
        }
    }

    /// A path through `spawn` statements that comes back to its start: depth first, without recursion.
    fn spawn_cycle(&self, tasks: usize) -> Option<(Vec<TaskId>, Span)> {
        let next = |task: TaskId| {
            self.spawns
                .range((task, 0)..(task + 1, 0))
                .map(|((_, to), (_, span))| (*to, *span))
        };
        let mut finished = vec![false; tasks];
        for start in 0..tasks {
            let mut path = vec![start];
            let mut open = vec![next(start).collect::<Vec<_>>()];
            while let Some(choices) = open.last_mut() {
                match choices.pop() {
                    Some((to, span)) if path.contains(&to) => {
                        let from = path.iter().position(|&task| task == to).unwrap_or(0);
                        let mut cycle = path.split_off(from);
                        cycle.push(to);
                        return Some((cycle, span));
                    }
                    Some((to, _)) if finished.get(to) == Some(&false) => {
                        path.push(to);
                        open.push(next(to).collect());
                    }
                    Some(_) => {}
                    None => {
                        open.pop();
                        if let Some(done) = path.pop().and_then(|task| finished.get_mut(task)) {
                            *done = true;
                        }
                    }
                }
            }
        }
        None
    }

    fn check_ends(&self, tasks: &[TaskHead], end: End, problems: &mut Problems) {
        let name = |task: &TaskId| tasks.get(*task).map_or("", |task| task.name.as_str());
        if !matches!(end, End::After(_)) {
            for (task, span) in self
                .endless
                .iter()
                .filter(|(task, _)| !self.killed.contains(task))
            {
                problems.push(Problem::new(
                    *span,
                    format!(
                        "the task `{}` repeats forever, and the run waits for its end",
                        name(task)
                    ),
                    format!(
                        "end the run with [workload] end = {{ after = \"60s\" }}, \
                         or {{ kill = \"{}\" }} it in another task",
                        name(task)
                    ),
                ));
            }
            let resumed = |task: &TaskId| self.killed.contains(task) || self.resumed.contains(task);
            for (task, span) in self.stopped.iter().filter(|(task, _)| !resumed(task)) {
                problems.push(Problem::new(
                    *span,
                    format!(
                        "the task `{}` stops itself, and nothing resumes it",
                        name(task)
                    ),
                    format!("add {{ resume = \"{}\" }} to another task", name(task)),
                ));
            }
        }
    }

    fn check_barrier(
        &self,
        index: usize,
        barrier: &BarrierDef,
        tasks: &[TaskHead],
        problems: &mut Problems,
    ) -> Barrier {
        let here = || {
            self.arrivals
                .iter()
                .filter(|(barrier, ..)| *barrier == index)
        };
        let arriving: BTreeSet<TaskId> = here().map(|(_, task, _)| *task).collect();
        let instances = arriving
            .iter()
            .filter_map(|&task| tasks.get(task))
            .map(|task| task.instances);
        let instances = instances.fold(0_u64, u64::saturating_add);
        let BarrierDef {
            name,
            span,
            parties,
        } = barrier;
        if arriving.is_empty() {
            problems.push(Problem::new(
                *span,
                format!("no task comes to the barrier `{name}`"),
                format!("add {{ barrier = \"{name}\" }} to a task, or remove the section"),
            ));
        }
        let parties = parties.unwrap_or(instances);
        if parties > instances && !arriving.is_empty() && !here().any(|(.., parallel)| *parallel) {
            problems.push(Problem::new(
                *span,
                format!("the barrier `{name}` waits for {parties}, but only {instances} can come"),
                "lower `parties`, or leave it out: it follows from the tasks that name the barrier",
            ));
        }
        Barrier {
            name: name.clone(),
            parties,
        }
    }
}
