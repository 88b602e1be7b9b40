//! The runner: carries out a workload on real memory and files of the kernel that runs.
//!
//! 1. [`unsupported`] says what it cannot do, before anything starts.
//! 2. [`run`] makes the files that exist before the run, says so, and waits to be told to go on: what
//!    looks at the system from outside begins there.
//! 3. Every task is a process, or threads of one; a coordinator starts them and sees them end.
//! 4. Results are lines on the standard output, see [`Line`]: phases, samples, CPU times, failures.
//!
//! The random streams are those of the model (`lowmark_spec::random`): the same seed touches the same
//! pages in the same order.
//!
//! The code is the same as a child of a guest's PID 1 and as a child on the host.

mod cgroups;
mod coordinator;
mod fileio;
mod files;
mod hugetlb;
mod interpreter;
mod process;
pub mod procfs;
mod report;
mod shared;
mod support;
pub(crate) mod sys;
mod time;
mod touch;

pub use files::Roots;
pub use report::{LINE_BYTES_MAX, Line, now_ns};
pub use support::{Unsupported, unsupported};

use coordinator::Coordinator;
use interpreter::Program;
use lowmark_spec::workload::{FileIo, FileRef, Op, Sharing, Stmt, Workload};
use procfs::Kswapd;
use shared::{Extent, Shared};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// How to carry out a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where files go.
    pub roots: Roots,
    /// Directory of the workload's memory cgroups, each of which is there already; none if there are none.
    pub cgroups: Option<PathBuf>,
    /// Pin the runner's own memory (mlockall(2)), so that it is no part of the load. Takes CAP_IPC_LOCK.
    pub pin: bool,
    /// Report every page that is touched ([`Line::Touches`]), to be compared with other backends.
    pub touches: bool,
}

/// The verb of `lowmark-runner` that carries out the workload of a job.
pub(crate) const RUN_ARGUMENT: &str = "run";

/// The line that says that files are ready; the runner then waits for a byte on its standard input.
pub const READY: &str = "\"ready\"";

/// Carries out a workload; whether nothing went wrong. To be called in a process of its own with one
/// thread, whose standard output takes the [`Line`]s.
///
/// # Errors
///
/// What the system says when files cannot be made, processes cannot be started, or nobody reads the lines.
pub fn run(workload: Workload, seed: u64, options: &Options) -> io::Result<bool> {
    // As many open files as the system allows are enough for any workload that fits in it.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    if options.pin {
        // Not to be allowed to is no reason not to run.
        let _ = sys::pin_memory();
    }

    let files = files::Files::prepare(&workload, &options.roots, seed)?;
    let turns = turns(&workload);
    let processes = workload.tasks.iter().map(|task| match task.sharing {
        Sharing::Processes => task.instances.len(),
        // Every spawn makes one; a spawn starts one thread at least.
        Sharing::Threads => task.instances.len(),
    });
    let shared = Shared::new(Extent {
        barriers: workload.barriers.len(),
        tasks: workload.tasks.len(),
        processes: processes.sum(),
        turns: turns.len(),
    })?;
    let (heard, requests) = rustix::pipe::pipe()?;
    let program = Arc::new(Program {
        kswapd: Kswapd::find()?,
        workload,
        seed,
        files,
        shared,
        requests,
        turns,
        cgroups: options.cgroups.clone(),
        pin: options.pin,
        touches: options.touches,
    });
    let pool = if grows_pool(&program.workload) {
        Some(hugetlb::Before::the_run()?)
    } else {
        None
    };
    rustix::fs::sync();
    println!("{READY}");
    let mut go = [0];
    io::stdin().read_exact(&mut go)?;
    let done = Coordinator::new(program, heard).and_then(Coordinator::run);
    pool.map_or(Ok(()), |pool| pool.restore())?;
    done
}

/// Whether a statement of the workload changes the pool of huge pages.
fn grows_pool(workload: &Workload) -> bool {
    let mut statements = workload.statements().into_iter();
    statements.any(|stmt| matches!(stmt.op, Op::Alloc(_)))
}

/// Counters of turns through filesets, one for each statement that takes files in sequence.
fn turns(workload: &Workload) -> BTreeMap<(usize, u32, &'static str, usize), usize> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(usize, &Stmt)> = Vec::new();
    for (at, task) in workload.tasks.iter().enumerate() {
        open.extend(task.instances.iter().flatten().map(|stmt| (at, stmt)));
    }
    while let Some((task, stmt)) = open.pop() {
        let file = match &stmt.op {
            Op::Read(FileIo { file, .. })
            | Op::Write(FileIo { file, .. })
            | Op::Append(FileIo { file, .. })
            | Op::Fsync { file, .. }
            | Op::Create { file }
            | Op::Delete { file }
            | Op::Truncate { file, .. } => Some(*file),
            _ => None,
        };
        if let Some(FileRef::Set(set, _)) = file {
            let next = found.len();
            found
                .entry((task, stmt.line, stmt.op.name(), set))
                .or_insert(next);
        }
        open.extend(
            stmt.op
                .bodies()
                .into_iter()
                .flatten()
                .map(|stmt| (task, stmt)),
        );
    }
    found
}
