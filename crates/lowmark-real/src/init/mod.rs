//! The runner as PID 1 of a guest.
//!
//! 1. `/proc`, `/sys` and so on are mounted, modules loaded, the virtio ports found (`setup.rs`).
//! 2. Settings are made, swap areas switched on, file systems mounted.
//! 3. A child makes the workload's files. When they are ready, caches are dropped, the trace begins, and
//!    a first snapshot is taken (`snapshot.rs`, `trace.rs`).
//! 4. The child carries out the workload; its lines are passed on. Beside it, one thread streams the trace
//!    and one looks at `/proc/vmstat`.
//! 5. When kswapd has come to rest, the last snapshot is taken, the trace ends, the guest restarts, which
//!    ends QEMU.
//!
//! Nothing here uses the page cache: what comes out goes through virtio ports. PID 1 pins its memory, and
//! the root file system is a ramfs, which is never reclaimed.

mod setup;
mod snapshot;
mod trace;

use crate::protocol::{CONSOLE_PREFIX, GuestLine, JOB_FILE, Job, RESULT_PORT, TRACE_PORT};
use crate::runner::procfs::{self, Kswapd};
use crate::runner::{self, Options, READY, RUN_ARGUMENT, Roots, now_ns, sys};
use crate::undo::{KEEP_ARGUMENT, keep};
use lowmark_spec::Scenario;
use rustix::system::{RebootCommand, reboot};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time that kswapd gets to come to rest after the last task.
const SETTLE: Duration = Duration::from_millis(1_000);

/// Where lines go.
type Port = Mutex<File>;

/// `lowmark-runner`: PID 1 of a guest, or `run JOB` for the workload alone.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if std::process::id() == 1 {
        pid_1();
    }
    match arguments.as_slice() {
        [verb, path] if verb == RUN_ARGUMENT => run(path),
        [verb, journals @ ..] if verb == KEEP_ARGUMENT && !journals.is_empty() => keep(journals),
        [flag] if flag == "--libraries" => libraries(),
        _ => {
            eprintln!(
                "usage: lowmark-runner run JOB\n       lowmark-runner keep JOURNAL...\n\nCarries out the workload of a job (JSON) when a byte comes \
                 on standard input; results are lines on standard output. With `keep`, undoes what journals name when standard \
                 input ends.\nAs PID 1 it is the only program \
                 of a guest. `--libraries` names the libraries that it needs."
            );
            ExitCode::FAILURE
        }
    }
}

/// Carries out the workload of a job.
fn run(path: &str) -> ExitCode {
    let result = fs::read(path).and_then(|text| {
        let job: Job = serde_json::from_slice(&text)?;
        // Not needed any more, and it lies in memory.
        drop(text);
        let options = Options {
            roots: roots(&job),
            cgroups: Some(job.cgroups.clone()),
            pin: std::env::var_os(PIN).is_some(),
            touches: job.touches,
        };
        let Scenario { workload, seed, .. } = job.scenario;
        runner::run(workload, seed, &options)
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let line = runner::Line::Failed {
                problem: error.to_string(),
            };
            let _ = io::stdout().write_all(&line.to_bytes());
            ExitCode::FAILURE
        }
    }
}

/// Set for the child of PID 1: the runner's memory is to be pinned.
const PIN: &str = "LOWMARK_PIN";

/// The libraries that are mapped into this process: what a guest needs beside the program.
fn libraries() -> ExitCode {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return ExitCode::FAILURE;
    };
    let own = std::env::current_exe().unwrap_or_default();
    let mut paths: Vec<&str> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.starts_with('/') && own.as_os_str() != *path)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths.iter().for_each(|path| println!("{path}"));
    ExitCode::SUCCESS
}

/// Where the file systems of a job are mounted.
fn roots(job: &Job) -> Roots {
    let by_name: BTreeMap<String, PathBuf> = job
        .mounts
        .iter()
        .map(|mount| (mount.name.clone(), mount.point.clone()))
        .collect();
    Roots {
        first: job.mounts.first().map(|mount| mount.point.clone()),
        by_name,
    }
}

/// Everything from the first instruction to the end of the guest.
fn pid_1() -> ! {
    if let Err(error) = guest() {
        // The console is all there may be.
        eprintln!("{CONSOLE_PREFIX}{error}");
    }
    // QEMU takes what lies in the ports when it looks at them.
    std::thread::sleep(Duration::from_millis(20));
    loop {
        let _ = reboot(RebootCommand::Restart);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn guest() -> io::Result<()> {
    setup::mount_system()?;
    let job: Job = serde_json::from_slice(&fs::read(format!("/{JOB_FILE}"))?)?;
    setup::load_modules(&job.modules)?;
    let port = Port::new(setup::open_port(RESULT_PORT)?);
    say(
        &port,
        &GuestLine::Boot {
            release: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            time_ns: now_ns(),
        },
    )?;
    let result = work(&job, &port);
    if let Err(error) = &result {
        say(
            &port,
            &GuestLine::GaveUp {
                problem: error.to_string(),
            },
        )?;
    }
    result
}

/// The trace that the job asks for, if any; events that the kernel does not have are told.
fn prepare_tracing(job: &Job, port: &Port) -> io::Result<Option<trace::Tracing>> {
    if job.events.is_empty() {
        return Ok(None);
    }
    let tracing = trace::Tracing::prepare(&job.events, job.buffer_kb)?;
    for text in &tracing.notes {
        let text = text.clone();
        say(port, &GuestLine::Note { text })?;
    }
    Ok(Some(tracing))
}

fn work(job: &Job, port: &Port) -> io::Result<()> {
    sys::pin_memory().or_else(|_| sys::pin_mapped())?;
    fs::write("/proc/self/oom_score_adj", "-1000")?;
    setup::apply(&job.settings)?;
    let mut notes = setup::swap_on(&job.swap)?;
    notes.extend(setup::mount_disks(&job.mounts)?);
    notes.extend(setup::stop_sampling());
    for text in notes {
        say(port, &GuestLine::Note { text })?;
    }
    let mut runner = start_runner(job)?;
    let mut lines = BufReader::new(runner.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
    loop {
        match lines.next().transpose()? {
            Some(line) if line == READY => break,
            Some(line) => pass_on(port, &line)?,
            // It said why it failed.
            None => return finish(port, runner),
        }
    }
    procfs::set("drop_caches", "3")?;
    let tracing = prepare_tracing(job, port)?;
    let trace_port = match tracing {
        Some(_) => Some(setup::open_port(TRACE_PORT)?),
        None => None,
    };
    let threads = procfs::kernel_threads()?;
    let kswapd = Kswapd::find()?;
    let mut before = snapshot::files(&job.scenario.workload.cgroups);
    snapshot::boot_into(&mut before)?;

    let stop = snapshot::Stop::default();
    let interval = Duration::from_millis(job.interval_ms.max(1));
    std::thread::scope(|scope| {
        let mut series = None;
        let stream = tracing
            .as_ref()
            .zip(trace_port)
            .map(|(tracing, destination)| scope.spawn(move || tracing.stream(destination)));
        // From here to the last reading of vmstat the trace is complete.
        let result = (|| {
            tracing.iter().try_for_each(trace::Tracing::begin)?;
            snapshot::fold();
            snapshot::vmstat_into(&mut before)?;
            say_snapshot(port, "before", before)?;
            // Not before: its pages would come and go while the counters are read.
            series = Some(scope.spawn(|| snapshot::series(port, interval, &stop)));
            if let Some(mut input) = runner.stdin.take() {
                input.write_all(b"\n")?;
            }
            for line in lines {
                pass_on(port, &line?)?;
            }
            settle(&kswapd);
            snapshot::fold();
            let mut after = BTreeMap::new();
            snapshot::vmstat_into(&mut after)?;
            tracing.iter().try_for_each(trace::Tracing::end)?;
            after.extend(snapshot::files(&job.scenario.workload.cgroups));
            say_snapshot(port, "after", after)
        })();
        stop.stop();
        if let Some(tracing) = &tracing {
            tracing.stop();
        }
        let panicked = |_| io::Error::other("a thread of PID 1 panicked");
        if let Some(series) = series {
            series.join().map_err(panicked)??;
        }
        if let (Some(stream), Some(tracing)) = (stream, &tracing) {
            let bytes = stream.join().map_err(panicked)??;
            let lost = tracing.lost()?;
            say(port, &GuestLine::Trace { bytes, lost })?;
        }
        result
    })?;
    say_kernel_threads(port, &threads)?;
    finish(port, runner)
}

/// Starts the child that carries out the workload.
fn start_runner(job: &Job) -> io::Result<Child> {
    let workload = &job.scenario.workload;
    setup::make_cgroups(&workload.cgroups, workload.recursive_protection)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .args([RUN_ARGUMENT, &format!("/{JOB_FILE}")])
        .env(PIN, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn()
}

fn finish(port: &Port, mut runner: Child) -> io::Result<()> {
    let code = runner.wait()?.code();
    say(port, &GuestLine::Finished { code })
}

/// Waits until kswapd sleeps: what it does right after the last task belongs to the run, and to the trace.
fn settle(kswapd: &Kswapd) {
    const POLL: Duration = Duration::from_millis(5);
    let mut left = SETTLE;
    while !kswapd.idle() && !left.is_zero() {
        std::thread::sleep(POLL);
        left = left.saturating_sub(POLL);
    }
}

fn say_snapshot(port: &Port, when: &str, files: BTreeMap<String, String>) -> io::Result<()> {
    let line = GuestLine::Snapshot {
        when: when.into(),
        files,
    };
    say(port, &line)
}

/// CPU time that kernel threads used since they were `before`.
fn say_kernel_threads(port: &Port, before: &[procfs::Thread]) -> io::Result<()> {
    for thread in procfs::kernel_threads()? {
        let earlier = before.iter().find(|earlier| earlier.pid == thread.pid);
        let (user, system) = earlier.map_or((0, 0), |t| (t.user_ns, t.system_ns));
        let line = GuestLine::KernelThread {
            name: thread.name,
            pid: thread.pid,
            user_ns: thread.user_ns.saturating_sub(user),
            system_ns: thread.system_ns.saturating_sub(system),
        };
        say(port, &line)?;
    }
    Ok(())
}

fn say(port: &Port, line: &GuestLine) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    send(port, &bytes)
}

fn pass_on(port: &Port, line: &str) -> io::Result<()> {
    send(port, format!("{line}\n").as_bytes())
}

/// Writes a whole line: a port takes 32 KiB at once at most.
fn send(port: &Port, bytes: &[u8]) -> io::Result<()> {
    port.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .write_all(bytes)
}
