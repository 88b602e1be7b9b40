//! Request queues (`block/blk-core.c`).

use super::blk_mq::QueueRules;
use super::disk::Disk;
use super::dispatch::Kblockd;
use super::elevator::{self, Elevator};
use super::errors::Failing;
use super::plug::{Plug, PlugRules};
use super::request::{Dir, Io, Request, RequestId};
use super::stripes::Stripes;
use super::tags::Tags;
use super::virtio::{Tables, Virtio};
use crate::ids::{DeviceId, QueueId};
use crate::kernel::{Dispatch, Kernel, MaxSectors, MqPlug, Plug as PlugPlace, ReadaheadSize};
use crate::mm::types::Pfn;
use crate::time::{MSEC, Nanos, Sched, TaskId, WaitQueue};
use crate::world::Interrupt;
use lowmark_spec::machine::{Costs, Device, Driver, PAGE_SIZE};
use lowmark_spec::random::Stream;
use std::ops::Range;
use typed_index_collections::TiVec;

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// It is under way.
    Yes,
    /// No request is free: the submitter waits with [`BlockLayer::wait_for_request`] and tries again.
    QueueFull,
}

/// Requests at which a plugged queue gives in (`unplug_thresh`).
const UNPLUG_REQUESTS: usize = 4;
/// The longest that it holds them back (`unplug_delay`).
const UNPLUG_DELAY: Nanos = 3 * MSEC;

/// CPU times of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestCosts {
    /// Of submitting it.
    request_ns: Nanos,
    /// Of giving it to its device.
    dispatch_ns: Nanos,
}

/// Why a plug is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// The task that holds the plug goes on, and first gives the requests to their devices.
    GoesOn,
    /// The task goes to sleep: its CPU time for the requests is charged when it wakes, so that they are not late.
    Sleeps,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) disk: Disk,
    rotational: bool,
    pub(super) elevator: Elevator,
    pub(super) requests: Vec<Request>,
    unused: Vec<RequestId>,
    tags: Tags,
    /// What plugs hold of its requests.
    pub(super) plug: MqPlug,
    /// Bios come together in a request.
    merges_bios: bool,
    /// Pages of a request at most: of those that lie one by one in memory, of those in large folios.
    max_pages: [u64; 2],
    queue_depth: usize,
    pub(super) parallelism: u32,
    /// Commands that the device has taken but not begun.
    pub(super) taken: Vec<RequestId>,
    pub(super) in_service: u32,
    /// Time of the armed idle timer, so that it is armed once.
    pub(super) idle_timer: Option<Nanos>,
    pub(super) served: Served,
    /// Requests in the elevator.
    pub(super) queued: usize,
    /// Who submits a request leaves it to kblockd to give it to the device.
    pub(super) by_kblockd: bool,
    /// The driver tells the device once of all requests that are dispatched together (`virtio_commit_rqs`,
    /// `virtio_queue_rqs`), so that they cost as much CPU time as one request.
    told_at_once: bool,
    /// Nothing is given to the device yet (`QUEUE_FLAG_PLUGGED`, to 2.6.38).
    pub(super) plugged: bool,
    failing: Option<Failing>,
    /// How much memory its driver needs for a request.
    pub(super) virtio: Option<Virtio>,
}

/// A request that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) dir: Dir,
    /// Which of its pages the device did not take.
    pub(crate) failed: Range<usize>,
}

/// What a device has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Requests read and written.
    pub(crate) requests: [u64; 2],
    /// Pages read and written.
    pub(crate) pages: [u64; 2],
    /// Repositionings before reads and writes.
    pub(crate) seeks: [u64; 2],
    /// Time spent serving; of a striped device the mean of its members.
    pub(crate) busy: Nanos,
}

impl Served {
    fn add(&mut self, other: &Served) {
        for dir in 0..2 {
            self.requests[dir] += other.requests[dir];
            self.pages[dir] += other.pages[dir];
            self.seeks[dir] += other.seeks[dir];
        }
        self.busy += other.busy;
    }
}

/// All devices, and the congestion state that they share.
#[derive(Debug)]
pub(crate) struct BlockLayer {
    /// Of every member of every device.
    pub(super) queues: TiVec<QueueId, Queue>,
    /// Which queues a device has.
    stripes: TiVec<DeviceId, Stripes>,
    /// Queues hold requests back, not tasks.
    pub(super) queues_plug: bool,
    pub(super) plugs: Vec<Plug>,
    pub(super) plug_rules: PlugRules,
    /// `congestion_wqh`: async, sync.
    congestion: [WaitQueue; 2],
    /// Requests that devices have taken whose drivers have no memory for them yet.
    pub(super) unmapped: Vec<(QueueId, RequestId)>,
    pub(super) costs: RequestCosts,
    pub(super) kblockd: Kblockd,
    /// Pages of a file read ahead at most, by device (`ra_pages` of its `struct backing_dev_info`).
    ra_pages: TiVec<DeviceId, u32>,
    /// Pages of a request at most, by device (`io_pages`).
    io_pages: TiVec<DeviceId, u32>,
}

/// Pages read ahead at most where nothing else is said (`VM_READAHEAD_PAGES`, 128 KiB).
const VM_READAHEAD_PAGES: u32 = (128 << 10) / PAGE_SIZE as u32;

impl BlockLayer {
    /// The queues of a machine's devices.
    pub(crate) fn new(devices: &[Device], costs: &Costs, kernel: &Kernel) -> BlockLayer {
        let mechanisms = &kernel.mechanisms;
        let max_sectors = match mechanisms.block.max_sectors {
            MaxSectors::Sectors1024 => 512 << 10,
            MaxSectors::Sectors2560 => 1280 << 10,
            MaxSectors::Sectors8192 => 4 << 20,
        };
        let max_bytes = |device: &Device| {
            let dev_bytes = QueueRules::of(device, mechanisms.block).dev_bytes;
            let asked = device.max_request.unwrap_or(u64::MAX);
            asked.min(max_sectors).min(dev_bytes)
        };
        // blk_apply_bdi_limits. What arrays of disks say of themselves is not modelled.
        let ra_pages = |device: &Device| match mechanisms.files.readahead_size {
            ReadaheadSize::TwoRequests if device.rotational && device.members == 1 => {
                VM_READAHEAD_PAGES.max((2 * max_bytes(device) / PAGE_SIZE) as u32)
            }
            _ => VM_READAHEAD_PAGES,
        };
        let rules = |device: &Device| QueueRules::of(device, mechanisms.block);
        let queue = |device: &Device| Queue {
            disk: Disk::new(device),
            rotational: device.rotational,
            elevator: Elevator::new(
                device,
                rules(device).elevator,
                mechanisms.block.expired_request,
            ),
            requests: Vec::new(),
            unused: Vec::new(),
            tags: Tags::new(device.nr_requests, rules(device).tags),
            plug: rules(device).plug,
            merges_bios: rules(device).merges_bios,
            max_pages: [u64::from(device.max_segments), u64::MAX]
                .map(|segments| (max_bytes(device) / PAGE_SIZE).min(segments).max(1)),
            queue_depth: device.queue_depth as usize,
            parallelism: device.parallelism,
            taken: Vec::new(),
            in_service: 0,
            idle_timer: None,
            served: Served::default(),
            queued: 0,
            by_kblockd: mechanisms.block.dispatch == Dispatch::Kblockd
                && device.elevator != elevator::Kind::Noop,
            told_at_once: device.driver == Some(Driver::VirtioBlk),
            plugged: false,
            failing: device.write_errors.map(Failing::new),
            virtio: Virtio::new(device, kernel),
        };
        let members = devices
            .iter()
            .flat_map(|device| (0..device.members).map(move |_| device));
        BlockLayer {
            queues_plug: mechanisms.block.plug == PlugPlace::Queue,
            queues: members.map(queue).collect(),
            stripes: Stripes::of(devices),
            plugs: Vec::new(),
            plug_rules: PlugRules(mechanisms.block),
            congestion: Default::default(),
            unmapped: Vec::new(),
            costs: RequestCosts {
                request_ns: costs.request_ns,
                dispatch_ns: costs.dispatch_ns,
            },
            kblockd: Kblockd::default(),
            ra_pages: devices.iter().map(ra_pages).collect(),
            io_pages: devices
                .iter()
                .map(|device| (max_bytes(device) / PAGE_SIZE) as u32)
                .collect(),
        }
    }

    /// Another boot: see [`Disk::vary`].
    pub(crate) fn vary(&mut self, boot: u64) {
        for (id, queue) in self.queues.iter_mut_enumerated() {
            queue.disk.vary(Stream::new(boot, "disk", u64::from(id)));
        }
    }

    /// Pages of a request of a device at most.
    pub(crate) fn io_pages(&self, device: DeviceId) -> u32 {
        self.io_pages[device]
    }

    /// Pages of a file on a device that are read ahead at most.
    pub(crate) fn ra_pages(&self, device: DeviceId) -> u32 {
        self.ra_pages[device]
    }

    /// Work done by each device, with all of its members.
    pub(crate) fn served(&self) -> impl Iterator<Item = Served> + '_ {
        self.stripes.iter().map(|stripes| {
            let members = &self.queues[stripes.queues()];
            let mut all = Served::default();
            for member in members {
                all.add(&member.served);
            }
            all.busy /= members.len() as Nanos;
            all
        })
    }

    /// Whether any queue has too many async (`false`) or sync (`true`) requests
    /// (`nr_bdi_congested`).
    pub(crate) fn any_congested(&self, sync: bool) -> bool {
        self.queues.iter().any(|queue| queue.tags.congested(sync))
    }

    /// Whether a device has too many async (`false`) or sync (`true`) requests (`bdi_congested`): of a
    /// striped one any member (`raid0_congested`).
    pub(crate) fn is_congested(&self, device: DeviceId, sync: bool) -> bool {
        let members = &self.queues[self.stripes[device].queues()];
        members.iter().any(|queue| queue.tags.congested(sync))
    }

    /// `set_bdi_congested` of a device that has no request queue of its own here, for async requests.
    pub(crate) fn set_congested(&mut self, device: DeviceId) {
        for queue in &mut self.queues[self.stripes[device].queues()] {
            queue.tags.set_congested(false, true);
        }
    }

    /// `clear_bdi_congested` of such a device: who waits for the end of congestion is woken.
    pub(crate) fn clear_congested(&mut self, sched: &mut Sched, device: DeviceId) {
        for queue in &mut self.queues[self.stripes[device].queues()] {
            queue.tags.set_congested(false, false);
        }
        self.congestion[0].wake_all(sched);
    }

    /// Blocks the current task until an async request is done on a queue that is not congested, at most
    /// for `timeout` (`congestion_wait`).
    pub(crate) fn block_for_congestion(&mut self, sched: &mut Sched, timeout: Nanos) {
        self.congestion[0].block_for(sched, "congestion_wait", timeout);
    }

    /// The current task's congestion wait is over.
    pub(crate) fn end_congestion_wait(&mut self, sched: &Sched) {
        self.congestion[0].remove(sched.current());
    }

    /// Submits one page for the current task (`submit_bio`).
    #[inline]
    pub(crate) fn submit(&mut self, sched: &mut Sched, io: Io) -> Submitted {
        let (at, position) = self.stripes[io.device].place(io.position);
        let io = Io { position, ..io };
        if let Some(plug) = self.plugs.get(sched.current().0 as usize)
            && plug.depth > 0
            && let Some((queue, id)) = self.plug_rules.nearest(plug)
            && queue == at
            && self.queues[queue].try_merge(id, &io)
        {
            return Submitted::Yes;
        }
        self.submit_elsewhere(sched, at, io)
    }

    /// The same where that request of the plug is not the one.
    fn submit_elsewhere(&mut self, sched: &mut Sched, at: QueueId, io: Io) -> Submitted {
        let task = sched.current();
        let queue = &mut self.queues[at];
        let plugged = self
            .plugs
            .get_mut(task.0 as usize)
            .filter(|plug| plug.depth > 0 && queue.plug != MqPlug::Nothing);
        if let Some(plug) = &plugged {
            for id in self.plug_rules.others(plug, at) {
                if queue.try_merge(id, &io) {
                    return Submitted::Yes;
                }
            }
        }
        let candidates = queue
            .elevator
            .candidates((io.dir, io.sync, task), io.position);
        for id in candidates.into_iter().flatten() {
            let old_start = queue.requests[id as usize].start;
            if queue.try_merge(id, &io) {
                let request = &queue.requests[id as usize];
                if request.start != old_start {
                    queue.elevator.moved(request, id, old_start);
                }
                return Submitted::Yes;
            }
        }
        let Some(id) = queue.get_request(&io, task, sched.now()) else {
            return Submitted::QueueFull;
        };
        if plugged.is_some() {
            self.add_to_plug(sched, task, at, id);
        } else {
            sched.owe(queue.submit_ns(self.costs));
            self.add_to_queue(sched, at, id);
        }
        Submitted::Yes
    }

    /// `__make_request`: the queue of a disk that has nothing waiting is plugged first. `blk_mq_submit_bio`.
    fn add_to_queue(&mut self, sched: &mut Sched, at: QueueId, id: RequestId) {
        let queue = &mut self.queues[at];
        queue.insert(id, sched.now(), sched.free_from(sched.current()));
        let waiting = queue.waiting();
        if self.queues_plug && queue.rotational && waiting == 1 && !queue.plugged {
            queue.plugged = true;
            sched.interrupt_after(UNPLUG_DELAY, Interrupt::RunQueue { queue: at });
        }
        if !queue.plugged || waiting >= UNPLUG_REQUESTS {
            self.run_async(sched, at);
        }
    }

    /// Somebody waits for a page: what its queue holds back goes out (`sync_page`).
    pub(crate) fn unplug_queues(&mut self, sched: &mut Sched) {
        for at in self.queues.keys() {
            if self.queues[at].plugged {
                self.run_queue(sched, at);
            }
        }
    }

    /// Blocks the current task until a request is free for what found none (`get_request_wait`).
    pub(crate) fn wait_for_request(&mut self, sched: &mut Sched, io: &Io) {
        let (queue, _) = self.stripes[io.device].place(io.position);
        // __generic_unplug_device
        if self.queues[queue].plugged {
            self.run_queue(sched, queue);
        }
        self.queues[queue].tags.wait(sched, io.sync);
    }

    /// Requests that devices have taken since the drivers last looked.
    #[inline]
    pub(super) fn take_unmapped(&mut self) -> Vec<(QueueId, RequestId)> {
        std::mem::take(&mut self.unmapped)
    }

    /// A request with the rules of its driver.
    pub(super) fn driven(&self, at: QueueId, id: RequestId) -> Option<(Virtio, &Request)> {
        let queue = &self.queues[at];
        Some((queue.virtio?, &queue.requests[id as usize]))
    }

    /// What is allocated for a request.
    pub(super) fn tables(&mut self, at: QueueId, id: RequestId) -> &mut Tables {
        &mut self.queues[at].requests[id as usize].tables
    }

    /// What is allocated for all requests.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = &Tables> {
        let requests = self.queues.iter().flat_map(|queue| &queue.requests);
        requests.map(|request| &request.tables)
    }

    /// Requests of a device that failed; none if it cannot.
    pub(crate) fn write_errors(&self, device: DeviceId) -> Option<u64> {
        let mut members = self.queues[self.stripes[device].queues()].iter();
        members.find_map(|queue| queue.failing.as_ref().map(|failing| failing.failed))
    }

    /// A request is done: its pages go to `done`, which is empty, its room to whoever waits.
    pub(crate) fn complete(
        &mut self,
        sched: &mut Sched,
        queue: QueueId,
        id: RequestId,
        done: &mut Vec<Pfn>,
    ) -> Completed {
        let queue = &mut self.queues[queue];
        queue.in_service -= 1;
        let now = sched.now();
        let request = &mut queue.requests[id as usize];
        let (dir, sync) = (request.dir, request.sync);
        let failed = match (&mut queue.failing, dir) {
            (Some(failing), Dir::Write) => failing.write(request.start, request.pages.len() as u64),
            _ => 0..0,
        };
        done.append(&mut request.pages);
        queue.elevator.completed(&queue.requests[id as usize], now);
        queue.unused.push(id);
        if queue.tags.give_back(sched, sync) {
            self.congestion[usize::from(sync)].wake_all(sched);
        }
        Completed { dir, failed }
    }
}

impl Queue {
    /// Adds the page at either end of the request if it fits.
    #[inline]
    fn try_merge(&mut self, id: RequestId, io: &Io) -> bool {
        let request = &mut self.requests[id as usize];
        let fits = (self.merges_bios || !io.own_bio)
            && request.dir == io.dir
            && request.sync == io.sync
            && (request.pages.len() as u64) < self.max_pages[usize::from(io.in_folio)];
        if fits && request.end() == io.position {
            request.pages.push(io.pfn);
            return true;
        }
        if fits && io.position + 1 == request.start {
            request.pages.insert(0, io.pfn);
            request.start = io.position;
            return true;
        }
        false
    }

    /// CPU time of a task that submits a request that it has not plugged.
    fn submit_ns(&self, costs: RequestCosts) -> Nanos {
        let dispatch_ns = if self.by_kblockd {
            0
        } else {
            costs.dispatch_ns
        };
        costs.request_ns + dispatch_ns
    }

    /// CPU time of a task when its plug is flushed, for the `requests` of this queue that the plug holds.
    pub(super) fn flush_ns(&self, requests: usize, flush: Flush, costs: RequestCosts) -> Nanos {
        let left = self.by_kblockd && flush == Flush::Sleeps;
        let dispatch_ns = if left { 0 } else { costs.dispatch_ns };
        self.times(requests) * (costs.request_ns + dispatch_ns)
    }

    /// How many times the CPU time of one request `requests` cost that are dispatched together.
    pub(super) fn times(&self, requests: usize) -> Nanos {
        if self.told_at_once {
            requests.min(1) as Nanos
        } else {
            requests as Nanos
        }
    }

    /// Commands that the device takes beside those that it has.
    pub(super) fn room(&self) -> usize {
        let has = self.in_service as usize + self.taken.len();
        self.queue_depth.saturating_sub(has)
    }

    /// Requests that the device does not have yet.
    fn waiting(&self) -> usize {
        self.tags.used() as usize - self.in_service as usize - self.taken.len()
    }

    /// Shows a request to the elevator; its submitter has done its work `ready`.
    pub(super) fn insert(&mut self, id: RequestId, now: Nanos, ready: Nanos) {
        self.requests[id as usize].ready = ready;
        self.queued += 1;
        self.elevator.insert(id, &self.requests[id as usize], now);
    }

    /// The command that the device begins next.
    pub(super) fn begin_next(&mut self) -> RequestId {
        let starts = self
            .taken
            .iter()
            .map(|&id| self.requests[id as usize].start);
        let next = self.disk.choose(starts);
        self.taken.remove(next)
    }

    /// `get_request` without waiting.
    fn get_request(&mut self, io: &Io, submitter: TaskId, now: Nanos) -> Option<RequestId> {
        let must = self.elevator.must_queue(io.sync, submitter);
        if !self.tags.take(io.sync, submitter, must, now) {
            return None;
        }
        let id = self.unused.pop().unwrap_or_else(|| {
            self.requests.push(Request {
                dir: io.dir,
                sync: io.sync,
                submitter,
                start: 0,
                since: 0,
                ready: 0,
                pages: Vec::new(),
                tables: Tables::default(),
            });
            self.requests.len() as RequestId - 1
        });
        let request = &mut self.requests[id as usize];
        (request.dir, request.sync, request.submitter) = (io.dir, io.sync, submitter);
        (request.start, request.since) = (io.position, now);
        request.pages.push(io.pfn);
        Some(id)
    }
}

#[cfg(test)]
pub(super) mod tests;
