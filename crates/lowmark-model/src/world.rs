//! The machine as a whole: everything that a kernel path can reach, and the doors through which
//! `async` code reaches it.
//!
//! [`World`] is plain state. Code that does not sleep takes `&mut World`; code that may sleep takes
//! [`Sys`], borrows the world between two sleeps, and never across one (`clippy` checks that).

use crate::device::{BlockLayer, Flush};
use crate::fs::Mounts;
use crate::ids::{DeviceId, QueueId, WbId};
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::mm::compaction::Value;
use crate::mm::io::PageWaiters;
use crate::mm::io::bio::BioSet;
use crate::mm::reclaim::vmscan::Batch;
use crate::mm::types::Pfn;
use crate::mm::writeback::fs_writeback::ListLocks;
use crate::mm::writeback::page_writeback::Dirtying;
use crate::nfs::{Nfs, Signal};
use crate::time::{BoxFuture, Mode, Nanos, RwSem, SECOND, Sched, Suspend, SwitchCosts, TaskId};
use crate::trace::Trace;
use lowmark_record::{Event, Field, Kind};
use lowmark_spec::Machine;
use lowmark_spec::machine::Costs;
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

/// Something that happens outside the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interrupt {
    /// A device has served a request.
    RequestDone { queue: QueueId, request: u32 },
    /// An elevator's idle timer.
    RunQueue { queue: QueueId },
    /// The workload's time is up.
    EndOfRun,
    /// A flusher has had dirty pages for a while.
    WakeFlusher { wb: WbId },
    /// A transaction of a file system's journal has run long enough.
    CommitTransaction { fs: usize },
    /// Some time after the last page of an inode was written.
    SampleBandwidth { wb: WbId },
    /// Two seconds after counters of memory cgroups were last added up.
    FlushMemcgStats,
    /// Something on the way to a server or back.
    Nfs { device: DeviceId, signal: Signal },
}

/// Why a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As the workload says.
    Completed,
    /// Nothing was left to reclaim.
    OutOfMemory {
        task: String,
        order: u32,
        verdict: String,
    },
    /// A statement cannot be carried out.
    Failed {
        task: String,
        line: u32,
        verdict: String,
    },
    /// Every task waits for another.
    Deadlock { verdict: String },
}

/// All state of a run.
#[derive(Debug)]
pub(crate) struct World {
    /// CPUs, tasks, timers.
    pub(crate) sched: Sched,
    /// Memory.
    pub(crate) mm: Mm,
    /// Devices.
    pub(crate) block: BlockLayer,
    /// File systems.
    pub(crate) mounts: Mounts,
    /// Servers of devices that are not the machine's own.
    pub(crate) nfs: Nfs,
    /// Who makes pages dirty.
    pub(crate) dirtying: Dirtying,
    /// Locks over the lists of dirty inodes.
    pub(crate) list_locks: ListLocks,
    /// Events.
    pub(crate) trace: Trace,
    /// What work costs.
    pub(crate) costs: Costs,
    /// `mmap_sem` of each process.
    pub(crate) spaces: Vec<RwSem>,
    /// Tasks that wait for a page.
    pub(crate) page_waiters: PageWaiters,
    /// Memory for I/O.
    pub(crate) bios: BioSet,
    /// What the workload's tasks share.
    pub(crate) workload: crate::task::Shared,
    /// Memory for batches of isolated pages.
    pub(crate) batches: Vec<Batch>,
    /// Memory for the pages of a request that is done.
    done_pages: Vec<Pfn>,
    /// Bodies of tasks that the executor has not taken over yet.
    pub(crate) spawned: Spawned,
    jiffy: Nanos,
    over: Option<Verdict>,
}

/// Tasks on their way to the executor.
#[derive(Default)]
pub(crate) struct Spawned(VecDeque<(TaskId, BoxFuture)>);

impl std::fmt::Debug for Spawned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tasks", self.0.len())
    }
}

impl Spawned {
    /// The next one, in the order in which they were spawned.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(TaskId, BoxFuture)> {
        self.0.pop_front()
    }
}

#[cfg(test)]
impl World {
    /// A small machine with swap, under a kernel as it was released.
    pub(crate) fn of_version(version: &str) -> World {
        let machine = Machine::small(64 << 20, 64 << 20);
        World::new(&machine, Kernel::named(version), Trace::new(None))
    }
}

impl World {
    /// What an access to memory costs now ([`Sched::memory_time`]).
    #[inline]
    pub(crate) fn memory_time(&self, ns: Nanos) -> Nanos {
        self.sched.memory_time(ns)
    }

    pub(crate) fn new(machine: &Machine, kernel: Kernel, trace: Trace) -> World {
        let costs = &machine.costs;
        let block = BlockLayer::new(&machine.devices, costs, &kernel);
        let mut mm = Mm::new(machine, kernel);
        let mechanisms = mm.kernel.mechanisms;
        let bios = BioSet::new(if mm.kernel.coverage.swap_bios {
            mm.slub.keep_bios()
        } else {
            None
        });
        let memory = mm.totalram_pages();
        let mounts = Mounts::new(machine, &mm.kernel);
        for fs in mounts.with_xfs() {
            mm.keep_evicted(fs);
        }
        let mut world = World {
            sched: Sched::new(
                machine.cpus,
                machine.hz,
                SwitchCosts {
                    context: costs.context_switch_ns,
                    mm: costs.switch_mm_ns,
                },
                mechanisms.sched,
            )
            .with_nodes(machine.nodes.len())
            .with_memory_streams(machine.memory_streams),
            mm,
            block,
            mounts,
            nfs: Nfs::new(machine, memory),
            dirtying: Dirtying::new(machine.cpus),
            list_locks: ListLocks::default(),
            trace,
            costs: costs.clone(),
            spaces: Vec::new(),
            page_waiters: PageWaiters::default(),
            bios,
            workload: Default::default(),
            batches: Vec::new(),
            done_pages: Vec::new(),
            spawned: Spawned::default(),
            jiffy: SECOND / u64::from(machine.hz),
            over: None,
        };
        if world.trace.enabled() {
            world.mm.told.listen();
        }
        world.set_dirty_ratelimit(machine.cpus);
        world
    }

    /// Length of a jiffy.
    pub(crate) fn jiffy(&self) -> Nanos {
        self.jiffy
    }

    /// Jiffies in a second.
    pub(crate) fn hz(&self) -> u64 {
        SECOND / self.jiffy
    }

    /// Starts a task.
    pub(crate) fn spawn(&mut self, name: String, kthread: bool, body: BoxFuture) -> TaskId {
        let id = self.sched.add(name, kthread);
        self.spawned.0.push_back((id, body));
        id
    }

    /// Starts a worker of a queue of work of high priority (`WQ_HIGHPRI`).
    pub(crate) fn spawn_worker(&mut self, name: String, body: BoxFuture) -> TaskId {
        let id = self.sched.add_worker(name);
        self.spawned.0.push_back((id, body));
        id
    }

    /// A timeout in whole jiffies, rounded up.
    pub(crate) fn jiffies(&self, timeout: Nanos) -> Nanos {
        timeout.div_ceil(self.jiffy) * self.jiffy
    }

    /// Records an event of the current task.
    #[inline]
    pub(crate) fn trace(&mut self, kind: Kind, values: impl Fn(&World) -> Vec<(Field, u64)>) {
        if self.trace.enabled() {
            self.record(kind, values);
        }
    }

    /// Out of the way of runs that record no events, which are most.
    #[cold]
    #[inline(never)]
    fn record(&mut self, kind: Kind, values: impl Fn(&World) -> Vec<(Field, u64)>) {
        self.tell();
        let values = values(self);
        self.push_event(kind, &values);
    }

    fn push_event(&mut self, kind: Kind, values: &[(Field, u64)]) {
        let (now, cpu) = (self.sched.now(), self.sched.current_cpu());
        let event = Event::new(kind, now, cpu, self.sched.current().0).with(values);
        self.trace.push(event);
    }

    /// Records what memory has decided since, as events of the current task.
    #[inline]
    pub(crate) fn tell(&mut self) {
        if self.trace.enabled() {
            self.record_told();
        }
    }

    #[cold]
    #[inline(never)]
    fn record_told(&mut self) {
        for (kind, values) in self.mm.told.take() {
            let values: Vec<(Field, u64)> = values
                .into_iter()
                .map(|(field, value)| match value {
                    Value::Number(number) => (field, number),
                    Value::Text(text) => (field, self.trace.name(text)),
                })
                .collect();
            self.push_event(kind, &values);
        }
    }

    /// Deals with an interrupt.
    pub(crate) fn interrupt(&mut self, interrupt: Interrupt) {
        match interrupt {
            Interrupt::RequestDone { queue, request } => {
                self.unmap_request(queue, request);
                let mut pages = std::mem::take(&mut self.done_pages);
                let completed = self
                    .block
                    .complete(&mut self.sched, queue, request, &mut pages);
                self.end_io(&completed, &pages);
                pages.clear();
                self.done_pages = pages;
                self.block.restart_queue(&mut self.sched, queue);
            }
            Interrupt::RunQueue { queue } => self.block.run_async(&mut self.sched, queue),
            Interrupt::EndOfRun => self.over = Some(Verdict::Completed),
            Interrupt::WakeFlusher { wb } => self.wake_flusher(wb),
            Interrupt::CommitTransaction { fs } => self.commit_timeout(fs),
            Interrupt::SampleBandwidth { wb } => self.late_sample(wb),
            Interrupt::FlushMemcgStats => self.flush_stats_periodically(),
            Interrupt::Nfs { device, signal } => self.nfs_interrupt(device, signal),
        }
        self.map_requests();
    }

    /// Flushes the plug of a task that goes to sleep. The CPU time for it is charged when the task wakes, so that the
    /// requests are not late.
    pub(crate) fn flush_plug(&mut self, task: TaskId) {
        self.block.flush_plug(&mut self.sched, task, Flush::Sleeps);
        self.map_requests();
    }

    /// An allocation failed for good.
    pub(crate) fn out_of_memory(&mut self, order: u32) {
        let free: u64 = self.mm.zones.iter().map(|zone| zone.free).sum();
        let reclaimable: u64 = self
            .mm
            .lruvecs
            .iter()
            .map(|lists| lists.reclaimable(true))
            .sum();
        let verdict = format!(
            "{free} pages free, {reclaimable} on the LRU lists, {} of {} swap slots in use",
            self.mm.swap.in_use(),
            self.mm.swap.total_slots()
        );
        let task = self.sched.task(self.sched.current()).name.clone();
        self.over = Some(Verdict::OutOfMemory {
            task,
            order,
            verdict,
        });
    }

    /// A statement cannot be carried out, and with it the run is over.
    pub(crate) fn fail(&mut self, task: String, line: u32, verdict: String) {
        let failed = Verdict::Failed {
            task,
            line,
            verdict,
        };
        self.over.get_or_insert(failed);
    }

    /// Why the run is over, if it is.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        if self.over.is_some() {
            return self.over.clone();
        }
        let idle = || self.mm.nodes.iter().all(|node| node.kswapd.asleep);
        let done = self.sched.live() == 0 && (!self.workload.until_kswapd_idle || idle());
        done.then_some(Verdict::Completed)
    }

    /// Nothing will ever happen again: the time is over, or every task waits for another.
    pub(crate) fn nothing_comes(&self) -> Verdict {
        if let Some(task) = self.sched.beyond_time() {
            return Verdict::Failed {
                task: self.sched.task(task).name.clone(),
                line: self.workload.line(task),
                verdict: "virtual time ended: a run of the model lasts 292 years (2^63 ns) at most"
                    .into(),
            };
        }
        let waiting: Vec<String> = self
            .sched
            .tasks()
            .iter()
            .filter(|task| !task.kthread && task.end.is_none())
            .take(8)
            .map(|task| format!("{} waits for {}", task.name, task.waiting_for))
            .collect();
        Verdict::Deadlock {
            verdict: waiting.join("; "),
        }
    }
}

/// Longest stretch that is charged at once: others get their turn in between.
const CHARGE_MAX: Nanos = 1_000_000;

/// A shared reference to the machine, as every task body holds it.
pub(crate) type SysRef = Rc<Sys>;

/// The machine, for code that may sleep.
#[derive(Debug)]
pub(crate) struct Sys {
    world: RefCell<World>,
    /// What work costs.
    pub(crate) costs: Costs,
}

impl Sys {
    pub(crate) fn new(world: World) -> SysRef {
        let costs = world.costs.clone();
        Rc::new(Sys {
            world: RefCell::new(world),
            costs,
        })
    }

    /// The state; not to be held across an `.await`.
    #[inline]
    pub(crate) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    /// Gives up control after the scheduler has been told when to go on.
    pub(crate) fn suspend(&self) -> Suspend {
        Suspend::default()
    }

    /// Spends CPU time in the kernel.
    #[inline]
    pub(crate) async fn charge_kernel(&self, ns: Nanos) {
        self.charge(Mode::System, ns).await;
    }

    /// Spends CPU time in the kernel, as [`Sys::charge_kernel`] does, for work that may cost nothing on a machine: then nothing
    /// happens, and nobody else gets the CPU.
    pub(crate) async fn charge_work(&self, ns: Nanos) {
        if ns > 0 {
            self.charge_kernel(ns).await;
        }
    }

    /// Spends CPU time in the kernel with interrupts off: nobody else gets the CPU before it is over.
    pub(crate) async fn charge_locked(&self, ns: Nanos) {
        let passed = self.world().sched.spend(Mode::System, ns);
        if !passed {
            self.suspend().await;
        }
    }

    /// Makes room for who displaces the task; whether anybody did (`cond_resched`). Lazy kernels have no such places.
    pub(crate) async fn cond_resched(&self) -> bool {
        let displaced = !self.world().sched.spend(Mode::System, 0);
        if displaced {
            self.suspend().await;
        }
        displaced
    }

    /// The end of one system call, before the next: who is displaced makes room.
    pub(crate) async fn return_to_user(&self) {
        let passed = self.world().sched.spend(Mode::User, 0);
        if !passed {
            self.suspend().await;
        }
    }

    /// Spends CPU time.
    #[inline]
    pub(crate) async fn charge(&self, mode: Mode, ns: Nanos) {
        let mut left = ns;
        while left > 0 {
            let chunk = left.min(CHARGE_MAX);
            left -= chunk;
            let passed = {
                let world = &mut *self.world();
                world.tell();
                world.sched.spend(mode, chunk)
            };
            if !passed {
                self.suspend().await;
            }
        }
    }

    /// Sleeps; true if nobody woke the task before the time was over.
    pub(crate) async fn sleep(&self, ns: Nanos) -> bool {
        self.world().sched.block_for("the end of its sleep", ns);
        self.suspend().await;
        self.world().sched.timed_out()
    }

    /// Sleeps until a time, if that has not come yet.
    pub(crate) async fn sleep_until(&self, time: Nanos) {
        let now = self.world().sched.now();
        if time > now {
            self.sleep(time - now).await;
        }
    }

    /// `blk_start_plug`
    pub(crate) fn start_plug(&self) {
        let world = &mut *self.world();
        world.block.start_plug(&world.sched);
    }

    /// `blk_finish_plug`
    pub(crate) fn finish_plug(&self) {
        let world = &mut *self.world();
        world.block.finish_plug(&mut world.sched);
        world.map_requests();
    }

    /// `down_read(&mm->mmap_sem)`
    #[inline]
    pub(crate) async fn down_read(&self, space: usize) {
        loop {
            {
                let world = &mut *self.world();
                if world.spaces[space].try_read() {
                    return;
                }
                world.spaces[space].wait(&mut world.sched, false);
            }
            self.suspend().await;
        }
    }

    /// `up_read(&mm->mmap_sem)`
    #[inline]
    pub(crate) fn up_read(&self, space: usize) {
        let world = &mut *self.world();
        world.spaces[space].release_read(&mut world.sched);
    }

    /// `down_write(&mm->mmap_sem)`
    pub(crate) async fn down_write(&self, space: usize) {
        let free = self.world().spaces[space].try_write();
        let mut free = free;
        while !free {
            {
                let world = &mut *self.world();
                world.spaces[space].wait(&mut world.sched, true);
            }
            self.suspend().await;
            let lock = &mut self.world().spaces[space];
            lock.retry_write();
            free = lock.try_write();
        }
    }

    /// `up_write(&mm->mmap_sem)`
    pub(crate) fn up_write(&self, space: usize) {
        let world = &mut *self.world();
        world.spaces[space].release_write(&mut world.sched);
    }
}
