//! The kernel that lowmark is on: a workload in a memory cgroup of its own.
//!
//! 1. What the workload asks of this system is found out (`plan.rs`), and what cannot be is refused before anything starts. What
//!    changes the whole system, settings and swap, is changed only if that is allowed.
//! 2. A journal says how everything that is about to be changed is undone, and a keeper waits to do so (`undo/`).
//! 3. Settings are made, the cgroup with those of the workload in it (`cgroup.rs`), the directory for files, swap.
//! 4. The runner makes the workload's files, which then leave the page cache; it is moved into the cgroup, and recording begins
//!    (`record/`).
//! 5. The runner carries out the workload. Its lines and what was recorded become a recording.
//! 6. The keeper kills what is still in the cgroup, and undoes everything.

mod cgroup;
mod disk;
mod error;
mod files;
mod modelled;
mod plan;
mod settings;

pub use disk::Disk;
pub use error::HostError;
pub use modelled::{Around, inside, modelled};

use crate::cgroup_counters::counters_and_state;
use crate::protocol::{Job, Mount};
use crate::ran::Ran;
use crate::record::{Capture, Level, Options, Order, Roots, Session};
use crate::runner::{Line, READY, RUN_ARGUMENT, sys};
use crate::swap_area;
use crate::undo::{Changes, Keeper, Lock, NoLock, Places, Real};
use cgroup::Hierarchy;
use lowmark_record::{Outcome, Recording, RunInfo, TaskTimes};
use lowmark_spec::Scenario;
use lowmark_spec::machine::FsKind;
use plan::Plan;
use rustix::thread::CpuSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How to run a workload on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// Settings and swap of the whole system may be changed while the run lasts.
    pub machine_wide: bool,
    /// Trace events are recorded.
    pub events: bool,
    /// Time after which the workload is stopped.
    pub timeout: Duration,
    /// Directory for files and swap; none for the system's for temporary files, or one on a disk.
    pub scratch: Option<PathBuf>,
    /// The runner, if not the one that is found.
    pub runner: Option<PathBuf>,
    /// Where journals are.
    pub places: Places,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            machine_wide: false,
            events: false,
            timeout: Duration::from_secs(600),
            scratch: None,
            runner: None,
            places: Places::of_system(),
        }
    }
}

/// What a run on this system showed.
#[derive(Debug)]
pub struct HostOutcome {
    /// The recording.
    pub recording: Recording,
    /// What could not be undone; its journal is still there.
    pub left: Vec<String>,
}

/// What `uname -r` says of this system.
pub fn release() -> String {
    let uname = rustix::system::uname();
    uname.release().to_string_lossy().into_owned()
}

/// Where a workload's cgroup would be made: the version of the hierarchy, 1 or 2, and the directory.
///
/// # Errors
///
/// Why none can be made, as a sentence.
pub fn cgroups() -> Result<(u8, PathBuf), String> {
    let hierarchy = Hierarchy::find()?;
    Ok((hierarchy.version.number(), hierarchy.parent))
}

/// Says what stands against a scenario, and changes nothing.
///
/// # Errors
///
/// [`HostError::Unsupported`] or [`HostError::MachineWide`] with everything that does.
pub fn check(scenario: &Scenario, options: &HostOptions) -> Result<(), HostError> {
    Plan::of(scenario, options).map(drop)
}

/// Runs a scenario on this system.
///
/// # Errors
///
/// A [`HostError`] says what this system lacks for the workload, or how the workload failed. That the OOM killer ended a task is an
/// outcome of the recording and no error.
pub fn run(scenario: &Scenario, options: &HostOptions) -> Result<HostOutcome, HostError> {
    // What another run has changed must not be taken for how this system is.
    let lock = Lock::take(&options.places).map_err(|why| match why {
        NoLock::Held(pid) => HostError::Busy {
            process: pid.map_or("another process".to_owned(), |pid| format!("process {pid}")),
        },
        NoLock::Failed(source) => HostError::Io {
            what: "only one run at a time".into(),
            source,
        },
    })?;
    let plan = Plan::of(scenario, options)?;
    let runner = options
        .runner
        .clone()
        .map_or_else(crate::guest::find_runner, Ok);
    let runner = runner.map_err(|error| HostError::Io {
        what: "the runner".into(),
        source: std::io::Error::other(error.to_string()),
    })?;
    let undo = plan.undo(options.events);
    let keeper = Keeper::start(&runner, &options.places, &lock, undo)
        .map_err(HostError::io("cannot keep a journal"))?;
    // If this panics, dropping the keeper undoes everything, too.
    let carried_out = carry_out(scenario, options, &plan, &runner);
    let left = keeper.finish();
    match carried_out {
        Ok(recording) => Ok(HostOutcome { recording, left }),
        Err(error) if left.is_empty() => Err(error),
        Err(error) => Err(HostError::NotUndone {
            error: Box::new(error),
            left,
        }),
    }
}

/// Everything between the journal and its undoing.
fn carry_out(
    scenario: &Scenario,
    options: &HostOptions,
    plan: &Plan,
    runner: &Path,
) -> Result<Recording, HostError> {
    let mut changes = Real;
    set_up(scenario, plan, &mut changes)?;
    let job = write_job(scenario, plan)?;
    let mut workload = Running::start(runner, &job, plan)?;
    let deadline = Deadline(Instant::now() + options.timeout, options.timeout);
    workload.until_ready(&deadline)?;
    files::leave_page_cache(&plan.directory).map_err(HostError::io(
        "cannot take the workload's files out of the page cache",
    ))?;
    plan.group
        .take(&mut changes, workload.child.id())
        .map_err(HostError::io("cannot move the runner"))?;
    let mut session = Session::begin(recording_options(scenario, options, plan))
        .map_err(HostError::io("cannot record"))?;
    let (orders, told) = mpsc::channel();
    let (ended, ran) = std::thread::scope(|scope| {
        let session = &mut session;
        let recorder = scope.spawn(move || session.run(None, &told, &mut drop));
        let ended = workload.carry_out(&deadline);
        if ended.is_err() {
            // What goes on in spite of it would keep the recorder from its end.
            let _ = changes.kill_tasks(&plan.group.path);
        }
        // Nobody hears it any more if it gave up itself, which it then says.
        let _ = orders.send(Order::Stop);
        (ended, recorder.join())
    });
    let code = ended?;
    let panicked = |_| Err(std::io::Error::other("the recorder panicked"));
    ran.unwrap_or_else(panicked)
        .map_err(HostError::io("cannot record"))?;
    let capture = session
        .finish()
        .map_err(HostError::io("cannot end the recording"))?;
    recording(scenario, plan, &workload.ran, code, capture)
}

/// Makes what the workload runs in.
fn set_up(scenario: &Scenario, plan: &Plan, changes: &mut dyn Changes) -> Result<(), HostError> {
    for change in &plan.changes {
        changes
            .set(&change.file, &change.to)
            .map_err(HostError::io(format!(
                "cannot set {} to {}",
                change.name, change.to
            )))?;
    }
    let groups = &scenario.workload.cgroups;
    plan.group
        .make(changes, plan.limits, groups)
        .map_err(HostError::io("cannot make the workload's cgroup"))?;
    for path in [Some(&plan.directory), plan.in_memory.as_ref()] {
        path.map_or(Ok(()), |path| changes.make_directory(path))
            .map_err(HostError::io("cannot make a directory for the workload"))?;
    }
    if let Some(size) = plan.swap {
        let file = plan.swap_file();
        swap_area::make_file(&file, size)
            .and_then(|()| changes.swap_on(&file))
            .map_err(HostError::io(format!(
                "cannot switch on a swap file, {}",
                file.display()
            )))?;
    }
    Ok(())
}

/// Writes what the runner is to do.
fn write_job(scenario: &Scenario, plan: &Plan) -> Result<PathBuf, HostError> {
    let mounts = scenario.machine.filesystems.iter().map(|system| {
        let place = match (system.kind, &plan.in_memory) {
            (FsKind::Tmpfs, Some(in_memory)) => in_memory,
            _ => &plan.directory,
        };
        Mount {
            name: system.name.clone(),
            // A file of its own name may lie beside it.
            point: place.join("files").join(&system.name),
            serial: None,
            kind: String::new(),
            bdi: Vec::new(),
            noatime: false,
            elevator: Vec::new(),
        }
    });
    let job = Job {
        scenario: scenario.clone(),
        modules: Vec::new(),
        swap: Vec::new(),
        mounts: mounts.collect(),
        settings: Vec::new(),
        events: Vec::new(),
        buffer_kb: 0,
        interval_ms: 0,
        touches: false,
        cgroups: plan.group.path.clone(),
    };
    let path = plan.directory.join("job.json");
    let written = serde_json::to_vec(&job)
        .map_err(std::io::Error::from)
        .and_then(|text| fs::write(&path, text));
    written.map_err(HostError::io(format!("cannot write {}", path.display())))?;
    Ok(path)
}

/// When the workload is to have ended, and how long it had.
struct Deadline(Instant, Duration);

/// The runner at work.
struct Running {
    child: Child,
    lines: Receiver<String>,
    ran: Ran,
}

impl Running {
    /// Starts it; it is not in the cgroup yet, so that files that exist before the run are charged to nobody.
    fn start(runner: &Path, job: &Path, plan: &Plan) -> Result<Running, HostError> {
        let mut command = Command::new(runner);
        command
            .arg(RUN_ARGUMENT)
            .arg(job)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        sys::die_with_parent(&mut command);
        if plan.no_huge_pages {
            sys::without_huge_pages(&mut command);
        }
        let started = command.spawn();
        let mut child =
            started.map_err(HostError::io(format!("cannot start {}", runner.display())))?;
        let lines = child
            .stdout
            .take()
            .map(heard)
            .unwrap_or_else(|| mpsc::channel().1);
        let running = Running {
            child,
            lines,
            ran: Ran::default(),
        };
        if let Some(count) = plan.cpus {
            on_cpus(running.child.id(), count).map_err(HostError::io("cannot choose CPUs"))?;
        }
        Ok(running)
    }

    /// The next line; none when there are no more.
    fn line(&self, deadline: &Deadline) -> Result<Option<String>, HostError> {
        let left = deadline.0.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(HostError::TimedOut { limit: deadline.1 }),
        }
    }

    fn hear(&mut self, line: &str) {
        // One that is cut off, as a runner that was killed leaves it, says nothing.
        if let Ok(line) = serde_json::from_str::<Line>(line) {
            self.ran.hear(line);
        }
    }

    /// Waits until the files are there.
    fn until_ready(&mut self, deadline: &Deadline) -> Result<(), HostError> {
        while let Some(line) = self.line(deadline)? {
            if line == READY {
                return Ok(());
            }
            self.hear(&line);
        }
        let problem = self.ran.failed.clone();
        Err(HostError::WorkloadFailed {
            problem: problem
                .unwrap_or_else(|| "the runner ended before its files were there".into()),
        })
    }

    /// Lets it go on to its end; its exit code, none if it was killed.
    fn carry_out(&mut self, deadline: &Deadline) -> Result<Option<i32>, HostError> {
        if let Some(mut input) = self.child.stdin.take() {
            input
                .write_all(b"\n")
                .map_err(HostError::io("the runner does not listen"))?;
        }
        while let Some(line) = self.line(deadline)? {
            self.hear(&line);
        }
        let status = self.child.wait();
        Ok(status
            .map_err(HostError::io("cannot wait for the runner"))?
            .code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, or is to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a runner says, line by line, until it and all of its processes have ended.
fn heard(output: ChildStdout) -> Receiver<String> {
    let (said, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Restricts a process to the first `count` of the CPUs that it may use.
fn on_cpus(pid: u32, count: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let may = rustix::thread::sched_getaffinity(pid)?;
    let mut chosen = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU)
        .filter(|cpu| may.is_set(*cpu))
        .take(count as usize);
    first.for_each(|cpu| chosen.set(cpu));
    Ok(rustix::thread::sched_setaffinity(pid, &chosen)?)
}

/// The directories of the workload's cgroups as the recorder names them, the one around them first.
fn directories(scenario: &Scenario, plan: &Plan) -> Vec<String> {
    let inner = scenario.workload.cgroups.iter();
    let inner = inner.map(|group| plan.group.path.join(&group.path));
    let all = std::iter::once(plan.group.path.clone()).chain(inner);
    let name = |path: PathBuf| path.to_string_lossy().trim_start_matches('/').to_owned();
    all.map(name).collect()
}

fn recording_options(scenario: &Scenario, options: &HostOptions, plan: &Plan) -> Options {
    Options {
        level: if options.events {
            Level::AllEvents
        } else {
            Level::Counters
        },
        ring: None,
        cgroups: directories(scenario, plan),
        command: Vec::new(),
        spool: plan.directory.clone(),
        places: None,
        roots: Roots::default(),
    }
}

/// What was recorded, and what the runner said, in one recording. Its times count from when recording began, just before the
/// workload did.
fn recording(
    scenario: &Scenario,
    plan: &Plan,
    ran: &Ran,
    code: Option<i32>,
    capture: Capture,
) -> Result<Recording, HostError> {
    let workload = &scenario.workload;
    let zero = capture.from_ns();
    let mut recording = capture
        .recording()
        .map_err(HostError::io("cannot read what was recorded"))?;
    let kills = recording.counters.get("oom_kill").copied().unwrap_or(0);
    if let Some(problem) = ran.problem(workload, code, kills) {
        return Err(HostError::WorkloadFailed { problem });
    }
    if let (Some(start), Some(end)) = (ran.start_ns, ran.end_ns) {
        recording.elapsed_ns = end.saturating_sub(start);
    }
    recording.run = RunInfo {
        workload: workload.name.clone(),
        params: scenario.params.clone(),
        machine: scenario.machine.name.clone(),
        kernel: scenario.kernel.text.clone(),
        backend: "host".into(),
        lowmark: env!("CARGO_PKG_VERSION").into(),
        seed: scenario.seed,
        left_out: Vec::new(),
    };
    if let Some(system) = &mut recording.system {
        let root = plan.group.path.to_string_lossy();
        let groups = workload.cgroups.iter().map(|group| group.path.as_str());
        let groups = std::iter::once("").chain(groups);
        let (counters, state) =
            counters_and_state(&system.after, root.trim_start_matches('/'), groups);
        recording.counters.extend(counters);
        recording.state.extend(state);
        system.notes.splice(0..0, plan.notes.iter().cloned());
    }
    let tasks = ran.tasks(workload, zero);
    note_others(&mut recording, &tasks);
    put_tasks(&mut recording, tasks);
    recording.phases = ran.phases(workload, zero);
    recording.series = ran.series(workload, zero);
    recording.outcome = ran.outcome(workload, &recording.counters, &recording.state);
    debug_assert!(matches!(recording.outcome, Outcome::Completed) || kills > 0);
    Ok(recording)
}

/// A note on the tasks beside the workload's that used most CPU time, kernel threads apart.
fn note_others(recording: &mut Recording, own: &[TaskTimes]) {
    /// Tasks that are named.
    const NAMED: usize = 3;
    /// Less than this share of the run is not worth a note.
    const SHARE: u64 = 50;
    let used = |task: &TaskTimes| task.user_ns + task.system_ns;
    let is_other = |task: &&TaskTimes| {
        let pid = task.pid;
        !task.kthread && pid != std::process::id() && own.iter().all(|own| own.pid != pid)
    };
    let mut others: Vec<&TaskTimes> = recording.tasks.iter().filter(is_other).collect();
    others.sort_by_key(|task| (std::cmp::Reverse(used(task)), task.pid));
    let all: u64 = others.iter().map(|task| used(task)).sum();
    if all < recording.elapsed_ns / SHARE {
        return;
    }
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    let named = others.iter().take(NAMED);
    let named = named.map(|task| format!("{} {}", task.name, seconds(used(task))));
    let note = format!(
        "other tasks of this system used {} of CPU time meanwhile: {}",
        seconds(all),
        named.collect::<Vec<_>>().join(", ")
    );
    if let Some(system) = &mut recording.system {
        system.notes.push(note);
    }
}

/// Puts what the runner says of the workload's tasks in the place of what the recorder saw of them, ten milliseconds exact. Events
/// and logs name tasks by their places, which stay.
fn put_tasks(recording: &mut Recording, tasks: Vec<TaskTimes>) {
    for task in tasks {
        let seen = recording.tasks.iter().position(|seen| seen.pid == task.pid);
        match seen {
            Some(at) => recording.tasks[at] = task,
            None => recording.tasks.push(task),
        }
    }
}
