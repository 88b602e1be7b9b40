//! What is open for each thread while events go by.
//!
//! 1. A begin of reclaim or compaction opens a wait, unless one is open already: then it is nested in that. A second
//!    begin of the same kind means that an end was lost, and takes the place of the first.
//! 2. Threads are told apart by process id, as names change.
//! 3. kswapd, kcompactd, khugepaged and DAMON's threads work on their own account: nobody waits while they do.

use super::wait::{Inside, Limit, Request, Wait};
use crate::reclaim::namesakes::Namesakes;
use crate::reclaim::tasks::is_kswapd;
use lowmark_record::Tables;
use std::collections::HashMap;

/// What begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    Direct,
    Memcg,
    Softlimit,
    Node,
    Compaction,
}

/// Who a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Somebody whose waits count.
    Task,
    /// Somebody whose waits were not asked for.
    Unwanted,
    Kswapd,
    /// Reclaims or compacts before anybody waits.
    Proactive,
}

/// A wait that is not over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) pair: Pair,
    pub(super) wait: Wait,
    /// Time for which kswapd had been awake when it began, ns.
    pub(super) awake_ns: u64,
    /// Whether it is a wait of somebody whose waits count.
    pub(super) counts: bool,
}

/// A thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Thread {
    pub(super) open: Option<Open>,
    /// Since when a shrinker runs inside.
    pub(super) slab_since: Option<u64>,
    /// Since when compaction runs inside.
    pub(super) compaction_since: Option<u64>,
    /// Order and flags of the block that it wants to have compacted.
    pub(super) asked: Option<(u8, Option<u64>)>,
    /// Since when it waits as a writer, in kernels that tell both ends.
    pub(super) dirty_since: Option<u64>,
}

impl Thread {
    /// Opens a wait; whether it is one of its own.
    pub(super) fn begin(&mut self, open: Open) {
        if self.open.is_none_or(|known| known.pair == open.pair) {
            (self.slab_since, self.compaction_since) = (None, None);
            self.open = Some(open);
        }
    }

    /// Closes a wait at a time, ns.
    pub(super) fn end(&mut self, pair: Pair, time_ns: u64) -> Option<Open> {
        let mut open = self.open.filter(|open| open.pair == pair)?;
        self.open = None;
        open.wait.end_ns = time_ns.max(open.wait.begin_ns);
        Some(open)
    }
}

/// Nothing is known of it.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Known {
    thread: u32,
    who: Who,
}

/// All threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads {
    namesakes: Namesakes,
    /// By index of the task.
    known: Vec<Known>,
    by_pid: HashMap<i32, u32>,
    threads: Vec<Thread>,
}

impl Threads {
    /// Index of the thread and of the task of an event, and who it is; none if the source does not know it.
    pub(super) fn find(
        &mut self,
        task: u32,
        tables: &Tables,
        wanted: Option<&str>,
    ) -> Option<(usize, u32, Who)> {
        let task = self.namesakes.owner(task, tables).task;
        let known = match self.known.get(task as usize) {
            Some(known) if known.thread != NONE => *known,
            _ => self.meet(task, tables, wanted)?,
        };
        Some((known.thread as usize, task, known.who))
    }

    #[cold]
    fn meet(&mut self, task: u32, tables: &Tables, wanted: Option<&str>) -> Option<Known> {
        let actor = tables.actor(task)?;
        let next = self.threads.len() as u32;
        let thread = if actor.pid > 0 {
            *self.by_pid.entry(actor.pid).or_insert(next)
        } else {
            next
        };
        if thread == next {
            self.threads.push(Thread::default());
        }
        let is = |name: &str| name == actor.name || name == format!("{}-{}", actor.name, actor.pid);
        let proactive = ["kcompactd", "khugepaged", "kdamond"];
        let who = match actor.name.as_str() {
            name if is_kswapd(name) => Who::Kswapd,
            name if proactive.iter().any(|begin| name.starts_with(begin)) => Who::Proactive,
            _ if wanted.is_none_or(is) => Who::Task,
            _ => Who::Unwanted,
        };
        let index = task as usize;
        if self.known.len() <= index {
            let unknown = Known {
                thread: NONE,
                who: Who::Task,
            };
            self.known.resize(index + 1, unknown);
        }
        let known = Known { thread, who };
        self.known[index] = known;
        Some(known)
    }

    /// A thread by its index.
    pub(super) fn thread(&mut self, index: usize) -> &mut Thread {
        &mut self.threads[index]
    }

    /// All threads, at the end.
    pub(super) fn all(&self) -> &[Thread] {
        &self.threads
    }

    /// The name of a task as it is known at the end.
    pub(super) fn name(&mut self, task: u32, tables: &Tables) -> String {
        let task = self.namesakes.owner(task, tables).task;
        match tables.actor(task) {
            Some(actor) if actor.pid < 0 => actor.name.clone(),
            Some(actor) => format!("{}-{}", actor.name, actor.pid),
            None => "?".to_owned(),
        }
    }
}

/// A wait that begins.
pub(super) fn begun(task: u32, time_ns: u64, limit: Limit, order: u8, gfp: Option<u64>) -> Wait {
    Wait {
        task,
        begin_ns: time_ns,
        end_ns: time_ns,
        limit,
        request: match limit {
            Limit::Memcg => Request::of(gfp),
            _ => Request::of_order(order, gfp),
        },
        order,
        gfp,
        memcg: None,
        inside: Inside::default(),
        scanned: 0,
        kept: 0,
        reclaimed: 0,
        kswapd_ns: 0,
    }
}
