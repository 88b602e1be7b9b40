//! Which queue is served when, on a disk that takes 8 ms to position and 1 ms for a request.

use super::super::request::Dir;
use super::super::virtio::Tables;
use super::*;
use std::collections::VecDeque;

/// Pages of a request.
const PAGES: u64 = 32;
const POSITION: Nanos = 8 * MSEC;
/// Commands that the disk takes.
const QUEUE_DEPTH: usize = 31;
const TRANSFER: Nanos = MSEC;
/// Distance of what belongs to one process from what belongs to the next.
const APART: u64 = 1 << 20;

fn request(sync: bool, submitter: u32, start: u64, since: Nanos) -> Request {
    Request {
        dir: if sync { Dir::Read } else { Dir::Write },
        sync,
        submitter: TaskId(submitter),
        start,
        since,
        ready: since,
        pages: vec![0; PAGES as usize],
        tables: Tables::default(),
    }
}

/// A disk that serves one request after the other, and processes of which each submits its next read when the last one
/// is done.
struct Bench {
    cfq: Cfq,
    requests: Vec<Request>,
    now: Nanos,
    head: u64,
    /// Of each process how far from the end of a read the next one is.
    strides: Vec<u64>,
    /// Commands that the disk has, in the order in which it serves them.
    taken: VecDeque<RequestId>,
    /// Whose read is done, and where its next one begins.
    comes_back: Option<(u32, u64)>,
    /// Whose request was served, none's if it was async, and when that was done.
    served: Vec<(Option<u32>, Nanos)>,
}

impl Bench {
    fn new(strides: &[u64]) -> Bench {
        Bench::of(ExpiredRequest::Checked, strides)
    }

    fn of(expired_request: ExpiredRequest, strides: &[u64]) -> Bench {
        let mut bench = Bench {
            cfq: Cfq::new(true, expired_request),
            requests: Vec::new(),
            now: 0,
            head: 0,
            strides: strides.to_vec(),
            taken: VecDeque::new(),
            comes_back: None,
            served: Vec::new(),
        };
        for task in 0..strides.len() as u32 {
            bench.submit(true, task, u64::from(task) * APART);
        }
        bench
    }

    fn submit(&mut self, sync: bool, task: u32, start: u64) {
        let request = request(sync, task, start, self.now);
        let id = self.requests.len() as RequestId;
        self.cfq.insert(id, &request, self.now);
        self.requests.push(request);
    }

    /// Serves until `end`, or until there is nothing to do. The elevator is asked for more as soon as a request is done,
    /// before the process that waited for it has its turn.
    fn run_until(&mut self, end: Nanos) {
        while self.now < end {
            let mut idle_until = self.fill();
            if let Some((task, start)) = self.comes_back.take() {
                self.submit(true, task, start);
                idle_until = self.fill();
            }
            match (self.taken.pop_front(), idle_until) {
                (Some(id), _) => self.serve(id as usize),
                (None, Some(until)) => self.now = until,
                (None, None) => return,
            }
        }
    }

    /// Gives the disk as many commands as it takes; until when the elevator waits, if it does.
    fn fill(&mut self) -> Option<Nanos> {
        while self.taken.len() < QUEUE_DEPTH {
            match self.cfq.next(self.head, self.now) {
                Next::Dispatch(id) => self.taken.push_back(id),
                Next::IdleUntil(until) => return Some(until),
                Next::Empty => return None,
            }
        }
        None
    }

    fn serve(&mut self, id: usize) {
        let (sync, task) = (self.requests[id].sync, self.requests[id].submitter.0);
        let (start, after) = (self.requests[id].start, self.requests[id].end());
        self.now += TRANSFER + if start == self.head { 0 } else { POSITION };
        self.head = after;
        self.cfq.completed(&self.requests[id], self.now);
        self.served.push((sync.then_some(task), self.now));
        if sync {
            self.comes_back = Some((task, after + self.strides[task as usize]));
        }
    }

    /// How many requests of one process were served in a row, over the last half of the time.
    fn runs(&self) -> Vec<usize> {
        let late = self
            .served
            .iter()
            .filter(|(_, time)| *time > self.now / 2)
            .collect::<Vec<_>>();
        late.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect()
    }
}

/// By hand: up to three queues have 100 ms, five count as four (`(3·5 + 0 + 2) / 4`) and have 75 ms, a hundred have what
/// is twice the wait for a process, 16 ms, of which the async queue has two fifths.
#[test]
fn slices_shrink_with_the_number_of_queues() {
    for (queues, sync, slice) in [
        (1, true, 100_000),
        (3, true, 100_000),
        (5, true, 75_000),
        (100, true, 16_000),
        (1, false, 40_000),
        (100, false, 6_400),
    ] {
        let mut service = Service::new();
        for queue in 1..=queues {
            service.add(queue, WorkloadType::Sync, queue - 1, 0);
        }
        assert_eq!(service.slice(sync) / 1000, slice, "{queues} queues");
    }
}

/// A read takes 1 ms where the head is. The slice begins with the first read's end, and the read that is under way at
/// its end belongs to it: 101 of them in 100 ms, 17 in 16 ms.
#[test]
fn a_process_that_reads_on_keeps_the_disk_for_its_slice() {
    let mut two = Bench::new(&[0, 0]);
    two.run_until(4_000 * MSEC);
    assert!(
        two.runs().iter().all(|&run| run <= 101) && two.runs().contains(&101),
        "{:?}",
        two.runs()
    );
    let mut many = Bench::new(&[0; 40]);
    many.run_until(8_000 * MSEC);
    assert!(
        many.runs().iter().all(|&run| run <= 17) && many.runs().contains(&17),
        "{:?}",
        many.runs()
    );
}

/// The disk waits for a process until it has seeked five times in 32 requests; from then on it takes turns with each
/// request.
#[test]
fn processes_that_seek_take_turns_with_each_request() {
    let mut bench = Bench::new(&[5_000, 7_000]);
    bench.run_until(4_000 * MSEC);
    let runs = bench.runs();
    assert!(runs.iter().all(|&run| run == 1), "{runs:?}");
}

/// A sequential process is waited for and goes on although another one's request waits elsewhere.
#[test]
fn the_disk_waits_for_a_process_that_comes_back() {
    let mut bench = Bench::new(&[0, 0]);
    bench.run_until(2_000 * MSEC);
    let waited = bench
        .served
        .windows(2)
        .all(|pair| pair[1].1 - pair[0].1 <= POSITION + TRANSFER + SLICE_IDLE);
    assert!(waited, "{:?}", bench.served);

    // The first read is done, and that of the other process waits 2^20 pages away.
    let mut bench = Bench::new(&[0, 0]);
    assert_eq!(bench.fill(), None);
    assert_eq!(bench.taken, [0]);
    bench.taken.clear();
    bench.serve(0);
    let until = bench.now + SLICE_IDLE;
    assert_eq!(bench.fill(), Some(until));
    assert!(bench.taken.is_empty());
    bench.now = until;
    assert_eq!(bench.fill(), None);
    assert_eq!(bench.taken, [1], "it has waited for long enough");
}

/// The process that the disk waits for gets one request a turn though there is none left; no other does, nor does it
/// while its own request waits.
#[test]
fn who_is_waited_for_must_have_a_request() {
    let mut bench = Bench::new(&[0, 0]);
    assert!(
        !bench.cfq.must_queue(true, TaskId(0)),
        "nobody is waited for"
    );
    assert_eq!(bench.fill(), None);
    bench.taken.clear();
    bench.serve(0);
    assert_eq!(bench.fill(), Some(bench.now + SLICE_IDLE));
    assert!(!bench.cfq.must_queue(true, TaskId(1)));
    assert!(!bench.cfq.must_queue(false, TaskId(0)));
    assert!(bench.cfq.must_queue(true, TaskId(0)));
    assert!(!bench.cfq.must_queue(true, TaskId(0)), "once a turn");
}

/// When the slice of a reader is over its queue is empty: the disk gets as many async requests as it takes. Then the
/// reader's next one is there, which ends their turn.
#[test]
fn a_reader_and_async_requests_take_turns() {
    let mut bench = Bench::new(&[0]);
    for number in 0..6 * QUEUE_DEPTH as u64 {
        bench.submit(false, 9, 900 * APART + number * PAGES);
    }
    bench.run_until(1_200 * MSEC);
    let turns: Vec<_> = bench.served.chunk_by(|a, b| a.0 == b.0).collect();
    assert_eq!(turns.len(), 13, "{turns:?}");
    for turn in &turns[..turns.len() - 1] {
        match turn[0].0 {
            None => assert_eq!(turn.len(), QUEUE_DEPTH),
            Some(_) => assert_eq!(turn.len(), 101),
        }
    }
}

/// A sync request that arrives ends the turn of the async queue at once.
#[test]
fn a_sync_request_preempts_async_ones() {
    let mut bench = Bench::new(&[]);
    for number in 0..8 {
        bench.submit(false, 9, number * PAGES);
    }
    let Next::Dispatch(first) = bench.cfq.next(0, 0) else {
        panic!("an async request is served");
    };
    bench.submit(true, 1, APART);
    bench.now = MSEC;
    bench
        .cfq
        .completed(&bench.requests[first as usize], bench.now);
    let Next::Dispatch(second) = bench.cfq.next(PAGES, bench.now) else {
        panic!("the read is served");
    };
    assert!(bench.requests[second as usize].sync);
}

/// The disk has a read when it is the turn of async requests. Before it is done another process reads: that ends their turn,
/// except from 4.9 on if one of them has waited for 250 ms, which then goes first.
#[test]
fn an_expired_request_holds_the_turn_of_async_ones_from_4_9_on() {
    for (rule, waited, async_first) in [
        (ExpiredRequest::Checked, 251, false),
        (ExpiredRequest::HoldsTurn, 249, false),
        (ExpiredRequest::HoldsTurn, 251, true),
    ] {
        let mut bench = Bench::of(rule, &[0]);
        let Next::Dispatch(read) = bench.cfq.next(0, 0) else {
            panic!("the read is served");
        };
        for number in 0..2 {
            bench.submit(false, 9, 5 * APART + number * PAGES);
        }
        // The reader's queue is dry, and the disk does not wait for it: it is the turn of the async queue.
        bench.now = waited * MSEC;
        bench.cfq.expire_active(bench.now, false);
        assert!(matches!(bench.cfq.next(PAGES, bench.now), Next::Empty));
        bench.submit(true, 1, 2 * APART);
        bench
            .cfq
            .completed(&bench.requests[read as usize], bench.now);
        let Next::Dispatch(next) = bench.cfq.next(PAGES, bench.now) else {
            panic!("a request is served");
        };
        assert_eq!(
            !bench.requests[next as usize].sync, async_first,
            "{rule:?}, {waited} ms"
        );
        // The turn was held for one request: a sync request ends the turn of the async queue now.
        bench.submit(true, 2, 3 * APART);
        let turn = bench.cfq.active.as_ref().map(|active| active.queue);
        assert_ne!(turn, Some(ASYNC_QUEUE), "{rule:?}, {waited} ms");
    }
}

/// Thirty readers, every second of which seeks, all have their turns. Async requests hardly get through up to 4.8: the disk is
/// drained of sync ones first, and the first reader that comes back meanwhile ends their turn. From 4.9 on at least one
/// goes in each turn.
#[test]
fn every_queue_has_its_turn() {
    let strides: Vec<u64> = (0..30)
        .map(|task| if task % 2 == 0 { 0 } else { 9_999 })
        .collect();
    let served = [ExpiredRequest::Checked, ExpiredRequest::HoldsTurn].map(|rule| {
        let mut bench = Bench::of(rule, &strides);
        for number in 0..200 {
            bench.submit(false, 99, 2_000 * APART + 3 * number * PAGES);
        }
        bench.run_until(120_000 * MSEC);
        for task in 0..30 {
            let times = bench.served.iter().filter(|(who, _)| *who == Some(task));
            let mut last = 0;
            for (_, time) in times.chain([&(None, bench.now)]) {
                assert!(
                    time - last < 10_000 * MSEC,
                    "{task} waited from {last} to {time}"
                );
                last = *time;
            }
        }
        bench.served.iter().filter(|(who, _)| who.is_none()).count()
    });
    let [before, since] = served;
    assert!((1..20).contains(&before), "{before} in two minutes");
    assert!(since > 2 * before && since < 200, "{since} after {before}");
}
