//! In which order the completely fair queueing elevator serves its queues: three service trees, one for each type of
//! workload, and how long a queue and a workload keep the disk.

use super::habits::{SLICE_IDLE, ThinkTime};
use crate::time::{MSEC, Nanos};
use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

/// Slice of a queue whose requests a task waits for, at the priority that all have (`cfq_slice_sync`).
pub(super) const SLICE_SYNC: Nanos = 100 * MSEC;
/// The same of the queue of the others (`cfq_slice_async`).
const SLICE_ASYNC: Nanos = 40 * MSEC;
/// All queues together are to have their turn in this time (`cfq_target_latency`).
const TARGET_LATENCY: Nanos = 300 * MSEC;
/// The shortest turn of a workload (`CFQ_MIN_TT`: 2 jiffies, later 2 ms).
const WORKLOAD_MIN: Nanos = 2 * MSEC;
/// `cfq_slice_offset`: for each other queue, by how much a queue of the middle priority stands behind one of the highest.
const OFFSET_SYNC: i64 = (SLICE_SYNC / 5 * 4) as i64;
const OFFSET_ASYNC: i64 = (SLICE_SYNC / 5 * 9 - SLICE_ASYNC) as i64;
/// How far in front of all others a queue is put that preempts (`HZ`).
const FRONT: i64 = 1_000 * MSEC as i64;

/// Number of a process's queue: [`ASYNC_QUEUE`], or one more than the task whose sync requests it holds.
pub(super) type CfqQueueId = usize;
/// The queue that all async requests share.
pub(super) const ASYNC_QUEUE: CfqQueueId = 0;

/// A type of workload (`enum wl_type_t`), in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkloadType {
    /// Requests that no task waits for.
    Async,
    /// Of processes that seek, or think long: the disk does not wait for one of them alone.
    SyncNoidle,
    /// Of processes for whose next request the disk waits.
    Sync,
}

const TYPES: [WorkloadType; 3] = [
    WorkloadType::Async,
    WorkloadType::SyncNoidle,
    WorkloadType::Sync,
];

/// Place of a queue in its tree: the key that trees are sorted by, and the order of arrival among equal keys.
pub(super) type Place = (i64, u64);

/// The queues of one type that have requests, the active one among them (`struct cfq_rb_root`).
#[derive(Debug, Default)]
pub(super) struct ServiceTree {
    queues: BTreeSet<(Place, CfqQueueId)>,
    pub(super) think_time: ThinkTime,
}

impl ServiceTree {
    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    fn first(&self) -> Option<(Place, CfqQueueId)> {
        self.queues.first().copied()
    }
}

/// All service trees, and whose turn it is.
#[derive(Debug)]
pub(super) struct Service {
    trees: [ServiceTree; 3],
    arrivals: u64,
    /// How many queues had requests, rising fast and falling slowly (`busy_queues_avg`).
    busy_average: u64,
    pub(super) serving: WorkloadType,
    expires: Nanos,
}

impl Index<WorkloadType> for Service {
    type Output = ServiceTree;

    fn index(&self, at: WorkloadType) -> &ServiceTree {
        &self.trees[at as usize]
    }
}

impl IndexMut<WorkloadType> for Service {
    fn index_mut(&mut self, at: WorkloadType) -> &mut ServiceTree {
        &mut self.trees[at as usize]
    }
}

impl Service {
    pub(super) fn new() -> Service {
        Service {
            trees: Default::default(),
            arrivals: 0,
            busy_average: 0,
            serving: WorkloadType::Async,
            expires: 0,
        }
    }

    /// Queues that have requests, the active one among them (`busy_queues`).
    pub(super) fn busy(&self) -> usize {
        self.trees.iter().map(ServiceTree::len).sum()
    }

    /// Those of them whose requests a task waits for (`busy_sync_queues`).
    pub(super) fn busy_sync(&self) -> usize {
        self.busy() - self[WorkloadType::Async].len()
    }

    /// Behind all queues that are there, the more of them the further; at `from` if there were none
    /// (`cfq_service_tree_add`). `busy` queues were there, with itself if it was one of them.
    pub(super) fn add(
        &mut self,
        queue: CfqQueueId,
        of: WorkloadType,
        busy: usize,
        from: i64,
    ) -> Place {
        let offset = match of {
            WorkloadType::Async => OFFSET_ASYNC,
            _ => OFFSET_SYNC,
        };
        self.insert(queue, of, from + (busy as i64 - 1) * offset)
    }

    /// In front of all queues of its type.
    pub(super) fn add_front(&mut self, queue: CfqQueueId, of: WorkloadType, now: Nanos) -> Place {
        let first = self[of].first().map_or(now as i64, |((key, _), _)| key);
        self.insert(queue, of, first - FRONT)
    }

    fn insert(&mut self, queue: CfqQueueId, of: WorkloadType, key: i64) -> Place {
        self.arrivals += 1;
        let place = (key, self.arrivals);
        self[of].queues.insert((place, queue));
        place
    }

    pub(super) fn remove(&mut self, queue: CfqQueueId, of: WorkloadType, place: Place) {
        self[of].queues.remove(&(place, queue));
    }

    /// The queue whose turn it is, of the workload whose turn it is (`cfq_choose_cfqg`, `cfq_get_next_queue`).
    pub(super) fn next(&mut self, now: Nanos) -> Option<CfqQueueId> {
        if self[self.serving].len() == 0 || now >= self.expires {
            self.choose_workload(now)?;
        }
        self[self.serving].first().map(|(_, queue)| queue)
    }

    /// The workload of the queue that has waited longest, for its share of the time in which all shall have their turn
    /// (`choose_wl_class_and_type`).
    fn choose_workload(&mut self, now: Nanos) -> Option<()> {
        let first = |of: &WorkloadType| Some((self[*of].first()?.0.0, *of));
        self.serving = TYPES.iter().filter_map(first).min()?.1;
        let busy = self.busy() as u64;
        let count = self[self.serving].len() as u64;
        let slice = TARGET_LATENCY * count / self.busy_average.max(busy);
        let slice = match self.serving {
            WorkloadType::Async => slice.min(TARGET_LATENCY / busy) * SLICE_ASYNC / SLICE_SYNC,
            _ => slice.max(2 * SLICE_IDLE),
        };
        self.expires = now + slice.max(WORKLOAD_MIN);
        Some(())
    }

    /// A queue of another type preempts: its workload is next.
    pub(super) fn end_workload(&mut self) {
        self.expires = 0;
    }

    /// How long a queue keeps the disk: shorter with many queues, so that each has its turn in time
    /// (`cfq_scaled_cfqq_slice`).
    pub(super) fn slice(&mut self, sync: bool) -> Nanos {
        let busy = self.busy() as u64;
        let (low, high) = (self.busy_average.min(busy), self.busy_average.max(busy));
        self.busy_average = (3 * high + low + 2) / 4;
        let slice = if sync { SLICE_SYNC } else { SLICE_ASYNC };
        let expected = SLICE_SYNC * self.busy_average;
        if expected <= TARGET_LATENCY {
            return slice;
        }
        let low = slice.min(2 * SLICE_IDLE * slice / SLICE_SYNC);
        (slice * TARGET_LATENCY / expected).max(low)
    }
}
