//! Which names of a trace are one task.
//!
//! ftrace knows the names of processes from a cache of limited size and prints `<...>-PID` where it has none,
//! perf `:PID`: one task may stand under its name in some lines and without one in others. The rule:
//!
//! 1. What has no name is the task that last went by under a name with this process id.
//! 2. If there was none yet, it is the first that does so later; until then it is kept by itself.
//! 3. Tasks of one process id with different names stay apart: whether one executed another program or the id
//!    was given to a new process, no event says.
//!
//! A task without a process id is nobody else.

use lowmark_record::{Actor, Tables};
use std::collections::HashMap;

/// No index.
const NONE: u32 = u32::MAX;

/// Whether a trace had no name for a task.
fn is_unnamed(actor: &Actor) -> bool {
    actor.name == "<...>"
        || actor
            .name
            .strip_prefix(':')
            .is_some_and(|pid| pid.parse() == Ok(actor.pid))
}

/// The task that something counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Index of the task.
    pub(crate) task: u32,
    /// Index under which there may be something that was kept by itself and is this task's as well.
    pub(crate) adopts: Option<u32>,
}

/// A task that was met.
#[derive(Debug, Clone, Copy)]
struct Known {
    met: bool,
    unnamed: bool,
    /// Index of its process id; none if it has no id.
    pid: u32,
}

/// Tasks of one process id.
#[derive(Debug, Clone, Copy)]
struct Pid {
    /// The one that last went by under a name.
    named: u32,
    /// The one without a name, until it is known whose it is.
    waiting: u32,
}

/// Finds the task of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Namesakes {
    /// By index of the task.
    known: Vec<Known>,
    pids: Vec<Pid>,
    by_pid: HashMap<i32, u32>,
}

impl Namesakes {
    /// Whose an event of a task is.
    #[inline]
    pub(crate) fn owner(&mut self, task: u32, tables: &Tables) -> Owner {
        let alone = Owner { task, adopts: None };
        let Some(known) = self.known.get(task as usize).filter(|known| known.met) else {
            return self.meet(task, tables);
        };
        let Some(pid) = self.pids.get_mut(known.pid as usize) else {
            return alone;
        };
        if !known.unnamed {
            pid.named = task;
            return alone;
        }
        if pid.named == NONE {
            return alone;
        }
        Owner {
            task: pid.named,
            adopts: None,
        }
    }

    #[cold]
    fn meet(&mut self, task: u32, tables: &Tables) -> Owner {
        let alone = Owner { task, adopts: None };
        let Some(actor) = tables.actor(task) else {
            return alone;
        };
        let index = task as usize;
        if self.known.len() <= index {
            let unknown = Known {
                met: false,
                unnamed: false,
                pid: NONE,
            };
            self.known.resize(index + 1, unknown);
        }
        let unnamed = is_unnamed(actor);
        let slot = if actor.pid > 0 {
            self.slot(actor.pid)
        } else {
            NONE
        };
        self.known[index] = Known {
            met: true,
            unnamed,
            pid: slot,
        };
        let Some(pid) = self.pids.get_mut(slot as usize) else {
            return alone;
        };
        if unnamed {
            if pid.named == NONE {
                pid.waiting = task;
                return alone;
            }
            return Owner {
                task: pid.named,
                adopts: None,
            };
        }
        pid.named = task;
        let waiting = std::mem::replace(&mut pid.waiting, NONE);
        Owner {
            task,
            adopts: (waiting != NONE).then_some(waiting),
        }
    }

    fn slot(&mut self, pid: i32) -> u32 {
        let next = self.pids.len() as u32;
        let slot = *self.by_pid.entry(pid).or_insert(next);
        if slot == next {
            self.pids.push(Pid {
                named: NONE,
                waiting: NONE,
            });
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Owners of a row of tasks, and what they adopt.
    fn owners(tasks: &[(&str, i32)]) -> Vec<(String, Option<String>)> {
        let mut tables = Tables::default();
        let mut namesakes = Namesakes::default();
        let mut owners = Vec::new();
        for (name, pid) in tasks {
            let task = tables.task(name.as_bytes(), *pid);
            let owner = namesakes.owner(task, &tables);
            let name = |task| {
                tables
                    .actor(task)
                    .map_or("", |a| a.name.as_str())
                    .to_owned()
            };
            owners.push((name(owner.task), owner.adopts.map(name)));
        }
        owners
    }

    #[test]
    fn the_name_before_counts_and_else_the_first_one_after() {
        let seen = owners(&[
            ("<...>", 7),
            ("<...>", 7),
            ("sh", 7),
            ("<...>", 7),
            ("dd", 7),
            ("<...>", 7),
            ("sh", 7),
            (":7", 7),
        ]);
        let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["<...>", "<...>", "sh", "sh", "dd", "dd", "sh", "sh"]
        );
        let adopted: Vec<_> = seen
            .iter()
            .filter_map(|(_, adopts)| adopts.clone())
            .collect();
        assert_eq!(adopted, ["<...>"], "once, by the first");
    }

    #[test]
    fn other_ids_and_no_ids_are_others() {
        let seen = owners(&[("sh", 7), ("<...>", 8), ("<...>", -1), ("a", -1), (":8", 7)]);
        let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sh", "<...>", "<...>", "a", ":8"]);
        assert!(seen.iter().all(|(_, adopts)| adopts.is_none()));
    }
}
