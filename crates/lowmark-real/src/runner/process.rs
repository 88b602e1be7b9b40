//! Short-lived processes, one after the other: the statement `build`.
//!
//! Each is a fork(2) of the instance that gives up its maps and open files, as exec(2) would, carries out its statements and
//! ends. The instance waits for it, so that both can use what the instance shares with the coordinator.

use super::hugetlb;
use super::interpreter::{Context, Stop, run_body};
use super::sys::{self, Fork};
use lowmark_spec::random::Stream;
use lowmark_spec::workload::Stmt;
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};
use std::io;

/// Runs a process to its end.
pub(super) fn run_process(context: &mut Context, body: &[Stmt]) -> Result<(), Stop> {
    let name = &context.program.workload.tasks[context.task].name;
    context.threads += 1;
    let stream = Stream::new(context.stream.next_u64(), name, context.threads);
    match sys::fork()? {
        Fork::Child => {
            let code = in_child(context, stream, body);
            std::process::exit(code)
        }
        Fork::Parent(pid) => wait(pid),
    }
}

/// The new process, from its start to its exit code.
fn in_child(context: &mut Context, stream: Stream, body: &[Stmt]) -> i32 {
    // Who kills the instance means its processes, too.
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return 1;
    }
    context.stream = stream;
    context.maps.fill(None);
    context.open.clear();
    context.picks.clear();
    context.held.clear();
    context.buffer = None;
    context.threads = 0;
    let done = run_body(context, body).and_then(|()| hugetlb::free_all(context));
    i32::from(done.is_err())
}

/// waitpid(2). What kept the process from carrying out a statement, it has said itself.
fn wait(pid: i32) -> Result<(), Stop> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no process"))?;
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
            Ok(None) => {}
            Ok(Some((_, status))) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(0), _) => Ok(()),
                    (_, Some(signal)) => Err(Stop::Failed(format!(
                        "a process was killed by signal {signal}"
                    ))),
                    _ => Err(Stop::Reported),
                };
            }
        }
    }
}
