//! Which task is next on a CPU: the fair class of `kernel/sched/fair.c`, CFS (2.6.23 to 6.5) and EEVDF (6.6 on).
//!
//! 1. A task's virtual time (`vruntime`) is the CPU time that it has had, divided by its weight, moved when it is woken.
//! 2. CFS: the task that is furthest behind comes next. A sleeper is not further behind than half a latency. It
//!    takes the CPU from one that is a granularity ahead of it; else a tick does, when the slice is over.
//! 3. EEVDF: of the tasks that have had no more than the average, the one whose deadline comes first. The deadline
//!    is a slice away when a task is placed, and when the last one has passed. A tick ends who is past it.
//!
//! Simplified: one queue for all CPUs in place of one each with balancing between them, no groups.
//! A CPU's average is that of the queue and of who runs there. Of CFS's buddies there is the woken one alone.

mod weight;

use super::{MSEC, Nanos, TaskId};
use crate::kernel::{BaseSlice, FairClass, Preemption, Sched as Rules};

pub(super) use weight::Weight;

/// Virtual time in nanoseconds.
type Virtual = i64;
/// Place in the queue: virtual time (CFS) or deadline (EEVDF); among equals the first to come.
type Place = (Virtual, u64);

/// Up to so many tasks share one latency, `sched_nr_latency`.
const NR_LATENCY: u64 = 8;

/// The tunables, scaled for the machine's CPUs (`update_sysctl`, `SCHED_TUNABLESCALING_LOG`).
#[derive(Debug, Clone, Copy)]
struct Tunables {
    class: FairClass,
    tick: Nanos,
    /// `sched_latency_ns`.
    latency: Nanos,
    /// `sched_min_granularity_ns`.
    min_granularity: Nanos,
    /// `sched_wakeup_granularity_ns`.
    wakeup_granularity: Virtual,
    /// `base_slice_ns`.
    slice: Virtual,
    /// [`Preemption::Lazy`]
    lazy: bool,
}

impl Tunables {
    fn new(cpus: u32, hz: u32, rules: Rules) -> Tunables {
        let factor = Nanos::from(1 + cpus.clamp(1, 8).ilog2());
        let slice = match rules.base_slice {
            BaseSlice::Long => 750_000,
            BaseSlice::Short => 700_000,
        };
        Tunables {
            class: rules.fair_class,
            tick: super::SECOND / Nanos::from(hz.max(1)),
            latency: 6 * MSEC * factor,
            min_granularity: 750_000 * factor,
            wakeup_granularity: (MSEC * factor) as Virtual,
            slice: (slice * factor) as Virtual,
            lazy: rules.preemption == Preemption::Lazy,
        }
    }

    /// How long a task of this weight runs beside others, when all `tasks` weigh `load` together (`sched_slice`).
    fn cfs_slice(&self, tasks: u64, weight: Weight, load: i128) -> Nanos {
        let period = if tasks > NR_LATENCY {
            tasks * self.min_granularity
        } else {
            self.latency
        };
        let slice = i128::from(period) * weight.0 / load.max(1);
        (slice as Nanos).max(self.min_granularity)
    }

    /// The first tick after `time`.
    fn tick_after(&self, time: Nanos) -> Nanos {
        (time / self.tick + 1) * self.tick
    }
}

/// A task as the class sees it, `struct sched_entity`.
#[derive(Debug, Clone, Copy)]
struct Entity {
    weight: Weight,
    vruntime: Virtual,
    deadline: Virtual,
    /// What it was owed when it went to sleep.
    lag: Virtual,
    /// Where it is in the queue, if it is.
    place: Option<Place>,
    /// It sleeps, but stays in the queue until it would be next (`sched_delayed`).
    delayed: bool,
    /// It was never woken.
    new: bool,
}

/// What a CPU runs.
#[derive(Debug, Clone, Copy)]
struct Running {
    task: TaskId,
    /// When it got the CPU.
    picked: Nanos,
    /// Until when its time is in its `vruntime`.
    since: Nanos,
    /// Its deadline when it got the CPU: until that is another one nobody else is picked (`RUN_TO_PARITY`).
    parity: Virtual,
    /// When it makes room, if anybody waits (`TIF_NEED_RESCHED`).
    resched_at: Nanos,
    /// When it does so on its way to user mode (`TIF_NEED_RESCHED_LAZY`).
    lazy_at: Nanos,
}

impl Running {
    /// It is to make room at a time.
    fn resched(&mut self, at: Nanos, tunables: &Tunables) {
        self.lazy_at = at;
        self.resched_at = if tunables.lazy {
            tunables.tick_after(at)
        } else {
            at
        };
    }

    /// Nobody asks it to make room any more.
    fn stay(&mut self) {
        (self.lazy_at, self.resched_at) = (Nanos::MAX, Nanos::MAX);
    }
}

/// CPUs and the queue of who waits for one.
#[derive(Debug)]
pub(super) struct Fair {
    tunables: Tunables,
    entities: Vec<Entity>,
    /// In ascending order of their places; most often it is short.
    queue: Vec<(Place, TaskId)>,
    /// Sum of the weighted virtual times in the queue (`cfs_rq->avg_vruntime`).
    queued: i128,
    /// Sum of the weights in the queue (`cfs_rq->avg_load`).
    queued_load: i128,
    arrivals: u64,
    cpus: Vec<Option<Running>>,
    /// CPUs that run a task.
    busy: u32,
    /// Virtual time that has passed for all, `min_vruntime`; what EEVDF places by when nobody runs.
    floor: Virtual,
    /// Who was woken in order to run next, `cfs_rq->next`.
    next: Option<TaskId>,
}

impl Fair {
    pub(super) fn new(cpus: u32, hz: u32, rules: Rules) -> Fair {
        Fair {
            tunables: Tunables::new(cpus, hz, rules),
            entities: Vec::new(),
            queue: Vec::new(),
            queued: 0,
            queued_load: 0,
            arrivals: 0,
            cpus: vec![None; cpus as usize],
            busy: 0,
            floor: 0,
            next: None,
        }
    }

    /// How many CPUs there are.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// A new task; it is woken next.
    pub(super) fn add(&mut self, weight: Weight) {
        self.entities.push(Entity {
            weight,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            place: None,
            delayed: false,
            new: true,
        });
    }

    /// Whether anybody is in the queue.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.queue.is_empty()
    }

    /// CPUs that run a task.
    #[inline]
    pub(super) fn busy(&self) -> u32 {
        self.busy
    }

    /// A CPU that runs nothing.
    pub(super) fn idle(&self) -> Option<usize> {
        self.cpus.iter().position(Option::is_none)
    }

    /// When who runs on a CPU makes room, if anybody waits.
    #[inline]
    pub(super) fn resched_at(&self, cpu: usize) -> Nanos {
        self.cpus[cpu].map_or(Nanos::MAX, |running| running.resched_at)
    }

    /// The first time at which who runs on a CPU may make room: never, if nobody waits.
    pub(super) fn may_resched_at(&self, cpu: usize) -> Nanos {
        let Some(running) = self.cpus[cpu].filter(|_| self.waits()) else {
            return Nanos::MAX;
        };
        if self.tunables.lazy {
            running.resched_at.min(running.lazy_at)
        } else {
            running.resched_at
        }
    }

    /// Who runs on a CPU goes back to user mode (`exit_to_user_mode_loop`): whether it makes room.
    #[inline]
    pub(super) fn enter_user_mode(&mut self, cpu: usize, now: Nanos) -> bool {
        if !self.tunables.lazy || !self.waits() {
            return false;
        }
        let Some(running) = self.cpus[cpu].as_mut().filter(|r| r.lazy_at <= now) else {
            return false;
        };
        running.resched_at = now;
        true
    }

    /// Puts a woken task into the queue (`enqueue_task_fair`), and lets it take `cpu`, which it had last, from who
    /// runs there (`check_preempt_wakeup`), unless another one is idle.
    pub(super) fn wake(&mut self, id: TaskId, cpu: usize, now: Nanos) {
        let is_over = self.charge(cpu, now) && self.waits();
        if !self.waits() {
            // What was asked for while somebody waited is no longer so.
            let running = self.cpus.iter_mut().flatten();
            running.for_each(Running::stay);
        }
        let entity = self.entities[id.index()];
        if !entity.delayed {
            self.place(id, now);
            self.enqueue(id);
        } else {
            self.entities[id.index()].delayed = false;
            if self.lag(id, now) > 0 {
                self.dequeue(id);
                self.entities[id.index()].lag = 0;
                self.place(id, now);
                self.enqueue(id);
            }
        }
        self.entities[id.index()].new = false;
        if self.idle().is_some() {
            return;
        }
        let preempts = match self.tunables.class {
            FairClass::Cfs => !entity.new && self.is_ahead(cpu, id),
            FairClass::Eevdf | FairClass::EevdfDelayed => {
                is_over || (!entity.new && self.eevdf(Some(cpu)) == Some(id))
            }
        };
        if preempts {
            self.next = Some(id);
            if let Some(running) = &mut self.cpus[cpu] {
                running.resched(now, &self.tunables);
            }
        }
        self.foresee(now);
    }

    /// Gives a CPU that is idle to the next task (`pick_next_task_fair`).
    pub(super) fn pick(&mut self, cpu: usize, now: Nanos) -> Option<TaskId> {
        let id = loop {
            let id = match self.tunables.class {
                FairClass::Cfs => self.leftmost(),
                FairClass::Eevdf | FairClass::EevdfDelayed => self.eevdf(None),
            }?;
            self.dequeue(id);
            let entity = &mut self.entities[id.index()];
            if !entity.delayed {
                break id;
            }
            // It has waited until it was owed time again, and is owed none (`DELAY_ZERO`).
            entity.delayed = false;
            entity.lag = 0;
        };
        if self.next == Some(id) {
            self.next = None;
        }
        self.busy += 1;
        self.cpus[cpu] = Some(Running {
            task: id,
            picked: now,
            since: now,
            parity: self.entities[id.index()].deadline,
            resched_at: Nanos::MAX,
            lazy_at: Nanos::MAX,
        });
        self.foresee(now);
        Some(id)
    }

    /// Who runs on a CPU goes back into the queue (`put_prev_entity`).
    pub(super) fn put(&mut self, cpu: usize, now: Nanos) {
        self.charge(cpu, now);
        if let Some(running) = self.cpus[cpu].take() {
            self.busy -= 1;
            self.enqueue(running.task);
        }
    }

    /// Who runs on a CPU goes to sleep, or ends (`dequeue_task_fair`).
    pub(super) fn sleep(&mut self, cpu: usize, now: Nanos, ends: bool) {
        self.charge(cpu, now);
        let Some(Running { task, .. }) = self.cpus[cpu] else {
            return;
        };
        let lag = self.lag(task, now);
        let delayed = !ends
            && self.tunables.class == FairClass::EevdfDelayed
            && !self.eligible(self.entities[task.index()].vruntime, Some(cpu));
        let entity = &mut self.entities[task.index()];
        entity.lag = lag;
        entity.delayed = delayed;
        self.cpus[cpu] = None;
        self.busy -= 1;
        if delayed {
            self.enqueue(task);
        }
    }

    /// Adds the time since the last look to the task on a CPU (`update_curr`). Whether its deadline has passed.
    fn charge(&mut self, cpu: usize, now: Nanos) -> bool {
        let Some(running) = &mut self.cpus[cpu] else {
            return false;
        };
        let Tunables { tick, slice, .. } = self.tunables;
        let entity = &mut self.entities[running.task.index()];
        let mut renewed = false;
        // The last tick has looked as well.
        for time in [now / tick * tick, now] {
            if time > running.since {
                let passed = (time - running.since) as Virtual;
                entity.vruntime += entity.weight.to_virtual(passed);
                running.since = time;
                if entity.vruntime >= entity.deadline {
                    entity.deadline = entity.vruntime + entity.weight.to_virtual(slice);
                    renewed = true;
                }
            }
        }
        renewed
    }

    /// Where the task on a CPU is in virtual time by now.
    fn virtual_time(&self, running: &Running, now: Nanos) -> Virtual {
        let Entity {
            vruntime, weight, ..
        } = self.entities[running.task.index()];
        vruntime + weight.to_virtual((now - running.since) as Virtual)
    }

    /// Moves the floor on (`update_min_vruntime`; `avg_vruntime`).
    fn advance(&mut self, now: Nanos) {
        match self.tunables.class {
            FairClass::Cfs => {
                let running = self.cpus.iter().flatten();
                let least = running
                    .map(|running| self.virtual_time(running, now))
                    .chain(self.queue.first().map(|&((vruntime, _), _)| vruntime))
                    .min();
                self.floor = self.floor.max(least.unwrap_or(self.floor));
            }
            FairClass::Eevdf | FairClass::EevdfDelayed => {
                let running = self.cpus.iter().flatten();
                let (load, sum) = running
                    .map(|running| (self.weight(running.task), self.virtual_time(running, now)))
                    .fold((0, 0), |(load, sum), (weight, vruntime)| {
                        (load + weight.0, sum + weight.of(vruntime))
                    });
                let (load, sum) = (load + self.queued_load, sum + self.queued);
                if load > 0 {
                    self.floor = sum.div_euclid(load) as Virtual;
                }
            }
        }
    }

    /// What a task is owed, within bounds (`entity_lag`).
    fn lag(&mut self, id: TaskId, now: Nanos) -> Virtual {
        self.advance(now);
        let limit = (2 * self.tunables.slice).max(self.tunables.tick as Virtual);
        let limit = self.weight(id).to_virtual(limit);
        (self.floor - self.entities[id.index()].vruntime).clamp(-limit, limit)
    }

    /// Where a woken task begins (`place_entity`).
    fn place(&mut self, id: TaskId, now: Nanos) {
        self.advance(now);
        let (competitors, load) = match self.idle() {
            Some(_) => (0, 0),
            None => (self.share(), self.load()),
        };
        let Tunables { latency, slice, .. } = self.tunables;
        let floor = self.floor;
        let weight = self.weight(id);
        match self.tunables.class {
            FairClass::Cfs => {
                let slice = self
                    .tunables
                    .cfs_slice(competitors + 1, weight, load + weight.0);
                let debit = weight.to_virtual(slice as Virtual);
                let entity = &mut self.entities[id.index()];
                let begin = if entity.new {
                    floor + debit
                } else {
                    floor - (latency / 2) as Virtual
                };
                entity.vruntime = entity.vruntime.max(begin);
            }
            FairClass::Eevdf | FairClass::EevdfDelayed => {
                let entity = &mut self.entities[id.index()];
                let lag = match load {
                    0 => 0,
                    load => (i128::from(entity.lag) * (load + weight.0) / load) as Virtual,
                };
                entity.vruntime = floor - lag;
                let slice = if entity.new { slice / 2 } else { slice };
                entity.deadline = entity.vruntime + weight.to_virtual(slice);
            }
        }
    }

    /// How many tasks there are for each CPU.
    fn share(&self) -> u64 {
        let running = self.cpus.iter().flatten().count();
        (running + self.queue.len()).div_ceil(self.cpus.len()) as u64
    }

    /// The weight of the tasks that there are for each CPU, in whole tasks of nice 0.
    fn load(&self) -> i128 {
        let running = self.cpus.iter().flatten();
        let running: i128 = running.map(|running| self.weight(running.task).0).sum();
        let tasks = (running + self.queued_load) as u128;
        let each = tasks.div_ceil(Weight::NICE_0.0 as u128 * self.cpus.len() as u128);
        each as i128 * Weight::NICE_0.0
    }

    fn weight(&self, id: TaskId) -> Weight {
        self.entities[id.index()].weight
    }

    /// Whether who runs on a CPU is so far ahead of a woken task that it makes room (`wakeup_preempt_entity`).
    fn is_ahead(&self, cpu: usize, woken: TaskId) -> bool {
        let woken = self.entities[woken.index()];
        let granularity = woken.weight.to_virtual(self.tunables.wakeup_granularity);
        self.cpus[cpu].is_some_and(|running| {
            let ahead = self.entities[running.task.index()].vruntime - woken.vruntime;
            ahead > granularity
        })
    }

    /// Who is furthest behind, or who was woken to run next and is hardly before it (`pick_next_entity`).
    fn leftmost(&self) -> Option<TaskId> {
        let &((least, _), first) = self.queue.first()?;
        let granularity = self.weight(first);
        let granularity = granularity.to_virtual(self.tunables.wakeup_granularity);
        let buddy = self.next.filter(|next| {
            let next = &self.entities[next.index()];
            next.place.is_some() && next.vruntime - least <= granularity
        });
        Some(buddy.unwrap_or(first))
    }

    /// Whether a task with this virtual time has had no more than the average of the queue, and of who runs on a CPU.
    fn eligible(&self, vruntime: Virtual, cpu: Option<usize>) -> bool {
        let running = cpu.and_then(|cpu| self.cpus[cpu]);
        let running = running.map(|running| &self.entities[running.task.index()]);
        let (load, sum) = running.map_or((0, 0), |running| {
            (running.weight.0, running.weight.of(running.vruntime))
        });
        i128::from(vruntime) * (self.queued_load + load) <= self.queued + sum
    }

    /// Who has the earliest deadline of those who are owed time, who runs on a CPU among them (`pick_eevdf`).
    fn eevdf(&self, cpu: Option<usize>) -> Option<TaskId> {
        let running = cpu.and_then(|cpu| self.cpus[cpu]).map(|running| {
            let entity = &self.entities[running.task.index()];
            (running, entity)
        });
        let running = running.filter(|(_, entity)| self.eligible(entity.vruntime, cpu));
        if let Some((running, entity)) = running
            && entity.deadline == running.parity
        {
            return Some(running.task);
        }
        let eligible = |id: &TaskId| self.eligible(self.entities[id.index()].vruntime, cpu);
        let best = self.queue.iter().map(|&(_, id)| id).find(eligible);
        match (best, running) {
            (Some(best), Some((running, entity))) => {
                let first = entity.deadline < self.entities[best.index()].deadline;
                Some(if first { running.task } else { best })
            }
            (best, running) => best.or(running.map(|(running, _)| running.task)),
        }
    }

    /// Foresees at which tick each CPU changes hands if nothing else happens (`check_preempt_tick`,
    /// `update_deadline`). What has been asked for already stays.
    fn foresee(&mut self, now: Nanos) {
        let Some(&((least, _), _)) = self.queue.first() else {
            return;
        };
        let tunables = self.tunables;
        let (tasks, load) = (self.share(), self.load());
        for running in self.cpus.iter_mut().flatten() {
            if running.lazy_at <= now {
                continue;
            }
            let entity = &self.entities[running.task.index()];
            let slice = tunables.cfs_slice(tasks, entity.weight, load);
            let past = |virtual_time: Virtual| {
                let left = entity.weight.to_real(virtual_time - entity.vruntime);
                running.since.saturating_add_signed(left)
            };
            let due = match tunables.class {
                FairClass::Cfs => {
                    let ahead = past(least + slice as Virtual);
                    let ahead = ahead.max(running.picked + tunables.min_granularity);
                    ahead.min(running.picked + slice)
                }
                // A tick that is there when the deadline is comes late enough.
                FairClass::Eevdf | FairClass::EevdfDelayed => {
                    past(entity.deadline).saturating_sub(1)
                }
            };
            running.resched(tunables.tick_after(due.max(now)), &tunables);
        }
    }

    fn enqueue(&mut self, id: TaskId) {
        self.arrivals += 1;
        let entity = &mut self.entities[id.index()];
        let key = match self.tunables.class {
            FairClass::Cfs => entity.vruntime,
            FairClass::Eevdf | FairClass::EevdfDelayed => entity.deadline,
        };
        let place = (key, self.arrivals);
        entity.place = Some(place);
        self.queued += entity.weight.of(entity.vruntime);
        self.queued_load += entity.weight.0;
        let at = self.queue.partition_point(|&(other, _)| other < place);
        self.queue.insert(at, (place, id));
    }

    fn dequeue(&mut self, id: TaskId) {
        let entity = &mut self.entities[id.index()];
        if let Some(place) = entity.place.take() {
            self.queued -= entity.weight.of(entity.vruntime);
            self.queued_load -= entity.weight.0;
            if let Ok(at) = self.queue.binary_search_by_key(&place, |&(place, _)| place) {
                self.queue.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
