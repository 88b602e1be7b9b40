//! CPUs, run queue and timers.
//!
//! 1. A task is *running* (it has a CPU), *runnable* (it waits for one), *blocked* or *ended*.
//! 2. A woken task takes an idle CPU; if there is none, [`Fair`] says whose it takes, and who comes next.
//! 3. A task makes room where it would look whether it has to: when it has spent what it is spending.
//! 4. Timers are kept in one heap ordered by (time, sequence).

use super::fair::{Fair, Weight};
use super::{Nanos, TIME_MAX};
use crate::ids::NodeId;
use crate::kernel::Sched as Rules;
use crate::world::Interrupt;
use lowmark_spec::machine::CPUS_MAX;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;

/// A task body.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Index of a task or kernel thread; also its pid minus one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(pub(crate) u32);

impl TaskId {
    /// Its place among all tasks.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a wake-up.
    Blocked,
    /// Gone.
    Ended,
}

/// Whose time is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The workload's own instructions.
    User,
    /// The kernel's.
    System,
}

/// What the scheduler knows of a task.
#[derive(Debug)]
pub(crate) struct Task {
    /// `comm`.
    pub(crate) name: String,
    /// Kernel threads do not keep a run alive.
    pub(crate) kthread: bool,
    /// State.
    pub(crate) state: TaskState,
    /// CPU it runs on, or ran on last.
    pub(crate) cpu: u32,
    /// Node whose memory its allocations prefer (`numa_mem_id`, or the node that its policy names).
    pub(crate) node: NodeId,
    /// Time spent in user mode.
    pub(crate) user: Nanos,
    /// Time spent in the kernel.
    pub(crate) system: Nanos,
    /// When it started.
    pub(crate) start: Nanos,
    /// When it ended.
    pub(crate) end: Option<Nanos>,
    /// SIGKILL is pending.
    pub(crate) killed: bool,
    /// Its parent has waited for its end, and has its times.
    pub(crate) reaped: bool,
    /// What it waits for, for the verdict on a deadlock.
    pub(crate) waiting_for: &'static str,
    /// Time that it has spent in the kernel and not yet accounted for.
    owed: Nanos,
    /// When it goes on, if it is spending time.
    goes_on: Nanos,
    /// Number of the current sleep: a timer of an earlier one is stale.
    sleep: u64,
    timed_out: bool,
    /// Whose memory it sees; a kernel thread nobody's.
    mm: Option<u32>,
    /// It resolves a fault in a region whose references count (`in_lru_fault`).
    in_lru_fault: bool,
    /// It is in a loop that uses no memory.
    burning: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A running task has spent its time.
    Spent(TaskId),
    /// A sleep is over, if it is still this one.
    Timeout(TaskId, u64),
    /// Something outside the CPUs happens.
    Interrupt(Interrupt),
}

/// A timer in the heap: earlier ones are greater, so that they come first.
#[derive(Debug, Clone, Copy)]
struct Armed {
    time: Nanos,
    /// Among timers of the same time the one that was armed first comes first.
    sequence: u64,
    timer: Timer,
    /// It comes again and again, and keeps no run going.
    background: bool,
}

impl Armed {
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.sequence)
    }
}

impl Ord for Armed {
    #[inline]
    fn cmp(&self, other: &Armed) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Armed {
    #[inline]
    fn partial_cmp(&self, other: &Armed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Armed {
    fn eq(&self, other: &Armed) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Armed {}

/// A task never runs further ahead than this without giving the executor a look.
const RUN_AHEAD: Nanos = 100 * super::MSEC;

/// CPUs, tasks and timers.
#[derive(Debug)]
pub(crate) struct Sched {
    now: Nanos,
    horizon: Nanos,
    sequence: u64,
    timers: BinaryHeap<Armed>,
    /// Of these, the ones in the background.
    background: usize,
    tasks: Vec<Task>,
    fair: Fair,
    ready: VecDeque<TaskId>,
    touching: Touching,
    current: TaskId,
    live: u32,
    nodes: usize,
    /// CPUs that memory serves at full speed.
    memory_streams: u32,
    /// Tasks in a loop that uses no memory.
    burning: u32,
    switch: SwitchCosts,
    last_on_cpu: Vec<Option<TaskId>>,
    /// Whose memory each CPU sees (`cpu_tlbstate.loaded_mm`): kernel threads leave it as it is.
    mm_on_cpu: Vec<Option<u32>>,
}

mod children;
mod memory;
mod nodes;
mod switch;
mod touching;

pub(crate) use switch::SwitchCosts;
use touching::Touching;

impl Sched {
    /// `cpus` CPUs with `hz` ticks a second, on which another task costs `switch`.
    pub(crate) fn new(cpus: u32, hz: u32, switch: SwitchCosts, rules: Rules) -> Sched {
        Sched {
            now: 0,
            horizon: 0,
            sequence: 0,
            timers: BinaryHeap::new(),
            background: 0,
            tasks: Vec::new(),
            fair: Fair::new(cpus, hz, rules),
            ready: VecDeque::new(),
            touching: Touching::new(),
            current: TaskId(0),
            live: 0,
            nodes: 1,
            memory_streams: CPUS_MAX,
            burning: 0,
            switch,
            last_on_cpu: vec![None; cpus as usize],
            mm_on_cpu: vec![None; cpus as usize],
        }
    }

    /// The time.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// How long the current task may spend without being interrupted.
    #[inline]
    pub(crate) fn undisturbed(&self) -> Nanos {
        self.horizon - self.now
    }

    /// The task that runs.
    #[inline]
    pub(crate) fn current(&self) -> TaskId {
        self.current
    }

    /// CPUs.
    pub(crate) fn cpus(&self) -> u64 {
        self.fair.cpus() as u64
    }

    /// CPU of the task that runs.
    pub(crate) fn current_cpu(&self) -> u32 {
        self.tasks.get(self.current.index()).map_or(0, |t| t.cpu)
    }

    /// A task's record.
    pub(crate) fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// All tasks, in order of their ids.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Tasks that are not kernel threads and have not ended.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// Registers a task and makes it runnable; its body is the executor's.
    pub(crate) fn add(&mut self, name: String, kthread: bool) -> TaskId {
        self.add_of_weight(name, kthread, Weight::NICE_0)
    }

    /// The same for a kernel thread of high priority.
    pub(crate) fn add_worker(&mut self, name: String) -> TaskId {
        self.add_of_weight(name, true, Weight::HIGHPRI)
    }

    fn add_of_weight(&mut self, name: String, kthread: bool, weight: Weight) -> TaskId {
        let id = TaskId(self.tasks.len() as u32);
        let node = if kthread {
            NodeId::FIRST
        } else {
            self.idlest_node()
        };
        self.tasks.push(Task {
            name,
            kthread,
            state: TaskState::Blocked,
            cpu: 0,
            node,
            user: 0,
            system: 0,
            start: self.now,
            end: None,
            killed: false,
            reaped: false,
            waiting_for: "its first run",
            owed: 0,
            goes_on: 0,
            sleep: 0,
            timed_out: false,
            mm: None,
            in_lru_fault: false,
            burning: false,
        });
        self.live += u32::from(!kthread);
        self.fair.add(weight);
        self.wake(id);
        id
    }

    /// The current task's body returned.
    pub(crate) fn end_current(&mut self) {
        self.set_burning(false);
        let id = self.current;
        let now = self.now;
        let task = &mut self.tasks[id.index()];
        task.state = TaskState::Ended;
        task.end = Some(now);
        self.live -= u32::from(!task.kthread);
        self.release_cpu(id, true);
    }

    /// Accounts `ns` to the current task. True: the time has passed. False: the caller must suspend;
    /// it resumes when the time has passed.
    #[inline]
    pub(crate) fn spend(&mut self, mode: Mode, ns: Nanos) -> bool {
        let task = &mut self.tasks[self.current.index()];
        match mode {
            Mode::User => {
                task.user += ns;
                if self.fair.enter_user_mode(task.cpu as usize, self.now) {
                    self.horizon = self.now;
                }
            }
            Mode::System => task.system += ns,
        }
        let owed = std::mem::take(&mut task.owed);
        task.system += owed;
        let then = self.now + ns + owed;
        if then < self.horizon {
            self.now = then;
            return true;
        }
        self.run_into(then);
        false
    }

    /// The current task has been busy in the kernel where it cannot suspend: the time passes with the next that it
    /// spends.
    pub(crate) fn owe(&mut self, ns: Nanos) {
        self.tasks[self.current.index()].owed += ns;
    }

    /// So much of that is charged elsewhere.
    #[inline]
    pub(crate) fn no_longer_owes(&mut self, ns: Nanos) {
        self.tasks[self.current.index()].owed -= ns;
    }

    /// When a task has done what it owes, if it goes on now.
    pub(crate) fn free_from(&self, task: TaskId) -> Nanos {
        self.now + self.tasks[task.index()].owed
    }

    /// Something else happens first: the current task goes on `then`.
    #[cold]
    fn run_into(&mut self, then: Nanos) {
        self.tasks[self.current.index()].goes_on = then;
        self.push(then, Timer::Spent(self.current));
    }

    /// The current task gives up its CPU until [`wake`](Self::wake); it must suspend next.
    pub(crate) fn block(&mut self, waiting_for: &'static str) {
        let id = self.current;
        let task = &mut self.tasks[id.index()];
        task.state = TaskState::Blocked;
        task.waiting_for = waiting_for;
        task.sleep += 1;
        task.timed_out = false;
        self.release_cpu(id, false);
    }

    /// As [`block`](Self::block), but no longer than `timeout`.
    pub(crate) fn block_for(&mut self, waiting_for: &'static str, timeout: Nanos) {
        self.block(waiting_for);
        let id = self.current;
        let sleep = self.tasks[id.index()].sleep;
        self.push(self.after(timeout), Timer::Timeout(id, sleep));
    }

    /// Whether the current task's last block ended by its timeout.
    pub(crate) fn timed_out(&self) -> bool {
        self.tasks[self.current.index()].timed_out
    }

    /// Makes a blocked task runnable; nothing happens to one that is not blocked.
    pub(crate) fn wake(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        if task.state != TaskState::Blocked {
            return;
        }
        task.state = TaskState::Runnable;
        let cpu = task.cpu as usize;
        self.fair.wake(id, cpu, self.now);
        self.dispatch();
    }

    /// Marks a task as killed and wakes it.
    pub(crate) fn kill(&mut self, id: TaskId) {
        self.tasks[id.index()].killed = true;
        self.wake(id);
    }

    /// Whether the current task resolves a fault in a region whose references count (`lru_gen_in_fault`).
    pub(crate) fn in_lru_fault(&self) -> bool {
        self.tasks[self.current.index()].in_lru_fault
    }

    /// `lru_gen_enter_fault`, `lru_gen_exit_fault`
    pub(crate) fn set_in_lru_fault(&mut self, on: bool) {
        self.tasks[self.current.index()].in_lru_fault = on;
    }

    /// Whether SIGKILL is pending for the current task.
    pub(crate) fn current_killed(&self) -> bool {
        self.tasks[self.current.index()].killed
    }

    /// As [`block_for`](Self::block_for), but the timeout alone keeps no run going.
    pub(crate) fn block_in_background(&mut self, waiting_for: &'static str, timeout: Nanos) {
        self.block(waiting_for);
        let id = self.current;
        let sleep = self.tasks[id.index()].sleep;
        self.arm(self.after(timeout), Timer::Timeout(id, sleep), true);
    }

    /// Asks for an interrupt `after` from now.
    pub(crate) fn interrupt_after(&mut self, after: Nanos, interrupt: Interrupt) {
        self.push(self.after(after), Timer::Interrupt(interrupt));
    }

    /// The same for what comes again and again, and keeps no run going.
    pub(crate) fn interrupt_in_background(&mut self, after: Nanos, interrupt: Interrupt) {
        self.arm(self.after(after), Timer::Interrupt(interrupt), true);
    }

    /// The time so long from now; what is beyond the end of time stays there.
    fn after(&self, time: Nanos) -> Nanos {
        self.now.saturating_add(time)
    }

    /// The next task to poll, which becomes current.
    pub(crate) fn next_ready(&mut self) -> Option<TaskId> {
        let id = self.ready.pop_front()?;
        self.current = id;
        self.set_horizon();
        Some(id)
    }

    /// Advances to the next timer. Interrupts are returned, the rest is done here. `None`: nothing will
    /// ever happen again, but in the background, or after the end of time.
    pub(super) fn next_timer(&mut self) -> Option<Option<Interrupt>> {
        if self.timers.len() == self.background {
            return None;
        }
        if self.timers.peek().is_none_or(|next| next.time > TIME_MAX) {
            return None;
        }
        let armed = self.timers.pop()?;
        self.background -= usize::from(armed.background);
        let Armed { time, timer, .. } = armed;
        debug_assert!(time >= self.now, "time runs backwards");
        self.now = time;
        if !matches!(timer, Timer::Spent(_)) {
            self.touching.disturb();
        }
        match timer {
            Timer::Spent(id) => self.spent(id),
            Timer::Timeout(id, sleep) => {
                let task = &mut self.tasks[id.index()];
                if task.sleep == sleep && task.state == TaskState::Blocked {
                    task.timed_out = true;
                    self.wake(id);
                }
            }
            Timer::Interrupt(interrupt) => return Some(Some(interrupt)),
        }
        Some(None)
    }

    /// Once there are no more timers: the task that would go on first, if there were time after the end of time. One
    /// of the workload is named rather than a kernel thread.
    pub(crate) fn beyond_time(&self) -> Option<TaskId> {
        let waiting = self.timers.iter().filter_map(|armed| {
            let task = match armed.timer {
                Timer::Spent(id) => Some(id),
                Timer::Timeout(id, sleep) => {
                    let task = self.task(id);
                    let still = task.sleep == sleep && task.state == TaskState::Blocked;
                    (still && !armed.background).then_some(id)
                }
                // Whoever waits for it is among those that are left.
                Timer::Interrupt(_) if armed.background => None,
                Timer::Interrupt(_) => self.first_alive(),
            };
            Some((armed, task?))
        });
        let first = waiting.min_by_key(|(armed, task)| (self.task(*task).kthread, armed.key()));
        first.map(|(_, task)| task)
    }

    /// The first task of the workload that has not ended.
    fn first_alive(&self) -> Option<TaskId> {
        let alive = |task: &Task| !task.kthread && task.end.is_none();
        let at = self.tasks.iter().position(alive)?;
        Some(TaskId(at as u32))
    }

    fn push(&mut self, time: Nanos, timer: Timer) {
        self.arm(time, timer, false);
    }

    fn arm(&mut self, time: Nanos, timer: Timer, background: bool) {
        self.background += usize::from(background);
        self.sequence += 1;
        self.timers.push(Armed {
            time,
            sequence: self.sequence,
            timer,
            background,
        });
        self.horizon = self.horizon.min(time);
    }

    fn set_horizon(&mut self) {
        if !self.ready.is_empty() {
            self.horizon = self.now;
            return;
        }
        let timer = self.timers.peek().map_or(Nanos::MAX, |armed| armed.time);
        let mut horizon = timer.min(self.now + RUN_AHEAD);
        if self.fair.waits() {
            let resched_at = self.fair.resched_at(self.current_cpu() as usize);
            horizon = horizon.min(resched_at.max(self.now));
        }
        self.horizon = horizon;
    }

    /// A running task's time has passed: it goes on, or makes room.
    fn spent(&mut self, id: TaskId) {
        let cpu = self.tasks[id.index()].cpu as usize;
        if self.fair.waits() && self.now >= self.fair.resched_at(cpu) {
            self.touching.disturb();
            self.tasks[id.index()].state = TaskState::Runnable;
            self.fair.put(cpu, self.now);
            self.dispatch();
        } else {
            self.ready.push_back(id);
        }
    }

    fn release_cpu(&mut self, id: TaskId, ends: bool) {
        let cpu = self.tasks[id.index()].cpu as usize;
        self.fair.sleep(cpu, self.now, ends);
        self.dispatch();
    }

    /// Gives idle CPUs to runnable tasks.
    fn dispatch(&mut self) {
        while self.fair.waits() {
            let Some(cpu) = self.fair.idle() else {
                // The current task may have to make room sooner than it thought.
                let resched_at = self.fair.resched_at(self.current_cpu() as usize);
                self.horizon = self.horizon.min(resched_at.max(self.now));
                return;
            };
            let Some(id) = self.fair.pick(cpu, self.now) else {
                return;
            };
            let switch = self.switch_to(cpu, id);
            let task = &mut self.tasks[id.index()];
            task.state = TaskState::Running;
            task.cpu = cpu as u32;
            task.system += switch;
            if switch == 0 {
                self.ready.push_back(id);
                self.horizon = self.now;
            } else {
                self.push(self.now + switch, Timer::Spent(id));
            }
        }
    }
}
