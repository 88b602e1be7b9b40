//! Episodes: waits of all tasks that lie closer together than 100 ms.
//!
//! 1. Waits come in the order of their ends. A new one swallows every episode that it touches, so that the
//!    episodes that are left stay apart and in order.
//! 2. When there are more than [`EPISODES_MAX`], the gap that ends one is doubled and neighbours are joined.

use super::wait::{Limit, Request, Wait};

/// Longest time between two waits of one episode at first, ns.
const GAP_NS: u64 = 100_000_000;

/// Most episodes.
const EPISODES_MAX: usize = 1024;

/// Most tasks of an episode that are told apart.
pub(super) const TASKS_MAX: usize = 64;

/// A set of tasks, of which only so many are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TaskSet(Vec<u32>);

impl TaskSet {
    pub(super) fn add(&mut self, task: u32) {
        if let Err(at) = self.0.binary_search(&task)
            && self.0.len() < TASKS_MAX
        {
            self.0.insert(at, task);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A time in which tasks waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// When the first wait began, ns by the clock of the trace.
    pub begin_ns: u64,
    /// When the last ended.
    pub end_ns: u64,
    /// Waits.
    pub waits: u64,
    pub(super) tasks: TaskSet,
    /// Time of all waits by [`Limit`], ns.
    pub(super) limits_ns: [u64; Limit::ALL.len()],
    /// By limit and by what was asked for, ns.
    pub(super) time_ns: [[u64; Request::COUNT]; Limit::ALL.len()],
}

impl Episode {
    fn of(wait: &Wait) -> Episode {
        let mut tasks = TaskSet::default();
        tasks.add(wait.task);
        let mut episode = Episode {
            begin_ns: wait.begin_ns,
            end_ns: wait.end_ns,
            waits: 1,
            tasks,
            limits_ns: Default::default(),
            time_ns: Default::default(),
        };
        episode.limits_ns[wait.limit as usize] = wait.length_ns();
        episode.time_ns[wait.limit as usize][wait.request as usize] = wait.length_ns();
        episode
    }

    fn join(&mut self, other: &Episode) {
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.waits += other.waits;
        other.tasks.0.iter().for_each(|task| self.tasks.add(*task));
        let sums = self.limits_ns.iter_mut().zip(&other.limits_ns);
        sums.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
        let sums = self.time_ns.as_flattened_mut().iter_mut();
        sums.zip(other.time_ns.as_flattened())
            .for_each(|(sum, part)| *sum = sum.saturating_add(*part));
    }

    /// Tasks that waited; 64 may be more.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Time of all waits, ns.
    pub fn waited_ns(&self) -> u64 {
        self.limits_ns
            .iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// What made tasks wait for most of it.
    pub fn limit(&self) -> Limit {
        let most = self.limits_ns.iter().max().copied().unwrap_or(0);
        let mut all = Limit::ALL.into_iter();
        all.find(|limit| self.limits_ns[*limit as usize] == most)
            .unwrap_or(Limit::Global)
    }
}

/// All episodes so far.
#[derive(Debug, Clone)]
pub(super) struct Episodes {
    gap_ns: u64,
    episodes: Vec<Episode>,
}

impl Default for Episodes {
    fn default() -> Self {
        Episodes {
            gap_ns: GAP_NS,
            episodes: Vec::new(),
        }
    }
}

impl Episodes {
    pub(super) fn add(&mut self, wait: &Wait) {
        self.push(Episode::of(wait));
        while self.episodes.len() > EPISODES_MAX && self.gap_ns < u64::MAX {
            self.gap_ns = self.gap_ns.saturating_mul(2);
            let apart = std::mem::take(&mut self.episodes);
            apart.into_iter().for_each(|episode| self.push(episode));
        }
    }

    fn push(&mut self, mut episode: Episode) {
        while let Some(last) = self.episodes.last()
            && last.end_ns.saturating_add(self.gap_ns) >= episode.begin_ns
        {
            episode.join(last);
            self.episodes.pop();
        }
        self.episodes.push(episode);
    }

    /// Takes away what was waited under a limit, and the episodes of which nothing is left.
    pub(super) fn disown(&mut self, limit: Limit) {
        for episode in &mut self.episodes {
            episode.limits_ns[limit as usize] = 0;
            episode.time_ns[limit as usize] = [0; Request::COUNT];
        }
        self.episodes.retain(|episode| episode.waited_ns() > 0);
    }

    pub(super) fn all(&self) -> &[Episode] {
        &self.episodes
    }
}
