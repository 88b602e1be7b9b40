//! Starts the tasks of a workload, hears their requests, sees them end.
//!
//! 1. The coordinator is a process with one thread, so that it can fork. It starts the tasks that begin
//!    with the run.
//! 2. It then waits for requests (spawn, kill, resume), which come through a pipe, for processes that end
//!    (SIGCHLD through signalfd(2), which every kernel has), and for the end of the run.
//! 3. A process that fails, or is killed by anybody but the workload, ends the run: the others are killed.
//! 4. When all have ended and, if the workload says so, kswapd sleeps, the run is over.
//!
//! Instances are processes of their own, or threads of one process; the first thread's CPU time includes
//! what the process uses while it ends.

use super::cgroups;
use super::hugetlb;
use super::interpreter::{Context, Program, run_body};
use super::report::{self, Line, now_ns};
use super::sys::{self, Ended, Fork};
use super::time;
use lowmark_spec::random::Stream;
use lowmark_spec::workload::{End, Sharing, Start};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// What a process asks the coordinator for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Spawn { task: usize, count: u64 },
    Kill { task: usize },
    Resume { task: usize },
}

/// Bytes of a request: kind, process, task, count.
const REQUEST_BYTES: usize = 32;

impl Request {
    pub(super) fn to_bytes(self, process: usize) -> [u8; REQUEST_BYTES] {
        let (kind, task, count) = match self {
            Request::Spawn { task, count } => (0u64, task, count),
            Request::Kill { task } => (1, task, 0),
            Request::Resume { task } => (2, task, 0),
        };
        let mut bytes = [0; REQUEST_BYTES];
        for (place, word) in bytes
            .chunks_mut(8)
            .zip([kind, process as u64, task as u64, count])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; REQUEST_BYTES]) -> Option<(Request, usize)> {
        let word = |at: usize| {
            let word = bytes.get(8 * at..8 * at + 8)?;
            Some(u64::from_le_bytes(word.try_into().ok()?))
        };
        let (task, count) = (usize::try_from(word(2)?).ok()?, word(3)?);
        let request = match word(0)? {
            0 => Request::Spawn { task, count },
            1 => Request::Kill { task },
            2 => Request::Resume { task },
            _ => return None,
        };
        Some((request, usize::try_from(word(1)?).ok()?))
    }
}

/// A process of the workload.
struct Child {
    pid: Pid,
    task: usize,
    instances: u32,
    number: usize,
    start_ns: u64,
    /// The workload or the end of the run wanted its end.
    killed: bool,
}

/// The run, as the coordinator sees it.
pub(super) struct Coordinator {
    program: Arc<Program>,
    requests: OwnedFd,
    ends: sys::ChildEnds,
    children: BTreeMap<i32, Child>,
    /// Processes that were started.
    processes: usize,
    failed: bool,
}

impl Coordinator {
    pub(super) fn new(program: Arc<Program>, requests: OwnedFd) -> io::Result<Coordinator> {
        Ok(Coordinator {
            program,
            requests,
            ends: sys::ChildEnds::new()?,
            children: BTreeMap::new(),
            processes: 0,
            failed: false,
        })
    }

    /// Carries out the workload; whether nothing went wrong.
    pub(super) fn run(mut self) -> io::Result<bool> {
        let program = self.program.clone();
        let start = now_ns();
        report::write(&Line::Start { time_ns: start })?;
        for (task, spec) in program.workload.tasks.iter().enumerate() {
            if spec.start == Start::AtBegin {
                self.start_instances(task, spec.instances.len() as u64)?;
            }
        }
        let mut deadline = match program.workload.end {
            End::After(time) => Some(start.saturating_add(time)),
            End::AllTasks | End::KswapdIdle => None,
        };
        while !self.children.is_empty() {
            if deadline.is_some_and(|deadline| now_ns() >= deadline) {
                self.kill_all();
                deadline = None;
            }
            self.wait(deadline)?;
        }
        if program.workload.end == End::KswapdIdle && !self.failed {
            const POLL_NS: u64 = 5_000_000;
            while !program.kswapd.idle() {
                time::sleep(POLL_NS);
            }
        }
        report::write(&Line::End { time_ns: now_ns() })?;
        Ok(!self.failed)
    }

    /// Waits for something to happen and sees to it.
    fn wait(&mut self, deadline: Option<u64>) -> io::Result<()> {
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_sub(now_ns());
            Timespec {
                tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (left % 1_000_000_000) as _,
            }
        });
        let mut waiting = [
            PollFd::new(&self.requests, PollFlags::IN),
            PollFd::new(&self.ends, PollFlags::IN),
        ];
        match poll(&mut waiting, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            result => result?,
        };
        let [requested, ended] = waiting.map(|fd| !fd.revents().is_empty());
        if ended {
            self.reap()?;
        }
        if requested {
            self.hear()?;
        }
        Ok(())
    }

    /// Sees to every process that has ended: one signal may stand for several.
    fn reap(&mut self) -> io::Result<()> {
        self.ends.take()?;
        let pids: Vec<i32> = self.children.keys().copied().collect();
        for pid in pids {
            if let Some(ended) = sys::reap(pid)? {
                self.child_ended(pid, &ended)?;
            }
        }
        Ok(())
    }

    /// Hears one request and carries it out.
    fn hear(&mut self) -> io::Result<()> {
        let mut bytes = [0; REQUEST_BYTES];
        // Requests are shorter than PIPE_BUF, so they come whole.
        rustix::io::read(&self.requests, &mut bytes)?;
        let Some((request, process)) = Request::from_bytes(&bytes) else {
            return Err(io::Error::other("a request that no process writes"));
        };
        match request {
            Request::Spawn { task, count } => self.start_instances(task, count)?,
            Request::Kill { task } => self.kill(|child| child.task == task),
            Request::Resume { task } => {
                for child in self.children.values().filter(|child| child.task == task) {
                    let _ = kill_process(child.pid, Signal::CONT);
                }
            }
        }
        if process < self.processes {
            self.program.shared.process(process).answer();
        }
        Ok(())
    }

    fn kill(&mut self, which: impl Fn(&Child) -> bool) {
        for child in self.children.values_mut().filter(|child| which(child)) {
            child.killed = true;
            // It may have ended by itself just now.
            let _ = kill_process(child.pid, Signal::KILL);
        }
    }

    fn kill_all(&mut self) {
        self.kill(|_| true);
    }

    /// Starts the next `count` instances of a task.
    fn start_instances(&mut self, task: usize, count: u64) -> io::Result<()> {
        let program = self.program.clone();
        let spec = &program.workload.tasks[task];
        let started = program.shared.started(task);
        let first = started.load(Ordering::Acquire) as usize;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let last = spec.instances.len().min(first.saturating_add(count));
        let group = match spec.sharing {
            Sharing::Threads => (last - first).max(1),
            Sharing::Processes => 1,
        };
        for first in (first..last).step_by(group) {
            let instances = (last - first).min(group) as u32;
            started.fetch_add(instances, Ordering::AcqRel);
            self.start_process(task, first, instances)?;
        }
        Ok(())
    }

    fn start_process(&mut self, task: usize, first: usize, instances: u32) -> io::Result<()> {
        let number = self.processes;
        self.processes += 1;
        let start_ns = now_ns();
        let pid = match sys::fork()? {
            Fork::Child => {
                let code = run_process(&self.program, number, task, first, instances);
                std::process::exit(code)
            }
            Fork::Parent(pid) => pid,
        };
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no process"))?;
        let child = Child {
            pid,
            task,
            instances,
            number,
            start_ns,
            killed: false,
        };
        self.children.insert(pid.as_raw_nonzero().get(), child);
        Ok(())
    }

    fn child_ended(&mut self, pid: i32, ended: &Ended) -> io::Result<()> {
        let Some(child) = self.children.remove(&pid) else {
            return Ok(());
        };
        let process = self.program.shared.process(child.number);
        process.flush()?;
        let reported = process.reported();
        report::write(&Line::Task {
            task: child.task,
            pid: pid.unsigned_abs(),
            user_ns: ended.usage.user_ns.saturating_sub(reported.user_ns),
            system_ns: ended.usage.system_ns.saturating_sub(reported.system_ns),
            minor_faults: ended
                .usage
                .minor_faults
                .saturating_sub(reported.minor_faults),
            major_faults: ended
                .usage
                .major_faults
                .saturating_sub(reported.major_faults),
            start_ns: child.start_ns,
            end_ns: now_ns(),
        })?;
        let rest = child.instances.saturating_sub(process.threads_ended());
        self.program.shared.note_ended(child.task, rest);
        if child.killed {
            return Ok(());
        }
        if let Some(signal) = ended.signal {
            report::write(&Line::Died {
                task: child.task,
                pid: pid.unsigned_abs(),
                signal,
            })?;
        }
        if ended.code != Some(0) {
            self.failed = true;
            self.kill_all();
        }
        Ok(())
    }
}

/// A process of the workload, from its start to its exit code.
fn run_process(
    program: &Arc<Program>,
    number: usize,
    task: usize,
    first: usize,
    instances: u32,
) -> i32 {
    let spec = &program.workload.tasks[task];
    let name = CString::new(spec.name.as_bytes()).unwrap_or_default();
    let _ = rustix::thread::set_name(&name);
    if let Some(group) = spec.cgroup
        && let Err(error) = cgroups::join(program, group)
    {
        eprintln!("{error}");
        return 1;
    }
    if program.pin {
        let _ = sys::pin_memory();
        // The runner is not to be chosen when memory runs out, but what it runs is.
        let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    }
    let link = Arc::new(Mutex::new(()));
    let context = |instance: usize| Context {
        program: program.clone(),
        process: program.shared.process(number),
        link: link.clone(),
        stream: Stream::new(program.seed, &spec.name, instance as u64),
        task,
        instance,
        thread: 0,
        maps: vec![None; spec.maps.len()],
        threads: 0,
        open: BTreeMap::new(),
        picks: BTreeMap::new(),
        buffer: None,
        answer: None,
        held: BTreeMap::new(),
    };
    let ok = std::thread::scope(|scope| {
        let mut others = Vec::new();
        for instance in first + 1..first + instances as usize {
            let mut context = context(instance);
            let name = &name;
            others.push(scope.spawn(move || {
                let _ = rustix::thread::set_name(name);
                run_thread(&mut context, instance)
            }));
        }
        let ok = run_instance(&mut context(first), first);
        others
            .into_iter()
            .fold(ok, |ok, other| other.join().unwrap_or(false) && ok)
    });
    let flushed = program.shared.process(number).flush().is_ok();
    i32::from(!(ok && flushed))
}

/// Carries out an instance's statements; what it still holds then goes.
fn run_instance(context: &mut Context, instance: usize) -> bool {
    let program = context.program.clone();
    let done = run_body(
        context,
        &program.workload.tasks[context.task].instances[instance],
    );
    let freed = hugetlb::free_all(context);
    done.is_ok() && freed.is_ok()
}

/// An instance that is not the first thread of its process.
fn run_thread(context: &mut Context, instance: usize) -> bool {
    let start_ns = now_ns();
    let program = context.program.clone();
    let ok = run_instance(context, instance);
    context.maps.clear();
    let usage = sys::thread_usage();
    let reported = report::write(&Line::Task {
        task: context.task,
        pid: rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs(),
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        start_ns,
        end_ns: now_ns(),
    });
    context.process.thread_ended(&usage);
    program.shared.note_ended(context.task, 1);
    if !ok {
        // The process would wait for its other threads, which may wait for this one.
        std::process::exit(1);
    }
    reported.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_there_and_back() {
        let requests = [
            Request::Spawn { task: 3, count: 9 },
            Request::Kill { task: 1 },
            Request::Resume { task: 0 },
        ];
        for request in requests {
            assert_eq!(
                Request::from_bytes(&request.to_bytes(7)),
                Some((request, 7))
            );
        }
        assert_eq!(Request::from_bytes(&[9; REQUEST_BYTES]), None);
    }
}
