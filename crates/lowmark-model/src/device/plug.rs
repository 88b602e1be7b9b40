//! What a task holds back so that neighbours come together (`struct blk_plug`).
//!
//! 1. A page is tried with the requests of the plug (`blk_attempt_plug_merge`): with which of them depends on the
//!    kernel.
//! 2. A request that is added to one too many, or beside one that is large, lets those before it go
//!    (`blk_add_rq_to_plug`). From 6.13 on it is the oldest that is asked whether it is large. That may be a short
//!    read, and then nothing but their number lets requests go: thousands of pages that reclaim writes for a window
//!    of swap readahead wait until the window has been read.
//! 3. Of a device with several hardware queues some kernels hold one request, which goes when the next is added, and
//!    some hold none.

use super::queue::{BlockLayer, Flush};
use super::request::{Request, RequestId};
use crate::ids::QueueId;
use crate::kernel::{Block, MqPlug, PlugFlush, PlugMerge};
use crate::time::{Sched, TaskId};
use lowmark_spec::machine::PAGE_SIZE;

/// Pages of a request beside which no other is kept (`BLK_PLUG_FLUSH_SIZE`).
const FLUSH_PAGES: usize = ((128 << 10) / PAGE_SIZE) as usize;

/// A request of a queue.
pub(super) type Held = (QueueId, RequestId);

/// The rules of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlugRules(pub(super) Block);

/// A task's plug: requests not yet shown to the elevator, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Plug {
    /// How many holders there are within each other; 0 if it is not in use.
    pub(super) depth: u32,
    pub(super) requests: Vec<Held>,
}

impl PlugRules {
    /// The request with which a page is tried first: most pages go on where the last one ended.
    #[inline]
    pub(super) fn nearest(self, plug: &Plug) -> Option<Held> {
        let nearest = match self.0.plug_merge {
            PlugMerge::Oldest => plug.requests.first(),
            PlugMerge::All | PlugMerge::Newest | PlugMerge::Last => plug.requests.last(),
        };
        nearest.copied()
    }

    /// The requests of a queue with which it is tried when that is not the one.
    pub(super) fn others(self, plug: &Plug, queue: QueueId) -> impl Iterator<Item = RequestId> {
        let of_queue = move |held: &&Held| held.0 == queue;
        let tried = self.nearest(plug).is_some_and(|held| held.0 == queue);
        let (from_newest, from_oldest) = match (self.0.plug_merge, tried) {
            (PlugMerge::All, _) => (usize::MAX, 0),
            (_, true) => (0, 0),
            (PlugMerge::Newest, false) => (1, 0),
            (PlugMerge::Oldest | PlugMerge::Last, false) => (0, 1),
        };
        let newest = plug.requests.iter().rev().filter(of_queue);
        let oldest = plug.requests.iter().filter(of_queue);
        newest
            .skip(usize::from(tried))
            .take(from_newest)
            .chain(oldest.take(from_oldest))
            .map(|held| held.1)
    }

    /// Whether what is held goes out before another request is added; `pages` says how large a request is.
    pub(super) fn full(self, plug: &Plug, pages: impl Fn(Held) -> usize) -> bool {
        let asked = match self.0.plug_flush {
            PlugFlush::Requests => None,
            PlugFlush::LargeRequest | PlugFlush::MoreRequests => plug.requests.last(),
            PlugFlush::OldestRequest => plug.requests.first(),
        };
        let most = match self.0.plug_flush {
            PlugFlush::Requests | PlugFlush::LargeRequest => 16,
            PlugFlush::MoreRequests | PlugFlush::OldestRequest => 32,
        };
        plug.requests.len() >= most || asked.is_some_and(|&held| pages(held) >= FLUSH_PAGES)
    }
}

impl BlockLayer {
    /// `blk_start_plug` for the current task; plugs nest.
    pub(crate) fn start_plug(&mut self, sched: &Sched) {
        if self.queues_plug {
            return;
        }
        let task = sched.current().0 as usize;
        if self.plugs.len() <= task {
            self.plugs.resize_with(task + 1, Plug::default);
        }
        self.plugs[task].depth += 1;
    }

    /// `blk_finish_plug`.
    pub(crate) fn finish_plug(&mut self, sched: &mut Sched) {
        if self.queues_plug {
            return;
        }
        let task = sched.current();
        let plug = &mut self.plugs[task.0 as usize];
        plug.depth -= 1;
        if plug.depth == 0 {
            self.flush_plug(sched, task, Flush::GoesOn);
        }
    }

    /// A task's plugged requests go out (`blk_flush_plug_list`, `blk_mq_flush_plug_list`).
    pub(crate) fn flush_plug(&mut self, sched: &mut Sched, task: TaskId, flush: Flush) {
        let Some(plug) = self.plugs.get_mut(task.0 as usize) else {
            return;
        };
        if plug.requests.is_empty() {
            return;
        }
        let mut requests = std::mem::take(&mut plug.requests);
        self.insert_all(sched, task, &mut requests, flush);
        requests.clear();
        self.plugs[task.0 as usize].requests = requests;
    }

    /// Shows requests to the elevators, sorted.
    fn insert_all(
        &mut self,
        sched: &mut Sched,
        task: TaskId,
        requests: &mut Vec<Held>,
        flush: Flush,
    ) {
        requests
            .sort_by_key(|&(queue, id)| (queue, self.queues[queue].requests[id as usize].start));
        for batch in requests.chunk_by(|a, b| a.0 == b.0) {
            sched.owe(self.queues[batch[0].0].flush_ns(batch.len(), flush, self.costs));
        }
        let ready = match flush {
            Flush::Sleeps => sched.now(),
            Flush::GoesOn => sched.free_from(task),
        };
        for &(queue, id) in &*requests {
            self.queues[queue].insert(id, sched.now(), ready);
        }
        requests.dedup_by_key(|&mut (queue, _)| queue);
        for &(queue, _) in &*requests {
            match flush {
                Flush::Sleeps => self.run_async(sched, queue),
                Flush::GoesOn => self.run_queue(sched, queue),
            }
        }
    }

    /// `blk_add_rq_to_plug`
    pub(super) fn add_to_plug(
        &mut self,
        sched: &mut Sched,
        task: TaskId,
        queue: QueueId,
        id: RequestId,
    ) {
        if self.queues[queue].plug == MqPlug::OneRequest {
            self.change_plugged(sched, task, (queue, id));
            return;
        }
        let pages = |(queue, id): Held| {
            let request: &Request = &self.queues[queue].requests[id as usize];
            request.pages.len()
        };
        let rules = self.plug_rules;
        if rules.full(&self.plugs[task.0 as usize], pages) {
            self.flush_plug(sched, task, Flush::GoesOn);
        }
        let plug = &mut self.plugs[task.0 as usize];
        plug.requests.push((queue, id));
    }

    /// The only request that a plug holds of a queue goes to its device, and another one takes its place
    /// (`blk_mq_direct_issue_request`).
    fn change_plugged(&mut self, sched: &mut Sched, task: TaskId, new: Held) {
        let plugged = &mut self.plugs[task.0 as usize].requests;
        let older = plugged.iter().position(|held| held.0 == new.0);
        let older = older.map(|at| plugged.remove(at));
        plugged.push(new);
        if let Some(older) = older {
            self.insert_all(sched, task, &mut vec![older], Flush::GoesOn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Version, versions};

    fn rules(version: &str) -> PlugRules {
        PlugRules(versions::at(Version::known(version).expect("known")).block)
    }

    /// Requests 0, 1, … of these queues.
    fn plug(queues: &[usize]) -> Plug {
        Plug {
            depth: 1,
            requests: queues
                .iter()
                .map(|&queue| QueueId::from(queue))
                .zip(0..)
                .collect(),
        }
    }

    #[test]
    fn a_page_is_tried_with_other_requests_in_each_era() {
        let tried = |version: &str, queues: &[usize]| {
            let (rules, plug, first) = (rules(version), plug(queues), QueueId::from(0));
            let nearest = rules.nearest(&plug).filter(|held| held.0 == first);
            let nearest = nearest.map(|held| held.1);
            nearest
                .into_iter()
                .chain(rules.others(&plug, first))
                .collect::<Vec<_>>()
        };
        let (one, two) = (&[0, 0, 0][..], &[0, 0, 1][..]);
        assert_eq!(tried("v5.15", one), [2, 1, 0]);
        assert_eq!(tried("v5.15", two), [1, 0]);
        assert_eq!(tried("v6.12", one), [2]);
        assert_eq!(tried("v6.12", two), [1]);
        assert_eq!(tried("v6.13", one), [0]);
        assert_eq!(tried("v6.13", &[1, 0, 0]), [1]);
        assert_eq!(tried("v6.16", one), [2]);
        assert_eq!(tried("v6.16", two), [0]);
    }

    #[test]
    fn a_large_request_is_not_kept_unless_a_short_one_is_older() {
        let pages = |large: RequestId| move |held: Held| if held.1 == large { 32 } else { 1 };
        let plug = plug(&[0, 0]);
        assert!(!rules("v4.9").full(&plug, pages(1)));
        assert!(rules("v6.12").full(&plug, pages(1)));
        assert!(!rules("v6.12").full(&plug, pages(0)));
        assert!(!rules("v6.13").full(&plug, pages(1)));
        assert!(rules("v6.13").full(&plug, pages(0)));
    }

    #[test]
    fn a_plug_holds_16_requests_and_later_32() {
        let few = |_| 1;
        let held = |requests: usize| plug(&vec![0; requests]);
        for (version, most) in [("v3.2", 16), ("v5.15", 16), ("v5.16", 32), ("v6.18", 32)] {
            let rules = rules(version);
            assert!(!rules.full(&held(most - 1), few) && rules.full(&held(most), few));
        }
    }
}
